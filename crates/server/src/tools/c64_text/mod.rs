//! The tools that read text: PETSCII and screen codes.

mod decode_c64_text;
mod define_c64_text;
mod search_c64_text;

use super::{Entry, Group};

/// What the files of this group need.
mod prelude {
    pub use crate::context::Context;
    pub use crate::errors::ToolError;
    pub use crate::ghidra::not_blank;
    pub use crate::tools::c64_shared::address::Address;
    pub use crate::tools::c64_shared::text::{Configuration, DecodedView, FileSource, Show, TextParams};
    pub use crate::tools::c64_shared::{ByteInput, invalid};
    pub use crate::tools::{Effect, Tool};
    pub use base::limits;
    pub use schemars::JsonSchema;
    pub use serde::{Deserialize, Serialize};
    pub use serde_json::{Map, Value, json};
}

/// The group.
pub const GROUP: Group = Group {
    name: "c64-text",
    purpose: "Reads C64 text: decodes PETSCII and screen codes, finds text in memory, marks it in Ghidra.",
    // A workspace is needed only when a call names a file.
    files: false,
    tools: &[
        Entry::of::<decode_c64_text::DecodeC64Text>(),
        Entry::of::<search_c64_text::SearchC64Text>(),
        Entry::of::<define_c64_text::DefineC64Text>(),
    ],
};
