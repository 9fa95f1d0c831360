//! The two endpoints over HTTP, on loopback, for programs of this machine and not for web pages.

use super::connector::Connector;
use super::request::{Refusal, Request as Call};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::serve::ListenerExt as _;
use base::limits;
use serde_json::json;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// What the handlers share.
#[derive(Debug)]
struct Shared {
    connector: Arc<Connector>,
    calls: Arc<Semaphore>,
}

/// Serves until `stop` is there, then lets the calls in work end.
///
/// # Errors
/// When the listener fails.
pub(super) async fn serve(
    listener: TcpListener,
    connector: Arc<Connector>,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let shared = Arc::new(Shared { connector, calls: Arc::new(Semaphore::new(limits::MAX_VICE_CALLS)) });
    let router = Router::new()
        .route("/debugger/target_methods", get(discover))
        .route("/debugger/invoke_target_method", post(invoke))
        .route("/", get(|| async { "retroscope: a VICE connector; see /debugger/target_methods\n" }))
        .layer(DefaultBodyLimit::max(limits::MAX_VICE_REQUEST_BYTES))
        .layer(middleware::from_fn(admit))
        .with_state(shared);
    // Without this each answer waits for the client's delayed acknowledgement, some 40 ms.
    let listener = listener.tap_io(|stream| {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY");
        }
    });
    axum::serve(listener, router).with_graceful_shutdown(stop).await
}

async fn discover(State(shared): State<Arc<Shared>>) -> Response {
    answer(shared.connector.discovery())
}

async fn invoke(State(shared): State<Arc<Shared>>, body: Bytes) -> Response {
    let call = match Call::parse(&body).and_then(|call| shared.connector.admit(&call).map(|()| call)) {
        Ok(call) => call,
        Err(refusal) => return answer(refusal.to_json().to_string()),
    };
    let Ok(permit) = Arc::clone(&shared.calls).try_acquire_owned() else {
        let most = limits::MAX_VICE_CALLS;
        let busy =
            Refusal::new("target_method_failed", format!("{most} calls are in work already: wait for one to end"));
        return answer(busy.to_json().to_string());
    };
    let limit = Duration::from_millis(call.timeout_ms);
    let connector = Arc::clone(&shared.connector);
    // It goes on to its own end when nobody waits for it any more, so that what it did is known.
    let work = tokio::task::spawn_blocking(move || {
        let answer = connector.invoke(&call);
        drop(permit);
        answer
    });
    match tokio::time::timeout(limit, work).await {
        Ok(Ok(text)) => answer(text),
        Ok(Err(error)) => {
            let error = json!({"code": "target_method_failed", "message": format!("the call ended early: {error}")});
            answer(json!({"ok": false, "error": error, "outcome_unknown": true}).to_string())
        }
        Err(_) => {
            let message = format!("the method did not answer within {} ms", limit.as_millis());
            let error = json!({
                "code": "target_method_timeout", "message": message, "timeout_layer": "generic", "outcome_unknown": true,
            });
            let shape = json!({"ok": false, "error": error, "timeout_layer": "generic", "outcome_unknown": true});
            answer(shape.to_string())
        }
    }
}

fn answer(text: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}

/// Lets programs in, and keeps web pages out: a browser says where a page is from, and another name for this machine in `Host` is
/// how a page on the network would reach it.
async fn admit(request: Request, next: Next) -> Response {
    if is_local(request.headers()) {
        return next.run(request).await;
    }
    let text = "403: for programs on this machine only, by the name localhost or 127.0.0.1, and not for web pages\n";
    (StatusCode::FORBIDDEN, text).into_response()
}

fn is_local(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let own = ["localhost", "127.0.0.1", "[::1]"].iter().any(|own| name.eq_ignore_ascii_case(own));
    own && !headers.contains_key(header::ORIGIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn local(host: &'static str, origin: Option<&'static str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_static(host));
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, HeaderValue::from_static(origin));
        }
        is_local(&headers)
    }

    #[test]
    fn only_programs_on_this_machine_come_in() {
        assert!(local("127.0.0.1:8089", None) && local("localhost", None) && local("[::1]:8089", None));
        assert!(!local("evil.example:8089", None) && !local("127.0.0.1.evil.example", None) && !local("", None));
        assert!(!local("127.0.0.1:8089", Some("http://evil.example")));
    }
}
