//! The files that go with a result, the same bytes for the same build; and judging those that are there already.

use std::ops::Range;

use serde_json::{Value, json};

use super::plan::{Plan, Planned};
use super::target::refuse;
use super::verify::Report;
use super::{REBUILD_CONTRACT, bps, json as strict};
use crate::component::Processor;
use crate::refusal::Refusal;
use crate::rom::Rom;

/// Who wrote the files: those that name it are held to every byte.
const PRODUCER: &str = "retroscope";

/// A file beside the result: its name and its bytes.
pub type Evidence = (String, Vec<u8>);

/// The files of a build, without the result itself.
pub fn evidence(rom: &Rom, plan: &Plan, report: &Report) -> Result<Vec<Evidence>, Refusal> {
    let output = &report.output;
    let filename = &plan.manifest.filename;
    let mut files = vec![
        ("mutation-manifest.json".to_owned(), line(&plan.manifest.canonical)),
        ("resolved-plan.json".to_owned(), pretty(&resolved(rom, plan))),
        ("verification.json".to_owned(), pretty(&verification(rom, plan, report))),
        ("changed-components.json".to_owned(), pretty(&changed(plan))),
        ("output.sha256".to_owned(), line(&format!("{}  {filename}", output.sha256()))),
    ];
    if plan.manifest.version >= 3 {
        let patch = bps::create(rom.bytes(), output.bytes());
        if bps::apply(&patch, rom.bytes(), output.bytes().len()).as_deref() != Ok(output.bytes()) {
            let message = "the patch file does not make the result of the source".to_owned();
            return Err(refuse(
                "output-verification-failed",
                message,
                "Nothing was written. Please report this with the manifest.",
            ));
        }
        files.push((format!("{filename}.bps"), patch));
    }
    Ok(files)
}

/// Judges evidence that is there. Ours has to be the same to the byte. That of another producer is of another form, and is
/// right when the identities in it are.
pub fn check_evidence(expected: &[Evidence], found: &[Evidence], plan: &Plan, report: &Report) -> Result<(), Refusal> {
    let differs = |name: &str| {
        let message = format!("`{name}` beside the result is missing, or is not what this build has there");
        refuse("output-verification-failed", message, "Move the folder of the build away and build again.")
    };
    let get = |name: &str| found.iter().find(|(found, _)| found == name).map(|(_, bytes)| bytes.as_slice());
    let foreign = found.iter().all(|(_, bytes)| !bytes.windows(PRODUCER.len()).any(|part| part == PRODUCER.as_bytes()));
    if !foreign || plan.manifest.version >= 3 {
        let wrong = expected.iter().find(|(name, bytes)| get(name) != Some(bytes));
        let extra = found.iter().find(|(name, _)| expected.iter().all(|(expected, _)| expected != name));
        return wrong.or(extra).map_or(Ok(()), |(name, _)| Err(differs(name)));
    }
    let value = |name: &str| get(name).and_then(|bytes| strict::parse(bytes).ok()).ok_or_else(|| differs(name));
    if strict::canonical(&value("mutation-manifest.json")?) != plan.manifest.canonical {
        return Err(differs("mutation-manifest.json"));
    }
    let recorded = value("verification.json")?;
    let at = |place: &str| recorded.pointer(place).and_then(Value::as_str);
    let output = at("/outputSha256").or_else(|| at("/output/sha256"));
    let source = at("/sourceSha256").or_else(|| at("/source/sha256"));
    let right = at("/status") == Some("passed")
        && output == Some(report.output.sha256())
        && source == Some(plan.manifest.source_sha256.as_str());
    if !right {
        return Err(differs("verification.json"));
    }
    value("resolved-plan.json")?;
    value("changed-components.json")?;
    let hash = get("output.sha256").and_then(|bytes| bytes.get(..64)).unwrap_or_default();
    if hash != report.output.sha256().as_bytes() {
        return Err(differs("output.sha256"));
    }
    Ok(())
}

fn line(text: &str) -> Vec<u8> {
    format!("{text}\n").into_bytes()
}

fn pretty(value: &Value) -> Vec<u8> {
    line(&format!("{value:#}"))
}

fn range(range: &Range<u32>) -> Value {
    json!({"start": range.start, "end": range.end})
}

fn overlay(overlay: Option<(Processor, u32)>) -> Value {
    overlay.map_or(Value::Null, |(processor, id)| json!({"processor": processor.word(), "overlayId": id}))
}

fn insert(value: &mut Value, key: &str, what: Value) {
    if let Some(map) = value.as_object_mut() {
        map.insert(key.to_owned(), what);
    }
}

/// What is said of an operation: of every version, `romStart` and `romEnd` are where its bytes are in the result.
fn operation(index: usize, planned: &Planned) -> Value {
    let mut value = json!({
        "index": index,
        "kind": planned.kind,
        "type": planned.operation,
        "romStart": planned.range.start,
        "romEnd": planned.range.end,
        "sha256": planned.sha256,
    });
    if let Some(source) = &planned.source {
        insert(&mut value, "source", range(source));
    }
    if let Some(file) = planned.file {
        insert(&mut value, "fileId", file.into());
    }
    if planned.overlay.is_some() {
        insert(&mut value, "overlay", overlay(planned.overlay));
    }
    if let Some(path) = &planned.path {
        insert(&mut value, "path", path.as_str().into());
    }
    if let Some((expected, replacement)) = &planned.diff {
        insert(&mut value, "expected", expected.as_str().into());
        insert(&mut value, "replacement", replacement.as_str().into());
    }
    value
}

/// The whole plan, for people and for `resolved-plan.json`.
pub fn resolved(rom: &Rom, plan: &Plan) -> Value {
    let mut value = json!({
        "formatVersion": plan.manifest.version,
        "producer": PRODUCER,
        "source": {"sha256": rom.sha256(), "size": plan.source_size},
        "manifest": {"sha256": plan.manifest.sha256},
        "output": {"filename": plan.manifest.filename, "buildId": plan.build_id},
        "operations": plan.operations.iter().enumerate().map(|(index, planned)| operation(index, planned)).collect::<Vec<_>>(),
        "ranges": plan.patches.iter().map(|patch| json!({"kind": patch.kind, "owner": patch.owner, "start": patch.start, "end": patch.end()})).collect::<Vec<_>>(),
    });
    if plan.manifest.version >= 2 {
        insert(&mut value, "rebuildContractVersion", REBUILD_CONTRACT.into());
        insert(&mut value, "blzEncoderContractVersion", plan.encoder.into());
    }
    let Some(layout) = &plan.layout else { return value };
    let earlier = rom.files().len();
    insert(
        &mut value,
        "filesystemExtension",
        json!({
            "addedDirectories": plan.added_directories,
            "addedFiles": plan.files.len() - earlier,
            "finalDirectoryCount": plan.directories,
            "finalFileCount": plan.files.len(),
        }),
    );
    let fat = |(id, range): (usize, &Range<u32>)| json!({"fileId": id, "start": range.start, "end": range.end});
    insert(&mut value, "finalFat", plan.files.iter().enumerate().map(fat).collect::<Vec<_>>().into());
    let segments = layout.segments.iter().map(|segment| {
        json!({
            "kind": segment.kind,
            "ownerId": segment.owner,
            "alignment": segment.alignment,
            "start": segment.range.start,
            "end": segment.range.end,
            "size": segment.range.len(),
            "sha256": segment.sha256,
        })
    });
    insert(
        &mut value,
        "layout",
        json!({
            "sourceSize": plan.source_size,
            "tailStart": layout.tail_start,
            "logicalUsedSize": layout.used_size,
            "finalSize": layout.final_size,
            "deviceCapacity": layout.capacity,
            "segments": segments.collect::<Vec<_>>(),
        }),
    );
    let header = rom.bytes().get(..0x200).map(crate::rom::sha256_hex);
    insert(
        &mut value,
        "headerPlan",
        json!({"sourceHeaderSha256": header, "deviceCapacity": layout.capacity, "usedSize": layout.used_size}),
    );
    value
}

fn changed(plan: &Plan) -> Value {
    json!({
        "producer": PRODUCER,
        "components": plan.operations.iter().enumerate().map(|(index, planned)| operation(index, planned)).collect::<Vec<_>>(),
    })
}

/// The answer of a verification, and `verification.json`.
pub fn verification(rom: &Rom, plan: &Plan, report: &Report) -> Value {
    let output = &report.output;
    let overlays = plan.compressed.iter().map(|(processor, id, sha256)| {
        json!({"processor": processor.word(), "overlayId": id, "status": "passed", "runtimeSha256": sha256})
    });
    let overlays: Vec<Value> = overlays.collect();
    let operations = plan.operations.iter().enumerate().map(|(index, planned)| {
        let mut value = operation(index, planned);
        insert(&mut value, "status", "passed".into());
        value
    });
    let operations: Vec<Value> = operations.collect();
    let mut value = json!({
        "status": "passed",
        "producer": PRODUCER,
        "rebuildSemanticsVerified": true,
        "changedByteCount": report.changed_bytes,
        "unexpectedChangedBytes": 0,
        "compressedOverlays": overlays,
        "operations": operations,
    });
    if plan.manifest.version == 1 {
        for (key, what) in [
            ("sourceSha256", rom.sha256().into()),
            ("outputSha256", output.sha256().into()),
            ("sourceSize", plan.source_size.into()),
            ("outputSize", plan.final_size.into()),
            ("sourceUnchanged", true.into()),
            ("structuralMetadataUnchanged", true.into()),
            ("structuralMapUnchanged", true.into()),
        ] {
            insert(&mut value, key, what);
        }
        return value;
    }
    let used = plan.layout.as_ref().map_or(plan.source_size, |layout| layout.used_size);
    let capacity = plan.layout.as_ref().map_or(rom.header().device_capacity, |layout| layout.capacity);
    for (key, what) in [
        ("formatVersion", plan.manifest.version.into()),
        ("rebuildContractVersion", REBUILD_CONTRACT.into()),
        ("blzEncoderContractVersion", plan.encoder.into()),
        ("source", json!({"sha256": rom.sha256(), "size": plan.source_size, "unchanged": true})),
        (
            "output",
            json!({
                "rom": plan.manifest.filename,
                "sha256": output.sha256(),
                "size": plan.final_size,
                "logicalUsedSize": used,
                "deviceCapacity": capacity,
            }),
        ),
        ("manifestSha256", plan.manifest.sha256.as_str().into()),
        ("buildId", plan.build_id.as_str().into()),
        ("operationCount", plan.operations.len().into()),
        ("changedComponentCount", plan.operations.len().into()),
        ("canonicalOutputParse", true.into()),
    ] {
        insert(&mut value, key, what);
    }
    value
}
