//! What the tools of this group take and show in common: processors, regions, stops, contexts, and where the program is.

use super::session::{State, mode_word};
use super::watch_hit::WatchHit;
use crate::context::Context;
use crate::errors::ToolError;
use crate::tools::nds::shared::params::Address;
use crate::tools::nds::shared::shapes::hex;
use base::limits;
use debug::gdb_remote::{
    Breakpoint, Cause, Error, ModeRequest, Processor, RangeSource, Region, RegionBytes, Registers, Resumed, Stop,
};
use debug::gdb_remote::{StopContext, StopReply};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

// A processor; the ARM9 unless the other is named.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Which {
    #[default]
    Arm9,
    Arm7,
}

impl From<Which> for Processor {
    fn from(which: Which) -> Self {
        match which {
            Which::Arm9 => Self::Arm9,
            Which::Arm7 => Self::Arm7,
        }
    }
}

/// Memory to show with a stop.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct RegionWanted {
    #[schemars(regex(pattern = "^[A-Za-z0-9._-]{1,64}$"))]
    label: String,
    address: Address,
    /// 1 to 4096.
    length: u32,
}

/// The regions of a call, checked.
///
/// # Errors
/// `invalid_arguments`.
pub fn regions(wanted: Vec<RegionWanted>, most: usize) -> Result<Vec<Region>, ToolError> {
    if wanted.len() > most {
        return Err(Error::Full { what: "the regions of one call", most }.into());
    }
    let one = |region: RegionWanted| {
        let RegionWanted { label, address, length } = region;
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if label.is_empty() || label.len() > limits::MAX_GDB_NAME_CHARS || !label.chars().all(plain) {
            let shown: String = label.chars().take(limits::MAX_GDB_NAME_CHARS).collect();
            let what = "a label has 1 to 64 of the characters A-Z a-z 0-9 . _ -".to_owned();
            return Err(ToolError::from(Error::BadRange { id: shown, what }));
        }
        let most = limits::MAX_GDB_STOP_REGION_BYTES;
        if length == 0 || length > most || u64::from(address.0) + u64::from(length) > 1 << 32 {
            return Err(Error::BadRead { address: address.0, length, most }.into());
        }
        Ok(Region { label, address: address.0, length })
    };
    wanted.into_iter().map(one).collect()
}

// Where the program is; every answer about it says so, and with twenty tools its texts must be short. Reasons: `attached` is found
// stopped or stopped to attach, `trap` a breakpoint that is none of ours, `interrupt` a pause; the page on live debugging has all.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Where {
    /// `unavailable`, `stopped` or `running`.
    pub state: &'static str,
    /// `breakpoint`, `watchpoint`, `step`, `interrupt`, `entry`, `attached`, `trap`, …
    pub reason: String,
    /// Next instruction, when stopped.
    pub pc: Option<u32>,
    // Counts the emulators of this server.
    pub generation: u64,
}

impl Where {
    pub fn of(state: &mut State) -> Self {
        let generation = state.generation();
        let Some(machine) = state.seen() else {
            return Self { state: "unavailable", reason: "not-started".to_owned(), pc: None, generation };
        };
        if machine.exit.is_some() {
            return Self { state: "unavailable", reason: "exited".to_owned(), pc: None, generation };
        }
        let word = machine.state();
        let last = machine.console.as_ref().and_then(|console| console.look(console.current()).ok()?.last_stop());
        let reason = match (word, last) {
            ("running", _) => "running".to_owned(),
            ("stopped", Some(stop)) if stop.cause != Cause::Found => reason(stop).to_owned(),
            ("stopped", _) if machine.joined => "attached".to_owned(),
            ("stopped", _) => "entry".to_owned(),
            _ => "not-connected".to_owned(),
        };
        let pc = if word == "stopped" { last.map(|stop| stop.registers.pc()) } else { None };
        Self { state: word, reason, pc, generation }
    }
}

/// Why a program stopped, in a word.
pub fn reason(stop: &Stop) -> &'static str {
    match stop {
        Stop { watchpoint: Some(_), .. } => "watchpoint",
        Stop { breakpoint: Some(_), .. } => "breakpoint",
        Stop { reply: StopReply { signal: 2, .. }, .. } => "interrupt",
        Stop { cause: Cause::Step, reply: StopReply { signal: 5, .. }, .. } => "step",
        Stop { reply: StopReply { signal: 5, .. }, .. } => "trap",
        _ => "signal",
    }
}

/// What the stub said of a stop.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct StopShown {
    kind: &'static str,
    /// GDB's number: 2 for an interrupt, 5 for a breakpoint or step.
    signal: u8,
    fields: BTreeMap<String, String>,
    raw: String,
}

impl StopShown {
    pub fn of(reply: &StopReply) -> Self {
        let StopReply { kind, signal, fields, raw } = reply.clone();
        Self { kind: kind.name(), signal, fields: fields.into_iter().collect(), raw }
    }
}

/// Registers by name: r0 to r12, sp, lr, pc, cpsr.
pub fn registers(registers: &Registers) -> BTreeMap<String, u32> {
    let name = |at: usize| match at {
        13 => "sp".to_owned(),
        14 => "lr".to_owned(),
        15 => "pc".to_owned(),
        other => format!("r{other}"),
    };
    let all = registers.r.iter().enumerate().map(|(at, value)| (name(at), *value));
    all.chain([("cpsr".to_owned(), registers.cpsr)]).collect()
}

/// Memory as it was.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegionShown {
    label: String,
    address: u32,
    length: usize,
    data_hex: String,
}

impl RegionShown {
    pub fn of(region: &RegionBytes) -> Self {
        let RegionBytes { label, address, bytes } = region;
        Self { label: label.clone(), address: *address, length: bytes.len(), data_hex: hex(bytes) }
    }
}

/// A breakpoint.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BreakpointShown {
    pub id: String,
    address: u32,
    /// `arm`, `thumb` or `auto`.
    requested_mode: &'static str,
    resolved_mode: &'static str,
    /// Bytes of an instruction of that mode.
    kind: u32,
    range_id: String,
    /// `main`, `overlay` or `explicit`.
    source: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    overlay_id: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    symbol: Option<String>,
    created_at: String,
    enabled: bool,
    hit_count: u64,
}

impl BreakpointShown {
    pub fn of(breakpoint: &Breakpoint) -> Self {
        let (source, overlay_id) = source_words(breakpoint.source);
        Self {
            id: breakpoint.id.clone(),
            address: breakpoint.address,
            requested_mode: match breakpoint.requested {
                ModeRequest::Auto => "auto",
                ModeRequest::Known(mode) => mode_word(mode),
            },
            resolved_mode: mode_word(breakpoint.mode),
            kind: breakpoint.mode.size(),
            range_id: breakpoint.range.clone(),
            source,
            overlay_id,
            symbol: breakpoint.symbol.clone(),
            created_at: iso(breakpoint.created),
            enabled: true,
            hit_count: breakpoint.hits,
        }
    }
}

/// The words of a range's source.
pub const fn source_words(source: RangeSource) -> (&'static str, Option<u32>) {
    match source {
        RangeSource::Main => ("main", None),
        RangeSource::Overlay(id) => ("overlay", id),
        RangeSource::Explicit => ("explicit", None),
    }
}

/// A stop with what is around it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContextShown {
    captured_at: String,
    /// What the stub said; `null` at the entry, before the first run.
    stop: Option<StopShown>,
    #[serde(skip_serializing_if = "Option::is_none")]
    breakpoint: Option<BreakpointShown>,
    /// r0 to r12, sp, lr, pc, cpsr.
    registers: BTreeMap<String, u32>,
    pc_window: RegionShown,
    stack_window: RegionShown,
    additional_regions: Vec<RegionShown>,
}

/// Reads the context of a stopped program.
///
/// # Errors
/// Those of the session.
pub fn capture(
    state: &mut State,
    processor: Processor,
    regions: &[Region],
    until: std::time::Instant,
) -> Result<ContextShown, ToolError> {
    let debugger = state.stopped(processor)?;
    let context = debugger.context(regions, until)?;
    let last = debugger.last_stop();
    let breakpoint = last.and_then(|stop| stop.breakpoint.as_ref());
    let breakpoint = breakpoint.and_then(|id| debugger.breakpoints().iter().find(|one| one.id == *id));
    let StopContext { captured, registers: values, pc_window, stack_window, regions } = &context;
    Ok(ContextShown {
        captured_at: iso(*captured),
        stop: last.map(|stop| StopShown::of(&stop.reply)),
        breakpoint: breakpoint.map(BreakpointShown::of),
        registers: registers(values),
        pc_window: RegionShown::of(pc_window),
        stack_window: RegionShown::of(stack_window),
        additional_regions: regions.iter().map(RegionShown::of).collect(),
    })
}

/// What came of making the program run.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunShown {
    /// `stop`, or `timeout`: it still runs.
    kind: &'static str,
    #[serde(flatten)]
    place: Where,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<StopShown>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped_at: Option<String>,
    emulator_running: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    matched_breakpoint: Option<BreakpointShown>,
    /// Whether it is the breakpoint that was expected.
    #[serde(skip_serializing_if = "Option::is_none")]
    expected_breakpoint: Option<bool>,
    /// The watchpoint, and what accessed the address; `pc` is behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    watchpoint: Option<WatchHit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<ContextShown>,
}

/// Shows what came of a run, with its context where that is wanted.
///
/// # Errors
/// Those of the session.
pub async fn shown(
    context: &Context,
    resumed: Resumed,
    regions: Option<Vec<Region>>,
    expected: Option<String>,
) -> Result<RunShown, ToolError> {
    super::session::with(context, move |state| {
        let emulator_running = state.machine().is_ok();
        let Resumed::Stopped(stop) = resumed else {
            return Ok(RunShown {
                kind: "timeout",
                place: Where::of(state),
                stop: None,
                stopped_at: None,
                emulator_running,
                matched_breakpoint: None,
                expected_breakpoint: None,
                watchpoint: None,
                context: None,
            });
        };
        let processor = state.console()?.current();
        let captured = match regions {
            Some(regions) => Some(capture(state, processor, &regions, super::session::soon())?),
            None => None,
        };
        let stopped_at = state.machine()?.stopped_at.map(iso);
        let rom = Arc::clone(&state.machine()?.rom);
        let debugger = state.stopped(processor)?;
        let watchpoint = WatchHit::of(debugger, processor, &rom, &stop);
        let matched = stop.breakpoint.as_ref();
        let matched = matched.and_then(|id| debugger.breakpoints().iter().find(|one| one.id == *id));
        let matched = matched.map(BreakpointShown::of);
        Ok(RunShown {
            kind: "stop",
            place: Where::of(state),
            stop: Some(StopShown::of(&stop.reply)),
            stopped_at,
            emulator_running,
            expected_breakpoint: expected.map(|id| matched.as_ref().is_some_and(|one| one.id == id)),
            matched_breakpoint: matched,
            watchpoint,
            context: captured,
        })
    })
    .await
}

/// A time as ISO 8601 in UTC, with milliseconds. Days to dates: the proleptic Gregorian calendar, in years that begin in March.
pub fn iso(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let (days, seconds) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    // 1970-01-01 is day 719,468 from 0000-03-01; 146,097 days are 400 years.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", since.subsec_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_date_prints_them() {
        // `date -u -d @… +%FT%TZ`.
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (1_709_210_096, "2024-02-29T12:34:56.000Z"),
            (4_107_542_399, "2100-02-28T23:59:59.000Z"),
        ] {
            assert_eq!(iso(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn regions_are_checked_before_anything_is_read() {
        let region = |label: &str, length| RegionWanted { label: label.to_owned(), address: Address(0), length };
        assert!(regions(vec![region("a.b-c_1", 4_096)], 8).is_ok());
        for bad in [region("", 1), region("a b", 1), region("a", 0), region("a", 4_097)] {
            assert!(regions(vec![bad], 8).is_err());
        }
        assert!(regions(vec![region("a", 1); 9], 8).is_err());
    }
}
