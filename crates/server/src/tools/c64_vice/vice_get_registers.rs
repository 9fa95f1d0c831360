//! `vice_get_registers`: registers of the stopped machine.

use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct ViceGetRegisters;

/// What is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Which; all when left out. None twice.
    #[serde(default)]
    names: Option<Vec<String>>,
    /// 0 is the computer, 1 to 4 its drives.
    #[serde(default)]
    memspace: u8,
    /// Milliseconds for the whole call.
    #[serde(default)]
    timeout_ms: Time,
}

impl Tool for ViceGetRegisters {
    const NAME: &'static str = "vice_get_registers";
    const DESCRIPTION: &'static str = "Read registers of the stopped C64: all, or those named. Names as VICE has them: PC, A, X, Y, SP, FL, LIN, CYC.";
    const EFFECT: Effect = Effect::READS;
    type Params = Params;
    type Output = Envelope;

    async fn run(context: &Context, params: Params) -> Result<Envelope, ToolError> {
        shared::call(
            context,
            "get_registers",
            json!({"names": params.names.unwrap_or_default(), "memspace": params.memspace}),
            params.timeout_ms,
            None,
        )
        .await
    }
}
