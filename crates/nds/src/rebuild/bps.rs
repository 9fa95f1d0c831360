//! BPS patch files: what makes a result of its source, so that a mod can be given away without the ROM. The format is
//! byuu's, "BPS file format specification": actions that read the source, the patch, or what is written already, and
//! CRC-32 of source, result and patch.

use crate::crc::crc32;

/// What every patch begins with.
const MAGIC: &[u8] = b"BPS1";
/// Bytes of the three checksums at the end.
const FOOTER: usize = 12;
/// Equal bytes from which on it is worth leaving a literal for another action.
const WORTH: usize = 8;

/// What an action does; its number is the low two bits of its word.
const SOURCE_READ: u64 = 0;
const TARGET_READ: u64 = 1;
const TARGET_COPY: u64 = 3;

/// Why a patch does not apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BpsError {
    /// No patch, or one that ends too early.
    #[error("this is no whole BPS patch")]
    Malformed,
    /// A patch for another source.
    #[error("the patch is for another source")]
    OtherSource,
    /// The result would be larger than allowed.
    #[error("the result would be larger than allowed")]
    TooLarge,
    /// A checksum is wrong.
    #[error("a checksum of the patch or of its result is wrong")]
    Checksum,
}

/// Makes the patch.
pub fn create(source: &[u8], target: &[u8]) -> Vec<u8> {
    let mut patch = MAGIC.to_vec();
    number(&mut patch, source.len() as u64);
    number(&mut patch, target.len() as u64);
    number(&mut patch, 0);
    let (mut at, mut literal) = (0, 0);
    let mut copied = 0_u64;
    while let Some(rest) = target.get(at..).filter(|rest| !rest.is_empty()) {
        let same = common(rest, source.get(at..).unwrap_or_default());
        // A run of one byte is that byte once, and a copy of it over itself.
        let run = rest.first().map_or(0, |first| rest.iter().take_while(|byte| *byte == first).count());
        if same >= WORTH || same == rest.len() {
            flush(&mut patch, target, literal..at);
            action(&mut patch, SOURCE_READ, same);
            at += same;
            literal = at;
        } else if run > WORTH {
            flush(&mut patch, target, literal..at + 1);
            action(&mut patch, TARGET_COPY, run - 1);
            // Every copy names its place relative to where the last one ended, with the sign in the lowest bit.
            number(&mut patch, (at as u64 - copied) << 1);
            copied = (at + run - 1) as u64;
            at += run;
            literal = at;
        } else {
            at += 1;
        }
    }
    flush(&mut patch, target, literal..target.len());
    patch.extend(crc32(source).to_le_bytes());
    patch.extend(crc32(target).to_le_bytes());
    patch.extend(crc32(&patch).to_le_bytes());
    patch
}

/// How many bytes agree, whole blocks first: the parts between changes have megabytes.
fn common(one: &[u8], other: &[u8]) -> usize {
    const BLOCK: usize = 4_096;
    let blocks = one
        .chunks(BLOCK)
        .zip(other.chunks(BLOCK))
        .take_while(|(one, other)| one.len() == BLOCK && one == other)
        .count();
    let at = blocks * BLOCK;
    let rest = one.get(at..).unwrap_or_default().iter().zip(other.get(at..).unwrap_or_default());
    at + rest.take_while(|(one, other)| one == other).count()
}

fn flush(patch: &mut Vec<u8>, target: &[u8], range: std::ops::Range<usize>) {
    if let Some(bytes) = target.get(range).filter(|bytes| !bytes.is_empty()) {
        action(patch, TARGET_READ, bytes.len());
        patch.extend(bytes);
    }
}

fn action(patch: &mut Vec<u8>, kind: u64, length: usize) {
    number(patch, (length as u64 - 1) << 2 | kind);
}

/// A number of the format: seven bits a byte, the last with its highest bit set, and every further byte counting from one.
fn number(patch: &mut Vec<u8>, mut value: u64) {
    loop {
        let low = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 {
            patch.push(low | 0x80);
            return;
        }
        patch.push(low);
        value -= 1;
    }
}

/// What is left of a patch.
struct Actions<'a>(&'a [u8]);

impl<'a> Actions<'a> {
    fn number(&mut self) -> Result<u64, BpsError> {
        let (mut value, mut shift) = (0_u64, 1_u64);
        loop {
            let (byte, rest) = self.0.split_first().ok_or(BpsError::Malformed)?;
            self.0 = rest;
            let part = u64::from(byte & 0x7f).checked_mul(shift).ok_or(BpsError::Malformed)?;
            value = value.checked_add(part).ok_or(BpsError::Malformed)?;
            if byte & 0x80 != 0 {
                return Ok(value);
            }
            shift = shift.checked_mul(128).ok_or(BpsError::Malformed)?;
            value = value.checked_add(shift).ok_or(BpsError::Malformed)?;
        }
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], BpsError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(BpsError::Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    /// A place: the last one moved by a signed number.
    fn moved(&mut self, from: usize) -> Result<usize, BpsError> {
        let word = self.number()?;
        let by = usize::try_from(word >> 1).map_err(|_| BpsError::Malformed)?;
        let place = if word & 1 == 1 { from.checked_sub(by) } else { from.checked_add(by) };
        place.ok_or(BpsError::Malformed)
    }
}

/// Applies a patch whose result has at most `most` bytes, and checks all three checksums.
pub fn apply(patch: &[u8], source: &[u8], most: usize) -> Result<Vec<u8>, BpsError> {
    let body = patch.len().checked_sub(FOOTER).ok_or(BpsError::Malformed)?;
    let (actions, footer) = patch.split_at_checked(body).ok_or(BpsError::Malformed)?;
    let mut sums = footer.chunks(4).map(|sum| <[u8; 4]>::try_from(sum).map_or(0, u32::from_le_bytes));
    let (for_source, for_target, own) = (sums.next(), sums.next(), sums.next());
    if own != patch.get(..body + 8).map(crc32) {
        return Err(BpsError::Checksum);
    }
    let mut actions = Actions(actions.strip_prefix(MAGIC).ok_or(BpsError::Malformed)?);
    if actions.number()? != source.len() as u64 || for_source != Some(crc32(source)) {
        return Err(BpsError::OtherSource);
    }
    let size = usize::try_from(actions.number()?).ok().filter(|size| *size <= most).ok_or(BpsError::TooLarge)?;
    let metadata = usize::try_from(actions.number()?).map_err(|_| BpsError::Malformed)?;
    actions.take(metadata)?;
    let mut target: Vec<u8> = Vec::with_capacity(size);
    let (mut from_source, mut from_target) = (0, 0);
    while !actions.0.is_empty() {
        let word = actions.number()?;
        let length = usize::try_from(word >> 2).ok().and_then(|length| length.checked_add(1));
        let length = length.filter(|length| *length <= size - target.len()).ok_or(BpsError::Malformed)?;
        let read = |at: usize| source.get(at..).and_then(|rest| rest.get(..length)).ok_or(BpsError::Malformed);
        match word & 3 {
            SOURCE_READ => target.extend_from_slice(read(target.len())?),
            TARGET_READ => target.extend_from_slice(actions.take(length)?),
            TARGET_COPY => {
                from_target = actions.moved(from_target)?;
                for _ in 0..length {
                    let byte = target.get(from_target).copied().ok_or(BpsError::Malformed)?;
                    target.push(byte);
                    from_target += 1;
                }
            }
            _ => {
                from_source = actions.moved(from_source)?;
                target.extend_from_slice(read(from_source)?);
                from_source += length;
            }
        }
    }
    if target.len() == size && for_target == Some(crc32(&target)) { Ok(target) } else { Err(BpsError::Checksum) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_patch_made_by_hand_applies() {
        // Sizes 4 and 9, no metadata; 4 bytes of the source: 3 << 2 | 0; one literal: 0 << 2 | 1; 4 copies from offset 4:
        // 3 << 2 | 3, then 4 << 1. One byte each, with the highest bit.
        let mut patch = [b"BPS1", &[0x84, 0x89, 0x80, 0x8c, 0x81, b'x', 0x8f, 0x88][..]].concat();
        for bytes in [&b"abcd"[..], b"abcdxxxxx"] {
            patch.extend(crc32(bytes).to_le_bytes());
        }
        patch.extend(crc32(&patch).to_le_bytes());
        assert_eq!(apply(&patch, b"abcd", 9).unwrap(), b"abcdxxxxx");
        assert_eq!(apply(&patch, b"abce", 9), Err(BpsError::OtherSource));
        assert_eq!(apply(&patch, b"abcd", 8), Err(BpsError::TooLarge));
        let ours = create(b"abcd", b"abcdxxxxxxxxxxxx");
        assert_eq!(apply(&ours, b"abcd", 16).unwrap(), b"abcdxxxxxxxxxxxx");
    }

    #[test]
    fn numbers_are_those_of_the_specification() {
        // 128 is 0x00 0x80: zero, and one that the second byte counts from.
        let mut bytes = Vec::new();
        for value in [0, 127, 128, 16_511, 16_512] {
            number(&mut bytes, value);
        }
        assert_eq!(bytes, [0x80, 0xff, 0x00, 0x80, 0x7f, 0xff, 0x00, 0x00, 0x80]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn what_is_made_applies_and_damage_is_noticed(
            source in proptest::collection::vec(0_u8..3, 1..400),
            mut target in proptest::collection::vec(0_u8..3, 1..400),
            zeros in 0_usize..100,
            damaged in any::<prop::sample::Index>(),
        ) {
            target.extend(vec![0; zeros]);
            let mut patch = create(&source, &target);
            prop_assert_eq!(apply(&patch, &source, target.len()), Ok(target.clone()));
            let at = damaged.index(patch.len());
            patch[at] ^= 1;
            prop_assert!(apply(&patch, &source, target.len()).is_err());
        }
    }
}
