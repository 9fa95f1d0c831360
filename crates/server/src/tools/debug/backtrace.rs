//! `backtrace`: shows how a thread came where it is.

use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct Backtrace;

impl Tool for Backtrace {
    const NAME: &'static str = "backtrace";
    const DESCRIPTION: &'static str = "Backtrace: the call stack of a stopped thread, innermost frame first, that \
         is, who called the code at a breakpoint or watchpoint. `found_by` says how certain each frame is.";
    const EFFECT: Effect = Effect::READS;
    type Params = commands::Backtrace;
    type Output = commands::BacktraceReply;

    async fn run(context: &Context, params: Self::Params) -> Result<Self::Output, ToolError> {
        let mut reply = context.agent().call(params).await?;
        if let Some(cut) = keep_first(context, &mut reply.frames) {
            reply.ended = cut;
        }
        Ok(reply)
    }
}
