//! Finds text or bytes in memory. A candidate is only decoded when what it would show can be what is searched for.

use super::decode::{Extent, decode, extent};
use super::fragments::Fragments;
use super::tokens::too_long;
use super::{Decoded, Length, Options};
use crate::Problem;
use base::limits;
use memchr::{memchr, memchr_iter, memchr2_iter, memchr3_iter};

/// What is searched for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Query {
    /// A text whose plain form is exactly this.
    Text(String),
    /// These bytes; where a text would end does not matter.
    Bytes(Vec<u8>),
}

/// How to search.
#[derive(Clone, Debug)]
pub struct Search {
    /// What for.
    pub query: Query,
    /// Bytes from one candidate to the next, at least 1.
    pub stride: usize,
    /// Matches after which the search ends, 1 to [`limits::MAX_C64_SEARCH_RESULTS`].
    pub max_results: usize,
}

/// One match.
#[derive(Clone, Debug)]
pub struct Match<'a> {
    /// Its place, counted from the first searched byte.
    pub offset: usize,
    /// The text there.
    pub decoded: Decoded<'a>,
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Found<'a> {
    /// The matches, in the order of their places.
    pub matches: Vec<Match<'a>>,
    /// Whether the search ended because there were enough.
    pub result_limit_reached: bool,
    /// Candidates that were no text because it would have ended outside.
    pub invalid_candidates: usize,
}

impl Search {
    /// Whether it can be made.
    ///
    /// # Errors
    /// `Option` for an empty or overlong query, and numbers out of range.
    pub fn check(&self) -> Result<(), Problem> {
        let (length, what) = match &self.query {
            Query::Text(text) if text.is_empty() => {
                return Err(Problem::option("text query must be a non-empty string"));
            }
            Query::Bytes(bytes) if bytes.is_empty() => return Err(Problem::option("byte query must not be empty")),
            Query::Text(text) => (text.chars().count(), "characters"),
            Query::Bytes(bytes) => (bytes.len(), "bytes"),
        };
        let most = limits::MAX_C64_QUERY;
        if length > most {
            return Err(Problem::option(format!("query has {length} {what}; at most {most} are allowed")));
        }
        if self.stride == 0 {
            return Err(Problem::option("stride must be a positive integer"));
        }
        let most = limits::MAX_C64_SEARCH_RESULTS;
        match self.max_results {
            0 => Err(Problem::option("max_results must be a positive integer")),
            more if more > most => Err(Problem::option(format!("max_results must not exceed {most}"))),
            _ => Ok(()),
        }
    }
}

/// Searches `memory`. In the byte mode, `options.length` should be [`Length::Fixed`] of the query's length: matches are
/// decoded with it.
///
/// # Errors
/// Those of [`Search::check`] and of [`decode`] for a match; `TooLarge` when all matches together are longer than
/// [`limits::MAX_C64_RENDERED_CHARS`].
pub fn search<'a>(memory: &'a [u8], options: &'a Options, search: &Search) -> Result<Found<'a>, Problem> {
    search.check()?;
    options.check()?;
    let most = limits::MAX_C64_TEXT_BYTES;
    if memory.len() > most {
        return Err(Problem::too_large(format!("{} bytes were to be searched; {most} are allowed", memory.len())));
    }
    let mut found = Found { matches: Vec::new(), result_limit_reached: false, invalid_candidates: 0 };
    let mut left = limits::MAX_C64_RENDERED_CHARS;
    let mut take = |offset: usize| -> Result<bool, Problem> {
        let decoded = decode(memory.get(offset..).unwrap_or_default(), options)?;
        // Bytes are an upper bound of characters.
        left = left.checked_sub(decoded.plain.len() + decoded.lossless.len()).ok_or_else(too_long)?;
        found.matches.push(Match { offset, decoded });
        Ok(found.matches.len() == search.max_results)
    };
    let (enough, invalid) = match &search.query {
        Query::Bytes(needle) => (find_bytes(memory, needle, search.stride, &mut take)?, 0),
        Query::Text(text) => {
            let candidates = Candidates::new(memory, options, text)?;
            candidates.find(search.stride, &mut take)?
        }
    };
    found.result_limit_reached = enough;
    found.invalid_candidates = invalid;
    Ok(found)
}

fn find_bytes(
    memory: &[u8],
    needle: &[u8],
    stride: usize,
    take: &mut dyn FnMut(usize) -> Result<bool, Problem>,
) -> Result<bool, Problem> {
    let Some(first) = needle.first() else { return Ok(false) };
    for offset in memchr_iter(*first, memory).filter(|offset| offset.is_multiple_of(stride)) {
        if memory.get(offset..).is_some_and(|rest| rest.starts_with(needle)) && take(offset)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The places in memory where a text may begin.
struct Candidates<'a> {
    memory: &'a [u8],
    length: Length,
    query: &'a str,
    /// Plain form of each byte that is in memory; none when it is longer than the query.
    plain: Vec<Option<String>>,
    /// The bytes that a text which shows the query may begin with.
    begins: Vec<u8>,
    /// For each place, the next byte that shows something; made only when some byte shows nothing.
    next_shown: Option<Vec<u32>>,
}

impl<'a> Candidates<'a> {
    fn new(memory: &'a [u8], options: &'a Options, query: &'a str) -> Result<Self, Problem> {
        let mut fragments = Fragments::new(options);
        let mut plain = vec![None; 256];
        let mut some_show_nothing = false;
        for byte in 0..=u8::MAX {
            // A token that cannot be expanded is an error only where it is used.
            if fragments.is_token(byte) && memchr(byte, memory).is_none() {
                continue;
            }
            if fragments.plain_chars(byte)? <= query.len()
                && let Some(slot) = plain.get_mut(usize::from(byte))
            {
                let mut text = String::new();
                fragments.plain(byte, &mut text);
                some_show_nothing |= text.is_empty();
                *slot = Some(text);
            }
        }
        let begins = (0..=u8::MAX)
            .zip(&plain)
            .filter(|(_, text)| text.as_ref().is_some_and(|text| query.starts_with(text.as_str())))
            .map(|(byte, _)| byte)
            .collect();
        let shows_nothing = |byte: &u8| plain.get(usize::from(*byte)).is_some_and(|text| text.as_deref() == Some(""));
        let next_shown = some_show_nothing.then(|| {
            let mut next = vec![0; memory.len()];
            let mut shown = memory.len();
            for (at, byte) in memory.iter().enumerate().rev() {
                if !shows_nothing(byte) {
                    shown = at;
                }
                if let Some(slot) = next.get_mut(at) {
                    *slot = u32::try_from(shown).unwrap_or(u32::MAX);
                }
            }
            next
        });
        Ok(Self { memory, length: options.length, query, plain, begins, next_shown })
    }

    /// Whether the search ended early, and how many candidates were no text.
    fn find(
        &self,
        stride: usize,
        take: &mut dyn FnMut(usize) -> Result<bool, Problem>,
    ) -> Result<(bool, usize), Problem> {
        match self.length {
            Length::Fixed(length) => {
                // Those that would end outside are the last ones, so they count only when nothing ended the search before.
                let last = (self.memory.len() + 1).saturating_sub(length);
                let enough = self.find_begun(last, stride, &mut |_| length, take)?;
                let candidates = self.memory.len().div_ceil(stride) - last.min(self.memory.len()).div_ceil(stride);
                Ok((enough, if enough { 0 } else { candidates }))
            }
            Length::Terminator(terminator) => {
                // Looked for once between two terminators, not once for each candidate.
                let mut end = 0;
                let mut length_of = |offset: usize| {
                    if end < offset || offset == 0 {
                        let rest = self.memory.get(offset..).unwrap_or_default();
                        end = offset + memchr(terminator, rest).unwrap_or(rest.len());
                    }
                    end - offset
                };
                Ok((self.find_begun(self.memory.len(), stride, &mut length_of, take)?, 0))
            }
            Length::Prefix { size, .. } => self.find_prefixed(usize::from(size), stride, take),
        }
    }

    /// Looks at the places before `last` whose byte a text may begin with.
    fn find_begun(
        &self,
        last: usize,
        stride: usize,
        length_of: &mut dyn FnMut(usize) -> usize,
        take: &mut dyn FnMut(usize) -> Result<bool, Problem>,
    ) -> Result<bool, Problem> {
        let memory = self.memory.get(..last).unwrap_or(self.memory);
        let mut look = |offset: usize| {
            let is_it = offset.is_multiple_of(stride) && self.shows_query(offset, offset + length_of(offset));
            if is_it { take(offset) } else { Ok(false) }
        };
        let places: Box<dyn Iterator<Item = usize> + '_> = match self.begins.as_slice() {
            [] => Box::new(std::iter::empty()),
            [one] => Box::new(memchr_iter(*one, memory)),
            [one, two] => Box::new(memchr2_iter(*one, *two, memory)),
            [one, two, three] => Box::new(memchr3_iter(*one, *two, *three, memory)),
            many => {
                let mut begins = [false; 256];
                for byte in many {
                    if let Some(slot) = begins.get_mut(usize::from(*byte)) {
                        *slot = true;
                    }
                }
                let may_begin = move |byte: &u8| begins.get(usize::from(*byte)) == Some(&true);
                Box::new(memory.iter().enumerate().filter(move |(_, byte)| may_begin(byte)).map(|(at, _)| at))
            }
        };
        for offset in places {
            if look(offset)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Looks at every place, since each has a length of its own that may lead outside.
    fn find_prefixed(
        &self,
        size: usize,
        stride: usize,
        take: &mut dyn FnMut(usize) -> Result<bool, Problem>,
    ) -> Result<(bool, usize), Problem> {
        let mut invalid = 0;
        for offset in (0..self.memory.len()).step_by(stride) {
            let Ok(Extent { text, .. }) = extent(self.memory.get(offset..).unwrap_or_default(), self.length) else {
                invalid += 1;
                continue;
            };
            if self.shows_query(offset + size, offset + text.end) && take(offset)? {
                return Ok((true, invalid));
            }
        }
        Ok((false, invalid))
    }

    /// Whether the bytes from `at` up to `end` show exactly the query.
    fn shows_query(&self, mut at: usize, end: usize) -> bool {
        let mut left = self.query;
        loop {
            if let Some(next) = &self.next_shown {
                at = next.get(at).map_or(at, |shown| *shown as usize);
            }
            if at >= end {
                return left.is_empty();
            }
            let byte = self.memory.get(at).copied().unwrap_or_default();
            let Some(Some(text)) = self.plain.get(usize::from(byte)) else { return false };
            match left.strip_prefix(text.as_str()) {
                Some(rest) if !text.is_empty() => left = rest,
                _ => return false,
            }
            at += 1;
        }
    }
}
