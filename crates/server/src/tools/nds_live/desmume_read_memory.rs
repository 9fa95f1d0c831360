//! `desmume_read_memory`: memory of the stopped program.

use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct DesmumeReadMemory;

/// Which memory.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Params {
    address: Address,
    /// 1 to 65536 bytes.
    length: u32,
    /// `arm9` (default) or `arm7`.
    #[serde(default)]
    processor: Which,
}

/// The bytes.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Told {
    address: u32,
    length: usize,
    data_hex: String,
    #[serde(flatten)]
    place: Where,
}

impl Tool for DesmumeReadMemory {
    const NAME: &'static str = "desmume_read_memory";
    const DESCRIPTION: &'static str = "Read memory of the stopped program, up to 64 KiB, as the processor sees it. All of it, or an error that says how far it could be read.";
    const EFFECT: Effect = Effect::READS;
    const WHOLE: bool = true;
    type Params = Params;
    type Output = Shown<Told>;

    async fn run(context: &Context, params: Params) -> Result<Self::Output, ToolError> {
        session::with(context, move |state| {
            let bytes = state.stopped(params.processor.into())?.read_memory(params.address.0, params.length, soon())?;
            Ok(Shown(Told {
                address: params.address.0,
                length: bytes.len(),
                data_hex: hex(&bytes),
                place: Where::of(state),
            }))
        })
        .await
    }
}
