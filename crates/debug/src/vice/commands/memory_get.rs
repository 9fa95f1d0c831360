//! Command 0x01, "Memory get".

use super::super::error::Error;
use super::super::framing::Fields;
use super::super::session::Request;

const GET: u8 = 0x01;

/// What is sent to read from `start` to `end`, both included. Without `side_effects` nothing happens that a program's own
/// read would bring about.
pub fn request(side_effects: bool, start: u16, end: u16, memspace: u8, bank: u16) -> Request {
    let mut body = vec![u8::from(side_effects)];
    body.extend(start.to_le_bytes());
    body.extend(end.to_le_bytes());
    body.push(memspace);
    body.extend(bank.to_le_bytes());
    Request::new(GET, body)
}

/// The bytes; `wanted` must have come. The length in the answer has 16 bits, so it is 0 for 64 KiB and says nothing that the
/// frame does not say.
///
/// # Errors
/// [`Error::Protocol`].
pub fn answer(body: &[u8], wanted: usize) -> Result<&[u8], Error> {
    let mut fields = Fields::of(body, "memory");
    fields.word()?;
    let bytes = fields.rest();
    if bytes.len() == wanted {
        return Ok(bytes);
    }
    Err(Error::Protocol(format!("{} bytes of memory where {wanted} were asked for", bytes.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_and_answered_has_the_manuals_bytes() {
        assert_eq!(request(true, 0x0400, 0x07E7, 0, 1).body(), [1, 0x00, 0x04, 0xE7, 0x07, 0, 1, 0]);
        assert_eq!(answer(&[2, 0, 0xAA, 0x55], 2).unwrap(), [0xAA, 0x55]);
        assert!(matches!(answer(&[2, 0, 0xAA], 2), Err(Error::Protocol(_))));
        assert!(matches!(answer(&[2], 0), Err(Error::Protocol(_))));
    }
}
