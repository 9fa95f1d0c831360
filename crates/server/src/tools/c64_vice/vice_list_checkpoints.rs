//! `vice_list_checkpoints`: the checkpoints.

use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct ViceListCheckpoints;

/// What is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Milliseconds for the whole call.
    #[serde(default)]
    timeout_ms: Time,
}

impl Tool for ViceListCheckpoints {
    const NAME: &'static str = "vice_list_checkpoints";
    const DESCRIPTION: &'static str =
        "List the checkpoints (breakpoints and watchpoints) of VICE, with how often each was hit.";
    const EFFECT: Effect = Effect::READS;
    type Params = Params;
    type Output = Envelope;

    async fn run(context: &Context, params: Params) -> Result<Envelope, ToolError> {
        shared::call(context, "list_checkpoints", json!({}), params.timeout_ms, None).await
    }
}
