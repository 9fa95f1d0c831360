//! `detach`: lets the program go on without the debugger.

use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct Detach;

impl Tool for Detach {
    const NAME: &'static str = "detach";
    const DESCRIPTION: &'static str = "Detach from the program: it goes on running, unharmed, without breakpoints \
         and watchpoints. Use it at the end of an investigation; terminate ends the program instead.";
    const EFFECT: Effect = Effect::RUNS;
    type Params = commands::Detach;
    type Output = commands::EndReply;

    async fn run(context: &Context, params: Self::Params) -> Result<Self::Output, ToolError> {
        context.agent().call(params).await
    }
}
