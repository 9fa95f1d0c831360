//! `vice_toggle_checkpoint`: switches a checkpoint.

use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct ViceToggleCheckpoint;

/// What is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Number from vice_list_checkpoints.
    number: u32,
    /// Whether it is on.
    enabled: bool,
    /// Milliseconds for the whole call.
    #[serde(default)]
    timeout_ms: Time,
}

impl Tool for ViceToggleCheckpoint {
    const NAME: &'static str = "vice_toggle_checkpoint";
    const DESCRIPTION: &'static str = "Switch a checkpoint on or off by its number.";
    const EFFECT: Effect = Effect::SETS;
    type Params = Params;
    type Output = Envelope;

    async fn run(context: &Context, params: Params) -> Result<Envelope, ToolError> {
        shared::call(
            context,
            "toggle_checkpoint",
            json!({"number": params.number, "enabled": params.enabled}),
            params.timeout_ms,
            Some("vice_checkpoints_may_have_changed"),
        )
        .await
    }
}
