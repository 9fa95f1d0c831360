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
    let (_small_folder, small) = world(Some(5_000));
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

#[tokio::test]
async fn an_argument_of_a_wrong_form_is_named_with_the_forms_it_has() {
    let (_folder, context) = world(None);
    for (tool, argument, wrong, words) in [
        ("nds_search_pattern", "pattern", json!("hello"), vec!["`{\"kind\": \"ascii\", \"text\"}`", "an object"]),
        ("nds_search_pattern", "pattern", json!({"text": "a"}), vec!["missing field `kind`", "\"byte-signature\""]),
        ("nds_search_pattern", "scope", json!("whole-rom"), vec!["`{\"kind\": \"whole-rom\"}`"]),
        ("nds_discover_functions", "scope", json!("main"), vec!["`{\"kind\": \"main\"}`", "\"overlayIds\""]),
        (
            "nds_discover_functions",
            "seeds",
            json!([1]),
            vec!["a list, each item `{\"mode\", \"runtimeAddress\", \"overlayId\"?}`"],
        ),
        ("nds_find_xrefs", "processor", json!(9), vec!["`arm9` or `arm7`"]),
        ("nds_analyze_function", "mode", json!("auto"), vec!["`arm` or `thumb`"]),
    ] {
        let calls = support::nds::calls("rom.nds");
        let (_, mut arguments) = calls.into_iter().find(|(name, _)| *name == tool).unwrap();
        arguments[argument] = wrong;
        let (code, line) = refused(&context, tool, &arguments).await;
        assert_eq!(code, "invalid_arguments");
        assert!(line.contains(&format!("{tool}: `{argument}`: ")), "{line}");
        assert!(words.iter().all(|word| line.contains(word)), "{line}");
    }
    // No name of a type of ours gets out, whatever is wrong with an argument.
    for (tool, arguments) in support::nds::calls("rom.nds") {
        let schema = (retroscope::tools::find(tool).unwrap().input_schema)();
        for name in schema["properties"].as_object().unwrap().keys() {
            for wrong in [json!(true), json!(1.5), json!("?"), json!({}), json!([{}])] {
                let mut arguments = arguments.clone();
                arguments[name] = wrong.clone();
                let Err(error) = tool_call(&context, tool, arguments).await else { continue };
                let line = error.line();
                for word in ["enum ", "struct ", "variant of"] {
                    assert!(!line.contains(word), "{tool} {name} {wrong}: {line}");
                }
                if error.code.word() == "invalid_arguments" {
                    assert!(line.contains(&format!("`{name}`")), "{tool} {name} {wrong}: {line}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_walk_that_leaves_calls_out_is_not_complete() {
    let (_folder, context) = world(None);
    let mut arguments = json!({"rom": "rom.nds", "processor": "arm9", "scope": {"kind": "main"}});
    let all = told(&context, "nds_discover_functions", &arguments).await;
    assert_eq!((&all["status"], &all["unfollowedCalls"]), (&json!("complete"), &json!(0)));
    arguments["evidence"] = json!(["program-entry"]);
    let entry = told(&context, "nds_discover_functions", &arguments).await;
    assert_eq!((&entry["status"], &entry["totals"]["functions"]), (&json!("partial-coverage"), &json!(1)));
    // The entry's own code has one `bl`, at 0x02000008, to 0x020002a0.
    assert_eq!(entry["unfollowedCalls"], 1);
}

#[tokio::test]
async fn references_are_counted_apart_from_what_else_is_listed() {
    let (_folder, context) = world(None);
    let arguments = json!({"rom": "rom.nds", "processor": "arm9", "targetRuntimeAddress": 0x0200_02a0,
                           "scope": {"kind": "main"}, "limit": 1, "offset": 1});
    let found = told(&context, "nds_find_xrefs", &arguments).await;
    // One reference, one `bx r3` that nothing settles, one component; the part that was asked for has the second of them.
    assert_eq!((&found["xrefCount"], &found["total"], &found["xrefs"]), (&json!(1), &json!(3), &json!([])));
}

#[tokio::test]
async fn bytes_that_hold_no_instruction_are_refused() {
    let (_folder, context) = world(None);
    for tool in ["nds_disassemble_range", "nds_list_references"] {
        // The entry is ARM code, whose instructions have 4 bytes.
        let mut arguments =
            json!({"rom": "rom.nds", "processor": "arm9", "runtimeAddress": 0x0200_0000, "mode": "arm"});
        for (bytes, wanted) in [(2, None), (3, None), (4, Some(4)), (7, Some(4)), (8, Some(8))] {
            arguments["maxBytes"] = json!(bytes);
            match wanted {
                None => {
                    let (code, line) = refused(&context, tool, &arguments).await;
                    let why = format!("maxBytes is {bytes}, and the arm instruction at 0x02000000 has 4 bytes");
                    assert!(code == "disassembly-backend-failure" && line.contains(&why), "{line}");
                }
                Some(decoded) => assert_eq!(told(&context, tool, &arguments).await["decodedBytes"], decoded),
            }
        }
    }
}

#[tokio::test]
async fn addresses_in_evidence_can_be_read() {
    let (_folder, context) = world(None);
    for (tool, arguments) in support::nds::calls("rom.nds") {
        let mut left = vec![told(&context, tool, &arguments).await];
        while let Some(value) = left.pop() {
            match value {
                Value::Array(list) => left.extend(list),
                Value::Object(map) => {
                    for (name, inner) in &map {
                        // What ends so is a place in memory or in the file, everywhere.
                        let place =
                            ["Address", "RomOffset", "Slot", "runtimeStart", "runtimeEnd", "romStart", "romEnd"];
                        if inner.is_u64() && place.iter().any(|end| name.ends_with(end)) {
                            let hex = format!("0x{:08x}", inner.as_u64().unwrap());
                            assert_eq!(map.get(&format!("{name}Hex")), Some(&json!(hex)), "{tool}: {name}");
                        }
                    }
                    left.extend(map.into_iter().map(|(_, inner)| inner));
                }
                _ => {}
            }
        }
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_rom_is_not_replaced_by_what_is_extracted_from_it() {
    let (folder, context) = world(None);
    let arm9 = json!({"rom": "rom.nds", "component": "arm9"});
    let first = told(&context, "nds_extract_component", &arm9).await;
    let output = first["output"].as_str().unwrap().to_owned();
    std::fs::remove_file(&output).unwrap();
    std::fs::hard_link(folder.path().join("rom.nds"), &output).unwrap();
    let (code, line) = refused(&context, "nds_extract_component", &arm9).await;
    assert!(code == "generated-path-failure" && line.contains("is `rom.nds` itself"), "{line}");
    assert_eq!(std::fs::read(&output).unwrap(), ROM);
    // A folder that has it somewhere below is not replaced either, by whatever name the ROM is given.
    let whole = told(&context, "nds_extract_analysis_bundle", &json!({"rom": "rom.nds"})).await;
    let inside = std::path::Path::new(whole["outputRoot"].as_str().unwrap()).join("below/rom.nds");
    std::fs::create_dir(inside.parent().unwrap()).unwrap();
    std::fs::rename(folder.path().join("rom.nds"), &inside).unwrap();
    let inside = inside.to_str().unwrap();
    let (code, line) = refused(&context, "nds_extract_analysis_bundle", &json!({"rom": inside})).await;
    assert!(code == "generated-path-failure" && line.contains("would be replaced"), "{line}");
    assert_eq!(std::fs::read(inside).unwrap(), ROM);
}

#[cfg(unix)]
#[tokio::test]
async fn what_stands_in_the_way_of_an_output_is_told() {
    let (folder, context) = world(None);
    let sha16 = told(&context, "nds_inspect_rom", &json!({"rom": "rom.nds"})).await["sha256"].as_str().unwrap()[..16]
        .to_owned();
    let above = folder.path().join("analysis/generated/nds");
    std::fs::create_dir_all(&above).unwrap();
    let outside = tempfile::tempdir().unwrap();
    for tool in ["nds_extract_component", "nds_extract_analysis_bundle"] {
        let mut arguments = json!({"rom": "rom.nds"});
        if tool == "nds_extract_component" {
            arguments["component"] = json!("arm9");
        }
        for target in [outside.path(), std::path::Path::new("nowhere")] {
            std::os::unix::fs::symlink(target, above.join(&sha16)).unwrap();
            let (code, line) = refused(&context, tool, &arguments).await;
            std::fs::remove_file(above.join(&sha16)).unwrap();
            let what = format!("analysis/generated/nds/{sha16} is a link that leads to no folder of the workspace");
            assert!(code == "generated-path-failure" && line.contains(&what), "{line}");
        }
        std::fs::write(above.join(&sha16), "").unwrap();
        let (_, line) = refused(&context, tool, &arguments).await;
        std::fs::remove_file(above.join(&sha16)).unwrap();
        assert!(line.contains(&format!("analysis/generated/nds/{sha16} is no folder")), "{line}");
    }
    assert!(std::fs::read_dir(outside.path()).unwrap().next().is_none());
}
