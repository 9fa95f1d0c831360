//! The server over stdio, against an agent that answers as it is told.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

mod support;

use serde_json::{Value, json};
use std::net::TcpListener;
use std::time::Duration;
use support::MODERN;
use support::fake_agent::{FakeAgent, Script};
use support::stdio_client::StdioClient;

const ERAS: [&str; 3] = ["2025-06-18", "2025-11-25", MODERN];

fn start(agent: &FakeAgent) -> StdioClient {
    StdioClient::start(&["--agent", &agent.address], MODERN)
}

/// Arguments with which each tool can be called, and what the agent is then asked.
fn calls() -> Vec<(&'static str, Value, Value)> {
    let same = |tool, arguments: Value| (tool, arguments.clone(), arguments);
    vec![
        (
            "launch",
            json!({"path": "/games/a"}),
            json!({"path": "/games/a", "stop_at": "entry", "if_running": "attach"}),
        ),
        same("attach", json!({"pid": 9})),
        same("get_status", json!({})),
        ("set_breakpoint", json!({"addr": 4_198_400}), json!({"addr": "0x401000", "one_shot": false})),
        same("remove_breakpoint", json!({"addr": "main"})),
        ("list_breakpoints", json!({"limit": 5}), json!({})),
        (
            "set_watchpoint",
            json!({"addr": "0x480000", "size": 4}),
            json!({"addr": "0x480000", "size": 4, "mode": "write"}),
        ),
        same("remove_watchpoint", json!({"slot": 0})),
        same("list_watchpoints", json!({})),
        same("continue_execution", json!({"timeout": 10.0})),
        same("pause", json!({})),
        ("step", json!({"count": 2}), json!({"mode": "into", "count": 2})),
        ("read_memory", json!({"addr": "0x480000"}), json!({"addr": "0x480000", "length": 256})),
        ("write_memory", json!({"addr": "0x480000", "hex": "90 eb"}), json!({"addr": "0x480000", "data": "kOs="})),
        same("get_registers", json!({"sets": ["general", "sse"]})),
        ("set_registers", json!({"registers": {"eax": 16}}), json!({"registers": {"eax": "0x10"}})),
        ("list_threads", json!({}), json!({})),
        ("list_modules", json!({}), json!({})),
        same("disassemble", json!({"addr": "main", "count": 1})),
        same("backtrace", json!({"limit": 3})),
        same("screenshot", json!({"title": "game"})),
        same("detach", json!({})),
        same("terminate", json!({})),
    ]
}

#[test]
fn every_tool_asks_the_agent_and_answers_in_every_era() {
    for era in ERAS {
        let agent = FakeAgent::start();
        let mut client = StdioClient::start(&["--agent", &agent.address, "--tool-profile", "debug"], era);
        let list = client.request("tools/list", json!({}))["result"]["tools"].clone();
        let listed: Vec<&str> = list.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        let calls = calls();
        // list_tool_groups and search_tools; in the older eras load_tool_group and unload_tool_group too.
        let about = if era == MODERN { 2 } else { 4 };
        assert_eq!(listed.len(), calls.len() + about, "{listed:?}");
        for (tool, arguments, asked) in calls {
            assert!(listed.contains(&tool), "{tool}");
            let result = client.call(tool, arguments);
            assert_ne!(result["isError"], true, "{tool}: {result}");
            assert_eq!(agent.last(tool), asked, "{tool}");
            if tool == "screenshot" {
                assert_eq!(result["content"][0]["mimeType"], "image/png");
                assert_eq!(result["content"][0]["data"], support::fake_agent::PIXEL);
                assert!(result["structuredContent"].is_null());
                let facts: Value = serde_json::from_str(result["content"][1]["text"].as_str().unwrap()).unwrap();
                assert_eq!((&facts["title"], &facts["generation"]), (&json!("game"), &json!(3)));
                assert!(facts["png_base64"].is_null());
                continue;
            }
            let data = &result["structuredContent"];
            assert_eq!(&serde_json::from_str::<Value>(result["content"][0]["text"].as_str().unwrap()).unwrap(), data);
            for (key, value) in [
                ("state", json!("stopped")),
                ("reason", json!("entry")),
                ("pc", json!("0x401000")),
                ("thread", json!(7)),
                ("generation", json!(3)),
            ] {
                assert_eq!(data[key], value, "{tool}: {key}");
            }
        }
    }
}

#[test]
fn what_only_reads_changes_nothing_in_the_program() {
    // These operations of the agent are the ones that let the program as it was.
    let harmless = [
        "get_status",
        "list_breakpoints",
        "list_watchpoints",
        "read_memory",
        "get_registers",
        "list_threads",
        "list_modules",
        "disassemble",
        "backtrace",
        "screenshot",
    ];
    let agent = FakeAgent::start();
    let mut client = start(&agent);
    let list = client.request("tools/list", json!({}))["result"]["tools"].clone();
    for (tool, arguments, _) in calls() {
        let entry = list.as_array().unwrap().iter().find(|entry| entry["name"] == tool).unwrap();
        assert_eq!(entry["annotations"]["readOnlyHint"], harmless.contains(&tool), "{tool}");
        client.call(tool, arguments);
        assert_eq!(agent.asked().last().unwrap().0, tool);
    }
}

#[test]
fn results_fit_the_schemas_that_the_list_promises() {
    let agent = FakeAgent::start();
    let mut client = start(&agent);
    let list = client.request("tools/list", json!({}))["result"]["tools"].clone();
    for (tool, arguments, _) in calls().into_iter().filter(|(tool, ..)| *tool != "screenshot") {
        let entry = list.as_array().unwrap().iter().find(|entry| entry["name"] == tool).unwrap();
        let schema = &entry["outputSchema"];
        let data = client.call(tool, arguments)["structuredContent"].clone();
        for name in schema["required"].as_array().unwrap() {
            assert!(!data[name.as_str().unwrap()].is_null(), "{tool}: {name}");
        }
        for name in data.as_object().unwrap().keys() {
            assert!(
                !schema["properties"][name].is_null(),
                "{tool} answers with `{name}`, which its schema does not have"
            );
        }
    }
}

#[test]
fn the_list_is_the_same_whatever_happens_on_the_connection() {
    let agent = FakeAgent::start();
    let mut client = start(&agent);
    let before = client.request("tools/list", json!({}))["result"].clone();
    client.call("search_tools", json!({"query": "memory"}));
    client.call("list_tool_groups", json!({}));
    client.call("launch", json!({"path": "/games/a"}));
    assert_eq!(client.request("tools/list", json!({}))["result"], before);
    let error = client.request("tools/list", json!({"cursor": "7"}))["error"].clone();
    assert_eq!(error["code"], -32602, "{error}");
}

#[test]
fn a_wrong_call_is_told_what_would_be_right() {
    let agent = FakeAgent::start();
    let mut client = start(&agent);
    let unknown = client.request("tools/call", json!({"name": "get_stats", "arguments": {}}))["error"].clone();
    assert_eq!(unknown["code"], -32602);
    assert!(unknown["message"].as_str().unwrap().contains("did you mean `get_status`"), "{unknown}");
    for (tool, arguments, words) in [
        (
            "set_breakpoint",
            json!({}),
            ["invalid_arguments: set_breakpoint: missing field `addr`", "`addr` (required), `condition`"],
        ),
        ("set_breakpoint", json!({"address": 1}), ["unknown field `address`", "its arguments are"]),
        ("pause", json!({"now": true}), ["unknown field `now`", "it takes no arguments"]),
        (
            "set_watchpoint",
            json!({"addr": "x", "mode": "exec"}),
            ["unknown variant `exec`", "`write`, `readwrite`, `read`"],
        ),
        ("write_memory", json!({"addr": 1}), ["one of `hex` and `data`", "9090"]),
        ("write_memory", json!({"addr": 1, "hex": "9"}), ["a byte has two", ""]),
        ("list_modules", json!({"limit": 0}), ["allowed are 1 to 1024", "limit_exceeded"]),
        ("list_modules", json!({"offset": 2}), ["there are 1 items", ""]),
        ("search_tools", json!({"query": "the"}), ["names no word", "list_tool_groups"]),
    ] {
        let text = client.refused(tool, arguments);
        for word in words {
            assert!(text.contains(word), "{tool}: `{word}` is not in {text}");
        }
    }
    assert_eq!(agent.asked().iter().filter(|(op, _)| op != "list_modules").count(), 0);
}

#[test]
fn the_agents_refusal_arrives_whole() {
    let agent = FakeAgent::start();
    let details = json!({"slots": ["0x1", "0x2"]});
    let error = json!({"error": "all 4 are in use", "code": "no_free_slot", "hint": "remove one", "details": details});
    agent.script("set_watchpoint", Script::Refuse(error));
    let text = start(&agent).refused("set_watchpoint", json!({"addr": "0x1"}));
    let (line, json) = text.split_once('\n').unwrap();
    assert_eq!(line, "no_free_slot: all 4 are in use; remove one");
    assert_eq!(
        serde_json::from_str::<Value>(json).unwrap(),
        json!({"code": "no_free_slot", "message": "all 4 are in use", "hint": "remove one", "retryable": false, "details": details})
    );
}

#[test]
fn a_wait_holds_nothing_up() {
    let agent = FakeAgent::start();
    agent.script("continue_execution", Script::Hold);
    let mut client = start(&agent);
    let waiting = client.ask("tools/call", json!({"name": "continue_execution", "arguments": {"timeout": 300}}));
    agent.wait_for("continue_execution");
    assert_eq!(client.call("get_status", json!({}))["structuredContent"]["pid"], 9);
    assert_eq!(client.call("read_memory", json!({"addr": 1, "length": 1}))["structuredContent"]["length"], 1);
    agent.release();
    assert_eq!(client.answer(waiting)["result"]["structuredContent"]["timed_out"], false);
}

#[test]
fn a_cancelled_wait_leaves_no_trace() {
    for era in ERAS {
        let agent = FakeAgent::start();
        agent.script("continue_execution", Script::Hold);
        let mut client = StdioClient::start(&["--agent", &agent.address], era);
        let waiting = client.ask("tools/call", json!({"name": "continue_execution", "arguments": {"timeout": 300}}));
        agent.wait_for("continue_execution");
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": waiting}}));
        // The agent learns of it by the end of that connection.
        agent.closed.recv_timeout(Duration::from_secs(20)).expect("the wait was not given up");
        assert_eq!(client.call("get_status", json!({}))["structuredContent"]["pid"], 9);
        let asked: Vec<String> = agent.asked().into_iter().map(|(op, _)| op).collect();
        assert_eq!(asked, ["continue_execution", "get_status"], "{era}");
    }
}

#[test]
fn a_command_that_may_have_been_carried_out_is_not_sent_again() {
    let agent = FakeAgent::start();
    agent.script("continue_execution", Script::Hang);
    let mut client = start(&agent);
    let text = client.refused("continue_execution", json!({"timeout": 1}));
    assert!(text.starts_with("agent_connection_lost: ") && text.contains("get_status"), "{text}");
    assert_eq!(agent.asked().len(), 1);
    assert_eq!(client.call("get_status", json!({}))["structuredContent"]["pid"], 9);
}

#[test]
fn an_agent_that_was_restarted_is_found_again() {
    let agent = FakeAgent::start();
    let mut client = start(&agent);
    client.call("get_status", json!({}));
    client.call("get_status", json!({}));
    assert_eq!(agent.accepted(), 1, "a connection is kept between calls");
    agent.drop_connections();
    // The end of the connection reaches the server in its own time.
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(client.call("get_status", json!({}))["structuredContent"]["pid"], 9);
    assert_eq!(agent.accepted(), 2);
}

#[test]
fn no_agent_and_a_wrong_agent_are_told_apart() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let text = StdioClient::start(&["--agent", &free], MODERN).refused("get_status", json!({}));
    assert!(text.starts_with("agent_unreachable: ") && text.contains("`retroscope agent`"), "{text}");

    let agent = FakeAgent::start();
    let mut hello = support::fake_agent::usual("hello", &Value::Null);
    hello["protocol"] = json!(99);
    agent.script("hello", Script::Result(hello));
    let text = start(&agent).refused("get_status", json!({}));
    assert!(text.starts_with("agent_incompatible: ") && text.contains("protocol version 99"), "{text}");
    agent.script("hello", Script::Hang);
    let text = start(&agent).refused("get_status", json!({}));
    assert!(text.starts_with("agent_incompatible: ") && text.contains("does not speak"), "{text}");
}

#[test]
fn what_does_not_fit_in_one_answer_is_continued() {
    let agent = FakeAgent::start();
    let mut client = start(&agent);
    let data = client.call("read_memory", json!({"addr": "0x480000", "length": 100_000}))["structuredContent"].clone();
    let length = data["length"].as_u64().unwrap();
    assert_eq!(data["total"], 100_000);
    assert_eq!(data["next"], format!("{:#x}", 0x48_0000 + length));
    assert_eq!(data["truncated"], "one answer holds 20000 characters");
    assert!(data.to_string().len() <= 20_000 && length > 1_000, "{length}");
    assert_eq!(agent.last("read_memory")["length"], length, "no more is read than is shown");

    let modules: Vec<Value> = (0..1_000)
        .map(|at| json!({"name": "m", "path": "/".repeat(90), "base": format!("{at:#x}"), "size": 1, "symbols": 0, "main": false}))
        .collect();
    agent.script(
        "list_modules",
        Script::Result(json!({"modules": modules, "state": "stopped", "status": "stopped", "generation": 1})),
    );
    let (mut seen, mut offset) = (0, json!(0));
    while !offset.is_null() {
        let part = client.call("list_modules", json!({"offset": offset, "limit": 1_000}))["structuredContent"].clone();
        assert!(part.to_string().len() <= 20_000);
        for module in part["modules"].as_array().unwrap() {
            assert_eq!(module["base"], format!("{seen:#x}"));
            seen += 1;
        }
        offset = part["next"].clone();
    }
    assert_eq!(seen, 1_000);
}

#[test]
fn the_largest_write_passes() {
    let agent = FakeAgent::start();
    // 16 MiB, the most that one write may have: 16,777,216 / 3 rounded up, times 4, is 22,369,624 characters.
    let data = "AAAA".repeat(5_592_405) + "AA==";
    assert_eq!(data.len(), 22_369_624);
    let result = start(&agent).call("write_memory", json!({"addr": 1, "data": data}));
    assert_ne!(result["isError"], true);
    assert_eq!(agent.last("write_memory")["data"].as_str().map(str::len), Some(data.len()));
}

#[test]
fn rubbish_on_the_line_ends_nothing() {
    let agent = FakeAgent::start();
    for era in ERAS {
        let mut client = StdioClient::start(&["--agent", &agent.address], era);
        client.call("get_status", json!({}));
        client.send_raw(b"\xff\xfe\x00 binary");
        client.send_raw(b"{\"jsonrpc\": \"2.0\", \"id\": 1");
        client.send_raw(b"[]");
        client.send_raw(b"{\"jsonrpc\":\"2.0\",\"id\":77,\"method\":\"tools/call\",\"params\":{\"name\":7}}");
        client.send_raw(&[b'x'; 1_000_000]);
        assert_eq!(client.call("get_status", json!({}))["structuredContent"]["pid"], 9, "{era}");
        assert!(client.end().success());
    }
}

#[test]
fn the_minimal_profile_reaches_everything() {
    let agent = FakeAgent::start();
    let mut client = StdioClient::start(&["--agent", &agent.address, "--tool-profile", "minimal"], MODERN);
    let list = client.request("tools/list", json!({}))["result"]["tools"].clone();
    let names: Vec<&str> = list.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["list_tool_groups", "search_tools", "call_tool"]);
    let found = client.call("search_tools", json!({"query": "registers", "include_schemas": true}));
    assert_eq!(found["structuredContent"]["tools"][0]["group"], "debug");
    assert!(found["structuredContent"]["tools"][0]["input_schema"]["properties"].is_object());
    let status = client.call("call_tool", json!({"name": "get_status"}));
    assert_eq!(status["structuredContent"]["pid"], 9);
    assert!(client.refused("call_tool", json!({"name": "call_tool"})).contains("does not call itself"));
    assert!(client.refused("call_tool", json!({"name": "get_state"})).starts_with("unknown_tool: "));
    let direct = client.request("tools/call", json!({"name": "get_status", "arguments": {}}))["error"].clone();
    assert!(direct["message"].as_str().unwrap().contains("not in the profile `minimal`"), "{direct}");
}

#[test]
fn a_launch_outside_the_roots_never_reaches_the_agent() {
    let agent = FakeAgent::start();
    let mut client = StdioClient::start(&["--agent", &agent.address, "--launch-root", "/games"], MODERN);
    let text = client.refused("launch", json!({"path": "/bin/sh"}));
    assert!(text.starts_with("path_refused: ") && text.contains("/games"), "{text}");
    assert!(agent.asked().is_empty());
    client.call("launch", json!({"path": "/games/a"}));
}

#[test]
fn the_server_ends_when_it_is_told_to() {
    for signal in ["TERM", "INT"] {
        let agent = FakeAgent::start();
        agent.script("continue_execution", Script::Hold);
        let mut client = start(&agent);
        client.ask("tools/call", json!({"name": "continue_execution", "arguments": {"timeout": 300}}));
        agent.wait_for("continue_execution");
        let pid = client.pid().to_string();
        assert!(std::process::Command::new("kill").args(["-s", signal, &pid]).status().unwrap().success());
        agent.closed.recv_timeout(Duration::from_secs(20)).expect("the connection to the agent stayed");
        assert!(client.end().success());
    }
}
