//! Signals, other programs, children and ends: what happens to the debugged program when something else happens to it, to
//! the agent or to the client.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use common::{Agent, Game, Session, counter_register, hex, is_alive, status_field, wait_for, wine};
use serde_json::json;
use std::time::Duration;

macro_rules! both {
    ($($name:ident),+ $(,)?) => {
        mod bits64 { $(#[test] fn $name() { crate::$name("driftgame64"); })+ }
        mod bits32 { $(#[test] fn $name() { crate::$name("driftgame32"); })+ }
    };
}

both!(
    an_int3_of_its_own_is_its_own,
    the_first_thread_may_end,
    left_stopped_it_is_let_go,
    the_end_of_the_agent_does_what_was_said,
    the_agent_may_end_at_any_moment,
    a_killed_agent_does_what_is_documented,
);

/// What only Linux has: signals, `execve`, `fork`. Not run against the Windows agent.
mod linux {
    both!(
        signals_of_its_own_reach_the_program,
        a_fatal_signal_stops_first,
        it_becomes_another_program,
        children_are_not_harmed,
    );
}

fn signals_of_its_own_reach_the_program(game: &str) {
    let mut session = Session::launch(game, &["--headless", "--signals", "500"]);
    // Breakpoints and their steps are in the way all the time.
    session.ok("set_breakpoint", json!({"addr": "handle_alarm", "ignore_count": 1_000_000}));
    session.ok("set_breakpoint", json!({"addr": "platform_now_us", "ignore_count": 1_000_000}));
    session.run_for(1.0);
    let paused = session.ok("pause", json!({}));
    assert_eq!(paused["reason"], "pause");
    let alarms = u64::from(session.variable("g_alarms"));
    let list = session.ok("list_breakpoints", json!({}));
    let handled = list["list"].as_array().unwrap().iter().find(|one| one["spec"] == "handle_alarm").unwrap();
    let hits = handled["hits"].as_u64().unwrap();
    // One may stand in the handler, before it has counted.
    assert!(hits == alarms || hits == alarms + 1, "{hits} hits, {alarms} alarms");
    assert!(alarms > 50, "{alarms}");
    // Stepping with signals about.
    session.ok("step", json!({"count": 500}));
    session.finish();

    // Faults that the program handles do not stop it.
    for crash in ["segv", "fpe"] {
        let mut session = Session::launch(game, &["--headless", "--crash", crash, "--crash-after", "20", "--handle"]);
        session.run_for(0.7);
        assert!(session.variable("g_handled_signals") > 3, "{crash}");
        session.finish();
    }
}

fn a_fatal_signal_stops_first(game: &str) {
    for (crash, signal, function) in
        [("segv", "SIGSEGV", "crash_segv"), ("fpe", "SIGFPE", "crash_fpe"), ("abort", "SIGABRT", "system_call")]
    {
        let mut session = Session::launch(game, &["--headless", "--crash", crash, "--crash-after", "20"]);
        let stop = session.run_to(&format!("signal {signal}"));
        assert_eq!(stop["stop"]["exception"]["name"], signal, "{stop}");
        assert!(stop["stop"]["symbol"].as_str().unwrap().starts_with(function), "{stop}");
        if crash == "segv" {
            assert_eq!(stop["stop"]["exception"]["address"], "0x0", "{stop}");
        }
        // It can be looked at, and then it ends by that.
        session.ok("backtrace", json!({}));
        let end = session.run();
        assert_eq!((&end["status"], &end["exit_signal"]), (&json!("exited"), &json!(signal)), "{end}");
        session.finish();
    }
}

fn an_int3_of_its_own_is_its_own(game: &str) {
    let mut session = Session::launch(game, &["--headless", "--crash", "int3", "--crash-after", "20", "--handle"]);
    // Not in the handler itself: the kernel resets a handler whose signal comes while it is blocked.
    session.ok("set_breakpoint", json!({"addr": "crash_int3", "ignore_count": 3}));
    let crash = session.symbol("crash_int3");
    session.run_to(&format!("breakpoint@{crash:#x}"));
    assert_eq!(session.variable("g_handled_signals"), 3);
    session.ok("remove_breakpoint", json!({"addr": "crash_int3"}));
    session.run_for(0.3);
    assert!(session.variable("g_handled_signals") > 5);
    // In its place one of ours: both are seen.
    session.ok("pause", json!({}));
    session.ok("set_breakpoint", json!({"addr": format!("{:#x}", int3_of(&session.path))}));
    let at = int3_of(&session.path);
    session.run_to(&format!("breakpoint@{at:#x}"));
    let before = session.variable("g_handled_signals");
    for _ in 0..2 {
        session.run_to(&format!("breakpoint@{at:#x}"));
    }
    assert_eq!(session.variable("g_handled_signals"), before + 2);
    session.finish();

    let mut session = Session::launch(game, &["--headless", "--crash", "int3", "--crash-after", "20"]);
    if wine().is_some() {
        session.run_to("signal EXCEPTION_BREAKPOINT");
        // STATUS_BREAKPOINT
        assert_eq!(session.run()["exit_code"], 0x8000_0003u32);
    } else {
        session.run_to("signal SIGTRAP");
        assert_eq!(session.run()["exit_signal"], "SIGTRAP");
    }
    session.finish();
}

/// Where the game has an INT3 of its own, as objdump says.
fn int3_of(path: &std::path::Path) -> u64 {
    common::listing(path, "crash_int3").iter().find(|(_, code)| code == "int3").unwrap().0
}

fn it_becomes_another_program(game: &str) {
    for other in ["driftgame64", "driftgame32"] {
        let other_path = common::fixture(other);
        let arguments = [
            "--headless",
            "--exec",
            other_path.to_str().unwrap(),
            "--exec-after",
            "50",
            "--threads",
            "3",
            "--",
            "--headless",
            "--frames",
            "20",
            "--exit-code",
            "9",
        ];
        let mut session = Session::launch(game, &arguments);
        session.ok("set_breakpoint", json!({"addr": "start_game"}));
        session.ok("set_watchpoint", json!({"addr": "g_score"}));
        session.ok("remove_watchpoint", json!({"slot": 0}));
        session.ok("set_watchpoint", json!({"addr": "g_focus_lost_count"}));
        let stop = session.run_to("exec");
        assert!(!stop["stop"]["notes"].as_array().unwrap().is_empty(), "the watchpoint is gone: {stop}");
        assert_eq!(session.ok("list_watchpoints", json!({}))["list"], json!([]));
        let status = session.ok("get_status", json!({}));
        assert_eq!(status["path"], json!(other_path), "{status}");
        assert_eq!(status["arch"], if other.ends_with("64") { "x86_64" } else { "x86" });
        assert_eq!(status["threads"], 1);
        // The breakpoint by name is found again in the new program: stop before the frames are over.
        session.ok("set_breakpoint", json!({"addr": "game_frame"}));
        let stop = session.run();
        assert_eq!(hex(&stop["pc"]), common::symbol(&other_path, "game_frame"), "{stop}");
        session.ok("remove_breakpoint", json!({"addr": "game_frame"}));
        let end = session.run();
        assert_eq!(end["exit_code"], 9, "{end}");
        session.finish();
    }
}

fn children_are_not_harmed(game: &str) {
    let mut session = Session::launch(game, &["--headless", "--fork-every", "20"]);
    // The child goes through this at once; with our byte left in its copy a signal would end it.
    session.ok("set_breakpoint", json!({"addr": "platform_exit"}));
    session.ok("set_breakpoint", json!({"addr": "system_call", "ignore_count": 1_000_000}));
    session.ok("set_watchpoint", json!({"addr": "g_forks"}));
    let stop = session.run_to("watchpoint@slot0");
    assert!(stop["stop"]["watchpoints"][0]["writer"]["location"].as_str().unwrap().starts_with("fork_once"), "{stop}");
    session.ok("remove_watchpoint", json!({"slot": 0}));
    session.run_for(1.0);
    session.ok("pause", json!({}));
    let (forks, reaped) = (session.variable("g_forks"), session.variable("g_reaped"));
    assert!(forks > 5 && reaped + 2 >= forks, "{forks} forked, {reaped} reaped");
    session.finish();
}

fn the_first_thread_may_end(game: &str) {
    let mut session = Session::launch(game, &["--headless", "--leader-exits", "--frames", "200", "--exit-code", "5"]);
    let address = session.symbol("game_frame");
    session.run_for(0.2);
    wait_for("the leader's end", || (status_field(session.pid, "State").starts_with('Z')).then_some(()));
    session.ok("set_breakpoint", json!({"addr": "game_frame", "one_shot": true}));
    let stop = session.run_to(&format!("breakpoint@{address:#x}"));
    assert_ne!(stop["thread"], session.start["thread"]);
    session.ok("step", json!({"count": 10}));
    session.ok("read_memory", json!({"addr": "g_state", "length": 4}));
    session.ok("list_modules", json!({}));
    session.run_for(0.2);
    assert_eq!(session.ok("pause", json!({}))["reason"], "pause");
    if wine().is_some() {
        session.ok("detach", json!({}));
        session.ok("attach", json!({"pid": session.start["pid"]}));
        session.ok("set_breakpoint", json!({"addr": "game_frame", "one_shot": true}));
        session.run_to(&format!("breakpoint@{address:#x}"));
    }
    let end = session.run();
    assert_eq!((&end["status"], &end["exit_code"]), (&json!("exited"), &json!(5)), "{end}");
    session.finish();
    if wine().is_some() {
        return;
    }

    // Attached to when its first thread is a zombie already.
    let mut outside = Game::start(game, &["--headless", "--leader-exits"]);
    wait_for("the leader's end", || (status_field(outside.pid(), "State").starts_with('Z')).then_some(()));
    let mut session = Session::attach(&outside);
    session.ok("set_breakpoint", json!({"addr": "game_frame"}));
    session.run_to(&format!("breakpoint@{address:#x}"));
    session.ok("detach", json!({}));
    session.agent.finish();
    outside.child.kill().unwrap();
    outside.child.wait().unwrap();
}

fn left_stopped_it_is_let_go(game: &str) {
    let mut outside = Game::start(game, &["--headless"]);
    let mut session = Session::attach_by(Agent::with(&["--orphan-after", "1"]), &outside);
    session.ok("set_breakpoint", json!({"addr": "game_frame"}));
    session.run();
    // With a client it may stay stopped.
    std::thread::sleep(Duration::from_millis(1_500));
    assert_eq!(session.ok("get_status", json!({}))["status"], "stopped");
    let Session { agent, client, .. } = session;
    drop(client);
    outside.is_unharmed("g_frame_count");
    let status = agent.connect().ok("get_status", json!({}));
    assert_eq!(status["status"], "not_launched", "{status}");
    agent.finish();
    outside.finish();

    // A program that runs is none: nobody needs to be there for it.
    let mut session = Session::launch_by(Agent::with(&["--orphan-after", "1"]), game, &["--headless"]);
    session.ok("continue_execution", json!({"timeout": 0}));
    let Session { agent, client, path, pid, start } = session;
    drop(client);
    std::thread::sleep(Duration::from_millis(1_500));
    let client = agent.connect();
    let mut session = Session { agent, client, path, pid, start };
    assert_eq!(session.ok("get_status", json!({}))["status"], "running");
    session.finish();
}

fn the_end_of_the_agent_does_what_was_said(game: &str) {
    for (options, goes_on) in [(vec![], true), (vec!["--on-exit", "detach"], true), (vec!["--on-exit", "kill"], false)]
    {
        // Starting programs takes its time there, and these words are the default.
        if wine().is_some() && options.last() == Some(&"detach") {
            continue;
        }
        for stopped in [true, false] {
            let mut session = Session::launch_by(Agent::with(&options), game, &["--headless"]);
            session.ok("set_breakpoint", json!({"addr": "game_frame"}));
            session.run();
            if !stopped {
                session.ok("remove_breakpoint", json!({"addr": "game_frame"}));
                session.ok("continue_execution", json!({"timeout": 0}));
            }
            let Session { agent, pid, .. } = session;
            agent.finish();
            if goes_on {
                assert!(is_alive(pid), "{options:?}");
                wait_for("the tracer to be gone", || (status_field(pid, "TracerPid") == "0").then_some(()));
                common::signal(pid, "KILL");
            }
            wait_for("its end", || (!is_alive(pid)).then_some(()));
        }
        // One that was attached to goes on in any case.
        let mut outside = Game::start(game, &["--headless"]);
        let session = Session::attach_by(Agent::with(&options), &outside);
        session.agent.finish();
        outside.is_unharmed("g_frame_count");
        outside.finish();
    }
}

fn the_agent_may_end_at_any_moment(game: &str) {
    let mut arguments = vec!["--headless", "--spin-loop", "--threads", "4"];
    if wine().is_none() {
        arguments.extend(["--signals", "100"]);
    }
    let mut outside = Game::start(game, &arguments);
    // Half of the hundred points for each build. The moments are spread over what an agent does first of all and then again
    // and again: attaching, planting, false hits in scratch pages, stops, steps, watchpoint traps; a different part of the
    // work each time, on any machine. Under Wine all of it is slower, and debug registers lose events.
    let (rounds, apart) =
        if wine().is_some() { (20, Duration::from_millis(20)) } else { (50, Duration::from_micros(1_013)) };
    for round in 0..rounds {
        let mut agent = if round % 3 == 2 { Agent::with(&["--step-in-place"]) } else { Agent::start() };
        let mut client = agent.connect();
        client.send("attach", outside.reference());
        let never = json!({"register": counter_register(game), "op": "==", "value": "0xffffffff"});
        client.send("set_breakpoint", json!({"addr": "hot_step", "condition": never}));
        client.send("set_breakpoint", json!({"addr": "worker_tick", "ignore_count": round * 7}));
        if wine().is_none() {
            client.send("set_watchpoint", json!({"addr": "g_alarms"}));
        }
        for _ in 0..10 {
            client.send("continue_execution", json!({"timeout": 0.02}));
            client.send("step", json!({"count": 50, "timeout": 1}));
        }
        std::thread::sleep(apart * round);
        agent.ask_to_end();
        assert_eq!(agent.wait().code(), Some(0), "round {round}");
        outside.is_unharmed("g_hot_count");
    }
    // Wine has threads of its own in every program, and a debugger's attaching makes one more for a moment.
    if wine().is_none() {
        let workers = outside.variable("g_workers_started");
        assert_eq!(status_field(outside.pid(), "Threads"), (workers + 1).to_string(), "every thread lives");
    }
    outside.finish();
}

/// What docs/agent-protocol.md says about SIGKILL.
fn a_killed_agent_does_what_is_documented(game: &str) {
    // A launched program ends with it where that was asked for, stopped or not.
    for stopped in [true, false] {
        let mut session = Session::launch_by(Agent::with(&["--on-exit", "kill"]), game, &["--headless"]);
        if !stopped {
            session.ok("continue_execution", json!({"timeout": 0}));
        }
        let Session { mut agent, pid, .. } = session;
        agent.signal("KILL");
        agent.wait();
        wait_for("its end", || (!is_alive(pid)).then_some(()));
    }

    // Any other goes on, even from a stop, when no breakpoint is set,
    let mut outside = Game::start(game, &["--headless"]);
    let mut session = Session::attach(&outside);
    if wine().is_none() {
        session.ok("set_watchpoint", json!({"addr": "g_forks"}));
    }
    session.ok("continue_execution", json!({"timeout": 0}));
    session.agent.signal("KILL");
    session.agent.wait();
    outside.is_unharmed("g_frame_count");
    if wine().is_some() {
        return outside.finish();
    }

    // and ends by SIGTRAP at the first breakpoint byte left in it; or, killed in the moment of a hit, when the program counter
    // was behind that byte, by what it finds there.
    let mut session = Session::attach(&outside);
    session.ok("set_breakpoint", json!({"addr": "game_frame", "ignore_count": 1_000_000}));
    session.ok("continue_execution", json!({"timeout": 0}));
    session.agent.signal("KILL");
    session.agent.wait();
    let status = wait_for("its end", || outside.child.try_wait().unwrap());
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    assert!(matches!(signal, Some(nix::libc::SIGTRAP | nix::libc::SIGSEGV | nix::libc::SIGILL)), "{status}");
}
