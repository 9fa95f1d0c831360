//! `vice_feed_keyboard`: types on the keyboard.

use super::prelude::*;
use super::shared::{either, invalid, refuse};

/// The tool.
#[derive(Debug)]
pub struct ViceFeedKeyboard;

/// What is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// What is typed.
    text: String,
    /// Milliseconds for the whole call.
    #[serde(default)]
    timeout_ms: Time,
}

impl Tool for ViceFeedKeyboard {
    const NAME: &'static str = "vice_feed_keyboard";
    const DESCRIPTION: &'static str = "Type text on the C64's keyboard, at most 255 keys: letters of either case are the plain keys, a new line is RETURN, and {CLR}, {F1}, {$9D} are other keys. The machine takes them when it runs.";
    const EFFECT: Effect = Effect::RUNS;
    type Params = Params;
    type Output = Envelope;

    async fn run(context: &Context, params: Params) -> Result<Envelope, ToolError> {
        either(run(context, params).await)
    }
}

async fn run(context: &Context, params: Params) -> Result<Envelope, Envelope> {
    let keys = c64::keyboard::keys(&params.text).map_err(|problem| refuse(invalid(problem.message)))?;
    let mut row = Row::new(context, params.timeout_ms, Some("vice_state_may_have_changed"))?;
    let text = json!({"encoding": "hex", "data": c64::to_hex(&keys)});
    row.call("feed_keyboard", json!({"text": text})).await?;
    let note = "the machine takes the keys when it runs, some each frame: vice_resume";
    Ok(row.answer(json!({"fed": keys.len(), "keys": c64::to_hex(&keys), "note": note})))
}
