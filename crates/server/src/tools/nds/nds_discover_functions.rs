//! `nds_discover_functions`: every address that is proven to be a function, with its proof and its size.

use super::prelude::*;
use super::shared::scans::{
    CandidateSeedShown, CoverageShown, EntryShown, EvidenceShown, FunctionCallShown, Proof, Scope, Seed, SiteShown,
    UnresolvedShown, checked_seeds, kinds,
};
use ::nds::Progress;
use ::nds::analysis::{CfgBudget, Discovery, DiscoveryBudget, DiscoveryRequest, Function, Page, discover_functions};

/// The tool.
#[derive(Debug)]
pub struct NdsDiscoverFunctions;

/// Where, by which proofs, how far.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Params {
    /// Path below the workspace.
    #[schemars(length(min = 1))]
    rom: String,
    processor: ProcessorName,
    /// What is scanned.
    scope: Scope,
    /// Places you vouch for as code, beside what is proven.
    #[serde(default)]
    #[schemars(length(max = limits::MAX_FUNCTION_SEEDS))]
    seeds: Vec<Seed>,
    /// Kinds of proof that count; default all three. `candidate` takes what looks like a function too, which proves nothing.
    #[serde(default)]
    evidence: Option<Vec<Proof>>,
    #[serde(default)]
    max_components: Bounded<1, { limits::MAX_SCAN_COMPONENTS }, { limits::DEFAULT_NDS_SCAN_COMPONENTS }>,
    #[serde(default)]
    max_functions: Bounded<1, { limits::MAX_SCAN_FUNCTIONS }, { limits::DEFAULT_NDS_FUNCTIONS }>,
    #[serde(default)]
    max_call_sites: Bounded<1, { limits::MAX_SCAN_CALL_SITES }, { limits::DEFAULT_NDS_CALL_SITES }>,
    #[serde(default)]
    max_total_blocks: Bounded<1, { limits::MAX_SCAN_BLOCKS }, { limits::DEFAULT_NDS_DISCOVERY_BLOCKS }>,
    #[serde(default)]
    max_total_instructions:
        Bounded<1, { limits::MAX_SCAN_INSTRUCTIONS }, { limits::DEFAULT_NDS_DISCOVERY_INSTRUCTIONS }>,
    #[serde(default)]
    max_total_bytes: Bounded<2, { limits::MAX_SCAN_BYTES }, { limits::DEFAULT_NDS_DISCOVERY_BYTES }>,
    #[serde(default)]
    max_total_edges: Bounded<1, { limits::MAX_SCAN_EDGES }, { limits::DEFAULT_NDS_DISCOVERY_EDGES }>,
    #[serde(default)]
    max_cfg_blocks_per_function: Bounded<1, { limits::MAX_NDS_FUNCTION_BLOCKS }, { limits::DEFAULT_CFG_BLOCKS }>,
    #[serde(default)]
    max_cfg_instructions_per_function:
        Bounded<1, { limits::MAX_NDS_FUNCTION_INSTRUCTIONS }, { limits::DEFAULT_CFG_INSTRUCTIONS }>,
    #[serde(default)]
    max_cfg_bytes_per_function: Bounded<2, { limits::MAX_NDS_FUNCTION_BYTES }, { limits::DEFAULT_CFG_BYTES }>,
    #[serde(default)]
    max_cfg_edges_per_function: Bounded<1, { limits::MAX_NDS_FUNCTION_EDGES }, { limits::DEFAULT_CFG_EDGES }>,
    /// Functions, then calls, unresolved sites, candidates and components, to skip.
    #[serde(default)]
    offset: Skip,
    /// How many of these in one answer.
    #[serde(default)]
    limit: Option<Most>,
}

/// What was found.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Discovered {
    /// `complete` (what the proofs reach was looked at), `partial-coverage` or `truncated`; what the proofs cannot reach is in
    /// `unresolvedIndirectCalls`.
    status: &'static str,
    processor: &'static str,
    /// The functions, by component and address.
    functions: Vec<FunctionShown>,
    /// The calls between them.
    calls: Vec<FunctionCallShown>,
    /// How far each component was covered.
    coverage: Vec<CoverageShown>,
    /// Why it is truncated.
    truncation_reasons: Vec<&'static str>,
    /// Of the whole discovery.
    totals: TotalsShown,
    /// Calls and branches through registers that no proof settles.
    unresolved_indirect_calls: UnresolvedShown,
    /// What looks like a function and no proof reaches: look at it, and give what holds as seeds.
    seed_candidates: Vec<CandidateSeedShown>,
    /// How many of these there are.
    seed_candidate_count: usize,
    /// Direct calls that were not followed: their target cannot be, or `evidence` leaves them out. The coverage is partial
    /// then.
    unfollowed_calls: u64,
    #[serde(flatten)]
    part: Part,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct FunctionShown {
    id: String,
    entry: EntryShown,
    evidence: Vec<EvidenceShown>,
    /// What it rests on in the end: `proof`, `seed` or `candidate`.
    root: &'static str,
    direct_caller_count: u64,
    direct_call_site_count: u64,
    literal_call_site_count: u64,
    cfg: CfgShown,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct CfgShown {
    status: &'static str,
    truncation_reasons: Vec<&'static str>,
    blocks: u64,
    instructions: u64,
    decoded_bytes: u64,
    traversal_edges: u64,
    return_sites: u64,
    /// Edges to other functions.
    function_exits: u64,
    unresolved_edges: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct TotalsShown {
    functions: u64,
    call_sites: u64,
    blocks: u64,
    instructions: u64,
    decoded_bytes: u64,
    traversal_edges: u64,
}

impl Tool for NdsDiscoverFunctions {
    const NAME: &'static str = "nds_discover_functions";
    const DESCRIPTION: &'static str = "Discover the functions of a Nintendo DS ROM by proof: the program entry, direct calls, \
         and calls through literals. Gives the proof, size and callers of each. To walk a whole ROM raise the max… arguments \
         and go on at `next`.";
    const EFFECT: Effect = Effect::READS;
    type Params = Params;
    type Output = Shown<Discovered>;

    async fn run(context: &Context, params: Params) -> Result<Self::Output, ToolError> {
        let code = ErrorCode::FunctionDiscoveryLimitExceeded;
        let everything = Page { offset: 0, limit: usize::MAX };
        let request = DiscoveryRequest {
            processor: params.processor.into(),
            scope: params.scope.checked(ErrorCode::InvalidFunctionScope)?,
            seeds: checked_seeds(&params.seeds, limits::MAX_FUNCTION_SEEDS, code)?,
            evidence: kinds(params.evidence.as_deref())?,
            budget: DiscoveryBudget {
                max_components: params.max_components.get("maxComponents", code)?,
                max_functions: params.max_functions.get("maxFunctions", code)?,
                max_call_sites: params.max_call_sites.get("maxCallSites", code)?,
                max_total_blocks: params.max_total_blocks.get("maxTotalBlocks", code)?,
                max_total_instructions: params.max_total_instructions.get("maxTotalInstructions", code)?,
                max_total_bytes: params.max_total_bytes.get("maxTotalBytes", code)?,
                max_total_edges: params.max_total_edges.get("maxTotalEdges", code)?,
                per_function: CfgBudget {
                    blocks: params.max_cfg_blocks_per_function.get("maxCfgBlocksPerFunction", code)?,
                    instructions: params
                        .max_cfg_instructions_per_function
                        .get("maxCfgInstructionsPerFunction", code)?,
                    bytes: params.max_cfg_bytes_per_function.get("maxCfgBytesPerFunction", code)?,
                    edges: params.max_cfg_edges_per_function.get("maxCfgEdgesPerFunction", code)?,
                },
            },
            functions: everything,
            calls: everything,
            sites: everything,
            candidates: everything,
        };
        let wanted = Wanted::new(params.offset, params.limit)?;
        on_rom(context, params.rom, move |context, job, rom| {
            let watcher = |at: Progress| job.wanted(at.done, at.total, "discovering functions");
            shown(context, wanted, &discover_functions(rom, &request, &watcher)?).map(Shown)
        })
        .await
    }
}

fn shown(context: &Context, wanted: Wanted, found: &Discovery) -> Result<Discovered, ToolError> {
    let totals = &found.totals;
    let mut answer = Discovered {
        status: found.status,
        processor: found.processor.word(),
        functions: Vec::new(),
        calls: Vec::new(),
        coverage: Vec::new(),
        truncation_reasons: found.truncation_reasons.clone(),
        totals: TotalsShown {
            functions: totals.functions,
            call_sites: totals.call_sites,
            blocks: totals.graphs.blocks,
            instructions: totals.graphs.instructions,
            decoded_bytes: totals.graphs.bytes,
            traversal_edges: totals.graphs.edges,
        },
        unresolved_indirect_calls: UnresolvedShown::count(&found.unresolved_indirect_calls),
        seed_candidates: Vec::new(),
        seed_candidate_count: found.seed_candidates.total,
        unfollowed_calls: found.unfollowed_calls,
        part: Part::default(),
    };
    let (functions, calls) = (&found.functions.items, &found.calls.items);
    let (sites, coverage) = (&found.unresolved_indirect_calls.sites, &found.coverage);
    let before_calls = functions.len();
    let before_sites = before_calls + calls.len();
    let candidates = &found.seed_candidates.items;
    let before_candidates = before_sites + sites.len();
    let before_coverage = before_candidates + candidates.len();
    answer.part = part(context, wanted, before_coverage + coverage.len(), &answer, |at| {
        if at < before_calls {
            to_value(&functions.get(at).map(function))
        } else if at < before_sites {
            to_value(&calls.get(at - before_calls).map(FunctionCallShown::of))
        } else if at < before_candidates {
            to_value(&sites.get(at - before_sites).map(SiteShown::of))
        } else if at < before_coverage {
            to_value(&candidates.get(at - before_candidates).map(CandidateSeedShown::of))
        } else {
            to_value(&coverage.get(at - before_coverage).map(CoverageShown::of))
        }
    })?;
    let range = &answer.part.range;
    answer.functions = within(functions, range, 0).iter().map(function).collect();
    answer.calls = within(calls, range, before_calls).iter().map(FunctionCallShown::of).collect();
    answer.unresolved_indirect_calls.sites = within(sites, range, before_sites).iter().map(SiteShown::of).collect();
    answer.seed_candidates = within(candidates, range, before_candidates).iter().map(CandidateSeedShown::of).collect();
    answer.coverage = within(coverage, range, before_coverage).iter().map(CoverageShown::of).collect();
    Ok(answer)
}

fn function(function: &Function) -> FunctionShown {
    let cfg = &function.cfg;
    FunctionShown {
        id: function.entry.id.function_id(),
        entry: EntryShown::of(&function.entry),
        evidence: function.evidence.iter().map(EvidenceShown::of).collect(),
        root: function.root.word(),
        direct_caller_count: function.direct_caller_count,
        direct_call_site_count: function.direct_call_site_count,
        literal_call_site_count: function.literal_call_site_count,
        cfg: CfgShown {
            status: cfg.status,
            truncation_reasons: cfg.truncation_reason.into_iter().collect(),
            blocks: cfg.totals.blocks,
            instructions: cfg.totals.instructions,
            decoded_bytes: cfg.totals.bytes,
            traversal_edges: cfg.totals.edges,
            return_sites: cfg.return_sites,
            function_exits: cfg.function_exits,
            unresolved_edges: cfg.unresolved_edges,
        },
    }
}
