//! Pictures as the VIC-II shows them, from the bytes in memory: one colour index for each pixel, and the PNG of it.
//!
//! Colour rules are those of the Commodore 64 Programmer's Reference Guide, chapter 3. Pictures are never wider than the
//! bytes say: multicolor pixels are written twice, as they are twice as wide on the screen.

mod bitmap;
mod cells;
mod palette;
mod png_file;
mod sprites;

pub use bitmap::{Bitmap, hires_bitmap, multicolor_bitmap};
pub use cells::{CharScreen, Charset, GLYPH_BYTES, Multicolor, char_screen, charset, charset_bytes_for};
pub use palette::{Color, PEPTO, Palette, Rgb};
pub use png_file::{Encoded, encode};
pub use sprites::{MulticolorSprites, Sprites, sprites};

use crate::Problem;
use base::limits;

/// A decoded picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Width in pixels.
    pub width: usize,
    /// Height in pixels.
    pub height: usize,
    /// The colour index of each pixel, row by row.
    pub pixels: Vec<u8>,
    /// Pixels of sprites through which one sees what is behind; 0 for everything else.
    pub transparent: usize,
}

impl Picture {
    /// A picture of one colour, which is painted over cell by cell.
    fn new(width: usize, height: usize, color: u8) -> Result<Self, Problem> {
        let most = limits::MAX_C64_PIXELS;
        match width.checked_mul(height) {
            Some(pixels) if pixels <= most => Ok(Self { width, height, pixels: vec![color; pixels], transparent: 0 }),
            _ => {
                Err(Problem::too_large(format!("the picture would have {width} x {height} pixels; {most} are allowed")))
            }
        }
    }

    /// Paints eight pixels from (`x`, `y`) on to the right.
    fn paint(&mut self, x: usize, y: usize, row: [u8; 8]) {
        let from = y * self.width + x;
        if let Some(pixels) = self.pixels.get_mut(from..from + 8) {
            pixels.copy_from_slice(&row);
        }
    }
}

/// Columns and rows of 8 x 8 cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    columns: usize,
    rows: usize,
}

impl Grid {
    /// A grid of that size; the screen of the machine is 40 x 25.
    ///
    /// # Errors
    /// `Option` for more than [`limits::MAX_C64_CELLS_A_SIDE`] in a direction or [`limits::MAX_C64_CELLS`] together.
    pub fn new(columns: i64, rows: i64) -> Result<Self, Problem> {
        let columns = within("columns", columns, limits::MAX_C64_CELLS_A_SIDE)?;
        let rows = within("rows", rows, limits::MAX_C64_CELLS_A_SIDE)?;
        let (cells, most) = (columns * rows, limits::MAX_C64_CELLS);
        if cells > most {
            return Err(Problem::option(format!(
                "columns * rows is {cells}, which exceeds the {most}-cell hard maximum"
            )));
        }
        Ok(Self { columns, rows })
    }

    /// Cells.
    pub const fn cells(self) -> usize {
        self.columns * self.rows
    }

    /// Each cell's number and the place of its first pixel.
    fn places(self) -> impl Iterator<Item = (usize, usize, usize)> {
        (0..self.cells()).map(move |cell| (cell, cell % self.columns * 8, cell / self.columns * 8))
    }

    fn picture(self, color: u8) -> Result<Picture, Problem> {
        Picture::new(self.columns * 8, self.rows * 8, color)
    }
}

/// A number from 1 to `most`.
fn within(name: &str, value: i64, most: usize) -> Result<usize, Problem> {
    usize::try_from(value)
        .ok()
        .filter(|value| (1..=most).contains(value))
        .ok_or_else(|| Problem::option(format!("{name} must be from 1 to {most}, not {value}")))
}

/// The first `needed` bytes of a source.
fn take<'a>(name: &str, bytes: &'a [u8], needed: usize) -> Result<&'a [u8], Problem> {
    bytes
        .get(..needed)
        .ok_or_else(|| Problem::data(format!("{name} supplies {} bytes but {needed} are required", bytes.len())))
}

/// Eight pixels of one colour or the other, the leftmost from the highest bit.
fn hires_row(bits: u8, clear: u8, set: u8) -> [u8; 8] {
    std::array::from_fn(|x| if bits << x & 0x80 == 0 { clear } else { set })
}

/// Four pairs of pixels, each of the colour that its two bits choose.
fn multicolor_row(bits: u8, colors: [u8; 4]) -> [u8; 8] {
    let [c0, c1, c2, c3] = colors;
    std::array::from_fn(|x| match bits >> (6 - x / 2 * 2) & 3 {
        0 => c0,
        1 => c1,
        2 => c2,
        _ => c3,
    })
}
