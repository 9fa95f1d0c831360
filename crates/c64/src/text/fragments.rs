//! What each byte contributes to the plain and the lossless form of a text.

use super::tokens::Expander;
use super::{Controls, Graphics, HighBit, Options};
use crate::Problem;
use crate::charset::Entry;

/// Renders single bytes.
#[derive(Clone, Debug)]
pub(super) struct Fragments<'a> {
    options: &'a Options,
    tokens: Expander<'a>,
}

/// A byte with its entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Selected {
    /// The byte that was looked up.
    pub byte: u8,
    /// Its entry.
    pub entry: &'static Entry,
    /// Whether it is shown in reverse video.
    pub reverse: bool,
}

impl<'a> Fragments<'a> {
    pub(super) fn new(options: &'a Options) -> Self {
        Self { options, tokens: Expander::new(&options.tokens, options.recursive, options.recursion_limit) }
    }

    pub(super) fn select(&self, original: u8) -> Selected {
        let byte = if self.options.high_bit == HighBit::Exact { original } else { original & 0x7f };
        let entry = self.options.encoding.entry(byte);
        let reverse = match self.options.high_bit {
            HighBit::AnnotateReverse => original >= 0x80,
            HighBit::Exact | HighBit::Strip => entry.reverse_video,
        };
        Selected { byte, entry, reverse }
    }

    pub(super) fn is_token(&self, original: u8) -> bool {
        self.options.tokens.has(original)
    }

    /// Characters of the plain form.
    ///
    /// # Errors
    /// Those of tokens.
    pub(super) fn plain_chars(&mut self, original: u8) -> Result<usize, Problem> {
        match self.tokens.chars(original)? {
            Some(chars) => Ok(chars),
            None => Ok(self.own(original).chars().count()),
        }
    }

    /// The plain form of a byte that has been measured.
    pub(super) fn plain(&self, original: u8, into: &mut String) {
        if self.is_token(original) {
            self.tokens.expand(original, into);
        } else {
            into.push_str(&self.own(original));
        }
    }

    /// The plain form of a byte as if it were no token.
    pub(super) fn own(&self, original: u8) -> String {
        let entry = self.select(original).entry;
        if let Some(glyph) = entry.glyph {
            return glyph.into();
        }
        match (entry.unicode, self.options.graphics, self.options.controls) {
            (Some(graphic), Graphics::Unicode, _) => graphic.into(),
            (None, _, Controls::Escaped) => format!("\\x{original:02x}"),
            _ => format!("{{{}}}", entry.name),
        }
    }

    /// The lossless form: what it shows and the byte itself.
    pub(super) fn lossless(&self, original: u8) -> String {
        let selected = self.select(original);
        let reverse = if selected.reverse { "REV " } else { "" };
        match selected.entry.glyph {
            Some(glyph) => format!("{{{reverse}{glyph}:${original:02X}}}"),
            None => format!("{{{reverse}{}:${original:02X}}}", selected.entry.name),
        }
    }
}
