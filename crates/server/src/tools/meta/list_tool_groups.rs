//! `list_tool_groups`: which tools there are, by group.

use crate::context::Context;
use crate::errors::ToolError;
use crate::tools::{Effect, GROUPS, Profile, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tool.
#[derive(Debug)]
pub struct ListToolGroups;

/// No arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {}

/// The groups.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Groups {
    /// The groups of tools.
    groups: Vec<GroupInfo>,
    /// The profile of this client.
    profile: &'static str,
    /// Profiles, each with its own list: at HTTP the endpoint `/mcp/<profile>`, at stdio `--tool-profile`.
    profiles: Vec<String>,
}

/// One group.
#[derive(Debug, Serialize, JsonSchema)]
struct GroupInfo {
    /// Its name.
    name: &'static str,
    /// What it is for.
    purpose: &'static str,
    /// Whether all of them are in this client's list.
    loaded: bool,
    /// Whether the profile has all of them.
    baseline: bool,
    /// Names of its tools.
    tools: Vec<&'static str>,
}

impl Tool for ListToolGroups {
    const NAME: &'static str = "list_tool_groups";
    const DESCRIPTION: &'static str = "List the groups of tools, what each is for, and the names of its tools. \
         Use search_tools to find a tool by what it does.";
    const EFFECT: Effect = Effect::READS;
    type Params = Params;
    type Output = Groups;

    async fn run(context: &Context, _params: Params) -> Result<Groups, ToolError> {
        let list = context.tool_list();
        let standings = list.standings();
        let groups = GROUPS
            .iter()
            .map(|group| {
                let (loaded, baseline) = (standings.loaded(group), standings.baseline(group));
                let tools = group.tools.iter().map(|tool| tool.name).collect();
                GroupInfo { name: group.name, purpose: group.purpose, loaded, baseline, tools }
            })
            .collect();
        Ok(Groups {
            groups,
            profile: list.profile().name(),
            profiles: Profile::all().map(|profile| profile.name().to_owned()).collect(),
        })
    }
}
