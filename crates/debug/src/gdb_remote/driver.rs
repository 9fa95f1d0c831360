//! Moves a session's bytes over TCP, with one deadline per call.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use base::limits;

use super::error::Error;
use super::packets::{StopReply, bad, query_supported, standard, stop_reason, stop_reply};
use super::session::{Event, Request, Session};

/// Shortest time that a socket is given: none at all would mean for ever.
const SHORTEST: Duration = Duration::from_millis(1);

/// Time between two tries to reach a stub that is busy.
const BUSY_PAUSE: Duration = Duration::from_millis(10);

/// A connection to a stub.
#[derive(Debug)]
pub struct Driver {
    stream: TcpStream,
    session: Session,
    since: Instant,
}

impl Driver {
    /// Connects to a stub.
    ///
    /// # Errors
    /// [`Error::Connect`].
    pub fn connect(address: SocketAddr, until: Instant) -> Result<Self, Error> {
        let fail = |source| Error::Connect { address, source };
        let stream = TcpStream::connect_timeout(&address, left(until)).map_err(fail)?;
        // Without it each exchange waits some 40 ms for the other side's delayed acknowledgement.
        stream.set_nodelay(true).map_err(fail)?;
        reset_on_close(&stream).map_err(fail)?;
        Ok(Self { stream, session: Session::default(), since: Instant::now() })
    }

    /// Connects to a stub that somebody used before, and stops its program if that runs. A stub that is still busy with a client
    /// that has just left closes the connection at once. One whose program runs refuses the first question, or does not answer
    /// it; it must be interrupted, by a connection on which nothing else was asked.
    ///
    /// # Errors
    /// The last try's, when the time is over.
    pub fn take_over(address: SocketAddr, until: Instant) -> Result<Self, Error> {
        loop {
            let each = until.min(Instant::now() + Duration::from_millis(limits::GDB_TAKE_OVER_MS));
            let mut driver = Self::connect(address, until)?;
            // Not a question that is repeated: DeSmuME refuses it, and answers it nevertheless while the program runs on.
            let error = match driver.exchange(Request::change(stop_reason::request()), each) {
                Ok(answer) if stop_reply::answer(&answer).is_ok() => return Ok(driver),
                Ok(answer) => return Err(bad("?", &answer)),
                Err(error) => error,
            };
            driver.hang_up();
            match &error {
                Error::Closed => {}
                Error::Refused { .. } | Error::TimedOut { .. } => {
                    if let Some(driver) = Self::interrupted(address, until)? {
                        return Ok(driver);
                    }
                }
                _ => return Err(error),
            }
            if Instant::now() >= until {
                return Err(error);
            }
            std::thread::sleep(BUSY_PAUSE);
        }
    }

    /// A connection whose first word stopped the program; `None` when no stop came.
    fn interrupted(address: SocketAddr, until: Instant) -> Result<Option<Self>, Error> {
        let each = until.min(Instant::now() + Duration::from_millis(limits::GDB_TAKE_OVER_MS));
        let mut driver = Self::connect(address, until)?;
        driver.session.assume_running();
        driver.interrupt(each)?;
        match driver.wait_for_stop(each) {
            Ok(Some(_)) => Ok(Some(driver)),
            Ok(None) | Err(Error::Closed) => {
                driver.hang_up();
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Sends a request and gives its answer.
    ///
    /// # Errors
    /// Those of the session and of the socket; after [`Error::TimedOut`] and worse the connection is of no more use.
    pub fn exchange(&mut self, request: Request, until: Instant) -> Result<Vec<u8>, Error> {
        self.session.send(request, until.saturating_duration_since(self.since))?;
        loop {
            match self.next(until)? {
                Some(Event::Answer(answer)) => return Ok(answer),
                Some(Event::Failed(error)) => return Err(error),
                // A stop cannot come while an answer is awaited, and output of the program is nobody's.
                Some(Event::Stopped(_) | Event::Output(_)) => {}
                None if self.session.is_waiting() => {}
                None => return Err(Error::Broken),
            }
        }
    }

    /// Makes the program run.
    ///
    /// # Errors
    /// Those of the session and of the socket.
    pub fn resume(&mut self, payload: Vec<u8>, until: Instant) -> Result<(), Error> {
        self.session.send(Request::resume(payload), Duration::ZERO)?;
        self.flush(until)
    }

    /// Waits for a running program to stop; `None` when it still runs.
    ///
    /// # Errors
    /// [`Error::Stopped`] when it does not run; those of the session and of the socket.
    pub fn wait_for_stop(&mut self, until: Instant) -> Result<Option<StopReply>, Error> {
        if self.session.is_broken() {
            return Err(Error::Broken);
        }
        if !self.session.is_running() {
            return Err(Error::Stopped);
        }
        loop {
            match self.next(until)? {
                Some(Event::Stopped(stop)) => return Ok(Some(stop)),
                Some(Event::Failed(error)) => return Err(error),
                Some(Event::Answer(answer)) => {
                    return Err(standard("c or s", &answer).err().unwrap_or_else(|| bad("c or s", &answer)));
                }
                Some(Event::Output(_)) => {}
                None => return Ok(None),
            }
        }
    }

    /// Asks the running program to stop.
    ///
    /// # Errors
    /// Those of the session and of the socket.
    pub fn interrupt(&mut self, until: Instant) -> Result<(), Error> {
        self.session.interrupt()?;
        self.flush(until)
    }

    /// Asks the stub what it can do, and ends acknowledgements where it offers that.
    ///
    /// # Errors
    /// As [`Self::exchange`].
    pub fn features(&mut self, until: Instant) -> Result<std::collections::BTreeMap<String, String>, Error> {
        let features = query_supported::answer(&self.exchange(Request::ask(query_supported::request()), until)?);
        if features.get("QStartNoAckMode").is_some_and(|sign| sign == "+")
            && self.exchange(Request::change(b"QStartNoAckMode".to_vec()), until)? == b"OK"
        {
            self.session.stop_acknowledging();
        }
        Ok(features)
    }

    /// Ends the connection, as a stub must see it that serves one client at a time.
    pub fn hang_up(&mut self) {
        self.session.give_up();
        // Nothing is to be done about a connection that cannot be closed because it is gone.
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }

    /// The session.
    pub const fn session(&self) -> &Session {
        &self.session
    }

    /// The next event, or `None` when there is none until then.
    fn next(&mut self, until: Instant) -> Result<Option<Event>, Error> {
        let mut buffer = [0; limits::GDB_RECEIVE_BYTES];
        loop {
            self.flush(until)?;
            if let Some(event) = self.session.next_event() {
                return Ok(Some(event));
            }
            let now = Instant::now();
            self.session.tick(now.saturating_duration_since(self.since));
            if let Some(event) = self.session.next_event() {
                return Ok(Some(event));
            }
            if now >= until {
                return Ok(None);
            }
            self.stream.set_read_timeout(Some(left(until))).map_err(|error| self.lost(error))?;
            match self.stream.read(&mut buffer) {
                Ok(0) => {
                    self.session.give_up();
                    return Err(Error::Closed);
                }
                Ok(count) => self.session.receive(buffer.get(..count).unwrap_or_default()),
                Err(error) if is_nothing_yet(&error) => {}
                Err(error) => return Err(self.lost(error)),
            }
        }
    }

    fn flush(&mut self, until: Instant) -> Result<(), Error> {
        let bytes = self.session.take_outgoing();
        if bytes.is_empty() {
            return Ok(());
        }
        self.stream.set_write_timeout(Some(left(until))).map_err(|error| self.lost(error))?;
        self.stream.write_all(&bytes).map_err(|error| self.lost(error))
    }

    fn lost(&mut self, error: std::io::Error) -> Error {
        self.session.give_up();
        match error.kind() {
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted => Error::Closed,
            _ => Error::Io(error),
        }
    }
}

fn left(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now()).max(SHORTEST)
}

fn is_nothing_yet(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// Closes by a reset, so that the emulator's end of the connection does not stay in TIME_WAIT: stubs bind without
/// SO_REUSEADDR, and the next emulator would silently have no stub at this port for a minute.
#[cfg(unix)]
fn reset_on_close(stream: &TcpStream) -> std::io::Result<()> {
    use nix::sys::socket::{setsockopt, sockopt::Linger};
    Ok(setsockopt(stream, Linger, &nix::libc::linger { l_onoff: 1, l_linger: 0 })?)
}

#[cfg(not(unix))]
fn reset_on_close(_: &TcpStream) -> std::io::Result<()> {
    Ok(())
}
