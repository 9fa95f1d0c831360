//! One question to a VICE connector over HTTP and its answer, on a connection that is kept for the next one.

use crate::errors::{ErrorCode, ToolError};
use crate::ghidra::GhidraSettings;
use base::limits;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use serde_json::{Map, Value};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpStream;

type Sender = SendRequest<Full<Bytes>>;

/// Where the connector is, and the connection that waits for the next question.
#[derive(Debug, Default)]
pub(super) struct Link {
    idle: Mutex<Option<Sender>>,
}

impl Link {
    /// Asks once. Without a body the request is a GET.
    pub(super) async fn ask(
        &self,
        settings: &GhidraSettings,
        path: &str,
        body: Option<&Value>,
        time: Duration,
    ) -> Result<Map<String, Value>, ToolError> {
        let exchange = async {
            let mut sender = self.sender(settings).await?;
            let request = message(settings, path, body)?;
            let response = sender.send_request(request).await.map_err(|error| broken(settings, &error, true))?;
            let status = response.status();
            let body = Limited::new(response.into_body(), limits::MAX_VICE_RESPONSE_BYTES).collect().await;
            let body = body.map_err(|error| broken(settings, &error, true))?.to_bytes();
            self.keep(sender);
            match serde_json::from_slice(&body) {
                Ok(Value::Object(answer)) => Ok(answer),
                _ => Err(ToolError::new(
                    ErrorCode::GhidraResponseError,
                    format!("{} answered {path} with {status} and no JSON object", settings.url()),
                )
                .hint("RETROSCOPE_VICE_URL must be that of a VICE connector, or of Ghidra's plug-in with one")
                .detail("outcome_unknown", body_was_sent(path))),
            }
        };
        match tokio::time::timeout(time, exchange).await {
            Ok(answer) => answer,
            Err(_) => Err(ToolError::new(
                ErrorCode::GhidraHttpTimeout,
                format!("{} did not answer {path} within {} ms", settings.url(), time.as_millis()),
            )
            .hint("the call was not made again; vice_status shows the last known state")
            .detail("timeout_layer", "http")
            .detail("outcome_unknown", true)
            .detail("request_committed", true)),
        }
    }

    /// The kept connection if it is still open, else a new one.
    async fn sender(&self, settings: &GhidraSettings) -> Result<Sender, ToolError> {
        let kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut sender) = kept
            && sender.ready().await.is_ok()
        {
            return Ok(sender);
        }
        let stream = TcpStream::connect((settings.host.as_str(), settings.port))
            .await
            .map_err(|error| broken(settings, &error, false))?;
        // A question is one small packet, and waits for nothing.
        stream.set_nodelay(true).map_err(|error| broken(settings, &error, false))?;
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| broken(settings, &error, false))?;
        // It ends with its sender.
        tokio::spawn(connection);
        Ok(sender)
    }

    fn keep(&self, sender: Sender) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(sender);
    }
}

fn body_was_sent(path: &str) -> bool {
    path == super::INVOKE
}

fn message(settings: &GhidraSettings, path: &str, body: Option<&Value>) -> Result<Request<Full<Bytes>>, ToolError> {
    let host = if settings.host.contains(':') { format!("[{}]", settings.host) } else { settings.host.clone() };
    let mut builder = Request::builder()
        .uri(format!("{}{path}", settings.prefix))
        .header(HOST, format!("{host}:{}", settings.port))
        .header(ACCEPT, "application/json");
    if let Some(token) = &settings.token {
        builder = builder.header(AUTHORIZATION, format!("Bearer {}", token.secret()));
    }
    let request = match body {
        Some(body) => {
            builder.method(Method::POST).header(CONTENT_TYPE, "application/json").body(Full::from(body.to_string()))
        }
        None => builder.method(Method::GET).body(Full::default()),
    };
    request.map_err(|error| ToolError::new(ErrorCode::ServerFault, format!("no request: {error}")))
}

fn broken(settings: &GhidraSettings, error: &dyn std::fmt::Display, sent: bool) -> ToolError {
    let how = if sent { "the connection broke before the answer was whole" } else { "no connection" };
    ToolError::new(ErrorCode::GhidraTransportFailure, format!("{}: {how}: {error}", settings.url()))
        .hint("is `retroscope vice-connector` running? RETROSCOPE_VICE_URL says where it is")
        .detail("outcome_unknown", sent)
        .detail("request_committed", sent)
}
