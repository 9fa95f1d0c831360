//! Groups of tools as clients see them: they are loaded and unloaded over stdio in the older revisions of the protocol, and
//! everywhere else the list stays as it is.

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

const OLDER: [&str; 2] = ["2025-06-18", "2025-11-25"];
const CHANGED: &str = "notifications/tools/list_changed";
const TEXT: [&str; 3] = ["decode_c64_text", "define_c64_text", "search_c64_text"];

fn start(profile: &str, era: &str) -> StdioClient {
    StdioClient::start(&["--tool-profile", profile], era)
}

fn data(result: &Value) -> Value {
    assert_ne!(result["isError"], true, "{result}");
    result["structuredContent"].clone()
}

/// The error in the text of a refusal.
fn error(text: &str) -> Value {
    serde_json::from_str(text.split_once('\n').unwrap().1).unwrap()
}

#[test]
fn a_group_comes_and_goes_and_the_client_is_told() {
    for era in OLDER {
        let mut client = start("minimal", era);
        assert_eq!(client.hello["capabilities"]["tools"], json!({"listChanged": true}), "{era}");
        let before = client.listed();
        assert_eq!(before, ["list_tool_groups", "search_tools", "load_tool_group", "unload_tool_group", "call_tool"]);

        let (loaded, noted) = client.call_noting("load_tool_group", json!({"group": "c64-text"}));
        assert_eq!(noted, [CHANGED], "the notification comes before the answer");
        let told = json!({"attempted": true, "sent": true, "error": null});
        assert_eq!(
            data(&loaded),
            json!({"ok": true, "changed": true, "loaded": "c64-text", "new_tools": 3, "new_tool_names": TEXT,
                "profile": "minimal", "loaded_groups": ["c64-text"], "tools_changed": told})
        );
        let after = client.listed();
        assert_eq!(after[..before.len()], before);
        assert!(TEXT.iter().all(|name| after.iter().any(|listed| listed == name)) && after.len() == before.len() + 3);
        assert_eq!(data(&client.call("decode_c64_text", json!({"bytes": "41", "length": 1})))["plain_text"], "A");

        let quiet = json!({"attempted": false, "sent": false, "error": null});
        let (again, noted) = client.call_noting("load_tool_group", json!({"group": "c64-text"}));
        let again = data(&again);
        assert_eq!(
            (&again["changed"], &again["new_tools"], &again["tools_changed"]),
            (&json!(false), &json!(0), &quiet)
        );
        assert!(noted.is_empty());

        let (gone, noted) = client.call_noting("unload_tool_group", json!({"group": "c64-text"}));
        assert_eq!(noted, [CHANGED]);
        assert_eq!(
            data(&gone),
            json!({"ok": true, "changed": true, "unloaded": "c64-text", "removed_tools": 3, "removed_tool_names": TEXT,
                "profile": "minimal", "loaded_groups": [], "tools_changed": told})
        );
        assert_eq!(client.listed(), before);
        let call = client.request("tools/call", json!({"name": "decode_c64_text", "arguments": {}}))["error"].clone();
        assert!(call["message"].as_str().unwrap().contains("load_tool_group"), "{call}");
        let (again, noted) = client.call_noting("unload_tool_group", json!({"group": "c64-text"}));
        assert_eq!((&data(&again)["changed"], noted.len()), (&json!(false), 0));
    }
}

#[test]
fn all_loads_every_group() {
    let mut client = start("minimal", OLDER[0]);
    let (all, noted) = client.call_noting("load_tool_group", json!({"group": "all"}));
    assert_eq!(noted, [CHANGED], "one change, however many groups");
    let all = data(&all);
    let groups = data(&client.call("list_tool_groups", json!({})));
    let mut names: Vec<&str> =
        groups["groups"].as_array().unwrap().iter().map(|group| group["name"].as_str().unwrap()).collect();
    assert!(
        groups["groups"].as_array().unwrap().iter().all(|group| group["loaded"] == true && group["baseline"] == false)
    );
    names.sort_unstable();
    assert_eq!(all["loaded_groups"], json!(names));
    let mut full = start("full", OLDER[0]).listed();
    full.push("call_tool".to_owned());
    let mut listed = client.listed();
    full.sort();
    listed.sort();
    assert_eq!(listed, full);
}

#[test]
fn refusals_come_in_their_order() {
    let mut client = start("c64", OLDER[1]);
    let before = client.listed();
    for (tool, group, code, details) in [
        ("load_tool_group", "text", "unknown_group", "available_groups"),
        ("unload_tool_group", "all", "unknown_group", "available_groups"),
        ("unload_tool_group", "c64-text", "protected_group", "baseline_groups"),
    ] {
        let error = error(&client.refused(tool, json!({"group": group})));
        assert_eq!((&error["code"], &error["details"]["group"]), (&json!(code), &json!(group)), "{error}");
        assert!(error["details"][details].is_array() && error["hint"] != "", "{error}");
    }
    let protected = error(&client.refused("unload_tool_group", json!({"group": "c64-text"})));
    assert_eq!(protected["details"]["baseline_groups"], json!(["c64-graphics", "c64-symbols", "c64-text"]));
    assert_eq!(data(&client.call("unload_tool_group", json!({"group": "nds"})))["changed"], false);
    assert_eq!(client.listed(), before);

    let mut full = start("full", OLDER[1]);
    let mut code = |group: &str| error(&full.refused("unload_tool_group", json!({"group": group})))["code"].clone();
    assert_eq!((code("nothing"), code("nds")), (json!("unknown_group"), json!("no_partial_unload")));
    assert_eq!(data(&full.call("load_tool_group", json!({"group": "all"})))["changed"], false);
}

#[test]
fn one_clients_groups_are_its_own() {
    let mut one = start("minimal", OLDER[0]);
    one.call("load_tool_group", json!({"group": "nds"}));
    assert!(!start("minimal", OLDER[0]).listed().contains(&"nds_inspect_rom".to_owned()));
}

#[test]
fn under_the_newest_revision_the_list_stays_as_it_is() {
    let mut client = start("minimal", MODERN);
    let info = client.request("server/discover", json!({}))["result"].clone();
    assert!(info["capabilities"]["tools"]["listChanged"].is_null(), "{info}");
    let before = client.listed();
    assert_eq!(before, ["list_tool_groups", "search_tools", "call_tool"]);
    for tool in ["load_tool_group", "unload_tool_group"] {
        let text = client.refused(tool, json!({"group": "nds"}));
        assert!(text.starts_with("tool_list_fixed: this revision of the protocol"), "{text}");
        assert!(text.contains("--tool-profile") && text.contains("call_tool"), "{text}");
    }
    assert_eq!(client.listed(), before);
}

#[test]
fn over_http_the_list_stays_as_it_is() {
    let server = HttpServer::start(&["--tool-profile", "minimal"]);
    let mut client = server.connect();
    let modern = client.modern("/mcp", "tools/list", json!({}), None).message();
    assert!(!modern.to_string().contains("load_tool_group"), "{modern}");
    let result = client.call("load_tool_group", json!({"group": "nds"}));
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("tool_list_fixed: over HTTP") && text.contains("/mcp/<profile>"), "{text}");
    for era in OLDER {
        let hello = client
            .legacy(
                era,
                "initialize",
                json!({"protocolVersion": era, "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}}),
            )
            .message();
        assert!(hello["result"]["capabilities"]["tools"]["listChanged"].is_null(), "{hello}");
        let list = client.legacy(era, "tools/list", json!({})).message();
        assert_eq!(list["result"]["tools"].as_array().unwrap().len(), 3, "{list}");
        let params = json!({"name": "load_tool_group", "arguments": {"group": "nds"}});
        let call = client.legacy(era, "tools/call", params).message();
        assert!(call["result"]["content"][0]["text"].as_str().unwrap().starts_with("tool_list_fixed: "), "{call}");
    }
    // The predecessor's names of profiles are endpoints too.
    assert_eq!(
        client.modern("/mcp/static", "tools/list", json!({}), None).message()["result"]["tools"],
        client.modern("/mcp/c64", "tools/list", json!({}), None).message()["result"]["tools"]
    );
}

#[test]
fn a_search_says_how_to_come_to_what_is_not_listed() {
    let fix = |profile: &str, era: &str| {
        let found = data(&start(profile, era).call("search_tools", json!({"query": "sprites", "limit": 1})));
        assert_eq!((&found["returned"], &found["tools"][0]["name"]), (&json!(1), &json!("decode_c64_sprites")));
        found["tools"][0]["fix"].clone()
    };
    assert_eq!(fix("c64", OLDER[0]), Value::Null);
    assert_eq!(fix("debug", OLDER[0]), "load_tool_group(\"c64-graphics\")");
    assert_eq!(fix("minimal", MODERN), "call_tool(\"decode_c64_sprites\", {…})");
    assert_eq!(fix("debug", MODERN), "use the endpoint /mcp/<profile> or --tool-profile: full, c64");
    let mut client = start("debug", MODERN);
    for (arguments, code) in [
        (json!({"query": " "}), "invalid_query"),
        (json!({"query": "x", "limit": 0}), "invalid_limit"),
        (json!({"query": "x", "limit": 51}), "invalid_limit"),
    ] {
        assert_eq!(error(&client.refused("search_tools", arguments))["code"], code);
    }
    let about = data(&client.call("search_tools", json!({"query": "groups", "limit": 50})));
    let names: Vec<&str> =
        about["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"list_tool_groups") && !names.contains(&"load_tool_group"), "{names:?}");
}
