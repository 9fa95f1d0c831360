//! What one instruction refers to, proven by that instruction alone.

use code::arm::{FlowKind, Insn, Mode};

use super::linear::{LinearRequest, line};
use super::source::{At, Chosen, Code, CodeSource, choose};
use crate::{AddressStatus, Candidate, ComponentId, Refusal, Rom};

/// The kind of a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReferenceKind {
    /// A branch to a known address.
    DirectBranch,
    /// A call of a known address.
    DirectCall,
    /// A load of a word from beside the code; the target is the word's value.
    LiteralPool,
    /// An address computed from the program counter.
    PcRelativeAddress,
}

impl ReferenceKind {
    /// The word of the contract.
    pub fn word(self) -> &'static str {
        match self {
            Self::DirectBranch => "direct-branch",
            Self::DirectCall => "direct-call",
            Self::LiteralPool => "literal-pool",
            Self::PcRelativeAddress => "pc-relative-address",
        }
    }
}

/// The instruction that refers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReferenceSource {
    /// Its component.
    pub component: ComponentId,
    /// Its address.
    pub instruction_address: u32,
    /// Where it is stored; `None` for derived bytes.
    pub instruction_rom_offset: Option<u32>,
    /// Its instruction set.
    pub mode: Mode,
}

/// What is referred to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferenceTarget {
    /// The address; of a literal its value, bit 0 included.
    pub runtime_address: u32,
    /// Where the byte there is stored; `None` unless it is one certain byte.
    pub rom_offset: Option<u32>,
    /// The instruction set there, for branches and calls.
    pub mode: Option<Mode>,
    /// How the address resolves.
    pub status: AddressStatus,
    /// The only component that has it; `None` where there are more or none.
    pub candidate: Option<Candidate>,
}

/// A reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Its kind.
    pub kind: ReferenceKind,
    /// From where.
    pub source: ReferenceSource,
    /// To where.
    pub target: ReferenceTarget,
    /// The mnemonic of the instruction.
    pub instruction_mnemonic: String,
    /// How it refers: `direct-control-flow`, `literal-pool-value`, `literal-pool-slot`, `pc-relative-arithmetic`.
    pub mechanism: &'static str,
    /// The address of the literal, for a literal.
    pub literal_slot: Option<u32>,
}

/// A reference without names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawReference {
    pub kind: ReferenceKind,
    pub address: u32,
    pub mode: Option<Mode>,
    pub slot: Option<u32>,
}

/// What an instruction refers to; at most one thing.
pub(crate) fn of(code: &Code<'_>, part: u32, insn: &Insn) -> Option<RawReference> {
    let flow = insn.flow();
    let kind = match flow.kind {
        FlowKind::Call => Some(ReferenceKind::DirectCall),
        FlowKind::Branch | FlowKind::ConditionalBranch => Some(ReferenceKind::DirectBranch),
        _ => None,
    };
    if let Some((kind, address)) = kind.zip(flow.direct_target) {
        return Some(RawReference { kind, address, mode: flow.target_mode, slot: None });
    }
    if let Some(slot) = insn.literal_slot() {
        let address = code.word(part, slot)?;
        return Some(RawReference { kind: ReferenceKind::LiteralPool, address, mode: None, slot: Some(slot) });
    }
    let address = insn.pc_relative_address()?;
    Some(RawReference { kind: ReferenceKind::PcRelativeAddress, address, mode: None, slot: None })
}

/// A reference with names.
pub(crate) fn present(rom: &Rom, code: &Code<'_>, at: At, insn: &Insn, raw: &RawReference) -> Reference {
    Reference {
        kind: raw.kind,
        source: ReferenceSource {
            component: code.id(at.part),
            instruction_address: at.address,
            instruction_rom_offset: code.rom_offset(at),
            mode: at.mode,
        },
        target: target(rom, code, at.part, raw.address, raw.mode),
        instruction_mnemonic: insn.mnemonic(),
        mechanism: match raw.kind {
            ReferenceKind::DirectBranch | ReferenceKind::DirectCall => "direct-control-flow",
            ReferenceKind::LiteralPool => "literal-pool-value",
            ReferenceKind::PcRelativeAddress => "pc-relative-arithmetic",
        },
        literal_slot: raw.slot,
    }
}

/// What an address means to code of a component: its own byte where it has one, since code that runs is loaded.
fn target(rom: &Rom, code: &Code<'_>, part: u32, address: u32, mode: Option<Mode>) -> ReferenceTarget {
    let mut resolution = rom.resolve_address(code.processor, address);
    if resolution.status == AddressStatus::Ambiguous && code.locate(Some(part), address) == Ok(part) {
        let own = code.id(part);
        resolution.candidates.retain(|candidate| candidate.component == own);
        let stored = resolution.candidates.first().is_some_and(|candidate| candidate.rom_offset.is_some());
        resolution.status = if stored { AddressStatus::Resolved } else { AddressStatus::CompressedNoDirectRomMapping };
    }
    let candidate = match resolution.candidates.as_slice() {
        [only] => Some(only.clone()),
        _ => None,
    };
    ReferenceTarget {
        runtime_address: address,
        rom_offset: candidate.as_ref().and_then(|candidate| candidate.rom_offset),
        mode,
        status: resolution.status,
        candidate,
    }
}

/// References of a straight line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct References {
    /// As of a disassembly.
    pub status: &'static str,
    /// What was read; `None` when no source could be chosen.
    pub source: Option<CodeSource>,
    /// What the address could mean, when no source could be chosen.
    pub candidates: Vec<Candidate>,
    /// Instructions that were looked at.
    pub instructions_examined: u64,
    /// Their bytes.
    pub decoded_bytes: u64,
    /// The references, in the order of their instructions.
    pub references: Vec<Reference>,
}

/// Lists what the instructions of a straight line refer to. A literal is listed with its value whether that is an
/// address or not: the status tells.
///
/// # Errors
/// `unknown-overlay-id`, or `disassembly-backend-failure` for a misaligned address and for too few bytes.
pub fn list_references(rom: &Rom, request: &LinearRequest) -> Result<References, Refusal> {
    let code = Code::of(rom, request.place.processor);
    Ok(match choose(rom, &code, &request.place)? {
        Chosen::Not(status, candidates) => References {
            status: status.word(),
            source: None,
            candidates,
            instructions_examined: 0,
            decoded_bytes: 0,
            references: Vec::new(),
        },
        Chosen::Ready(at) => {
            let line = line(&code, at, request.max_instructions, request.max_bytes)?;
            let references = line.insns.iter().filter_map(|insn| {
                let raw = of(&code, at.part, insn)?;
                Some(present(rom, &code, At { address: insn.address, ..at }, insn, &raw))
            });
            References {
                status: line.status,
                source: code.source(at),
                candidates: Vec::new(),
                instructions_examined: line.insns.len() as u64,
                decoded_bytes: line.bytes,
                references: references.collect(),
            }
        }
    })
}
