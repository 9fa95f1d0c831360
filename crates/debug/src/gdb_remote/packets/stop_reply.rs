//! Why a program stopped (GDB manual, "Stop Reply Packets").

use super::super::Error;
use super::{bad, unhex};

const NAME: &str = "stop reply";

/// What kind of stop it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopKind {
    /// `S` or `T`: a signal, which is also how breakpoints, watchpoints and steps are told.
    Signal,
    /// `W`: the program ended by itself.
    Exited,
    /// `X`: a signal ended it.
    Terminated,
}

impl StopKind {
    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Signal => "signal",
            Self::Exited => "exited",
            Self::Terminated => "terminated",
        }
    }
}

/// Why a program stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopReply {
    /// What kind of stop it is.
    pub kind: StopKind,
    /// The signal in GDB's numbers: 5 for a breakpoint or a step, 2 for an interrupt; the exit status for an end.
    pub signal: u8,
    /// What a `T` packet says besides, in its order: name and value.
    pub fields: Vec<(String, String)>,
    /// The whole packet.
    pub raw: String,
}

impl StopReply {
    /// Takes a packet apart.
    ///
    /// # Errors
    /// [`Error::BadAnswer`] for anything that is no stop.
    pub fn read(packet: &[u8]) -> Result<Self, Error> {
        answer(packet)
    }

    /// The digits of the watched address, where the stop is a watchpoint's, with the name of the field: `watch`, `rwatch` or
    /// `awatch`.
    pub fn watch(&self) -> Option<(&str, &str)> {
        let is_watch = |name: &str| matches!(name, "watch" | "rwatch" | "awatch");
        self.fields.iter().find(|(name, _)| is_watch(name)).map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// Takes a stop apart. Characters behind the number of an `S` packet are passed over: mGBA sends one.
///
/// # Errors
/// [`Error::BadAnswer`] for anything that is no stop.
pub fn answer(packet: &[u8]) -> Result<StopReply, Error> {
    let wrong = || bad(NAME, packet);
    let (letter, rest) = packet.split_first().ok_or_else(wrong)?;
    let (digits, rest) = rest.split_at_checked(2).ok_or_else(wrong)?;
    let [signal] = unhex(digits).as_deref().and_then(|bytes| bytes.try_into().ok()).ok_or_else(wrong)?;
    let (kind, fields) = match letter {
        b'S' => (StopKind::Signal, Vec::new()),
        b'T' => (StopKind::Signal, fields(rest)),
        b'W' => (StopKind::Exited, Vec::new()),
        b'X' => (StopKind::Terminated, Vec::new()),
        _ => return Err(wrong()),
    };
    Ok(StopReply { kind, signal, fields, raw: String::from_utf8_lossy(packet).into_owned() })
}

fn fields(rest: &[u8]) -> Vec<(String, String)> {
    let text = String::from_utf8_lossy(rest);
    let pairs = text.split(';').filter_map(|part| part.split_once(':'));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stops_of_real_stubs_are_taken_apart() {
        // DeSmuME, mGBA (with its stray letter), and DeSmuME's watchpoint.
        let plain = answer(b"S05").unwrap();
        assert_eq!((plain.kind, plain.signal, plain.watch()), (StopKind::Signal, 5, None));
        assert_eq!(answer(b"S05k").unwrap().signal, 5);
        let watch = answer(b"T06watch:c0000320;").unwrap();
        assert_eq!((watch.signal, watch.watch()), (6, Some(("watch", "c0000320"))));
        assert_eq!(answer(b"W00").unwrap().kind, StopKind::Exited);
        assert_eq!(answer(b"X09").unwrap().kind, StopKind::Terminated);
    }

    #[test]
    fn other_answers_are_no_stops() {
        for packet in [b"".as_slice(), b"OK", b"S", b"Sx5", b"O48", b"00001002", b"E01"] {
            assert!(answer(packet).is_err(), "{}", String::from_utf8_lossy(packet));
        }
    }
}
