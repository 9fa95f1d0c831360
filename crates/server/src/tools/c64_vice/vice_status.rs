//! `vice_status`: the last known state.

use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct ViceStatus;

/// Nothing to say.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {}

impl Tool for ViceStatus {
    const NAME: &'static str = "vice_status";
    const DESCRIPTION: &'static str = "Show the last known state of the connection to VICE, without asking it.";
    const EFFECT: Effect = Effect::READS;
    type Params = Params;
    type Output = Envelope;

    async fn run(context: &Context, _params: Params) -> Result<Envelope, ToolError> {
        Ok(Envelope(context.vice().status()))
    }
}
