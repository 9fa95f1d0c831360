//! The walk that makes a control flow graph: first in, first out, each instruction decoded once, blocks split where a branch
//! goes into them, and no budget exceeded.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use code::arm::{FlowKind, Insn, LiteralCall, Mode};

use super::cfg::{BlockStop, CfgBudget, CfgTotals, EdgeKind};
use super::source::{At, Code, Indirect, NoInsn, SourceStatus};
use super::tables;

/// An edge in the making.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawEdge {
    pub kind: EdgeKind,
    pub target: At,
    pub to_function: bool,
}

/// A block in the making: ranges of the graph's instructions and edges.
#[derive(Clone, Debug)]
pub(crate) struct RawBlock {
    pub at: At,
    pub end: u32,
    pub insns: Range<usize>,
    pub edges: Range<usize>,
    pub stop: BlockStop,
}

/// An unresolved edge in the making.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawUnresolved {
    pub site: At,
    pub kind: &'static str,
    pub target: Option<(u32, Mode)>,
}

/// An indirect call or branch that a literal settles.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawLiteral {
    pub site: At,
    pub call: LiteralCall,
}

/// A graph without text.
#[derive(Debug)]
pub(crate) struct Graph {
    pub entry: At,
    pub blocks: Vec<RawBlock>,
    pub starts: BTreeMap<At, usize>,
    pub insns: Vec<Insn>,
    pub edges: Vec<RawEdge>,
    pub unresolved: Vec<RawUnresolved>,
    pub literals: Vec<RawLiteral>,
    pub totals: CfgTotals,
    pub exhausted: Option<&'static str>,
}

/// What the walk of a graph is told beside the code.
pub(crate) struct Around<'a> {
    /// Whether another function is known to begin at a place.
    pub is_function: &'a dyn Fn(At) -> bool,
    /// What is known of an indirect branch or call from elsewhere.
    pub proof: &'a dyn Fn(At) -> Option<Indirect>,
    /// Whether a component may be entered.
    pub in_scope: &'a dyn Fn(u32) -> bool,
}

impl Around<'static> {
    /// Nothing known.
    pub const ALONE: Self = Self { is_function: &|_| false, proof: &|_| None, in_scope: &|_| true };
}

impl Graph {
    /// Walks the graph of `entry`.
    pub fn walk(code: &Code<'_>, entry: At, budget: &CfgBudget, around: &Around<'_>) -> Self {
        let mut walk = Walk {
            code,
            budget,
            around,
            queue: VecDeque::from([entry]),
            first: 0,
            graph: Graph {
                entry,
                blocks: Vec::new(),
                starts: BTreeMap::new(),
                insns: Vec::new(),
                edges: Vec::new(),
                unresolved: Vec::new(),
                literals: Vec::new(),
                totals: CfgTotals::default(),
                exhausted: None,
            },
        };
        while walk.graph.exhausted.is_none()
            && let Some(at) = walk.queue.pop_front()
        {
            walk.block(at);
        }
        walk.graph.settle(code, around);
        walk.graph
    }

    /// The block that has an instruction at a place, and the number of that instruction.
    pub fn find(&self, at: At) -> Option<(usize, usize)> {
        let (start, number) = self.starts.range(..=at).next_back()?;
        let block = self.blocks.get(*number)?;
        if (start.part, start.mode) != (at.part, at.mode) || at.address.wrapping_sub(start.address) >= block.len() {
            return None;
        }
        let insns = self.insns.get(block.insns.clone())?;
        let place = insns.binary_search_by_key(&at.address, |insn| insn.address).ok()?;
        Some((*number, block.insns.start + place))
    }

    /// Looks again at indirect sites, now that every straight line before them is known.
    fn settle(&mut self, code: &Code<'_>, around: &Around<'_>) {
        let mut unresolved = std::mem::take(&mut self.unresolved);
        unresolved.retain_mut(|edge| {
            if !matches!(edge.kind, "indirect-call" | "indirect-branch") {
                return true;
            }
            let seen = |at| self.find(at).is_some();
            match (around.proof)(edge.site).unwrap_or_else(|| code.prove_indirect(edge.site, &seen)) {
                Indirect::Literal(call) => {
                    self.literals.push(RawLiteral { site: edge.site, call });
                    // Where a path joins after the load, the literal is one target and there may be others.
                    let after_load = At { address: call.load.wrapping_add(1), ..edge.site };
                    return after_load <= edge.site && self.starts.range(after_load..=edge.site).next().is_some();
                }
                Indirect::Return => edge.kind = "return",
                Indirect::Table | Indirect::Unknown => {}
            }
            true
        });
        self.unresolved = unresolved;
    }

    /// Returns, proven ones only.
    pub fn returns(&self) -> impl Iterator<Item = &RawUnresolved> {
        self.unresolved.iter().filter(|edge| edge.kind == "return")
    }
}

impl RawBlock {
    /// Bytes from its start to its end.
    fn len(&self) -> u32 {
        self.end.wrapping_sub(self.at.address)
    }
}

struct Walk<'a, 'r> {
    code: &'a Code<'r>,
    budget: &'a CfgBudget,
    around: &'a Around<'a>,
    queue: VecDeque<At>,
    graph: Graph,
    /// The first instruction of the block in the making.
    first: usize,
}

impl Walk<'_, '_> {
    fn charge(&mut self, of: fn(&mut CfgTotals) -> &mut u64, n: u64, limit: u64, reason: &'static str) -> bool {
        let spent = of(&mut self.graph.totals);
        match spent.checked_add(n).filter(|sum| *sum <= limit) {
            Some(sum) => *spent = sum,
            None => self.graph.exhausted = self.graph.exhausted.or(Some(reason)),
        }
        self.graph.exhausted.is_none()
    }

    /// Makes the block at a place: a new one, or the later part of one that is there.
    fn block(&mut self, at: At) {
        if self.graph.starts.contains_key(&at) {
            return;
        }
        let found = self.graph.find(at);
        if found.is_none() && self.code.decode(at).is_err() {
            return;
        }
        if !self.charge(|totals| &mut totals.blocks, 1, self.budget.blocks, "block-limit") {
            return;
        }
        match found {
            Some((number, insn)) => self.split(at, number, insn),
            None => self.decode(at),
        }
    }

    fn split(&mut self, at: At, number: usize, insn: usize) {
        if !self.charge(|totals| &mut totals.edges, 1, self.budget.edges, "edge-limit") {
            self.graph.totals.blocks -= 1;
            return;
        }
        let edge = self.graph.edges.len();
        self.graph.edges.push(RawEdge { kind: EdgeKind::Fallthrough, target: at, to_function: false });
        let Some(block) = self.graph.blocks.get_mut(number) else { return };
        let later = RawBlock { at, insns: insn..block.insns.end, ..block.clone() };
        block.end = at.address;
        block.insns.end = insn;
        block.edges = edge..edge + 1;
        block.stop = BlockStop::NextBlock;
        self.graph.starts.insert(at, self.graph.blocks.len());
        self.graph.blocks.push(later);
    }

    fn decode(&mut self, start: At) {
        let first = self.graph.insns.len();
        self.first = first;
        let first_edge = self.graph.edges.len();
        let mut at = start;
        let mut next_start = self.next_start(at);
        let stop = loop {
            if at != start {
                if next_start.is_some_and(|next| next < at) {
                    next_start = self.next_start(at);
                }
                if next_start == Some(at) {
                    self.edge(EdgeKind::Fallthrough, at);
                    break BlockStop::NextBlock;
                }
                if at != self.graph.entry && (self.around.is_function)(at) {
                    self.edge(EdgeKind::Fallthrough, at);
                    break BlockStop::NextFunction;
                }
            }
            let insn = match self.code.decode(at) {
                Ok(insn) => insn,
                Err(NoInsn::Boundary) => break BlockStop::ComponentBoundary,
                Err(NoInsn::Undecodable) => break BlockStop::DecodeStopped,
            };
            let size = u64::from(insn.size);
            if self.graph.totals.bytes + size > self.budget.bytes {
                self.graph.exhausted = Some("byte-limit");
                break BlockStop::Budget;
            }
            if !self.charge(|totals| &mut totals.instructions, 1, self.budget.instructions, "instruction-limit") {
                break BlockStop::Budget;
            }
            self.graph.totals.bytes += size;
            self.graph.insns.push(insn);
            let ends = self.follow(at, &insn);
            at.address = insn.end();
            if ends || self.graph.exhausted.is_some() {
                break BlockStop::Flow(insn.flow().kind);
            }
        };
        if self.graph.insns.len() == first {
            // Only a budget leaves a block without instructions; then there is none.
            self.graph.totals.blocks -= 1;
            return;
        }
        self.graph.starts.insert(start, self.graph.blocks.len());
        self.graph.blocks.push(RawBlock {
            at: start,
            end: at.address,
            insns: first..self.graph.insns.len(),
            edges: first_edge..self.graph.edges.len(),
            stop,
        });
    }

    /// The next block of the same component and mode behind a place, or at it.
    fn next_start(&self, at: At) -> Option<At> {
        let (next, _) = self.graph.starts.range(at..).next()?;
        ((next.part, next.mode) == (at.part, at.mode)).then_some(*next)
    }

    /// Notes where an instruction goes. Returns whether it ends its block.
    fn follow(&mut self, at: At, insn: &Insn) -> bool {
        let flow = insn.flow();
        let unresolved = |kind| RawUnresolved { site: at, kind, target: None };
        match flow.kind {
            FlowKind::Fallthrough | FlowKind::Call => return false,
            FlowKind::IndirectCall => {
                self.graph.unresolved.push(unresolved("indirect-call"));
                return false;
            }
            FlowKind::Return => self.graph.unresolved.push(unresolved("return")),
            FlowKind::IndirectBranch => self.indirect_branch(at),
            FlowKind::Branch => self.direct(at, EdgeKind::Branch, flow.direct_target, flow.target_mode),
            FlowKind::ConditionalBranch => {
                self.direct(at, EdgeKind::ConditionalBranch, flow.direct_target, flow.target_mode);
            }
        }
        if flow.falls_through {
            self.edge(EdgeKind::Fallthrough, At { address: insn.end(), ..at });
        }
        true
    }

    fn indirect_branch(&mut self, at: At) {
        // The block in the making is not among the others yet.
        let own = self.graph.insns.get(self.first..).unwrap_or_default();
        let seen = |place: At| {
            let in_own = own.binary_search_by_key(&place.address, |insn| insn.address).is_ok();
            (place.part, place.mode) == (at.part, at.mode) && in_own || self.graph.find(place).is_some()
        };
        let table = match (self.around.proof)(at) {
            Some(Indirect::Table) | None => tables::targets(self.code, at, &seen),
            Some(_) => None,
        };
        let Some(targets) = table else {
            self.graph.unresolved.push(RawUnresolved { site: at, kind: "indirect-branch", target: None });
            return;
        };
        let mut targets = targets;
        targets.sort_unstable();
        targets.dedup();
        for (address, mode) in targets {
            self.direct(at, EdgeKind::JumpTable, Some(address), Some(mode));
        }
    }

    fn direct(&mut self, at: At, kind: EdgeKind, address: Option<u32>, mode: Option<Mode>) {
        let (Some(address), Some(mode)) = (address, mode) else { return };
        match self.code.locate(Some(at.part), address) {
            Ok(part) if (self.around.in_scope)(part) => self.edge(kind, At { part, mode, address }),
            Ok(_) => self.lost(at, SourceStatus::OutOfScope, address, mode),
            Err(status) => self.lost(at, status, address, mode),
        }
    }

    fn lost(&mut self, site: At, status: SourceStatus, address: u32, mode: Mode) {
        self.graph.unresolved.push(RawUnresolved { site, kind: status.word(), target: Some((address, mode)) });
    }

    fn edge(&mut self, kind: EdgeKind, target: At) {
        if !self.charge(|totals| &mut totals.edges, 1, self.budget.edges, "edge-limit") {
            return;
        }
        let to_function = target != self.graph.entry && (self.around.is_function)(target);
        self.graph.edges.push(RawEdge { kind, target, to_function });
        if !to_function {
            self.queue.push_back(target);
        }
    }
}
