//! `vice_delete_checkpoint`: deletes a checkpoint.

use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct ViceDeleteCheckpoint;

/// What is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Number from vice_list_checkpoints.
    number: u32,
    /// Milliseconds for the whole call.
    #[serde(default)]
    timeout_ms: Time,
}

impl Tool for ViceDeleteCheckpoint {
    const NAME: &'static str = "vice_delete_checkpoint";
    const DESCRIPTION: &'static str = "Delete a checkpoint by its number.";
    const EFFECT: Effect = Effect::SETS;
    type Params = Params;
    type Output = Envelope;

    async fn run(context: &Context, params: Params) -> Result<Envelope, ToolError> {
        shared::call(
            context,
            "delete_checkpoint",
            json!({"number": params.number}),
            params.timeout_ms,
            Some("vice_checkpoints_may_have_changed"),
        )
        .await
    }
}
