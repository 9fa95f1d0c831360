//! Bytes written as text: pairs of hexadecimal digits, as the tools take and give them.

use crate::Problem;

/// The bytes that pairs of hexadecimal digits name; white space may stand anywhere, a `0x` may not.
///
/// # Errors
/// `Option` when something else stands there or a digit is left over; `what` is the name of the argument in the message.
pub fn from_hex(what: &str, text: &str) -> Result<Vec<u8>, Problem> {
    let digits: Option<Vec<u8>> = text
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .collect();
    match digits {
        Some(digits) if digits.len().is_multiple_of(2) => {
            Ok(digits.chunks_exact(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect())
        }
        _ => Err(Problem::option(format!(
            "{what} must contain an even number of hexadecimal digits, without 0x; white space may stand between them"
        ))),
    }
}

/// Lower-case pairs without separators.
pub fn to_hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_digits_are_bytes() {
        assert_eq!(from_hex("bytes", "4 1\n4f ff").unwrap(), [0x41, 0x4f, 0xff]);
        assert_eq!(to_hex(&[0x41, 0x4f, 0xff]), "414fff");
        assert_eq!(from_hex("bytes", " ").unwrap(), []);
    }

    #[test]
    fn half_a_byte_a_prefix_and_other_letters_are_refused() {
        for text in ["414", "0x41", "4g", "é1", "$41"] {
            let message = from_hex("bitmap bytes", text).unwrap_err().message;
            assert!(message.starts_with("bitmap bytes must contain an even number"), "{message}");
        }
    }
}
