//! The command line: `call`, `tools`, and what they print where.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

mod support;

use serde_json::{Value, json};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use support::PROGRAM;
use support::fake_agent::{FakeAgent, Script};

fn run(folder: &Path, arguments: &[&str], stdin: &str) -> Output {
    let mut command = Command::new(PROGRAM);
    command.args(arguments).current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for name in ["RETROSCOPE_AGENT", "RETROSCOPE_WORKSPACE_ROOT", "RE_MCP_WORKSPACE_ROOT", "RETROSCOPE_TOOL_PROFILE"] {
        command.env_remove(name);
    }
    let mut child = command.spawn().unwrap();
    // A program that refuses its arguments has closed its stdin by then.
    drop(child.stdin.take().unwrap().write_all(stdin.as_bytes()));
    child.wait_with_output().unwrap()
}

fn json_of(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_tool_is_called_without_an_mcp_client() {
    let agent = FakeAgent::start();
    let folder = tempfile::tempdir().unwrap();
    let status = json_of(&run(folder.path(), &["call", "get_status", "--agent", &agent.address], ""));
    assert_eq!((&status["pid"], &status["generation"]), (&json!(9), &json!(3)));
    let argument = "{\"addr\": \"0x480000\", \"length\": 100000, \"format\": \"base64\"}";
    let memory = json_of(&run(folder.path(), &["call", "read_memory", argument, "--agent", &agent.address], ""));
    assert_eq!(memory["length"], 100_000, "at a shell nothing is cut");
    json_of(&run(folder.path(), &["call", "attach", "-", "--agent", &agent.address], "{\"pid\": 12}"));
    assert_eq!(agent.last("attach"), json!({"pid": 12}));
}

#[test]
fn a_refusal_is_on_stderr_and_in_the_exit_code() {
    let agent = FakeAgent::start();
    agent.script(
        "pause",
        Script::Refuse(json!({"error": "nothing is there", "code": "not_launched", "hint": "launch"})),
    );
    let folder = tempfile::tempdir().unwrap();
    for (arguments, code, words) in [
        (vec!["call", "pause", "--agent", &agent.address], 1, "not_launched: nothing is there; launch"),
        (vec!["call", "puase", "--agent", &agent.address], 1, "did you mean `pause`"),
        (vec!["call", "pause", "[]"], 1, "no object"),
        (vec!["call", "pause", "{"], 1, "no JSON"),
        (vec!["tools", "--profile", "x"], 1, "profiles are: full"),
        (vec!["serve", "--with-agent", "--symbols", "none.map", "--tool-profile", "debug"], 1, "--symbols none.map"),
        (vec!["call"], 2, "Usage"),
        (vec!["frobnicate"], 2, "unrecognized"),
    ] {
        let output = run(folder.path(), &arguments, "");
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains(words), "{arguments:?}: {text}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn a_picture_becomes_a_file() {
    let agent = FakeAgent::start();
    let folder = tempfile::tempdir().unwrap();
    let facts = json_of(&run(folder.path(), &["call", "screenshot", "--agent", &agent.address], ""));
    let written = std::fs::read(facts["image_file"].as_str().unwrap()).unwrap();
    assert!(written.starts_with(b"\x89PNG") && folder.path().join("screenshot.png").exists());
    let arguments = ["call", "screenshot", "--agent", &agent.address, "--image-out", "named.png"];
    json_of(&run(folder.path(), &arguments, ""));
    assert_eq!(std::fs::read(folder.path().join("named.png")).unwrap(), written);
}

#[test]
fn the_tools_can_be_listed() {
    let folder = tempfile::tempdir().unwrap();
    let list = json_of(&run(folder.path(), &["tools", "--json", "--profile", "debug"], ""));
    assert_eq!(list[0]["name"], "list_tool_groups");
    let text = String::from_utf8(run(folder.path(), &["tools"], "").stdout).unwrap();
    assert!(text.lines().any(|line| line.starts_with("set_watchpoint ")), "{text}");
}

#[test]
fn the_configuration_file_here_is_read() {
    let agent = FakeAgent::start();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("retroscope.toml"), format!("agent = \"{}\"\n", agent.address)).unwrap();
    assert_eq!(json_of(&run(folder.path(), &["call", "get_status"], ""))["pid"], 9);
    std::fs::write(folder.path().join("retroscope.toml"), "agents = 1\n").unwrap();
    let output = run(folder.path(), &["call", "get_status"], "");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("unknown field `agents`"));
}
