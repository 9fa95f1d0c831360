//! `vice_set_registers`: sets registers.

use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct ViceSetRegisters;

/// What is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Value of each register.
    values: BTreeMap<String, u32>,
    /// 0 is the computer, 1 to 4 its drives.
    #[serde(default)]
    memspace: u8,
    /// Milliseconds for the whole call.
    #[serde(default)]
    timeout_ms: Time,
}

impl Tool for ViceSetRegisters {
    const NAME: &'static str = "vice_set_registers";
    const DESCRIPTION: &'static str = "Set registers of the stopped C64 by name, like {\"PC\": 49152}.";
    const EFFECT: Effect = Effect::OVERWRITES;
    type Params = Params;
    type Output = Envelope;

    async fn run(context: &Context, params: Params) -> Result<Envelope, ToolError> {
        shared::call(context, "set_registers", json!({"names": params.values.keys().collect::<Vec<_>>(), "values": params.values.values().collect::<Vec<_>>(), "memspace": params.memspace}), params.timeout_ms, Some("vice_registers_may_have_changed")).await
    }
}
