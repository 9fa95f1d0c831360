//! `call_tool`: any tool by its name, for clients that list hardly any.

use crate::context::Context;
use crate::errors::{ErrorCode, ToolError};
use crate::tools::{self, Answer, Effect, Output, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

/// The tool.
#[derive(Debug)]
pub struct CallTool;

/// Which tool, and its arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Name of the tool.
    name: String,
    /// Its arguments, as search_tools with `include_schemas` shows them.
    #[serde(default)]
    arguments: Map<String, Value>,
}

/// The answer of the tool that was called, as it is.
#[derive(Debug)]
pub struct Inner(Answer);

impl Output for Inner {
    fn schema() -> Option<Map<String, Value>> {
        None
    }

    fn answer(self) -> Result<Answer, ToolError> {
        Ok(self.0)
    }
}

impl Tool for CallTool {
    const NAME: &'static str = "call_tool";
    const DESCRIPTION: &'static str = "Call any tool of any group by its name. Find the name and the arguments with \
         search_tools (`include_schemas: true`) first; the answer is that of the tool.";
    const EFFECT: Effect = Effect::ANYTHING;
    type Params = Params;
    type Output = Inner;

    async fn run(context: &Context, params: Params) -> Result<Inner, ToolError> {
        match tools::find(&params.name) {
            Some(tool) if tool.name != Self::NAME => tool.call(context, params.arguments).await.map(Inner),
            Some(_) => Err(ToolError::new(ErrorCode::InvalidArguments, "call_tool does not call itself")),
            None => Err(unknown(&params.name)),
        }
    }
}

/// The refusal of a name that no tool has.
pub fn unknown(name: &str) -> ToolError {
    let shown: String = name.chars().take(64).collect();
    let error = ToolError::new(ErrorCode::UnknownTool, format!("there is no tool `{shown}`"));
    match tools::nearest(name) {
        Some(near) => error.hint(format!("did you mean `{near}`? search_tools finds tools by what they do")),
        None => error.hint("search_tools finds tools by what they do"),
    }
}
