//! Clients and validators that others wrote, against the real program: the MCP inspector, the Python SDK on both eras of
//! the protocol, Claude Code. `cargo xtask test` installs them and says where they are.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

mod support;

use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;
use support::fake_agent::{FakeAgent, Script};
use support::http_client::{HttpServer, TOKEN};
use support::{MODERN, PROGRAM};

/// A variable that `cargo xtask test` sets.
fn tool(variable: &str) -> PathBuf {
    std::env::var_os(variable)
        .map(PathBuf::from)
        .unwrap_or_else(|| panic!("{variable} is not set: run `cargo xtask test`"))
}

/// Node with a home of its own, so that nobody's configuration is read or written.
fn node(home: &tempfile::TempDir) -> Command {
    let node = tool("RETROSCOPE_NODE");
    let mut path = OsString::from(node.parent().unwrap());
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let mut command = Command::new(&node);
    command.env("PATH", path).env("HOME", home.path()).current_dir(home.path());
    command
}

fn inspector(arguments: &[&str]) -> Output {
    let home = tempfile::tempdir().unwrap();
    let script =
        tool("RETROSCOPE_NPM").join("node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js");
    node(&home).arg(script).arg("--cli").args(arguments).output().unwrap()
}

fn json_in(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    let from = text.find('{').unwrap_or_else(|| panic!("{output:?}"));
    serde_json::from_str(&text[from..]).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn the_inspector_finds_no_fault_in_the_list() {
    let workspace = std::env::temp_dir().display().to_string();
    for profile in ["full", "debug", "nds", "minimal"] {
        let serve = [PROGRAM, "serve", "--tool-profile", profile, "--workspace", &workspace];
        let output = inspector(&[serve.as_slice(), &["--method", "tools/list", "--strict"]].concat());
        assert!(output.status.success(), "{output:?}");
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert!(!complaints.contains("unknown format"), "{complaints}");
        assert!(!json_in(&output)["tools"].as_array().unwrap().is_empty());
    }
    let server = HttpServer::start(&[]);
    let url = format!("http://{}/mcp/debug", server.address);
    let header = format!("Authorization: Bearer {TOKEN}");
    let output = inspector(&[&url, "--transport", "http", "--header", &header, "--method", "tools/list", "--strict"]);
    assert!(output.status.success(), "{output:?}");
    let output = inspector(&[&url, "--transport", "http", "--method", "tools/list"]);
    assert!(!output.status.success(), "it got in without the token");
}

#[test]
fn the_inspector_calls_a_tool() {
    let agent = FakeAgent::start();
    let arguments = [
        "--method",
        "tools/call",
        "--tool-name",
        "read_memory",
        "--tool-args-json",
        "{\"addr\": \"0x480000\", \"length\": 4}",
    ];
    let serve = [PROGRAM, "serve", "--tool-profile", "debug", "--agent", &agent.address];
    let output = inspector(&[serve.as_slice(), &arguments].concat());
    assert_eq!(json_in(&output)["structuredContent"]["length"], 4);
}

fn check_sdk(seen: &Value, protocol: &str) {
    assert_eq!(seen["protocol"], protocol);
    assert!(seen["instructions"].as_u64().unwrap() > 50);
    assert!(seen["tools"].as_array().unwrap().contains(&json!("set_watchpoint")));
    assert_eq!((&seen["status"]["pid"], &seen["same_as_text"]), (&json!(9), &json!(true)));
    assert_eq!(seen["picture"], json!(["image", "text"]));
    assert_eq!(seen["picture_structured"], Value::Null);
    assert_eq!(seen["wrong"][0], true);
    assert!(seen["wrong"][1].as_str().unwrap().contains("unknown field `grp`"), "{seen}");
    assert_eq!((&seen["timed_out"], &seen["after_timeout"]), (&json!(true), &json!("stopped")));
    assert_eq!(seen["progress"], json!([[5.0, "waiting for the program, 5 s"]]));
}

fn python(arguments: &[&str]) -> Value {
    run_python("sdk_client.py", arguments)
}

fn run_python(script: &str, arguments: &[&str]) -> Value {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/python").join(script);
    let output = Command::new(tool("RETROSCOPE_PYTHON")).arg(script).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    json_in(&output)
}

#[test]
fn the_python_sdk_works_on_both_eras_over_stdio() {
    for (mode, protocol) in [("legacy", "2025-11-25"), ("auto", MODERN)] {
        let agent = FakeAgent::start();
        agent.script("continue_execution", Script::Hold);
        check_sdk(&python(&[mode, PROGRAM, "serve", "--tool-profile", "debug", "--agent", &agent.address]), protocol);
        // Both waits were given up, and the agent was told.
        for _ in 0..2 {
            agent.closed.recv_timeout(Duration::from_secs(10)).expect("a wait went on");
        }
    }
}

#[test]
fn the_python_sdk_works_on_both_eras_over_http() {
    for (mode, protocol) in [("legacy", "2025-11-25"), ("auto", MODERN)] {
        let agent = FakeAgent::start();
        agent.script("continue_execution", Script::Hold);
        let server = HttpServer::start(&["--agent", &agent.address]);
        check_sdk(&python(&[mode, &format!("http://{}/mcp", server.address), TOKEN]), protocol);
    }
}

#[test]
fn the_python_sdk_loads_groups_and_hears_of_it_in_an_older_revision() {
    let seen = run_python("tool_groups.py", &["legacy", PROGRAM, "serve", "--tool-profile", "debug"]);
    assert_eq!((&seen["protocol"], &seen["list_changed"]), (&json!("2025-11-25"), &json!(true)));
    let steps = seen["steps"].as_array().unwrap();
    // A step that changes the list waits for the notification, and fails without it.
    let told: Vec<&Value> = steps.iter().map(|step| &step["told"]).collect();
    let never = &Value::Null;
    assert_eq!(told, [&json!(1), &json!(0), never, never, never, &json!(1), &json!(1), &json!(1)]);
    let codes: Vec<&Value> = steps[2..5].iter().map(|step| &step["refused"]["code"]).collect();
    assert_eq!(codes, ["unknown_group", "unknown_group", "protected_group"]);
    let has = |step: &Value, name: &str| step["tools"].as_array().unwrap().contains(&json!(name));
    assert!(
        has(&steps[0], "decode_c64_text") && has(&steps[1], "decode_c64_text") && !has(&steps[5], "decode_c64_text")
    );
    assert!(has(&steps[6], "decode_c64_sprites"));
    assert_eq!((&seen["after"], &seen["unasked"]), (&seen["before"], &json!(0)));
}

#[test]
fn the_python_sdk_sees_one_list_in_the_newest_revision_and_over_http() {
    let check = |seen: &Value, listed: usize| {
        assert_eq!((&seen["list_changed"], &seen["unasked"]), (&Value::Null, &json!(0)));
        assert_eq!((seen["before"].as_array().unwrap().len(), &seen["after"]), (listed, &seen["before"]));
        assert!(!seen["before"].to_string().contains("load_tool_group"), "{seen}");
        for step in &seen["steps"].as_array().unwrap()[..6] {
            assert_eq!(step["refused"]["code"], "tool_list_fixed", "{step}");
        }
    };
    let folder = tempfile::tempdir().unwrap();
    let workspace = folder.path().to_str().unwrap();
    let serve = ["auto", PROGRAM, "serve", "--tool-profile", "minimal", "--workspace", workspace];
    check(&run_python("tool_groups.py", &serve), 3);
    let server = HttpServer::start(&["--tool-profile", "minimal"]);
    for mode in ["legacy", "auto"] {
        check(&run_python("tool_groups.py", &[mode, &format!("http://{}/mcp", server.address), TOKEN]), 3);
    }
}

#[test]
fn claude_code_connects() {
    let Some(claude) = std::env::var_os("RETROSCOPE_CLAUDE") else {
        eprintln!("skipped: claude-code could not be installed here");
        return;
    };
    let home = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut command = Command::new(&claude);
        command.env_clear().env("HOME", home.path()).env("PATH", path).current_dir(home.path()).args(arguments);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let server = HttpServer::start(&[]);
    let url = format!("http://{}/mcp", server.address);
    let header = format!("Authorization: Bearer {TOKEN}");
    run(&["mcp", "add", "--scope", "local", "local-retroscope", "--", PROGRAM, "serve", "--tool-profile", "debug"]);
    run(&["mcp", "add", "--scope", "local", "--transport", "http", "remote-retroscope", &url, "--header", &header]);
    let list = run(&["mcp", "list"]);
    for name in ["local-retroscope", "remote-retroscope"] {
        let line = list.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{list}"));
        assert!(line.contains("Connected"), "{list}");
    }
}
