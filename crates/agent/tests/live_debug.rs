//! Everything that the agent promises about one program, on driftgame in its 64-bit and 32-bit builds, over the socket.
//! The expected values come from the game's own promises, nm and objdump.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use common::{
    Agent, Game, Session, as_agent_sees, counter_register, encode_base64, hex, listing, native_pid, peek, wait_for,
    wine,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Makes a test of each function for each build of the game.
macro_rules! both {
    ($($name:ident),+ $(,)?) => {
        mod bits64 { $(#[test] fn $name() { super::$name("driftgame64"); })+ }
        mod bits32 { $(#[test] fn $name() { super::$name("driftgame32"); })+ }
    };
}

both!(
    launch_stops_at_the_entry,
    a_program_that_ends_says_how,
    a_breakpoint_stops_before_the_instruction,
    conditions_decide,
    conditions_are_checked_when_they_are_set,
    ignore_count_and_one_shot,
    breakpoints_are_listed_and_removed,
    eight_threads_lose_no_hit,
    every_stop_of_eight_threads_is_one_hit,
    the_delta_baseline_has_one_writer_once_per_frame,
    reads_are_told_from_writes,
    four_watchpoints_and_not_five,
    a_thread_born_later_is_watched_too,
    steps_go_where_objdump_says,
    memory_never_shows_a_breakpoint,
    memory_that_is_not_there,
    registers_are_read_and_set,
    code_and_callers_are_named,
    others_are_served_while_one_waits,
    attached_and_let_go_unharmed,
);

fn pc_name(game: &str) -> &'static str {
    if game.ends_with("64") { "rip" } else { "eip" }
}

fn launch_stops_at_the_entry(game: &str) {
    let mut session = Session::launch(game, &["--headless"]);
    let entry = session.symbol("_start");
    let start = session.start.clone();
    assert_eq!(hex(&start["pc"]), entry, "{start}");
    assert_eq!(hex(&start["entry"]), entry);
    assert_eq!(start["base"], "0x400000");
    assert_eq!((&start["reason"], &start["status"]), (&json!("entry"), &json!("stopped")));
    assert_eq!((&start["attached"], &start["threads"]), (&json!(false), &json!(1)));
    assert_eq!(start["arch"], if game.ends_with("64") { "x86_64" } else { "x86" });
    assert_eq!(session.register(pc_name(game)), entry);
    assert_eq!(session.variable("g_frame_count"), 0);
    session.run_for(0.5);
    assert!(session.variable("g_frame_count") > 2);
    session.finish();
}

fn a_program_that_ends_says_how(game: &str) {
    let mut session = Session::launch(game, &["--headless", "--frames", "5", "--exit-code", "7"]);
    let end = session.run();
    assert_eq!((&end["status"], &end["exit_code"], &end["reason"]), (&json!("exited"), &json!(7), &json!("exited")));
    session.client.refused("continue_execution", json!({"timeout": 1}), "target_exited");
    session.client.refused("get_registers", json!({}), "target_exited");
    assert_eq!(session.ok("get_status", json!({}))["exit_code"], 7);
    // The next program can be launched right away.
    let path = as_agent_sees(&session.path);
    let again = session.ok("launch", json!({"path": path, "args": ["--headless"], "if_running": "start_new"}));
    assert_eq!(again["reason"], "entry");
    session.pid = native_pid(&again["pid"], &session.path);
    session.finish();
}

fn a_breakpoint_stops_before_the_instruction(game: &str) {
    let mut session = Session::launch(game, &["--headless", "--spin-loop"]);
    let (address, register) = (session.symbol("hot_step"), counter_register(game));
    let set = session.ok("set_breakpoint", json!({"addr": "hot_step"}));
    assert_eq!(hex(&set["breakpoint"]["addr"]), address);
    for step in 0..50u64 {
        let stop = session.run_to(&format!("breakpoint@{address:#x}"));
        assert_eq!(hex(&stop["pc"]), address);
        assert_eq!(stop["stop"]["hits"], step + 1);
        // hot_loop counts from 0 and passes the count.
        assert_eq!(session.register(register), step);
        assert_eq!(u64::from(session.variable("g_hot_count")), step);
        let instruction = &stop["stop"]["instruction"];
        assert_eq!(hex(&instruction["addr"]), address);
        assert_ne!(instruction["bytes"].as_str().unwrap().get(..2), Some("cc"));
        assert!(stop["stop"]["symbol"].as_str().unwrap().starts_with("hot_step"), "{stop}");
    }
    session.finish();
}

fn conditions_decide(game: &str) {
    let mut session = Session::launch(game, &["--headless", "--spin-loop"]);
    let register = counter_register(game);
    let mut reached = 0;
    for (condition, expected) in [
        (json!({"register": register, "op": "==", "value": 1000}), 1000),
        (json!({"register": register, "op": ">", "value": "0x5dc"}), 1501),
        (json!({"memory": "g_hot_count", "size": 4, "op": ">=", "value": 2000}), 2000),
        (json!({"memory": format!("{:#x}+0x20", 0x48_0000), "op": "==", "value": 2500}), 2500),
        (
            json!({"all": [{"register": register, "op": ">=", "value": 3000},
                        {"memory": "g_hot_count", "size": 1, "op": "==", "value": 0}]}),
            3072,
        ),
        (
            json!({"any": [{"register": register, "op": "==", "value": 3500},
                        {"register": register, "op": "==", "value": 4000}]}),
            3500,
        ),
        // -128 is the byte 0x80: after 3500 = 0xdac that is first so in 0xe80 = 3712.
        (json!({"memory": "g_hot_count", "size": 1, "op": "<", "value": -127, "signed": true}), 3712),
        (json!({"register": register, "op": "!=", "value": 0}), 3713),
    ] {
        let set = session.ok("set_breakpoint", json!({"addr": "hot_step", "condition": condition}));
        assert_eq!(set["breakpoint"]["hits"], 0);
        let stop = session.run();
        assert_eq!(session.register(register), expected, "{condition}: {stop}");
        assert!(expected > reached);
        // What did not hold is not counted.
        assert_eq!(stop["stop"]["hits"], 1, "{condition}");
        session.ok("remove_breakpoint", json!({"addr": "hot_step"}));
        reached = expected;
    }
    session.finish();
}

fn conditions_are_checked_when_they_are_set(game: &str) {
    let mut session = Session::launch(game, &["--headless", "--spin-loop"]);
    let with = |condition: Value| json!({"addr": "hot_step", "condition": condition});
    let client = &mut session.client;
    let said =
        client.refused("set_breakpoint", with(json!({"register": "exx", "op": "==", "value": 1})), "unknown_register");
    assert!(said.contains("exx"), "{said}");
    client.refused("set_breakpoint", with(json!({"memory": "0x10", "op": "==", "value": 1})), "address_unmapped");
    client.refused("set_breakpoint", with(json!({"memory": "g_nothing", "op": "==", "value": 1})), "unknown_symbol");
    if game.ends_with("32") {
        client.refused("set_breakpoint", with(json!({"register": "rdi", "op": "==", "value": 1})), "unknown_register");
    }
    client.refused("set_breakpoint", json!({"addr": "0x10"}), "address_unmapped");
    assert_eq!(client.ok("list_breakpoints", json!({}))["breakpoints"], json!([]));
    session.finish();
}

fn ignore_count_and_one_shot(game: &str) {
    let mut session = Session::launch(game, &["--headless", "--spin-loop"]);
    let register = counter_register(game);
    session.ok("set_breakpoint", json!({"addr": "hot_step", "ignore_count": 100}));
    let stop = session.run();
    assert_eq!(session.register(register), 100, "the hits with 0 to 99 passed");
    assert_eq!(stop["stop"]["hits"], 101);
    session.run();
    assert_eq!(session.register(register), 101);
    session.ok("remove_breakpoint", json!({"addr": "hot_step"}));

    session.ok("set_breakpoint", json!({"addr": "hot_step", "one_shot": true}));
    session.run();
    assert_eq!(session.register(register), 102);
    assert_eq!(session.ok("list_breakpoints", json!({}))["list"], json!([]));
    session.run_for(0.2);
    session.finish();
}

fn breakpoints_are_listed_and_removed(game: &str) {
    let mut session = Session::launch(game, &["--headless"]);
    let address = session.symbol("game_frame");
    session.ok("set_breakpoint", json!({"addr": "game_frame"}));
    // Asked for again in other words.
    session.ok("set_breakpoint", json!({"addr": format!("{game}+{:#x}", address - 0x40_0000)}));
    // Set again: its settings are replaced.
    let again = session.ok("set_breakpoint", json!({"addr": address, "ignore_count": 3}));
    assert_eq!(
        (&again["breakpoint"]["ignore_count"], &again["breakpoints"]),
        (&json!(3), &json!([format!("{address:#x}")]))
    );
    session.ok("set_breakpoint", json!({"addr": address}));
    let pending = session.ok("set_breakpoint", json!({"addr": "not_yet_there"}));
    assert_eq!(pending["breakpoint"]["pending"], true);
    let list = session.ok("list_breakpoints", json!({}));
    assert_eq!(list["breakpoints"], json!([format!("{address:#x}")]));
    assert_eq!(list["list"].as_array().unwrap().len(), 2);
    session.client.refused("remove_breakpoint", json!({"addr": "main_loop"}), "no_such_breakpoint");
    session.ok("remove_breakpoint", json!({"addr": "not_yet_there"}));
    session.run_to(&format!("breakpoint@{address:#x}"));
    let removed = session.ok("remove_breakpoint", json!({"addr": address}));
    assert_eq!(removed["breakpoints"], json!([]));
    session.run_for(0.2);

    // As many as are allowed, while the program runs.
    let busy = ["draw_menu", "move_ball", "pump_events"];
    for name in busy {
        session.ok("set_breakpoint", json!({"addr": name, "ignore_count": 1_000_000}));
    }
    // Nothing of this runs without a window, so breakpoints in the middle of instructions do no harm.
    for address in (session.symbol("connect_display")..).take(1_024 - busy.len()) {
        session.ok("set_breakpoint", json!({"addr": address}));
    }
    let said = session.client.refused("set_breakpoint", json!({"addr": "draw_playing"}), "limit_exceeded");
    assert!(said.contains("1024") || said.contains("1,024"), "{said}");
    session.run_for(0.3);
    session.finish();
}

/// The ticks of all workers.
fn ticks(session: &mut Session) -> u64 {
    let bytes = session.read(json!("g_worker_ticks"), 4 * 64);
    bytes.chunks_exact(4).map(|tick| u64::from(u32::from_le_bytes(tick.try_into().unwrap()))).sum()
}

fn hits(session: &mut Session) -> u64 {
    session.ok("list_breakpoints", json!({}))["list"][0]["hits"].as_u64().unwrap()
}

fn threads(session: &mut Session) -> usize {
    session.ok("list_threads", json!({}))["threads"].as_array().unwrap().len()
}

fn eight_threads_lose_no_hit(game: &str) {
    for options in [&[][..], &["--step-in-place"]] {
        let arguments = ["--headless", "--threads", "8", "--spin", "--thread-life", "1500"];
        let mut session = Session::launch_by(Agent::with(options), game, &arguments);
        session.ok("set_breakpoint", json!({"addr": "worker_tick", "ignore_count": 1_000_000_000}));
        session.run_for(0.5);
        while session.variable("g_workers_started") < 8 {
            session.run_for(0.1);
        }
        assert_eq!(threads(&mut session), 9);
        while threads(&mut session) > 1 {
            session.run_for(0.2);
        }
        session.ok("pause", json!({}));
        // Each worker counts its own ticks, one for each time that worker_tick was executed.
        let counted = ticks(&mut session);
        assert_eq!(hits(&mut session), counted, "{options:?}");
        // Under Wine a hit costs 30 times as much.
        assert!(counted > if wine().is_some() { 100 } else { 1_000 }, "{counted}");
        session.finish();
    }
}

fn every_stop_of_eight_threads_is_one_hit(game: &str) {
    let mut session = Session::launch(game, &["--headless", "--threads", "8", "--spin", "--thread-life", "1500"]);
    session.ok("set_breakpoint", json!({"addr": "worker_tick"}));
    let mut seen = BTreeSet::new();
    let mut stops = 0;
    loop {
        let stop = session.ok("continue_execution", json!({"timeout": 1}));
        if stop["timed_out"] == true {
            if threads(&mut session) == 1 {
                break;
            }
            continue;
        }
        stops += 1;
        assert_eq!(stop["stop"]["hits"], stops, "{stop}");
        assert_eq!(hex(&stop["pc"]), session.symbol("worker_tick"));
        seen.insert(stop["thread"].as_u64().unwrap());
        // Those that stand at the breakpoint have not ticked yet.
        let counted = ticks(&mut session);
        assert!(counted < stops && stops <= counted + 8, "{counted} ticks, {stops} stops");
        if stops == 300 {
            session.ok("remove_breakpoint", json!({"addr": "worker_tick"}));
            break;
        }
    }
    assert_eq!(seen.len(), 8, "every worker came by");
    session.run_for(0.2);
    session.finish();
}

fn the_delta_baseline_has_one_writer_once_per_frame(game: &str) {
    let mut session = Session::launch(game, &["--headless"]);
    let code = listing(&session.path, "update_delta_time");
    let stores: Vec<_> =
        code.iter().filter(|(_, code)| code.contains("mov") && code.contains("480004") && !is_load(code)).collect();
    let [(writer, _)] = stores.as_slice() else { panic!("{code:?}") };
    let set = session.ok("set_watchpoint", json!({"addr": "g_delta_baseline_ms", "size": 4, "mode": "write"}));
    assert_eq!((&set["slot"], &set["watchpoints"]["0"]), (&json!(0), &json!("0x480004")));
    let mut old = 0;
    for frame in 0..20 {
        let stop = session.run_to("watchpoint@slot0");
        let report = &stop["stop"]["watchpoints"][0];
        assert_eq!(report["attribution"], "exact", "{stop}");
        assert_eq!(hex(&report["writer"]["addr"]), *writer, "{stop}");
        assert!(report["writer"]["location"].as_str().unwrap().starts_with("update_delta_time"), "{stop}");
        // The trap comes after the write: the program counter is at the next instruction.
        let next = code.iter().map(|(address, _)| *address).find(|address| address > writer);
        assert_eq!(Some(hex(&stop["pc"])), next);
        assert_eq!(hex(&report["old_value"]), old, "{stop}");
        old = u64::from(session.variable("g_delta_baseline_ms"));
        assert_eq!(hex(&report["new_value"]), old, "{stop}");
        assert_eq!(session.variable("g_frame_count"), frame, "once per frame");
        assert_eq!(report["hits"], frame + 1);
    }
    session.finish();
}

/// Whether objdump's `mov` has its memory operand on the right.
fn is_load(code: &str) -> bool {
    let operands = code.split('#').next().unwrap().split_once(',');
    operands.is_some_and(|(destination, _)| !destination.contains('[') && !destination.contains("ds:"))
}

fn reads_are_told_from_writes(game: &str) {
    let mut session = Session::launch(game, &["--headless"]);
    let code = listing(&session.path, "update_delta_time");
    let touching: Vec<_> = code.iter().filter(|(_, code)| code.contains("480004")).collect();
    let load = touching.iter().find(|(_, code)| is_load(code)).unwrap().0;
    let store = touching.iter().find(|(_, code)| !is_load(code)).unwrap().0;

    session.ok("set_watchpoint", json!({"addr": "g_delta_baseline_ms", "mode": "read"}));
    for frame in 0..5 {
        let stop = session.run_to("watchpoint@slot0");
        assert_eq!(hex(&stop["stop"]["watchpoints"][0]["writer"]["addr"]), load, "{stop}");
        assert_eq!(session.variable("g_frame_count"), frame);
    }
    session.ok("remove_watchpoint", json!({"slot": 0}));
    session.ok("set_watchpoint", json!({"addr": "g_delta_baseline_ms", "mode": "readwrite"}));
    for expected in [store, load, store, load] {
        let stop = session.run_to("watchpoint@slot0");
        assert_eq!(hex(&stop["stop"]["watchpoints"][0]["writer"]["addr"]), expected, "{stop}");
    }
    session.finish();
}

fn four_watchpoints_and_not_five(game: &str) {
    let mut session = Session::launch(game, &["--headless"]);
    let names = ["g_state", "g_delta_ms", "g_score", "g_ball_x"];
    for (slot, name) in names.iter().enumerate() {
        assert_eq!(session.ok("set_watchpoint", json!({"addr": name}))["slot"], slot);
    }
    let said = session.client.refused("set_watchpoint", json!({"addr": "g_active"}), "no_free_slot");
    assert!(said.contains("all 4 hardware debug registers (DR0-DR3) are in use by"), "{said}");
    assert!(names.iter().all(|name| said.contains(&format!("{:#x}", session.symbol(name)))), "{said}");
    // By slot and by address.
    session.ok("remove_watchpoint", json!({"slot": 2}));
    session.ok("remove_watchpoint", json!({"addr": "g_delta_ms"}));
    session.client.refused("remove_watchpoint", json!({"slot": 2}), "no_such_breakpoint");
    session.client.refused("remove_watchpoint", json!({"slot": 4}), "no_such_breakpoint");
    session.client.refused("remove_watchpoint", json!({}), "invalid_params");
    let left = session.ok("list_watchpoints", json!({}));
    assert_eq!(left["watchpoints"], json!({"0": "0x480000", "3": "0x48001c"}));
    session.client.refused("set_watchpoint", json!({"addr": "0x480002"}), "misaligned");
    session.client.refused("set_watchpoint", json!({"addr": "0x480000", "size": 3}), "invalid_params");
    if game.ends_with("64") {
        assert_eq!(session.ok("set_watchpoint", json!({"addr": "g_saved_state_ptr", "size": 8}))["slot"], 1);
    } else {
        session.client.refused("set_watchpoint", json!({"addr": "g_saved_state_ptr", "size": 8}), "invalid_params");
    }
    // The state is first written when the game leaves the menu, at frame 30.
    let stop = session.run_to("watchpoint@slot0");
    assert_eq!(session.variable("g_frame_count"), 30);
    let report = &stop["stop"]["watchpoints"][0];
    assert_eq!((hex(&report["old_value"]), hex(&report["new_value"])), (0, 1), "{stop}");
    assert!(report["writer"]["location"].as_str().unwrap().starts_with("start_game"), "{stop}");
    session.finish();
}

fn a_thread_born_later_is_watched_too(game: &str) {
    let mut session = Session::launch(game, &["--headless", "--thread-after", "100"]);
    session.ok("set_watchpoint", json!({"addr": "g_worker_ticks"}));
    let stop = session.run_to("watchpoint@slot0");
    assert_ne!(stop["thread"], session.pid);
    assert!(
        stop["stop"]["watchpoints"][0]["writer"]["location"].as_str().unwrap().starts_with("worker_tick"),
        "{stop}"
    );
    assert_eq!(threads(&mut session), 2);
    session.finish();
}

fn steps_go_where_objdump_says(game: &str) {
    let mut session = Session::launch(game, &["--headless"]);
    let code = listing(&session.path, "game_frame");
    let call = code.iter().position(|(_, code)| code.contains("<update_delta_time>")).unwrap();
    session.ok("set_breakpoint", json!({"addr": "game_frame", "one_shot": true}));
    session.run();
    // To the call, instruction by instruction: nothing jumps before it.
    for (address, _) in &code[1..=call] {
        let step = session.ok("step", json!({}));
        assert_eq!((hex(&step["pc"]), &step["reason"]), (*address, &json!("step")));
    }
    let into = session.ok("step", json!({"mode": "into"}));
    assert_eq!(hex(&into["pc"]), session.symbol("update_delta_time"));
    let frames = session.variable("g_delta_baseline_ms");
    let out = session.ok("step", json!({"mode": "out"}));
    assert_eq!(hex(&out["pc"]), code[call + 1].0, "{out}");
    assert_ne!(session.variable("g_delta_baseline_ms"), frames, "the function has run");

    // Over: the same call one frame later.
    session.ok("set_breakpoint", json!({"addr": code[call].0, "one_shot": true}));
    session.run();
    let over = session.ok("step", json!({"mode": "over"}));
    assert_eq!((hex(&over["pc"]), &over["steps"]), (code[call + 1].0, &json!(1)), "{over}");

    // Many: the trace ends where the program counter was before the last one.
    let many = session.ok("step", json!({"count": 1_000}));
    assert_eq!((&many["steps"], &many["reason"]), (&json!(1_000), &json!("step")), "{many}");
    assert!(!many["trace"].as_array().unwrap().is_empty());
    session.client.refused("step", json!({"count": 10_001}), "invalid_params");
    session.client.refused("step", json!({"count": 0}), "invalid_params");

    // A breakpoint on the way is hit, and counts.
    session.ok("set_breakpoint", json!({"addr": "update_delta_time"}));
    session.ok("set_breakpoint", json!({"addr": code[call].0, "one_shot": true}));
    let stop = session.run();
    assert_eq!(hex(&stop["pc"]), code[call].0, "{stop}");
    let hit = session.ok("step", json!({"mode": "over"}));
    assert_eq!(hit["reason"], format!("breakpoint@{:#x}", session.symbol("update_delta_time")), "{hit}");
    session.finish();
}

fn memory_never_shows_a_breakpoint(game: &str) {
    let mut session = Session::launch(game, &["--headless", "--spin-loop"]);
    let address = session.symbol("hot_step");
    let (text_start, text) = common::section(&session.path, ".text");
    for name in ["hot_step", "hot_loop", "run_game"] {
        session.ok("set_breakpoint", json!({"addr": name, "ignore_count": 3}));
    }
    // The byte is there,
    assert_eq!(peek(session.pid, address, 1), [0xcc]);
    // but is not shown, stopped or running, whole or in part.
    assert_eq!(session.read(json!(text_start), text.len() as u64), text);
    let disassembly = session.ok("disassemble", json!({"addr": "hot_step", "count": 2}));
    assert_eq!(hex(&disassembly["instructions"][1]["addr"]), listing(&session.path, "hot_step")[1].0, "{disassembly}");
    session.run_to(&format!("breakpoint@{address:#x}"));
    assert_eq!(session.read(json!(address), 1), text[(address - text_start) as usize..][..1]);

    // Writing over it keeps both: NOPs in place of the first instruction.
    let length = (listing(&session.path, "hot_step")[1].0 - address) as usize;
    let wrote = session.ok("write_memory", json!({"addr": address, "data": encode_base64(&vec![0x90; length])}));
    assert_eq!((&wrote["length"], &wrote["breakpoints_kept"]), (&json!(length), &json!([format!("{address:#x}")])));
    assert_eq!(peek(session.pid, address, 1), [0xcc]);
    assert_eq!(session.read(json!(address), length as u64), vec![0x90; length]);
    session.run_to(&format!("breakpoint@{address:#x}"));
    session.ok("remove_breakpoint", json!({"addr": address}));
    assert_eq!(peek(session.pid, address, length), vec![0x90; length]);
    session.finish();
}

fn memory_that_is_not_there(game: &str) {
    let mut session = Session::launch(game, &["--headless"]);
    let error = session.client.call("read_memory", json!({"addr": "0x10", "length": 4})).unwrap_err();
    assert_eq!(
        (&error["code"], &error["details"]["first_bad"], &error["details"]["readable"]),
        (&json!("address_unmapped"), &json!("0x10"), &json!(0)),
        "{error}"
    );
    // The variables' page ends at 0x481000 or later; find the end by the kernel's own table.
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", session.pid)).unwrap();
    let end = maps.lines().find_map(|line| {
        let (start, end) = line.split_once(' ')?.0.split_once('-')?;
        let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
        (start..end).contains(&0x48_0000).then_some(end)
    });
    let end = end.unwrap();
    let error = session.client.call("read_memory", json!({"addr": end - 16, "length": 32})).unwrap_err();
    assert_eq!(
        (&error["details"]["first_bad"], &error["details"]["readable"]),
        (&json!(format!("{end:#x}")), &json!(16)),
        "{error}"
    );
    let before = peek(session.pid, end - 2, 2);
    let error =
        session.client.call("write_memory", json!({"addr": end - 2, "data": encode_base64(&[1; 4])})).unwrap_err();
    assert_eq!(
        (&error["code"], &error["details"]["first_bad"]),
        (&json!("address_unmapped"), &json!(format!("{end:#x}"))),
        "{error}"
    );
    assert_eq!(session.read(json!(end - 2), 2), before, "nothing was written");
    assert_eq!(session.read(json!(end - 16), 16), peek(session.pid, end - 16, 16), "what is there can be read");
    for (length, code) in [(0, "invalid_params"), ((16 << 20) + 1, "invalid_params")] {
        let error = session.client.call("read_memory", json!({"addr": "0x480000", "length": length})).unwrap_err();
        assert!(error["code"] == code || error["code"] == "limit_exceeded", "{error}");
    }
    // Read-only pages are written as debuggers do.
    let code = session.symbol("parse_options");
    session.ok("write_memory", json!({"addr": code, "data": encode_base64(&[1, 2, 3])}));
    assert_eq!(peek(session.pid, code, 3), [1, 2, 3]);
    session.finish();
}

fn registers_are_read_and_set(game: &str) {
    let mut session = Session::launch(game, &["--headless", "--spin-loop"]);
    let (address, register) = (session.symbol("hot_step"), counter_register(game));
    session.ok("set_breakpoint", json!({"addr": "hot_step"}));
    session.run();
    let set = session
        .ok("set_registers", json!({"registers": {register: 0x1234_5678, "al": 0x7f, "ah": 0x01, "zf": 1, "cf": 0}}));
    assert_eq!(session.register(register), 0x1234_5678, "{set}");
    let flags = session.ok("get_registers", json!({}))["flags"].clone();
    let flags: Vec<&str> = flags.as_array().unwrap().iter().map(|flag| flag.as_str().unwrap()).collect();
    assert!(flags.contains(&"ZF") && !flags.contains(&"CF"), "{flags:?}");
    let accumulator = if game.ends_with("64") { "rax" } else { "eax" };
    assert_eq!(session.register(accumulator) & 0xffff, 0x017f);
    // The game goes on from there.
    session.run();
    assert_eq!(session.register(register), 0x1234_5679);
    assert_eq!(session.variable("g_hot_count"), 0x1234_5679);

    let all = session.ok("get_registers", json!({"sets": ["general", "segment", "debug", "x87", "sse"]}));
    let names: Vec<&String> = all["registers"].as_object().unwrap().keys().collect();
    for name in [pc_name(game), "cs", "ss", "dr7", "xmm0", "mxcsr", "st0"] {
        assert!(names.iter().any(|have| *have == name), "{name} is not among {names:?}");
    }
    assert_eq!(hex(&all["registers"][pc_name(game)]), address);
    session.client.refused("set_registers", json!({"registers": {"exx": 1}}), "unknown_register");
    session.client.refused("get_registers", json!({"thread": 1}), "unknown_thread");

    // The program counter is a register too: back into the loop's caller.
    let entry = session.symbol("hot_loop");
    session.ok("set_registers", json!({"registers": {pc_name(game): entry}}));
    assert_eq!(session.register(pc_name(game)), entry);
    session.ok("set_registers", json!({"registers": {pc_name(game): address}}));
    session.run();
    session.finish();
}

fn code_and_callers_are_named(game: &str) {
    let mut session = Session::launch(game, &["--headless"]);
    session.ok("set_breakpoint", json!({"addr": "platform_now_ms"}));
    session.ok("set_breakpoint", json!({"addr": "update_delta_time"}));
    while hex(&session.run()["pc"]) != session.symbol("update_delta_time") {}
    session.run_to(&format!("breakpoint@{:#x}", session.symbol("platform_now_ms")));
    let trace = session.ok("backtrace", json!({}));
    let names: Vec<&str> =
        trace["frames"].as_array().unwrap().iter().filter_map(|frame| frame["location"].as_str()).collect();
    let functions: Vec<&str> = names.iter().map(|name| name.split('+').next().unwrap()).collect();
    assert_eq!(
        functions[..5],
        ["platform_now_ms", "update_delta_time", "game_frame", "main_loop", "run_game"],
        "{trace}"
    );

    // Instruction boundaries of a whole function, against objdump.
    let expected: Vec<u64> = listing(&session.path, "parse_options").iter().map(|(address, _)| *address).collect();
    let disassembly = session.ok("disassemble", json!({"addr": "parse_options", "count": expected.len()}));
    let got: Vec<u64> = disassembly["instructions"].as_array().unwrap().iter().map(|one| hex(&one["addr"])).collect();
    assert_eq!(got, expected);

    let modules = session.ok("list_modules", json!({}));
    let main: Vec<&Value> =
        modules["modules"].as_array().unwrap().iter().filter(|module| module["main"] == true).collect();
    let file = session.path.file_name().unwrap().to_str();
    assert_eq!((main.len(), &main[0]["name"], &main[0]["base"]), (1, &json!(file), &json!("0x400000")), "{modules}");
    session.finish();
}

fn others_are_served_while_one_waits(game: &str) {
    let mut session = Session::launch(game, &["--headless"]);
    let mut other = session.agent.connect();
    let waiting = session.client.send("continue_execution", json!({"timeout": 60}));
    wait_for("the wait", || (other.ok("get_status", json!({}))["waiting"] == true).then_some(()));
    let status = other.ok("get_status", json!({}));
    assert_eq!(status["status"], "running");
    other.ok("read_memory", json!({"addr": "g_state", "length": 4}));
    other.ok("set_breakpoint", json!({"addr": "on_focus_lost"}));
    other.ok("list_threads", json!({}));
    other.refused("get_registers", json!({}), "target_running");
    // On the same connection too.
    let asked = session.client.send("get_status", json!({}));
    assert_eq!(session.client.answer_to(asked).unwrap()["waiting"], true);
    let paused = other.ok("pause", json!({}));
    assert_eq!((&paused["status"], &paused["reason"]), (&json!("stopped"), &json!("pause")), "{paused}");
    let stop = session.client.answer_to(waiting).unwrap();
    assert_eq!((&stop["reason"], &stop["timed_out"]), (&json!("pause"), &json!(false)));
    assert_eq!(other.ok("pause", json!({}))["how"], "already_stopped");

    // A client that goes while it waits leaves no trace, and the program runs on.
    let mut lost = session.agent.connect();
    lost.send("continue_execution", json!({"timeout": 300}));
    wait_for("the wait", || (other.ok("get_status", json!({}))["waiting"] == true).then_some(()));
    drop(lost);
    wait_for("the wait to be forgotten", || (other.ok("get_status", json!({}))["waiting"] == false).then_some(()));
    assert_eq!(other.ok("get_status", json!({}))["status"], "running");
    // What it had set is still there.
    assert_eq!(other.ok("list_breakpoints", json!({}))["list"].as_array().unwrap().len(), 1);
    session.finish();
}

fn attached_and_let_go_unharmed(game: &str) {
    let mut outside = Game::start(game, &["--headless", "--threads", "4"]);
    let mut session = Session::attach(&outside);
    assert_eq!(
        (&session.start["attached"], &session.start["threads"], &session.start["reason"]),
        (&json!(true), &json!(5), &json!("attach"))
    );
    for name in ["game_frame", "worker_tick", "move_ball", "update_delta_time"] {
        session.ok("set_breakpoint", json!({"addr": name}));
    }
    if wine().is_some() {
        // Under Wine a thread at a watchpoint waits for itself for ever when another thread's breakpoint freezes the process
        // in the same moment, and the workers' breakpoint comes a thousand times per second. So first they, then the watchpoint.
        for _ in 0..50 {
            session.run();
        }
        session.ok("remove_breakpoint", json!({"addr": "worker_tick"}));
    }
    session.ok("set_watchpoint", json!({"addr": "g_frame_count"}));
    for _ in 0..50 {
        session.run();
    }
    let end = session.ok("detach", json!({}));
    assert_eq!(end["status"], "not_launched", "{end}");
    outside.is_unharmed("g_frame_count");
    // While it runs, too.
    session.ok("attach", outside.reference());
    session.ok("continue_execution", json!({"timeout": 0}));
    session.ok("detach", json!({}));
    outside.is_unharmed("g_frame_count");
    let Session { agent, .. } = session;
    agent.finish();
    outside.is_unharmed("g_frame_count");
    outside.finish();
}
