//! Packets `Z` and `z`, breakpoints and watchpoints (GDB manual, "Packets", `z type,addr,kind`; kinds of ARM's in
//! "ARM Breakpoint Kinds").

use super::super::Error;
use super::ok;

const INSERT: &str = "Z";
const REMOVE: &str = "z";

/// What makes the program stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointKind {
    /// An instruction about to be executed.
    Execute,
    /// A write.
    Write,
    /// A read.
    Read,
    /// A read or a write.
    Access,
}

impl PointKind {
    /// The manual's type. Breakpoints are software breakpoints: emulators plant nothing for them.
    const fn number(self) -> u8 {
        match self {
            Self::Execute => 0,
            Self::Write => 2,
            Self::Read => 3,
            Self::Access => 4,
        }
    }
}

/// What is sent to set one; `size` is the size of the instruction, or the bytes watched.
pub fn insert(kind: PointKind, address: u32, size: u32) -> Vec<u8> {
    format!("Z{},{address:x},{size:x}", kind.number()).into_bytes()
}

/// What is sent to take one away.
pub fn remove(kind: PointKind, address: u32, size: u32) -> Vec<u8> {
    format!("z{},{address:x},{size:x}", kind.number()).into_bytes()
}

/// # Errors
/// [`Error::Unsupported`] for a kind that the stub does not know, [`Error::Stub`] when it has no room.
pub fn inserted(answer: &[u8]) -> Result<(), Error> {
    ok(INSERT, answer)
}

/// # Errors
/// As [`inserted`]. Taking away what is not there is no error for any stub we know.
pub fn removed(answer: &[u8]) -> Result<(), Error> {
    ok(REMOVE, answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_the_manuals_numbers() {
        assert_eq!(insert(PointKind::Execute, 0x0210_0000, 2), b"Z0,2100000,2");
        assert_eq!(insert(PointKind::Write, 0x0230_000C, 4), b"Z2,230000c,4");
        assert_eq!(remove(PointKind::Read, 0x0230_000C, 4), b"z3,230000c,4");
        assert_eq!(remove(PointKind::Access, 0x0230_000C, 4), b"z4,230000c,4");
    }
}
