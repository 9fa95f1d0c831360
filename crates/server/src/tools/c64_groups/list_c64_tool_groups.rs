//! `list_c64_tool_groups`: the C64 groups, and which of them are loaded.

use super::prelude::*;
use super::{ALIASES, sorted};

/// The tool.
#[derive(Debug)]
pub struct ListC64ToolGroups;

/// No arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {}

impl Tool for ListC64ToolGroups {
    const NAME: &'static str = "list_c64_tool_groups";
    const DESCRIPTION: &'static str = "List the groups of C64 tools, with the tools of each and whether it is loaded.";
    const EFFECT: Effect = Effect::READS;
    type Params = Params;
    type Output = Value;

    async fn run(context: &Context, _params: Params) -> Result<Value, ToolError> {
        let list = context.tool_list();
        let standings = list.standings();
        let groups = C64.groups();
        let entries: Vec<Value> = groups
            .iter()
            .map(|(name, group)| {
                let (loaded, baseline) = (standings.loaded(group), standings.baseline(group));
                json!({"group": name, "description": group.purpose, "tool_count": group.tools.len(), "loaded": loaded,
                    "baseline": baseline, "tools": sorted(group)})
            })
            .collect();
        let catalog: Vec<&str> = groups.iter().flat_map(|(_, group)| group.tools).map(|tool| tool.name).collect();
        Ok(json!({
            "ok": true,
            "profile": C64.profile(list.profile()),
            "groups": entries,
            "loaded_groups": C64.names(|group| standings.loaded(group)),
            "callable_tools": ALIASES.len() + catalog.iter().filter(|name| standings.shows(name)).count(),
            "catalog_tools": ALIASES.len() + catalog.len(),
        }))
    }
}
