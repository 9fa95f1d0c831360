//! Holding threads and letting them go. The invariants of the whole engine live here: a thread that has been counted at
//! a breakpoint executes the instruction under it exactly once, no INT3 that a thread ran into is lost or counted twice,
//! and a stopped program shows no trace of scratch slots.

use super::{Engine, Signal, State, Stepping};
use crate::platform::{Event, Pending, Platform, PlatformError, Run, ThreadId};
use base::{VirtAddr, limits};
use code::x86::{FlowKind, PcMeaning};
use std::time::{Duration, Instant};
use wire::StopReport;

/// The flag that makes the processor trap after one instruction (Intel SDM volume 1, section 3.4.3.3).
const TRAP_FLAG: u64 = 0x100;
/// The opcodes of `pushf`, `popf` and `iret` (Intel SDM volume 2).
const PUSHF: u8 = 0x9c;
const POPF: u8 = 0x9d;
const IRET: u8 = 0xcf;

/// What became of a single step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alone {
    /// One instruction (or one iteration of a repeated one) has been executed, or the thread moved on in another way.
    Done,
    /// The instruction raised an exception, which is queued; it has not been executed.
    Faulted,
    /// Another event holds the thread; whether the instruction has been executed, its state says.
    Interrupted,
    /// The thread is in a system call that takes its time; it runs on and reports later.
    Late,
    /// The thread or the program is gone.
    Gone,
}

impl<P: Platform> Engine<P> {
    /// Brings every thread to a hold. What happened meanwhile is dealt with or queued; nothing runs afterwards, except
    /// a thread that could not be halted, which a note names.
    pub(super) fn hold(&mut self) {
        if !matches!(self.phase, State::Running | State::Stopped) || self.threads.values().all(|thread| thread.held) {
            return;
        }
        match self.platform.hold_all(Duration::from_millis(limits::HOLD_TIMEOUT_MS)) {
            Ok(events) => {
                for thread in self.threads.values_mut() {
                    thread.held = true;
                }
                // The end of a thread may stop the program: where the others stand must be known by then.
                let (standing, rest): (Vec<Event>, Vec<Event>) = events.into_iter().partition(|event| {
                    matches!(event, Event::Int3 { .. } | Event::Debug { .. } | Event::Exception { .. })
                });
                for event in standing.into_iter().chain(rest) {
                    self.absorb(event);
                }
            }
            Err(error) => {
                for (id, thread) in &mut self.threads {
                    thread.held = self.platform.registers(*id).is_ok();
                }
                let loose = self.threads.iter().filter(|(_, thread)| !thread.held).map(|(id, _)| id.to_string());
                let loose: Vec<String> = loose.collect();
                self.note(format!("thread {} did not halt: {error}", loose.join(", ")));
            }
        }
    }

    /// Takes in an event of a thread that is not to run on now.
    pub(super) fn absorb(&mut self, event: Event) {
        match event {
            Event::Int3 { thread, at } => {
                let ours = self.sites.is_planted(at) || !self.has_int3(at);
                let state = self.thread_mut(thread);
                state.held = true;
                state.stepping = None;
                if ours {
                    // It runs into it again, or past it when it had been counted before.
                    state.rewind = Some(at);
                    state.trap = true;
                    state.in_slot = false;
                    state.leaving = false;
                } else {
                    self.deferred.push_back(Event::Int3 { thread, at });
                }
            }
            Event::Debug { thread, single_step, slots } => {
                self.thread_mut(thread).held = true;
                let slots = slots & self.watched_slots();
                if slots == 0 && self.thread_mut(thread).stepping != Some(Stepping::Command) {
                    self.step_is_over(thread, single_step);
                } else {
                    self.deferred.push_back(Event::Debug { thread, single_step, slots });
                }
            }
            Event::Exception { thread, .. } => {
                self.thread_mut(thread).held = true;
                self.deferred.push_back(event);
            }
            // None of these lets a thread run.
            other => self.on_event(other),
        }
    }

    /// Whether the program's memory has an INT3 at `at` that is not ours.
    pub(super) fn has_int3(&self, at: VirtAddr) -> bool {
        let mut byte = [0];
        matches!(self.platform.read_memory(at, &mut byte), Ok(1)) && byte == [super::sites::INT3]
    }

    /// A step that the engine wanted for itself has ended.
    pub(super) fn step_is_over(&mut self, thread: ThreadId, single_step: bool) {
        let state = self.thread_mut(thread);
        let purpose = state.stepping.take();
        if purpose == Some(Stepping::Pass) && single_step {
            self.passed(thread);
        }
    }

    /// A thread has been stepped from a breakpoint that it was counted at. It is past it, unless that was one iteration of
    /// a repeated instruction.
    pub(super) fn passed(&mut self, thread: ThreadId) {
        let Some(at) = self.threads.get(&thread).and_then(|state| state.pass) else { return };
        let between = self.sites.may_repeat(at)
            && self.logical_pc(thread) == Some(at)
            && self.decode_at(at).is_some_and(|insn| insn.repeats);
        if !between && let Some(state) = self.threads.get_mut(&thread) {
            state.pass = None;
        }
    }

    /// An event of the platform while the engine was waiting for one.
    pub(super) fn take_event(&mut self, event: Event) {
        match event_thread(&event) {
            Some(thread) if !self.may_run(thread) => self.absorb(event),
            _ if self.phase == State::Running => self.on_event(event),
            _ => self.absorb(event),
        }
    }

    /// Whether this thread is to run, as things are.
    fn may_run(&self, thread: ThreadId) -> bool {
        self.phase == State::Running
            && self.shared_children.is_empty()
            && self.step.as_ref().is_none_or(|job| job.lets_others_run() || job.thread == thread)
    }

    /// Lets everything run that is to run. The one place where threads are let go; it does nothing while stopped.
    pub(super) fn run_on(&mut self) {
        let mut batch = limits::STEP_BATCH;
        self.unfinished = false;
        for round in 0..limits::RESUME_ROUNDS {
            self.unfinished = round + 1 == limits::RESUME_ROUNDS;
            if self.phase != State::Running || !self.shared_children.is_empty() {
                return;
            }
            if let Some(event) = self.next_deferred() {
                self.on_event(event);
                continue;
            }
            if self.step.as_ref().is_some_and(|job| job.wants_to_step()) {
                if batch == 0 {
                    return;
                }
                batch -= 1;
                self.hold();
                self.advance_step();
                continue;
            }
            let Some(thread) = self.needs_plain_pass() else {
                self.unfinished = false;
                break;
            };
            self.hold();
            if self.phase == State::Running && self.threads.contains_key(&thread) {
                self.pass_in_place(thread);
            }
        }
        let ready: Vec<ThreadId> =
            self.threads.iter().filter(|(_, state)| state.held).map(|(thread, _)| *thread).collect();
        for thread in ready {
            let queued = self.deferred.iter().any(|event| event_thread(event) == Some(thread));
            if !queued && self.may_run(thread) {
                self.let_run(thread);
            }
        }
    }

    /// The first queued event of a thread that may run.
    fn next_deferred(&mut self) -> Option<Event> {
        if self.deferred.is_empty() {
            return None;
        }
        let place = self.deferred.iter().position(|event| event_thread(event).is_none_or(|id| self.may_run(id)))?;
        self.deferred.remove(place)
    }

    /// A held thread that stands on a breakpoint it has been counted at, where no scratch slot helps.
    fn needs_plain_pass(&self) -> Option<ThreadId> {
        let found = self.threads.iter().find(|(thread, state)| {
            state.held
                && state
                    .pass
                    .is_some_and(|at| self.sites.is_planted(at) && (state.in_place || self.sites.slot(at).is_none()))
                && self.may_run(**thread)
                && self.logical_pc(**thread) == state.pass
        });
        found.map(|(thread, _)| *thread)
    }

    /// Program counter of a held thread, with an INT3 it ran into undone.
    pub(super) fn logical_pc(&self, thread: ThreadId) -> Option<VirtAddr> {
        let state = self.threads.get(&thread)?;
        state.rewind.or_else(|| self.platform.registers(thread).ok().map(|registers| registers.pc))
    }

    /// Writes an undone INT3 into the thread's registers.
    pub(super) fn flush_pc(&mut self, thread: ThreadId) {
        let Some(at) = self.threads.get_mut(&thread).and_then(|state| state.rewind.take()) else { return };
        let result = self.platform.set_pc(thread, at);
        self.tolerate(result, "setting a program counter");
    }

    /// Lets one held thread run, past the breakpoint it has been counted at.
    fn let_run(&mut self, thread: ThreadId) {
        self.apply_debug_registers(thread);
        let Some(state) = self.threads.get(&thread) else { return };
        let (pass, leaving, signal, trap) = (state.pass, state.leaving, state.signal, state.trap);
        let in_place = state.in_place;
        let here = pass.is_some_and(|at| self.sites.is_planted(at)) && self.logical_pc(thread) == pass;
        let bitness = self.bitness();
        let slot =
            pass.filter(|_| here && !in_place).and_then(|at| self.sites.slot_to_run(&mut self.platform, at, bitness));
        if here && slot.is_none() {
            // It can only be passed while all others hold; the next round does that.
            return;
        }
        if let Some(slot) = slot {
            let result = self.platform.set_pc(thread, slot);
            let state = self.thread_mut(thread);
            state.rewind = None;
            state.pass = None;
            state.in_slot = true;
            if result.is_err() {
                self.tolerate(result, "setting a program counter");
                return;
            }
            if signal.is_none() {
                return self.resume(thread, Run::Free, Pending::Discard);
            }
            // A handler that saw the slot's address could be led astray by it.
            self.thread_mut(thread).leaving = true;
            return self.step_out(thread);
        }
        if leaving {
            return self.step_out(thread);
        }
        self.flush_pc(thread);
        if signal.is_some() && trap {
            // A signal kept before can only be given at another stop than that of the trap.
            self.thread_mut(thread).leaving = true;
            return self.step_out(thread);
        }
        let state = self.thread_mut(thread);
        state.pass = None;
        state.signal = None;
        self.resume(thread, Run::Free, if signal.is_some() { Pending::Deliver } else { Pending::Discard });
    }

    fn step_out(&mut self, thread: ThreadId) {
        let state = self.thread_mut(thread);
        state.stepping = Some(Stepping::LeaveSlot);
        let pending = state.hold_back();
        self.resume(thread, Run::Step, pending);
    }

    fn resume(&mut self, thread: ThreadId, run: Run, pending: Pending) {
        let state = self.thread_mut(thread);
        state.held = false;
        state.trap = false;
        let result = self.platform.resume(thread, run, pending);
        self.tolerate(result, "letting a thread run");
    }

    /// A thread that dies can no longer be asked for anything; everything else is worth a note.
    pub(super) fn tolerate(&mut self, result: Result<(), PlatformError>, doing: &str) {
        match result {
            Ok(()) | Err(PlatformError::NoThread(_) | PlatformError::NoProcess(_)) => {}
            Err(error) => self.note(format!("{doing} failed: {error}")),
        }
    }

    /// Brings a thread past the breakpoint it stands on: the INT3 is taken out for one instruction. All threads are held.
    fn pass_in_place(&mut self, thread: ThreadId) {
        self.thread_mut(thread).in_place = false;
        match self.step_alone(thread, Stepping::Pass) {
            Alone::Done => self.passed(thread),
            Alone::Faulted => {
                if let Some(state) = self.threads.get_mut(&thread) {
                    state.pass = None;
                }
            }
            // The signal that was kept may be what the system call waits for.
            Alone::Late if self.threads.get(&thread).is_some_and(|state| state.signal.is_some()) => self.hold(),
            Alone::Interrupted | Alone::Late | Alone::Gone => {}
        }
    }

    /// Executes one instruction of a thread while all others hold, without the INT3 that may stand on it.
    pub(super) fn step_alone(&mut self, thread: ThreadId, purpose: Stepping) -> Alone {
        self.flush_pc(thread);
        self.apply_debug_registers(thread);
        let Ok(registers) = self.platform.registers(thread) else { return Alone::Gone };
        let lifted = registers.pc;
        let result = self.sites.lift(&mut self.platform, lifted);
        self.tolerate(result, "taking a breakpoint out");
        let on_flags = self.flags_instruction(lifted);
        let outcome = self.step_lifted(thread, purpose, lifted);
        if outcome == Alone::Done && registers.flags & TRAP_FLAG == 0 {
            self.hide_trap_flag(thread, lifted, on_flags);
        }
        if matches!(self.phase, State::Running | State::Stopped) {
            let result = self.sites.restore(&mut self.platform, lifted);
            self.tolerate(result, "putting a breakpoint back");
        }
        outcome
    }

    /// Whether the instruction at `at` hands over to the operating system.
    fn enters_system(&self, at: VirtAddr) -> bool {
        self.decode_at(at).is_some_and(|insn| matches!(insn.flow, FlowKind::Syscall | FlowKind::Interrupt))
    }

    /// The opcode and the length of the instruction at `at` if it stores or loads the flags.
    fn flags_instruction(&self, at: VirtAddr) -> Option<(u8, u64)> {
        match *self.peek(at, 2).as_slice() {
            [opcode @ (PUSHF | POPF | IRET), ..] => Some((opcode, 1)),
            [0x66 | 0x40..=0x4f, opcode @ (PUSHF | POPF | IRET)] => Some((opcode, 2)),
            _ => None,
        }
    }

    /// Takes the flag of a step at `at` out of where the program could see it. A `pushf` has written it to the stack,
    /// where programs look for a debugger. And Linux takes it for the program's own in the step after that of a `popf`,
    /// and leaves it set: the program would be ended by SIGTRAP when it runs on.
    fn hide_trap_flag(&mut self, thread: ThreadId, at: VirtAddr, on_flags: Option<(u8, u64)>) {
        let Ok(mut registers) = self.platform.registers(thread) else { return };
        match on_flags {
            // Those may set it by themselves.
            Some((POPF | IRET, _)) => {}
            Some((_, length)) if registers.pc == at.wrapping_add(length) => {
                // The second byte of what was pushed has the flag as its lowest bit.
                let place = VirtAddr::new(registers.sp().wrapping_add(1));
                if let [byte] = self.peek(place, 1).as_slice() {
                    let result = self.platform.write_memory(place, &[byte & !((TRAP_FLAG >> 8) as u8)]);
                    self.tolerate(result, "clearing the trap flag that was pushed");
                }
            }
            _ => {}
        }
        if registers.flags & TRAP_FLAG != 0 && !matches!(on_flags, Some((POPF | IRET, _))) {
            registers.flags &= !TRAP_FLAG;
            let result = self.platform.set_registers(thread, &registers);
            self.tolerate(result, "clearing the trap flag");
        }
    }

    fn step_lifted(&mut self, thread: ThreadId, purpose: Stepping, lifted: VirtAddr) -> Alone {
        let until = Instant::now() + Duration::from_millis(limits::STEP_GRACE_MS);
        // A system call may wait for the signal, or never come back: what a client steps gets it before, as it would alone.
        let give_first = purpose == Stepping::Command && self.enters_system(lifted);
        loop {
            let Some(state) = self.threads.get_mut(&thread) else { return Alone::Gone };
            state.stepping = Some(purpose);
            state.held = false;
            let pending = match state.signal {
                Some(Signal::Synchronous) => Pending::Deliver,
                Some(Signal::Asynchronous) if give_first && !state.trap => Pending::Deliver,
                Some(Signal::Asynchronous) => state.hold_back(),
                None => Pending::Discard,
            };
            state.trap = false;
            if pending == Pending::Deliver {
                state.signal = None;
            }
            let result = self.platform.resume(thread, Run::Step, pending);
            if result.is_err() {
                self.tolerate(result, "stepping a thread");
                return Alone::Gone;
            }
            match self.wait_for(thread, until) {
                None if self.phase == State::Exited || !self.threads.contains_key(&thread) => return Alone::Gone,
                None if self.threads.get(&thread).is_some_and(|state| state.held) => return Alone::Interrupted,
                None => return Alone::Late,
                Some(Event::Debug { slots, .. }) => {
                    let slots = slots & self.watched_slots();
                    let state = self.thread_mut(thread);
                    state.stepping = None;
                    if slots != 0 {
                        self.deferred.push_back(Event::Debug { thread, single_step: false, slots });
                    }
                    return Alone::Done;
                }
                Some(Event::Int3 { at, .. }) => {
                    self.thread_mut(thread).stepping = None;
                    if at == lifted && self.sites.is_site(at) && !self.sites.own_int3(at) {
                        // It was executed before the byte was put back.
                        let state = self.thread_mut(thread);
                        state.rewind = Some(at);
                        state.trap = true;
                        self.flush_pc(thread);
                        continue;
                    }
                    // The program's own INT3, under ours or not.
                    let event = self.platform.own_int3(thread);
                    self.deferred.push_back(event);
                    return Alone::Done;
                }
                Some(event @ Event::Exception { synchronous: true, .. }) => {
                    self.thread_mut(thread).stepping = None;
                    self.deferred.push_back(event);
                    return Alone::Faulted;
                }
                Some(event) => {
                    // A signal that came first: it is kept until the instruction is done.
                    self.thread_mut(thread).signal = Some(Signal::Asynchronous);
                    self.deferred.push_back(event);
                }
            }
        }
    }

    /// Waits for a Debug, Int3 or Exception event of one thread; all other events are taken in. `None` when the time is
    /// over, or the thread was held or lost by another event.
    fn wait_for(&mut self, thread: ThreadId, until: Instant) -> Option<Event> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.platform.wait(left) {
                Ok(Some(event)) => {
                    let own = event_thread(&event) == Some(thread);
                    if own {
                        self.thread_mut(thread).held = true;
                    }
                    if own && matches!(event, Event::Debug { .. } | Event::Int3 { .. } | Event::Exception { .. }) {
                        return Some(event);
                    }
                    self.absorb(event);
                    let lost = self.threads.get(&thread).is_none_or(|state| state.held);
                    if lost || self.phase == State::Exited {
                        return None;
                    }
                }
                // The waker has been used, or the time is over.
                Ok(None) if left.is_zero() => return None,
                Ok(None) => {}
                Err(error) => {
                    self.note(format!("waiting for the program failed: {error}"));
                    return None;
                }
            }
        }
    }

    /// Brings every held thread out of scratch memory, so that its program counter is one of the program's own.
    pub(super) fn settle(&mut self) {
        let held: Vec<ThreadId> =
            self.threads.iter().filter(|(_, state)| state.held).map(|(thread, _)| *thread).collect();
        for thread in held {
            self.flush_pc(thread);
            for _ in 0..limits::STEP_BATCH {
                if !self.settle_thread(thread) {
                    break;
                }
            }
        }
    }

    /// One move of a thread out of its slot; true when another is needed.
    fn settle_thread(&mut self, thread: ThreadId) -> bool {
        if !self.threads.get(&thread).is_some_and(|state| state.in_slot && state.held) {
            return false;
        }
        let Ok(mut registers) = self.platform.registers(thread) else { return false };
        let Some(place) = self.sites.locate(registers.pc) else {
            let state = self.thread_mut(thread);
            state.in_slot = false;
            state.leaving = false;
            return false;
        };
        let to = match place.meaning {
            Some(PcMeaning::Done(next)) => VirtAddr::new(next),
            Some(PcMeaning::NotYet) => {
                // It was counted; the instruction is executed when the thread runs again.
                self.thread_mut(thread).pass = Some(place.site);
                place.site
            }
            Some(PcMeaning::Between { undo_stack }) => match self.step_alone(thread, Stepping::LeaveSlot) {
                Alone::Faulted => {
                    registers.set_sp(registers.sp().wrapping_add(undo_stack));
                    registers.pc = place.site;
                    let result = self.platform.set_registers(thread, &registers);
                    self.tolerate(result, "undoing half a call");
                    let state = self.thread_mut(thread);
                    state.in_slot = false;
                    state.leaving = false;
                    return false;
                }
                outcome => return outcome == Alone::Done,
            },
            None => return self.step_alone(thread, Stepping::LeaveSlot) == Alone::Done,
        };
        let state = self.thread_mut(thread);
        state.in_slot = false;
        state.leaving = false;
        let result = self.platform.set_pc(thread, to);
        self.tolerate(result, "leaving a scratch slot");
        false
    }

    /// Stops the program for its clients: everything holds, and whoever waits is told.
    pub(super) fn stop(&mut self, thread: ThreadId, reason: String, report: StopReport) {
        self.hold();
        if self.phase != State::Running {
            return;
        }
        self.settle();
        if self.phase != State::Running {
            return;
        }
        self.stopped_here(thread, reason, report);
    }

    /// All threads hold already: the stop is made known.
    pub(super) fn stopped_here(&mut self, thread: ThreadId, reason: String, report: StopReport) {
        let thread =
            if self.threads.contains_key(&thread) { Some(thread) } else { self.threads.keys().next().copied() };
        self.phase = State::Stopped;
        self.generation += 1;
        self.reason = Some(reason);
        self.focus = thread.and_then(|thread| Some((thread, self.logical_pc(thread)?)));
        let report = self.complete(report);
        self.stop = Some(report);
        self.untold = self.step.is_none()
            && self.launching.is_none()
            && !self.waiters.iter().any(|waiter| waiter.reply.is_wanted());
        self.watch_orphan();
        self.tell_waiters();
    }

    /// Lets the program run for its clients.
    pub(super) fn start_running(&mut self) {
        self.phase = State::Running;
        self.generation += 1;
        self.reason = None;
        self.focus = None;
        self.stop = None;
        self.untold = false;
        self.watch_orphan();
    }

    /// Answers everybody who waits for the program to stop or to end.
    pub(super) fn tell_waiters(&mut self) {
        self.finish_step();
        self.finish_launch();
        for waiter in std::mem::take(&mut self.waiters) {
            waiter.reply.send(Ok(self.stop_reply(false)));
        }
        if self.phase == State::Exited
            && let Some(awaited) = self.ending.take()
        {
            awaited.reply.send(Ok(self.end_reply()));
        }
    }
}

/// The thread that an event is about, where it leaves one held or gone.
pub(super) fn event_thread(event: &Event) -> Option<ThreadId> {
    match event {
        Event::Int3 { thread, .. }
        | Event::Debug { thread, .. }
        | Event::Exception { thread, .. }
        | Event::ThreadStarted { thread }
        | Event::ThreadExited { thread }
        | Event::ModulesChanged { thread }
        | Event::Forked { thread, .. }
        | Event::Executed { thread, .. }
        | Event::DebugOutput { thread, .. }
        | Event::Other { thread, .. } => Some(*thread),
        Event::SharedChildGone { .. } | Event::ProcessExited(_) => None,
    }
}
