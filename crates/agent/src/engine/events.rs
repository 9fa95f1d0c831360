//! What each event of the platform means. Nothing here lets a thread run; that is decided afterwards, for all threads
//! together.

use super::breakpoints::Verdict;
use super::sites::Owner;
use super::{Engine, Signal, State, Stepping};
use crate::platform::{Event, Exit, Platform, ThreadId};
use base::{VirtAddr, limits};
use code::x86::PcMeaning;
use wire::{ExceptionReport, HexAddr, StopReport};

impl<P: Platform> Engine<P> {
    /// Deals with an event of a thread that runs for its clients, or with one that concerns the whole program.
    pub(super) fn on_event(&mut self, event: Event) {
        match event {
            Event::Int3 { thread, at } => self.on_int3(thread, at),
            Event::Debug { thread, single_step, slots } => self.on_debug(thread, single_step, slots),
            Event::Exception { thread, name, number, address, synchronous, fatal } => {
                let report = ExceptionReport { name, number, address: address.map(HexAddr) };
                self.on_exception(thread, report, synchronous, fatal);
            }
            Event::ThreadStarted { thread } => self.thread_mut(thread).held = true,
            Event::ThreadExited { thread } => self.on_thread_exited(thread),
            Event::ModulesChanged { thread } => {
                self.thread_mut(thread).held = true;
                self.modules_changed();
            }
            Event::Forked { thread, child, shares_memory } => self.on_forked(thread, child, shares_memory),
            Event::SharedChildGone { child } => {
                self.shared_children.remove(&child);
                if self.shared_children.is_empty() && self.sites.is_suspended() {
                    self.hold();
                    self.sites.unsuspend(&mut self.platform);
                }
            }
            Event::Executed { thread, path, bitness } => self.on_executed(thread, path, bitness),
            Event::DebugOutput { thread, text } => {
                self.thread_mut(thread).held = true;
                if self.debug_output.len() >= limits::MAX_DEBUG_OUTPUTS {
                    self.debug_output.pop_front();
                }
                self.debug_output.push_back(text.chars().take(limits::MAX_DEBUG_OUTPUT_CHARS).collect());
            }
            Event::Other { thread, raw } => {
                self.thread_mut(thread).held = true;
                self.note(format!("thread {thread} reported something unknown (0x{raw:x}); it goes on"));
            }
            Event::ProcessExited(exit) => self.on_exit(exit),
        }
    }

    fn on_int3(&mut self, thread: ThreadId, at: VirtAddr) {
        let state = self.thread_mut(thread);
        state.held = true;
        state.rewind = Some(at);
        state.trap = true;
        state.in_slot = false;
        state.leaving = false;
        state.stepping = None;
        let again = state.pass == Some(at);
        if !self.sites.is_planted(at) {
            if self.has_int3(at) {
                // The program's own: it gets what it asked for.
                let state = self.thread_mut(thread);
                state.rewind = None;
                state.trap = false;
                let event = self.platform.own_int3(thread);
                self.on_event(event);
            }
            // Otherwise ours was taken out while this was on its way: the thread executes what stands there now.
            return;
        }
        if again {
            return;
        }
        if self.sites.wanted_by(at, Owner::Entry) {
            return self.on_entry(thread, at);
        }
        if self.sites.wanted_by(at, Owner::Loader) {
            self.modules_changed();
        }
        let arrived = self.sites.wanted_by(at, Owner::Step) && self.step_arrives(thread, at);
        let verdict = self.judge_breakpoint(thread, at);
        if let Some(state) = self.threads.get_mut(&thread) {
            state.pass = Some(at);
        }
        if arrived {
            self.count_step();
        }
        match verdict {
            Verdict::Stop { reason, report } => self.stop(thread, reason, *report),
            Verdict::Pass if arrived => self.step_arrived(thread),
            Verdict::Pass => {}
        }
    }

    fn on_debug(&mut self, thread: ThreadId, single_step: bool, slots: u8) {
        let state = self.thread_mut(thread);
        state.held = true;
        let command = single_step && state.stepping == Some(Stepping::Command);
        self.step_is_over(thread, single_step);
        self.look_for_slot_exit(thread);
        if command {
            self.late_step_done(thread);
        }
        let slots = slots & self.watched_slots();
        if slots != 0
            && let Some((reason, report)) = self.judge_watchpoints(thread, slots)
        {
            self.stop(thread, reason, report);
        }
    }

    /// A thread that is being stepped out of its slot may have got there.
    fn look_for_slot_exit(&mut self, thread: ThreadId) {
        if !self.threads.get(&thread).is_some_and(|state| state.leaving) {
            return;
        }
        let Ok(registers) = self.platform.registers(thread) else { return };
        if let Some(place) = self.sites.locate(registers.pc) {
            let Some(PcMeaning::Done(next)) = place.meaning else { return };
            let result = self.platform.set_pc(thread, VirtAddr::new(next));
            self.tolerate(result, "leaving a scratch slot");
        }
        let state = self.thread_mut(thread);
        state.leaving = false;
        state.in_slot = false;
    }

    fn on_exception(&mut self, thread: ThreadId, report: ExceptionReport, synchronous: bool, fatal: bool) {
        let state = self.thread_mut(thread);
        state.held = true;
        state.stepping = None;
        state.signal = Some(if synchronous { Signal::Synchronous } else { Signal::Asynchronous });
        if state.in_slot {
            let again = synchronous && !fatal && !self.platform.handlers_see_set_registers();
            self.exception_in_slot(thread, synchronous, again);
        } else if synchronous {
            // The instruction at a breakpoint has failed: when it is tried again, that is a new execution.
            state.pass = None;
        }
        if fatal {
            let reason = format!("signal {}", report.name);
            let notes = vec!["the program has no handler for it; going on ends the program".to_owned()];
            self.stop(thread, reason, StopReport { exception: Some(report), notes, ..StopReport::default() });
        }
    }

    /// A handler must see the program's own program counter, and a counted instruction must be executed once. With `again` an
    /// instruction that failed is executed once more in its place, so that the exception comes from there.
    fn exception_in_slot(&mut self, thread: ThreadId, synchronous: bool, again: bool) {
        let Ok(mut registers) = self.platform.registers(thread) else { return };
        let Some(place) = self.sites.locate(registers.pc) else {
            let state = self.thread_mut(thread);
            state.in_slot = false;
            state.leaving = false;
            return;
        };
        let to = match place.meaning {
            Some(PcMeaning::Done(next)) => VirtAddr::new(next),
            Some(PcMeaning::NotYet) if synchronous => place.site,
            Some(PcMeaning::Between { undo_stack }) if synchronous => {
                registers.set_sp(registers.sp().wrapping_add(undo_stack));
                place.site
            }
            _ => {
                self.thread_mut(thread).leaving = true;
                return;
            }
        };
        registers.pc = to;
        let result = self.platform.set_registers(thread, &registers);
        self.tolerate(result, "leaving a scratch slot");
        let state = self.thread_mut(thread);
        state.in_slot = false;
        state.leaving = false;
        state.pass = None;
        if again && to == place.site {
            state.pass = Some(to);
            state.in_place = true;
            state.signal = None;
        }
    }

    fn on_thread_exited(&mut self, thread: ThreadId) {
        self.threads.remove(&thread);
        self.deferred.retain(|event| super::run::event_thread(event) != Some(thread));
        if self.step.as_ref().is_some_and(|job| job.thread == thread) && self.phase == State::Running {
            self.stop(
                thread,
                "thread_exited".to_owned(),
                StopReport {
                    notes: vec![format!("thread {thread} ended while it was being stepped")],
                    ..StopReport::default()
                },
            );
        } else if self.focus.is_some_and(|(focus, _)| focus == thread) && self.phase == State::Stopped {
            let other = self.threads.keys().next().copied();
            self.focus = other.and_then(|thread| Some((thread, self.logical_pc(thread)?)));
        }
    }

    fn on_forked(&mut self, thread: ThreadId, child: u32, shares_memory: bool) {
        self.thread_mut(thread).held = true;
        if shares_memory {
            self.shared_children.insert(child);
            self.hold();
            self.sites.suspend(&mut self.platform);
            let result = self.platform.run_shared_child(child);
            if result.is_err() {
                self.shared_children.remove(&child);
                self.sites.unsuspend(&mut self.platform);
            }
            self.tolerate(result, "letting a child process run");
        } else {
            let originals = self.sites.originals();
            let result = self.platform.release_fork(child, &originals);
            self.tolerate(result, "letting a child process run");
        }
    }

    fn on_executed(&mut self, thread: ThreadId, path: std::path::PathBuf, bitness: code::x86::Bitness) {
        self.forget_memory();
        self.threads.clear();
        self.thread_mut(thread).held = true;
        let shown = path.display().to_string();
        if let Some(target) = &mut self.target {
            target.path = path;
            target.bitness = bitness;
            target.entry = None;
        }
        let entry = self.platform.entry_point().ok();
        if let Some(target) = &mut self.target {
            target.entry = entry;
        }
        let mut notes = vec![format!("the process executes {shown} now")];
        let dropped = self.drop_watchpoints();
        if dropped > 0 {
            notes.push(format!("{dropped} watchpoints of the former program were removed"));
        }
        self.modules_changed();
        let pending = self.breakpoints.iter().filter(|breakpoint| breakpoint.at.is_none()).count();
        if pending > 0 {
            notes.push(format!("{pending} breakpoints are pending in the new program"));
        }
        if self.phase == State::Running {
            self.stopped_here(thread, "exec".to_owned(), StopReport { notes, ..StopReport::default() });
        } else {
            for note in notes {
                self.note(note);
            }
        }
    }

    pub(super) fn on_exit(&mut self, exit: Exit) {
        self.forget_memory();
        self.threads.clear();
        self.drop_watchpoints();
        self.phase = State::Exited;
        self.generation += 1;
        self.reason = Some("exited".to_owned());
        self.focus = None;
        self.stop = None;
        self.exit = Some(exit);
        self.watch_orphan();
        self.tell_waiters();
    }

    /// The memory that everything planted was in is gone.
    pub(super) fn forget_memory(&mut self) {
        self.sites.clear();
        self.deferred.clear();
        self.shared_children.clear();
        self.loader = None;
        self.world.forget();
        for breakpoint in &mut self.breakpoints {
            breakpoint.at = None;
        }
    }
}
