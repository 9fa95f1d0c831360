//! `vice_interrupt`: stops the machine.

use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct ViceInterrupt;

/// What is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Milliseconds for the whole call.
    #[serde(default)]
    timeout_ms: Time,
}

impl Tool for ViceInterrupt {
    const NAME: &'static str = "vice_interrupt";
    const DESCRIPTION: &'static str = "Stop the running C64.";
    const EFFECT: Effect = Effect::RUNS;
    type Params = Params;
    type Output = Envelope;

    async fn run(context: &Context, params: Params) -> Result<Envelope, ToolError> {
        shared::call(context, "interrupt", json!({}), params.timeout_ms, Some("vice_state_may_have_changed")).await
    }
}
