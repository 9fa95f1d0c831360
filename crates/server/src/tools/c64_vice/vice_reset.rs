//! `vice_reset`: resets the machine.

use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct ViceReset;

/// What is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Which.
    #[serde(default)]
    kind: ResetKind,
    /// Milliseconds for the whole call.
    #[serde(default)]
    timeout_ms: Time,
}

impl Tool for ViceReset {
    const NAME: &'static str = "vice_reset";
    const DESCRIPTION: &'static str = "Reset the C64 (soft or hard) or a drive.";
    const EFFECT: Effect = Effect::ANYTHING;
    type Params = Params;
    type Output = Envelope;

    async fn run(context: &Context, params: Params) -> Result<Envelope, ToolError> {
        shared::call(
            context,
            "reset",
            json!({"kind": params.kind}),
            params.timeout_ms,
            Some("vice_state_may_have_changed"),
        )
        .await
    }
}
