//! `desmume_breakpoint_list`: all breakpoints and executable ranges.

use super::desmume_executable_ranges_replace::RangeShown;
use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct DesmumeBreakpointList;

/// Of which processor.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Params {
    /// `arm9` (default) or `arm7`.
    #[serde(default)]
    processor: Which,
}

/// The breakpoints.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Told {
    /// Whether the debugger is connected.
    initialized: bool,
    breakpoints: Vec<BreakpointShown>,
    maximum_breakpoints: usize,
    executable_ranges: Vec<RangeShown>,
    /// Whether a stop was seen that the program has not left.
    has_stop: bool,
    #[serde(flatten)]
    place: Where,
}

impl Tool for DesmumeBreakpointList {
    const NAME: &'static str = "desmume_breakpoint_list";
    const DESCRIPTION: &'static str =
        "List breakpoints with their hits, and the executable ranges that breakpoints may be set in.";
    const EFFECT: Effect = Effect::READS;
    type Params = Params;
    type Output = Shown<Told>;

    async fn run(context: &Context, params: Params) -> Result<Self::Output, ToolError> {
        session::with(context, move |state| {
            let place = Where::of(state);
            let console = state.seen().and_then(|machine| machine.console.as_ref());
            let debugger = console.map(|console| console.look(params.processor.into())).transpose()?;
            Ok(Shown(Told {
                initialized: debugger.is_some(),
                breakpoints: debugger
                    .map(|one| one.breakpoints().iter().map(BreakpointShown::of).collect())
                    .unwrap_or_default(),
                maximum_breakpoints: limits::MAX_GDB_BREAKPOINTS,
                executable_ranges: debugger
                    .map(|one| one.ranges().iter().map(RangeShown::of).collect())
                    .unwrap_or_default(),
                has_stop: debugger.is_some_and(|one| one.last_stop().is_some()),
                place,
            }))
        })
        .await
    }
}
