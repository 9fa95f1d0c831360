//! `vice_disassemble`: shows memory as instructions.

use super::prelude::*;
use super::shared::{either, refuse};
use crate::errors::ErrorCode;
use crate::tools::nds::shared::params::Bounded;
use base::limits;
use c64::symbols::Profile;
use code::mos6502::decode;

/// The tool.
#[derive(Debug)]
pub struct ViceDisassemble;

/// What is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// First address.
    start: u16,
    /// Instructions.
    #[serde(default)]
    count: Instructions,
    /// Number from vice_list_banks; the default is what the processor sees.
    bank_id: Option<u32>,
    /// Milliseconds for the whole call.
    #[serde(default)]
    timeout_ms: Time,
}

impl Tool for ViceDisassemble {
    const NAME: &'static str = "vice_disassemble";
    const DESCRIPTION: &'static str = "Disassemble memory of the stopped C64: 6502 code with the names of registers and KERNAL entries, undocumented instructions too.";
    const EFFECT: Effect = Effect::READS;
    type Params = Params;
    type Output = Envelope;

    async fn run(context: &Context, params: Params) -> Result<Envelope, ToolError> {
        either(run(context, params).await)
    }
}

type Instructions = Bounded<1, { limits::MAX_VICE_INSTRUCTIONS }, { limits::DEFAULT_VICE_INSTRUCTIONS }>;

async fn run(context: &Context, params: Params) -> Result<Envelope, Envelope> {
    let start = params.start;
    let count = params.count.get("count", ErrorCode::ViceInvalidArgument).map_err(refuse)?;
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let mut row = Row::new(context, params.timeout_ms, None)?;
    let cpu = row.bank("cpu").await?;
    let bank = params.bank_id.unwrap_or(cpu);
    // Three bytes an instruction at most; nothing wraps.
    let wanted = count.saturating_mul(3).min(0x1_0000 - usize::from(start));
    let memory = row.memory(bank, start, wanted).await?;
    let names = names();
    let label = |address: u16| names.get(&address).cloned();
    let (mut lines, mut at) = (Vec::new(), 0_usize);
    while lines.len() < count
        && let Some(rest) = memory.get(at..)
        && let Ok(address) = u16::try_from(usize::from(start) + at)
        && let Some(one) = decode(address, rest)
    {
        let length = usize::from(one.length());
        lines.push(json!({
            "address": address,
            "address_display": format!("${address:04X}"),
            "bytes": c64::to_hex(rest.get(..length).unwrap_or_default()),
            "text": one.text(label),
            "target": one.target(),
            "label": label(address),
            "documented": one.is_documented(),
        }));
        at += length;
    }
    let next = usize::from(start) + at;
    let ends = (lines.len() < count).then(|| match 0x1_0000 - next {
        0 => "memory ends at $FFFF".to_owned(),
        left => format!("the last {left} bytes before $FFFF are no whole instruction"),
    });
    Ok(row.answer(json!({
        "bank_id": bank,
        "instructions": lines,
        "next_address": u16::try_from(next).ok(),
        "note": ends,
    })))
}

/// Names of the platform by address: the first one where several are.
fn names() -> BTreeMap<u16, String> {
    let mut names = BTreeMap::new();
    for symbol in Profile::new().symbols {
        names.entry(symbol.address).or_insert(symbol.name);
    }
    names
}
