//! Writes a picture as a PNG of colour indices, so that the file holds exactly what was decoded.

use super::{Palette, Picture};
use crate::Problem;
use base::limits;
use png::{BitDepth, ColorType, DeflateCompression, Encoder, Filter};

/// A picture file and what is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// The file: 8-bit colour indices, a palette, no filter, no transparency.
    pub png: Vec<u8>,
    /// Colours in the file's palette: the given ones, then black up to the highest index that is used.
    pub palette_size: usize,
    /// The colour indices that occur, in order.
    pub used_indices: Vec<u8>,
    /// Those of them that the given palette does not have.
    pub unmapped_indices: Vec<u8>,
    /// Pixels with such an index.
    pub unmapped_pixels: usize,
}

/// Makes the file.
///
/// # Errors
/// `TooLarge` for a file of more than [`limits::MAX_C64_PNG_BYTES`].
pub fn encode(picture: &Picture, palette: &Palette) -> Result<Encoded, Problem> {
    let mut counts = [0_usize; 256];
    for pixel in &picture.pixels {
        if let Some(count) = counts.get_mut(usize::from(*pixel)) {
            *count += 1;
        }
    }
    let used: Vec<usize> = counts.iter().enumerate().filter(|(_, count)| **count > 0).map(|(index, _)| index).collect();
    let mut colors = palette.colors().to_vec();
    let unmapped: Vec<usize> = used.iter().copied().filter(|index| *index >= colors.len()).collect();
    let unmapped_pixels = unmapped.iter().filter_map(|index| counts.get(*index)).sum();
    let highest = used.last().map_or(0, |index| index + 1);
    if colors.len() < highest {
        colors.resize(highest, [0; 3]);
    }
    let png = write(picture, colors.concat()).map_err(|error| Problem::too_large(format!("no PNG: {error}")))?;
    let most = limits::MAX_C64_PNG_BYTES;
    if png.len() > most {
        return Err(Problem::too_large(format!("the PNG has {} bytes; {most} are allowed", png.len())));
    }
    let bytes = |indices: Vec<usize>| indices.into_iter().filter_map(|index| u8::try_from(index).ok()).collect();
    Ok(Encoded {
        png,
        palette_size: colors.len(),
        used_indices: bytes(used),
        unmapped_indices: bytes(unmapped),
        unmapped_pixels,
    })
}

fn write(picture: &Picture, palette: Vec<u8>) -> Result<Vec<u8>, png::EncodingError> {
    let side = |pixels: usize| u32::try_from(pixels).unwrap_or(u32::MAX);
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, side(picture.width), side(picture.height));
    encoder.set_color(ColorType::Indexed);
    encoder.set_depth(BitDepth::Eight);
    encoder.set_palette(palette);
    // A quarter of the time that the default takes for noise, and real pictures stay small.
    encoder.set_deflate_compression(DeflateCompression::Level(4));
    encoder.set_filter(Filter::NoFilter);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&picture.pixels)?;
    writer.finish()?;
    Ok(file)
}
