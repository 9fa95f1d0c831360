//! `set_registers`: changes registers of a thread.

use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct SetRegisters;

impl Tool for SetRegisters {
    const NAME: &'static str = "set_registers";
    const DESCRIPTION: &'static str = "Change CPU registers or flags of a stopped thread, for instance to force a \
         branch. Sub-registers such as `al` change only their part.";
    const EFFECT: Effect = Effect::OVERWRITES;
    type Params = commands::SetRegisters;
    type Output = commands::RegistersReply;

    async fn run(context: &Context, params: Self::Params) -> Result<Self::Output, ToolError> {
        context.agent().call(params).await
    }
}
