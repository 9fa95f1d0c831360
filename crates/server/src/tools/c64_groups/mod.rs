//! The names under which c64-mcp had the tools about its tools: they can be called in every profile, are listed in none, and
//! know the C64 groups only. A refusal is an ordinary answer with `ok: false`, as it was there.

mod list_c64_tool_groups;
mod load_c64_tool_group;
mod search_c64_tools;
mod unload_c64_tool_group;

use super::{Entry, Group, PROFILE_ALIASES};
use crate::errors::ToolError;
use crate::tool_list::Naming;
use serde_json::{Map, Value, json};

/// What the files of this folder need.
mod prelude {
    pub use super::{C64, refused};
    pub use crate::context::Context;
    pub use crate::errors::ToolError;
    pub use crate::tools::{Effect, Tool};
    pub use schemars::JsonSchema;
    pub use serde::Deserialize;
    pub use serde_json::{Value, json};
}

/// The C64 groups under the names they had there.
pub const C64: Naming = Naming {
    tools: "C64 tool",
    groups: &[("symbols", "c64-symbols"), ("text", "c64-text"), ("graphics", "c64-graphics"), ("vice", "c64-vice")],
    profiles: PROFILE_ALIASES,
};

/// The tools.
pub const ALIASES: &[Entry] = &[
    Entry::of::<list_c64_tool_groups::ListC64ToolGroups>(),
    Entry::of::<load_c64_tool_group::LoadC64ToolGroup>(),
    Entry::of::<unload_c64_tool_group::UnloadC64ToolGroup>(),
    Entry::of::<search_c64_tools::SearchC64Tools>(),
];

/// A refusal as an answer.
pub fn refused(error: ToolError) -> Value {
    let message = match error.hint.is_empty() {
        true => error.message,
        false => format!("{}; {}", error.message, error.hint),
    };
    let mut body =
        Map::from_iter([("code".to_owned(), error.code.word().into()), ("message".to_owned(), message.into())]);
    body.extend(error.details);
    json!({"ok": false, "error": body})
}

/// Names of the tools of a group in their order.
fn sorted(group: &Group) -> Vec<&'static str> {
    let mut names: Vec<_> = group.tools.iter().map(|tool| tool.name).collect();
    names.sort_unstable();
    names
}
