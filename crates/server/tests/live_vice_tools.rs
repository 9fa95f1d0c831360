//! Every tool of VICE, through a real server and the real connector, on the real emulator with a program of our own.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]
#![cfg(target_os = "linux")]

mod support;

use serde_json::{Value, json};
use std::time::{Duration, Instant};
use support::stdio_client::StdioClient;
use support::vice::{Connector, Vice, fixture, label};

const RAM: u32 = 1;

struct Rig {
    server: StdioClient,
    workspace: tempfile::TempDir,
}

impl Rig {
    fn start(url: &str) -> Self {
        let workspace = tempfile::tempdir().unwrap();
        std::fs::copy(fixture("demo.prg"), workspace.path().join("demo.prg")).unwrap();
        let arguments = ["--tool-profile", "full", "--workspace", workspace.path().to_str().unwrap()];
        let server = StdioClient::start_with(&arguments, "2025-06-18", &[("RETROSCOPE_VICE_URL", url)]);
        Self { server, workspace }
    }

    /// What a tool answers.
    fn told(&mut self, tool: &str, arguments: Value) -> Value {
        self.server.call(tool, arguments)["structuredContent"].clone()
    }

    /// Its result.
    #[track_caller]
    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let told = self.told(tool, arguments);
        assert_eq!(told["ok"], true, "{tool}: {told}");
        told["result"].clone()
    }

    /// The error that it answers.
    #[track_caller]
    fn refused(&mut self, tool: &str, arguments: Value) -> Value {
        let told = self.told(tool, arguments);
        assert_eq!(told["ok"], false, "{tool}: {told}");
        told["error"].clone()
    }

    /// Lets the machine run until it stops by itself.
    fn run(&mut self) -> Value {
        let resumed = self.call("vice_resume", json!({}));
        let after = resumed["event"]["sequence"].clone();
        self.call("vice_wait_for_stop", json!({"after_sequence": after, "timeout_ms": 50_000}))["event"].clone()
    }

    fn run_to(&mut self, address: u16) -> Value {
        let made = self.call("vice_set_checkpoint", json!({"start": address, "end": address}));
        let event = self.run();
        self.call("vice_delete_checkpoint", json!({"number": made["checkpoint"]["number"]}));
        event
    }

    fn read(&mut self, start: u16, end: u16) -> String {
        let read = self.call("vice_read_memory", json!({"bank_id": RAM, "start": start, "end": end}));
        assert_eq!(read["complete"], true);
        read["bytes"].as_str().unwrap().to_owned()
    }

    fn write(&mut self, start: u16, bytes: &str) {
        self.call("vice_write_memory", json!({"bank_id": RAM, "start": start, "bytes": bytes}));
    }

    /// Lets it run for some frames, until the screen's line `line` is `text`.
    fn until_shown(&mut self, line: usize, text: &str) {
        let until = Instant::now() + Duration::from_secs(30);
        loop {
            self.call("vice_resume", json!({}));
            std::thread::sleep(Duration::from_millis(100));
            self.call("vice_interrupt", json!({}));
            let told = self.told("vice_read_screen", json!({}));
            if told["result"]["lines"][line] == text {
                return;
            }
            assert!(Instant::now() < until, "{text} is not on line {line}: {told}");
        }
    }
}

#[test]
fn every_tool_works_on_the_real_machine() {
    let connector = Connector::launch(&["--allow-display-on-old-vice"]);
    let mut rig = Rig::start(&connector.url());
    assert_eq!(rig.refused("vice_step", json!({}))["code"], "vice_not_connected");
    let connected = rig.told("vice_connect", json!({}));
    assert_eq!(
        (&connected["state"], &connected["vice_version"]),
        (&json!("stopped"), &json!("3.7.1.0")),
        "{connected}"
    );
    let banks = rig.call("vice_list_banks", json!({}))["banks"].clone();
    assert!(banks.as_array().unwrap().contains(&json!({"id": RAM, "name": "ram"})), "{banks}");

    // `count` follows `jmp loop`, before which stands `inc $d000`: three bytes each (the program's source).
    let count = label("count");
    let (moves, jumps) = (count - 6, count - 3);
    assert_eq!(rig.run_to(count)["pc"], count);
    let registers = rig.call("vice_get_registers", json!({"names": ["PC", "A"]}))["registers"].clone();
    assert_eq!(
        (&registers[0]["value"], &registers[1]["value"]),
        (&json!(count), &json!(0)),
        "A is `frozen`, which is 0"
    );

    // inc counter; bne; rts
    let before = rig.read(0xC100, 0xC100);
    assert_eq!(rig.call("vice_step", json!({}))["event"]["pc"], count + 3);
    let expected = u8::from_str_radix(&before, 16).unwrap().wrapping_add(1);
    assert_eq!(rig.read(0xC100, 0xC100), format!("{expected:02x}"));
    assert_eq!(rig.call("vice_finish", json!({}))["event"]["pc"], moves);
    assert_eq!(rig.call("vice_next", json!({}))["event"]["pc"], jumps);
    assert_eq!(rig.call("vice_step", json!({"count": 65_535, "timeout_ms": 50_000}))["event"]["kind"], "stopped");

    // Who moves the sprite? A store is told behind the instruction that made it.
    let made = rig.call("vice_set_checkpoint", json!({"start": 0xD000, "end": 0xD000, "operations": 2}));
    let number = made["checkpoint"]["number"].clone();
    let event = rig.run();
    assert_eq!((&event["pc"], &event["checkpoint"]["number"]), (&json!(jumps), &number));
    let toggled = rig.call("vice_toggle_checkpoint", json!({"number": number, "enabled": false}));
    assert_eq!(toggled["enabled"], false);
    let listed = rig.call("vice_list_checkpoints", json!({}))["checkpoints"].clone();
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]["enabled"]), (1, &json!(false)));
    rig.call("vice_delete_checkpoint", json!({"number": number}));

    code_is_found_and_read(&mut rig, count);
    conditions_decide(&mut rig, count);
    snapshots_bring_back(&mut rig);
    screen_and_keyboard(&mut rig, count);

    let picture = rig.server.call("vice_capture_screen", json!({}));
    assert_eq!(picture["content"][0]["type"], "image", "{picture}");
    assert_eq!(rig.told("vice_status", json!({}))["state"], "stopped");
    let copied = rig.told(
        "copy_vice_memory_to_ghidra",
        json!({"bank_id": RAM, "start": 0, "end": 1, "program": "game", "destination": "RAM:0000"}),
    );
    // There is no Ghidra behind the connector, which says so.
    assert_eq!(copied["ok"], false, "{copied}");
    assert_eq!(rig.told("vice_disconnect", json!({}))["released"], true);
    assert!(connector.end().success());
}

fn code_is_found_and_read(rig: &mut Rig, count: u16) {
    // The program from its start to its last byte.
    let range = json!({"start": 0x0801, "end": 0x0980, "bank_ids": [RAM]});
    let search = |more: Value| {
        let mut arguments = range.clone();
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        arguments
    };
    let found = rig.call("vice_search_memory", search(json!({"pattern": "ee 00 d0"})));
    assert_eq!((&found["matches"][0]["address"], &found["found"]), (&json!(count - 6), &json!(1)), "{found}");
    // inc $d000 and the two halves of the counter.
    let found = rig.call("vice_search_memory", search(json!({"pattern": "ee ?? c1", "max_results": 1})));
    assert_eq!(
        (&found["matches"][0]["address"], &found["found"], &found["truncated"]),
        (&json!(count), &json!(2), &json!(true))
    );
    // The line of BASIC: 10 SYS 2061.
    let found = rig.call("vice_search_memory", search(json!({"text": "2061"})));
    assert_eq!(found["matches"][0]["address"], 0x0806, "two addresses of two bytes, and the token");

    let told = rig.call("vice_disassemble", json!({"start": count - 6, "count": 6}));
    let lines: Vec<(u64, String, String)> = told["instructions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| {
            let text = |key: &str| line[key].as_str().unwrap().to_owned();
            (line["address"].as_u64().unwrap(), text("bytes"), text("text"))
        })
        .collect();
    // The source: inc $d000; jmp loop; count: inc counter; bne +; inc counter+1; + rts
    let at = u64::from(count);
    let target = label("loop");
    let [low, high] = target.to_le_bytes();
    let name = told["instructions"][0]["text"].as_str().unwrap().strip_prefix("inc ").unwrap().to_owned();
    assert!(name.contains("SPRITE0_X") || name.contains("SP0X"), "a name of $D000: {name}");
    assert_eq!(
        lines,
        [
            (at - 6, "ee00d0".to_owned(), format!("inc {name}")),
            (at - 3, format!("4c{low:02x}{high:02x}"), format!("jmp ${target:04x}")),
            (at, "ee00c1".to_owned(), "inc $c100".to_owned()),
            (at + 3, "d003".to_owned(), format!("bne ${:04x}", at + 8)),
            (at + 5, "ee01c1".to_owned(), "inc $c101".to_owned()),
            (at + 8, "60".to_owned(), "rts".to_owned()),
        ]
    );
    // The last bytes of the KERNAL are the three vectors; nothing wraps.
    let end = rig.call("vice_disassemble", json!({"start": 0xFFFF, "count": 2}));
    assert!(end["instructions"].as_array().unwrap().len() <= 1 && !end["note"].is_null(), "{end}");
}

fn conditions_decide(rig: &mut Rig, count: u16) {
    let bad = rig.refused("vice_set_checkpoint", json!({"start": count, "end": count, "condition": "X =="}));
    assert_eq!(bad["code"], "vice_command_failed");
    assert!(bad["guidance"].as_str().unwrap().contains("the checkpoint is gone again"), "{bad}");
    assert_eq!(rig.call("vice_list_checkpoints", json!({}))["checkpoints"], json!([]));
    // X is the mode that is shown, 0 now.
    let made = rig.call("vice_set_checkpoint", json!({"start": count, "end": count, "condition": "X == $02"}));
    let number = made["checkpoint"]["number"].clone();
    assert_eq!((&made["checkpoint"]["has_condition"], &made["checkpoint"]["enabled"]), (&json!(true), &json!(true)));
    let resumed = rig.call("vice_resume", json!({}));
    let wait = json!({"after_sequence": resumed["event"]["sequence"], "timeout_ms": 500});
    assert_eq!(rig.refused("vice_wait_for_stop", wait)["code"], "vice_timeout");
    assert_eq!(rig.refused("vice_read_screen", json!({}))["code"], "vice_target_not_stopped");
    rig.call("vice_interrupt", json!({}));
    rig.write(0xC102, "02");
    assert_eq!(rig.run()["checkpoint"]["number"], number);
    assert_eq!(rig.call("vice_get_registers", json!({"names": ["X"]}))["registers"][0]["value"], 2);
    // Now it is a bitmap that is shown.
    let refused = rig.refused("vice_read_screen", json!({}));
    assert!(refused["message"].as_str().unwrap().contains("a bitmap, at $2000"), "{refused}");
    rig.call("vice_delete_checkpoint", json!({"number": number}));
    rig.write(0xC102, "00");
    let temporary = json!({"start": count, "end": count, "temporary": true, "condition": "X == $02"});
    assert_eq!(rig.refused("vice_set_checkpoint", temporary)["code"], "vice_invalid_argument");
}

fn snapshots_bring_back(rig: &mut Rig) {
    rig.write(0xC200, "c0ffee");
    let pc = rig.call("vice_get_registers", json!({"names": ["PC"]}))["registers"][0]["value"].clone();
    let saved = rig.call("vice_save_snapshot", json!({"path": "state.vsf"}));
    let file = std::fs::read(rig.workspace.path().join("state.vsf")).unwrap();
    assert!(file.starts_with(b"VICE Snapshot File") && saved["bytes"] == file.len(), "{saved}");
    rig.write(0xC200, "000000");
    let wrong = rig.refused("vice_load_snapshot", json!({"path": "demo.prg"}));
    assert!(wrong["message"].as_str().unwrap().contains("no snapshot of VICE"), "{wrong}");
    let loaded = rig.call("vice_load_snapshot", json!({"path": "state.vsf"}));
    assert_eq!(loaded["pc"], pc);
    assert_eq!(rig.read(0xC200, 0xC202), "c0ffee");
    assert_eq!(rig.refused("vice_save_snapshot", json!({"path": "state.vsf"}))["code"], "file_exists");
    rig.call("vice_save_snapshot", json!({"path": "state.vsf", "overwrite": true}));
    assert_eq!(rig.refused("vice_save_snapshot", json!({"path": "../state.vsf"}))["code"], "path_refused");
    assert_eq!(rig.refused("vice_load_snapshot", json!({"path": "/etc/passwd"}))["code"], "path_refused");
    // Nothing is left of what VICE wrote on the way.
    let left: Vec<_> = std::fs::read_dir(std::env::temp_dir()).unwrap().flatten().collect();
    assert!(left.iter().all(|entry| !entry.path().join("machine.vsf").exists()), "{left:?}");
}

fn screen_and_keyboard(rig: &mut Rig, count: u16) {
    // After a reset our KERNAL clears the screen, greets on the line 4, and shows what is typed from the line 5 on.
    let reset = rig.told("vice_reset", json!({"kind": "soft"}));
    assert_eq!((&reset["ok"], &reset["execution_state"]), (&json!(true), &json!("running")), "{reset}");
    assert_eq!(rig.told("vice_status", json!({}))["state"], "running");
    rig.call("vice_interrupt", json!({}));
    rig.until_shown(4, "READY.");
    let screen = rig.call("vice_read_screen", json!({}));
    assert_eq!(screen["lines"].as_array().unwrap().len(), 25);
    assert_eq!(
        (&screen["screen"], &screen["charset_in_rom"], &screen["mode"]),
        (&json!(0x0400), &json!(true), &json!("text"))
    );
    assert_eq!(rig.call("vice_feed_keyboard", json!({"text": "Hello\n"}))["fed"], 6);
    rig.until_shown(5, "HELLO");

    // The program anew: it starts at $080D, as its line of BASIC says.
    rig.write(0x0801, &"00".repeat(0x180));
    let loaded = rig.call("vice_load_prg", json!({"path": "demo.prg", "run_from": 0x080D}));
    let file = std::fs::read(fixture("demo.prg")).unwrap();
    assert_eq!((&loaded["start"], &loaded["sys_address"]), (&json!(0x0801), &json!(2061)));
    assert_eq!(loaded["byte_count"], file.len() - 2);
    let bytes: String = file[2..].iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(rig.read(0x0801, 0x0801 + u16::try_from(file.len()).unwrap() - 3), bytes);
    assert_eq!(rig.run_to(count)["pc"], count);
    // It runs from BASIC's RUN as well, typed.
    rig.call("vice_reset", json!({}));
    rig.call("vice_interrupt", json!({}));
    rig.until_shown(4, "READY.");
    rig.call("vice_feed_keyboard", json!({"text": "run\n"}));
    assert_eq!(rig.run_to(count)["pc"], count);
}

#[test]
fn a_connector_that_is_killed_leaves_a_stale_connection_and_the_next_one_is_found() {
    let vice = Vice::start();
    let connector = Connector::connect(&vice.monitor);
    let address = connector.address.clone();
    let mut rig = Rig::start(&connector.url());
    let first = rig.told("vice_connect", json!({}));
    assert_eq!(first["ok"], true);
    // Killed, and VICE runs on without it; a new one takes its place.
    drop(connector);
    let next = Connector::connect_at(&vice.monitor, &address);
    let error = rig.refused("vice_list_banks", json!({}));
    assert!(
        ["vice_connector_changed", "ghidra_transport_failure"].contains(&error["code"].as_str().unwrap()),
        "{error}"
    );
    assert_eq!(rig.told("vice_status", json!({}))["state"], "stale");
    // It asks nobody from then on.
    assert_eq!(rig.refused("vice_step", json!({}))["code"], "vice_connector_changed");
    assert_eq!(rig.told("vice_disconnect", json!({}))["released"], true);
    let second = rig.told("vice_connect", json!({}));
    assert_eq!((&second["ok"], &second["state"]), (&json!(true), &json!("stopped")), "{second}");
    assert_ne!(second["instance_id"], first["instance_id"]);
    assert_eq!(second["generation"], 2);
    rig.call("vice_list_banks", json!({}));
    assert!(next.end().success());
    // No connector at all.
    let gone = rig.refused("vice_list_banks", json!({}));
    assert_eq!(gone["code"], "ghidra_transport_failure");
    assert!(gone["guidance"].as_str().unwrap().contains("vice-connector"), "{gone}");
}

#[test]
fn vice_ends_with_a_connector_that_is_killed() {
    let mut connector = Connector::launch(&[]);
    let [vice] = connector.children()[..] else { panic!("one VICE") };
    let is_there = || {
        // Whoever adopts it may be slow to take notice of its end.
        let stat = std::fs::read_to_string(format!("/proc/{vice}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
    };
    assert!(is_there());
    connector.child.kill().unwrap();
    connector.child.wait().unwrap();
    let until = Instant::now() + Duration::from_secs(10);
    while is_there() {
        assert!(Instant::now() < until, "VICE, process {vice}, runs on without its connector");
        std::thread::sleep(Duration::from_millis(20));
    }
}
