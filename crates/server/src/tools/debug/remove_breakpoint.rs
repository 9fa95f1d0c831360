//! `remove_breakpoint`: takes a breakpoint away.

use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct RemoveBreakpoint;

impl Tool for RemoveBreakpoint {
    const NAME: &'static str = "remove_breakpoint";
    const DESCRIPTION: &'static str = "Remove a breakpoint by its address or the expression it was set with.";
    const EFFECT: Effect = Effect::SETS;
    type Params = commands::RemoveBreakpoint;
    type Output = commands::BreakpointReply;

    async fn run(context: &Context, params: Self::Params) -> Result<Self::Output, ToolError> {
        context.agent().call(params).await
    }
}
