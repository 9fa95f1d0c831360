//! `vice_list_banks`: the banks of memory.

use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct ViceListBanks;

/// What is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Milliseconds for the whole call.
    #[serde(default)]
    timeout_ms: Time,
}

impl Tool for ViceListBanks {
    const NAME: &'static str = "vice_list_banks";
    const DESCRIPTION: &'static str = "List the banks of memory with their numbers, for vice_read_memory. In bank `cpu` memory is as the processor sees it.";
    const EFFECT: Effect = Effect::READS;
    type Params = Params;
    type Output = Envelope;

    async fn run(context: &Context, params: Params) -> Result<Envelope, ToolError> {
        shared::call(context, "list_banks", json!({}), params.timeout_ms, None).await
    }
}
