//! BLZ, the backward LZ of compressed overlays and ARM9 programs: checked without writing, decoded as the console does.
//!
//! The last eight bytes are a footer: a word with the length of the compressed part (low 24 bits, footer included) and the
//! length of the footer (high 8 bits), and a word with how many bytes the image is longer. What lies before the compressed
//! part is stored as it is. Tokens are read from the footer downwards, eight to a flag byte, highest bit first: 0 is a
//! literal, 1 a copy of 3 to 18 bytes from 3 to 4,098 bytes above (GBATEK, "LZ Decompression Functions", has the
//! forward form; the backward one is the SDK's start-up code, as published tools read it).
//!
//! The console decodes in place. So a stream whose output overtakes its input is refused: there it would destroy itself.

mod encode;

pub use encode::{EncodeError, encode};

use std::ops::Range;

use base::{Budget, OutOfRange, Reader, limits};

/// Bytes of the footer without padding.
const FOOTER: u64 = 8;
/// More than any token gives of a byte: 8 * 18 of 17.
const MOST_GAIN: u64 = 9;
/// Bytes of a block that holds the longest copy.
const BLOCK: usize = 24;

/// Why a stream has no image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlzError {
    /// Shorter than a footer.
    #[error("{0} bytes are too few for the footer of 8")]
    TooShort(u64),
    /// The footer's lengths contradict each other or the stream.
    #[error(
        "the footer names {compressed} compressed bytes, {footer} of them footer, in a stream of {length}: a footer has 8 or more, and both fit"
    )]
    Footer {
        /// Compressed bytes by the footer.
        compressed: u64,
        /// Bytes of the footer by itself.
        footer: u64,
        /// Bytes of the stream.
        length: u64,
    },
    /// The image would be longer than allowed.
    #[error("the image would have {length} bytes, more than the {limit} allowed")]
    TooLarge {
        /// Bytes of the image by the footer.
        length: u64,
        /// What is allowed.
        limit: u64,
    },
    /// A token ends below the compressed part.
    #[error("a token at offset 0x{0:x} of the stream is cut off by the start of the compressed part")]
    Truncated(u64),
    /// A copy from above the end of the image.
    #[error("a copy at offset 0x{at:x} of the stream reaches {distance} bytes back where only {written} are written")]
    Distance {
        /// Offset of the token in the stream.
        at: u64,
        /// Distance of the copy.
        distance: u64,
        /// Bytes written before it.
        written: u64,
    },
    /// More output than the image holds.
    #[error("the output passes the start of the compressed part at offset 0x{0:x} of the stream")]
    Overflow(u64),
    /// The output overtakes the input.
    #[error("the output overtakes the input at offset 0x{0:x} of the stream: decoded in place, it destroys itself")]
    Overtakes(u64),
    /// Less output than the image holds.
    #[error("{missing} bytes of the image are left without a token")]
    Underflow {
        /// Bytes that nothing wrote.
        missing: u64,
    },
}

impl BlzError {
    /// The word of the error vocabulary.
    pub const fn category(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "blz-output-limit",
            Self::Underflow { .. } | Self::Overflow(_) => "blz-output-size-mismatch",
            _ => "malformed-blz",
        }
    }
}

/// What a footer says of its stream, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Start of the compressed part; what lies before is stored as it is.
    pub plain: u64,
    /// End of the tokens, start of the footer and its padding.
    pub tokens_end: u64,
    /// Length of the stream.
    pub stream: u64,
    /// How much longer the image is; 0 means that nothing is compressed.
    pub extra: u64,
}

impl Shape {
    /// Length of the image.
    pub const fn image_len(&self) -> u64 {
        self.stream + self.extra
    }
}

/// Reads and checks the footer.
pub fn shape(stream: &[u8]) -> Result<Shape, BlzError> {
    let length = stream.len() as u64;
    let too_short = |_: OutOfRange| BlzError::TooShort(length);
    let start = length.checked_sub(FOOTER).ok_or(BlzError::TooShort(length))?;
    let mut footer = Reader::new(stream).at(start).map_err(too_short)?;
    let lengths = footer.u32().map_err(too_short)?;
    let extra = u64::from(footer.u32().map_err(too_short)?);
    if length + extra > limits::MAX_NDS_IMAGE_BYTES {
        return Err(BlzError::TooLarge { length: length + extra, limit: limits::MAX_NDS_IMAGE_BYTES });
    }
    if extra == 0 {
        return Ok(Shape { plain: length, tokens_end: length, stream: length, extra });
    }
    let (compressed, footer) = (u64::from(lengths & 0x00ff_ffff), u64::from(lengths >> 24));
    if footer < FOOTER || footer > compressed || compressed > length {
        return Err(BlzError::Footer { compressed, footer, length });
    }
    Ok(Shape { plain: length - compressed, tokens_end: length - footer, stream: length, extra })
}

/// Checks every token without writing anything; work and memory are bounded by the stream.
pub fn check(stream: &[u8]) -> Result<Shape, BlzError> {
    let shape = shape(stream)?;
    walk(&shape, stream, |_| {})?;
    Ok(shape)
}

/// Decodes a stream. The whole image is charged, and nothing of a stream that has none.
pub fn decode(stream: &[u8], budget: &mut Budget) -> Result<Vec<u8>, BlzError> {
    let shape = shape(stream)?;
    let length = shape.image_len();
    // Eight copies of 18 bytes take 17: a footer that claims more is found wrong before there is memory for it.
    if length - shape.plain > (shape.tokens_end - shape.plain).saturating_mul(MOST_GAIN) && shape.extra > 0 {
        walk(&shape, stream, |_| {})?;
    }
    let too_large = BlzError::TooLarge { length, limit: budget.left() };
    let mut unused = *budget;
    budget.charge(length).map_err(|_| too_large)?;
    let mut image = stream.to_vec();
    image.resize(usize::try_from(length).map_err(|_| too_large)?, 0);
    let plain = usize::try_from(shape.plain).map_err(|_| too_large)?;
    let written = walk(&shape, stream, |write| match write {
        Write::Literal { to, byte } => {
            if let Some(place) = image.get_mut(to) {
                *place = byte;
            }
        }
        Write::Literals { bytes, to } => {
            if let Some(place) = image.get_mut(to..).and_then(<[u8]>::first_chunk_mut) {
                *place = bytes;
            }
        }
        // A block of one size is copied faster than the bytes that are meant. What it writes below them, still in the compressed
        // part, is written over by what follows.
        Write::Copy { to, distance } if distance >= to.len() && to.end - plain >= BLOCK => {
            let block = image.get(to.end + distance - BLOCK..).and_then(<[u8]>::first_chunk::<BLOCK>).copied();
            let place = image.get_mut(to.end - BLOCK..).and_then(<[u8]>::first_chunk_mut::<BLOCK>);
            if let (Some(block), Some(place)) = (block, place) {
                *place = block;
            }
        }
        Write::Copy { to, distance } => {
            // One byte at a time and downwards: the copy repeats what it has just written.
            for place in to.rev() {
                if let Some(byte) = image.get(place + distance).copied()
                    && let Some(place) = image.get_mut(place)
                {
                    *place = byte;
                }
            }
        }
    });
    if written.is_err() {
        std::mem::swap(budget, &mut unused);
    }
    written.map(|()| image)
}

/// What tokens write, at offsets in the image.
enum Write {
    Literal { to: usize, byte: u8 },
    Literals { to: usize, bytes: [u8; 8] },
    Copy { to: Range<usize>, distance: usize },
}

/// Walks the tokens, checks each, and tells what it writes.
fn walk(shape: &Shape, stream: &[u8], mut write: impl FnMut(Write)) -> Result<(), BlzError> {
    let (Ok(stop), Ok(mut from), Ok(end)) =
        (usize::try_from(shape.plain), usize::try_from(shape.tokens_end), usize::try_from(shape.image_len()))
    else {
        return Err(BlzError::TooLarge { length: shape.image_len(), limit: limits::MAX_NDS_IMAGE_BYTES });
    };
    let mut to = if shape.extra == 0 { stop } else { end };
    let next = |from: &mut usize| match from.checked_sub(1) {
        Some(at) if at >= stop => {
            *from = at;
            stream.get(at).copied().ok_or(BlzError::Truncated(at as u64))
        }
        _ => Err(BlzError::Truncated(*from as u64)),
    };
    while from > stop {
        let flags = next(&mut from)?;
        // Eight literals at once, where all of them are there. Input and output go down together, so neither overtakes the other.
        if flags == 0
            && from - stop >= 8
            && to >= from
            && let Some(bytes) = stream.get(from - 8..).and_then(<[u8]>::first_chunk)
        {
            write(Write::Literals { to: to - 8, bytes: *bytes });
            (from, to) = (from - 8, to - 8);
            continue;
        }
        for bit in (0..8).rev() {
            if from <= stop {
                break;
            }
            let at = (from - 1) as u64;
            let (length, token) = if flags >> bit & 1 == 0 {
                (1, Write::Literal { to: to.wrapping_sub(1), byte: next(&mut from)? })
            } else {
                let (high, low) = (usize::from(next(&mut from)?), usize::from(next(&mut from)?));
                let length = (high >> 4) + 3;
                let distance = ((high & 0xf) << 8 | low) + 3;
                let written = end - to;
                // The first byte of the copy lies one below what is written, so it reaches one less far.
                if distance > written {
                    return Err(BlzError::Distance { at, distance: distance as u64, written: written as u64 });
                }
                (length, Write::Copy { to: to.saturating_sub(length)..to, distance })
            };
            let below = to.checked_sub(length).filter(|to| *to >= stop).ok_or(BlzError::Overflow(at))?;
            if below < from {
                return Err(BlzError::Overtakes(at));
            }
            to = below;
            write(token);
        }
    }
    if to > stop { Err(BlzError::Underflow { missing: (to - stop) as u64 }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A stream from tokens in the order they are read, with a footer of eight bytes.
    fn stream(plain: &[u8], tokens: &[u8], extra: u32) -> Vec<u8> {
        let mut stream = plain.to_vec();
        stream.extend(tokens.iter().rev());
        stream.extend((0x0800_0000 | (tokens.len() as u32 + 8)).to_le_bytes());
        stream.extend(extra.to_le_bytes());
        stream
    }

    fn decoded(stream: &[u8]) -> Result<Vec<u8>, BlzError> {
        decode(stream, &mut Budget::new(1 << 20))
    }

    /// Three literals, then copies of 18 and 6 bytes from 3 above: flags 0001 1000, copies (18-3)<<12|(3-3) and (6-3)<<12|0.
    const ABC: [u8; 8] = [0x18, b'c', b'b', b'a', 0xf0, 0x00, 0x30, 0x00];

    #[test]
    fn literals_and_copies_are_made_from_the_end_downwards() {
        // 27 bytes of image from 8 bytes of tokens and 8 of footer: 11 more. Two bytes before are stored as they are.
        let whole = stream(b"xy", &ABC, 11);
        assert_eq!(decoded(&whole).unwrap(), [&b"xy"[..], &b"abc".repeat(9)].concat());
        assert_eq!(check(&whole).unwrap(), Shape { plain: 2, tokens_end: 10, stream: 18, extra: 11 });
    }

    #[test]
    fn padding_belongs_to_the_footer() {
        let mut padded = stream(b"", &ABC, 0);
        padded.truncate(8);
        padded.extend([0xff, 0xff, 0xff]);
        padded.extend((11_u32 << 24 | 19).to_le_bytes());
        padded.extend(8_u32.to_le_bytes());
        assert_eq!(decoded(&padded).unwrap(), b"abc".repeat(9));
    }

    #[test]
    fn a_stream_that_gained_nothing_is_its_own_image() {
        let stored = b"nothing gained\0\0\0\0\0\0";
        assert_eq!(decoded(stored).unwrap(), stored);
    }

    #[test]
    fn a_footer_that_lies_is_refused() {
        let with = |lengths: u32, extra: u32| {
            let mut bytes = vec![0; 16];
            bytes.extend(lengths.to_le_bytes());
            bytes.extend(extra.to_le_bytes());
            decoded(&bytes).unwrap_err()
        };
        let footer = |compressed, footer| BlzError::Footer { compressed, footer, length: 24 };
        assert_eq!(with(0x0800_0019, 1), footer(25, 8), "more compressed bytes than there are");
        assert_eq!(with(0x0700_0018, 1), footer(24, 7), "a footer without room for its own words");
        assert_eq!(with(0x1900_0018, 1), footer(24, 25), "more footer than compressed bytes");
        let limit = limits::MAX_NDS_IMAGE_BYTES;
        assert_eq!(with(0x0800_0018, u32::MAX), BlzError::TooLarge { length: 24 + u64::from(u32::MAX), limit });
        assert_eq!(decoded(&[0; 7]).unwrap_err(), BlzError::TooShort(7));
        assert_eq!(decoded(&stream(b"", &ABC, 12)).unwrap_err(), BlzError::Underflow { missing: 1 });
    }

    #[test]
    fn a_copy_from_above_the_end_is_refused() {
        let error = decoded(&stream(b"", &[0x80, 0xf0, 0x00], 20)).unwrap_err();
        assert_eq!(error, BlzError::Distance { at: 1, distance: 3, written: 0 });
        // After three literals, distance 3 reaches the first of them and distance 4 nothing.
        let error = decoded(&stream(b"", &[0x10, 1, 2, 3, 0xf0, 0x01], 20)).unwrap_err();
        assert_eq!(error, BlzError::Distance { at: 1, distance: 4, written: 3 });
    }

    #[test]
    fn a_token_that_is_cut_off_is_refused() {
        assert_eq!(decoded(&stream(b"plain", &[0x10, 1, 2, 3, 0xf0], 9)).unwrap_err(), BlzError::Truncated(5));
        assert_eq!(decoded(&stream(b"", &[0x10, 1, 2, 3], 9)).unwrap_err(), BlzError::Underflow { missing: 18 });
    }

    #[test]
    fn output_that_passes_the_compressed_part_is_refused() {
        // 27 bytes of output for an image of 26, of which 2 are plain: 2 + 8 + 8 and 8 more.
        assert_eq!(decoded(&stream(b"xy", &ABC, 8)).unwrap_err(), BlzError::Overflow(3));
    }

    #[test]
    fn output_that_overtakes_its_input_is_refused() {
        // 14 more tokens would be read. The output begins 9 above the input; the flags make that 10, a copy of 18 from 2
        // bytes takes 16 of them.
        let tokens = [&[0x10, b'c', b'b', b'a', 0xf0, 0x00][..], &[0; 16]].concat();
        assert_eq!(decoded(&stream(b"", &tokens, 1)).unwrap_err(), BlzError::Overtakes(17));
    }

    #[test]
    fn the_image_is_paid_for_before_it_is_made() {
        let whole = stream(b"", &ABC, 11);
        assert_eq!(decode(&whole, &mut Budget::new(26)).unwrap_err(), BlzError::TooLarge { length: 27, limit: 26 });
        let mut budget = Budget::new(30);
        assert!(decode(&whole, &mut budget).is_ok());
        assert_eq!(budget.left(), 3);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn what_the_encoder_of_the_tests_makes_decodes_to_the_same(
            pieces in proptest::collection::vec((any::<u8>(), 1_usize..60), 1..20),
            plain in 0_usize..100,
        ) {
            let image: Vec<u8> = pieces.iter().flat_map(|(byte, count)| vec![*byte; *count]).collect();
            let plain = plain.min(image.len());
            if let Some(stream) = crate::testing::compress(&image, plain) {
                prop_assert!(stream.len() < image.len());
                prop_assert_eq!(&stream[..plain], &image[..plain]);
                prop_assert_eq!(decoded(&stream), Ok(image));
            }
        }

        #[test]
        fn damaged_streams_are_refused_or_have_the_length_they_name(
            mut stream in proptest::collection::vec(any::<u8>(), 0..80),
            compressed in 0_u32..90, footer in 7_u32..12, extra in 0_u32..90,
        ) {
            stream.extend((footer << 24 | compressed).to_le_bytes());
            stream.extend(extra.to_le_bytes());
            if let Ok(image) = decoded(&stream) {
                prop_assert_eq!(image.len(), stream.len() + extra as usize);
                prop_assert!(check(&stream).is_ok());
            }
        }
    }
}
