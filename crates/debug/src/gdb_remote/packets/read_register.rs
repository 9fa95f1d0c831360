//! Packet `p`, one register (GDB manual, "Packets", `p n`): a stub that does not know it answers nothing.

use super::super::Error;
use super::{bad, standard, unhex};

const NAME: &str = "p";
/// The number of the program counter among ARM's registers.
pub const PC: u8 = 15;

/// What is sent.
pub fn request(number: u8) -> Vec<u8> {
    format!("p{number:x}").into_bytes()
}

/// The register's value.
///
/// # Errors
/// Those of [`standard`], and [`Error::BadAnswer`] for anything but four bytes.
pub fn answer(answer: &[u8]) -> Result<u32, Error> {
    let bytes = unhex(standard(NAME, answer)?).unwrap_or_default();
    bytes.as_slice().try_into().map(u32::from_le_bytes).map_err(|_| bad(NAME, answer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_register_is_four_bytes_with_the_lowest_first() {
        assert_eq!(request(PC), b"pf");
        assert_eq!(answer(b"00001002").unwrap(), 0x0210_0000);
        assert!(matches!(answer(b"0000"), Err(Error::BadAnswer { .. })));
        assert!(matches!(answer(b""), Err(Error::Unsupported { .. })));
    }
}
