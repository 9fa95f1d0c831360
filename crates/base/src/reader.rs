//! The only way parsers take numbers and bytes out of a file: every read is checked, little-endian, and says where it failed.

use std::ops::Range;

/// A read that does not fit in the bytes there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{length} bytes at offset 0x{offset:x} do not fit in {size} bytes")]
pub struct OutOfRange {
    /// Where the read began, in bytes from the start of what the reader was made from.
    pub offset: u64,
    /// How many bytes were wanted.
    pub length: u64,
    /// How many bytes there are in all.
    pub size: u64,
}

/// Reads forward through bytes. A failed read leaves the position where it was.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Reader<'a> {
    /// A reader at the start of `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    /// A reader of the same bytes at `offset`; the end itself is a legal place, from which nothing can be read.
    pub fn at(&self, offset: u64) -> Result<Self, OutOfRange> {
        match usize::try_from(offset) {
            Ok(position) if position <= self.bytes.len() => Ok(Self { bytes: self.bytes, position }),
            _ => Err(self.failure(offset, 0)),
        }
    }

    /// How many bytes lie before the next one to be read.
    pub const fn position(&self) -> usize {
        self.position
    }

    /// How many bytes can still be read.
    pub const fn remaining(&self) -> usize {
        self.bytes.len().saturating_sub(self.position)
    }

    /// The next `length` bytes.
    pub fn bytes(&mut self, length: usize) -> Result<&'a [u8], OutOfRange> {
        let end = self.position.checked_add(length);
        let found = end.and_then(|end| self.bytes.get(self.position..end));
        let found = found.ok_or_else(|| self.failure(self.position as u64, length as u64))?;
        self.position += length;
        Ok(found)
    }

    /// The next `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], OutOfRange> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N)?);
        Ok(array)
    }

    /// The next byte.
    pub fn u8(&mut self) -> Result<u8, OutOfRange> {
        self.array().map(u8::from_le_bytes)
    }

    /// The next two bytes as a number.
    pub fn u16(&mut self) -> Result<u16, OutOfRange> {
        self.array().map(u16::from_le_bytes)
    }

    /// The next four bytes as a number.
    pub fn u32(&mut self) -> Result<u32, OutOfRange> {
        self.array().map(u32::from_le_bytes)
    }

    /// The bytes of a range, wherever the position is; a reversed range does not fit.
    pub fn slice(&self, range: Range<u64>) -> Result<&'a [u8], OutOfRange> {
        let failure = || self.failure(range.start, range.end.saturating_sub(range.start));
        let start = usize::try_from(range.start).map_err(|_| failure())?;
        let end = usize::try_from(range.end).map_err(|_| failure())?;
        self.bytes.get(start..end).ok_or_else(failure)
    }

    fn failure(&self, offset: u64, length: u64) -> OutOfRange {
        OutOfRange { offset, length, size: self.bytes.len() as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_little_endian_and_move_the_position() {
        let mut reader = Reader::new(&[1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(reader.u8(), Ok(1));
        assert_eq!(reader.u16(), Ok(0x0302));
        assert_eq!(reader.u32(), Ok(0x0706_0504));
        assert_eq!((reader.position(), reader.remaining()), (7, 1));
    }

    #[test]
    fn a_read_past_the_end_fails_with_its_place_and_moves_nothing() {
        let mut reader = Reader::new(&[1, 2, 3]);
        assert_eq!(reader.u32(), Err(OutOfRange { offset: 0, length: 4, size: 3 }));
        assert_eq!(reader.bytes(usize::MAX).unwrap_err().length, u64::MAX);
        assert_eq!(reader.bytes(3), Ok(&[1, 2, 3][..]));
        assert_eq!(reader.u8(), Err(OutOfRange { offset: 3, length: 1, size: 3 }));
        assert_eq!(reader.bytes(0), Ok(&[][..]));
    }

    #[test]
    fn the_end_can_be_named_and_what_lies_beyond_it_cannot() {
        let reader = Reader::new(&[1, 2, 3]);
        assert_eq!(reader.at(3).map(|reader| reader.remaining()), Ok(0));
        assert_eq!(reader.at(4).unwrap_err(), OutOfRange { offset: 4, length: 0, size: 3 });
        assert_eq!(reader.slice(1..3), Ok(&[2, 3][..]));
        assert_eq!(reader.slice(3..3), Ok(&[][..]));
        assert_eq!(reader.slice(2..4).unwrap_err(), OutOfRange { offset: 2, length: 2, size: 3 });
        let reversed = Range { start: 2, end: 1 };
        assert_eq!(reader.slice(reversed).unwrap_err(), OutOfRange { offset: 2, length: 0, size: 3 });
        assert!(reader.slice(u64::MAX - 1..u64::MAX).is_err());
    }
}
