//! What the tools of VICE share: the types of their arguments, the call of a method with its envelope, and several calls for one
//! tool, within one time: the first that is refused ends them, and is the answer.

use crate::context::Context;
use crate::errors::{ErrorCode, ToolError};
use crate::tools::c64_shared::ByteInput;
use crate::tools::nds::shared::params::Bounded;
use crate::vice_client::{MemoryPart, Object, result};
use base::limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Time for a call, in milliseconds.
pub type Time = Bounded<1, { limits::MAX_VICE_TOOL_TIMEOUT_MS }, { limits::DEFAULT_VICE_TIMEOUT_MS }>;

/// The connector's envelope, or `{ok: false, error}` of the layers above it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Envelope(pub Object);

/// A number within bounds; the connector's own are the same.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Count(#[schemars(range(min = 1, max = 65_535))] u32);

impl Default for Count {
    fn default() -> Self {
        Self(1)
    }
}

/// Bytes of a read.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Bytes(#[schemars(range(min = 1, max = 65_536))] usize);

impl Default for Bytes {
    fn default() -> Self {
        Self(limits::DEFAULT_VICE_READ_BYTES)
    }
}

/// What a checkpoint watches.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Operations(#[schemars(range(min = 1, max = 7))] u8);

impl Default for Operations {
    fn default() -> Self {
        Self(4)
    }
}

/// What is reset.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
#[allow(missing_docs, reason = "the words say it, and docs would be in the schema")]
pub enum ResetKind {
    #[default]
    Soft,
    Hard,
    Drive8,
    Drive9,
}

/// Bytes to write: hexadecimal digits, with or without `0x`, or numbers.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(try_from = "ByteInput")]
#[schemars(with = "ByteInput", inline)]
pub struct Data(Vec<u8>);

impl TryFrom<ByteInput> for Data {
    type Error = String;

    fn try_from(input: ByteInput) -> Result<Self, String> {
        let input = match input {
            ByteInput::Hex(text) => ByteInput::Hex(text.strip_prefix("0x").unwrap_or(&text).to_owned()),
            list @ ByteInput::List(_) => list,
        };
        input.bytes("bytes").map(Self).map_err(|error| error.message)
    }
}

impl Serialize for Data {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        json!({"encoding": "hex", "data": c64::to_hex(&self.0)}).serialize(serializer)
    }
}

/// A wrong argument.
pub fn invalid(message: impl Into<String>) -> ToolError {
    ToolError::new(ErrorCode::ViceInvalidArgument, message)
}

/// An argument that is `true` when it is left out.
pub const fn yes() -> bool {
    true
}

/// Calls a method. `flag` names in an error what may have been changed.
///
/// # Errors
/// None: the envelope says it.
pub async fn call(
    context: &Context,
    method: &str,
    arguments: Value,
    time: Time,
    flag: Option<&str>,
) -> Result<Envelope, ToolError> {
    let called = async {
        let time = time.get("timeout_ms", ErrorCode::ViceInvalidArgument)?;
        context.vice().call(method, arguments, time).await
    };
    Ok(told(called.await.map_err(|error| {
        let unknown = error.details.get("outcome_unknown") == Some(&json!(true));
        match flag {
            Some(flag) => error.detail(flag, unknown),
            None => error,
        }
    })))
}

/// An answer, or a refusal in its form.
pub fn told(answer: Result<Object, ToolError>) -> Envelope {
    Envelope(answer.unwrap_or_else(|refused| {
        let mut error = refused.details;
        error.insert("code".to_owned(), refused.code.word().into());
        error.insert("message".to_owned(), refused.message.into());
        error.insert("guidance".to_owned(), refused.hint.into());
        Object::from_iter([("ok".to_owned(), false.into()), ("error".to_owned(), error.into())])
    }))
}

/// What is said of the end of a connection.
pub fn disconnected(released: bool) -> Envelope {
    let message = if released { "let go of the connector, which goes on" } else { "there was no connection" };
    Envelope(Object::from_iter([
        ("ok".to_owned(), true.into()),
        ("state".to_owned(), "unbound".into()),
        ("released".to_owned(), released.into()),
        ("connector_externally_owned".to_owned(), true.into()),
        ("message".to_owned(), message.into()),
    ]))
}

/// Several calls in a row.
pub struct Row<'a> {
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
pub fn refuse(error: ToolError) -> Envelope {
    told(Err(error))
}

/// What either way is the answer.
pub fn either(answer: Result<Envelope, Envelope>) -> Result<Envelope, ToolError> {
    Ok(answer.unwrap_or_else(|refused| refused))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_sent_as_hexadecimal_digits() {
        for given in [json!("0x0aff"), json!("0AFF"), json!([10, 255])] {
            let data: Data = serde_json::from_value(given).unwrap();
            assert_eq!(serde_json::to_value(&data).unwrap(), json!({"encoding": "hex", "data": "0aff"}));
        }
        assert!(serde_json::from_value::<Data>(json!([256])).is_err());
    }
}
