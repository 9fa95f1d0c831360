//! `vice_wait_for_stop`: waits for a stop.

use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct ViceWaitForStop;

/// What is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Number of the last event that is known.
    after_sequence: u64,
    /// Milliseconds to wait.
    timeout_ms: Time,
}

impl Tool for ViceWaitForStop {
    const NAME: &'static str = "vice_wait_for_stop";
    const DESCRIPTION: &'static str = "Wait until the C64 has stopped after an event of this number, which the calls that run it give. The event can be asked for again.";
    const EFFECT: Effect = Effect::READS;
    type Params = Params;
    type Output = Envelope;

    async fn run(context: &Context, params: Params) -> Result<Envelope, ToolError> {
        shared::call(
            context,
            "wait_for_stop",
            json!({"after_sequence": params.after_sequence}),
            params.timeout_ms,
            None,
        )
        .await
    }
}
