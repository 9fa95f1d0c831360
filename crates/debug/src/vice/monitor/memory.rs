//! Reading and writing memory, in commands of at most 65,535 bytes.

use base::limits;

use super::super::commands::{memory_get, memory_set};
use super::super::error::Error;
use super::Monitor;

/// Where memory is read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which view of memory.
    pub bank: u16,
    /// Which processor's.
    pub memspace: u8,
    /// First address.
    pub start: u16,
    /// Whether what a program's own access would bring about happens.
    pub side_effects: bool,
}

/// What was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The bytes, from the start on.
    pub bytes: Vec<u8>,
    /// First address that was not read, when there is more.
    pub next: Option<u16>,
}

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// First address.
    pub start: u16,
    /// Last address.
    pub end: u16,
}

impl Monitor {
    /// Reads from `place` to `end`, both included, at most `most` bytes.
    ///
    /// # Errors
    /// [`Error::Argument`] for a range that is none and for a number of bytes beyond 1 to 65,536; those of every call.
    pub fn read_memory(&self, place: Place, end: u16, most: i64, limit_ms: u64) -> Result<Memory, Error> {
        let Place { bank, memspace, start, side_effects } = place;
        let most = usize::try_from(most).ok().filter(|most| (1..=limits::MAX_VICE_TRANSFER_BYTES).contains(most));
        let (Some(most), true) = (most, start <= end) else {
            return Err(Error::Argument(format!(
                "start must not lie behind end, and max_bytes must be 1 to {}",
                limits::MAX_VICE_TRANSFER_BYTES
            )));
        };
        let whole = usize::from(end - start) + 1;
        let wanted = whole.min(most);
        let operation = self.stopped("read_memory", limit_ms, side_effects)?;
        let mut bytes: Vec<u8> = Vec::new();
        while let left @ 1.. = wanted - bytes.len() {
            let (first, last) = range(start, bytes.len(), left);
            let answer = operation.exchange(&memory_get::request(side_effects, first, last, memspace, bank))?;
            let read = memory_get::answer(&answer.body, usize::from(last - first) + 1)?;
            bytes.extend_from_slice(read);
        }
        let next = (wanted < whole).then(|| range(start, wanted, 1).0);
        Ok(Memory { bytes, next })
    }

    /// Writes `bytes` at `place`.
    ///
    /// # Errors
    /// [`Error::Argument`] for no bytes and for more than there is room up to $FFFF; [`Error::PartWrite`]; those of every call.
    pub fn write_memory(&self, place: Place, bytes: &[u8], limit_ms: u64) -> Result<Written, Error> {
        let Place { bank, memspace, start, side_effects } = place;
        let room = limits::MAX_VICE_TRANSFER_BYTES - usize::from(start);
        if bytes.is_empty() || bytes.len() > room {
            return Err(Error::Argument(format!(
                "data must be 1 to {room} bytes from {start:#06x} on, and is {}",
                bytes.len()
            )));
        }
        let (_, end) = range(start, bytes.len() - 1, 1);
        let operation = self.stopped("write_memory", limit_ms, true)?;
        let mut done = 0;
        for chunk in bytes.chunks(limits::MAX_VICE_CHUNK_BYTES) {
            let (first, last) = range(start, done, chunk.len());
            let written = operation.exchange(&memory_set::request(side_effects, first, chunk, memspace, bank));
            match written {
                Ok(_) => done += usize::from(last - first) + 1,
                Err(error) if done == 0 => return Err(error),
                Err(error) => {
                    let (_, reached) = range(start, done - 1, 1);
                    return Err(Error::PartWrite { start, reached, failed: first, end, source: Box::new(error) });
                }
            }
        }
        Ok(Written { start, end })
    }
}

/// First and last address of at most `left` bytes from `offset` on, as many as one command moves.
fn range(start: u16, offset: usize, left: usize) -> (u16, u16) {
    let address = |offset: usize| u16::try_from(usize::from(start).saturating_add(offset)).unwrap_or(u16::MAX);
    let count = left.min(limits::MAX_VICE_CHUNK_BYTES);
    (address(offset), address(offset + count.saturating_sub(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixty_four_kilobytes_take_two_commands() {
        assert_eq!(range(0, 0, 65_536), (0, 0xFFFE));
        assert_eq!(range(0, 65_535, 1), (0xFFFF, 0xFFFF));
        assert_eq!(range(0xC000, 0, 15), (0xC000, 0xC00E));
    }
}
