//! `vice_search_memory`: finds bytes in memory.

use super::prelude::*;
use super::shared::{either, invalid, refuse};
use crate::errors::ErrorCode;
use crate::tools::c64_shared::text::EncodingWord;
use crate::tools::nds::shared::params::Bounded;
use base::limits;

/// The tool.
#[derive(Debug)]
pub struct ViceSearchMemory;

/// What is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Pairs of hexadecimal digits, `??` for any byte. Either this or `text`.
    pattern: Option<String>,
    /// Characters; letters stand for themselves in the encoding.
    text: Option<String>,
    /// Code table of `text`; the default is `petscii_upper`.
    #[serde(default)]
    encoding: EncodingWord,
    /// Numbers from vice_list_banks; the default is what the processor sees.
    bank_ids: Option<Vec<u32>>,
    /// First address.
    #[serde(default)]
    start: u16,
    /// Last address, inclusive.
    #[serde(default = "last")]
    end: u16,
    /// Places at most.
    #[serde(default)]
    max_results: Matches,
    /// Milliseconds for the whole call.
    #[serde(default)]
    timeout_ms: Time,
}

impl Tool for ViceSearchMemory {
    const NAME: &'static str = "vice_search_memory";
    const DESCRIPTION: &'static str =
        "Search the memory of the stopped C64 for bytes (`a9 ?? 8d 20 d0`) or text, in one bank or several.";
    const EFFECT: Effect = Effect::READS;
    type Params = Params;
    type Output = Envelope;

    async fn run(context: &Context, params: Params) -> Result<Envelope, ToolError> {
        either(run(context, params).await)
    }
}

type Matches = Bounded<1, { limits::MAX_VICE_MATCHES }, { limits::DEFAULT_VICE_MATCHES }>;

const fn last() -> u16 {
    u16::MAX
}

/// What may stand at one place; none for any byte.
type Place = Option<Vec<u8>>;

async fn run(context: &Context, params: Params) -> Result<Envelope, Envelope> {
    let Params { start, end, .. } = params;
    let pattern = pattern(&params).map_err(refuse)?;
    let most = params.max_results.get("max_results", ErrorCode::ViceInvalidArgument).map_err(refuse)?;
    if end < start {
        return Err(refuse(invalid(format!("end, ${end:04X}, lies before start, ${start:04X}: nothing wraps"))));
    }
    let mut row = Row::new(context, params.timeout_ms, None)?;
    let banks = match params.bank_ids {
        Some(banks) if banks.is_empty() || banks.len() > limits::MAX_VICE_SEARCH_BANKS => {
            let most = limits::MAX_VICE_SEARCH_BANKS;
            return Err(refuse(invalid(format!(
                "bank_ids has {} banks; 1 to {most} are searched at once",
                banks.len()
            ))));
        }
        Some(banks) => banks,
        None => vec![row.bank("cpu").await?],
    };
    // The connector's state goes into the answer, whoever read last.
    row.call("list_banks", json!({})).await?;
    let (mut matches, mut found) = (Vec::new(), 0_u64);
    for bank in &banks {
        let memory = row.memory(*bank, start, usize::from(end - start) + 1).await?;
        for (offset, _) in memory.windows(pattern.len()).enumerate().filter(|(_, window)| is_match(window, &pattern)) {
            found += 1;
            if found <= most {
                let address = usize::from(start) + offset;
                matches
                    .push(json!({"bank_id": bank, "address": address, "address_display": format!("${address:04X}")}));
            }
        }
    }
    Ok(row.answer(json!({
        "banks": banks,
        "start": start,
        "end": end,
        "pattern_bytes": pattern.len(),
        "matches": matches,
        "found": found,
        "truncated": found > most,
    })))
}

fn is_match(window: &[u8], pattern: &[Place]) -> bool {
    window.iter().zip(pattern).all(|(byte, place)| place.as_ref().is_none_or(|bytes| bytes.contains(byte)))
}

fn pattern(params: &Params) -> Result<Vec<Place>, ToolError> {
    let pattern: Vec<Place> = match (&params.pattern, &params.text) {
        (Some(digits), None) => {
            let digits: Vec<u8> = digits.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
            let place = |pair: &[u8]| match pair {
                b"??" => Some(None),
                pair => {
                    let text = std::str::from_utf8(pair).ok().filter(|_| pair.iter().all(u8::is_ascii_hexdigit))?;
                    u8::from_str_radix(text, 16).ok().filter(|_| pair.len() == 2).map(|byte| Some(vec![byte]))
                }
            };
            digits
                .chunks(2)
                .map(place)
                .collect::<Option<_>>()
                .ok_or_else(|| invalid("pattern must be pairs of hexadecimal digits or ??, such as a9 ?? 8d"))?
        }
        (None, Some(text)) => {
            let table = params.encoding.table().table();
            let place = |character: char| -> Result<Place, ToolError> {
                let bytes: Vec<u8> =
                    table.iter().filter(|entry| entry.unicode == Some(character)).map(|entry| entry.byte).collect();
                if bytes.is_empty() {
                    return Err(invalid(format!("the encoding has no `{character}`"))
                        .hint("small letters are in petscii_lower and screen_code_lower; pattern takes any bytes"));
                }
                Ok(Some(bytes))
            };
            text.chars().map(place).collect::<Result<_, _>>()?
        }
        _ => return Err(invalid("give either pattern or text")),
    };
    let most = limits::MAX_VICE_PATTERN_BYTES;
    if pattern.len() > most || pattern.iter().all(Option::is_none) {
        return Err(invalid(format!(
            "{} bytes to search; 1 to {most} are allowed, and one must be known",
            pattern.len()
        )));
    }
    Ok(pattern)
}
