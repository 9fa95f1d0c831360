//! `read_memory`: shows memory of the program.

use super::prelude::*;
use wire::{AddrExpr, Bytes, HexAddr, Live};

/// The tool.
#[derive(Debug)]
pub struct ReadMemory;

/// What to read.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Address of the first byte: `"0x47eb48"`, `"module+0x1000"`, a symbol, or an integer.
    addr: AddrExpr,
    /// Number of bytes, 1 to 16,777,216; default 256.
    #[serde(default)]
    length: Option<u64>,
    /// `hex` (default): a dump for reading; `base64`: the bare bytes.
    #[serde(default)]
    format: Format,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum Format {
    #[default]
    Hex,
    Base64,
}

/// The bytes.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Memory {
    /// Address of the first byte.
    addr: HexAddr,
    /// Number of bytes in this answer.
    length: u64,
    /// Rows of 16 bytes: address, hexadecimal, ASCII.
    #[serde(skip_serializing_if = "Option::is_none")]
    hex: Option<Vec<String>>,
    /// The bytes, as base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Bytes>,
    /// Bytes asked for, when not all are in this answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
    /// Why not all are in this answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<String>,
    /// Address where to read on.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<HexAddr>,
    /// State of the program.
    #[serde(flatten)]
    live: Live,
}

const ROW: usize = 16;
/// Characters of a row at most, as JSON: an address of 18, 16 bytes, ASCII of which each character may be escaped.
const ROW_CHARS: u64 = 18 + 2 + 16 * 3 + 1 + 2 + 16 * 2 + 3;
/// Characters of an answer beside the bytes.
const REST_CHARS: u64 = 1_500;

impl Tool for ReadMemory {
    const NAME: &'static str = "read_memory";
    const DESCRIPTION: &'static str = "Read memory of the program: a hex dump with ASCII, or base64. Breakpoints never \
         show in it, and it works while the program runs too. What does not fit in one answer is continued at `next`.";
    const EFFECT: Effect = Effect::READS;
    type Params = Params;
    type Output = Memory;

    async fn run(context: &Context, params: Self::Params) -> Result<Self::Output, ToolError> {
        let asked = params.length.unwrap_or(limits::DEFAULT_READ_BYTES);
        let fits = context.output_limit().map_or(u64::MAX, |limit| fitting(limit as u64, params.format));
        // A length out of range is left as it is for the agent to refuse.
        let length = if asked <= limits::MAX_READ_BYTES { asked.min(fits) } else { asked };
        let reply = context.agent().call(commands::ReadMemory { addr: params.addr, length }).await?;
        let cut = length < asked;
        let (hex, data) = match params.format {
            Format::Hex => (Some(dump(reply.addr.0.get(), &reply.data.0)), None),
            Format::Base64 => (None, Some(reply.data)),
        };
        Ok(Memory {
            addr: reply.addr,
            length: reply.length,
            hex,
            data,
            total: cut.then_some(asked),
            truncated: cut.then(|| reason(context)),
            next: cut.then(|| reply.addr.0.wrapping_add(reply.length).into()),
            live: reply.live,
        })
    }
}

/// Bytes that fit in an answer of `limit` characters, at least one row.
fn fitting(limit: u64, format: Format) -> u64 {
    let room = limit.saturating_sub(REST_CHARS);
    let bytes = match format {
        Format::Hex => room / ROW_CHARS * ROW as u64,
        Format::Base64 => room / 4 * 3,
    };
    bytes.max(ROW as u64)
}

fn dump(start: u64, bytes: &[u8]) -> Vec<String> {
    bytes
        .chunks(ROW)
        .zip((0u64..).step_by(ROW))
        .map(|(row, offset)| {
            let mut line = format!("0x{:08x}  ", start.wrapping_add(offset));
            for byte in row {
                line.push_str(&format!("{byte:02x} "));
            }
            for _ in row.len()..ROW {
                line.push_str("   ");
            }
            line.push('|');
            line.extend(row.iter().map(|&byte| if (0x20..0x7f).contains(&byte) { char::from(byte) } else { '.' }));
            line.push('|');
            line
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_has_address_bytes_and_text() {
        let rows = dump(0x0048_0000, b"DRIFT\0\xff game state");
        assert_eq!(
            rows,
            [
                "0x00480000  44 52 49 46 54 00 ff 20 67 61 6d 65 20 73 74 61 |DRIFT.. game sta|",
                "0x00480010  74 65                                           |te|",
            ]
        );
        assert!(dump(u64::MAX, &[0; 17])[1].starts_with("0x0000000f  "));
    }

    #[test]
    fn the_longest_dump_that_is_promised_fits() {
        let limit = limits::DEFAULT_OUTPUT_CHARS as u64;
        let length = fitting(limit, Format::Hex);
        let worst = dump(u64::MAX - length, &vec![b'"'; length as usize]);
        assert!(serde_json::to_string(&worst).unwrap().len() as u64 + REST_CHARS <= limit);
        assert!(length >= 2_048, "{length}");
        assert!(fitting(limit, Format::Base64) * 4 / 3 + REST_CHARS <= limit);
    }
}
