//! `launch`: starts a program under the debugger.

use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct Launch;

impl Tool for Launch {
    const NAME: &'static str = "launch";
    const DESCRIPTION: &'static str = "Start a program under the debugger, stopped at its entry point with its \
         libraries mapped, so that breakpoints and watchpoints can be set before it runs. If that executable \
         runs already it is attached to, unless `if_running` says otherwise. Next: set_breakpoint or \
         set_watchpoint, then continue_execution.";
    const EFFECT: Effect = Effect::ANYTHING;
    type Params = commands::Launch;
    type Output = commands::ProcessReply;

    async fn run(context: &Context, params: Self::Params) -> Result<Self::Output, ToolError> {
        context.launch_roots().check(&params.path)?;
        context.agent().call(params).await
    }
}
