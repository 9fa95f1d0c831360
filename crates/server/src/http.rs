//! MCP over Streamable HTTP: one endpoint for each profile, behind a token, for clients that name this machine rightly.
//!
//! No sessions: nothing can be reaped while a client is idle, and a restart of the server costs a client nothing.

use crate::config::{Settings, Token};
use crate::context::Context;
use crate::errors::{ErrorCode, ToolError};
use crate::mcp::McpServer;
use crate::tools::{PROFILE_ALIASES, Profile};
use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::serve::ListenerExt as _;
use base::limits;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use subtle::ConstantTimeEq as _;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Who may come in.
#[derive(Clone, Debug)]
pub enum Access {
    /// Whoever shows the token.
    Bearer(Token),
    /// Every program on this machine.
    Anyone,
}

impl Access {
    /// Decides it from the settings.
    ///
    /// # Errors
    /// `config_invalid`: no token and no `--no-auth`; `--no-auth` beyond loopback; beyond loopback without launch roots.
    pub fn new(settings: &Settings, address: SocketAddr, no_auth: bool) -> Result<Self, ToolError> {
        let wrong = |message: &str| ToolError::new(ErrorCode::ConfigInvalid, message);
        let loopback = address.ip().is_loopback();
        if !loopback && settings.launch_roots.is_empty() {
            return Err(wrong("serving other machines needs a bound on what they may launch")
                .hint("name the folders with --launch-root DIR or `launch_roots` in retroscope.toml"));
        }
        match (&settings.token, no_auth) {
            (_, true) if !loopback => Err(wrong("--no-auth is for loopback only: anybody on the network could start programs")
                .hint("set RETROSCOPE_TOKEN and leave --no-auth out")),
            (_, true) => Ok(Self::Anyone),
            (Some(token), false) => Ok(Self::Bearer(token.clone())),
            (None, false) => Err(wrong("HTTP needs a token").hint(
                "set RETROSCOPE_TOKEN to a long random text (`openssl rand -hex 32`) here and in the client, or, on this \
                 machine only, use --no-auth",
            )),
        }
    }
}

/// Serves until `stop` is cancelled.
///
/// # Errors
/// `config_invalid` when the listener fails.
pub async fn serve(
    listener: TcpListener,
    context: Context,
    settings: &Settings,
    access: Access,
    stop: CancellationToken,
) -> Result<(), ToolError> {
    let address = listener.local_addr().map_err(failed)?;
    let requests = CancellationToken::new();
    let router = router(&context, settings, address, access, requests.clone());
    // Without this each streamed answer waits for the client's delayed acknowledgement, some 40 ms.
    let listener = listener.tap_io(|stream| {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY");
        }
    });
    let stopping = stop.clone();
    let server = axum::serve(listener, router).with_graceful_shutdown(async move {
        stopping.cancelled().await;
        requests.cancel();
    });
    let late = async {
        stop.cancelled().await;
        tokio::time::sleep(Duration::from_millis(limits::SHUTDOWN_GRACE_MS)).await;
    };
    let agent = context.agent();
    tokio::select! {
        never = agent.close_unused(Duration::from_secs(limits::AGENT_IDLE_S)) => match never {},
        ended = server => ended.map_err(failed),
        () = late => Ok(()),
    }
}

fn failed(error: std::io::Error) -> ToolError {
    ToolError::new(ErrorCode::ConfigInvalid, format!("HTTP: {error}"))
}

fn router(
    context: &Context,
    settings: &Settings,
    address: SocketAddr,
    access: Access,
    requests: CancellationToken,
) -> Router {
    let mut hosts = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    if !address.ip().is_unspecified() {
        hosts.push(address.ip().to_string());
    }
    hosts.extend(settings.allowed_hosts.iter().cloned());
    // A page that this server itself could have served is no stranger.
    let own = hosts.iter().map(|host| match host.contains(':') {
        true => format!("http://[{host}]:{}", address.port()),
        false => format!("http://{host}:{}", address.port()),
    });
    let origins: Vec<String> = own.chain(settings.allowed_origins.iter().cloned()).collect();
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_allowed_hosts(hosts)
        .with_allowed_origins(origins)
        .enforce_origin_validation()
        .with_max_request_body_bytes(limits::MAX_MCP_MESSAGE_BYTES)
        .with_cancellation_token(requests);
    let service = |profile: Profile| {
        let server = McpServer::new(context.clone(), profile);
        StreamableHttpService::new(move || Ok(server.clone()), Arc::new(NeverSessionManager::default()), config.clone())
    };
    let mut router = Router::new().route_service("/mcp", service(settings.profile));
    let aliases =
        PROFILE_ALIASES.iter().filter_map(|(alias, _)| Profile::named(alias).map(|profile| (*alias, profile)));
    for (name, profile) in Profile::all().map(|profile| (profile.name(), profile)).chain(aliases) {
        router = router.route_service(&format!("/mcp/{name}"), service(profile));
    }
    router
        .route("/mcp/{profile}", axum::routing::any(no_profile))
        .route("/", get(|| async { "retroscope: an MCP server; its endpoint is /mcp\n" }))
        .layer(middleware::from_fn_with_state(Arc::new(access), admit))
}

async fn no_profile(Path(name): Path<String>) -> Response {
    let shown: String = name.chars().take(64).collect();
    (StatusCode::NOT_FOUND, format!("there is no tool profile `{shown}`; profiles are: {}\n", Profile::names()))
        .into_response()
}

/// Lets a request in that shows the token; looks at the head of the request only.
async fn admit(State(access): State<Arc<Access>>, request: Request, next: Next) -> Response {
    match access.as_ref() {
        Access::Bearer(token) if !shows(request.headers(), token) => {
            let challenge = HeaderValue::from_static("Bearer realm=\"retroscope\"");
            let text = "401: send `Authorization: Bearer <token>` with the token the server was started with\n";
            (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, challenge)], text).into_response()
        }
        Access::Bearer(_) | Access::Anyone => next.run(request).await,
    }
}

/// Whether the one `Authorization` header is the token, found out in a time that says nothing about it but its length.
fn shows(headers: &HeaderMap, token: &Token) -> bool {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(given), None) = (given.next(), given.next()) else { return false };
    let Some((scheme, secret)) = given.as_bytes().split_at_checked("Bearer ".len()) else { return false };
    scheme.eq_ignore_ascii_case(b"Bearer ") && bool::from(secret.ct_eq(token.secret().as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Flags, Surroundings};

    fn access(address: &str, no_auth: bool, token: bool, roots: bool) -> Result<Access, String> {
        let variable = |name: &str| (token && name == "RETROSCOPE_TOKEN").then(|| "secret".to_owned());
        let flags =
            Flags { launch_roots: roots.then(|| "/games".to_owned()).into_iter().collect(), ..Flags::default() };
        let around = Surroundings { variable: &variable, folder: "/nowhere".into() };
        let settings = Settings::resolve(flags, &around).unwrap();
        Access::new(&settings, address.parse().unwrap(), no_auth).map_err(|error| error.message)
    }

    #[test]
    fn nobody_is_served_by_oversight() {
        assert!(access("127.0.0.1:1", false, false, false).unwrap_err().contains("needs a token"));
        assert!(access("0.0.0.0:1", true, true, true).unwrap_err().contains("loopback only"));
        assert!(access("192.168.1.2:1", false, true, false).unwrap_err().contains("may launch"));
        assert!(matches!(access("127.0.0.1:1", true, false, false), Ok(Access::Anyone)));
        assert!(matches!(access("[::1]:1", false, true, false), Ok(Access::Bearer(_))));
        assert!(matches!(access("0.0.0.0:1", false, true, true), Ok(Access::Bearer(_))));
    }
}
