//! `vice_load_prg`: puts a program into memory.

use super::prelude::*;
use super::shared::{either, invalid, refuse};
use crate::errors::ErrorCode;
use crate::tools::c64_shared::file;
use c64::picture_file::Prg;

/// The tool.
#[derive(Debug)]
pub struct ViceLoadPrg;

/// What is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// The file, below the workspace: a load address, then what loads there.
    path: String,
    /// Where it goes instead.
    address: Option<u16>,
    /// Where the program counter is set.
    run_from: Option<u16>,
    /// Milliseconds for the whole call.
    #[serde(default)]
    timeout_ms: Time,
}

impl Tool for ViceLoadPrg {
    const NAME: &'static str = "vice_load_prg";
    const DESCRIPTION: &'static str = "Put a program file of the workspace into the RAM of the stopped C64, at its load address or another, read it back, and set the program counter if asked.";
    const EFFECT: Effect = Effect::RUNS;
    type Params = Params;
    type Output = Envelope;

    async fn run(context: &Context, params: Params) -> Result<Envelope, ToolError> {
        either(run(context, params).await)
    }
}

async fn run(context: &Context, params: Params) -> Result<Envelope, Envelope> {
    let loaded = file::read(context, &params.path).map_err(refuse)?;
    let prg = Prg::new(&loaded.bytes).map_err(|problem| refuse(invalid(problem.message)))?;
    let start = params.address.unwrap_or(prg.load_address);
    let last = usize::from(start) + prg.bytes.len().saturating_sub(1);
    let Some(end) = u16::try_from(last).ok().filter(|_| !prg.bytes.is_empty()) else {
        let count = prg.bytes.len();
        return Err(refuse(invalid(format!(
            "{count} bytes at ${start:04X}: there must be some, and they must end by $FFFF"
        ))));
    };
    let mut row = Row::new(context, params.timeout_ms, Some("vice_memory_may_be_modified"))?;
    let ram = row.bank("ram").await?;
    let data = json!({"encoding": "hex", "data": c64::to_hex(prg.bytes)});
    let write = json!({"bank_id": ram, "start": start, "data": data, "side_effects": false, "memspace": 0});
    row.call("write_memory", write).await?;
    let there = row.memory(ram, start, prg.bytes.len()).await?;
    if let Some(at) = there.iter().zip(prg.bytes).position(|(there, byte)| there != byte) {
        let message = format!("the byte {at} of the program, at ${:04X}, did not stay in RAM", usize::from(start) + at);
        let error =
            ToolError::new(ErrorCode::ViceReadFailed, message).hint("the processor's port lies at $0000 and $0001");
        return Err(refuse(error.detail("vice_memory_may_be_modified", true)));
    }
    if let Some(pc) = params.run_from {
        row.call("set_registers", json!({"names": ["PC"], "values": [pc], "memspace": 0})).await?;
    }
    let display = |address: u16| format!("${address:04X}");
    Ok(row.answer(json!({
        "start": start,
        "start_display": display(start),
        "end": end,
        "end_display": display(end),
        "byte_count": prg.bytes.len(),
        "sha256": ::nds::sha256_hex(prg.bytes),
        "sys_address": sys_address(prg.bytes, start),
        "pc": params.run_from,
    })))
}

/// The address behind SYS, when the program begins with a line of BASIC that has it first, as most that are not BASIC do.
fn sys_address(program: &[u8], start: u16) -> Option<u16> {
    /// The token of SYS (Programmer's Reference Guide, appendix D).
    const SYS: u8 = 0x9E;
    // Address of the next line, number of this one.
    let (_, line) = program.split_first_chunk::<4>().filter(|_| start == 0x0801)?;
    let (first, rest) = line.split_first()?;
    let digits: Vec<u8> =
        rest.iter().copied().skip_while(|byte| b" (".contains(byte)).take_while(u8::is_ascii_digit).collect();
    String::from_utf8(digits).ok().filter(|_| *first == SYS)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_sys_is_read_and_never_guessed() {
        // 10 SYS 2061, as the interpreter keeps it.
        let line = [0x0B, 0x08, 10, 0, 0x9E, b'2', b'0', b'6', b'1', 0, 0, 0];
        assert_eq!(sys_address(&line, 0x0801), Some(2061));
        assert_eq!(sys_address(&line, 0x0901), None);
        let print = [0x0B, 0x08, 10, 0, 0x99, b'2', 0];
        assert_eq!(sys_address(&print, 0x0801), None);
        assert_eq!(sys_address(&[1, 2, 3], 0x0801), None);
        let spaced = [0x0B, 0x08, 10, 0, 0x9E, b' ', b'(', b'7', b')', 0];
        assert_eq!(sys_address(&spaced, 0x0801), Some(7));
        let too_great = [0x0B, 0x08, 10, 0, 0x9E, b'7', b'0', b'0', b'0', b'0', 0];
        assert_eq!(sys_address(&too_great, 0x0801), None);
    }
}
