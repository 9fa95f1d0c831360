//! Tokens: bytes that stand for words, which may refer to other tokens. Their expansion is measured before it is made, so
//! that no map of tokens can make it larger than it may be.

use crate::Problem;
use base::limits;
use std::collections::BTreeMap;

/// What bytes stand for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tokens(BTreeMap<u8, String>);

impl Tokens {
    /// Tokens by the written form of their bytes: decimal (`129`) or hexadecimal (`0x81`), without leading zeros beyond
    /// two hexadecimal digits.
    ///
    /// # Errors
    /// `Option` for a key that is no byte or is there twice; `TooLarge` for more text than may be shown at all.
    pub fn parse<'a>(entries: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, Problem> {
        let mut tokens = BTreeMap::new();
        let mut chars = 0_usize;
        for (key, text) in entries {
            let byte = key_byte(key)?;
            chars = chars.saturating_add(text.chars().count());
            if chars > limits::MAX_C64_RENDERED_CHARS {
                return Err(too_long());
            }
            if tokens.insert(byte, text.to_owned()).is_some() {
                return Err(Problem::option(format!("duplicate normalized token byte {byte}")));
            }
        }
        Ok(Self(tokens))
    }

    /// Bytes and what they stand for, in the order of the bytes.
    pub fn iter(&self) -> impl Iterator<Item = (u8, &str)> {
        self.0.iter().map(|(byte, text)| (*byte, text.as_str()))
    }

    /// Whether a byte stands for something.
    pub fn has(&self, byte: u8) -> bool {
        self.0.contains_key(&byte)
    }

    /// The parts of a token's text; one literal part unless references count.
    fn parts(&self, byte: u8, recursive: bool) -> Vec<Part<'_>> {
        let Some(mut rest) = self.0.get(&byte).map(String::as_str) else { return Vec::new() };
        if !recursive {
            return vec![Part::Text(rest)];
        }
        let mut parts = Vec::new();
        let mut from = 0;
        while let Some(brace) = rest.get(from..).and_then(|text| text.find('{')).map(|at| from + at) {
            match reference(rest, brace).filter(|target| self.has(*target)) {
                Some(target) => {
                    parts.push(Part::Text(rest.get(..brace).unwrap_or_default()));
                    parts.push(Part::Token(target));
                    rest = rest.get(brace + REFERENCE..).unwrap_or_default();
                    from = 0;
                }
                // Unknown references stay as they are written.
                None => from = brace + 1,
            }
        }
        parts.push(Part::Text(rest));
        parts
    }
}

enum Part<'a> {
    Text(&'a str),
    Token(u8),
}

/// Bytes of a reference: `{`, two digits, `}`.
const REFERENCE: usize = 4;

/// The byte that `{81}` at `brace` refers to.
fn reference(text: &str, brace: usize) -> Option<u8> {
    let digits = text.get(brace + 1..brace + 3)?;
    let digits = digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(digits)?;
    text.get(brace + 3..)?.starts_with('}').then(|| u8::from_str_radix(digits, 16).ok())?
}

fn key_byte(key: &str) -> Result<u8, Problem> {
    let wrong = || {
        Problem::option(format!(
            "token keys must be decimal bytes or 0x-prefixed hex, such as \"129\" or \"0x81\", not {key:?}"
        ))
    };
    let value = match key.strip_prefix("0x") {
        Some(digits) if (1..=2).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            u32::from_str_radix(digits, 16).map_err(|_| wrong())?
        }
        Some(_) => return Err(wrong()),
        None => {
            let plain = key == "0" || !key.starts_with('0');
            if key.is_empty() || !plain || !key.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(wrong());
            }
            key.parse().unwrap_or(u32::MAX)
        }
    };
    u8::try_from(value).map_err(|_| Problem::option(format!("token keys must be from 0 to 255, not {key:?}")))
}

pub(super) fn too_long() -> Problem {
    Problem::too_large(format!("rendered output exceeds {} characters", limits::MAX_C64_RENDERED_CHARS))
}

/// How long the expansion of a token is.
#[derive(Clone, Copy, Debug)]
struct Measure {
    chars: usize,
    /// References followed one after another.
    depth: usize,
}

/// Expands the tokens of one map; what has been measured is remembered.
#[derive(Clone, Debug)]
pub(super) struct Expander<'a> {
    tokens: &'a Tokens,
    recursive: bool,
    limit: usize,
    measured: BTreeMap<u8, Measure>,
}

impl<'a> Expander<'a> {
    pub(super) fn new(tokens: &'a Tokens, recursive: bool, limit: usize) -> Self {
        Self { tokens, recursive, limit, measured: BTreeMap::new() }
    }

    /// Characters of a token's expansion; none for a byte that is no token.
    ///
    /// # Errors
    /// `Option` for a cycle and for more references than allowed.
    pub(super) fn chars(&mut self, byte: u8) -> Result<Option<usize>, Problem> {
        if !self.tokens.has(byte) {
            return Ok(None);
        }
        self.measure(byte, &mut Vec::new()).map(|measure| Some(measure.chars))
    }

    fn measure(&mut self, byte: u8, path: &mut Vec<u8>) -> Result<Measure, Problem> {
        if path.contains(&byte) {
            path.push(byte);
            let path: Vec<String> = path.iter().map(|byte| format!("0x{byte:02X}")).collect();
            return Err(Problem::option(format!("recursive token cycle: {}", path.join(" -> "))));
        }
        if path.len() > self.limit {
            return Err(self.exceeded());
        }
        let measure = match self.measured.get(&byte) {
            Some(measure) => *measure,
            None => {
                path.push(byte);
                let mut measure = Measure { chars: 0, depth: 0 };
                for part in self.tokens.parts(byte, self.recursive) {
                    match part {
                        Part::Text(text) => measure.chars = measure.chars.saturating_add(text.chars().count()),
                        Part::Token(target) => {
                            let inner = self.measure(target, path)?;
                            measure.chars = measure.chars.saturating_add(inner.chars);
                            measure.depth = measure.depth.max(inner.depth + 1);
                        }
                    }
                }
                path.pop();
                self.measured.insert(byte, measure);
                measure
            }
        };
        if path.len() + measure.depth > self.limit {
            return Err(self.exceeded());
        }
        Ok(measure)
    }

    fn exceeded(&self) -> Problem {
        Problem::option(format!("token recursion limit {} exceeded", self.limit))
    }

    /// The expansion of a token that has been measured.
    pub(super) fn expand(&self, byte: u8, into: &mut String) {
        for part in self.tokens.parts(byte, self.recursive) {
            match part {
                Part::Text(text) => into.push_str(text),
                Part::Token(target) => self.expand(target, into),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(entries: &[(&str, &str)]) -> Tokens {
        Tokens::parse(entries.iter().copied()).unwrap()
    }

    fn expanded(tokens: &Tokens, byte: u8, limit: usize) -> Result<String, Problem> {
        let mut expander = Expander::new(tokens, true, limit);
        let chars = expander.chars(byte)?.unwrap();
        let mut text = String::new();
        expander.expand(byte, &mut text);
        assert_eq!(text.chars().count(), chars);
        Ok(text)
    }

    #[test]
    fn keys_are_bytes_in_two_notations() {
        let both = tokens(&[("129", "a"), ("0x82", "b"), ("0x3", "c"), ("0", "d")]);
        assert_eq!(both.iter().collect::<Vec<_>>(), [(0, "d"), (3, "c"), (129, "a"), (130, "b")]);
        for key in ["", "0x", "0X41", " 65", "-1", "+1", "0x041", "0x100", "065", "1e", "foo"] {
            assert!(Tokens::parse([(key, "x")]).unwrap_err().message.contains("decimal bytes or 0x"), "{key}");
        }
        for key in ["256", "99999999999999999999"] {
            assert!(Tokens::parse([(key, "x")]).unwrap_err().message.contains("0 to 255"), "{key}");
        }
        let twice = Tokens::parse([("65", "a"), ("0x41", "b")]).unwrap_err();
        assert_eq!(twice.message, "duplicate normalized token byte 65");
    }

    #[test]
    fn references_are_followed_and_unknown_ones_stay() {
        let map = tokens(&[("0x41", "é{42}-{43}{4}{4G}{100}{42"), ("0x42", "b{44}"), ("0x44", "!")]);
        assert_eq!(expanded(&map, 0x41, 8).unwrap(), "éb!-{43}{4}{4G}{100}{42");
        assert_eq!(Expander::new(&map, false, 8).chars(0x42).unwrap(), Some(5));
        assert_eq!(Expander::new(&map, true, 8).chars(0x43).unwrap(), None);
    }

    #[test]
    fn the_limit_counts_references_one_after_another() {
        let chain = tokens(&[("0x41", "x{42}"), ("0x42", "y{43}"), ("0x43", "z")]);
        assert_eq!(expanded(&chain, 0x41, 2).unwrap(), "xyz");
        assert_eq!(expanded(&chain, 0x41, 1).unwrap_err().message, "token recursion limit 1 exceeded");
        // What was measured on its own counts in full below another one.
        let mut expander = Expander::new(&chain, true, 1);
        assert_eq!(expander.chars(0x42).unwrap(), Some(2));
        assert!(expander.chars(0x41).is_err());
    }

    #[test]
    fn a_cycle_is_shown_with_its_way() {
        let cycle = tokens(&[("0x41", "x{42}"), ("0x42", "y{41}")]);
        assert_eq!(expanded(&cycle, 0x41, 8).unwrap_err().message, "recursive token cycle: 0x41 -> 0x42 -> 0x41");
        let own = tokens(&[("0x72", "{72}")]);
        assert_eq!(expanded(&own, 0x72, 8).unwrap_err().message, "recursive token cycle: 0x72 -> 0x72");
    }

    #[test]
    fn growth_is_measured_without_being_made() {
        // Each of 64 tokens is two of the next: 2^64 characters, which saturate.
        let entries: Vec<(String, String)> =
            (0..64).map(|at| (at.to_string(), format!("{{{:02X}}}{{{:02X}}}", at + 1, at + 1))).collect();
        let mut entries: Vec<(&str, &str)> = entries.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        entries.push(("64", "x"));
        let map = tokens(&entries);
        assert_eq!(Expander::new(&map, true, 256).chars(0).unwrap(), Some(usize::MAX));
        assert_eq!(Expander::new(&map, true, 256).chars(44).unwrap(), Some(1 << 20));
    }
}
