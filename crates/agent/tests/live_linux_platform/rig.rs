//! What the tests of the Linux platform share: a platform with one program under it, and what they look at.

pub use agent::platform::linux::LinuxPlatform;
pub use agent::platform::{Event, Exit, LaunchSpec, Pending, Platform, PlatformError, Run, Started, ThreadId};
pub use agent::registers::{DebugRegisters, Registers};
pub use base::VirtAddr;
pub use code::x86::Bitness;
pub use std::collections::{BTreeMap, BTreeSet};
pub use std::path::{Path, PathBuf};
pub use std::process::{Child, Command, Stdio};
pub use std::time::{Duration, Instant};

/// Longest wait for anything that must happen.
pub const LIMIT: Duration = Duration::from_secs(10);
pub const BITS: [Bitness; 2] = [Bitness::Bits64, Bitness::Bits32];

// Variables of driftgame, whose README promises the addresses.
pub const G_FRAME_COUNT: u64 = 0x48_000c;
pub const G_HOT_COUNT: u64 = 0x48_0020;
pub const G_HANDLED_SIGNALS: u64 = 0x48_0024;
pub const G_ALARMS: u64 = 0x48_0028;
pub const G_FORKS: u64 = 0x48_002c;
pub const G_REAPED: u64 = 0x48_0030;

pub fn driftgame(bits: Bitness) -> PathBuf {
    let folder = std::env::var_os("RETROSCOPE_FIXTURES")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/fixtures"), PathBuf::from);
    let path = folder.join(if bits == Bitness::Bits32 { "driftgame32" } else { "driftgame64" });
    assert!(path.exists(), "{} is missing: `cargo xtask test` builds it", path.display());
    path.canonicalize().unwrap()
}

/// Address of a function, by `nm`.
pub fn function(program: &Path, name: &str) -> u64 {
    let text = String::from_utf8(Command::new("nm").arg(program).output().unwrap().stdout).unwrap();
    let line = text.lines().find(|line| line.ends_with(&format!(" {name}"))).unwrap();
    u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap()
}

pub fn spec(path: impl Into<PathBuf>, args: &[&str]) -> LaunchSpec {
    LaunchSpec {
        path: path.into(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        cwd: std::env::temp_dir(),
        env: BTreeMap::new(),
        die_with_agent: true,
    }
}

/// A platform with one program, which is gone at the end of the test.
pub struct Rig {
    pub platform: LinuxPlatform,
    pub start: Started,
}

impl Rig {
    pub fn launch(path: impl Into<PathBuf>, args: &[&str]) -> Rig {
        let mut platform = LinuxPlatform::new().unwrap();
        let start = platform.launch(&spec(path, args)).unwrap();
        Rig { platform, start }
    }

    pub fn game(bits: Bitness, args: &[&str]) -> Rig {
        let mut all = vec!["--headless"];
        all.extend(args);
        let rig = Rig::launch(driftgame(bits), &all);
        assert_eq!(rig.start.bitness, bits);
        rig
    }

    pub fn attach(pid: u32) -> Rig {
        let mut platform = LinuxPlatform::new().unwrap();
        let start = platform.attach(pid).unwrap();
        Rig { platform, start }
    }

    pub fn next(&mut self) -> Event {
        let deadline = Instant::now() + LIMIT;
        while Instant::now() < deadline {
            if let Some(event) = self.platform.wait(Duration::from_millis(200)).unwrap() {
                return event;
            }
        }
        let states = self.platform.threads().into_iter().map(|thread| {
            let held = self.platform.registers(thread).map(|registers| registers.pc);
            let stack = std::fs::read_to_string(format!("/proc/{thread}/syscall"));
            (thread, held, status_field(thread, "State"), stack)
        });
        panic!("nothing happened to {:?}", states.collect::<Vec<_>>());
    }

    pub fn go(&mut self, thread: ThreadId) {
        self.platform.resume(thread, Run::Free, Pending::Discard).unwrap();
    }

    pub fn go_all(&mut self) {
        for thread in self.platform.threads() {
            self.go(thread);
        }
    }

    /// Delivers signals and lets new threads run until an event is of interest.
    pub fn until<T>(&mut self, mut wanted: impl FnMut(&Event) -> Option<T>) -> T {
        loop {
            let event = self.next();
            if let Some(found) = wanted(&event) {
                return found;
            }
            match event {
                Event::Exception { thread, .. } => {
                    self.platform.resume(thread, Run::Free, Pending::Deliver).unwrap();
                }
                Event::ThreadStarted { thread } => self.go(thread),
                Event::ThreadExited { .. } => {}
                other => panic!("{other:?} was not expected"),
            }
        }
    }

    /// Waits for the end of a thread's step. Says whether a signal came before, which the thread does not get.
    pub fn step_ends(&mut self, stepped: ThreadId) -> bool {
        let mut disturbed = false;
        loop {
            match self.next() {
                Event::Debug { thread, single_step: true, slots: 0 } if thread == stepped => return disturbed,
                Event::Exception { thread, .. } if thread == stepped => {
                    disturbed = true;
                    self.platform.resume(thread, Run::Step, Pending::Discard).unwrap();
                }
                Event::Exception { thread, .. } => self.platform.resume(thread, Run::Free, Pending::Deliver).unwrap(),
                other => panic!("{other:?} was not expected"),
            }
        }
    }

    pub fn exit(&mut self) -> Exit {
        self.until(|event| match event {
            Event::ProcessExited(exit) => Some(exit.clone()),
            _ => None,
        })
    }

    pub fn bytes(&self, address: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        assert_eq!(self.platform.read_memory(VirtAddr::new(address), &mut bytes), Ok(length));
        bytes
    }

    pub fn word(&self, address: u64) -> u32 {
        u32::from_le_bytes(self.bytes(address, 4).try_into().unwrap())
    }

    /// Plants an INT3; gives the byte that was there.
    pub fn plant(&mut self, address: u64) -> u8 {
        let old = self.bytes(address, 1)[0];
        self.platform.write_memory(VirtAddr::new(address), &[0xcc]).unwrap();
        old
    }

    pub fn unplant(&mut self, address: u64, old: u8) {
        self.platform.write_memory(VirtAddr::new(address), &[old]).unwrap();
    }

    pub fn run_to(&mut self, address: u64) -> ThreadId {
        let old = self.plant(address);
        self.go_all();
        let thread = self.until(|event| match event {
            Event::Int3 { thread, at } if at.get() == address => Some(*thread),
            _ => None,
        });
        self.unplant(address, old);
        self.platform.set_pc(thread, VirtAddr::new(address)).unwrap();
        thread
    }

    pub fn registers(&self, thread: ThreadId) -> Registers {
        self.platform.registers(thread).unwrap()
    }

    pub fn hold(&mut self) -> Vec<Event> {
        self.platform.hold_all(LIMIT).unwrap()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if self.platform.kill().is_ok() {
            let deadline = Instant::now() + LIMIT;
            while Instant::now() < deadline {
                if let Ok(Some(Event::ProcessExited(_))) = self.platform.wait(Duration::from_millis(100)) {
                    break;
                }
            }
        }
    }
}

/// A child of ours that is not debugged; ended with the test.
pub struct Running(pub Child);

impl Running {
    pub fn start(path: impl AsRef<Path>, args: &[&str]) -> Running {
        let mut command = Command::new(path.as_ref());
        command.args(args).stdin(Stdio::null()).stdout(Stdio::null());
        Running(command.spawn().unwrap())
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn eventually(what: &str, mut true_now: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !true_now() {
        assert!(Instant::now() < deadline, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub fn status_field(pid: u32, field: &str) -> String {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(field)).unwrap_or_default();
    line.trim_start_matches(':').trim().to_owned()
}

/// The thread that traces is what the kernel calls the tracer.
pub fn tracer() -> String {
    let link = std::fs::read_link("/proc/thread-self").unwrap();
    link.file_name().unwrap().to_str().unwrap().to_owned()
}

pub fn memory_word(pid: u32, address: u64) -> u32 {
    pub use std::os::unix::fs::FileExt;
    let mut bytes = [0; 4];
    // A program that has just begun may not have its variables yet.
    let _ = std::fs::File::open(format!("/proc/{pid}/mem")).and_then(|file| file.read_exact_at(&mut bytes, address));
    u32::from_le_bytes(bytes)
}
