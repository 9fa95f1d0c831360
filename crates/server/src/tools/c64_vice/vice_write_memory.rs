//! `vice_write_memory`: writes memory.

use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct ViceWriteMemory;

/// What is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Number from vice_list_banks.
    bank_id: u32,
    /// First address.
    start: u16,
    /// The bytes.
    bytes: Data,
    /// Whether registers of the chips notice the access.
    #[serde(default)]
    side_effects: bool,
    /// 0 is the computer, 1 to 4 its drives.
    #[serde(default)]
    memspace: u8,
    /// Milliseconds for the whole call.
    #[serde(default)]
    timeout_ms: Time,
}

impl Tool for ViceWriteMemory {
    const NAME: &'static str = "vice_write_memory";
    const DESCRIPTION: &'static str = "Write bytes into memory of the stopped C64 in one bank.";
    const EFFECT: Effect = Effect::OVERWRITES;
    type Params = Params;
    type Output = Envelope;

    async fn run(context: &Context, params: Params) -> Result<Envelope, ToolError> {
        shared::call(context, "write_memory", json!({"bank_id": params.bank_id, "start": params.start, "data": params.bytes, "side_effects": params.side_effects, "memspace": params.memspace}), params.timeout_ms, Some("vice_memory_may_be_modified")).await
    }
}
