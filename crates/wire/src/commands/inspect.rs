//! Threads, modules, code and the picture.

use crate::live::{Instruction, Live};
use crate::values::{AddrExpr, Bytes, HexAddr};
use serde::{Deserialize, Serialize};

/// Asks for the threads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ListThreads {}

/// One thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadInfo {
    /// Its number.
    pub thread: u32,
    /// Its name, where the system has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Program counter, while stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pc: Option<HexAddr>,
    /// `function+0x10` or `module+0x1000`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// True for the thread that the stop is about.
    pub current: bool,
}

/// All threads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadsReply {
    /// The threads, by number.
    pub threads: Vec<ThreadInfo>,
    /// State of the program.
    #[serde(flatten)]
    pub live: Live,
}

/// Asks for the modules: the executable and its libraries.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ListModules {}

/// One module.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModuleInfo {
    /// File name.
    pub name: String,
    /// Full path.
    pub path: String,
    /// Where it is loaded; `module+0x10` is this plus 0x10.
    pub base: HexAddr,
    /// Bytes of address space it covers.
    pub size: u64,
    /// Symbols known.
    pub symbols: u64,
    /// True for the executable itself.
    pub main: bool,
    /// True for what only hosts the program: Wine's own libraries under a Windows program.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub host: bool,
}

/// All modules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModulesReply {
    /// The modules, by address; those that only host the program stand last.
    pub modules: Vec<ModuleInfo>,
    /// State of the program.
    #[serde(flatten)]
    pub live: Live,
}

/// Decodes instructions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Disassemble {
    /// Address of the first; default is the program counter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub addr: Option<AddrExpr>,
    /// How many, 1 to 1,000; default 16.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
}

/// The instructions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DisassemblyReply {
    /// In order of address.
    pub instructions: Vec<Instruction>,
    /// Why there are fewer than asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// Address after the last one.
    pub next: HexAddr,
    /// State of the program.
    #[serde(flatten)]
    pub live: Live,
}

/// Asks how a stopped thread came where it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Backtrace {
    /// Thread; default is the one that the stop is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<u32>,
    /// How many frames at most, 1 to 256; default 32.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// One frame.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Frame {
    /// 0 is the innermost.
    pub index: u32,
    /// Program counter in this frame.
    pub pc: HexAddr,
    /// `function+0x10` or `module+0x1000`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// How it was found: `pc`, `frame_pointer` or `return_address`; the last is a guess checked against a call before it.
    pub found_by: String,
}

/// The frames.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BacktraceReply {
    /// Innermost first.
    pub frames: Vec<Frame>,
    /// Why the walk ended.
    pub ended: String,
    /// The thread.
    pub of_thread: u32,
    /// State of the program.
    #[serde(flatten)]
    pub live: Live,
}

/// Takes a picture of the program's window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Screenshot {
    /// Part of the title, when the program has several windows; default is its largest visible one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// The picture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScreenshotReply {
    /// PNG, as base64.
    pub png_base64: Bytes,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// Title of the window.
    pub title: String,
    /// How it was taken: the name of the system's call, such as `GetImage`.
    pub method: String,
    /// State of the program.
    #[serde(flatten)]
    pub live: Live,
}
