//! Options of the text tools and what they answer with.

use super::file::{Loaded, Part};
use super::invalid;
use crate::context::Context;
use crate::errors::ToolError;
use crate::tools::page;
use base::limits;
use c64::charset::Encoding;
use c64::text::{Controls, Decoded, Graphics, HighBit, Length, Options, Record, Tokens};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A code table.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum EncodingWord {
    #[default]
    PetsciiUpper,
    PetsciiLower,
    ScreenCodeUpper,
    ScreenCodeLower,
}

/// What bit 7 means.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum HighBitWord {
    #[default]
    Exact,
    Strip,
    AnnotateReverse,
}

/// How control codes look.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum ControlsWord {
    #[default]
    Names,
    Escaped,
    Unicode,
}

/// How graphic characters look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum GraphicsWord {
    #[default]
    Names,
    Unicode,
}

/// Options of the three tools.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct TextParams {
    /// Code table.
    #[serde(default)]
    pub encoding: EncodingWord,
    /// Bytes of the text. Exactly one of `length`, `terminator`, `prefix_size`.
    pub length: Option<i64>,
    /// The byte, 0 to 255, that ends the text.
    pub terminator: Option<i64>,
    /// Bytes, 1 or 2 (little endian), of a length before the text.
    pub prefix_size: Option<i64>,
    /// The length before the text counts its own bytes too.
    #[serde(default)]
    pub prefix_includes_self: bool,
    /// Bit 7: `exact`; `strip`; `annotate_reverse` (screen codes).
    #[serde(default)]
    pub high_bit: HighBitWord,
    /// Control codes in plain text: `{CLR}`, `\x93`, or a character.
    #[serde(default)]
    pub controls: ControlsWord,
    /// Graphic characters in plain text: `{GRAPHIC_41}`, or Unicode.
    #[serde(default)]
    pub graphics: GraphicsWord,
    /// What bytes stand for: `{"129": "THE "}` or `{"0x81": …}`.
    pub tokens: Option<BTreeMap<String, String>>,
    /// `{81}` in a token is the token of byte 0x81.
    #[serde(default)]
    pub recursive_tokens: bool,
    /// References one after another, 1 to 256; default 8.
    pub token_recursion_limit: Option<i64>,
}

impl TextParams {
    /// The options, checked.
    ///
    /// # Errors
    /// `invalid_arguments`, `output_too_large`.
    pub fn options(&self) -> Result<Options, ToolError> {
        let length = Length::of(self.length, self.terminator, self.prefix_size, self.prefix_includes_self)?;
        self.options_of(length)
    }

    /// The options with a length of another origin.
    ///
    /// # Errors
    /// `invalid_arguments`, `output_too_large`.
    pub fn options_of(&self, length: Length) -> Result<Options, ToolError> {
        let entries = self.tokens.iter().flatten().map(|(key, text)| (key.as_str(), text.as_str()));
        let limit = self.token_recursion_limit.unwrap_or(limits::DEFAULT_C64_TOKEN_DEPTH as i64);
        let options = Options {
            encoding: match self.encoding {
                EncodingWord::PetsciiUpper => Encoding::PetsciiUpper,
                EncodingWord::PetsciiLower => Encoding::PetsciiLower,
                EncodingWord::ScreenCodeUpper => Encoding::ScreenCodeUpper,
                EncodingWord::ScreenCodeLower => Encoding::ScreenCodeLower,
            },
            length,
            high_bit: match self.high_bit {
                HighBitWord::Exact => HighBit::Exact,
                HighBitWord::Strip => HighBit::Strip,
                HighBitWord::AnnotateReverse => HighBit::AnnotateReverse,
            },
            controls: match self.controls {
                ControlsWord::Names => Controls::Names,
                ControlsWord::Escaped => Controls::Escaped,
                ControlsWord::Unicode => Controls::Unicode,
            },
            graphics: match self.graphics {
                GraphicsWord::Names => Graphics::Names,
                GraphicsWord::Unicode => Graphics::Unicode,
            },
            tokens: Tokens::parse(entries)?,
            recursive: self.recursive_tokens,
            recursion_limit: usize::try_from(limit).unwrap_or_default(),
        };
        options.check()?;
        Ok(options)
    }

    /// The options as an answer repeats them.
    pub fn configuration(&self, options: &Options) -> Configuration {
        let (length_mode, length, terminator, prefix_size) = match options.length {
            Length::Fixed(length) => ("length", Some(length), None, None),
            Length::Terminator(byte) => ("terminator", None, Some(byte), None),
            Length::Prefix { size, .. } => ("length_prefix", None, None, Some(size)),
        };
        Configuration {
            encoding: options.encoding.word(),
            length_mode,
            length,
            terminator,
            prefix_size,
            prefix_includes_self: self.prefix_includes_self,
            high_bit: self.high_bit,
            controls: self.controls,
            graphics: (self.graphics != GraphicsWord::Names).then_some(self.graphics),
            tokens: options.tokens.iter().map(|(byte, text)| (byte.to_string(), text.to_owned())).collect(),
            recursive_tokens: options.recursive,
            token_recursion_limit: options.recursion_limit,
        }
    }
}

/// The options that were used.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Configuration {
    encoding: &'static str,
    /// `length`, `terminator` or `length_prefix`.
    length_mode: &'static str,
    length: Option<usize>,
    terminator: Option<u8>,
    prefix_size: Option<u8>,
    prefix_includes_self: bool,
    high_bit: HighBitWord,
    controls: ControlsWord,
    #[serde(skip_serializing_if = "Option::is_none")]
    graphics: Option<GraphicsWord>,
    tokens: BTreeMap<String, String>,
    recursive_tokens: bool,
    token_recursion_limit: usize,
}

/// One byte of a text.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RecordView {
    offset: usize,
    original_byte: u8,
    selected_byte: u8,
    glyph: Option<char>,
    /// The character of a graphic one too.
    #[serde(skip_serializing_if = "Option::is_none")]
    unicode: Option<char>,
    name: &'static str,
    printable: bool,
    reverse_video: bool,
    included_in_text: bool,
    token_expanded: bool,
    plain_fragment: String,
    lossless_fragment: String,
}

impl From<Record> for RecordView {
    fn from(record: Record) -> Self {
        Self {
            offset: record.offset,
            original_byte: record.original_byte,
            selected_byte: record.selected_byte,
            glyph: record.glyph,
            // Where it is the glyph, it need not be said twice.
            unicode: record.unicode.filter(|_| record.glyph.is_none()),
            name: record.name,
            printable: record.printable,
            reverse_video: record.reverse_video,
            included_in_text: record.included_in_text,
            token_expanded: record.token_expanded,
            plain_fragment: record.plain_fragment,
            lossless_fragment: record.lossless_fragment,
        }
    }
}

/// A decoded text.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DecodedView {
    /// The bytes it takes, a prefix or terminator included.
    pub consumed_bytes: Vec<u8>,
    /// The same as hexadecimal digits.
    pub consumed_hex: String,
    /// Their number.
    pub consumed_length: usize,
    /// The text as a person reads it.
    pub plain_text: String,
    /// The text with the value of every byte, `{A:$41}`.
    pub lossless: String,
    /// One entry for each byte.
    pub records: Vec<RecordView>,
    /// Whether the terminator was found.
    pub terminated: bool,
    /// What a reader should know.
    pub warnings: Vec<String>,
    /// Where the bytes come from.
    pub source: Value,
    /// The options that were used.
    pub configuration: Configuration,
    /// Records there are, when not all are in this answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub records_total: Option<usize>,
    /// Why not all are in this answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncated: Option<String>,
    /// `first_record` of the next part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<usize>,
    /// What the file is, when it is a known container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl DecodedView {
    /// The answer for a text: complete where it fits, else with as many of the records as do, those from `first` on.
    ///
    /// # Errors
    /// `invalid_arguments` for a first record behind the end.
    pub fn new(
        context: &Context,
        text: &Decoded<'_>,
        source: Value,
        configuration: Configuration,
        first: usize,
    ) -> Result<Self, ToolError> {
        let total = text.consumed.len();
        if first > total {
            return Err(invalid(format!("first_record is {first}, but there are {total} records")));
        }
        let mut view = Self {
            consumed_bytes: text.consumed.to_vec(),
            consumed_hex: c64::to_hex(text.consumed),
            consumed_length: total,
            plain_text: text.plain.clone(),
            lossless: text.lossless.clone(),
            records: Vec::new(),
            terminated: text.terminated,
            warnings: text.warnings.clone(),
            source,
            configuration,
            records_total: None,
            truncated: None,
            next: None,
            hint: None,
        };
        let rest = json!(view).to_string().chars().count();
        let fitting = page::fitting_beside(context, rest, text.records(first).map(RecordView::from));
        view.records = fitting;
        let shown = view.records.len();
        if first + shown < total {
            view.truncated = Some(page::reason(context));
            // When not even one fits, the rest of the answer leaves no room for any.
            view.next = (shown > 0).then_some(first + shown);
        }
        if first > 0 || view.truncated.is_some() {
            view.records_total = Some(total);
        }
        Ok(view)
    }
}

/// Which part of which file a text is in.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileSource {
    /// `file`.
    #[serde(default)]
    kind: FileKind,
    /// File below the workspace.
    path: String,
    /// First byte in the file; with `prg` its C64 address.
    offset: Option<u64>,
    /// The file begins with a load address of two bytes.
    #[serde(default)]
    prg: bool,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum FileKind {
    #[default]
    File,
}

impl FileSource {
    /// Reads the file.
    ///
    /// # Errors
    /// Those of the workspace.
    pub fn read(&self, context: &Context) -> Result<Loaded, ToolError> {
        let FileKind::File = self.kind;
        super::file::read(context, &self.path)
    }

    /// Which part of it.
    pub fn part(&self) -> Part {
        Part { offset: self.offset, prg: self.prg }
    }

    /// What an answer says of it; `at` is the address or offset of the first byte.
    pub fn facts(&self, at: u64) -> Value {
        json!({"kind": "file", "path": self.path, "offset": at, "prg": self.prg})
    }
}
