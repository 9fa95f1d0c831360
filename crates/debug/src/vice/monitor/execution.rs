//! Making the machine run, step and stop.

use std::num::NonZeroU16;

use super::super::commands::{ResetKind, advance, exit, ping, reset};
use super::super::driver::{Awaited, Call};
use super::super::error::Error;
use super::super::machine::{EventKind, Execution, Published};
use super::super::session::Request;
use super::Monitor;

/// What came of making the machine run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// The request that did it.
    pub request: u32,
    /// What happened.
    pub event: Published,
    /// What happened meanwhile: at most the last 64 events.
    pub preceding: Vec<Published>,
    /// Whether a step was spent on arriving.
    pub arrival: Arrival,
}

/// What became of the first step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It executed an instruction.
    Executed,
    /// A register had been set, and this VICE only arrives then, executing nothing.
    OnlyArrived,
}

impl Monitor {
    /// Executes `count` instructions; with `over`, a subroutine counts as one.
    ///
    /// # Errors
    /// [`Error::Argument`] for a count beyond 1 to 65,535: VICE takes 0 and never stops; [`Error::TimedOut`] when the machine
    /// did not stop in time, in which case it runs on; those of every call.
    pub fn step(&self, over: bool, count: i64, limit_ms: u64) -> Result<Ran, Error> {
        let Some(count) = u16::try_from(count).ok().and_then(NonZeroU16::new) else {
            return Err(Error::Argument(format!("count must be 1 to 65535, and is {count}")));
        };
        let name = if over { "next" } else { "step" };
        self.run(name, &advance::request(over, count), EventKind::Stopped, limit_ms)
    }

    /// Runs until the routine returns.
    ///
    /// # Errors
    /// As [`Self::step`].
    pub fn finish(&self, limit_ms: u64) -> Result<Ran, Error> {
        self.run("finish", &advance::until_return(), EventKind::Stopped, limit_ms)
    }

    /// Lets the machine run.
    ///
    /// # Errors
    /// Those of every call.
    pub fn resume(&self, limit_ms: u64) -> Result<Ran, Error> {
        self.run("resume", &exit::request(), EventKind::Resumed, limit_ms)
    }

    fn run(&self, name: &'static str, request: &Request, want: EventKind, limit_ms: u64) -> Result<Ran, Error> {
        let operation = self.stopped(name, limit_ms, true)?;
        let begun = operation.begun_at();
        let arrival = match self.driver.state().machine.has_set_registers() && self.version.first_step_only_arrives() {
            true => Arrival::OnlyArrived,
            false => Arrival::Executed,
        };
        let awaited = if want == EventKind::Stopped { Awaited::Stop } else { Awaited::Resume };
        let answer = operation.exchange_and(request, awaited)?;
        let call = *operation.call();
        let missing = |what: &str| call.timed_out(format!("{what} after {name}"), Some(answer.request));
        let resumed = operation.wait_for(|state| Ok(state.machine.resume_since(begun).cloned()))?;
        let resumed = resumed.ok_or_else(|| missing("VICE did not say that the machine runs"))?;
        // The machine runs: somebody may interrupt it while we wait.
        drop(operation);
        let event = match want {
            EventKind::Stopped => self.stop_after(&call, begun)?.ok_or_else(|| missing("the machine did not stop"))?,
            _ => resumed.clone(),
        };
        let mut preceding = self.driver.state().machine.between(begun, event.sequence);
        preceding.retain(|before| before.sequence != resumed.sequence);
        Ok(Ran { request: answer.request, event, preceding, arrival })
    }

    fn stop_after(&self, call: &Call, begun: u64) -> Result<Option<Published>, Error> {
        self.driver.wait_for(call, |state| Ok(state.machine.stop_since(begun).cloned()))
    }

    /// Stops the machine.
    ///
    /// # Errors
    /// [`Error::WrongState`] when it is stopped; [`Error::Superseded`] when a checkpoint stopped it first; those of every call.
    pub fn interrupt(&self, limit_ms: u64) -> Result<Ran, Error> {
        let call = Call::new("interrupt", limit_ms, true);
        let operation = self.driver.begin(call, Some(Execution::Running))?;
        let begun = operation.begun_at();
        // Every command stops the machine before it is answered.
        let answer = operation.exchange(&ping::request())?;
        let event = operation.wait_for(|state| Ok(state.machine.stop_since(begun).cloned()))?;
        let Some(event) = event else {
            return Err(call.timed_out("the machine did not stop".to_owned(), Some(answer.request)));
        };
        if !event.checkpoints.is_empty() {
            return Err(Error::Superseded { event: Box::new(event) });
        }
        let preceding = self.driver.state().machine.between(begun, event.sequence);
        Ok(Ran { request: answer.request, event, preceding, arrival: Arrival::Executed })
    }

    /// Resets the machine, which runs then, or a drive.
    ///
    /// # Errors
    /// Those of every call.
    pub fn reset(&self, kind: ResetKind, limit_ms: u64) -> Result<(), Error> {
        let operation = self.stopped("reset", limit_ms, true)?;
        let begun = operation.begun_at();
        operation.exchange(&reset::request(kind))?;
        if !kind.resumes() {
            return Ok(());
        }
        // The event comes right behind the answer. Without it the machine runs all the same.
        let resumed = operation.wait_for(|state| Ok(state.machine.resume_since(begun).map(drop)))?;
        if resumed.is_none() {
            self.driver.state().machine.assume_running();
        }
        Ok(())
    }
}
