//! The connector's start and end: VICE launched or found, the endpoints served, and nothing left behind.

use super::connector::Connector;
use super::http;
use crate::errors::{ErrorCode, ToolError};
use crate::serve::watch_signals;
use base::limits;
use debug::emulator::{Emulator, find_launcher};
use debug::vice::Monitor;
use debug::vice::launch::{self, Roms, ViceLaunch};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Variables that lead a program to its display, and VICE to the user's folders.
const PASSED_ON: &[&str] =
    &["DISPLAY", "XAUTHORITY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "LANG"];

/// Where VICE is.
#[derive(Clone, Debug)]
pub enum Source {
    /// It is started, and ended with the connector.
    Launch {
        /// The program; [`launch::PROGRAM`] in `PATH` otherwise.
        x64sc: Option<PathBuf>,
        /// A program for the machine.
        prg: Option<PathBuf>,
        /// ROMs instead of VICE's own.
        roms: Roms,
    },
    /// It runs already, with its monitor there.
    Connect(SocketAddr),
}

/// How to serve a VICE.
#[derive(Clone, Debug)]
pub struct ViceConnectorOptions {
    /// Where VICE is.
    pub source: Source,
    /// Where to listen.
    pub listen: SocketAddr,
    /// Ask builds for their display too whose command writes beyond its buffer.
    pub allow_display_on_old_vice: bool,
}

/// Serves until a signal comes.
///
/// # Errors
/// `config_invalid` for addresses beyond loopback and for VICE that cannot be started or reached.
pub async fn run(options: ViceConnectorOptions) -> Result<(), ToolError> {
    let connect = match options.source {
        Source::Connect(address) => Some(("--connect", address)),
        Source::Launch { .. } => None,
    };
    for (option, address) in connect.into_iter().chain([("--listen", options.listen)]) {
        if !address.ip().is_loopback() {
            return Err(invalid(format!(
                "{option} {address}: only addresses of this machine itself, such as 127.0.0.1"
            ))
            .hint("whoever reaches either port can do everything with VICE; reach another machine through ssh -L"));
        }
    }
    let stop = CancellationToken::new();
    watch_signals(stop.clone())?;
    // Before VICE is started: a port that is taken is found out cheaply.
    let listener = TcpListener::bind(options.listen).await.map_err(|error| {
        invalid(format!("--listen {}: {error}", options.listen)).hint("name a free port, or 0 for any")
    })?;
    let bound = listener.local_addr().map_err(|error| invalid(error.to_string()))?;
    let opened = tokio::task::spawn_blocking(move || open(options.source)).await;
    let (emulator, monitor) = opened.map_err(|error| invalid(error.to_string()))??;
    let connector = Arc::new(Connector::new(monitor, options.allow_display_on_old_vice));
    // Said at any log level: with port 0 nobody could know it otherwise.
    eprintln!(
        "retroscope: connector of VICE {} (monitor at {}) at http://{bound}",
        connector.monitor().version(),
        connector.monitor().address()
    );
    let outcome = serve(listener, Arc::clone(&connector), stop).await;
    let ended = tokio::task::spawn_blocking(move || end(&connector, emulator)).await;
    ended.map_err(|error| invalid(error.to_string()))?;
    outcome
}

async fn serve(listener: TcpListener, connector: Arc<Connector>, stop: CancellationToken) -> Result<(), ToolError> {
    let closing = Arc::clone(&connector);
    let stopping = stop.clone();
    let server = http::serve(listener, connector, async move {
        stopping.cancelled().await;
        // Calls that wait are told that it ends, and their clients still get the answer.
        drop(tokio::task::spawn_blocking(move || close(&closing)).await);
    });
    let late = async {
        stop.cancelled().await;
        tokio::time::sleep(Duration::from_millis(limits::SHUTDOWN_GRACE_MS + limits::VICE_CLOSE_TIMEOUT_MS)).await;
    };
    tokio::select! {
        ended = server => ended.map_err(|error| invalid(format!("HTTP: {error}"))),
        () = late => Ok(()),
    }
}

/// Starts VICE, or finds it.
fn open(source: Source) -> Result<(Option<Emulator>, Monitor), ToolError> {
    match source {
        Source::Connect(address) => {
            let monitor = Monitor::connect(address, Duration::from_millis(limits::VICE_CONNECT_TIMEOUT_MS));
            Ok((None, monitor.map_err(|error| invalid(error.to_string()))?))
        }
        Source::Launch { x64sc, prg, roms } => {
            let name = x64sc.unwrap_or_else(|| launch::PROGRAM.into());
            let program = find_launcher(&name).ok_or_else(|| {
                invalid(format!("there is no {}", name.display()))
                    .hint("install VICE (Debian: package vice of the component contrib), or name it with --x64sc")
            })?;
            // VICE runs in a folder of its own.
            let absolute = |file: Option<PathBuf>| file.map(std::path::absolute).transpose();
            let failed = |error: std::io::Error| invalid(error.to_string());
            let roms = Roms {
                kernal: absolute(roms.kernal).map_err(failed)?,
                basic: absolute(roms.basic).map_err(failed)?,
                chargen: absolute(roms.chargen).map_err(failed)?,
            };
            let vice = ViceLaunch {
                program: std::path::absolute(program).map_err(failed)?,
                prg: absolute(prg).map_err(failed)?,
                roms,
                home: std::env::home_dir().unwrap_or_else(std::env::temp_dir),
                environment: environment(),
                // On Linux VICE ends with the connector even when that is killed.
                guard: std::env::current_exe()
                    .ok()
                    .filter(|_| cfg!(target_os = "linux"))
                    .map(|own| vec![own.into(), "guarded".into()]),
            };
            let (emulator, monitor) = vice.start().map_err(|error| invalid(error.to_string()))?;
            Ok((Some(emulator), monitor))
        }
    }
}

fn environment() -> Vec<(OsString, OsString)> {
    let given = PASSED_ON.iter().filter_map(|name| Some(((*name).into(), std::env::var_os(name)?)));
    given.collect()
}

fn close(connector: &Connector) {
    if let Err(error) = connector.monitor().close() {
        tracing::warn!(%error, "checkpoints may be left in VICE");
    }
}

/// Ends the connection, if that has not been done, and the VICE that was started.
fn end(connector: &Connector, emulator: Option<Emulator>) {
    close(connector);
    if let Some(mut emulator) = emulator {
        emulator.stop();
    }
}

fn invalid(message: String) -> ToolError {
    ToolError::new(ErrorCode::ConfigInvalid, message)
}
