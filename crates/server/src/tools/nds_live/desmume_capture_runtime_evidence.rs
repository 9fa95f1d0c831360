//! `desmume_capture_runtime_evidence`: registers and memory of a stop, as a file.

use super::prelude::*;
use std::path::{Component, Path, PathBuf};

/// The tool.
#[derive(Debug)]
pub struct DesmumeCaptureRuntimeEvidence;

/// What to write.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Params {
    /// A folder of the workspace; the workspace itself when it is left out.
    #[serde(default)]
    project: Option<String>,
    /// Below `analysis/generated` of the project.
    #[serde(default = "usual")]
    output: String,
    /// Memory to write, up to 16.
    #[serde(default)]
    regions: Vec<RegionWanted>,
    /// `arm9` (default) or `arm7`.
    #[serde(default)]
    processor: Which,
}

/// The file.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Told {
    /// Where it is.
    output: String,
    sha256: String,
    size: usize,
    #[serde(flatten)]
    place: Where,
}

impl Tool for DesmumeCaptureRuntimeEvidence {
    const NAME: &'static str = "desmume_capture_runtime_evidence";
    const DESCRIPTION: &'static str = "Write registers and memory of the stopped program, with the hash of the ROM, to a JSON file below analysis/generated of the workspace.";
    const EFFECT: Effect = Effect::OVERWRITES;
    type Params = Params;
    type Output = Shown<Told>;

    async fn run(context: &Context, params: Params) -> Result<Self::Output, ToolError> {
        let wanted = regions(params.regions, limits::MAX_EVIDENCE_REGIONS)?;
        let place = place(params.project.as_deref(), &params.output)?;
        let processor: Processor = params.processor.into();
        let for_workspace = context.clone();
        session::with(context, move |state| {
            let debugger = state.stopped(processor)?;
            let packet = debugger.register_packet(soon())?;
            let read = debugger.registers(soon())?;
            let mut shown = Vec::new();
            for region in &wanted {
                let bytes = debugger.read_memory(region.address, region.length, soon())?;
                shown.push(serde_json::json!({
                    "label": region.label, "address": region.address, "length": bytes.len(), "dataHex": hex(&bytes),
                }));
            }
            let machine = state.machine()?;
            let evidence = serde_json::json!({
                "format": "retroscope-runtime-evidence",
                "formatVersion": 1,
                "capturedAt": iso(std::time::SystemTime::now()),
                "rom": machine.rom_path,
                "romSha256": machine.rom.sha256(),
                "processor": processor.name(),
                "registerHex": hex(&packet),
                "registers": registers(&read),
                "regions": shown,
            });
            let text = format!("{evidence:#}\n");
            let written = for_workspace.workspace()?.write(&place, text.as_bytes())?;
            Ok(Shown(Told {
                output: written.display().to_string(),
                sha256: nds::sha256_hex(text.as_bytes()),
                size: text.len(),
                place: Where::of(state),
            }))
        })
        .await
    }
}

fn usual() -> String {
    "analysis/generated/runtime-evidence.json".to_owned()
}

/// The file's path from the workspace on.
fn place(project: Option<&str>, output: &str) -> Result<PathBuf, ToolError> {
    let plain = |path: &Path| path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    let (project, output) = (Path::new(project.unwrap_or_default()), Path::new(output));
    if !plain(project) || !plain(output) || !output.starts_with("analysis/generated") || output.components().count() < 3
    {
        return Err(ToolError::new(
            ErrorCode::Agent(wire::ErrorCode::PathRefused),
            "evidence is written below analysis/generated of a folder of the workspace only",
        )
        .hint("leave `output` out, or write it like analysis/generated/stop-1.json"));
    }
    Ok(project.join(output))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_stays_where_generated_files_are() {
        assert_eq!(place(None, &usual()).unwrap(), Path::new("analysis/generated/runtime-evidence.json"));
        assert_eq!(
            place(Some("game"), "analysis/generated/a/b.json").unwrap(),
            Path::new("game/analysis/generated/a/b.json")
        );
        for (project, output) in [
            (None, "evidence.json"),
            (None, "analysis/generated"),
            (None, "analysis/generated/../../rom.nds"),
            (None, "/analysis/generated/a.json"),
            (Some(".."), "analysis/generated/a.json"),
        ] {
            assert!(place(project, output).is_err(), "{output}");
        }
    }
}
