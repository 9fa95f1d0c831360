//! The tools on a real DeSmuME: which overlay is loaded at each stop, watchpoints, steps, both processors, and what is refused.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

mod support;

use retroscope::errors::ErrorCode;
use retroscope::tools::nds_live::session::EmulatorOptions;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use support::desmume::{COUNTER, OVERLAY, Rig, free_port, residencies, start};
use support::nds::{ROM, tool_call};

#[tokio::test]
async fn fifty_stops_tell_which_overlay_is_loaded() {
    let rig = Rig::started(ROM, json!({})).await;
    let set = rig.call("desmume_breakpoint_add", json!({"address": OVERLAY, "mode": "auto"})).await;
    assert_eq!(
        (&set["id"], &set["resolvedMode"], &set["rangeId"]),
        (&json!("bp-1"), &json!("thumb"), &json!("overlays"))
    );
    for round in 0..50 {
        let run = rig.call("desmume_continue", json!({"timeoutMs": 30_000, "expectedBreakpointId": "bp-1"})).await;
        assert_eq!(
            (&run["kind"], &run["expectedBreakpoint"], &run["pc"]),
            (&json!("stop"), &json!(true), &json!(OVERLAY))
        );
        let told = rig.call("nds_correlate_stop_context", json!({})).await;
        assert_eq!(told["canonical"]["status"], "ambiguous-runtime-address");
        let candidates = told["candidates"].as_array().unwrap();
        let overlays: Vec<_> = candidates.iter().map(|one| &one["canonical"]["overlayId"]).collect();
        assert_eq!(overlays, [&json!(0), &json!(1)]);
        // The program loads overlay 0 first, then they take turns.
        let wanted = if round % 2 == 0 { ["match", "mismatch"] } else { ["mismatch", "match"] };
        assert_eq!(residencies(&told), wanted, "round {round}");
        // Overlay 1 is stored compressed: its instructions have no place in the ROM.
        let first = |at: usize| &candidates[at]["static"]["instructions"][0];
        assert!(first(0)["romOffset"].is_u64() && first(1)["romOffset"].is_null(), "{told}");
        assert_eq!(told["rom"]["identityMatched"], true);
    }
    rig.end().await;
}

#[tokio::test]
async fn an_overlay_that_is_being_loaded_is_none_and_two_equal_ones_cannot_be_told_apart() {
    let rig = Rig::started(ROM, json!({})).await;
    let set = rig.call("desmume_breakpoint_add", json!({"address": OVERLAY, "mode": "auto"})).await;
    rig.call("desmume_continue", json!({"timeoutMs": 30_000})).await;
    rig.call("desmume_breakpoint_remove", json!({"id": set["id"]})).await;
    // Overlay 1 comes now, byte after byte: 64 of its compressed bytes are there.
    rig.call("desmume_watchpoint_add", json!({"address": OVERLAY + 0x40, "size": 1})).await;
    let run = rig.call("desmume_continue", json!({"timeoutMs": 30_000})).await;
    assert_eq!((&run["reason"], &run["watchpoint"]["accessedAddress"]), (&json!("watchpoint"), &json!(OVERLAY + 0x40)));
    let told = rig.call("nds_correlate_stop_context", json!({"address": OVERLAY + 0x200})).await;
    assert_eq!(residencies(&told), ["mismatch", "mismatch"]);
    rig.end().await;

    // Entry 1 of the overlay table made equal to entry 0, its number aside: 32 bytes each; the header names the table.
    let mut rom = ROM.to_vec();
    let table = u32::from_le_bytes(rom[0x50..0x54].try_into().unwrap()) as usize;
    let first = rom[table + 4..table + 32].to_vec();
    rom[table + 36..table + 64].copy_from_slice(&first);
    let rig = Rig::started(&rom, json!({})).await;
    rig.call("desmume_breakpoint_add", json!({"address": OVERLAY, "mode": "thumb"})).await;
    rig.call("desmume_continue", json!({"timeoutMs": 30_000})).await;
    let told = rig.call("nds_correlate_stop_context", json!({})).await;
    assert_eq!(residencies(&told), ["indistinguishable", "indistinguishable"]);
    rig.end().await;
}

#[tokio::test]
async fn a_watched_counter_names_the_instruction_that_wrote_it() {
    let rig = Rig::started(ROM, json!({})).await;
    rig.call("desmume_watchpoint_add", json!({"address": COUNTER})).await;
    for count in 1..4 {
        let run = rig.call("desmume_continue", json!({"timeoutMs": 30_000})).await;
        assert_eq!(run["watchpoint"]["id"], "wp-1");
        let read = rig.call("desmume_read_memory", json!({"address": COUNTER, "length": 4})).await;
        assert_eq!(read["dataHex"], format!("{count:02x}000000"));
        let at = run["watchpoint"]["instructionAddress"].clone();
        let code =
            json!({"rom": "game.nds", "processor": "arm9", "runtimeAddress": at, "mode": "arm", "maxInstructions": 1});
        let code = rig.call("nds_disassemble_range", code).await;
        let first = &code["instructions"][0];
        assert_eq!(first["mnemonic"], "str", "{code}");
        // The hit itself tells the same, and where the ROM has it: the ARM9's program lies in the file from 0x20 of the header on.
        let text = format!("str {}", first["operands"].as_str().unwrap());
        assert_eq!(run["watchpoint"]["instruction"], text.as_str(), "{run}");
        let stored = u32::from_le_bytes(ROM[0x20..0x24].try_into().unwrap());
        let offset = u64::from(stored) + run["watchpoint"]["instructionAddress"].as_u64().unwrap() - 0x0200_0000;
        let place = json!({"kind": "arm9-main", "overlayId": null, "romOffset": offset, "equal": true});
        let told = &run["watchpoint"]["places"];
        assert_eq!(told.as_array().unwrap().len(), 1);
        assert!(place.as_object().unwrap().iter().all(|(key, value)| told[0][key] == *value), "{told}");
    }
    rig.context.live().configure(EmulatorOptions::default());
    let refused = rig.try_call("desmume_watchpoint_add", json!({"address": COUNTER})).await;
    assert_eq!(refused.unwrap_err(), ErrorCode::NotConfigured);
    rig.call("desmume_watchpoint_remove", json!({"id": "wp-1"})).await;
    assert_eq!(rig.call("desmume_watchpoint_list", json!({})).await["watchpoints"], json!([]));
    rig.end().await;
}

#[tokio::test]
async fn steps_are_reported_and_a_run_is_waited_for_paused_and_written_down() {
    let rig = Rig::started(ROM, json!({"arm7GdbPort": free_port()})).await;
    let steps = rig.call("desmume_step_instruction", json!({"count": 3, "report": true})).await;
    assert_eq!((&steps["completedAll"], &steps["completed"]), (&json!(true), &json!(3)));
    // What objdump says of crt9.s: the entry is `msr CPSR_c, #31`, 0xE321F01F.
    let step = &steps["steps"][0];
    assert_eq!((&step["address"], &step["mode"]), (&json!(0x0200_0000), &json!("arm")));
    assert!(step["text"].as_str().unwrap().starts_with("msr cpsr_c"), "{step}");
    let seven = rig.call("desmume_step_instruction", json!({"count": 2, "report": true, "processor": "arm7"})).await;
    assert_eq!(seven["steps"][0]["address"], seven["steps"][1]["address"], "{seven}");
    assert!(seven["steps"][1]["text"].as_str().unwrap().starts_with("b "), "{seven}");

    let run = rig.call("desmume_continue", json!({"timeoutMs": 100})).await;
    assert_eq!(
        (&run["kind"], &run["state"], &run["emulatorRunning"]),
        (&json!("timeout"), &json!("running"), &json!(true))
    );
    for (tool, arguments, code) in [
        ("desmume_read_memory", json!({"address": COUNTER, "length": 4}), ErrorCode::DebuggerRunning),
        ("desmume_breakpoint_add", json!({"address": OVERLAY, "mode": "thumb"}), ErrorCode::DebuggerRunning),
        ("nds_correlate_stop_context", json!({}), ErrorCode::CorrelationDebuggerNotStopped),
    ] {
        let error = tool_call(&rig.context, tool, arguments).await.unwrap_err();
        let details = ["debuggerState", "emulatorRunning", "connectionUsable"].map(|name| error.details[name].clone());
        assert_eq!((error.code, details), (code, [json!("running"), json!(true), json!(true)]), "{tool}");
    }
    let waited = rig.call("desmume_wait_for_stop", json!({"timeoutMs": 100})).await;
    assert_eq!(waited["kind"], "timeout");
    let paused = rig.call("desmume_pause", json!({"timeoutMs": 5_000})).await;
    assert_eq!((&paused["kind"], &paused["reason"]), (&json!("stop"), &json!("interrupt")));
    let again = rig.call("desmume_pause", json!({})).await;
    assert_eq!((&again["pc"], &again["stop"]), (&paused["pc"], &paused["stop"]));
    let context = rig.call("desmume_capture_stop_context", json!({})).await;
    assert_eq!((&context["registers"]["pc"], &context["pcWindow"]["length"]), (&paused["pc"], &json!(64)));
    let packet = rig.call("desmume_read_register_packet", json!({})).await;
    assert_eq!((&packet["byteLength"], &packet["registers"]), (&json!(168), &context["registers"]));

    let regions = json!([{"label": "counter", "address": COUNTER, "length": 4}]);
    let written = rig.call("desmume_capture_runtime_evidence", json!({"regions": regions})).await;
    let file = rig.folder.path().join("analysis/generated/runtime-evidence.json");
    let evidence: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    assert_eq!((&evidence["registerHex"], &evidence["registers"]), (&packet["registerHex"], &packet["registers"]));
    assert_eq!(written["sha256"].as_str().unwrap().len(), 64);
    rig.end().await;
}

#[tokio::test]
async fn a_rom_that_was_replaced_is_not_correlated_and_a_killed_emulator_is_told() {
    let rig = Rig::started(ROM, json!({})).await;
    rig.call("nds_correlate_stop_context", json!({})).await;
    let mut other = ROM.to_vec();
    *other.last_mut().unwrap() ^= 1;
    std::fs::write(rig.folder.path().join("new"), other).unwrap();
    std::fs::rename(rig.folder.path().join("new"), rig.folder.path().join("game.nds")).unwrap();
    let refused = rig.try_call("nds_correlate_stop_context", json!({})).await;
    assert_eq!(refused.unwrap_err(), ErrorCode::CorrelationRomIdentityMismatch);
    std::fs::remove_file(rig.folder.path().join("game.nds")).unwrap();
    let refused = rig.try_call("nds_correlate_stop_context", json!({})).await;
    assert_eq!(refused.unwrap_err(), ErrorCode::CorrelationRomIdentityMissing);

    let status = rig.call("desmume_status", json!({})).await;
    let killed = std::process::Command::new("kill").args(["-KILL", &status["pid"].to_string()]).status().unwrap();
    assert!(killed.success());
    let until = Instant::now() + Duration::from_secs(20);
    while rig.call("desmume_status", json!({})).await["running"] == true {
        assert!(Instant::now() < until);
    }
    assert_eq!(rig.call("desmume_status", json!({})).await["lastSignal"], 9);
    let refused = tool_call(&rig.context, "desmume_read_register_packet", json!({})).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::EmulatorNotRunning);
    assert_eq!(
        (&refused.details["debuggerState"], &refused.details["emulatorRunning"], &refused.details["connectionUsable"]),
        (&json!("unavailable"), &json!(false), &json!(false))
    );
    // A second session after one that died, at the same port.
    std::fs::write(rig.folder.path().join("game.nds"), ROM).unwrap();
    let port = status["metadata"]["arm9GdbPort"].clone();
    let second = rig.call("desmume_start", json!({"rom": "game.nds", "arm9GdbPort": port})).await;
    assert_eq!(second["generation"], status["generation"].as_u64().unwrap() + 1);
    assert_eq!(rig.call("desmume_wait_for_gdb", json!({"timeoutMs": 30_000})).await["reachable"], true);
    rig.end().await;
}

#[tokio::test]
async fn what_cannot_be_started_is_refused() {
    let rig = Rig::new(ROM);
    let made = std::process::Command::new("mkfifo").arg(rig.folder.path().join("pipe.nds")).status().unwrap();
    assert!(made.success());
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap().port();
    for (arguments, code) in [
        (json!({"rom": "pipe.nds"}), ErrorCode::FileRefused),
        (json!({"rom": "gone.nds"}), ErrorCode::FileNotFound),
        (json!({"launcher": "no-such-emulator"}), ErrorCode::EmulatorStartFailed),
        (json!({"launcher": "bin/gone"}), ErrorCode::FileNotFound),
        (json!({"arm9GdbPort": taken}), ErrorCode::EmulatorStartFailed),
        (json!({"arm9GdbPort": 80}), ErrorCode::InvalidArguments),
    ] {
        assert_eq!(rig.try_call("desmume_start", start(&arguments)).await.unwrap_err(), code, "{arguments}");
    }
    for tool in ["desmume_probe_gdb", "desmume_pause", "desmume_continue"] {
        assert_eq!(rig.try_call(tool, json!({})).await.unwrap_err(), ErrorCode::EmulatorNotRunning, "{tool}");
    }
    let refused = rig.try_call("nds_correlate_stop_context", json!({})).await;
    assert_eq!(refused.unwrap_err(), ErrorCode::CorrelationNoOwnedProcess);
    // An emulator without a stub ends at once, and says so.
    let script = rig.folder.path().join("bin/old");
    std::fs::create_dir(rig.folder.path().join("bin")).unwrap();
    std::fs::write(&script, "#!/bin/sh\necho 'Unknown option --arm9gdb' >&2\nexec false\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&script, mode).unwrap();
    rig.call("desmume_start", start(&json!({"launcher": "bin/old"}))).await;
    let refused = tool_call(&rig.context, "desmume_wait_for_gdb", json!({})).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::EmulatorStartFailed);
    assert!(refused.message.contains("without a GDB stub"), "{refused}");
    assert_eq!(rig.call("desmume_breakpoint_list", json!({})).await["initialized"], false);
}

#[tokio::test]
async fn a_second_start_is_refused_and_a_dropped_wait_leaves_no_trace() {
    let rig = Rig::started(ROM, json!({})).await;
    let second = rig.try_call("desmume_start", start(&json!({}))).await;
    assert_eq!(second.unwrap_err(), ErrorCode::EmulatorRunning);
    rig.call("desmume_continue", json!({"timeoutMs": 100})).await;
    let wait = rig.call("desmume_wait_for_stop", json!({"timeoutMs": 30_000}));
    assert!(tokio::time::timeout(Duration::from_millis(100), wait).await.is_err());
    assert_eq!(rig.call("desmume_probe_gdb", json!({})).await["state"], "running");
    rig.call("desmume_pause", json!({"timeoutMs": 5_000})).await;
    rig.end().await;
}

#[tokio::test]
async fn a_correlation_that_is_too_long_is_refused_with_what_to_ask_for() {
    let rig = Rig::limited(ROM, Some(3_000));
    rig.call("desmume_start", start(&json!({}))).await;
    rig.call("desmume_wait_for_gdb", json!({"timeoutMs": 30_000})).await;
    let error =
        tool_call(&rig.context, "nds_correlate_stop_context", json!({"nearbyInstructions": 32})).await.unwrap_err();
    assert_eq!((error.code.word(), &error.details["limit"]), ("runtime-correlation-output-limit", &json!(3_000)));
    assert!(error.hint.contains("nearbyInstructions"));
    // Memory that was asked for comes whole all the same: two digits for each of 64 KiB.
    let read = rig.call("desmume_read_memory", json!({"address": OVERLAY, "length": 0x1_0000})).await;
    assert_eq!(read["dataHex"].as_str().unwrap().len(), 0x2_0000);
    rig.call("nds_correlate_stop_context", json!({"nearbyInstructions": 1, "referenceLimit": 0})).await;
    rig.end().await;
}

#[tokio::test]
async fn an_emulator_with_its_recompiler_is_told_from_one_that_runs() {
    let rig = Rig::new(ROM);
    // The launcher's last word decides the mode.
    let real = debug::emulator::find_launcher(std::path::Path::new("desmume-cli")).unwrap();
    let script = format!("#!/bin/sh\nexec {} --arm9gdb=\"$2\" --cpu-mode=1 \"$1\"\n", real.display());
    let launcher = rig.folder.path().join("bin/jit.command");
    std::fs::create_dir(rig.folder.path().join("bin")).unwrap();
    std::fs::write(&launcher, script).unwrap();
    std::fs::set_permissions(&launcher, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    rig.call("desmume_start", start(&json!({"launcher": "bin/jit.command"}))).await;
    rig.call("desmume_wait_for_gdb", json!({"timeoutMs": 30_000})).await;
    let steps = rig.call("desmume_step_instruction", json!({"perStepTimeoutMs": 500})).await;
    assert_eq!((&steps["completed"], &steps["result"]["kind"]), (&json!(0), &json!("timeout")));
    assert_eq!(rig.call("desmume_pause", json!({"timeoutMs": 500})).await["kind"], "timeout");
    let error = tool_call(&rig.context, "desmume_read_register_packet", json!({})).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::DebuggerRunning);
    assert!(error.message.contains("recompiler") && error.hint.contains("--cpu-mode=0"), "{error}");
    rig.end().await;
}

fn kill(status: &serde_json::Value) {
    let killed = std::process::Command::new("kill").args(["-KILL", &status["pid"].to_string()]).status().unwrap();
    assert!(killed.success());
}

#[tokio::test]
async fn an_emulator_that_is_killed_is_told_in_each_state_and_leaves_nothing_to_the_next() {
    let rig = Rig::new(ROM);
    let port = free_port();
    for (generation, state) in
        ["starting", "at its entry", "running", "stopped at a breakpoint"].into_iter().enumerate()
    {
        let started = rig.call("desmume_start", json!({"rom": "game.nds", "arm9GdbPort": port})).await;
        assert_eq!(started["generation"], json!(generation + 1), "the one before is over");
        if state == "starting" {
            kill(&started);
            let error = rig.try_call("desmume_wait_for_gdb", json!({"timeoutMs": 30_000})).await.unwrap_err();
            assert_eq!(error, ErrorCode::EmulatorStartFailed);
            continue;
        }
        rig.call("desmume_wait_for_gdb", json!({"timeoutMs": 30_000})).await;
        // Nothing of the emulator before: neither its breakpoint nor its range.
        let list = rig.call("desmume_breakpoint_list", json!({})).await;
        let ranges: Vec<_> = list["executableRanges"].as_array().unwrap().iter().map(|one| &one["id"]).collect();
        assert_eq!((&list["breakpoints"], ranges), (&json!([]), vec![&json!("arm9-main")]), "{state}");
        let range = json!({"id": "overlays", "label": "both", "start": OVERLAY, "end": OVERLAY + 0x1000,
            "source": "overlay", "defaultMode": "thumb"});
        rig.call("desmume_executable_ranges_replace", json!({"ranges": [range]})).await;
        let (tool, arguments) = match state {
            "running" => {
                rig.call("desmume_continue", json!({"timeoutMs": 100})).await;
                ("desmume_wait_for_stop", json!({"timeoutMs": 30_000}))
            }
            "at its entry" => {
                rig.call("desmume_breakpoint_add", json!({"address": OVERLAY, "mode": "auto"})).await;
                ("desmume_continue", json!({"timeoutMs": 30_000}))
            }
            _ => {
                rig.call("desmume_breakpoint_add", json!({"address": OVERLAY, "mode": "auto"})).await;
                rig.call("desmume_continue", json!({"timeoutMs": 30_000})).await;
                ("nds_correlate_stop_context", json!({}))
            }
        };
        kill(&started);
        let error = tool_call(&rig.context, tool, arguments).await.unwrap_err();
        // Which of them depends on what is noticed first: the end of the process, or of the connection.
        let codes = [
            ErrorCode::EmulatorNotRunning,
            ErrorCode::GdbConnectionLost,
            ErrorCode::CorrelationNoOwnedProcess,
            ErrorCode::CorrelationContextFailed,
        ];
        assert!(codes.contains(&error.code), "{state}: {error}");
        let until = Instant::now() + Duration::from_secs(20);
        while rig.call("desmume_status", json!({})).await["running"] == true {
            assert!(Instant::now() < until, "{state}");
        }
    }
}

/// Overlay 1, stored compressed, gets another entry by a manifest; the rebuilt ROM runs it.
#[tokio::test]
async fn a_rebuilt_overlay_runs() {
    let source = nds::Rom::parse(ROM.to_vec()).unwrap();
    let id = nds::ComponentId::overlay(nds::Processor::Arm9, 1);
    let component = source.component(id).unwrap();
    let stored = component.stored.clone().unwrap();
    let mut image = component.image(&source).unwrap().to_vec();
    let runtime = nds::sha256_hex(&image);
    // Thumb: ldr r1, =0x02300000; movs r0, #0x5a; strb r0, [r1]; movs r0, #0x77; bx lr; nop; the literal.
    let code = [0x4902_u16, 0x205a, 0x7008, 0x2077, 0x4770, 0x46c0, 0x0000, 0x0230];
    let code: Vec<u8> = code.into_iter().flat_map(u16::to_le_bytes).collect();
    image[..code.len()].copy_from_slice(&code);
    let manifest = json!({"format": "re-mcp-nds-mutation", "formatVersion": 2, "source": {"sha256": source.sha256()},
        "output": {"filename": "mod.nds"}, "operations": [{
            "type": "replace-decoded-overlay", "target": {"processor": "arm9", "overlayId": 1},
            "expectedStoredSha256": nds::sha256_hex(&ROM[stored.start as usize..stored.end as usize]),
            "expectedRuntimeSha256": runtime,
            "replacement": {"artifact": "ov1.bin", "sha256": nds::sha256_hex(&image)}}]});
    let maker = Rig::new(ROM);
    std::fs::write(maker.folder.path().join("mod.json"), manifest.to_string()).unwrap();
    std::fs::write(maker.folder.path().join("ov1.bin"), &image).unwrap();
    let built = maker.call("nds_mutation_build", json!({"rom": "game.nds", "manifest": "mod.json"})).await;
    let output = std::fs::read(maker.folder.path().join(built["outputRomPath"].as_str().unwrap())).unwrap();

    let rig = Rig::started(&output, json!({})).await;
    rig.call("desmume_breakpoint_add", json!({"address": OVERLAY, "mode": "auto"})).await;
    // Overlay 0, then 1, then 0 again: by then 1 has run.
    for _ in 0..3 {
        let run = rig.call("desmume_continue", json!({"timeoutMs": 30_000})).await;
        assert_eq!(run["pc"], json!(OVERLAY), "{run}");
    }
    let read = rig.call("desmume_read_memory", json!({"address": 0x0230_0000, "length": 12})).await;
    let data = read["dataHex"].as_str().unwrap();
    // The marker is the word 0x52454d43 with its lowest byte changed; what overlay 1 answered stands at 8.
    assert_eq!((&data[..8], &data[16..]), ("5a4d4552", "77000000"));
    rig.end().await;
}
