//! Shapes that several of these tools answer with, key by key as their contract has them.

use ::nds::analysis::{CodeSource, Instruction, TargetResolution, component_words};
use ::nds::{Candidate, ComponentId, OffsetMatch};
use schemars::JsonSchema;
use serde::Serialize;

/// A component that could have an address.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CandidateShown {
    /// `arm9-main`, `arm9-overlay`, `overlay-bss`, …
    kind: &'static str,
    processor: &'static str,
    runtime_address: u32,
    /// Bytes from the component's first address.
    relative_offset: u32,
    /// Place in the component's initialised image.
    runtime_image_offset: Option<u32>,
    /// `rom-file-backed`, `derived-blz`, `runtime-only` or `undecodable`.
    representation: &'static str,
    overlay_id: Option<u32>,
    file_id: Option<u32>,
    /// Where the byte is stored; `null` where it is not.
    rom_offset: Option<u32>,
    /// Where the component's stored bytes begin.
    backing_rom_offset: Option<u32>,
    /// How many they are.
    backing_rom_size: Option<u32>,
    compressed: bool,
}

impl CandidateShown {
    pub fn of(candidate: &Candidate) -> Self {
        Self {
            kind: candidate.kind,
            processor: candidate.component.processor.word(),
            runtime_address: candidate.runtime_address,
            relative_offset: candidate.relative_offset,
            runtime_image_offset: candidate.runtime_image_offset,
            representation: candidate.representation.word(),
            overlay_id: candidate.component.overlay_id(),
            file_id: candidate.file_id,
            rom_offset: candidate.rom_offset,
            backing_rom_offset: candidate.backing_rom_offset,
            backing_rom_size: candidate.backing_rom_size,
            compressed: candidate.compressed,
        }
    }
}

/// Something that a byte of the ROM belongs to.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OwnerShown {
    /// `header`, `fnt`, `fat`, `arm9-overlay-table`, `arm9-main`, `nitrofs-file`, …
    kind: &'static str,
    file_id: Option<u32>,
    overlay_id: Option<u32>,
    /// Where the byte runs; `null` for compressed and structural bytes.
    runtime_address: Option<u32>,
}

impl OwnerShown {
    pub fn of(owner: &OffsetMatch) -> Self {
        Self {
            kind: owner.kind,
            file_id: owner.file_id,
            overlay_id: owner.component.and_then(|component| component.overlay_id()),
            runtime_address: owner.runtime_address,
        }
    }
}

/// Which component, in the words of code.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComponentShown {
    processor: &'static str,
    /// `main`, `overlay`, `autoload` or `twl`.
    component: &'static str,
    overlay_id: Option<u32>,
    /// Which autoload block.
    #[serde(skip_serializing_if = "Option::is_none")]
    autoload_index: Option<u8>,
}

impl From<ComponentId> for ComponentShown {
    fn from(id: ComponentId) -> Self {
        Self {
            processor: id.processor.word(),
            component: component_words(id).0,
            overlay_id: id.overlay_id(),
            autoload_index: id.autoload_index(),
        }
    }
}

/// Bytes that are read as code.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SourceShown {
    #[serde(flatten)]
    component: ComponentShown,
    runtime_address: u32,
    /// `null` for decoded bytes.
    rom_offset: Option<u32>,
    /// Place in the component's initialised image.
    runtime_image_offset: u32,
    /// The image's first address.
    runtime_start: u32,
    runtime_end: u64,
    rom_start: Option<u32>,
    rom_end: Option<u64>,
    /// `rom-file-backed` or `derived-blz`.
    representation: &'static str,
    mode: &'static str,
}

impl SourceShown {
    pub fn of(source: &CodeSource) -> Self {
        Self {
            component: source.component.into(),
            runtime_address: source.runtime_address,
            rom_offset: source.rom_offset,
            runtime_image_offset: source.runtime_image_offset,
            runtime_start: source.runtime_start,
            runtime_end: source.runtime_end,
            rom_start: source.rom_start,
            rom_end: source.rom_end,
            representation: source.representation,
            mode: source.mode.word(),
        }
    }
}

/// What the target of a branch or call is.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TargetShown {
    /// `resolved`, or why it cannot be read as code.
    status: &'static str,
    source: Option<SourceShown>,
}

impl TargetShown {
    pub fn of(target: &TargetResolution) -> Self {
        Self { status: target.status.word(), source: target.source.as_ref().map(SourceShown::of) }
    }
}

/// An instruction.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstructionShown {
    address: u32,
    rom_offset: Option<u32>,
    /// 2 or 4.
    size: u8,
    bytes_hex: String,
    mode: &'static str,
    mnemonic: String,
    operands: String,
    flow: FlowShown,
    source: ComponentShown,
    /// What the direct target is.
    target_resolution: Option<TargetShown>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct FlowShown {
    /// `fallthrough`, `call`, `indirect-call`, `return`, `indirect-branch`, `branch` or `conditional-branch`.
    kind: &'static str,
    direct_target: Option<u32>,
    target_mode: Option<&'static str>,
    /// Address of the next instruction; `null` when it does not follow.
    fallthrough: Option<u32>,
}

impl InstructionShown {
    pub fn of(instruction: &Instruction) -> Self {
        let flow = instruction.flow;
        let next = instruction.address.wrapping_add(instruction.size.into());
        Self {
            address: instruction.address,
            rom_offset: instruction.rom_offset,
            size: instruction.size,
            bytes_hex: hex(&instruction.bytes),
            mode: instruction.mode.word(),
            mnemonic: instruction.mnemonic.clone(),
            operands: instruction.operands.clone(),
            flow: FlowShown {
                kind: flow.kind.word(),
                direct_target: flow.direct_target,
                target_mode: flow.target_mode.map(|mode| mode.word()),
                fallthrough: flow.falls_through.then_some(next),
            },
            source: instruction.component.into(),
            target_resolution: instruction.target_resolution.as_ref().map(TargetShown::of),
        }
    }
}

/// Bytes as lowercase hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
