//! Breakpoints and watchpoints.

use crate::condition::Condition;
use crate::live::Live;
use crate::values::{AddrExpr, HexAddr};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Stops the program each time an instruction is about to execute.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SetBreakpoint {
    /// Address of the instruction: `"0x40C8E0"`, `"module+0x1000"`, a symbol, or an integer.
    pub addr: AddrExpr,
    /// Stop only when this holds; evaluated in the agent at each hit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Condition>,
    /// Let this many hits pass before stopping.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignore_count: Option<u64>,
    /// Remove the breakpoint at its first stop.
    #[serde(default)]
    pub one_shot: bool,
}

/// Removes a breakpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RemoveBreakpoint {
    /// Its address, as it was set or resolved.
    pub addr: AddrExpr,
}

/// One breakpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BreakpointInfo {
    /// Address; absent while pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub addr: Option<HexAddr>,
    /// How it was asked for.
    pub spec: String,
    /// `function+0x10` or `module+0x1000`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// True while its module is not loaded; it is planted when that happens.
    pub pending: bool,
    /// Its condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Condition>,
    /// Hits whose condition held.
    pub hits: u64,
    /// Hits that still pass before it stops.
    pub ignore_count: u64,
    /// Whether it goes at its first stop.
    pub one_shot: bool,
}

/// The breakpoint set or removed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BreakpointReply {
    /// The breakpoint.
    pub breakpoint: BreakpointInfo,
    /// Addresses of all breakpoints now set.
    pub breakpoints: Vec<HexAddr>,
    /// State of the program.
    #[serde(flatten)]
    pub live: Live,
}

/// Asks for all breakpoints.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ListBreakpoints {}

/// All breakpoints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BreakpointsReply {
    /// Addresses of those that are planted.
    pub breakpoints: Vec<HexAddr>,
    /// All of them, pending ones too.
    pub list: Vec<BreakpointInfo>,
    /// State of the program.
    #[serde(flatten)]
    pub live: Live,
}

/// Kind of access a watchpoint stops at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(inline))]
#[serde(rename_all = "snake_case")]
pub enum WatchMode {
    /// Writes.
    #[default]
    Write,
    /// Reads and writes, as the hardware has it.
    Readwrite,
    /// Reads; writes are filtered out by decoding the instruction.
    Read,
}

impl WatchMode {
    /// The word in messages.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Readwrite => "readwrite",
            Self::Read => "read",
        }
    }
}

/// Stops the program after an instruction has accessed these bytes, by a hardware debug register.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SetWatchpoint {
    /// Address, aligned to `size`: `"0x47eb48"`, `"module+0x1000"`, a symbol, or an integer.
    pub addr: AddrExpr,
    /// Bytes watched: 1, 2, 4 (default), or 8 in 64-bit programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u8>,
    /// `write` (default), `readwrite`, or `read`.
    #[serde(default)]
    pub mode: WatchMode,
    /// Stop only when this holds after the access.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Condition>,
    /// Let this many hits pass before stopping.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignore_count: Option<u64>,
}

/// Removes a watchpoint. One of `slot` and `addr`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RemoveWatchpoint {
    /// Debug register, 0 to 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<u8>,
    /// Watched address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub addr: Option<AddrExpr>,
}

/// One watchpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WatchpointInfo {
    /// Debug register, 0 to 3.
    pub slot: u8,
    /// Watched address.
    pub addr: HexAddr,
    /// How it was asked for.
    pub spec: String,
    /// `symbol+0x10` or `module+0x1000`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// Watched bytes.
    pub size: u8,
    /// Kind of access.
    pub mode: WatchMode,
    /// Its condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Condition>,
    /// Hits whose condition held.
    pub hits: u64,
    /// Hits that still pass before it stops.
    pub ignore_count: u64,
}

/// The watchpoint set or removed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WatchpointReply {
    /// Debug register, 0 to 3.
    pub slot: u8,
    /// The watchpoint.
    pub watchpoint: WatchpointInfo,
    /// Slot to address, of all watchpoints now set.
    pub watchpoints: BTreeMap<String, HexAddr>,
    /// State of the program.
    #[serde(flatten)]
    pub live: Live,
}

/// Asks for all watchpoints.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ListWatchpoints {}

/// All watchpoints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WatchpointsReply {
    /// Slot to address.
    pub watchpoints: BTreeMap<String, HexAddr>,
    /// All of them.
    pub list: Vec<WatchpointInfo>,
    /// State of the program.
    #[serde(flatten)]
    pub live: Live,
}
