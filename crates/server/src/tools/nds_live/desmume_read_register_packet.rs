//! `desmume_read_register_packet`: the registers of a stopped processor.

use super::prelude::*;
use std::collections::BTreeMap;

/// The tool.
#[derive(Debug)]
pub struct DesmumeReadRegisterPacket;

/// Of which processor.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Params {
    /// `arm9` (default) or `arm7`.
    #[serde(default)]
    processor: Which,
}

/// The registers.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Told {
    /// The packet as the stub gives it.
    register_hex: String,
    byte_length: usize,
    /// r0 to r12, sp, lr, pc, cpsr.
    registers: BTreeMap<String, u32>,
    /// `arm` or `thumb`.
    mode: &'static str,
    #[serde(flatten)]
    place: Where,
}

impl Tool for DesmumeReadRegisterPacket {
    const NAME: &'static str = "desmume_read_register_packet";
    const DESCRIPTION: &'static str = "Read the registers of the stopped ARM9 or ARM7, raw and by name.";
    const EFFECT: Effect = Effect::READS;
    type Params = Params;
    type Output = Shown<Told>;

    async fn run(context: &Context, params: Params) -> Result<Self::Output, ToolError> {
        session::with(context, move |state| {
            let debugger = state.stopped(params.processor.into())?;
            let bytes = debugger.register_packet(soon())?;
            let read = debugger.registers(soon())?;
            Ok(Shown(Told {
                register_hex: hex(&bytes),
                byte_length: bytes.len(),
                registers: registers(&read),
                mode: session::mode_word(read.mode()),
                place: Where::of(state),
            }))
        })
        .await
    }
}
