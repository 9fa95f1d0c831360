//! Stepping for clients: one instruction, over a call, or out of the function.

use super::breakpoints::Verdict;
use super::run::Alone;
use super::session::wait_time;
use super::sites::Owner;
use super::{Engine, State, Stepping};
use crate::platform::{Platform, ThreadId};
use crate::reply::ReplyTo;
use base::{VirtAddr, limits};
use std::collections::VecDeque;
use std::time::Instant;
use wire::commands::{Step, StepMode, StepReply};
use wire::{AgentError, ErrorCode, Reply, StopReport};

/// A step command in progress.
pub(super) struct StepJob {
    pub(super) reply: ReplyTo,
    pub(super) until: Instant,
    pub(super) thread: ThreadId,
    mode: StepMode,
    count: u32,
    done: u32,
    /// Program counters of the instructions executed, the last ones.
    trace: VecDeque<VirtAddr>,
    /// A step has just ended, and the breakpoint that may stand there has not been looked at.
    fresh: bool,
    phase: StepPhase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StepPhase {
    /// Between two steps; all threads hold.
    Ready,
    /// One instruction takes its time in the system; everything runs.
    Late,
    /// Everything runs until the thread comes to `at` with its stack pointer above `slot`.
    RunTo { at: VirtAddr, slot: u64 },
}

impl StepJob {
    /// The next instruction is to be stepped with all others held.
    pub(super) fn wants_to_step(&self) -> bool {
        self.phase == StepPhase::Ready
    }

    pub(super) fn lets_others_run(&self) -> bool {
        self.phase != StepPhase::Ready
    }
}

impl<P: Platform> Engine<P> {
    pub(super) fn start_step(&mut self, params: &Step, reply: ReplyTo) {
        match self.prepare_step(params) {
            Ok((thread, count, until)) => {
                self.start_running();
                self.step = Some(StepJob {
                    reply,
                    until,
                    thread,
                    mode: params.mode,
                    count,
                    done: 0,
                    trace: VecDeque::new(),
                    fresh: false,
                    phase: StepPhase::Ready,
                });
                self.run_on();
            }
            Err(error) => reply.send(Err(error)),
        }
    }

    fn prepare_step(&mut self, params: &Step) -> Result<(ThreadId, u32, Instant), AgentError> {
        let thread = self.stopped_thread(params.thread, "only a stopped program can be stepped")?;
        let count = params.count.unwrap_or(1);
        if count == 0 || count > limits::MAX_STEP_COUNT {
            return Err(AgentError::new(
                ErrorCode::InvalidParams,
                format!("`count` is {count}; allowed are 1 to {}", limits::MAX_STEP_COUNT),
            )
            .detail("least", 1)
            .detail("most", limits::MAX_STEP_COUNT));
        }
        let seconds = params.timeout.unwrap_or(limits::DEFAULT_CONTINUE_TIMEOUT_S as f64);
        let wait = wait_time("timeout", seconds)?;
        if params.mode == StepMode::Out {
            self.caller(thread)?;
        }
        let now = Instant::now();
        Ok((thread, count, now.checked_add(wait).unwrap_or(now)))
    }

    /// Where the present function of a thread returns to, and where on the stack that is written.
    fn caller(&mut self, thread: ThreadId) -> Result<(VirtAddr, u64), AgentError> {
        self.return_of(thread).ok_or_else(|| {
            AgentError::new(ErrorCode::NotFound, "the caller of the present function cannot be found on the stack")
                .hint("set a breakpoint where it should come back to, and continue")
        })
    }

    /// The next move of a step command; all threads hold.
    pub(super) fn advance_step(&mut self) {
        let Some(job) = &mut self.step else { return };
        let thread = job.thread;
        if self.phase != State::Running {
            return;
        }
        if std::mem::take(&mut job.fresh) {
            let counted = self.threads.get(&thread).and_then(|state| state.pass);
            let here = self.logical_pc(thread).filter(|at| self.sites.wanted_by(*at, Owner::User));
            if let Some(at) = here.filter(|_| here != counted) {
                let verdict = self.judge_breakpoint(thread, at);
                if let Some(state) = self.threads.get_mut(&thread) {
                    state.pass = Some(at);
                }
                if let Verdict::Stop { reason, report } = verdict {
                    return self.stop(thread, reason, *report);
                }
            }
            if self.step.as_ref().is_some_and(|job| job.done >= job.count) {
                return self.stop(thread, "step".to_owned(), StopReport::default());
            }
        }
        let Some(pc) = self.logical_pc(thread) else { return };
        self.count_start(thread, pc);
        let Some(mode) = self.step.as_ref().map(|job| job.mode) else { return };
        let target = match mode {
            StepMode::Into => None,
            StepMode::Over => self.end_of_call(thread, pc),
            StepMode::Out => match self.caller(thread) {
                Ok(target) => Some(target),
                Err(error) => {
                    let notes = vec![error.message];
                    return self.stop(thread, "step".to_owned(), StopReport { notes, ..StopReport::default() });
                }
            },
        };
        match target {
            None => self.step_one(thread, pc),
            Some((at, slot)) => self.run_to(thread, at, slot),
        }
    }

    /// A step that begins on a breakpoint which the thread has not been counted at executes it: that is a hit.
    fn count_start(&mut self, thread: ThreadId, pc: VirtAddr) {
        let counted = self.threads.get(&thread).is_some_and(|state| state.pass == Some(pc));
        if !counted && self.sites.wanted_by(pc, Owner::User) {
            drop(self.judge_breakpoint(thread, pc));
            if let Some(state) = self.threads.get_mut(&thread) {
                state.pass = Some(pc);
            }
        }
    }

    /// Where a call or a repeated instruction at `pc` ends, and the stack address that must be left behind.
    fn end_of_call(&mut self, thread: ThreadId, pc: VirtAddr) -> Option<(VirtAddr, u64)> {
        let insn = self.decode_at(pc).filter(|insn| insn.is_call() || insn.repeats)?;
        let sp = self.platform.registers(thread).ok()?.sp();
        let end = VirtAddr::new(self.bitness().wrap(insn.end()));
        Some((end, sp.wrapping_sub(self.bitness().pointer_bytes())))
    }

    fn step_one(&mut self, thread: ThreadId, pc: VirtAddr) {
        match self.step_alone(thread, Stepping::Command) {
            Alone::Done => {
                self.passed(thread);
                self.step_done(pc);
            }
            Alone::Late => {
                if let Some(job) = &mut self.step {
                    job.phase = StepPhase::Late;
                    remember(&mut job.trace, pc);
                }
            }
            Alone::Faulted | Alone::Interrupted | Alone::Gone => {}
        }
    }

    fn step_done(&mut self, pc: VirtAddr) {
        if let Some(job) = &mut self.step {
            remember(&mut job.trace, pc);
            job.done += 1;
            job.fresh = true;
        }
    }

    /// A single step that took its time in the system has ended.
    pub(super) fn late_step_done(&mut self, thread: ThreadId) {
        let Some(job) = self.step.as_mut().filter(|job| job.thread == thread) else { return };
        if matches!(job.phase, StepPhase::Late | StepPhase::Ready) {
            job.phase = StepPhase::Ready;
            job.done += 1;
            job.fresh = true;
            self.passed(thread);
        }
    }

    fn run_to(&mut self, thread: ThreadId, at: VirtAddr, slot: u64) {
        match self.plant(at, Owner::Step) {
            Ok(()) => {
                if let Some(job) = &mut self.step {
                    job.phase = StepPhase::RunTo { at, slot };
                }
            }
            Err(error) => {
                let notes = vec![format!("the step ends here: {}", error.message)];
                self.stop(thread, "step".to_owned(), StopReport { notes, ..StopReport::default() });
            }
        }
    }

    /// Whether a thread that came to the end of a step over or out is the one that is being stepped, in the same call.
    pub(super) fn step_arrives(&self, thread: ThreadId, at: VirtAddr) -> bool {
        let Some(job) = self.step.as_ref().filter(|job| job.thread == thread) else { return false };
        match job.phase {
            StepPhase::RunTo { at: target, slot } if target == at => {
                self.platform.registers(thread).is_ok_and(|registers| registers.sp() > slot)
            }
            _ => false,
        }
    }

    /// The step has led where it was to lead; a breakpoint there may still be the reason of the stop.
    pub(super) fn count_step(&mut self) {
        if let Some(job) = &mut self.step {
            job.done += 1;
        }
    }

    /// A step over or out has ended, with nothing else to report there.
    pub(super) fn step_arrived(&mut self, thread: ThreadId) {
        self.hold();
        self.clear_run_to();
        let Some(job) = &mut self.step else { return };
        job.phase = StepPhase::Ready;
        if job.done >= job.count {
            self.stop(thread, "step".to_owned(), StopReport::default());
        }
    }

    /// Takes the temporary INT3 out.
    fn clear_run_to(&mut self) {
        let Some(job) = &self.step else { return };
        if let StepPhase::RunTo { at, .. } = job.phase
            && matches!(self.phase, State::Running | State::Stopped)
        {
            self.unplant(at, Owner::Step);
        }
    }

    /// The time is up, or the client has gone: the program runs on.
    pub(super) fn give_up_step(&mut self) {
        self.clear_run_to();
        // Holding the threads may have ended the step.
        let Some(job) = self.step.take() else { return };
        self.run_on();
        let reply = self.step_reply(&job, true);
        job.reply.send(Ok(reply));
    }

    /// Answers the client of a step, once the program has come to a stop or to an end.
    pub(super) fn finish_step(&mut self) {
        self.clear_run_to();
        let Some(job) = self.step.take() else { return };
        let reply = self.step_reply(&job, false);
        job.reply.send(Ok(reply));
    }

    fn step_reply(&mut self, job: &StepJob, timed_out: bool) -> Reply {
        let trace = match job.mode {
            StepMode::Into => job.trace.iter().copied().filter_map(|pc| self.instruction_at(pc)).collect(),
            StepMode::Over | StepMode::Out => Vec::new(),
        };
        Reply::Step(StepReply { steps: job.done, timed_out, trace, stop: self.stop.clone(), live: self.live() })
    }
}

fn remember(trace: &mut VecDeque<VirtAddr>, pc: VirtAddr) {
    if trace.len() >= limits::STEP_TRACE {
        trace.pop_front();
    }
    trace.push_back(pc);
}
