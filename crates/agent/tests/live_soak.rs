//! Long runs: a hundred thousand hits whose condition does not hold, ten thousand stops with eight threads, many programs
//! one after the other; and nothing grows or is left over. Under Wine, where a hit costs thirty times as much, a tenth of the hits.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use common::{
    Agent, Session, as_agent_sees, counter_register, hex, is_alive, native_pid, status_field, wait_for, wine,
};
use serde_json::json;

macro_rules! both {
    ($($name:ident),+ $(,)?) => {
        mod bits64 { $(#[test] fn $name() { crate::$name("driftgame64"); })+ }
        mod bits32 { $(#[test] fn $name() { crate::$name("driftgame32"); })+ }
    };
}

both!(hits_by_the_ten_thousand_pass_unnoticed, stops_by_the_thousand_with_eight_threads, programs_come_and_go);

fn hits_by_the_ten_thousand_pass_unnoticed(game: &str) {
    let hits = if wine().is_some() { 10_000 } else { 100_000 };
    let mut session = Session::launch(game, &["--headless", "--spin-loop"]);
    let register = counter_register(game);
    let condition = json!({"register": register, "op": "==", "value": hits});
    session.ok("set_breakpoint", json!({"addr": "hot_step", "condition": condition}));
    let stop = session.ok("continue_execution", json!({"timeout": 300}));
    // Had one hit been lost or counted twice, the loop would be at another number.
    assert_eq!((stop["stop"]["hits"].as_u64(), session.register(register)), (Some(1), hits), "{stop}");
    assert_eq!(u64::from(session.variable("g_hot_count")), hits);
    session.finish();
}

fn stops_by_the_thousand_with_eight_threads(game: &str) {
    let stops = if wine().is_some() { 1_000 } else { 10_000 };
    let mut session = Session::launch(game, &["--headless", "--threads", "8", "--spin"]);
    session.ok("set_breakpoint", json!({"addr": "worker_tick"}));
    let files = open_files(session.agent.pid());
    let mut per_thread = std::collections::BTreeMap::new();
    for number in 1..=stops {
        let stop = session.run();
        assert_eq!(stop["stop"]["hits"], number, "{stop}");
        *per_thread.entry(stop["thread"].as_u64().unwrap()).or_insert(0u64) += 1;
    }
    assert_eq!(per_thread.len(), 8, "{per_thread:?}");
    // Each stop is one tick, but of those that stand at the breakpoint now.
    let bytes = session.read(json!("g_worker_ticks"), 4 * 8);
    let ticks: u64 = bytes.chunks_exact(4).map(|tick| u64::from(u32::from_le_bytes(tick.try_into().unwrap()))).sum();
    assert!(ticks < stops && ticks + 8 >= stops, "{ticks} ticks");
    assert_no_more("descriptors of the agent", files, open_files(session.agent.pid()));
    session.finish();
}

fn programs_come_and_go(game: &str) {
    let agent = Agent::start();
    let mut client = agent.connect();
    let path = common::fixture(game);
    let seen = as_agent_sees(&path);
    let mut measured = None;
    for round in 0..if wine().is_some() { 100 } else { 60 } {
        let arguments = ["--headless", "--threads", "2", "--frames", "3", "--exit-code", "6"];
        let start = client.ok("launch", json!({"path": seen, "args": arguments, "if_running": "start_new"}));
        let pid = native_pid(&start["pid"], &path);
        client.ok("set_breakpoint", json!({"addr": "game_frame"}));
        // Wine loses events of one in some hundred programs with debug registers.
        if wine().is_none() {
            client.ok("set_watchpoint", json!({"addr": "g_frame_count"}));
        }
        let stop = client.ok("continue_execution", json!({"timeout": 30}));
        assert_eq!(hex(&stop["pc"]), common::symbol(&path, "game_frame"), "round {round}: {stop}");
        match round % 3 {
            0 => drop(client.ok("terminate", json!({}))),
            1 => drop(client.ok("detach", json!({}))),
            _ => {
                client.ok("remove_breakpoint", json!({"addr": "game_frame"}));
                if wine().is_none() {
                    client.ok("remove_watchpoint", json!({"slot": 0}));
                }
                assert_eq!(client.ok("continue_execution", json!({"timeout": 30}))["exit_code"], 6);
            }
        }
        wait_for("the program's end", || (!is_alive(pid)).then_some(()));
        // Under Wine it is no child of the agent's.
        assert!(wine().is_some() || status_field(pid, "State").is_empty() || round % 3 == 1, "a zombie is left");
        let now = (open_files(agent.pid()), threads(agent.pid()));
        // After the first rounds everything that is made once has been made.
        if round == 5 {
            measured = Some(now);
        } else if round > 5 {
            let (files, threads) = measured.unwrap();
            assert_no_more("descriptors of the agent", files, now.0);
            assert_no_more("threads of the agent", threads, now.1);
        }
    }
    agent.finish();
}

/// Wine makes some descriptors and threads of its own when it first needs them; one per round would be many more.
#[track_caller]
fn assert_no_more(what: &str, before: usize, now: usize) {
    if wine().is_some() {
        assert!(now <= before + 10, "{what}: {before}, then {now}");
    } else {
        assert_eq!(before, now, "{what}");
    }
}

fn open_files(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

fn threads(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().count()
}
