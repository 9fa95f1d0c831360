//! The program being debugged: its threads and modules, and what each debug event means for them.
//!
//! Windows freezes the whole process at an event until the event is continued, and reports one event at a time; others wait in
//! the system. The engine wants to hold and release single threads. So an event is continued when the engine waits next, and
//! a thread that it has not released by then is suspended first. An event of a thread that the engine holds was waiting in
//! the system when it was held: it is put off until the thread is released.

use super::bounded::Bounded;
use super::names;
use super::sys::{self, Failure, Raw, RawEvent};
use super::thread::Thread;
use super::{Attached, memory};
use crate::platform::pe::{self, HEADER_BYTES};
use crate::platform::{Event, Exit, Module, Pending, PlatformError, Run, ThreadId};
use base::{VirtAddr, limits};
use code::x86::Bitness;
use std::collections::BTreeMap;
use std::os::windows::io::OwnedHandle;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};
use windows_sys::Win32::Foundation::{DBG_CONTINUE, DBG_EXCEPTION_NOT_HANDLED, NTSTATUS};

/// The program.
pub struct Debuggee {
    /// Its number.
    pub pid: u32,
    /// Where its executable is.
    pub path: PathBuf,
    /// Its word size.
    pub bitness: Bitness,
    /// With all rights.
    pub process: OwnedHandle,
    /// Where its executable is loaded.
    base: VirtAddr,
    threads: BTreeMap<ThreadId, Thread>,
    modules: BTreeMap<u64, Module>,
    bounded: Rc<Bounded>,
    outstanding: Option<Outstanding>,
    /// Breakpoints of the system's own that are still to come.
    expected: Expected,
    /// We have asked the system to end it: no thread is held any more.
    ending: bool,
}

/// An event that has not been continued.
struct Outstanding {
    thread: ThreadId,
    status: NTSTATUS,
    /// The program's own INT3, as far as the platform can tell.
    int3: Option<VirtAddr>,
    /// The engine knows of it and decides about the thread.
    reported: bool,
    /// An exception that interrupted a step.
    in_step: bool,
}

/// A breakpoint of the system's own is to be swallowed: one by each of the codes, in ntdll.
#[derive(Default)]
struct Expected {
    native: bool,
    wx86: bool,
}

/// What an event comes to.
pub enum Digest {
    /// The engine must know.
    Report(Event),
    /// Nothing that concerns it.
    Nothing,
    /// The breakpoint with which the system says that a process is ready for its debugger.
    SystemBreakpoint,
}

impl Debuggee {
    /// The program from its first event, which is outstanding then. Its first thread is held by it.
    pub fn from_first_event(event: RawEvent, process: OwnedHandle, attached: Attached) -> Result<Self, PlatformError> {
        let Raw::CreateProcess { file, thread, base, local_base } = event.what else {
            return Err(strange("the first debug event is not that of the process"));
        };
        let handle = thread.ok_or_else(|| strange("the first debug event has no thread"))?;
        let mut head = vec![0; HEADER_BYTES];
        let length = memory::read(&process, VirtAddr::new(base), &mut head);
        let header = pe::header(head.get(..length).unwrap_or(&[])).map_err(|reason| {
            PlatformError::BadProgram(format!("process {} cannot be debugged: {reason}", event.pid))
        })?;
        let from_file = file.as_ref().and_then(sys::file_path);
        let path = sys::image_path(&process).or(from_file).unwrap_or_default();
        let mut debuggee = Self {
            pid: event.pid,
            path: path.clone(),
            bitness: header.bitness,
            process,
            base: VirtAddr::new(base),
            threads: BTreeMap::new(),
            modules: BTreeMap::new(),
            bounded: Rc::default(),
            outstanding: None,
            expected: Expected::default(),
            ending: false,
        };
        debuggee.expected = debuggee.expects(attached);
        debuggee.add_thread(event.tid, Some(handle), local_base);
        debuggee.add_module(base, path, true);
        debuggee.outstanding =
            Some(Outstanding { thread: event.tid, status: DBG_CONTINUE, int3: None, reported: true, in_step: false });
        Ok(debuggee)
    }

    /// A 32-bit program has a breakpoint in each of its two ntdlls when it starts on a 64-bit Windows.
    fn expects(&self, attached: Attached) -> Expected {
        let both = self.bitness == Bitness::Bits32 && cfg!(target_pointer_width = "64");
        Expected { native: true, wx86: both && attached == Attached::AtStart }
    }

    fn add_thread(&mut self, id: ThreadId, handle: Option<OwnedHandle>, local_base: u64) {
        let Some(handle) = handle else { return };
        let base = self.segment_base(local_base);
        self.threads.insert(id, Thread::new(id, handle, self.bitness, base, Rc::clone(&self.bounded)));
    }

    /// The thread environment block that the program's own code sees: it points to itself. The 32-bit one of a 32-bit program
    /// on a 64-bit Windows lies 8 KiB behind the 64-bit one that the system names.
    fn segment_base(&self, local_base: u64) -> u64 {
        let (own_pointer, width) = match self.bitness {
            Bitness::Bits32 => (0x18, 4),
            Bitness::Bits64 => (0x30, 8),
        };
        let points_to_itself = |base: &u64| {
            let mut bytes = [0; 8];
            let field = VirtAddr::new(base.wrapping_add(own_pointer));
            let read = bytes.get_mut(..width).map_or(0, |part| memory::read(&self.process, field, part));
            read == width && u64::from_le_bytes(bytes) == *base
        };
        [local_base, local_base.wrapping_add(0x2000)].into_iter().find(points_to_itself).unwrap_or(0)
    }

    fn add_module(&mut self, base: u64, path: PathBuf, main: bool) {
        let mut head = vec![0; HEADER_BYTES];
        let length = memory::read(&self.process, VirtAddr::new(base), &mut head);
        let header = pe::header(head.get(..length).unwrap_or(&[])).ok();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let bias = header.map_or(0, |header| base.wrapping_sub(pe::preferred_base(&path, &header)));
        let module = Module {
            name: name.unwrap_or_else(|| format!("module_{base:x}")),
            path,
            base: VirtAddr::new(base),
            size: header.map_or(u64::from(u16::MAX) + 1, |header| header.size),
            bias,
            main,
            host: false,
        };
        self.modules.insert(base, module);
    }

    /// The name of a library that was just loaded, by what the event brings: its file, or a pointer to a pointer to a text.
    fn library_path(&self, file: Option<&OwnedHandle>, base: u64, name: u64, unicode: bool) -> PathBuf {
        let from_pointer = || {
            let width = usize::try_from(self.bitness.pointer_bytes()).ok().filter(|_| name != 0)?;
            let mut pointer = [0; 8];
            let read = memory::read(&self.process, VirtAddr::new(name), pointer.get_mut(..width)?);
            let at = u64::from_le_bytes(pointer);
            (read == width && at != 0)
                .then(|| PathBuf::from(self.text(VirtAddr::new(at), limits::MAX_MODULE_PATH_BYTES, unicode)))
        };
        file.and_then(sys::file_path)
            .or_else(from_pointer)
            .filter(|path| path.file_name().is_some())
            .or_else(|| sys::mapped_path(&self.process, base))
            .unwrap_or_default()
    }

    /// A text of at most `bytes` bytes, up to its zero.
    fn text(&self, at: VirtAddr, bytes: usize, unicode: bool) -> String {
        let mut buffer = vec![0; bytes];
        let length = memory::read(&self.process, at, &mut buffer);
        buffer.truncate(length);
        if unicode {
            let units = buffer.as_chunks::<2>().0.iter().map(|unit| u16::from_le_bytes(*unit));
            String::from_utf16_lossy(&units.take_while(|unit| *unit != 0).collect::<Vec<_>>())
        } else {
            let text = buffer.split(|byte| *byte == 0).next().unwrap_or_default();
            // The program's code page is not ours to know; what is not UTF-8 is read as Latin-1.
            String::from_utf8(text.to_vec()).unwrap_or_else(|_| text.iter().copied().map(char::from).collect())
        }
    }

    /// Takes an event in. It is outstanding afterwards.
    pub fn digest(&mut self, event: RawEvent) -> Result<Digest, PlatformError> {
        let thread = event.tid;
        let was_held = self.threads.get(&thread).is_some_and(|thread| thread.held);
        if let Some(running) = self.threads.get_mut(&thread).filter(|thread| !thread.held) {
            running.has_run();
        }
        let in_step =
            matches!(event.what, Raw::Exception { .. }) && self.threads.get(&thread).is_some_and(Thread::is_stepping);
        self.outstanding = Some(Outstanding { thread, status: DBG_CONTINUE, int3: None, reported: false, in_step });
        Ok(match event.what {
            Raw::Exception { code, first_chance, address, parameters } => {
                return self.digest_exception(
                    thread,
                    was_held,
                    code,
                    first_chance,
                    VirtAddr::new(address),
                    &parameters,
                );
            }
            Raw::CreateThread { handle, local_base } => {
                self.add_thread(thread, handle, local_base);
                self.report(Event::ThreadStarted { thread })
            }
            Raw::ExitThread => {
                self.threads.remove(&thread);
                Digest::Report(Event::ThreadExited { thread })
            }
            Raw::ExitProcess { code } => {
                self.threads.clear();
                Digest::Report(Event::ProcessExited(Exit::Code(i64::from(code))))
            }
            Raw::LoadDll { file, base, name, unicode } => {
                let path = self.library_path(file.as_ref(), base, name, unicode);
                self.add_module(base, path, false);
                self.report_or_defer(thread, was_held, Event::ModulesChanged { thread })
            }
            Raw::UnloadDll { base } => {
                self.modules.remove(&base);
                self.report_or_defer(thread, was_held, Event::ModulesChanged { thread })
            }
            Raw::DebugString { address, unicode, length } => {
                let bytes = usize::from(length) * if unicode { 2 } else { 1 };
                let text = self.text(VirtAddr::new(address), bytes, unicode);
                // Not handled: the text also goes where it would go without a debugger.
                self.set_status(DBG_EXCEPTION_NOT_HANDLED);
                self.report_or_defer(thread, was_held, Event::DebugOutput { thread, text })
            }
            Raw::CreateProcess { .. } => Digest::Nothing,
            Raw::Other { raw } => self.report_or_defer(thread, was_held, Event::Other { thread, raw }),
        })
    }

    fn set_status(&mut self, status: NTSTATUS) {
        if let Some(outstanding) = &mut self.outstanding {
            outstanding.status = status;
        }
    }

    /// The engine gets the event; its thread is held.
    fn report(&mut self, event: Event) -> Digest {
        if let Some(outstanding) = &mut self.outstanding {
            outstanding.reported = true;
            if let Some(thread) = self.threads.get_mut(&outstanding.thread) {
                thread.held = true;
            }
        }
        Digest::Report(event)
    }

    fn report_or_defer(&mut self, thread: ThreadId, was_held: bool, event: Event) -> Digest {
        if !was_held {
            return self.report(event);
        }
        if let Some(thread) = self.threads.get_mut(&thread) {
            thread.deferred = Some(event);
        }
        Digest::Nothing
    }

    fn digest_exception(
        &mut self,
        id: ThreadId,
        was_held: bool,
        code: u32,
        first_chance: bool,
        address: VirtAddr,
        parameters: &[u64],
    ) -> Result<Digest, PlatformError> {
        match code {
            names::BREAKPOINT | names::WX86_BREAKPOINT if first_chance => {
                if let Some(digest) = self.digest_int3(id, was_held, code, address)? {
                    return Ok(digest);
                }
            }
            names::SINGLE_STEP | names::WX86_SINGLE_STEP if first_chance => {
                let status = self.threads.get_mut(&id).map(Thread::take_debug_status).transpose()?.flatten();
                let trap = self.threads.get_mut(&id).map(Thread::take_handed_out_trap).transpose()?.unwrap_or(false);
                if trap && status.is_none_or(|(_, slots)| slots == 0) {
                    return Ok(Digest::Nothing);
                }
                if let Some((single_step, slots)) = status {
                    return Ok(self.report_or_defer(id, was_held, Event::Debug { thread: id, single_step, slots }));
                }
            }
            names::SET_THREAD_NAME if first_chance => {
                self.set_status(DBG_EXCEPTION_NOT_HANDLED);
                self.take_thread_name(id, parameters);
                return Ok(Digest::Nothing);
            }
            _ => {}
        }
        self.set_status(DBG_EXCEPTION_NOT_HANDLED);
        // The thread is held: its handlers see the exception when it is released, as without us.
        if was_held && first_chance {
            return Ok(Digest::Nothing);
        }
        Ok(self.report(Event::Exception {
            thread: id,
            name: names::name(code),
            number: code,
            address: names::fault_address(code, parameters).map(VirtAddr::new),
            synchronous: names::is_synchronous(code),
            fatal: !first_chance,
        }))
    }

    /// An INT3; `None` when the exception was raised in another way and is the program's own affair.
    fn digest_int3(
        &mut self,
        id: ThreadId,
        was_held: bool,
        code: u32,
        at: VirtAddr,
    ) -> Result<Option<Digest>, PlatformError> {
        if self.is_expected(code, at) {
            return Ok(Some(Digest::SystemBreakpoint));
        }
        let Some(thread) = self.threads.get_mut(&id) else { return Ok(None) };
        let behind = at.wrapping_add(1);
        let pc = thread.pc()?;
        if pc != behind {
            let mut byte = [0];
            if pc != at || memory::read(&self.process, at, &mut byte) != 1 || byte != [0xcc] {
                return Ok(None);
            }
            thread.set_pc(behind)?;
        }
        if thread.deliver_int3.take() == Some(at) {
            self.set_status(DBG_EXCEPTION_NOT_HANDLED);
            return Ok(Some(Digest::Nothing));
        }
        if was_held {
            // It happens again when the thread is released.
            thread.set_pc(at)?;
            thread.store()?;
            return Ok(Some(Digest::Nothing));
        }
        if let Some(outstanding) = &mut self.outstanding {
            outstanding.int3 = Some(at);
        }
        Ok(Some(self.report(Event::Int3 { thread: id, at })))
    }

    fn is_expected(&mut self, code: u32, at: VirtAddr) -> bool {
        let expected = match code {
            names::WX86_BREAKPOINT => &mut self.expected.wx86,
            _ => &mut self.expected.native,
        };
        let in_ntdll =
            |module: &Module| module.name.eq_ignore_ascii_case("ntdll.dll") && at.is_in(module.base, module.size);
        if !*expected || !self.modules.values().any(in_ntdll) {
            return false;
        }
        *expected = false;
        true
    }

    /// `{0x1000, pointer to the name, thread or -1, flags}`.
    fn take_thread_name(&mut self, current: ThreadId, parameters: &[u64]) {
        let [0x1000, at, thread, ..] = *parameters else { return };
        let id = u32::try_from(thread & 0xffff_ffff).ok().filter(|id| *id != u32::MAX).unwrap_or(current);
        let name = self.text(VirtAddr::new(at), limits::MAX_THREAD_NAME_BYTES, false);
        if let Some(thread) = self.threads.get_mut(&id) {
            thread.old_name = Some(name).filter(|name| !name.is_empty());
        }
    }

    /// Whether waiting makes sense: some thread runs, or will when the outstanding event is continued.
    pub fn runs(&self) -> bool {
        self.ending || self.threads.values().any(|thread| !thread.held)
    }

    /// Whether the system holds an event that the engine has not let go.
    pub fn is_frozen(&self) -> bool {
        self.outstanding.as_ref().is_some_and(|outstanding| outstanding.reported)
    }

    /// Continues the outstanding event, if there is one. Threads that the engine holds stay where they are.
    pub fn go_on(&mut self) -> Result<(), PlatformError> {
        let Some(outstanding) = self.outstanding.take() else { return Ok(()) };
        if let Some(thread) = self.threads.get_mut(&outstanding.thread).filter(|_| !self.ending) {
            if thread.held {
                thread.store()?;
                thread.suspend()?;
                thread.undecided_int3 = outstanding.int3;
            } else {
                thread.store()?;
            }
            if outstanding.in_step && outstanding.status == DBG_EXCEPTION_NOT_HANDLED {
                thread.hand_out_trap();
            }
        }
        Ok(sys::continue_event(self.pid, outstanding.thread, outstanding.status)?)
    }

    /// Lets one thread go. An event that was put off for it is returned instead, and the thread stays held.
    pub fn resume(&mut self, id: ThreadId, run: Run, pending: Pending) -> Result<Option<Event>, PlatformError> {
        let resumed = self.try_resume(id, run, pending);
        if !matches!(resumed, Err(PlatformError::Os { .. })) {
            return resumed;
        }
        // A process that is ending has no registers to set any more; its end will be reported.
        self.notice_end();
        if self.ending { Ok(None) } else { resumed }
    }

    fn try_resume(&mut self, id: ThreadId, run: Run, pending: Pending) -> Result<Option<Event>, PlatformError> {
        let thread = self.threads.get_mut(&id).ok_or(PlatformError::NoThread(id))?;
        if !thread.held {
            return Err(PlatformError::NotHeld(id));
        }
        if let Some(event) = thread.deferred.take() {
            return Ok(Some(event));
        }
        if let (Some(at), Pending::Deliver) = (thread.undecided_int3.take(), pending)
            && thread.pc()? == at.wrapping_add(1)
        {
            thread.set_pc(at)?;
            thread.deliver_int3 = Some(at);
        }
        thread.release(run)?;
        if let Some(outstanding) = self.outstanding.as_mut().filter(|outstanding| outstanding.thread == id) {
            if pending == Pending::Discard {
                outstanding.status = DBG_CONTINUE;
            } else if outstanding.int3.is_some() {
                outstanding.status = DBG_EXCEPTION_NOT_HANDLED;
            }
        }
        Ok(None)
    }

    /// Suspends every running thread; gives the first failure. A thread that is just ending cannot be suspended; while an
    /// event freezes the process it does not move either.
    pub fn suspend_all(&mut self) -> Result<(), Failure> {
        let frozen = self.is_frozen();
        let mut failed = None;
        for thread in self.threads.values_mut() {
            match thread.hold() {
                Ok(()) => {}
                Err(_) if frozen => thread.held = true,
                Err(failure) => {
                    failed.get_or_insert(failure);
                }
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Waits until every thread that was suspended has come to rest.
    pub fn come_to_rest(&self) -> Result<(), PlatformError> {
        // Each is asked, so that it is known of each afterwards.
        let asked: Vec<_> = self.threads.values().map(Thread::come_to_rest).collect();
        asked.into_iter().collect()
    }

    /// The next event, at most `wait` later. The outstanding one is continued before.
    pub fn next_event(&mut self, wait: Duration) -> Result<Option<Digest>, PlatformError> {
        self.go_on()?;
        let milliseconds = u32::try_from(wait.as_millis()).unwrap_or(u32::MAX - 1);
        match sys::wait_for_event(milliseconds)? {
            Some(event) if event.pid == self.pid => self.digest(event).map(Some),
            Some(stranger) => {
                sys::continue_event(stranger.pid, stranger.tid, DBG_EXCEPTION_NOT_HANDLED)?;
                Ok(None)
            }
            None => Ok(None),
        }
    }

    /// Events that wait in the system while every thread is held, up to the first that must stay outstanding.
    pub fn drain(&mut self) -> Result<Vec<Event>, PlatformError> {
        let mut events = Vec::new();
        while !self.is_frozen() {
            match self.next_event(Duration::ZERO)? {
                Some(Digest::Report(event)) => events.push(event),
                Some(_) => {}
                None => break,
            }
        }
        Ok(events)
    }

    /// Brings a program that has just been attached to to a hold: the system tells of its threads and modules, then makes a
    /// thread that runs into a breakpoint and ends.
    pub fn settle(&mut self, limit: Duration) -> Result<(), PlatformError> {
        let until = Instant::now() + limit;
        self.release_reported()?;
        let mut messenger = None;
        while Instant::now() < until {
            match self.next_event(Duration::from_millis(limits::DEBUG_EVENT_SLICE_MS))? {
                Some(Digest::SystemBreakpoint) => {
                    messenger = self.outstanding.as_ref().map(|outstanding| outstanding.thread);
                    break;
                }
                Some(Digest::Report(Event::ProcessExited(_))) => return Err(PlatformError::NoProcess(self.pid)),
                Some(Digest::Report(_)) => self.release_reported()?,
                _ => {}
            }
        }
        for (_, thread) in self.threads.iter_mut().filter(|(id, _)| Some(**id) != messenger) {
            if thread.hold().is_err() {
                // It is just ending, which will be reported.
                thread.held = true;
            }
        }
        while messenger.is_some() && Instant::now() < until {
            match self.next_event(Duration::from_millis(limits::DEBUG_EVENT_SLICE_MS))? {
                Some(Digest::Report(Event::ThreadExited { thread })) if Some(thread) == messenger => messenger = None,
                // Threads born meanwhile stay held.
                Some(Digest::Report(_)) => self.go_on()?,
                _ => {}
            }
        }
        self.go_on()
    }

    /// Lets the thread of the outstanding event go as if nobody had asked.
    fn release_reported(&mut self) -> Result<(), PlatformError> {
        let Some(outstanding) = &mut self.outstanding else { return Ok(()) };
        if outstanding.int3.is_some() {
            outstanding.status = DBG_EXCEPTION_NOT_HANDLED;
        }
        match self.threads.get_mut(&outstanding.thread) {
            Some(thread) => thread.let_go(),
            None => Ok(()),
        }
    }

    /// Makes the system stop the program by a thread of its own, where threads cannot be suspended. Every thread is held by
    /// that thread's event then.
    pub fn break_in(&mut self, limit: Duration) -> Result<Vec<Event>, PlatformError> {
        self.expected = Expected { native: true, wx86: self.bitness == Bitness::Bits32 };
        sys::debug_break(&self.process)?;
        let until = Instant::now() + limit;
        let mut events = Vec::new();
        while Instant::now() < until {
            match self.next_event(Duration::from_millis(limits::DEBUG_EVENT_SLICE_MS))? {
                Some(Digest::SystemBreakpoint) => {
                    self.expected = Expected::default();
                    let id = self.outstanding.as_ref().map(|outstanding| outstanding.thread);
                    self.report(Event::Other { thread: id.unwrap_or_default(), raw: 0 });
                    self.suspend_all()?;
                    return Ok(events);
                }
                Some(Digest::Report(event @ Event::ThreadStarted { thread })) => {
                    // The new thread must run to reach its breakpoint.
                    self.resume(thread, Run::Free, Pending::Deliver)?;
                    events.push(event);
                }
                Some(Digest::Report(event)) => {
                    events.push(event);
                    return Ok(events);
                }
                _ => {}
            }
        }
        Err(PlatformError::Timeout("the break by DebugBreakProcess"))
    }

    /// Lets the program go for good.
    pub fn let_go(&mut self) -> Result<(), PlatformError> {
        if let Some(outstanding) = &mut self.outstanding
            && let (Some(at), Some(thread)) = (outstanding.int3, self.threads.get(&outstanding.thread))
            && thread.pc()? == at.wrapping_add(1)
        {
            // Not one of the engine's, which it would have set back.
            outstanding.status = DBG_EXCEPTION_NOT_HANDLED;
        }
        for thread in self.threads.values_mut().filter(|thread| !thread.held) {
            // One that cannot be suspended is just ending, and needs no cleaning.
            let _ = thread.hold();
        }
        for thread in self.threads.values_mut().filter(|thread| thread.held) {
            thread.clean()?;
        }
        loop {
            match self.next_event(Duration::ZERO)? {
                Some(Digest::Report(Event::ProcessExited(_))) => return self.go_on(),
                Some(_) => {}
                None => break,
            }
        }
        for thread in self.threads.values_mut().filter(|thread| thread.held) {
            thread.clean()?;
        }
        let stopped = sys::debug_active_process_stop(self.pid);
        for thread in self.threads.values_mut() {
            thread.let_go()?;
        }
        Ok(stopped?)
    }

    /// Asks the system to end the program.
    pub fn end(&mut self) -> Result<(), PlatformError> {
        if !self.ending {
            sys::terminate(&self.process, limits::KILLED_EXIT_CODE)?;
            self.ending = true;
        }
        Ok(())
    }

    /// Notices that somebody else ended the program while it was frozen, so that its end can be reported.
    pub fn notice_end(&mut self) {
        self.ending = self.ending || sys::wait_gone(&self.process, 0);
    }

    /// The threads that live.
    pub fn threads(&self) -> &BTreeMap<ThreadId, Thread> {
        &self.threads
    }

    /// A thread that lives.
    pub fn thread(&self, id: ThreadId) -> Result<&Thread, PlatformError> {
        self.threads.get(&id).ok_or(PlatformError::NoThread(id))
    }

    /// A thread that lives.
    pub fn thread_mut(&mut self, id: ThreadId) -> Result<&mut Thread, PlatformError> {
        self.threads.get_mut(&id).ok_or(PlatformError::NoThread(id))
    }

    /// Whether all of `length` bytes lie in the image of one module, which is mapped as a whole.
    pub fn is_in_image(&self, address: VirtAddr, length: u64) -> bool {
        let last = self.modules.range(..=address.get()).next_back();
        last.is_some_and(|(_, module)| {
            address
                .offset_from(module.base)
                .and_then(|offset| offset.checked_add(length))
                .is_some_and(|end| end <= module.size)
        })
    }

    /// The executable and its libraries, by address.
    pub fn modules(&self) -> Vec<Module> {
        self.modules.values().cloned().collect()
    }

    /// The first instruction of the executable.
    pub fn entry_point(&self) -> Result<VirtAddr, PlatformError> {
        let mut head = vec![0; HEADER_BYTES];
        let length = memory::read(&self.process, self.base, &mut head);
        let header = pe::header(head.get(..length).unwrap_or(&[]));
        header.map(|header| self.base.wrapping_add(header.entry)).map_err(|reason| {
            PlatformError::BadProgram(format!("{} has no entry point: {reason}", self.path.display()))
        })
    }
}

fn strange(message: &str) -> PlatformError {
    PlatformError::Os { call: "WaitForDebugEvent", message: message.to_owned() }
}
