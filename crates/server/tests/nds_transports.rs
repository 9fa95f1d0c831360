//! Every tool on our own test ROM as an MCP client gets it, over stdio and over HTTP, and files that are no ROM.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

mod support;

use serde_json::{Value, json};
use support::MODERN;
use support::http_client::HttpServer;
use support::nds::{ROM, calls};
use support::stdio_client::StdioClient;
use tempfile::TempDir;

fn workspace() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("rom.nds"), ROM).unwrap();
    folder
}

fn check(tool: &str, result: &Value) -> Value {
    assert_ne!(result["isError"], true, "{tool}: {result}");
    let data = result["structuredContent"].clone();
    assert_eq!(serde_json::from_str::<Value>(result["content"][0]["text"].as_str().unwrap()).unwrap(), data, "{tool}");
    data
}

#[test]
fn every_tool_answers_the_same_over_stdio_and_http() {
    let folder = workspace();
    let root = folder.path().to_str().unwrap();
    for era in ["2025-06-18", MODERN] {
        let mut stdio = StdioClient::start(&["--workspace", root, "--tool-profile", "nds"], era);
        let server = HttpServer::start(&["--workspace", root, "--tool-profile", "nds"]);
        let mut http = server.connect();
        for (tool, arguments) in calls("rom.nds") {
            let first = check(tool, &stdio.call(tool, arguments.clone()));
            let params = json!({"name": tool, "arguments": arguments});
            let answer = http.modern("/mcp/nds", "tools/call", params, Some(tool)).message();
            let mut second = check(tool, &answer["result"]);
            if tool == "server_capabilities" {
                assert_eq!((&first["transport"], &second["transport"]), (&json!("stdio"), &json!("http")));
                second["transport"] = json!("stdio");
            }
            assert_eq!(first, second, "{tool}");
        }
    }
}

#[test]
fn what_is_no_rom_is_refused_at_once() {
    let folder = workspace();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("empty.nds"), "").unwrap();
    std::fs::write(path("short.nds"), &ROM[..0x1ff]).unwrap();
    std::fs::create_dir(path("folder.nds")).unwrap();
    std::fs::File::create(path("large.nds")).unwrap().set_len(600 << 20).unwrap();
    let mut wanted = vec![
        ("empty.nds", "file_refused", "0 bytes"),
        ("short.nds", "invalid-rom", "511"),
        ("folder.nds", "file_refused", "a folder"),
        ("large.nds", "file_refused", "536870912 are allowed"),
        ("absent.nds", "file_not_found", "absent.nds"),
        ("../rom.nds", "path_refused", "leads out"),
        ("/etc/passwd", "path_refused", "leads out"),
    ];
    #[cfg(unix)]
    {
        nix::unistd::mkfifo(&path("pipe.nds"), nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", path("link.nds")).unwrap();
        wanted.extend([("pipe.nds", "file_refused", "a pipe"), ("link.nds", "path_refused", "leads out")]);
    }
    let root = folder.path().to_str().unwrap();
    let mut client = StdioClient::start(&["--workspace", root, "--tool-profile", "nds"], MODERN);
    for (name, code, words) in wanted {
        for tool in ["nds_inspect_rom", "nds_extract_analysis_bundle"] {
            let text = client.refused(tool, json!({"rom": name}));
            assert!(text.starts_with(&format!("{code}: ")) && text.contains(words), "{tool} {name}: {text}");
            let error: Value = serde_json::from_str(text.split_once('\n').unwrap().1).unwrap();
            assert_ne!(error["hint"], "", "{name}");
        }
    }
    assert!(!path("analysis").exists());
}
