//! `get_registers`: shows the registers of a thread.

use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct GetRegisters;

impl Tool for GetRegisters {
    const NAME: &'static str = "get_registers";
    const DESCRIPTION: &'static str = "Read the CPU registers of a stopped thread: general, flags, segment and \
         debug registers, x87 and SSE when asked. The stop reports of other tools carry the general ones \
         already.";
    const EFFECT: Effect = Effect::READS;
    type Params = commands::GetRegisters;
    type Output = commands::RegistersReply;

    async fn run(context: &Context, params: Self::Params) -> Result<Self::Output, ToolError> {
        context.agent().call(params).await
    }
}
