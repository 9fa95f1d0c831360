//! The C64 tools as clients call them, over stdio and over HTTP, with a stand-in of Ghidra.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

mod support;

use serde_json::{Value, json};
use std::process::Command;
use std::time::Duration;
use support::fake_ghidra::{FakeGhidra, Fault};
use support::http_client::HttpServer;
use support::stdio_client::StdioClient;
use support::{MODERN, PROGRAM};

fn start(ghidra: &FakeGhidra) -> StdioClient {
    StdioClient::start_with(&["--tool-profile", "c64"], MODERN, &[("GHIDRA_MCP_URL", &ghidra.url)])
}

/// The text of `full64.bin` at $0840 is "HELLO WORLD" and a zero.
fn text() -> Value {
    json!({"program": "full64.bin", "start": "RAM:0840", "max_length": 40, "terminator": 0})
}

fn memory(start: &str) -> Value {
    json!({"kind": "ghidra", "program": "full64.bin", "start": start})
}

/// A call of each tool that succeeds, and one of each that is refused.
fn calls() -> Vec<(&'static str, Value)> {
    let (bitmap, screen, color) = (memory("2000"), memory("RAM:0400"), memory("0xd800"));
    vec![
        ("get_c64_symbol_profile", json!({})),
        ("get_c64_symbol_profile", json!({"x": 1})),
        ("apply_c64_symbol_profile", json!({"program": "full64.bin"})),
        ("apply_c64_symbol_profile", json!({"program": "game.bin", "dry_run": false})),
        ("decode_c64_text", text()),
        ("decode_c64_text", json!({"bytes": "48", "length": 2})),
        (
            "search_c64_text",
            json!({"program": "full64.bin", "start": "0000", "end": "ffff", "query": "WORLD", "terminator": 0}),
        ),
        ("search_c64_text", json!({"program": "full64.bin", "start": "1", "end": "0", "query": "A", "length": 1})),
        (
            "define_c64_text",
            json!({"program": "full64.bin", "start": "RAM:0840", "length": 11, "label": "greeting", "namespace": "C64",
                "comment": "what it says"}),
        ),
        ("define_c64_text", json!({"program": "nope", "start": "RAM:0840", "length": 11})),
        ("decode_c64_hires_bitmap", json!({"bitmap": bitmap, "screen": screen})),
        ("decode_c64_hires_bitmap", json!({"bitmap": memory("f000"), "screen": screen})),
        ("decode_c64_multicolor_bitmap", json!({"bitmap": bitmap, "screen": screen, "color": color, "background": 6})),
        ("decode_c64_multicolor_bitmap", json!({"bitmap": bitmap, "screen": screen})),
        ("decode_c64_charset", json!({"charset": memory("RAM:0810"), "glyph_count": 7, "sheet_columns": 7})),
        ("decode_c64_charset", json!({"charset": memory("zz")})),
        ("decode_c64_char_screen", json!({"screen": screen, "charset": memory("0810"), "color": color})),
        ("decode_c64_char_screen", json!({"screen": screen, "charset": memory("0810"), "multicolor": true})),
        ("decode_c64_sprites", json!({"sprites": memory("0800"), "sprite_count": 2, "sprite_colors": [1, 2]})),
        ("decode_c64_sprites", json!({"sprites": memory("0800"), "sprite_count": 2, "sprite_colors": [1]})),
    ]
}

#[test]
fn every_tool_answers_the_same_over_stdio_and_http() {
    let ghidra = FakeGhidra::start();
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(PROGRAM);
    command.env("GHIDRA_MCP_URL", &ghidra.url);
    let workspace = folder.path().display().to_string();
    let server = HttpServer::run(command, &["--workspace", &workspace], Some(support::http_client::TOKEN));
    let mut http = server.connect();
    let mut stdio = start(&ghidra);
    for (at, (tool, arguments)) in calls().into_iter().enumerate() {
        let one = stdio.call(tool, arguments.clone());
        let answer =
            http.modern("/mcp/c64", "tools/call", json!({"name": tool, "arguments": arguments}), Some(tool)).message();
        assert_eq!(one, answer["result"], "{tool}");
        assert_eq!(one["isError"] == true, at % 2 == 1, "{tool}: {one}");
        let pictures = tool.starts_with("decode") && tool != "decode_c64_text";
        if at % 2 == 0 && pictures {
            assert_eq!(one["content"][0]["mimeType"], "image/png");
            assert!(one["structuredContent"].is_null());
            let facts: Value = serde_json::from_str(one["content"][1]["text"].as_str().unwrap()).unwrap();
            assert!(facts["sources"].is_object() && facts["width"].is_u64(), "{facts}");
        } else if at % 2 == 0 {
            assert!(one["structuredContent"].is_object(), "{tool}");
        } else {
            let text = one["content"][0]["text"].as_str().unwrap();
            let (line, error) = text.split_once('\n').unwrap();
            let error: Value = serde_json::from_str(error).unwrap();
            assert!(line.starts_with(error["code"].as_str().unwrap()), "{line}");
        }
    }
}

#[test]
fn what_ghidra_says_reaches_the_client() {
    let ghidra = FakeGhidra::start();
    let mut client = start(&ghidra);

    let decoded = client.call("decode_c64_text", text())["structuredContent"].clone();
    // The read ends where it was asked to, the text at its terminator.
    assert_eq!((&decoded["plain_text"], &decoded["consumed_length"]), (&json!("HELLO WORLD"), &json!(12)));
    assert_eq!(
        decoded["source"],
        json!({"kind": "ghidra", "program": "full64.bin", "start": "RAM:0840", "max_length": 40})
    );

    let (_, search) = calls().remove(6);
    let found = client.call("search_c64_text", search)["structuredContent"].clone();
    assert_eq!(found["matches"].as_array().unwrap().len(), 1);
    assert_eq!((&found["matches"][0]["address"], &found["scanned_bytes"]), (&json!("0846"), &json!(65_536)));

    let (_, define) = calls().remove(8);
    let defined = client.call("define_c64_text", define)["structuredContent"].clone();
    let lossless = "{H:$48}{E:$45}{L:$4C}{L:$4C}{O:$4F}{ :$20}{W:$57}{O:$4F}{R:$52}{L:$4C}{D:$44}";
    assert_eq!(
        (&defined["end"], &defined["dry_run"], &defined["decoded"]["lossless"]),
        (&json!("RAM:084a"), &json!(true), &json!(lossless))
    );
    assert_eq!(defined["ghidra"]["committed"], false);
    let asked = ghidra.asked().pop().unwrap();
    assert_eq!(asked.target, "/apply_data_regions?program=full64.bin");
    assert_eq!(
        asked.body,
        json!({"dry_run": true, "regions": [{"kind": "contiguous", "start": "RAM:0840", "end": "RAM:084a", "type_name": "byte",
            "clear_conflicts": false, "name": "greeting", "namespace": "C64",
            "plate_comment": format!("what it says\nC64 petscii_upper: {lossless}")}]})
    );

    let applied = client.call("apply_c64_symbol_profile", json!({"program": "full64.bin", "dry_run": false}));
    let applied = &applied["structuredContent"];
    assert_eq!((&applied["committed"], &applied["counts"]["symbols"]), (&json!(true), &json!(165)));
    let profile = client.call("get_c64_symbol_profile", json!({}))["structuredContent"].clone();
    assert_eq!(ghidra.asked().pop().unwrap().body["profile"], profile, "what is shown is what is sent");
    let refused = client.refused("apply_c64_symbol_profile", json!({"program": "game.bin"}));
    assert!(refused.starts_with("ghidra_response_error") && refused.contains("not mapped in program memory: d000"));
}

#[test]
fn nothing_is_read_before_everything_is_checked() {
    let ghidra = FakeGhidra::start();
    let mut client = start(&ghidra);
    for (tool, arguments) in [
        ("decode_c64_hires_bitmap", json!({"bitmap": memory("2000"), "screen": {"kind": "inline", "bytes": [0, 1]}})),
        (
            "decode_c64_hires_bitmap",
            json!({"bitmap": memory("2000"), "screen": {"kind": "vice", "bank_id": 0, "start": 65_000}}),
        ),
        (
            "decode_c64_hires_bitmap",
            json!({"bitmap": memory("2000"), "screen": memory("0400"), "output_path": "no-such-folder/x.png"}),
        ),
        ("decode_c64_char_screen", json!({"screen": memory("0400"), "charset": memory("0810"), "background": 99})),
        (
            "decode_c64_text",
            json!({"program": "full64.bin", "start": "0840", "max_length": 5, "length": 5, "terminator": 0}),
        ),
        (
            "search_c64_text",
            json!({"program": "full64.bin", "start": "0", "end": "f", "query": "A", "length": 1, "stride": 0}),
        ),
    ] {
        client.refused(tool, arguments);
    }
    assert_eq!(ghidra.asked(), []);
}

#[test]
fn a_late_answer_to_a_change_says_what_may_have_changed() {
    let ghidra = FakeGhidra::start();
    ghidra.fault("/apply_symbol_profile", Fault::Late(Duration::from_secs(3)));
    let variables = [("GHIDRA_MCP_URL", ghidra.url.as_str()), ("GHIDRA_MCP_TIMEOUT", "0.3")];
    let mut client = StdioClient::start_with(&["--tool-profile", "c64"], MODERN, &variables);
    let refused = client.refused("apply_c64_symbol_profile", json!({"program": "full64.bin", "dry_run": false}));
    let error: Value = serde_json::from_str(refused.split_once('\n').unwrap().1).unwrap();
    assert_eq!((&error["code"], &error["retryable"]), (&json!("ghidra_http_timeout"), &json!(false)));
    assert_eq!(error["details"]["ghidra_program_may_have_changed"], true);
    assert_eq!(error["details"]["timeout_layer"], "http");
    assert_eq!(ghidra.asked().len(), 1);
}

#[test]
fn a_wrong_variable_stops_the_start() {
    for (name, value) in [("GHIDRA_MCP_URL", "localhost"), ("GHIDRA_MCP_TIMEOUT", "soon")] {
        let output = Command::new(PROGRAM).args(["serve", "--tool-profile", "c64"]).env(name, value).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.contains(name), "{said}");
    }
}

/// The commands of the document, with their arguments, in its order.
fn documented() -> Vec<(String, Value)> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/c64.md")).unwrap();
    let commands = page.lines().filter_map(|line| line.strip_prefix("retroscope call "));
    commands
        .map(|line| {
            let (tool, rest) = line.split_once(" '").unwrap();
            (tool.to_owned(), serde_json::from_str(rest.split_once('\'').unwrap().0).unwrap())
        })
        .collect()
}

#[test]
fn the_documents_session_gives_what_it_shows() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = tempfile::tempdir().unwrap();
    for name in ["game.prg", "rings.koa"] {
        std::fs::copy(root.join("fixtures/c64-sample").join(name), folder.path().join(name)).unwrap();
    }
    let calls = documented();
    let tools: Vec<&str> = calls.iter().map(|(tool, _)| tool.as_str()).collect();
    assert_eq!(
        tools[..4],
        ["search_c64_text", "decode_c64_text", "decode_c64_multicolor_bitmap", "decode_c64_sprites"],
        "{tools:?}"
    );
    let call = |at: usize, picture: &str| -> Value {
        let (tool, arguments) = &calls[at];
        let mut command = Command::new(PROGRAM);
        command.args(["call", tool, &arguments.to_string(), "--workspace"]).arg(folder.path()).arg("--image-out");
        let output = command.arg(folder.path().join(picture)).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let page = std::fs::read_to_string(root.join("docs/c64.md")).unwrap();
    let found = call(0, "unused");
    assert_eq!((&found["scanned_bytes"], &found["matches"][0]["address"]), (&json!(1024), &json!("0848")));
    let text = call(1, "unused");
    for field in ["plain_text", "lossless"] {
        assert!(page.contains(&format!("\"{field}\": {}", text[field])), "{field}: {}", text[field]);
    }
    let rings = call(2, "shown.png");
    assert_eq!((&rings["background"], &rings["used_indices"]), (&json!(0), &json!([0, 3, 6, 14])));
    call(3, "ball.png");
    for name in ["rings.png", "ball.png"] {
        let shown = std::fs::read(root.join("docs/c64").join(name)).unwrap();
        assert!(shown == std::fs::read(folder.path().join(name)).unwrap(), "docs/c64/{name} is another picture");
    }
}
