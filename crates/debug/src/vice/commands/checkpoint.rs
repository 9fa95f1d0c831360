//! Commands 0x12 to 0x15: "Checkpoint set", "delete", "list" and "toggle".

use super::super::error::Error;
use super::super::framing::Fields;
use super::super::session::Request;

/// Kind of a frame that says how a checkpoint is.
pub const INFO: u8 = 0x11;
/// Command that makes one.
pub const SET: u8 = 0x12;
const DELETE: u8 = 0x13;
/// Command that lists them.
pub const LIST: u8 = 0x14;
const TOGGLE: u8 = 0x15;

/// A checkpoint as VICE has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// Its number. When none is left, VICE counts from 1 again (measured).
    pub number: u32,
    /// Whether it is what stopped the machine.
    pub hit: bool,
    /// First address.
    pub start: u16,
    /// Last address.
    pub end: u16,
    /// Whether it stops the machine.
    pub stops: bool,
    /// Whether it is on.
    pub enabled: bool,
    /// 1 for loads, 2 for stores, 4 for execution, added up.
    pub operations: u8,
    /// Whether it goes away when it is hit.
    pub temporary: bool,
    /// How often it was hit.
    pub hits: u32,
    /// How many hits are still passed over.
    pub ignored: u32,
    /// Whether it has a condition.
    pub conditional: bool,
    /// Which processor's memory it is about.
    pub memspace: u8,
}

/// A checkpoint to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewCheckpoint {
    /// First address.
    pub start: u16,
    /// Last address.
    pub end: u16,
    /// Whether it stops the machine.
    pub stops: bool,
    /// Whether it is on.
    pub enabled: bool,
    /// 1 for loads, 2 for stores, 4 for execution, added up. VICE 3.7.1 dies of 0.
    pub operations: u8,
    /// Whether it goes away when it is hit. Making such a one resumes the machine.
    pub temporary: bool,
    /// Which processor's memory it is about.
    pub memspace: u8,
}

/// What is sent to make one.
pub fn set(new: &NewCheckpoint) -> Request {
    let mut body = new.start.to_le_bytes().to_vec();
    body.extend(new.end.to_le_bytes());
    body.extend([u8::from(new.stops), u8::from(new.enabled), new.operations, u8::from(new.temporary), new.memspace]);
    Request::new(SET, body)
}

/// What is sent to delete one.
pub fn delete(number: u32) -> Request {
    Request::new(DELETE, number.to_le_bytes().to_vec())
}

/// What is sent to list them all. Each comes in a frame of its own, before the answer.
pub const fn list() -> Request {
    Request::new(LIST, Vec::new())
}

/// What is sent to switch one on or off.
pub fn toggle(number: u32, enabled: bool) -> Request {
    let mut body = number.to_le_bytes().to_vec();
    body.push(u8::from(enabled));
    Request::new(TOGGLE, body)
}

/// Reads a frame that says how a checkpoint is.
///
/// # Errors
/// [`Error::Protocol`].
pub fn info(body: &[u8]) -> Result<Checkpoint, Error> {
    let mut fields = Fields::of(body, "a checkpoint");
    Ok(Checkpoint {
        number: fields.long()?,
        hit: fields.byte()? != 0,
        start: fields.word()?,
        end: fields.word()?,
        stops: fields.byte()? != 0,
        enabled: fields.byte()? != 0,
        operations: fields.byte()?,
        temporary: fields.byte()? != 0,
        hits: fields.long()?,
        ignored: fields.long()?,
        conditional: fields.byte()? != 0,
        // An older VICE does not say it.
        memspace: fields.byte().unwrap_or_default(),
    })
}

/// Reads the answer to [`list`]: how many there are.
///
/// # Errors
/// [`Error::Protocol`].
pub fn count(body: &[u8]) -> Result<u32, Error> {
    Fields::of(body, "a number of checkpoints").long()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_has_the_manuals_bytes() {
        let new = NewCheckpoint {
            start: 0x0930,
            end: 0x0932,
            stops: true,
            enabled: false,
            operations: 6,
            temporary: true,
            memspace: 1,
        };
        assert_eq!(set(&new).body(), [0x30, 0x09, 0x32, 0x09, 1, 0, 6, 1, 1]);
        assert_eq!(delete(0x0102).body(), [2, 1, 0, 0]);
        assert_eq!(toggle(3, true).body(), [3, 0, 0, 0, 1]);
        assert!(list().body().is_empty());
    }

    #[test]
    fn a_recorded_checkpoint_is_read() {
        // As x64sc 3.7.1 answered to one at $08F6, temporary.
        let body = [1, 0, 0, 0, 0, 0xF6, 0x08, 0xF6, 0x08, 1, 1, 4, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let checkpoint = info(&body).unwrap();
        assert_eq!((checkpoint.number, checkpoint.start, checkpoint.end), (1, 0x08F6, 0x08F6));
        assert!(checkpoint.stops && checkpoint.enabled && checkpoint.temporary && !checkpoint.conditional);
        assert_eq!((checkpoint.operations, checkpoint.hits, checkpoint.memspace), (4, 0, 0));
        assert!(matches!(info(&body[..20]), Err(Error::Protocol(_))));
        assert_eq!(count(&[3, 0, 0, 0]).unwrap(), 3);
    }
}
