//! `desmume_continue`: makes the program run until it stops.

use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct DesmumeContinue;

/// How far.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Params {
    #[serde(default)]
    timeout_ms: Wait,
    #[serde(default)]
    #[schemars(regex(pattern = "^bp-[1-9][0-9]*$"))]
    expected_breakpoint_id: Option<String>,
    /// Registers and memory with the stop.
    #[serde(default = "yes")]
    capture_context: bool,
    /// Memory to show besides, up to 8.
    #[serde(default)]
    additional_regions: Vec<RegionWanted>,
    /// `arm9` (default) or `arm7`.
    #[serde(default)]
    processor: Which,
}

impl Tool for DesmumeContinue {
    const NAME: &'static str = "desmume_continue";
    const DESCRIPTION: &'static str = "Continue the stopped program and wait for a breakpoint or watchpoint. When the time is over it runs on (kind `timeout`): wait with desmume_wait_for_stop or stop it with desmume_pause. The whole console runs; only the named processor stops it.";
    const EFFECT: Effect = Effect::RUNS;
    type Params = Params;
    type Output = Shown<RunShown>;

    async fn run(context: &Context, params: Params) -> Result<Self::Output, ToolError> {
        let until = until(params.timeout_ms, "timeoutMs")?;
        let wanted = regions(params.additional_regions, limits::MAX_GDB_STOP_REGIONS)?;
        let wanted = params.capture_context.then_some(wanted);
        let (processor, expected) = (params.processor.into(), params.expected_breakpoint_id);
        let known = expected.clone();
        session::with(context, move |state| {
            let console = state.console()?;
            if let Some(id) = known
                && !console.look(processor)?.breakpoints().iter().any(|one| one.id == id)
            {
                return Err(ToolError::new(
                    ErrorCode::InvalidArguments,
                    format!("there is no breakpoint {id} to expect"),
                )
                .hint("desmume_breakpoint_list lists them"));
            }
            Ok(console.resume(processor, soon())?)
        })
        .await?;
        let resumed = session::wait(context, until).await?;
        shown(context, resumed, wanted, expected).await.map(Shown)
    }
}
