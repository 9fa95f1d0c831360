//! Functions, each with its proof: the program entry, a direct call, or a call through a literal.
//!
//! Two passes. The scan finds every entry, each instruction looked at once. Then each function gets its control flow graph,
//! which ends where another function begins: a branch to one is an edge that leaves, as a tail call does, so that the code of
//! a function is counted with that function and not with those that jump to it, and the order of discovery does not matter.

use std::collections::{HashMap, HashSet};

use code::arm::{FlowKind, LiteralCall, Mode};

use super::candidates::{self, CandidateKind, SeedCandidate};
use super::cfg::{CfgBudget, CfgTotals, CodeId};
use super::coverage::{Coverage, CoverageRequest, Covered, cover};
use super::graph::{Around, Graph};
use super::scan::{Entry, EvidenceKinds, Root, Scan, ScanBudget, Seed, seed_places};
use super::source::{At, Code, Indirect, Scope, program_entry_address};
use super::xrefs::{UnresolvedSites, unresolved_sites};
use crate::watch::{Failure, Watcher};
use crate::{Processor, Rom};

/// A part of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Items to skip.
    pub offset: usize,
    /// Items to give.
    pub limit: usize,
}

/// A list, as a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paged<T> {
    /// Items that were skipped, as asked.
    pub offset: usize,
    /// Items at most, as asked.
    pub limit: usize,
    /// All items.
    pub total: usize,
    /// Where to go on; `None` at the end.
    pub next: Option<usize>,
    /// Those of this page.
    pub items: Vec<T>,
}

impl Page {
    fn of<T, U>(self, all: &[T], show: impl FnMut(&T) -> U) -> Paged<U> {
        let items: Vec<U> = all.iter().skip(self.offset).take(self.limit).map(show).collect();
        let end = self.offset.saturating_add(items.len());
        let next = (end < all.len() && !items.is_empty()).then_some(end);
        Paged { offset: self.offset, limit: self.limit, total: all.len(), next, items }
    }
}

/// What a discovery may spend: the totals bound the scan, and once more the graphs of all functions together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiscoveryBudget {
    /// Components.
    pub max_components: u64,
    /// Functions.
    pub max_functions: u64,
    /// Call sites.
    pub max_call_sites: u64,
    /// Blocks.
    pub max_total_blocks: u64,
    /// Instructions.
    pub max_total_instructions: u64,
    /// Bytes of them.
    pub max_total_bytes: u64,
    /// Edges.
    pub max_total_edges: u64,
    /// What the graph of one function may spend.
    pub per_function: CfgBudget,
}

/// A request for functions, as the tool takes it.
#[derive(Clone, Debug)]
pub struct DiscoveryRequest {
    /// Who executes the code.
    pub processor: Processor,
    /// Which components are scanned.
    pub scope: Scope,
    /// Places that the caller vouches for as code.
    pub seeds: Vec<Seed>,
    /// Which kinds of proof count.
    pub evidence: EvidenceKinds,
    /// What it may spend.
    pub budget: DiscoveryBudget,
    /// Which functions to give.
    pub functions: Page,
    /// Which calls to give.
    pub calls: Page,
    /// Which unresolved sites to give.
    pub sites: Page,
    /// Which candidates for seeds to give.
    pub candidates: Page,
}

/// Where a function begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionEntry {
    /// Its identity.
    pub id: CodeId,
    /// Where its first byte is stored; `None` for derived bytes.
    pub rom_offset: Option<u32>,
}

/// Why an address is a function. A function has one of each kind that holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The header names it.
    ProgramEntry {
        /// Of which processor.
        processor: Processor,
        /// The header's entry address.
        header_entry_address: u32,
    },
    /// A `bl` or `blx` goes to it.
    DirectCall(CallEvidence),
    /// A call through a register goes to it that holds a literal.
    LiteralCall {
        /// The call.
        call: CallEvidence,
        /// The load and the literal.
        literal: LiteralCall,
    },
    /// The caller of the analysis named it as a seed: no proof.
    UserSeed,
    /// It looks like a function, and the caller asked that such be taken for functions: no proof.
    Candidate {
        /// How it looks like one.
        kind: CandidateKind,
        /// Where the word is that names it.
        pointer_address: Option<u32>,
    },
}

impl Evidence {
    /// The word of the contract; `user-seed`, `code-pointer` and `unreached-prologue` are beyond it.
    pub fn word(&self) -> &'static str {
        match self {
            Self::ProgramEntry { .. } => "program-entry",
            Self::DirectCall(_) => "direct-call",
            Self::LiteralCall { .. } => "literal-call",
            Self::UserSeed => "user-seed",
            Self::Candidate { kind, .. } => kind.word(),
        }
    }
}

/// One call that proves a function: the one with the lowest address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallEvidence {
    /// The function that calls; `None` when the call is in none's graph, because a budget cut that.
    pub caller: Option<CodeId>,
    /// The instruction that calls.
    pub instruction_address: u32,
    /// Where it is stored.
    pub instruction_rom_offset: Option<u32>,
}

/// How large a function is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionCfg {
    /// `complete` or `truncated`.
    pub status: &'static str,
    /// Why it is truncated: a limit of the function, or `total-…` of all together.
    pub truncation_reason: Option<&'static str>,
    /// Blocks, instructions, bytes and edges.
    pub totals: CfgTotals,
    /// Returns.
    pub return_sites: u64,
    /// Edges to other functions.
    pub function_exits: u64,
    /// Edges whose target is not certain, returns left out.
    pub unresolved_edges: u64,
}

/// A function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Where it begins.
    pub entry: FunctionEntry,
    /// What it rests on in the end.
    pub root: Root,
    /// Its proofs; empty never.
    pub evidence: Vec<Evidence>,
    /// Functions that call it directly.
    pub direct_caller_count: u64,
    /// Direct calls of it.
    pub direct_call_site_count: u64,
    /// Calls of it through literals.
    pub literal_call_site_count: u64,
    /// How large it is.
    pub cfg: FunctionCfg,
}

/// A call between functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionCall {
    /// Who calls.
    pub caller: CodeId,
    /// The instruction.
    pub instruction_address: u32,
    /// Where it is stored.
    pub instruction_rom_offset: Option<u32>,
    /// Who is called.
    pub callee: CodeId,
    /// `direct-call` or `literal-call`.
    pub kind: &'static str,
}

/// What a discovery found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discovery {
    /// `complete`, `partial-coverage` or `truncated`. `complete` says that what the proofs reach was looked at;
    /// `unresolved_indirect_calls` says what they cannot reach.
    pub status: &'static str,
    /// Who executes the code.
    pub processor: Processor,
    /// The functions, by component and address.
    pub functions: Paged<Function>,
    /// The calls, by component and address.
    pub calls: Paged<FunctionCall>,
    /// What was covered.
    pub coverage: Vec<Coverage>,
    /// Why it is truncated.
    pub truncation_reasons: Vec<&'static str>,
    /// Functions, and the sums over their graphs.
    pub totals: DiscoveryTotals,
    /// Indirect calls and branches that were reached and whose target is not proven.
    pub unresolved_indirect_calls: UnresolvedSites,
    /// Direct calls that were reached and not followed: their target is out of scope, ambiguous, not decodable, or no memory
    /// that the ROM tells of; or they are no evidence here, and nothing else reached the target.
    pub unfollowed_calls: u64,
    /// Addresses that look like functions and that no proof reaches, for the caller to look at and give as seeds.
    pub seed_candidates: Paged<SeedCandidate>,
}

/// Sums of a discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DiscoveryTotals {
    /// Functions.
    pub functions: u64,
    /// Calls.
    pub call_sites: u64,
    /// Sums over all graphs.
    pub graphs: CfgTotals,
}

/// A function in the making.
struct Raw {
    entry: Entry,
    cfg: FunctionCfg,
    direct_callers: HashSet<At>,
    direct_sites: u64,
    literal_sites: u64,
}

/// A call in the making.
#[derive(Clone, Copy)]
pub(super) struct RawCall {
    pub caller: At,
    pub site: At,
    pub callee: At,
    pub literal: bool,
}

/// Discovers functions.
///
/// # Errors
/// `unknown-overlay-id`; `invalid-function-seed`, `function-entry-not-uniquely-resolved` for a seed; or cancelled.
pub fn discover_functions(rom: &Rom, request: &DiscoveryRequest, watcher: Watcher<'_>) -> Result<Discovery, Failure> {
    let code = Code::of(rom, request.processor);
    let seeds = seed_places(&code, &request.seeds, "invalid-function-seed", "function-entry-not-uniquely-resolved")?;
    let limits = &request.budget;
    let budget = ScanBudget {
        functions: limits.max_functions,
        call_sites: limits.max_call_sites,
        blocks: limits.max_total_blocks,
        instructions: limits.max_total_instructions,
        bytes: limits.max_total_bytes,
        edges: limits.max_total_edges,
    };
    let cover_request = CoverageRequest { scope: &request.scope, max_components: limits.max_components };
    let covered = cover(rom, &code, &cover_request, request.evidence, budget, &seeds, watcher, &mut |_, _| {})?;
    let mut graphs = Graphs::new(&code, &covered.scan, request.evidence, limits);
    for (number, entry) in covered.scan.entries.iter().enumerate() {
        graphs.add(entry);
        if number % 256 == 255 && !watcher(graphs.progress()) {
            return Err(Failure::Cancelled);
        }
    }
    Ok(graphs.finish(rom, request, &covered))
}

/// The graphs of all functions.
pub(super) struct Graphs<'a, 'r> {
    code: &'a Code<'r>,
    scan: &'a Scan<'a, 'r>,
    evidence: EvidenceKinds,
    limits: &'a DiscoveryBudget,
    proofs: HashMap<At, Indirect>,
    functions: Vec<Raw>,
    numbers: HashMap<At, usize>,
    pub calls: Vec<RawCall>,
    totals: CfgTotals,
    reasons: Vec<&'static str>,
}

impl<'a, 'r> Graphs<'a, 'r> {
    pub fn new(
        code: &'a Code<'r>,
        scan: &'a Scan<'a, 'r>,
        evidence: EvidenceKinds,
        limits: &'a DiscoveryBudget,
    ) -> Self {
        Self {
            code,
            scan,
            evidence,
            limits,
            proofs: proofs(scan),
            functions: Vec::with_capacity(scan.entries.len()),
            numbers: scan.entries.iter().enumerate().map(|(number, entry)| (entry.at, number)).collect(),
            calls: Vec::new(),
            totals: CfgTotals::default(),
            reasons: Vec::new(),
        }
    }

    fn progress(&self) -> crate::Progress {
        crate::Progress { done: self.totals.instructions, total: self.limits.max_total_instructions }
    }

    fn note(&mut self, reason: &'static str) {
        if !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }

    pub fn add(&mut self, entry: &Entry) {
        let own = &self.limits.per_function;
        let left = CfgBudget {
            blocks: self.limits.max_total_blocks - self.totals.blocks,
            instructions: self.limits.max_total_instructions - self.totals.instructions,
            bytes: self.limits.max_total_bytes - self.totals.bytes,
            edges: self.limits.max_total_edges - self.totals.edges,
        };
        let budget = CfgBudget {
            blocks: own.blocks.min(left.blocks),
            instructions: own.instructions.min(left.instructions),
            bytes: own.bytes.min(left.bytes),
            edges: own.edges.min(left.edges),
        };
        let graph = walk(self.code, self.scan, &self.proofs, entry.at, &budget);
        let reason = graph.exhausted.map(|reason| match reason {
            "block-limit" if left.blocks < own.blocks => "total-block-limit",
            "instruction-limit" if left.instructions < own.instructions => "total-instruction-limit",
            "byte-limit" if left.bytes < own.bytes => "total-byte-limit",
            "edge-limit" if left.edges < own.edges => "total-edge-limit",
            other => other,
        });
        if let Some(reason) = reason {
            self.note(reason);
        }
        let returns = graph.returns().count() as u64;
        self.functions.push(Raw {
            entry: *entry,
            cfg: FunctionCfg {
                status: if reason.is_some() { "truncated" } else { "complete" },
                truncation_reason: reason,
                totals: graph.totals,
                return_sites: returns,
                function_exits: graph.edges.iter().filter(|edge| edge.to_function).count() as u64,
                unresolved_edges: graph.unresolved.len() as u64 - returns,
            },
            direct_callers: HashSet::new(),
            direct_sites: 0,
            literal_sites: 0,
        });
        self.totals.blocks += graph.totals.blocks;
        self.totals.instructions += graph.totals.instructions;
        self.totals.bytes += graph.totals.bytes;
        self.totals.edges += graph.totals.edges;
        self.note_calls(&graph);
    }

    fn note_calls(&mut self, graph: &Graph) {
        for block in &graph.blocks {
            for insn in graph.insns.get(block.insns.clone()).unwrap_or_default() {
                let site = At { address: insn.address, ..block.at };
                let flow = insn.flow();
                if let (FlowKind::Call, Some(address), Some(mode)) = (flow.kind, flow.direct_target, flow.target_mode) {
                    self.note_call(graph.entry, site, address, mode, false);
                    if let Some(Indirect::Literal(call)) = self.proofs.get(&site).copied() {
                        self.note_call(graph.entry, site, call.target, call.target_mode, true);
                    }
                }
            }
        }
        for literal in &graph.literals {
            self.note_call(graph.entry, literal.site, literal.call.target, literal.call.target_mode, true);
        }
    }

    fn note_call(&mut self, caller: At, site: At, address: u32, mode: Mode, literal: bool) {
        let wanted = if literal { self.evidence.literal_call } else { self.evidence.direct_call };
        let Ok(part) = self.scan.locate(site.part, address) else { return };
        let callee = At { part, mode, address };
        if !wanted || !self.numbers.contains_key(&callee) {
            return;
        }
        if self.calls.len() as u64 >= self.limits.max_call_sites {
            self.note("call-site-limit");
            return;
        }
        self.calls.push(RawCall { caller, site, callee, literal });
    }

    fn finish(mut self, rom: &Rom, request: &DiscoveryRequest, covered: &Covered<'_, 'r>) -> Discovery {
        let order = |at: At| (at.part, at.address, at.mode);
        self.calls.sort_by_key(|call| (order(call.site), order(call.caller), call.literal));
        let mut first_caller: HashMap<(At, bool), RawCall> = HashMap::new();
        for call in &self.calls {
            first_caller.entry((call.callee, call.literal)).or_insert(*call);
            let Some(callee) = self.numbers.get(&call.callee).and_then(|number| self.functions.get_mut(*number)) else {
                continue;
            };
            if call.literal {
                callee.literal_sites += 1;
            } else {
                callee.direct_sites += 1;
                callee.direct_callers.insert(call.caller);
            }
        }
        self.functions.sort_by_key(|function| order(function.entry.at));
        let mut reasons = covered.reasons.clone();
        reasons.extend(self.reasons.iter().filter(|reason| !covered.reasons.contains(reason)));
        let code = self.code;
        let functions = request.functions.of(&self.functions, |raw| Function {
            entry: function_entry(code, raw.entry.at),
            root: raw.entry.root,
            evidence: evidence(rom, code, &raw.entry, &self.proofs, &|at, literal| {
                first_caller.get(&(at, literal)).copied()
            }),
            direct_caller_count: raw.direct_callers.len() as u64,
            direct_call_site_count: raw.direct_sites,
            literal_call_site_count: raw.literal_sites,
            cfg: raw.cfg,
        });
        let calls = request.calls.of(&self.calls, |call| show_call(code, call));
        Discovery {
            status: if reasons.is_empty() { covered.status() } else { "truncated" },
            processor: request.processor,
            totals: DiscoveryTotals {
                functions: self.functions.len() as u64,
                call_sites: self.calls.len() as u64,
                graphs: self.totals,
            },
            functions,
            calls,
            coverage: covered.coverage.clone(),
            truncation_reasons: reasons,
            unresolved_indirect_calls: unresolved_sites(code, &covered.scan, request.sites.offset, request.sites.limit),
            unfollowed_calls: covered.scan.unfollowed_calls(),
            seed_candidates: {
                let found = candidates::present(code, &candidates::of(code, &covered.scan));
                request.candidates.of(&found, |candidate| *candidate)
            },
        }
    }
}

/// What the scan proves of its indirect sites.
pub(super) fn proofs(scan: &Scan<'_, '_>) -> HashMap<At, Indirect> {
    scan.indirect.iter().chain(&scan.veneers).map(|site| (site.at, site.proof)).collect()
}

/// The graph of a function, which ends where another begins.
fn walk(code: &Code<'_>, scan: &Scan<'_, '_>, proofs: &HashMap<At, Indirect>, entry: At, budget: &CfgBudget) -> Graph {
    let around = Around {
        is_function: &|at| scan.is_entry(at),
        proof: &|at| proofs.get(&at).copied(),
        in_scope: &|part| scan.is_in_scope(part),
    };
    Graph::walk(code, entry, budget, &around)
}

pub(super) fn function_entry(code: &Code<'_>, at: At) -> FunctionEntry {
    FunctionEntry { id: code.code_id(at), rom_offset: code.rom_offset(at) }
}

pub(super) fn show_call(code: &Code<'_>, call: &RawCall) -> FunctionCall {
    FunctionCall {
        caller: code.code_id(call.caller),
        instruction_address: call.site.address,
        instruction_rom_offset: code.rom_offset(call.site),
        callee: code.code_id(call.callee),
        kind: if call.literal { "literal-call" } else { "direct-call" },
    }
}

/// Every kind of evidence that an entry has.
pub(super) fn evidence(
    rom: &Rom,
    code: &Code<'_>,
    entry: &Entry,
    proofs: &HashMap<At, Indirect>,
    first: &dyn Fn(At, bool) -> Option<RawCall>,
) -> Vec<Evidence> {
    let mut evidence = Vec::new();
    if entry.program_entry {
        evidence.push(Evidence::ProgramEntry {
            processor: code.processor,
            header_entry_address: program_entry_address(rom, code.processor),
        });
    }
    let call_evidence = |site: At, literal: bool| {
        let call = first(entry.at, literal);
        let site = call.map_or(site, |call| call.site);
        let caller = call.map(|call| code.code_id(call.caller));
        let instruction_rom_offset = code.rom_offset(site);
        (site, CallEvidence { caller, instruction_address: site.address, instruction_rom_offset })
    };
    if let Some(site) = entry.direct_call {
        evidence.push(Evidence::DirectCall(call_evidence(site, false).1));
    }
    if let Some(site) = entry.literal_call {
        let (site, call) = call_evidence(site, true);
        if let Some(Indirect::Literal(literal)) = proofs.get(&site).copied() {
            evidence.push(Evidence::LiteralCall { call, literal });
        }
    }
    if entry.seed {
        evidence.push(Evidence::UserSeed);
    }
    if let Some((kind, pointer_address)) = entry.candidate {
        evidence.push(Evidence::Candidate { kind, pointer_address });
    }
    evidence
}
