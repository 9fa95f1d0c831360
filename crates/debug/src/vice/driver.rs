//! Moves a session's bytes over TCP: one thread reads, one operation at a time writes, and every call has one deadline.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use base::limits;

use super::error::Error;
use super::machine::{Execution, Machine};
use super::session::{Answer, Event, Request, Session};

/// Shortest time that a socket is given: none at all would mean for ever.
const SHORTEST: Duration = Duration::from_millis(1);

/// One call, with the time that it has for all that it does.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// What it is called in errors.
    pub name: &'static str,
    /// Until when it must be answered.
    pub until: Instant,
    /// How long that was when it began.
    pub limit_ms: u64,
    /// Whether it may leave the machine in another state.
    pub changes: bool,
}

impl Call {
    /// A call that has `limit_ms` from now on.
    pub fn new(name: &'static str, limit_ms: u64, changes: bool) -> Self {
        Self { name, until: Instant::now() + Duration::from_millis(limit_ms), limit_ms, changes }
    }

    /// The error for something that did not come.
    pub fn timed_out(&self, what: String, request: Option<u32>) -> Error {
        Error::TimedOut { what, limit_ms: self.limit_ms, request, changed: self.changes && request.is_some() }
    }
}

/// A connection to VICE.
#[derive(Debug)]
pub struct Driver {
    link: Arc<Link>,
    stream: TcpStream,
    reader: Option<JoinHandle<()>>,
    since: Instant,
}

/// What the reading thread and the callers share.
#[derive(Debug, Default)]
struct Link {
    state: Mutex<State>,
    changed: Condvar,
}

/// What is known, and what is on its way.
#[derive(Debug, Default)]
pub struct State {
    session: Session,
    /// The machine as it was last heard of.
    pub machine: Machine,
    /// Operations that were begun.
    pub commands: u64,
    answer: Option<Answer>,
    lost: Option<Error>,
    busy: bool,
    closing: bool,
    /// Callers that wait for the operation in work to end.
    queued: usize,
    /// What the operation in work waits for beyond its answer.
    awaited: Awaited,
}

/// What an operation waits for. Waking it earlier than for that would cost more than a step itself does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Awaited {
    /// The answer.
    #[default]
    Answer,
    /// The answer, and that the machine runs.
    Resume,
    /// The answer, and a stop after that; when another caller waits, the machine's running is enough, so that it can be
    /// interrupted.
    Stop,
}

impl State {
    /// Why the connection is of no more use.
    pub const fn lost(&self) -> Option<&Error> {
        self.lost.as_ref()
    }

    /// Sorts what the session has to tell. Whether it is of interest to somebody who waits.
    fn sort(&mut self) -> bool {
        let mut news = false;
        while let Some(event) = self.session.next_event() {
            news |= match &event {
                Event::Answer(answer) => answer.error != 0 || self.awaited == Awaited::Answer,
                Event::Resumed { .. } => self.awaited != Awaited::Stop || self.queued > 0,
                Event::Hit(_) => false,
                _ => true,
            };
            match event {
                Event::Answer(answer) => self.answer = Some(answer),
                Event::Failed(error) => self.lose(error),
                other => self.machine.observe(other),
            }
        }
        news
    }

    /// Whether what an operation waits for, which began at this event, is there.
    fn has_come(&self, begun: u64) -> bool {
        let Some(answer) = &self.answer else { return false };
        let runs = || self.machine.resume_since(begun).is_some();
        answer.error != 0
            || match self.awaited {
                Awaited::Answer => true,
                Awaited::Resume => runs(),
                Awaited::Stop => self.machine.stop_since(begun).is_some() || self.queued > 0 && runs(),
            }
    }

    fn lose(&mut self, error: Error) {
        self.session.give_up();
        self.machine.forget();
        self.lost.get_or_insert(error);
    }

    fn usable(&self) -> Result<(), Error> {
        match &self.lost {
            Some(error) => Err(error.clone()),
            None if self.closing => Err(Error::Lost("the connector is ending".to_owned())),
            None => Ok(()),
        }
    }
}

impl Driver {
    /// Connects and starts to read.
    ///
    /// # Errors
    /// [`Error::Connect`].
    pub fn connect(address: SocketAddr, until: Instant) -> Result<Self, Error> {
        let fail = |error: std::io::Error| Error::Connect { address, reason: error.to_string() };
        let stream = TcpStream::connect_timeout(&address, left(until)).map_err(fail)?;
        // Without it each exchange waits some 40 ms for the other side's delayed acknowledgement.
        stream.set_nodelay(true).map_err(fail)?;
        let link = Arc::new(Link::default());
        let (source, shared) = (stream.try_clone().map_err(fail)?, Arc::clone(&link));
        let reader = std::thread::Builder::new().name("vice-reader".to_owned()).spawn(move || read(source, &shared));
        Ok(Self { link, stream, reader: Some(reader.map_err(fail)?), since: Instant::now() })
    }

    /// What is known now. Never waits for VICE.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.link.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins an operation, when those before have ended and the machine is as it must be.
    ///
    /// # Errors
    /// [`Error::WrongState`], [`Error::TimedOut`], and what ended the connection.
    pub fn begin(&self, call: Call, wanted: Option<Execution>) -> Result<Operation<'_>, Error> {
        let mut state = self.queue(&call, State::usable)?;
        let is = state.machine.execution();
        if let Some(wanted) = wanted
            && is != wanted
        {
            return Err(Error::WrongState { is, wanted });
        }
        state.busy = true;
        state.commands += 1;
        Ok(Operation { driver: self, call, begun_at: state.machine.sequence() })
    }

    /// Begins the last operation: those that wait are told that the connection ends.
    ///
    /// # Errors
    /// As [`Self::begin`].
    pub fn begin_last(&self, call: Call) -> Result<Operation<'_>, Error> {
        self.state().closing = true;
        self.link.changed.notify_all();
        let mut state = self.queue(&call, |state| state.lost.clone().map_or(Ok(()), Err))?;
        state.busy = true;
        Ok(Operation { driver: self, call, begun_at: state.machine.sequence() })
    }

    /// Waits until no operation is in work.
    fn queue(&self, call: &Call, usable: impl Fn(&State) -> Result<(), Error>) -> Result<MutexGuard<'_, State>, Error> {
        {
            let mut state = self.state();
            usable(&state)?;
            if !state.busy {
                return Ok(state);
            }
            state.queued += 1;
        }
        // The operation in work may be one that need not go on.
        self.link.changed.notify_all();
        let waited = self.wait(call, |state| {
            usable(state)?;
            Ok((!state.busy).then_some(()))
        });
        // Outside of the state's lock, which an error has let go.
        match waited {
            Ok(Some(mut state)) => {
                state.queued -= 1;
                Ok(state)
            }
            other => {
                self.state().queued -= 1;
                other?;
                Err(call.timed_out("the call before did not end".to_owned(), None))
            }
        }
    }

    /// Waits until `found` finds something, and gives it; `None` when the time is over.
    ///
    /// # Errors
    /// Those of `found`, and what ended the connection.
    pub fn wait_for<T>(
        &self,
        call: &Call,
        mut found: impl FnMut(&State) -> Result<Option<T>, Error>,
    ) -> Result<Option<T>, Error> {
        let mut result = None;
        self.wait(call, |state| {
            result = found(state)?;
            if result.is_none() {
                state.usable()?;
            }
            Ok(result.is_some().then_some(()))
        })?;
        Ok(result)
    }

    /// Waits until `ready` says so, and gives what is known then; `None` when the time is over.
    fn wait(
        &self,
        call: &Call,
        mut ready: impl FnMut(&State) -> Result<Option<()>, Error>,
    ) -> Result<Option<MutexGuard<'_, State>>, Error> {
        let mut state = self.state();
        loop {
            if ready(&state)?.is_some() {
                return Ok(Some(state));
            }
            let now = Instant::now();
            if now >= call.until {
                return Ok(None);
            }
            let waited = self.link.changed.wait_timeout(state, call.until - now);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn write(&self, bytes: &[u8], until: Instant) -> Result<(), Error> {
        let written = self.stream.set_write_timeout(Some(left(until))).and_then(|()| (&self.stream).write_all(bytes));
        written.map_err(|error| {
            // A part of a request may be on its way, and nothing could follow it.
            let error = Error::from(error);
            self.state().lose(error.clone());
            self.hang_up();
            self.link.changed.notify_all();
            error
        })
    }

    /// Ends the connection. VICE resumes then, if nothing keeps it.
    pub fn hang_up(&self) {
        // Nothing is to be done about a connection that cannot be closed because it is gone.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.hang_up();
        if let Some(reader) = self.reader.take() {
            // It ends with the connection, and has nothing to say.
            let _ = reader.join();
        }
    }
}

/// The right to talk to VICE, until it is dropped.
#[derive(Debug)]
pub struct Operation<'a> {
    driver: &'a Driver,
    call: Call,
    begun_at: u64,
}

impl Operation<'_> {
    /// The newest event's place when it began.
    pub const fn begun_at(&self) -> u64 {
        self.begun_at
    }

    /// The call.
    pub const fn call(&self) -> &Call {
        &self.call
    }

    /// Sends a request and gives its answer.
    ///
    /// # Errors
    /// [`Error::Refused`], [`Error::TimedOut`], and what ended the connection.
    pub fn exchange(&self, request: &Request) -> Result<Answer, Error> {
        self.exchange_and(request, Awaited::Answer)
    }

    /// Sends a request and gives its answer, once what else is `awaited` has come or the time is over.
    ///
    /// # Errors
    /// As [`Self::exchange`].
    pub fn exchange_and(&self, request: &Request, awaited: Awaited) -> Result<Answer, Error> {
        let driver = self.driver;
        let deadline = self.call.until.saturating_duration_since(driver.since);
        let (id, bytes) = {
            let mut state = driver.state();
            if let Some(error) = state.lost() {
                return Err(error.clone());
            }
            state.answer = None;
            state.awaited = awaited;
            let id = state.session.send(request, deadline)?;
            (id, state.session.take_outgoing())
        };
        driver.write(&bytes, self.call.until)?;
        let answered = driver.wait(&self.call, |state| match &state.lost {
            _ if state.has_come(self.begun_at) => Ok(Some(())),
            Some(error) => Err(error.clone()),
            None => Ok(None),
        })?;
        // In the last moment it may still have come.
        let mut state = answered.unwrap_or_else(|| driver.state());
        state.awaited = Awaited::Answer;
        if let Some(answer) = state.answer.take() {
            return match answer.error {
                0 => Ok(answer),
                code => Err(Error::Refused { command: request.command(), code, request: id }),
            };
        }
        state.session.tick(deadline);
        state.sort();
        Err(self.call.timed_out(format!("no answer to {} came from VICE", self.call.name), Some(id)))
    }

    /// Waits until `found` finds something; `None` when the time is over.
    ///
    /// # Errors
    /// Those of `found`, and what ended the connection.
    pub fn wait_for<T>(&self, found: impl FnMut(&State) -> Result<Option<T>, Error>) -> Result<Option<T>, Error> {
        self.driver.wait_for(&self.call, found)
    }
}

impl Drop for Operation<'_> {
    fn drop(&mut self) {
        self.driver.state().busy = false;
        self.driver.link.changed.notify_all();
    }
}

/// Reads until the connection ends. It always reads, so that no storm of events can keep an answer back.
fn read(mut source: TcpStream, link: &Link) {
    let mut buffer = vec![0; limits::VICE_RECEIVE_BYTES];
    loop {
        let received = source.read(&mut buffer);
        let mut state = link.state.lock().unwrap_or_else(PoisonError::into_inner);
        let goes_on = match received {
            Ok(0) => {
                state.lose(Error::Lost("VICE closed it: the emulator has ended".to_owned()));
                false
            }
            Ok(count) => {
                state.session.receive(buffer.get(..count).unwrap_or_default());
                true
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => true,
            Err(error) => {
                state.lose(Error::from(error));
                false
            }
        };
        let news = state.sort();
        let goes_on = goes_on && state.lost.is_none();
        drop(state);
        if news || !goes_on {
            link.changed.notify_all();
        }
        if !goes_on {
            // Whoever still writes is to be told.
            let _ = source.shutdown(Shutdown::Both);
            return;
        }
    }
}

fn left(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now()).max(SHORTEST)
}
