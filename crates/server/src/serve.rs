//! `retroscope serve`: the start and the end of the server, over stdio or HTTP, with an agent of its own if wanted.

use crate::agent_client::AgentClient;
use crate::config::Settings;
use crate::context::{Context, Facts};
use crate::errors::{ErrorCode, ToolError};
use crate::ghidra::Ghidra;
use crate::http::{self, Access};
use crate::mcp::McpServer;
use crate::tools::nds_live::session::EmulatorOptions;
use crate::workspace::Workspace;
use base::limits;
use rmcp::transport::async_rw::AsyncRwTransport;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

/// How to serve.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// Where to serve HTTP; stdio otherwise.
    pub http: Option<SocketAddr>,
    /// Let everybody on this machine in.
    pub no_auth: bool,
    /// Start an agent as a child.
    pub with_agent: bool,
    /// The file of names for that agent.
    pub symbols: Option<PathBuf>,
}

/// Serves until the client goes or a signal comes.
///
/// # Errors
/// Why it could not start.
pub async fn run(options: ServeOptions, settings: Settings) -> Result<(), ToolError> {
    settings.require_workspace(settings.profile.has_file_tools())?;
    let access = match options.http {
        Some(address) => Some((address, Access::new(&settings, address, options.no_auth)?)),
        None => None,
    };
    let stop = CancellationToken::new();
    watch_signals(stop.clone())?;
    let agent = if options.with_agent {
        Some(AgentChild::start(settings.launch_roots.as_slice(), options.symbols.as_deref()).await?)
    } else {
        None
    };
    let client = match &agent {
        Some(agent) => AgentClient::of_child(agent.address.clone(), settings.command_timeout),
        None => AgentClient::new(settings.agent.clone(), settings.command_timeout),
    };
    let context = Context::new(
        client,
        Some(settings.max_output_chars),
        settings.workspace.as_deref().map(Workspace::open).transpose()?,
        settings.launch_roots.clone(),
        Facts {
            transport: if options.http.is_some() { "http" } else { "stdio" },
            profile: settings.profile.name(),
            rom_identity: settings.rom_identity,
        },
    )
    .with_ghidra(Ghidra::new(settings.ghidra.clone()));
    context.live().configure(EmulatorOptions { guard: std::env::current_exe().ok(), ..settings.emulator.clone() });
    context.vice().configure(settings.vice.clone());
    let outcome = match access {
        Some((address, access)) => serve_http(address, access, context, &settings, stop).await,
        None => serve_stdio(context, &settings, stop).await,
    };
    if let Some(agent) = agent {
        agent.end().await;
    }
    outcome
}

async fn serve_http(
    address: SocketAddr,
    access: Access,
    context: Context,
    settings: &Settings,
    stop: CancellationToken,
) -> Result<(), ToolError> {
    let refused = |error: std::io::Error| {
        ToolError::new(ErrorCode::ConfigInvalid, format!("--http {address}: {error}"))
            .hint("name a free port, or 0 for any")
    };
    let listener = TcpListener::bind(address).await.map_err(refused)?;
    let bound = listener.local_addr().map_err(refused)?;
    // Said at any log level: with port 0 nobody could know it otherwise.
    eprintln!("retroscope: MCP at http://{bound}/mcp");
    if bound.ip().is_unspecified() && settings.allowed_hosts.is_empty() {
        tracing::warn!(
            "clients on other machines are refused until their name for this one is given with --allowed-host"
        );
    }
    http::serve(listener, context, settings, access, stop).await
}

async fn serve_stdio(context: Context, settings: &Settings, stop: CancellationToken) -> Result<(), ToolError> {
    let (read, write) = rmcp::transport::io::stdio_pipes();
    let transport = AsyncRwTransport::new_server(read, write).with_max_line_length(limits::MAX_MCP_MESSAGE_BYTES);
    let server = McpServer::new(context, settings.profile).for_one_client();
    let serving = rmcp::service::serve_server_with_ct(server, transport, stop);
    let service = match serving.await {
        Ok(service) => service,
        Err(error) => {
            // A client that only looked whether the program starts is no failure.
            tracing::info!(%error, "the client went before it had greeted");
            return Ok(());
        }
    };
    match service.waiting().await {
        Ok(reason) => tracing::info!(?reason, "the connection ended"),
        Err(error) => tracing::error!(%error, "the connection failed"),
    }
    Ok(())
}

/// Cancels `stop` at SIGTERM or SIGINT (Ctrl+C elsewhere).
pub(crate) fn watch_signals(stop: CancellationToken) -> Result<(), ToolError> {
    let failed = |error: std::io::Error| ToolError::new(ErrorCode::ServerFault, format!("signals: {error}"));
    #[cfg(unix)]
    let mut term = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).map_err(failed)?;
    #[cfg(unix)]
    let mut interrupt = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt()).map_err(failed)?;
    tokio::spawn(async move {
        #[cfg(unix)]
        tokio::select! {
            _ = term.recv() => {}
            _ = interrupt.recv() => {}
        }
        #[cfg(not(unix))]
        drop(tokio::signal::ctrl_c().await.map_err(failed));
        stop.cancel();
    });
    Ok(())
}

/// An agent that lives as long as the server.
#[derive(Debug)]
pub struct AgentChild {
    child: Child,
    address: String,
}

impl AgentChild {
    /// Starts one on a free port.
    ///
    /// # Errors
    /// `agent_unreachable`, saying what went wrong.
    pub async fn start(launch_roots: &[String], symbols: Option<&Path>) -> Result<Self, ToolError> {
        let failed = |what: String| {
            ToolError::new(ErrorCode::AgentUnreachable, format!("--with-agent: the agent did not start: {what}"))
                .hint("try `retroscope agent` by itself, and `retroscope doctor`")
        };
        let program = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
        let mut command = Command::new(program);
        command.args(["agent", "--port", "0", "--exit-with-parent"]);
        for root in launch_roots {
            command.args(["--launch-root", root]);
        }
        if let Some(file) = symbols {
            command.arg("--symbols").arg(file);
        }
        // Its stdin closes when this process ends, however it ends, and that ends the agent; stdout is the client's.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        #[cfg(unix)]
        // Ctrl+C at a terminal is for the server, which then ends the agent in its own time.
        command.process_group(0);
        let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
        let stdout = child.stdout.take().ok_or_else(|| failed("it has no output".to_owned()))?;
        let mut lines = BufReader::new(stdout).lines();
        let limit = Duration::from_millis(limits::AGENT_CONNECT_TIMEOUT_MS);
        let line = match tokio::time::timeout(limit, lines.next_line()).await {
            Ok(Ok(Some(line))) => line,
            Ok(Ok(None)) => return Err(failed("it ended at once".to_owned())),
            Ok(Err(error)) => return Err(failed(error.to_string())),
            Err(_) => return Err(failed(format!("it did not say its port within {} s", limit.as_secs()))),
        };
        let address = line.rsplit(' ').next().filter(|address| address.parse::<SocketAddr>().is_ok());
        match address {
            Some(address) => Ok(Self { child, address: address.to_owned() }),
            None => Err(failed(format!("it said `{line}`"))),
        }
    }

    /// Where it listens.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Closes its stdin, which makes it let the program go and end.
    pub async fn end(mut self) {
        drop(self.child.stdin.take());
        let limit = Duration::from_millis(limits::SHUTDOWN_GRACE_MS + limits::HOLD_TIMEOUT_MS);
        if tokio::time::timeout(limit, self.child.wait()).await.is_err() {
            tracing::warn!("the agent has not ended yet; it goes on letting the program go");
        }
    }
}
