//! The few MCP messages that are needed, in the form of a session and in the stateless form, as raw JSON-RPC.

use serde_json::{Value, json};
use std::error::Error;

/// The tool that is called: it needs no agent, so that only the server is measured.
pub const TOOL: &str = "list_tool_groups";

/// How a client speaks.
#[derive(Clone, Copy)]
pub enum Era {
    /// `initialize` first, then requests.
    Session,
    /// Every request says what it must.
    Stateless,
}

impl Era {
    pub const ALL: [Self; 2] = [Self::Session, Self::Stateless];

    /// The revision of the protocol.
    pub fn name(self) -> &'static str {
        match self {
            Self::Session => "2025-11-25",
            Self::Stateless => "2026-07-28",
        }
    }

    /// A request of this form.
    pub fn request(self, id: usize, method: &str, mut params: Value) -> Value {
        if let (Self::Stateless, Some(params)) = (self, params.as_object_mut()) {
            let meta = json!({
                "io.modelcontextprotocol/protocolVersion": self.name(),
                "io.modelcontextprotocol/clientInfo": client(),
                "io.modelcontextprotocol/clientCapabilities": {},
            });
            params.insert("_meta".to_owned(), meta);
        }
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
    }

    /// What must be said before the first request: a request and a notification.
    pub fn greeting(self) -> Option<(Value, Value)> {
        match self {
            Self::Session => Some((
                self.request(
                    0,
                    "initialize",
                    json!({"protocolVersion": self.name(), "capabilities": {}, "clientInfo": client()}),
                ),
                json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            )),
            Self::Stateless => None,
        }
    }
}

fn client() -> Value {
    json!({"name": "bench", "version": "1"})
}

/// Parameters of the call.
pub fn call() -> Value {
    json!({"name": TOOL, "arguments": {}})
}

/// The result in `reply`, which is one message, or a stream of events of which one is the message.
pub fn result(reply: &[u8], id: usize) -> Result<Value, Box<dyn Error>> {
    let text = std::str::from_utf8(reply)?;
    let lines = text.lines().map(|line| line.strip_prefix("data:").unwrap_or(line));
    let mut messages = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let message = messages.find(|message| message.get("id") == Some(&json!(id)));
    let result = message.as_ref().and_then(|message| message.get("result"));
    let failed = |result: &&Value| result.get("isError") == Some(&Value::Bool(true));
    match result {
        Some(result) if !failed(&result) => Ok(result.clone()),
        _ => Err(format!("no result for request {id} in: {text}").into()),
    }
}
