//! `list_watchpoints`: shows the watchpoints.

use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct ListWatchpoints;

impl Tool for ListWatchpoints {
    const NAME: &'static str = "list_watchpoints";
    const DESCRIPTION: &'static str = "List the watchpoints (data breakpoints), their slots and hit counts.";
    const EFFECT: Effect = Effect::READS;
    type Params = commands::ListWatchpoints;
    type Output = commands::WatchpointsReply;

    async fn run(context: &Context, params: Self::Params) -> Result<Self::Output, ToolError> {
        context.agent().call(params).await
    }
}
