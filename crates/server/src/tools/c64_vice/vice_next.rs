//! `vice_next`: steps over.

use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct ViceNext;

/// What is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Instructions.
    #[serde(default)]
    count: Count,
    /// Milliseconds for the whole call.
    #[serde(default)]
    timeout_ms: Time,
}

impl Tool for ViceNext {
    const NAME: &'static str = "vice_next";
    const DESCRIPTION: &'static str = "Step so many instructions of the stopped C64; a subroutine counts as one.";
    const EFFECT: Effect = Effect::RUNS;
    type Params = Params;
    type Output = Envelope;

    async fn run(context: &Context, params: Params) -> Result<Envelope, ToolError> {
        shared::call(
            context,
            "next",
            json!({"count": params.count}),
            params.timeout_ms,
            Some("vice_state_may_have_changed"),
        )
        .await
    }
}
