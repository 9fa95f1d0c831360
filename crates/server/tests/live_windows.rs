//! `retroscope.exe` under Wine: the whole server built for Windows, alone and with either side on the other system.
//! `cargo xtask test-wine` runs it and says where Wine and the programs are.

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
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::PROGRAM;
use support::http_client::{HttpServer, TOKEN};

fn given(variable: &str) -> PathBuf {
    std::env::var_os(variable)
        .map(PathBuf::from)
        .unwrap_or_else(|| panic!("{variable} is not set: run `cargo xtask test-wine`"))
}

/// A Windows program under Wine.
fn wine(program: PathBuf) -> Command {
    let mut command = Command::new(given("RETROSCOPE_TEST_WINE"));
    command.arg(program);
    command
}

/// The server for Windows.
fn for_windows() -> Command {
    wine(given("RETROSCOPE_TEST_SERVER"))
}

/// The server for this machine.
fn native() -> Command {
    Command::new(PROGRAM)
}

/// The folder with the games, as Windows programs see it.
fn games() -> String {
    let folder = given("RETROSCOPE_FIXTURES").canonicalize().unwrap();
    format!("Z:{}", folder.to_str().unwrap().replace('/', "\\"))
}

/// Runs a command to its end; what it wrote to stdout and stderr. Not through pipes: Wine's server, which may be
/// started with the program, would hold them open.
fn output(mut command: Command, arguments: &[&str]) -> (Option<i32>, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let (out, err) = (folder.path().join("out"), folder.path().join("err"));
    command.args(arguments).current_dir(folder.path()).stdin(Stdio::null());
    command.env_remove("RETROSCOPE_AGENT").env_remove("RETROSCOPE_WORKSPACE_ROOT");
    command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
    let status = command.status().unwrap();
    (status.code(), std::fs::read_to_string(out).unwrap(), std::fs::read_to_string(err).unwrap())
}

#[track_caller]
fn json_of(command: Command, arguments: &[&str]) -> Value {
    let (code, out, err) = output(command, arguments);
    assert_eq!(code, Some(0), "{arguments:?}: {err}");
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {out}"))
}

/// Ends a Windows program by Ctrl+C, as SIGINT is to it under Wine, and sees that it ends well.
fn interrupt(child: &mut Child) {
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        assert!(start.elapsed() < Duration::from_secs(30), "it did not end");
        std::thread::sleep(Duration::from_millis(10));
    };
    assert_eq!(status.code(), Some(0), "it ended with {status}");
}

#[test]
fn it_has_the_same_tools_as_on_linux() {
    let arguments = ["tools", "--json"];
    let tools = json_of(for_windows(), &arguments);
    assert!(tools.as_array().unwrap().len() > 10, "{tools}");
    assert_eq!(tools, json_of(native(), &arguments));
}

#[test]
fn doctor_tries_debugging_and_says_that_it_works() {
    let (code, out, err) = output(for_windows(), &["doctor", "--agent", "127.0.0.1:1"]);
    assert_eq!(code, Some(0), "{out}{err}");
    let line = out.lines().find(|line| line.contains("debugging")).unwrap_or_else(|| panic!("{out}"));
    assert!(line.starts_with("works") && line.to_lowercase().contains("system32\\cmd.exe"), "{line}");
}

#[test]
fn the_demo_says_where_it_runs() {
    let (code, out, err) = output(for_windows(), &["demo"]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(err.contains("Linux"), "{err}");
}

#[test]
fn a_32_bit_program_is_debugged_over_http() {
    let games = games();
    let arguments = ["--with-agent", "--launch-root", &games];
    let mut server = HttpServer::run(for_windows(), &arguments, Some(TOKEN));

    let mut stranger = server.connect();
    stranger.token = None;
    assert_eq!(stranger.modern("/mcp", "tools/list", json!({}), None).status, 401);

    let mut client = server.connect();
    let list = client.modern("/mcp", "tools/list", json!({}), None).message();
    let names = |list: &Value| list.as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect::<Vec<_>>();
    let native = json_of(native(), &["tools", "--json"]);
    assert_eq!(names(&list["result"]["tools"]), names(&native));

    let refused = client.call("launch", json!({"path": "C:\\windows\\system32\\cmd.exe"}));
    assert!(refused["isError"] == true && refused.to_string().contains("path_refused"), "{refused}");

    let mut ok = |tool: &str, arguments: Value| {
        let reply = client.call(tool, arguments);
        assert_ne!(reply["isError"], true, "{tool}: {reply}");
        reply["structuredContent"].clone()
    };
    let launched = ok("launch", json!({"path": format!("{games}\\driftgame32.exe")}));
    assert_eq!(launched["state"], "stopped", "{launched}");
    // The DOS header that every Windows program begins with; the game's image base is in its README.
    let header = ok("read_memory", json!({"addr": "0x400000", "length": 2, "format": "base64"}));
    assert_eq!(header["data"], "TVo=", "{header}");
    ok("set_breakpoint", json!({"addr": "update_delta_time"}));
    for _ in 0..10 {
        let stop = ok("continue_execution", json!({"timeout": 30}));
        assert_eq!((&stop["timed_out"], &stop["state"]), (&json!(false), &json!("stopped")), "{stop}");
        assert!(stop["reason"].as_str().unwrap().starts_with("breakpoint"), "{stop}");
    }
    let end = ok("terminate", json!({}));
    assert_eq!(end["state"], "exited", "{end}");
    interrupt(&mut server.child);
}

#[test]
fn client_and_agent_may_be_on_different_systems() {
    let mut command = wine(given("RETROSCOPE_TEST_AGENT"));
    command.args(["--port", "0"]).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut agent = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(agent.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().rsplit(' ').next().unwrap();

    let game = json!({"path": format!("{}\\driftgame32.exe", games())}).to_string();
    let launched = json_of(native(), &["call", "launch", &game, "--agent", address]);
    assert_eq!((&launched["state"], &launched["arch"]), (&json!("stopped"), &json!("x86")), "{launched}");
    let status = json_of(for_windows(), &["call", "get_status", "--agent", address]);
    assert_eq!((&status["pid"], &status["state"]), (&launched["pid"], &json!("stopped")), "{status}");
    let end = json_of(for_windows(), &["call", "terminate", "--agent", address]);
    assert_eq!(end["state"], "exited", "{end}");
    interrupt(&mut agent);
    let (code, _, err) = output(for_windows(), &["call", "get_status", "--agent", address]);
    assert_eq!(code, Some(1));
    assert!(err.contains("agent_unreachable"), "{err}");
}
