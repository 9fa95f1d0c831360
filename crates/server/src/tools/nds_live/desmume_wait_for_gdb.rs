//! `desmume_wait_for_gdb`: waits until the program is loaded and stopped at its entry.

use super::desmume_probe_gdb::{Probed, reach};
use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct DesmumeWaitForGdb;

/// How long.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Params {
    #[serde(default)]
    timeout_ms: Wait,
}

impl Tool for DesmumeWaitForGdb {
    const NAME: &'static str = "desmume_wait_for_gdb";
    const DESCRIPTION: &'static str = "Wait until the emulator has loaded the ROM and is stopped at the ARM9 entry: an open port alone is not that. Next: desmume_breakpoint_add, desmume_continue.";
    const EFFECT: Effect = Effect::READS;
    type Params = Params;
    type Output = Shown<Probed>;

    async fn run(context: &Context, params: Params) -> Result<Self::Output, ToolError> {
        let until = until(params.timeout_ms, "timeoutMs")?;
        loop {
            // In parts, so that status and stop get in between.
            let part = until.min(Instant::now() + Duration::from_millis(limits::MIN_LIVE_TIMEOUT_MS));
            let probed = reach(context, part).await?;
            if probed.is_reachable() || Instant::now() >= until {
                return Ok(Shown(probed));
            }
        }
    }
}
