//! `decode_c64_hires_bitmap`: shows a picture of the standard bitmap mode.

use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct DecodeC64HiresBitmap;

/// Where the picture is.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// An Art Studio file below the workspace, instead of `bitmap` and `screen`.
    picture: Option<String>,
    /// 8 bytes a cell.
    bitmap: Option<Given>,
    /// 1 byte a cell: colour of set bits, colour of clear bits.
    screen: Option<Given>,
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

impl Tool for DecodeC64HiresBitmap {
    const NAME: &'static str = "decode_c64_hires_bitmap";
    const DESCRIPTION: &'static str = sources!(
        "Decode a C64 hires bitmap (VIC-II standard bitmap mode) to a PNG picture. An Art Studio file needs only picture."
    );
    const EFFECT: Effect = DRAWS;
    const BRIEF: Option<&'static [&'static str]> = Some(&["picture"]);
    type Params = Params;
    type Output = Picture;

    async fn run(context: &Context, params: Params) -> Result<Picture, ToolError> {
        let grid = Grid::new(params.columns.unwrap_or(40), params.rows.unwrap_or(25))?;
        let size = graphics::Bitmap { grid };
        let wanted =
            Wanted::check(context, params.palette.as_deref(), params.output_path.as_deref(), params.overwrite)?;
        let mut more = Map::new();
        let (bitmap, screen, size) = match (&params.picture, &params.bitmap, &params.screen) {
            (Some(path), None, None) if params.columns.is_none() && params.rows.is_none() => {
                let loaded = file::read(context, path)?;
                let parts = loaded.picture(false)?;
                (Supplied::of_picture(parts.bitmap), Supplied::of_picture(parts.screen), size)
            }
            (None, Some(bitmap), Some(screen)) => {
                let (bitmap, screen) = (bitmap.check("bitmap")?, screen.check("screen")?);
                bitmap.can_have("bitmap", size.bitmap_bytes())?;
                screen.can_have("screen", size.screen_bytes())?;
                more = at_once(context, &[&bitmap, &screen], params.allow_non_atomic_vice_reads)?;
                let bitmap = bitmap.read(context, "bitmap", size.bitmap_bytes()).await?;
                (bitmap, screen.read(context, "screen", size.screen_bytes()).await?, size)
            }
            _ => return Err(invalid("give bitmap and screen, or picture alone, which is 40 x 25 cells")),
        };
        let picture = graphics::hires_bitmap(size, &bitmap.bytes, &screen.bytes)?;
        let sources = [("bitmap", &bitmap), ("screen", &screen)];
        wanted.finish(context, "hires_bitmap", &picture, &sources, more)
    }
}

#[cfg(test)]
mod tests {
    use crate::tools::c64_shared::tests::{Caller, inline};
    use serde_json::{Value, json};

    const TOOL: &str = "decode_c64_hires_bitmap";

    #[tokio::test]
    async fn the_summary_has_the_contracts_shape() {
        let arguments = json!({"bitmap": inline(&[0x0f; 10]), "screen": inline(&[0x23]), "columns": 1, "rows": 1});
        let (pixels, facts) = Caller::new().picture(TOOL, arguments).await.unwrap();
        // Screen $23: set bits have colour 2, clear ones colour 3.
        assert_eq!(pixels, [3, 3, 3, 3, 2, 2, 2, 2].repeat(8));
        assert_eq!(
            facts,
            json!({"mode": "hires_bitmap", "width": 8, "height": 8, "palette_size": 16, "used_indices": [2, 3],
                "unmapped_indices": [], "unmapped_pixel_count": 0, "warnings": [], "output_path": null,
                "sources": {"bitmap": {"kind": "inline", "supplied": 10, "consumed": 8, "trailing": 2},
                            "screen": {"kind": "inline", "supplied": 1, "consumed": 1, "trailing": 0}}})
        );
    }

    #[tokio::test]
    async fn a_short_palette_leaves_colors_black_and_says_so() {
        let arguments = json!({"bitmap": inline(&[0x0f; 8]), "screen": inline(&[0x20]), "columns": 1, "rows": 1,
            "palette": ["#ff0000", [1, 2, 3]]});
        let (_, facts) = Caller::new().picture(TOOL, arguments).await.unwrap();
        assert_eq!((&facts["palette_size"], &facts["unmapped_indices"]), (&json!(3), &json!([2])));
        assert_eq!(facts["unmapped_pixel_count"], 32);
    }

    /// A file of Art Studio whose bytes follow from their place.
    fn art() -> Vec<u8> {
        let mut file = vec![0x00, 0x20];
        file.extend((0..9_007_u32).map(|at| (at * 7 + at / 256) as u8));
        file
    }

    #[tokio::test]
    async fn an_art_studio_file_is_enough() {
        let caller = Caller::with_files(&[("frog.art", &art())]);
        let (pixels, facts) = caller.picture(TOOL, json!({"picture": "frog.art"})).await.unwrap();
        assert_eq!((&facts["width"], &facts["height"]), (&json!(320), &json!(200)));
        assert_eq!(
            facts["sources"]["bitmap"],
            json!({"kind": "file", "supplied": 8000, "consumed": 8000, "trailing": 0})
        );
        // The same from its parts by address and by offset.
        let parts = json!({"bitmap": {"kind": "file", "path": "frog.art", "prg": true, "offset": 0x2000},
                           "screen": {"kind": "file", "path": "frog.art", "offset": 8_002}});
        let (other, facts) = caller.picture(TOOL, parts).await.unwrap();
        assert!(pixels == other);
        assert_eq!(
            facts["sources"]["screen"],
            json!({"kind": "file", "supplied": 1007, "consumed": 1000, "trailing": 7})
        );
        let hint = facts["hint"].as_str().unwrap();
        assert!(
            hint.contains("an Art Studio picture that loads at $2000") && hint.contains("picture: \"frog.art\""),
            "{hint}"
        );
    }

    #[tokio::test]
    async fn a_file_is_written_whole_or_not_at_all() {
        let caller = Caller::with_files(&[("there.png", b"old")]);
        let arguments = |path: &str, overwrite: bool| {
            json!({"bitmap": inline(&[0; 8]), "screen": inline(&[0]), "columns": 1, "rows": 1, "output_path": path,
                "overwrite": overwrite})
        };
        let (_, facts) = caller.picture(TOOL, arguments("new.png", false)).await.unwrap();
        assert_eq!(facts["output_path"], caller.path("new.png").display().to_string());
        assert_eq!(&std::fs::read(caller.path("new.png")).unwrap()[1..4], b"PNG");
        for (path, code) in [
            ("there.png", "file_exists"),
            ("absent/new.png", "file_not_found"),
            ("../new.png", "path_refused"),
            (" ", "invalid_arguments"),
        ] {
            assert_eq!(caller.refused(TOOL, arguments(path, false)).await.code.word(), code, "{path}");
        }
        assert_eq!(std::fs::read(caller.path("there.png")).unwrap(), b"old");
        caller.picture(TOOL, arguments("there.png", true)).await.unwrap();
        assert_eq!(std::fs::read(caller.path("there.png")).unwrap(), std::fs::read(caller.path("new.png")).unwrap());
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("..", caller.path("up")).unwrap();
            assert_eq!(caller.refused(TOOL, arguments("up/x.png", false)).await.code.word(), "path_refused");
            let source = json!({"kind": "file", "path": "up/x"});
            let refused = caller.refused(TOOL, json!({"bitmap": source, "screen": source})).await;
            assert_eq!(refused.code.word(), "path_refused");
        }
    }

    #[tokio::test]
    async fn bad_input_is_named() {
        let caller = Caller::with_files(&[("a.bin", &[0; 10]), ("frog.art", &art())]);
        let with = |bitmap: Value, more: Value| {
            let mut arguments = json!({"bitmap": bitmap, "screen": inline(&[0; 4_096])});
            arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            arguments
        };
        let nothing = json!({});
        let source = |source: Value| with(source, json!({}));
        let all = |more: Value| with(inline(&[0; 8_000]), more);
        for (arguments, words) in [
            (nothing, "give bitmap and screen, or picture alone"),
            (all(json!({"picture": "frog.art"})), "give bitmap and screen, or picture alone"),
            (json!({"picture": "frog.art", "columns": 40}), "picture alone"),
            (json!({"picture": "a.bin"}), "an Art Studio picture has 9,009 bytes"),
            (all(json!({"columns": 65})), "columns must be from 1 to 64"),
            (all(json!({"columns": 64, "rows": 33})), "2048-cell hard maximum"),
            (all(json!({"palette": []})), "palette must be a non-empty array"),
            (all(json!({"palette": vec!["#000000"; 257]})), "palette must not exceed 256 entries"),
            (all(json!({"palette": ["#00000"]})), "palette entry 0 must be six"),
            (all(json!({"palette": [[1, 2, 300]]})), "palette entry 0 channels must be"),
            (all(json!({"palette": ["#000000", 5]})), "palette entry 1 must be a hex string"),
            (all(json!({"colour": 1})), "unknown field `colour`"),
            (source(inline(&[0; 7_999])), "bitmap supplies 7999 bytes but 8000 are required"),
            (source(inline(&[0; 65_537])), "65536-byte inline hard maximum"),
            (source(json!({})), "bitmap must have a kind of inline, ghidra, vice, or file"),
            (source(json!({"kind": "disk"})), "bitmap must have a kind of"),
            (source(json!({"kind": "inline"})), "bitmap inline source requires bytes"),
            (source(json!({"kind": "inline", "bytes": "012"})), "bitmap bytes must contain an even number"),
            (source(json!({"kind": "inline", "bytes": [300]})), "bitmap bytes array values must be"),
            (source(json!({"kind": "inline", "bytes": 5})), "bitmap bytes must be hex text"),
            (
                source(json!({"kind": "inline", "bytes": "00", "x": 1, "a": 2})),
                "does not accept a, x; allowed fields are bytes, kind",
            ),
            (source(json!({"kind": "ghidra", "start": "0"})), "requires a nonblank program"),
            (source(json!({"kind": "ghidra", "program": "x"})), "requires a start address"),
            (source(json!({"kind": "vice", "start": 0})), "requires bank_id"),
            (source(json!({"kind": "vice", "bank_id": 0, "start": 65_536})), "a start address from 0 to 65535"),
            (
                source(json!({"kind": "vice", "bank_id": 0, "start": 65_000})),
                "needs 8000 bytes from $FDE8 but only 536 remain",
            ),
            (source(json!({"kind": "file"})), "requires a path"),
            (source(json!({"kind": "file", "path": "a.bin", "offset": -1})), "requires an offset"),
            (source(json!({"kind": "file", "path": "a.bin", "prg": 1})), "requires a prg"),
            (source(json!({"kind": "file", "path": "a.bin", "offset": 10})), "has 10 bytes, and offset is 10"),
            (source(json!({"kind": "file", "path": "a.bin"})), "bitmap supplies 10 bytes but 8000 are required"),
        ] {
            let error = caller.refused(TOOL, arguments).await;
            assert_eq!(error.code.word(), "invalid_arguments", "{error}");
            assert!(error.line().contains(words), "{words}: {error}");
        }
        let vice = caller.refused(TOOL, source(json!({"kind": "vice", "bank_id": 1, "start": 0x2000}))).await;
        assert_eq!(vice.code.word(), "vice_not_connected");
    }
}
