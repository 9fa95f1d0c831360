//! Packet `m`, reading memory (GDB manual, "Packets", `m addr,length`). A stub may give fewer bytes than asked for.

use super::super::Error;
use super::{bad, standard, unhex};

const NAME: &str = "m";

/// What is sent; `length` is in bytes.
pub fn request(address: u32, length: u32) -> Vec<u8> {
    format!("m{address:x},{length:x}").into_bytes()
}

/// The bytes, at least one and at most `length`.
///
/// # Errors
/// Those of [`standard`], and [`Error::BadAnswer`] for more bytes than asked for, none, or anything else than bytes.
pub fn answer(answer: &[u8], length: u32) -> Result<Vec<u8>, Error> {
    let bytes = unhex(standard(NAME, answer)?).ok_or_else(|| bad(NAME, answer))?;
    match u32::try_from(bytes.len()) {
        Ok(got) if got > 0 && got <= length => Ok(bytes),
        _ => Err(Error::BadAnswer { packet: NAME, what: format!("{} bytes, asked for {length}", bytes.len()) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_bytes_are_taken_and_more_are_not() {
        assert_eq!(request(0x0210_0000, 0x200), b"m2100000,200");
        assert_eq!(answer(b"0102", 4).unwrap(), [1, 2]);
        assert!(matches!(answer(b"0102", 1), Err(Error::BadAnswer { .. })));
        assert!(matches!(answer(b"01\0\0", 4), Err(Error::BadAnswer { .. })));
        assert!(matches!(answer(b"E06", 4), Err(Error::Stub { code: 6, .. })));
    }
}
