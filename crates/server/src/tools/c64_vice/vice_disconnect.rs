//! `vice_disconnect`: lets go of VICE.

use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct ViceDisconnect;

/// Nothing to say.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {}

impl Tool for ViceDisconnect {
    const NAME: &'static str = "vice_disconnect";
    const DESCRIPTION: &'static str = "Let go of the VICE connector. It and the machine go on.";
    const EFFECT: Effect = Effect::SETS;
    type Params = Params;
    type Output = Envelope;

    async fn run(context: &Context, _params: Params) -> Result<Envelope, ToolError> {
        Ok(shared::disconnected(context.vice().disconnect()))
    }
}
