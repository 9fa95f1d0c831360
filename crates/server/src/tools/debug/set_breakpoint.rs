//! `set_breakpoint`: stops the program at an instruction.

use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct SetBreakpoint;

impl Tool for SetBreakpoint {
    const NAME: &'static str = "set_breakpoint";
    const DESCRIPTION: &'static str = "Set a breakpoint: stop when an instruction is about to execute, at an address, \
         symbol or module+offset. With `condition` on registers or memory it stops only when that holds (evaluated in the \
         agent, so it costs little), with `ignore_count` after so many hits, with `one_shot` once. Next: \
         continue_execution. To find which code changes a variable use set_watchpoint.";
    const EFFECT: Effect = Effect::SETS;
    type Params = commands::SetBreakpoint;
    type Output = commands::BreakpointReply;

    async fn run(context: &Context, params: Self::Params) -> Result<Self::Output, ToolError> {
        context.agent().call(params).await
    }
}
