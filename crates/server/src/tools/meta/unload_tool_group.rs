//! `unload_tool_group`: takes out of a client's list what `load_tool_group` brought in.

use super::OURS;
use crate::context::Context;
use crate::errors::ToolError;
use crate::tool_list::{Change, Told};
use crate::tools::{Effect, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tool.
#[derive(Debug)]
pub struct UnloadToolGroup;

/// Which group.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Name of a group of list_tool_groups.
    pub group: String,
}

/// What the list has lost.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Unloaded {
    ok: bool,
    /// Whether the list is another now.
    changed: bool,
    /// The group asked for.
    unloaded: String,
    /// Number of tools that went.
    removed_tools: usize,
    /// Their names.
    removed_tool_names: Vec<&'static str>,
    profile: &'static str,
    /// Groups of which every tool is listed.
    loaded_groups: Vec<&'static str>,
    /// Whether the notification of the change went out.
    tools_changed: Told,
}

impl Unloaded {
    /// The answer for a change.
    pub fn new(unloaded: String, change: Change) -> Self {
        Self {
            ok: true,
            changed: !change.tools.is_empty(),
            unloaded,
            removed_tools: change.tools.len(),
            removed_tool_names: change.tools,
            profile: change.profile,
            loaded_groups: change.loaded_groups,
            tools_changed: change.told,
        }
    }
}

impl Tool for UnloadToolGroup {
    const NAME: &'static str = "unload_tool_group";
    const DESCRIPTION: &'static str = "Unload a group of tools that load_tool_group loaded: its tools leave this client's \
         tool list, which is told to have changed. The groups of the profile stay.";
    const EFFECT: Effect = Effect::SETS;
    type Params = Params;
    type Output = Unloaded;

    async fn run(context: &Context, params: Params) -> Result<Unloaded, ToolError> {
        let change = OURS.unload(context, &params.group).await?;
        Ok(Unloaded::new(params.group, change))
    }
}
