//! The tools that show pictures of the VIC-II.

mod decode_c64_char_screen;
mod decode_c64_charset;
mod decode_c64_hires_bitmap;
mod decode_c64_multicolor_bitmap;
mod decode_c64_sprites;

use super::{Entry, Group};

/// What the files of this group need.
mod prelude {
    pub use crate::context::Context;
    pub use crate::errors::ToolError;
    pub use crate::tools::c64_shared::picture::{PaletteColor, Wanted};
    pub use crate::tools::c64_shared::source::{Given, Source, Supplied, at_once};
    pub(super) use crate::tools::c64_shared::sources;
    pub use crate::tools::c64_shared::{file, invalid};
    pub use crate::tools::{Effect, Picture, Tool};
    pub use c64::graphics::{self, Color, Grid};
    pub use schemars::JsonSchema;
    pub use serde::Deserialize;
    pub use serde_json::{Map, Value};

    /// A file below the workspace may be written, and overwritten when that is asked for.
    pub const DRAWS: Effect = Effect { read_only: false, destructive: true, idempotent: true, open_world: false };
}

/// The group.
pub const GROUP: Group = Group {
    name: "c64-graphics",
    purpose: "Shows C64 pictures as PNG: hires and multicolor bitmaps, character sets, text screens, sprites.",
    // A workspace is needed only when a call names a file.
    files: false,
    tools: &[
        Entry::of::<decode_c64_hires_bitmap::DecodeC64HiresBitmap>(),
        Entry::of::<decode_c64_multicolor_bitmap::DecodeC64MulticolorBitmap>(),
        Entry::of::<decode_c64_charset::DecodeC64Charset>(),
        Entry::of::<decode_c64_char_screen::DecodeC64CharScreen>(),
        Entry::of::<decode_c64_sprites::DecodeC64Sprites>(),
    ],
};
