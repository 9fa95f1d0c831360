//! The JSON around a command and its reply.

use crate::commands::Request;
use crate::error::{AgentError, ErrorCode};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// A request line taken apart: the caller's `id`, to be echoed, and the command or what is wrong with it.
#[derive(Debug)]
pub struct Envelope {
    /// The caller's `id`, any JSON value.
    pub id: Option<Value>,
    /// The command.
    pub request: Result<Request, AgentError>,
}

const FORM: &str = "a request is {\"op\":\"…\",\"params\":{…},\"id\":…} on one line; `params` and `id` may be left out";

/// Reads one request line. Never fails as a whole: what is wrong is the `Err` of `request`, so that it can be answered.
pub fn parse_request(line: &[u8]) -> Envelope {
    let bad = |message: String| AgentError::new(ErrorCode::BadRequest, message).hint(FORM);
    let value: Value = match serde_json::from_slice(line) {
        Ok(value) => value,
        Err(error) => {
            return Envelope { id: None, request: Err(bad(format!("the line is not JSON: {error}"))) };
        }
    };
    let Value::Object(mut object) = value else {
        return Envelope { id: None, request: Err(bad("the line is JSON but no object".to_owned())) };
    };
    let id = object.remove("id");
    let request = match (object.remove("op"), object.remove("params")) {
        _ if object.keys().next().is_some() => {
            let keys: Vec<String> = object.keys().take(4).map(|key| format!("`{}`", clip(key))).collect();
            Err(bad(format!("unknown key {}", keys.join(", "))))
        }
        (Some(Value::String(op)), None | Some(Value::Null)) => Request::parse(&op, Map::new()),
        (Some(Value::String(op)), Some(Value::Object(params))) => Request::parse(&op, params),
        (Some(Value::String(_)), Some(_)) => Err(bad("`params` is not an object".to_owned())),
        (Some(_), _) => Err(bad("`op` is not a string".to_owned())),
        (None, _) => Err(bad("`op` is missing".to_owned())),
    };
    Envelope { id, request }
}

/// A text from outside, short enough to be quoted in a sentence.
pub(crate) fn clip(text: &str) -> String {
    let mut short: String = text.chars().take(64).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// Writes a request line, without the newline.
pub fn encode_request(op: &str, params: &Value, id: Option<&Value>) -> String {
    let mut object = Map::new();
    object.insert("op".to_owned(), json!(op));
    object.insert("params".to_owned(), params.clone());
    if let Some(id) = id {
        object.insert("id".to_owned(), id.clone());
    }
    Value::Object(object).to_string()
}

#[derive(Serialize)]
struct OkReply<'a, R> {
    ok: bool,
    result: &'a R,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a Value>,
}

#[derive(Serialize)]
struct ErrReply<'a> {
    ok: bool,
    #[serde(flatten)]
    error: &'a AgentError,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a Value>,
}

/// Writes a reply line, without the newline.
pub fn encode_result<R: Serialize>(result: &R, id: Option<&Value>) -> String {
    match serde_json::to_string(&OkReply { ok: true, result, id }) {
        Ok(line) => line,
        Err(error) => {
            let fault =
                AgentError::new(ErrorCode::Internal, format!("the reply could not be written as JSON: {error}"));
            encode_error(&fault, id)
        }
    }
}

/// Writes an error reply line, without the newline.
pub fn encode_error(error: &AgentError, id: Option<&Value>) -> String {
    serde_json::to_string(&ErrReply { ok: false, error, id }).unwrap_or_else(|_| {
        r#"{"ok":false,"error":"the error could not be written as JSON","code":"internal"}"#.to_owned()
    })
}

/// Reads a reply line: the result, or the agent's error.
///
/// # Errors
/// The agent's own error; or `BadRequest` when the line is no reply of this protocol.
pub fn parse_reply(line: &[u8]) -> Result<Value, AgentError> {
    let bad = |message: String| {
        AgentError::new(ErrorCode::BadRequest, message).hint("is it a retroscope agent that listens there?")
    };
    let value: Value = serde_json::from_slice(line).map_err(|error| bad(format!("the reply is not JSON: {error}")))?;
    let Value::Object(mut object) = value else {
        return Err(bad("the reply is JSON but no object".to_owned()));
    };
    match object.get("ok") {
        Some(Value::Bool(true)) => object.remove("result").ok_or_else(|| bad("the reply has no `result`".to_owned())),
        Some(Value::Bool(false)) => {
            let error = serde_json::from_value::<AgentError>(Value::Object(object))
                .unwrap_or_else(|error| bad(format!("the error reply has another form: {error}")));
            Err(error)
        }
        _ => Err(bad("the reply has no `ok`".to_owned())),
    }
}
