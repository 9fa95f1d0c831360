//! Starting VICE with its binary monitor on loopback, and waiting until it answers.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use base::limits;

use super::error::Error;
use super::monitor::Monitor;
use crate::emulator::{Emulator, LaunchError};

/// Name of the program in `PATH`: the exact one of VICE's two C64 emulators.
pub const PROGRAM: &str = "x64sc";

/// Port of VICE's binary monitor unless it is told another.
pub const MONITOR_PORT: u16 = 6502;

/// Time between two tries to reach the monitor of a VICE that is starting.
const STARTING_PAUSE: Duration = Duration::from_millis(50);

/// Time that one try has.
const TRY: Duration = Duration::from_secs(5);

/// The three ROMs of a C64. VICE brings none where they may not be given away, as in Debian.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roms {
    /// The KERNAL, 8 KiB.
    pub kernal: Option<PathBuf>,
    /// BASIC, 8 KiB.
    pub basic: Option<PathBuf>,
    /// The character generator, 4 KiB.
    pub chargen: Option<PathBuf>,
}

/// How to start VICE.
#[derive(Clone, Debug)]
pub struct ViceLaunch {
    /// The program.
    pub program: PathBuf,
    /// A program that the machine runs, put straight into its memory.
    pub prg: Option<PathBuf>,
    /// ROMs to use instead of VICE's own.
    pub roms: Roms,
    /// The user's home folder, where VICE looks for ROMs too.
    pub home: PathBuf,
    /// Variables of its environment besides the few that every program needs: those that name the display.
    pub environment: Vec<(OsString, OsString)>,
    /// The words of a program that becomes VICE once it ends with us, as in [`crate::emulator::Launch::start_by`].
    pub guard: Option<Vec<OsString>>,
}

impl ViceLaunch {
    /// The words behind the program's name, for a monitor at `port`.
    pub fn arguments(&self, port: u16) -> Vec<OsString> {
        let mut words: Vec<OsString> = ["-default", "-binarymonitor", "-binarymonitoraddress"].map(Into::into).to_vec();
        words.push(format!("ip4://127.0.0.1:{port}").into());
        let Roms { kernal, basic, chargen } = &self.roms;
        for (option, file) in [("-kernal", kernal), ("-basic", basic), ("-chargen", chargen)] {
            if let Some(file) = file {
                words.extend([option.into(), file.into()]);
            }
        }
        // A sound card may be absent, and then VICE asks what to do and waits.
        words.extend(["-sounddev", "dummy"].map(Into::into));
        if let Some(prg) = &self.prg {
            // Put into memory, since without a drive's ROM nothing can be loaded.
            words.extend(["-autostartprgmode", "1", "-autostart"].map(Into::into));
            words.push(prg.into());
        }
        words
    }

    /// Starts it on a free port, and waits until its monitor answers. The machine is stopped then.
    ///
    /// # Errors
    /// [`ViceLaunchError`], with what VICE wrote when it ended.
    pub fn start(&self) -> Result<(Emulator, Monitor), ViceLaunchError> {
        if !self.program.is_file() {
            return Err(LaunchError::NoLauncher(self.program.clone()).into());
        }
        let Roms { kernal, basic, chargen } = &self.roms;
        for file in [&self.prg, kernal, basic, chargen].into_iter().flatten() {
            if !file.is_file() {
                return Err(ViceLaunchError::NoFile(file.clone()));
            }
        }
        let port = free_port().map_err(|source| self.refused(source))?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let (guard, words) = (self.guard.as_deref(), self.arguments(port));
        let mut emulator = Emulator::start(guard, &self.program, words, &self.home, &self.environment)
            .map_err(|source| self.refused(source))?;
        let until = Instant::now() + Duration::from_millis(limits::VICE_START_TIMEOUT_MS);
        loop {
            match Monitor::connect(address, TRY) {
                Ok(monitor) => return Ok((emulator, monitor)),
                Err(error) if Instant::now() >= until => {
                    return Err(ViceLaunchError::Mute { error, output: last_words(&emulator) });
                }
                Err(_) if emulator.exit().is_some() => {
                    return Err(ViceLaunchError::Ended { output: last_words(&emulator) });
                }
                Err(_) => std::thread::sleep(STARTING_PAUSE),
            }
        }
    }

    fn refused(&self, source: std::io::Error) -> LaunchError {
        LaunchError::Start { launcher: self.program.clone(), source }
    }
}

/// Why VICE was not started.
#[derive(Debug, thiserror::Error)]
pub enum ViceLaunchError {
    /// As with every emulator.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// A file that is not there.
    #[error("{} is no ordinary file", .0.display())]
    NoFile(PathBuf),
    /// It ended by itself.
    #[error(
        "VICE ended before its monitor answered; it needs a display (DISPLAY), and ROMs, which Debian's VICE does not bring \
         (--kernal, --basic, --chargen); its last words: {output}"
    )]
    Ended {
        /// Its last words.
        output: String,
    },
    /// It runs, but its monitor does not answer.
    #[error("VICE runs, but its monitor does not answer: {error}; its last words: {output}")]
    Mute {
        /// What came of the last try.
        error: Error,
        /// Its last words.
        output: String,
    },
}

/// A port that nobody has now.
fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// The last lines that it wrote.
fn last_words(emulator: &Emulator) -> String {
    let output = emulator.output();
    let lines: Vec<&str> = output.stdout.lines().chain(output.stderr.lines()).filter(|line| !line.is_empty()).collect();
    let skipped = lines.len().saturating_sub(limits::NEAR_NAMES);
    lines.into_iter().skip(skipped).collect::<Vec<_>>().join(" | ")
}

/// The folders in which VICE finds the ROMs of a C64 by itself: those of its own data, and of the user's.
pub fn rom_folders(home: &Path) -> Vec<PathBuf> {
    let shared = ["/usr/share/vice/C64", "/usr/lib/vice/C64", "/usr/local/share/vice/C64"].map(PathBuf::from);
    shared.into_iter().chain([home.join(".local/share/vice/C64"), home.join(".vice/C64")]).collect()
}

/// Whether one of these folders has a KERNAL: its name has begun so in all versions.
pub fn has_kernal(folders: &[PathBuf]) -> bool {
    let files = folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
    files.into_iter().any(|entry| entry.file_name().to_string_lossy().starts_with("kernal"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch() -> ViceLaunch {
        ViceLaunch {
            program: "/nowhere/x64sc".into(),
            prg: Some("game.prg".into()),
            roms: Roms { kernal: Some("k.bin".into()), ..Roms::default() },
            home: "/nowhere".into(),
            environment: Vec::new(),
            guard: None,
        }
    }

    #[test]
    fn the_monitor_is_on_loopback_and_the_program_goes_into_memory() {
        let words = launch().arguments(6510);
        let words: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
        let line = words.join(" ");
        assert_eq!(
            line,
            "-default -binarymonitor -binarymonitoraddress ip4://127.0.0.1:6510 -kernal k.bin -sounddev dummy \
             -autostartprgmode 1 -autostart game.prg"
        );
    }

    #[test]
    fn what_is_not_there_is_said() {
        assert!(matches!(launch().start(), Err(ViceLaunchError::Launch(LaunchError::NoLauncher(_)))));
        let there = ViceLaunch { program: std::env::current_exe().unwrap(), ..launch() };
        assert!(matches!(there.start(), Err(ViceLaunchError::NoFile(file)) if file == Path::new("game.prg")));
    }

    #[cfg(unix)]
    #[test]
    fn a_program_that_ends_is_reported_with_its_last_words() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("x64sc");
        std::fs::write(&program, "#!/bin/sh\necho no display here >&2\nexit 1\n").unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let failing = ViceLaunch { program, prg: None, roms: Roms::default(), ..launch() };
        let error = failing.start().unwrap_err().to_string();
        assert!(error.contains("no display here") && error.contains("--kernal"), "{error}");
    }

    #[test]
    fn a_kernal_is_known_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let folders = vec![folder.path().join("missing"), folder.path().to_owned()];
        assert!(!has_kernal(&folders));
        std::fs::write(folder.path().join("kernal-901227-03.bin"), b"").unwrap();
        assert!(has_kernal(&folders));
    }
}
