//! Windows programs by the Win32 debug API, on Windows and under Wine: 32-bit ones by the 32-bit agent, both kinds by the 64-bit
//! one.

mod bounded;
pub mod console;
mod context;
mod debuggee;
mod file_identity;
mod memory;
mod names;
mod screen;
mod start;
mod sys;
mod thread;
mod wake;
mod window;

use super::{
    Event, LaunchSpec, Module, Pending, Platform, PlatformError, ProcessId, Run, ScreenshotJob, Started, Symbol,
    ThreadId, Waker, pe,
};
use crate::registers::{DebugRegisters, Registers};
use base::{VirtAddr, limits};
use code::x86::Bitness;
use debuggee::{Debuggee, Digest};
pub use file_identity::{FileIdentity, file_identity};
use std::collections::VecDeque;
use std::os::windows::io::OwnedHandle;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
pub use sys::end_this_program;
use wake::Wake;

/// How a program came under our hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attached {
    AtStart,
    Running,
}

/// The platform.
#[derive(Default)]
pub struct Windows {
    wake: Arc<Wake>,
    debuggee: Option<Debuggee>,
    /// Events to report before the system is asked for more.
    queue: VecDeque<Event>,
    /// When somebody last rang: commands come in bursts.
    rung: Option<Instant>,
}

impl Windows {
    /// Holds nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    fn held(&self) -> Result<&Debuggee, PlatformError> {
        self.debuggee.as_ref().ok_or(PlatformError::NoProcess(0))
    }

    fn held_mut(&mut self) -> Result<&mut Debuggee, PlatformError> {
        self.debuggee.as_mut().ok_or(PlatformError::NoProcess(0))
    }

    /// Waits for the first event of a process that has just come under debugging.
    fn first_event(&mut self, pid: u32, process: OwnedHandle, attached: Attached) -> Result<(), PlatformError> {
        let limit = u32::try_from(limits::COMMAND_TIMEOUT_MS).unwrap_or(u32::MAX);
        let event = sys::wait_for_event(limit)?.filter(|event| event.pid == pid);
        let event = event.ok_or(PlatformError::Timeout("the first debug event of the process"))?;
        self.queue.clear();
        self.debuggee = Some(Debuggee::from_first_event(event, process, attached)?);
        Ok(())
    }

    fn started(&self) -> Result<Started, PlatformError> {
        let debuggee = self.held()?;
        let thread = debuggee.threads().keys().next().copied().ok_or(PlatformError::NoProcess(debuggee.pid))?;
        Ok(Started { pid: debuggee.pid, path: debuggee.path.clone(), bitness: debuggee.bitness, thread })
    }

    /// How long to wait for events before looking whether a command has come.
    fn slice(&self) -> Duration {
        let quiet = self.rung.is_none_or(|rung| rung.elapsed() > Duration::from_millis(limits::COMMAND_BURST_MS));
        Duration::from_millis(if quiet { limits::DEBUG_EVENT_SLICE_MS } else { 1 })
    }

    /// The program is gone: what is left is to let the system clear up.
    fn forget(&mut self) -> Result<(), PlatformError> {
        let Some(mut debuggee) = self.debuggee.take() else { return Ok(()) };
        debuggee.go_on()?;
        sys::wait_gone(&debuggee.process, u32::try_from(limits::HOLD_TIMEOUT_MS).unwrap_or(u32::MAX));
        Ok(())
    }

    fn noticed(&mut self, digest: Digest) -> Result<Option<Event>, PlatformError> {
        let Digest::Report(event) = digest else { return Ok(None) };
        if matches!(event, Event::ProcessExited(_)) {
            self.forget()?;
        }
        Ok(Some(event))
    }

    /// Stops the program by a thread that the system makes in it, instead of by suspending its threads.
    ///
    /// # Errors
    /// [`PlatformError::Timeout`] when that thread does not come.
    pub fn break_in(&mut self, limit: Duration) -> Result<Vec<Event>, PlatformError> {
        self.held_mut()?.break_in(limit)
    }
}

impl Platform for Windows {
    fn name(&self) -> &'static str {
        "windows"
    }

    fn archs(&self) -> &'static [Bitness] {
        if cfg!(target_pointer_width = "64") { &[Bitness::Bits32, Bitness::Bits64] } else { &[Bitness::Bits32] }
    }

    fn features(&self) -> &'static [&'static str] {
        &["watchpoints", "out_of_line_steps", "screenshots"]
    }

    fn waker(&self) -> Waker {
        self.wake.waker()
    }

    fn find_processes(&self, name: &str) -> Result<Vec<ProcessId>, PlatformError> {
        let wanted = name.replace('/', "\\");
        let whole = wanted.contains('\\');
        let mut found = Vec::new();
        for (pid, file) in sys::processes()? {
            let file = file.to_string_lossy().into_owned();
            let last = wanted.rsplit('\\').next().unwrap_or_default();
            if pid == std::process::id() || !file.eq_ignore_ascii_case(last) {
                continue;
            }
            let opened = sys::open_process(pid, sys::PROCESS_QUERY_LIMITED_INFORMATION).ok();
            let path = opened.as_ref().and_then(sys::image_path).unwrap_or_else(|| file.clone().into());
            if !whole || same_file(&path, Path::new(&wanted)) {
                found.push(ProcessId { pid, path });
            }
        }
        found.sort_by_key(|process| process.pid);
        Ok(found)
    }

    fn launch(&mut self, spec: &LaunchSpec) -> Result<Started, PlatformError> {
        start::examine(&spec.path)?;
        if !spec.cwd.is_dir() {
            return Err(PlatformError::NotFound(spec.cwd.clone()));
        }
        let created = sys::create_process(
            &start::wide(spec.path.as_os_str()),
            &mut start::command_line(spec)?,
            &start::environment(std::env::vars_os(), &spec.env),
            &start::wide(spec.cwd.as_os_str()),
        )
        .map_err(|failure| match failure.code {
            193 | 216 => {
                PlatformError::BadProgram(format!("{} is not a program that Windows can run", spec.path.display()))
            }
            5 | 740 => PlatformError::Permission(format!(
                "Windows does not let this agent start {}; start the agent as administrator",
                spec.path.display()
            )),
            _ => failure.into(),
        })?;
        sys::set_kill_on_exit(spec.die_with_agent)?;
        if let Err(error) = self.first_event(created.pid, created.process, Attached::AtStart) {
            // Nobody would ever continue it.
            let _ = sys::open_process(created.pid, sys::PROCESS_ALL_ACCESS)
                .and_then(|process| sys::terminate(&process, limits::KILLED_EXIT_CODE));
            return Err(error);
        }
        self.started()
    }

    fn attach(&mut self, pid: u32) -> Result<Started, PlatformError> {
        let refused = |failure: sys::Failure| match failure.code {
            87 => PlatformError::NoProcess(pid),
            5 => PlatformError::Permission(format!(
                "Windows does not let this agent debug process {pid}; start the agent as the same user, or as administrator"
            )),
            _ => failure.into(),
        };
        if pid == std::process::id() {
            return Err(PlatformError::Permission("the agent cannot debug itself".to_owned()));
        }
        let process = sys::open_process(pid, sys::PROCESS_ALL_ACCESS).map_err(refused)?;
        if sys::wait_gone(&process, 0) {
            return Err(PlatformError::NoProcess(pid));
        }
        if sys::is_debugged(&process)? {
            return Err(PlatformError::Permission(format!(
                "process {pid} is already debugged, and Windows allows one debugger only: end the other one first. If the program \
                 debugs itself, by a second process of its own, launch it with this agent instead: Windows refuses its own debugger then, \
                 and the program may end because of that"
            )));
        }
        if cfg!(target_arch = "x86") && on_64_bit_windows()? && !sys::is_wow64(&process)? {
            start::check_bitness(&format!("process {pid}"), Bitness::Bits64)?;
        }
        sys::debug_active_process(pid).map_err(refused)?;
        sys::set_kill_on_exit(false)?;
        let held = self
            .first_event(pid, process, Attached::Running)
            .and_then(|()| self.held_mut()?.settle(Duration::from_millis(limits::ATTACH_TIMEOUT_MS)));
        if let Err(error) = held {
            self.debuggee = None;
            // It may be gone already, which is why it could not be held.
            let _ = sys::debug_active_process_stop(pid);
            return Err(error);
        }
        self.started()
    }

    fn detach(&mut self) -> Result<(), PlatformError> {
        self.queue.clear();
        match self.debuggee.take() {
            Some(mut debuggee) => debuggee.let_go(),
            None => Ok(()),
        }
    }

    fn kill(&mut self) -> Result<(), PlatformError> {
        self.held_mut()?.end()
    }

    fn wait(&mut self, timeout: Duration) -> Result<Option<Event>, PlatformError> {
        let until = Instant::now() + timeout;
        loop {
            if let Some(event) = self.queue.pop_front() {
                return Ok(Some(event));
            }
            let Some(debuggee) = self.debuggee.as_mut() else {
                self.wake.sleep_until(until);
                return Ok(None);
            };
            let runs = debuggee.runs();
            if !runs {
                let frozen = debuggee.is_frozen();
                if frozen {
                    debuggee.notice_end();
                }
                let digest = if frozen { None } else { debuggee.next_event(Duration::ZERO)? };
                if let Some(event) = digest.map(|digest| self.noticed(digest)).transpose()?.flatten() {
                    return Ok(Some(event));
                }
                let slice = Instant::now() + Duration::from_millis(limits::FROZEN_SLICE_MS);
                if self.wake.sleep_until(slice.min(until)) || Instant::now() >= until {
                    return Ok(None);
                }
                continue;
            }
            let slice = self.slice().min(until.saturating_duration_since(Instant::now()));
            let digest = self.held_mut()?.next_event(slice)?;
            match digest {
                Some(digest) => {
                    if let Some(event) = self.noticed(digest)? {
                        return Ok(Some(event));
                    }
                }
                None if self.wake.take() => {
                    self.rung = Some(Instant::now());
                    return Ok(None);
                }
                None => {}
            }
            if Instant::now() >= until {
                return Ok(None);
            }
        }
    }

    fn hold_all(&mut self, limit: Duration) -> Result<Vec<Event>, PlatformError> {
        let debuggee = self.held_mut()?;
        let mut events = match debuggee.suspend_all() {
            Ok(()) => {
                debuggee.come_to_rest()?;
                debuggee.drain()?
            }
            Err(_) => {
                // A thread that is just ending cannot be suspended, and its end is reported next.
                let mut events = debuggee.drain()?;
                match debuggee.suspend_all() {
                    Ok(()) => debuggee.come_to_rest()?,
                    Err(failure) if debuggee.is_frozen() => return Err(failure.into()),
                    Err(_) => events.extend(debuggee.break_in(limit)?),
                }
                events
            }
        };
        for event in &mut events {
            if matches!(event, Event::ProcessExited(_)) {
                self.forget()?;
                break;
            }
        }
        events.extend(self.queue.drain(..));
        Ok(events)
    }

    fn handlers_see_set_registers(&self) -> bool {
        false
    }

    fn resume(&mut self, thread: ThreadId, run: Run, pending: Pending) -> Result<(), PlatformError> {
        if let Some(event) = self.held_mut()?.resume(thread, run, pending)? {
            self.queue.push_back(event);
        }
        Ok(())
    }

    fn threads(&self) -> Vec<ThreadId> {
        self.debuggee.as_ref().map(|debuggee| debuggee.threads().keys().copied().collect()).unwrap_or_default()
    }

    fn thread_name(&self, thread: ThreadId) -> Option<String> {
        self.held().ok()?.thread(thread).ok()?.name()
    }

    fn read_memory(&self, address: VirtAddr, buffer: &mut [u8]) -> Result<usize, PlatformError> {
        Ok(memory::read(&self.held()?.process, address, buffer))
    }

    fn write_memory(&mut self, address: VirtAddr, bytes: &[u8]) -> Result<(), PlatformError> {
        let debuggee = self.held()?;
        let mapped = debuggee.is_in_image(address, bytes.len() as u64);
        memory::write(&debuggee.process, address, bytes, mapped)
    }

    fn registers(&self, thread: ThreadId) -> Result<Registers, PlatformError> {
        self.held()?.thread(thread)?.registers()
    }

    fn set_registers(&mut self, thread: ThreadId, registers: &Registers) -> Result<(), PlatformError> {
        self.held()?.thread(thread)?.set_registers(registers)
    }

    fn set_pc(&mut self, thread: ThreadId, pc: VirtAddr) -> Result<(), PlatformError> {
        let thread = self.held()?.thread(thread)?;
        if thread.held { thread.set_pc(pc) } else { Err(PlatformError::NotHeld(thread.id())) }
    }

    fn fxsave(&self, thread: ThreadId) -> Result<Vec<u8>, PlatformError> {
        self.held()?.thread(thread)?.fxsave()
    }

    fn debug_registers(&self, thread: ThreadId) -> Result<DebugRegisters, PlatformError> {
        self.held()?.thread(thread)?.debug_registers()
    }

    fn set_debug_registers(&mut self, thread: ThreadId, registers: &DebugRegisters) -> Result<(), PlatformError> {
        self.held_mut()?.thread_mut(thread)?.set_debug_registers(registers)
    }

    fn modules(&self) -> Result<Vec<Module>, PlatformError> {
        Ok(self.held()?.modules())
    }

    fn symbols(&self, module: &Module) -> Result<Vec<Symbol>, PlatformError> {
        pe::read_symbols(&module.path, module.base)
    }

    fn entry_point(&self) -> Result<VirtAddr, PlatformError> {
        self.held()?.entry_point()
    }

    fn allocate_code(&mut self, near: VirtAddr, length: u64) -> Result<VirtAddr, PlatformError> {
        let debuggee = self.held()?;
        memory::allocate_near(&debuggee.process, near, length, debuggee.bitness == Bitness::Bits32)
    }

    fn free_code(&mut self, address: VirtAddr, _length: u64) -> Result<(), PlatformError> {
        Ok(sys::free(&self.held()?.process, address.get())?)
    }

    fn screenshot(&self, title: Option<&str>) -> Result<ScreenshotJob, PlatformError> {
        let debuggee = self.held()?;
        let (pid, title) = (debuggee.pid, title.map(str::to_owned));
        let stopped = debuggee.is_frozen() || !debuggee.runs();
        Ok(Box::new(move || window::picture(pid, title.as_deref(), stopped)))
    }
}

/// Whether this Windows has 64-bit programs at all.
fn on_64_bit_windows() -> Result<bool, PlatformError> {
    let own = sys::open_process(std::process::id(), sys::PROCESS_QUERY_LIMITED_INFORMATION)?;
    Ok(cfg!(target_pointer_width = "64") || sys::is_wow64(&own)?)
}

/// Whether two paths name one file: as texts without regard to case, or by what the system makes of them.
fn same_file(a: &Path, b: &Path) -> bool {
    let folded = |path: &Path| path.to_string_lossy().to_lowercase();
    folded(a) == folded(b) || matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if folded(&a) == folded(&b))
}
