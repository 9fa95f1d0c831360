//! `attach`: takes hold of a running program.

use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct Attach;

impl Tool for Attach {
    const NAME: &'static str = "attach";
    const DESCRIPTION: &'static str = "Attach the debugger to a running process by pid or executable name; all \
         its threads stop. Next: set_breakpoint or set_watchpoint, then continue_execution so that it does \
         not stay frozen. detach lets it go unharmed.";
    const EFFECT: Effect = Effect::RUNS;
    type Params = commands::Attach;
    type Output = commands::ProcessReply;

    async fn run(context: &Context, params: Self::Params) -> Result<Self::Output, ToolError> {
        context.agent().call(params).await
    }
}
