//! The connector with the real VICE: the contract over HTTP, its end, and the predecessor's own client.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]
#![cfg(target_os = "linux")]

mod support;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::stdio_client::StdioClient;
use support::vice::{Client, Connector, Vice, fixture, label};

const ERA: &str = "2025-06-18";

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(30);
    while !done() {
        assert!(Instant::now() < until, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn is_there(pid: i32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// Stops a process, and waits until each of its threads has stopped.
fn freeze(pid: i32) {
    kill(Pid::from_raw(pid), Signal::SIGSTOP).unwrap();
    let is_stopped = |task: std::fs::DirEntry| {
        let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
    };
    let tasks = format!("/proc/{pid}/task");
    wait_until("the freeze", || std::fs::read_dir(&tasks).unwrap().flatten().all(is_stopped));
}

/// Checks that nothing of a connector is left.
fn gone(children: &[i32], addresses: &[&str]) {
    for pid in children {
        assert!(!is_there(*pid), "VICE, process {pid}, is still there");
    }
    for address in addresses {
        assert!(TcpStream::connect(address).is_err(), "somebody listens at {address}");
    }
}

#[test]
fn the_contract_is_served_and_vices_surprises_are_told() {
    let connector = Connector::launch(&["--allow-display-on-old-vice"]);
    let mut client = connector.client();
    let names: BTreeSet<&str> =
        client.discovery["methods"].as_array().unwrap().iter().map(|method| method["name"].as_str().unwrap()).collect();
    // 19 of the contract and 4 of ours.
    assert_eq!(names.len(), 23);

    let capabilities = client.envelope("capabilities", json!({}));
    assert_eq!(capabilities["result"]["instance_id"], capabilities["instance_id"]);
    assert_eq!(capabilities["result"]["implementation"], "retroscope");
    assert_eq!(client.call("status", json!({}))["execution_state"], "stopped");
    let count = label("count");
    assert_eq!(client.run_to(count)["pc"], count);

    let pair = client.call("set_registers", json!({"names": ["PC", "A"], "values": [count, 3]}));
    assert_eq!(pair["registers"][0]["display"], format!("${count:04X}"));
    let step = client.call("step", json!({}));
    assert_eq!((step["event"]["pc"].as_u64(), step["executed"].as_u64()), (Some(count.into()), Some(0)));
    assert!(step["note"].as_str().unwrap().contains("arriving"));
    assert!(client.call("step", json!({}))["note"].is_null());

    let memory = client.call("read_memory", json!({"bank_id": 2, "start": 0xE000, "end": 0xFFFF, "max_bytes": 65_536}));
    let kernal: String =
        std::fs::read(fixture("kernal.bin")).unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(memory["bytes"], kernal);
    let data = json!({"encoding": "hex", "data": "c0ffee"});
    let written = client.call("write_memory", json!({"bank_id": 1, "start": 0xC200, "data": data}));
    assert_eq!(written["completed_ranges"], json!([{"start": 0xC200, "end": 0xC202}]));
    let read = client.call("read_memory", json!({"bank_id": 1, "start": 0xC200, "end": 0xC202}));
    assert_eq!(read["bytes"], "c0ffee");

    let made = client.call("set_checkpoint", json!({"start": count, "end": count, "temporary": true}));
    assert_eq!(made["resumed"], true);
    let status = client.call("status", json!({}));
    client.call(
        "wait_for_stop",
        json!({"after_sequence": status["event_sequence"].as_u64().unwrap() - 1, "timeout_ms": 20_000}),
    );

    // The picture: the text screen begins a line above what VICE says. The first character of the screen is `@`, whose rows
    // are in the character generator, foreground and background being what $D800 and $D021 hold.
    client.call("write_memory", json!({"bank_id": 1, "start": 0xC103, "data": {"encoding": "hex", "data": "00"}}));
    client.run_to(count);
    client.run_to(count);
    let picture = client.call("capture_display", json!({}));
    assert_eq!((picture["inner"]["y_offset"].as_u64(), picture["reported_y_offset"].as_u64()), (Some(50), Some(51)));
    let pixels = {
        use base64::Engine as _;
        base64::engine::general_purpose::STANDARD.decode(picture["buffer_base64"].as_str().unwrap()).unwrap()
    };
    let width = picture["width"].as_u64().unwrap() as usize;
    let (x, y) = (picture["inner"]["x_offset"].as_u64().unwrap() as usize, 50);
    let glyphs = std::fs::read(fixture("chargen.bin")).unwrap();
    let colour = |address: u16, client: &mut Client| {
        let read = client.call("read_memory", json!({"bank_id": 3, "start": address, "end": address}));
        u8::from_str_radix(read["bytes"].as_str().unwrap(), 16).unwrap() & 15
    };
    let (ink, paper) = (colour(0xD801, &mut client), colour(0xD021, &mut client));
    for row in 0..8 {
        // The second character of the screen is number 1.
        let bits = glyphs[8 + row];
        let shown = &pixels[(y + row) * width + x + 8..][..8];
        let expected: Vec<u8> = (0..8).map(|bit| if bits >> (7 - bit) & 1 == 1 { ink } else { paper }).collect();
        assert_eq!(shown, expected, "row {row}");
    }

    client.call("reset", json!({"kind": "soft"}));
    assert_eq!(client.call("status", json!({}))["execution_state"], "running");
    assert_eq!(client.refused("list_banks", json!({}))["code"], "vice_target_not_stopped");
    let late = client.refused("wait_for_stop", json!({"after_sequence": 1_000_000, "timeout_ms": 50}));
    assert_eq!((late["code"].as_str(), late["state_may_have_changed"].as_bool()), (Some("vice_timeout"), Some(false)));

    let (children, address, monitor) = (connector.children(), connector.address.clone(), connector.monitor.clone());
    assert_eq!(children.len(), 1, "VICE");
    assert!(connector.end().success());
    gone(&children, &[&address, &monitor]);
}

#[test]
fn what_is_no_call_is_refused_and_web_pages_are_kept_out() {
    let connector = Connector::launch(&[]);
    let mut client = connector.client();
    let refusal = |client: &mut Client, body: &str| client.post(body)["error"]["code"].clone();
    assert_eq!(refusal(&mut client, "{"), "invalid_arguments");
    let stale = client.body("status", json!({})).replace(&client.token.clone(), "another");
    assert_eq!(refusal(&mut client, &stale), "stale_target_token");
    let unknown = client.body("fly", json!({}));
    assert_eq!(refusal(&mut client, &unknown), "unknown_method");
    assert_eq!(
        client.refused("set_checkpoint", json!({"start": 1, "end": 1, "operations": 0}))["code"],
        "vice_invalid_argument"
    );
    assert_eq!(client.refused("step", json!({"count": 0}))["code"], "vice_invalid_argument");
    assert_eq!(client.refused("capture_display", json!({}))["code"], "vice_unsupported_build");
    let origin = [("Origin", "http://example.org")];
    assert_eq!(client.http.request("GET", "/debugger/target_methods", &origin, "").status, 403);
    client.http.host = "example.org".to_owned();
    assert_eq!(client.http.request("GET", "/debugger/target_methods", &[], "").status, 403);
    let too_long = "x".repeat(base::limits::MAX_VICE_REQUEST_BYTES + 1);
    let mut other = connector.client();
    assert_eq!(other.http.request("POST", "/debugger/invoke_target_method", &[], &too_long).status, 413);
    assert!(connector.end().success());
}

#[test]
fn a_frozen_vice_is_told_by_the_layer_whose_time_is_over() {
    let connector = Connector::launch(&[]);
    let mut client = connector.client();
    let [vice] = connector.children()[..] else { panic!("one VICE") };
    freeze(vice);
    let late = client.refused("list_banks", json!({"timeout_ms": 100}));
    assert_eq!((late["code"].as_str(), late["outcome_unknown"].as_bool()), (Some("vice_timeout"), Some(true)));
    // The endpoint's own time is shorter here than the method's.
    let body =
        client.body("list_banks", json!({"timeout_ms": 2_000})).replace("\"timeout_ms\":7000", "\"timeout_ms\":50");
    let generic = client.post(&body);
    assert_eq!(
        (generic["error"]["code"].as_str(), generic["timeout_layer"].as_str()),
        (Some("target_method_timeout"), Some("generic"))
    );
    // What is known is told all the same.
    assert_eq!(client.call("status", json!({}))["connection_state"], "connected");
    // It ends VICE though that does not answer.
    assert!(connector.end().success());
    gone(&[vice], &[]);
}

#[test]
fn the_end_takes_checkpoints_away_also_those_of_a_client_that_is_lost() {
    let vice = Vice::start();
    let connector = Connector::connect(&vice.monitor);
    let mut client = connector.client();
    // The client leaves while its call is in work.
    let pid = i32::try_from(vice.child.id()).unwrap();
    freeze(pid);
    let body = client.body("set_checkpoint", json!({"start": 0xE000, "end": 0xFFFF}));
    let head = format!(
        "POST /debugger/invoke_target_method HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n\r\n",
        connector.address,
        body.len()
    );
    let mut lost = TcpStream::connect(&connector.address).unwrap();
    lost.write_all((head + &body).as_bytes()).unwrap();
    wait_until("the call", || client.call("status", json!({}))["command_sequence"] == 1);
    drop(lost);
    kill(Pid::from_raw(pid), Signal::SIGCONT).unwrap();
    wait_until("the checkpoint", || {
        client.call("list_checkpoints", json!({}))["checkpoints"].as_array().unwrap().len() == 1
    });
    client.call("set_checkpoint", json!({"start": label("count"), "end": label("count")}));
    client.call("resume", json!({}));
    let address = connector.address.clone();
    assert!(connector.end().success());
    gone(&[], &[&address]);

    // The VICE that was there before runs on, and the next connector finds it free.
    let next = Connector::connect(&vice.monitor);
    let mut client = next.client();
    assert_eq!(client.call("list_checkpoints", json!({}))["checkpoints"], json!([]));
    let mut vice = vice;
    vice.child.kill().unwrap();
    vice.child.wait().unwrap();
    wait_until("the loss", || client.call("status", json!({}))["connection_state"] == "disconnected");
    assert_eq!(client.refused("list_banks", json!({}))["code"], "vice_connection_lost");
    assert!(next.end().success());
}

/// The predecessor's tools: what each is called with, and keys that its result must have, or the code of its refusal.
fn peer_calls(count: u16) -> Vec<(&'static str, Value, &'static str)> {
    vec![
        ("vice_connect", json!({}), "instance_id"),
        ("vice_status", json!({}), "last_event_sequence"),
        ("vice_list_banks", json!({}), "banks"),
        ("vice_get_registers", json!({}), "registers"),
        ("vice_get_registers", json!({"names": ["ZZ"]}), "vice_invalid_argument"),
        ("vice_set_registers", json!({"values": {"X": 0}}), "registers"),
        ("vice_set_registers", json!({"values": {"A": 999}}), "vice_invalid_argument"),
        ("vice_read_memory", json!({"bank_id": 0, "start": 0xC000, "end": 0xC00E}), "bytes"),
        ("vice_read_memory", json!({"bank_id": 99, "start": 0, "end": 1}), "vice_command_failed"),
        ("vice_write_memory", json!({"bank_id": 1, "start": 0xC000, "bytes": "e8e860"}), "completed_ranges"),
        ("vice_step", json!({}), "event"),
        ("vice_next", json!({}), "event"),
        ("vice_set_checkpoint", json!({"start": count, "end": count}), "checkpoint"),
        ("vice_list_checkpoints", json!({}), "checkpoints"),
        ("vice_toggle_checkpoint", json!({"number": 1, "enabled": false}), "enabled"),
        ("vice_delete_checkpoint", json!({"number": 1}), "deleted"),
        ("vice_set_checkpoint", json!({"start": count, "end": count, "temporary": true}), "checkpoint"),
        ("vice_wait_for_stop", json!({"timeout_ms": 20_000}), "event"),
        ("vice_finish", json!({}), "event"),
        ("vice_resume", json!({}), "event"),
        ("vice_get_registers", json!({}), "vice_target_not_stopped"),
        ("vice_interrupt", json!({}), "event"),
        ("vice_interrupt", json!({}), "vice_target_not_stopped"),
        ("vice_reset", json!({}), "kind"),
        ("vice_interrupt", json!({}), "event"),
        // There is no Ghidra behind the connector.
        (
            "copy_vice_memory_to_ghidra",
            json!({"bank_id": 0, "start": 0, "end": 1, "program": "game", "destination": "ram:0000"}),
            "ghidra_response_error",
        ),
        ("vice_disconnect", json!({}), "released"),
    ]
}

const CHECKPOINT: &str = "currently_hit enabled end end_display has_condition hit_count ignore_count memspace number operations \
     operations.execute operations.load operations.store start start_display stop_on_hit temporary";
const EVENT: &str = "checkpoint checkpoints kind pc pc_display raw_sequence sequence snapshot";
const MEMORY: &str = "bank_id byte_count end end_display memspace start start_display";

/// The keys that results had in a session recorded with the predecessor's own connector on the same VICE.
fn recorded(tool: &str) -> BTreeSet<String> {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let below = |key: &str, text: &str| {
        let keys = words(text).into_iter().map(|word| format!("{key}.{word}"));
        std::iter::once(key.to_owned()).chain(keys).collect::<Vec<_>>()
    };
    let keys = match tool {
        "vice_list_banks" => below("banks", "id name"),
        "vice_get_registers" | "vice_set_registers" => {
            [below("registers", "bits display id name value"), words("memspace")].concat()
        }
        "vice_read_memory" => [words(MEMORY), words("bytes complete next_address")].concat(),
        "vice_write_memory" => [words(MEMORY), below("completed_ranges", "start end")].concat(),
        "vice_set_checkpoint" => below("checkpoint", CHECKPOINT),
        "vice_list_checkpoints" => below("checkpoints", CHECKPOINT),
        "vice_toggle_checkpoint" => words("enabled number"),
        "vice_delete_checkpoint" => words("deleted number"),
        "vice_wait_for_stop" => {
            [below("event", EVENT), below("event.checkpoint", CHECKPOINT), below("event.checkpoints", CHECKPOINT)]
                .concat()
        }
        "vice_reset" => words("kind"),
        _ => [below("event", EVENT), words("preceding_events request_id")].concat(),
    };
    keys.into_iter().collect()
}

/// What we tell beyond it.
const ADDED: [&str; 3] = ["note", "executed", "resumed"];

/// The keys of a value, those inside others behind a point, those of a list's items without a number.
fn keys(value: &Value, before: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                let path = if before.is_empty() { key.clone() } else { format!("{before}.{key}") };
                keys(value, &path, found);
                found.insert(path);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| keys(item, before, found)),
        _ => {}
    }
}

#[test]
fn the_predecessors_own_client_drives_it_with_every_tool() {
    let connector = Connector::launch(&["--allow-display-on-old-vice"]);
    let count = label("count");
    connector.client().run_to(count);
    let python = PathBuf::from(
        std::env::var_os("RETROSCOPE_C64_PYTHON").expect("RETROSCOPE_C64_PYTHON names a Python with c64-mcp"),
    );
    let mut command = Command::new(python.parent().unwrap().join("c64-mcp"));
    command
        .env("GHIDRA_MCP_URL", connector.url())
        .env("C64_MCP_TOOL_PROFILE", "vice")
        .env_remove("GHIDRA_MCP_AUTH_TOKEN");
    let mut peer = StdioClient::of(
        {
            command.stderr(Stdio::null());
            command
        },
        ERA,
    );

    let mut used = BTreeSet::new();
    let mut last_event = json!(0);
    for (tool, mut arguments, expected) in peer_calls(count) {
        used.insert(tool);
        if tool == "vice_wait_for_stop" {
            arguments["after_sequence"] = last_event.clone();
        }
        let answer = peer.call(tool, arguments.clone())["structuredContent"].clone();
        let code = answer["error"]["code"].as_str();
        let found = |shape: &Value| shape.get(expected).is_some_and(|value| !value.is_null());
        assert!(
            code == Some(expected) || answer["ok"] == true && (found(&answer["result"]) || found(&answer)),
            "{tool} {arguments} should give {expected}: {answer}"
        );
        if code.is_none() && answer["api"] == "c64.vice/1" {
            let mut found = BTreeSet::new();
            keys(&answer["result"], "", &mut found);
            found.retain(|key| !ADDED.contains(&key.as_str()));
            assert_eq!(found, recorded(tool), "{tool}");
        }
        if let Some(sequence) = answer["result"]["event"].get("sequence") {
            last_event = sequence.clone();
        }
        if tool == "vice_connect" {
            assert_eq!(
                (answer["connector_name"].as_str(), answer["vice_version"].as_str()),
                (Some("ghidra-vice-connector"), Some("3.7.1.0"))
            );
        }
    }
    // The picture needs the override, and is the only answer that is one.
    peer.call("vice_connect", json!({}));
    used.insert("vice_capture_screen");
    let picture = peer.call("vice_capture_screen", json!({}));
    assert_ne!(picture["isError"], true, "{picture}");
    assert!(picture["content"].as_array().unwrap().iter().any(|content| content["type"] == "image"), "{picture}");

    let listed = peer.request("tools/list", json!({}))["result"]["tools"].clone();
    let listed: Vec<String> =
        listed.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
    let vice: BTreeSet<&str> = listed.iter().map(String::as_str).filter(|name| name.contains("vice")).collect();
    assert_eq!(used, vice);
    // As the contract counts them.
    assert_eq!(used.len(), 21);
    assert!(connector.end().success());
}
