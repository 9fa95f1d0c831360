//! The live tools of whole servers: the same over stdio and HTTP, no emulator left however the server ends, and the session that
//! `docs/nds-live.md` shows.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

mod support;

use debug::emulator::port_is_free;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};
use support::MODERN;
use support::desmume::{COUNTER, OVERLAY, Rig, free_port};
use support::http_client::HttpServer;
use support::nds::{ROM, has};
use support::stdio_client::StdioClient;

/// One session from start to stop; nothing in it depends on how fast the machine is.
fn session(port: u16) -> Vec<(&'static str, Value)> {
    let range = json!({"id": "overlays", "label": "both", "start": OVERLAY, "end": OVERLAY + 0x1000, "source": "overlay",
        "defaultMode": "thumb"});
    vec![
        ("desmume_start", json!({"rom": "game.nds", "arm9GdbPort": port})),
        ("desmume_wait_for_gdb", json!({"timeoutMs": 30_000})),
        ("desmume_probe_gdb", json!({})),
        ("desmume_executable_ranges_replace", json!({"ranges": [range]})),
        ("desmume_breakpoint_add", json!({"address": OVERLAY, "mode": "auto"})),
        ("desmume_breakpoint_list", json!({})),
        ("desmume_step_instruction", json!({"count": 5, "report": true})),
        ("desmume_continue", json!({"timeoutMs": 30_000, "expectedBreakpointId": "bp-1"})),
        ("nds_correlate_stop_context", json!({})),
        ("desmume_read_memory", json!({"address": COUNTER, "length": 4})),
        ("desmume_read_register_packet", json!({})),
        ("desmume_capture_stop_context", json!({})),
        ("desmume_capture_runtime_evidence", json!({})),
        ("desmume_pause", json!({})),
        ("desmume_watchpoint_add", json!({"address": COUNTER})),
        ("desmume_watchpoint_list", json!({})),
        ("desmume_continue", json!({"timeoutMs": 30_000})),
        ("desmume_watchpoint_remove", json!({"id": "wp-1"})),
        ("desmume_breakpoint_remove", json!({"id": "bp-1"})),
        ("desmume_wait_for_stop", json!({"timeoutMs": 100})),
        ("desmume_status", json!({})),
        ("desmume_stop", json!({})),
        ("desmume_pause", json!({})),
    ]
}

/// An answer without what differs from run to run: times, process numbers, ports, and what was written meanwhile.
fn steady(mut value: Value) -> Value {
    const VOLATILE: &[&str] = &[
        "arm9GdbPort",
        "args",
        "capturedAt",
        "createdAt",
        "elapsedMs",
        "executable",
        "hint",
        "pid",
        "port",
        "sessionIdentity",
        "sha256",
        "startedAt",
        "stderr",
        "stdout",
        "stoppedAt",
    ];
    match &mut value {
        Value::Object(map) => {
            map.retain(|name, _| !VOLATILE.contains(&name.as_str()));
            map.values_mut().for_each(|value| *value = steady(value.take()));
        }
        Value::Array(list) => list.iter_mut().for_each(|value| *value = steady(value.take())),
        _ => {}
    }
    value
}

/// What a client gets: the data, or an error's first line.
fn told(result: &Value) -> Value {
    if result["isError"] == true {
        let text = result["content"][0]["text"].as_str().unwrap();
        return json!({"error": text.lines().next()});
    }
    steady(result["structuredContent"].clone())
}

fn workspace() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("game.nds"), ROM).unwrap();
    std::fs::write(folder.path().join("retroscope.toml"), "[emulator]\nwatchpoints = true\n").unwrap();
    folder
}

#[test]
fn a_session_is_the_same_over_stdio_and_http() {
    let folder = workspace();
    let root = folder.path().to_str().unwrap();
    let config = folder.path().join("retroscope.toml");
    let options = ["--workspace", root, "--tool-profile", "nds-live", "--config", config.to_str().unwrap()];
    let mut stdio = StdioClient::start(&options, MODERN);
    let server = HttpServer::start(&options);
    let mut http = server.connect();
    let calls = session(free_port());
    let first: Vec<Value> = calls
        .iter()
        .map(|(tool, arguments)| {
            told(&stdio.request("tools/call", json!({"name": tool, "arguments": arguments}))["result"])
        })
        .collect();
    for ((tool, arguments), first) in session(free_port()).iter().zip(first) {
        let params = json!({"name": tool, "arguments": arguments});
        let second = told(&http.modern("/mcp/nds-live", "tools/call", params, Some(tool)).message()["result"]);
        assert_eq!(first, second, "{tool}");
        // Only what nothing runs for is refused: the wait for a stopped program, and the pause after the end.
        let refused =
            matches!(*tool, "desmume_wait_for_stop") || (*tool == "desmume_pause" && first["state"].is_null());
        assert_eq!(first["error"].is_string(), refused, "{tool}: {first}");
    }
}

#[test]
fn no_emulator_outlives_a_server_however_that_ends() {
    let folder = workspace();
    let root = folder.path().to_str().unwrap();
    for signal in ["-KILL", "-TERM"] {
        for running in [false, true] {
            let mut server = StdioClient::start(&["--workspace", root, "--tool-profile", "nds-live"], MODERN);
            let port = free_port();
            let started = server.call("desmume_start", json!({"rom": "game.nds", "arm9GdbPort": port}));
            let pid = started["structuredContent"]["pid"].as_u64().unwrap();
            server.call("desmume_wait_for_gdb", json!({"timeoutMs": 30_000}));
            if running {
                let run = server.call("desmume_continue", json!({"timeoutMs": 100}));
                assert_eq!(run["structuredContent"]["state"], "running");
            }
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap();
            assert_eq!(name.trim(), "desmume-cli", "the process is the emulator itself");
            let ended = std::process::Command::new("kill").args([signal, &server.pid().to_string()]).status().unwrap();
            assert!(ended.success());
            let until = Instant::now() + Duration::from_secs(30);
            // Whoever adopts it may not have asked yet how it ended.
            let is_over = || {
                std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "))
                    || !Path::new(&format!("/proc/{pid}")).exists()
            };
            while !(is_over() && port_is_free(port)) {
                assert!(Instant::now() < until, "{signal}, running: {running}: {pid} is still there");
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
}

const PAGE: &str = include_str!("../../../docs/nds-live.md");

/// The calls of the page's session with what is shown of their answers: each block of JSON belongs to the last call before it.
fn shown() -> Vec<(String, Value, Option<Value>)> {
    let part = PAGE.split("## A session").nth(1).unwrap().split("## Good to know").next().unwrap();
    let mut found: Vec<(String, Value, Option<Value>)> = Vec::new();
    for (at, piece) in part.split("```").enumerate() {
        if at % 2 == 1 {
            found.last_mut().unwrap().2 = Some(serde_json::from_str(piece.strip_prefix("json").unwrap()).unwrap());
            continue;
        }
        for span in piece.split('`').skip(1).step_by(2) {
            if let Some((tool, arguments)) = span.split_once(' ').filter(|(_, rest)| rest.starts_with('{')) {
                found.push((tool.to_owned(), serde_json::from_str(arguments).unwrap(), None));
            }
        }
    }
    found
}

#[tokio::test]
async fn the_page_shows_a_session_that_runs() {
    let rig = Rig::new(ROM);
    let session = shown();
    assert!(session.len() >= 6, "{} calls", session.len());
    for (tool, mut arguments, wanted) in session {
        if tool == "desmume_start" {
            arguments["arm9GdbPort"] = json!(free_port());
        }
        let mut told = rig.call(&tool, arguments.clone()).await;
        if arguments == json!({"captureContext": false}) {
            // It says so: twice.
            told = rig.call(&tool, arguments.clone()).await;
        }
        let wanted = wanted.unwrap_or(Value::Null);
        assert!(
            wanted.is_null() || has(&told, &wanted),
            "{tool} {arguments}: the page shows\n{wanted:#}\nand the answer is\n{told:#}"
        );
    }
    rig.end().await;
}
