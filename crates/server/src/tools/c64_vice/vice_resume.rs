//! `vice_resume`: lets the machine run.

use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct ViceResume;

/// What is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Milliseconds for the whole call.
    #[serde(default)]
    timeout_ms: Time,
}

impl Tool for ViceResume {
    const NAME: &'static str = "vice_resume";
    const DESCRIPTION: &'static str =
        "Let the stopped C64 run. vice_wait_for_stop waits for a checkpoint, vice_interrupt stops it.";
    const EFFECT: Effect = Effect::RUNS;
    type Params = Params;
    type Output = Envelope;

    async fn run(context: &Context, params: Params) -> Result<Envelope, ToolError> {
        shared::call(context, "resume", json!({}), params.timeout_ms, Some("vice_state_may_have_changed")).await
    }
}
