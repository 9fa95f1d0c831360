//! `decode_c64_multicolor_bitmap`: shows a picture of the multicolor bitmap mode.

use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct DecodeC64MulticolorBitmap;

/// Where the picture is.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// A Koala file below the workspace, instead of `bitmap`, `screen` and `color`.
    picture: Option<String>,
    /// 8 bytes a cell.
    bitmap: Option<Given>,
    /// 1 byte a cell: colours of the bits 01 and 10.
    screen: Option<Given>,
    /// 1 byte a cell of colour RAM: colour of the bits 11.
    color: Option<Given>,
    /// Colour of the bits 00 ($D021), 0 to 15; default 0, or the Koala file's.
    background: Option<i64>,
    /// Cells from left to right, 1 to 64; default 40.
    columns: Option<i64>,
    /// Cells from top to bottom, 1 to 64; default 25; at most 2,048 cells.
    rows: Option<i64>,
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

impl Tool for DecodeC64MulticolorBitmap {
    const NAME: &'static str = "decode_c64_multicolor_bitmap";
    const DESCRIPTION: &'static str =
        sources!("Decode a C64 multicolor bitmap (VIC-II) to a PNG picture. A Koala file needs only picture.");
    const EFFECT: Effect = DRAWS;
    const BRIEF: Option<&'static [&'static str]> = Some(&["picture"]);
    type Params = Params;
    type Output = Picture;

    async fn run(context: &Context, params: Params) -> Result<Picture, ToolError> {
        let grid = Grid::new(params.columns.unwrap_or(40), params.rows.unwrap_or(25))?;
        let size = graphics::Bitmap { grid };
        let given = params.background.map(|number| Color::new("background", number)).transpose()?;
        let wanted =
            Wanted::check(context, params.palette.as_deref(), params.output_path.as_deref(), params.overwrite)?;
        let mut background = given.unwrap_or(Color::BLACK);
        let mut more = Map::new();
        let (bitmap, screen, color) = match (&params.picture, &params.bitmap, &params.screen, &params.color) {
            (Some(path), None, None, None) if params.columns.is_none() && params.rows.is_none() => {
                let loaded = file::read(context, path)?;
                let parts = loaded.picture(true)?;
                if let (None, Some(own)) = (given, parts.background) {
                    background = own;
                }
                if given.is_none() && parts.background.is_none() {
                    let note = "the file has no background byte; colour 0 was taken, name another with background";
                    more.insert("warnings".to_owned(), vec![note].into());
                }
                let color = Supplied::of_picture(parts.color.unwrap_or_default());
                (Supplied::of_picture(parts.bitmap), Supplied::of_picture(parts.screen), color)
            }
            (None, Some(bitmap), Some(screen), Some(color)) => {
                let (bitmap, screen) = (bitmap.check("bitmap")?, screen.check("screen")?);
                let color = color.check("color")?;
                bitmap.can_have("bitmap", size.bitmap_bytes())?;
                screen.can_have("screen", size.screen_bytes())?;
                color.can_have("color", size.screen_bytes())?;
                more = at_once(context, &[&bitmap, &screen, &color], params.allow_non_atomic_vice_reads)?;
                let bitmap = bitmap.read(context, "bitmap", size.bitmap_bytes()).await?;
                let screen = screen.read(context, "screen", size.screen_bytes()).await?;
                (bitmap, screen, color.read(context, "color", size.screen_bytes()).await?)
            }
            _ => return Err(invalid("give bitmap, screen and color, or picture alone, which is 40 x 25 cells")),
        };
        let picture = graphics::multicolor_bitmap(size, &bitmap.bytes, &screen.bytes, &color.bytes, background)?;
        if params.picture.is_some() {
            more.insert("background".to_owned(), background.index().into());
        }
        let sources = [("bitmap", &bitmap), ("screen", &screen), ("color", &color)];
        wanted.finish(context, "multicolor_bitmap", &picture, &sources, more)
    }
}

#[cfg(test)]
mod tests {
    use crate::tools::c64_shared::tests::{Caller, inline};
    use serde_json::json;

    const TOOL: &str = "decode_c64_multicolor_bitmap";

    #[tokio::test]
    async fn four_pairs_of_bits_have_four_colors() {
        let arguments = json!({"bitmap": inline(&[0b0001_1011; 8]), "screen": inline(&[0x23]), "color": inline(&[0xf5]),
            "background": 9, "columns": 1, "rows": 1});
        let (pixels, facts) = Caller::new().picture(TOOL, arguments).await.unwrap();
        assert_eq!(pixels, [9, 9, 2, 2, 3, 3, 5, 5].repeat(8));
        assert_eq!((&facts["mode"], &facts["used_indices"]), (&json!("multicolor_bitmap"), &json!([2, 3, 5, 9])));
        assert!(facts["background"].is_null());
    }

    #[tokio::test]
    async fn a_koala_file_is_enough_and_its_background_can_be_another() {
        // All pairs of bits are 00, so that only the background is seen.
        let mut koala = vec![0; 10_003];
        (koala[1], koala[10_002]) = (0x60, 0xf6);
        let caller = Caller::with_files(&[("a.koa", &koala), ("b.koa", &koala[..10_002]), ("c.bin", &[0; 9_009])]);
        let show = async |arguments| caller.picture(TOOL, arguments).await.unwrap();
        let (pixels, facts) = show(json!({"picture": "a.koa"})).await;
        assert!(pixels.len() == 64_000 && pixels.iter().all(|pixel| *pixel == 6));
        assert_eq!((&facts["background"], &facts["warnings"]), (&json!(6), &json!([])));
        let (pixels, _) = show(json!({"picture": "a.koa", "background": 2})).await;
        assert!(pixels.iter().all(|pixel| *pixel == 2));
        let (pixels, facts) = show(json!({"picture": "b.koa"})).await;
        assert!(pixels.iter().all(|pixel| *pixel == 0));
        assert!(facts["warnings"][0].as_str().unwrap().contains("no background byte"), "{facts}");
        let error = caller.refused(TOOL, json!({"picture": "c.bin"})).await;
        assert!(error.message.contains("is an Art Studio picture"), "{error}");
        assert!(error.hint.contains("decode_c64_hires_bitmap"), "{error}");
    }

    #[tokio::test]
    async fn bad_input_is_named() {
        let zeros = || inline(&[0; 8_000]);
        for (arguments, words) in [
            (json!({"bitmap": zeros(), "screen": zeros()}), "give bitmap, screen and color"),
            (
                json!({"bitmap": zeros(), "screen": zeros(), "color": zeros(), "background": 16}),
                "background must be a colour",
            ),
            (json!({"bitmap": zeros(), "screen": zeros(), "color": inline(&[0; 999])}), "color supplies 999 bytes"),
            (json!({"bitmap": zeros(), "screen": zeros(), "color": {"kind": "x"}}), "color must have a kind of"),
        ] {
            let error = Caller::new().refused(TOOL, arguments).await;
            assert!(error.line().contains(words), "{words}: {error}");
        }
    }
}
