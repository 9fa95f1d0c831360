//! `list_threads`: shows the threads.

use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct ListThreads;

impl Tool for ListThreads {
    const NAME: &'static str = "list_threads";
    const DESCRIPTION: &'static str = "List the threads of the program, with names and, while stopped, where each \
         one is.";
    const EFFECT: Effect = Effect::READS;
    type Params = Page;
    type Output = Paged<commands::ThreadsReply>;

    async fn run(context: &Context, params: Self::Params) -> Result<Self::Output, ToolError> {
        let reply = context.agent().call(commands::ListThreads {}).await?;
        params.cut(context, reply, |reply| &mut reply.threads)
    }
}
