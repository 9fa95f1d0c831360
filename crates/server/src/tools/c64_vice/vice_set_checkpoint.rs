//! `vice_set_checkpoint`: sets a checkpoint.

use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct ViceSetCheckpoint;

/// What is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// First address.
    start: u16,
    /// Last address, inclusive.
    end: u16,
    /// Whether a hit stops the machine.
    #[serde(default = "yes")]
    stop_on_hit: bool,
    /// Whether it is on.
    #[serde(default = "yes")]
    enabled: bool,
    /// Sum of 1 load, 2 store, 4 execute.
    #[serde(default)]
    operations: Operations,
    /// Whether it goes with its first hit.
    #[serde(default)]
    temporary: bool,
    /// 0 is the computer, 1 to 4 its drives.
    #[serde(default)]
    memspace: u8,
    /// Milliseconds for the whole call.
    #[serde(default)]
    timeout_ms: Time,
}

impl Tool for ViceSetCheckpoint {
    const NAME: &'static str = "vice_set_checkpoint";
    const DESCRIPTION: &'static str = "Set a checkpoint: a breakpoint (operations 4) or a watchpoint on loads (1) or stores (2), or a sum of them, over a range of addresses. vice_resume then runs to it.";
    const EFFECT: Effect = Effect::RUNS;
    type Params = Params;
    type Output = Envelope;

    async fn run(context: &Context, params: Params) -> Result<Envelope, ToolError> {
        shared::call(context, "set_checkpoint", json!({"start": params.start, "end": params.end, "stop_on_hit": params.stop_on_hit, "enabled": params.enabled, "operations": params.operations, "temporary": params.temporary, "memspace": params.memspace}), params.timeout_ms, Some("vice_checkpoints_may_have_changed")).await
    }
}
