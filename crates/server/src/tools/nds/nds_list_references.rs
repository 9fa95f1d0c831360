//! `nds_list_references`: what the instructions of a straight line refer to, each from that instruction alone.

use super::prelude::*;
use super::shared::params::{AnyMode, place};
use super::shared::references::ReferenceShown;
use super::shared::shapes::{CandidateShown, SourceShown};
use ::nds::analysis::{LinearRequest, list_references};

/// The tool.
#[derive(Debug)]
pub struct NdsListReferences;

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
    /// References to skip.
    #[serde(default)]
    offset: Skip,
    /// References in one answer.
    #[serde(default)]
    limit: Option<Most>,
}

/// The references.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Listed {
    /// As that of nds_disassemble_range.
    status: &'static str,
    /// What was read.
    source: Option<SourceShown>,
    /// What the address could be, when no code could be chosen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    candidates: Vec<CandidateShown>,
    /// Instructions looked at.
    instructions_examined: u64,
    /// Their bytes.
    decoded_bytes: u64,
    /// The references, in the order of the instructions.
    references: Vec<ReferenceShown>,
    #[serde(flatten)]
    part: Part,
}

impl Tool for NdsListReferences {
    const NAME: &'static str = "nds_list_references";
    const DESCRIPTION: &'static str = "List what Nintendo DS code refers to from one address on: branches, calls, literal pool \
         values and PC-relative addresses, each proven by a single instruction.";
    const EFFECT: Effect = Effect::READS;
    type Params = Params;
    type Output = Shown<Listed>;

    async fn run(context: &Context, params: Params) -> Result<Self::Output, ToolError> {
        let code = ErrorCode::InvalidArguments;
        let request = LinearRequest {
            place: place(params.processor, params.runtime_address, params.rom_offset, params.overlay_id, params.mode)?,
            max_instructions: params.max_instructions.get("maxInstructions", code)?,
            max_bytes: params.max_bytes.get("maxBytes", code)?,
        };
        let wanted = Wanted::new(params.offset, params.limit)?;
        on_rom(context, params.rom, move |context, _, rom| {
            let found = list_references(rom, &request)?;
            let mut answer = Listed {
                status: found.status,
                source: found.source.as_ref().map(SourceShown::of),
                candidates: found.candidates.iter().map(CandidateShown::of).collect(),
                instructions_examined: found.instructions_examined,
                decoded_bytes: found.decoded_bytes,
                references: Vec::new(),
                part: Part::default(),
            };
            let all = &found.references;
            answer.part =
                part(context, wanted, all.len(), &answer, |at| to_value(&all.get(at).map(ReferenceShown::of)))?;
            answer.references = within(all, &answer.part.range, 0).iter().map(ReferenceShown::of).collect();
            Ok(Shown(answer))
        })
        .await
    }
}
