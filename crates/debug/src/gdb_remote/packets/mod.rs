//! One file per packet of the protocol, each with what is sent, what may be answered, and its section of the GDB manual.

pub mod breakpoint;
pub mod interrupt;
pub mod query_supported;
pub mod read_memory;
pub mod read_register;
pub mod read_registers;
pub mod resume;
pub mod stop_reason;
pub mod stop_reply;
pub mod write_memory;

pub use breakpoint::PointKind;
pub use read_registers::{Mode, Registers};
pub use stop_reply::{StopKind, StopReply};

use super::Error;

/// The bytes that hexadecimal digits stand for; `None` for an odd number of them or another character.
pub fn unhex(digits: &[u8]) -> Option<Vec<u8>> {
    let value = |digit: &u8| char::from(*digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
    let pairs = digits.chunks(2).map(|pair| match pair {
        [high, low] => Some(value(high)? << 4 | value(low)?),
        _ => None,
    });
    pairs.collect()
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Sorts out the two answers that every packet may get: nothing, for a packet that the stub does not know, and `E` with a
/// number ("Standard Replies"). A `.` behind the `E` starts a text instead of the number.
///
/// # Errors
/// [`Error::Unsupported`] and [`Error::Stub`].
pub fn standard<'a>(packet: &'static str, answer: &'a [u8]) -> Result<&'a [u8], Error> {
    match answer {
        [] => Err(Error::Unsupported { packet }),
        [b'E', high, low] => match unhex(&[*high, *low]).as_deref() {
            Some([code]) => Err(Error::Stub { packet, code: *code }),
            _ => Err(bad(packet, answer)),
        },
        [b'E', b'.', ..] => Err(bad(packet, answer)),
        _ => Ok(answer),
    }
}

/// Wants `OK`.
///
/// # Errors
/// Those of [`standard`], and [`Error::BadAnswer`].
pub fn ok(packet: &'static str, answer: &[u8]) -> Result<(), Error> {
    match standard(packet, answer)? {
        b"OK" => Ok(()),
        other => Err(bad(packet, other)),
    }
}

/// An answer that the packet cannot have.
pub fn bad(packet: &'static str, answer: &[u8]) -> Error {
    Error::BadAnswer { packet, what: format!("`{}`", super::error::beginning(answer)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_answers_are_told_apart() {
        assert!(matches!(standard("p", b""), Err(Error::Unsupported { .. })));
        assert!(matches!(standard("m", b"E06"), Err(Error::Stub { code: 6, .. })));
        assert!(matches!(standard("m", b"E.no"), Err(Error::BadAnswer { .. })));
        // Four digits that begin with E are data.
        assert_eq!(standard("m", b"E012").unwrap(), b"E012");
        assert!(matches!(ok("Z", b"0"), Err(Error::BadAnswer { .. })));
    }

    #[test]
    fn digits_are_pairs() {
        assert_eq!(unhex(b"0aFf").unwrap(), [0x0A, 0xFF]);
        assert_eq!(unhex(b"0"), None);
        assert_eq!(unhex(b"0x"), None);
        assert_eq!(hex(&[0x0A, 0xFF]), "0aff");
    }
}
