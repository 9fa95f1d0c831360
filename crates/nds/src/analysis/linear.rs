//! Decoding in a straight line: instruction after instruction from one address, with no reading past what is certain.

use code::arm::{Flow, Insn, Mode};

use super::source::{At, Chosen, Code, CodeSource, NoInsn, Place, TargetResolution, choose};
use crate::{Candidate, ComponentId, Refusal, Rom};

/// One instruction, as shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Its address.
    pub address: u32,
    /// Where it is stored; `None` for derived bytes.
    pub rom_offset: Option<u32>,
    /// Bytes: 2 or 4.
    pub size: u8,
    /// Its bytes, as stored.
    pub bytes: Vec<u8>,
    /// Instruction set.
    pub mode: Mode,
    /// The mnemonic with its suffixes.
    pub mnemonic: String,
    /// What stands behind it.
    pub operands: String,
    /// Where it goes on.
    pub flow: Flow,
    /// The component.
    pub component: ComponentId,
    /// What its direct target means; `None` when it has none.
    pub target_resolution: Option<TargetResolution>,
}

/// A request to decode, as the tool takes it.
#[derive(Clone, Copy, Debug)]
pub struct LinearRequest {
    /// Where to begin.
    pub place: Place,
    /// Instructions to decode.
    pub max_instructions: u64,
    /// Bytes to decode.
    pub max_bytes: u64,
}

/// What was decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disassembly {
    /// `complete`: as much as was asked for; `decode-stopped`: the processor has no instruction at `stop_address`;
    /// `component-boundary`: the component's readable bytes end there; or the word of a source that could not be chosen.
    pub status: &'static str,
    /// What was read; `None` when no source could be chosen.
    pub source: Option<CodeSource>,
    /// What the address could mean, when no source could be chosen.
    pub candidates: Vec<Candidate>,
    /// The instructions, in order.
    pub instructions: Vec<Instruction>,
    /// Their bytes.
    pub decoded_bytes: u64,
    /// Where decoding stopped: the address behind the last instruction.
    pub stop_address: Option<u32>,
}

/// The instructions of a straight line.
pub(crate) struct Line {
    pub insns: Vec<Insn>,
    pub status: &'static str,
    pub bytes: u64,
    pub stop: u32,
}

/// Decodes in a straight line from `start`.
///
/// # Errors
/// `disassembly-backend-failure` when not even the first instruction has room in `max_bytes`.
pub(crate) fn line(code: &Code<'_>, start: At, max_instructions: u64, max_bytes: u64) -> Result<Line, Refusal> {
    let mut line = Line { insns: Vec::new(), status: "complete", bytes: 0, stop: start.address };
    while (line.insns.len() as u64) < max_instructions {
        match code.decode(At { address: line.stop, ..start }) {
            Ok(insn) if line.bytes + u64::from(insn.size) <= max_bytes => {
                line.bytes += u64::from(insn.size);
                line.stop = insn.end();
                line.insns.push(insn);
            }
            Ok(insn) if line.insns.is_empty() => {
                return Err(Refusal::new(
                    "disassembly-backend-failure",
                    format!(
                        "maxBytes is {max_bytes}, and the {} instruction at 0x{:08x} has {} bytes",
                        start.mode.word(),
                        start.address,
                        insn.size
                    ),
                    "Allow 4 bytes at least: no instruction of either mode has more.",
                ));
            }
            Ok(_) => break,
            Err(why) => {
                // A limit that is used up ends the line before what follows is looked at.
                if line.bytes + u64::from(start.mode.alignment()) <= max_bytes {
                    line.status = match why {
                        NoInsn::Boundary => "component-boundary",
                        NoInsn::Undecodable => "decode-stopped",
                    };
                }
                break;
            }
        }
    }
    Ok(line)
}

/// One instruction, with its text and what its target means.
pub(crate) fn show(code: &Code<'_>, part: u32, insn: &Insn) -> Instruction {
    let flow = insn.flow();
    let at = At { part, mode: insn.mode, address: insn.address };
    let resolution = flow.direct_target.zip(flow.target_mode);
    Instruction {
        address: insn.address,
        rom_offset: code.rom_offset(at),
        size: insn.size,
        bytes: insn.raw.to_le_bytes().into_iter().take(usize::from(insn.size)).collect(),
        mode: insn.mode,
        mnemonic: insn.mnemonic(),
        operands: insn.operands(),
        flow,
        component: code.id(part),
        target_resolution: resolution.map(|(target, mode)| code.resolve(part, target, mode)),
    }
}

/// Decodes in a straight line.
///
/// # Errors
/// `unknown-overlay-id`, or `disassembly-backend-failure` for a misaligned address and for too few bytes.
pub fn disassemble_range(rom: &Rom, request: &LinearRequest) -> Result<Disassembly, Refusal> {
    let code = Code::of(rom, request.place.processor);
    Ok(match choose(rom, &code, &request.place)? {
        Chosen::Not(status, candidates) => Disassembly {
            status: status.word(),
            source: None,
            candidates,
            instructions: Vec::new(),
            decoded_bytes: 0,
            stop_address: None,
        },
        Chosen::Ready(at) => {
            let line = line(&code, at, request.max_instructions, request.max_bytes)?;
            Disassembly {
                status: line.status,
                source: code.source(at),
                candidates: Vec::new(),
                instructions: line.insns.iter().map(|insn| show(&code, at.part, insn)).collect(),
                decoded_bytes: line.bytes,
                stop_address: Some(line.stop),
            }
        }
    })
}
