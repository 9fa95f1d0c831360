//! The program that is held: its threads, what each is doing, and how they are halted and let go.

mod borrow;
mod events;

use super::sys::{self, Go};
use super::wake::{Waited, Wake};
use super::{proc, regs, signals};
use crate::platform::{Event, Pending, PlatformError, Run, ThreadId};
use crate::registers::DebugRegisters;
use base::VirtAddr;
use code::x86::Bitness;
use nix::libc::{self, siginfo_t, user_regs_struct};
use nix::sys::ptrace;
use nix::unistd::Pid;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long a thread may take to halt before it is looked at whether it can.
const PATIENCE: Duration = Duration::from_millis(20);

/// The program and all that is known of its threads.
pub struct Debuggee {
    /// Process id, which is the first thread's number too.
    pub pid: u32,
    /// The executable.
    pub path: PathBuf,
    /// Its word size.
    pub bitness: Bitness,
    /// `/proc/PID/mem`, which stays usable when the first thread is gone.
    pub memory: Option<File>,
    threads: BTreeMap<ThreadId, Thread>,
    /// The first thread is traced. One that ended before we came cannot be, and its end is not reported to us.
    leader_traced: bool,
    /// First stops of threads and children whose parent's event has not come yet.
    early: BTreeSet<u32>,
    children: BTreeMap<u32, Child>,
    /// Children of children that share the memory: let go at their first stop.
    strays: BTreeSet<u32>,
    /// States that came while another was awaited.
    unseen: VecDeque<(u32, i32)>,
}

#[derive(Default)]
struct Thread {
    state: State,
    /// How it was let go last, to do so again after a stop that is nobody's business.
    last: Option<Run>,
    /// Its first stop, which makes an event, has not been seen.
    arrival: Option<Arrival>,
    /// On its way out; a first thread stays so until all others are gone.
    leaving: bool,
    /// It was asked to halt, and has not.
    interrupted: bool,
    kept: Vec<siginfo_t>,
    /// Registers, read at most once per stop.
    raw: Cell<Option<user_regs_struct>>,
    /// DR7, once it is known: nobody but us changes it.
    dr7: Cell<Option<u64>>,
}

/// What a thread's first stop will mean.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Arrival {
    /// It was born.
    Born,
    /// It executes another program.
    Executed,
}

#[derive(Clone, Copy, Default)]
enum State {
    #[default]
    Running,
    Held(Stop),
}

/// What a held thread is held at.
#[derive(Clone, Copy, Default)]
struct Stop {
    /// The signal that it would get.
    own: Option<siginfo_t>,
    /// The kernel does not have `own` at hand any more: it is to be told of it again.
    retold: bool,
    /// A signal given when it goes on is delivered: true only of stops at the delivery of a signal.
    takes_signal: bool,
    /// It is at the edge of user code, not in the middle of a system call: what its registers are is what it goes on with.
    settled: bool,
    /// Job control stopped it.
    group: bool,
}

struct Child {
    parent: ThreadId,
    shares_memory: bool,
    state: ChildState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ChildState {
    Unborn,
    Held,
    Running,
}

impl Debuggee {
    /// A program none of whose threads is known yet.
    pub fn new(pid: u32, path: PathBuf, bitness: Bitness) -> Debuggee {
        Debuggee {
            pid,
            path,
            bitness,
            memory: open_memory(pid),
            threads: BTreeMap::new(),
            leader_traced: false,
            early: BTreeSet::new(),
            children: BTreeMap::new(),
            strays: BTreeSet::new(),
            unseen: VecDeque::new(),
        }
    }

    /// Adds a thread that was just seized and runs.
    pub fn add_running(&mut self, thread: ThreadId) {
        self.leader_traced |= thread == self.pid;
        self.threads.insert(thread, Thread::default());
    }

    /// Whether the thread is one of ours.
    pub fn knows(&self, thread: ThreadId) -> bool {
        self.threads.contains_key(&thread) || self.early.contains(&thread)
    }

    /// The threads that live.
    pub fn threads(&self) -> Vec<ThreadId> {
        self.threads.iter().filter(|(_, thread)| !thread.leaving).map(|(number, _)| *number).collect()
    }

    /// A thread through which `/proc` tells about the process: the first may be gone while others live.
    pub fn witness(&self) -> ThreadId {
        match self.threads.get(&self.pid) {
            Some(leader) if !leader.leaving => self.pid,
            _ => self.threads.iter().find(|(_, thread)| !thread.leaving).map_or(self.pid, |(number, _)| *number),
        }
    }

    /// Registers of a held thread, as the kernel has them.
    pub fn raw(&self, thread: ThreadId) -> Result<user_regs_struct, PlatformError> {
        let held = self.held(thread)?;
        if let Some(raw) = held.raw.get() {
            return Ok(raw);
        }
        let raw = regs::raw(thread)?;
        held.raw.set(Some(raw));
        Ok(raw)
    }

    /// Sets registers of a held thread, as the kernel has them.
    pub fn set_raw(&mut self, thread: ThreadId, raw: user_regs_struct) -> Result<(), PlatformError> {
        let held = self.held(thread)?;
        // The kernel may keep other values than it was given (reserved flags): they are read again when needed.
        let moved = held.raw.take().is_none_or(|before| before.rip != raw.rip);
        regs::set_raw(thread, raw)?;
        if moved {
            self.forget_trap(thread);
        }
        Ok(())
    }

    /// Sets the program counter of a held thread.
    pub fn set_pc(&mut self, thread: ThreadId, pc: VirtAddr) -> Result<(), PlatformError> {
        let mut raw = self.raw(thread)?;
        if raw.rip == pc.get() {
            return Ok(());
        }
        regs::set_pc(thread, &mut raw, pc.get())?;
        self.held(thread)?.raw.set(Some(raw));
        self.forget_trap(thread);
        Ok(())
    }

    /// A thread that is moved away from behind an INT3 has not executed it: there is no signal to deliver or keep.
    fn forget_trap(&mut self, thread: ThreadId) {
        if let Some(Thread { state: State::Held(stop), .. }) = self.threads.get_mut(&thread)
            && stop.own.is_some_and(|own| signals::is_int3(&own))
        {
            stop.own = None;
        }
    }

    /// Sets the debug registers of a held thread.
    pub fn set_debug(&self, number: ThreadId, registers: &DebugRegisters) -> Result<(), PlatformError> {
        let thread = self.held(number)?;
        thread.dr7.set(None);
        regs::set_debug(number, registers)?;
        thread.dr7.set(Some(registers.dr7));
        Ok(())
    }

    fn dr7(&self, number: ThreadId) -> Result<u64, PlatformError> {
        let thread = self.threads.get(&number).ok_or(PlatformError::NoThread(number))?;
        if let Some(dr7) = thread.dr7.get() {
            return Ok(dr7);
        }
        let dr7 = regs::dr7(number)?;
        thread.dr7.set(Some(dr7));
        Ok(dr7)
    }

    /// Fails unless the thread is held.
    pub fn check_held(&self, thread: ThreadId) -> Result<(), PlatformError> {
        self.held(thread).map(|_| ())
    }

    fn held(&self, number: ThreadId) -> Result<&Thread, PlatformError> {
        let thread =
            self.threads.get(&number).filter(|thread| !thread.leaving).ok_or(PlatformError::NoThread(number))?;
        if thread.is_held() { Ok(thread) } else { Err(PlatformError::NotHeld(number)) }
    }

    /// The SIGTRAP of an INT3 that the program has of its own.
    pub fn own_int3(&self, number: ThreadId) -> Event {
        let info = match self.threads.get(&number) {
            Some(Thread { state: State::Held(Stop { own: Some(info), .. }), .. }) => Some(info),
            _ => None,
        };
        signals::int3(number, info)
    }

    /// Lets a held thread go on.
    pub fn resume(&mut self, number: ThreadId, run: Run, pending: Pending) -> Result<(), PlatformError> {
        let pid = self.pid;
        let thread = self.threads.get_mut(&number).ok_or(PlatformError::NoThread(number))?;
        let State::Held(stop) = thread.state else {
            // It could not be halted by `hold_all`, which had it halt later: that is off now.
            return if std::mem::take(&mut thread.interrupted) { Ok(()) } else { Err(PlatformError::NotHeld(number)) };
        };
        let signal = thread.signal_to_give(pid, number, &stop, pending)?;
        let how = match run {
            Run::Step => Go::Step,
            Run::Free if stop.group => Go::Listen,
            Run::Free => Go::Cont,
        };
        thread.state = State::Running;
        thread.last = Some(run);
        thread.raw.set(None);
        sys::go(number, how, signal).map_err(|error| regs::failed_io("PTRACE_CONT", number, &error))
    }

    /// Lets every held thread go for good; a signal that one is held at is delivered, our own traps are not.
    pub fn release_all(&mut self) {
        for number in self.children.keys().copied().chain(self.early.iter().copied()) {
            let _ = sys::go(number, Go::Detach, 0);
        }
        for (number, thread) in &mut self.threads {
            let State::Held(mut stop) = thread.state else { continue };
            let is_trap = stop.own.is_some_and(|own| signals::is_int3(&own));
            if is_trap && !self.memory.as_ref().is_some_and(|memory| is_at_own_int3(*number, memory)) {
                stop.own = None;
            }
            let signal = thread.signal_to_give(self.pid, *number, &stop, Pending::Deliver).unwrap_or(0);
            let _ = sys::go(*number, Go::Detach, signal);
        }
    }

    /// Asks every running thread to halt and waits for it; see [`crate::platform::Platform::hold_all`].
    pub fn hold_all(&mut self, wake: &Wake, limit: Duration, events: &mut Vec<Event>) -> Result<(), PlatformError> {
        let deadline = Instant::now() + limit;
        for (number, thread) in &mut self.threads {
            if !thread.is_held() && !thread.leaving && thread.arrival.is_none() {
                thread.interrupted = true;
                // Refused only to a thread that is dying, whose end is reported.
                let _ = ptrace::interrupt(pid(*number));
            }
        }
        while let Some((number, status)) = self.unseen() {
            let event = self.on_status(number, status, true)?;
            events.extend(event);
        }
        while self.waits_for_any() {
            let look = deadline.min(Instant::now() + PATIENCE);
            match wake.wait(look, true)? {
                Waited::Status(number, status) => {
                    let event = self.on_status(number, status, true)?;
                    let over = matches!(event, Some(Event::ProcessExited(_)));
                    events.extend(event);
                    if over {
                        break;
                    }
                }
                _ if self.all_wait_for_vfork() => break,
                _ if Instant::now() >= deadline => return Err(PlatformError::Timeout("the halt of every thread")),
                _ => {}
            }
        }
        Ok(())
    }

    /// Brings every thread to a hold of which nobody need hear: what threads get meanwhile is theirs, and children go.
    pub fn hold_quietly(&mut self, wake: &Wake, deadline: Instant) -> Result<(), PlatformError> {
        loop {
            let mut once_more = false;
            let mut events = Vec::new();
            self.hold_all(wake, deadline.saturating_duration_since(Instant::now()), &mut events)?;
            for event in events {
                match event {
                    Event::ProcessExited(_) => return Err(PlatformError::NoProcess(self.pid)),
                    Event::Int3 { thread, .. } | Event::Debug { thread, .. } | Event::Exception { thread, .. } => {
                        once_more = true;
                        match self.resume(thread, Run::Free, Pending::Deliver) {
                            Ok(()) | Err(PlatformError::NoThread(_)) => {}
                            Err(error) => return Err(error),
                        }
                    }
                    Event::Forked { child, .. } => {
                        self.take_forked(child)?;
                        let _ = sys::go(child, Go::Detach, 0);
                    }
                    _ => {}
                }
            }
            if !once_more {
                return Ok(());
            }
        }
    }

    fn waits_for_any(&self) -> bool {
        self.threads.values().any(|thread| !thread.is_held() && !thread.leaving)
            || self.children.values().any(|child| child.state == ChildState::Unborn)
    }

    /// Those that have not halted cannot, before a child does something.
    fn all_wait_for_vfork(&self) -> bool {
        let mut rest = self.threads.iter().filter(|(_, thread)| !thread.is_held() && !thread.leaving);
        rest.all(|(number, thread)| thread.arrival.is_none() && proc::waits_for_vfork(*number))
    }

    /// A state that came while another was awaited.
    pub fn unseen(&mut self) -> Option<(u32, i32)> {
        self.unseen.pop_front()
    }

    /// The child is held and has its own memory.
    pub fn take_forked(&mut self, child: u32) -> Result<(), PlatformError> {
        self.children.remove(&child).map(|_| ()).ok_or(PlatformError::NoProcess(child))
    }

    /// Lets a child that shares the memory run.
    pub fn run_child(&mut self, number: u32) -> Result<(), PlatformError> {
        let child = self.children.get_mut(&number).ok_or(PlatformError::NoProcess(number))?;
        child.state = ChildState::Running;
        match sys::go(number, Go::Cont, 0) {
            // Killed meanwhile: its end is reported.
            Err(error) if error.raw_os_error() != Some(libc::ESRCH) => Err(super::os_error("PTRACE_CONT", &error)),
            _ => Ok(()),
        }
    }
}

impl Thread {
    fn is_held(&self) -> bool {
        matches!(self.state, State::Held(_))
    }

    fn again(&self) -> Go {
        if self.last == Some(Run::Step) { Go::Step } else { Go::Cont }
    }

    /// The signal that the thread goes on with. Kept ones are given at the first resume with `Deliver`, before which the
    /// thread has been stepped, so that it stands at a stop that takes a signal.
    fn signal_to_give(
        &mut self,
        process: u32,
        number: ThreadId,
        stop: &Stop,
        pending: Pending,
    ) -> Result<i32, PlatformError> {
        match (pending, stop.own) {
            (Pending::Keep, own) => {
                self.kept.extend(own);
                Ok(0)
            }
            (Pending::Discard, _) => Ok(0),
            (Pending::Deliver, own) => {
                let mut kept = std::mem::take(&mut self.kept).into_iter();
                let signal = match own {
                    Some(own) => {
                        if stop.retold {
                            tell(number, &own)?;
                        }
                        own.si_signo
                    }
                    None if stop.takes_signal => match kept.next() {
                        Some(info) => {
                            tell(number, &info)?;
                            info.si_signo
                        }
                        None => 0,
                    },
                    None => 0,
                };
                for info in kept {
                    sys::send_again(process, number, &info);
                }
                Ok(signal)
            }
        }
    }
}

/// Tells the kernel what a signal that it is about to deliver is about.
fn tell(thread: ThreadId, info: &siginfo_t) -> Result<(), PlatformError> {
    ptrace::setsiginfo(pid(thread), info).map_err(|error| regs::failed("PTRACE_SETSIGINFO", thread, error))
}

/// Lets go what is stopped though nobody knows it any more.
pub fn let_go(thread: u32, status: i32) {
    if libc::WIFSTOPPED(status) {
        let signal = if status >> 16 == 0 { libc::WSTOPSIG(status) } else { 0 };
        let _ = sys::go(thread, Go::Detach, signal);
    }
}

/// The thread stands behind an INT3 that is in memory now, when all of ours are out of it.
fn is_at_own_int3(thread: ThreadId, memory: &File) -> bool {
    let mut byte = [0];
    let at = regs::raw(thread).map_or(0, |raw| raw.rip.wrapping_sub(1));
    std::os::unix::fs::FileExt::read_exact_at(memory, &mut byte, at).is_ok() && byte == [0xcc]
}

/// The memory of a process, by a thread that lives: the first may have ended before all others.
fn open_memory(process: u32) -> Option<File> {
    let lives = |thread: &u32| proc::status(*thread).is_some_and(|status| !matches!(status.state, 'Z' | 'X'));
    let thread = proc::tasks(process).into_iter().find(lives)?;
    std::fs::OpenOptions::new().read(true).write(true).open(format!("/proc/{thread}/mem")).ok()
}

fn pid(thread: u32) -> Pid {
    Pid::from_raw(thread as i32)
}
