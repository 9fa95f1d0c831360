//! Memory and registers.

use crate::live::Live;
use crate::values::{AddrExpr, Bytes, HexAddr, IntValue};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Reads memory as the program sees it; breakpoints of ours never show.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ReadMemory {
    /// Address of the first byte.
    pub addr: AddrExpr,
    /// Number of bytes, 1 to 16,777,216.
    pub length: u64,
}

/// The bytes, all of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryReply {
    /// Address of the first byte.
    pub addr: HexAddr,
    /// Number of bytes.
    pub length: u64,
    /// The bytes, as base64.
    pub data: Bytes,
    /// State of the program.
    #[serde(flatten)]
    pub live: Live,
}

/// Writes memory, read-only pages too; breakpoints stay armed over what is written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct WriteMemory {
    /// Address of the first byte.
    pub addr: AddrExpr,
    /// The bytes, as base64.
    pub data: Bytes,
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WrittenReply {
    /// Address of the first byte.
    pub addr: HexAddr,
    /// Number of bytes.
    pub length: u64,
    /// Breakpoints that lie in these bytes; they stay armed and the new bytes stand under them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub breakpoints_kept: Vec<HexAddr>,
    /// State of the program.
    #[serde(flatten)]
    pub live: Live,
}

/// A set of registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(inline))]
#[serde(rename_all = "snake_case")]
pub enum RegisterSet {
    /// General registers, program counter and flags.
    #[default]
    General,
    /// Segment selectors and bases.
    Segment,
    /// DR0 to DR7.
    Debug,
    /// x87 stack and control words.
    X87,
    /// XMM registers and MXCSR.
    Sse,
}

/// Reads the registers of a stopped thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct GetRegisters {
    /// Thread; default is the one that the stop is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<u32>,
    /// Which sets; default `general`, `segment` and `debug`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sets: Option<Vec<RegisterSet>>,
}

/// Changes registers of a stopped thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SetRegisters {
    /// Name to value: `{"eax": "0x10", "zf": 1}`. Sub-registers change their part only, as `mov` to that part would.
    pub registers: BTreeMap<String, IntValue>,
    /// Thread; default is the one that the stop is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<u32>,
}

/// The registers of one thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RegistersReply {
    /// Name to value, in hexadecimal.
    pub registers: BTreeMap<String, String>,
    /// Flags that are set, by name: `ZF`, `CF`.
    pub flags: Vec<String>,
    /// The thread they belong to.
    pub of_thread: u32,
    /// State of the program.
    #[serde(flatten)]
    pub live: Live,
}
