//! Packet `M`, writing memory (GDB manual, "Packets", `M addr,length:XX…`).
//!
//! DeSmuME writes and then answers nothing, which should mean that it does not know the packet: only reading back tells.

use super::super::Error;
use super::{hex, ok};

const NAME: &str = "M";

/// What is sent.
pub fn request(address: u32, bytes: &[u8]) -> Vec<u8> {
    format!("M{address:x},{:x}:{}", bytes.len(), hex(bytes)).into_bytes()
}

/// Whether the stub confirms it: `false` when it answered nothing.
///
/// # Errors
/// [`Error::Stub`] and [`Error::BadAnswer`].
pub fn answer(answer: &[u8]) -> Result<bool, Error> {
    match ok(NAME, answer) {
        Ok(()) => Ok(true),
        Err(Error::Unsupported { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_answer_is_no_confirmation_and_no_error() {
        assert_eq!(request(0x0230_0010, &[1, 0xAB]), b"M2300010,2:01ab");
        assert!(answer(b"OK").unwrap());
        assert!(!answer(b"").unwrap());
        assert!(matches!(answer(b"E01"), Err(Error::Stub { code: 1, .. })));
    }
}
