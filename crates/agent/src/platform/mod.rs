//! What the engine needs from an operating system, and nothing more. Each system implements [`Platform`]; the engine
//! never asks which one it is. Optional powers answer [`PlatformError::Unsupported`] by default.

use crate::registers::{DebugRegisters, Registers};
use base::VirtAddr;
use code::x86::Bitness;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

#[cfg(test)]
pub(crate) mod fake;
#[cfg(target_os = "linux")]
pub mod linux;
#[cfg(any(target_os = "linux", windows))]
pub mod pe;
#[cfg(windows)]
pub mod win32;

/// The operating system's number of a thread.
pub type ThreadId = u32;

/// A debugged program as one platform holds it. All methods are called on the one thread that owns the debuggee.
///
/// A thread is *held* (stopped by us, or at an event) or *running*. An event leaves its own thread held and says nothing
/// about the others. Memory may be read and written at any time; registers only of held threads.
pub trait Platform {
    /// `linux`, `windows`, `fake`.
    fn name(&self) -> &'static str;

    /// Architectures of programs this platform can debug.
    fn archs(&self) -> &'static [Bitness];

    /// What it can do beyond the basics, as `hello` says it: `watchpoints`, `out_of_line_steps`, `screenshots`.
    fn features(&self) -> &'static [&'static str] {
        &["watchpoints"]
    }

    /// A handle by which any thread makes a [`Platform::wait`] in progress, or the next one, return early.
    fn waker(&self) -> Waker;

    /// Processes whose executable is `name`: a full path, or the last part of one.
    fn find_processes(&self, name: &str) -> Result<Vec<ProcessId>, PlatformError>;

    /// Starts a program. On return its one thread is held at the earliest point the system allows.
    fn launch(&mut self, spec: &LaunchSpec) -> Result<Started, PlatformError>;

    /// Takes hold of a running program. On return every thread is held.
    fn attach(&mut self, pid: u32) -> Result<Started, PlatformError>;

    /// Lets go: every held thread runs on, with its pending signal and those kept delivered. The engine has cleaned up
    /// before. A trap of ours ([`Event::Int3`], [`Event::Debug`]) is no signal of the program; an INT3 that stands in the
    /// memory then is the program's own.
    fn detach(&mut self) -> Result<(), PlatformError>;

    /// Asks the system to end the program; [`Event::ProcessExited`] follows.
    fn kill(&mut self) -> Result<(), PlatformError>;

    /// The next event, or `None` when `timeout` is over or the waker was used. Never blocks longer.
    fn wait(&mut self, timeout: Duration) -> Result<Option<Event>, PlatformError>;

    /// Brings every running thread to a hold within `limit`. Events that threads had of their own meanwhile are returned
    /// (their threads are held too); being held by this call is not an event.
    ///
    /// # Errors
    /// [`PlatformError::Timeout`] when a thread does not halt; the others are held then.
    fn hold_all(&mut self, limit: Duration) -> Result<Vec<Event>, PlatformError>;

    /// Lets one held thread run. Nothing happens to the others.
    fn resume(&mut self, thread: ThreadId, run: Run, pending: Pending) -> Result<(), PlatformError>;

    /// The threads that live, in ascending order.
    fn threads(&self) -> Vec<ThreadId>;

    /// The thread's name, where the system has one.
    fn thread_name(&self, thread: ThreadId) -> Option<String>;

    /// Reads as many bytes from `address` on as are readable, up to the length of `buffer`; says how many.
    fn read_memory(&self, address: VirtAddr, buffer: &mut [u8]) -> Result<usize, PlatformError>;

    /// Writes all bytes, to pages that the program itself may not write too.
    ///
    /// # Errors
    /// [`PlatformError::Unmapped`] with the number of bytes that could have been written; nothing is written then.
    fn write_memory(&mut self, address: VirtAddr, bytes: &[u8]) -> Result<(), PlatformError>;

    /// Registers of a held thread.
    fn registers(&self, thread: ThreadId) -> Result<Registers, PlatformError>;

    /// Sets registers of a held thread, so that it goes on from `registers.pc` even when it was in a system call.
    fn set_registers(&mut self, thread: ThreadId, registers: &Registers) -> Result<(), PlatformError>;

    /// Sets the program counter alone: the hot path of [`Platform::set_registers`].
    fn set_pc(&mut self, thread: ThreadId, pc: VirtAddr) -> Result<(), PlatformError>;

    /// The 512-byte FXSAVE image (Intel SDM volume 1, section 10.5.1) of a held thread.
    fn fxsave(&self, thread: ThreadId) -> Result<Vec<u8>, PlatformError>;

    /// Debug registers of a held thread.
    fn debug_registers(&self, thread: ThreadId) -> Result<DebugRegisters, PlatformError>;

    /// Sets DR0 to DR3 and DR7 of a held thread.
    fn set_debug_registers(&mut self, thread: ThreadId, registers: &DebugRegisters) -> Result<(), PlatformError>;

    /// The executable and its libraries, by address.
    fn modules(&self) -> Result<Vec<Module>, PlatformError>;

    /// Symbols of a module, from its file.
    fn symbols(&self, module: &Module) -> Result<Vec<Symbol>, PlatformError>;

    /// Entry point of the executable in the running program.
    fn entry_point(&self) -> Result<VirtAddr, PlatformError>;

    /// Whether instructions at a mapped address can be executed, where the platform can tell.
    fn may_execute(&self, address: VirtAddr) -> Option<bool> {
        let _ = address;
        None
    }

    /// What it means that the thread is held at an INT3 of the program's own: an [`Event::Exception`].
    fn own_int3(&self, thread: ThreadId) -> Event {
        Event::Exception { thread, name: "INT3".to_owned(), number: 3, address: None, synchronous: true, fatal: false }
    }

    /// Whether handlers of the program see the registers as they were set while the thread was held at the exception, and not
    /// as they were when it happened.
    fn handlers_see_set_registers(&self) -> bool {
        true
    }

    /// An instruction that the loader executes after each change of the module list, once it is known. Platforms that
    /// report [`Event::ModulesChanged`] by themselves have none.
    fn loader_breakpoint(&self) -> Option<VirtAddr> {
        None
    }

    /// Maps `length` bytes of executable memory into the program, within reach of a 32-bit displacement from `near`.
    /// All threads are held.
    fn allocate_code(&mut self, near: VirtAddr, length: u64) -> Result<VirtAddr, PlatformError> {
        let _ = (near, length);
        Err(PlatformError::Unsupported("executable scratch memory"))
    }

    /// Unmaps what [`Platform::allocate_code`] mapped. All threads are held.
    fn free_code(&mut self, address: VirtAddr, length: u64) -> Result<(), PlatformError> {
        let _ = (address, length);
        Err(PlatformError::Unsupported("executable scratch memory"))
    }

    /// Restores `original` bytes in a forked child that has its own copy of the memory, clears its debug registers and
    /// lets it go ([`Event::Forked`] with `shares_memory: false`).
    fn release_fork(&mut self, child: u32, original: &[(VirtAddr, Vec<u8>)]) -> Result<(), PlatformError> {
        let _ = (child, original);
        Err(PlatformError::Unsupported("forked children"))
    }

    /// Lets a child that shares the memory run until it executes another program or ends, when
    /// [`Event::SharedChildGone`] follows and it is let go.
    fn run_shared_child(&mut self, child: u32) -> Result<(), PlatformError> {
        let _ = child;
        Err(PlatformError::Unsupported("children that share memory"))
    }

    /// A job that takes a picture of the program's window, to be run on any thread, bounded in time.
    fn screenshot(&self, title: Option<&str>) -> Result<ScreenshotJob, PlatformError> {
        let _ = title;
        Err(PlatformError::Unsupported("screenshots"))
    }
}

/// Takes the picture when called.
pub type ScreenshotJob = Box<dyn FnOnce() -> Result<Picture, PlatformError> + Send>;

/// Interrupts a wait; cheap to clone, usable from any thread.
pub type Waker = Arc<dyn Fn() + Send + Sync>;

/// What to start.
#[derive(Clone, Debug)]
pub struct LaunchSpec {
    /// The executable.
    pub path: PathBuf,
    /// Arguments without the program name.
    pub args: Vec<String>,
    /// Working folder.
    pub cwd: PathBuf,
    /// Variables set beside our own environment.
    pub env: BTreeMap<String, String>,
    /// Ask the system to end the program when the agent dies without letting go.
    pub die_with_agent: bool,
}

/// A process found by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessId {
    /// Its number.
    pub pid: u32,
    /// Path of its executable.
    pub path: PathBuf,
}

/// A program now held.
#[derive(Clone, Debug)]
pub struct Started {
    /// Process id.
    pub pid: u32,
    /// Path of the executable.
    pub path: PathBuf,
    /// Word size of the program.
    pub bitness: Bitness,
    /// The thread to look at first.
    pub thread: ThreadId,
}

/// How a thread goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    /// Until something happens.
    Free,
    /// One instruction, reported as [`Event::Debug`] with `single_step`.
    Step,
}

/// What becomes of the signal or exception at which a thread is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pending {
    /// The program gets it, and what was kept before.
    Deliver,
    /// It is dropped.
    Discard,
    /// It is kept for a later resume of this thread, with everything the system knows about it.
    Keep,
}

/// Something that happened in the program. The one place where a platform decodes its system's structure makes these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The thread executed a one-byte INT3 at `at`; its program counter is `at + 1`.
    Int3 {
        /// The thread.
        thread: ThreadId,
        /// Address of the INT3 byte.
        at: VirtAddr,
    },
    /// A debug exception (#DB): a single step ended, data breakpoints fired, or both. DR6 has been cleared.
    Debug {
        /// The thread.
        thread: ThreadId,
        /// The BS bit of DR6, of a step that was asked for.
        single_step: bool,
        /// Bits 0 to 3 of DR6, of slots that are enabled.
        slots: u8,
    },
    /// A signal or exception of the program's own, not yet delivered.
    Exception {
        /// The thread.
        thread: ThreadId,
        /// `SIGSEGV`, `EXCEPTION_ACCESS_VIOLATION`.
        name: String,
        /// The system's number.
        number: u32,
        /// Faulting address, where there is one.
        address: Option<VirtAddr>,
        /// It was raised by the instruction at the program counter, which has not completed.
        synchronous: bool,
        /// Delivering it ends the program (no handler, or Windows' second chance).
        fatal: bool,
    },
    /// A new thread, held before its first instruction.
    ThreadStarted {
        /// The thread.
        thread: ThreadId,
    },
    /// A thread is gone; it can no longer be asked for anything.
    ThreadExited {
        /// The thread.
        thread: ThreadId,
    },
    /// The module list changed; the thread is held.
    ModulesChanged {
        /// The thread.
        thread: ThreadId,
    },
    /// The program made a child process; the forking thread and the child are held.
    Forked {
        /// The thread that forked.
        thread: ThreadId,
        /// The child.
        child: u32,
        /// vfork: parent and child share memory until the child executes another program.
        shares_memory: bool,
    },
    /// A child that shared the memory no longer does. No thread is held by this.
    SharedChildGone {
        /// The child.
        child: u32,
    },
    /// The process executes another program now; all other threads are gone, all memory is new, debug registers are
    /// clear. The one thread is held.
    Executed {
        /// The one thread, which may have a new number.
        thread: ThreadId,
        /// The new executable.
        path: PathBuf,
        /// Its word size.
        bitness: Bitness,
    },
    /// Text the program sent to its debugger.
    DebugOutput {
        /// The thread, held.
        thread: ThreadId,
        /// The text.
        text: String,
    },
    /// The program is gone.
    ProcessExited(Exit),
    /// Something this version does not know; the thread is held.
    Other {
        /// The thread.
        thread: ThreadId,
        /// The raw status or code.
        raw: u64,
    },
}

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this code.
    Code(i64),
    /// A signal ended it.
    Signal(String),
}

/// A file mapped as code: the executable or a library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// File name.
    pub name: String,
    /// Full path.
    pub path: PathBuf,
    /// Where its lowest address is; RVAs count from here.
    pub base: VirtAddr,
    /// Bytes from `base` to its end.
    pub size: u64,
    /// What to add to an address of the file's own (ELF `st_value`) to get the address in the program, modulo 2^64.
    pub bias: u64,
    /// It is the executable itself.
    pub main: bool,
    /// It is no part of the program but of what hosts it, such as Wine's own libraries. Its names count only where the
    /// program's own mean nothing.
    pub host: bool,
}

/// A name for an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// The name, demangled nowhere.
    pub name: String,
    /// Where it is in the program.
    pub address: VirtAddr,
    /// Its length in bytes; 0 when the file does not say.
    pub size: u64,
    /// It names code.
    pub function: bool,
}

/// A picture of a window, 8-bit RGB, rows from the top without padding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// `width * height * 3` bytes.
    pub rgb: Vec<u8>,
    /// The window's title.
    pub title: String,
    /// How it was taken.
    pub method: &'static str,
}

/// Why a platform could not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlatformError {
    /// There is no such process.
    #[error("there is no process {0}")]
    NoProcess(u32),
    /// There is no such thread, or it is gone.
    #[error("there is no thread {0}")]
    NoThread(ThreadId),
    /// The thread runs; its registers cannot be had.
    #[error("thread {0} is running")]
    NotHeld(ThreadId),
    /// Memory is not mapped; this many bytes before that are.
    #[error("nothing is mapped after {usable} bytes")]
    Unmapped {
        /// Usable bytes from the start on.
        usable: u64,
    },
    /// The file is not there.
    #[error("{0} does not exist")]
    NotFound(PathBuf),
    /// The file is no program that can be started, or of an architecture this agent cannot debug.
    #[error("{0}")]
    BadProgram(String),
    /// The system refused; the sentence says what to do.
    #[error("{0}")]
    Permission(String),
    /// The time was up.
    #[error("{0} did not happen in time")]
    Timeout(&'static str),
    /// This platform has no such thing.
    #[error("this platform has no {0}")]
    Unsupported(&'static str),
    /// There is no display.
    #[error("{0}")]
    NoDisplay(String),
    /// The program has no such window.
    #[error("{0}")]
    NoWindow(String),
    /// A call to the system failed.
    #[error("{call} failed: {message}")]
    Os {
        /// The call.
        call: &'static str,
        /// The system's words.
        message: String,
    },
}
