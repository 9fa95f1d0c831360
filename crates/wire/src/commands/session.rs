//! Greeting, and taking hold of a program or letting it go.

use crate::live::{Live, StopReport};
use crate::values::HexAddr;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Asks who is there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// Protocol version the client speaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<u32>,
}

/// Who is there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HelloReply {
    /// Always `retroscope-agent`.
    pub agent: String,
    /// Version of the agent.
    pub version: String,
    /// Protocol version it speaks.
    pub protocol: u32,
    /// `linux` or `windows`.
    pub platform: String,
    /// Program architectures it can debug: `x86`, `x86_64`.
    pub archs: Vec<String>,
    /// What it can do beyond the basics: `watchpoints`, `out_of_line_steps`, `screenshots`.
    pub features: Vec<String>,
    /// Process id of the agent itself.
    pub agent_pid: u32,
    /// What happens to a launched program when the agent ends: `detach` or `kill`.
    pub on_exit: String,
    /// State of the program.
    #[serde(flatten)]
    pub live: Live,
}

/// Where a launched program first stops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(inline))]
#[serde(rename_all = "snake_case")]
pub enum StopAt {
    /// At the entry point of the program itself, its libraries mapped, before its first instruction.
    #[default]
    Entry,
    /// As early as the system allows: at the first instruction of the loader.
    Loader,
}

/// What to do when a process of that executable runs already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(inline))]
#[serde(rename_all = "snake_case")]
pub enum IfRunning {
    /// Attach to it instead.
    #[default]
    Attach,
    /// Start another one.
    StartNew,
    /// Refuse.
    Error,
}

/// Starts a program under the debugger, stopped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Launch {
    /// Path of the executable.
    pub path: String,
    /// Its arguments, without the program name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,
    /// Working folder; default is the executable's folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Environment variables set beside the agent's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<BTreeMap<String, String>>,
    /// `entry` (default): the program's own entry point, its libraries mapped; `loader`: earlier.
    #[serde(default)]
    pub stop_at: StopAt,
    /// When that executable runs already: `attach` (default), `start_new` or `error`.
    #[serde(default)]
    pub if_running: IfRunning,
}

/// Takes hold of a running program, all its threads, stopped. One of `pid` and `name`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Attach {
    /// Process id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// File name or full path of the executable; must fit one process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// The program now being debugged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessReply {
    /// Process id.
    pub pid: u32,
    /// Path of the executable.
    pub path: String,
    /// `x86` or `x86_64`.
    pub arch: String,
    /// True when it ran already and was attached to.
    pub attached: bool,
    /// Entry point of the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<HexAddr>,
    /// Where its executable is loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<HexAddr>,
    /// Number of threads.
    pub threads: u32,
    /// The stop it is in.
    pub stop: StopReport,
    /// State of the program.
    #[serde(flatten)]
    pub live: Live,
}

/// Lets the program go on, unharmed, without the debugger.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Detach {}

/// Ends the program at once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Terminate {}

/// The program is no longer debugged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EndReply {
    /// Process id it had.
    pub pid: u32,
    /// What is worth knowing about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// State of the program.
    #[serde(flatten)]
    pub live: Live,
}

/// Asks for the state of the program; never waits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct GetStatus {}

/// The state of the program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatusReply {
    /// Process id, while there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Path of the executable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// `x86` or `x86_64`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arch: Option<String>,
    /// Number of threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// Breakpoints set.
    pub breakpoint_count: u32,
    /// Watchpoints set.
    pub watchpoint_count: u32,
    /// True while some client waits in `continue_execution` or `step`.
    pub waiting: bool,
    /// Texts that the program sent to its debugger (`OutputDebugString`), the last 64, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub debug_output: Vec<String>,
    /// What the stop is about, while stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<StopReport>,
    /// State of the program.
    #[serde(flatten)]
    pub live: Live,
}
