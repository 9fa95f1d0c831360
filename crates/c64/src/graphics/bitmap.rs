//! Bitmap modes: 8 bytes a cell, colours from screen memory and colour RAM.

use super::{Color, Grid, Picture, hires_row, multicolor_row, take};
use crate::Problem;

/// What a bitmap of a size needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bitmap {
    /// Its size.
    pub grid: Grid,
}

impl Bitmap {
    /// Bytes of the bitmap.
    pub const fn bitmap_bytes(self) -> usize {
        self.grid.cells() * 8
    }

    /// Bytes of screen memory; as many of colour RAM.
    pub const fn screen_bytes(self) -> usize {
        self.grid.cells()
    }
}

/// Standard bitmap mode: a set bit has the colour of the screen byte's high nibble, a clear one that of the low nibble.
///
/// # Errors
/// `Data` when a source is too short.
pub fn hires_bitmap(size: Bitmap, bitmap: &[u8], screen: &[u8]) -> Result<Picture, Problem> {
    let bitmap = take("bitmap", bitmap, size.bitmap_bytes())?;
    let screen = take("screen", screen, size.screen_bytes())?;
    let mut picture = size.grid.picture(0)?;
    for (((_, x, y), cell), colors) in size.grid.places().zip(bitmap.chunks_exact(8)).zip(screen) {
        for (row, bits) in cell.iter().enumerate() {
            picture.paint(x, y + row, hires_row(*bits, colors & 15, colors >> 4));
        }
    }
    Ok(picture)
}

/// Multicolor bitmap mode: pairs of bits choose the background ($D021), the screen byte's high and low nibble, and the
/// colour RAM's nibble.
///
/// # Errors
/// `Data` when a source is too short.
pub fn multicolor_bitmap(
    size: Bitmap,
    bitmap: &[u8],
    screen: &[u8],
    color: &[u8],
    background: Color,
) -> Result<Picture, Problem> {
    let bitmap = take("bitmap", bitmap, size.bitmap_bytes())?;
    let screen = take("screen", screen, size.screen_bytes())?;
    let color = take("color", color, size.screen_bytes())?;
    let mut picture = size.grid.picture(background.index())?;
    let cells = size.grid.places().zip(bitmap.chunks_exact(8)).zip(screen.iter().zip(color));
    for (((_, x, y), cell), (screen, color)) in cells {
        let colors = [background.index(), screen >> 4, screen & 15, color & 15];
        for (row, bits) in cell.iter().enumerate() {
            picture.paint(x, y + row, multicolor_row(*bits, colors));
        }
    }
    Ok(picture)
}
