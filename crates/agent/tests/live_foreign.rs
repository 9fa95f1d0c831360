//! Programs that nobody here wrote, and gdb as the judge of what the agent says.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use common::{Agent, Game, Session, hex, is_alive, status_field, wait_for};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Where a program of the system is, links resolved.
fn program(name: &str) -> PathBuf {
    let candidates = ["/usr/bin", "/bin", "/usr/local/bin"].map(|folder| PathBuf::from(folder).join(name));
    let found = candidates.iter().find_map(|path| path.canonicalize().ok());
    found.unwrap_or_else(|| panic!("{name} is not installed; `cargo xtask test` installs it"))
}

/// A Python that calls into libc twenty times a second, and prints a count of it.
fn python(script: &str) -> Game {
    let path = program("python3");
    Game::command(path.clone(), Command::new(path).args(["-u", "-c", script]))
}

const LOOP: &str = "import os, time\nwhile True:\n    os.getppid()\n    time.sleep(0.02)";

#[test]
fn python_is_attached_to_broken_into_watched_and_let_go() {
    let mut outside = python(LOOP);
    let mut session = Session::attach(&outside);
    let modules = session.ok("list_modules", json!({}));
    let names: Vec<&str> =
        modules["modules"].as_array().unwrap().iter().map(|module| module["name"].as_str().unwrap()).collect();
    assert!(names.iter().any(|name| name.starts_with("libc.so")), "{names:?}");

    let set = session.ok("set_breakpoint", json!({"addr": "getppid"}));
    let address = hex(&set["breakpoint"]["addr"]);
    let mut stack = 0;
    for _ in 0..5 {
        let stop = session.run_to(&format!("breakpoint@{address:#x}"));
        assert!(stop["stop"]["symbol"].as_str().unwrap().contains("getppid"), "{stop}");
        stack = session.register("rsp");
    }
    let out = session.ok("step", json!({"mode": "out"}));
    assert_eq!(session.register("rsp"), stack + 8, "the return address has been popped: {out}");
    // getppid gave its answer: this process.
    assert_eq!(session.register("rax"), u64::from(std::process::id()));

    // The slot of the return address is written by each call.
    session.ok("remove_breakpoint", json!({"addr": "getppid"}));
    session.ok("set_watchpoint", json!({"addr": format!("{stack:#x}"), "size": 8}));
    let stop = session.run_to("watchpoint@slot0");
    assert_ne!(stop["stop"]["watchpoints"][0]["attribution"], "unknown", "{stop}");
    session.ok("detach", json!({}));
    goes_on(&mut outside);
    session.agent.finish();
    outside.finish();
}

/// It lives, nobody traces it, and it uses the processor or sleeps as it did.
fn goes_on(game: &mut Game) {
    wait_for("the tracer to be gone", || (status_field(game.pid(), "TracerPid") == "0").then_some(()));
    let switches = |pid| status_field(pid, "voluntary_ctxt_switches").parse::<u64>().unwrap();
    let before = switches(game.pid());
    wait_for("it to go on", || (switches(game.pid()) > before + 3).then_some(()));
    assert_eq!(game.child.try_wait().unwrap(), None);
}

#[test]
fn a_dynamic_program_is_launched_at_its_loader_and_at_its_entry() {
    let agent = Agent::start();
    let mut client = agent.connect();
    let path = program("python3");
    let script = "import math, ctypes\nprint(ctypes.CDLL('libm.so.6').cos)\nraise SystemExit(11)";
    let launch =
        |stop_at: &str| json!({"path": path, "args": ["-c", script], "stop_at": stop_at, "if_running": "start_new"});
    let start = client.ok("launch", launch("loader"));
    assert_eq!(start["reason"], "loader", "{start}");
    let place = start["stop"]["location"].as_str().unwrap();
    assert!(place.starts_with("ld-linux"), "{start}");
    // What is not mapped yet is pending, and resolved when it comes.
    let pending = client.ok("set_breakpoint", json!({"addr": "libc.so.6!__libc_start_main"}));
    assert_eq!(pending["breakpoint"]["pending"], true);
    let stop = client.ok("continue_execution", json!({"timeout": 30}));
    assert!(stop["reason"].as_str().unwrap().starts_with("breakpoint@"), "{stop}");
    client.ok("terminate", json!({}));

    let start = client.ok("launch", launch("entry"));
    assert_eq!(start["reason"], "entry");
    let header = common::output(Command::new("readelf").arg("-h").arg(&path));
    let entry = header.lines().find_map(|line| line.trim().strip_prefix("Entry point address:")).unwrap().trim();
    let entry = u64::from_str_radix(entry.strip_prefix("0x").unwrap(), 16).unwrap();
    let base = if header.contains("DYN (") { hex(&start["base"]) } else { 0 };
    assert_eq!(hex(&start["pc"]), base + entry, "{start}");
    let modules = client.ok("list_modules", json!({}));
    assert!(modules["modules"].to_string().contains("libc.so"), "its libraries are mapped: {modules}");
    // A library that the script loads later on.
    for name in ["__libc_start_main", "libc.so.6!__libc_start_main"] {
        drop(client.call("remove_breakpoint", json!({"addr": name})));
    }
    let end = client.ok("continue_execution", json!({"timeout": 30}));
    assert_eq!((&end["status"], &end["exit_code"]), (&json!("exited"), &json!(11)), "{end}");
    agent.finish();
}

#[test]
fn a_library_loaded_later_brings_its_breakpoint_to_life() {
    let agent = Agent::start();
    let mut client = agent.connect();
    // Part of glibc on every system, and not used by Python itself.
    let script = "import ctypes\nctypes.CDLL('libresolv.so.2')['__p_class'](1)\nraise SystemExit(3)";
    client.ok("launch", json!({"path": program("python3"), "args": ["-S", "-c", script], "if_running": "start_new"}));
    assert!(!client.ok("list_modules", json!({})).to_string().contains("libresolv"));
    let set = client.ok("set_breakpoint", json!({"addr": "libresolv.so.2!__p_class"}));
    assert_eq!(set["breakpoint"]["pending"], true, "{set}");
    let stop = client.ok("continue_execution", json!({"timeout": 30}));
    assert!(stop["stop"]["symbol"].as_str().is_some_and(|symbol| symbol.contains("__p_class")), "{stop}");
    let list = client.ok("list_breakpoints", json!({}));
    assert_eq!(list["list"][0]["pending"], false, "{list}");
    client.ok("remove_breakpoint", json!({"addr": "libresolv.so.2!__p_class"}));
    let end = client.ok("continue_execution", json!({"timeout": 30}));
    assert_eq!(end["exit_code"], 3, "{end}");
    agent.finish();
}

#[test]
fn children_of_python_run_free_of_our_breakpoints() {
    let agent = Agent::start();
    let mut client = agent.connect();
    // fork, then vfork or posix_spawn by subprocess; each child calls getppid (and the shell its own code).
    let script = "import os, subprocess, sys\n\
        for n in range(20):\n    pid = os.fork()\n    if pid == 0:\n        os.getppid()\n        os._exit(7)\n    \
        if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 7: sys.exit(1)\n    os.getppid()\n\
        for n in range(10):\n    if subprocess.run(['/bin/sh', '-c', 'exit 6']).returncode != 6: sys.exit(2)\n    os.getppid()\n\
        sys.exit(42)";
    client.ok("launch", json!({"path": program("python3"), "args": ["-c", script], "if_running": "start_new"}));
    client.ok("set_breakpoint", json!({"addr": "getppid", "ignore_count": 1_000_000}));
    for name in ["waitpid", "read"] {
        client.ok("set_breakpoint", json!({"addr": format!("libc.so.6!{name}"), "ignore_count": 1_000_000}));
    }
    let end = client.ok("continue_execution", json!({"timeout": 60}));
    assert_eq!((&end["status"], &end["exit_code"]), (&json!("exited"), &json!(42)), "{end}");
    // The parent's 30 calls are counted, those of the 20 children are not.
    let list = client.ok("list_breakpoints", json!({}));
    let mine = list["list"].as_array().unwrap().iter().find(|one| one["spec"] == "getppid").unwrap();
    assert_eq!(mine["hits"], 30, "{list}");
    agent.finish();
}

#[test]
fn xterm_is_watched_in_its_window() {
    let display = std::env::var("DISPLAY").expect("this test needs a display; `cargo xtask test` starts one");
    let path = program("xterm");
    let mut command = Command::new(&path);
    command.env("DISPLAY", display).args([
        "-title",
        "retroscope test",
        "-e",
        "sh",
        "-c",
        "while :; do echo tick; sleep 0.1; done",
    ]);
    let mut outside = Game::command(path, &mut command);
    let mut session = Session::attach(&outside);
    // It may still be loading its libraries: the breakpoints are pending then.
    session.ok("set_breakpoint", json!({"addr": "libc.so.6!poll", "ignore_count": 3}));
    session.ok("set_breakpoint", json!({"addr": "libc.so.6!select", "ignore_count": 3}));
    let stop = session.run();
    assert!(["poll", "select"].iter().any(|name| stop["stop"]["symbol"].as_str() == Some(name)), "{stop}");
    session.ok("remove_breakpoint", json!({"addr": "libc.so.6!poll"}));
    session.ok("remove_breakpoint", json!({"addr": "libc.so.6!select"}));
    session.ok("continue_execution", json!({"timeout": 0.5}));
    // Its window comes a little later.
    let picture = wait_for("its window", || match session.client.call("screenshot", json!({})) {
        Ok(picture) => Some(picture),
        Err(error) if error["code"] == "no_window" => None,
        Err(error) => panic!("{error}"),
    });
    assert_eq!(picture["title"], "retroscope test", "{}", picture["title"]);
    let png = common::decode_base64(picture["png_base64"].as_str().unwrap());
    assert_eq!(png[..8], [0x89, b'P', b'N', b'G', 13, 10, 26, 10]);
    // Width and height in the IHDR chunk, big-endian from byte 16 on (PNG specification, 11.2.1).
    let number = |at: usize| u64::from(u32::from_be_bytes(png[at..at + 4].try_into().unwrap()));
    assert_eq!((number(16), number(20)), (picture["width"].as_u64().unwrap(), picture["height"].as_u64().unwrap()));
    session.ok("detach", json!({}));
    goes_on(&mut outside);
    session.agent.finish();
    outside.finish();
}

/// gdb, asked through its machine interface.
struct Gdb {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next: u32,
}

impl Gdb {
    fn start(path: &std::path::Path) -> Self {
        let mut child = Command::new("gdb")
            .args(["-nx", "-q", "--interpreter=mi3", "--args"])
            .arg(path)
            .args(["--headless", "--spin-loop"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut gdb = Self { child, input, output, next: 0 };
        for command in ["-gdb-set mi-async off", "-gdb-set disable-randomization on", "-gdb-set startup-with-shell off"]
        {
            gdb.ask(command);
        }
        gdb
    }

    /// Sends a command; gives its result line.
    fn ask(&mut self, command: &str) -> String {
        self.next += 1;
        writeln!(self.input, "{}{command}", self.next).unwrap();
        let start = format!("{}^", self.next);
        let line = self.line(|line| line.starts_with(&start));
        assert!(!line.starts_with(&format!("{start}error")), "gdb: {command}: {line}");
        line
    }

    fn line(&mut self, wanted: impl Fn(&str) -> bool) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "gdb ended");
            if wanted(&line) {
                return line;
            }
        }
    }

    /// Runs on until the program stops.
    fn run(&mut self, command: &str) {
        self.ask(command);
        self.line(|line| line.starts_with("*stopped"));
    }

    fn registers(&mut self, names: &[&str]) -> BTreeMap<String, u64> {
        let value = |gdb: &mut Self, name: &str| {
            gdb.next += 1;
            writeln!(gdb.input, "{}-interpreter-exec console \"p/x ${name}\"", gdb.next).unwrap();
            let line = gdb.line(|line| line.starts_with("~\"$"));
            let done = format!("{}^done", gdb.next);
            gdb.line(|line| line.starts_with(&done));
            let digits = line.split("0x").nth(1).unwrap().split('\\').next().unwrap();
            u64::from_str_radix(digits, 16).unwrap_or_else(|_| panic!("{line}"))
        };
        names.iter().map(|name| ((*name).to_owned(), value(self, name))).collect()
    }

    fn memory(&mut self, address: u64, length: usize) -> String {
        let line = self.ask(&format!("-data-read-memory-bytes {address:#x} {length}"));
        line.split("contents=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
    }
}

impl Drop for Gdb {
    fn drop(&mut self) {
        drop(writeln!(self.input, "-gdb-exit"));
        drop(self.child.wait());
    }
}

#[test]
fn fifty_stops_are_the_same_as_in_gdb_64() {
    same_as_gdb(
        "driftgame64",
        &[
            "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
            "r15", "rip", "eflags",
        ],
    );
}

#[test]
fn fifty_stops_are_the_same_as_in_gdb_32() {
    same_as_gdb("driftgame32", &["eax", "ebx", "ecx", "edx", "esi", "edi", "ebp", "esp", "eip", "eflags"]);
}

fn same_as_gdb(game: &str, names: &[&str]) {
    let mut session = Session::launch(game, &["--headless", "--spin-loop"]);
    let mut gdb = Gdb::start(&session.path);
    // Stops at a breakpoint, then steps through what follows it, over and over.
    gdb.ask("-break-insert *hot_step");
    gdb.run("-exec-run");
    session.ok("set_breakpoint", json!({"addr": "hot_step"}));
    session.run();
    // What is left in the registers from the start (the time, the stack's random place) is made the same: then all that
    // follows is computed by the program.
    let stack = if game.ends_with("64") { "rsp" } else { "esp" };
    let frame = if game.ends_with("64") { "rbp" } else { "ebp" };
    let theirs = gdb.registers(names);
    let (their_stack, our_stack) = (theirs[stack], session.register(stack));
    let mut same: BTreeMap<&str, String> = BTreeMap::new();
    for (name, value) in theirs.iter().filter(|(name, _)| ![stack, frame].contains(&name.as_str())) {
        let value = if value.abs_diff(their_stack) < 0x1_0000 { value - their_stack + our_stack } else { *value };
        same.insert(name, format!("{value:#x}"));
    }
    session.ok("set_registers", json!({"registers": same}));
    for stop in 0..50 {
        let theirs = gdb.registers(names);
        let ours = session.ok("get_registers", json!({"sets": ["general"]}));
        let ours = |name: &str| {
            let name = if name == "eflags" && ours["registers"].get("eflags").is_none() { "rflags" } else { name };
            hex(&ours["registers"][name])
        };
        for name in names {
            let (mine, other) = (ours(name), theirs[*name]);
            let same = if [stack, frame].contains(name) {
                mine.wrapping_sub(our_stack) == other.wrapping_sub(their_stack)
            } else if other.abs_diff(their_stack) < 0x1_0000 {
                // Another pointer into the stack.
                mine.wrapping_sub(our_stack) == other.wrapping_sub(their_stack)
            } else {
                mine == other
            };
            assert!(same, "stop {stop}: {name} is {mine:#x}, gdb says {other:#x}");
        }
        let (text, variables) = (session.symbol("hot_step"), 0x48_0000);
        for (address, length) in [(text - 16, 64), (variables, 64)] {
            let mine: String = session.read(json!(address), length).iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(mine, gdb.memory(address, length as usize), "stop {stop}: memory at {address:#x}");
        }
        let reply: Value = if stop % 5 == 4 {
            gdb.run("-exec-continue");
            session.run()
        } else {
            gdb.run("-exec-step-instruction");
            session.ok("step", json!({}))
        };
        assert_eq!(reply["status"], "stopped", "{reply}");
    }
    drop(gdb);
    let pid = session.pid;
    session.finish();
    assert!(!is_alive(pid));
}
