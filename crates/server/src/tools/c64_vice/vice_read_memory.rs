//! `vice_read_memory`: memory of the stopped machine.

use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct ViceReadMemory;

/// What is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Number from vice_list_banks.
    bank_id: u32,
    /// First address.
    start: u16,
    /// Last address, inclusive.
    end: u16,
    /// Whether registers of the chips notice the access.
    #[serde(default)]
    side_effects: bool,
    /// Bytes at most.
    #[serde(default)]
    max_bytes: Bytes,
    /// 0 is the computer, 1 to 4 its drives.
    #[serde(default)]
    memspace: u8,
    /// Milliseconds for the whole call.
    #[serde(default)]
    timeout_ms: Time,
}

impl Tool for ViceReadMemory {
    const NAME: &'static str = "vice_read_memory";
    const DESCRIPTION: &'static str = "Read memory of the stopped C64 from one bank, up to 64 KiB, as hexadecimal digits. next_address says where a read that was cut goes on.";
    const EFFECT: Effect = Effect::READS;
    const WHOLE: bool = true;
    type Params = Params;
    type Output = Envelope;

    async fn run(context: &Context, params: Params) -> Result<Envelope, ToolError> {
        shared::call(context, "read_memory", json!({"bank_id": params.bank_id, "start": params.start, "end": params.end, "side_effects": params.side_effects, "max_bytes": params.max_bytes, "memspace": params.memspace}), params.timeout_ms, None).await
    }
}
