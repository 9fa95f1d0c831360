//! `nds_find_xrefs`: which proven code refers to an address.

use super::prelude::*;
use super::shared::params::one_place;
use super::shared::references::{ReferenceShown, ResolutionShown};
use super::shared::scans::{CoverageShown, Scope, Seed, SiteShown, UnresolvedShown, checked_seeds};
use ::nds::Progress;
use ::nds::analysis::{Xrefs, XrefsRequest, find_xrefs};

/// The tool.
#[derive(Debug)]
pub struct NdsFindXrefs;

/// To what, from where.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Params {
    /// Path below the workspace.
    #[schemars(length(min = 1))]
    rom: String,
    /// Whose code is scanned.
    processor: ProcessorName,
    /// Address referred to; or else `targetRomOffset`.
    #[serde(default)]
    target_runtime_address: Option<Address>,
    #[serde(default)]
    target_rom_offset: Option<Address>,
    /// What is scanned.
    scope: Scope,
    /// Places you vouch for as code, beside what is proven.
    #[serde(default)]
    #[schemars(length(max = limits::MAX_XREF_SEEDS))]
    seeds: Vec<Seed>,
    #[serde(default)]
    max_components: Bounded<1, { limits::MAX_SCAN_COMPONENTS }, { limits::DEFAULT_NDS_SCAN_COMPONENTS }>,
    #[serde(default)]
    max_blocks: Bounded<1, { limits::MAX_SCAN_BLOCKS }, { limits::DEFAULT_NDS_SCAN_BLOCKS }>,
    #[serde(default)]
    max_instructions: Bounded<1, { limits::MAX_SCAN_INSTRUCTIONS }, { limits::DEFAULT_NDS_SCAN_INSTRUCTIONS }>,
    #[serde(default)]
    max_bytes: Bounded<2, { limits::MAX_SCAN_BYTES }, { limits::DEFAULT_NDS_SCAN_BYTES }>,
    #[serde(default)]
    max_edges: Bounded<1, { limits::MAX_SCAN_EDGES }, { limits::DEFAULT_NDS_SCAN_EDGES }>,
    #[serde(default)]
    max_xrefs: Bounded<1, { limits::MAX_XREFS }, { limits::DEFAULT_NDS_XREFS }>,
    /// References, then unresolved sites, then components, to skip.
    #[serde(default)]
    offset: Skip,
    /// How many of these in one answer.
    #[serde(default)]
    limit: Option<Most>,
}

/// What was found.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    /// `complete`, `partial-coverage` or `truncated`. No reference means that there is none only when `complete` and
    /// `unresolvedIndirectCalls.count` is 0.
    status: &'static str,
    /// What was looked for.
    target: TargetShown,
    /// What the scan spent.
    scan: ScanShown,
    /// How far each component was covered.
    coverage: Vec<CoverageShown>,
    /// Why it is truncated.
    truncation_reasons: Vec<&'static str>,
    /// The references.
    xrefs: Vec<ReferenceShown>,
    /// How many of these there are; `total` counts sites and components too.
    xref_count: usize,
    /// Calls and branches through registers that no proof settles.
    unresolved_indirect_calls: UnresolvedShown,
    /// Calls of addresses that are in no component of the scope; the coverage is partial then.
    unfollowed_calls: u64,
    #[serde(flatten)]
    part: Part,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct TargetShown {
    /// `runtime-address` or `rom-offset`.
    requested_by: &'static str,
    runtime_address: u32,
    rom_offset: Option<u32>,
    resolution: ResolutionShown,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ScanShown {
    processor: &'static str,
    components_requested: u64,
    components_scanned: u64,
    blocks_decoded: u64,
    instructions_decoded: u64,
    decoded_bytes: u64,
    traversal_edges: u64,
}

impl Tool for NdsFindXrefs {
    const NAME: &'static str = "nds_find_xrefs";
    const DESCRIPTION: &'static str = "Find who refers to an address of a Nintendo DS ROM: calls, branches, literals, from code \
         that is reached from proven entries and your seeds. The coverage of each component says what a negative is worth.";
    const EFFECT: Effect = Effect::READS;
    type Params = Params;
    type Output = Shown<Found>;

    async fn run(context: &Context, params: Params) -> Result<Self::Output, ToolError> {
        let code = ErrorCode::ReferenceScanLimitExceeded;
        let request = XrefsRequest {
            processor: params.processor.into(),
            target: one_place(
                params.target_runtime_address,
                params.target_rom_offset,
                "targetRuntimeAddress",
                "targetRomOffset",
            )?,
            scope: params.scope.checked(ErrorCode::InvalidReferenceScope)?,
            seeds: checked_seeds(&params.seeds, limits::MAX_XREF_SEEDS, code)?,
            max_components: params.max_components.get("maxComponents", code)?,
            max_blocks: params.max_blocks.get("maxBlocks", code)?,
            max_instructions: params.max_instructions.get("maxInstructions", code)?,
            max_bytes: params.max_bytes.get("maxBytes", code)?,
            max_edges: params.max_edges.get("maxEdges", code)?,
            max_xrefs: params.max_xrefs.get("maxXrefs", code)?,
        };
        let wanted = Wanted::new(params.offset, params.limit)?;
        on_rom(context, params.rom, move |context, job, rom| {
            let watcher = |at: Progress| job.wanted(at.done, at.total, "scanning code");
            shown(context, wanted, &find_xrefs(rom, &request, &watcher)?).map(Shown)
        })
        .await
    }
}

fn shown(context: &Context, wanted: Wanted, found: &Xrefs) -> Result<Found, ToolError> {
    let (target, scan) = (&found.target, &found.scan);
    let mut answer = Found {
        status: found.status,
        target: TargetShown {
            requested_by: target.requested_by,
            runtime_address: target.runtime_address,
            rom_offset: target.rom_offset,
            resolution: ResolutionShown::of(target.status, target.candidate.as_ref()),
        },
        scan: ScanShown {
            processor: scan.processor.word(),
            components_requested: scan.components_requested,
            components_scanned: scan.components_scanned,
            blocks_decoded: scan.blocks_decoded,
            instructions_decoded: scan.instructions_decoded,
            decoded_bytes: scan.decoded_bytes,
            traversal_edges: scan.traversal_edges,
        },
        coverage: Vec::new(),
        truncation_reasons: found.truncation_reasons.clone(),
        xrefs: Vec::new(),
        xref_count: found.xrefs.len(),
        unresolved_indirect_calls: UnresolvedShown::count(&found.unresolved_indirect_calls),
        unfollowed_calls: found.unfollowed_calls,
        part: Part::default(),
    };
    let (xrefs, sites, coverage) = (&found.xrefs, &found.unresolved_indirect_calls.sites, &found.coverage);
    let (before_sites, before_coverage) = (xrefs.len(), xrefs.len() + sites.len());
    let total = before_coverage + coverage.len();
    answer.part =
        part(context, wanted, total, &answer, |at| match (xrefs.get(at), sites.get(at.wrapping_sub(before_sites))) {
            (Some(reference), _) => to_value(&ReferenceShown::of(reference)),
            (None, Some(site)) => to_value(&SiteShown::of(site)),
            (None, None) => to_value(&coverage.get(at - before_coverage).map(CoverageShown::of)),
        })?;
    let range = &answer.part.range;
    answer.xrefs = within(xrefs, range, 0).iter().map(ReferenceShown::of).collect();
    answer.unresolved_indirect_calls.sites = within(sites, range, before_sites).iter().map(SiteShown::of).collect();
    answer.coverage = within(coverage, range, before_coverage).iter().map(CoverageShown::of).collect();
    Ok(answer)
}
