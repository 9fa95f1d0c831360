//! The Linux platform: ptrace, `/proc` and X11, for i386 and x86-64 programs on an x86-64 system.
//!
//! Everything here belongs to the thread that made the [`LinuxPlatform`]: the kernel takes a tracer to be a thread.

mod debuggee;
mod display;
mod inject;
mod memory;
mod modules;
mod proc;
mod regs;
mod signals;
mod start;
mod symbols;
mod sys;
mod wake;
mod window;
mod wine;

use super::{
    Event, LaunchSpec, Module, Pending, Platform, PlatformError, ProcessId, Run, ScreenshotJob, Started, Symbol,
    ThreadId, Waker, pe,
};
use crate::registers::{DebugRegisters, Registers};
use base::{VirtAddr, limits};
use code::x86::Bitness;
use debuggee::Debuggee;
use nix::libc;
use proc::FileKind;
use std::cell::Cell;
use std::collections::VecDeque;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use wake::{Waited, Wake};

/// Entry of the auxiliary vector: where the loader is (`AT_BASE`).
const AUX_LOADER: u64 = 7;
/// Entry of the auxiliary vector: the executable's entry point (`AT_ENTRY`).
const AUX_ENTRY: u64 = 9;
/// The function that loaders call after each change of their list, for debuggers.
const LOADER_HOOK: &str = "_dl_debug_state";

/// A program under ptrace.
pub struct LinuxPlatform {
    wake: Wake,
    program: Option<Debuggee>,
    /// Events that came while something else was awaited.
    queue: VecDeque<Event>,
    /// Where the loader of a Windows program comes by, by the base of its system library. Kept because the code there is
    /// not its own while a breakpoint stands in it.
    windows_hook: Cell<Option<(VirtAddr, Option<VirtAddr>)>>,
}

impl LinuxPlatform {
    /// Makes the calling thread the tracer: every method is to be called on it.
    ///
    /// # Errors
    /// When the system gives no thread or signal handler.
    pub fn new() -> Result<Self, PlatformError> {
        Ok(LinuxPlatform { wake: Wake::new()?, program: None, queue: VecDeque::new(), windows_hook: Cell::new(None) })
    }

    fn program(&self) -> Result<&Debuggee, PlatformError> {
        self.program.as_ref().ok_or(PlatformError::NoProcess(0))
    }

    fn program_mut(&mut self) -> Result<&mut Debuggee, PlatformError> {
        self.program.as_mut().ok_or(PlatformError::NoProcess(0))
    }

    fn check_free(&self) -> Result<(), PlatformError> {
        match &self.program {
            None => Ok(()),
            Some(program) => {
                Err(PlatformError::Permission(format!("process {} is being debugged: let it go first", program.pid)))
            }
        }
    }

    /// Takes note of an event that ends the program.
    fn noted(&mut self, event: Event) -> Event {
        match event {
            Event::ProcessExited(_) => self.program = None,
            Event::Executed { .. } => self.windows_hook.set(None),
            _ => {}
        }
        event
    }
}

impl Platform for LinuxPlatform {
    fn name(&self) -> &'static str {
        "linux"
    }

    fn archs(&self) -> &'static [Bitness] {
        &[Bitness::Bits32, Bitness::Bits64]
    }

    fn features(&self) -> &'static [&'static str] {
        &["watchpoints", "out_of_line_steps", "screenshots"]
    }

    fn waker(&self) -> Waker {
        self.wake.waker()
    }

    fn find_processes(&self, name: &str) -> Result<Vec<ProcessId>, PlatformError> {
        let own = std::process::id();
        let candidates = proc::processes().into_iter().filter(|pid| *pid != own);
        // A process that has ended has no executable any more, so the dead are left out by themselves.
        let named = candidates.filter_map(|pid| {
            let path = proc::executable(pid)?;
            if start::is_named(&path, name) {
                return Some(ProcessId { pid, path });
            }
            let path = wine::program(pid, None)?.path;
            wine::is_named(&path, name).then_some(ProcessId { pid, path })
        });
        Ok(named.collect())
    }

    fn launch(&mut self, spec: &LaunchSpec) -> Result<Started, PlatformError> {
        self.check_free()?;
        let (program, started) = start::launch(&self.wake, spec)?;
        self.windows_hook.set(None);
        self.program = Some(program);
        Ok(started)
    }

    fn attach(&mut self, pid: u32) -> Result<Started, PlatformError> {
        self.check_free()?;
        let (program, started) = start::attach(&self.wake, pid)?;
        self.windows_hook.set(None);
        let hosted = wine::program(program.witness(), program.memory.as_ref());
        self.program = Some(program);
        Ok(match hosted {
            Some(hosted) => Started { path: hosted.path, bitness: hosted.bitness, ..started },
            None => started,
        })
    }

    fn detach(&mut self) -> Result<(), PlatformError> {
        let Some(mut program) = self.program.take() else { return Ok(()) };
        self.queue.clear();
        let limit = Duration::from_millis(limits::HOLD_TIMEOUT_MS);
        let held = program.hold_all(&self.wake, limit, &mut Vec::new());
        program.release_all();
        // A thread that could not be halted is let go at its next stop.
        held
    }

    fn kill(&mut self) -> Result<(), PlatformError> {
        let pid = self.program()?.pid;
        sys::send_process(pid, libc::SIGKILL).map_err(|error| regs::failed_io("kill", pid, &error))
    }

    fn wait(&mut self, timeout: Duration) -> Result<Option<Event>, PlatformError> {
        if let Some(event) = self.queue.pop_front() {
            return Ok(Some(self.noted(event)));
        }
        let deadline = Instant::now() + timeout;
        loop {
            let unseen = self.program.as_mut().and_then(Debuggee::unseen);
            let (thread, status) = match unseen {
                Some(unseen) => unseen,
                None => match self.wake.wait(deadline, false)? {
                    Waited::Status(thread, status) => (thread, status),
                    Waited::TimeIsUp | Waited::Woken => return Ok(None),
                },
            };
            let Some(program) = &mut self.program else {
                debuggee::let_go(thread, status);
                continue;
            };
            if let Some(event) = program.on_status(thread, status, false)? {
                return Ok(Some(self.noted(event)));
            }
        }
    }

    fn hold_all(&mut self, limit: Duration) -> Result<Vec<Event>, PlatformError> {
        let LinuxPlatform { wake, program, queue, .. } = self;
        let Some(program) = program else { return Ok(queue.drain(..).collect()) };
        let mut events: Vec<Event> = queue.drain(..).collect();
        let result = program.hold_all(wake, limit, &mut events);
        if let Err(error) = result {
            // What has happened must not be lost with the error.
            queue.extend(events);
            return Err(error);
        }
        Ok(events.into_iter().map(|event| self.noted(event)).collect())
    }

    fn resume(&mut self, thread: ThreadId, run: Run, pending: Pending) -> Result<(), PlatformError> {
        self.program_mut()?.resume(thread, run, pending)
    }

    fn threads(&self) -> Vec<ThreadId> {
        self.program.as_ref().map(Debuggee::threads).unwrap_or_default()
    }

    fn thread_name(&self, thread: ThreadId) -> Option<String> {
        proc::thread_name(thread)
    }

    fn read_memory(&self, address: VirtAddr, buffer: &mut [u8]) -> Result<usize, PlatformError> {
        let program = self.program()?;
        memory::read(program.witness(), program.memory.as_ref(), address.get(), buffer)
    }

    fn write_memory(&mut self, address: VirtAddr, bytes: &[u8]) -> Result<(), PlatformError> {
        let program = self.program()?;
        memory::write(program.witness(), program.memory.as_ref(), address.get(), bytes)
    }

    fn registers(&self, thread: ThreadId) -> Result<Registers, PlatformError> {
        self.program()?.raw(thread).map(|raw| regs::decode(&raw))
    }

    fn set_registers(&mut self, thread: ThreadId, registers: &Registers) -> Result<(), PlatformError> {
        let program = self.program_mut()?;
        let raw = program.raw(thread)?;
        program.set_raw(thread, regs::encode(registers, &raw))
    }

    fn set_pc(&mut self, thread: ThreadId, pc: VirtAddr) -> Result<(), PlatformError> {
        self.program_mut()?.set_pc(thread, pc)
    }

    fn fxsave(&self, thread: ThreadId) -> Result<Vec<u8>, PlatformError> {
        self.program()?.check_held(thread)?;
        regs::fxsave(thread)
    }

    fn debug_registers(&self, thread: ThreadId) -> Result<DebugRegisters, PlatformError> {
        self.program()?.check_held(thread)?;
        regs::debug(thread)
    }

    fn set_debug_registers(&mut self, thread: ThreadId, registers: &DebugRegisters) -> Result<(), PlatformError> {
        self.program()?.set_debug(thread, registers)
    }

    fn modules(&self) -> Result<Vec<Module>, PlatformError> {
        let program = self.program()?;
        let thread = program.witness();
        let maps = proc::maps(thread).map_err(|error| os_error("reading /proc/PID/maps", &error))?;
        let memory = program.memory.as_ref();
        Ok(wine::add_modules(thread, memory, &maps, modules::list(thread, memory, &maps, &program.path)))
    }

    fn symbols(&self, module: &Module) -> Result<Vec<Symbol>, PlatformError> {
        let program = self.program()?;
        let thread = program.witness();
        if !module.path.is_absolute() {
            let length = module.size.min(limits::MAX_READ_BYTES);
            let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
            let got = memory::read(thread, program.memory.as_ref(), module.base.get(), &mut bytes)?;
            bytes.truncate(got);
            return Ok(symbols::symbols_in(&bytes, module.bias));
        }
        let file = self.module_file(thread, module);
        match proc::file_kind(&file) {
            Ok(FileKind::Windows) => pe::read_symbols(&file, module.base),
            _ => symbols::read(&file, module.bias),
        }
    }

    fn own_int3(&self, thread: ThreadId) -> Event {
        match &self.program {
            Some(program) => program.own_int3(thread),
            None => signals::int3(thread, None),
        }
    }

    fn entry_point(&self) -> Result<VirtAddr, PlatformError> {
        let program = self.program()?;
        if let Some(hosted) = wine::program(program.witness(), program.memory.as_ref()) {
            return hosted
                .entry
                .ok_or_else(|| PlatformError::BadProgram(format!("{} has no entry point", hosted.path.display())));
        }
        proc::auxiliary(program.witness(), program.bitness, AUX_ENTRY).map(VirtAddr::new).ok_or_else(|| {
            PlatformError::Os {
                call: "reading /proc/PID/auxv",
                message: "the program's entry point is not in it".to_owned(),
            }
        })
    }

    fn may_execute(&self, address: VirtAddr) -> Option<bool> {
        let maps = proc::maps(self.program.as_ref()?.witness()).ok()?;
        let address = address.get();
        maps.iter().find(|mapping| (mapping.start..mapping.end).contains(&address)).map(|mapping| mapping.execute)
    }

    fn loader_breakpoint(&self) -> Option<VirtAddr> {
        let program = self.program.as_ref()?;
        let modules = self.modules().ok()?;
        if let Some(hook) = self.windows_loader_hook(&modules) {
            return Some(hook);
        }
        let base = proc::auxiliary(program.witness(), program.bitness, AUX_LOADER).filter(|base| *base != 0)?;
        let loader = modules.iter().find(|module| module.base.get() == base)?;
        let symbols = self.symbols(loader).ok()?;
        symbols.iter().find(|symbol| symbol.function && symbol.name == LOADER_HOOK).map(|symbol| symbol.address)
    }

    fn allocate_code(&mut self, near: VirtAddr, length: u64) -> Result<VirtAddr, PlatformError> {
        let LinuxPlatform { wake, program, .. } = self;
        let program = program.as_mut().ok_or(PlatformError::NoProcess(0))?;
        inject::map_code(program, wake, near.get(), length).map(VirtAddr::new)
    }

    fn free_code(&mut self, address: VirtAddr, length: u64) -> Result<(), PlatformError> {
        let LinuxPlatform { wake, program, .. } = self;
        let program = program.as_mut().ok_or(PlatformError::NoProcess(0))?;
        inject::unmap(program, wake, address.get(), length)
    }

    fn release_fork(&mut self, child: u32, original: &[(VirtAddr, Vec<u8>)]) -> Result<(), PlatformError> {
        self.program_mut()?.take_forked(child)?;
        let restored = restore(child, original);
        let cleared = regs::set_debug(child, &DebugRegisters::default());
        let gone = sys::go(child, sys::Go::Detach, 0).map_err(|error| regs::failed_io("PTRACE_DETACH", child, &error));
        match restored.and(cleared).and(gone) {
            // Killed meanwhile: nothing is left to do.
            Err(PlatformError::NoThread(_)) => Ok(()),
            result => result,
        }
    }

    fn screenshot(&self, title: Option<&str>) -> Result<ScreenshotJob, PlatformError> {
        let process = self.program()?.pid;
        let display = display::Display::of(self.program()?.witness())?;
        let title = title.map(str::to_owned);
        Ok(Box::new(move || window::take(process, &display, title.as_deref())))
    }

    fn run_shared_child(&mut self, child: u32) -> Result<(), PlatformError> {
        self.program_mut()?.run_child(child)
    }
}

impl LinuxPlatform {
    fn windows_loader_hook(&self, modules: &[Module]) -> Option<VirtAddr> {
        let library = wine::system_library(modules)?;
        match self.windows_hook.get() {
            Some((base, hook)) if base == library.base => hook,
            _ => {
                let program = self.program.as_ref()?;
                let symbols = self.symbols(library).unwrap_or_default();
                let bitness = wine::bitness(program.witness(), program.memory.as_ref(), library);
                let hook = wine::loader_hook(&symbols, bitness, |at, code| {
                    memory::read(program.witness(), program.memory.as_ref(), at.get(), code).unwrap_or(0)
                });
                self.windows_hook.set(Some((library.base, hook)));
                hook
            }
        }
    }

    /// Where a module's file can be read: as the program sees it, which may have another root folder, and also when the
    /// file has been deleted or replaced since it was mapped.
    fn module_file(&self, thread: ThreadId, module: &Module) -> PathBuf {
        let deleted = proc::maps(thread)
            .ok()
            .and_then(|maps| maps.into_iter().find(|mapping| mapping.start == module.base.get()))
            .filter(|mapping| mapping.deleted);
        match deleted {
            Some(_) if module.main && proc::executable(thread).as_ref() == Some(&module.path) => {
                PathBuf::from(format!("/proc/{thread}/exe"))
            }
            Some(mapping) => PathBuf::from(format!("/proc/{thread}/map_files/{:x}-{:x}", mapping.start, mapping.end)),
            None => wine::seen_file(thread, &module.path),
        }
    }
}

impl Drop for LinuxPlatform {
    fn drop(&mut self) {
        let _ = self.detach();
    }
}

fn restore(child: u32, original: &[(VirtAddr, Vec<u8>)]) -> Result<(), PlatformError> {
    let memory = std::fs::OpenOptions::new()
        .write(true)
        .open(format!("/proc/{child}/mem"))
        .map_err(|error| os_error("opening /proc/PID/mem", &error))?;
    for (address, bytes) in original {
        // A page that the child has not inherited (MADV_DONTFORK) has no breakpoint of ours either.
        if let Err(error) = memory.write_all_at(bytes, address.get())
            && error.raw_os_error() != Some(libc::EIO)
        {
            return Err(os_error("writing /proc/PID/mem", &error));
        }
    }
    Ok(())
}

/// A failed call in the system's words.
fn os_error(call: &'static str, error: &std::io::Error) -> PlatformError {
    let message = match error.raw_os_error() {
        Some(number) => nix::errno::Errno::from_raw(number).desc().to_owned(),
        None => error.to_string(),
    };
    PlatformError::Os { call, message }
}
