//! Command 0x84, "Display get".

use base::limits;

use super::super::error::Error;
use super::super::framing::Fields;
use super::super::session::Request;

const GET: u8 = 0x84;

/// Form of the picture: one byte for each pixel, an index into the palette.
const INDEXED_8: u8 = 0;

/// Bytes that the answer of builds before the mended one is short of: pixels of the border's last line.
const SHORT: usize = 4;

/// What the video chip shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Display {
    /// Pixels in a row, the border included.
    pub width: u16,
    /// Rows, the border included.
    pub height: u16,
    /// First column inside the border.
    pub x: u16,
    /// First row inside the border, as VICE says. On every VICE tried (3.7.1, revision 46200) the picture starts one above.
    pub y: u16,
    /// Columns inside the border.
    pub inner_width: u16,
    /// Rows inside the border.
    pub inner_height: u16,
    /// The pixels, row by row.
    pub pixels: Vec<u8>,
    /// Pixels at the end that VICE did not send, and that repeat the last one sent.
    pub missing: usize,
}

/// What is sent; `use_vic` matters for machines with two video chips.
pub fn request(use_vic: bool) -> Request {
    Request::new(GET, vec![u8::from(use_vic), INDEXED_8])
}

/// # Errors
/// [`Error::Protocol`].
pub fn answer(body: &[u8]) -> Result<Display, Error> {
    let mut fields = Fields::of(body, "a display");
    // Newer builds may have more fields; the number of pixels stands behind them.
    let length = usize::try_from(fields.long()?).unwrap_or(usize::MAX);
    let mut head = Fields::of(fields.bytes(length)?, "a display");
    let (width, height) = (head.word()?, head.word()?);
    let (x, y) = (head.word()?, head.word()?);
    let (inner_width, inner_height) = (head.word()?, head.word()?);
    let bits = head.byte()?;
    let claimed = usize::try_from(fields.long()?).unwrap_or(usize::MAX);
    let wanted = usize::from(width) * usize::from(height);
    if bits != 8 || wanted == 0 || wanted > limits::MAX_VICE_DISPLAY_PIXELS || claimed < wanted {
        return Err(Error::Protocol(format!(
            "a display of {width} by {height} pixels of {bits} bits in {claimed} bytes"
        )));
    }
    let inside = |from: u16, size: u16, whole: u16| u32::from(from) + u32::from(size) <= u32::from(whole);
    if !inside(x, inner_width, width) || !inside(y, inner_height, height) {
        return Err(Error::Protocol(format!(
            "a display of {width} by {height} pixels whose inside, {inner_width} by {inner_height} at {x},{y}, is not in it"
        )));
    }
    let sent = fields.rest();
    let mut pixels = sent.get(..wanted).unwrap_or(sent).to_vec();
    let missing = wanted - pixels.len();
    if missing > SHORT {
        return Err(Error::Protocol(format!("{} pixels of a display of {wanted}", pixels.len())));
    }
    let last = pixels.last().copied().unwrap_or_default();
    pixels.resize(wanted, last);
    Ok(Display { width, height, x, y, inner_width, inner_height, pixels, missing })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(width: u16, height: u16, sent: usize) -> Vec<u8> {
        let mut body = 13_u32.to_le_bytes().to_vec();
        for word in [width, height, 1, 2, 2, 3] {
            body.extend(word.to_le_bytes());
        }
        body.push(8);
        body.extend((u32::from(width) * u32::from(height)).to_le_bytes());
        body.extend((0..sent).map(|at| at as u8));
        body
    }

    #[test]
    fn a_full_and_a_short_answer_are_read() {
        // 8 * 6 = 48.
        let full = answer(&body(8, 6, 48)).unwrap();
        assert_eq!((full.width, full.height, full.x, full.y, full.missing), (8, 6, 1, 2, 0));
        assert_eq!(full.pixels, (0..48).collect::<Vec<u8>>());
        let short = answer(&body(8, 6, 44)).unwrap();
        assert_eq!((short.missing, &short.pixels[40..]), (4, &[40, 41, 42, 43, 43, 43, 43, 43][..]));
    }

    #[test]
    fn the_head_that_3_7_1_sends_is_read() {
        // Recorded from x64sc 3.7.1: 504 by 312 pixels, the inside 320 by 200 at 136,51, and 157,248 = 504 * 312 bytes.
        let head = b"\x0d\0\0\0\xf8\x01\x38\x01\x88\0\x33\0\x40\x01\xc8\0\x08\x40\x66\x02\0";
        let display = answer(&[&head[..], &[14; 157_244]].concat()).unwrap();
        assert_eq!((display.width, display.height, display.x, display.y), (504, 312, 136, 51));
        assert_eq!((display.inner_width, display.inner_height, display.missing), (320, 200, 4));
    }

    #[test]
    fn what_cannot_be_a_display_is_refused() {
        for bad in [body(8, 6, 43), body(0, 6, 0), body(2, 6, 12), body(8, 4, 32), vec![13, 0, 0, 0, 1]] {
            assert!(matches!(answer(&bad), Err(Error::Protocol(_))), "{bad:?}");
        }
        // 0xFFFF * 0xFFFF pixels are not allocated.
        assert!(matches!(answer(&body(0xFFFF, 0xFFFF, 0)), Err(Error::Protocol(_))));
    }

    #[test]
    fn what_is_sent_has_the_manuals_bytes() {
        assert_eq!(request(true).body(), [1, 0]);
    }
}
