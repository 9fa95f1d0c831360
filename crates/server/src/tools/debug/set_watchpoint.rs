//! `set_watchpoint`: finds out which instruction accesses a variable.

use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct SetWatchpoint;

impl Tool for SetWatchpoint {
    const NAME: &'static str = "set_watchpoint";
    const DESCRIPTION: &'static str = "Find out which code writes, changes or reads a variable: a watchpoint, that is a \
         hardware data breakpoint on 1, 2, 4 or 8 bytes. The stop reports the very instruction that did it (`writer`), old \
         and new value, and thread; there are four. Next: continue_execution, then backtrace and disassemble around the \
         writer.";
    const EFFECT: Effect = Effect::SETS;
    type Params = commands::SetWatchpoint;
    type Output = commands::WatchpointReply;

    async fn run(context: &Context, params: Self::Params) -> Result<Self::Output, ToolError> {
        context.agent().call(params).await
    }
}
