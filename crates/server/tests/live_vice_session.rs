//! The session that `docs/c64-live.md` shows, run again with the real VICE: the calls, the answers, and the picture.

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
use std::path::Path;
use std::time::{Duration, Instant};
use support::nds::has;
use support::stdio_client::StdioClient;
use support::vice::{Connector, fixture};

const PAGE: &str = include_str!("../../../docs/c64-live.md");
const PICTURE: &str = "../../docs/c64/live.png";

/// The calls of the page's session with what is shown of their answers: each block of JSON belongs to the last call before it.
fn shown() -> Vec<(String, Value, Option<Value>)> {
    let part = PAGE.split("## A session").nth(1).unwrap().split("## Good to know").next().unwrap();
    let mut found: Vec<(String, Value, Option<Value>)> = Vec::new();
    for (at, piece) in part.split("```").enumerate() {
        if at % 2 == 1 {
            found.last_mut().unwrap().2 = Some(serde_json::from_str(piece.strip_prefix("json").unwrap()).unwrap());
            continue;
        }
        for span in piece.split('`').skip(1).step_by(2) {
            if let Some((tool, arguments)) = span.split_once(' ').filter(|(_, rest)| rest.starts_with('{')) {
                found.push((tool.to_owned(), serde_json::from_str(arguments).unwrap(), None));
            }
        }
    }
    found
}

/// What a tool says: its data, or what is said of its picture.
fn told(server: &mut StdioClient, tool: &str, arguments: &Value) -> Value {
    let answer = server.call(tool, arguments.clone());
    if answer["structuredContent"].is_object() {
        return answer["structuredContent"].clone();
    }
    let texts = answer["content"].as_array().unwrap().iter().filter_map(|part| part["text"].as_str());
    texts.map(|text| serde_json::from_str(text).unwrap_or_else(|_| json!(text))).next().unwrap()
}

fn pixels(file: &[u8]) -> Vec<u8> {
    let mut reader = png::Decoder::new(std::io::Cursor::new(file)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    reader.next_frame(&mut pixels).unwrap();
    pixels
}

#[test]
fn the_page_shows_a_session_that_runs() {
    let connector = Connector::launch_bare(&["--allow-display-on-old-vice"]);
    let workspace = tempfile::tempdir().unwrap();
    std::fs::copy(fixture("demo.prg"), workspace.path().join("demo.prg")).unwrap();
    let arguments = ["--tool-profile", "c64-live", "--workspace", workspace.path().to_str().unwrap()];
    let url = connector.url();
    let mut server = StdioClient::start_with(&arguments, "2025-06-18", &[("RETROSCOPE_VICE_URL", &url)]);
    let session = shown();
    assert!(session.len() >= 14, "{} calls", session.len());
    let mut sequence = Value::Null;
    for (tool, mut arguments, wanted) in session {
        if tool == "vice_wait_for_stop" {
            // The page says that it is what the call before answered.
            arguments["after_sequence"] = sequence.clone();
        }
        let mut answer = told(&mut server, &tool, &arguments);
        sequence = answer["result"]["event"]["sequence"].clone();
        let wanted = wanted.unwrap_or_else(|| if tool.starts_with("vice_") { json!({"ok": true}) } else { json!({}) });
        // The machine clears its screen some frames after it is switched on.
        let until = Instant::now() + Duration::from_secs(30);
        while tool == "vice_read_screen" && !has(&answer, &wanted) && Instant::now() < until {
            told(&mut server, "vice_resume", &json!({}));
            std::thread::sleep(Duration::from_millis(100));
            told(&mut server, "vice_interrupt", &json!({}));
            answer = told(&mut server, &tool, &arguments);
        }
        assert!(has(&answer, &wanted), "{tool} {arguments}: the page shows\n{wanted:#}\nand the answer is\n{answer:#}");
    }
    let screen = std::fs::read(workspace.path().join("screen.png")).unwrap();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join(PICTURE);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&page, &screen).unwrap();
    }
    // In the 33rd frame the sprite is where it is, whatever the machine that runs VICE.
    assert!(pixels(&screen) == pixels(&std::fs::read(&page).unwrap()), "the picture is another one");
    assert!(connector.end().success());
}
