//! `list_modules`: shows the executable and its libraries.

use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct ListModules;

impl Tool for ListModules {
    const NAME: &'static str = "list_modules";
    const DESCRIPTION: &'static str = "List the loaded modules: the executable and its libraries (DLLs, shared \
         objects), with base addresses and sizes. An address is written `module+0x10` in all tools.";
    const EFFECT: Effect = Effect::READS;
    type Params = Page;
    type Output = Paged<commands::ModulesReply>;

    async fn run(context: &Context, params: Self::Params) -> Result<Self::Output, ToolError> {
        let reply = context.agent().call(commands::ListModules {}).await?;
        params.cut(context, reply, |reply| &mut reply.modules)
    }
}
