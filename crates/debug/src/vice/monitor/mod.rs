//! One VICE with its machine: what can be asked of it, checked before it is sent, with what VICE does beyond what was asked.

mod checkpoints;
mod display;
mod execution;
mod memory;
mod registers;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use base::limits;

use super::commands::{self, Bank, Register, Version};
use super::driver::{Call, Driver, Operation};
use super::error::Error;
use super::machine::{Execution, Published};

pub use checkpoints::Made;
pub use display::Picture;
pub use execution::{Arrival, Ran};
pub use memory::{Memory, Place, Written};
pub use registers::Named;

/// A connection to VICE and what is known of it.
#[derive(Debug)]
pub struct Monitor {
    driver: Driver,
    address: SocketAddr,
    version: Version,
    /// The registers of each memspace that was asked about.
    registers: Mutex<BTreeMap<u8, Vec<Register>>>,
    closed: AtomicBool,
}

/// What is known without asking.
#[derive(Clone, Debug)]
pub struct Status {
    /// Whether the machine runs.
    pub execution: Execution,
    /// The last program counter that was told.
    pub pc: Option<u16>,
    /// The newest event's place.
    pub sequence: u64,
    /// Operations that were begun.
    pub commands: u64,
    /// Why the connection is of no more use.
    pub lost: Option<Error>,
}

impl Monitor {
    /// Connects, which stops the machine, and asks VICE what it is.
    ///
    /// # Errors
    /// [`Error::Connect`], [`Error::Silent`], and what VICE refuses.
    pub fn connect(address: SocketAddr, limit: Duration) -> Result<Self, Error> {
        let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        let call = Call { name: "connect", until: Instant::now() + limit, limit_ms, changes: true };
        let driver = Driver::connect(address, call.until)?;
        let (version, registers) = {
            let operation = driver.begin(call, None)?;
            let silent = |error| match error {
                Error::TimedOut { .. } => Error::Silent { address },
                other => other,
            };
            let version =
                commands::info::answer(&operation.exchange(&commands::info::request()).map_err(silent)?.body)?;
            let registers = operation.exchange(&commands::registers_available::request(0))?;
            let registers = commands::registers_available::answer(&registers.body)?;
            (version, registers)
        };
        {
            let mut state = driver.state();
            // Connecting is no command of anybody's.
            state.commands = 0;
            if state.machine.execution() == Execution::Unknown {
                state.machine.assume_stopped();
            }
        }
        Ok(Self {
            driver,
            address,
            version,
            registers: Mutex::new(BTreeMap::from([(0, registers)])),
            closed: AtomicBool::new(false),
        })
    }

    /// Where VICE is.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// What VICE is.
    pub const fn version(&self) -> &Version {
        &self.version
    }

    /// What is known now. Never waits for VICE.
    pub fn status(&self) -> Status {
        let state = self.driver.state();
        Status {
            execution: state.machine.execution(),
            pc: state.machine.pc(),
            sequence: state.machine.sequence(),
            commands: state.commands,
            lost: state.lost().cloned(),
        }
    }

    /// The banks of memory.
    ///
    /// # Errors
    /// Those of every call: [`Error::WrongState`] while the machine runs, [`Error::TimedOut`], [`Error::Refused`], and what
    /// ended the connection.
    pub fn banks(&self, limit_ms: u64) -> Result<Vec<Bank>, Error> {
        let operation = self.stopped("list_banks", limit_ms, false)?;
        commands::banks::answer(&operation.exchange(&commands::banks::request())?.body)
    }

    /// Waits for the first stop after the event `after`, without taking it away from others.
    ///
    /// # Errors
    /// [`Error::TimedOut`], [`Error::HistoryLost`], and what ended the connection.
    pub fn wait_for_stop(&self, after: u64, limit_ms: u64) -> Result<Published, Error> {
        let call = Call::new("wait_for_stop", limit_ms, false);
        let stop = self.driver.wait_for(&call, |state| Ok(state.machine.first_stop_after(after)?.cloned()))?;
        stop.ok_or_else(|| call.timed_out(format!("no stopped event after sequence {after}"), None))
    }

    /// Takes our checkpoints away, which would otherwise hold VICE where no client is, and ends the connection. VICE resumes.
    /// A second call does nothing.
    ///
    /// # Errors
    /// What kept it from doing so; the connection is ended all the same.
    pub fn close(&self) -> Result<(), Error> {
        if self.closed.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        // What is lost holds no checkpoint that would have to be taken away.
        let outcome = if self.driver.state().lost().is_some() { Ok(()) } else { self.clear() };
        self.driver.hang_up();
        outcome
    }

    fn clear(&self) -> Result<(), Error> {
        let call = Call::new("close", limits::VICE_CLOSE_TIMEOUT_MS, true);
        let operation = self.driver.begin_last(call)?;
        if self.driver.state().machine.own().is_empty() {
            return Ok(());
        }
        let there = operation.exchange(&commands::checkpoint::list())?.listed;
        for checkpoint in there {
            if self.driver.state().machine.own().contains(&checkpoint.number) {
                operation.exchange(&commands::checkpoint::delete(checkpoint.number))?;
                self.driver.state().machine.remove_own(checkpoint.number);
            }
        }
        Ok(())
    }

    /// Begins an operation on a machine that is stopped.
    fn stopped(&self, name: &'static str, limit_ms: u64, changes: bool) -> Result<Operation<'_>, Error> {
        self.driver.begin(Call::new(name, limit_ms, changes), Some(Execution::Stopped))
    }

    fn known_registers(&self, memspace: u8, operation: &Operation<'_>) -> Result<Vec<Register>, Error> {
        let known = || self.registers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(registers) = known().get(&memspace) {
            return Ok(registers.clone());
        }
        let answer = operation.exchange(&commands::registers_available::request(memspace))?;
        let registers = commands::registers_available::answer(&answer.body)?;
        known().insert(memspace, registers.clone());
        Ok(registers)
    }
}
