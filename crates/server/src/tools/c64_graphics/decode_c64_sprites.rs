//! `decode_c64_sprites`: shows sprites on a sheet.

use super::prelude::*;
use c64::graphics::{MulticolorSprites, Sprites};

/// The tool.
#[derive(Debug)]
pub struct DecodeC64Sprites;

/// Where the sprites are.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// 63 bytes a sprite, and one of padding with `sprite_stride` 64.
    sprites: Given,
    /// Sprites, 1 to 256.
    sprite_count: i64,
    /// Colour of each sprite, as many as there are sprites.
    sprite_colors: Vec<i64>,
    /// 64 (default): padded blocks; 63: packed.
    sprite_stride: Option<i64>,
    /// Sprites in a row, 1 to 64; default 8.
    sheet_columns: Option<i64>,
    /// Two bits a pixel.
    #[serde(default)]
    multicolor: bool,
    /// Colour of the bits 01 ($D025); required with `multicolor`.
    multicolor_0: Option<i64>,
    /// Colour of the bits 11 ($D026); required with `multicolor`.
    multicolor_1: Option<i64>,
    /// Colour that is shown where sprites are transparent; default 0.
    background: Option<i64>,
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

impl Tool for DecodeC64Sprites {
    const NAME: &'static str = "decode_c64_sprites";
    const DESCRIPTION: &'static str = sources!(
        "Decode C64 sprites (24 x 21) to a PNG sheet. That of pointer n (last 8 bytes of screen memory) is at n * 64 in the VIC bank."
    );
    const EFFECT: Effect = DRAWS;
    const BRIEF: Option<&'static [&'static str]> = Some(&[]);
    type Params = Params;
    type Output = Picture;

    async fn run(context: &Context, params: Params) -> Result<Picture, ToolError> {
        let sheet = Sprites::new(
            params.sprite_count,
            &params.sprite_colors,
            params.sprite_stride.unwrap_or(64),
            params.sheet_columns.unwrap_or(8),
            Color::new("background", params.background.unwrap_or(0))?,
            MulticolorSprites::of(params.multicolor, params.multicolor_0, params.multicolor_1)?,
        )?;
        let sprites = params.sprites.check("sprites")?;
        sprites.can_have("sprites", sheet.bytes())?;
        let wanted =
            Wanted::check(context, params.palette.as_deref(), params.output_path.as_deref(), params.overwrite)?;
        let sprites = sprites.read(context, "sprites", sheet.bytes()).await?;
        let picture = graphics::sprites(&sheet, &sprites.bytes)?;
        let more = Map::from_iter([("transparent_pixel_count".to_owned(), Value::from(picture.transparent))]);
        wanted.finish(context, "sprites", &picture, &[("sprites", &sprites)], more)
    }
}

#[cfg(test)]
mod tests {
    use crate::tools::c64_shared::tests::{Caller, inline};
    use serde_json::json;

    const TOOL: &str = "decode_c64_sprites";

    #[tokio::test]
    async fn a_multicolor_sprite_has_its_own_color_in_the_middle() {
        let arguments = json!({"sprites": inline(&[0b0001_1011; 63]), "sprite_count": 1, "sprite_colors": [7], "sheet_columns": 1,
            "multicolor": true, "multicolor_0": 3, "multicolor_1": 4, "background": 9});
        let (pixels, facts) = Caller::new().picture(TOOL, arguments).await.unwrap();
        assert_eq!(pixels, [9, 9, 3, 3, 7, 7, 4, 4].repeat(3 * 21));
        assert_eq!((&facts["mode"], &facts["transparent_pixel_count"]), (&json!("sprites"), &json!(24 * 21 / 4)));
        assert_eq!(facts["sources"]["sprites"]["consumed"], 63);
    }

    #[tokio::test]
    async fn padded_sprites_need_no_padding_at_the_end() {
        let bytes = [[0xff; 64].as_slice(), &[0xff; 63]].concat();
        let arguments =
            json!({"sprites": inline(&bytes), "sprite_count": 2, "sprite_colors": [1, 2], "sheet_columns": 2});
        let (pixels, facts) = Caller::new().picture(TOOL, arguments).await.unwrap();
        assert_eq!(pixels, [[1; 24], [2; 24]].concat().repeat(21));
        assert_eq!(facts["transparent_pixel_count"], 0);
    }

    #[tokio::test]
    async fn bad_input_is_named() {
        let with = |more: serde_json::Value| {
            let mut arguments = json!({"sprites": inline(&[0; 127]), "sprite_count": 2, "sprite_colors": [1, 2]});
            arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            arguments
        };
        for (arguments, words) in [
            (json!({"sprites": inline(&[])}), "missing field `sprite_count`"),
            (with(json!({"sprite_count": 257})), "sprite_count must be from 1 to 256"),
            (with(json!({"sprite_colors": [1]})), "sprite_colors holds 1 entries but sprite_count is 2"),
            (with(json!({"sprite_colors": [1, 16]})), "sprite_colors[1] must be a colour index"),
            (with(json!({"sprite_stride": 65})), "sprite_stride must be 64"),
            (with(json!({"multicolor": true, "multicolor_1": 1})), "multicolor_0 must be a colour index"),
            (with(json!({"sprites": inline(&[0; 126])})), "sprites supplies 126 bytes but 127 are required"),
        ] {
            let error = Caller::new().refused(TOOL, arguments).await;
            assert!(error.line().contains(words), "{words}: {error}");
        }
    }
}
