//! `nds_analyze_control_flow`: blocks and edges from one address.

use super::prelude::*;
use super::shared::graph::{GraphShown, graph_part};
use super::shared::params::{AnyMode, place};
use ::nds::analysis::{CfgBudget, ControlFlowRequest, analyze_control_flow};

/// The tool.
#[derive(Debug)]
pub struct NdsAnalyzeControlFlow;

/// From where, how far.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Params {
    /// Path below the workspace.
    #[schemars(length(min = 1))]
    rom: String,
    processor: ProcessorName,
    /// Where it runs; or else `romOffset`.
    #[serde(default)]
    runtime_address: Option<Address>,
    /// Where it is stored.
    #[serde(default)]
    rom_offset: Option<Address>,
    /// The overlay meant, where several could be there.
    #[serde(default)]
    overlay_id: Option<u32>,
    /// Instruction set; `auto` (default) is settled by proof only.
    #[serde(default)]
    mode: AnyMode,
    #[serde(default)]
    max_blocks: Bounded<1, { limits::MAX_CFG_BLOCKS }, { limits::DEFAULT_CFG_BLOCKS }>,
    #[serde(default)]
    max_instructions: Bounded<1, { limits::MAX_CFG_INSTRUCTIONS }, { limits::DEFAULT_CFG_INSTRUCTIONS }>,
    #[serde(default)]
    max_bytes: Bounded<2, { limits::MAX_CFG_BYTES }, { limits::DEFAULT_CFG_BYTES }>,
    #[serde(default)]
    max_edges: Bounded<1, { limits::MAX_CFG_EDGES }, { limits::DEFAULT_CFG_EDGES }>,
    /// Instructions to skip.
    #[serde(default)]
    offset: Skip,
    /// Instructions in one answer.
    #[serde(default)]
    limit: Option<Most>,
}

/// The graph.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Analyzed {
    #[serde(flatten)]
    graph: GraphShown,
    #[serde(flatten)]
    part: Part,
}

impl Tool for NdsAnalyzeControlFlow {
    const NAME: &'static str = "nds_analyze_control_flow";
    const DESCRIPTION: &'static str = "Build the control flow graph of Nintendo DS code from one address: blocks, edges, calls \
         (not entered), and every indirect target as unresolved. `total` and `offset` count instructions.";
    const EFFECT: Effect = Effect::READS;
    type Params = Params;
    type Output = Shown<Analyzed>;

    async fn run(context: &Context, params: Params) -> Result<Self::Output, ToolError> {
        let code = ErrorCode::InvalidArguments;
        let request = ControlFlowRequest {
            place: place(params.processor, params.runtime_address, params.rom_offset, params.overlay_id, params.mode)?,
            budget: CfgBudget {
                blocks: params.max_blocks.get("maxBlocks", code)?,
                instructions: params.max_instructions.get("maxInstructions", code)?,
                bytes: params.max_bytes.get("maxBytes", code)?,
                edges: params.max_edges.get("maxEdges", code)?,
            },
        };
        let wanted = Wanted::new(params.offset, params.limit)?;
        on_rom(context, params.rom, move |context, _, rom| {
            let found = analyze_control_flow(rom, &request)?;
            let (graph, part) = graph_part(context, wanted, &found)?;
            Ok(Shown(Analyzed { graph, part }))
        })
        .await
    }
}
