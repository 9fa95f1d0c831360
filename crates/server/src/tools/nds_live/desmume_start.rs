//! `desmume_start`: starts one emulator with a ROM, under its GDB stub.

use super::desmume_status::{Status, status};
use super::prelude::*;
use super::session::Start;
use crate::job;
use std::sync::Arc;

/// The tool.
#[derive(Debug)]
pub struct DesmumeStart;

/// What to start.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Params {
    /// A program on PATH (default `desmume-cli`), the configured one, or a file of the workspace.
    #[serde(default)]
    launcher: Option<String>,
    /// Path below the workspace.
    #[schemars(length(min = 1))]
    rom: String,
    #[serde(default)]
    arm9_gdb_port: Bounded<{ limits::MIN_GDB_PORT }, { limits::MAX_GDB_PORT }, { limits::DEFAULT_ARM9_GDB_PORT }>,
    /// Gives the ARM7 a stub too.
    #[serde(default)]
    arm7_gdb_port:
        Option<Bounded<{ limits::MIN_GDB_PORT }, { limits::MAX_GDB_PORT }, { limits::DEFAULT_ARM9_GDB_PORT }>>,
}

impl Tool for DesmumeStart {
    const NAME: &'static str = "desmume_start";
    const DESCRIPTION: &'static str = "Start DeSmuME with a Nintendo DS ROM, stopped at its entry under the GDB stub; the server owns this one emulator. Next: desmume_wait_for_gdb. The stub listens on all network interfaces: close the port to others.";
    const EFFECT: Effect = Effect::RUNS;
    type Params = Params;
    type Output = Shown<Status>;

    async fn run(context: &Context, params: Params) -> Result<Self::Output, ToolError> {
        let bad = ErrorCode::InvalidArguments;
        let port = |number: u64| u16::try_from(number).unwrap_or(u16::MAX);
        let arm9_port = port(params.arm9_gdb_port.get("arm9GdbPort", bad)?);
        let arm7_port = params.arm7_gdb_port.map(|number| number.get("arm7GdbPort", bad)).transpose()?.map(port);
        let Params { launcher, rom: rom_path, .. } = params;
        let path = rom_path.clone();
        // Hashed whole, since everything that is said of this run is tied to these bytes.
        let (rom, file) = job::run(context, move |context, job| {
            let workspace = context.workspace()?;
            let file = workspace.open_file(&path, limits::MAX_NDS_ROM_BYTES)?.path;
            context.roms().with(workspace, &path, true, job, |rom| Ok((Arc::clone(rom), file.clone())))
        })
        .await?;
        let options = context.live().options();
        let for_launcher = context.clone();
        session::with(context, move |state| {
            let start = Start { launcher, rom_path, rom, file, arm9_port, arm7_port };
            state.start(start, &options, &for_launcher)?;
            Ok(Shown(status(state)))
        })
        .await
    }
}
