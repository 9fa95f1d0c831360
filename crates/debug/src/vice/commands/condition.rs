//! Command 0x22, "Condition set". VICE does not give a condition back.

use super::super::error::Error;
use super::super::session::Request;

const SET: u8 = 0x22;

/// What is sent to give checkpoint `number` the condition `expression`, in the words of VICE's own monitor ("X == $05").
///
/// # Errors
/// [`Error::Argument`] for an empty text, one longer than 255 bytes, and one with characters beyond printable ASCII.
pub fn request(number: u32, expression: &str) -> Result<Request, Error> {
    let length = u8::try_from(expression.len()).ok().filter(|length| *length > 0);
    let plain = expression.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    let (Some(length), true) = (length, plain) else {
        return Err(Error::Argument("expression must be 1 to 255 printable ASCII characters".to_owned()));
    };
    let mut body = number.to_le_bytes().to_vec();
    body.push(length);
    body.extend_from_slice(expression.as_bytes());
    Ok(Request::new(SET, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_has_the_manuals_bytes() {
        assert_eq!(request(5, "X == $05").unwrap().body(), b"\x05\x00\x00\x00\x08X == $05");
        for bad in ["", "\n", "A == \u{e9}", &"x".repeat(256)] {
            assert!(matches!(request(1, bad), Err(Error::Argument(_))), "{bad:?}");
        }
    }
}
