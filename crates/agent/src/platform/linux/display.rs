//! A connection to an X display that never waits longer than it was given.

use super::proc;
use crate::platform::PlatformError;
use base::limits;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::ffi::OsString;
use std::io::{Error, ErrorKind, IoSlice, Read, Result as IoResult};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Instant;
use x11rb::errors::ConnectError;
use x11rb::reexports::x11rb_protocol::parse_display::{ConnectAddress, parse_display};
use x11rb::rust_connection::{DefaultStream, PollMode, RustConnection, Stream};
use x11rb::utils::RawFdContainer;

/// Which display, and the file with the cookie that opens it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Display {
    name: String,
    authority: Option<PathBuf>,
}

impl Display {
    /// The display that a process draws on: the one of its environment, else ours.
    ///
    /// # Errors
    /// [`PlatformError::NoDisplay`] when neither has one.
    pub fn of(process: u32) -> Result<Display, PlatformError> {
        let find = |name: &str| proc::variable(process, name).filter(|value| !value.is_empty());
        let theirs = find("DISPLAY");
        let is_theirs = theirs.is_some();
        let Some(name) = theirs.or_else(|| std::env::var_os("DISPLAY").filter(|value| !value.is_empty())) else {
            return Err(PlatformError::NoDisplay(
                "there is no display: DISPLAY is set neither for the program nor for the agent; start an X server (Xvfb \
                 will do) and launch the program with DISPLAY in `env`"
                    .to_owned(),
            ));
        };
        let variable = |name: &str| if is_theirs { find(name) } else { None }.or_else(|| std::env::var_os(name));
        let home = |home: OsString| PathBuf::from(home).join(".Xauthority");
        let authority = variable("XAUTHORITY").map(PathBuf::from).or_else(|| variable("HOME").map(home));
        Ok(Display { name: name.to_string_lossy().into_owned(), authority })
    }

    /// Connects, for use until `deadline`. Gives the number of the screen too.
    pub fn connect(&self, deadline: Instant) -> Result<(RustConnection<Timed>, usize), PlatformError> {
        let refuse = |why: String| PlatformError::NoDisplay(format!("display {}: {why}", self.name));
        let display = parse_display(Some(&self.name)).map_err(|error| refuse(error.to_string()))?;
        // Its port would be 6000 + n, which x11rb adds without a check.
        if display.display > u16::MAX - 6_000 {
            return Err(refuse("there is no display of such a number".to_owned()));
        }
        let mut last = "there is no such display on this machine".to_owned();
        for address in display.connect_instruction() {
            if matches!(&address, ConnectAddress::Hostname(host, _) if *host != "localhost" && *host != "127.0.0.1") {
                last = "it is on another machine, where windows are not matched to processes".to_owned();
                continue;
            }
            let stream = match DefaultStream::connect(&address) {
                Ok((stream, _)) => Timed { stream, deadline },
                Err(error) => {
                    last = format!("{error}; is its X server running?");
                    continue;
                }
            };
            let (name, data) = self.cookie(display.display).unwrap_or_default();
            let screen = usize::from(display.screen);
            return match RustConnection::connect_to_stream_with_auth_info(stream, screen, name, data) {
                Ok(connection) => Ok((connection, screen)),
                Err(ConnectError::IoError(error)) if error.kind() == ErrorKind::TimedOut => {
                    Err(PlatformError::Timeout("the X server's greeting"))
                }
                Err(error) => Err(refuse(format!("{error}; XAUTHORITY names the file with the cookie that opens it"))),
            };
        }
        Err(refuse(last))
    }

    fn cookie(&self, display: u16) -> Option<(Vec<u8>, Vec<u8>)> {
        // The path is the program's choice.
        let mut file = Vec::new();
        let limit = limits::MAX_AUTHORITY_BYTES;
        proc::open_regular(self.authority.as_deref()?).ok()?.take(limit).read_to_end(&mut file).ok()?;
        find_cookie(&file, &host_name(), display)
    }
}

/// This machine's name.
pub fn host_name() -> Vec<u8> {
    std::fs::read("/proc/sys/kernel/hostname").unwrap_or_default().trim_ascii().to_vec()
}

/// Finds the cookie of a local display in an authority file (Xau, `man Xsecurity`): family, address, number, name and data,
/// each but the first with its length before it, all numbers big-endian.
fn find_cookie(file: &[u8], host: &[u8], display: u16) -> Option<(Vec<u8>, Vec<u8>)> {
    const LOCAL: u16 = 256;
    const WILD: u16 = 65_535;
    let mut rest = file;
    let mut any_host = None;
    while let Some((family, after)) = number(rest) {
        let (address, after) = counted(after)?;
        let (shown, after) = counted(after)?;
        let (name, after) = counted(after)?;
        let (data, after) = counted(after)?;
        rest = after;
        let right_display = shown.is_empty() || shown == display.to_string().as_bytes();
        if !right_display || name != b"MIT-MAGIC-COOKIE-1" {
            continue;
        }
        let found = (name.to_vec(), data.to_vec());
        if family == WILD || (family == LOCAL && address == host) {
            return Some(found);
        }
        // The machine may have been renamed since.
        any_host.get_or_insert(found);
    }
    any_host
}

fn number(bytes: &[u8]) -> Option<(u16, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<2>()?;
    Some((u16::from_be_bytes(*number), rest))
}

fn counted(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = number(bytes)?;
    rest.split_at_checked(usize::from(length))
}

/// A stream to the server on which every wait ends by the deadline.
#[derive(Debug)]
pub struct Timed {
    stream: DefaultStream,
    deadline: Instant,
}

impl Stream for Timed {
    fn poll(&self, mode: PollMode) -> IoResult<()> {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::POLLIN, mode.readable());
        flags.set(PollFlags::POLLOUT, mode.writable());
        loop {
            let left = self.deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Error::from(ErrorKind::TimedOut));
            }
            let milliseconds = i32::try_from(left.as_millis()).unwrap_or(i32::MAX).saturating_add(1);
            let timeout = PollTimeout::try_from(milliseconds).unwrap_or(PollTimeout::MAX);
            match poll(&mut [PollFd::new(self.stream.as_fd(), flags)], timeout) {
                Ok(0) | Err(nix::errno::Errno::EINTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn read(&self, buffer: &mut [u8], descriptors: &mut Vec<RawFdContainer>) -> IoResult<usize> {
        self.stream.read(buffer, descriptors)
    }

    fn write(&self, buffer: &[u8], descriptors: &mut Vec<RawFdContainer>) -> IoResult<usize> {
        self.stream.write(buffer, descriptors)
    }

    fn write_vectored(&self, buffers: &[IoSlice<'_>], descriptors: &mut Vec<RawFdContainer>) -> IoResult<usize> {
        self.stream.write_vectored(buffers, descriptors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cookie_of_the_right_host_and_display_is_taken() {
        let entry = |family: u16, address: &[u8], shown: &[u8], name: &[u8], data: &[u8]| {
            let mut bytes = family.to_be_bytes().to_vec();
            for part in [address, shown, name, data] {
                bytes.extend((part.len() as u16).to_be_bytes());
                bytes.extend(part);
            }
            bytes
        };
        let cookie = b"MIT-MAGIC-COOKIE-1";
        let file = [
            entry(256, b"elsewhere", b"3", cookie, b"first"),
            entry(256, b"here", b"4", cookie, b"other display"),
            entry(256, b"here", b"3", b"XDM-AUTHORIZATION-1", b"other kind"),
            entry(256, b"here", b"3", cookie, b"right"),
        ]
        .concat();
        let data = |file: &[u8], host: &[u8], display| find_cookie(file, host, display).map(|(_, data)| data);
        assert_eq!(data(&file, b"here", 3).as_deref(), Some(&b"right"[..]));
        assert_eq!(data(&file, b"here", 4).as_deref(), Some(&b"other display"[..]));
        assert_eq!(data(&file, b"renamed", 3).as_deref(), Some(&b"first"[..]));
        assert_eq!(data(&file, b"here", 5), None);
        assert_eq!(data(&entry(65_535, b"", b"", cookie, b"any"), b"here", 9).as_deref(), Some(&b"any"[..]));
        for cut in 0..file.len() {
            let _ = find_cookie(&file[..cut], b"here", 3);
        }
    }
}
