//! `unload_c64_tool_group`: `unload_tool_group` for the C64 groups.

use super::prelude::*;
use crate::tools::meta::unload_tool_group::{Params, Unloaded};

/// The tool.
#[derive(Debug)]
pub struct UnloadC64ToolGroup;

impl Tool for UnloadC64ToolGroup {
    const NAME: &'static str = "unload_c64_tool_group";
    const DESCRIPTION: &'static str =
        "Unload a group of C64 tools that is not of the profile from this client's tool list.";
    const EFFECT: Effect = Effect::SETS;
    type Params = Params;
    type Output = Value;

    async fn run(context: &Context, params: Params) -> Result<Value, ToolError> {
        Ok(match C64.unload(context, &params.group).await {
            Ok(change) => json!(Unloaded::new(params.group, change)),
            Err(error) => refused(error),
        })
    }
}
