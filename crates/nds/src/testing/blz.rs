//! A BLZ encoder for tests: greedy and slow, but its streams decode in place.

/// Bytes of the footer.
const FOOTER: usize = 8;
/// Shortest and longest copy, and how far above a copy may reach.
const COPY: std::ops::RangeInclusive<usize> = 3..=18;
const DISTANCE: std::ops::RangeInclusive<usize> = 3..=4098;

/// A token: what it puts into the stream, in the order it is read, and how much of the image it makes.
struct Token {
    copy: bool,
    bytes: Vec<u8>,
    length: usize,
}

/// Compresses an image, leaving at least its first `plain` bytes as they are. `None` when the stream would not be shorter.
pub fn compress(image: &[u8], plain: usize) -> Option<Vec<u8>> {
    let tokens = tokens(image, plain);
    // Of all places to stop, the one with the shortest stream: up to there the output never overtakes the input.
    let (mut made, mut stored) = (0, 0);
    let mut best = (image.len() + FOOTER, 0, image.len());
    for (index, token) in tokens.iter().enumerate() {
        made += token.length;
        stored += token.bytes.len() + usize::from(index % 8 == 0);
        let size = image.len() - made + stored + FOOTER;
        if size < best.0 {
            best = (size, index + 1, image.len() - made);
        }
    }
    let (size, count, rest) = best;
    let extra = image.len().checked_sub(size).filter(|extra| *extra > 0)?;

    let mut backward = Vec::new();
    for group in tokens.get(..count)?.chunks(8) {
        let flags = group.iter().enumerate().map(|(bit, token)| u8::from(token.copy) << (7 - bit));
        backward.push(flags.fold(0, |all, flag| all | flag));
        backward.extend(group.iter().flat_map(|token| token.bytes.iter().copied()));
    }
    let mut stream = image.get(..rest)?.to_vec();
    stream.extend(backward.iter().rev());
    let compressed = u32::try_from(backward.len() + FOOTER).ok()?;
    stream.extend((compressed | (FOOTER as u32) << 24).to_le_bytes());
    stream.extend(u32::try_from(extra).ok()?.to_le_bytes());
    Some(stream)
}

/// The image from its end down to `plain` as tokens.
fn tokens(image: &[u8], plain: usize) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut at = image.len();
    while at > plain {
        let mut longest: Option<(usize, usize)> = None;
        // Near copies all, far ones some: enough for images of tests, and quick.
        let distances = DISTANCE.take(64).chain(DISTANCE.skip(64).step_by(61));
        for distance in distances.take_while(|distance| at - 1 + distance < image.len()) {
            let length = match_length(image, plain, at, distance);
            if longest.is_none_or(|(before, _)| length > before) {
                longest = Some((length, distance));
            }
            if length == *COPY.end() {
                break;
            }
        }
        let token = match longest {
            Some((length, distance)) if COPY.contains(&length) => {
                let word = (length - COPY.start()) << 12 | (distance - DISTANCE.start());
                Token { copy: true, bytes: (word as u16).to_be_bytes().to_vec(), length }
            }
            _ => Token { copy: false, bytes: image.get(at - 1..at).unwrap_or_default().to_vec(), length: 1 },
        };
        at -= token.length;
        tokens.push(token);
    }
    tokens
}

fn match_length(image: &[u8], plain: usize, at: usize, distance: usize) -> usize {
    let pairs = (plain..at).rev().take(*COPY.end());
    pairs.take_while(|place| image.get(*place) == image.get(place + distance)).count()
}
