//! What the three tools share: reading the manifest and what it names, and judging a build that is there.

use crate::context::Context;
use crate::errors::{ErrorCode, ToolError};
use crate::workspace::Workspace;
use ::nds::rebuild::{self, ArtifactRef, Evidence, Manifest, Plan, Report};
use ::nds::{Refusal, Rom};
use base::limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// A ROM and a manifest.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// The source, below the workspace.
    #[schemars(length(min = 1))]
    pub rom: String,
    /// The manifest, below the workspace.
    #[schemars(length(min = 1))]
    pub manifest: String,
}

/// A build that is there and right.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Build {
    build_id: String,
    /// Whether it was there before.
    reused: bool,
    /// Its folder below the workspace.
    output_root: String,
    /// The new ROM.
    output_rom_path: String,
    output_sha256: String,
    /// What was checked, as in verification.json.
    verification: Value,
}

impl Build {
    pub fn new(rom: &Rom, plan: &Plan, report: &Report, reused: bool) -> Self {
        let root = root(plan);
        Self {
            build_id: plan.build_id.clone(),
            reused,
            output_rom_path: slashes(&root.join(&plan.manifest.filename)),
            output_root: slashes(&root),
            output_sha256: report.output.sha256().to_owned(),
            verification: rebuild::verification(rom, plan, report),
        }
    }
}

/// A relative path as answers have it on every system.
pub fn slashes(path: &Path) -> String {
    path.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/")
}

/// Where a build is.
pub fn root(plan: &Plan) -> PathBuf {
    let prefix: String = plan.manifest.source_sha256.chars().take(16).collect();
    PathBuf::from("output/nds").join(prefix).join(&plan.build_id)
}

/// Reads the manifest.
pub fn manifest(context: &Context, path: &str) -> Result<Manifest, ToolError> {
    let workspace = context.workspace()?;
    if workspace.is_link(path) {
        return Err(ToolError::new(ErrorCode::MutationManifestInvalid, format!("`{path}` is a link"))
            .hint("name the file itself"));
    }
    Ok(rebuild::parse(&read(workspace, path, limits::MAX_MUTATION_MANIFEST_BYTES)?)?)
}

/// Makes the plan, with the files that the manifest names read from the workspace.
pub fn plan(context: &Context, rom: &Rom, manifest: Manifest, recorded: Option<&Rom>) -> Result<Plan, ToolError> {
    let workspace = context.workspace()?;
    let mut source = |artifact: &ArtifactRef| {
        // A component of the same size may be larger than a file may be.
        read(workspace, &artifact.path, limits::MAX_NDS_ROM_BYTES).map_err(|error| Refusal {
            category: "replacement-artifact-missing",
            message: error.message,
            corrective_action: error.hint,
            offset: None,
        })
    };
    Ok(rebuild::plan(rom, manifest, &mut source, recorded)?)
}

fn read(workspace: &Workspace, path: &str, most: u64) -> Result<Vec<u8>, ToolError> {
    let opened = workspace.open_file(path, most)?;
    let mut bytes = Vec::new();
    let failed =
        |error: std::io::Error| ToolError::new(ErrorCode::FileRefused, format!("`{path}` cannot be read: {error}"));
    // One byte more than there was tells of a file that grows.
    opened.file.take(opened.size + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 != opened.size {
        return Err(ToolError::new(ErrorCode::FileRefused, format!("`{path}` changed while it was read"))
            .hint("call again when nothing writes to it"));
    }
    Ok(bytes)
}

/// Judges the build that is there by its bytes; `None` when there is none.
pub fn existing(context: &Context, rom: &Rom, plan: &Plan) -> Result<Option<Report>, ToolError> {
    let workspace = context.workspace()?;
    let root = root(plan);
    let Some(names) = workspace.names(&root)? else { return Ok(None) };
    let filename = &plan.manifest.filename;
    let output = read(workspace, &slashes(&root.join(filename)), limits::MAX_NDS_ROM_BYTES).map_err(|error| {
        ToolError::new(
            ErrorCode::OutputVerificationFailed,
            format!("the build has no readable result: {}", error.message),
        )
        .hint("move the folder of the build away and build again")
    })?;
    let report = rebuild::verify(rom, plan, output)?;
    let expected = rebuild::evidence(rom, plan, &report)?;
    let mut found: Vec<Evidence> = Vec::new();
    for name in names.into_iter().filter(|name| name != filename) {
        // What is longer than all that is expected differs anyway.
        let bytes = read(workspace, &slashes(&root.join(&name)), limits::MAX_NDS_ROM_BYTES).unwrap_or_default();
        found.push((name, bytes));
    }
    rebuild::check_evidence(&expected, &found, plan, &report)?;
    Ok(Some(report))
}

/// The result that an earlier encoder's build of this manifest has, when there is such a build.
pub fn recorded(context: &Context, plan: &Plan) -> Result<Option<Rom>, ToolError> {
    if plan.manifest.version != 2 {
        return Ok(None);
    }
    let workspace = context.workspace()?;
    let earlier =
        Plan { build_id: rebuild::build_id(&plan.manifest, rebuild::EARLIER_ENCODER_CONTRACT), ..plan.clone() };
    let root = root(&earlier);
    if workspace.names(&root)?.is_none() {
        return Ok(None);
    }
    let bytes = read(workspace, &slashes(&root.join(&plan.manifest.filename)), limits::MAX_NDS_ROM_BYTES)?;
    Ok(Some(Rom::parse(bytes)?))
}
