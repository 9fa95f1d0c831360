//! Calls of every tool on a ROM, and a context to make them in.

use retroscope::agent_client::AgentClient;
use retroscope::context::{Context, Facts};
use retroscope::errors::ToolError;
use retroscope::launch_roots::LaunchRoots;
use retroscope::tools::{self, Answer};
use retroscope::workspace::Workspace;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

/// Our own test ROM; `fixtures/nds-overlay-rom` has its sources.
pub const ROM: &[u8] = include_bytes!("../../../../fixtures/nds-overlay-rom/ndslab-test.nds");

/// Every tool on ROMs and files with arguments that any ROM can answer: its programs begin where its header says.
pub fn calls_on(rom: &str, entry: u32) -> Vec<(&'static str, Value)> {
    let main = json!({"kind": "main"});
    let more = |more: Value| {
        let mut arguments = json!({"rom": rom});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        arguments
    };
    let code = more(json!({"processor": "arm9", "runtimeAddress": entry, "mode": "arm"}));
    let function = json!({"processor": "arm9", "runtimeAddress": entry, "mode": "arm", "proofScope": main});
    vec![
        ("nds_inspect_rom", more(json!({}))),
        ("nds_list_files", more(json!({}))),
        ("nds_list_overlays", more(json!({}))),
        ("nds_resolve_runtime_address", more(json!({"processor": "arm9", "address": entry}))),
        ("nds_resolve_rom_offset", more(json!({"offset": 0x20}))),
        ("nds_extract_component", more(json!({"component": "arm9"}))),
        ("nds_extract_analysis_bundle", more(json!({}))),
        ("nds_disassemble_range", code.clone()),
        ("nds_analyze_control_flow", code.clone()),
        ("nds_list_references", code),
        ("nds_find_xrefs", more(json!({"processor": "arm9", "targetRuntimeAddress": entry, "scope": main}))),
        (
            "nds_search_pattern",
            more(
                json!({"pattern": {"kind": "byte-signature", "signature": "1e ff 2f ??"}, "scope": {"kind": "whole-rom"}}),
            ),
        ),
        ("nds_discover_functions", more(json!({"processor": "arm9", "scope": main}))),
        ("nds_analyze_function", more(function)),
        ("verify_file_sha256", json!({"file": rom, "expectedSha256": "0".repeat(64)})),
        ("server_capabilities", json!({})),
    ]
}

/// The same on our own ROM, with addresses at which there is something to tell.
pub fn calls(rom: &str) -> Vec<(&'static str, Value)> {
    let mut calls = calls_on(rom, 0x0200_0000);
    for (tool, arguments) in &mut calls {
        match *tool {
            // The second overlay is at the same address as the first.
            "nds_resolve_runtime_address" => arguments["address"] = json!(0x0210_0000),
            // The entry calls this function.
            "nds_find_xrefs" => arguments["targetRuntimeAddress"] = json!(0x0200_02a0),
            "nds_search_pattern" => arguments["pattern"] = json!({"kind": "ascii", "text": "hello"}),
            _ => {}
        }
    }
    calls
}

/// A context with a workspace; `limit` is the longest answer in characters.
pub fn context(folder: &Path, limit: Option<usize>) -> Context {
    let workspace = Workspace::open(&folder.canonicalize().unwrap()).unwrap();
    let agent = AgentClient::new("", Duration::ZERO);
    Context::new(agent, limit, Some(workspace), LaunchRoots::default(), Facts::default())
}

/// Calls a tool in the process.
pub async fn tool_call(context: &Context, tool: &str, arguments: Value) -> Result<Answer, ToolError> {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    tools::find(tool).unwrap().call(context, arguments).await
}

/// The data of an answer.
pub fn answer(answer: Answer) -> Value {
    match answer {
        Answer::Data(data) => data,
        other => panic!("{other:?}"),
    }
}

/// Whether `whole` has everything that `part` shows: fields of objects, and the first items of lists.
pub fn has(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(key, value)| whole.get(key).is_some_and(|found| has(found, value)))
        }
        (Value::Array(whole), Value::Array(part)) => {
            part.len() <= whole.len() && whole.iter().zip(part).all(|(whole, part)| has(whole, part))
        }
        (whole, part) => whole == part,
    }
}
