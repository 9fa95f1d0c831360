//! Bytes to one instruction, with what the architecture lacks told from bytes that are missing.

use unarm::{BlxTarget, Cond, Coproc, Extensions, Ins, Options, R9Use, Reg, Version};

use super::flow::{self, Flow};
use super::registers::{self, RegSet};
use super::{Arch, Mode, text};

/// Why there is no instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The address is not divisible by what the mode demands.
    #[error("0x{address:08x} is not divisible by {alignment}, as an instruction's address must be here", alignment = mode.alignment())]
    Misaligned {
        /// The address.
        address: u32,
        /// The mode that demands it.
        mode: Mode,
    },
    /// The bytes end inside the instruction.
    #[error("the {have} bytes given end inside the instruction")]
    Truncated {
        /// Bytes that were given.
        have: usize,
    },
    /// The architecture has no such instruction, or calls its effect unpredictable.
    #[error("0x{raw:x} is not an instruction of this processor")]
    Undecodable {
        /// The word, or the halfword.
        raw: u32,
    },
}

/// One decoded instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Insn {
    /// Address of its first byte.
    pub address: u32,
    /// Length in bytes: 4 in ARM mode; 2 in Thumb mode, where only the pair that is a `bl` or `blx` has 4.
    pub size: u8,
    /// Instruction set.
    pub mode: Mode,
    /// The word; of the Thumb pair, its first halfword is in the lower half.
    pub raw: u32,
    arch: Arch,
    conditional: bool,
    flow: Flow,
}

/// Decodes the instruction at the start of `bytes`, which lies at `address`. Bytes behind it are ignored.
///
/// # Errors
/// [`DecodeError`]: misaligned, cut off, or not an instruction of the architecture.
pub fn decode(arch: Arch, mode: Mode, address: u32, bytes: &[u8]) -> Result<Insn, DecodeError> {
    if !mode.is_aligned(address) {
        return Err(DecodeError::Misaligned { address, mode });
    }
    let truncated = DecodeError::Truncated { have: bytes.len() };
    let (raw, size) = match mode {
        Mode::Arm => (u32::from_le_bytes(*bytes.first_chunk().ok_or(truncated)?), 4),
        Mode::Thumb => {
            let first = u32::from(u16::from_le_bytes(*bytes.first_chunk().ok_or(truncated)?));
            if is_pair_prefix(first) {
                (u32::from_le_bytes(*bytes.first_chunk().ok_or(truncated)?), 4)
            } else {
                (first, 2)
            }
        }
    };
    let undecodable = DecodeError::Undecodable { raw: if mode == Mode::Arm { raw } else { raw & 0xffff } };
    if size == 4 && mode == Mode::Thumb && !is_pair(arch, raw) {
        return Err(undecodable);
    }
    let ins = parse(arch, mode, address, raw);
    if !exists(&ins) || mode == Mode::Arm && writes_back_to_pc(raw) {
        return Err(undecodable);
    }
    let conditional = ins.cond() != Cond::Al;
    let flow = flow::of(&ins, mode, address, registers::effects(mode, raw).writes);
    Ok(Insn { address, size, mode, raw, arch, conditional, flow })
}

/// Whether the processors have it. Both are without coprocessors, but for CP14 and CP15, which know only single-register
/// transfers; everything else for a coprocessor raises the undefined instruction exception (ARM ARM A2.6.5).
fn exists(ins: &Ins) -> bool {
    match ins {
        Ins::Mcr { coproc, .. } | Ins::Mrc { coproc, .. } => matches!(coproc, Coproc::P14 | Coproc::P15),
        Ins::Cdp { .. } | Ins::Ldc { .. } | Ins::Stc { .. } | Ins::Mcrr { .. } | Ins::Mrrc { .. } => false,
        Ins::Cdp2 { .. } | Ins::Ldc2 { .. } | Ins::Stc2 { .. } | Ins::Mcr2 { .. } | Ins::Mrc2 { .. } => false,
        // The program counter as target is unpredictable (ARM ARM A4.1.9, A7.1.18).
        Ins::Blx { target: BlxTarget::Indirect(Reg::Pc), .. } => false,
        Ins::Illegal | Ins::Udf { .. } => false,
        _ => true,
    }
}

/// Whether a load or store puts an address into r15 as its base, which is unpredictable (ARM ARM A5.2, A5.3, A5.4).
fn writes_back_to_pc(raw: u32) -> bool {
    let (before, writes_back) = (raw >> 24 & 1 == 1, raw >> 21 & 1 == 1);
    let indexed = match raw >> 25 & 7 {
        // Halfwords, signed bytes and doublewords; the other encodings with these bits multiply and swap.
        0b000 if raw & 0x90 == 0x90 && raw & 0x60 != 0 => !before || writes_back,
        0b010 | 0b011 => !before || writes_back,
        0b100 => writes_back,
        _ => false,
    };
    indexed && raw >> 16 & 0xf == 0xf
}

/// First half of `bl` and `blx` (ARM ARM A7.1.9: H = 10).
fn is_pair_prefix(halfword: u32) -> bool {
    halfword >> 11 == 0b11110
}

/// Whether the second half continues a prefix: H = 11 for `bl`, H = 01 for `blx`, which ARMv4T lacks and whose bit 0 is clear.
fn is_pair(arch: Arch, raw: u32) -> bool {
    let second = raw >> 16;
    second >> 11 == 0b11111 || arch == Arch::V5TE && second >> 11 == 0b11101 && second & 1 == 0
}

fn parse(arch: Arch, mode: Mode, address: u32, raw: u32) -> Ins {
    let options = options(arch);
    match mode {
        Mode::Arm => unarm::parse_arm(raw, address, options),
        Mode::Thumb => unarm::parse_thumb(raw, address, options).0,
    }
}

fn options(arch: Arch) -> &'static Options {
    static V4T: Options = with(Version::V4T);
    static V5TE: Options = with(Version::V5Te);
    const fn with(version: Version) -> Options {
        let extensions = Extensions::none();
        Options { version, extensions, av: false, r9_use: R9Use::R9, sl: false, fp: false, ip: false, ual: true }
    }
    match arch {
        Arch::V4T => &V4T,
        Arch::V5TE => &V5TE,
    }
}

impl Insn {
    /// The mnemonic with its suffixes, in unified syntax and lower case, such as `ldrbeq`.
    pub fn mnemonic(&self) -> String {
        text::mnemonic(&self.ins(), options(self.arch))
    }

    /// What stands behind the mnemonic, empty when nothing does; branch targets as absolute addresses.
    pub fn operands(&self) -> String {
        text::operands(&self.ins(), self.raw, options(self.arch))
    }

    /// Where the control flow goes.
    pub fn flow(&self) -> Flow {
        self.flow
    }

    /// Address behind the last byte, wrapping at 4 GiB.
    pub fn end(&self) -> u32 {
        self.address.wrapping_add(u32::from(self.size))
    }

    /// Address of the word that `ldr rX, [pc, #n]` loads; it may lie anywhere, and `None` stands for every other instruction.
    pub fn literal_slot(&self) -> Option<u32> {
        match self.mode {
            // LDR, immediate offset, no write-back, base r15 (ARM ARM A5.2.2): cond 0101 u001 1111.
            Mode::Arm if self.raw & 0x0f7f_0000 == 0x051f_0000 => Some(self.pc_plus(self.raw & 0xfff)),
            // LDR (3) (ARM ARM A7.1.30): 01001.
            Mode::Thumb if self.size == 2 && self.raw >> 11 == 0b01001 => Some(self.pc_plus((self.raw & 0xff) << 2)),
            _ => None,
        }
    }

    /// Address that `add rX, pc, #n` or `sub rX, pc, #n` computes, when X is not the program counter itself.
    pub fn pc_relative_address(&self) -> Option<u32> {
        match self.mode {
            // ADD and SUB with base r15 and a rotated immediate (ARM ARM A4.1.3, A4.1.106, A5.1.3).
            Mode::Arm if self.raw & 0x0f00_0000 == 0x0200_0000 && self.raw >> 12 & 0xf != 15 => {
                let immediate = text::rotated_immediate(self.raw);
                let pc = self.mode.pc(self.address);
                match self.raw >> 16 & 0xef {
                    0x8f => Some(pc.wrapping_add(immediate)),
                    0x4f => Some(pc.wrapping_sub(immediate)),
                    _ => None,
                }
            }
            // ADD (5) (ARM ARM A7.1.7): 10100.
            Mode::Thumb if self.size == 2 && self.raw >> 11 == 0b10100 => Some(self.pc_plus((self.raw & 0xff) << 2)),
            _ => None,
        }
    }

    /// Registers that it may write; the program counter only when it branches.
    pub fn writes(&self) -> RegSet {
        registers::effects(self.mode, self.raw).writes
    }

    /// Registers that it may read.
    pub fn reads(&self) -> RegSet {
        registers::effects(self.mode, self.raw).reads
    }

    /// Whether it runs only under a condition.
    pub fn is_conditional(&self) -> bool {
        self.conditional
    }

    /// The four condition bits of an ARM instruction (ARM ARM A3.2).
    pub(super) fn condition(&self) -> u32 {
        match self.mode {
            Mode::Arm => self.raw >> 28,
            Mode::Thumb => 0b1110,
        }
    }

    /// Whether it enters an exception handler, which may come back with other values in registers.
    pub(super) fn is_exception(&self) -> bool {
        matches!(self.ins(), Ins::Svc { .. } | Ins::Bkpt { .. })
    }

    pub(super) fn arch(&self) -> Arch {
        self.arch
    }

    pub(super) fn ins(&self) -> Ins {
        parse(self.arch, self.mode, self.address, self.raw)
    }

    /// The program counter, rounded down to a word as literal loads have it, and an offset that bit 23 may negate in ARM mode.
    fn pc_plus(&self, offset: u32) -> u32 {
        let pc = self.mode.pc(self.address) & !3;
        match self.mode {
            Mode::Arm if self.raw >> 23 & 1 == 0 => pc.wrapping_sub(offset),
            _ => pc.wrapping_add(offset),
        }
    }
}
