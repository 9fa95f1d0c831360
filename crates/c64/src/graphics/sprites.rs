//! Sprites: 24 x 21 pixels of 63 bytes each, on a sheet.

use super::{Color, Picture, hires_row, multicolor_row, take, within};
use crate::Problem;
use base::limits;

/// Pixels of a sprite from left to right.
const WIDTH: usize = 24;
/// Pixels of a sprite from top to bottom.
const HEIGHT: usize = 21;
/// Bytes of a sprite.
const BYTES: usize = 63;

/// The two colours that all multicolor sprites share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MulticolorSprites {
    /// Colour of the bits 01 ($D025).
    pub multicolor_0: Color,
    /// Colour of the bits 11 ($D026).
    pub multicolor_1: Color,
}

impl MulticolorSprites {
    /// The colours, when multicolor is on.
    ///
    /// # Errors
    /// `Option` when it is on and a colour is missing or out of range.
    pub fn of(on: bool, multicolor_0: Option<i64>, multicolor_1: Option<i64>) -> Result<Option<Self>, Problem> {
        if !on {
            return Ok(None);
        }
        let colors = Self {
            multicolor_0: Color::needed("multicolor_0", multicolor_0)?,
            multicolor_1: Color::needed("multicolor_1", multicolor_1)?,
        };
        Ok(Some(colors))
    }
}

/// A sheet of sprites.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sprites {
    colors: Vec<Color>,
    stride: usize,
    columns: usize,
    background: Color,
    multicolor: Option<MulticolorSprites>,
}

impl Sprites {
    /// A sheet of `count` sprites, `columns` in a row, each in its colour.
    ///
    /// # Errors
    /// `Option` for numbers out of range, and for more or fewer colours than sprites.
    pub fn new(
        count: i64,
        colors: &[i64],
        stride: i64,
        columns: i64,
        background: Color,
        multicolor: Option<MulticolorSprites>,
    ) -> Result<Self, Problem> {
        let count = within("sprite_count", count, limits::MAX_C64_SPRITES)?;
        let columns = within("sheet_columns", columns, limits::MAX_C64_CELLS_A_SIDE)?;
        let stride = match stride {
            63 => BYTES,
            64 => BYTES + 1,
            other => {
                return Err(Problem::option(format!(
                    "sprite_stride must be 64 for padded definition blocks or 63 for packed records, not {other}"
                )));
            }
        };
        if colors.len() != count {
            return Err(Problem::option(format!(
                "sprite_colors holds {} entries but sprite_count is {count}",
                colors.len()
            )));
        }
        let colors = colors
            .iter()
            .enumerate()
            .map(|(at, color)| Color::new(&format!("sprite_colors[{at}]"), *color))
            .collect::<Result<_, _>>()?;
        Ok(Self { colors, stride, columns, background, multicolor })
    }

    /// Bytes that they take: the last one without its padding.
    pub fn bytes(&self) -> usize {
        self.colors.len().saturating_sub(1) * self.stride + BYTES
    }
}

/// Draws the sheet: clear bits are transparent and shown as the background; in multicolor 01 is $D025, 10 the sprite's
/// own colour, and 11 $D026.
///
/// # Errors
/// `Data` when the source is too short.
pub fn sprites(sheet: &Sprites, bytes: &[u8]) -> Result<Picture, Problem> {
    let bytes = take("sprites", bytes, sheet.bytes())?;
    let rows = sheet.colors.len().div_ceil(sheet.columns);
    let behind = sheet.background.index();
    let mut picture = Picture::new(sheet.columns * WIDTH, rows * HEIGHT, behind)?;
    for (number, (sprite, color)) in bytes.chunks(sheet.stride).zip(&sheet.colors).enumerate() {
        let (left, top) = (number % sheet.columns * WIDTH, number / sheet.columns * HEIGHT);
        for (at, bits) in sprite.iter().take(BYTES).enumerate() {
            let row = match sheet.multicolor {
                None => {
                    picture.transparent += bits.count_zeros() as usize;
                    hires_row(*bits, behind, color.index())
                }
                Some(shared) => {
                    let pairs = [*bits & 3, bits >> 2 & 3, bits >> 4 & 3, bits >> 6];
                    picture.transparent += pairs.iter().filter(|pair| **pair == 0).count() * 2;
                    multicolor_row(
                        *bits,
                        [behind, shared.multicolor_0.index(), color.index(), shared.multicolor_1.index()],
                    )
                }
            };
            picture.paint(left + at % 3 * 8, top + at / 3, row);
        }
    }
    Ok(picture)
}
