//! `desmume_stop`: ends the emulator with everything it started.

use super::desmume_status::{Status, status};
use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct DesmumeStop;

/// Nothing.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Params {}

impl Tool for DesmumeStop {
    const NAME: &'static str = "desmume_stop";
    const DESCRIPTION: &'static str = "End the emulator and its whole process group, or let an attached stub go. Breakpoints and ranges are forgotten.";
    const EFFECT: Effect = Effect::OVERWRITES;
    type Params = Params;
    type Output = Shown<Status>;

    async fn run(context: &Context, params: Params) -> Result<Self::Output, ToolError> {
        let Params {} = params;
        session::with(context, |state| {
            state.stop();
            Ok(Shown(status(state)))
        })
        .await
    }
}
