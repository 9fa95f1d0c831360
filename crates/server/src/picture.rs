//! Scales a screenshot down to what models look at anyway, so that it costs no more than it shows.

use crate::errors::{ErrorCode, ToolError};
use base::limits;
use png::{BitDepth, ColorType, Decoder, Encoder, Limits, Transformations};
use std::io::Cursor;

/// A picture that fits.
#[derive(Debug)]
pub struct Shown {
    /// The file.
    pub png: Vec<u8>,
    /// Its width in pixels.
    pub width: u32,
    /// Its height in pixels.
    pub height: u32,
}

/// The picture, scaled down so that no side is longer than `longest` pixels; unchanged when none is.
///
/// # Errors
/// `server_fault` when it is no PNG that can be read within the limits.
pub fn fit(png: &[u8], longest: u32) -> Result<Shown, ToolError> {
    let wrong =
        |what: String| ToolError::new(ErrorCode::ServerFault, format!("the agent's picture cannot be read: {what}"));
    let pixels = usize::try_from(limits::MAX_SCREENSHOT_PIXELS).unwrap_or(usize::MAX);
    let mut decoder = Decoder::new_with_limits(Cursor::new(png), Limits { bytes: pixels.saturating_mul(4) });
    decoder.set_transformations(Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().map_err(|error| wrong(error.to_string()))?;
    let (width, height) = (reader.info().width, reader.info().height);
    if u64::from(width) * u64::from(height) > limits::MAX_SCREENSHOT_PIXELS {
        return Err(wrong(format!("it has {width} x {height} pixels")));
    }
    if width.max(height) <= longest {
        return Ok(Shown { png: png.to_vec(), width, height });
    }
    let size = reader.output_buffer_size().ok_or_else(|| wrong("its size is absurd".to_owned()))?;
    let mut source = vec![0; size];
    let frame = reader.next_frame(&mut source).map_err(|error| wrong(error.to_string()))?;
    let (color, depth) = reader.output_color_type();
    let scaled = shrink(&source, frame.line_size, (width, height), color.samples(), longest);
    let mut file = Vec::new();
    encode(&mut file, &scaled, color, depth).map_err(|error| wrong(error.to_string()))?;
    Ok(Shown { png: file, width: scaled.width, height: scaled.height })
}

struct Pixels {
    bytes: Vec<u8>,
    width: u32,
    height: u32,
}

fn encode(file: &mut Vec<u8>, pixels: &Pixels, color: ColorType, depth: BitDepth) -> Result<(), png::EncodingError> {
    let mut encoder = Encoder::new(file, pixels.width, pixels.height);
    encoder.set_color(color);
    encoder.set_depth(depth);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&pixels.bytes)?;
    writer.finish()
}

/// Each new pixel is the mean of the old ones that it covers.
fn shrink(source: &[u8], line: usize, (width, height): (u32, u32), samples: usize, longest: u32) -> Pixels {
    let scale = |side: u32| {
        let scaled = u64::from(side) * u64::from(longest) / u64::from(width.max(height));
        u32::try_from(scaled).unwrap_or(longest).max(1)
    };
    let (new_width, new_height) = (scale(width), scale(height));
    let span = |at: u32, new: u32, old: u32| {
        let start = u64::from(at) * u64::from(old) / u64::from(new);
        let end = u64::from(at + 1) * u64::from(old) / u64::from(new);
        start as usize..(end as usize).max(start as usize + 1)
    };
    let mut bytes = Vec::with_capacity(new_width as usize * new_height as usize * samples);
    for y in 0..new_height {
        let rows = span(y, new_height, height);
        for x in 0..new_width {
            let columns = span(x, new_width, width);
            let count = (rows.len() * columns.len()) as u64;
            for sample in 0..samples {
                let sum: u64 = rows
                    .clone()
                    .flat_map(|row| columns.clone().map(move |column| row * line + column * samples + sample))
                    .map(|at| u64::from(source.get(at).copied().unwrap_or_default()))
                    .sum();
                bytes.push(u8::try_from((sum + count / 2) / count).unwrap_or(u8::MAX));
            }
        }
    }
    Pixels { bytes, width: new_width, height: new_height }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(width: u32, height: u32, color: ColorType, bytes: Vec<u8>) -> Vec<u8> {
        let mut file = Vec::new();
        encode(&mut file, &Pixels { bytes, width, height }, color, BitDepth::Eight).unwrap();
        file
    }

    fn read(png: &[u8]) -> Vec<u8> {
        let mut reader = Decoder::new(Cursor::new(png)).read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn a_small_picture_is_left_alone() {
        let png = file(3, 2, ColorType::Rgb, (0..18).collect());
        let shown = fit(&png, 3).unwrap();
        assert_eq!((shown.png, shown.width, shown.height), (png, 3, 2));
    }

    #[test]
    fn a_large_picture_becomes_the_mean_of_its_pixels() {
        // Two pixels of each row become one: (10 + 20) / 2, (31 + 40) / 2 rounded up.
        let png = file(4, 2, ColorType::Grayscale, vec![10, 20, 31, 40, 10, 20, 31, 40]);
        let shown = fit(&png, 2).unwrap();
        assert_eq!((shown.width, shown.height), (2, 1));
        assert_eq!(read(&shown.png), [15, 36]);
        let png = file(2, 4, ColorType::Rgb, [[1, 2, 3], [3, 4, 5]].concat().repeat(4));
        let shown = fit(&png, 2).unwrap();
        assert_eq!((shown.width, shown.height), (1, 2));
        assert_eq!(read(&shown.png), [2, 3, 4, 2, 3, 4]);
    }

    #[test]
    fn rubbish_is_refused() {
        assert!(fit(b"no picture", 10).is_err());
        let png = file(4, 4, ColorType::Rgb, vec![0; 48]);
        assert!(fit(&png[..png.len() / 2], 2).is_err());
    }
}
