//! `nds_extract_component`: the stored bytes of one component, as a file.

use super::prelude::*;
use ::nds::{Selector, extract};

/// The tool.
#[derive(Debug)]
pub struct NdsExtractComponent;

/// Which component.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Params {
    /// Path below the workspace.
    #[schemars(length(min = 1))]
    rom: String,
    /// What kind. A DSi ROM's arm9i and arm7i are in the bundle only.
    component: Kind,
    /// For overlays: which.
    #[serde(default)]
    overlay_id: Option<u32>,
    /// For a file: its number, or else `filePath`.
    #[serde(default)]
    file_id: Option<u32>,
    /// For a file: its path in the ROM.
    #[serde(default)]
    #[schemars(length(min = 1, max = limits::MAX_NDS_PATH_BYTES))]
    file_path: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
enum Kind {
    Arm9,
    Arm7,
    Arm9Overlay,
    Arm7Overlay,
    NitrofsFile,
}

/// What was written.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Extracted {
    /// The file that was written.
    output: String,
    component: &'static str,
    #[serde(rename = "sourceRomSha256")]
    source_rom_sha256: String,
    output_sha256: String,
    rom_offset: u32,
    /// How many they are.
    size: usize,
    /// Where they are loaded, for code.
    ram_address: Option<u32>,
    processor: Option<&'static str>,
    overlay_id: Option<u32>,
    file_id: Option<u32>,
    /// Whether the bytes are a compressed stream.
    compressed: bool,
    /// Bytes of that stream as the overlay table has them.
    compressed_size: Option<u32>,
}

impl Tool for NdsExtractComponent {
    const NAME: &'static str = "nds_extract_component";
    const DESCRIPTION: &'static str = "Extract one component of a Nintendo DS ROM, as stored, to a file below \
         analysis/generated/nds of the workspace, with its hash. Compressed bytes stay compressed; \
         nds_extract_analysis_bundle has them decoded.";
    const EFFECT: Effect = Effect::OVERWRITES;
    type Params = Params;
    type Output = Shown<Extracted>;

    async fn run(context: &Context, params: Params) -> Result<Self::Output, ToolError> {
        let selector = selector(&params)?;
        let source = params.rom.clone();
        on_rehashed_rom(context, params.rom, move |context, job, rom| {
            let found = extract(rom, &selector)?;
            job.going_on(0, 1, "extracting")?;
            let (workspace, output) = (context.workspace()?, super::folder(rom).join(&found.path));
            workspace.refuse_to_replace(&output, &source)?;
            let output = workspace.write(&output, found.bytes)?;
            Ok(Shown(Extracted {
                output: output.display().to_string(),
                component: found.component,
                source_rom_sha256: rom.sha256().to_owned(),
                output_sha256: found.sha256,
                rom_offset: found.rom_offset,
                size: found.bytes.len(),
                ram_address: found.ram_address,
                processor: found.processor.map(Processor::word),
                overlay_id: found.overlay_id,
                file_id: found.file_id,
                compressed: found.compressed,
                compressed_size: found.compressed_size,
            }))
        })
        .await
    }
}

/// The selector that the arguments make together.
fn selector(params: &Params) -> Result<Selector, ToolError> {
    let path = params.file_path.as_deref().map(|path| check_path("filePath", path)).transpose()?;
    match (params.component, params.overlay_id, params.file_id, path) {
        (Kind::Arm9, None, None, None) => Ok(Selector::Program(Processor::Arm9)),
        (Kind::Arm7, None, None, None) => Ok(Selector::Program(Processor::Arm7)),
        (Kind::Arm9Overlay, Some(id), None, None) => Ok(Selector::Overlay(Processor::Arm9, id)),
        (Kind::Arm7Overlay, Some(id), None, None) => Ok(Selector::Overlay(Processor::Arm7, id)),
        (Kind::NitrofsFile, None, Some(id), None) => Ok(Selector::File(id)),
        (Kind::NitrofsFile, None, None, Some(path)) => Ok(Selector::Path(path.to_owned())),
        _ => Err(ToolError::new(ErrorCode::InvalidArguments, "the arguments do not name one component").hint(
            "arm9 and arm7 take nothing more; overlays take `overlayId` alone; nitrofs-file takes either `fileId` or \
             `filePath`",
        )),
    }
}

#[cfg(test)]
mod tests {
    use crate::tools::nds::tests::{built, code};
    use ::nds::testing::RomBuilder;
    use ::nds::{Rom, sha256_hex};
    use serde_json::json;
    use std::fs;

    #[tokio::test]
    async fn what_is_written_is_what_the_rom_stores() {
        let builder = RomBuilder::everything();
        let bytes = builder.build();
        let sha256 = Rom::parse(bytes.clone()).unwrap().sha256().to_owned();
        let (folder, call) = built(&builder);
        for (arguments, stored) in [
            (json!({"component": "arm9"}), &builder.arm9.bytes),
            (json!({"component": "arm7"}), &builder.arm7.bytes),
            (json!({"component": "arm9-overlay", "overlayId": 1}), &builder.overlays[1].stored),
            (json!({"component": "arm7-overlay", "overlayId": 0}), &builder.overlays[3].stored),
            (json!({"component": "nitrofs-file", "filePath": "data/a.bin"}), &builder.files[1].1),
            (json!({"component": "nitrofs-file", "fileId": 0}), &builder.overlays[0].stored),
        ] {
            let mut arguments = arguments;
            arguments["rom"] = json!("rom.nds");
            let told = call("nds_extract_component", arguments.clone()).await.unwrap();
            let output = told["output"].as_str().unwrap();
            assert!(output.contains(&format!("analysis/generated/nds/{}/", &sha256[..16])), "{output}");
            assert_eq!(&fs::read(output).unwrap(), stored, "{arguments}");
            assert_eq!((&told["outputSha256"], &told["size"]), (&json!(sha256_hex(stored)), &json!(stored.len())));
            let at = told["romOffset"].as_u64().unwrap() as usize;
            assert_eq!(&bytes[at..at + stored.len()], stored);
        }
        assert_eq!(fs::read(folder.path().join("rom.nds")).unwrap(), bytes);
    }

    #[tokio::test]
    async fn only_what_names_one_component_is_taken() {
        let (folder, call) = built(&RomBuilder::everything());
        for (arguments, word) in [
            (json!({"component": "arm9", "overlayId": 1}), "invalid_arguments"),
            (json!({"component": "arm9-overlay"}), "invalid_arguments"),
            (json!({"component": "nitrofs-file", "fileId": 1, "filePath": "z/d"}), "invalid_arguments"),
            (json!({"component": "nitrofs-file", "filePath": ""}), "invalid_arguments"),
            (json!({"component": "banner"}), "invalid_arguments"),
            (json!({"component": "arm9-overlay", "overlayId": 5}), "unknown-overlay-id"),
            (json!({"component": "nitrofs-file", "fileId": 999}), "unknown-file-id"),
            (json!({"component": "nitrofs-file", "filePath": "../../etc/passwd"}), "unknown-file-id"),
        ] {
            let mut arguments = arguments;
            arguments["rom"] = json!("rom.nds");
            assert_eq!(code(call("nds_extract_component", arguments.clone()).await), word, "{arguments}");
        }
        assert!(!folder.path().join("analysis").exists());
    }
}
