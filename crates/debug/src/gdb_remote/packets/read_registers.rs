//! Packet `g`, all general registers (GDB manual, "Packets", `g`; order of ARM's in "ARM Features", org.gnu.gdb.arm.core).

use super::super::Error;
use super::{bad, standard, unhex};

const NAME: &str = "g";
/// r0 to r15 and cpsr, in bytes.
const CORE_BYTES: usize = 17 * 4;
/// The layout before target descriptions: between r15 and cpsr eight floating point registers of 12 bytes, and their status.
const FPA_BYTES: usize = (16 + 8 * 3 + 1 + 1) * 4;
/// The bit of cpsr that says Thumb (ARM Architecture Reference Manual, "Program status registers").
const THUMB: u32 = 1 << 5;

/// Which instructions a processor reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Words of 32 bits.
    Arm,
    /// Halfwords of 16 bits.
    Thumb,
}

impl Mode {
    /// Bytes of one instruction, which is also their alignment; a Thumb `bl` is two instructions here as on the processor.
    pub const fn size(self) -> u32 {
        match self {
            Self::Arm => 4,
            Self::Thumb => 2,
        }
    }
}

/// What the processor's registers hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    /// r0 to r15: r13 is the stack pointer, r14 the link register, r15 the address of the next instruction.
    pub r: [u32; 16],
    /// The current program status register.
    pub cpsr: u32,
}

impl Registers {
    /// The registers in an answer to `g`.
    ///
    /// # Errors
    /// Those of a packet that is unknown to the stub, an error, or no registers of ARM's.
    pub fn read(packet: &[u8]) -> Result<Self, Error> {
        answer(packet)
    }

    /// Address of the next instruction.
    pub const fn pc(&self) -> u32 {
        self.r[15]
    }

    /// The stack pointer.
    pub const fn sp(&self) -> u32 {
        self.r[13]
    }

    /// The link register.
    pub const fn lr(&self) -> u32 {
        self.r[14]
    }

    /// Which instructions the processor reads.
    pub const fn mode(&self) -> Mode {
        if self.cpsr & THUMB == 0 { Mode::Arm } else { Mode::Thumb }
    }
}

/// What is sent.
pub fn request() -> Vec<u8> {
    b"g".to_vec()
}

/// The raw bytes of an answer.
///
/// # Errors
/// Those of [`standard`], and [`Error::BadAnswer`] for what is not hexadecimal.
pub fn bytes(answer: &[u8]) -> Result<Vec<u8>, Error> {
    unhex(standard(NAME, answer)?).ok_or_else(|| bad(NAME, answer))
}

/// The registers in an answer. Both layouts are known: 17 words, or cpsr behind the floating point registers; more may follow the former.
///
/// # Errors
/// Those of [`bytes`], and [`Error::BadAnswer`] for fewer bytes.
pub fn answer(answer: &[u8]) -> Result<Registers, Error> {
    let bytes = bytes(answer)?;
    let short =
        || Error::BadAnswer { packet: NAME, what: format!("{} bytes, and ARM needs {CORE_BYTES}", bytes.len()) };
    let cpsr = if bytes.len() == FPA_BYTES { FPA_BYTES - 4 } else { CORE_BYTES - 4 };
    let mut r = [0; 16];
    for (index, register) in r.iter_mut().enumerate() {
        *register = word(&bytes, index * 4).ok_or_else(short)?;
    }
    Ok(Registers { r, cpsr: word(&bytes, cpsr).ok_or_else(short)? })
}

/// A little-endian word.
fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|word| u32::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex_of(words: &[u32]) -> Vec<u8> {
        super::super::hex(&words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>()).into_bytes()
    }

    #[test]
    fn both_layouts_have_cpsr_where_they_say() {
        let core: Vec<u32> = (0..16).collect();
        let short = [core.clone(), vec![0x3F]].concat();
        // 8 * 3 words of floating point, their status, cpsr: 42 words.
        let long = [core, vec![0xEEEE; 25], vec![0x3F]].concat();
        for words in [short, long] {
            let registers = answer(&hex_of(&words)).unwrap();
            assert_eq!((registers.pc(), registers.sp(), registers.lr(), registers.cpsr), (15, 13, 14, 0x3F));
            assert_eq!(registers.mode(), Mode::Thumb);
        }
    }

    #[test]
    fn too_few_bytes_and_registers_that_are_not_there_are_refused() {
        assert!(matches!(answer(&hex_of(&[0; 16])), Err(Error::BadAnswer { .. })));
        assert!(matches!(answer(&[b'x'; 136]), Err(Error::BadAnswer { .. })));
        assert!(matches!(answer(b""), Err(Error::Unsupported { .. })));
    }
}
