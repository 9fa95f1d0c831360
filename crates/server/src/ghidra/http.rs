//! One HTTP request to Ghidra's plug-in and its answer. The three ways in which that fails stay apart, and what a request
//! that changes something may have done is said in each; the token is in none.

use super::{Answer, GhidraSettings};
use crate::errors::{ErrorCode, ToolError};
use base::limits;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST};
use hyper::{Method, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;

/// A request.
#[derive(Debug)]
pub(super) struct Request<'a> {
    pub path: &'a str,
    pub query: &'a [(&'a str, &'a str)],
    /// What is sent; without it the request is a GET.
    pub body: Option<Value>,
    /// Whether it changes the program when it succeeds.
    pub changes: bool,
}

/// Asks, and gives the JSON object that came back.
pub(super) async fn ask(settings: &GhidraSettings, request: &Request<'_>) -> Result<Answer, ToolError> {
    let exchange = Exchange { settings, request, sent: AtomicBool::new(false) };
    match tokio::time::timeout(settings.timeout, exchange.run()).await {
        Ok(Ok((status, body))) => exchange.understand(status, &body),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(exchange.timed_out()),
    }
}

/// Ends the task that drives a connection when its request is given up.
struct Driver(AbortHandle);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

struct Exchange<'a> {
    settings: &'a GhidraSettings,
    request: &'a Request<'a>,
    /// Whether anything may have reached Ghidra.
    sent: AtomicBool,
}

impl Exchange<'_> {
    async fn run(&self) -> Result<(StatusCode, Bytes), ToolError> {
        let settings = self.settings;
        let stream = TcpStream::connect((settings.host.as_str(), settings.port)).await.map_err(|error| {
            self.broken(&error.to_string())
                .hint("is Ghidra running, with the plug-in's server switched on? GHIDRA_MCP_URL says where it is")
        })?;
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| self.failed(&error))?;
        let _driver = Driver(tokio::spawn(connection).abort_handle());
        let message = self.message()?;
        self.sent.store(true, Ordering::Relaxed);
        let response = sender.send_request(message).await.map_err(|error| self.failed(&error))?;
        let status = response.status();
        let body = Limited::new(response.into_body(), limits::MAX_GHIDRA_ANSWER_BYTES).collect().await;
        match body {
            Ok(body) => Ok((status, body.to_bytes())),
            Err(error) if error.is::<LengthLimitError>() => Err(self.refused(
                format!("its answer is longer than {} bytes", limits::MAX_GHIDRA_ANSWER_BYTES),
                self.request.changes,
            )),
            Err(error) => Err(self.broken(&error.to_string())),
        }
    }

    fn message(&self) -> Result<hyper::Request<Full<Bytes>>, ToolError> {
        let (settings, request) = (self.settings, self.request);
        let host = if settings.host.contains(':') { format!("[{}]", settings.host) } else { settings.host.clone() };
        let query: Vec<String> =
            request.query.iter().map(|(name, value)| format!("{name}={}", percent_encoded(value))).collect();
        let mut message = hyper::Request::builder()
            .uri(format!("{}{}?{}", settings.prefix, request.path, query.join("&")))
            .header(HOST, format!("{host}:{}", settings.port))
            .header(ACCEPT, "application/json")
            // One request each: a kept connection that Ghidra closes meanwhile could not be told from a lost request.
            .header(CONNECTION, "close");
        if let Some(token) = &settings.token {
            message = message.header(AUTHORIZATION, format!("Bearer {}", token.secret()));
        }
        let message = match &request.body {
            Some(body) => {
                message.method(Method::POST).header(CONTENT_TYPE, "application/json").body(Full::from(body.to_string()))
            }
            None => message.method(Method::GET).body(Full::default()),
        };
        message.map_err(|error| ToolError::new(ErrorCode::ServerFault, self.safe(&format!("no request: {error}"))))
    }

    /// The plug-in says `text/plain` of JSON, and 200 of errors; so the body decides.
    fn understand(&self, status: StatusCode, body: &[u8]) -> Result<Answer, ToolError> {
        let answer = match serde_json::from_slice(body) {
            Ok(Value::Object(answer)) => Some(answer),
            _ => None,
        };
        let said = answer.as_ref().and_then(|answer| answer.get("error")).map(said);
        // What was refused was not done; what failed inside may have been.
        let may_have_changed = self.request.changes && status.is_server_error();
        match (status, said, answer) {
            (StatusCode::UNAUTHORIZED, ..) => {
                let hint = if self.settings.token.is_some() {
                    "the token in GHIDRA_MCP_AUTH_TOKEN is not the one that Ghidra was started with"
                } else {
                    "Ghidra was started with a token; put it into GHIDRA_MCP_AUTH_TOKEN"
                };
                Err(self.refused("it answered 401 Unauthorized".to_owned(), false).hint(hint))
            }
            (StatusCode::NOT_FOUND, None, _) => Err(self
                .refused("it answered 404: it has no such endpoint".to_owned(), false)
                .hint("the plug-in must be ghidra-mcp-next 0.100.0; later versions and others lack some endpoints")),
            (_, Some(said), _) => Err(self.refused(said, may_have_changed)),
            (StatusCode::OK, None, Some(answer)) => Ok(answer),
            (StatusCode::OK, None, None) => {
                Err(self.refused("its answer is no JSON object".to_owned(), self.request.changes))
            }
            (status, None, _) => Err(self.refused(format!("it answered {status}"), may_have_changed)),
        }
    }

    fn timed_out(&self) -> ToolError {
        let sent = self.sent.load(Ordering::Relaxed);
        let seconds = self.settings.timeout.as_secs_f64();
        let message = format!("Ghidra did not answer {} within {seconds} s", self.request.path);
        self.error(ErrorCode::GhidraHttpTimeout, message, sent)
            .hint(self.next(sent, "raise GHIDRA_MCP_TIMEOUT, or ask for less"))
            .detail("timeout_layer", "http")
            .detail("outcome_unknown", sent)
            .detail("request_committed", sent)
    }

    fn failed(&self, error: &hyper::Error) -> ToolError {
        self.broken(&error.to_string())
    }

    /// No connection, or one that broke.
    fn broken(&self, why: &str) -> ToolError {
        let sent = self.sent.load(Ordering::Relaxed);
        let how = if sent { "the connection broke before the answer was whole" } else { "no connection" };
        let message = format!("{} of Ghidra at {}: {how}: {why}", self.request.path, self.settings.url());
        self.error(ErrorCode::GhidraTransportFailure, message, sent)
            .hint(self.next(sent, "see in Ghidra's console whether the plug-in still serves"))
            .detail("outcome_unknown", sent)
            .detail("request_committed", sent)
    }

    fn refused(&self, why: String, may_have_changed: bool) -> ToolError {
        let message = format!("{} of Ghidra: {why}", self.request.path);
        let error = self.error(ErrorCode::GhidraResponseError, message, may_have_changed);
        if may_have_changed { error.hint(self.next(true, "")) } else { error }
    }

    fn error(&self, code: ErrorCode, message: String, may_have_changed: bool) -> ToolError {
        let error = ToolError::new(code, self.safe(&message));
        if self.request.changes { error.detail("ghidra_program_may_have_changed", may_have_changed) } else { error }
    }

    /// What to do next: first look, where something may have been changed.
    fn next(&self, may_have_changed: bool, otherwise: &str) -> String {
        if self.request.changes && may_have_changed {
            "the program may have been changed, and the call was not made again: look at it in Ghidra, or call with \
             dry_run=true, which shows what is there already"
                .to_owned()
        } else {
            otherwise.to_owned()
        }
    }

    /// Text that may have come from outside, without the token and at a bearable length.
    fn safe(&self, text: &str) -> String {
        let text = match &self.settings.token {
            Some(token) => text.replace(token.secret(), "[redacted]"),
            None => text.to_owned(),
        };
        text.chars().take(limits::MAX_GHIDRA_ERROR_CHARS).collect()
    }
}

/// The sentence in an `error`, which is a text or an object with a code and a message.
fn said(error: &Value) -> String {
    match (error, error.get("code"), error.get("message")) {
        (Value::String(text), ..) => text.clone(),
        (_, Some(Value::String(code)), Some(Value::String(message))) => format!("{code}: {message}"),
        (_, _, Some(Value::String(message))) => message.clone(),
        _ => error.to_string(),
    }
}

/// A value of a query (RFC 3986, section 2.3: what need not be encoded).
fn percent_encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
        encoded
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_a_query_are_encoded() {
        assert_eq!(percent_encoded("RAM:0840"), "RAM%3A0840");
        assert_eq!(percent_encoded("my game&x=é~"), "my%20game%26x%3D%C3%A9~");
    }

    #[test]
    fn every_form_of_an_error_is_read() {
        assert_eq!(said(&serde_json::json!("no")), "no");
        assert_eq!(said(&serde_json::json!({"code": "stale", "message": "gone"})), "stale: gone");
        assert_eq!(said(&serde_json::json!({"message": "gone"})), "gone");
        assert_eq!(said(&serde_json::json!(7)), "7");
    }
}
