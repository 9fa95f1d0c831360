//! `nds_analyze_function`: whether an address is proven to be a function, and its graph, callers and calls.

use super::prelude::*;
use super::shared::graph::{CallShown, GraphShown, Numbered, UnresolvedShown as ExitShown};
use super::shared::params::OneMode;
use super::shared::scans::{
    CoverageShown, EntryShown, EvidenceShown, FunctionCallShown, Proof, Scope, Seed, SiteShown, UnresolvedShown,
    checked_seeds, kinds,
};
use ::nds::Progress;
use ::nds::analysis::{self, CfgBudget, DiscoveryBudget, FunctionAnalysis, FunctionRequest, analyze_function};

/// The tool.
#[derive(Debug)]
pub struct NdsAnalyzeFunction;

/// Which address, and where its proof is looked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Params {
    /// Path below the workspace.
    #[schemars(length(min = 1))]
    rom: String,
    processor: ProcessorName,
    /// The function's first address.
    runtime_address: Address,
    mode: OneMode,
    /// The overlay meant, where several could be there.
    #[serde(default)]
    overlay_id: Option<u32>,
    /// Where a proof is looked for.
    proof_scope: Scope,
    /// Places you vouch for as code, beside what is proven.
    #[serde(default)]
    #[schemars(length(max = limits::MAX_FUNCTION_SEEDS))]
    seeds: Vec<Seed>,
    /// Kinds of proof that count; default all three.
    #[serde(default)]
    evidence: Option<Vec<Proof>>,
    #[serde(default)]
    max_proof_components: Bounded<1, { limits::MAX_SCAN_COMPONENTS }, { limits::DEFAULT_NDS_SCAN_COMPONENTS }>,
    #[serde(default)]
    max_proof_blocks: Bounded<1, { limits::MAX_SCAN_BLOCKS }, { limits::DEFAULT_NDS_SCAN_BLOCKS }>,
    #[serde(default)]
    max_proof_instructions: Bounded<1, { limits::MAX_SCAN_INSTRUCTIONS }, { limits::DEFAULT_NDS_SCAN_INSTRUCTIONS }>,
    #[serde(default)]
    max_proof_bytes: Bounded<2, { limits::MAX_SCAN_BYTES }, { limits::DEFAULT_NDS_SCAN_BYTES }>,
    #[serde(default)]
    max_proof_edges: Bounded<1, { limits::MAX_SCAN_EDGES }, { limits::DEFAULT_NDS_SCAN_EDGES }>,
    #[serde(default)]
    max_proof_call_sites: Bounded<1, { limits::MAX_SCAN_CALL_SITES }, { limits::DEFAULT_NDS_PROOF_CALL_SITES }>,
    #[serde(default)]
    max_cfg_blocks: Bounded<1, { limits::MAX_CFG_BLOCKS }, { limits::DEFAULT_CFG_BLOCKS }>,
    #[serde(default)]
    max_cfg_instructions: Bounded<1, { limits::MAX_CFG_INSTRUCTIONS }, { limits::DEFAULT_CFG_INSTRUCTIONS }>,
    #[serde(default)]
    max_cfg_bytes: Bounded<2, { limits::MAX_CFG_BYTES }, { limits::DEFAULT_CFG_BYTES }>,
    #[serde(default)]
    max_cfg_edges: Bounded<1, { limits::MAX_CFG_EDGES }, { limits::DEFAULT_CFG_EDGES }>,
    /// Instructions, then callers, unresolved sites and components, to skip.
    #[serde(default)]
    offset: Skip,
    /// How many of these in one answer.
    #[serde(default)]
    limit: Option<Most>,
}

/// What is known of it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Analyzed {
    /// `proven`; `not-proven-function-entry` (the search was complete and found nothing); `proof-inconclusive`.
    proof_status: &'static str,
    /// The address.
    entry: EntryShown,
    /// The proofs.
    evidence: Vec<EvidenceShown>,
    /// How far the proof was looked for.
    proof_search: SearchShown,
    /// The graph; it ends where another proven function begins.
    cfg: GraphShown,
    /// Proven calls of it.
    callers: Vec<FunctionCallShown>,
    /// Calls that it makes.
    outgoing_calls: Vec<CallShown>,
    /// Its returns.
    return_sites: Vec<ExitShown>,
    /// Edges that leave it for nobody knows where.
    unresolved_exits: Vec<ExitShown>,
    #[serde(flatten)]
    part: Part,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SearchShown {
    status: &'static str,
    coverage: Vec<CoverageShown>,
    truncation_reasons: Vec<&'static str>,
    unresolved_indirect_calls: UnresolvedShown,
}

impl Tool for NdsAnalyzeFunction {
    const NAME: &'static str = "nds_analyze_function";
    const DESCRIPTION: &'static str = "Analyze one function of a Nintendo DS ROM: whether its address is proven to be one and \
         by what, its control flow graph, callers, calls and returns.";
    const EFFECT: Effect = Effect::READS;
    type Params = Params;
    type Output = Shown<Analyzed>;

    async fn run(context: &Context, params: Params) -> Result<Self::Output, ToolError> {
        let code = ErrorCode::FunctionDiscoveryLimitExceeded;
        let cfg_budget = CfgBudget {
            blocks: params.max_cfg_blocks.get("maxCfgBlocks", code)?,
            instructions: params.max_cfg_instructions.get("maxCfgInstructions", code)?,
            bytes: params.max_cfg_bytes.get("maxCfgBytes", code)?,
            edges: params.max_cfg_edges.get("maxCfgEdges", code)?,
        };
        let request = FunctionRequest {
            processor: params.processor.into(),
            entry: analysis::Seed {
                runtime_address: params.runtime_address.0,
                mode: params.mode.into(),
                overlay_id: params.overlay_id,
            },
            proof_scope: params.proof_scope.checked(ErrorCode::InvalidFunctionScope)?,
            seeds: checked_seeds(&params.seeds, limits::MAX_FUNCTION_SEEDS, code)?,
            evidence: kinds(params.evidence.as_deref())?,
            proof_budget: DiscoveryBudget {
                max_components: params.max_proof_components.get("maxProofComponents", code)?,
                max_functions: limits::MAX_SCAN_FUNCTIONS,
                max_call_sites: params.max_proof_call_sites.get("maxProofCallSites", code)?,
                max_total_blocks: params.max_proof_blocks.get("maxProofBlocks", code)?,
                max_total_instructions: params.max_proof_instructions.get("maxProofInstructions", code)?,
                max_total_bytes: params.max_proof_bytes.get("maxProofBytes", code)?,
                max_total_edges: params.max_proof_edges.get("maxProofEdges", code)?,
                per_function: cfg_budget,
            },
            cfg_budget,
        };
        let wanted = Wanted::new(params.offset, params.limit)?;
        on_rom(context, params.rom, move |context, job, rom| {
            let watcher = |at: Progress| job.wanted(at.done, at.total, "looking for a proof");
            shown(context, wanted, &analyze_function(rom, &request, &watcher)?).map(Shown)
        })
        .await
    }
}

fn shown(context: &Context, wanted: Wanted, found: &FunctionAnalysis) -> Result<Analyzed, ToolError> {
    // Calls and unresolved edges are there twice: in the graph and in a list of their own.
    let graph = Numbered::new(&found.cfg, 2);
    let mut answer = Analyzed {
        proof_status: found.proof_status,
        entry: EntryShown::of(&found.entry),
        evidence: found.evidence.iter().map(EvidenceShown::of).collect(),
        proof_search: SearchShown {
            status: found.proof_search_status,
            coverage: Vec::new(),
            truncation_reasons: found.proof_search_truncation_reasons.clone(),
            unresolved_indirect_calls: UnresolvedShown::count(&found.unresolved_indirect_calls),
        },
        cfg: graph.rest(),
        callers: Vec::new(),
        outgoing_calls: Vec::new(),
        return_sites: Vec::new(),
        unresolved_exits: Vec::new(),
        part: Part::default(),
    };
    let (callers, sites) = (&found.callers, &found.unresolved_indirect_calls.sites);
    let coverage = &found.proof_search_coverage;
    let before_callers = graph.len();
    let before_sites = before_callers + callers.len();
    let before_coverage = before_sites + sites.len();
    answer.part = part(context, wanted, before_coverage + coverage.len(), &answer, |at| {
        if at < before_callers {
            graph.item(at, at == wanted.offset)
        } else if at < before_sites {
            to_value(&callers.get(at - before_callers).map(FunctionCallShown::of))
        } else if at < before_coverage {
            to_value(&sites.get(at - before_sites).map(SiteShown::of))
        } else {
            to_value(&coverage.get(at - before_coverage).map(CoverageShown::of))
        }
    })?;
    let range = answer.part.range.clone();
    let instructions = range.start.min(before_callers)..range.end.min(before_callers);
    answer.callers = within(callers, &range, before_callers).iter().map(FunctionCallShown::of).collect();
    answer.proof_search.unresolved_indirect_calls.sites =
        within(sites, &range, before_sites).iter().map(SiteShown::of).collect();
    answer.proof_search.coverage = within(coverage, &range, before_coverage).iter().map(CoverageShown::of).collect();
    answer.outgoing_calls = graph.calls_in(&instructions).map(CallShown::of).collect();
    for edge in graph.unresolved_in(&instructions) {
        let list = if edge.kind == "return" { &mut answer.return_sites } else { &mut answer.unresolved_exits };
        list.push(ExitShown::of(edge));
    }
    answer.cfg = graph.shown(instructions);
    Ok(answer)
}
