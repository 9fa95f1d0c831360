//! `desmume_breakpoint_remove`: takes a breakpoint away.

use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct DesmumeBreakpointRemove;

/// Which one.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Params {
    #[schemars(regex(pattern = "^bp-[1-9][0-9]*$"))]
    id: String,
    /// `arm9` (default) or `arm7`.
    #[serde(default)]
    processor: Which,
}

/// The breakpoint that was.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Told {
    removed: BreakpointShown,
    #[serde(flatten)]
    place: Where,
}

impl Tool for DesmumeBreakpointRemove {
    const NAME: &'static str = "desmume_breakpoint_remove";
    const DESCRIPTION: &'static str = "Remove a breakpoint of the stopped program by its id.";
    const EFFECT: Effect = Effect::SETS;
    type Params = Params;
    type Output = Shown<Told>;

    async fn run(context: &Context, params: Params) -> Result<Self::Output, ToolError> {
        session::with(context, move |state| {
            let breakpoint = state.stopped(params.processor.into())?.remove_breakpoint(&params.id, soon())?;
            Ok(Shown(Told { removed: BreakpointShown::of(&breakpoint), place: Where::of(state) }))
        })
        .await
    }
}
