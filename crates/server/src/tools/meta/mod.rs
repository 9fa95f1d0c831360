//! The tools about the tools: what groups there are, which tool does what.

pub mod call_tool;
mod list_tool_groups;
pub mod load_tool_group;
pub mod search_tools;
pub mod unload_tool_group;

use super::{Entry, Group};
use crate::tool_list::Naming;

/// The groups of this server under their own names.
pub const OURS: Naming = Naming { tools: "tool", groups: &[], profiles: &[] };

/// Listed in every profile.
pub const GROUP: Group = Group {
    name: "meta",
    purpose: "Finds tools.",
    files: false,
    tools: &[Entry::of::<list_tool_groups::ListToolGroups>(), Entry::of::<search_tools::SearchTools>()],
};

/// Listed in the profile `minimal` alone, where it reaches everything else.
pub const CALL_TOOL: Entry = Entry::of::<call_tool::CallTool>();

/// Listed where the protocol lets a list change: older revisions over stdio. Elsewhere they say what to do instead.
pub const LOADING: &[Entry] =
    &[Entry::of::<load_tool_group::LoadToolGroup>(), Entry::of::<unload_tool_group::UnloadToolGroup>()];
