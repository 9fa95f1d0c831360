//! `desmume_capture_stop_context`: registers and memory of the stopped program.

use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct DesmumeCaptureStopContext;

/// What to show.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Params {
    #[serde(default)]
    timeout_ms: Bounded<
        { limits::MIN_LIVE_TIMEOUT_MS },
        { limits::MAX_LIVE_SHORT_TIMEOUT_MS },
        { limits::DEFAULT_LIVE_CONTEXT_MS },
    >,
    /// Memory to show besides, up to 8.
    #[serde(default)]
    additional_regions: Vec<RegionWanted>,
    /// `arm9` (default) or `arm7`.
    #[serde(default)]
    processor: Which,
}

/// The context.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Told {
    #[serde(flatten)]
    context: ContextShown,
    #[serde(flatten)]
    place: Where,
}

impl Tool for DesmumeCaptureStopContext {
    const NAME: &'static str = "desmume_capture_stop_context";
    const DESCRIPTION: &'static str =
        "Show the stopped program: why it stopped, registers, memory around pc and at the stack, and other regions.";
    const EFFECT: Effect = Effect::READS;
    type Params = Params;
    type Output = Shown<Told>;

    async fn run(context: &Context, params: Params) -> Result<Self::Output, ToolError> {
        let until = until(params.timeout_ms, "timeoutMs")?;
        let wanted = regions(params.additional_regions, limits::MAX_GDB_STOP_REGIONS)?;
        session::with(context, move |state| {
            let context = capture(state, params.processor.into(), &wanted, until)?;
            Ok(Shown(Told { context, place: Where::of(state) }))
        })
        .await
    }
}
