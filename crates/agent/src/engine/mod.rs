//! The engine: everything about debugging that is hard and the same on every platform. It owns the one debugged program
//! and is a state machine: commands and events change it, nothing in it waits longer than a bound.

mod address;
mod backtrace;
mod breakpoints;
pub mod condition;
mod events;
mod inspect;
mod memory;
mod report;
mod run;
mod screenshot;
mod session;
mod sites;
mod step;
mod symbol_map;
#[cfg(test)]
mod tests;
mod watchpoints;

pub use symbol_map::SymbolMap;

use crate::platform::{Event, Exit, Pending, Platform, PlatformError, ThreadId, Waker};
use crate::reply::ReplyTo;
use crate::runner::Debugger;
use address::World;
use base::{VirtAddr, limits};
use breakpoints::Breakpoint;
use code::x86::Bitness;
use sites::Sites;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use step::StepJob;
use watchpoints::Watch;
use wire::{AgentError, ErrorCode, Request, State, StopReport};

/// What happens to a launched program when the agent ends. One that was attached to is always let go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnExit {
    /// It goes on without the agent.
    Detach,
    /// It is ended.
    Kill,
}

/// How the engine behaves.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// What happens to a launched program when the agent ends.
    pub on_exit: OnExit,
    /// Folders that programs may be launched from; empty means any.
    pub launch_roots: Vec<PathBuf>,
    /// How long a program may stay stopped without a client before it is let go.
    pub orphan_after: Duration,
    /// Bring threads past breakpoints by executing a copy of the instruction in memory of ours in the program, where that
    /// is possible; otherwise always by stepping in place.
    pub out_of_line: bool,
    /// Names beside those that the program's files have.
    pub symbols: SymbolMap,
}

/// The debugged program, as facts that do not change while it runs.
#[derive(Clone, Debug)]
struct Target {
    pid: u32,
    path: PathBuf,
    bitness: Bitness,
    attached: bool,
    entry: Option<VirtAddr>,
}

/// Why the engine has a thread execute a single instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stepping {
    /// To bring it past a breakpoint.
    Pass,
    /// To bring it out of a scratch slot.
    LeaveSlot,
    /// A client asked for it.
    Command,
}

/// A signal or exception of the program that the thread is to get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signal {
    /// It comes from the instruction at the program counter.
    Synchronous,
    /// It may be delivered a little later.
    Asynchronous,
}

/// What the engine knows about a thread.
#[derive(Clone, Debug, Default)]
struct Thread {
    held: bool,
    /// The program counter must be set to this before anything else: the thread has executed an INT3 there.
    rewind: Option<VirtAddr>,
    /// The breakpoint at this address has been evaluated for this thread, which has not executed the instruction yet.
    pass: Option<VirtAddr>,
    /// It is to be passed in its place, though there is a scratch slot.
    in_place: bool,
    /// The thread was sent into a scratch slot and may still be there.
    in_slot: bool,
    /// It is to be stepped out of the slot, with its signal kept.
    leaving: bool,
    signal: Option<Signal>,
    /// It is held at an INT3 that is none of the program's business, nor is the trap.
    trap: bool,
    stepping: Option<Stepping>,
    /// The version of the debug registers that it has.
    debug_version: u64,
}

/// A client that waits for the program to stop.
struct Waiter {
    reply: ReplyTo,
    until: Instant,
}

/// A client that waits for something that ends with one event: the entry of a launched program, or its end.
struct Awaited {
    reply: ReplyTo,
    until: Instant,
}

/// The engine. All methods are called on one thread, see [`Platform`].
pub struct Engine<P: Platform> {
    platform: P,
    options: EngineOptions,
    target: Option<Target>,
    phase: State,
    generation: u64,
    reason: Option<String>,
    /// Thread and program counter of the stop.
    focus: Option<(ThreadId, VirtAddr)>,
    stop: Option<StopReport>,
    /// The stop happened while nobody waited, and no reply has carried its report yet.
    untold: bool,
    exit: Option<Exit>,
    threads: BTreeMap<ThreadId, Thread>,
    /// Events that wait until their thread runs again.
    deferred: VecDeque<Event>,
    sites: Sites,
    breakpoints: Vec<Breakpoint>,
    watches: [Option<Watch>; limits::WATCH_SLOTS],
    debug_version: u64,
    /// Threads are still to be brought past breakpoints before everything runs.
    unfinished: bool,
    world: World,
    loader: Option<VirtAddr>,
    waiters: Vec<Waiter>,
    step: Option<StepJob>,
    launching: Option<Awaited>,
    ending: Option<Awaited>,
    /// For the next stop report.
    notes: Vec<String>,
    /// What the program sent to its debugger, the last of it.
    debug_output: VecDeque<String>,
    shared_children: BTreeSet<u32>,
    clients: usize,
    orphan_since: Option<Instant>,
    shots: screenshot::Shots,
}

impl Thread {
    /// How to let it go while its signal is held back.
    fn hold_back(&self) -> Pending {
        if self.trap { Pending::Discard } else { Pending::Keep }
    }
}

impl<P: Platform> Engine<P> {
    /// An engine without a program.
    pub fn new(platform: P, options: EngineOptions) -> Self {
        Self {
            platform,
            options,
            target: None,
            phase: State::NotLaunched,
            generation: 0,
            reason: None,
            focus: None,
            stop: None,
            untold: false,
            exit: None,
            threads: BTreeMap::new(),
            deferred: VecDeque::new(),
            sites: Sites::default(),
            breakpoints: Vec::new(),
            watches: [const { None }; limits::WATCH_SLOTS],
            debug_version: 0,
            unfinished: false,
            world: World::default(),
            loader: None,
            waiters: Vec::new(),
            step: None,
            launching: None,
            ending: None,
            notes: Vec::new(),
            debug_output: VecDeque::new(),
            shared_children: BTreeSet::new(),
            clients: 0,
            orphan_since: None,
            shots: screenshot::Shots::default(),
        }
    }

    /// A handle by which any thread makes [`Engine::poll`] return early.
    pub fn waker(&self) -> Waker {
        self.platform.waker()
    }

    /// Starts a command. Those that wait for the program keep `reply` until they are done or their time is up.
    pub fn handle(&mut self, request: Request, reply: ReplyTo) {
        let outcome = match request {
            Request::Hello(params) => self.hello(&params),
            Request::Launch(params) => return self.launch(params, reply),
            Request::Attach(params) => self.attach(&params),
            Request::Detach(_) => self.detach(),
            Request::Terminate(_) => return self.terminate(reply),
            Request::GetStatus(_) => Ok(self.status()),
            Request::SetBreakpoint(params) => self.set_breakpoint(params),
            Request::RemoveBreakpoint(params) => self.remove_breakpoint(&params),
            Request::ListBreakpoints(_) => Ok(self.list_breakpoints()),
            Request::SetWatchpoint(params) => self.set_watchpoint(params),
            Request::RemoveWatchpoint(params) => self.remove_watchpoint(&params),
            Request::ListWatchpoints(_) => Ok(self.list_watchpoints()),
            Request::ContinueExecution(params) => return self.continue_execution(&params, reply),
            Request::Pause(_) => self.pause(),
            Request::Step(params) => return self.start_step(&params, reply),
            Request::ReadMemory(params) => self.read_memory(&params),
            Request::WriteMemory(params) => self.write_memory(&params),
            Request::GetRegisters(params) => self.get_registers(&params),
            Request::SetRegisters(params) => self.set_registers(&params),
            Request::ListThreads(_) => self.list_threads(),
            Request::ListModules(_) => self.list_modules(),
            Request::Disassemble(params) => self.disassemble(&params),
            Request::Backtrace(params) => self.backtrace(&params),
            Request::Screenshot(params) => return self.screenshot(&params, reply),
        };
        reply.send(outcome);
    }

    /// Waits at most `timeout` for one event (less when woken, or when a wait of a client is over), and handles it and
    /// what follows from it.
    pub fn poll(&mut self, timeout: Duration) {
        let timeout = if self.has_work() { Duration::ZERO } else { self.until_deadline(timeout) };
        match self.platform.wait(timeout) {
            Ok(Some(event)) => self.take_event(event),
            Ok(None) => {}
            Err(error) => {
                self.note(format!("waiting for the program failed: {error}"));
                // A failing wait returns at once; without this pause the agent would spin.
                std::thread::sleep(timeout.min(Duration::from_millis(limits::WAIT_RETRY_MS)));
            }
        }
        self.run_on();
        self.expire(Instant::now());
    }

    /// Says how many clients are connected: without one, a stopped program is let go after a while.
    pub fn clients_changed(&mut self, connected: usize) {
        self.clients = connected;
        self.watch_orphan();
    }

    /// Lets the program go or ends it, as the options say. May be called again.
    pub fn shutdown(&mut self) {
        let Some(target) = &self.target else { return };
        if self.options.on_exit == OnExit::Kill && !target.attached && self.phase != State::Exited {
            self.kill_now();
        } else {
            self.let_go("the agent ended");
        }
    }

    fn has_work(&self) -> bool {
        self.phase == State::Running
            && self.shared_children.is_empty()
            && (self.unfinished || self.step.as_ref().is_some_and(StepJob::wants_to_step))
    }

    fn until_deadline(&self, timeout: Duration) -> Duration {
        let now = Instant::now();
        let waits = self.waiters.iter().map(|waiter| waiter.until);
        let jobs = self.step.iter().map(|job| job.until);
        let pending = self.launching.iter().chain(&self.ending).map(|pending| pending.until);
        let orphan = self.orphan_since.iter().filter_map(|since| since.checked_add(self.options.orphan_after));
        let next = waits.chain(jobs).chain(pending).chain(orphan).min();
        next.map_or(timeout, |next| timeout.min(next.saturating_duration_since(now)))
    }

    /// Answers those whose time is up, and drops those whose client has gone.
    fn expire(&mut self, now: Instant) {
        self.waiters.retain(|waiter| waiter.reply.is_wanted());
        let (over, waiting) = self.waiters.drain(..).partition(|waiter: &Waiter| waiter.until <= now);
        self.waiters = waiting;
        for waiter in over {
            waiter.reply.send(Ok(self.stop_reply(true)));
        }
        if self.step.as_ref().is_some_and(|job| job.until <= now || !job.reply.is_wanted()) {
            self.give_up_step();
        }
        if self.launching.as_ref().is_some_and(|pending| pending.until <= now) {
            self.launch_is_late();
        }
        if let Some(pending) = self.ending.take_if(|pending| pending.until <= now) {
            pending.reply.send(Err(AgentError::new(ErrorCode::Timeout, "the program did not end in time")
                .hint("ask get_status whether it has ended meanwhile")));
        }
        if self.orphan_since.is_some_and(|since| now.duration_since(since) >= self.options.orphan_after) {
            self.let_go("orphaned");
        }
    }

    /// Starts or ends the clock of a program that is stopped with nobody there.
    fn watch_orphan(&mut self) {
        let orphaned = self.clients == 0 && self.phase == State::Stopped;
        if !orphaned {
            self.orphan_since = None;
        } else if self.orphan_since.is_none() {
            self.orphan_since = Some(Instant::now());
        }
    }

    /// Keeps a sentence for the next stop report.
    fn note(&mut self, sentence: String) {
        if self.notes.len() < limits::MAX_NOTES && !self.notes.contains(&sentence) {
            self.notes.push(sentence);
        }
    }

    fn thread_mut(&mut self, thread: ThreadId) -> &mut Thread {
        self.threads.entry(thread).or_default()
    }

    fn bitness(&self) -> Bitness {
        self.target.as_ref().map_or(Bitness::Bits64, |target| target.bitness)
    }

    /// The program, when there is one that has not ended.
    fn alive(&self) -> Result<&Target, AgentError> {
        match (&self.target, self.phase) {
            (Some(target), State::Running | State::Stopped) => Ok(target),
            (Some(_), State::Exited) => Err(self.exited_error()),
            _ => Err(AgentError::new(ErrorCode::NotLaunched, "no program is being debugged")
                .hint("start one with launch, or take hold of a running one with attach")),
        }
    }

    /// The stopped thread that a command is about: the one it names, or the one of the stop.
    fn stopped_thread(&self, thread: Option<ThreadId>, what: &str) -> Result<ThreadId, AgentError> {
        self.alive()?;
        if self.phase != State::Stopped {
            return Err(AgentError::new(ErrorCode::TargetRunning, format!("the program is running; {what}"))
                .hint("call pause first"));
        }
        let focus = self.focus.map(|(thread, _)| thread);
        let Some(thread) = thread.or(focus) else {
            return Err(AgentError::new(ErrorCode::UnknownThread, "the program has no thread that could be looked at"));
        };
        if self.threads.contains_key(&thread) {
            return Ok(thread);
        }
        let known: Vec<String> = self.threads.keys().take(64).map(ToString::to_string).collect();
        Err(AgentError::new(ErrorCode::UnknownThread, format!("there is no thread {thread}"))
            .hint(format!("threads are: {}", known.join(", ")))
            .detail("threads", self.threads.keys().copied().collect::<Vec<_>>()))
    }

    fn exited_error(&self) -> AgentError {
        let how = match &self.exit {
            Some(Exit::Code(code)) => format!("the program has exited with code {code}"),
            Some(Exit::Signal(name)) => format!("the program was ended by {name}"),
            None => "the program has ended".to_owned(),
        };
        AgentError::new(ErrorCode::TargetExited, how).hint("start it again with launch")
    }
}

impl<P: Platform> Debugger for Engine<P> {
    fn waker(&self) -> Waker {
        Self::waker(self)
    }

    fn handle(&mut self, request: Request, reply: ReplyTo) {
        Self::handle(self, request, reply);
    }

    fn poll(&mut self, timeout: Duration) {
        Self::poll(self, timeout);
    }

    fn clients_changed(&mut self, connected: usize) {
        Self::clients_changed(self, connected);
    }

    fn shutdown(&mut self) {
        Self::shutdown(self);
    }
}

/// An error of the platform as an answer to a client; `doing` says what was tried.
fn refused(error: PlatformError, doing: &str) -> AgentError {
    let sentence = format!("{doing}: {error}");
    match error {
        PlatformError::NoProcess(_) | PlatformError::NotFound(_) => AgentError::new(ErrorCode::NotFound, sentence),
        PlatformError::NoThread(_) => AgentError::new(ErrorCode::UnknownThread, sentence)
            .hint("the thread has ended; list_threads shows those that live"),
        PlatformError::NotHeld(_) => AgentError::new(ErrorCode::TargetRunning, sentence).hint("call pause first"),
        PlatformError::Unmapped { .. } => AgentError::new(ErrorCode::AddressUnmapped, sentence),
        PlatformError::BadProgram(_) => AgentError::new(ErrorCode::UnsupportedProgram, sentence),
        PlatformError::Permission(_) => AgentError::new(ErrorCode::PermissionDenied, sentence),
        PlatformError::Timeout(_) => AgentError::new(ErrorCode::Timeout, sentence).hint("try again"),
        PlatformError::Unsupported(_) => AgentError::new(ErrorCode::Unsupported, sentence),
        PlatformError::NoDisplay(_) => AgentError::new(ErrorCode::NoDisplay, sentence)
            .hint("start the agent where the program's display can be reached (DISPLAY)"),
        PlatformError::NoWindow(_) => {
            AgentError::new(ErrorCode::NoWindow, sentence).hint("let the program run until it shows a window")
        }
        PlatformError::Os { .. } => AgentError::new(ErrorCode::Internal, sentence),
    }
}
