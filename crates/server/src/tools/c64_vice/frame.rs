//! A picture of the machine's screen as a connector gives it, checked in every number before it is drawn.

use base::limits;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use c64::graphics::{Palette, Picture, Rgb};
use serde_json::{Map, Value};

/// A rectangle of pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Area {
    pub x: usize,
    pub y: usize,
    pub width: usize,
    pub height: usize,
}

/// A whole frame, the border included.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Frame {
    whole: Area,
    pixels: Vec<u8>,
    /// What is inside the border.
    pub inner: Area,
    /// Whether `inner` is one row above what VICE said, which the connector had not corrected.
    pub corrected: bool,
    /// The row that VICE said.
    pub said: usize,
    /// Pixels at the end that VICE did not send.
    pub missing: u64,
    pub palette: Palette,
}

impl Frame {
    /// Takes the result of `capture_display`.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn of(result: &Map<String, Value>) -> Result<Self, String> {
        let whole = Area { x: 0, y: 0, width: number(result, "width")?, height: number(result, "height")? };
        let inside = result.get("inner").and_then(Value::as_object).ok_or("there is no inner")?;
        let mut inner = Area {
            x: number(inside, "x_offset")?,
            y: number(inside, "y_offset")?,
            width: number(inside, "width")?,
            height: number(inside, "height")?,
        };
        let pixels = whole.width.checked_mul(whole.height).filter(|pixels| *pixels <= limits::MAX_VICE_DISPLAY_PIXELS);
        let pixels = pixels.filter(|pixels| *pixels > 0).ok_or_else(|| {
            format!(
                "a frame of {} x {} pixels; 1 to {} are allowed",
                whole.width,
                whole.height,
                limits::MAX_VICE_DISPLAY_PIXELS
            )
        })?;
        let bits = number(result, "bits_per_pixel")?;
        let claimed = number(result, "buffer_length")?;
        let buffer = result.get("buffer_base64").and_then(Value::as_str).ok_or("there is no buffer_base64")?;
        let buffer = STANDARD.decode(buffer).map_err(|error| format!("buffer_base64 is none: {error}"))?;
        if bits != 8 || claimed != pixels || buffer.len() != pixels {
            return Err(format!(
                "{} bytes of {bits} bits a pixel, said to be {claimed}, for {} x {} pixels",
                buffer.len(),
                whole.width,
                whole.height
            ));
        }
        // On every VICE tried the picture starts one row above what VICE says; a connector that corrects it tells that row too.
        let told = result.contains_key("reported_y_offset");
        let said = if told { number(result, "reported_y_offset")? } else { inner.y };
        let corrected = !told && inner.y > 0;
        if corrected {
            inner.y -= 1;
        }
        let fits =
            |from: usize, size: usize, of: usize| size > 0 && from.checked_add(size).is_some_and(|end| end <= of);
        if !fits(inner.x, inner.width, whole.width) || !fits(inner.y, inner.height, whole.height) {
            return Err(format!(
                "the inner rectangle, {} x {} at {}, {}, is not inside the frame of {} x {}",
                inner.width, inner.height, inner.x, inner.y, whole.width, whole.height
            ));
        }
        let colors = result.get("palette").and_then(Value::as_array).ok_or("there is no palette")?;
        let colors: Option<Vec<Rgb>> = colors.iter().map(color).collect();
        let colors = colors.ok_or("a colour of the palette is not {r, g, b} of 0 to 255 each")?;
        let palette = Palette::new(colors).map_err(|problem| problem.message)?;
        let highest = buffer.iter().copied().max().unwrap_or_default();
        if usize::from(highest) >= palette.colors().len() {
            return Err(format!("a pixel has colour {highest}, and the palette {} colours", palette.colors().len()));
        }
        let missing = result.get("missing_bytes").and_then(Value::as_u64).unwrap_or_default();
        Ok(Self { whole, pixels: buffer, inner, corrected, said, missing, palette })
    }

    /// What is inside the border, or everything.
    pub fn picture(&self, crop: bool) -> Picture {
        let area = if crop { self.inner } else { self.whole };
        let rows = self.pixels.chunks_exact(self.whole.width.max(1)).skip(area.y).take(area.height);
        let pixels = rows.flat_map(|row| row.iter().skip(area.x).take(area.width)).copied().collect();
        Picture { width: area.width, height: area.height, pixels, transparent: 0 }
    }
}

fn number(of: &Map<String, Value>, key: &str) -> Result<usize, String> {
    let value = of.get(key).and_then(Value::as_u64).and_then(|value| usize::try_from(value).ok());
    value.ok_or_else(|| format!("{key} is {}, not a number", of.get(key).unwrap_or(&Value::Null)))
}

fn color(given: &Value) -> Option<Rgb> {
    let channel = |key: &str| u8::try_from(given.get(key)?.as_u64()?).ok();
    Some([channel("r")?, channel("g")?, channel("b")?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// 4 x 4 pixels whose colours are 0 to 15, with 2 x 2 inside at 1, 2.
    fn result() -> Map<String, Value> {
        let pixels: Vec<u8> = (0..16).collect();
        let palette: Vec<Value> = (0..16).map(|value| json!({"r": value, "g": 0, "b": 255})).collect();
        let inner = json!({"x_offset": 1, "y_offset": 2, "width": 2, "height": 2});
        let result = json!({"width": 4, "height": 4, "inner": inner, "bits_per_pixel": 8, "buffer_length": 16,
            "buffer_base64": STANDARD.encode(pixels), "palette": palette});
        result.as_object().unwrap().clone()
    }

    #[test]
    fn the_picture_starts_one_row_above_what_vice_says_unless_that_was_corrected() {
        let raw = Frame::of(&result()).unwrap();
        assert!(raw.corrected && raw.said == 2);
        // Rows 1 and 2, columns 1 and 2, of rows of four.
        assert_eq!(raw.picture(true).pixels, [4 + 1, 4 + 2, 8 + 1, 8 + 2]);
        let mut told = result();
        told.insert("reported_y_offset".to_owned(), json!(3));
        let own = Frame::of(&told).unwrap();
        assert!(!own.corrected && own.said == 3);
        assert_eq!(own.picture(true).pixels, [8 + 1, 8 + 2, 12 + 1, 12 + 2]);
        let whole = own.picture(false);
        assert_eq!((whole.width, whole.height, whole.pixels), (4, 4, (0..16).collect()));
        assert_eq!(own.palette.colors()[3], [3, 0, 255]);
    }

    #[test]
    fn what_does_not_fit_together_is_refused() {
        let with = |key: &str, value: Value| {
            let mut changed = result();
            changed.insert(key.to_owned(), value);
            Frame::of(&changed).unwrap_err()
        };
        let inner = |x: u64, width: u64| json!({"x_offset": x, "y_offset": 2, "width": width, "height": 2});
        for (key, value, words) in [
            ("width", json!(5), "16 bytes of 8 bits a pixel, said to be 16, for 5 x 4"),
            ("width", json!(0), "a frame of 0 x 4 pixels"),
            ("width", json!(u64::MAX), "a frame of"),
            ("height", json!("4"), "height is \"4\", not a number"),
            ("bits_per_pixel", json!(4), "of 4 bits a pixel"),
            ("buffer_length", json!(17), "said to be 17"),
            ("buffer_base64", json!("!"), "buffer_base64 is none"),
            ("buffer_base64", Value::Null, "there is no buffer_base64"),
            ("inner", Value::Null, "there is no inner"),
            ("inner", inner(3, 2), "the inner rectangle, 2 x 2 at 3, 1, is not inside"),
            ("inner", inner(0, 0), "the inner rectangle, 0 x 2"),
            ("inner", inner(u64::MAX, 2), "is not inside the frame"),
            ("reported_y_offset", json!("51"), "reported_y_offset is \"51\", not a number"),
            ("palette", json!([]), "palette must be a non-empty array"),
            ("palette", json!([{"r": 0, "g": 0, "b": 256}]), "a colour of the palette"),
            ("palette", json!([{"r": 0, "g": 0, "b": 0}]), "a pixel has colour 15, and the palette 1 colours"),
        ] {
            let message = with(key, value);
            assert!(message.contains(words), "{key}: {message}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_frame_of_any_numbers_is_drawn_or_refused(
            numbers in proptest::collection::vec(proptest::prelude::prop_oneof![0_u64..6, proptest::prelude::any::<u64>()], 7),
            bytes in proptest::collection::vec(0_u8..4, 0..20),
        ) {
            let [width, height, x, y, inner_width, inner_height, length] = numbers.try_into().unwrap();
            let inner = json!({"x_offset": x, "y_offset": y, "width": inner_width, "height": inner_height});
            let result = json!({"width": width, "height": height, "inner": inner, "bits_per_pixel": 8,
                "buffer_length": length, "buffer_base64": STANDARD.encode(bytes),
                "palette": vec![json!({"r": 1, "g": 2, "b": 3}); 4]});
            if let Ok(frame) = Frame::of(result.as_object().unwrap()) {
                for crop in [true, false] {
                    let picture = frame.picture(crop);
                    proptest::prop_assert_eq!(picture.pixels.len(), picture.width * picture.height);
                }
            }
        }
    }
}
