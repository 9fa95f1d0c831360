//! The command line: what can be typed after `retroscope`.

use crate::call::{self, CallOptions};
use crate::config::{Flags, Settings, Surroundings};
use crate::doctor;
use crate::errors::{ErrorCode, ToolError};
use crate::mcp;
use crate::serve::{self, ServeOptions};
use crate::tools::Profile;
use crate::vice_connector::{self, Source, ViceConnectorOptions};
use base::limits;
use clap::{Args, Parser, Subcommand, ValueEnum};
use debug::vice::launch::Roms;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::process::ExitCode;
use tracing::Metadata;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::writer::MakeWriterExt as _;

/// Watches old programs run and reports evidence: an MCP server with a debug agent.
#[derive(Debug, Parser)]
#[command(name = "retroscope", version)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What can be done.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve MCP, over stdio or Streamable HTTP.
    Serve(Serve),
    /// Call a tool and print its answer as JSON.
    Call(Call),
    /// List the tools.
    Tools(Tools),
    /// Say what works on this machine, what is missing, and how to get it.
    Doctor(Doctor),
    /// Connect VICE, so that the tools for the Commodore 64 can reach it.
    ViceConnector(ViceConnector),
    /// Run the debug agent.
    Agent(agent::cli::AgentOptions),
    /// Watch an investigation of a small game, told as a story.
    #[cfg(target_os = "linux")]
    Demo(crate::demo::DemoOptions),
    /// Watch an investigation of a small game; on Linux only.
    #[cfg(not(target_os = "linux"))]
    Demo,
}

/// Options that several commands share.
#[derive(Debug, Args)]
pub struct Common {
    /// Configuration file; default is retroscope.toml here, then in the user's configuration folder.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where the debug agent listens [default: 127.0.0.1:47474].
    #[arg(long, value_name = "HOST:PORT")]
    agent: Option<String>,
    /// Folder that tools work below; not / and not the home folder.
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// Launch programs below this folder only; may be given several times.
    #[arg(long = "launch-root", value_name = "DIR")]
    launch_roots: Vec<String>,
    /// What is written to stderr.
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t = Level::Warn)]
    log: Level,
}

/// How much is written to stderr.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Level {
    /// Nothing.
    Off,
    /// What keeps the server from doing its work.
    Error,
    /// What a person should look at.
    Warn,
    /// Connections that come and go.
    Info,
    /// What helps to find a fault.
    Debug,
    /// Every message.
    Trace,
}

/// Options of `serve`.
#[derive(Debug, Args)]
pub struct Serve {
    #[command(flatten)]
    common: Common,
    /// Serve Streamable HTTP at this address instead of stdio; clients show the token in RETROSCOPE_TOKEN.
    #[arg(long, value_name = "ADDR:PORT")]
    http: Option<SocketAddr>,
    /// Start an agent that lives as long as the server.
    #[arg(long, conflicts_with = "agent")]
    with_agent: bool,
    /// Names for addresses, for that agent: a file of lines `address name` or `module+offset name`.
    #[arg(long, value_name = "FILE", requires = "with_agent")]
    symbols: Option<PathBuf>,
    /// Which tools are listed: full, minimal, debug or nds.
    #[arg(long, value_name = "PROFILE")]
    tool_profile: Option<String>,
    /// Let every program on this machine in without a token; loopback only.
    #[arg(long, requires = "http")]
    no_auth: bool,
    /// Name of this machine that HTTP clients may use beside localhost; may be given several times.
    #[arg(long = "allowed-host", value_name = "NAME", requires = "http")]
    allowed_hosts: Vec<String>,
}

/// Options of `call`.
#[derive(Debug, Args)]
pub struct Call {
    /// Name of the tool; `retroscope tools` lists them.
    tool: String,
    /// Its arguments as a JSON object; - reads them from stdin.
    arguments: Option<String>,
    /// Where a picture goes; default is a new file in the workspace or the current folder.
    #[arg(long, value_name = "FILE")]
    image_out: Option<PathBuf>,
    #[command(flatten)]
    common: Common,
}

/// Options of `tools`.
#[derive(Debug, Args)]
pub struct Tools {
    /// The list as MCP clients get it.
    #[arg(long)]
    json: bool,
    /// Which profile.
    #[arg(long, default_value = "full")]
    profile: String,
}

/// Options of `doctor`.
#[derive(Debug, Args)]
pub struct Doctor {
    #[command(flatten)]
    common: Common,
}

/// Options of `vice-connector`.
#[derive(Debug, Args)]
pub struct ViceConnector {
    /// Start VICE, and end it with the connector.
    #[arg(long, required_unless_present = "connect", conflicts_with = "connect")]
    launch: bool,
    /// Reach a VICE that runs with `-binarymonitor -binarymonitoraddress ip4://HOST:PORT`; loopback only.
    #[arg(long, value_name = "HOST:PORT", value_parser = address)]
    connect: Option<SocketAddr>,
    /// A program for the machine, put into its memory and run.
    #[arg(long, value_name = "FILE", requires = "launch")]
    prg: Option<PathBuf>,
    /// VICE's program [default: x64sc].
    #[arg(long, value_name = "PATH", requires = "launch")]
    x64sc: Option<PathBuf>,
    /// The KERNAL, where VICE has none; Debian's has no ROMs.
    #[arg(long, value_name = "FILE", requires = "launch")]
    kernal: Option<PathBuf>,
    /// BASIC, likewise.
    #[arg(long, value_name = "FILE", requires = "launch")]
    basic: Option<PathBuf>,
    /// The character generator, likewise.
    #[arg(long, value_name = "FILE", requires = "launch")]
    chargen: Option<PathBuf>,
    /// Where to listen, loopback only; port 0 takes any [default: 127.0.0.1:8089].
    #[arg(long, value_name = "HOST:PORT", value_parser = address)]
    listen: Option<SocketAddr>,
    /// Capture the display on VICE older than 3.11 too, whose command writes four bytes beyond its buffer.
    #[arg(long)]
    allow_display_on_old_vice: bool,
    /// What is written to stderr.
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t = Level::Warn)]
    log: Level,
}

/// An address, whose host may be a name of this machine.
fn address(text: &str) -> Result<SocketAddr, String> {
    let mut found = text.to_socket_addrs().map_err(|error| format!("{error}; write it like 127.0.0.1:6502"))?;
    found.next().ok_or_else(|| "there is no such address".to_owned())
}

impl ViceConnector {
    async fn run(self) -> Result<(), ToolError> {
        self.log.start();
        let source = match self.connect {
            Some(address) => Source::Connect(address),
            None => Source::Launch {
                x64sc: self.x64sc,
                prg: self.prg,
                roms: Roms { kernal: self.kernal, basic: self.basic, chargen: self.chargen },
            },
        };
        let usual = SocketAddr::from((Ipv4Addr::LOCALHOST, limits::DEFAULT_VICE_CONNECTOR_PORT));
        vice_connector::run(ViceConnectorOptions {
            source,
            listen: self.listen.unwrap_or(usual),
            allow_display_on_old_vice: self.allow_display_on_old_vice,
        })
        .await
    }
}

impl Cli {
    /// Does it.
    pub fn run(self) -> ExitCode {
        match self.command {
            // Before any other thread is there: the agent blocks signals in all that follow.
            Command::Agent(options) => agent::cli::run(&options),
            Command::Tools(options) => report(options.run()),
            command => match runtime() {
                Ok(runtime) => runtime.block_on(command.run()),
                Err(error) => report(Err(ToolError::new(ErrorCode::ServerFault, format!("no runtime: {error}")))),
            },
        }
    }
}

/// Two threads: requests wait for the agent and compute little.
fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()
}

impl Command {
    async fn run(self) -> ExitCode {
        match self {
            Self::Serve(options) => report(options.run().await),
            Self::ViceConnector(options) => report(options.run().await),
            Self::Call(options) => {
                let settings = match options.common.settings(None, Vec::new()) {
                    Ok(settings) => settings,
                    Err(error) => return report(Err(error)),
                };
                let call =
                    CallOptions { tool: options.tool, arguments: options.arguments, image_out: options.image_out };
                match call::run(call, settings).await {
                    Ok(()) => ExitCode::SUCCESS,
                    Err(error) => {
                        // As an MCP client would see it.
                        eprintln!("{}", error.text());
                        ExitCode::FAILURE
                    }
                }
            }
            Self::Doctor(options) => match options.common.settings(None, Vec::new()) {
                Ok(settings) => match doctor::run(&settings).await {
                    true => ExitCode::SUCCESS,
                    false => ExitCode::FAILURE,
                },
                Err(error) => report(Err(error)),
            },
            #[cfg(target_os = "linux")]
            Self::Demo(options) => match crate::demo::run(options).await {
                Ok(()) => ExitCode::SUCCESS,
                Err(reason) => {
                    eprintln!("retroscope demo: {reason}");
                    ExitCode::FAILURE
                }
            },
            #[cfg(not(target_os = "linux"))]
            Self::Demo => {
                eprintln!(
                    "retroscope demo: its game is a Linux program, so it runs on Linux; here, see how well debugging works \
                     with `retroscope doctor`, then launch a program of your own"
                );
                ExitCode::FAILURE
            }
            Self::Agent(_) | Self::Tools(_) => ExitCode::SUCCESS,
        }
    }
}

fn report(outcome: Result<(), ToolError>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("retroscope: {}", error.line());
            ExitCode::FAILURE
        }
    }
}

impl Common {
    /// Starts the log and puts the settings together.
    fn settings(self, tool_profile: Option<String>, allowed_hosts: Vec<String>) -> Result<Settings, ToolError> {
        self.log.start();
        let folder = std::env::current_dir()
            .map_err(|error| ToolError::new(ErrorCode::ConfigInvalid, format!("the current folder: {error}")))?;
        let variable = |name: &str| std::env::var(name).ok();
        let flags = Flags {
            config: self.config,
            agent: self.agent,
            workspace: self.workspace,
            tool_profile,
            launch_roots: self.launch_roots,
            allowed_hosts,
        };
        Settings::resolve(flags, &Surroundings { variable: &variable, folder })
    }
}

impl Level {
    /// Sends the messages of this level and above to stderr: stdout is the client's.
    fn start(self) {
        let filter = match self {
            Self::Off => LevelFilter::OFF,
            Self::Error => LevelFilter::ERROR,
            Self::Warn => LevelFilter::WARN,
            Self::Info => LevelFilter::INFO,
            Self::Debug => LevelFilter::DEBUG,
            Self::Trace => LevelFilter::TRACE,
        };
        // The library calls every refused request a warning; the client has been told already.
        let quiet = filter <= LevelFilter::WARN;
        let writer = std::io::stderr.with_filter(move |event: &Metadata<'_>| {
            !quiet || !event.target().starts_with("rmcp") || *event.level() == tracing::Level::ERROR
        });
        let log = tracing_subscriber::fmt().with_max_level(filter).with_writer(writer).with_ansi(false);
        if log.try_init().is_err() {
            eprintln!("retroscope: the log was started twice");
        }
    }
}

impl Serve {
    async fn run(self) -> Result<(), ToolError> {
        let options =
            ServeOptions { http: self.http, no_auth: self.no_auth, with_agent: self.with_agent, symbols: self.symbols };
        let settings = self.common.settings(self.tool_profile, self.allowed_hosts)?;
        serve::run(options, settings).await
    }
}

impl Tools {
    fn run(self) -> Result<(), ToolError> {
        let profile = Profile::named(&self.profile).ok_or_else(|| {
            ToolError::new(ErrorCode::ConfigInvalid, format!("there is no tool profile `{}`", self.profile))
                .hint(format!("profiles are: {}", Profile::names()))
        })?;
        let text = if self.json {
            serde_json::to_string_pretty(&mcp::listed(profile))
                .map_err(|error| ToolError::new(ErrorCode::ServerFault, error.to_string()))?
        } else {
            profile.tools().map(|tool| format!("{:<20} {}", tool.name, tool.summary())).collect::<Vec<_>>().join("\n")
        };
        // A reader that has seen enough, such as `head`, is no failure.
        drop(writeln!(std::io::stdout(), "{text}"));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn options_that_contradict_each_other_are_refused() {
        for words in [
            ["retroscope", "serve", "--no-auth"].as_slice(),
            &["retroscope", "serve", "--with-agent", "--agent", "127.0.0.1:1"],
            &["retroscope", "serve", "--symbols", "game.map"],
            &["retroscope", "serve", "--http", "nowhere"],
            &["retroscope", "serve", "--frobnicate"],
            &["retroscope", "vice-connector"],
            &["retroscope", "vice-connector", "--launch", "--connect", "127.0.0.1:6502"],
            &["retroscope", "vice-connector", "--connect", "127.0.0.1:6502", "--prg", "a.prg"],
            &["retroscope", "vice-connector", "--connect", "6502"],
        ] {
            assert!(Cli::try_parse_from(words).is_err(), "{words:?}");
        }
    }
}
