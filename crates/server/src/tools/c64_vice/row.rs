//! Several calls of the connector for one tool, within one time. The first that is refused ends them, and is the answer.

use super::shared::{Envelope, Time, told};
use crate::context::Context;
use crate::errors::{ErrorCode, ToolError};
use crate::vice_client::{MemoryPart, Object, result};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Calls in a row.
pub(super) struct Row<'a> {
    context: &'a Context,
    until: Instant,
    /// What in an error says that something may have been changed.
    flag: Option<&'static str>,
    /// The last answer.
    last: Object,
}

impl<'a> Row<'a> {
    /// Calls that have `time` together.
    pub fn new(context: &'a Context, time: Time, flag: Option<&'static str>) -> Result<Self, Envelope> {
        let time = time.get("timeout_ms", ErrorCode::ViceInvalidArgument).map_err(refuse)?;
        Ok(Self { context, until: Instant::now() + Duration::from_millis(time), flag, last: Object::new() })
    }

    fn left(&self) -> u64 {
        let left = self.until.saturating_duration_since(Instant::now()).as_millis();
        u64::try_from(left).unwrap_or(u64::MAX).max(1)
    }

    /// Calls a method and gives its result.
    pub async fn call(&mut self, method: &str, arguments: Value) -> Result<Object, Envelope> {
        let envelope =
            self.context.vice().call(method, arguments, self.left()).await.map_err(|error| self.failed(error))?;
        if envelope.get("ok") != Some(&json!(true)) {
            return Err(Envelope(envelope));
        }
        let result = result(&envelope);
        self.last = envelope;
        Ok(result)
    }

    /// The number of the bank of this name.
    pub async fn bank(&mut self, name: &str) -> Result<u32, Envelope> {
        let banks = self.call("list_banks", json!({})).await?;
        let banks = banks.get("banks").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let number = banks.iter().find(|bank| bank.get("name") == Some(&json!(name))).and_then(|bank| bank.get("id"));
        number.and_then(Value::as_u64).and_then(|number| u32::try_from(number).ok()).ok_or_else(|| {
            refuse(
                ToolError::new(ErrorCode::ViceReadFailed, format!("VICE has no bank `{name}`"))
                    .hint("vice_list_banks shows what it has; it must be the emulator of the C64, x64sc"),
            )
        })
    }

    /// Memory of the computer without side effects, all of it.
    pub async fn memory(&mut self, bank: u32, start: u16, count: usize) -> Result<Vec<u8>, Envelope> {
        let part = MemoryPart { bank, memspace: 0, start, count };
        self.context.vice().read_memory(part, self.left()).await.map_err(refuse)
    }

    /// The answer of the tool: the last call's, with this result.
    pub fn answer(mut self, result: Value) -> Envelope {
        self.last.insert("ok".to_owned(), true.into());
        self.last.insert("result".to_owned(), result);
        Envelope(self.last)
    }

    fn failed(&self, error: ToolError) -> Envelope {
        let unknown = error.details.get("outcome_unknown") == Some(&json!(true));
        refuse(match self.flag {
            Some(flag) => error.detail(flag, unknown),
            None => error,
        })
    }
}

/// A refusal as the answer.
pub(super) fn refuse(error: ToolError) -> Envelope {
    told(Err(error))
}

/// What either way is the answer.
pub(super) fn either(answer: Result<Envelope, Envelope>) -> Result<Envelope, ToolError> {
    Ok(answer.unwrap_or_else(|refused| refused))
}
