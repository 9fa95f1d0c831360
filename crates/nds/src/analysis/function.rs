//! One address as a function: is there a proof, what is its graph, who calls it.

use super::cfg::{self, Call, CfgBudget, ControlFlow, UnresolvedEdge};
use super::coverage::{Coverage, CoverageRequest, cover};
use super::functions::{
    DiscoveryBudget, Evidence, FunctionCall, FunctionEntry, Graphs, RawCall, evidence, function_entry, proofs,
    show_call,
};
use super::graph::{Around, Graph};
use super::scan::{EvidenceKinds, Scan, ScanBudget, Seed, seed_place, seed_places};
use super::source::{At, Code, Scope};
use super::xrefs::{UnresolvedSites, unresolved_sites};
use crate::watch::{Failure, Watcher};
use crate::{Processor, Rom};

/// A request about one address, as the tool takes it.
#[derive(Clone, Debug)]
pub struct FunctionRequest {
    /// Who executes the code.
    pub processor: Processor,
    /// The address, with its mode and overlay.
    pub entry: Seed,
    /// Where the proof is looked for.
    pub proof_scope: Scope,
    /// Places that the caller vouches for as code.
    pub seeds: Vec<Seed>,
    /// Which kinds of proof count.
    pub evidence: EvidenceKinds,
    /// What the search for a proof may spend; its limits of one function bound the graphs that are searched for callers.
    pub proof_budget: DiscoveryBudget,
    /// What the graph may spend.
    pub cfg_budget: CfgBudget,
}

/// What is known of one address as a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionAnalysis {
    /// `proven`; `not-proven-function-entry`: the search was complete and found no proof; `proof-inconclusive`: it found
    /// none and was not complete, or could not follow everything.
    pub proof_status: &'static str,
    /// The address.
    pub entry: FunctionEntry,
    /// The proofs.
    pub evidence: Vec<Evidence>,
    /// `complete`, `partial-coverage` or `truncated`.
    pub proof_search_status: &'static str,
    /// What the search covered.
    pub proof_search_coverage: Vec<Coverage>,
    /// Why it is truncated.
    pub proof_search_truncation_reasons: Vec<&'static str>,
    /// What it could not follow; the first sites, and the count of all.
    pub unresolved_indirect_calls: UnresolvedSites,
    /// The graph, which ends where another proven function begins.
    pub cfg: ControlFlow,
    /// Proven calls of it.
    pub callers: Vec<FunctionCall>,
    /// Calls that it makes.
    pub outgoing_calls: Vec<Call>,
    /// Its returns.
    pub return_sites: Vec<UnresolvedEdge>,
    /// Edges that leave it for nobody knows where.
    pub unresolved_exits: Vec<UnresolvedEdge>,
}

/// Sites that an answer about one function shows.
const SITES_SHOWN: usize = 32;

/// Analyses one address as a function, and looks for a proof that it is one.
///
/// # Errors
/// `function-entry-not-uniquely-resolved`; `invalid-function-seed` for a seed or a misaligned or undecodable address;
/// `unknown-overlay-id`; or cancelled.
pub fn analyze_function(
    rom: &Rom,
    request: &FunctionRequest,
    watcher: Watcher<'_>,
) -> Result<FunctionAnalysis, Failure> {
    const AMBIGUOUS: &str = "function-entry-not-uniquely-resolved";
    let code = Code::of(rom, request.processor);
    let at = seed_place(&code, &request.entry, "invalid-function-seed", AMBIGUOUS)?;
    let seeds = seed_places(&code, &request.seeds, "invalid-function-seed", AMBIGUOUS)?;
    let limits = &request.proof_budget;
    let budget = ScanBudget {
        functions: limits.max_functions,
        call_sites: limits.max_call_sites,
        blocks: limits.max_total_blocks,
        instructions: limits.max_total_instructions,
        bytes: limits.max_total_bytes,
        edges: limits.max_total_edges,
    };
    let cover_request = CoverageRequest { scope: &request.proof_scope, max_components: limits.max_components };
    let covered = cover(rom, &code, &cover_request, request.evidence, budget, &seeds, watcher, &mut |_, _| {})?;
    let proofs = proofs(&covered.scan);
    let around = Around {
        is_function: &|at| covered.scan.is_entry(at),
        proof: &|at| proofs.get(&at).copied(),
        in_scope: &|_| true,
    };
    let cfg = cfg::present(&code, &Graph::walk(&code, at, &request.cfg_budget, &around));
    let callers = callers(&code, &covered.scan, request, at);
    let first = |_: At, literal: bool| callers.iter().find(|call| call.literal == literal).copied();
    let mut evidence =
        covered.scan.entry(at).map(|entry| evidence(rom, &code, entry, &proofs, &first)).unwrap_or_default();
    // That the caller of the analysis says so proves nothing, and looks prove nothing.
    evidence.retain(|evidence| !matches!(evidence, Evidence::UserSeed | Evidence::Candidate { .. }));
    let unresolved = unresolved_sites(&code, &covered.scan, 0, SITES_SHOWN);
    let conclusive = covered.status() == "complete" && unresolved.count == 0;
    let (return_sites, unresolved_exits) = cfg.unresolved.iter().copied().partition(|edge| edge.kind == "return");
    Ok(FunctionAnalysis {
        proof_status: match (evidence.is_empty(), conclusive) {
            (false, _) => "proven",
            (true, true) => "not-proven-function-entry",
            (true, false) => "proof-inconclusive",
        },
        entry: function_entry(&code, at),
        evidence,
        proof_search_status: covered.status(),
        callers: callers.iter().map(|call| show_call(&code, call)).collect(),
        outgoing_calls: cfg.calls.clone(),
        return_sites,
        unresolved_exits,
        cfg,
        proof_search_coverage: covered.coverage,
        proof_search_truncation_reasons: covered.reasons,
        unresolved_indirect_calls: unresolved,
    })
}

/// Calls of a place, by the graphs of all functions that the scan found.
fn callers(code: &Code<'_>, scan: &Scan<'_, '_>, request: &FunctionRequest, at: At) -> Vec<RawCall> {
    if scan.entry(at).is_none() {
        return Vec::new();
    }
    let mut graphs = Graphs::new(code, scan, request.evidence, &request.proof_budget);
    for entry in &scan.entries {
        graphs.add(entry);
    }
    let mut callers = graphs.calls;
    callers.retain(|call| call.callee == at);
    callers.sort_by_key(|call| (call.site.part, call.site.address, call.site.mode, call.caller));
    callers
}
