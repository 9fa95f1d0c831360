//! `vice_finish`: runs to the end of the subroutine.

use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct ViceFinish;

/// What is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Milliseconds for the whole call.
    #[serde(default)]
    timeout_ms: Time,
}

impl Tool for ViceFinish {
    const NAME: &'static str = "vice_finish";
    const DESCRIPTION: &'static str = "Run until the current subroutine of the stopped C64 returns.";
    const EFFECT: Effect = Effect::RUNS;
    type Params = Params;
    type Output = Envelope;

    async fn run(context: &Context, params: Params) -> Result<Envelope, ToolError> {
        shared::call(context, "finish", json!({}), params.timeout_ms, Some("vice_state_may_have_changed")).await
    }
}
