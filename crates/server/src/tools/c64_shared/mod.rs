//! What the C64 tools share: bytes in arguments, files, addresses of Ghidra, and the refusals of the `c64` crate.

pub mod address;
pub mod file;
pub mod picture;
pub mod source;
#[cfg(test)]
pub mod tests;
pub mod text;

use crate::errors::{ErrorCode, ToolError};

/// What the picture tools say of their sources.
macro_rules! sources {
    ($what:literal) => {
        concat!(
            $what,
            " Sources: {kind: \"file\", path, offset?, prg?} (prg: a load address comes first, offset is a C64 address), \
             {kind: \"ghidra\", program, start: \"RAM:2000\"}, {kind: \"vice\", bank_id, start}, {kind: \"inline\", bytes: hex \
             or list}."
        )
    };
}
use schemars::JsonSchema;
use serde::Deserialize;
pub(crate) use sources;

/// Bytes in an argument.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(inline)]
#[allow(missing_docs, reason = "a variant's doc would be in every schema that has bytes")]
#[serde(untagged, expecting = "bytes are a text of hexadecimal pairs or a list of numbers from 0 to 255")]
pub enum ByteInput {
    // Pairs of hexadecimal digits; white space may stand between them, no 0x.
    Hex(String),
    // Numbers from 0 to 255.
    List(Vec<i64>),
}

impl ByteInput {
    /// The bytes; `what` is the argument's name in messages.
    ///
    /// # Errors
    /// `invalid_arguments`.
    pub fn bytes(&self, what: &str) -> Result<Vec<u8>, ToolError> {
        match self {
            Self::Hex(text) => Ok(c64::from_hex(what, text)?),
            Self::List(numbers) => {
                let bytes: Result<Vec<u8>, _> = numbers.iter().map(|number| u8::try_from(*number)).collect();
                bytes.map_err(|_| invalid(format!("{what} array values must be integers from 0 to 255")))
            }
        }
    }
}

/// A wrong argument.
pub fn invalid(message: impl Into<String>) -> ToolError {
    ToolError::new(ErrorCode::InvalidArguments, message)
}

impl From<c64::Problem> for ToolError {
    fn from(problem: c64::Problem) -> Self {
        let code = match problem.kind {
            c64::Kind::Option | c64::Kind::Data => ErrorCode::InvalidArguments,
            c64::Kind::TooLarge => ErrorCode::OutputTooLarge,
        };
        let error = Self::new(code, problem.message);
        match problem.kind {
            c64::Kind::TooLarge => error.hint("ask for less at once"),
            c64::Kind::Option | c64::Kind::Data => error,
        }
    }
}
