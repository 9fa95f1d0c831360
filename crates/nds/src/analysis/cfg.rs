//! Control flow graphs: blocks and edges from one entry. First in, first out; calls are noted and not entered; what is
//! indirect and not proven is an unresolved edge; no budget is ever exceeded.

use code::arm::{FlowKind, LiteralCall, Mode};

use super::graph::{Around, Graph, RawLiteral};
use super::linear::{Instruction, show};
use super::source::{At, Chosen, Code, CodeSource, Place, TargetResolution, choose};
use crate::{Candidate, ComponentId, Refusal, Rom};

/// What one graph may spend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CfgBudget {
    /// Blocks.
    pub blocks: u64,
    /// Instructions, each decoded once.
    pub instructions: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Edges between blocks, and to targets that are none.
    pub edges: u64,
}

/// The identity of a block: a component, an address, an instruction set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CodeId {
    /// The component.
    pub component: ComponentId,
    /// The address.
    pub address: u32,
    /// The instruction set.
    pub mode: Mode,
}

impl CodeId {
    fn component_words(&self) -> (&'static str, String) {
        component_words(self.component)
    }

    /// The identity of a block as the contract writes it: `arm9:main:main:2000000:arm`, `arm9:overlay:3:2100000:thumb`.
    pub fn block_id(&self) -> String {
        let (kind, number) = self.component_words();
        format!("{}:{kind}:{number}:{:x}:{}", self.component.processor.word(), self.address, self.mode.word())
    }

    /// The identity of a function as the contract writes it: `arm9:main:02000000:arm`, `arm9:overlay:3:02100000:thumb`.
    pub fn function_id(&self) -> String {
        let (kind, number) = self.component_words();
        let separator = if kind == number { String::new() } else { format!(":{number}") };
        format!("{}:{kind}{separator}:{:08x}:{}", self.component.processor.word(), self.address, self.mode.word())
    }
}

/// The contract's word for the kind of a component within its processor, and what tells it from its like: `main`,
/// `overlay` and the identifier, `autoload` and the index, `twl`.
pub fn component_words(id: ComponentId) -> (&'static str, String) {
    match id.part {
        crate::Part::Main => ("main", "main".to_owned()),
        crate::Part::Overlay(number) => ("overlay", number.to_string()),
        crate::Part::Autoload(index) => ("autoload", index.to_string()),
        crate::Part::Twl => ("twl", "twl".to_owned()),
    }
}

/// Why a block ends where it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockStop {
    /// With a branch, conditional branch, return or indirect branch.
    Flow(FlowKind),
    /// The next instruction begins another block.
    NextBlock,
    /// The next instruction begins another function.
    NextFunction,
    /// There is no instruction behind it.
    DecodeStopped,
    /// The component's readable bytes end.
    ComponentBoundary,
    /// A budget was used up.
    Budget,
}

impl BlockStop {
    /// The word: the flow's own, `fallthrough`, `function-boundary`, `decode-stopped`, `component-boundary`, `budget`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Flow(kind) => kind.word(),
            Self::NextBlock => "fallthrough",
            Self::NextFunction => "function-boundary",
            Self::DecodeStopped => "decode-stopped",
            Self::ComponentBoundary => "component-boundary",
            Self::Budget => "budget",
        }
    }
}

/// A block: instructions that run one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its identity.
    pub id: CodeId,
    /// Where it is read from.
    pub source: CodeSource,
    /// Its instructions; at least one.
    pub instructions: Vec<Instruction>,
    /// Why it ends.
    pub stop: BlockStop,
}

/// The kind of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EdgeKind {
    /// Always taken.
    Branch,
    /// Taken under a condition.
    ConditionalBranch,
    /// To the next instruction.
    Fallthrough,
    /// One of the cases of a proven jump table.
    JumpTable,
}

impl EdgeKind {
    /// The word of the contract; `jump-table` is beyond it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Branch => "branch",
            Self::ConditionalBranch => "conditional-branch",
            Self::Fallthrough => "fallthrough",
            Self::JumpTable => "jump-table",
        }
    }
}

/// An edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The block that it leaves.
    pub from: CodeId,
    /// Its kind.
    pub kind: EdgeKind,
    /// Where it goes.
    pub target_address: u32,
    /// In which instruction set.
    pub target_mode: Mode,
    /// The block there; `None` where a budget left it out, and for another function.
    pub target_block: Option<CodeId>,
    /// The function that begins there and is not part of this graph.
    pub target_function: Option<CodeId>,
}

/// A call that was noted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The block that has it.
    pub from: CodeId,
    /// The instruction.
    pub instruction_address: u32,
    /// Where it goes.
    pub target_address: u32,
    /// In which instruction set.
    pub target_mode: Mode,
    /// What is there.
    pub resolution: TargetResolution,
    /// The literal, when the target comes from one.
    pub literal: Option<LiteralCall>,
}

/// An edge whose target is not certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnresolvedEdge {
    /// The block that it leaves.
    pub from: CodeId,
    /// The instruction.
    pub instruction_address: u32,
    /// `return`, `indirect-call`, `indirect-branch`, or the status word of a target that cannot be followed.
    pub kind: &'static str,
    /// The target, when the instruction says it.
    pub target_address: Option<u32>,
    /// Its instruction set.
    pub target_mode: Option<Mode>,
}

/// A graph, as the tool gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlFlow {
    /// Where it begins; `None` when no source could be chosen.
    pub entry: Option<CodeSource>,
    /// `complete`, `truncated`, or the word of a source that could not be chosen.
    pub status: &'static str,
    /// What the address could mean, when no source could be chosen.
    pub candidates: Vec<Candidate>,
    /// Why it is truncated: `block-limit`, `instruction-limit`, `byte-limit`, `edge-limit`.
    pub truncation_reasons: Vec<&'static str>,
    /// The blocks, by component and address.
    pub blocks: Vec<Block>,
    /// The edges, in the order of their blocks.
    pub edges: Vec<Edge>,
    /// The calls, in the order of their blocks.
    pub calls: Vec<Call>,
    /// The unresolved edges, in the order of their blocks.
    pub unresolved: Vec<UnresolvedEdge>,
    /// How much there is of each.
    pub totals: CfgTotals,
}

/// How large a graph is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CfgTotals {
    /// Blocks.
    pub blocks: u64,
    /// Instructions.
    pub instructions: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Edges.
    pub edges: u64,
}

/// A request for a graph, as the tool takes it.
#[derive(Clone, Copy, Debug)]
pub struct ControlFlowRequest {
    /// Where to begin.
    pub place: Place,
    /// What it may spend.
    pub budget: CfgBudget,
}

/// A graph with text.
pub(crate) fn present(code: &Code<'_>, graph: &Graph) -> ControlFlow {
    let mut numbers: Vec<usize> = (0..graph.blocks.len()).collect();
    numbers
        .sort_by_key(|number| graph.blocks.get(*number).map(|block| (block.at.part, block.at.address, block.at.mode)));
    let block_of = |site: At| graph.find(site).and_then(|(number, _)| graph.blocks.get(number)).map(|block| block.at);
    let mut shown = ControlFlow {
        entry: code.source(graph.entry),
        status: if graph.exhausted.is_some() { "truncated" } else { "complete" },
        candidates: Vec::new(),
        truncation_reasons: graph.exhausted.into_iter().collect(),
        blocks: Vec::new(),
        edges: Vec::new(),
        calls: Vec::new(),
        unresolved: Vec::new(),
        totals: graph.totals,
    };
    for block in numbers.iter().filter_map(|number| graph.blocks.get(*number)) {
        let Some(source) = code.source(block.at) else { continue };
        let from = code.code_id(block.at);
        let insns = graph.insns.get(block.insns.clone()).unwrap_or_default();
        shown.blocks.push(Block {
            id: from,
            source,
            instructions: insns.iter().map(|insn| show(code, block.at.part, insn)).collect(),
            stop: block.stop,
        });
        shown.edges.extend(graph.edges.get(block.edges.clone()).unwrap_or_default().iter().map(|edge| Edge {
            from,
            kind: edge.kind,
            target_address: edge.target.address,
            target_mode: edge.target.mode,
            target_block: graph.starts.contains_key(&edge.target).then(|| code.code_id(edge.target)),
            target_function: edge.to_function.then(|| code.code_id(edge.target)),
        }));
        shown.calls.extend(insns.iter().filter_map(|insn| {
            let flow = insn.flow();
            let (target_address, target_mode) = flow.direct_target.zip(flow.target_mode)?;
            let resolution = code.resolve(block.at.part, target_address, target_mode);
            let call = Call {
                from,
                instruction_address: insn.address,
                target_address,
                target_mode,
                resolution,
                literal: None,
            };
            (flow.kind == FlowKind::Call).then_some(call)
        }));
    }
    for literal in &graph.literals {
        let RawLiteral { site, call } = *literal;
        shown.calls.push(Call {
            from: code.code_id(block_of(site).unwrap_or(site)),
            instruction_address: site.address,
            target_address: call.target,
            target_mode: call.target_mode,
            resolution: code.resolve(site.part, call.target, call.target_mode),
            literal: Some(call),
        });
    }
    shown.calls.sort_by_key(|call| (call.from, call.instruction_address));
    shown.unresolved.extend(graph.unresolved.iter().map(|edge| UnresolvedEdge {
        from: code.code_id(block_of(edge.site).unwrap_or(edge.site)),
        instruction_address: edge.site.address,
        kind: edge.kind,
        target_address: edge.target.map(|(address, _)| address),
        target_mode: edge.target.map(|(_, mode)| mode),
    }));
    shown.unresolved.sort_by_key(|edge| (edge.from, edge.instruction_address));
    shown
}

/// Analyses the control flow from one place.
///
/// # Errors
/// `unknown-overlay-id`, or `disassembly-backend-failure` for a misaligned address.
pub fn analyze_control_flow(rom: &Rom, request: &ControlFlowRequest) -> Result<ControlFlow, Refusal> {
    let code = Code::of(rom, request.place.processor);
    Ok(match choose(rom, &code, &request.place)? {
        Chosen::Not(status, candidates) => ControlFlow {
            entry: None,
            status: status.word(),
            candidates,
            truncation_reasons: Vec::new(),
            blocks: Vec::new(),
            edges: Vec::new(),
            calls: Vec::new(),
            unresolved: Vec::new(),
            totals: CfgTotals::default(),
        },
        Chosen::Ready(at) => present(&code, &Graph::walk(&code, at, &request.budget, &Around::ALONE)),
    })
}
