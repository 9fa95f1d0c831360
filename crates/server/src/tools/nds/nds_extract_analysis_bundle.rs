//! `nds_extract_analysis_bundle`: tables, programs and overlays of a ROM, stored and decoded, as one folder with a manifest.

use super::prelude::*;
use ::nds::{Artifact, Bundle, ComponentId, bundle};
use std::path::PathBuf;

/// The tool.
#[derive(Debug)]
pub struct NdsExtractAnalysisBundle;

/// Which ROM.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Path below the workspace.
    #[schemars(length(min = 1))]
    rom: String,
}

/// What was written.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Written {
    /// The folder.
    output_root: String,
    /// The list of its files, JSON.
    manifest_path: String,
    /// SHA-256 of that list.
    manifest_sha256: String,
    /// SHA-256 of the ROM.
    #[serde(rename = "sourceRomSha256")]
    source_rom_sha256: String,
    /// Files in the folder, the list not counted.
    artifact_count: usize,
}

/// The list of files, a format: fields are added, never changed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Manifest<'a> {
    format: &'static str,
    format_version: u32,
    #[serde(rename = "sourceRomSha256")]
    source_rom_sha256: &'a str,
    source_rom_size: usize,
    artifacts: Vec<ArtifactShown<'a>>,
    without_runtime: Vec<Without>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ArtifactShown<'a> {
    path: &'a str,
    role: &'static str,
    component: Option<String>,
    processor: Option<&'static str>,
    overlay_id: Option<u32>,
    sha256: &'a str,
    size: usize,
    rom_offset: Option<u32>,
    ram_address: Option<u32>,
}

/// A component whose runtime bytes cannot be had.
#[derive(Debug, Serialize)]
struct Without {
    component: String,
    problem: &'static str,
}

/// Name of the folder, and of the list in it.
const FOLDER: &str = "bundle";
const MANIFEST: &str = "manifest.json";

impl Tool for NdsExtractAnalysisBundle {
    const NAME: &'static str = "nds_extract_analysis_bundle";
    const DESCRIPTION: &'static str = "Extract tables, programs and overlays of a Nintendo DS ROM, stored and decoded, to one \
         folder with a manifest, for other tools. All or nothing: when it fails, an older bundle is still there.";
    const EFFECT: Effect = Effect::OVERWRITES;
    type Params = Params;
    type Output = Written;

    async fn run(context: &Context, params: Params) -> Result<Self::Output, ToolError> {
        let source = params.rom.clone();
        on_rehashed_rom(context, params.rom, move |context, job, rom| {
            let bundle = bundle(rom)?;
            job.going_on(0, 1, "extracting")?;
            let manifest = manifest(rom, &bundle)?;
            let mut files: Vec<(PathBuf, &[u8])> =
                bundle.artifacts.iter().map(|artifact| (PathBuf::from(&artifact.path), artifact.bytes)).collect();
            files.push((PathBuf::from(MANIFEST), manifest.as_bytes()));
            let (workspace, output) = (context.workspace()?, super::folder(rom).join(FOLDER));
            workspace.refuse_to_replace(&output, &source)?;
            let root = workspace.write_folder(&output, &files)?;
            Ok(Written {
                manifest_path: root.join(MANIFEST).display().to_string(),
                output_root: root.display().to_string(),
                manifest_sha256: ::nds::sha256_hex(manifest.as_bytes()),
                source_rom_sha256: rom.sha256().to_owned(),
                artifact_count: bundle.artifacts.len(),
            })
        })
        .await
    }
}

fn manifest(rom: &Rom, bundle: &Bundle<'_>) -> Result<String, ToolError> {
    let manifest = Manifest {
        format: "retroscope-nds-analysis-bundle",
        format_version: 1,
        source_rom_sha256: rom.sha256(),
        source_rom_size: rom.bytes().len(),
        artifacts: bundle.artifacts.iter().map(shown).collect(),
        without_runtime: bundle
            .without_runtime
            .iter()
            .map(|(component, problem)| Without { component: component.name(), problem })
            .collect(),
    };
    serde_json::to_string_pretty(&manifest)
        .map(|text| text + "\n")
        .map_err(|error| ToolError::new(ErrorCode::ServerFault, format!("the manifest cannot be written: {error}")))
}

fn shown<'a>(artifact: &'a Artifact<'_>) -> ArtifactShown<'a> {
    ArtifactShown {
        path: &artifact.path,
        role: artifact.role,
        component: artifact.component.map(ComponentId::name),
        processor: artifact.component.map(|component| component.processor.word()),
        overlay_id: artifact.component.and_then(ComponentId::overlay_id),
        sha256: &artifact.sha256,
        size: artifact.bytes.len(),
        rom_offset: artifact.rom_offset,
        ram_address: artifact.ram_address,
    }
}

#[cfg(test)]
mod tests {
    use crate::tools::nds::tests::built;
    use ::nds::sha256_hex;
    use ::nds::testing::RomBuilder;
    use serde_json::{Value, json};
    use std::fs;
    use std::path::Path;

    #[tokio::test]
    async fn the_manifest_names_every_file_with_its_hash() {
        let (_folder, call) = built(&RomBuilder::everything());
        let told = call("nds_extract_analysis_bundle", json!({"rom": "rom.nds"})).await.unwrap();
        let root = Path::new(told["outputRoot"].as_str().unwrap());
        let text = fs::read(told["manifestPath"].as_str().unwrap()).unwrap();
        assert_eq!(told["manifestSha256"], sha256_hex(&text));
        let manifest: Value = serde_json::from_slice(&text).unwrap();
        let artifacts = manifest["artifacts"].as_array().unwrap();
        assert_eq!(told["artifactCount"], artifacts.len());
        for artifact in artifacts {
            let bytes = fs::read(root.join(artifact["path"].as_str().unwrap())).unwrap();
            assert_eq!((&artifact["sha256"], &artifact["size"]), (&json!(sha256_hex(&bytes)), &json!(bytes.len())));
        }
        // Overlay 1 was built compressed from 0x400 bytes.
        let decoded =
            artifacts.iter().find(|artifact| artifact["role"] == "runtime" && artifact["overlayId"] == 1).unwrap();
        assert_eq!((&decoded["size"], &decoded["romOffset"]), (&json!(0x400), &json!(null)));
    }

    #[tokio::test]
    async fn a_bundle_that_fails_leaves_the_older_one() {
        let (folder, call) = built(&RomBuilder::everything());
        let told = call("nds_extract_analysis_bundle", json!({"rom": "rom.nds"})).await.unwrap();
        let root = Path::new(told["outputRoot"].as_str().unwrap());
        fs::write(root.join("mark"), "old").unwrap();
        fs::write(folder.path().join("rom.nds"), b"damaged").unwrap();
        assert!(call("nds_extract_analysis_bundle", json!({"rom": "rom.nds"})).await.is_err());
        assert_eq!(fs::read(root.join("mark")).unwrap(), b"old");
        fs::write(folder.path().join("rom.nds"), RomBuilder::everything().build()).unwrap();
        call("nds_extract_analysis_bundle", json!({"rom": "rom.nds"})).await.unwrap();
        assert!(!root.join("mark").exists());
    }
}
