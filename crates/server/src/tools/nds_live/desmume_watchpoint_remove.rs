//! `desmume_watchpoint_remove`: takes a watchpoint away.

use super::desmume_watchpoint_add::WatchpointShown;
use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct DesmumeWatchpointRemove;

/// Which one.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Params {
    #[schemars(regex(pattern = "^wp-[1-9][0-9]*$"))]
    id: String,
    /// `arm9` (default) or `arm7`.
    #[serde(default)]
    processor: Which,
}

/// The watchpoint that was.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Told {
    removed: WatchpointShown,
    #[serde(flatten)]
    place: Where,
}

impl Tool for DesmumeWatchpointRemove {
    const NAME: &'static str = "desmume_watchpoint_remove";
    const DESCRIPTION: &'static str = "Remove a watchpoint of the stopped program by its id.";
    const EFFECT: Effect = Effect::SETS;
    type Params = Params;
    type Output = Shown<Told>;

    async fn run(context: &Context, params: Params) -> Result<Self::Output, ToolError> {
        session::with(context, move |state| {
            let watchpoint = state.stopped(params.processor.into())?.remove_watchpoint(&params.id, soon())?;
            Ok(Shown(Told { removed: WatchpointShown::of(&watchpoint), place: Where::of(state) }))
        })
        .await
    }
}
