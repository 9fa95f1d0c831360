//! The tools that say what a Nintendo DS ROM proves: what is in it, where an address lives, who refers to whom.

mod nds_analyze_control_flow;
mod nds_analyze_function;
mod nds_disassemble_range;
mod nds_discover_functions;
mod nds_extract_analysis_bundle;
mod nds_extract_component;
mod nds_find_xrefs;
mod nds_inspect_rom;
mod nds_list_files;
mod nds_list_overlays;
mod nds_list_references;
mod nds_resolve_rom_offset;
mod nds_resolve_runtime_address;
mod nds_search_pattern;
pub(super) mod shared;
#[cfg(test)]
pub mod tests;

use super::{Entry, Group};
use crate::context::Context;
use crate::errors::ToolError;
use crate::job::{self, Job};
use ::nds::Rom;
use std::path::PathBuf;
use std::sync::Arc;

/// What the files of this group need.
mod prelude {
    pub use super::shared::params::{Address, Bounded, ListMost, Most, ProcessorName, Skip, check_path};
    pub use super::shared::present::{Part, Shown, Wanted, part, to_value, within};
    pub(super) use super::{on_rehashed_rom, on_rom};
    pub use crate::context::Context;
    pub use crate::errors::{ErrorCode, ToolError};
    pub use crate::tools::{Effect, Tool};
    pub use ::nds::{Processor, Rom};
    pub use base::limits;
    pub use schemars::JsonSchema;
    pub use serde::{Deserialize, Serialize};
    pub use serde_json::json;
}

/// The group.
pub const GROUP: Group = Group {
    name: "nds",
    purpose: "Proves what is in a Nintendo DS ROM: files, overlays, addresses, code, callers, functions, patterns.",
    files: true,
    tools: &[
        Entry::of::<nds_inspect_rom::NdsInspectRom>(),
        Entry::of::<nds_list_files::NdsListFiles>(),
        Entry::of::<nds_list_overlays::NdsListOverlays>(),
        Entry::of::<nds_resolve_runtime_address::NdsResolveRuntimeAddress>(),
        Entry::of::<nds_resolve_rom_offset::NdsResolveRomOffset>(),
        Entry::of::<nds_extract_component::NdsExtractComponent>(),
        Entry::of::<nds_extract_analysis_bundle::NdsExtractAnalysisBundle>(),
        Entry::of::<nds_disassemble_range::NdsDisassembleRange>(),
        Entry::of::<nds_analyze_control_flow::NdsAnalyzeControlFlow>(),
        Entry::of::<nds_list_references::NdsListReferences>(),
        Entry::of::<nds_find_xrefs::NdsFindXrefs>(),
        Entry::of::<nds_search_pattern::NdsSearchPattern>(),
        Entry::of::<nds_discover_functions::NdsDiscoverFunctions>(),
        Entry::of::<nds_analyze_function::NdsAnalyzeFunction>(),
    ],
};

/// The few of them that a stop is looked up with, since all of them beside the live tools would be too much for one list: what the
/// ROM is, its overlays, an address, its code. What refers to what the correlation of a stop tells; `call_tool` reaches the rest.
pub const FEW: Group = Group {
    name: GROUP.name,
    purpose: GROUP.purpose,
    files: true,
    tools: &[
        Entry::of::<nds_inspect_rom::NdsInspectRom>(),
        Entry::of::<nds_list_overlays::NdsListOverlays>(),
        Entry::of::<nds_resolve_runtime_address::NdsResolveRuntimeAddress>(),
        Entry::of::<nds_disassemble_range::NdsDisassembleRange>(),
    ],
};

/// Works on a ROM away from the threads that answer, and makes sure that it is the same file before and after.
pub(super) async fn on_rom<R: Send + 'static>(
    context: &Context,
    path: String,
    work: impl FnOnce(&Context, &Job, &Arc<Rom>) -> Result<R, ToolError> + Send + 'static,
) -> Result<R, ToolError> {
    on_rom_known_by(context, path, false, work).await
}

/// The same with the whole file hashed before and after, whatever the configuration says: for what is written down.
async fn on_rehashed_rom<R: Send + 'static>(
    context: &Context,
    path: String,
    work: impl FnOnce(&Context, &Job, &Arc<Rom>) -> Result<R, ToolError> + Send + 'static,
) -> Result<R, ToolError> {
    on_rom_known_by(context, path, true, work).await
}

async fn on_rom_known_by<R: Send + 'static>(
    context: &Context,
    path: String,
    rehash: bool,
    work: impl FnOnce(&Context, &Job, &Arc<Rom>) -> Result<R, ToolError> + Send + 'static,
) -> Result<R, ToolError> {
    job::run(context, move |context, job| {
        let workspace = context.workspace()?;
        context.roms().with(workspace, &path, rehash, job, |rom| work(context, job, rom))
    })
    .await
}

/// Where what is extracted from a ROM goes, from the root of the workspace.
fn folder(rom: &Rom) -> PathBuf {
    let prefix: String = rom.sha256().chars().take(16).collect();
    PathBuf::from("analysis/generated/nds").join(prefix)
}
