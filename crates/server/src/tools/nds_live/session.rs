//! The one emulator of a server and everything that is known about it: process, stubs, ROM, generation. All tools of the group
//! ask here; nothing else holds any of it.

use crate::context::Context;
use crate::errors::{ErrorCode, ToolError};
use base::limits;
use debug::emulator::{Emulator, Exit, Launch, LaunchError, find_launcher, headless};
use debug::gdb_remote::{Console, Debugger, Driver, Error, Mode, Processor, Range, RangeSource, Resumed, Steps};
use nds::Rom;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// How long one look for a stop holds the session, so that other calls get in between.
const LOOK: Duration = Duration::from_millis(10);

/// What the configuration says about emulators.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EmulatorOptions {
    /// The launcher when a call names none.
    pub launcher: Option<PathBuf>,
    /// A stub that somebody else started, for `desmume_start` to attach to instead of starting an emulator.
    pub gdb: Option<SocketAddr>,
    /// Whether the emulator may open a window, on the display that the server has.
    pub window: bool,
    /// Whether the watchpoint tools may be used.
    pub watchpoints: bool,
    /// The `retroscope` program, where there is one that emulators can be started by, so that they end with the server
    /// however that ends.
    pub guard: Option<PathBuf>,
}

/// The session, shared by all calls of a server.
#[derive(Debug, Default)]
pub struct Live {
    options: Mutex<EmulatorOptions>,
    state: Mutex<State>,
}

/// What one call works on.
#[derive(Debug, Default)]
pub struct State {
    machine: Option<Machine>,
    /// Grows with every start.
    generation: u64,
}

/// An emulator that was started, or a stub that was attached to.
#[derive(Debug)]
pub struct Machine {
    /// Our process; `None` for a stub that somebody else started.
    pub emulator: Option<Emulator>,
    /// How the process ended.
    pub exit: Option<Exit>,
    /// The processors, once their stubs were reached.
    pub console: Option<Console>,
    /// Where the ARM9's stub is.
    pub arm9: SocketAddr,
    /// Where the ARM7's stub is.
    pub arm7: Option<SocketAddr>,
    /// The ROM's path, as the call gave it.
    pub rom_path: String,
    /// The ROM as it was when the emulator was started.
    pub rom: Arc<Rom>,
    /// When it was started.
    pub started: SystemTime,
    /// Whether the stub was used before this connection: attached to, or connected to anew.
    pub joined: bool,
    /// When the last stop was seen.
    pub stopped_at: Option<SystemTime>,
    /// The emulator's home, removed with it.
    home: Option<PathBuf>,
}

/// What a start is asked for.
#[derive(Debug)]
pub struct Start {
    /// The launcher as the call names it.
    pub launcher: Option<String>,
    /// The ROM's path as the call gave it.
    pub rom_path: String,
    /// The ROM.
    pub rom: Arc<Rom>,
    /// Where it is.
    pub file: PathBuf,
    /// Port of the ARM9's stub.
    pub arm9_port: u16,
    /// Port of the ARM7's stub.
    pub arm7_port: Option<u16>,
}

impl Live {
    /// Takes the configuration in.
    pub fn configure(&self, options: EmulatorOptions) {
        *self.options.lock().unwrap_or_else(PoisonError::into_inner) = options;
    }

    /// The configuration.
    pub fn options(&self) -> EmulatorOptions {
        self.options.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Does something with the session, away from the threads that answer.
pub async fn with<R: Send + 'static>(
    context: &Context,
    work: impl FnOnce(&mut State) -> Result<R, ToolError> + Send + 'static,
) -> Result<R, ToolError> {
    let live = Arc::clone(context.live());
    let done = tokio::task::spawn_blocking(move || {
        let mut state = live.state.lock().unwrap_or_else(PoisonError::into_inner);
        work(&mut state).map_err(|error| state.explain(error))
    });
    done.await
        .map_err(|error| ToolError::new(ErrorCode::ServerFault, format!("the session's work ended badly: {error}")))?
}

/// Waits for a stop until then, holding the session only for moments. A call that is dropped leaves no trace.
pub async fn wait(context: &Context, until: Instant) -> Result<Resumed, ToolError> {
    loop {
        let seen = with(context, move |state| state.look(until.min(Instant::now() + LOOK))).await?;
        if matches!(seen, Resumed::Stopped(_)) || Instant::now() >= until {
            return Ok(seen);
        }
    }
}

/// Time for one exchange with a stub.
pub fn soon() -> Instant {
    Instant::now() + Duration::from_millis(limits::GDB_EXCHANGE_TIMEOUT_MS)
}

impl State {
    /// How often an emulator was started.
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// Says in an error's details what state everything is in.
    fn explain(&mut self, error: ToolError) -> ToolError {
        let machine = self.seen();
        let running = machine.as_ref().is_some_and(|machine| machine.exit.is_none());
        let state = machine.as_ref().map_or("unavailable", |machine| machine.state());
        error
            .detail("debuggerState", state)
            .detail("emulatorRunning", running)
            .detail("connectionUsable", running && state != "unavailable")
    }

    /// The machine, whatever state it is in; an exit that has happened is noticed first.
    pub fn seen(&mut self) -> Option<&mut Machine> {
        let machine = self.machine.as_mut()?;
        if let Some(exit) = machine.emulator.as_mut().and_then(Emulator::exit) {
            machine.exit = Some(exit);
            machine.console = None;
        }
        Some(machine)
    }

    /// The machine while its process lives.
    ///
    /// # Errors
    /// `emulator_not_running`.
    pub fn machine(&mut self) -> Result<&mut Machine, ToolError> {
        match self.seen() {
            Some(machine) if machine.exit.is_none() => Ok(machine),
            Some(machine) if machine.stopped_at.is_none() => Err(machine.ended_early()),
            Some(machine) => {
                let how = match machine.exit {
                    Some(Exit { signal: Some(signal), .. }) => format!("ended by signal {signal}"),
                    Some(Exit { code: Some(code), .. }) => format!("ended with code {code}"),
                    _ => "ended".to_owned(),
                };
                Err(ToolError::new(ErrorCode::EmulatorNotRunning, format!("the emulator has {how}"))
                    .hint("look at its output with desmume_status, then start it again with desmume_start"))
            }
            None => Err(ToolError::new(ErrorCode::EmulatorNotRunning, "no emulator was started")
                .hint("start one with desmume_start")),
        }
    }

    /// The processors, reached now if they were not before.
    ///
    /// # Errors
    /// `emulator_not_running`, `emulator_not_ready`, `gdb_connection_lost`.
    pub fn console(&mut self) -> Result<&mut Console, ToolError> {
        let machine = self.machine()?;
        machine.connect(soon())?;
        machine.reconnect(soon())?;
        machine.console.as_mut().ok_or_else(|| ToolError::new(ErrorCode::ServerFault, "there is no session"))
    }

    /// A processor of the stopped machine.
    ///
    /// # Errors
    /// As [`Self::console`], and `debugger_running`.
    pub fn stopped(&mut self, processor: Processor) -> Result<&mut Debugger, ToolError> {
        let outcome = self.console()?.stopped(processor);
        outcome.map_err(ToolError::from)
    }

    /// Waits for a stop until then.
    fn look(&mut self, until: Instant) -> Result<Resumed, ToolError> {
        let seen = self.console()?.wait(until);
        // That the process died says more than that the connection did.
        let seen = match seen {
            Err(Error::Closed | Error::Io(_)) => {
                let until = soon();
                while self.machine().is_ok() && Instant::now() < until {
                    std::thread::sleep(LOOK);
                }
                self.machine()?;
                return Err(Error::Closed.into());
            }
            seen => seen?,
        };
        if matches!(seen, Resumed::Stopped(_)) {
            self.machine()?.stopped_at = Some(SystemTime::now());
        }
        Ok(seen)
    }

    /// Stops the running program.
    ///
    /// # Errors
    /// As [`Self::console`].
    pub fn pause(&mut self, until: Instant) -> Result<Resumed, ToolError> {
        let was_running = self.console()?.is_running();
        let paused = self.console()?.pause(until)?;
        if was_running && matches!(paused, Resumed::Stopped(_)) {
            self.machine()?.stopped_at = Some(SystemTime::now());
        }
        Ok(paused)
    }

    /// Executes instructions.
    ///
    /// # Errors
    /// As [`Self::console`], and `invalid_arguments` for a count out of range.
    pub fn step(&mut self, processor: Processor, count: u32, each: Duration, report: bool) -> Result<Steps, ToolError> {
        let done = self.console()?.step(processor, count, each, report)?;
        self.machine()?.stopped_at = Some(SystemTime::now());
        Ok(done)
    }

    /// Starts an emulator, or attaches to the stub of the configuration, and does not wait for it to be ready.
    ///
    /// # Errors
    /// `emulator_running`, `emulator_start_failed`, `path_refused`.
    pub fn start(&mut self, start: Start, options: &EmulatorOptions, context: &Context) -> Result<(), ToolError> {
        if self.machine().is_ok() {
            return Err(ToolError::new(ErrorCode::EmulatorRunning, "an emulator is running already")
                .hint("end it with desmume_stop first: a server owns one"));
        }
        self.machine = None;
        let mut machine = Machine {
            emulator: None,
            exit: None,
            console: None,
            arm9: (Ipv4Addr::LOCALHOST, start.arm9_port).into(),
            arm7: start.arm7_port.map(|port| (Ipv4Addr::LOCALHOST, port).into()),
            rom_path: start.rom_path,
            rom: start.rom,
            started: SystemTime::now(),
            joined: false,
            stopped_at: None,
            home: None,
        };
        if let Some(gdb) = options.gdb {
            (machine.arm9, machine.arm7) = (gdb, None);
        } else {
            let launcher = launcher(start.launcher.as_deref(), options, context)?;
            let home = std::env::temp_dir().join(format!("retroscope-{}-{}", std::process::id(), self.generation + 1));
            std::fs::create_dir_all(&home).map_err(|error| {
                ToolError::new(ErrorCode::EmulatorStartFailed, format!("{}: {error}", home.display()))
                    .hint("free some room in the folder for temporary files")
            })?;
            let environment = if options.window { display() } else { headless() };
            let launch = Launch {
                launcher,
                rom: start.file,
                arm9_port: start.arm9_port,
                arm7_port: start.arm7_port,
                home: home.clone(),
                environment,
            };
            machine.home = Some(home);
            machine.emulator = Some(launch.start_by(guard(options).as_deref())?);
        }
        self.generation += 1;
        self.machine = Some(machine);
        Ok(())
    }

    /// Ends the emulator, or lets a stub of somebody else's go: without our breakpoints, and running or stopped as it is.
    pub fn stop(&mut self) {
        if let Some(machine) = self.seen() {
            if let Some(emulator) = &mut machine.emulator {
                // Our end is closed first, so that nothing of the connection keeps the port taken.
                machine.console = None;
                machine.exit = emulator.stop();
            } else {
                self.machine = None;
            }
        }
    }
}

impl Machine {
    /// Reaches the stubs, and waits until the programs are loaded.
    ///
    /// # Errors
    /// `emulator_not_running`, `emulator_not_ready`, `gdb_connection_lost`.
    pub fn connect(&mut self, until: Instant) -> Result<(), ToolError> {
        if self.console.is_some() {
            return Ok(());
        }
        let (header9, header7) = (self.rom.header().arm9, self.rom.header().arm7);
        let range = |id: &str, program: nds::Program| Range {
            id: id.to_owned(),
            label: format!("{id} by the ROM's header"),
            start: program.ram_address,
            end: u32::try_from(program.ram_end()).unwrap_or(u32::MAX),
            source: RangeSource::Main,
            default_mode: None,
            symbol_modes: BTreeMap::new(),
        };
        let (main9, main7) = (range("arm9-main", header9), range("arm7-main", header7));
        // A stub of somebody else's is wherever it is; and so is ours after it has been used.
        let fresh = self.emulator.is_some() && self.stopped_at.is_none();
        let emulator = &mut self.emulator;
        let mut alive = || emulator.as_mut().is_none_or(|emulator| emulator.exit().is_none());
        self.joined = !fresh;
        let mut reach = |address, main, entry| {
            if fresh {
                Debugger::when_ready(address, main, entry, until, &mut alive)
            } else {
                Debugger::take_over(address, main, until)
            }
        };
        let arm9 = reach(self.arm9, main9, header9.entry);
        let arm7 = self.arm7.map(|address| reach(address, main7, header7.entry)).transpose();
        if let Some(exit) = self.emulator.as_mut().and_then(Emulator::exit) {
            self.exit = Some(exit);
            return Err(self.ended_early());
        }
        self.console = Some(Console::new(arm9?, arm7?));
        // It is stopped at its entry, which a later connection may not find again.
        self.stopped_at = Some(SystemTime::now());
        Ok(())
    }

    /// Makes broken connections anew; a program that runs is stopped for it. The breakpoints of before are taken out of the stub, and planted again by the next run.
    ///
    /// # Errors
    /// `emulator_not_ready`, `gdb_connection_lost`.
    pub fn reconnect(&mut self, until: Instant) -> Result<(), ToolError> {
        let Some(console) = self.console.as_mut().filter(|console| console.is_broken()) else { return Ok(()) };
        self.joined = true;
        for (processor, address) in [(Processor::Arm9, Some(self.arm9)), (Processor::Arm7, self.arm7)] {
            if let Some(address) = address
                && console.look(processor)?.is_broken()
            {
                console.reattach(processor, Driver::take_over(address, until)?, until)?;
            }
        }
        Ok(())
    }

    /// Why an emulator ended before its stub answered: most often it has none.
    fn ended_early(&self) -> ToolError {
        let output = self.emulator.as_ref().map(Emulator::output).unwrap_or_default();
        let text = format!("{}\n{}", output.stdout, output.stderr);
        let no_stub = text.lines().any(|line| line.to_lowercase().contains("unknown option") && line.contains("gdb"));
        let error = if no_stub {
            ToolError::new(ErrorCode::EmulatorStartFailed, "this emulator was built without a GDB stub")
                .hint("use one that has it, such as DeSmuME 0.9.11 of Debian 12; 0.9.13 of later Debian has none")
        } else {
            ToolError::new(ErrorCode::EmulatorStartFailed, "the emulator ended before its GDB stub was ready")
                .hint("its output says why; see `details`, or desmume_status")
        };
        let last: Vec<&str> = text.lines().rev().take(5).collect();
        error.detail("output", last.into_iter().rev().collect::<Vec<_>>().join("\n"))
    }

    /// `stopped`, `running` or `unavailable`.
    pub fn state(&self) -> &'static str {
        match &self.console {
            Some(console) if console.is_broken() => "unavailable",
            Some(console) if console.is_running() => "running",
            Some(_) => "stopped",
            None => "unavailable",
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Some(mut console) = self.console.take().filter(|_| self.emulator.is_none()) {
            // With a stub that does not answer any more there is nothing to be done.
            let _ = console.let_go(soon());
        }
        self.emulator = None;
        if let Some(home) = &self.home {
            // What cannot be removed from the folder for temporary files is nobody's trouble.
            let _ = std::fs::remove_dir_all(home);
        }
    }
}

/// The program that a launcher's name means: a plain name is looked for on PATH; a path must be that of the configuration, or
/// lie in the workspace and below a launch root.
fn launcher(name: Option<&str>, options: &EmulatorOptions, context: &Context) -> Result<PathBuf, ToolError> {
    let default = || options.launcher.clone().unwrap_or_else(|| PathBuf::from("desmume-cli"));
    let wanted = name.map_or_else(default, PathBuf::from);
    let missing = || {
        ToolError::new(ErrorCode::EmulatorStartFailed, format!("there is no launcher {}", wanted.display()))
            .hint("install one (Debian 12: apt-get install desmume), or name it as `launcher` in [emulator] of the configuration")
    };
    let is_plain = wanted.components().count() == 1;
    let found = if is_plain || options.launcher.as_ref() == Some(&wanted) {
        find_launcher(&wanted).ok_or_else(missing)?
    } else {
        let path = wanted.to_str().unwrap_or_default();
        context.workspace()?.open_file(path, u64::MAX)?.path
    };
    context.launch_roots().check(&found.display().to_string())?;
    Ok(found)
}

/// The words that a guarded emulator is started by.
fn guard(options: &EmulatorOptions) -> Option<Vec<std::ffi::OsString>> {
    options.guard.clone().filter(|_| cfg!(target_os = "linux")).map(|guard| vec![guard.into(), "guarded".into()])
}

/// The variables by which a program finds the display that the server has.
fn display() -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
    let names = ["DISPLAY", "XAUTHORITY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR"];
    names.into_iter().filter_map(|name| std::env::var_os(name).map(|value| (name.into(), value))).collect()
}

impl From<LaunchError> for ToolError {
    fn from(error: LaunchError) -> Self {
        let hint = match error {
            LaunchError::PortTaken(_) | LaunchError::BadPort(_) => "name another port with arm9GdbPort",
            LaunchError::NoArm7 => "leave arm7GdbPort out, or use a launcher that takes options",
            LaunchError::NoLauncher(_) | LaunchError::Start { .. } => {
                "check that the launcher is a program that may be run"
            }
            LaunchError::NoRom(_) => "name an ordinary file",
        };
        Self::new(ErrorCode::EmulatorStartFailed, error.to_string()).hint(hint)
    }
}

impl From<Error> for ToolError {
    fn from(error: Error) -> Self {
        let (code, hint) = match &error {
            Error::Deaf => (
                ErrorCode::DebuggerRunning,
                "end it with desmume_stop; start an emulator that runs its interpreter, as desmume_start does by --cpu-mode=0",
            ),
            Error::Running => (ErrorCode::DebuggerRunning, "desmume_pause stops it; desmume_wait_for_stop waits"),
            Error::Stopped => (ErrorCode::DebuggerStopped, "desmume_continue makes it run"),
            Error::Connect { .. } | Error::NotReady { .. } => {
                (ErrorCode::EmulatorNotReady, "give it more time with desmume_wait_for_gdb, or look at desmume_status")
            }
            Error::Io(_)
            | Error::Closed
            | Error::TimedOut { .. }
            | Error::Refused { .. }
            | Error::Damaged { .. }
            | Error::Broken => (
                ErrorCode::GdbConnectionLost,
                "call again, which connects anew; if that fails too, desmume_stop and desmume_start",
            ),
            Error::PartRead { .. }
            | Error::Unsupported { .. }
            | Error::Stub { .. }
            | Error::BadAnswer { .. }
            | Error::NotWritten { .. } => (ErrorCode::GdbRefused, "this stub cannot do that here; see `message`"),
            Error::NoProcessor(_) => (ErrorCode::InvalidArguments, "start the emulator with arm7GdbPort"),
            _ => (ErrorCode::InvalidArguments, ""),
        };
        let told = Self::new(code, error.to_string()).hint(hint);
        match error {
            Error::PartRead { start, reached, .. } => told.detail("start", start).detail("reached", reached),
            _ => told,
        }
    }
}

/// The word of a mode.
pub const fn mode_word(mode: Mode) -> &'static str {
    match mode {
        Mode::Arm => "arm",
        Mode::Thumb => "thumb",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_of_a_stub_has_a_code_that_says_what_to_do() {
        assert_eq!(ToolError::from(Error::Running).code, ErrorCode::DebuggerRunning);
        assert_eq!(ToolError::from(Error::Closed).code, ErrorCode::GdbConnectionLost);
        let part = Error::PartRead { start: 16, reached: 32, source: Box::new(Error::Closed) };
        let told = ToolError::from(part);
        assert_eq!((told.code, &told.details["reached"]), (ErrorCode::GdbRefused, &32.into()));
    }

    #[test]
    fn without_an_emulator_nothing_is_there_to_ask() {
        let mut state = State::default();
        assert_eq!(state.machine().unwrap_err().code, ErrorCode::EmulatorNotRunning);
        assert_eq!(state.stopped(Processor::Arm9).unwrap_err().code, ErrorCode::EmulatorNotRunning);
        state.stop();
        assert_eq!(state.generation(), 0);
    }
}
