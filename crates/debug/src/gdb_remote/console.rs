//! The processors of one machine, which run and stop together.
//!
//! DeSmuME has one stub for each processor, and resuming either makes both run. A breakpoint of the one that was not resumed
//! stops everything without a word to anybody. So only the resumed processor's points are planted while it runs, and nothing
//! is asked of the other meanwhile.

use std::time::{Duration, Instant};

use super::debugger::{Debugger, Resumed, Steps};
use super::driver::Driver;
use super::error::Error;

/// A processor of the Nintendo DS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processor {
    /// The faster one, which runs the game.
    Arm9,
    /// The one for sound, touch screen and wireless.
    Arm7,
}

impl Processor {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Arm9 => "arm9",
            Self::Arm7 => "arm7",
        }
    }
}

/// A machine under one or two stubs.
#[derive(Debug)]
pub struct Console {
    arm9: Debugger,
    arm7: Option<Debugger>,
    /// The one that was resumed last.
    current: Processor,
}

impl Console {
    /// A machine whose processors are stopped.
    pub const fn new(arm9: Debugger, arm7: Option<Debugger>) -> Self {
        Self { arm9, arm7, current: Processor::Arm9 }
    }

    /// A processor, whether or not it runs.
    ///
    /// # Errors
    /// [`Error::NoProcessor`].
    pub fn look(&self, processor: Processor) -> Result<&Debugger, Error> {
        match processor {
            Processor::Arm9 => Ok(&self.arm9),
            Processor::Arm7 => self.arm7.as_ref().ok_or(Error::NoProcessor("the ARM7")),
        }
    }

    fn reach(&mut self, processor: Processor) -> Result<&mut Debugger, Error> {
        match processor {
            Processor::Arm9 => Ok(&mut self.arm9),
            Processor::Arm7 => self.arm7.as_mut().ok_or(Error::NoProcessor("the ARM7")),
        }
    }

    /// A processor of the stopped machine, to be asked or changed.
    ///
    /// # Errors
    /// [`Error::NoProcessor`], [`Error::Running`] while the machine runs.
    pub fn stopped(&mut self, processor: Processor) -> Result<&mut Debugger, Error> {
        self.look(self.current)?.must_not_run()?;
        self.reach(processor)
    }

    /// Whether the machine runs.
    pub fn is_running(&self) -> bool {
        self.look(self.current).is_ok_and(Debugger::is_running)
    }

    /// Whether a connection is of no more use.
    pub fn is_broken(&self) -> bool {
        self.arm9.is_broken() || self.arm7.as_ref().is_some_and(Debugger::is_broken)
    }

    /// The processor that was resumed last, whose stop is waited for.
    pub const fn current(&self) -> Processor {
        self.current
    }

    /// Makes the machine run until this processor stops.
    ///
    /// # Errors
    /// [`Error::NoProcessor`], [`Error::Running`], those of the stub.
    pub fn resume(&mut self, processor: Processor, until: Instant) -> Result<(), Error> {
        self.take_over(processor, until)?;
        self.reach(processor)?.resume(until)
    }

    /// Waits for the resumed processor to stop.
    ///
    /// # Errors
    /// Those of [`Debugger::wait`].
    pub fn wait(&mut self, until: Instant) -> Result<Resumed, Error> {
        self.reach(self.current)?.wait(until)
    }

    /// Stops the machine, by the processor that was resumed.
    ///
    /// # Errors
    /// Those of [`Debugger::pause`].
    pub fn pause(&mut self, until: Instant) -> Result<Resumed, Error> {
        self.reach(self.current)?.pause(until)
    }

    /// Executes instructions of one processor.
    ///
    /// # Errors
    /// [`Error::NoProcessor`], those of [`Debugger::step`].
    pub fn step(&mut self, processor: Processor, count: u32, each: Duration, report: bool) -> Result<Steps, Error> {
        self.take_over(processor, Instant::now() + each)?;
        self.reach(processor)?.step(count, each, report)
    }

    /// Takes a new connection to a processor whose old one broke.
    ///
    /// # Errors
    /// [`Error::NoProcessor`], those of [`Debugger::reattach`].
    pub fn reattach(&mut self, processor: Processor, driver: Driver, until: Instant) -> Result<(), Error> {
        self.reach(processor)?.reattach(driver, until)
    }

    /// Takes everything out of the stubs that was planted and hangs up; the machine is left running or stopped, as it is.
    ///
    /// # Errors
    /// The first of [`Debugger::let_go`]; the other processor is let go all the same.
    pub fn let_go(&mut self, until: Instant) -> Result<(), Error> {
        // The one that runs is the only one that may be asked, and the other has nothing planted.
        let current = self.reach(self.current)?.let_go(until);
        let other = if self.current == Processor::Arm9 { Processor::Arm7 } else { Processor::Arm9 };
        match self.reach(other) {
            Ok(other) => current.and(other.let_go(until)),
            Err(_) => current,
        }
    }

    fn take_over(&mut self, processor: Processor, until: Instant) -> Result<(), Error> {
        self.stopped(processor)?;
        let other = if processor == Processor::Arm9 { Processor::Arm7 } else { Processor::Arm9 };
        match self.reach(other) {
            Ok(other) => other.withdraw(until)?,
            Err(Error::NoProcessor(_)) => {}
            Err(error) => return Err(error),
        }
        self.current = processor;
        Ok(())
    }
}
