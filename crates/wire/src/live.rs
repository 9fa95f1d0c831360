//! The state of the program that every reply about it carries, and the report of a stop.

use crate::values::HexAddr;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the debugged program is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(inline))]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// No program is being debugged.
    #[default]
    NotLaunched,
    /// It runs.
    Running,
    /// All its threads hold still.
    Stopped,
    /// It has ended.
    Exited,
}

/// The state of the program, beside every reply about it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Live {
    /// not_launched, running, stopped or exited.
    pub state: State,
    /// The same word as `state`, under the name that older scripts read.
    pub status: State,
    /// Why it is in that state: `breakpoint@0x401234`, `watchpoint@slot0`, `step`, `pause`, `entry`, `signal SIGSEGV`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Program counter of `thread` while stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pc: Option<HexAddr>,
    /// Thread that the stop is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<u32>,
    /// Grows each time the program is started, resumed or stopped: replies with the same number describe the same moment.
    pub generation: u64,
    /// Exit code, once it has exited by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    /// Signal that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_signal: Option<String>,
}

/// One decoded instruction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Instruction {
    /// Where it stands.
    pub addr: HexAddr,
    /// Its bytes in hexadecimal; breakpoints of ours are never seen in them.
    pub bytes: String,
    /// Intel syntax.
    pub text: String,
    /// `function+0x10` or `module+0x1000`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
}

/// What a stop is about.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StopReport {
    /// `function+0x10` of the program counter, where a symbol is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    /// `module+0x1000` of the program counter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// The instruction at the program counter, not yet executed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instruction: Option<Instruction>,
    /// General registers, program counter and flags of the thread.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub registers: BTreeMap<String, String>,
    /// Hits of the breakpoint so far, those counted whose condition held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hits: Option<u64>,
    /// Watchpoints that fired in this stop.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub watchpoints: Vec<WatchReport>,
    /// The program's own signal or exception, when that is the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exception: Option<ExceptionReport>,
    /// Anything else a person should know about this stop.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub notes: Vec<String>,
}

/// One watchpoint that fired.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WatchReport {
    /// Debug register, 0 to 3.
    pub slot: u8,
    /// Watched address.
    pub addr: HexAddr,
    /// Watched bytes.
    pub size: u8,
    /// write, readwrite or read.
    pub mode: String,
    /// Value at the last report or when it was set, as hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old_value: Option<String>,
    /// Value now, as hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_value: Option<String>,
    /// The instruction that made the access, when it is certain; the trap comes after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writer: Option<Instruction>,
    /// Instructions that may have made the access, when it is not certain.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub candidates: Vec<Instruction>,
    /// `exact`, `candidates` or `unknown`.
    pub attribution: String,
    /// Why the attribution is not exact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attribution_note: Option<String>,
    /// Hits of this watchpoint so far.
    pub hits: u64,
}

/// A signal (Linux) or exception (Windows) of the program's own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExceptionReport {
    /// `SIGSEGV`, `EXCEPTION_ACCESS_VIOLATION`.
    pub name: String,
    /// Number of the operating system.
    pub number: u32,
    /// Faulting address, where the system names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<HexAddr>,
}
