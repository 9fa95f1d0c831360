//! Text of the C64: where it ends, what its bytes show, and where a phrase stands.

mod decode;
mod fragments;
mod search;
mod tokens;

pub use decode::{Decoded, Record, decode};
pub use search::{Found, Match, Query, Search, search};
pub use tokens::Tokens;

use crate::Problem;
use crate::charset::Encoding;
use base::limits;

/// How the end of a text is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// So many bytes, at least 1.
    Fixed(usize),
    /// Up to this byte, which is consumed and shown but is not part of the text; else all there is.
    Terminator(u8),
    /// A length stands before the text.
    Prefix {
        /// Bytes of the length, little endian: 1 or 2.
        size: u8,
        /// Whether the length counts itself.
        includes_self: bool,
    },
}

impl Length {
    /// The one of the three that is given.
    ///
    /// # Errors
    /// `Option` when none or several are given, or the one is out of range.
    pub fn of(
        length: Option<i64>,
        terminator: Option<i64>,
        prefix_size: Option<i64>,
        includes_self: bool,
    ) -> Result<Self, Problem> {
        match (length, terminator, prefix_size) {
            (Some(length), None, None) => match usize::try_from(length) {
                Ok(length) if length > 0 => Ok(Self::Fixed(length)),
                _ => Err(Problem::option(format!("fixed length must be positive, not {length}"))),
            },
            (None, Some(byte), None) => u8::try_from(byte)
                .map(Self::Terminator)
                .map_err(|_| Problem::option(format!("terminator must be from 0 to 255, not {byte}"))),
            (None, None, Some(1)) => Ok(Self::Prefix { size: 1, includes_self }),
            (None, None, Some(2)) => Ok(Self::Prefix { size: 2, includes_self }),
            (None, None, Some(size)) => Err(Problem::option(format!("prefix_size must be 1 or 2, not {size}"))),
            _ => Err(Problem::option("exactly one length mode is required: length, terminator, or prefix_size")),
        }
    }
}

/// What bit 7 of a byte means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HighBit {
    /// The byte is looked up as it is.
    #[default]
    Exact,
    /// It is removed first.
    Strip,
    /// It is removed first and means reverse video; screen codes only.
    AnnotateReverse,
}

/// How control codes look in plain text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Controls {
    /// `{CLR}`.
    #[default]
    Names,
    /// `\x93`.
    Escaped,
    /// The character if there is one, else the name.
    Unicode,
}

/// How graphic characters look in plain text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Graphics {
    /// `{GRAPHIC_41}`.
    #[default]
    Names,
    /// The Unicode character.
    Unicode,
}

/// How text is decoded.
#[derive(Clone, Debug)]
pub struct Options {
    /// The code table.
    pub encoding: Encoding,
    /// Where the text ends.
    pub length: Length,
    /// What bit 7 means.
    pub high_bit: HighBit,
    /// How control codes look.
    pub controls: Controls,
    /// How graphic characters look.
    pub graphics: Graphics,
    /// What bytes stand for.
    pub tokens: Tokens,
    /// Whether tokens refer to tokens.
    pub recursive: bool,
    /// References that a token may follow, 1 to [`limits::MAX_C64_TOKEN_DEPTH`].
    pub recursion_limit: usize,
}

impl Options {
    /// Options that name the length and leave the rest as it is by default.
    pub fn new(length: Length) -> Self {
        Self {
            encoding: Encoding::default(),
            length,
            high_bit: HighBit::default(),
            controls: Controls::default(),
            graphics: Graphics::default(),
            tokens: Tokens::default(),
            recursive: false,
            recursion_limit: limits::DEFAULT_C64_TOKEN_DEPTH,
        }
    }

    /// Whether they can be used.
    ///
    /// # Errors
    /// `Option` for a limit out of range, and for reverse video outside screen codes.
    pub fn check(&self) -> Result<(), Problem> {
        let most = limits::MAX_C64_TOKEN_DEPTH;
        if self.recursion_limit == 0 || self.recursion_limit > most {
            return Err(Problem::option(format!("token_recursion_limit must be from 1 to {most}")));
        }
        if self.high_bit == HighBit::AnnotateReverse && !self.encoding.is_screen_code() {
            return Err(Problem::option("annotate_reverse is valid only for screen-code encodings"));
        }
        Ok(())
    }
}
