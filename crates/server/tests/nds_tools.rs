//! The tools on code, functions and patterns, on our own test ROM: parts that make a whole, limits, refusals.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

mod support;

use retroscope::context::Context;
use serde_json::{Value, json};
use support::nds::{ROM, answer, context, tool_call};
use tempfile::TempDir;

/// A context over a workspace with our ROM, with a bound on answers or none.
fn world(limit: Option<usize>) -> (TempDir, Context) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("rom.nds"), ROM).unwrap();
    let context = context(folder.path(), limit);
    (folder, context)
}

async fn told(context: &Context, tool: &str, arguments: &Value) -> Value {
    answer(
        tool_call(context, tool, arguments.clone()).await.unwrap_or_else(|error| panic!("{tool} {arguments}: {error}")),
    )
}

async fn refused(context: &Context, tool: &str, arguments: &Value) -> (&'static str, String) {
    match tool_call(context, tool, arguments.clone()).await {
        Ok(given) => panic!("{tool} {arguments}: {given:?}"),
        Err(error) => (error.code.word(), error.line()),
    }
}

/// Asks for all parts, each as long as one answer may be.
async fn parts(context: &Context, tool: &str, arguments: &Value) -> Vec<Value> {
    let mut arguments = arguments.clone();
    let mut parts = Vec::new();
    loop {
        let part = told(context, tool, &arguments).await;
        assert!(part.to_string().chars().count() <= context.output_limit().unwrap_or(usize::MAX));
        assert_eq!(part["truncated"].is_string(), part["next"].is_u64(), "{part}");
        let next = part["next"].clone();
        parts.push(part);
        if next.is_null() {
            return parts;
        }
        arguments["offset"] = next;
    }
}

/// The list at `path` in all parts together.
fn joined(parts: &[Value], path: &str) -> Vec<Value> {
    parts.iter().flat_map(|part| part.pointer(path).and_then(Value::as_array).cloned().unwrap_or_default()).collect()
}

#[tokio::test]
async fn parts_of_an_answer_make_the_whole_one() {
    let (_whole_folder, whole) = world(None);
    let (_small_folder, small) = world(Some(4_000));
    let at = json!({"rom": "rom.nds", "processor": "arm9", "runtimeAddress": "0x020002a0", "mode": "arm"});
    let with = |more: Value| {
        let mut arguments = at.clone();
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        arguments
    };
    let scan = json!({"rom": "rom.nds", "processor": "arm9", "scope": {"kind": "all-executable-components"}});
    let mut xrefs = scan.clone();
    xrefs["targetRuntimeAddress"] = json!(0x0200_02a0);
    for (tool, arguments, lists) in [
        ("nds_disassemble_range", with(json!({"maxInstructions": 64, "maxBytes": 256})), vec!["/instructions"]),
        ("nds_list_references", with(json!({"maxInstructions": 256, "maxBytes": 1_024})), vec!["/references"]),
        ("nds_analyze_control_flow", at.clone(), vec!["/edges", "/calls", "/unresolvedEdges"]),
        ("nds_find_xrefs", xrefs, vec!["/xrefs", "/coverage", "/unresolvedIndirectCalls/sites"]),
        (
            "nds_discover_functions",
            scan,
            vec!["/functions", "/calls", "/coverage", "/seedCandidates", "/unresolvedIndirectCalls/sites"],
        ),
        (
            "nds_analyze_function",
            with(json!({"proofScope": {"kind": "main"}})),
            vec!["/callers", "/outgoingCalls", "/returnSites", "/unresolvedExits", "/cfg/edges", "/cfg/calls"],
        ),
    ] {
        let wanted = told(&whole, tool, &arguments).await;
        assert!(wanted["next"].is_null() && wanted["total"] == wanted["returned"], "{tool}");
        let mut few = arguments.clone();
        few["limit"] = json!(2);
        // As an answer's length bounds them, and as the caller does.
        for parts in [parts(&small, tool, &arguments).await, parts(&whole, tool, &few).await] {
            for list in &lists {
                assert_eq!(joined(&parts, list), joined(std::slice::from_ref(&wanted), list), "{tool}: {list}");
            }
            let returned: u64 = parts.iter().map(|part| part["returned"].as_u64().unwrap()).sum();
            assert_eq!(json!(returned), wanted["total"], "{tool}");
        }
        assert!(wanted["total"].as_u64().unwrap() > 2, "{tool} needs one part only");
    }
}

#[tokio::test]
async fn a_graph_in_parts_has_every_instruction_once() {
    let (_whole_folder, whole) = world(None);
    let (_small_folder, small) = world(Some(4_000));
    let arguments = json!({"rom": "rom.nds", "processor": "arm9", "runtimeAddress": 0x0200_02a0, "mode": "arm"});
    let instructions = |blocks: &[Value]| -> Vec<Value> {
        blocks.iter().flat_map(|block| block["instructions"].as_array().unwrap().clone()).collect()
    };
    let wanted = told(&whole, "nds_analyze_control_flow", &arguments).await;
    let blocks = wanted["blocks"].as_array().unwrap();
    assert_eq!(wanted["totals"]["blocks"], blocks.len());
    assert!(blocks.iter().all(|block| block["instructionCount"] == block["instructions"].as_array().unwrap().len()));
    let parts = parts(&small, "nds_analyze_control_flow", &arguments).await;
    assert_eq!(instructions(&joined(&parts, "/blocks")), instructions(blocks));
}

#[tokio::test]
async fn an_answer_of_the_usual_size_needs_no_limit_raised() {
    let (_folder, usual) = world(Some(base::limits::DEFAULT_OUTPUT_CHARS));
    for (tool, arguments) in support::nds::calls("rom.nds") {
        let length = told(&usual, tool, &arguments).await.to_string().chars().count();
        assert!(length <= base::limits::DEFAULT_OUTPUT_CHARS, "{tool}: {length}");
    }
}

#[tokio::test]
async fn each_limit_one_over_is_refused_by_its_name() {
    let (_folder, context) = world(None);
    for (tool, arguments) in support::nds::calls("rom.nds") {
        let schema = (retroscope::tools::find(tool).unwrap().input_schema)();
        for (name, property) in schema["properties"].as_object().unwrap() {
            let (Some(least), Some(most)) = (property["minimum"].as_i64(), property["maximum"].as_i64()) else {
                continue;
            };
            // Addresses, offsets and numbers of files and overlays are bounded by their 32 bits.
            if !name.starts_with("max") && !matches!(name.as_str(), "limit" | "contextBytes") {
                continue;
            }
            for wrong in [least - 1, most + 1] {
                let mut arguments = arguments.clone();
                arguments[name] = json!(wrong);
                let (code, line) = refused(&context, tool, &arguments).await;
                assert!(
                    line.contains(&format!("`{name}` is {wrong}; allowed are {least} to {most}")),
                    "{tool}: {line}"
                );
                assert!(code.ends_with("limit-exceeded") || code == "invalid_arguments", "{tool} {name}: {code}");
            }
        }
    }
}

#[tokio::test]
async fn what_cannot_be_searched_for_is_refused() {
    let (_folder, context) = world(None);
    let whole = json!({"kind": "whole-rom"});
    for (pattern, scope, code) in [
        (json!({"kind": "byte-signature", "signature": "?? ??"}), &whole, "invalid-pattern"),
        (json!({"kind": "byte-signature", "signature": "4?"}), &whole, "invalid-pattern"),
        (json!({"kind": "byte-signature", "signature": "?1"}), &whole, "invalid-pattern"),
        (json!({"kind": "byte-signature", "signature": ""}), &whole, "invalid-pattern"),
        (json!({"kind": "byte-signature", "signature": "0x41"}), &whole, "invalid-pattern"),
        (json!({"kind": "byte-signature", "signature": "41".repeat(1_025)}), &whole, "invalid-pattern"),
        (
            json!({"kind": "integer", "value": 256, "width": 8, "endian": "little", "signed": false}),
            &whole,
            "invalid-pattern",
        ),
        (
            json!({"kind": "integer", "value": 1, "width": 24, "endian": "little", "signed": false}),
            &whole,
            "invalid-pattern",
        ),
        (json!({"kind": "ascii", "text": "über"}), &whole, "invalid-pattern"),
        (json!({"kind": "ascii", "text": "a"}), &json!({"kind": "components"}), "invalid-pattern-scope"),
        (
            json!({"kind": "ascii", "text": "a"}),
            &json!({"kind": "components", "arm9OverlayIds": vec![0; 129]}),
            "invalid-pattern-scope",
        ),
        (
            json!({"kind": "ascii", "text": "a"}),
            &json!({"kind": "components", "arm9OverlayIds": [99]}),
            "unknown-overlay-id",
        ),
        (
            json!({"kind": "ascii", "text": "a"}),
            &json!({"kind": "components", "nitroFsPaths": ["x"]}),
            "unknown-file-id",
        ),
        (json!({"kind": "regex", "text": "a"}), &whole, "invalid_arguments"),
        (json!({"kind": "ascii", "text": "a", "more": 1}), &whole, "invalid_arguments"),
        (json!({"kind": "ascii", "text": "a"}), &json!({"kind": "whole-rom", "more": 1}), "invalid_arguments"),
    ] {
        let arguments = json!({"rom": "rom.nds", "pattern": pattern, "scope": scope});
        assert_eq!(refused(&context, "nds_search_pattern", &arguments).await.0, code, "{arguments}");
    }
}

#[tokio::test]
async fn a_pattern_is_found_where_the_file_has_it() {
    let (_folder, context) = world(None);
    // Looked for in the file itself, byte by byte.
    let wanted: Vec<usize> =
        ROM.windows(5).enumerate().filter(|(_, window)| window == b"hello").map(|(at, _)| at).collect();
    assert!(!wanted.is_empty());
    for pattern in [
        json!({"kind": "ascii", "text": "hello"}),
        json!({"kind": "byte-signature", "signature": "68 65 6c 6c 6f"}),
        json!({"kind": "byte-signature", "signature": "68656C??6F"}),
    ] {
        let arguments =
            json!({"rom": "rom.nds", "pattern": pattern, "scope": {"kind": "whole-rom"}, "contextBytes": 4});
        let found = told(&context, "nds_search_pattern", &arguments).await;
        let places: Vec<_> = found["matches"].as_array().unwrap().iter().map(|hit| hit["romOffset"].clone()).collect();
        assert_eq!(json!(places), json!(wanted), "{pattern}");
        assert_eq!((&found["status"], &found["scannedBytes"]), (&json!("complete"), &json!(ROM.len())));
        let before = &ROM[wanted[0] - 4..wanted[0]];
        let hex: String = before.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(found["matches"][0]["context"]["beforeHex"], hex);
    }
}

#[tokio::test]
async fn one_place_of_code_is_named_in_one_way() {
    let (_folder, context) = world(None);
    for tool in ["nds_disassemble_range", "nds_analyze_control_flow", "nds_list_references"] {
        for place in [json!({}), json!({"runtimeAddress": 0x0200_0000, "romOffset": 0x4000})] {
            let mut arguments = json!({"rom": "rom.nds", "processor": "arm9"});
            arguments.as_object_mut().unwrap().extend(place.as_object().unwrap().clone());
            let (code, line) = refused(&context, tool, &arguments).await;
            assert!(code == "invalid_arguments" && line.contains("exactly one is wanted"), "{tool}: {line}");
        }
        let odd = json!({"rom": "rom.nds", "processor": "arm9", "runtimeAddress": 0x0200_0002, "mode": "arm"});
        assert_eq!(refused(&context, tool, &odd).await.0, "disassembly-backend-failure");
    }
}

#[tokio::test]
async fn the_same_code_is_reached_by_address_and_by_offset() {
    let (_folder, context) = world(None);
    let by_address = json!({"rom": "rom.nds", "processor": "arm9", "runtimeAddress": "0x02000000", "mode": "arm"});
    let first = told(&context, "nds_disassemble_range", &by_address).await;
    let offset = &first["source"]["romOffset"];
    let by_offset = json!({"rom": "rom.nds", "processor": "arm9", "romOffset": offset, "mode": "arm"});
    assert_eq!(told(&context, "nds_disassemble_range", &by_offset).await, first);
    // The first word of the program as the file has it: msr cpsr_c, #0x1f.
    let at = offset.as_u64().unwrap() as usize;
    assert_eq!(ROM[at..at + 4], [0x1f, 0xf0, 0x21, 0xe3]);
    let instruction = &first["instructions"][0];
    assert_eq!((&instruction["bytesHex"], &instruction["mnemonic"]), (&json!("1ff021e3"), &json!("msr")));
    assert_eq!((&instruction["address"], &instruction["addressHex"]), (&json!(0x0200_0000), &json!("0x02000000")));
    assert_eq!(instruction["flow"]["fallthrough"], 0x0200_0004);
}

#[tokio::test]
async fn overlays_at_one_address_are_told_apart_by_their_number() {
    let (_folder, context) = world(None);
    let at = json!({"rom": "rom.nds", "processor": "arm9", "runtimeAddress": 0x0210_0000, "mode": "thumb"});
    let both = told(&context, "nds_disassemble_range", &at).await;
    assert_eq!((&both["status"], &both["source"]), (&json!("ambiguous-code-source"), &json!(null)));
    assert_eq!(both["candidates"].as_array().unwrap().len(), 2);
    for (overlay, representation) in [(0, "rom-file-backed"), (1, "derived-blz")] {
        let mut arguments = at.clone();
        arguments["overlayId"] = json!(overlay);
        let one = told(&context, "nds_disassemble_range", &arguments).await;
        assert_eq!(
            (&one["source"]["overlayId"], &one["source"]["representation"]),
            (&json!(overlay), &json!(representation))
        );
        assert!(!one["instructions"].as_array().unwrap().is_empty());
    }
}

#[tokio::test]
async fn functions_have_the_proofs_that_were_asked_for() {
    let (_folder, context) = world(None);
    let arguments = |evidence: Value| {
        let mut arguments = json!({"rom": "rom.nds", "processor": "arm9", "scope": {"kind": "main"}});
        if !evidence.is_null() {
            arguments["evidence"] = evidence;
        }
        arguments
    };
    let kinds = |found: &Value| -> Vec<String> {
        let mut kinds: Vec<_> = found["functions"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|function| function["evidence"].as_array().unwrap())
            .map(|evidence| evidence["kind"].as_str().unwrap().to_owned())
            .collect();
        kinds.sort();
        kinds.dedup();
        kinds
    };
    let all = told(&context, "nds_discover_functions", &arguments(Value::Null)).await;
    let entry = told(&context, "nds_discover_functions", &arguments(json!(["program-entry"]))).await;
    assert_eq!(kinds(&entry), ["program-entry"]);
    assert_eq!(entry["functions"][0]["evidence"][0]["headerEntryAddress"], 0x0200_0000);
    let direct = told(&context, "nds_discover_functions", &arguments(json!(["program-entry", "direct-call"]))).await;
    assert_eq!(kinds(&direct), ["direct-call", "program-entry"]);
    let count = |found: &Value| found["totals"]["functions"].as_u64().unwrap();
    assert!(count(&entry) < count(&direct) && count(&direct) <= count(&all));
    assert!(all["unresolvedIndirectCalls"]["count"].is_u64());
    for (evidence, code) in [(json!([]), "invalid_arguments"), (json!(["guess"]), "invalid_arguments")] {
        assert_eq!(refused(&context, "nds_discover_functions", &arguments(evidence)).await.0, code);
    }
}

#[tokio::test]
async fn scopes_and_seeds_that_cannot_be_are_refused() {
    let (_folder, context) = world(None);
    let xrefs = json!({"rom": "rom.nds", "processor": "arm9", "targetRuntimeAddress": 0x0200_02a0});
    let functions = json!({"rom": "rom.nds", "processor": "arm9"});
    let seed = json!({"runtimeAddress": 0x0200_0000, "mode": "arm"});
    for (tool, base, scope, seeds, code) in [
        ("nds_find_xrefs", &xrefs, json!({"kind": "overlay", "overlayIds": []}), json!([]), "invalid-reference-scope"),
        ("nds_find_xrefs", &xrefs, json!({"kind": "main"}), json!(vec![&seed; 513]), "reference-scan-limit-exceeded"),
        (
            "nds_discover_functions",
            &functions,
            json!({"kind": "overlay", "overlayIds": vec![0; 129]}),
            json!([]),
            "invalid-function-scope",
        ),
        (
            "nds_discover_functions",
            &functions,
            json!({"kind": "main"}),
            json!(vec![&seed; base::limits::MAX_FUNCTION_SEEDS + 1]),
            "function-discovery-limit-exceeded",
        ),
        (
            "nds_discover_functions",
            &functions,
            json!({"kind": "main", "overlayIds": [1]}),
            json!([]),
            "invalid_arguments",
        ),
        (
            "nds_discover_functions",
            &functions,
            json!({"kind": "overlay", "overlayIds": [99]}),
            json!([]),
            "unknown-overlay-id",
        ),
        (
            "nds_discover_functions",
            &functions,
            json!({"kind": "main"}),
            json!([{"runtimeAddress": 0x0210_0000, "mode": "thumb"}]),
            "function-entry-not-uniquely-resolved",
        ),
    ] {
        let mut arguments = base.clone();
        arguments["scope"] = scope;
        arguments["seeds"] = seeds;
        assert_eq!(refused(&context, tool, &arguments).await.0, code, "{tool} {}", arguments["scope"]);
    }
}
