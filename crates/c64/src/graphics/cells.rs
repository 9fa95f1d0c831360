//! Character modes: sheets of a character set, and screens of characters.

use super::{Color, Grid, Picture, hires_row, multicolor_row, take, within};
use crate::Problem;
use base::limits;

/// Bytes of a glyph.
pub const GLYPH_BYTES: usize = 8;

/// The two further background colours of multicolor text ($D022, $D023).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Multicolor {
    /// Colour of the bits 01.
    pub background_1: Color,
    /// Colour of the bits 10.
    pub background_2: Color,
}

impl Multicolor {
    /// The colours, when multicolor is on.
    ///
    /// # Errors
    /// `Option` when it is on and a colour is missing or out of range.
    pub fn of(on: bool, background_1: Option<i64>, background_2: Option<i64>) -> Result<Option<Self>, Problem> {
        if !on {
            return Ok(None);
        }
        let colors = Self {
            background_1: Color::needed("background_1", background_1)?,
            background_2: Color::needed("background_2", background_2)?,
        };
        Ok(Some(colors))
    }
}

/// The rows of a glyph in a colour: with multicolor on, bit 3 of the colour chooses between pairs of bits with eight
/// colours, and single bits with eight colours.
fn glyph_row(bits: u8, background: Color, color: u8, multicolor: Option<Multicolor>) -> [u8; 8] {
    match multicolor {
        None => hires_row(bits, background.index(), color),
        Some(_) if color & 8 == 0 => hires_row(bits, background.index(), color & 7),
        Some(more) => {
            multicolor_row(bits, [background.index(), more.background_1.index(), more.background_2.index(), color & 7])
        }
    }
}

/// A sheet of glyphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charset {
    glyphs: usize,
    columns: usize,
    foreground: Color,
    background: Color,
    multicolor: Option<Multicolor>,
}

impl Charset {
    /// A sheet of `glyphs` glyphs, `columns` in a row.
    ///
    /// # Errors
    /// `Option` for more than [`limits::MAX_C64_GLYPHS`] glyphs or [`limits::MAX_C64_CELLS_A_SIDE`] columns.
    pub fn new(
        glyphs: i64,
        columns: i64,
        foreground: Color,
        background: Color,
        multicolor: Option<Multicolor>,
    ) -> Result<Self, Problem> {
        let glyphs = within("glyph_count", glyphs, limits::MAX_C64_GLYPHS)?;
        let columns = within("sheet_columns", columns, limits::MAX_C64_CELLS_A_SIDE)?;
        Ok(Self { glyphs, columns, foreground, background, multicolor })
    }

    /// Glyphs of the sheet.
    pub const fn glyphs(self) -> usize {
        self.glyphs
    }

    /// Bytes that they take.
    pub const fn bytes(self) -> usize {
        self.glyphs * GLYPH_BYTES
    }
}

/// Draws the sheet; cells without a glyph have the background's colour. With multicolor on, every glyph is drawn in pairs
/// of bits, and 11 is the foreground's lower three bits.
///
/// # Errors
/// `Data` when the source is too short.
pub fn charset(sheet: Charset, bytes: &[u8]) -> Result<Picture, Problem> {
    let bytes = take("charset", bytes, sheet.bytes())?;
    let grid = Grid { columns: sheet.columns, rows: sheet.glyphs.div_ceil(sheet.columns) };
    let mut picture = grid.picture(sheet.background.index())?;
    // A sheet has no colour RAM, so bit 3, which would choose the mode of a cell, is taken as set.
    let color = if sheet.multicolor.is_some() { sheet.foreground.index() | 8 } else { sheet.foreground.index() };
    for ((_, x, y), glyph) in grid.places().zip(bytes.chunks_exact(GLYPH_BYTES)) {
        for (row, bits) in glyph.iter().enumerate() {
            picture.paint(x, y + row, glyph_row(*bits, sheet.background, color, sheet.multicolor));
        }
    }
    Ok(picture)
}

/// A screen of characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CharScreen {
    /// Its size.
    pub grid: Grid,
    /// Colour behind the characters ($D021).
    pub background: Color,
    /// Colour of the characters where there is no colour RAM.
    pub foreground: Color,
    /// The further colours of multicolor text; needs colour RAM.
    pub multicolor: Option<Multicolor>,
}

/// Bytes of the character set that a screen shows: up to the glyph with the highest code.
pub fn charset_bytes_for(screen: &[u8]) -> usize {
    screen.iter().max().map_or(0, |highest| (usize::from(*highest) + 1) * GLYPH_BYTES)
}

/// Draws the screen.
///
/// # Errors
/// `Option` for multicolor without colour RAM; `Data` when a source is too short.
pub fn char_screen(size: CharScreen, screen: &[u8], charset: &[u8], color: Option<&[u8]>) -> Result<Picture, Problem> {
    if size.multicolor.is_some() && color.is_none() {
        return Err(Problem::option(
            "color is required when multicolor is true: colour-RAM bit 3 selects each cell's mode",
        ));
    }
    let screen = take("screen", screen, size.grid.cells())?;
    let charset = take("charset", charset, charset_bytes_for(screen))?;
    let color = color.map(|color| take("color", color, size.grid.cells())).transpose()?;
    let mut picture = size.grid.picture(size.background.index())?;
    for ((cell, x, y), code) in size.grid.places().zip(screen) {
        let color = match color {
            Some(color) => color.get(cell).copied().unwrap_or_default() & 15,
            None => size.foreground.index(),
        };
        let from = usize::from(*code) * GLYPH_BYTES;
        let glyph = charset.get(from..from + GLYPH_BYTES).unwrap_or_default();
        for (row, bits) in glyph.iter().enumerate() {
            picture.paint(x, y + row, glyph_row(*bits, size.background, color, size.multicolor));
        }
    }
    Ok(picture)
}
