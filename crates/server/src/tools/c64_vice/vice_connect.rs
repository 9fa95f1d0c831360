//! `vice_connect`: connects to VICE.

use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct ViceConnect;

/// Nothing to say.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {}

impl Tool for ViceConnect {
    const NAME: &'static str = "vice_connect";
    const DESCRIPTION: &'static str = "Connect to a running VICE through its connector, which is checked first: methods, capabilities, limits. Call it before every other vice tool.";
    const EFFECT: Effect = Effect::SETS;
    type Params = Params;
    type Output = Envelope;

    async fn run(context: &Context, _params: Params) -> Result<Envelope, ToolError> {
        Ok(shared::told(context.vice().connect().await))
    }
}
