//! Makes BLZ streams: the same one for the same image always, decoded in place by the console, and as short as the format
//! allows for the copies that are found.
//!
//! Every copy costs 17 bits and every literal 9, so the cheapest way from each byte to the other end of the image is found
//! from the longest copy at each byte alone. Contract version 2: another version makes other bytes, and other build identities.

use base::limits;

/// Bytes of the footer without padding.
const FOOTER: usize = 8;
/// Shortest and longest copy.
const SHORTEST: usize = 3;
const LONGEST: usize = 18;
/// Nearest and furthest byte that a copy may repeat.
const NEAREST: usize = 3;
const FURTHEST: usize = 4_098;
/// Bits of a token, its flag included.
const LITERAL_BITS: u32 = 9;
const COPY_BITS: u32 = 17;
/// Bits of the table of first places.
const HASH_BITS: u32 = 15;
/// No place.
const NOWHERE: u32 = u32::MAX;

/// Why an image has no stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The stream would not be shorter than the image.
    #[error(
        "the {0} bytes do not become shorter, and a stream that is no shorter than its image cannot be told from it"
    )]
    NoGain(usize),
    /// The image or the compressed part is longer than its field holds.
    #[error("{0} bytes are more than the format or the limit of an image holds")]
    TooLarge(usize),
}

/// The longest copy at a place.
#[derive(Clone, Copy, Default)]
struct Copy {
    length: u8,
    distance: u16,
}

/// Compresses an image, leaving at least its first `plain` bytes as they are. The stream's length is a multiple of four where
/// the image's is, as the console reads the footer by words.
pub fn encode(image: &[u8], plain: usize) -> Result<Vec<u8>, EncodeError> {
    if image.len() as u64 > limits::MAX_NDS_IMAGE_BYTES {
        return Err(EncodeError::TooLarge(image.len()));
    }
    // Reversed, so that all goes upwards here.
    let data: Vec<u8> = image.get(plain..).unwrap_or_default().iter().rev().copied().collect();
    let copies = longest_copies(&data);
    let lengths = cheapest(&copies);

    // Of all places to stop, the one with the shortest stream: up to there the output never overtakes the input.
    let (mut at, mut stored, mut count) = (0, 0, 0_usize);
    let mut best = (image.len() + FOOTER, 0, 0);
    while let Some(length) = lengths.get(at).copied().filter(|length| *length > 0) {
        stored += usize::from(count.is_multiple_of(8)) + if length == 1 { 1 } else { 2 };
        at += usize::from(length);
        count += 1;
        let size = image.len() - at + stored + FOOTER;
        if size < best.0 {
            best = (size, at, count);
        }
    }
    let (size, made, count) = best;
    let padding = size.next_multiple_of(4) - size;
    let extra = image.len().checked_sub(size + padding).filter(|extra| *extra > 0);
    let extra = extra.ok_or(EncodeError::NoGain(image.len()))?;

    let tokens = tokens(&data, &copies, &lengths, count);
    let compressed = tokens.len() + padding + FOOTER;
    if compressed > 0x00ff_ffff {
        return Err(EncodeError::TooLarge(compressed));
    }
    let too_large = |_| EncodeError::TooLarge(compressed);
    let footer = u32::try_from(FOOTER + padding).map_err(too_large)? << 24;
    let mut stream = Vec::with_capacity(size + padding);
    stream.extend_from_slice(image.get(..image.len() - made).unwrap_or_default());
    stream.extend(tokens.iter().rev());
    stream.extend(std::iter::repeat_n(0xff, padding));
    stream.extend((footer | u32::try_from(compressed).map_err(too_large)?).to_le_bytes());
    stream.extend(u32::try_from(extra).map_err(too_large)?.to_le_bytes());
    Ok(stream)
}

/// The longest copy at every place, by chains of places with the same three bytes.
fn longest_copies(data: &[u8]) -> Vec<Copy> {
    let mut found = vec![Copy::default(); data.len()];
    let mut first = vec![NOWHERE; 1 << HASH_BITS];
    let mut before = vec![NOWHERE; data.len()];
    for (at, found) in found.iter_mut().enumerate() {
        let ahead = data.get(at..).unwrap_or_default();
        let ahead = ahead.get(..LONGEST).unwrap_or(ahead);
        let [a, b, c, ..] = *ahead else { break };
        let hash =
            (u32::from(a) << 16 | u32::from(b) << 8 | u32::from(c)).wrapping_mul(0x9e37_79b1) >> (32 - HASH_BITS);
        let Some(head) = first.get_mut(hash as usize) else { break };
        let mut place = *head;
        *head = at as u32;
        if let Some(before) = before.get_mut(at) {
            *before = place;
        }
        let mut best = SHORTEST - 1;
        for _ in 0..limits::BLZ_CHAIN_STEPS {
            // `NOWHERE` lies above every place, so its distance is none.
            let Some(distance) = at.checked_sub(place as usize).filter(|distance| *distance <= FURTHEST) else { break };
            let there = data.get(place as usize..).unwrap_or_default();
            // A longer copy has to agree where the longest one so far ends.
            if distance >= NEAREST && there.get(best) == ahead.get(best) {
                let length = agreement(ahead, there);
                if length > best {
                    best = length;
                    *found = Copy { length: length as u8, distance: distance as u16 };
                    if length == ahead.len() {
                        break;
                    }
                }
            }
            place = before.get(place as usize).copied().unwrap_or(NOWHERE);
        }
    }
    found
}

/// How many bytes two runs have in common at their start; eight are compared at a time.
fn agreement(one: &[u8], other: &[u8]) -> usize {
    let (ones, rest) = one.as_chunks::<8>();
    let (others, _) = other.as_chunks::<8>();
    for (index, (one, other)) in ones.iter().zip(others).enumerate() {
        let differing = u64::from_le_bytes(*one) ^ u64::from_le_bytes(*other);
        if differing != 0 {
            return 8 * index + differing.trailing_zeros() as usize / 8;
        }
    }
    let whole = 8 * ones.len().min(others.len());
    let behind = other.get(whole..).unwrap_or_default();
    let left = if ones.len() <= others.len() { rest } else { one.get(whole..).unwrap_or_default() };
    whole + left.iter().zip(behind).take_while(|(one, other)| one == other).count()
}

/// The length of the token at every place on the cheapest way from there to the end; 1 is a literal.
fn cheapest(copies: &[Copy]) -> Vec<u8> {
    let mut lengths = vec![1; copies.len()];
    // The costs of the 18 places above the one looked at, the nearest first.
    let mut costs = [0_u32; LONGEST];
    for (copy, chosen) in copies.iter().zip(&mut lengths).rev() {
        let mut best = costs.first().copied().unwrap_or_default() + LITERAL_BITS;
        for (index, cost) in costs.iter().enumerate().take(copy.length.into()).skip(SHORTEST - 1) {
            if cost + COPY_BITS <= best {
                best = cost + COPY_BITS;
                *chosen = index as u8 + 1;
            }
        }
        costs.rotate_right(1);
        if let Some(nearest) = costs.first_mut() {
            *nearest = best;
        }
    }
    lengths
}

/// The first tokens in the order that they are read in.
fn tokens(data: &[u8], copies: &[Copy], lengths: &[u8], count: usize) -> Vec<u8> {
    let mut stored = Vec::with_capacity(data.len());
    let (mut at, mut flags_at) = (0, 0);
    for index in 0..count {
        let bit = 7 - index % 8;
        if bit == 7 {
            flags_at = stored.len();
            stored.push(0);
        }
        let length = lengths.get(at).copied().unwrap_or(1);
        if length == 1 {
            stored.extend(data.get(at));
        } else {
            let distance = copies.get(at).map_or(NEAREST, |copy| copy.distance.into());
            let word = (usize::from(length) - SHORTEST) << 12 | (distance - NEAREST);
            stored.extend((word as u16).to_be_bytes());
            if let Some(flags) = stored.get_mut(flags_at) {
                *flags |= 1 << bit;
            }
        }
        at += usize::from(length);
    }
    stored
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Budget;
    use proptest::prelude::*;

    #[test]
    fn the_cheapest_tokens_are_chosen() {
        // From its end: c b a, then 24 bytes from 3 above as 18 and 6. Flags 0001 1000, 3 literals, 2 copies: 8 bytes of
        // tokens, as in the decoder's tests, and a footer of 8.
        let stream = encode(&b"abc".repeat(9), 0).unwrap();
        assert_eq!(stream.len(), 16);
        assert_eq!(stream[8..], [[16, 0, 0, 8], [11, 0, 0, 0]].concat());
        assert_eq!(stream[5..8], [b'b', b'c', 0x18]);
    }

    #[test]
    fn what_does_not_become_shorter_is_refused() {
        assert_eq!(encode(b"", 0), Err(EncodeError::NoGain(0)));
        assert_eq!(encode(&[1, 2, 3, 4, 5, 6, 7, 8], 0), Err(EncodeError::NoGain(8)));
        let large = vec![0; limits::MAX_NDS_IMAGE_BYTES as usize + 1];
        assert_eq!(encode(&large, 0), Err(EncodeError::TooLarge(large.len())));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn what_is_encoded_decodes_to_the_same(
            pieces in proptest::collection::vec((proptest::collection::vec(any::<u8>(), 1..9), 1_usize..30), 1..40),
            plain in 0_usize..300,
        ) {
            let image: Vec<u8> = pieces.iter().flat_map(|(bytes, count)| bytes.repeat(*count)).collect();
            if let Ok(stream) = encode(&image, plain) {
                prop_assert!(stream.len() < image.len());
                prop_assert_eq!(stream.len() % 4, 0);
                let kept = plain.min(image.len());
                prop_assert_eq!(&stream[..kept], &image[..kept]);
                prop_assert_eq!(crate::blz::decode(&stream, &mut Budget::new(1 << 20)), Ok(image.clone()));
                if let Some(other) = crate::testing::compress(&image, plain) {
                    prop_assert!(stream.len() <= other.len().next_multiple_of(4));
                }
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn runs_agree_as_far_as_their_bytes_do(one in proptest::collection::vec(0_u8..3, 0..30), other in proptest::collection::vec(0_u8..3, 0..30), same in 0_usize..30) {
            let mut other = other;
            for (to, from) in other.iter_mut().zip(&one).take(same) {
                *to = *from;
            }
            let expected = one.iter().zip(&other).take_while(|(one, other)| one == other).count();
            proptest::prop_assert_eq!(agreement(&one, &other), expected);
        }
    }
}
