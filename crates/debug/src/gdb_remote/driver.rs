//! Moves a session's bytes over TCP, with one deadline per call.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use base::limits;

use super::error::Error;
use super::packets::{StopReply, bad, query_supported, standard, stop_reason};
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

    /// Connects to a stub that may still be busy with a client that has just left: such a stub closes the connection at once.
    /// The program must be stopped.
    ///
    /// # Errors
    /// The last try's, when the time is over.
    pub fn connect_when_free(address: SocketAddr, until: Instant) -> Result<Self, Error> {
        loop {
            let mut driver = Self::connect(address, until)?;
            match driver.exchange(Request::ask(stop_reason::request()), until) {
                Ok(_) => return Ok(driver),
                Err(Error::Closed) if Instant::now() < until => std::thread::sleep(BUSY_PAUSE),
                Err(error) => return Err(error),
            }
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
