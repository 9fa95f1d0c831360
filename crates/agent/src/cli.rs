//! The command line of the agent, its start and its end. `retroscope agent` and `retroscope-agent` are both this.

use crate::engine::{Engine, EngineOptions, OnExit, SymbolMap};
use crate::log::{self, Level};
#[cfg(target_os = "linux")]
use crate::platform::linux::LinuxPlatform;
#[cfg(windows)]
use crate::platform::win32::Windows;
use crate::runner::{self, Debugger};
use crate::serve;
use base::limits;
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use std::io::{Read, Write};
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

/// Options of the agent.
#[derive(Args, Clone, Debug)]
pub struct AgentOptions {
    /// TCP port; 0 takes a free one. The first line on stdout says which.
    #[arg(long, value_name = "PORT", default_value_t = limits::DEFAULT_AGENT_PORT)]
    pub port: u16,

    /// Address to listen on; loopback only.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1")]
    pub listen: IpAddr,

    /// Launch programs below this folder only; may be given several times. Without it any program may be launched.
    #[arg(long = "launch-root", value_name = "DIR")]
    pub launch_roots: Vec<PathBuf>,

    /// What happens to a program that was launched when the agent ends. One that was attached to always goes on.
    #[arg(long, value_enum, default_value_t = OnExit::Detach)]
    pub on_exit: OnExit,

    /// Let a program go that has been left stopped without a client for so many seconds; 0 never does.
    #[arg(long, value_name = "SECONDS", default_value_t = limits::DEFAULT_ORPHAN_AFTER_S)]
    pub orphan_after: u64,

    /// Always pass a breakpoint by stepping in place; slower, for programs that watch their own memory map.
    #[arg(long)]
    pub step_in_place: bool,

    /// Names for addresses, beside those that the program has: a file of lines `address name` or `module+offset name`.
    #[arg(long, value_name = "FILE")]
    pub symbols: Option<PathBuf>,

    /// What is written to stderr.
    #[arg(long = "log", value_name = "LEVEL", value_enum, default_value_t = Level::Warn)]
    pub level: Level,

    /// End when stdin is closed, as it is when the parent process ends.
    #[arg(long)]
    pub exit_with_parent: bool,
}

impl ValueEnum for OnExit {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Detach, Self::Kill]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self {
            Self::Detach => PossibleValue::new("detach").help("it goes on without the debugger"),
            Self::Kill => PossibleValue::new("kill").help("it is ended"),
        })
    }
}

/// Runs the agent until it is told to end. To be called before any other thread is started, because it blocks the
/// signals that end it in the calling thread and in all that follow.
pub fn run(options: &AgentOptions) -> ExitCode {
    let well = platform_run(options).unwrap_or_else(|reason| {
        // Said whatever the level: the agent did not start.
        drop(writeln!(std::io::stderr(), "retroscope-agent: {reason}"));
        false
    });
    #[cfg(windows)]
    crate::platform::win32::end_this_program(u32::from(!well));
    if well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Whether the agent ended as it was told to; why it did not even start.
fn platform_run(options: &AgentOptions) -> Result<bool, String> {
    let engine = EngineOptions {
        on_exit: options.on_exit,
        launch_roots: launch_roots(options)?,
        orphan_after: match options.orphan_after {
            0 => Duration::MAX,
            seconds => Duration::from_secs(seconds),
        },
        out_of_line: !options.step_in_place,
        symbols: match &options.symbols {
            Some(path) => SymbolMap::read(path).map_err(|reason| format!("--symbols {reason}"))?,
            None => SymbolMap::default(),
        },
    };
    run_with(options, move || {
        #[cfg(target_os = "linux")]
        let platform = LinuxPlatform::new().map_err(|error| format!("debugging does not work here: {error}"))?;
        #[cfg(windows)]
        let platform = Windows::new();
        Ok(Engine::new(platform, engine))
    })
}

/// The launch roots as they are on the disk, without links or `..`.
fn launch_roots(options: &AgentOptions) -> Result<Vec<PathBuf>, String> {
    let existing = options.launch_roots.iter().map(|root| {
        let canonical = root.canonicalize().map_err(|error| format!("--launch-root {}: {error}", root.display()))?;
        match canonical.is_dir() {
            true => Ok(canonical),
            false => Err(format!("--launch-root {}: not a folder", root.display())),
        }
    });
    existing.collect()
}

/// Why the agent ends.
enum End {
    Signal(&'static str),
    Parent,
    Engine,
}

fn run_with<D: Debugger>(
    options: &AgentOptions,
    make: impl FnOnce() -> Result<D, String> + Send + 'static,
) -> Result<bool, String> {
    log::set_level(options.level);
    let listener = serve::bind(options.listen, options.port)?;
    let address = listener.local_addr().map_err(|error| format!("the port is not known: {error}"))?;
    let (ends, ended) = mpsc::channel();
    signals::watch(&ends)?;
    let engine_ends = ends.clone();
    let engine = runner::start(make, move || drop(engine_ends.send(End::Engine)))?;
    let serving = engine.clone();
    spawn("accept", move || serve::run(&listener, &serving))?;
    if options.exit_with_parent {
        spawn("parent", move || watch_parent(&ends))?;
    }
    let mut stdout = std::io::stdout();
    // Whoever started the agent may not care for its output, and may have closed it.
    drop(writeln!(stdout, "retroscope-agent listening on {address}").and_then(|()| stdout.flush()));

    let reason = match ended.recv() {
        Ok(End::Signal(name)) => name,
        Ok(End::Parent) => "its parent ended",
        Ok(End::Engine) | Err(_) => return Ok(false),
    };
    log::info(format_args!("the agent ends: {reason}"));
    // Signals stay blocked: a second one must not end the agent while breakpoints are still in the program.
    if engine.shutdown(Duration::from_millis(limits::SHUTDOWN_TIMEOUT_MS)) {
        return Ok(true);
    }
    log::error(format_args!("the debugger did not let the program go within {} ms", limits::SHUTDOWN_TIMEOUT_MS));
    Ok(false)
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<(), String> {
    let started = thread::Builder::new().name(name.to_owned()).spawn(body);
    started.map(drop).map_err(|error| format!("the thread `{name}` could not be started: {error}"))
}

/// Waits for the end of stdin.
fn watch_parent(ends: &Sender<End>) {
    let mut buffer = [0; 1024];
    let mut stdin = std::io::stdin();
    loop {
        match stdin.read(&mut buffer) {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    drop(ends.send(End::Parent));
}

#[cfg(target_os = "linux")]
mod signals {
    //! SIGTERM, SIGINT and SIGHUP, taken by a thread of their own.

    use super::{End, Sender, spawn};
    use nix::sys::signal::{SigSet, Signal};

    /// Blocks them in this thread and in those it starts, and reports each one.
    pub(super) fn watch(ends: &Sender<End>) -> Result<(), String> {
        let set: SigSet = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP].into_iter().collect();
        set.thread_block().map_err(|error| format!("signals cannot be blocked: {error}"))?;
        let ends = ends.clone();
        spawn("signals", move || {
            while let Ok(signal) = set.wait() {
                drop(ends.send(End::Signal(signal.as_str())));
            }
        })
    }
}

#[cfg(windows)]
mod signals {
    //! Ctrl+C, Ctrl+Break, the closed console, the end of the session.

    use super::{End, Sender};
    use crate::platform::win32::console;

    /// Reports each one.
    pub(super) fn watch(ends: &Sender<End>) -> Result<(), String> {
        let ends = ends.clone();
        console::on_end(move |name| drop(ends.send(End::Signal(name))))
            .map_err(|error| format!("the console's signals cannot be taken: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        options: AgentOptions,
    }

    fn parse(words: &[&str]) -> Result<AgentOptions, String> {
        let words = std::iter::once(&"agent").chain(words);
        Command::try_parse_from(words).map(|command| command.options).map_err(|error| error.to_string())
    }

    #[test]
    fn defaults_are_those_of_the_documents() {
        let options = parse(&[]).unwrap();
        assert_eq!((options.port, options.listen.to_string().as_str()), (47474, "127.0.0.1"));
        assert_eq!((options.on_exit, options.orphan_after), (OnExit::Detach, 300));
        assert_eq!((options.level, options.exit_with_parent), (Level::Warn, false));
        assert!(!options.step_in_place && parse(&["--step-in-place"]).unwrap().step_in_place);
    }

    #[test]
    fn launch_roots_are_folders_that_exist() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link, file) = (folder.path().join("a"), folder.path().join("b"), folder.path().join("c"));
        std::fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        std::fs::write(&file, "").unwrap();
        let roots = |path: &str| launch_roots(&parse(&["--launch-root", path]).unwrap());
        assert_eq!(roots(link.to_str().unwrap()), Ok(vec![real.canonicalize().unwrap()]));
        assert!(roots(file.to_str().unwrap()).unwrap_err().contains("not a folder"));
        assert!(roots(folder.path().join("d").to_str().unwrap()).unwrap_err().contains("--launch-root"));
    }
}
