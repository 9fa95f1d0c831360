//! Where the bytes of a picture come from: the arguments, Ghidra, VICE, or a file. Everything is checked before anything is
//! read.

use super::file::{self, Part};
use super::{ByteInput, invalid};
use crate::context::Context;
use crate::errors::ToolError;
use crate::vice_client::MemoryPart;
use base::limits;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// A source as it stands in the arguments. Which fields belong to which kind is checked by hand, so that messages name the
/// source; the tools' descriptions list them once, and not for each source again.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Given(Map<String, Value>);

/// A checked source.
#[derive(Clone, Debug)]
pub enum Source {
    /// In the arguments.
    Inline(Vec<u8>),
    /// Memory of a program in Ghidra.
    Ghidra {
        /// The program.
        program: String,
        /// The first address.
        start: String,
    },
    /// Memory of the emulator.
    Vice {
        /// Which view of memory.
        bank: u32,
        /// The first address.
        start: u16,
    },
    /// A file below the workspace.
    File {
        /// The file.
        path: String,
        /// Which part of it.
        part: Part,
    },
}

/// Bytes that were read from a source.
#[derive(Clone, Debug)]
pub struct Supplied {
    /// The bytes, at least as many as are needed.
    pub bytes: Vec<u8>,
    kind: &'static str,
    consumed: usize,
    /// What a file is, when it is a known container.
    pub hint: Option<String>,
}

impl Given {
    /// Checks it; `name` is the source's name in messages.
    ///
    /// # Errors
    /// `invalid_arguments`.
    pub fn check(&self, name: &str) -> Result<Source, ToolError> {
        let kind = self.0.get("kind").and_then(Value::as_str).unwrap_or_default();
        let allowed: &[&str] = match kind {
            "inline" => &["bytes", "kind"],
            "ghidra" => &["kind", "program", "start"],
            "vice" => &["bank_id", "kind", "start"],
            "file" => &["kind", "offset", "path", "prg"],
            _ => return Err(invalid(format!("{name} must have a kind of inline, ghidra, vice, or file"))),
        };
        let unknown: Vec<&str> = self.0.keys().map(String::as_str).filter(|key| !allowed.contains(key)).collect();
        if !unknown.is_empty() {
            return Err(invalid(format!(
                "{name} {kind} source does not accept {}; allowed fields are {}",
                unknown.join(", "),
                allowed.join(", ")
            )));
        }
        match kind {
            "inline" => self.inline(name),
            "ghidra" => {
                let program = self
                    .text("program")
                    .ok_or_else(|| invalid(format!("{name} ghidra source requires a nonblank program")))?;
                let start = self.text("start").ok_or_else(|| {
                    invalid(format!("{name} ghidra source requires a start address such as 'ram:2000'"))
                })?;
                Ok(Source::Ghidra { program, start })
            }
            "vice" => self.vice(name),
            _ => self.file(name),
        }
    }

    fn text(&self, key: &str) -> Option<String> {
        self.0.get(key)?.as_str().filter(|text| !text.trim().is_empty()).map(str::to_owned)
    }

    fn inline(&self, name: &str) -> Result<Source, ToolError> {
        let given = self.0.get("bytes").ok_or_else(|| invalid(format!("{name} inline source requires bytes")))?;
        let what = format!("{name} bytes");
        let input: ByteInput = serde_json::from_value(given.clone())
            .map_err(|_| invalid(format!("{what} must be hex text or an array of integers from 0 to 255")))?;
        let bytes = input.bytes(&what)?;
        let most = limits::MAX_C64_INLINE_BYTES;
        if bytes.len() > most {
            return Err(invalid(format!("{name} exceeds the {most}-byte inline hard maximum"))
                .hint("put the bytes into a file below the workspace and use the source kind file"));
        }
        Ok(Source::Inline(bytes))
    }

    fn vice(&self, name: &str) -> Result<Source, ToolError> {
        let bank = self.0.get("bank_id").and_then(Value::as_u64).and_then(|bank| u32::try_from(bank).ok());
        let bank = bank.ok_or_else(|| {
            invalid(format!(
                "{name} vice source requires bank_id: the same address holds different bytes in different banks"
            ))
            .hint("vice_list_banks names them with their numbers")
        })?;
        let start = self.0.get("start").and_then(Value::as_u64).and_then(|start| u16::try_from(start).ok());
        let start =
            start.ok_or_else(|| invalid(format!("{name} vice source requires a start address from 0 to 65535")))?;
        Ok(Source::Vice { bank, start })
    }

    fn file(&self, name: &str) -> Result<Source, ToolError> {
        let path = self
            .text("path")
            .ok_or_else(|| invalid(format!("{name} file source requires a path below the workspace")))?;
        let offset = match self.0.get("offset") {
            None | Some(Value::Null) => None,
            Some(offset) => Some(offset.as_u64().ok_or_else(|| {
                invalid(format!("{name} file source requires an offset that is an integer from 0 on"))
            })?),
        };
        let prg = match self.0.get("prg") {
            None | Some(Value::Null) => false,
            Some(prg) => prg
                .as_bool()
                .ok_or_else(|| invalid(format!("{name} file source requires a prg that is true or false")))?,
        };
        Ok(Source::File { path, part: Part { offset, prg } })
    }
}

impl Source {
    /// Refuses a source that cannot have `needed` bytes, without reading anything.
    ///
    /// # Errors
    /// `invalid_arguments`.
    pub fn can_have(&self, name: &str, needed: usize) -> Result<(), ToolError> {
        match self {
            Self::Inline(bytes) => enough(name, bytes.len(), needed),
            Self::Vice { start, .. } => {
                let room = 0x1_0000 - usize::from(*start);
                if needed > room {
                    return Err(invalid(format!(
                        "{name} needs {needed} bytes from ${start:04X} but only {room} remain below $FFFF; VICE reads do \
                         not wrap"
                    )));
                }
                Ok(())
            }
            Self::Ghidra { .. } | Self::File { .. } => Ok(()),
        }
    }

    /// Reads what is needed, or, from a source that cannot be asked twice, all that it has.
    ///
    /// # Errors
    /// Those of the source; `invalid_arguments` when it has too few bytes.
    pub async fn read(&self, context: &Context, name: &str, needed: usize) -> Result<Supplied, ToolError> {
        self.can_have(name, needed)?;
        let mut hint = None;
        let (kind, bytes) = match self {
            Self::Inline(bytes) => ("inline", bytes.clone()),
            Self::Ghidra { program, start } => ("ghidra", context.ghidra().read_memory(program, start, needed).await?),
            Self::Vice { bank, start } => {
                let part = MemoryPart { bank: *bank, memspace: 0, start: *start, count: needed };
                ("vice", context.vice().read_memory(part, limits::DEFAULT_VICE_TIMEOUT_MS).await?)
            }
            Self::File { path, part } => {
                let loaded = file::read(context, path)?;
                hint = loaded.hint();
                let (_, bytes) = loaded.part(*part)?;
                let mut bytes = bytes.to_vec();
                if let Err(error) = enough(name, bytes.len(), needed) {
                    return Err(match hint {
                        Some(hint) => error.hint(hint),
                        None => error,
                    });
                }
                bytes.shrink_to_fit();
                ("file", bytes)
            }
        };
        Ok(Supplied { bytes, kind, consumed: needed, hint })
    }
}

/// What is said when parts of a picture may be of different moments.
const NOT_AT_ONCE: &str = "non_atomic_vice_reads: the machine ran while the sources were read one after another";

/// Refuses several reads of a machine that runs, between which its memory changes, unless they are allowed; gives what the
/// summary says then.
///
/// # Errors
/// `invalid_arguments`.
pub fn at_once(context: &Context, sources: &[&Source], allowed: bool) -> Result<Map<String, Value>, ToolError> {
    let reads = sources.iter().filter(|source| matches!(source, Source::Vice { .. })).count();
    if reads < 2 || context.vice().status().get("state") != Some(&json!("running")) {
        return Ok(Map::new());
    }
    if allowed {
        return Ok(Map::from_iter([("warnings".to_owned(), vec![NOT_AT_ONCE].into())]));
    }
    Err(invalid(format!("{reads} sources of the kind vice while the machine runs would be of different moments"))
        .hint("stop it first (vice_interrupt), or set allow_non_atomic_vice_reads"))
}

fn enough(name: &str, has: usize, needed: usize) -> Result<(), ToolError> {
    if has < needed {
        return Err(invalid(format!("{name} supplies {has} bytes but {needed} are required")));
    }
    Ok(())
}

impl Supplied {
    /// Bytes of a part of a picture file.
    pub fn of_picture(bytes: &[u8]) -> Self {
        Self { bytes: bytes.to_vec(), kind: "file", consumed: bytes.len(), hint: None }
    }

    /// What the summary says of it.
    pub fn facts(&self) -> Value {
        let supplied = self.bytes.len();
        json!({
            "kind": self.kind,
            "supplied": supplied,
            "consumed": self.consumed,
            "trailing": supplied - self.consumed.min(supplied),
        })
    }
}
