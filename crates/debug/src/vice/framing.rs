//! Frames of the binary monitor (VICE manual, "Binary monitor", "Command structure" and "Response structure").

use base::limits;

use super::error::Error;
use super::session::Request;

/// First byte of every frame.
const START: u8 = 0x02;
/// Version of the protocol. VICE drops commands of another one without a word (measured with 3).
const VERSION: u8 = 0x02;
/// Bytes before a response's body.
const HEAD: usize = 12;
/// Number of the request that an event belongs to: none.
pub const NO_REQUEST: u32 = 0xFFFF_FFFF;

/// One frame that VICE sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What it is.
    pub kind: u8,
    /// VICE's error code; 0 for none.
    pub error: u8,
    /// The request it answers, or [`NO_REQUEST`].
    pub request: u32,
    /// What follows.
    pub body: Vec<u8>,
}

/// A request as it is sent.
pub fn encode(request: &Request, id: u32) -> Vec<u8> {
    let body = request.body();
    let mut bytes = Vec::with_capacity(body.len() + 11);
    bytes.extend([START, VERSION]);
    bytes.extend(u32::try_from(body.len()).unwrap_or(u32::MAX).to_le_bytes());
    bytes.extend(id.to_le_bytes());
    bytes.push(request.command());
    bytes.extend_from_slice(body);
    bytes
}

/// Finds frames in bytes that arrive split in any way.
#[derive(Debug, Default)]
pub struct Decoder {
    bytes: Vec<u8>,
    read: usize,
}

impl Decoder {
    /// Takes bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.read > 0 {
            self.bytes.drain(..self.read.min(self.bytes.len()));
            self.read = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole frame, or `None` when more bytes are needed.
    ///
    /// # Errors
    /// [`Error::Protocol`]; what follows cannot be read either.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, Error> {
        let rest = self.bytes.get(self.read..).unwrap_or_default();
        let (start, version) = (rest.first(), rest.get(1));
        if start.is_some_and(|byte| *byte != START) || version.is_some_and(|byte| *byte != VERSION) {
            return Err(Error::Protocol(format!(
                "{:#04x} {:#04x} where a frame begins with 0x02 0x02",
                start.copied().unwrap_or_default(),
                version.copied().unwrap_or_default()
            )));
        }
        let Some((head, rest)) = rest.split_first_chunk::<HEAD>() else { return Ok(None) };
        let [_, _, l0, l1, l2, l3, kind, error, r0, r1, r2, r3] = *head;
        let length = usize::try_from(u32::from_le_bytes([l0, l1, l2, l3])).unwrap_or(usize::MAX);
        if length > limits::MAX_VICE_FRAME_BYTES {
            return Err(Error::Protocol(format!(
                "a frame of {length} bytes, above the limit of {}",
                limits::MAX_VICE_FRAME_BYTES
            )));
        }
        let Some(body) = rest.get(..length) else { return Ok(None) };
        let frame = Frame { kind, error, request: u32::from_le_bytes([r0, r1, r2, r3]), body: body.to_vec() };
        self.read += HEAD + length;
        Ok(Some(frame))
    }
}

/// A frame as VICE sends it, for tests and stand-ins.
pub fn encode_response(kind: u8, error: u8, request: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![START, VERSION];
    bytes.extend(u32::try_from(body.len()).unwrap_or(u32::MAX).to_le_bytes());
    bytes.extend([kind, error]);
    bytes.extend(request.to_le_bytes());
    bytes.extend_from_slice(body);
    bytes
}

/// Reads the fields of a body, one after another.
#[derive(Debug)]
pub struct Fields<'a> {
    rest: &'a [u8],
    what: &'static str,
}

impl<'a> Fields<'a> {
    /// Of `body`, which is called `what` in errors.
    pub const fn of(body: &'a [u8], what: &'static str) -> Self {
        Self { rest: body, what }
    }

    /// The next bytes.
    ///
    /// # Errors
    /// [`Error::Protocol`] when there are fewer.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or_else(|| self.short(count))?;
        self.rest = rest;
        Ok(taken)
    }

    /// The next byte.
    ///
    /// # Errors
    /// As [`Self::bytes`].
    pub fn byte(&mut self) -> Result<u8, Error> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    /// The next 16 bits.
    ///
    /// # Errors
    /// As [`Self::bytes`].
    pub fn word(&mut self) -> Result<u16, Error> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    /// The next 32 bits.
    ///
    /// # Errors
    /// As [`Self::bytes`].
    pub fn long(&mut self) -> Result<u32, Error> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// The next item of a list: a byte with its length, then that many bytes.
    ///
    /// # Errors
    /// As [`Self::bytes`].
    pub fn item(&mut self) -> Result<Self, Error> {
        let length = usize::from(self.byte()?);
        Ok(Self { rest: self.bytes(length)?, what: self.what })
    }

    /// A text behind a byte with its length. Characters beyond ASCII are shown as themselves.
    ///
    /// # Errors
    /// As [`Self::bytes`].
    pub fn text(&mut self) -> Result<String, Error> {
        let length = usize::from(self.byte()?);
        Ok(self.bytes(length)?.iter().copied().map(char::from).collect())
    }

    /// All that is left.
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    fn array<const COUNT: usize>(&mut self) -> Result<[u8; COUNT], Error> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or_else(|| self.short(COUNT))?;
        self.rest = rest;
        Ok(*taken)
    }

    fn short(&self, wanted: usize) -> Error {
        Error::Protocol(format!("{} that ends early: {wanted} more bytes belong to it", self.what))
    }
}
