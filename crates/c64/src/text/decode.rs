//! Decodes one text: where it ends, its plain and its lossless form, and a record for each byte.

use super::fragments::Fragments;
use super::tokens::too_long;
use super::{Length, Options};
use crate::Problem;
use base::limits;
use std::ops::Range;

/// A decoded text.
#[derive(Clone, Debug)]
pub struct Decoded<'a> {
    /// The bytes it takes, a prefix or terminator included.
    pub consumed: &'a [u8],
    /// Which of them are the text itself.
    pub text: Range<usize>,
    /// The text as a person reads it.
    pub plain: String,
    /// The text with the value of every byte, `{A:$41}`.
    pub lossless: String,
    /// Whether a terminator was asked for and found.
    pub terminated: bool,
    /// What a reader should know.
    pub warnings: Vec<String>,
    fragments: Fragments<'a>,
}

/// One consumed byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its place, counted from the first consumed byte.
    pub offset: usize,
    /// The byte.
    pub original_byte: u8,
    /// The byte that was looked up.
    pub selected_byte: u8,
    /// Its character, where it has one in plain text.
    pub glyph: Option<char>,
    /// Its character even if it is a graphic one.
    pub unicode: Option<char>,
    /// Its name.
    pub name: &'static str,
    /// Whether it takes a cell on the screen.
    pub printable: bool,
    /// Whether it is shown in reverse video.
    pub reverse_video: bool,
    /// Whether it is part of the text.
    pub included_in_text: bool,
    /// Whether it is a token.
    pub token_expanded: bool,
    /// What it contributes to plain text.
    pub plain_fragment: String,
    /// What it contributes to lossless text.
    pub lossless_fragment: String,
}

/// Which bytes of a source a text takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub consumed: usize,
    pub text: Range<usize>,
    pub terminated: bool,
}

/// Where the text at the start of `source` ends.
pub(super) fn extent(source: &[u8], length: Length) -> Result<Extent, Problem> {
    match length {
        Length::Fixed(length) if length > source.len() => {
            Err(Problem::data(format!("fixed length {length} exceeds source boundary {}", source.len())))
        }
        Length::Fixed(length) => Ok(Extent { consumed: length, text: 0..length, terminated: false }),
        Length::Terminator(byte) => Ok(match memchr::memchr(byte, source) {
            Some(at) => Extent { consumed: at + 1, text: 0..at, terminated: true },
            None => Extent { consumed: source.len(), text: 0..source.len(), terminated: false },
        }),
        Length::Prefix { size, includes_self } => {
            let size = usize::from(size);
            let prefix = source.get(..size).ok_or_else(|| {
                Problem::data(format!("source boundary {} is shorter than prefix size {size}", source.len()))
            })?;
            let declared = prefix.iter().rev().fold(0, |value, byte| value << 8 | usize::from(*byte));
            let whole = if includes_self { declared } else { declared + size };
            if whole < size {
                return Err(Problem::data(format!("declared length {declared} is smaller than prefix size {size}")));
            }
            if whole > source.len() {
                return Err(Problem::data(format!(
                    "length prefix declares {whole} bytes beyond source boundary {}",
                    source.len()
                )));
            }
            Ok(Extent { consumed: whole, text: size..whole, terminated: false })
        }
    }
}

/// Decodes the text at the start of `source`.
///
/// # Errors
/// `Option` for options that cannot be used and for tokens that refer to themselves or too deep; `Data` when the source ends
/// before the text; `TooLarge` for a source of more than [`limits::MAX_C64_TEXT_BYTES`] and for a result of more than
/// [`limits::MAX_C64_RENDERED_CHARS`].
pub fn decode<'a>(source: &'a [u8], options: &'a Options) -> Result<Decoded<'a>, Problem> {
    options.check()?;
    let most = limits::MAX_C64_TEXT_BYTES;
    if source.len() > most {
        return Err(Problem::too_large(format!("the source has {} bytes; {most} are allowed", source.len())));
    }
    let Extent { consumed, text, terminated } = extent(source, options.length)?;
    let consumed = source.get(..consumed).unwrap_or_default();
    let mut fragments = Fragments::new(options);
    let (plain, lossless) = render(consumed.get(text.clone()).unwrap_or_default(), &mut fragments)?;
    let mut warnings = Vec::new();
    if let Length::Terminator(byte) = options.length
        && !terminated
    {
        warnings.push(format!("terminator 0x{byte:02x} was not found"));
    }
    Ok(Decoded { consumed, text, plain, lossless, terminated, warnings, fragments })
}

fn render(text: &[u8], fragments: &mut Fragments<'_>) -> Result<(String, String), Problem> {
    let (mut plain, mut lossless) = (String::new(), String::new());
    let mut left = limits::MAX_C64_RENDERED_CHARS;
    for byte in text {
        let own = fragments.lossless(*byte);
        let chars = fragments.plain_chars(*byte)?.saturating_add(own.chars().count());
        left = left.checked_sub(chars).ok_or_else(too_long)?;
        fragments.plain(*byte, &mut plain);
        lossless.push_str(&own);
    }
    Ok((plain, lossless))
}

impl Decoded<'_> {
    /// The records from that of byte `first` on, made as they are asked for: they are many times larger than the text.
    pub fn records(&self, first: usize) -> impl Iterator<Item = Record> {
        self.consumed.iter().enumerate().skip(first).map(|(offset, byte)| self.record(offset, *byte))
    }

    fn record(&self, offset: usize, original: u8) -> Record {
        let selected = self.fragments.select(original);
        let included = self.text.contains(&offset);
        let mut plain = String::new();
        if included {
            self.fragments.plain(original, &mut plain);
        } else {
            // A prefix or terminator says nothing, so it is no token either.
            plain = self.fragments.own(original);
        }
        Record {
            offset,
            original_byte: original,
            selected_byte: selected.byte,
            glyph: selected.entry.glyph,
            unicode: selected.entry.unicode,
            name: &selected.entry.name,
            printable: selected.entry.printable,
            reverse_video: selected.reverse,
            included_in_text: included,
            token_expanded: included && self.fragments.is_token(original),
            plain_fragment: plain,
            lossless_fragment: self.fragments.lossless(original),
        }
    }
}
