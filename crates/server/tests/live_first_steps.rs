//! What a person does first, as the README tells it: the demo, the doctor, a client configured by pasting, and a server that
//! is restarted in the midst of a session.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

mod support;

use retroscope::demo::GAME_64;
use retroscope::demo::client::McpClient;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;
use support::PROGRAM;
use support::http_client::HttpServer;

const README: &str = include_str!("../../../README.md");

/// A folder with nothing in it but the installed program: no cargo, no compiler and no sources can be found from here.
struct Installed {
    folder: tempfile::TempDir,
    program: PathBuf,
}

impl Installed {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("retroscope");
        std::fs::copy(PROGRAM, &program).unwrap();
        Self { folder, program }
    }

    fn run(&self, arguments: &[&str], display: Option<&str>) -> Output {
        let mut command = Command::new(&self.program);
        let folder = self.folder.path();
        command.args(arguments).env_clear().env("HOME", folder).env("TMPDIR", folder).env("PATH", folder);
        command.envs(display.map(|display| ("DISPLAY", display)));
        // What tells the processes of one test run from others.
        command.envs(std::env::vars().filter(|(name, _)| name.starts_with("RETROSCOPE_TEST")));
        command.current_dir(folder).stdin(Stdio::null()).output().unwrap()
    }
}

fn display() -> String {
    std::env::var("DISPLAY").expect("this test needs a display; `cargo xtask test` starts one")
}

#[track_caller]
fn text_of(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// What every telling of the story must show, by the game's README: who writes the state, from what to what.
fn check_story(story: &str, arguments: &[&str]) {
    for words in [
        "\n  → launch {",
        "\n  → set_watchpoint {",
        "in on_reactivate+",
        "changed the state from 0x00000001 (playing) to 0x00000000 (menu)",
        "is marked `DUST`, not `SAVE`",
        "\n  → terminate {}",
    ] {
        assert!(story.contains(words), "{arguments:?}: `{words}` is not in {story}");
    }
    assert!(story.ends_with("Done.\n"), "{story}");
    assert_eq!(story.matches("\n  → ").count(), story.matches("\n  ← ").count(), "each call has its answer");
}

#[test]
fn the_demo_tells_its_story_from_an_installed_program() {
    let installed = Installed::new();
    let pictures = installed.folder.path().join("pictures");
    std::fs::create_dir(&pictures).unwrap();
    for bits in [None, Some("--bits32")] {
        let mut arguments = vec!["demo", "--pictures", pictures.to_str().unwrap()];
        arguments.extend(bits);
        let story = text_of(&installed.run(&arguments, Some(&display())));
        check_story(&story, &arguments);
        assert!(!story.contains("going on without one"), "{story}");
        for name in ["driftgame-playing.png", "driftgame-menu.png"] {
            let picture = std::fs::read(pictures.join(name)).unwrap();
            assert!(picture.starts_with(b"\x89PNG\r\n\x1a\n"), "{name}");
            std::fs::remove_file(pictures.join(name)).unwrap();
        }
        arguments.push("--headless");
        let story = text_of(&installed.run(&arguments, Some(&display())));
        check_story(&story, &arguments);
        assert!(!story.contains("screenshot"), "{story}");
    }
    // It says what it does without, and tells the same story.
    let story = text_of(&installed.run(&["demo"], None));
    check_story(&story, &["demo"]);
    assert!(story.starts_with("(there is no X display to use") && story.contains("going on without one"), "{story}");
    // The game that it unpacked is gone again.
    let left: Vec<_> = std::fs::read_dir(installed.folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(left.len(), 2, "the program and the folder for pictures: {left:?}");
}

#[test]
fn the_doctor_says_what_works_and_what_is_missing() {
    let installed = Installed::new();
    // (what, with a display, without one)
    let lines = |text: &str| -> Vec<(String, String)> {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        text.lines().map(words).map(|words| (words[1].clone(), words[0].clone())).collect()
    };
    for (screen, screenshots) in [(Some(display()), "works"), (None, "absent")] {
        let text = text_of(&installed.run(&["doctor", "--agent", "127.0.0.1:1"], screen.as_deref()));
        let found = lines(&text);
        for (what, state) in [
            ("configuration", "works"),
            ("workspace", "absent"),
            ("token", "absent"),
            // Nothing listens on port 1.
            ("agent", "absent"),
            ("debugging", "works"),
            ("screenshots", screenshots),
            ("demo", "works"),
        ] {
            assert!(found.contains(&(what.to_owned(), state.to_owned())), "{what} is not {state}: {text}");
        }
        assert!(text.contains("/bin/true (x86_64)"), "it debugs a program for real: {text}");
    }
    let wrong = installed.run(&["doctor", "--config", "absent.toml"], None);
    assert_eq!(wrong.status.code(), Some(1));
}

/// The entries `retroscope` of the `.mcp.json` files that the README shows.
fn entries() -> Vec<Value> {
    let blocks = README.split("```json\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    blocks.map(|block| serde_json::from_str::<Value>(block).unwrap()["mcpServers"]["retroscope"].clone()).collect()
}

/// The line of the README's shell examples that begins so, as words.
fn typed(beginning: &str) -> Vec<&'static str> {
    let line = README.lines().find(|line| line.starts_with(beginning)).unwrap_or_else(|| panic!("{beginning}"));
    line.split('#').next().unwrap().split_whitespace().collect()
}

#[tokio::test]
async fn the_readmes_entry_for_stdio_works_as_it_is_pasted() {
    let entries = entries();
    let entry = entries.iter().find(|entry| entry["type"] == "stdio").unwrap();
    assert_eq!(entry["command"], "retroscope");
    let arguments: Vec<&str> = entry["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    let client = McpClient::start(Path::new(PROGRAM), &arguments).await.unwrap();
    assert!(client.tool_names().await.unwrap().contains(&"set_watchpoint".to_owned()));
    assert_eq!(client.call("get_status", json!({})).await.unwrap().json["state"], "not_launched");
    client.close(Duration::from_secs(10)).await;
}

#[test]
fn the_readmes_entry_for_http_works_with_the_server_that_it_starts() {
    const SECRET: &str = "0123456789abcdef";
    let entries = entries();
    let entry = entries.iter().find(|entry| entry["type"] == "http").unwrap();
    let url = entry["url"].as_str().unwrap();
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    assert_eq!(entry["headers"], json!({"Authorization": "Bearer ${RETROSCOPE_TOKEN}"}));

    let home = tempfile::tempdir().unwrap();
    let games = home.path().join("games");
    std::fs::create_dir(&games).unwrap();
    let line = typed("retroscope serve --with-agent --http");
    assert!(line.contains(&host.replace("gamebox.lan", "0.0.0.0").as_str()), "the port of {url} is served: {line:?}");
    // What the shell makes of it; and any free port, since the README's may be taken here.
    let arguments = line[1..].iter().map(|word| match *word {
        "~/games" => games.to_str().unwrap().to_owned(),
        word if word.starts_with("0.0.0.0:") => "0.0.0.0:0".to_owned(),
        word => word.to_owned(),
    });
    let mut command = Command::new(PROGRAM);
    command.args(arguments).env("HOME", home.path()).env("RETROSCOPE_TOKEN", SECRET).current_dir(home.path());
    let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let bound = said.find_map(|line| Some(line.strip_prefix("retroscope: MCP at http://0.0.0.0:")?.to_owned()));
    let port = bound.unwrap().strip_suffix("/mcp").unwrap().to_owned();
    let server = HttpServer { child, address: format!("127.0.0.1:{port}") };

    let mut client = server.connect();
    client.host = host.to_owned();
    client.token = Some(SECRET.to_owned());
    let path = format!("/{path}");
    let list = client.modern(&path, "tools/list", json!({}), None);
    assert!(list.message()["result"]["tools"].to_string().contains("\"set_watchpoint\""));
    assert_eq!(client.call("get_status", json!({}))["structuredContent"]["state"], "not_launched");
    // Both the server and its agent keep to the folder: what reaches the agent in another way is bound too.
    let agent = child_of(server.child.id());
    assert!(agent.contains(&format!("--launch-root {}", games.display())), "{agent}");
    let outside = client.call("launch", json!({"path": "/bin/true"}));
    assert_eq!(outside["isError"], true);
    assert!(outside["content"][0]["text"].as_str().unwrap().starts_with("path_refused: "), "{outside}");
    client.token = Some(SECRET.to_uppercase());
    assert_eq!(client.modern(&path, "tools/list", json!({}), None).status, 401);
}

/// The command line of the one process that `parent` has started.
fn child_of(parent: u32) -> String {
    let own = |status: &str| status.lines().any(|line| line == format!("PPid:\t{parent}"));
    let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let mut children =
        processes.filter(|path| std::fs::read_to_string(path.join("status")).is_ok_and(|status| own(&status)));
    let line = std::fs::read_to_string(children.next().expect("it has started nothing").join("cmdline")).unwrap();
    assert_eq!(children.next(), None);
    line.replace('\0', " ")
}

/// A debug agent by itself.
struct Agent {
    child: Child,
    address: String,
}

impl Agent {
    fn start() -> Self {
        let mut command = Command::new(PROGRAM);
        let mut child = command.args(["agent", "--port", "0"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, address: line.split_whitespace().last().unwrap().to_owned() }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[tokio::test]
async fn a_server_that_is_killed_loses_nothing() {
    let agent = Agent::start();
    let serve = ["serve", "--agent", &agent.address, "--tool-profile", "debug"];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("driftgame");
    std::fs::write(&path, GAME_64).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();

    let first = McpClient::start(Path::new(PROGRAM), &serve).await.unwrap();
    let ask = async |client: &McpClient, tool: &str, arguments: Value| client.call(tool, arguments).await.unwrap().json;
    ask(&first, "launch", json!({"path": path, "args": ["--headless", "--spin-loop"], "if_running": "start_new"}))
        .await;
    let condition = json!({"register": "rdi", "op": ">=", "value": 500});
    ask(&first, "set_breakpoint", json!({"addr": "hot_step", "condition": condition})).await;
    ask(&first, "set_watchpoint", json!({"addr": "g_score"})).await;
    let stop = ask(&first, "continue_execution", json!({"timeout": 30})).await;
    assert_eq!((&stop["stop"]["hits"], &stop["stop"]["registers"]["rdi"]), (&json!(1), &json!("0x1f4")), "{stop}");
    let questions =
        ["get_status", "list_breakpoints", "list_watchpoints", "get_registers", "backtrace", "list_threads"];
    let mut before = Vec::new();
    for tool in questions {
        before.push(ask(&first, tool, json!({})).await);
    }
    // It gets no chance to say anything: the drop kills it.
    drop(first);

    let second = McpClient::start(Path::new(PROGRAM), &serve).await.unwrap();
    for (tool, before) in questions.iter().zip(before) {
        assert_eq!(ask(&second, tool, json!({})).await, before, "{tool}");
    }
    // 500 = 0x1f4 is where it stands; the next call passes 501.
    let stop = ask(&second, "continue_execution", json!({"timeout": 30})).await;
    assert_eq!((&stop["stop"]["hits"], &stop["stop"]["registers"]["rdi"]), (&json!(2), &json!("0x1f5")), "{stop}");
    ask(&second, "terminate", json!({})).await;
    second.close(Duration::from_secs(10)).await;
}
