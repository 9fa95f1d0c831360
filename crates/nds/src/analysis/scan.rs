//! The scan that proves: from program entries and seeds along every branch and call whose target is certain, each
//! instruction once. What it reaches is code; what it calls is a function.

use std::collections::{HashMap, VecDeque};

use base::limits;
use code::arm::{FlowKind, Insn, LiteralCall, Mode};

use super::candidates::CandidateKind;
use super::source::{At, Code, Indirect, SourceStatus, check_alignment, overlay_number, program_entry_address};
use super::tables;
use crate::watch::{Failure, Progress, Watcher};
use crate::{Refusal, Rom};

/// Which kinds of proof make an address a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvidenceKinds {
    /// The header names it as the entry of a main program.
    pub program_entry: bool,
    /// A `bl` or `blx` of a known address goes to it.
    pub direct_call: bool,
    /// A `bx` or `blx` of a register goes to it that was loaded from a literal pool just before.
    pub literal_call: bool,
    /// No proof: it looks like a function and code can be read on from there, see [`super::CandidateKind`].
    pub candidates: bool,
}

impl EvidenceKinds {
    /// All that prove.
    pub const PROOFS: Self = Self { program_entry: true, direct_call: true, literal_call: true, candidates: false };
    /// All that prove, and candidates where no proof reaches.
    pub const ALL: Self = Self { candidates: true, ..Self::PROOFS };
}

/// A place that a caller vouches for as code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed {
    /// Its address.
    pub runtime_address: u32,
    /// Its instruction set.
    pub mode: Mode,
    /// The overlay that is meant, where several components could be there.
    pub overlay_id: Option<u32>,
}

/// What a scan may spend. Zero is allowed and gives nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScanBudget {
    pub functions: u64,
    pub call_sites: u64,
    pub blocks: u64,
    pub instructions: u64,
    pub bytes: u64,
    pub edges: u64,
}

/// What a scan spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Spent {
    pub call_sites: u64,
    pub blocks: u64,
    pub instructions: u64,
    pub bytes: u64,
    pub edges: u64,
}

/// A set of addresses of one component and mode: one bit each.
#[derive(Debug, Default)]
struct Bits {
    words: Vec<u64>,
}

impl Bits {
    fn contains(&self, index: usize) -> bool {
        self.words.get(index / 64).is_some_and(|word| word >> (index % 64) & 1 != 0)
    }

    /// Returns whether it was not there yet. `size` is how many there can be.
    fn insert(&mut self, index: usize, size: usize) -> bool {
        if self.words.is_empty() {
            self.words.resize(size / 64 + 1, 0);
        }
        let Some(word) = self.words.get_mut(index / 64) else { return false };
        let fresh = *word >> (index % 64) & 1 == 0;
        *word |= 1 << (index % 64);
        fresh
    }

    fn is_empty(&self) -> bool {
        self.words.is_empty()
    }
}

/// Sets of addresses of all components in both modes.
#[derive(Debug)]
struct Places {
    arm: Vec<Bits>,
    thumb: Vec<Bits>,
}

impl Places {
    fn new(code: &Code<'_>) -> Self {
        let empty = || code.parts.iter().map(|_| Bits::default()).collect();
        Self { arm: empty(), thumb: empty() }
    }

    fn index(code: &Code<'_>, at: At) -> Option<(usize, usize)> {
        let part = code.part(at.part)?;
        let unit = at.mode.alignment() as usize;
        // An instruction's address has the alignment of its mode, but a component's start may have none.
        let offset = at.address.checked_sub(part.start & !3)? as usize;
        Some((offset / unit, part.bytes?.len() / unit + 4))
    }

    fn bits(&self, at: At) -> Option<&Bits> {
        let bits = if at.mode == Mode::Arm { &self.arm } else { &self.thumb };
        bits.get(at.part as usize)
    }

    fn contains(&self, code: &Code<'_>, at: At) -> bool {
        let Some((index, _)) = Self::index(code, at) else { return false };
        self.bits(at).is_some_and(|bits| bits.contains(index))
    }

    fn insert(&mut self, code: &Code<'_>, at: At) -> bool {
        let Some((index, size)) = Self::index(code, at) else { return false };
        let bits = if at.mode == Mode::Arm { &mut self.arm } else { &mut self.thumb };
        bits.get_mut(at.part as usize).is_some_and(|bits| bits.insert(index, size))
    }

    fn any_in(&self, part: u32) -> bool {
        [&self.arm, &self.thumb].iter().any(|bits| bits.get(part as usize).is_some_and(|bits| !bits.is_empty()))
    }
}

/// What the proof of a function rests on in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root {
    /// On the ROM alone.
    Proof,
    /// On a seed that the caller vouches for.
    Seed,
    /// On a candidate that was taken for a function because the caller asked for that.
    Candidate,
}

impl Root {
    /// The word: `proof`, `seed` or `candidate`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Proof => "proof",
            Self::Seed => "seed",
            Self::Candidate => "candidate",
        }
    }
}

/// A proven function, a seed, or a candidate that was taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub at: At,
    /// What it was first reached from.
    pub root: Root,
    pub program_entry: bool,
    pub seed: bool,
    /// As which candidate it was taken, and where the word is that names it.
    pub candidate: Option<(CandidateKind, Option<u32>)>,
    /// The lowest direct call of it that was seen.
    pub direct_call: Option<At>,
    /// The lowest call of it through a literal that was seen.
    pub literal_call: Option<At>,
}

/// An indirect branch or call that was reached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndirectSite {
    pub at: At,
    pub kind: FlowKind,
    pub register: Option<u8>,
    pub proof: Indirect,
}

/// A scan: what it is asked, and what it found so far.
pub(crate) struct Scan<'c, 'r> {
    code: &'c Code<'r>,
    evidence: EvidenceKinds,
    in_scope: Vec<bool>,
    budget: ScanBudget,
    pub spent: Spent,
    /// Why it ended early, when it did.
    pub exhausted: Option<&'static str>,
    seen: Places,
    /// Literals that reached instructions load.
    literals: Places,
    /// Targets of branches: places where another path joins a straight line.
    joins: Places,
    pub entries: Vec<Entry>,
    begins: Places,
    index: HashMap<At, usize>,
    branches: VecDeque<At>,
    next: usize,
    /// What new entries rest on.
    root: Root,
    pub indirect: Vec<IndirectSite>,
    /// Direct calls of a `bx rX` whose register holds a literal.
    pub veneers: Vec<IndirectSite>,
    /// Direct calls whose target cannot be followed.
    lost_calls: u64,
    /// Targets of calls of a kind that is no evidence here.
    left_out: Vec<At>,
}

/// Instructions between two questions to the watcher.
const WATCH_EVERY: u64 = 4_096;

impl<'c, 'r> Scan<'c, 'r> {
    /// A scan of the components `parts`.
    pub fn new(code: &'c Code<'r>, parts: &[u32], evidence: EvidenceKinds, budget: ScanBudget) -> Self {
        let in_scope = (0..).zip(&code.parts).map(|(number, _)| parts.contains(&number)).collect();
        Self {
            code,
            evidence,
            in_scope,
            budget,
            spent: Spent::default(),
            exhausted: None,
            seen: Places::new(code),
            literals: Places::new(code),
            joins: Places::new(code),
            entries: Vec::new(),
            begins: Places::new(code),
            index: HashMap::new(),
            branches: VecDeque::new(),
            next: 0,
            root: Root::Proof,
            indirect: Vec::new(),
            veneers: Vec::new(),
            lost_calls: 0,
            left_out: Vec::new(),
        }
    }

    /// Calls that were reached and not followed: their target cannot be, or their kind is no evidence and nothing else
    /// reached the target.
    pub fn unfollowed_calls(&self) -> u64 {
        self.lost_calls + self.left_out.iter().filter(|at| !self.has_seen(**at)).count() as u64
    }

    /// Adds the entry of the main program, when it is in scope and wanted as evidence.
    pub fn start_at_entry(&mut self, rom: &Rom) {
        if let Some(at) = self.code.program_entry(rom).filter(|_| self.evidence.program_entry)
            && self.is_in_scope(at.part)
        {
            self.enter(at, |entry| entry.program_entry = true);
        }
    }

    /// Adds a place that the caller vouches for.
    pub fn start_at_seed(&mut self, at: At) {
        self.root = Root::Seed;
        if self.is_in_scope(at.part) {
            self.enter(at, |entry| entry.seed = true);
        }
    }

    /// Takes what looks like a function for one. Returns whether that is new.
    pub fn start_at_candidate(&mut self, at: At, kind: CandidateKind, pointer: Option<u32>) -> bool {
        self.root = Root::Candidate;
        let fresh = self.entry(at).is_none();
        self.enter(at, |entry| entry.candidate = entry.candidate.or(Some((kind, pointer))));
        fresh && self.exhausted.is_none()
    }

    /// Whether a component is in scope.
    pub fn is_in_scope(&self, part: u32) -> bool {
        self.in_scope.get(part as usize).copied().unwrap_or_default()
    }

    /// Whether anything of a component was reached.
    pub fn reached(&self, part: u32) -> bool {
        self.seen.any_in(part)
    }

    /// Whether an instruction was reached at a place.
    pub fn has_seen(&self, at: At) -> bool {
        self.seen.contains(self.code, at)
    }

    /// Whether a reached instruction covers a part of the word at an address.
    pub fn is_code(&self, part: u32, address: u32) -> bool {
        let thumb = |address: Option<u32>| {
            address.is_some_and(|address| self.has_seen(At { part, mode: Mode::Thumb, address }))
        };
        // A pair that begins in the halfword before reaches in.
        let pair = address.checked_sub(2).map(|address| At { part, mode: Mode::Thumb, address });
        self.has_seen(At { part, mode: Mode::Arm, address })
            || thumb(Some(address))
            || thumb(address.checked_add(2))
            || pair.is_some_and(|at| self.has_seen(at) && self.code.decode(at).is_ok_and(|insn| insn.size == 4))
    }

    /// Whether a reached instruction loads the word at an address.
    pub fn is_literal(&self, part: u32, address: u32) -> bool {
        self.literals.contains(self.code, At { part, mode: Mode::Arm, address })
    }

    /// The proven function at a place, or the seed.
    pub fn entry(&self, at: At) -> Option<&Entry> {
        self.entries.get(*self.index.get(&at)?)
    }

    /// Whether a function begins at a place.
    pub fn is_entry(&self, at: At) -> bool {
        self.begins.contains(self.code, at)
    }

    /// Which component a branch or call goes to.
    pub fn locate(&self, from: u32, address: u32) -> Result<u32, SourceStatus> {
        let part = self.code.locate(Some(from), address)?;
        if self.is_in_scope(part) { Ok(part) } else { Err(SourceStatus::OutOfScope) }
    }

    /// Sites whose target is not proven, or not the only one because another path joins between load and branch.
    pub fn unresolved(&self) -> impl Iterator<Item = &IndirectSite> {
        self.indirect.iter().filter(|site| match site.proof {
            Indirect::Return | Indirect::Table => false,
            Indirect::Unknown => true,
            Indirect::Literal(call) => !self.evidence.literal_call || self.is_joined(site.at, &call),
        })
    }

    fn is_joined(&self, site: At, call: &LiteralCall) -> bool {
        let first = call.load.wrapping_add(1);
        // A branch from elsewhere, or a call: either comes with another value in the register.
        (first..=site.address).filter(|address| site.mode.is_aligned(*address)).any(|address| {
            let at = At { address, ..site };
            self.joins.contains(self.code, at) || self.is_entry(at)
        })
    }

    /// Scans until nothing is left or a budget is. `visit` is told every instruction, once.
    pub fn run(&mut self, watcher: Watcher<'_>, visit: &mut dyn FnMut(&Insn, At)) -> Result<(), Failure> {
        let mut next = self.next;
        let mut asked = 0;
        loop {
            while let Some(at) = self.branches.pop_front() {
                self.walk(at, visit);
                if self.exhausted.is_some() {
                    return Ok(());
                }
                if self.spent.instructions >= asked + WATCH_EVERY {
                    asked = self.spent.instructions;
                    if !watcher(Progress { done: asked, total: self.budget.instructions }) {
                        return Err(Failure::Cancelled);
                    }
                }
            }
            if let Some(entry) = self.entries.get(next) {
                self.branches.push_back(entry.at);
                next += 1;
                self.next = next;
            } else if !self.prove_again() {
                return Ok(());
            }
        }
    }

    /// Looks at the indirect sites anew, now that more before them may have been reached. Returns whether an entry came
    /// of it.
    fn prove_again(&mut self) -> bool {
        let before = self.entries.len();
        for number in 0..self.indirect.len() {
            let Some(site) = self.indirect.get(number).filter(|site| site.proof == Indirect::Unknown).copied() else {
                continue;
            };
            let proof = self.code.prove_indirect(site.at, &|at| self.has_seen(at));
            if let Some(site) = self.indirect.get_mut(number) {
                site.proof = proof;
            }
            self.follow_indirect(site.at, proof);
        }
        self.entries.len() > before || !self.branches.is_empty()
    }

    fn follow_indirect(&mut self, site: At, proof: Indirect) {
        let call = match proof {
            Indirect::Literal(call) if self.evidence.literal_call => call,
            Indirect::Table => {
                let targets = tables::targets(self.code, site, &|at| self.has_seen(at)).unwrap_or_default();
                for (address, mode) in targets {
                    self.branch(site.part, address, mode);
                }
                return;
            }
            _ => return,
        };
        match self.locate(site.part, call.target) {
            Ok(part) => {
                let target = At { part, mode: call.target_mode, address: call.target };
                self.call(target, |entry| {
                    entry.literal_call = Some(entry.literal_call.map_or(site, |known| known.min(site)));
                });
            }
            Err(_) => self.lost_calls += 1,
        }
    }

    /// Takes from a budget; when it is used up, the scan ends.
    fn charge(&mut self, spend: impl FnOnce(&mut Spent, &ScanBudget) -> Option<&'static str>) -> bool {
        if self.exhausted.is_none() {
            self.exhausted = spend(&mut self.spent, &self.budget);
        }
        self.exhausted.is_none()
    }

    fn charge_edge(&mut self) -> bool {
        self.charge(|spent, budget| take(&mut spent.edges, 1, budget.edges, "edge-limit"))
    }

    fn charge_block(&mut self) -> bool {
        self.charge(|spent, budget| take(&mut spent.blocks, 1, budget.blocks, "block-limit"))
    }

    fn enter(&mut self, at: At, mark: impl FnOnce(&mut Entry)) {
        let number = match self.index.get(&at) {
            Some(number) => *number,
            None => {
                if self.entries.len() as u64 >= self.budget.functions {
                    self.exhausted = self.exhausted.or(Some("function-limit"));
                    return;
                }
                self.entries.push(Entry {
                    at,
                    root: self.root,
                    program_entry: false,
                    seed: false,
                    candidate: None,
                    direct_call: None,
                    literal_call: None,
                });
                self.begins.insert(self.code, at);
                self.index.insert(at, self.entries.len() - 1);
                self.entries.len() - 1
            }
        };
        if let Some(entry) = self.entries.get_mut(number) {
            mark(entry);
        }
    }

    fn call(&mut self, target: At, mark: impl FnOnce(&mut Entry)) {
        let charged = self.charge(|spent, budget| take(&mut spent.call_sites, 1, budget.call_sites, "call-site-limit"));
        if charged && self.charge_edge() {
            self.enter(target, mark);
        }
    }

    fn branch(&mut self, from: u32, address: u32, mode: Mode) {
        if let Ok(part) = self.locate(from, address)
            && self.charge_edge()
        {
            let at = At { part, mode, address };
            self.joins.insert(self.code, at);
            self.branches.push_back(at);
        }
    }

    /// Follows one straight line to its end.
    fn walk(&mut self, start: At, visit: &mut dyn FnMut(&Insn, At)) {
        let mut at = start;
        let mut fresh_block = true;
        loop {
            if self.has_seen(at) {
                return;
            }
            let Ok(insn) = self.code.decode(at) else { return };
            if fresh_block && !self.charge_block() {
                return;
            }
            fresh_block = false;
            let size = u64::from(insn.size);
            let charged = self.charge(|spent, budget| {
                take(&mut spent.bytes, size, budget.bytes, "byte-limit")
                    .or_else(|| take(&mut spent.instructions, 1, budget.instructions, "instruction-limit"))
            });
            if !charged {
                return;
            }
            self.seen.insert(self.code, at);
            if let Some(address) = insn.literal_slot() {
                self.literals.insert(self.code, At { mode: Mode::Arm, address, ..at });
            }
            visit(&insn, at);
            let flow = insn.flow();
            match (flow.kind, flow.direct_target, flow.target_mode) {
                (FlowKind::Call, Some(address), Some(mode)) => self.direct_call(at, address, mode),
                (FlowKind::Branch | FlowKind::ConditionalBranch, Some(address), Some(mode)) => {
                    self.branch(at.part, address, mode);
                }
                (FlowKind::IndirectCall | FlowKind::IndirectBranch, ..) => {
                    let proof = self.code.prove_indirect(at, &|at| self.has_seen(at));
                    self.indirect.push(IndirectSite { at, kind: flow.kind, register: flow.register, proof });
                    self.follow_indirect(at, proof);
                }
                _ => {}
            }
            if self.exhausted.is_some() || !flow.falls_through {
                return;
            }
            if matches!(flow.kind, FlowKind::ConditionalBranch | FlowKind::Return | FlowKind::IndirectBranch) {
                fresh_block = true;
                if !self.charge_edge() {
                    return;
                }
            }
            // An end past 4 GiB wraps to an address that no component can follow with.
            at.address = insn.end();
        }
    }

    fn direct_call(&mut self, site: At, address: u32, mode: Mode) {
        let Ok(part) = self.locate(site.part, address) else {
            self.lost_calls += 1;
            return;
        };
        let target = At { part, mode, address };
        if self.evidence.direct_call {
            self.call(target, |entry| {
                entry.direct_call = Some(entry.direct_call.map_or(site, |known| known.min(site)));
            });
        } else {
            self.left_out.push(target);
        }
        // A `bl` to a `bx rX` calls what rX holds.
        if mode == Mode::Thumb {
            let proof = self.code.prove_indirect(site, &|at| self.has_seen(at));
            if let Indirect::Literal(_) = proof {
                self.veneers.push(IndirectSite { at: site, kind: FlowKind::Call, register: None, proof });
                self.follow_indirect(site, proof);
            }
        }
    }
}

/// Takes `n` of what is left to `limit`, or tells that it is too much.
fn take(spent: &mut u64, n: u64, limit: u64, reason: &'static str) -> Option<&'static str> {
    match spent.checked_add(n).filter(|sum| *sum <= limit) {
        Some(sum) => {
            *spent = sum;
            None
        }
        None => Some(reason),
    }
}

/// The places of seeds.
///
/// # Errors
/// `category` for one that is misaligned or cannot be decoded; `unresolved` for one that no single component has.
pub(crate) fn seed_places(
    code: &Code<'_>,
    seeds: &[Seed],
    category: &'static str,
    unresolved: &'static str,
) -> Result<Vec<At>, Refusal> {
    seeds.iter().map(|seed| seed_place(code, seed, category, unresolved)).collect()
}

/// The place of one seed; errors as for [`seed_places`].
pub(crate) fn seed_place(
    code: &Code<'_>,
    seed: &Seed,
    category: &'static str,
    unresolved: &'static str,
) -> Result<At, Refusal> {
    let Seed { runtime_address: address, mode, overlay_id } = *seed;
    check_alignment(address, mode, category)?;
    let part = match overlay_id {
        Some(id) => Ok(overlay_number(code, id)?),
        None => code.locate(None, address),
    };
    let part = part.map_err(|status| {
        Refusal::new(
            unresolved,
            format!("0x{address:08x} is no one place in code: {}", status.word()),
            "nds_resolve_runtime_address tells the candidates; overlayId chooses among overlays.",
        )
    })?;
    let at = At { part, mode, address };
    match code.decode(at) {
        Ok(_) => Ok(at),
        Err(_) => Err(Refusal::new(
            category,
            format!("no {} instruction can be decoded at 0x{address:08x} in {}", mode.word(), place_name(code, part)),
            "Give the address of code, in the mode that it runs in.",
        )),
    }
}

fn place_name(code: &Code<'_>, part: u32) -> String {
    code.part(part).map(|part| part.id.name()).unwrap_or_default()
}

/// The instruction set of a function that a scan from the program entry proves at an address; `None` when none does, or
/// both.
pub(crate) fn proven_mode(rom: &Rom, code: &Code<'_>, part: u32, address: u32) -> Option<Mode> {
    if let Some(entry) = code.program_entry(rom)
        && (entry.part, entry.address) == (part, address)
        && program_entry_address(rom, code.processor) == address
    {
        return Some(entry.mode);
    }
    let most = limits::NDS_AUTO_MODE_INSTRUCTIONS;
    let budget = ScanBudget {
        functions: most,
        call_sites: most,
        blocks: most,
        instructions: most,
        bytes: most * 4,
        edges: most,
    };
    let parts: Vec<u32> = (0..).zip(&code.parts).map(|(number, _)| number).collect();
    let mut scan = Scan::new(code, &parts, EvidenceKinds::PROOFS, budget);
    scan.start_at_entry(rom);
    scan.run(crate::UNWATCHED, &mut |_, _| {}).ok()?;
    let proven = |mode| scan.entry(At { part, mode, address }).is_some();
    match (proven(Mode::Arm), proven(Mode::Thumb)) {
        (true, false) => Some(Mode::Arm),
        (false, true) => Some(Mode::Thumb),
        _ => None,
    }
}
