//! `get_status`: says what the program is doing.

use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct GetStatus;

impl Tool for GetStatus {
    const NAME: &'static str = "get_status";
    const DESCRIPTION: &'static str = "Get the state of the debugged program: not_launched, running, stopped \
         (why, where, in which thread) or exited (with which code). Never waits and never disturbs; use it \
         first, and after any lost connection.";
    const EFFECT: Effect = Effect::READS;
    type Params = commands::GetStatus;
    type Output = commands::StatusReply;

    async fn run(context: &Context, params: Self::Params) -> Result<Self::Output, ToolError> {
        context.agent().call(params).await
    }
}
