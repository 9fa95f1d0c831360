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

impl EncodingWord {
    /// The table.
    pub const fn table(self) -> Encoding {
        match self {
            Self::PetsciiUpper => Encoding::PetsciiUpper,
            Self::PetsciiLower => Encoding::PetsciiLower,
            Self::ScreenCodeUpper => Encoding::ScreenCodeUpper,
            Self::ScreenCodeLower => Encoding::ScreenCodeLower,
        }
    }
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
    /// Code table; the default is `petscii_upper`.
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
            encoding: self.encoding.table(),
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

/// How much is said of each byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Show {
    #[default]
    All,
    Lossless,
    Plain,
}

/// A decoded text.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DecodedView {
    /// The bytes it takes, a prefix or terminator included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consumed_bytes: Option<Vec<u8>>,
    /// The same as hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consumed_hex: Option<String>,
    /// Their number, of the whole text.
    pub consumed_length: usize,
    /// The text as a person reads it.
    pub plain_text: String,
    /// The text with the value of every byte, `{A:$41}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lossless: Option<String>,
    /// One entry for each byte.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub records: Option<Vec<RecordView>>,
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
    /// Why not all is in this answer.
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
    /// The answer for a text: complete where it fits. Else with as many of the records as do, those from `first` on; and
    /// where the text alone does not fit, text and bytes are those of the records too.
    ///
    /// # Errors
    /// `invalid_arguments` for a first record behind the end.
    pub fn new(
        context: &Context,
        text: &Decoded<'_>,
        source: Value,
        configuration: Configuration,
        first: usize,
        show: Show,
    ) -> Result<Self, ToolError> {
        let total = text.consumed.len();
        if first > total {
            return Err(invalid(format!("first_record is {first}, but there are {total} records")));
        }
        let mut part = Self {
            consumed_bytes: None,
            consumed_hex: None,
            consumed_length: total,
            plain_text: String::new(),
            lossless: None,
            records: None,
            terminated: text.terminated,
            warnings: text.warnings.clone(),
            source,
            configuration,
            records_total: None,
            truncated: None,
            next: None,
            hint: None,
        };
        let mut whole = part.clone();
        whole.plain_text.clone_from(&text.plain);
        whole.lossless = (show != Show::Plain).then(|| text.lossless.clone());
        if show == Show::All {
            whole.consumed_bytes = Some(text.consumed.to_vec());
            whole.consumed_hex = Some(c64::to_hex(text.consumed));
            whole.records = Some(Vec::new());
        }
        let rest = page::characters(&whole);
        if show == Show::All {
            let records = page::fitting_beside(context, rest, text.records(first).map(RecordView::from));
            let shown = records.len();
            if shown > 0 || first == total {
                whole.records = Some(records);
                return Ok(whole.ended(context, first, shown, total));
            }
        } else if first == 0 && context.output_limit().is_none_or(|limit| rest <= limit) {
            return Ok(whole);
        }
        // Every field is there, though still empty.
        part.fill(&[], show);
        let rest = page::characters(&part);
        let records = page::fitting_by(context, rest, text.records(first), |record| cost(record, show));
        if records.is_empty() && first < total {
            // Not even one byte fits: the whole is refused with its length.
            return Ok(whole);
        }
        part.fill(&records, show);
        Ok(part.ended(context, first, records.len(), total))
    }

    /// Shows these bytes.
    fn fill(&mut self, part: &[Record], show: Show) {
        let text = |fragment: fn(&Record) -> &str| -> String {
            part.iter().filter(|record| record.included_in_text).map(fragment).collect()
        };
        self.plain_text = text(|record| &record.plain_fragment);
        self.lossless = (show != Show::Plain).then(|| text(|record| &record.lossless_fragment));
        if show == Show::All {
            let bytes: Vec<u8> = part.iter().map(|record| record.original_byte).collect();
            self.consumed_hex = Some(c64::to_hex(&bytes));
            self.consumed_bytes = Some(bytes);
            self.records = Some(part.iter().cloned().map(RecordView::from).collect());
        }
    }

    /// Says where the next part begins, if there is one.
    fn ended(mut self, context: &Context, first: usize, shown: usize, total: usize) -> Self {
        if first + shown < total {
            self.truncated = Some(page::reason(context));
            self.next = Some(first + shown);
        }
        if first > 0 || self.truncated.is_some() {
            self.records_total = Some(total);
        }
        self
    }
}

/// Characters that a byte takes in an answer.
fn cost(record: &Record, show: Show) -> usize {
    // Without the quotation marks, which stand around the whole text.
    let text = |fragment: &str| page::characters(fragment).saturating_sub(2);
    let plain = if record.included_in_text { text(&record.plain_fragment) } else { 0 };
    let lossless = text(&record.lossless_fragment);
    match show {
        Show::Plain => plain,
        Show::Lossless => plain + lossless,
        // Two digits, the number with its comma, and the record with its own.
        Show::All => 2 + 4 + plain + lossless + page::characters(&RecordView::from(record.clone())) + 1,
    }
}

/// Which part of which file a text is in.
#[derive(Clone, Debug, Deserialize)]
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

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
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
