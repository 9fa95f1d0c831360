//! `desmume_wait_for_stop`: waits for the running program to stop.

use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct DesmumeWaitForStop;

/// How long.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Params {
    timeout_ms: Wait,
    /// Registers and memory with the stop.
    #[serde(default = "yes")]
    capture_context: bool,
    /// Memory to show besides, up to 8.
    #[serde(default)]
    additional_regions: Vec<RegionWanted>,
}

impl Tool for DesmumeWaitForStop {
    const NAME: &'static str = "desmume_wait_for_stop";
    const DESCRIPTION: &'static str =
        "Wait for the running program to stop; when the time is over it runs on (kind `timeout`).";
    const EFFECT: Effect = Effect::READS;
    type Params = Params;
    type Output = Shown<RunShown>;

    async fn run(context: &Context, params: Params) -> Result<Self::Output, ToolError> {
        let until = until(params.timeout_ms, "timeoutMs")?;
        let wanted = regions(params.additional_regions, limits::MAX_GDB_STOP_REGIONS)?;
        let wanted = params.capture_context.then_some(wanted);
        let resumed = session::wait(context, until).await?;
        shown(context, resumed, wanted, None).await.map(Shown)
    }
}
