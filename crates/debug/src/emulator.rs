//! One emulator process that we own: how it is started, what it says, and that nothing of it is left.

use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use base::limits;

/// Time between two looks at a process that is ending.
const ENDING_PAUSE: Duration = Duration::from_millis(5);

/// How to start an emulator.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The program. `LAUNCHER --arm9gdb=PORT … ROM` is how it is called, or `LAUNCHER ROM PORT` when its name ends in `.command`.
    pub launcher: PathBuf,
    /// The ROM.
    pub rom: PathBuf,
    /// Port of the ARM9's stub.
    pub arm9_port: u16,
    /// Port of the ARM7's stub; needs the first form.
    pub arm7_port: Option<u16>,
    /// The emulator's home folder, where it keeps settings and saves.
    pub home: PathBuf,
    /// Variables of its environment besides the few that every program needs.
    pub environment: Vec<(OsString, OsString)>,
}

/// Why an emulator was not started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// No such program.
    #[error("the launcher {0} is not a file")]
    NoLauncher(PathBuf),
    /// A pipe, a folder, or nothing.
    #[error("{0} is no ordinary file: a ROM is")]
    NoRom(PathBuf),
    /// Somebody listens there, or has until a moment ago.
    #[error("port {0} is taken, or was until a moment ago: name another, or wait a minute")]
    PortTaken(u16),
    /// A port number that must not be used.
    #[error("port {0} cannot be used: 1024 to 65535, and one for each processor")]
    BadPort(u16),
    /// The second form has no place for it.
    #[error("a .command launcher is given one port, so the ARM7 cannot be debugged with it")]
    NoArm7,
    /// The system refused.
    #[error("{launcher} cannot be started: {source}")]
    Start {
        /// The program.
        launcher: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
}

impl Launch {
    /// The words behind the program's name. DeSmuME's recompiler never answers its stub, hence the mode.
    ///
    /// # Errors
    /// [`LaunchError::NoArm7`].
    pub fn arguments(&self) -> Result<Vec<OsString>, LaunchError> {
        if self.launcher.extension().is_some_and(|extension| extension == "command") {
            if self.arm7_port.is_some() {
                return Err(LaunchError::NoArm7);
            }
            return Ok(vec![self.rom.clone().into(), self.arm9_port.to_string().into()]);
        }
        let arm7 = self.arm7_port.map(|port| format!("--arm7gdb={port}").into());
        let options = [format!("--arm9gdb={}", self.arm9_port).into()].into_iter().chain(arm7);
        Ok(options.chain(["--cpu-mode=0".into(), self.rom.clone().into()]).collect())
    }

    /// Starts it in a process group of its own, in the launcher's folder, with hardly any environment.
    ///
    /// # Errors
    /// All of [`LaunchError`].
    pub fn start(&self) -> Result<Emulator, LaunchError> {
        if !self.launcher.is_file() {
            return Err(LaunchError::NoLauncher(self.launcher.clone()));
        }
        if !self.rom.is_file() {
            return Err(LaunchError::NoRom(self.rom.clone()));
        }
        for port in std::iter::once(self.arm9_port).chain(self.arm7_port) {
            if port < 1_024 || self.arm7_port == Some(self.arm9_port) {
                return Err(LaunchError::BadPort(port));
            }
            if !port_is_free(port) {
                return Err(LaunchError::PortTaken(port));
            }
        }
        let arguments = self.arguments()?;
        Emulator::start(&self.launcher, arguments, &self.home, &self.environment)
            .map_err(|source| LaunchError::Start { launcher: self.launcher.clone(), source })
    }
}

/// What programs need besides what they are given. The mark of a test run is passed on, so that what is left over is found.
fn basics() -> impl Iterator<Item = (&'static str, OsString)> {
    let given = ["PATH", "TMPDIR", "SYSTEMROOT", "RETROSCOPE_TEST_RUN"];
    given.into_iter().filter_map(|name| std::env::var_os(name).map(|value| (name, value)))
}

/// The variables with which SDL programs need neither a display nor a sound card.
pub fn headless() -> Vec<(OsString, OsString)> {
    ["SDL_VIDEODRIVER", "SDL_AUDIODRIVER"].map(|name| (name.into(), "dummy".into())).to_vec()
}

/// The file that a launcher's name stands for: a path as it is, a plain name in the folders of `PATH`, and in the folder where
/// Debian has games, which root's `PATH` leaves out.
pub fn find_launcher(name: &Path) -> Option<PathBuf> {
    if name.components().count() > 1 || name.is_absolute() {
        return name.is_file().then(|| name.to_owned());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(std::iter::once(PathBuf::from("/usr/games")));
    folders.map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Whether an emulator's own help speaks of a stub for the ARM9: builds without one exist, and refuse the option.
///
/// # Errors
/// When it cannot be started, or does not end within `time`.
pub fn has_stub(launcher: &Path, home: &Path, time: Duration) -> std::io::Result<bool> {
    let mut command = Command::new(launcher);
    command.arg("--help").env_clear().envs(basics()).env("HOME", home).envs(headless());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    own_group(&mut command);
    let mut child = command.spawn()?;
    let tails = [Tail::follow(child.stdout.take()), Tail::follow(child.stderr.take())];
    let until = Instant::now() + time;
    while !has_ended(&mut child)? {
        if Instant::now() >= until {
            signal_group(&child, End::Kill);
            child.wait()?;
            return Err(std::io::ErrorKind::TimedOut.into());
        }
        std::thread::sleep(ENDING_PAUSE);
    }
    // What is left of its group would hold the pipes open.
    signal_group(&child, End::Kill);
    child.wait()?;
    let until = Instant::now() + Duration::from_millis(limits::EMULATOR_TERM_GRACE_MS);
    while !tails.iter().all(Tail::is_over) && Instant::now() < until {
        std::thread::sleep(ENDING_PAUSE);
    }
    Ok(tails.iter().any(|tail| tail.text().0.contains("arm9gdb")))
}

/// Whether nobody has this port on any address. Asked as emulators ask, so that a connection that ended a moment ago counts.
#[cfg(unix)]
pub fn port_is_free(port: u16) -> bool {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, bind, socket};
    use std::os::fd::AsRawFd;
    let Ok(socket) = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None) else {
        return false;
    };
    bind(socket.as_raw_fd(), &SockaddrIn::new(0, 0, 0, 0, port)).is_ok()
}

/// Whether nobody listens on this port.
#[cfg(not(unix))]
pub fn port_is_free(port: u16) -> bool {
    std::net::TcpListener::bind((std::net::Ipv4Addr::UNSPECIFIED, port)).is_ok()
}

/// How an emulator ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// Its exit code.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
}

impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Self {
        #[cfg(unix)]
        let signal = std::os::unix::process::ExitStatusExt::signal(&status);
        #[cfg(not(unix))]
        let signal = None;
        Self { code: status.code(), signal }
    }
}

/// What an emulator wrote, as far as it is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// The end of its standard output.
    pub stdout: String,
    /// The end of its standard error.
    pub stderr: String,
    /// Whether more was written than is kept.
    pub truncated: bool,
}

/// A running emulator, or one that ended. Ended when it is dropped.
#[derive(Debug)]
pub struct Emulator {
    child: Child,
    started: SystemTime,
    launcher: PathBuf,
    arguments: Vec<OsString>,
    stdout: Tail,
    stderr: Tail,
    exit: Option<Exit>,
}

impl Emulator {
    /// Starts a program in a process group of its own, in its folder, with hardly any environment besides `environment`.
    ///
    /// # Errors
    /// What the system says.
    pub fn start(
        launcher: &Path,
        arguments: Vec<OsString>,
        home: &Path,
        environment: &[(OsString, OsString)],
    ) -> std::io::Result<Self> {
        let mut command = Command::new(launcher);
        command.args(&arguments).env_clear().envs(basics()).env("HOME", home);
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(folder) = launcher.parent().filter(|folder| folder.is_dir()) {
            command.current_dir(folder);
        }
        own_group(&mut command);
        let mut child = command.spawn()?;
        let stdout = Tail::follow(child.stdout.take());
        let stderr = Tail::follow(child.stderr.take());
        let launcher = launcher.to_owned();
        Ok(Self { child, started: SystemTime::now(), launcher, arguments, stdout, stderr, exit: None })
    }

    /// Its process, which is also its process group.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// When it was started.
    pub const fn started(&self) -> SystemTime {
        self.started
    }

    /// The program.
    pub fn launcher(&self) -> &Path {
        &self.launcher
    }

    /// The words behind its name.
    pub fn arguments(&self) -> &[OsString] {
        &self.arguments
    }

    /// What it wrote.
    pub fn output(&self) -> Output {
        let ((stdout, more_out), (stderr, more_err)) = (self.stdout.text(), self.stderr.text());
        Output { stdout, stderr, truncated: more_out || more_err }
    }

    /// How it ended, or `None` while it runs. When the launcher has ended, the rest of its group is ended too.
    pub fn exit(&mut self) -> Option<Exit> {
        if self.exit.is_none() && has_ended(&mut self.child).unwrap_or(true) {
            self.reap();
        }
        self.exit
    }

    /// Ends it and its whole group: asked first, and killed when that does not help, as with a DeSmuME that is stopped.
    pub fn stop(&mut self) -> Option<Exit> {
        if self.exit().is_some() {
            return self.exit;
        }
        signal_group(&self.child, End::Ask);
        let until = Instant::now() + Duration::from_millis(limits::EMULATOR_TERM_GRACE_MS);
        while Instant::now() < until {
            if self.exit().is_some() {
                return self.exit;
            }
            std::thread::sleep(ENDING_PAUSE);
        }
        self.reap();
        self.exit
    }

    /// Kills what is left of the group while the leader, dead or alive, still keeps its number from being given away.
    fn reap(&mut self) {
        signal_group(&self.child, End::Kill);
        self.exit = self.child.wait().ok().map(Exit::from);
        let until = Instant::now() + Duration::from_millis(limits::EMULATOR_KILL_GRACE_MS);
        while group_is_there(&self.child) && Instant::now() < until {
            std::thread::sleep(ENDING_PAUSE);
        }
        // The last words are on their way through the pipes.
        let until = Instant::now() + Duration::from_millis(limits::EMULATOR_TERM_GRACE_MS);
        while !(self.stdout.is_over() && self.stderr.is_over()) && Instant::now() < until {
            std::thread::sleep(ENDING_PAUSE);
        }
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.stop();
    }
}

#[derive(Clone, Copy)]
enum End {
    Ask,
    Kill,
}

#[cfg(unix)]
fn own_group(command: &mut Command) {
    std::os::unix::process::CommandExt::process_group(command, 0);
}

#[cfg(not(unix))]
fn own_group(_: &mut Command) {}

#[cfg(unix)]
fn group(child: &Child) -> Option<nix::unistd::Pid> {
    i32::try_from(child.id()).ok().map(nix::unistd::Pid::from_raw)
}

#[cfg(unix)]
fn signal_group(child: &Child, end: End) {
    use nix::sys::signal::{Signal, killpg};
    let signal = match end {
        End::Ask => Signal::SIGTERM,
        End::Kill => Signal::SIGKILL,
    };
    if let Some(group) = group(child) {
        // A group that is gone already is what is wanted.
        let _ = killpg(group, signal);
    }
}

#[cfg(not(unix))]
fn signal_group(child: &Child, _: End) {
    // There is no asking here; the process itself is ended by its handle in `reap`.
    let _ = Command::new("taskkill").args(["/F", "/T", "/PID", &child.id().to_string()]).status();
}

#[cfg(unix)]
fn group_is_there(child: &Child) -> bool {
    group(child).is_some_and(|group| nix::sys::signal::killpg(group, None).is_ok())
}

#[cfg(not(unix))]
fn group_is_there(_: &Child) -> bool {
    false
}

/// Whether the process has ended, leaving its number taken until it is waited for.
#[cfg(unix)]
fn has_ended(child: &mut Child) -> std::io::Result<bool> {
    use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
    let Some(pid) = group(child) else { return Ok(true) };
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    Ok(!matches!(waitid(Id::Pid(pid), flags)?, WaitStatus::StillAlive))
}

#[cfg(not(unix))]
fn has_ended(child: &mut Child) -> std::io::Result<bool> {
    Ok(child.try_wait()?.is_some())
}

/// The end of what a pipe brings, kept by a thread of its own so that a flood never stops the emulator.
#[derive(Debug)]
struct Tail {
    kept: Arc<Mutex<Kept>>,
}

#[derive(Debug, Default)]
struct Kept {
    bytes: Vec<u8>,
    dropped: bool,
    over: bool,
}

impl Tail {
    fn follow(pipe: Option<impl Read + Send + 'static>) -> Self {
        let kept = Arc::new(Mutex::new(Kept { over: pipe.is_none(), ..Kept::default() }));
        if let Some(mut pipe) = pipe {
            let shared = Arc::clone(&kept);
            std::thread::spawn(move || {
                let mut buffer = [0; limits::GDB_RECEIVE_BYTES];
                while let Ok(count @ 1..) = pipe.read(&mut buffer) {
                    let mut kept = shared.lock().unwrap_or_else(PoisonError::into_inner);
                    kept.bytes.extend_from_slice(buffer.get(..count).unwrap_or_default());
                    // Cut in big pieces, so that a flood costs little.
                    if kept.bytes.len() > limits::MAX_EMULATOR_OUTPUT_BYTES * 2 {
                        let cut = kept.bytes.len() - limits::MAX_EMULATOR_OUTPUT_BYTES;
                        kept.bytes.drain(..cut);
                        kept.dropped = true;
                    }
                }
                shared.lock().unwrap_or_else(PoisonError::into_inner).over = true;
            });
        }
        Self { kept }
    }

    fn text(&self) -> (String, bool) {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let start = kept.bytes.len().saturating_sub(limits::MAX_EMULATOR_OUTPUT_BYTES);
        let text = String::from_utf8_lossy(kept.bytes.get(start..).unwrap_or_default()).into_owned();
        (text, kept.dropped || start > 0)
    }

    fn is_over(&self) -> bool {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).over
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A folder with a launcher that is this shell script, and a ROM.
    fn launch(folder: &Path, script: &str) -> Launch {
        let launcher = folder.join("emulator.command");
        std::fs::write(&launcher, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&launcher, std::fs::Permissions::from_mode(0o755)).unwrap();
        let rom = folder.join("game.nds");
        std::fs::write(&rom, b"rom").unwrap();
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Launch { launcher, rom, arm9_port: free, arm7_port: None, home: folder.to_owned(), environment: Vec::new() }
    }

    fn until(mut done: impl FnMut() -> bool) {
        let end = Instant::now() + Duration::from_secs(20);
        while !done() {
            assert!(Instant::now() < end, "it did not happen");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn both_forms_have_their_words() {
        let folder = tempfile::tempdir().unwrap();
        let mut launch = launch(folder.path(), "");
        launch.arm9_port = 20_000;
        assert_eq!(launch.arguments().unwrap(), [launch.rom.clone().into_os_string(), "20000".into()]);
        launch.arm7_port = Some(20_001);
        assert!(matches!(launch.arguments(), Err(LaunchError::NoArm7)));
        launch.launcher = folder.path().join("desmume-cli");
        let words = launch.arguments().unwrap();
        assert_eq!(words[..3], ["--arm9gdb=20000", "--arm7gdb=20001", "--cpu-mode=0"]);
        assert_eq!(words[3], launch.rom);
    }

    #[test]
    fn it_sees_hardly_any_of_our_environment_and_no_shell_reads_its_arguments() {
        let folder = tempfile::tempdir().unwrap();
        let mut launch = launch(folder.path(), "env; echo \"$1\"");
        launch.rom = folder.path().join("a b; $(touch x).nds");
        std::fs::write(&launch.rom, b"rom").unwrap();
        launch.environment = headless();
        let mut emulator = launch.start().unwrap();
        until(|| emulator.exit().is_some());
        let output = emulator.output();
        let names: Vec<&str> = output.stdout.lines().filter_map(|line| line.split('=').next()).collect();
        assert!(names.contains(&"SDL_VIDEODRIVER") && names.contains(&"HOME"), "{names:?}");
        assert!(!names.contains(&"CARGO_MANIFEST_DIR"), "{names:?}");
        assert!(output.stdout.contains("a b; $(touch x).nds"));
        assert_eq!(emulator.exit(), Some(Exit { code: Some(0), signal: None }));
    }

    #[test]
    fn a_whole_group_that_ignores_being_asked_is_killed() {
        let folder = tempfile::tempdir().unwrap();
        let script = "trap '' TERM; (trap '' TERM; echo ready; while :; do sleep 1; done) & while :; do sleep 1; done";
        let mut emulator = launch(folder.path(), script).start().unwrap();
        until(|| emulator.output().stdout.contains("ready"));
        assert_eq!(emulator.exit(), None);
        assert_eq!(emulator.stop(), Some(Exit { code: None, signal: Some(9) }));
        assert!(!group_is_there(&emulator.child));
    }

    #[test]
    fn what_a_launcher_leaves_behind_in_its_group_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let mut emulator = launch(folder.path(), "sleep 60 &\nexit 3").start().unwrap();
        until(|| emulator.exit().is_some());
        assert_eq!(emulator.exit(), Some(Exit { code: Some(3), signal: None }));
        assert!(!group_is_there(&emulator.child));
    }

    #[test]
    fn a_flood_of_output_is_read_and_its_end_kept() {
        let folder = tempfile::tempdir().unwrap();
        let mut emulator = launch(folder.path(), "yes flood | head -c 3000000; echo last").start().unwrap();
        until(|| emulator.exit().is_some());
        let output = emulator.output();
        assert!(output.truncated && output.stdout.ends_with("last\n"));
        assert_eq!(output.stdout.len(), limits::MAX_EMULATOR_OUTPUT_BYTES);
    }

    #[test]
    fn what_cannot_be_started_is_said_before_it_is_tried() {
        let folder = tempfile::tempdir().unwrap();
        let good = launch(folder.path(), "exit 0");
        let pipe = folder.path().join("pipe.nds");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(matches!(Launch { rom: pipe, ..good.clone() }.start(), Err(LaunchError::NoRom(_))));
        let missing = folder.path().join("missing");
        assert!(matches!(Launch { launcher: missing, ..good.clone() }.start(), Err(LaunchError::NoLauncher(_))));
        assert!(matches!(Launch { arm9_port: 80, ..good.clone() }.start(), Err(LaunchError::BadPort(80))));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let taken = listener.local_addr().unwrap().port();
        assert!(matches!(Launch { arm9_port: taken, ..good }.start(), Err(LaunchError::PortTaken(_))));
    }

    #[test]
    fn a_stub_is_known_by_what_the_emulator_says_of_itself() {
        let folder = tempfile::tempdir().unwrap();
        let with = launch(folder.path(), "echo ' --arm9gdb=PORT_NUM  Enable the ARM9 GDB stub'").launcher;
        let time = Duration::from_secs(20);
        assert!(has_stub(&with, folder.path(), time).unwrap());
        let without = launch(folder.path(), "echo ' --cpu-mode'; exit 1").launcher;
        assert!(!has_stub(&without, folder.path(), time).unwrap());
        let endless = launch(folder.path(), "sleep 60").launcher;
        assert!(has_stub(&endless, folder.path(), Duration::from_millis(50)).is_err());
    }
}
