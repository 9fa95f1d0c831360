//! Commands 0x31, "Registers get", and 0x32, "Registers set". Both are answered by all registers, which VICE also sends
//! before it says that the machine stopped.

use super::super::error::Error;
use super::super::framing::Fields;
use super::super::session::Request;

/// Command that reads, and kind of both answers.
pub const GET: u8 = 0x31;
/// Command that writes.
pub const SET: u8 = 0x32;

/// Value of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterValue {
    /// The register's number.
    pub id: u8,
    /// Its value.
    pub value: u16,
}

/// What is sent to read.
pub fn get(memspace: u8) -> Request {
    Request::new(GET, vec![memspace])
}

/// What is sent to write.
pub fn set(memspace: u8, values: &[RegisterValue]) -> Request {
    let mut body = vec![memspace];
    body.extend(u16::try_from(values.len()).unwrap_or(u16::MAX).to_le_bytes());
    for RegisterValue { id, value } in values {
        let [low, high] = value.to_le_bytes();
        // The item's length, then the item.
        body.extend([3, *id, low, high]);
    }
    Request::new(SET, body)
}

/// # Errors
/// [`Error::Protocol`].
pub fn answer(body: &[u8]) -> Result<Vec<RegisterValue>, Error> {
    let mut fields = Fields::of(body, "registers");
    let mut values = Vec::new();
    for _ in 0..fields.word()?.min(256) {
        let mut item = fields.item()?;
        values.push(RegisterValue { id: item.byte()?, value: item.word()? });
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_has_the_manuals_bytes() {
        assert_eq!(get(0).body(), [0]);
        // One item of three bytes: register 3, the value $C000.
        assert_eq!(set(0, &[RegisterValue { id: 3, value: 0xC000 }]).body(), [0, 1, 0, 3, 3, 0x00, 0xC0]);
    }

    #[test]
    fn recorded_values_are_read() {
        // PC and A as x64sc 3.7.1 sent them, with the count made two.
        let values = answer(&[2, 0, 3, 3, 0x9A, 0xE0, 3, 0, 5, 0]).unwrap();
        assert_eq!(values, [RegisterValue { id: 3, value: 0xE09A }, RegisterValue { id: 0, value: 5 }]);
        assert!(matches!(answer(&[1, 0, 2, 3, 0]), Err(Error::Protocol(_))));
    }
}
