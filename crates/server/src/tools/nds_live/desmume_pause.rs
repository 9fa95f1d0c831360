//! `desmume_pause`: stops the running program.

use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct DesmumePause;

/// How long it may take.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Params {
    #[serde(default)]
    timeout_ms: Moment,
    /// Registers and memory with the stop.
    #[serde(default = "yes")]
    capture_context: bool,
    /// Memory to show besides, up to 8.
    #[serde(default)]
    additional_regions: Vec<RegionWanted>,
}

impl Tool for DesmumePause {
    const NAME: &'static str = "desmume_pause";
    const DESCRIPTION: &'static str = "Stop the running program wherever it is; one that is stopped stays so.";
    const EFFECT: Effect = Effect::SETS;
    type Params = Params;
    type Output = Shown<RunShown>;

    async fn run(context: &Context, params: Params) -> Result<Self::Output, ToolError> {
        let until = until(params.timeout_ms, "timeoutMs")?;
        let wanted = regions(params.additional_regions, limits::MAX_GDB_STOP_REGIONS)?;
        let wanted = params.capture_context.then_some(wanted);
        let paused = session::with(context, move |state| state.pause(until)).await?;
        shown(context, paused, wanted, None).await.map(Shown)
    }
}
