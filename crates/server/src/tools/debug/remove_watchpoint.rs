//! `remove_watchpoint`: frees a debug register.

use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct RemoveWatchpoint;

impl Tool for RemoveWatchpoint {
    const NAME: &'static str = "remove_watchpoint";
    const DESCRIPTION: &'static str = "Remove a watchpoint (data breakpoint) by its slot or its address, which \
         frees its hardware debug register.";
    const EFFECT: Effect = Effect::SETS;
    type Params = commands::RemoveWatchpoint;
    type Output = commands::WatchpointReply;

    async fn run(context: &Context, params: Self::Params) -> Result<Self::Output, ToolError> {
        context.agent().call(params).await
    }
}
