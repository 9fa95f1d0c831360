//! The tools about tools of c64-mcp 0.100.0 and ours under the same names, call by call over stdio in an older revision of the
//! protocol: answers, notifications and lists must be equal but for what is listed here. And the size of both lists.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

mod support;

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use support::stdio_client::StdioClient;

const ERA: &str = "2025-06-18";
const LIST: &str = "list_c64_tool_groups";
const LOAD: &str = "load_c64_tool_group";
const UNLOAD: &str = "unload_c64_tool_group";
const SEARCH: &str = "search_c64_tools";

/// Which differences a call may have, beside the words of descriptions and messages, which are each side's own.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Except {
    /// None.
    Nothing,
    /// The peer takes it and we refuse: a name that is not in the contract, or a value of another type.
    Lenient,
    /// The words are in descriptions, so that others fit: only tools with a word in their name are compared, as a set.
    Descriptions,
}

type Step = (&'static str, Value, Except);

fn steps() -> Vec<Step> {
    use Except::{Descriptions, Lenient, Nothing};
    let mut steps: Vec<Step> = vec![(LIST, json!({}), Nothing), (LIST, json!({"x": 1}), Lenient)];
    for group in ["text", "text", "nope", "TEXT", " text ", ""] {
        steps.push((LOAD, json!({"group": group}), Nothing));
    }
    for group in ["all", "vice", "text", "text", "symbols", "nope", ""] {
        steps.push((UNLOAD, json!({"group": group}), Nothing));
    }
    steps.push((LIST, json!({}), Nothing));
    for group in ["graphics", "all", "all"] {
        steps.push((LOAD, json!({"group": group}), Nothing));
    }
    steps.push((LIST, json!({}), Nothing));
    for group in ["graphics", "symbols", "vice", "all"] {
        steps.push((UNLOAD, json!({"group": group}), Nothing));
    }
    steps.push((LIST, json!({}), Nothing));
    for (tool, arguments, except) in [
        (LOAD, json!({}), Nothing),
        (LOAD, json!({"group": 5}), Nothing),
        (UNLOAD, json!({}), Nothing),
        (LOAD, json!({"group": "text", "x": 1}), Lenient),
        (SEARCH, json!({}), Nothing),
        (SEARCH, json!({"query": 5}), Nothing),
        (SEARCH, json!({"query": "  "}), Nothing),
        (SEARCH, json!({"query": "", "limit": 0}), Nothing),
        (SEARCH, json!({"query": "x", "limit": 0}), Nothing),
        (SEARCH, json!({"query": "x", "limit": 51}), Nothing),
        (SEARCH, json!({"query": "x", "limit": -1}), Nothing),
        (SEARCH, json!({"query": "x", "limit": 2.5}), Nothing),
        (SEARCH, json!({"query": "text", "limit": true}), Lenient),
        (SEARCH, json!({"query": "text", "limit": "3"}), Lenient),
        (SEARCH, json!({"query": "text", "limit": 2.0}), Lenient),
        (SEARCH, json!({"query": "zzz"}), Nothing),
        (SEARCH, json!({"query": "decode_c64_sprites"}), Nothing),
        (SEARCH, json!({"query": "SEARCH_C64_TEXT define_c64_text", "limit": 2}), Nothing),
        (SEARCH, json!({"query": "management"}), Nothing),
        (SEARCH, json!({"query": "c64", "limit": 50}), Descriptions),
        (SEARCH, json!({"query": "Text SEARCH"}), Descriptions),
        (SEARCH, json!({"query": "decode bitmap", "limit": 50}), Descriptions),
        (SEARCH, json!({"query": "profile"}), Descriptions),
        (SEARCH, json!({"query": "group"}), Descriptions),
    ] {
        steps.push((tool, arguments, except));
    }
    steps
}

fn peer(profile: &str) -> StdioClient {
    let python = std::env::var_os("RETROSCOPE_C64_PYTHON").expect("RETROSCOPE_C64_PYTHON names a Python with c64-mcp");
    let mut command = Command::new(PathBuf::from(python).parent().unwrap().join("c64-mcp"));
    command.args(["--tool-profile", profile]).stderr(Stdio::null());
    StdioClient::of(command, ERA)
}

fn names(value: &Value) -> BTreeSet<String> {
    value.as_array().into_iter().flatten().map(|name| name.as_str().unwrap().to_owned()).collect()
}

/// Tools of the group `vice` that the peer has not.
const BEYOND: [&str; 7] = [
    "vice_disassemble",
    "vice_feed_keyboard",
    "vice_load_prg",
    "vice_load_snapshot",
    "vice_read_screen",
    "vice_save_snapshot",
    "vice_search_memory",
];

/// The tools of the group, by a list of groups.
fn of_vice(list: &Value) -> BTreeSet<String> {
    let group = list["groups"].as_array().unwrap().iter().find(|group| group["group"] == "vice");
    group.map(|group| names(&group["tools"])).unwrap_or_default()
}

/// Takes what is beyond the peer's out of one of our answers.
fn without_beyond(value: &mut Value) {
    let loaded = value["loaded_groups"].as_array().is_some_and(|groups| groups.contains(&json!("vice")));
    let count = BEYOND.len() as u64;
    for (field, less) in [("callable_tools", if loaded { count } else { 0 }), ("catalog_tools", count)] {
        if let Some(number) = value[field].as_u64() {
            value[field] = json!(number - less);
        }
    }
    prune(value);
    for (list, number) in
        [("new_tool_names", "new_tools"), ("removed_tool_names", "removed_tools"), ("matches", "returned")]
    {
        if let Some(list) = value[list].as_array() {
            value[number] = json!(list.len());
        }
    }
}

fn prune(value: &mut Value) {
    let is_beyond = |name: &Value| name.as_str().is_some_and(|name| BEYOND.contains(&name));
    match value {
        Value::Array(list) => {
            list.retain(|entry| !is_beyond(entry) && !is_beyond(&entry["name"]));
            list.iter_mut().for_each(prune);
        }
        Value::Object(map) => {
            let less = map
                .get("tools")
                .and_then(Value::as_array)
                .map_or(0, |tools| tools.iter().filter(|tool| is_beyond(tool)).count());
            if let Some(count) = map.get("tool_count").and_then(Value::as_u64) {
                map.insert("tool_count".to_owned(), json!(count - less as u64));
            }
            map.values_mut().for_each(prune);
        }
        _ => {}
    }
}

/// Takes away the words that are each side's own.
fn without_words(value: &mut Value) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(without_words),
        Value::Object(map) => {
            map.remove("description");
            map.remove("message");
            map.values_mut().for_each(without_words);
        }
        _ => {}
    }
}

/// The tools found that have a word of the query in their name, and all that is said of each.
fn named(found: &Value, query: &str) -> BTreeSet<String> {
    let terms: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
    let fits = |entry: &&Value| terms.iter().any(|term| entry["name"].as_str().unwrap().contains(term.as_str()));
    found["matches"].as_array().unwrap().iter().filter(fits).map(Value::to_string).collect()
}

#[test]
fn our_answers_under_the_older_names_are_the_predecessors() {
    let (mut compared, mut excepted, mut differences) = (0, 0, Vec::new());
    for profile in ["minimal", "static", "full"] {
        let mut ours = StdioClient::start(&["--tool-profile", profile], ERA);
        let mut theirs = peer(profile);
        let list = |client: &mut StdioClient| client.call(LIST, json!({}))["structuredContent"].clone();
        let (own, peers) = (of_vice(&list(&mut ours)), of_vice(&list(&mut theirs)));
        assert_eq!(own.difference(&peers).collect::<Vec<_>>(), BEYOND, "{profile}");
        assert!(peers.is_subset(&own), "{profile}: {:?}", peers.difference(&own));
        for (tool, arguments, except) in steps() {
            if except == Except::Lenient {
                assert_eq!(ours.call(tool, arguments.clone())["isError"], true, "{tool} {arguments}");
                assert_eq!(theirs.call(tool, arguments.clone())["isError"], false, "{tool} {arguments}");
                if tool == LOAD {
                    // So that both go on from the same list.
                    ours.call(tool, json!({"group": arguments["group"]}));
                }
                (compared, excepted) = (compared + 1, excepted + 1);
                continue;
            }
            let (one, noted) = ours.call_noting(tool, arguments.clone());
            let (other, other_noted) = theirs.call_noting(tool, arguments.clone());
            compared += 1;
            excepted += usize::from(except != Except::Nothing);
            let (mut a, mut b) = (one["structuredContent"].clone(), other["structuredContent"].clone());
            without_beyond(&mut a);
            without_words(&mut a);
            without_words(&mut b);
            let query = arguments["query"].as_str().unwrap_or_default();
            let equal = match except {
                Except::Descriptions => named(&a, query) == named(&b, query),
                _ => a == b,
            };
            if !equal || one["isError"] != other["isError"] || noted != other_noted {
                differences.push(format!(
                    "{profile}: {tool} {arguments}\n    ours   {noted:?} {a}\n    theirs {other_noted:?} {b}"
                ));
            }
        }
        // The lists that both end with have the same C64 tools.
        let tools = |client: &mut StdioClient| -> BTreeSet<String> {
            let listed = client.listed().into_iter();
            let of_c64 = |name: &String| (name.contains("c64") || name.contains("vice")) && !name.contains("tool");
            listed.filter(of_c64).filter(|name| !BEYOND.contains(&name.as_str())).collect()
        };
        assert_eq!(tools(&mut ours), tools(&mut theirs), "{profile}");
    }
    println!("{compared} calls compared, {excepted} with a listed exception");
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}

#[test]
fn our_list_of_the_same_tools_is_the_smaller_one() {
    let list = |client: &mut StdioClient| client.request("tools/list", json!({}))["result"]["tools"].clone();
    let (ours, theirs) = (list(&mut StdioClient::start(&["--tool-profile", "static"], ERA)), list(&mut peer("static")));
    let size = |tools: &Value, name: &Value| -> Option<usize> {
        tools.as_array().unwrap().iter().find(|tool| tool["name"] == *name).map(|tool| tool.to_string().len())
    };
    let (mut count, mut sum, mut peers) = (0, 0, 0);
    for tool in theirs.as_array().unwrap() {
        let name = &tool["name"];
        if let (Some(one), Some(other)) = (size(&ours, name), size(&theirs, name)) {
            println!("{name:<32} ours {one:>5} theirs {other:>5}");
            (count, sum, peers) = (count + 1, sum + one, peers + other);
        }
    }
    assert_eq!(count, 10, "the ten tools of both");
    println!("bytes per tool: ours {}, theirs {}", sum / count, peers / count);
    assert!(sum < peers, "ours {sum}, theirs {peers}");
}
