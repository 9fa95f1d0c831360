//! What the Windows agent promises beyond what it has in common with the one for Linux: exceptions, exit codes, programs it
//! cannot debug, pictures; and a program that no one here wrote.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use common::{Agent, Game, Session, as_agent_sees, decode_base64, fixture, hex, wait_for};
use serde_json::{Value, json};
use std::path::PathBuf;

const GAME: &str = "driftgame32";

fn is_32_bit_agent() -> bool {
    std::env::var("RETROSCOPE_TEST_AGENT").unwrap().contains("i686")
}

#[test]
fn exceptions_of_its_own_reach_the_program() {
    for (crash, place) in [("segv", "segv_instruction"), ("fpe", "fpe_instruction"), ("int3", "crash_int3")] {
        let mut session = Session::launch(GAME, &["--headless", "--crash", crash, "--crash-after", "20", "--handle"]);
        // Breakpoints and their steps are in the way all the time.
        session.ok("set_breakpoint", json!({"addr": "crash_now", "ignore_count": 1_000_000}));
        session.ok("set_breakpoint", json!({"addr": place, "ignore_count": 1_000_000}));
        session.run_for(1.0);
        session.ok("pause", json!({}));
        let handled = u64::from(session.variable("g_handled_signals"));
        let list = session.ok("list_breakpoints", json!({}));
        let hits = list["list"][0]["hits"].as_u64().unwrap();
        assert!(hits == handled || hits == handled + 1, "{crash}: {hits} hits, {handled} handled");
        assert!(handled > 3, "{crash}: {handled}");
        session.finish();
    }
}

#[test]
fn an_unhandled_exception_stops_and_is_the_exit_code() {
    // Codes of winnt.h; an uncaught C++ exception is 0xE06D7363.
    for (crash, name, code) in [
        ("segv", "EXCEPTION_ACCESS_VIOLATION", 0xc000_0005u32),
        ("fpe", "EXCEPTION_INT_DIVIDE_BY_ZERO", 0xc000_0094),
        ("abort", "C++ exception", 0xe06d_7363),
    ] {
        let mut session = Session::launch(GAME, &["--headless", "--crash", crash, "--crash-after", "20"]);
        let stop = session.run_to(&format!("signal {name}"));
        assert_eq!(stop["stop"]["exception"]["number"], code, "{stop}");
        if crash == "segv" {
            assert_eq!(stop["stop"]["exception"]["address"], "0x0", "{stop}");
            assert!(stop["stop"]["symbol"].as_str().unwrap().contains("segv"), "{stop}");
        }
        session.ok("backtrace", json!({}));
        let end = session.run();
        assert_eq!((&end["status"], &end["exit_code"]), (&json!("exited"), &json!(code)), "{end}");
        session.finish();
    }
}

#[test]
fn what_the_program_tells_its_debugger_is_told() {
    let mut session = Session::launch(GAME, &["--headless"]);
    session.ok("set_breakpoint", json!({"addr": "game_frame"}));
    session.run();
    let status = session.ok("get_status", json!({}));
    let said = status["debug_output"][0].as_str().unwrap();
    assert!(said.starts_with("driftgame pid=") && said.ends_with("mode=headless arch=i386\n"), "{status}");
    session.finish();
}

#[test]
fn what_cannot_be_debugged_is_refused_in_words() {
    let agent = Agent::start();
    let mut client = agent.connect();
    let folder = tempfile::tempdir().unwrap();
    let launch = |path: &PathBuf| json!({"path": as_agent_sees(path), "if_running": "start_new"});
    client.refused("launch", launch(&folder.path().join("nothing.exe")), "not_found");
    let file = folder.path().join("game.exe");
    let whole = std::fs::read(fixture(GAME)).unwrap();
    let mut other_processor = whole.clone();
    let headers = u32::from_le_bytes(whole[0x3c..0x40].try_into().unwrap()) as usize;
    // IMAGE_FILE_MACHINE_ARMNT
    other_processor[headers + 4..headers + 6].copy_from_slice(&0x01c4u16.to_le_bytes());
    for (bytes, reason) in [
        (&b"hello"[..], "does not begin like a Windows program"),
        (&[], "does not begin like a Windows program"),
        (&b"MZ\x90\0\x03\0\0\0"[..], "DOS"),
        (&whole[..headers + 30], "damaged"),
        (&other_processor, "another processor"),
    ] {
        std::fs::write(&file, bytes).unwrap();
        let said = client.refused("launch", launch(&file), "unsupported_program");
        assert!(said.contains(reason), "{said}");
    }
    // Headers alone, with nothing behind: Windows refuses it, whatever it says.
    std::fs::write(&file, &whole[..0x400]).unwrap();
    let error = client.call("launch", launch(&file)).unwrap_err();
    assert!(["unsupported_program", "launch_failed"].contains(&error["code"].as_str().unwrap()), "{error}");
    if is_32_bit_agent() {
        let said = client.refused("launch", launch(&fixture("driftgame64")), "unsupported_program");
        assert!(said.contains("64-bit") && said.contains("x86_64"), "{said}");
    }
    assert_eq!(client.ok("get_status", json!({}))["status"], "not_launched");
    agent.finish();
}

#[test]
fn a_path_may_have_spaces_and_letters_of_all_kinds() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("Jeux rétro Ж");
    std::fs::create_dir(&place).unwrap();
    let path = place.join("drift game é.exe");
    std::fs::copy(fixture(GAME), &path).unwrap();
    let agent = Agent::start();
    let mut client = agent.connect();
    let seen = as_agent_sees(&path);
    let start = client.ok(
        "launch",
        json!({"path": seen, "args": ["--headless", "--frames", "1", "--exit-code", "9"], "if_running": "start_new"}),
    );
    assert_eq!((&start["reason"], &start["path"]), (&json!("entry"), &json!(seen)), "{start}");
    assert_eq!(client.ok("continue_execution", json!({"timeout": 30}))["exit_code"], 9);
    agent.finish();
}

#[test]
fn one_that_ends_at_once_and_one_with_a_debugger_already() {
    let mut session = Session::launch(GAME, &["--no-such-option"]);
    assert_eq!(session.run()["exit_code"], 2);
    session.finish();

    let mut session = Session::launch(GAME, &["--headless"]);
    let other = Agent::start();
    let pid = session.start["pid"].clone();
    let said = other.connect().refused("attach", json!({"pid": pid}), "permission_denied");
    assert!(said.contains("already debugged"), "{said}");
    other.finish();
    session.run_for(0.2);
    session.finish();
}

#[test]
fn one_that_debugs_itself() {
    // It counts once its second process, which has its name too, is its debugger.
    let mut game = Game::start("selfdebug", &[]);
    let path = as_agent_sees(&game.path);
    let agent = Agent::start();
    let mut client = agent.connect();
    let error = client.call("attach", json!({"name": path})).unwrap_err();
    assert_eq!(error["code"], "ambiguous", "{error}");
    let pids = error["details"]["pids"].as_array().unwrap();
    assert_eq!(pids.len(), 2, "{error}");
    let mut refused = Vec::new();
    for pid in pids {
        match client.call("attach", json!({"pid": pid})) {
            // The debugger is a program like any other.
            Ok(_) => drop(client.ok("detach", json!({}))),
            Err(error) => refused.push(error),
        }
    }
    let [error] = refused.as_slice() else { panic!("{refused:?}") };
    assert_eq!(error["code"], "permission_denied", "{error}");
    let said = error["error"].as_str().unwrap();
    assert!(said.contains("already debugged") && said.contains("debugs itself"), "{said}");
    let before = game.variable("g_frame_count");
    wait_for("the game to go on", || (game.variable("g_frame_count") > before).then_some(()));
    assert_eq!(game.child.try_wait().unwrap(), None, "it has ended");
    game.finish();
    let name = json!({"name": path});
    let gone = |error: Value| error["code"] == "not_found";
    wait_for("the end of both", || client.call("attach", name.clone()).is_err_and(gone).then_some(()));

    // Launched by the agent it runs, and it is its own debugger that is refused: the game says so by its exit code.
    client.ok("launch", json!({"path": path, "if_running": "start_new"}));
    let end = client.ok("continue_execution", json!({"timeout": 30}));
    assert_eq!((&end["status"], &end["exit_code"]), (&json!("exited"), &json!(7)), "{end}");
    agent.finish();
}

#[test]
fn a_breakpoint_and_a_watchpoint_on_one_instruction() {
    let mut session = Session::launch(GAME, &["--headless"]);
    // The one store to g_delta_baseline_ms, as objdump says: its memory operand is on the left.
    let code = common::listing(&session.path, "update_delta_time");
    let stores = |text: &str| text.contains("mov") && text.split(',').next().unwrap().contains("480004");
    let store = code.iter().find(|(_, text)| stores(text)).unwrap().0;
    session.ok("set_breakpoint", json!({"addr": store}));
    session.ok("set_watchpoint", json!({"addr": "g_delta_baseline_ms"}));
    for frame in 0..20 {
        let stop = session.run_to(&format!("breakpoint@{store:#x}"));
        assert_eq!(stop["stop"]["hits"], frame + 1, "{stop}");
        let stop = session.run_to("watchpoint@slot0");
        assert_eq!(hex(&stop["stop"]["watchpoints"][0]["writer"]["addr"]), store, "{stop}");
        assert_eq!(session.variable("g_frame_count"), frame);
    }
    session.finish();
}

/// Rows from the top, 3 bytes a pixel.
struct Picture {
    width: u32,
    rgb: Vec<u8>,
}

impl Picture {
    fn of(reply: &Value) -> Self {
        let bytes = decode_base64(reply["png_base64"].as_str().unwrap());
        let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
        let mut rgb = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut rgb).unwrap();
        assert_eq!((info.color_type, info.bit_depth), (png::ColorType::Rgb, png::BitDepth::Eight));
        Self { width: info.width, rgb }
    }

    fn pixel(&self, x: u32, y: u32) -> u32 {
        let at = ((y * self.width + x) * 3) as usize;
        self.rgb[at..at + 3].iter().fold(0, |all, byte| all << 8 | u32::from(*byte))
    }
}

#[test]
fn a_picture_shows_the_game_running_and_stopped() {
    let mut session = Session::launch(GAME, &["--window", "--start", "menu"]);
    session.client.refused("screenshot", json!({}), "no_window");
    session.ok("set_breakpoint", json!({"addr": "busywait_frame_limiter_60hz", "ignore_count": 30}));
    session.run();
    for stopped in [true, false] {
        if !stopped {
            session.ok("remove_breakpoint", json!({"addr": "busywait_frame_limiter_60hz"}));
            session.run_for(0.3);
        }
        let reply = session.ok("screenshot", json!({}));
        assert_eq!(
            (&reply["width"], &reply["height"], &reply["title"]),
            (&json!(320), &json!(240), &json!("driftgame"))
        );
        let picture = Picture::of(&reply);
        // The menu of the game's README: background 0x102040, bar 0xF0C040 at 40, 100, 240, 40.
        for (x, y, colour) in [(5, 5, 0x10_2040), (40, 100, 0xf0_c040), (279, 139, 0xf0_c040), (280, 140, 0x10_2040)] {
            assert_eq!(picture.pixel(x, y), colour, "at {x}, {y}, stopped: {stopped}");
        }
    }
    session.client.refused("screenshot", json!({"title": "editor"}), "no_window");
    session.finish();
}

/// Wine's own minesweeper: a window, timers, many libraries.
#[test]
fn a_program_no_one_here_wrote() {
    let agent = Agent::start();
    let mut client = agent.connect();
    let path = r"C:\windows\syswow64\winemine.exe";
    let start = client.ok("launch", json!({"path": path, "if_running": "start_new"}));
    assert_eq!((&start["reason"], &start["arch"]), (&json!("entry"), &json!("x86")), "{start}");
    assert_eq!(start["pc"], start["entry"]);
    // A function of a library that it calls for each message.
    let set = client.ok("set_breakpoint", json!({"addr": "user32!DispatchMessageW"}));
    let address = set["breakpoint"]["addr"].clone();
    for hit in 1..=5 {
        let stop = client.ok("continue_execution", json!({"timeout": 30}));
        assert_eq!((&stop["pc"], &stop["stop"]["hits"]), (&address, &json!(hit)), "{stop}");
    }
    // The message's number, in what the function's argument points to: it is written before each call.
    let registers = client.ok("get_registers", json!({}));
    let stack = hex(&registers["registers"]["esp"]);
    let argument = client.ok("read_memory", json!({"addr": stack + 4, "length": 4}));
    let message = decode_base64(argument["data"].as_str().unwrap());
    let message = u32::from_le_bytes(message.try_into().unwrap());
    client.ok("remove_breakpoint", json!({"addr": address}));
    client.ok("set_watchpoint", json!({"addr": message + 4, "size": 4}));
    let stop = client.ok("continue_execution", json!({"timeout": 30}));
    assert_eq!(stop["reason"], "watchpoint@slot0", "{stop}");
    let picture = wait_for("its window", || client.call("screenshot", json!({})).ok());
    assert!(picture["width"].as_u64().unwrap() > 100, "{picture}");
    let modules = client.ok("list_modules", json!({}));
    let names: Vec<&str> =
        modules["modules"].as_array().unwrap().iter().map(|module| module["name"].as_str().unwrap()).collect();
    for name in ["winemine.exe", "ntdll.dll", "kernel32.dll", "user32.dll", "gdi32.dll"] {
        assert!(names.contains(&name), "{name} is not among {names:?}");
    }
    let pid = start["pid"].clone();
    client.ok("detach", json!({}));
    // It lives: it can be attached to again and ended.
    assert_eq!(client.ok("attach", json!({"name": "winemine.exe"}))["pid"], pid);
    client.ok("terminate", json!({}));
    agent.finish();
}
