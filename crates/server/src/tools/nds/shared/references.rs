//! References as answers show them: from which instruction, to where, by what.

use super::shapes::{CandidateShown, ComponentShown};
use ::nds::analysis::Reference;
use ::nds::{AddressStatus, Candidate};
use schemars::JsonSchema;
use serde::Serialize;

/// A reference.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReferenceShown {
    /// `direct-branch`, `direct-call`, `literal-pool` or `pc-relative-address`.
    kind: &'static str,
    source: InstructionPlace,
    target: TargetPlace,
    evidence: ReferenceEvidence,
}

/// Where an instruction is.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstructionPlace {
    #[serde(flatten)]
    pub component: ComponentShown,
    pub instruction_address: u32,
    pub instruction_rom_offset: Option<u32>,
    pub mode: &'static str,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct TargetPlace {
    /// Of a literal its value, bit 0 included.
    runtime_address: u32,
    /// `null` unless it is one certain byte.
    rom_offset: Option<u32>,
    /// For branches and calls.
    mode: Option<&'static str>,
    resolution: ResolutionShown,
}

/// How an address resolves, with the candidate when there is exactly one.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ResolutionShown {
    status: &'static str,
    candidate: Option<CandidateShown>,
}

impl ResolutionShown {
    pub fn of(status: AddressStatus, candidate: Option<&Candidate>) -> Self {
        Self { status: status.word(), candidate: candidate.map(CandidateShown::of) }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ReferenceEvidence {
    instruction_mnemonic: String,
    mechanism: &'static str,
    /// Address of the literal.
    #[serde(skip_serializing_if = "Option::is_none")]
    literal_slot: Option<u32>,
}

impl ReferenceShown {
    pub fn of(reference: &Reference) -> Self {
        let (source, target) = (&reference.source, &reference.target);
        Self {
            kind: reference.kind.word(),
            source: InstructionPlace {
                component: source.component.into(),
                instruction_address: source.instruction_address,
                instruction_rom_offset: source.instruction_rom_offset,
                mode: source.mode.word(),
            },
            target: TargetPlace {
                runtime_address: target.runtime_address,
                rom_offset: target.rom_offset,
                mode: target.mode.map(|mode| mode.word()),
                resolution: ResolutionShown::of(target.status, target.candidate.as_ref()),
            },
            evidence: ReferenceEvidence {
                instruction_mnemonic: reference.instruction_mnemonic.clone(),
                mechanism: reference.mechanism,
                literal_slot: reference.literal_slot,
            },
        }
    }
}
