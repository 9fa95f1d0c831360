//! `terminate`: ends the program.

use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct Terminate;

impl Tool for Terminate {
    const NAME: &'static str = "terminate";
    const DESCRIPTION: &'static str = "Kill the debugged program or game at once; what it has not saved is lost. detach \
         lets it go on instead.";
    const EFFECT: Effect = Effect::OVERWRITES;
    type Params = commands::Terminate;
    type Output = commands::EndReply;

    async fn run(context: &Context, params: Self::Params) -> Result<Self::Output, ToolError> {
        context.agent().call(params).await
    }
}
