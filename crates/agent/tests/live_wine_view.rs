//! One truth, two engines: a Windows program under Wine, seen by the Windows agent inside Wine and by the Linux agent from
//! outside. What both say of the same process must be the same.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use common::{Agent, Game, Session, as_agent_sees, encode_base64, hex, listing, output, symbol, wait_for, wine};
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Makes a test of each function for each build of the game.
macro_rules! both {
    ($($name:ident),+ $(,)?) => {
        mod bits64 { $(#[test]  fn $name() { super::$name("driftgame64"); })+ }
        mod bits32 { $(#[test]  fn $name() { super::$name("driftgame32"); })+ }
    };
}

both!(
    modules_and_names_are_the_same,
    registers_and_code_at_a_breakpoint_are_the_same,
    the_same_instruction_is_watched_writing_the_state,
    no_hit_is_lost_and_the_game_is_left_unharmed,
    threads_born_later_are_watched,
    names_of_a_file_are_addresses,
);

/// What each agent, one after the other, finds in the same running game; the Windows agent comes first.
fn seen_by_both(game: &mut Game, options: &[&str], mut look: impl FnMut(&mut Session) -> Value) -> [Value; 2] {
    [Agent::with(options), Agent::native(options)].map(|agent| {
        let mut session = Session::attach_by(agent, game);
        let seen = look(&mut session);
        session.ok("detach", json!({}));
        session.agent.finish();
        seen
    })
}

#[track_caller]
fn assert_same([windows, linux]: [Value; 2]) {
    assert_eq!(windows, linux, "Windows agent:\n{windows:#}\nLinux agent:\n{linux:#}");
}

/// The modules of the Windows program as `list_modules` shows them, by lower-case name: Windows does not keep the case.
fn windows_modules(session: &mut Session) -> Vec<Value> {
    let reply = session.ok("list_modules", json!({}));
    let modules = reply["modules"].as_array().unwrap().iter().filter(|module| module.get("host").is_none());
    modules
        .map(|module| {
            let name = module["name"].as_str().unwrap().to_lowercase();
            json!([name, module["base"], module["size"], module["main"]])
        })
        .collect()
}

fn modules_and_names_are_the_same(name: &str) {
    let mut game = Game::start(name, &["--headless"]);
    let file = format!("{name}.exe");
    let exports = [
        "ntdll!NtMapViewOfSection",
        "kernel32!Sleep",
        "KERNELBASE.DLL!CreateFileW",
        "user32!MessageBoxA",
        "LdrInitializeThunk",
    ];
    let stems = ["ntdll", "ntdll+0x10", "Kernel32.dll+0x1000", name, &format!("{}!main_loop+2", name.to_uppercase())];
    let seen = seen_by_both(&mut game, &[], |session| {
        let modules = windows_modules(session);
        assert_eq!(modules[0][0], file, "{modules:?}");
        assert!(modules.len() > 4, "{modules:?}");
        let code: Vec<Value> = exports
            .iter()
            .chain(&stems)
            .map(|addr| {
                let memory = session.ok("read_memory", json!({"addr": addr, "length": 16}));
                json!([addr, memory["addr"], memory["data"]])
            })
            .collect();
        let missing =
            session.client.refused("read_memory", json!({"addr": "kernel32!NoSuch", "length": 1}), "unknown_symbol");
        assert!(missing.contains("NoSuch"));
        let start = &session.start;
        let path = start["path"].as_str().unwrap().rsplit(['/', '\\']).next().unwrap().to_lowercase();
        json!({"modules": modules, "code": code, "path": path, "arch": start["arch"], "base": start["base"],
            "entry": start["entry"], "threads": start["threads"]})
    });
    assert_eq!(hex(&seen[1]["entry"]), symbol(&game.path, "_start"));
    let main_loop = seen[1]["code"].as_array().unwrap().last().unwrap()[1].clone();
    assert_eq!(hex(&main_loop), symbol(&game.path, "main_loop") + 2);
    assert_same(seen);

    // Wine's own libraries are there too, but not in the way.
    let agent = Agent::native(&[]);
    let mut client = agent.connect();
    // Windows' names are the same in any case of letters.
    let upper = as_agent_sees(&game.path).to_uppercase();
    client.ok("attach", json!({"name": upper}));
    let modules = client.ok("list_modules", json!({}));
    let list = modules["modules"].as_array().unwrap();
    let hosts: Vec<&str> =
        list.iter().filter(|module| module["host"] == true).filter_map(|module| module["name"].as_str()).collect();
    assert!(hosts.contains(&"ntdll.so") && hosts.iter().any(|name| name.starts_with("libc.so")), "{hosts:?}");
    assert!(list.iter().skip_while(|module| module.get("host").is_none()).all(|module| module["host"] == true));
    let so = list.iter().find(|module| module["name"] == "ntdll.so").unwrap();
    assert_eq!(client.ok("read_memory", json!({"addr": "ntdll.so", "length": 4}))["addr"], so["base"]);
    client.ok("detach", json!({}));
    agent.finish();
    game.is_unharmed("g_frame_count");
    game.finish();
}

/// The first argument of `hot_step`, in both calling conventions of Windows.
fn counter_register(name: &str) -> &'static str {
    if name.ends_with("64") { "rcx" } else { "ecx" }
}

fn registers_and_code_at_a_breakpoint_are_the_same(name: &str) {
    let mut game = Game::start(name, &["--headless", "--spin-loop"]);
    let counter = counter_register(name);
    let length = listing(&game.path, "hot_loop").len();
    let seen = seen_by_both(&mut game, &[], |session| {
        let at = session.symbol("hot_step");
        session.ok("set_breakpoint", json!({"addr": "hot_step"}));
        session.run_to(&format!("breakpoint@{at:#x}"));
        session.ok("set_registers", json!({"registers": {counter: 1000}}));
        let stop = session.run_to(&format!("breakpoint@{at:#x}"));
        assert_eq!(session.register(counter), 1001, "{stop}");
        let mut registers = session.ok("get_registers", json!({"sets": ["general", "segment", "x87", "sse"]}));
        if name.ends_with("64") {
            // A 64-bit Windows program knows nothing of this base; Linux' own part of the process has it.
            registers["registers"].as_object_mut().unwrap().remove("fs_base");
        }
        let code = session.ok("disassemble", json!({"addr": "hot_loop", "count": length}));
        let trace = session.ok("backtrace", json!({}));
        let steps: Vec<Value> = (0..3)
            .map(|_| {
                let step = session.ok("step", json!({"mode": "into"}));
                json!([step["pc"], step["reason"], step["stop"]["instruction"], step["stop"]["symbol"]])
            })
            .collect();
        let mut report = stop["stop"].clone();
        report.as_object_mut().unwrap().remove("hits");
        json!({"reason": stop["reason"], "pc": stop["pc"], "stop": report, "registers": registers["registers"],
            "flags": registers["flags"], "code": code["instructions"], "frames": trace["frames"], "steps": steps})
    });
    assert_eq!(hex(&seen[1]["registers"][counter]), 1001);
    assert_eq!(seen[1]["code"].as_array().unwrap().len(), length);
    assert_same(seen);
    game.finish();
}

fn the_same_instruction_is_watched_writing_the_state(name: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events");
    let mut events = std::fs::File::create(&path).unwrap();
    let mut game = Game::start(name, &["--headless", "--start", "playing", "--events", &as_agent_sees(&path)]);
    let playing = |game: &Game| wait_for("the game to be played", || (game.variable("g_state") == 1).then_some(()));
    playing(&game);
    let mut first = true;
    let pid = game.pid();
    let state = symbol(&game.path, "g_state");
    let seen = seen_by_both(&mut game, &[], |session| {
        if !std::mem::take(&mut first) {
            // The one before has left the game in its menu.
            session.ok("continue_execution", json!({"timeout": 0}));
            writeln!(events, "start").unwrap();
            wait_for("the game to be played", || (common::peek(pid, state, 4) == [1, 0, 0, 0]).then_some(()));
            session.ok("pause", json!({}));
        }
        session.ok("set_watchpoint", json!({"addr": "g_state"}));
        writeln!(events, "focus out\nfocus in").unwrap();
        let stop = session.run_to("watchpoint@slot0");
        let watch = &stop["stop"]["watchpoints"][0];
        assert_eq!((&watch["old_value"], &watch["new_value"]), (&json!("0x00000001"), &json!("0x00000000")), "{stop}");
        let location = watch["writer"]["location"].as_str().unwrap();
        assert!(location.starts_with("on_reactivate"), "{stop}");
        let trace = session.ok("backtrace", json!({"limit": 4}));
        let mut report = stop["stop"].clone();
        // Times and random numbers may lie in the registers.
        report.as_object_mut().unwrap().remove("registers");
        report.as_object_mut().unwrap().remove("notes");
        json!({"pc": stop["pc"], "stop": report, "frames": trace["frames"]})
    });
    assert_same(seen);
    game.is_unharmed("g_frame_count");
    game.finish();
}

fn no_hit_is_lost_and_the_game_is_left_unharmed(name: &str) {
    let mut game = Game::start(name, &["--headless", "--threads", "3"]);
    let mut session = Session::attach_by(Agent::native(&[]), &game);
    assert_eq!(session.start["threads"], 4, "{}", session.start);
    let at = session.symbol("update_delta_time");
    session.ok("set_breakpoint", json!({"addr": format!("{name}+{:#x}", at - 0x40_0000)}));
    session.ok("set_breakpoint", json!({"addr": "worker_tick", "ignore_count": 1_000_000_000}));
    session.run_to(&format!("breakpoint@{at:#x}"));
    let ticks = |session: &mut Session| -> u32 {
        session.read(json!("g_worker_ticks"), 12).chunks(4).map(|one| u32::from_le_bytes(one.try_into().unwrap())).sum()
    };
    let counted = |session: &mut Session, spec: &str| -> u64 {
        let list = session.ok("list_breakpoints", json!({}));
        let found = list["list"].as_array().unwrap().iter().find(|one| one["spec"] == spec).unwrap()["hits"].as_u64();
        found.unwrap()
    };
    let before = (session.variable("g_frame_count"), ticks(&mut session), counted(&mut session, "worker_tick"));
    for _ in 0..100 {
        let stop = session.run_to(&format!("breakpoint@{at:#x}"));
        assert_eq!(stop["stop"]["location"], format!("{name}.exe+{:#x}", at - 0x40_0000), "{stop}");
    }
    assert_eq!(session.variable("g_frame_count") - before.0, 100);
    let (ticked, hits) = (ticks(&mut session) - before.1, counted(&mut session, "worker_tick") - before.2);
    // Each of three workers may stand between its hit and its count, now and then.
    assert!(hits.abs_diff(u64::from(ticked)) <= 3 && hits > 0, "{hits} hits, {ticked} ticks");
    session.ok("detach", json!({}));
    session.agent.finish();
    game.is_unharmed("g_frame_count");
    game.finish();
}

fn threads_born_later_are_watched(name: &str) {
    let mut game = Game::start(name, &["--headless", "--thread-after", "6000"]);
    let mut session = Session::attach_by(Agent::native(&[]), &game);
    assert_eq!(session.variable("g_workers_started"), 0, "the worker came before the debugger");
    session.ok("set_watchpoint", json!({"addr": "g_worker_ticks"}));
    let first = session.start["thread"].clone();
    for tick in 1..=20 {
        let stop = session.run_to("watchpoint@slot0");
        let watch = &stop["stop"]["watchpoints"][0];
        assert_eq!(watch["new_value"], format!("{tick:#010x}"), "{stop}");
        assert!(watch["writer"]["location"].as_str().unwrap().starts_with("worker_tick"), "{stop}");
        assert_ne!(stop["thread"], first, "{stop}");
    }
    assert_eq!(session.ok("list_threads", json!({}))["threads"].as_array().unwrap().len(), 2);
    session.ok("detach", json!({}));
    session.agent.finish();
    game.is_unharmed("g_frame_count");
    game.finish();
}

fn names_of_a_file_are_addresses(name: &str) {
    let game = Game::start(name, &["--headless", "--spin-loop"]);
    let (step, hot) = (symbol(&game.path, "hot_step"), symbol(&game.path, "hot_loop"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("game.map");
    let map =
        format!("# exported\n{:x} fun_step\n{}.EXE+{:x} fun_loop\n", step + 1, name.to_uppercase(), hot - 0x40_0000);
    std::fs::write(&path, map).unwrap();
    for (agent, file) in [(true, as_agent_sees(&path)), (false, path.to_str().unwrap().to_owned())] {
        let options = ["--symbols", &file];
        let agent = if agent { Agent::with(&options) } else { Agent::native(&options) };
        let mut session = Session::attach_by(agent, &game);
        for (spec, at) in [("fun_step", step + 1), ("fun_loop+1", hot + 1)] {
            assert_eq!(hex(&session.ok("read_memory", json!({"addr": spec, "length": 1}))["addr"]), at, "{spec}");
        }
        // Its second instruction, whose nearest name is that of the file.
        let second = listing(&game.path, "hot_step")[1].0;
        session.ok("set_breakpoint", json!({"addr": format!("fun_step+{}", second - step - 1)}));
        let stop = session.run_to(&format!("breakpoint@{second:#x}"));
        assert!(stop["stop"]["symbol"].as_str().unwrap().starts_with("fun_step"), "{stop}");
        session.ok("detach", json!({}));
        session.agent.finish();
    }
    game.finish();
}

const PLUGIN: &str = r#"
volatile int counter = 5;
__declspec(dllexport) __attribute__((naked)) int tick(void)
{ __asm__("incl %0; movl %0, %%eax; ret" : "+m"(counter)); }
int __stdcall DllMain(void *module, unsigned reason, void *reserved)
{ if (reason == 1) tick(); return 1; }
"#;

const LOADS_PLUGIN: &str = r#"
__declspec(dllimport) void *__stdcall LoadLibraryA(const char *);
__declspec(dllimport) void *__stdcall GetProcAddress(void *, const char *);
__declspec(dllimport) void __stdcall Sleep(unsigned);
__declspec(dllimport) void __stdcall ExitProcess(unsigned);
volatile int g_frame_count = 1, g_hot_count, load;
void start(void)
{
    while (!load)
        Sleep(10);
    void *plugin = LoadLibraryA("plugin.dll");
    if (!plugin)
        ExitProcess(99);
    int (*tick)(void) = GetProcAddress(plugin, "tick"), last = 0;
    for (int i = 0; i < 4; i++)
        last = tick();
    ExitProcess(last);
}
"#;

/// Builds a program without a C library, at the address where others are.
fn build(folder: &Path, file: &str, source: &str, options: &[&str]) -> PathBuf {
    let (code, program) = (folder.join(format!("{file}.c")), folder.join(file));
    std::fs::write(&code, source).unwrap();
    let mut gcc = Command::new("i686-w64-mingw32-gcc");
    gcc.args(["-w", "-O1", "-nostdlib", "-Wl,--image-base,0x400000"]).args(options);
    output(gcc.arg("-o").arg(&program).arg(&code).arg("-lkernel32"));
    program
}

/// The library wants to be where the program is, so the loader moves it: after the debugger has been told of it, and before
/// its first instruction is executed.
#[test]

fn a_library_loaded_and_moved_later_has_its_breakpoints_32() {
    let folder = tempfile::tempdir().unwrap();
    build(folder.path(), "plugin.dll", PLUGIN, &["-shared", "-Wl,--dynamicbase", "-Wl,-e,_DllMain@12"]);
    let fixed = ["-mwindows", "-Wl,--disable-dynamicbase", "-Wl,--disable-reloc-section", "-Wl,-e,_start"];
    let path = build(folder.path(), "loads_plugin.exe", LOADS_PLUGIN, &fixed);
    let mut seen = Vec::new();
    for native in [false, true] {
        let mut command = Command::new(wine().unwrap());
        let mut program = Game::under_wine(path.clone(), command.arg(&path).current_dir(folder.path()));
        let agent = if native { Agent::native(&[]) } else { Agent::start() };
        let mut session = Session::attach_by(agent, &program);
        let breakpoint = session.ok("set_breakpoint", json!({"addr": "plugin!tick"}));
        assert_eq!(breakpoint["breakpoint"]["pending"], true, "{breakpoint}");
        session.ok("write_memory", json!({"addr": "load", "data": encode_base64(&[1])}));
        // Once in DllMain, four times by the program: from 5 on, one more each time.
        for _ in 0..5 {
            let stop = session.run();
            assert_eq!(
                (&stop["stop"]["symbol"], &stop["stop"]["location"]),
                (&json!("tick"), &json!("plugin.dll+0x1000")),
                "{stop}"
            );
            seen.push((native, stop["stop"]["instruction"].clone()));
        }
        let end = session.run();
        assert_eq!((&end["reason"], &end["exit_code"]), (&json!("exited"), &json!(10)), "{end}");
        assert_eq!(program.child.wait().unwrap().code(), Some(10));
        session.agent.finish();
    }
    let moved =
        |native: bool| seen.iter().filter(move |(by, _)| *by == native).map(|(_, code)| code).collect::<Vec<_>>();
    assert_eq!(moved(true), moved(false));
}
