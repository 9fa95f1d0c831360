//! The names of c64-mcp for the tools about tools: callable in every profile, listed in none, for the C64 groups only.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

mod support;

use serde_json::{Value, json};
use support::MODERN;
use support::http_client::HttpServer;
use support::stdio_client::StdioClient;

const OLDER: &str = "2025-06-18";
const CHANGED: &str = "notifications/tools/list_changed";
const NAMES: [&str; 4] = ["list_c64_tool_groups", "load_c64_tool_group", "search_c64_tools", "unload_c64_tool_group"];

fn start(profile: &str, era: &str) -> StdioClient {
    StdioClient::start(&["--tool-profile", profile], era)
}

/// The data of an answer, which a refusal is too.
fn data(result: &Value) -> Value {
    assert_ne!(result["isError"], true, "{result}");
    let data = result["structuredContent"].clone();
    assert_eq!(serde_json::from_str::<Value>(result["content"][0]["text"].as_str().unwrap()).unwrap(), data);
    data
}

#[test]
fn nobody_is_shown_the_older_names() {
    for era in [OLDER, MODERN] {
        for profile in ["full", "minimal", "static"] {
            let listed = start(profile, era).listed();
            assert!(NAMES.iter().all(|name| !listed.contains(&(*name).to_owned())), "{profile}: {listed:?}");
        }
    }
}

#[test]
fn a_c64_group_is_loaded_under_its_older_name() {
    let mut client = start("minimal", OLDER);
    let (loaded, noted) = client.call_noting("load_c64_tool_group", json!({"group": "symbols"}));
    assert_eq!(noted, [CHANGED]);
    assert_eq!(
        data(&loaded),
        json!({"ok": true, "changed": true, "loaded": "symbols", "new_tools": 2,
            "new_tool_names": ["apply_c64_symbol_profile", "get_c64_symbol_profile"], "profile": "minimal",
            "loaded_groups": ["symbols"], "tools_changed": {"attempted": true, "sent": true, "error": null}})
    );
    let list = data(&client.call("list_c64_tool_groups", json!({})));
    assert_eq!((&list["profile"], &list["loaded_groups"]), (&json!("minimal"), &json!(["symbols"])));
    // The four of the older names and the two that were loaded.
    assert_eq!(list["callable_tools"], 6);
    let first = &list["groups"][0];
    assert_eq!(
        (&first["group"], &first["tool_count"], &first["loaded"], &first["baseline"]),
        (&json!("symbols"), &json!(2), &json!(true), &json!(false))
    );
    let unloaded = data(&client.call("unload_c64_tool_group", json!({"group": "symbols"})));
    assert_eq!((&unloaded["changed"], &unloaded["removed_tools"]), (&json!(true), &json!(2)));
    // What is loaded under one name is loaded under the other.
    client.call("load_tool_group", json!({"group": "c64-text"}));
    assert_eq!(data(&client.call("list_c64_tool_groups", json!({})))["loaded_groups"], json!(["text"]));
    let all = data(&client.call("load_c64_tool_group", json!({"group": "all"})));
    let names = all["new_tool_names"].as_array().unwrap();
    assert!(names.iter().all(|name| !name.as_str().unwrap().starts_with("nds_")), "{all}");
}

#[test]
fn a_refusal_is_an_ordinary_answer() {
    for (profile, tool, group, code, fields) in [
        ("static", "load_c64_tool_group", "c64-text", "unknown_group", ["group", "available_groups"]),
        ("static", "unload_c64_tool_group", "all", "unknown_group", ["group", "available_groups"]),
        ("static", "unload_c64_tool_group", "debug", "unknown_group", ["group", "available_groups"]),
        ("static", "unload_c64_tool_group", "text", "protected_group", ["profile", "baseline_groups"]),
        ("full", "unload_c64_tool_group", "text", "no_partial_unload", ["group", "profile"]),
    ] {
        let answer = data(&start(profile, OLDER).call(tool, json!({"group": group})));
        assert_eq!((&answer["ok"], &answer["error"]["code"]), (&json!(false), &json!(code)), "{answer}");
        assert!(fields.iter().all(|field| !answer["error"][field].is_null()), "{answer}");
    }
    let mut client = start("static", OLDER);
    let protected = data(&client.call("unload_c64_tool_group", json!({"group": "text"})));
    assert_eq!(protected["error"]["profile"], "static");
    assert_eq!(protected["error"]["baseline_groups"], json!(["graphics", "symbols", "text"]));
    for (arguments, code) in
        [(json!({"query": " \n"}), "invalid_query"), (json!({"query": "x", "limit": 51}), "invalid_limit")]
    {
        assert_eq!(data(&client.call("search_c64_tools", arguments))["error"]["code"], code);
    }
}

#[test]
fn where_a_list_does_not_change_the_answer_says_what_to_do() {
    let mut client = start("minimal", MODERN);
    for tool in ["load_c64_tool_group", "unload_c64_tool_group"] {
        let error = data(&client.call(tool, json!({"group": "text"})))["error"].clone();
        assert_eq!(error["code"], "tool_list_fixed");
        assert!(error["message"].as_str().unwrap().contains("call_tool"), "{error}");
    }
    let found = data(&client.call("search_c64_tools", json!({"query": "define_c64_text", "limit": 1})));
    assert_eq!(found["matches"][0]["fix"], "use the endpoint /mcp/<profile> or --tool-profile: full, c64");
    let server = HttpServer::start(&["--tool-profile", "static"]);
    let mut http = server.connect();
    let error = data(&http.call("load_c64_tool_group", json!({"group": "all"})))["error"].clone();
    assert!(error["message"].as_str().unwrap().contains("/mcp/<profile>"), "{error}");
    assert_eq!(data(&http.call("list_c64_tool_groups", json!({})))["profile"], "static");
}

#[test]
fn a_search_ranks_names_before_descriptions() {
    let mut client = start("minimal", OLDER);
    let found = data(&client.call("search_c64_tools", json!({"query": "Text SEARCH", "limit": 2})));
    let matches = found["matches"].as_array().unwrap();
    // Both words in the name are 6 points; a name with one of them has 3 and what its description adds.
    assert_eq!(matches[0]["name"], "search_c64_text");
    assert_eq!(
        (&matches[0]["status"], &matches[0]["fix"]),
        (&json!("not_loaded"), &json!("load_c64_tool_group(\"text\")"))
    );
    assert_eq!((matches.len(), &found["returned"]), (2, &json!(2)));
    assert!(found["match_count"].as_u64().unwrap() > 2);
    client.call("load_c64_tool_group", json!({"group": "text"}));
    let found = data(&client.call("search_c64_tools", json!({"query": "search_c64_text"})));
    assert_eq!((&found["matches"][0]["status"], &found["matches"][0]["fix"]), (&json!("callable"), &Value::Null));
    let about = data(&client.call("search_c64_tools", json!({"query": "management"})));
    let names: Vec<&str> =
        about["matches"].as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap()).collect();
    assert_eq!(names, NAMES);
}
