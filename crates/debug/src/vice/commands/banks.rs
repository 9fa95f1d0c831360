//! Command 0x82, "Banks available".

use base::limits;

use super::super::error::Error;
use super::super::framing::Fields;
use super::super::session::Request;

const BANKS: u8 = 0x82;

/// A view of memory. Several names can stand for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bank {
    /// Its number.
    pub id: u16,
    /// Its name.
    pub name: String,
}

/// What is sent.
pub const fn request() -> Request {
    Request::new(BANKS, Vec::new())
}

/// # Errors
/// [`Error::Protocol`].
pub fn answer(body: &[u8]) -> Result<Vec<Bank>, Error> {
    let mut fields = Fields::of(body, "a list of banks");
    let count = usize::from(fields.word()?);
    if count > limits::MAX_VICE_BANKS {
        return Err(Error::Protocol(format!("{count} banks, above the limit of {}", limits::MAX_VICE_BANKS)));
    }
    let mut banks = Vec::new();
    for _ in 0..count {
        let mut item = fields.item()?;
        banks.push(Bank { id: item.word()?, name: item.text()? });
    }
    Ok(banks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_banks_of_3_7_1_are_read() {
        // Recorded from x64sc 3.7.1, with the count made two.
        let body = b"\x02\x00\x0a\x00\x00\x07default\x06\x00\x00\x03cpu";
        let named = |id, name: &str| Bank { id, name: name.to_owned() };
        assert_eq!(answer(body).unwrap(), [named(0, "default"), named(0, "cpu")]);
        assert!(matches!(answer(b"\x01\x00\x02\x00\x00"), Err(Error::Protocol(_))));
        assert!(matches!(answer(b"\xff\xff"), Err(Error::Protocol(_))));
    }
}
