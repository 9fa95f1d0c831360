//! `disassemble`: decodes instructions.

use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct Disassemble;

impl Tool for Disassemble {
    const NAME: &'static str = "disassemble";
    const DESCRIPTION: &'static str = "Disassemble machine code at an address, symbol or the program counter, in \
         Intel syntax, with symbols. When `ended` says that there is more, go on at `next`.";
    const EFFECT: Effect = Effect::READS;
    type Params = commands::Disassemble;
    type Output = commands::DisassemblyReply;

    async fn run(context: &Context, params: Self::Params) -> Result<Self::Output, ToolError> {
        let mut reply = context.agent().call(params).await?;
        let all = reply.instructions.clone();
        if let Some(cut) = keep_first(context, &mut reply.instructions) {
            reply.next = all.get(reply.instructions.len()).map_or(reply.next, |first| first.addr);
            reply.ended = Some(cut);
        }
        Ok(reply)
    }
}
