//! The contract of the tools on ROMs that scripts rely on: names, arguments with their ranges and defaults, and every key of
//! every answer, on our own test ROM.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

mod support;

use serde_json::{Value, json};
use support::nds::{ROM, answer, calls, tool_call};

/// Every tool with its arguments: `name`, `!` when required, `:least..most=default` or `:word|word`. Ranges of scans are those
/// that were raised; the defaults are the contract's.
const ARGUMENTS: &[(&str, &str)] = &[
    ("verify_file_sha256", "expectedSha256! file!"),
    ("nds_inspect_rom", "rom!"),
    ("nds_list_files", "limit:1..200=100 offset prefix rom!"),
    ("nds_list_overlays", "limit:1..200=100 offset processor:arm9|arm7|all rom!"),
    ("nds_resolve_runtime_address", "address! processor!:arm9|arm7 rom!"),
    ("nds_resolve_rom_offset", "offset! rom!"),
    (
        "nds_extract_component",
        "component!:arm9|arm7|arm9-overlay|arm7-overlay|nitrofs-file fileId filePath overlayId rom!",
    ),
    ("nds_extract_analysis_bundle", "rom!"),
    (
        "nds_disassemble_range",
        "maxBytes:2..1024=128 maxInstructions:1..256=32 mode:arm|thumb|auto overlayId processor!:arm9|arm7 rom! romOffset \
         runtimeAddress",
    ),
    (
        "nds_analyze_control_flow",
        "maxBlocks:1..256=64 maxBytes:2..16384=2048 maxEdges:1..1024=128 maxInstructions:1..4096=512 mode:arm|thumb|auto \
         overlayId processor!:arm9|arm7 rom! romOffset runtimeAddress",
    ),
    (
        "nds_list_references",
        "maxBytes:2..1024=128 maxInstructions:1..256=32 mode:arm|thumb|auto overlayId processor!:arm9|arm7 rom! romOffset \
         runtimeAddress",
    ),
    (
        "nds_find_xrefs",
        "maxBlocks:1..4194304=128 maxBytes:2..16777216=8192 maxComponents:1..4096=32 maxEdges:1..8388608=512 \
         maxInstructions:1..4194304=2048 maxXrefs:1..65536=256 processor!:arm9|arm7 rom! scope! seeds targetRomOffset \
         targetRuntimeAddress",
    ),
    (
        "nds_search_pattern",
        "contextBytes:0..64=0 limit:1..1000=100 maxScanBytes:1..536870912=67108864 offset:0..99999=0 pattern! rom! scope!",
    ),
    (
        "nds_discover_functions",
        "maxCallSites:1..1048576=512 maxCfgBlocksPerFunction:1..65536=64 maxCfgBytesPerFunction:2..262144=2048 \
         maxCfgEdgesPerFunction:1..131072=128 maxCfgInstructionsPerFunction:1..65536=512 maxComponents:1..4096=32 \
         maxFunctions:1..65536=128 maxTotalBlocks:1..4194304=512 maxTotalBytes:2..16777216=32768 \
         maxTotalEdges:1..8388608=2048 maxTotalInstructions:1..4194304=4096 processor!:arm9|arm7 rom! scope! seeds",
    ),
    (
        "nds_analyze_function",
        "maxCfgBlocks:1..256=64 maxCfgBytes:2..16384=2048 maxCfgEdges:1..1024=128 maxCfgInstructions:1..4096=512 \
         maxProofBlocks:1..4194304=128 maxProofBytes:2..16777216=8192 maxProofCallSites:1..1048576=256 \
         maxProofComponents:1..4096=32 maxProofEdges:1..8388608=512 maxProofInstructions:1..4194304=2048 mode!:arm|thumb \
         overlayId processor!:arm9|arm7 proofScope! rom! runtimeAddress! seeds",
    ),
    ("server_capabilities", ""),
];

/// What an argument's schema says, as [`ARGUMENTS`] writes it.
fn argument(name: &str, schema: &Value, required: bool) -> String {
    let mut text = format!("{name}{}", if required { "!" } else { "" });
    if let Some(words) = schema["enum"].as_array() {
        let words: Vec<_> = words.iter().map(|word| word.as_str().unwrap()).collect();
        text += &format!(":{}", words.join("|"));
    } else if schema["maximum"].is_u64() && schema["default"].is_u64() && schema["type"] == "integer" {
        text += &format!(":{}..{}={}", schema["minimum"], schema["maximum"], schema["default"]);
    }
    text
}

#[test]
fn every_argument_is_there_with_its_range_and_default() {
    for (tool, wanted) in ARGUMENTS {
        let schema = (retroscope::tools::find(tool).unwrap().input_schema)();
        let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
        let found: Vec<String> = schema["properties"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(name, schema)| argument(name, schema, required.contains(&json!(name))))
            .collect();
        for wanted in wanted.split_whitespace() {
            assert!(
                found
                    .iter()
                    .any(|found| found == wanted || found.split_once(':').is_some_and(|(name, _)| name == wanted)),
                "{tool}: {wanted} is not in {found:?}"
            );
        }
        // What was added may be left out.
        for added in found.iter().filter(|found| !wanted.split_whitespace().any(|word| name(word) == name(found))) {
            assert!(!added.contains('!'), "{tool}: {added}");
        }
    }
}

fn name(argument: &str) -> &str {
    argument.split([':', '!']).next().unwrap()
}

const SOURCE: &str = "processor component overlayId runtimeAddress romOffset runtimeImageOffset runtimeStart runtimeEnd \
                      romStart romEnd representation mode";
const PROGRAM: &str = "romOffset entryAddress ramAddress size romEnd ramEnd";
const INSTRUCTION: &str = "address romOffset size bytesHex mode mnemonic operands flow source targetResolution";
const CANDIDATE: &str = "kind processor runtimeAddress relativeOffset runtimeImageOffset representation overlayId fileId \
                         romOffset backingRomOffset backingRomSize compressed";
const CALL: &str = "fromBlockId instructionAddress targetAddress targetMode resolution";
const REFERENCE_SOURCE: &str = "processor component overlayId instructionAddress instructionRomOffset mode";
const ENTRY: &str = "processor component overlayId runtimeAddress romOffset mode";

/// Keys of each answer: the path to an object, `[]` for the items of a list, and the keys that it has.
const KEYS: &[(&str, &[(&str, &str)])] = &[
    (
        "nds_inspect_rom",
        &[
            (
                "",
                "rom sha256 sha256Prefix fileSize game arm9 arm7 fnt fat arm9OverlayTable arm7OverlayTable bannerOffset \
                 nitroFsFileCount arm9OverlayCount arm7OverlayCount executableRanges",
            ),
            ("game", "title code makerCode unitCode deviceCapacity romVersion"),
            ("arm9", PROGRAM),
            ("arm7", PROGRAM),
            ("fnt", "offset size end"),
            ("fat", "offset size end"),
            ("arm9OverlayTable", "offset size end"),
            ("arm7OverlayTable", "offset size end"),
            ("executableRanges[]", "kind processor start initializedEnd end sourceId overlayId compressed"),
        ],
    ),
    (
        "nds_list_files",
        &[("", "total offset limit nextOffset files"), ("files[]", "fileId path romOffset endOffset size")],
    ),
    (
        "nds_list_overlays",
        &[
            ("", "total offset limit nextOffset overlays"),
            (
                "overlays[]",
                "processor overlayId ramAddress ramSize ramEnd bssSize bssEnd staticInitStart staticInitEnd fileId romOffset \
                 romSize compressedSize flags compressed",
            ),
        ],
    ),
    ("nds_resolve_runtime_address", &[("", "status candidates"), ("candidates[]", CANDIDATE)]),
    ("nds_resolve_rom_offset", &[("", "offset matches"), ("matches[]", "kind fileId overlayId runtimeAddress")]),
    (
        "nds_extract_component",
        &[(
            "",
            "output component sourceRomSha256 outputSha256 romOffset size ramAddress processor overlayId fileId compressed \
             compressedSize",
        )],
    ),
    ("nds_extract_analysis_bundle", &[("", "outputRoot manifestPath")]),
    (
        "nds_disassemble_range",
        &[
            ("", "status source instructions decodedBytes stopAddress"),
            ("source", SOURCE),
            ("instructions[]", INSTRUCTION),
            ("instructions[].flow", "kind directTarget targetMode fallthrough"),
            ("instructions[].source", "processor component overlayId"),
        ],
    ),
    (
        "nds_analyze_control_flow",
        &[
            ("", "entry status truncationReasons blocks edges calls unresolvedEdges totals"),
            ("entry", SOURCE),
            ("blocks[]", "id source startAddress mode instructions stopReason"),
            ("blocks[].source", SOURCE),
            ("blocks[].instructions[]", INSTRUCTION),
            ("edges[]", "fromBlockId type targetAddress targetMode targetBlockId"),
            ("calls[]", CALL),
            ("calls[].resolution", "status source"),
            ("calls[].resolution.source", SOURCE),
            ("totals", "blocks instructions bytes edges"),
        ],
    ),
    (
        "nds_list_references",
        &[
            ("", "status source instructionsExamined decodedBytes references"),
            ("source", SOURCE),
            ("references[]", "kind source target evidence"),
            ("references[].source", REFERENCE_SOURCE),
            ("references[].target", "runtimeAddress romOffset mode resolution"),
            ("references[].target.resolution", "status candidate"),
            ("references[].evidence", "instructionMnemonic mechanism"),
        ],
    ),
    (
        "nds_find_xrefs",
        &[
            ("", "status target scan coverage truncationReasons xrefs"),
            ("target", "requestedBy runtimeAddress romOffset resolution"),
            ("target.resolution", "status candidate"),
            ("target.resolution.candidate", CANDIDATE),
            (
                "scan",
                "processor componentsRequested componentsScanned blocksDecoded instructionsDecoded decodedBytes \
                 traversalEdges",
            ),
            ("coverage[]", "component overlayId status"),
            ("xrefs[]", "kind source target evidence"),
            ("xrefs[].source", REFERENCE_SOURCE),
            ("xrefs[].target", "runtimeAddress romOffset mode resolution"),
            ("xrefs[].target.resolution", "status candidate"),
            ("xrefs[].evidence", "instructionMnemonic mechanism"),
        ],
    ),
    (
        "nds_search_pattern",
        &[
            ("", "rom sha256 status truncationReasons offset limit nextOffset scannedBytes discoveredMatches matches"),
            ("matches[]", "romOffset endOffset length bytesHex owners context"),
            ("matches[].owners[]", "kind"),
            ("matches[].context", "beforeHex afterHex clippedAtStart clippedAtEnd"),
        ],
    ),
    (
        "nds_discover_functions",
        &[
            ("", "status processor functions calls coverage truncationReasons totals"),
            ("functions[]", "id entry evidence directCallerCount directCallSiteCount cfg"),
            ("functions[].entry", ENTRY),
            ("functions[].evidence[]", "kind"),
            (
                "functions[].cfg",
                "status truncationReasons blocks instructions decodedBytes traversalEdges returnSites unresolvedEdges",
            ),
            ("calls[]", "callerFunctionId instructionAddress instructionRomOffset calleeFunctionId"),
            ("coverage[]", "component overlayId status"),
            ("totals", "functions callSites blocks instructions decodedBytes traversalEdges"),
        ],
    ),
    (
        "nds_analyze_function",
        &[
            ("", "proofStatus entry evidence proofSearch cfg callers outgoingCalls returnSites unresolvedExits"),
            ("entry", ENTRY),
            ("evidence[]", "kind processor headerEntryAddress"),
            ("proofSearch", "status coverage truncationReasons"),
            ("proofSearch.coverage[]", "component overlayId status"),
            ("cfg", "entry status truncationReasons blocks edges calls unresolvedEdges totals"),
            ("cfg.entry", SOURCE),
            ("cfg.blocks[]", "id source startAddress mode instructions stopReason"),
            ("cfg.edges[]", "fromBlockId type targetAddress targetMode targetBlockId"),
            ("cfg.calls[]", CALL),
            ("cfg.calls[].resolution", "status source"),
            ("cfg.totals", "blocks instructions bytes edges"),
            ("outgoingCalls[]", CALL),
            ("outgoingCalls[].resolution", "status source"),
            ("outgoingCalls[].resolution.source", SOURCE),
        ],
    ),
    ("verify_file_sha256", &[("", "file actualSha256 expectedSha256 matches")]),
    (
        "server_capabilities",
        &[(
            "",
            "version transport workspaceRoot activeToolProfile advertisedToolCount tools arbitraryShell mutationPolicy \
             ndsMutationTools processPolicy debuggerPolicy evidencePolicy controllerCheckpointPolicy \
             ndsStaticAnalysisTools ndsGhidraTools reOrchestrationTools reOrchestrationPolicy \
             investigationPersistencePolicy ndsStaticAnalysisPolicy",
        )],
    ),
];

/// The objects at a path.
fn objects<'a>(answer: &'a Value, path: &str) -> Vec<&'a Value> {
    let mut found = vec![answer];
    for step in path.split('.').filter(|step| !step.is_empty()) {
        let key = step.trim_end_matches("[]");
        found = found.into_iter().map(|value| &value[key]).collect();
        if step.ends_with("[]") {
            found = found.into_iter().flat_map(|list| list.as_array().into_iter().flatten()).collect();
        }
        found.retain(|value| !value.is_null());
    }
    found
}

#[tokio::test]
async fn every_answer_has_the_keys_of_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("rom.nds"), ROM).unwrap();
    let context = support::nds::context(folder.path(), None);
    for (tool, shapes) in KEYS {
        let (_, arguments) = calls("rom.nds").into_iter().find(|(name, _)| name == tool).unwrap();
        let told = answer(tool_call(&context, tool, arguments).await.unwrap());
        for (path, keys) in *shapes {
            let found = objects(&told, path);
            assert!(!found.is_empty(), "{tool}: there is nothing at `{path}` to look at: {told}");
            for object in found {
                for key in keys.split_whitespace() {
                    assert!(object.get(key).is_some(), "{tool}: `{path}` has no `{key}`: {object}");
                }
            }
        }
    }
}

#[tokio::test]
async fn every_answer_is_what_its_own_schema_says() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("rom.nds"), ROM).unwrap();
    let context = support::nds::context(folder.path(), None);
    for (tool, arguments) in calls("rom.nds") {
        let schema = (retroscope::tools::find(tool).unwrap().output_schema)().unwrap();
        let told = answer(tool_call(&context, tool, arguments).await.unwrap());
        for (key, value) in told.as_object().unwrap() {
            let property = &schema["properties"][key];
            assert!(property.is_object(), "{tool}: `{key}` is not in the schema");
            let kinds = match &property["type"] {
                Value::String(kind) => vec![kind.as_str()],
                Value::Array(kinds) => kinds.iter().map(|kind| kind.as_str().unwrap()).collect(),
                _ => continue,
            };
            let kind = match value {
                Value::Null => "null",
                Value::Bool(_) => "boolean",
                Value::Number(_) => "integer",
                Value::String(_) => "string",
                Value::Array(_) => "array",
                Value::Object(_) => "object",
            };
            assert!(kinds.contains(&kind), "{tool}: `{key}` is {kind}, the schema says {kinds:?}");
        }
        for required in schema["required"].as_array().unwrap() {
            assert!(told.get(required.as_str().unwrap()).is_some(), "{tool}: {required}");
        }
    }
}
