//! Running, pausing and stepping.

use crate::live::{Instruction, Live, StopReport};
use serde::{Deserialize, Serialize};

/// Lets the program run until it stops, ends, or the time is up; then it runs on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ContinueExecution {
    /// Longest wait in seconds, 0 to 300; 10 is a good choice, since clients give up at about 60.
    pub timeout: f64,
}

/// How the wait ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StopReply {
    /// True when the time was up and the program runs on; call `continue_execution` again to go on waiting.
    pub timed_out: bool,
    /// What the stop is about, when it stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<StopReport>,
    /// State of the program.
    #[serde(flatten)]
    pub live: Live,
}

/// Stops all threads; stopped already is fine too.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Pause {}

/// The program is stopped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PauseReply {
    /// `interrupt`, `suspend`, `break_in`, or `already_stopped`.
    pub how: String,
    /// What the stop is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<StopReport>,
    /// State of the program.
    #[serde(flatten)]
    pub live: Live,
}

/// How far a step goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(inline))]
#[serde(rename_all = "snake_case")]
pub enum StepMode {
    /// One instruction, into calls.
    #[default]
    Into,
    /// One instruction; a call runs to its return.
    Over,
    /// To the return of the present function.
    Out,
}

/// Executes instructions of one thread, the others holding still for `into`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// `into` (default), `over` or `out`.
    #[serde(default)]
    pub mode: StepMode,
    /// How often, 1 to 10,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Thread; default is the one that the stop is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<u32>,
    /// Longest wait in seconds, 0 to 300; default 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<f64>,
}

/// Where the steps led.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepReply {
    /// Steps that were completed.
    pub steps: u32,
    /// True when the time was up before the last step ended; the program runs on.
    pub timed_out: bool,
    /// Instructions executed, the last ones, in order; only for `into`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trace: Vec<Instruction>,
    /// What the stop is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<StopReport>,
    /// State of the program.
    #[serde(flatten)]
    pub live: Live,
}
