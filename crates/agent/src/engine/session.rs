//! Taking hold of a program, letting it run, and letting it go.

use super::report::arch;
use super::sites::Owner;
use super::{Awaited, Engine, OnExit, State, Target, Waiter, refused};
use crate::platform::{Event, LaunchSpec, Platform, Started, ThreadId};
use crate::reply::{Outcome, ReplyTo};
use base::{VirtAddr, limits};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use wire::commands::{
    Attach, ContinueExecution, EndReply, Hello, HelloReply, IfRunning, Launch, PauseReply, ProcessReply, StatusReply,
    StopAt,
};
use wire::{AgentError, ErrorCode, HexAddr, Reply, StopReport};

impl<P: Platform> Engine<P> {
    pub(super) fn hello(&self, params: &Hello) -> Outcome {
        if let Some(version) = params.protocol.filter(|version| *version != wire::PROTOCOL_VERSION) {
            return Err(AgentError::new(
                ErrorCode::InvalidParams,
                format!("this agent speaks protocol {}, not {version}", wire::PROTOCOL_VERSION),
            )
            .hint("use a client and an agent of the same version")
            .detail("protocol", wire::PROTOCOL_VERSION));
        }
        let on_exit = match self.options.on_exit {
            OnExit::Detach => "detach",
            OnExit::Kill => "kill",
        };
        Ok(Reply::Hello(HelloReply {
            agent: "retroscope-agent".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            protocol: wire::PROTOCOL_VERSION,
            platform: self.platform.name().to_owned(),
            archs: self.platform.archs().iter().map(|bitness| arch(*bitness).to_owned()).collect(),
            features: self.platform.features().iter().map(|feature| (*feature).to_owned()).collect(),
            agent_pid: std::process::id(),
            on_exit: on_exit.to_owned(),
            live: self.live(),
        }))
    }

    fn must_be_free(&self) -> Result<(), AgentError> {
        match &self.target {
            Some(target) if matches!(self.phase, State::Running | State::Stopped) => Err(AgentError::new(
                ErrorCode::AlreadyDebugging,
                format!("{} (process {}) is being debugged", target.path.display(), target.pid),
            )
            .hint("detach from it or terminate it first")
            .detail("pid", target.pid)),
            _ => Ok(()),
        }
    }

    pub(super) fn launch(&mut self, params: Launch, reply: ReplyTo) {
        match self.begin_launch(params) {
            Ok(None) => {
                self.launching = Some(Awaited { reply, until: deadline(limits::COMMAND_TIMEOUT_MS) });
                self.run_on();
            }
            Ok(Some(done)) => reply.send(Ok(done)),
            Err(error) => reply.send(Err(error)),
        }
    }

    /// Starts the program; `None` when its entry point is still to be reached.
    fn begin_launch(&mut self, params: Launch) -> Result<Option<Reply>, AgentError> {
        self.must_be_free()?;
        let strings = params.args.as_ref().map_or(0, Vec::len) + params.env.as_ref().map_or(0, |env| env.len());
        if strings > limits::MAX_LAUNCH_STRINGS {
            return Err(AgentError::new(
                ErrorCode::LimitExceeded,
                format!("{strings} arguments and variables; at most {} may be given", limits::MAX_LAUNCH_STRINGS),
            )
            .detail("limit", limits::MAX_LAUNCH_STRINGS));
        }
        let path = self.executable(&params.path)?;
        if params.if_running != IfRunning::StartNew {
            let running = self
                .platform
                .find_processes(&path.to_string_lossy())
                .map_err(|error| refused(error, "looking for a running process"))?;
            let pids: Vec<u32> = running.iter().map(|process| process.pid).collect();
            match (params.if_running, pids.as_slice()) {
                (_, []) => {}
                (IfRunning::Attach, [pid]) => return self.take_hold(*pid).map(Some),
                (IfRunning::Attach, _) => return Err(several(&path.display().to_string(), &pids)),
                _ => {
                    return Err(AgentError::new(ErrorCode::AlreadyRunning, format!("{} runs already", path.display()))
                        .hint("attach to it, or launch with if_running: start_new")
                        .detail("pids", pids));
                }
            }
        }
        let parent = path.parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf);
        let spec = LaunchSpec {
            cwd: params.cwd.map_or(parent, PathBuf::from),
            path: path.clone(),
            args: params.args.unwrap_or_default(),
            env: params.env.unwrap_or_default(),
            die_with_agent: self.options.on_exit == OnExit::Kill,
        };
        if !spec.cwd.is_dir() {
            return Err(AgentError::new(
                ErrorCode::NotFound,
                format!("the working folder {} does not exist", spec.cwd.display()),
            )
            .hint("cwd is a folder on the machine of the agent"));
        }
        let started = self.platform.launch(&spec).map_err(|error| {
            let mut error = refused(error, &format!("launching {}", path.display()));
            if error.code == ErrorCode::Internal {
                error.code = ErrorCode::LaunchFailed;
            }
            error
        })?;
        let thread = started.thread;
        self.begin(started, false);
        self.start_running();
        self.modules_changed();
        let entry = self.target.as_ref().and_then(|target| target.entry);
        match (params.stop_at, entry) {
            (StopAt::Loader, _) => self.stopped_here(thread, "loader".to_owned(), StopReport::default()),
            (StopAt::Entry, Some(at)) if self.logical_pc(thread) == Some(at) => {
                self.stopped_here(thread, "entry".to_owned(), StopReport::default());
            }
            (StopAt::Entry, Some(at)) => match self.plant(at, Owner::Entry) {
                Ok(()) => return Ok(None),
                Err(error) => self.stop_early(thread, &error.message),
            },
            (StopAt::Entry, None) => self.stop_early(thread, "the entry point is not known"),
        }
        Ok(Some(self.process_reply()))
    }

    fn stop_early(&mut self, thread: ThreadId, why: &str) {
        let notes = vec![format!("stopped before the entry point: {why}")];
        self.stopped_here(thread, "loader".to_owned(), StopReport { notes, ..StopReport::default() });
    }

    /// The executable that a client names, checked against the folders that programs may be launched from.
    fn executable(&self, given: &str) -> Result<PathBuf, AgentError> {
        if given.is_empty() || given.contains('\0') {
            return Err(AgentError::new(ErrorCode::InvalidParams, "`path` is no path of a file")
                .hint("give the path of the executable on the machine of the agent"));
        }
        let full = std::path::absolute(given).unwrap_or_else(|_| PathBuf::from(given));
        let not_there = |error: std::io::Error| {
            let code = match error.kind() {
                std::io::ErrorKind::PermissionDenied => ErrorCode::PermissionDenied,
                _ => ErrorCode::NotFound,
            };
            AgentError::new(code, format!("{} cannot be opened: {error}", full.display()))
                .hint("the path is looked up on the machine of the agent")
                .detail("path", full.display().to_string())
        };
        let real = plain(full.canonicalize().map_err(not_there)?);
        if !self.options.launch_roots.is_empty() {
            let inside = self
                .options
                .launch_roots
                .iter()
                .any(|root| root.canonicalize().is_ok_and(|root| real.starts_with(plain(root))));
            if !inside {
                let roots: Vec<String> =
                    self.options.launch_roots.iter().map(|root| root.display().to_string()).collect();
                return Err(AgentError::new(
                    ErrorCode::PathRefused,
                    format!("{} is not below a folder that programs may be launched from", real.display()),
                )
                .hint(format!("allowed are: {}", roots.join(", ")))
                .detail("launch_roots", roots));
            }
        }
        if real.is_dir() {
            return Err(AgentError::new(ErrorCode::LaunchFailed, format!("{} is a folder", real.display()))
                .hint("give the path of the executable file in it"));
        }
        if !real.is_file() {
            return Err(AgentError::new(
                ErrorCode::LaunchFailed,
                format!("{} is a pipe or a device, not a file", real.display()),
            )
            .hint("give the path of an executable file"));
        }
        Ok(real)
    }

    pub(super) fn attach(&mut self, params: &Attach) -> Outcome {
        self.must_be_free()?;
        let pid = match (params.pid, &params.name) {
            (Some(pid), None) => pid,
            (None, Some(name)) => {
                let found =
                    self.platform.find_processes(name).map_err(|error| refused(error, "looking for a process"))?;
                let pids: Vec<u32> = found.iter().map(|process| process.pid).collect();
                match pids.as_slice() {
                    [] => {
                        return Err(AgentError::new(ErrorCode::NotFound, format!("no process runs {name}"))
                            .hint("the name is the executable's file name or full path; or give its pid"));
                    }
                    [pid] => *pid,
                    _ => return Err(several(name, &pids)),
                }
            }
            _ => {
                return Err(AgentError::new(ErrorCode::InvalidParams, "one of `pid` and `name` is needed, not both"));
            }
        };
        self.take_hold(pid)
    }

    fn take_hold(&mut self, pid: u32) -> Outcome {
        let started =
            self.platform.attach(pid).map_err(|error| refused(error, &format!("attaching to process {pid}")))?;
        let thread = started.thread;
        self.begin(started, true);
        self.start_running();
        self.modules_changed();
        if self.phase == State::Running {
            self.stopped_here(thread, "attach".to_owned(), StopReport::default());
        }
        Ok(self.process_reply())
    }

    /// A program has been taken hold of; all its threads hold.
    fn begin(&mut self, started: Started, attached: bool) {
        self.forget_program();
        self.exit = None;
        self.notes.clear();
        self.debug_output.clear();
        let held = super::Thread { held: true, ..super::Thread::default() };
        self.threads = self.platform.threads().into_iter().map(|thread| (thread, held.clone())).collect();
        self.threads.entry(started.thread).or_insert(held);
        // Registers of a former debugger, or of an attach before, may still be set.
        self.debug_version += 1;
        let entry = self.platform.entry_point().ok();
        self.target = Some(Target { pid: started.pid, path: started.path, bitness: started.bitness, attached, entry });
    }

    /// The loader has changed the module list, or may have. Leaves every thread held.
    pub(super) fn modules_changed(&mut self) {
        self.world.stale();
        self.hold();
        if !matches!(self.phase, State::Running | State::Stopped) {
            return;
        }
        let place = self.platform.loader_breakpoint();
        if place != self.loader {
            if let Some(old) = self.loader.take() {
                self.unplant(old, Owner::Loader);
            }
            if let Some(at) = place {
                match self.plant(at, Owner::Loader) {
                    Ok(()) => self.loader = Some(at),
                    Err(error) => self.note(format!("libraries loaded later are not noticed: {}", error.message)),
                }
            }
        }
        self.resolve_pending();
    }

    /// A launched program has reached its entry point.
    pub(super) fn on_entry(&mut self, thread: ThreadId, at: VirtAddr) {
        self.unplant(at, Owner::Entry);
        self.modules_changed();
        self.stop(thread, "entry".to_owned(), StopReport::default());
    }

    fn process_reply(&mut self) -> Reply {
        let modules = self.modules();
        let Some(target) = self.target.clone() else { return self.end_reply() };
        self.untold = false;
        Reply::Process(ProcessReply {
            pid: target.pid,
            path: target.path.display().to_string(),
            arch: arch(target.bitness).to_owned(),
            attached: target.attached,
            entry: target.entry.map(HexAddr),
            base: modules.iter().find(|module| module.main).map(|module| HexAddr(module.base)),
            threads: u32::try_from(self.threads.len()).unwrap_or(u32::MAX),
            stop: self.stop.clone().unwrap_or_default(),
            live: self.live(),
        })
    }

    /// Answers the client of a launch, once it has come to a stop or to an end.
    pub(super) fn finish_launch(&mut self) {
        let Some(awaited) = self.launching.take() else { return };
        let outcome = match self.phase {
            State::Stopped | State::Running => Ok(self.process_reply()),
            State::Exited => {
                let how = self.exited_error().message;
                Err(AgentError::new(ErrorCode::LaunchFailed, format!("before its entry point was reached, {how}"))
                    .hint("a library may be missing: run the program in a terminal and read what it says"))
            }
            State::NotLaunched => Err(AgentError::new(
                ErrorCode::LaunchFailed,
                "the program was let go before its entry point was reached",
            )),
        };
        awaited.reply.send(outcome);
    }

    pub(super) fn launch_is_late(&mut self) {
        let Some(awaited) = self.launching.take() else { return };
        let mut reply = self.process_reply();
        if let Reply::Process(process) = &mut reply {
            process.stop.notes.push(format!(
                "the entry point was not reached within {} s; the program runs on and stops there: call continue_execution to wait for it",
                limits::COMMAND_TIMEOUT_MS / 1000
            ));
        }
        awaited.reply.send(Ok(reply));
    }

    pub(super) fn continue_execution(&mut self, params: &ContinueExecution, reply: ReplyTo) {
        let wait = match self.alive().map(|_| ()).and_then(|()| wait_time("timeout", params.timeout)) {
            Ok(wait) => wait,
            Err(error) => return reply.send(Err(error)),
        };
        if self.phase == State::Stopped {
            if std::mem::take(&mut self.untold) {
                // Resuming now would lose it: the caller cannot have known.
                if let Some(stop) = &mut self.stop {
                    stop.notes.push(
                        "the program stopped here before this call, while nobody waited; it was not resumed".to_owned(),
                    );
                }
                return reply.send(Ok(self.stop_reply(false)));
            }
            self.start_running();
        }
        let now = Instant::now();
        self.waiters.push(Waiter { reply, until: now.checked_add(wait).unwrap_or(now) });
        self.run_on();
        self.expire(now);
    }

    pub(super) fn pause(&mut self) -> Outcome {
        self.alive()?;
        let how = match self.phase {
            State::Stopped => "already_stopped",
            _ => {
                let main = self.target.as_ref().map(|target| target.pid).filter(|pid| self.threads.contains_key(pid));
                let thread = main.or_else(|| self.threads.keys().next().copied()).unwrap_or_default();
                self.stop(thread, "pause".to_owned(), StopReport::default());
                "interrupt"
            }
        };
        if self.phase == State::Exited {
            return Err(self.exited_error());
        }
        self.untold = false;
        Ok(Reply::Pause(PauseReply { how: how.to_owned(), stop: self.stop.clone(), live: self.live() }))
    }

    pub(super) fn status(&mut self) -> Reply {
        self.untold = false;
        let target = self.target.as_ref();
        Reply::Status(StatusReply {
            pid: target.map(|target| target.pid),
            path: target.map(|target| target.path.display().to_string()),
            arch: target.map(|target| arch(target.bitness).to_owned()),
            threads: target.map(|_| u32::try_from(self.threads.len()).unwrap_or(u32::MAX)),
            breakpoint_count: u32::try_from(self.breakpoints.len()).unwrap_or(u32::MAX),
            watchpoint_count: u32::try_from(self.watches.iter().flatten().count()).unwrap_or(u32::MAX),
            waiting: !self.waiters.is_empty() || self.step.is_some() || self.launching.is_some(),
            debug_output: self.debug_output.iter().cloned().collect(),
            stop: self.stop.clone(),
            live: self.live(),
        })
    }

    pub(super) fn detach(&mut self) -> Outcome {
        if self.phase == State::Exited {
            return Ok(self.ended_already());
        }
        let pid = self.alive()?.pid;
        let notes = self.let_go("detached");
        if self.phase == State::Exited {
            return Ok(self.ended_already());
        }
        Ok(Reply::End(EndReply { pid, notes, live: self.live() }))
    }

    pub(super) fn terminate(&mut self, reply: ReplyTo) {
        if self.phase == State::Exited {
            return reply.send(Ok(self.ended_already()));
        }
        let killed = self.alive().map(|target| target.pid);
        let killed = killed
            .and_then(|pid| self.platform.kill().map_err(|error| refused(error, &format!("ending process {pid}"))));
        match killed {
            Ok(()) => self.ending = Some(Awaited { reply, until: deadline(limits::COMMAND_TIMEOUT_MS) }),
            Err(error) => reply.send(Err(error)),
        }
    }

    fn ended_already(&self) -> Reply {
        let mut reply = self.end_reply();
        if let Reply::End(end) = &mut reply {
            end.notes.push("the program had ended already".to_owned());
        }
        reply
    }

    /// Ends the program and waits for that, within a bound.
    pub(super) fn kill_now(&mut self) {
        let result = self.platform.kill();
        self.tolerate(result, "ending the program");
        let until = deadline(limits::HOLD_TIMEOUT_MS);
        while self.phase != State::Exited {
            let left = until.saturating_duration_since(Instant::now());
            match self.platform.wait(left) {
                Ok(Some(Event::ProcessExited(exit))) => self.on_exit(exit),
                Ok(None) if left.is_zero() => break,
                Ok(_) => {}
                Err(_) => break,
            }
        }
    }

    /// Lets the program go on without us, with nothing of ours left in it.
    pub(super) fn let_go(&mut self, reason: &str) -> Vec<String> {
        self.orphan_since = None;
        if matches!(self.phase, State::Running | State::Stopped) {
            self.hold();
            self.settle();
        }
        if self.phase == State::Exited {
            // It had ended, or did so while it was being let go; its exit is to be seen.
            return std::mem::take(&mut self.notes);
        }
        if matches!(self.phase, State::Running | State::Stopped) {
            for event in std::mem::take(&mut self.deferred) {
                match event {
                    // It executes its own INT3 once more, and gets what it asked for.
                    Event::Int3 { thread, at } => {
                        let result = self.platform.set_pc(thread, at);
                        self.tolerate(result, "setting a program counter");
                    }
                    Event::Forked { .. } | Event::ProcessExited(_) => self.on_event(event),
                    _ => {}
                }
            }
            self.drop_watchpoints();
            let threads: Vec<ThreadId> = self.threads.keys().copied().collect();
            for thread in threads {
                self.apply_debug_registers(thread);
            }
            let loose = self.threads.values().any(|thread| !thread.held);
            self.sites.remove_all(&mut self.platform, loose);
            let result = self.platform.detach();
            self.tolerate(result, "detaching");
        }
        self.forget_program();
        self.target = None;
        self.exit = None;
        self.phase = State::NotLaunched;
        self.generation += 1;
        self.reason = Some(reason.to_owned());
        self.tell_waiters();
        if let Some(awaited) = self.ending.take() {
            awaited.reply.send(Err(AgentError::new(ErrorCode::NotLaunched, "the program was let go before it ended")));
        }
        std::mem::take(&mut self.notes)
    }

    /// Everything about the last program is forgotten, but not the breakpoints.
    fn forget_program(&mut self) {
        self.forget_memory();
        self.drop_watchpoints();
        self.threads.clear();
        self.focus = None;
        self.stop = None;
    }
}

/// The path without the prefix that Windows puts before a canonical one, which old programs do not understand.
fn plain(path: PathBuf) -> PathBuf {
    match path.to_str().and_then(|text| text.strip_prefix(r"\\?\")) {
        Some(rest) if rest.as_bytes().get(1) == Some(&b':') => PathBuf::from(rest),
        _ => path,
    }
}

fn several(name: &str, pids: &[u32]) -> AgentError {
    let list: Vec<String> = pids.iter().map(ToString::to_string).collect();
    AgentError::new(ErrorCode::Ambiguous, format!("{} processes run {name}", pids.len()))
        .hint(format!("attach to one by its pid: {}", list.join(", ")))
        .detail("pids", pids)
}

fn deadline(milliseconds: u64) -> Instant {
    Instant::now() + Duration::from_millis(milliseconds)
}

/// A waiting time that a client gave, in seconds.
pub(super) fn wait_time(name: &str, seconds: f64) -> Result<Duration, AgentError> {
    let most = limits::MAX_CONTINUE_TIMEOUT_S;
    match Duration::try_from_secs_f64(seconds) {
        Ok(wait) if wait <= Duration::from_secs(most) => Ok(wait),
        _ => Err(AgentError::new(
            ErrorCode::InvalidParams,
            format!("`{name}` is {seconds}; allowed are 0 to {most} seconds"),
        )
        .hint("10 is a good choice; call again to go on waiting")
        .detail("least", 0)
        .detail("most", most)),
    }
}
