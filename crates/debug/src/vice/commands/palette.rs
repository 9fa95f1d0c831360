//! Command 0x91, "Palette get".

use super::super::error::Error;
use super::super::framing::Fields;
use super::super::session::Request;

const GET: u8 = 0x91;

/// What is sent; `use_vic` matters for machines with two video chips.
pub fn request(use_vic: bool) -> Request {
    Request::new(GET, vec![u8::from(use_vic)])
}

/// Red, green and blue of each colour.
///
/// # Errors
/// [`Error::Protocol`].
pub fn answer(body: &[u8]) -> Result<Vec<[u8; 3]>, Error> {
    let mut fields = Fields::of(body, "a palette");
    let mut colours = Vec::new();
    // A pixel has eight bits.
    for _ in 0..fields.word()?.min(256) {
        let mut item = fields.item()?;
        colours.push([item.byte()?, item.byte()?, item.byte()?]);
    }
    Ok(colours)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_and_answered_has_the_manuals_bytes() {
        assert_eq!(request(true).body(), [1]);
        assert_eq!(answer(&[2, 0, 3, 0, 0, 0, 3, 0xFF, 0xFE, 0xFD]).unwrap(), [[0, 0, 0], [0xFF, 0xFE, 0xFD]]);
        assert!(matches!(answer(&[1, 0, 3, 0]), Err(Error::Protocol(_))));
    }
}
