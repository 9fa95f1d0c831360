//! The tools about the tools: what groups there are, which tool does what.

pub mod call_tool;
mod list_tool_groups;
mod search_tools;

use super::{Entry, Group};

/// Listed in every profile.
pub const GROUP: Group = Group {
    name: "meta",
    purpose: "Finds tools.",
    files: false,
    tools: &[Entry::of::<list_tool_groups::ListToolGroups>(), Entry::of::<search_tools::SearchTools>()],
};

/// Listed in the profile `minimal` alone, where it reaches everything else.
pub const CALL_TOOL: Entry = Entry::of::<call_tool::CallTool>();
