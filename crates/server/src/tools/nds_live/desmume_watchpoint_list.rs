//! `desmume_watchpoint_list`: all watchpoints.

use super::desmume_watchpoint_add::WatchpointShown;
use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct DesmumeWatchpointList;

/// Of which processor.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Params {
    /// `arm9` (default) or `arm7`.
    #[serde(default)]
    processor: Which,
}

/// The watchpoints.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Told {
    watchpoints: Vec<WatchpointShown>,
    maximum_watchpoints: usize,
    #[serde(flatten)]
    place: Where,
}

impl Tool for DesmumeWatchpointList {
    const NAME: &'static str = "desmume_watchpoint_list";
    const DESCRIPTION: &'static str = "List watchpoints on data with their hits.";
    const EFFECT: Effect = Effect::READS;
    type Params = Params;
    type Output = Shown<Told>;

    async fn run(context: &Context, params: Params) -> Result<Self::Output, ToolError> {
        session::with(context, move |state| {
            let place = Where::of(state);
            let console = state.seen().and_then(|machine| machine.console.as_ref());
            let debugger = console.map(|console| console.look(params.processor.into())).transpose()?;
            let watchpoints = debugger.map(|one| one.watchpoints().iter().map(WatchpointShown::of).collect());
            Ok(Shown(Told {
                watchpoints: watchpoints.unwrap_or_default(),
                maximum_watchpoints: limits::MAX_GDB_WATCHPOINTS,
                place,
            }))
        })
        .await
    }
}
