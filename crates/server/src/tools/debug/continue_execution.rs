//! `continue_execution`: lets the program run.

use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct ContinueExecution;

impl Tool for ContinueExecution {
    const NAME: &'static str = "continue_execution";
    const DESCRIPTION: &'static str = "Continue: resume the program and wait until it stops at a breakpoint or \
         watchpoint, ends, or `timeout` seconds are over (10 is a good choice). After a timeout the program \
         runs on, untouched; call it again to go on waiting (a stop that came in between is told first, not resumed), \
         or pause to stop it.";
    const EFFECT: Effect = Effect::RUNS;
    type Params = commands::ContinueExecution;
    type Output = commands::StopReply;

    async fn run(context: &Context, params: Self::Params) -> Result<Self::Output, ToolError> {
        let seconds = params.timeout;
        context.agent().call_waiting(params, seconds).await
    }
}
