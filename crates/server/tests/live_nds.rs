//! Every tool on every ROM there is: our own, and those in the folder that RETROSCOPE_ROMS names (`cargo xtask test` sets
//! it). Over stdio, over HTTP and from a shell the answers are the same.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

mod support;

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use support::http_client::HttpServer;
use support::nds::{ROM, answer, calls_on, context, tool_call};
use support::stdio_client::StdioClient;
use support::{MODERN, PROGRAM};
use tempfile::TempDir;

/// A workspace with every ROM, and their names.
fn workspace() -> (TempDir, Vec<String>) {
    let roms = std::env::var_os("RETROSCOPE_ROMS").map(PathBuf::from);
    let roms = roms.expect("RETROSCOPE_ROMS must name the folder with Nintendo DS ROMs; `cargo xtask test` sets it");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("ours.nds"), ROM).unwrap();
    let mut names = vec!["ours.nds".to_owned()];
    for entry in std::fs::read_dir(&roms).unwrap_or_else(|error| panic!("{}: {error}", roms.display())) {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "nds") {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            std::fs::copy(&path, folder.path().join(&name)).unwrap();
            names.push(name);
        }
    }
    assert!(names.len() > 3, "{} has no ROMs", roms.display());
    names.sort();
    (folder, names)
}

/// `retroscope call` in the folder.
fn typed(folder: &Path, tool: &str, arguments: &Value) -> Value {
    let mut command = Command::new(PROGRAM);
    command.args(["call", tool, &arguments.to_string()]).current_dir(folder);
    let output = command.env_remove("RETROSCOPE_WORKSPACE_ROOT").output().unwrap();
    assert!(output.status.success(), "{tool} {arguments}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn every_tool_answers_on_every_rom_wherever_it_is_called_from() {
    let (folder, names) = workspace();
    let root = folder.path().to_str().unwrap();
    let mut stdio = StdioClient::start(&["--workspace", root], MODERN);
    let server = HttpServer::start(&["--workspace", root]);
    let mut http = server.connect();
    for name in names {
        let inspected = typed(folder.path(), "nds_inspect_rom", &json!({"rom": name}));
        let entry = inspected["arm9"]["entryAddress"].as_u64().unwrap() as u32;
        assert_eq!(inspected["fileSize"], std::fs::metadata(folder.path().join(&name)).unwrap().len(), "{name}");
        for (tool, arguments) in calls_on(&name, entry) {
            let first = stdio.call(tool, arguments.clone());
            assert_ne!(first["isError"], true, "{name} {tool}: {first}");
            let params = json!({"name": tool, "arguments": arguments});
            let second = http.modern("/mcp", "tools/call", params, Some(tool)).message()["result"].clone();
            let first = &first["structuredContent"];
            if tool == "server_capabilities" {
                continue;
            }
            assert_eq!(first, &second["structuredContent"], "{name} {tool}");
            let third = typed(folder.path(), tool, &arguments);
            // From a shell an answer has no bound, so a long one is whole there.
            if first.get("truncated").is_none() {
                assert_eq!(first, &third, "{name} {tool}");
            } else {
                assert!(third.get("truncated").is_none(), "{name} {tool}");
            }
        }
    }
}

#[tokio::test]
async fn a_whole_rom_can_be_walked_in_parts() {
    let (folder, names) = workspace();
    let context = context(folder.path(), Some(base::limits::DEFAULT_OUTPUT_CHARS));
    for name in names {
        let mut offset = json!(0);
        let (mut functions, mut totals) = (0, Value::Null);
        while !offset.is_null() {
            let arguments = json!({
                "rom": name, "processor": "arm9", "scope": {"kind": "all-executable-components"}, "offset": offset,
                "maxComponents": 4_096, "maxFunctions": 65_536, "maxCallSites": 1_048_576, "maxTotalBlocks": 4_194_304,
                "maxTotalInstructions": 4_194_304, "maxTotalBytes": 16_777_216, "maxTotalEdges": 8_388_608,
                "maxCfgBlocksPerFunction": 65_536, "maxCfgInstructionsPerFunction": 65_536,
                "maxCfgBytesPerFunction": 262_144, "maxCfgEdgesPerFunction": 131_072, "limit": 5_000,
            });
            let part = answer(tool_call(&context, "nds_discover_functions", arguments).await.unwrap());
            functions += part["functions"].as_array().unwrap().len();
            totals = part["totals"].clone();
            // The walk over the functions is enough here; the calls behind them come the same way.
            offset = if part["functions"].as_array().unwrap().is_empty() { Value::Null } else { part["next"].clone() };
        }
        assert_eq!(totals["functions"], functions, "{name}");
        assert!(functions > 0, "{name}");
    }
}
