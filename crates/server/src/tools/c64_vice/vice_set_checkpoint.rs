//! `vice_set_checkpoint`: sets a checkpoint.

use super::prelude::*;
use super::shared::{either, invalid, refuse};
use crate::errors::ErrorCode;
use serde_json::Value;

/// The tool.
#[derive(Debug)]
pub struct ViceSetCheckpoint;

/// What is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// First address.
    start: u16,
    /// Last address, inclusive.
    end: u16,
    /// Whether a hit stops the machine.
    #[serde(default = "yes")]
    stop_on_hit: bool,
    /// Whether it is on.
    #[serde(default = "yes")]
    enabled: bool,
    /// Sum of 1 load, 2 store, 4 execute.
    #[serde(default)]
    operations: Operations,
    /// Whether it goes with its first hit.
    #[serde(default)]
    temporary: bool,
    /// 0 is the computer, 1 to 4 its drives.
    #[serde(default)]
    memspace: u8,
    /// It counts only when this holds, in the words of VICE's monitor: `A == $05`, `X > 3 && Y == 0`.
    condition: Option<String>,
    /// Milliseconds for the whole call.
    #[serde(default)]
    timeout_ms: Time,
}

impl Tool for ViceSetCheckpoint {
    const NAME: &'static str = "vice_set_checkpoint";
    const DESCRIPTION: &'static str = "Set a checkpoint: a breakpoint (operations 4) or a watchpoint on loads (1) or stores (2), or a sum of them, over a range of addresses. vice_resume then runs to it.";
    const EFFECT: Effect = Effect::RUNS;
    type Params = Params;
    type Output = Envelope;

    async fn run(context: &Context, params: Params) -> Result<Envelope, ToolError> {
        match params.condition.clone() {
            Some(condition) => either(conditional(context, params, condition).await),
            None => {
                let enabled = params.enabled;
                shared::call(context, "set_checkpoint", params.arguments(enabled), params.timeout_ms, Some(FLAG)).await
            }
        }
    }
}

/// What in an error says that checkpoints may be others.
const FLAG: &str = "vice_checkpoints_may_have_changed";

impl Params {
    fn arguments(&self, enabled: bool) -> Value {
        json!({
            "start": self.start,
            "end": self.end,
            "stop_on_hit": self.stop_on_hit,
            "enabled": enabled,
            "operations": self.operations,
            "temporary": self.temporary,
            "memspace": self.memspace,
        })
    }
}

/// Sets it switched off, gives it its condition, then switches it on: without the condition it is never hit. One whose condition
/// VICE does not take goes again.
async fn conditional(context: &Context, params: Params, condition: String) -> Result<Envelope, Envelope> {
    if params.temporary {
        let error = invalid("a temporary checkpoint takes no condition: VICE runs the machine as soon as it is made");
        return Err(refuse(error.hint("leave temporary out, and delete the checkpoint after its hit")));
    }
    let vice = context.vice();
    if vice.status().get("state") != Some(&json!("unbound")) && !vice.offers("set_condition") {
        let message = "the connector cannot set conditions, so no checkpoint was set";
        let error = ToolError::new(ErrorCode::ViceConnectorIncompatible, message);
        return Err(refuse(error.hint("`retroscope vice-connector` can; or set it without one and look at each hit")));
    }
    let mut row = Row::new(context, params.timeout_ms, Some(FLAG))?;
    let made = row.call("set_checkpoint", params.arguments(false)).await?;
    let number = made.get("checkpoint").and_then(|made| made.get("number")).cloned().unwrap_or_default();
    if let Err(refused) = row.call("set_condition", json!({"number": number, "expression": condition})).await {
        let gone = row.call("delete_checkpoint", json!({"number": number})).await.is_ok();
        let mut refused = refused;
        if let Some(error) = refused.0.get_mut("error").and_then(Value::as_object_mut) {
            let hint = format!(
                "the condition `{condition}` was not taken{}; one that is: A == $05 && X > 3",
                if gone { ", and the checkpoint is gone again" } else { "" }
            );
            error.insert("guidance".to_owned(), hint.into());
            error.insert(FLAG.to_owned(), (!gone).into());
        }
        return Err(refused);
    }
    if params.enabled {
        row.call("toggle_checkpoint", json!({"number": number, "enabled": true})).await?;
    }
    let listed = row.call("list_checkpoints", json!({})).await?;
    let listed = listed.get("checkpoints").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let now = listed.iter().find(|one| one.get("number") == Some(&number)).cloned().unwrap_or_default();
    Ok(row.answer(json!({"checkpoint": now, "condition": condition})))
}
