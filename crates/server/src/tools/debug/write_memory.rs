//! `write_memory`: changes memory of the program.

use super::prelude::*;
use wire::{AddrExpr, Bytes};

/// The tool.
#[derive(Debug)]
pub struct WriteMemory;

/// What to write. One of `hex` and `data`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Address of the first byte: `"0x47eb48"`, `"module+0x1000"`, a symbol, or an integer.
    addr: AddrExpr,
    /// The bytes in hexadecimal: `"90 90"` or `"9090"`.
    #[serde(default)]
    hex: Option<String>,
    /// The bytes as base64, instead of `hex`.
    #[serde(default)]
    data: Option<Bytes>,
}

impl Tool for WriteMemory {
    const NAME: &'static str = "write_memory";
    const DESCRIPTION: &'static str = "Write (patch, poke) bytes into memory of the program, read-only pages too; \
         breakpoints stay armed. Give the bytes as `hex` or base64 `data`. Read them first to be able to undo it.";
    const EFFECT: Effect = Effect::OVERWRITES;
    type Params = Params;
    type Output = commands::WrittenReply;

    async fn run(context: &Context, params: Self::Params) -> Result<Self::Output, ToolError> {
        let data = match (params.hex, params.data) {
            (Some(hex), None) => Bytes(from_hex(&hex)?),
            (None, Some(data)) => data,
            _ => return Err(wrong("give the bytes as one of `hex` and `data`")),
        };
        context.agent().call(commands::WriteMemory { addr: params.addr, data }).await
    }
}

fn wrong(message: impl Into<String>) -> ToolError {
    ToolError::new(ErrorCode::InvalidArguments, message).hint("`hex` is written like \"90 90\" or \"9090\"")
}

/// Bytes from pairs of hexadecimal digits, with or without white space between them.
fn from_hex(text: &str) -> Result<Vec<u8>, ToolError> {
    let digits: Vec<u8> = text
        .chars()
        .filter(|c| !c.is_ascii_whitespace())
        .map(|c| {
            c.to_digit(16)
                .and_then(|digit| u8::try_from(digit).ok())
                .ok_or_else(|| wrong(format!("`{c}` in `hex` is no hexadecimal digit")))
        })
        .collect::<Result<_, _>>()?;
    if !digits.len().is_multiple_of(2) {
        return Err(wrong(format!("`hex` has {} digits; a byte has two", digits.len())));
    }
    Ok(digits.chunks_exact(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_is_read_as_people_write_it() {
        assert_eq!(from_hex("90 90\nEB0f").unwrap(), [0x90, 0x90, 0xeb, 0x0f]);
        assert!(from_hex("9").unwrap_err().message.contains("1 digits"));
        assert!(from_hex("0x90").unwrap_err().message.contains("`x`"));
    }
}
