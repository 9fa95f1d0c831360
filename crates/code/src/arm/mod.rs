//! ARM and Thumb code of the Nintendo DS, so that the rest of the project never sees the decoder library behind it.
//!
//! Everything here is a function of bytes and addresses; nothing reads memory by itself and nothing panics, whatever the
//! bytes are. "ARM ARM" in this module is the ARM Architecture Reference Manual, DDI 0100, which covers both processors.

mod decode;
mod flow;
mod literal_call;
mod registers;
mod text;

pub use decode::{DecodeError, Insn, decode};
pub use flow::{Flow, FlowKind};
pub use literal_call::{LiteralCall, LiteralForm, literal_call, return_address};
pub use registers::RegSet;

/// Which architecture a processor implements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Arch {
    /// ARMv4T: the ARM7TDMI.
    V4T,
    /// ARMv5TE: the ARM946E-S.
    V5TE,
}

/// Instruction set that the processor is in, by bit T of its status register (ARM ARM A2.5.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// Words of 32 bits at addresses divisible by 4.
    Arm,
    /// Halfwords of 16 bits at addresses divisible by 2.
    Thumb,
}

impl Mode {
    /// `arm` or `thumb`.
    pub fn word(self) -> &'static str {
        match self {
            Mode::Arm => "arm",
            Mode::Thumb => "thumb",
        }
    }

    /// What an instruction's address is divisible by, in bytes: 4 or 2.
    pub fn alignment(self) -> u32 {
        match self {
            Mode::Arm => 4,
            Mode::Thumb => 2,
        }
    }

    /// Whether an instruction may stand at `address`.
    pub fn is_aligned(self, address: u32) -> bool {
        address & (self.alignment() - 1) == 0
    }

    /// What a program counter reads as while the instruction at `address` runs (ARM ARM A2.4.3).
    fn pc(self, address: u32) -> u32 {
        address.wrapping_add(2 * self.alignment())
    }
}

/// Number of the stack pointer.
const SP: u8 = 13;
/// Number of the link register.
const LR: u8 = 14;
/// Number of the program counter.
const PC: u8 = 15;
