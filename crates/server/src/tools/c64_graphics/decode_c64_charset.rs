//! `decode_c64_charset`: shows the glyphs of a character set.

use super::prelude::*;
use c64::graphics::{Charset, Multicolor};

/// The tool.
#[derive(Debug)]
pub struct DecodeC64Charset;

/// Where the glyphs are.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// 8 bytes a glyph.
    charset: Given,
    /// Glyphs, 1 to 256; default 256.
    glyph_count: Option<i64>,
    /// Glyphs in a row, 1 to 64; default 16.
    sheet_columns: Option<i64>,
    /// Colour of set bits; with `multicolor` its lower three bits are that of the bits 11; default 1.
    foreground: Option<i64>,
    /// Colour of clear bits; default 0.
    background: Option<i64>,
    /// Two bits a pixel.
    #[serde(default)]
    multicolor: bool,
    /// Colour of the bits 01 ($D022); required with `multicolor`.
    background_1: Option<i64>,
    /// Colour of the bits 10 ($D023); required with `multicolor`.
    background_2: Option<i64>,
    /// 1 to 256 colours, each `#rrggbb` or `[r, g, b]`; default is Pepto's PAL palette.
    palette: Option<Vec<PaletteColor>>,
    /// Write the PNG here too, below the workspace.
    output_path: Option<String>,
    /// Replace a file that is there.
    #[serde(default)]
    overwrite: bool,
    /// Of no effect here: one source is read at once.
    #[serde(default, rename = "allow_non_atomic_vice_reads")]
    _allow_non_atomic_vice_reads: bool,
}

impl Tool for DecodeC64Charset {
    const NAME: &'static str = "decode_c64_charset";
    const DESCRIPTION: &'static str =
        sources!("Decode a C64 character set (font) to a PNG sheet of glyphs. A .64c file is a file with prg: true.");
    const EFFECT: Effect = DRAWS;
    const BRIEF: Option<&'static [&'static str]> = Some(&[]);
    type Params = Params;
    type Output = Picture;

    async fn run(context: &Context, params: Params) -> Result<Picture, ToolError> {
        let sheet = Charset::new(
            params.glyph_count.unwrap_or(256),
            params.sheet_columns.unwrap_or(16),
            Color::new("foreground", params.foreground.unwrap_or(1))?,
            Color::new("background", params.background.unwrap_or(0))?,
            Multicolor::of(params.multicolor, params.background_1, params.background_2)?,
        )?;
        let charset = params.charset.check("charset")?;
        charset.can_have("charset", sheet.bytes())?;
        let wanted =
            Wanted::check(context, params.palette.as_deref(), params.output_path.as_deref(), params.overwrite)?;
        let charset = charset.read(context, "charset", sheet.bytes()).await?;
        let picture = graphics::charset(sheet, &charset.bytes)?;
        let indices: Vec<usize> = (0..sheet.glyphs()).collect();
        let more = Map::from_iter([("glyph_indices".to_owned(), Value::from(indices))]);
        wanted.finish(context, "charset", &picture, &[("charset", &charset)], more)
    }
}

#[cfg(test)]
mod tests {
    use crate::tools::c64_shared::tests::{Caller, inline};
    use serde_json::json;

    const TOOL: &str = "decode_c64_charset";

    #[tokio::test]
    async fn a_sheet_has_its_glyphs_in_order() {
        // Two glyphs in one row: all set, none set.
        let bytes = [[0xff; 8], [0; 8]].concat();
        let arguments =
            json!({"charset": inline(&bytes), "glyph_count": 2, "sheet_columns": 2, "foreground": 7, "background": 5});
        let (pixels, facts) = Caller::new().picture(TOOL, arguments).await.unwrap();
        assert_eq!(pixels, [[7; 8], [5; 8]].concat().repeat(8));
        assert_eq!((&facts["mode"], &facts["glyph_indices"]), (&json!("charset"), &json!([0, 1])));
    }

    #[tokio::test]
    async fn multicolor_glyphs_have_four_colors() {
        let arguments = json!({"charset": inline(&[0b0001_1011; 8]), "glyph_count": 1, "sheet_columns": 1, "foreground": 13,
            "background": 9, "multicolor": true, "background_1": 1, "background_2": 2});
        let (pixels, _) = Caller::new().picture(TOOL, arguments).await.unwrap();
        // 13 is 8 + 5.
        assert_eq!(pixels, [9, 9, 1, 1, 2, 2, 5, 5].repeat(8));
    }

    #[tokio::test]
    async fn a_64c_file_says_what_it_is() {
        let mut file = vec![0x00, 0x30];
        file.extend([0xf0; 2_048]);
        let caller = Caller::with_files(&[("font.64c", &file)]);
        let source = json!({"kind": "file", "path": "font.64c", "prg": true});
        let (pixels, facts) = caller.picture(TOOL, json!({"charset": source})).await.unwrap();
        assert_eq!(pixels, [1, 1, 1, 1, 0, 0, 0, 0].repeat(256 * 8));
        assert!(facts["hint"].as_str().unwrap().contains("a character set with a load address that loads at $3000"));
    }

    #[tokio::test]
    async fn bad_input_is_named() {
        let with = |more: serde_json::Value| {
            let mut arguments = json!({"charset": inline(&[0; 2_048])});
            arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            arguments
        };
        for (arguments, words) in [
            (json!({}), "missing field `charset`"),
            (with(json!({"glyph_count": 257})), "glyph_count must be from 1 to 256"),
            (with(json!({"sheet_columns": 0})), "sheet_columns must be from 1 to 64"),
            (with(json!({"foreground": 16})), "foreground must be a colour index"),
            (with(json!({"multicolor": true, "background_1": 1})), "background_2 must be a colour index"),
            (with(json!({"charset": inline(&[0; 2_047])})), "charset supplies 2047 bytes but 2048 are required"),
        ] {
            let error = Caller::new().refused(TOOL, arguments).await;
            assert!(error.line().contains(words), "{words}: {error}");
        }
    }
}
