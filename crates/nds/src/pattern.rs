//! Byte patterns with wildcards, and the search for every place where one occurs, overlapping places too.
//!
//! Speed comes from two sources: `memmem` over the rarest run of fixed bytes, and, where no run is rare enough, a comparison of a
//! few fixed bytes over whole blocks that the compiler turns into vector instructions.

use base::limits;
use memchr::memmem;

use crate::Refusal;

/// Order of the bytes of an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endian {
    /// Least significant byte first, as both processors store.
    Little,
    /// Most significant byte first.
    Big,
}

/// What to look for, as a caller says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatternSpec {
    /// Hexadecimal byte pairs with or without spaces between them; `??` stands for any byte.
    ByteSignature(String),
    /// An integer.
    Integer {
        /// Its value; must fit in `width` bits, as a signed number when `signed`.
        value: i64,
        /// Bits: 8, 16 or 32.
        width: u8,
        /// Order of its bytes.
        endian: Endian,
        /// Whether `value` may be negative.
        signed: bool,
        /// What the ROM offset of a hit is divisible by: 1, 2 or 4; 1 when `None`.
        alignment: Option<u8>,
    },
    /// A text of ASCII characters.
    Ascii(String),
    /// A text in UTF-16, little-endian, as the Nintendo SDK stores titles and messages.
    Utf16le(String),
}

/// A pattern, checked: at least one byte of it is fixed.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// One for each byte; `None` for a wildcard.
    bytes: Vec<Option<u8>>,
    alignment: usize,
}

impl Pattern {
    /// Checks what a caller says.
    ///
    /// # Errors
    /// `invalid-pattern`: empty, too long, not hexadecimal pairs, half a wildcard, wildcards only, a value that does not fit, an
    /// unknown width or alignment, a text that is not ASCII.
    pub fn new(spec: &PatternSpec) -> Result<Self, Refusal> {
        let (bytes, alignment) = match spec {
            PatternSpec::ByteSignature(signature) => (signature_bytes(signature)?, 1),
            PatternSpec::Integer { value, width, endian, signed, alignment } => {
                let alignment = alignment.unwrap_or(1);
                if !matches!(alignment, 1 | 2 | 4) {
                    return Err(invalid(format!("an alignment of {alignment} is asked for"), "Give 1, 2 or 4."));
                }
                (integer_bytes(*value, *width, *endian, *signed)?, usize::from(alignment))
            }
            PatternSpec::Ascii(text) => match text.char_indices().find(|(_, character)| !character.is_ascii()) {
                Some((at, character)) => {
                    return Err(invalid(
                        format!("`{character}` at byte {at} of the text is not ASCII"),
                        "Search it as utf16le, or give the bytes of the game's own encoding as a byte-signature.",
                    ));
                }
                None => (text.bytes().map(Some).collect(), 1),
            },
            PatternSpec::Utf16le(text) => (text.encode_utf16().flat_map(u16::to_le_bytes).map(Some).collect(), 1),
        };
        Self::of(bytes, alignment)
    }

    /// A pattern of bytes, `None` for a wildcard, at offsets divisible by `alignment`.
    ///
    /// # Errors
    /// `invalid-pattern` when it is empty, too long, or has wildcards only.
    pub fn of(bytes: Vec<Option<u8>>, alignment: usize) -> Result<Self, Refusal> {
        if bytes.is_empty() {
            return Err(invalid("the pattern is empty".to_owned(), "Give at least one byte or character."));
        }
        let longest = limits::MAX_PATTERN_BYTES;
        if bytes.len() > longest {
            return Err(invalid(
                format!("the pattern has {} bytes; {longest} are allowed", bytes.len()),
                "Search for a shorter part of it and compare the rest by contextBytes.",
            ));
        }
        if bytes.iter().all(Option::is_none) {
            return Err(invalid("every byte of the pattern is a wildcard".to_owned(), "Give at least one fixed byte."));
        }
        Ok(Self { bytes, alignment: alignment.max(1) })
    }

    /// Bytes of a hit, wildcards included.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Never: a pattern has at least one byte.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Whether the pattern occurs at the start of `bytes`.
    pub fn matches(&self, bytes: &[u8]) -> bool {
        bytes.len() >= self.bytes.len()
            && self.bytes.iter().zip(bytes).all(|(want, have)| want.is_none_or(|w| w == *have))
    }

    /// Makes it ready to search with.
    pub fn searcher(&self) -> Searcher<'_> {
        Searcher { pattern: self, plan: Plan::of(&self.bytes) }
    }
}

/// How rare a byte is thought to be: data and code of ROMs are full of 0x00, and padding is 0xFF or 0x00.
fn rarity(byte: u8) -> u32 {
    match byte {
        0x00 => 1,
        0xff => 2,
        _ => 4,
    }
}

/// Sum of rarities from which a run of fixed bytes is worth looking for by itself: two bytes that are neither 0x00 nor 0xFF.
const RARE_RUN: u32 = 8;
/// Fixed bytes compared over a whole block: three unrelated ones leave about one false candidate in 16 million.
const BLOCK_BYTES: usize = 3;
/// Places compared at once: candidates and data stay in the first-level cache.
const BLOCK: usize = 4096;

#[derive(Debug)]
enum Plan {
    /// Look for this run, which begins at this place of the pattern; `whole` when it is all of it.
    Run { finder: Box<memmem::Finder<'static>>, at: usize, whole: bool },
    /// Compare these bytes at these places of the pattern.
    Block(Vec<(usize, u8)>),
}

impl Plan {
    fn of(bytes: &[Option<u8>]) -> Plan {
        let mut best: (u32, usize, Vec<u8>) = (0, 0, Vec::new());
        let mut at = 0;
        for run in bytes.split(Option::is_none) {
            let run_bytes: Vec<u8> = run.iter().flatten().copied().collect();
            let score = run_bytes.iter().map(|byte| rarity(*byte)).sum();
            if score > best.0 {
                best = (score, at, run_bytes);
            }
            at += run.len() + 1;
        }
        let (score, at, run) = best;
        let whole = run.len() == bytes.len();
        if whole && run.len() > 1 || score >= RARE_RUN {
            return Plan::Run { finder: Box::new(memmem::Finder::new(&run).into_owned()), at, whole };
        }
        let mut fixed: Vec<_> = bytes.iter().enumerate().filter_map(|(at, byte)| byte.map(|byte| (at, byte))).collect();
        fixed.sort_by_key(|(_, byte)| std::cmp::Reverse(rarity(*byte)));
        fixed.truncate(BLOCK_BYTES);
        Plan::Block(fixed)
    }
}

/// A pattern ready to search with.
#[derive(Debug)]
pub struct Searcher<'p> {
    pattern: &'p Pattern,
    plan: Plan,
}

impl Searcher<'_> {
    /// Tells every hit that lies wholly inside `haystack`, ascending, as an offset in it. `base` is where `haystack` begins, for
    /// the alignment.
    pub fn each(&self, haystack: &[u8], base: usize, hit: &mut dyn FnMut(usize)) {
        let Some(places) = (haystack.len() + 1).checked_sub(self.pattern.len()) else { return };
        let alignment = self.pattern.alignment;
        let mut checked = |place: usize| {
            if (base + place).is_multiple_of(alignment) {
                hit(place);
            }
        };
        match &self.plan {
            Plan::Run { finder, at, whole } => {
                // Hits of the run, each tried as a hit of the pattern that begins `at` bytes before it.
                let mut next = *at;
                let end = places + at + finder.needle().len() - 1;
                while let Some(found) = haystack.get(next..end).and_then(|rest| finder.find(rest)) {
                    let mut place = next + found - at;
                    // In a field of equal bytes hit stands beside hit: asking there is quicker than starting a search anew.
                    while *whole
                        && place < places
                        && haystack.get(place..).is_some_and(|rest| rest.starts_with(finder.needle()))
                    {
                        checked(place);
                        // On to the next place that the alignment allows.
                        place += alignment - (base + place) % alignment;
                    }
                    if !whole {
                        if haystack.get(place..).is_some_and(|rest| self.pattern.matches(rest)) {
                            checked(place);
                        }
                        place += 1;
                    }
                    next = place + at;
                }
            }
            Plan::Block(fixed) => self.each_by_block(fixed, haystack, places, &mut checked),
        }
    }

    /// Hits among the first `places` places of `haystack`, by comparing the bytes `fixed` block by block.
    fn each_by_block(&self, fixed: &[(usize, u8)], haystack: &[u8], places: usize, hit: &mut dyn FnMut(usize)) {
        let mut candidates = [0_u8; BLOCK];
        let mut start = 0;
        while start < places {
            let length = BLOCK.min(places - start);
            let Some(candidates) = candidates.get_mut(..length) else { return };
            candidates.fill(1);
            for (at, byte) in fixed {
                let Some(block) = haystack.get(start + at..start + at + length) else { return };
                for (candidate, have) in candidates.iter_mut().zip(block) {
                    *candidate &= u8::from(have == byte);
                }
            }
            for at in memchr::memchr_iter(1, candidates) {
                if haystack.get(start + at..).is_some_and(|rest| self.pattern.matches(rest)) {
                    hit(start + at);
                }
            }
            start += length;
        }
    }
}

fn invalid(message: String, action: &str) -> Refusal {
    Refusal::new("invalid-pattern", message, action)
}

fn signature_bytes(signature: &str) -> Result<Vec<Option<u8>>, Refusal> {
    let mut bytes = Vec::new();
    // A byte of the pattern takes two characters, and sometimes a space: a longer text is refused before it is taken apart.
    if signature.len() > limits::MAX_PATTERN_BYTES * 4 {
        return Err(invalid(
            format!(
                "the signature has {} characters; {} bytes are allowed",
                signature.len(),
                limits::MAX_PATTERN_BYTES
            ),
            "Search for a shorter part of it.",
        ));
    }
    for token in signature.split_whitespace() {
        let mut characters = token.chars();
        while let Some(first) = characters.next() {
            let second = characters.next();
            let byte = match (first, second) {
                ('?', Some('?')) => None,
                ('?', Some(_)) | (_, Some('?')) => {
                    return Err(invalid(
                        format!("`{first}{}` is half a wildcard", second.unwrap_or_default()),
                        "Only whole bytes can be wild: write ?? and check the other half on the hits.",
                    ));
                }
                (high, Some(low)) => match (high.to_digit(16), low.to_digit(16)) {
                    (Some(high), Some(low)) => Some((high << 4 | low) as u8),
                    _ => {
                        return Err(invalid(
                            format!("`{high}{low}` is not a byte in hexadecimal"),
                            "Write byte pairs like `1f f0 ?? e3`, without 0x.",
                        ));
                    }
                },
                (single, None) => {
                    return Err(invalid(
                        format!("`{single}` at the end of `{token}` is half a byte"),
                        "Write two digits for each byte.",
                    ));
                }
            };
            bytes.push(byte);
        }
    }
    Ok(bytes)
}

fn integer_bytes(value: i64, width: u8, endian: Endian, signed: bool) -> Result<Vec<Option<u8>>, Refusal> {
    if !matches!(width, 8 | 16 | 32) {
        return Err(invalid(format!("a width of {width} bits is asked for"), "Give 8, 16 or 32."));
    }
    let (least, most) = match signed {
        true => (-(1_i64 << (width - 1)), (1_i64 << (width - 1)) - 1),
        false => (0, (1_i64 << width) - 1),
    };
    if !(least..=most).contains(&value) {
        let word = if signed { "signed" } else { "unsigned" };
        return Err(invalid(
            format!("{value} does not fit in {width} bits {word}: {least} to {most} do"),
            "Choose a larger width, or the other signedness.",
        ));
    }
    let mut bytes: Vec<_> = value.to_le_bytes().into_iter().take(usize::from(width / 8)).map(Some).collect();
    if endian == Endian::Big {
        bytes.reverse();
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hits(pattern: &Pattern, haystack: &[u8], base: usize) -> Vec<usize> {
        let mut found = Vec::new();
        pattern.searcher().each(haystack, base, &mut |at| found.push(at));
        found
    }

    fn signature(text: &str) -> Pattern {
        Pattern::new(&PatternSpec::ByteSignature(text.to_owned())).unwrap()
    }

    fn refused(spec: &PatternSpec) -> String {
        let refusal = Pattern::new(spec).unwrap_err();
        assert_eq!(refusal.category, "invalid-pattern");
        refusal.message
    }

    #[test]
    fn signatures_are_read_with_and_without_spaces() {
        for text in ["1f f0 ?? e3", "1ff0??e3", " 1FF0 ??E3 "] {
            assert_eq!(signature(text).bytes, [Some(0x1f), Some(0xf0), None, Some(0xe3)], "{text}");
        }
    }

    #[test]
    fn overlapping_hits_are_all_kept() {
        assert_eq!(hits(&signature("00 00"), &[0; 5], 0), [0, 1, 2, 3]);
        assert_eq!(hits(&signature("61 62 61"), b"ababaXaba", 0), [0, 2, 6]);
        assert_eq!(hits(&signature("61 ?? 61"), b"aaaaba", 0), [0, 1, 3]);
        assert_eq!(hits(&signature("?? 41 42 ??"), b"AB.AB.AB", 0), [2]);
    }

    #[test]
    fn integers_have_a_width_an_order_and_an_alignment() {
        let integer = |value, width, endian, signed, alignment| {
            Pattern::new(&PatternSpec::Integer { value, width, endian, signed, alignment })
        };
        let bytes = |pattern: Pattern| pattern.bytes.into_iter().flatten().collect::<Vec<_>>();
        assert_eq!(bytes(integer(0x1234, 16, Endian::Little, false, None).unwrap()), [0x34, 0x12]);
        assert_eq!(bytes(integer(0x1234, 32, Endian::Big, false, None).unwrap()), [0, 0, 0x12, 0x34]);
        // Two's complement: -2 is 2^16 - 2 = 0xfffe.
        assert_eq!(bytes(integer(-2, 16, Endian::Little, true, None).unwrap()), [0xfe, 0xff]);
        assert_eq!(bytes(integer(u32::MAX.into(), 32, Endian::Little, false, None).unwrap()), [0xff; 4]);
        let aligned = integer(7, 16, Endian::Little, false, Some(2)).unwrap();
        // At offset 100 + 1 stands one, at 100 + 4 another.
        assert_eq!(hits(&aligned, &[0, 7, 0, 0, 7, 0], 100), [4]);
        assert_eq!(hits(&aligned, &[0, 7, 0, 0, 7, 0], 101), [1]);
    }

    #[test]
    fn texts_become_bytes() {
        assert_eq!(hits(&Pattern::new(&PatternSpec::Ascii("lo".into())).unwrap(), b"hello", 0), [3]);
        // U+30DD is dd 30, and U+1F600 the pair d83d de00.
        let text = Pattern::new(&PatternSpec::Utf16le("\u{30dd}\u{1f600}".into())).unwrap();
        assert_eq!(text.bytes.into_iter().flatten().collect::<Vec<_>>(), [0xdd, 0x30, 0x3d, 0xd8, 0x00, 0xde]);
    }

    #[test]
    fn what_cannot_be_searched_is_refused_with_the_reason() {
        let bytes = |text: &str| refused(&PatternSpec::ByteSignature(text.to_owned()));
        assert_eq!(bytes(" "), "the pattern is empty");
        assert_eq!(bytes("?? ????"), "every byte of the pattern is a wildcard");
        assert_eq!(bytes("4?"), "`4?` is half a wildcard");
        assert_eq!(bytes("12 ?4"), "`?4` is half a wildcard");
        assert_eq!(bytes("123"), "`3` at the end of `123` is half a byte");
        assert_eq!(bytes("0x12"), "`0x` is not a byte in hexadecimal");
        assert!(refused(&PatternSpec::Ascii("caf\u{e9}".into())).contains("not ASCII"));
        assert!(refused(&PatternSpec::Ascii(String::new())).contains("empty"));
        let longest = limits::MAX_PATTERN_BYTES;
        assert!(Pattern::new(&PatternSpec::ByteSignature("ab".repeat(longest))).is_ok());
        assert!(bytes(&"ab".repeat(longest + 1)).contains("are allowed"));
        assert!(bytes(&" ".repeat(longest * 4 + 1)).contains("characters"));
        for (value, width, signed) in
            [(256, 8, false), (-1, 8, false), (128, 8, true), (-129, 8, true), (1 << 32, 32, false)]
        {
            let spec = PatternSpec::Integer { value, width, endian: Endian::Little, signed, alignment: None };
            assert!(refused(&spec).contains("does not fit"), "{value}");
        }
        // The last that fit: two's complement of 8, 16 and 32 bits.
        for (value, width, signed) in [
            (255, 8, false),
            (-128, 8, true),
            (127, 8, true),
            (-32_768, 16, true),
            (-(1 << 31), 32, true),
            ((1 << 32) - 1, 32, false),
        ] {
            let spec = PatternSpec::Integer { value, width, endian: Endian::Little, signed, alignment: None };
            assert!(Pattern::new(&spec).is_ok(), "{value}");
        }
        let spec = |width, alignment| PatternSpec::Integer {
            value: 1,
            width,
            endian: Endian::Little,
            signed: false,
            alignment,
        };
        assert!(refused(&spec(24, None)).contains("24 bits"));
        assert!(refused(&spec(32, Some(3))).contains("alignment of 3"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn search_equals_a_naive_one(
            // Few different bytes, so that hits and near misses are frequent; long enough for several blocks.
            haystack in prop::collection::vec(prop::sample::select(vec![0_u8, 0, 0, 1, 2, 0xff]), 0..9_000),
            bytes in prop::collection::vec(prop::option::weighted(0.7, prop::sample::select(vec![0_u8, 0, 1, 2, 0xff])), 1..9),
            alignment in prop::sample::select(vec![1_usize, 2, 4]),
            base in 0_usize..4,
        ) {
            prop_assume!(bytes.iter().any(Option::is_some));
            let naive: Vec<usize> = (0..haystack.len())
                .filter(|at| {
                    (base + at) % alignment == 0
                        && at + bytes.len() <= haystack.len()
                        && bytes.iter().enumerate().all(|(i, byte)| byte.is_none_or(|byte| haystack[at + i] == byte))
                })
                .collect();
            let pattern = Pattern::of(bytes, alignment).unwrap();
            prop_assert_eq!(hits(&pattern, &haystack, base), naive);
        }
    }
}
