//! `vice_save_snapshot`: saves the state of the machine.

use super::prelude::*;
use super::shared::{either, refuse};
use super::snapshot_file::{self, Passing};

/// The tool.
#[derive(Debug)]
pub struct ViceSaveSnapshot;

/// What is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Where it goes, below the workspace.
    path: String,
    /// Replace a file that is there.
    #[serde(default)]
    overwrite: bool,
    /// With the ROMs.
    #[serde(default)]
    save_roms: bool,
    /// With the disks in the drives.
    #[serde(default)]
    save_disks: bool,
    /// Milliseconds for the whole call.
    #[serde(default)]
    timeout_ms: Time,
}

impl Tool for ViceSaveSnapshot {
    const NAME: &'static str = "vice_save_snapshot";
    const DESCRIPTION: &'static str =
        "Save the whole state of the stopped C64 to a file below the workspace, for vice_load_snapshot.";
    const EFFECT: Effect = Effect { read_only: false, destructive: true, idempotent: true, open_world: true };
    type Params = Params;
    type Output = Envelope;

    async fn run(context: &Context, params: Params) -> Result<Envelope, ToolError> {
        either(run(context, params).await)
    }
}

async fn run(context: &Context, params: Params) -> Result<Envelope, Envelope> {
    let Params { path, overwrite, save_roms, save_disks, timeout_ms } = params;
    let place = snapshot_file::place(context, &path, overwrite).map_err(refuse)?;
    let passing = Passing::new().map_err(refuse)?;
    let name = passing.name().map_err(refuse)?;
    let mut row = Row::new(context, timeout_ms, None)?;
    row.call("save_snapshot", json!({"path": name, "save_roms": save_roms, "save_disks": save_disks})).await?;
    let bytes = passing.taken().map_err(refuse)?;
    let written = snapshot_file::publish(context, &place, &bytes, overwrite).map_err(refuse)?;
    let sha256 = ::nds::sha256_hex(&bytes);
    Ok(row.answer(json!({"path": written.display().to_string(), "bytes": bytes.len(), "sha256": sha256})))
}
