//! `decode_c64_char_screen`: shows a screen of characters.

use super::prelude::*;
use c64::graphics::{CharScreen, Multicolor, charset_bytes_for};

/// The tool.
#[derive(Debug)]
pub struct DecodeC64CharScreen;

/// Where the screen and its glyphs are.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// 1 byte a cell: which glyph.
    screen: Given,
    /// 8 bytes a glyph, as many as the screen uses.
    charset: Given,
    /// 1 byte a cell of colour RAM; required with `multicolor`.
    color: Option<Given>,
    /// Cells from left to right, 1 to 64; default 40.
    columns: Option<i64>,
    /// Cells from top to bottom, 1 to 64; default 25; at most 2,048 cells.
    rows: Option<i64>,
    /// Colour behind the characters ($D021); default 0.
    background: Option<i64>,
    /// Colour of the characters where there is no `color`; default 1.
    foreground: Option<i64>,
    /// Bit 3 of a cell's colour chooses two bits a pixel.
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
    /// Read several `vice` sources of a machine that runs.
    #[serde(default)]
    allow_non_atomic_vice_reads: bool,
}

impl Tool for DecodeC64CharScreen {
    const NAME: &'static str = "decode_c64_char_screen";
    const DESCRIPTION: &'static str =
        sources!("Decode a C64 text screen (character mode; levels made of tiles too) to a PNG picture.");
    const EFFECT: Effect = DRAWS;
    const BRIEF: Option<&'static [&'static str]> = Some(&[]);
    type Params = Params;
    type Output = Picture;

    async fn run(context: &Context, params: Params) -> Result<Picture, ToolError> {
        let size = CharScreen {
            grid: Grid::new(params.columns.unwrap_or(40), params.rows.unwrap_or(25))?,
            background: Color::new("background", params.background.unwrap_or(0))?,
            foreground: Color::new("foreground", params.foreground.unwrap_or(1))?,
            multicolor: Multicolor::of(params.multicolor, params.background_1, params.background_2)?,
        };
        if params.multicolor && params.color.is_none() {
            return Err(invalid(
                "color is required when multicolor is true: colour-RAM bit 3 selects each cell's mode",
            ));
        }
        let (screen, charset) = (params.screen.check("screen")?, params.charset.check("charset")?);
        let color = params.color.map(|color| color.check("color")).transpose()?;
        let cells = size.grid.cells();
        screen.can_have("screen", cells)?;
        // How many glyphs there must be is known only when the screen has been read; one is always needed.
        charset.can_have("charset", graphics::GLYPH_BYTES)?;
        if let Some(color) = &color {
            color.can_have("color", cells)?;
        }
        let wanted =
            Wanted::check(context, params.palette.as_deref(), params.output_path.as_deref(), params.overwrite)?;
        let sources: Vec<&Source> = [&screen, &charset].into_iter().chain(&color).collect();
        let more = at_once(context, &sources, params.allow_non_atomic_vice_reads)?;
        let screen = screen.read(context, "screen", cells).await?;
        let glyph_bytes = charset_bytes_for(screen.bytes.get(..cells).unwrap_or_default());
        let charset = charset.read(context, "charset", glyph_bytes).await?;
        let color = match color {
            Some(color) => Some(color.read(context, "color", cells).await?),
            None => None,
        };
        let ram = color.as_ref().map(|color| color.bytes.as_slice());
        let picture = graphics::char_screen(size, &screen.bytes, &charset.bytes, ram)?;
        let mut sources = vec![("screen", &screen), ("charset", &charset)];
        sources.extend(color.as_ref().map(|color| ("color", color)));
        wanted.finish(context, "char_screen", &picture, &sources, more)
    }
}

#[cfg(test)]
mod tests {
    use crate::tools::c64_shared::tests::{Caller, inline};
    use serde_json::json;

    const TOOL: &str = "decode_c64_char_screen";

    #[tokio::test]
    async fn each_cell_chooses_its_mode_by_its_color() {
        // Colour 5: one bit a pixel, colour 5. Colour 13: two bits a pixel, and 11 is 13 - 8.
        let arguments = json!({"screen": inline(&[1, 1]), "charset": inline(&[[0; 8], [0b0001_1011; 8]].concat()),
            "color": inline(&[0xf5, 0x2d]), "columns": 2, "rows": 1, "background": 9, "multicolor": true,
            "background_1": 1, "background_2": 2});
        let (pixels, facts) = Caller::new().picture(TOOL, arguments).await.unwrap();
        assert_eq!(pixels, [9, 9, 9, 5, 5, 9, 5, 5, 9, 9, 1, 1, 2, 2, 5, 5].repeat(8));
        assert_eq!(facts["sources"]["charset"]["consumed"], 16);
        assert_eq!((&facts["mode"], &facts["sources"]["color"]["consumed"]), (&json!("char_screen"), &json!(2)));
    }

    #[tokio::test]
    async fn without_colors_there_is_one_foreground() {
        let arguments =
            json!({"screen": inline(&[0]), "charset": inline(&[0xf0; 8]), "columns": 1, "rows": 1, "foreground": 14});
        let (pixels, facts) = Caller::new().picture(TOOL, arguments).await.unwrap();
        assert_eq!(pixels, [14, 14, 14, 14, 0, 0, 0, 0].repeat(8));
        assert!(facts["sources"]["color"].is_null());
    }

    #[tokio::test]
    async fn bad_input_is_named() {
        for (arguments, words) in [
            (
                json!({"screen": inline(&[3; 1_000]), "charset": inline(&[0; 31])}),
                "charset supplies 31 bytes but 32 are required",
            ),
            (json!({"screen": inline(&[3; 999]), "charset": inline(&[0; 32])}), "screen supplies 999 bytes"),
            (
                json!({"screen": inline(&[0; 1_000]), "charset": inline(&[0; 8]), "multicolor": true, "background_1": 1,
                    "background_2": 2}),
                "color is required",
            ),
            (json!({"screen": inline(&[0; 1_000]), "charset": inline(&[]), "rows": 25}), "charset supplies 0 bytes"),
        ] {
            let error = Caller::new().refused(TOOL, arguments).await;
            assert!(error.line().contains(words), "{words}: {error}");
        }
    }
}
