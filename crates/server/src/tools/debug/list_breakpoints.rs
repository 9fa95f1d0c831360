//! `list_breakpoints`: shows the breakpoints.

use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct ListBreakpoints;

impl Tool for ListBreakpoints {
    const NAME: &'static str = "list_breakpoints";
    const DESCRIPTION: &'static str = "List the breakpoints with their conditions, hit counts and whether they \
         wait for a module to be loaded.";
    const EFFECT: Effect = Effect::READS;
    type Params = Page;
    type Output = Paged<commands::BreakpointsReply>;

    async fn run(context: &Context, params: Self::Params) -> Result<Self::Output, ToolError> {
        let reply = context.agent().call(commands::ListBreakpoints {}).await?;
        params.cut(context, reply, |reply| &mut reply.list)
    }
}
