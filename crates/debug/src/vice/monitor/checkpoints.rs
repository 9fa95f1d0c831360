//! Making, listing, switching and deleting checkpoints, and their conditions.

use std::time::{Duration, Instant};

use super::super::commands::checkpoint::{self, Checkpoint, NewCheckpoint};
use super::super::commands::condition;
use super::super::error::Error;
use super::Monitor;

/// Time in which VICE says that it runs, having made a temporary checkpoint: it comes with the answer.
const RESUMES_WITHIN: Duration = Duration::from_millis(500);

/// A checkpoint that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// How it is.
    pub checkpoint: Checkpoint,
    /// Whether the machine runs now, as it does after a temporary one was made.
    pub resumed: bool,
}

impl Monitor {
    /// All checkpoints, those of others too.
    ///
    /// # Errors
    /// Those of every call.
    pub fn checkpoints(&self, limit_ms: u64) -> Result<Vec<Checkpoint>, Error> {
        let operation = self.stopped("list_checkpoints", limit_ms, false)?;
        Ok(operation.exchange(&checkpoint::list())?.listed)
    }

    /// Makes a checkpoint.
    ///
    /// # Errors
    /// [`Error::Argument`] for a range that is none, and for operations beyond 1 to 7: 3.7.1 dies of 0; those of every call.
    pub fn set_checkpoint(&self, new: &NewCheckpoint, limit_ms: u64) -> Result<Made, Error> {
        if !(1..=7).contains(&new.operations) {
            return Err(Error::Argument(format!(
                "operations must be 1 to 7 (1 load, 2 store, 4 execute, added up), and is {}",
                new.operations
            )));
        }
        if new.start > new.end {
            return Err(Error::Argument("start must not lie behind end".to_owned()));
        }
        let operation = self.stopped("set_checkpoint", limit_ms, true)?;
        let answer = operation.exchange(&checkpoint::set(new))?;
        let made = checkpoint::info(&answer.body)?;
        if !new.temporary {
            self.driver.state().machine.add_own(made.number);
            let listed = operation.exchange(&checkpoint::list())?.listed;
            let made = listed.into_iter().find(|listed| listed.number == made.number).unwrap_or(made);
            return Ok(Made { checkpoint: made, resumed: false });
        }
        let begun = operation.begun_at();
        {
            // It may have been hit and gone before we come to this.
            let mut state = self.driver.state();
            let stop = state.machine.stop_since(begun);
            if !stop.is_some_and(|stop| stop.checkpoints.iter().any(|hit| hit.number == made.number)) {
                state.machine.add_own(made.number);
            }
        }
        let until = operation.call().until.min(Instant::now() + RESUMES_WITHIN);
        let call = super::Call { until, ..*operation.call() };
        let resumed = self.driver.wait_for(&call, |state| Ok(state.machine.resume_since(begun).map(drop)))?;
        Ok(Made { checkpoint: made, resumed: resumed.is_some() })
    }

    /// Deletes a checkpoint, whoever made it. When none is left, VICE counts from 1 again.
    ///
    /// # Errors
    /// Those of every call.
    pub fn delete_checkpoint(&self, number: u32, limit_ms: u64) -> Result<(), Error> {
        let operation = self.stopped("delete_checkpoint", limit_ms, true)?;
        operation.exchange(&checkpoint::delete(number))?;
        self.driver.state().machine.remove_own(number);
        Ok(())
    }

    /// Switches a checkpoint on or off.
    ///
    /// # Errors
    /// Those of every call.
    pub fn toggle_checkpoint(&self, number: u32, enabled: bool, limit_ms: u64) -> Result<(), Error> {
        let operation = self.stopped("toggle_checkpoint", limit_ms, true)?;
        operation.exchange(&checkpoint::toggle(number, enabled)).map(drop)
    }

    /// Gives a checkpoint a condition in the words of VICE's monitor. It cannot be read back.
    ///
    /// # Errors
    /// [`Error::Argument`] for a text that cannot be sent; [`Error::Refused`] with 0x8F for one that VICE does not understand;
    /// those of every call.
    pub fn set_condition(&self, number: u32, expression: &str, limit_ms: u64) -> Result<(), Error> {
        let request = condition::request(number, expression)?;
        let operation = self.stopped("set_condition", limit_ms, true)?;
        operation.exchange(&request).map(drop)
    }
}
