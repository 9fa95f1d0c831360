//! One processor under a stub: its breakpoints and watchpoints, its run and its stops.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use base::limits;

use super::breakpoints::{Breakpoint, Breakpoints, Key};
use super::capabilities::{Answer, Capabilities};
use super::context::{self, Region, StopContext};
use super::driver::Driver;
use super::error::Error;
use super::packets::{
    PointKind, Registers, StopKind, StopReply, breakpoint, read_memory, read_register, read_registers, resume,
    stop_reason, stop_reply, write_memory,
};
use super::ranges::{ModeRequest, Range, Ranges};
use super::session::Request;
use super::watchpoints::{WatchKind, Watchpoint, Watchpoints};

/// Time between two looks at a stub that is not ready yet.
const NOT_READY_PAUSE: Duration = Duration::from_millis(10);

/// What a stop came of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The program was stopped when it was asked about.
    Found,
    /// It had been made to run.
    Run,
    /// It had been made to step.
    Step,
}

/// A program that stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// What it came of.
    pub cause: Cause,
    /// What the stub said.
    pub reply: StopReply,
    /// The registers.
    pub registers: Registers,
    /// The breakpoint it stopped at.
    pub breakpoint: Option<String>,
    /// The watchpoint it stopped for.
    pub watchpoint: Option<String>,
    /// The address whose access it stopped for, where that is certain.
    pub accessed: Option<u32>,
}

/// What came of making a program run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resumed {
    /// It stopped.
    Stopped(Box<Stop>),
    /// It still runs.
    Running,
}

/// What came of steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steps {
    /// Instructions executed for certain.
    pub completed: u32,
    /// The registers before each of them and after the last, when they were asked for.
    pub registers: Vec<Registers>,
    /// How it ended: stopped also when a watchpoint ended it early, running when one instruction took too long.
    pub end: Resumed,
}

/// One processor under a stub.
#[derive(Debug)]
pub struct Debugger {
    driver: Driver,
    capabilities: Capabilities,
    ranges: Ranges,
    breakpoints: Breakpoints,
    watchpoints: Watchpoints,
    /// What the stub has of them now. Nothing is planted twice, since a stub that counts would keep it after one removal.
    planted: Vec<Key>,
    /// Somebody used the stub before, and may have left points in it.
    used_before: bool,
    /// An interrupt was not answered in its time, nor since.
    deaf: bool,
    last: Option<Stop>,
}

impl Debugger {
    /// Takes a connection and asks what the stub can do. The program must be stopped.
    ///
    /// # Errors
    /// Those of the connection; [`Error::BadRange`] for `main`.
    pub fn attach(driver: Driver, main: Range, until: Instant) -> Result<Self, Error> {
        let mut debugger = Self {
            driver,
            capabilities: Capabilities::default(),
            ranges: Ranges::new(main)?,
            breakpoints: Breakpoints::default(),
            watchpoints: Watchpoints::default(),
            planted: Vec::new(),
            used_before: false,
            deaf: false,
            last: None,
        };
        debugger.probe(until)?;
        Ok(debugger)
    }

    /// Takes over a stub that somebody used before, with its program stopped: see [`Driver::take_over`]. No stub tells its
    /// points, so whatever another client left at an address goes when a point is set there.
    ///
    /// # Errors
    /// Those of the connection; [`Error::BadRange`] for `main`.
    pub fn take_over(address: SocketAddr, main: Range, until: Instant) -> Result<Self, Error> {
        let mut debugger = Self::attach(Driver::take_over(address, until)?, main, until)?;
        debugger.used_before = true;
        debugger.pause(until)?;
        Ok(debugger)
    }

    /// Connects to the stub of an emulator that is starting, and waits until its program is loaded, which is when `pc` is
    /// `entry`: the port is open before that. `alive` is asked in between whether waiting still makes sense.
    ///
    /// # Errors
    /// [`Error::Connect`] and [`Error::NotReady`] when the time is over or `alive` says no; those of the connection.
    pub fn when_ready(
        address: SocketAddr,
        main: Range,
        entry: u32,
        until: Instant,
        mut alive: impl FnMut() -> bool,
    ) -> Result<Self, Error> {
        let begun = Instant::now();
        let driver = loop {
            match Driver::connect(address, until) {
                Ok(driver) => break driver,
                Err(error) if Instant::now() >= until || !alive() => return Err(error),
                Err(_) => std::thread::sleep(NOT_READY_PAUSE),
            }
        };
        // Each question has its own time, so that what ends the waiting is said and not the question that it met.
        let answer = Duration::from_millis(limits::GDB_EXCHANGE_TIMEOUT_MS);
        let mut debugger = Self::attach(driver, main, Instant::now() + answer)?;
        loop {
            let pc = debugger.registers(Instant::now() + answer)?.pc();
            if pc == entry {
                return Ok(debugger);
            }
            if Instant::now() >= until || !alive() {
                return Err(Error::NotReady { waited: begun.elapsed(), pc, entry });
            }
            std::thread::sleep(NOT_READY_PAUSE);
        }
    }

    /// Takes a new connection to the same emulator after the old one broke. What was planted survives in stubs, so it is
    /// taken away first and planted anew when the program runs. The program must be stopped.
    ///
    /// # Errors
    /// Those of the connection.
    pub fn reattach(&mut self, driver: Driver, until: Instant) -> Result<(), Error> {
        self.driver = driver;
        (self.last, self.deaf) = (None, false);
        self.probe(until)?;
        self.withdraw(until)?;
        self.pause(until).map(|_| ())
    }

    /// Takes everything out of the stub that was planted and hangs up. The program is left as it is: running, or stopped.
    ///
    /// # Errors
    /// Those of the stub. The connection is closed all the same.
    pub fn let_go(&mut self, until: Instant) -> Result<(), Error> {
        let left = self.clear_and_leave(until);
        self.hang_up();
        left
    }

    fn clear_and_leave(&mut self, until: Instant) -> Result<(), Error> {
        let was_running = self.is_running();
        if self.planted.is_empty() {
            return Ok(());
        }
        if was_running && self.pause(until)? == Resumed::Running {
            return Err(self.must_be_stopped().err().unwrap_or(Error::Running));
        }
        self.withdraw(until)?;
        if was_running {
            self.driver.resume(resume::go_on(), until)?;
            // Closing at once would throw away what the stub has not read yet.
            self.driver.wait_for_stop(Instant::now() + Duration::from_millis(limits::GDB_LEAVE_MS))?;
        }
        Ok(())
    }

    /// Closes the connection. What is planted stays planted in the stub, which is why [`Self::reattach`] clears it.
    pub fn hang_up(&mut self) {
        self.driver.hang_up();
    }

    fn probe(&mut self, until: Instant) -> Result<(), Error> {
        self.capabilities.features = self.driver.features(until)?;
        let answer = self.driver.exchange(Request::ask(read_register::request(read_register::PC)), until)?;
        self.capabilities.single_register = match read_register::answer(&answer) {
            Ok(_) => Answer::Yes,
            Err(_) => Answer::No,
        };
        Ok(())
    }

    /// What is known about the stub.
    pub const fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// Whether the program runs.
    pub const fn is_running(&self) -> bool {
        self.driver.session().is_running()
    }

    /// Whether the connection is of no more use.
    pub const fn is_broken(&self) -> bool {
        self.driver.session().is_broken()
    }

    /// The last stop, while the program has not run since.
    pub const fn last_stop(&self) -> Option<&Stop> {
        self.last.as_ref()
    }

    /// Where code may be.
    pub const fn ranges(&self) -> &Ranges {
        &self.ranges
    }

    /// The breakpoints.
    pub fn breakpoints(&self) -> &[Breakpoint] {
        self.breakpoints.all()
    }

    /// The watchpoints.
    pub fn watchpoints(&self) -> &[Watchpoint] {
        self.watchpoints.all()
    }

    /// Replaces all ranges but the program's own.
    ///
    /// # Errors
    /// [`Error::RangeInUse`] when a breakpoint would lie outside of them; those of `Ranges::replace`.
    pub fn replace_ranges(&mut self, ranges: Vec<Range>) -> Result<(), Error> {
        let mut new = self.ranges.clone();
        new.replace(ranges)?;
        for one in self.breakpoints.all() {
            let known = ModeRequest::Known(one.mode);
            if new.place(one.address, known, one.symbol.as_deref(), Some(&one.range)).is_err() {
                return Err(Error::RangeInUse { range: one.range.clone(), breakpoint: one.id.clone() });
            }
        }
        self.ranges = new;
        Ok(())
    }

    /// Sets a breakpoint.
    ///
    /// # Errors
    /// [`Error::Running`], [`Error::Full`], those of `Ranges::place` and of the stub.
    pub fn add_breakpoint(
        &mut self,
        address: u32,
        mode: ModeRequest,
        symbol: Option<String>,
        range: Option<&str>,
        until: Instant,
    ) -> Result<Breakpoint, Error> {
        self.must_be_stopped()?;
        self.breakpoints.room()?;
        let place = self.ranges.place(address, mode, symbol.as_deref(), range)?;
        self.plant((PointKind::Execute, address, place.mode.size()), until)?;
        Ok(self.breakpoints.add(address, mode, place, symbol))
    }

    /// Takes a breakpoint away.
    ///
    /// # Errors
    /// [`Error::Running`], [`Error::Unknown`], those of the stub.
    pub fn remove_breakpoint(&mut self, id: &str, until: Instant) -> Result<Breakpoint, Error> {
        self.must_be_stopped()?;
        let breakpoint = self.breakpoints.get(id)?.clone();
        if self.breakpoints.keys().filter(|key| *key == breakpoint.key()).count() == 1 {
            self.uproot(breakpoint.key(), until)?;
        }
        self.breakpoints.forget(id);
        Ok(breakpoint)
    }

    /// Sets a watchpoint; `size` is 1, 2 or 4 bytes.
    ///
    /// # Errors
    /// [`Error::Running`], those of `Watchpoints::check` and of the stub.
    pub fn add_watchpoint(
        &mut self,
        address: u32,
        size: u32,
        kind: WatchKind,
        until: Instant,
    ) -> Result<Watchpoint, Error> {
        self.must_be_stopped()?;
        self.watchpoints.check(address, size)?;
        let planted = self.plant((kind.point(), address, size), until);
        let answer = match &planted {
            Ok(()) => Answer::Yes,
            Err(Error::Unsupported { .. }) => Answer::No,
            Err(_) => Answer::Unknown,
        };
        for (known, of) in self.capabilities.watchpoints.iter_mut().zip(WatchKind::ALL) {
            if of == kind && answer != Answer::Unknown {
                *known = answer;
            }
        }
        planted?;
        Ok(self.watchpoints.add(address, size, kind))
    }

    /// Takes a watchpoint away.
    ///
    /// # Errors
    /// [`Error::Running`], [`Error::Unknown`], those of the stub.
    pub fn remove_watchpoint(&mut self, id: &str, until: Instant) -> Result<Watchpoint, Error> {
        self.must_be_stopped()?;
        let watchpoint = self.watchpoints.get(id)?.clone();
        if self.watchpoints.keys().filter(|key| *key == watchpoint.key()).count() == 1 {
            self.uproot(watchpoint.key(), until)?;
        }
        self.watchpoints.forget(id);
        Ok(watchpoint)
    }

    fn plant(&mut self, key: Key, until: Instant) -> Result<(), Error> {
        if !self.planted.contains(&key) {
            let (kind, address, size) = key;
            if self.used_before {
                // Removing what is not there is an error to some stubs; that one was there is rare.
                self.driver.exchange(Request::change(breakpoint::remove(kind, address, size)), until)?;
            }
            let answer = self.driver.exchange(Request::change(breakpoint::insert(kind, address, size)), until)?;
            breakpoint::inserted(&answer)?;
            self.planted.push(key);
        }
        Ok(())
    }

    fn uproot(&mut self, key: Key, until: Instant) -> Result<(), Error> {
        if self.planted.contains(&key) {
            let (kind, address, size) = key;
            let answer = self.driver.exchange(Request::change(breakpoint::remove(kind, address, size)), until)?;
            breakpoint::removed(&answer)?;
            self.planted.retain(|planted| *planted != key);
        }
        Ok(())
    }

    /// Takes everything out of the stub that was planted, for as long as another processor's run is watched; the next run
    /// plants it again.
    ///
    /// # Errors
    /// [`Error::Running`], those of the stub.
    pub fn withdraw(&mut self, until: Instant) -> Result<(), Error> {
        self.must_be_stopped()?;
        for key in self.planted.clone() {
            self.uproot(key, until)?;
        }
        Ok(())
    }

    /// The registers.
    ///
    /// # Errors
    /// [`Error::Running`], those of the stub.
    pub fn registers(&mut self, until: Instant) -> Result<Registers, Error> {
        read_registers::answer(&self.driver.exchange(Request::ask(read_registers::request()), until)?)
    }

    /// The registers as the stub gives them.
    ///
    /// # Errors
    /// As [`Self::registers`].
    pub fn register_packet(&mut self, until: Instant) -> Result<Vec<u8>, Error> {
        read_registers::bytes(&self.driver.exchange(Request::ask(read_registers::request()), until)?)
    }

    /// Reads 1 to 65,536 bytes, a few hundred at a time: emulators give garbage or crash when asked for more at once.
    ///
    /// # Errors
    /// [`Error::Running`], [`Error::BadRead`], and [`Error::PartRead`] with what was reached.
    pub fn read_memory(&mut self, address: u32, length: u32, until: Instant) -> Result<Vec<u8>, Error> {
        let end = u64::from(address) + u64::from(length);
        if length == 0 || length > limits::MAX_GDB_READ_BYTES || end > 1 << 32 {
            return Err(Error::BadRead { address, length, most: limits::MAX_GDB_READ_BYTES });
        }
        self.must_be_stopped()?;
        let mut bytes: Vec<u8> = Vec::new();
        loop {
            let reached = u64::from(address) + bytes.len() as u64;
            let left = u32::try_from(end.saturating_sub(reached)).unwrap_or(0);
            let Ok(at) = u32::try_from(reached) else { return Ok(bytes) };
            if left == 0 {
                return Ok(bytes);
            }
            let chunk = left.min(self.capabilities.read_chunk());
            let answer = self.driver.exchange(Request::ask(read_memory::request(at, chunk)), until);
            match answer.and_then(|answer| read_memory::answer(&answer, chunk)) {
                Ok(part) => bytes.extend(part),
                Err(source) => return Err(Error::PartRead { start: address, reached, source: Box::new(source) }),
            }
        }
    }

    /// Writes up to 512 bytes, and reads them back where the stub does not confirm writes.
    ///
    /// # Errors
    /// [`Error::Running`], [`Error::BadRead`] for no bytes or too many, [`Error::NotWritten`], those of the stub.
    pub fn write_memory(&mut self, address: u32, bytes: &[u8], until: Instant) -> Result<(), Error> {
        let most = limits::MAX_GDB_READ_CHUNK_BYTES;
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        if length == 0 || length > most || u64::from(address) + u64::from(length) > 1 << 32 {
            return Err(Error::BadRead { address, length, most });
        }
        let answer = self.driver.exchange(Request::change(write_memory::request(address, bytes)), until)?;
        let confirmed = write_memory::answer(&answer)?;
        self.capabilities.confirms_writes = if confirmed { Answer::Yes } else { Answer::No };
        if !confirmed && self.read_memory(address, length, until)? != bytes {
            return Err(Error::NotWritten { address });
        }
        Ok(())
    }

    /// Registers, memory around the program counter and at the stack, and `regions`.
    ///
    /// # Errors
    /// [`Error::Running`], [`Error::Full`] for too many regions, [`Error::BadRead`] for a wrong one, those of the stub.
    pub fn context(&mut self, regions: &[Region], until: Instant) -> Result<StopContext, Error> {
        context::capture(self, regions, until)
    }

    /// Why the stub says the program is stopped.
    ///
    /// # Errors
    /// [`Error::Running`], those of the stub.
    pub fn stop_reason(&mut self, until: Instant) -> Result<StopReply, Error> {
        stop_reply::answer(&self.driver.exchange(Request::ask(stop_reason::request()), until)?)
    }

    /// Makes the program run, with all its breakpoints and watchpoints. Breakpoints at the program counter do not stop it again
    /// at once.
    ///
    /// # Errors
    /// [`Error::Running`], those of the stub.
    pub fn resume(&mut self, until: Instant) -> Result<(), Error> {
        self.must_be_stopped()?;
        let wanted: Vec<Key> = self.breakpoints.keys().chain(self.watchpoints.keys()).collect();
        for key in wanted {
            self.plant(key, until)?;
        }
        self.last = None;
        self.driver.resume(resume::go_on(), until)
    }

    /// Waits for the program to stop. A wait that ends changes nothing: the program runs on.
    ///
    /// # Errors
    /// [`Error::Stopped`] when it does not run, those of the stub.
    pub fn wait(&mut self, until: Instant) -> Result<Resumed, Error> {
        match self.driver.wait_for_stop(until)? {
            Some(reply) => self.stopped(reply, Cause::Run, until).map(|stop| Resumed::Stopped(Box::new(stop))),
            None => Ok(Resumed::Running),
        }
    }

    /// Stops the program. One that is stopped stays so, and its last stop is told again.
    ///
    /// # Errors
    /// Those of the stub.
    pub fn pause(&mut self, until: Instant) -> Result<Resumed, Error> {
        if !self.is_running() {
            if let Some(stop) = &self.last {
                return Ok(Resumed::Stopped(Box::new(stop.clone())));
            }
            let reply = self.stop_reason(until)?;
            return self.stopped(reply, Cause::Found, until).map(|stop| Resumed::Stopped(Box::new(stop)));
        }
        self.driver.interrupt(until)?;
        let paused = self.wait(until)?;
        self.deaf = paused == Resumed::Running;
        Ok(paused)
    }

    /// Executes `count` instructions, each within `each`; with `report`, the registers around every one are read.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a count outside 1 to 100, [`Error::Running`], those of the stub.
    pub fn step(&mut self, count: u32, each: Duration, report: bool) -> Result<Steps, Error> {
        if !(1..=limits::MAX_GDB_STEPS).contains(&count) {
            let most = limits::MAX_GDB_STEPS.into();
            return Err(Error::OutOfRange { what: "the number of steps", least: 1, most, asked: count.into() });
        }
        self.must_be_stopped()?;
        let mut registers = Vec::new();
        if report {
            registers.push(self.registers(Instant::now() + each)?);
        }
        self.last = None;
        for completed in 1..=count {
            let until = Instant::now() + each;
            self.driver.resume(resume::step(), until)?;
            let Some(reply) = self.driver.wait_for_stop(until)? else {
                return Ok(Steps { completed: completed - 1, registers, end: Resumed::Running });
            };
            // A watched access, or an end, is news; the trap of a step is not.
            let is_last = completed == count || reply.kind != StopKind::Signal || reply.watch().is_some();
            if is_last {
                let stop = self.stopped(reply, Cause::Step, Instant::now() + each)?;
                if report {
                    registers.push(stop.registers);
                }
                return Ok(Steps { completed, registers, end: Resumed::Stopped(Box::new(stop)) });
            }
            if report {
                registers.push(self.registers(Instant::now() + each)?);
            }
        }
        Err(Error::Stopped)
    }

    /// Takes a stop in: registers, whose it is, counts.
    fn stopped(&mut self, reply: StopReply, cause: Cause, until: Instant) -> Result<Stop, Error> {
        self.deaf = false;
        // The stop itself has come; the time for waiting may be over, and the registers need a little of their own.
        let until = until.max(Instant::now() + Duration::from_millis(limits::GDB_EXCHANGE_TIMEOUT_MS));
        let registers = self.registers(until)?;
        let (mut accessed, mut watchpoint) = (None, None);
        if let Some((field, digits)) = reply.watch() {
            accessed = self.capabilities.watched_address(digits, |address| self.watchpoints.covers(address));
            watchpoint = accessed.and_then(|address| self.watchpoints.hit(address, field));
        }
        // A program that is found stopped has hit nothing since.
        let by_trap = cause != Cause::Found && reply.kind == StopKind::Signal && reply.watch().is_none();
        let breakpoint = if by_trap { self.breakpoints.hit(registers.pc(), registers.mode()) } else { None };
        let stop = Stop { cause, reply, registers, breakpoint, watchpoint, accessed };
        self.last = Some(stop.clone());
        Ok(stop)
    }

    fn must_be_stopped(&self) -> Result<(), Error> {
        if self.is_broken() { Err(Error::Broken) } else { self.must_not_run() }
    }

    /// # Errors
    /// [`Error::Running`], or [`Error::Deaf`] after an interrupt that was not answered.
    pub(super) const fn must_not_run(&self) -> Result<(), Error> {
        match (self.is_running(), self.deaf) {
            (true, true) => Err(Error::Deaf),
            (true, false) => Err(Error::Running),
            (false, _) => Ok(()),
        }
    }
}
