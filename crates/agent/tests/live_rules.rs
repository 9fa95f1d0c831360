//! What the agent decides when there is a choice: who may be launched, what becomes of one that runs already, conditions
//! that go bad, filters of watchpoints; and what others do to the program behind its back.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use common::{Agent, Game, Session, as_agent_sees, counter_register, hex, is_alive, native_pid, wait_for, wine};
use serde_json::json;
use std::path::PathBuf;
use std::process::Command;

macro_rules! both {
    ($($name:ident),+ $(,)?) => {
        mod bits64 { $(#[test] fn $name() { crate::$name("driftgame64"); })+ }
        mod bits32 { $(#[test] fn $name() { crate::$name("driftgame32"); })+ }
    };
}

both!(
    one_that_runs_already,
    a_condition_that_becomes_unreadable_stops,
    watchpoints_have_conditions_too,
    breakpoints_outlive_their_program,
    what_others_do_is_noticed,
    strange_parameters_harm_no_program,
    nothing_of_the_debugger_stays_in_the_program,
    only_what_lies_below_a_launch_root_is_launched,
);

/// The game under a path of its own, so that nobody else runs it.
struct Copy {
    folder: tempfile::TempDir,
    path: PathBuf,
}

impl Copy {
    fn of(game: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap().join(if wine().is_some() { "game.exe" } else { "game" });
        std::fs::copy(common::fixture(game), &path).unwrap();
        Self { folder, path }
    }

    fn start(&self) -> Game {
        Game::at(self.path.clone(), &["--headless"])
    }
}

fn one_that_runs_already(game: &str) {
    let copy = Copy::of(game);
    let path = as_agent_sees(&copy.path);
    let mut first = copy.start();
    let agent = Agent::start();
    let mut client = agent.connect();
    client.refused("launch", json!({"path": path, "if_running": "error"}), "already_running");
    let start = client.ok("launch", json!({"path": path, "args": ["--headless"]}));
    assert_eq!((&start["attached"], &start["reason"]), (&json!(true), &json!("attach")));
    // Wine's numbers are not Linux'.
    let pid = start["pid"].clone();
    assert!(wine().is_some() || pid == first.pid(), "{start}");
    client.refused("launch", json!({"path": path, "if_running": "start_new"}), "already_debugging");
    client.refused("attach", json!({"pid": pid}), "already_debugging");
    client.ok("detach", json!({}));
    first.is_unharmed("g_frame_count");

    let start = client.ok("launch", json!({"path": path, "args": ["--headless"], "if_running": "start_new"}));
    assert_eq!(start["attached"], false);
    assert_ne!(start["pid"], pid);
    client.ok("terminate", json!({}));

    // By name: the last part or all of it; several are one too many.
    assert_eq!(client.ok("attach", json!({"name": path}))["pid"], pid);
    client.ok("detach", json!({}));
    let second = copy.start();
    let error = client.call("attach", json!({"name": path})).unwrap_err();
    assert_eq!(error["code"], "ambiguous", "{error}");
    let pids = error["details"]["pids"].as_array().unwrap();
    assert!(pids.len() == 2 && pids.contains(&pid), "{error}");
    assert!(wine().is_some() || pids.contains(&json!(second.pid())), "{error}");
    assert_eq!(client.call("launch", json!({"path": path})).unwrap_err()["code"], "ambiguous");
    client.refused("attach", json!({"name": "no such program"}), "not_found");
    client.refused("attach", json!({"pid": 4_194_305}), "not_found");
    if wine().is_none() {
        client.refused("attach", json!({"pid": agent.pid()}), "permission_denied");
    }
    agent.finish();
    first.finish();
    second.finish();
}

fn a_condition_that_becomes_unreadable_stops(game: &str) {
    let mut session = Session::launch(game, &["--headless", "--spin-loop"]);
    let (address, register) = (session.symbol("hot_step"), counter_register(game));
    session.ok("set_breakpoint", json!({"addr": "hot_step"}));
    session.run();
    let count = session.register(register);
    // The register is no address; that it will be none at the next hit too cannot be known when this is set.
    let condition = json!({"memory": register, "size": 4, "op": "==", "value": 77});
    session.ok("set_breakpoint", json!({"addr": "hot_step", "condition": condition}));
    let stop = session.run_to(&format!("condition_unreadable@{address:#x}"));
    assert_eq!(session.register(register), count + 1, "{stop}");
    session.finish();
}

fn watchpoints_have_conditions_too(game: &str) {
    let mut session = Session::launch(game, &["--headless"]);
    let condition = json!({"memory": "g_frame_count", "op": "==", "value": 10});
    session.ok("set_watchpoint", json!({"addr": "g_frame_count", "condition": condition}));
    let stop = session.run_to("watchpoint@slot0");
    assert_eq!((session.variable("g_frame_count"), &stop["stop"]["watchpoints"][0]["hits"]), (10, &json!(1)), "{stop}");
    assert_eq!(hex(&stop["stop"]["watchpoints"][0]["old_value"]), 9, "{stop}");
    session.ok("remove_watchpoint", json!({"addr": "g_frame_count"}));
    session.ok("set_watchpoint", json!({"addr": "g_frame_count", "ignore_count": 5}));
    session.run_to("watchpoint@slot0");
    assert_eq!(session.variable("g_frame_count"), 16);
    // One byte of four: the second changes when the count passes 256.
    session.ok("remove_watchpoint", json!({"slot": 0}));
    let condition = json!({"memory": "g_frame_count+1", "size": 1, "op": "!=", "value": 0});
    session.ok("set_watchpoint", json!({"addr": "g_frame_count+1", "size": 1, "condition": condition}));
    session.run_to("watchpoint@slot0");
    assert_eq!(session.variable("g_frame_count"), 256);
    session.finish();
}

fn breakpoints_outlive_their_program(game: &str) {
    let mut session = Session::launch(game, &["--headless", "--frames", "2"]);
    let address = session.symbol("game_frame");
    session.ok("set_breakpoint", json!({"addr": "game_frame"}));
    session.ok("set_watchpoint", json!({"addr": "g_score"}));
    session.run_to(&format!("breakpoint@{address:#x}"));
    session.ok("terminate", json!({}));
    let list = session.ok("list_breakpoints", json!({}));
    assert_eq!((&list["breakpoints"], &list["list"][0]["pending"]), (&json!([]), &json!(true)), "{list}");
    let path = as_agent_sees(&session.path);
    let again = session.ok("launch", json!({"path": path, "args": ["--headless"], "if_running": "start_new"}));
    session.pid = native_pid(&again["pid"], &session.path);
    session.run_to(&format!("breakpoint@{address:#x}"));
    assert_eq!(session.ok("list_watchpoints", json!({}))["list"], json!([]));
    session.finish();
}

fn what_others_do_is_noticed(game: &str) {
    // Killed while it runs, and while it is stopped.
    for stopped in [false, true] {
        let mut session = Session::launch(game, &["--headless", "--threads", "2"]);
        session.run_for(0.1);
        if stopped {
            session.ok("pause", json!({}));
        }
        common::signal(session.pid, "KILL");
        let end = wait_for("its end", || {
            let status = session.ok("get_status", json!({}));
            (status["status"] == "exited").then_some(status)
        });
        assert_eq!(end["reason"], "exited", "{end}");
        assert!(wine().is_some() || end["exit_signal"] == "SIGKILL", "{end}");
        session.client.refused("step", json!({}), "target_exited");
        session.client.refused("read_memory", json!({"addr": "g_state", "length": 1}), "target_exited");
        session.finish();
    }

    // Ended by itself with a client waiting and breakpoints set, in the middle of steps.
    let mut session = Session::launch(game, &["--headless", "--frames", "1", "--exit-code", "4"]);
    session.ok("set_breakpoint", json!({"addr": "platform_exit"}));
    session.run();
    // Windows does more at the end of a program than can be stepped through in that time.
    let mut end = session.ok("step", json!({"count": if wine().is_some() { 1_000 } else { 10_000 }, "timeout": 60}));
    if wine().is_some() {
        assert_eq!(end["status"], "stopped", "{end}");
        end = session.run();
    }
    assert_eq!((&end["status"], &end["exit_code"]), (&json!("exited"), &json!(4)), "{end}");
    session.finish();
}

/// Under breakpoints.
fn job_control_stops_and_continues_it(game: &str) {
    let mut session = Session::launch(game, &["--headless"]);
    session.ok("set_breakpoint", json!({"addr": "game_frame", "ignore_count": 1_000_000}));
    session.run_for(0.2);
    common::signal(session.pid, "STOP");
    wait_for("it to rest", || {
        let before = session.variable("g_frame_count");
        std::thread::sleep(std::time::Duration::from_millis(100));
        (session.variable("g_frame_count") == before).then_some(())
    });
    common::signal(session.pid, "CONT");
    let before = session.variable("g_frame_count");
    wait_for("it to go on", || (session.variable("g_frame_count") > before + 2).then_some(()));
    session.finish();
}

fn strange_parameters_harm_no_program(game: &str) {
    let mut session = Session::launch(game, &["--headless", "--spin-loop"]);
    let address = session.symbol("hot_step");
    session.ok("set_breakpoint", json!({"addr": "hot_step"}));
    session.ok("set_watchpoint", json!({"addr": "g_score"}));
    session.run_to(&format!("breakpoint@{address:#x}"));
    let breakpoints = session.ok("list_breakpoints", json!({}))["list"].clone();
    let watchpoints = session.ok("list_watchpoints", json!({}))["list"].clone();
    let registers = session.ok("get_registers", json!({}));
    // Beside what is strange for anybody: places at the end of the address space, and things that this program has not.
    let mut strange = common::strange_parameters();
    let last = "0xffffffffffffffff";
    strange.extend([
        json!({"addr": last, "length": 16}),
        json!({"addr": last, "data": "AAAA"}),
        json!({"addr": last, "size": 1}),
        json!({"addr": last, "count": 10}),
        json!({"addr": "0xfffffffffffffff8", "size": 8}),
        json!({"addr": "hot_step-0xffffffffffffffff", "length": 4}),
        json!({"addr": "hot_step", "condition": {"memory": last, "size": 8, "op": "==", "value": 1}}),
        json!({"addr": "hot_step", "condition": {"register": "eax", "op": "==", "value": "0x1ffffffffffffffff"}}),
        json!({"addr": "g_score", "size": 4, "condition": {"memory": "0x10", "op": "==", "value": 1}}),
        json!({"thread": u32::MAX}),
        json!({"thread": u32::MAX, "limit": 1}),
        json!({"registers": {"eax": "0x1ffffffffffffffff"}}),
        json!({"registers": {"": 1}}),
        json!({"slot": 200}),
        json!({"mode": "over", "count": 10_001}),
        json!({"mode": "into", "timeout": 301}),
    ]);
    for op in wire::commands::OPERATIONS {
        for params in &strange {
            // Without parameters these do what they are for.
            if *params == json!({}) && ["detach", "terminate", "step"].contains(op) {
                continue;
            }
            if let Err(error) = session.client.call(op, params.clone()) {
                assert!(error["error"].as_str().is_some_and(|text| (1..5_000).contains(&text.len())), "{op}: {error}");
                assert!(error["code"] != "internal", "{op} {params}: {error}");
            }
        }
    }
    // Nothing of it has changed anything: not what is set, not where the program stands, not its code.
    assert_eq!(session.ok("list_breakpoints", json!({}))["list"], breakpoints);
    assert_eq!(session.ok("list_watchpoints", json!({}))["list"], watchpoints);
    assert_eq!(session.ok("get_registers", json!({})), registers);
    session.ok("remove_breakpoint", json!({"addr": "hot_step"}));
    let (start, text) = common::section(&session.path, ".text");
    assert!(common::peek(session.pid, start, text.len()) == text, "its code is not that of its file");
    session.run_for(0.2);
    session.finish();
}

fn nothing_of_the_debugger_stays_in_the_program(game: &str) {
    for options in [&[][..], &["--step-in-place"]] {
        let mut outside = Game::start(game, &["--headless", "--spin-loop", "--threads", "4"]);
        // Wine keeps stacks of threads that have ended, loads libraries for their end, and one thread was there for the
        // attaching. Code that is no file's it has none to leave.
        let ours = |line: &&str| {
            wine().is_none() || line.split(' ').nth(1).is_some_and(|rights| rights.contains('x') && !line.contains('/'))
        };
        let maps = || {
            let maps = std::fs::read_to_string(format!("/proc/{}/maps", outside.pid())).unwrap();
            maps.lines().filter(ours).map(str::to_owned).collect::<Vec<_>>()
        };
        wait_for("its threads", || (outside.variable("g_workers_started") == 4).then_some(()));
        let before = maps();
        let mut session = Session::attach_by(Agent::with(options), &outside);
        let never = json!({"register": counter_register(game), "op": "==", "value": "0xffffffff"});
        session.ok("set_breakpoint", json!({"addr": "hot_step", "condition": never}));
        session.ok("set_watchpoint", json!({"addr": "g_focus_lost_count", "size": 4}));
        session.run_for(0.3);
        session.ok("detach", json!({}));
        assert_eq!(maps(), before, "mappings, {options:?}");
        // Debug registers, of every thread.
        session.ok("attach", outside.reference());
        let threads = session.ok("list_threads", json!({}));
        for thread in threads["threads"].as_array().unwrap() {
            let registers = session.ok("get_registers", json!({"thread": thread["thread"], "sets": ["debug"]}));
            for name in ["dr0", "dr1", "dr2", "dr3"] {
                assert_eq!(hex(&registers["registers"][name]), 0, "{name} of {thread}");
            }
            assert_eq!(hex(&registers["registers"]["dr7"]) & 0xff, 0, "no slot is enabled: {registers}");
        }
        session.agent.finish();
        outside.is_unharmed("g_hot_count");
        outside.finish();
    }
}

fn only_what_lies_below_a_launch_root_is_launched(game: &str) {
    let (allowed, other) = (Copy::of(game), Copy::of(game));
    let agent = Agent::with(&["--launch-root", &as_agent_sees(allowed.folder.path())]);
    let mut client = agent.connect();
    let path = as_agent_sees(&other.path);
    let said = client.refused("launch", json!({"path": path}), "path_refused");
    assert!(said.contains(&path), "{said}");
    // Ways around: dots, and a link that leads out.
    let dots = allowed.path.parent().unwrap().join("..").join(other.path.strip_prefix("/tmp").unwrap_or(&other.path));
    assert!(client.call("launch", json!({"path": as_agent_sees(&dots)})).is_err());
    let link = allowed.path.with_file_name("link.exe");
    std::os::unix::fs::symlink(&other.path, &link).unwrap();
    client.refused("launch", json!({"path": as_agent_sees(&link)}), "path_refused");
    let start = client.ok("launch", json!({"path": as_agent_sees(&allowed.path), "args": ["--headless"]}));
    assert_eq!(start["reason"], "entry");
    let pid = native_pid(&start["pid"], &allowed.path);
    client.ok("terminate", json!({}));
    wait_for("its end", || (!is_alive(pid)).then_some(()));
    agent.finish();
}

/// What only Linux has: job control, scripts and rights of files, ELF libraries. Not run against the Windows agent.
mod linux {
    both!(job_control_stops_and_continues_it);

    #[test]
    fn what_cannot_be_launched_is_refused_in_words() {
        crate::what_cannot_be_launched_is_refused_in_words();
    }

    #[test]
    fn symbols_are_found_in_the_library_that_has_them() {
        crate::symbols_are_found_in_the_library_that_has_them();
    }
}

fn what_cannot_be_launched_is_refused_in_words() {
    let agent = Agent::start();
    let mut client = agent.connect();
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text");
    std::fs::write(&text, "hello").unwrap();
    let script = folder.path().join("script");
    std::fs::write(&script, "#!/bin/sh\nexit 0\n").unwrap();
    let not_executable = folder.path().join("game");
    std::fs::copy(common::fixture("driftgame64"), &not_executable).unwrap();
    for path in [&script, &text] {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    std::fs::set_permissions(&not_executable, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    client.refused("launch", json!({"path": "/nowhere/at/all"}), "not_found");
    client.refused("launch", json!({"path": folder.path().join("game"), "cwd": "/nowhere/at/all"}), "not_found");
    client.refused("launch", json!({"path": ""}), "invalid_params");
    client.refused("launch", json!({"path": text}), "unsupported_program");
    // A script is its interpreter.
    let start = client.ok("launch", json!({"path": script}));
    assert_eq!(start["path"], json!(PathBuf::from("/bin/sh").canonicalize().unwrap()));
    client.ok("terminate", json!({}));
    for path in [folder.path(), &not_executable] {
        let error = client.call("launch", json!({"path": path})).unwrap_err();
        assert!(error["code"] != "internal" && !error["error"].as_str().unwrap().is_empty(), "{error}");
    }
    let nul = client.call("launch", json!({"path": common::fixture("driftgame64"), "args": ["a\u{0}b"]})).unwrap_err();
    assert!(nul["code"] != "internal", "{nul}");
    assert_eq!(client.ok("get_status", json!({}))["status"], "exited");
    // What a program gets: arguments, folder, environment.
    let out = folder.path().join("out");
    let words = format!("echo \"$1|$PWD|$RETROSCOPE_WORD\" > {}; exit 3", out.display());
    client.ok(
        "launch",
        json!({"path": "/bin/sh", "args": ["-c", words, "sh", "a b"], "cwd": folder.path(), "if_running": "start_new",
               "env": {"RETROSCOPE_WORD": "w w"}}),
    );
    assert_eq!(client.ok("continue_execution", json!({"timeout": 30}))["exit_code"], 3);
    let place = folder.path().canonicalize().unwrap();
    assert_eq!(std::fs::read_to_string(out).unwrap(), format!("a b|{}|w w\n", place.display()));
    agent.finish();
}

fn symbols_are_found_in_the_library_that_has_them() {
    let agent = Agent::start();
    let mut client = agent.connect();
    client.ok("launch", json!({"path": "/bin/sh", "args": ["-c", "exit 0"], "if_running": "start_new"}));
    let modules = client.ok("list_modules", json!({}));
    let libc = modules["modules"]
        .as_array()
        .unwrap()
        .iter()
        .find(|module| module["name"].as_str().unwrap().starts_with("libc.so"))
        .unwrap();
    let path = PathBuf::from(libc["path"].as_str().unwrap());
    let table = common::output(Command::new("nm").args(["-D", "--defined-only"]).arg(&path));
    let line = table.lines().find(|line| line.contains(" getppid@")).unwrap();
    let value = u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap();
    let address = hex(&libc["base"]) + value;
    for spec in ["getppid", "libc.so.6!getppid", "LIBC.SO.6!getppid"] {
        let set = client.ok("set_breakpoint", json!({"addr": spec}));
        assert_eq!(hex(&set["breakpoint"]["addr"]), address, "{spec}: {set}");
    }
    let set = client.ok("set_breakpoint", json!({"addr": format!("libc.so.6+{value:#x}")}));
    assert_eq!(set["breakpoints"].as_array().unwrap().len(), 1, "{set}");
    client.ok("terminate", json!({}));
    agent.finish();
}
