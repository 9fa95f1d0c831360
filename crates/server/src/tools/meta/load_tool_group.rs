//! `load_tool_group`: more tools in the list of a client whose list can change.

use super::OURS;
use crate::context::Context;
use crate::errors::ToolError;
use crate::tool_list::{Change, Told};
use crate::tools::{Effect, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tool.
#[derive(Debug)]
pub struct LoadToolGroup;

/// Which group.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Name of a group of list_tool_groups, or `all`.
    pub group: String,
}

/// What the list has gained.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Loaded {
    ok: bool,
    /// Whether the list is another now.
    changed: bool,
    /// The group asked for.
    loaded: String,
    /// Number of tools that came.
    new_tools: usize,
    /// Their names.
    new_tool_names: Vec<&'static str>,
    profile: &'static str,
    /// Groups of which every tool is listed.
    loaded_groups: Vec<&'static str>,
    /// Whether the notification of the change went out.
    tools_changed: Told,
}

impl Loaded {
    /// The answer for a change.
    pub fn new(loaded: String, change: Change) -> Self {
        Self {
            ok: true,
            changed: !change.tools.is_empty(),
            loaded,
            new_tools: change.tools.len(),
            new_tool_names: change.tools,
            profile: change.profile,
            loaded_groups: change.loaded_groups,
            tools_changed: change.told,
        }
    }
}

impl Tool for LoadToolGroup {
    const NAME: &'static str = "load_tool_group";
    const DESCRIPTION: &'static str = "Load a group of tools, or `all`: its tools come into this client's tool list, which \
         is told to have changed. All of it or nothing is loaded. list_tool_groups names the groups.";
    const EFFECT: Effect = Effect::SETS;
    type Params = Params;
    type Output = Loaded;

    async fn run(context: &Context, params: Params) -> Result<Loaded, ToolError> {
        let change = OURS.load(context, &params.group).await?;
        Ok(Loaded::new(params.group, change))
    }
}
