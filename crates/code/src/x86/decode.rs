//! Bytes to instructions: length, text and where the control flow goes, with a cut-off instruction told from a bad one.

use iced_x86::{
    ConstantOffsets, Decoder, DecoderError, DecoderOptions, FlowControl, Formatter, Instruction, IntelFormatter,
    MemorySizeOptions, Mnemonic,
};

use super::Bitness;

/// Bytes of the longest x86 instruction (Intel SDM volume 2, section 2.3.11).
pub const INSN_BYTES: usize = 15;

/// Why bytes are not an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// No processor executes these bytes.
    #[error("(bad): these bytes are not an x86 instruction")]
    Invalid,
    /// The bytes end inside the instruction; more of them are needed to say what it is, or that it is none.
    #[error("(incomplete): the {have} bytes given end inside the instruction")]
    Incomplete {
        /// Bytes that were given.
        have: usize,
    },
}

/// Where the control flow goes after an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowKind {
    /// To the next instruction.
    Next,
    /// `jmp` to a known address.
    Jump {
        /// Where it goes.
        target: u64,
    },
    /// `jmp` through a register or memory.
    IndirectJump,
    /// `jcc`, `loop`, `jecxz`: to the target or to the next instruction.
    CondJump {
        /// Where it goes when taken.
        target: u64,
    },
    /// `call` of a known address.
    Call {
        /// Where it goes.
        target: u64,
    },
    /// `call` through a register or memory.
    IndirectCall,
    /// `call` with a new code segment.
    FarCall,
    /// `jmp` with a new code segment.
    FarJump,
    /// `ret`, near or far.
    Return,
    /// `int n`, `int3`, `int1`, `into`.
    Interrupt,
    /// `syscall`, `sysenter`.
    Syscall,
    /// `ud2` and its like, which raise an exception by design.
    Undefined,
    /// `xbegin`, `xabort`, `xend`.
    Transaction,
    /// Other transfers of the operating system or hypervisor: `iret`, `sysret`, `vmcall`, …
    System,
}

/// One decoded instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Insn {
    /// Address of its first byte.
    pub address: u64,
    /// Length in bytes, 1..=15.
    pub len: u8,
    /// Intel syntax, lower case, numbers as `0x…`, branch targets and RIP-relative operands as absolute addresses.
    pub text: String,
    /// Where the control flow goes.
    pub flow: FlowKind,
    /// A string instruction with a `rep` prefix: single-stepping it stops before every iteration.
    pub repeats: bool,
    bytes: [u8; INSN_BYTES],
}

impl Insn {
    /// The bytes of the instruction.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or(&self.bytes)
    }

    /// Address behind the last byte; past the end of the address space it is not wrapped in 32-bit code.
    pub fn end(&self) -> u64 {
        self.address.wrapping_add(u64::from(self.len))
    }

    /// It pushes a return address: what "step over" runs through.
    pub fn is_call(&self) -> bool {
        matches!(self.flow, FlowKind::Call { .. } | FlowKind::IndirectCall | FlowKind::FarCall)
    }

    /// It ends the function.
    pub fn is_return(&self) -> bool {
        self.flow == FlowKind::Return
    }
}

/// Why a listing ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// All bytes were decoded.
    EndOfBytes,
    /// As many instructions as were asked for; the next one is at this address.
    MaxReached {
        /// Address to go on from.
        next: u64,
    },
    /// These bytes are no instruction.
    Bad {
        /// Address of the first undecodable byte.
        address: u64,
    },
    /// The bytes end inside the instruction at this address.
    Incomplete {
        /// Where the instruction begins.
        address: u64,
        /// Bytes of it that are there.
        have: usize,
    },
}

impl std::fmt::Display for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Stop::EndOfBytes => write!(f, "end of the bytes"),
            Stop::MaxReached { next } => write!(f, "more at 0x{next:x}"),
            Stop::Bad { address } => write!(f, "(bad) at 0x{address:x}: not an instruction"),
            Stop::Incomplete { address, have } => {
                write!(f, "(incomplete) at 0x{address:x}: the bytes end after {have} of the instruction")
            }
        }
    }
}

/// Instructions in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// In address order, without gaps.
    pub insns: Vec<Insn>,
    /// Why there are no more.
    pub stop: Stop,
}

/// Decodes the instruction at the start of `bytes`, which lies at address `ip`. Bytes behind it are ignored.
///
/// # Errors
/// [`DecodeError`]: the bytes are no instruction, or end inside one.
pub fn decode(bytes: &[u8], ip: u64, bits: Bitness) -> Result<Insn, DecodeError> {
    let (instr, _) = raw(bytes, ip, bits)?;
    Ok(describe(&instr, bytes))
}

/// Length in bytes of the instruction at the start of `bytes`, 1..=15, without the cost of its text.
///
/// # Errors
/// As [`decode`].
pub fn length(bytes: &[u8], ip: u64, bits: Bitness) -> Result<usize, DecodeError> {
    raw(bytes, ip, bits).map(|(instr, _)| instr.len())
}

/// Decodes up to `max` instructions in a row from `bytes`, which lie at address `ip`; stops at the first that is none.
pub fn disassemble(bytes: &[u8], ip: u64, bits: Bitness, max: usize) -> Listing {
    let mut insns = Vec::new();
    let mut rest = bytes;
    let mut address = bits.wrap(ip);
    let stop = loop {
        if rest.is_empty() {
            break Stop::EndOfBytes;
        }
        if insns.len() >= max {
            break Stop::MaxReached { next: address };
        }
        match decode(rest, address, bits) {
            Ok(insn) => {
                rest = rest.get(usize::from(insn.len)..).unwrap_or_default();
                address = bits.wrap(insn.end());
                insns.push(insn);
            }
            Err(DecodeError::Invalid) => break Stop::Bad { address },
            Err(DecodeError::Incomplete { have }) => break Stop::Incomplete { address, have },
        }
    };
    Listing { insns, stop }
}

/// The library's view of the instruction, and where its constants stand in the bytes.
pub(super) fn raw(bytes: &[u8], ip: u64, bits: Bitness) -> Result<(Instruction, ConstantOffsets), DecodeError> {
    raw_with(bytes, ip, bits, DecoderOptions::NONE)
}

/// As [`raw`], with options of the decoder library.
pub(super) fn raw_with(
    bytes: &[u8],
    ip: u64,
    bits: Bitness,
    options: u32,
) -> Result<(Instruction, ConstantOffsets), DecodeError> {
    let bytes = bytes.get(..INSN_BYTES).unwrap_or(bytes);
    let mut decoder = Decoder::with_ip(bits.number(), bytes, bits.wrap(ip), options);
    let instr = decoder.decode();
    if !instr.is_invalid() {
        return Ok((instr, decoder.get_constant_offsets(&instr)));
    }
    // A full-length window that still wants more is an instruction longer than any processor takes.
    if decoder.last_error() == DecoderError::NoMoreBytes && bytes.len() < INSN_BYTES {
        return Err(DecodeError::Incomplete { have: bytes.len() });
    }
    Err(DecodeError::Invalid)
}

/// Our view of a decoded instruction; `bytes` begin with it.
pub(super) fn describe(instr: &Instruction, bytes: &[u8]) -> Insn {
    let mut own = [0; INSN_BYTES];
    for (to, from) in own.iter_mut().zip(bytes.iter().take(instr.len())) {
        *to = *from;
    }
    Insn {
        address: instr.ip(),
        len: instr.len() as u8,
        text: text(instr),
        flow: flow(instr),
        repeats: is_repeated_string(instr),
        bytes: own,
    }
}

/// A string instruction with any `rep` prefix.
pub(super) fn is_repeated_string(instr: &Instruction) -> bool {
    instr.is_string_instruction() && (instr.has_rep_prefix() || instr.has_repne_prefix())
}

/// Where the control flow goes after the instruction.
pub(super) fn flow(instr: &Instruction) -> FlowKind {
    let target = instr.near_branch_target();
    match instr.flow_control() {
        FlowControl::Next if matches!(instr.mnemonic(), Mnemonic::Xabort | Mnemonic::Xend) => FlowKind::Transaction,
        FlowControl::Next => FlowKind::Next,
        FlowControl::UnconditionalBranch if instr.is_jmp_short_or_near() => FlowKind::Jump { target },
        FlowControl::UnconditionalBranch => FlowKind::FarJump,
        FlowControl::IndirectBranch if instr.is_jmp_near_indirect() => FlowKind::IndirectJump,
        FlowControl::IndirectBranch => FlowKind::FarJump,
        FlowControl::ConditionalBranch => FlowKind::CondJump { target },
        FlowControl::Return if matches!(instr.mnemonic(), Mnemonic::Ret | Mnemonic::Retf) => FlowKind::Return,
        FlowControl::Return => FlowKind::System,
        FlowControl::Call if instr.is_call_near() => FlowKind::Call { target },
        FlowControl::Call if instr.is_call_far() => FlowKind::FarCall,
        FlowControl::Call if matches!(instr.mnemonic(), Mnemonic::Syscall | Mnemonic::Sysenter) => FlowKind::Syscall,
        FlowControl::Call => FlowKind::System,
        FlowControl::IndirectCall if instr.is_call_near_indirect() => FlowKind::IndirectCall,
        FlowControl::IndirectCall => FlowKind::FarCall,
        FlowControl::Interrupt => FlowKind::Interrupt,
        FlowControl::XbeginXabortXend => FlowKind::Transaction,
        FlowControl::Exception => FlowKind::Undefined,
    }
}

fn text(instr: &Instruction) -> String {
    let mut formatter = IntelFormatter::new();
    let options = formatter.options_mut();
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_uppercase_hex(false);
    options.set_small_hex_numbers_in_decimal(false);
    options.set_branch_leading_zeros(false);
    options.set_show_branch_size(false);
    options.set_space_after_operand_separator(true);
    options.set_memory_size_options(MemorySizeOptions::Always);
    options.set_rip_relative_addresses(false);
    let mut out = String::new();
    formatter.format(instr, &mut out);
    out
}
