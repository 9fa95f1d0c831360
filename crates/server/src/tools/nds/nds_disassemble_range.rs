//! `nds_disassemble_range`: instructions in a straight line from one address.

use super::prelude::*;
use super::shared::params::{AnyMode, place};
use super::shared::shapes::{CandidateShown, InstructionShown, SourceShown};
use ::nds::analysis::{Disassembly, LinearRequest, disassemble_range};

/// The tool.
#[derive(Debug)]
pub struct NdsDisassembleRange;

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
    max_instructions: Bounded<1, { limits::MAX_LINEAR_INSTRUCTIONS }, { limits::DEFAULT_LINEAR_INSTRUCTIONS }>,
    #[serde(default)]
    max_bytes: Bounded<2, { limits::MAX_LINEAR_BYTES }, { limits::DEFAULT_LINEAR_BYTES }>,
    /// Instructions to skip.
    #[serde(default)]
    offset: Skip,
    /// Instructions in one answer.
    #[serde(default)]
    limit: Option<Most>,
}

/// The instructions.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Disassembled {
    /// `complete` (as much as was asked for), `decode-stopped` (there is no instruction at `stopAddress`),
    /// `component-boundary`; or why no code could be chosen.
    status: &'static str,
    /// What was read.
    source: Option<SourceShown>,
    /// What the address could be, when no code could be chosen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    candidates: Vec<CandidateShown>,
    /// The instructions, in order.
    instructions: Vec<InstructionShown>,
    /// Bytes of all of them.
    decoded_bytes: u64,
    /// Address behind the last one.
    stop_address: Option<u32>,
    #[serde(flatten)]
    part: Part,
}

impl Tool for NdsDisassembleRange {
    const NAME: &'static str = "nds_disassemble_range";
    const DESCRIPTION: &'static str = "Disassemble ARM or Thumb code of a Nintendo DS ROM in a straight line, from decoded \
         overlays too. It stops at what is no instruction (ARM9: ARMv5TE, ARM7: ARMv4T); nothing is skipped.";
    const EFFECT: Effect = Effect::READS;
    type Params = Params;
    type Output = Shown<Disassembled>;

    async fn run(context: &Context, params: Params) -> Result<Self::Output, ToolError> {
        let code = ErrorCode::InvalidArguments;
        let request = LinearRequest {
            place: place(params.processor, params.runtime_address, params.rom_offset, params.overlay_id, params.mode)?,
            max_instructions: params.max_instructions.get("maxInstructions", code)?,
            max_bytes: params.max_bytes.get("maxBytes", code)?,
        };
        let wanted = Wanted::new(params.offset, params.limit)?;
        on_rom(context, params.rom, move |context, _, rom| {
            shown(context, wanted, disassemble_range(rom, &request)?).map(Shown)
        })
        .await
    }
}

fn shown(context: &Context, wanted: Wanted, found: Disassembly) -> Result<Disassembled, ToolError> {
    let mut answer = Disassembled {
        status: found.status,
        source: found.source.as_ref().map(SourceShown::of),
        candidates: found.candidates.iter().map(CandidateShown::of).collect(),
        instructions: Vec::new(),
        decoded_bytes: found.decoded_bytes,
        stop_address: found.stop_address,
        part: Part::default(),
    };
    let all = &found.instructions;
    answer.part = part(context, wanted, all.len(), &answer, |at| to_value(&all.get(at).map(InstructionShown::of)))?;
    let listed = all.get(answer.part.range.clone()).unwrap_or_default();
    answer.instructions = listed.iter().map(InstructionShown::of).collect();
    Ok(answer)
}
