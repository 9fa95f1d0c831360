//! Control flow graphs as answers show them, in parts: an item is an instruction with what its block has around it.

use super::present::{Part, Wanted, part, to_value};
use super::shapes::{CandidateShown, InstructionShown, SourceShown, TargetShown};
use crate::context::Context;
use crate::errors::ToolError;
use ::nds::analysis::{Block, Call, CodeId, ControlFlow, Edge, Instruction, UnresolvedEdge};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::HashMap;

/// A graph, or a part of it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GraphShown {
    /// Where it begins.
    entry: Option<SourceShown>,
    /// `complete`, `truncated`, or why no code could be chosen.
    status: &'static str,
    /// Why it is truncated: `block-limit`, `instruction-limit`, `byte-limit`, `edge-limit`.
    truncation_reasons: Vec<&'static str>,
    /// What the address could be, when no code could be chosen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    candidates: Vec<CandidateShown>,
    /// The blocks of this part. The first and the last may go on in other parts.
    blocks: Vec<BlockShown>,
    /// Edges of the blocks that end in this part.
    edges: Vec<EdgeShown>,
    /// Calls in this part; they are not entered.
    calls: Vec<CallShown>,
    /// Returns, and what may go anywhere.
    unresolved_edges: Vec<UnresolvedShown>,
    /// Of the whole graph.
    totals: TotalsShown,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct BlockShown {
    id: String,
    source: SourceShown,
    start_address: u32,
    mode: &'static str,
    /// Instructions it has in all.
    instruction_count: usize,
    instructions: Vec<InstructionShown>,
    /// Why it ends.
    stop_reason: &'static str,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct EdgeShown {
    from_block_id: String,
    /// `branch`, `conditional-branch`, `fallthrough` or `jump-table`.
    #[serde(rename = "type")]
    kind: &'static str,
    target_address: u32,
    target_mode: &'static str,
    /// `null` where a limit left the block out, and for another function.
    target_block_id: Option<String>,
    /// The function that begins there.
    #[serde(skip_serializing_if = "Option::is_none")]
    target_function_id: Option<String>,
}

/// A call.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallShown {
    from_block_id: String,
    instruction_address: u32,
    target_address: u32,
    target_mode: &'static str,
    resolution: TargetShown,
    /// Address of the literal that the target comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    literal_slot: Option<u32>,
}

/// An edge that nobody knows the end of.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnresolvedShown {
    from_block_id: String,
    instruction_address: u32,
    /// `return`, `indirect-call`, `indirect-branch`, or why the target cannot be followed.
    kind: &'static str,
    target_address: Option<u32>,
    target_mode: Option<&'static str>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct TotalsShown {
    blocks: u64,
    instructions: u64,
    bytes: u64,
    edges: u64,
}

impl CallShown {
    pub fn of(call: &Call) -> Self {
        Self {
            from_block_id: call.from.block_id(),
            instruction_address: call.instruction_address,
            target_address: call.target_address,
            target_mode: call.target_mode.word(),
            resolution: TargetShown::of(&call.resolution),
            literal_slot: call.literal.map(|literal| literal.slot),
        }
    }
}

impl UnresolvedShown {
    pub fn of(edge: &UnresolvedEdge) -> Self {
        Self {
            from_block_id: edge.from.block_id(),
            instruction_address: edge.instruction_address,
            kind: edge.kind,
            target_address: edge.target_address,
            target_mode: edge.target_mode.map(|mode| mode.word()),
        }
    }
}

impl EdgeShown {
    fn of(edge: &Edge) -> Self {
        Self {
            from_block_id: edge.from.block_id(),
            kind: edge.kind.word(),
            target_address: edge.target_address,
            target_mode: edge.target_mode.word(),
            target_block_id: edge.target_block.map(|block| block.block_id()),
            target_function_id: edge.target_function.map(|function| function.function_id()),
        }
    }
}

impl BlockShown {
    fn of(block: &Block, instructions: &[Instruction]) -> Self {
        Self {
            id: block.id.block_id(),
            source: SourceShown::of(&block.source),
            start_address: block.id.address,
            mode: block.id.mode.word(),
            instruction_count: block.instructions.len(),
            instructions: instructions.iter().map(InstructionShown::of).collect(),
            stop_reason: block.stop.word(),
        }
    }
}

/// A graph whose instructions have numbers, so that it can be given in parts.
pub struct Numbered<'a> {
    graph: &'a ControlFlow,
    /// The block and the place in it of each instruction.
    places: Vec<(usize, usize)>,
    edges: HashMap<CodeId, Vec<&'a Edge>>,
    unresolved: HashMap<CodeId, Vec<&'a UnresolvedEdge>>,
    calls: HashMap<(CodeId, u32), Vec<&'a Call>>,
    /// How often each call and unresolved edge is in the answer.
    repeats: usize,
}

impl<'a> Numbered<'a> {
    /// `repeats`: how often the answer has each call and each unresolved edge.
    pub fn new(graph: &'a ControlFlow, repeats: usize) -> Self {
        let places = graph.blocks.iter().enumerate();
        let places = places.flat_map(|(block, its)| (0..its.instructions.len()).map(move |place| (block, place)));
        let mut edges: HashMap<_, Vec<_>> = HashMap::new();
        graph.edges.iter().for_each(|edge| edges.entry(edge.from).or_default().push(edge));
        let mut unresolved: HashMap<_, Vec<_>> = HashMap::new();
        graph.unresolved.iter().for_each(|edge| unresolved.entry(edge.from).or_default().push(edge));
        let mut calls: HashMap<_, Vec<_>> = HashMap::new();
        graph.calls.iter().for_each(|call| calls.entry((call.from, call.instruction_address)).or_default().push(call));
        Self { graph, places: places.collect(), edges, unresolved, calls, repeats }
    }

    /// How many items there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// The graph without any of its items.
    pub fn rest(&self) -> GraphShown {
        let graph = self.graph;
        GraphShown {
            entry: graph.entry.as_ref().map(SourceShown::of),
            status: graph.status,
            truncation_reasons: graph.truncation_reasons.clone(),
            candidates: graph.candidates.iter().map(CandidateShown::of).collect(),
            blocks: Vec::new(),
            edges: Vec::new(),
            calls: Vec::new(),
            unresolved_edges: Vec::new(),
            totals: TotalsShown {
                blocks: graph.totals.blocks,
                instructions: graph.totals.instructions,
                bytes: graph.totals.bytes,
                edges: graph.totals.edges,
            },
        }
    }

    /// All that an item brings into an answer; with its block's head when it is the first of the block or of the answer.
    pub fn item(&self, at: usize, is_first: bool) -> Result<Value, ToolError> {
        let Some((block, place)) = self.place(at) else { return Ok(Value::Null) };
        let mut shown = vec![to_value(&block.instructions.get(place).map(InstructionShown::of))?];
        if place == 0 || is_first {
            shown.push(to_value(&BlockShown::of(block, &[]))?);
        }
        for call in self.calls_at(block, place) {
            shown.extend(vec![to_value(&CallShown::of(call))?; self.repeats]);
        }
        if place + 1 == block.instructions.len() {
            for edge in self.edges.get(&block.id).into_iter().flatten() {
                shown.push(to_value(&EdgeShown::of(edge))?);
            }
            for edge in self.unresolved.get(&block.id).into_iter().flatten() {
                shown.extend(vec![to_value(&UnresolvedShown::of(edge))?; self.repeats]);
            }
        }
        Ok(Value::Array(shown))
    }

    /// The graph with the items of a range.
    pub fn shown(&self, range: std::ops::Range<usize>) -> GraphShown {
        let mut graph = self.rest();
        let mut at = range.start;
        while at < range.end {
            let Some((block, place)) = self.place(at) else { break };
            let count = (block.instructions.len() - place).min(range.end - at);
            let listed = block.instructions.get(place..place + count).unwrap_or_default();
            graph.blocks.push(BlockShown::of(block, listed));
            let calls = (place..place + count).flat_map(|place| self.calls_at(block, place));
            graph.calls.extend(calls.map(|call| CallShown::of(call)));
            if place + count == block.instructions.len() {
                let edges = self.edges.get(&block.id).into_iter().flatten();
                graph.edges.extend(edges.map(|edge| EdgeShown::of(edge)));
            }
            at += count;
        }
        graph.unresolved_edges = self.unresolved_in(&range).map(UnresolvedShown::of).collect();
        graph
    }

    /// The calls of a range.
    pub fn calls_in(&self, range: &std::ops::Range<usize>) -> impl Iterator<Item = &'a Call> {
        let places = range.clone().filter_map(|at| self.place(at));
        places.flat_map(|(block, place)| self.calls_at(block, place).copied())
    }

    /// The unresolved edges of the blocks that end in a range.
    pub fn unresolved_in(&self, range: &std::ops::Range<usize>) -> impl Iterator<Item = &'a UnresolvedEdge> {
        let places = range.clone().filter_map(|at| self.place(at));
        let ended = places.filter(|(block, place)| place + 1 == block.instructions.len());
        ended.flat_map(|(block, _)| self.unresolved.get(&block.id).into_iter().flatten().copied())
    }

    fn place(&self, at: usize) -> Option<(&'a Block, usize)> {
        let (block, place) = *self.places.get(at)?;
        Some((self.graph.blocks.get(block)?, place))
    }

    fn calls_at(&self, block: &Block, place: usize) -> impl Iterator<Item = &&'a Call> {
        let address = block.instructions.get(place).map(|instruction| instruction.address);
        address.and_then(|address| self.calls.get(&(block.id, address))).into_iter().flatten()
    }
}

/// The part of a graph that was asked for.
///
/// # Errors
/// `invalid_arguments` for an offset behind the end.
pub fn graph_part(context: &Context, wanted: Wanted, graph: &ControlFlow) -> Result<(GraphShown, Part), ToolError> {
    let numbered = Numbered::new(graph, 1);
    let rest = json!(to_value(&numbered.rest())?);
    let part = part(context, wanted, numbered.len(), &rest, |at| numbered.item(at, at == wanted.offset))?;
    Ok((numbered.shown(part.range.clone()), part))
}
