//! x86 code, 32- and 64-bit, so that the rest of the project never sees the decoder library behind it.
//!
//! Everything here is a function of bytes, addresses and register values; nothing reads memory by itself and nothing panics,
//! whatever the bytes are.

mod back;
mod decode;
mod displaced;
mod operands;

pub use back::{Attribution, Suspect, Trap, WatchKind, attribute};
pub use decode::{DecodeError, FlowKind, INSN_BYTES, Insn, Listing, Stop, decode, disassemble, length};
pub use displaced::{Displaced, NotDisplaceable, PcMeaning, SLOT_BYTES, plan};
pub use operands::{Accesses, MemAccess, UnknownAccess, memory_accesses};

/// Width of the code: what a program runs as, not what the machine can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Bitness {
    /// i386 code; addresses wrap at 4 GiB.
    Bits32,
    /// x86-64 code.
    Bits64,
}

impl Bitness {
    /// Bytes of a pointer and of a stack slot: 4 or 8.
    pub fn pointer_bytes(self) -> u64 {
        match self {
            Bitness::Bits32 => 4,
            Bitness::Bits64 => 8,
        }
    }

    /// The address as the program sees it: cut to 32 bits in 32-bit code.
    pub fn wrap(self, address: u64) -> u64 {
        match self {
            Bitness::Bits32 => address & 0xffff_ffff,
            Bitness::Bits64 => address,
        }
    }

    fn number(self) -> u32 {
        match self {
            Bitness::Bits32 => 32,
            Bitness::Bits64 => 64,
        }
    }
}

/// Gives the value of a register by name, `None` when it is not available.
///
/// Asked for are only: `eax` … `edi` in 32-bit code, `rax` … `r15` in 64-bit code, `eflags` in both, and `fs_base` and
/// `gs_base`, the linear addresses where those segments begin. The other segments are taken to begin at 0, as every
/// system since Windows NT and Linux has it.
pub type Regs<'a> = dyn Fn(&'static str) -> Option<u64> + 'a;
