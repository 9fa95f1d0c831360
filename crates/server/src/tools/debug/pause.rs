//! `pause`: stops the program.

use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct Pause;

impl Tool for Pause {
    const NAME: &'static str = "pause";
    const DESCRIPTION: &'static str = "Pause: interrupt the running program, all threads, wherever it is; a \
         stopped one stays as it is. Next: backtrace, get_registers, read_memory.";
    const EFFECT: Effect = Effect::SETS;
    type Params = commands::Pause;
    type Output = commands::PauseReply;

    async fn run(context: &Context, params: Self::Params) -> Result<Self::Output, ToolError> {
        context.agent().call(params).await
    }
}
