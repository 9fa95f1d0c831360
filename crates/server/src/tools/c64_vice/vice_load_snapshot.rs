//! `vice_load_snapshot`: loads a state of the machine.

use super::prelude::*;
use super::shared::{either, refuse};
use super::snapshot_file::Passing;

/// The tool.
#[derive(Debug)]
pub struct ViceLoadSnapshot;

/// What is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// The file, below the workspace.
    path: String,
    /// Milliseconds for the whole call.
    #[serde(default)]
    timeout_ms: Time,
}

impl Tool for ViceLoadSnapshot {
    const NAME: &'static str = "vice_load_snapshot";
    const DESCRIPTION: &'static str = "Put the stopped C64 into the state of a snapshot file below the workspace. Checkpoints stay; what happened before is no longer its past.";
    const EFFECT: Effect = Effect::RUNS;
    type Params = Params;
    type Output = Envelope;

    async fn run(context: &Context, params: Params) -> Result<Envelope, ToolError> {
        either(run(context, params).await)
    }
}

async fn run(context: &Context, params: Params) -> Result<Envelope, Envelope> {
    let passing = Passing::new().map_err(refuse)?;
    let bytes = passing.lay(context, &params.path).map_err(refuse)?;
    let name = passing.name().map_err(refuse)?;
    let mut row = Row::new(context, params.timeout_ms, Some("vice_state_may_have_changed"))?;
    let mut told = row.call("load_snapshot", json!({"path": name})).await?;
    told.insert("path".to_owned(), params.path.into());
    told.insert("bytes".to_owned(), bytes.into());
    Ok(row.answer(told.into()))
}
