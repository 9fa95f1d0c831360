//! `load_c64_tool_group`: `load_tool_group` for the C64 groups.

use super::prelude::*;
use crate::tools::meta::load_tool_group::{Loaded, Params};

/// The tool.
#[derive(Debug)]
pub struct LoadC64ToolGroup;

impl Tool for LoadC64ToolGroup {
    const NAME: &'static str = "load_c64_tool_group";
    const DESCRIPTION: &'static str = "Load a group of C64 tools, or `all` of them, into this client's tool list.";
    const EFFECT: Effect = Effect::SETS;
    type Params = Params;
    type Output = Value;

    async fn run(context: &Context, params: Params) -> Result<Value, ToolError> {
        Ok(match C64.load(context, &params.group).await {
            Ok(change) => json!(Loaded::new(params.group, change)),
            Err(error) => refused(error),
        })
    }
}
