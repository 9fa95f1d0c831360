//! Every operation of the protocol: a type that knows its name, its parameters and its reply.

mod inspect;
mod memory;
mod points;
mod run;
mod session;

pub use inspect::*;
pub use memory::*;
pub use points::*;
pub use run::*;
pub use session::*;

use crate::envelope::clip;
use crate::error::{AgentError, ErrorCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde::de::value::MapDeserializer;
use serde_json::{Map, Value};

/// One operation of the protocol. The implementing type is its parameters.
pub trait Command: Serialize + DeserializeOwned + Into<Request> {
    /// Name in `op`.
    const OP: &'static str;
    /// What the agent answers.
    type Reply: Serialize + DeserializeOwned;
}

/// What one operation takes and gives, as JSON Schemas.
#[cfg(feature = "schema")]
#[derive(Clone, Debug)]
pub struct OperationSchema {
    /// Its name.
    pub op: &'static str,
    /// Its parameters.
    pub params: schemars::Schema,
    /// Its reply.
    pub reply: schemars::Schema,
}

macro_rules! commands {
    ($($params:ident = $op:literal -> $reply:ident;)+) => {
        /// A request, taken apart.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Request { $(#[doc = concat!("`", $op, "`")] $params($params),)+ }

        /// The names of all operations, in the order of the document.
        pub const OPERATIONS: &[&str] = &[$($op),+];

        /// The JSON Schemas of every operation, in the order of [`OPERATIONS`].
        #[cfg(feature = "schema")]
        pub fn schemas() -> Vec<OperationSchema> {
            vec![$(OperationSchema {
                op: $op,
                params: schemars::schema_for!($params),
                reply: schemars::schema_for!($reply),
            }),+]
        }

        impl Request {
            /// Reads the parameters of operation `op`.
            ///
            /// # Errors
            /// `UnknownOp`, with the operations there are; `InvalidParams`, naming the parameter.
            pub fn parse(op: &str, params: Map<String, Value>) -> Result<Self, AgentError> {
                match op {
                    $($op => read($op, &params).map(Self::$params),)+
                    _ => Err(AgentError::new(ErrorCode::UnknownOp, format!("there is no operation `{}`", clip(op)))
                        .hint(format!("operations are: {}", OPERATIONS.join(", ")))),
                }
            }

            /// Name of the operation.
            pub fn op(&self) -> &'static str {
                match self { $(Self::$params(_) => $op),+ }
            }
        }

        $(
            impl Command for $params {
                const OP: &'static str = $op;
                type Reply = $reply;
            }

            impl From<$params> for Request {
                fn from(params: $params) -> Self {
                    Self::$params(params)
                }
            }
        )+
    };
}

fn read<T: DeserializeOwned>(op: &str, params: &Map<String, Value>) -> Result<T, AgentError> {
    from_all_but(None, params).map_err(|error| {
        let mut sentence = error.to_string();
        let name = culprit::<T>(params, &sentence).map(|name| format!("`{}`: ", clip(name))).unwrap_or_default();
        if sentence.len() > LONGEST_SENTENCE {
            sentence = sentence.chars().take(LONGEST_SENTENCE).collect();
            sentence.push('…');
        }
        AgentError::new(ErrorCode::InvalidParams, format!("{op}: {name}{sentence}"))
            .hint("the parameters of each operation are listed in docs/agent-protocol.md")
    })
}

/// Characters of a parser's sentence that are passed on: it quotes what it was given.
const LONGEST_SENTENCE: usize = 600;

fn from_all_but<T: DeserializeOwned>(left_out: Option<&str>, params: &Map<String, Value>) -> serde_json::Result<T> {
    let kept = params.iter().filter(|(name, _)| left_out != Some(name.as_str()));
    T::deserialize(MapDeserializer::new(kept.map(|(name, value)| (name.as_str(), value))))
}

/// The parameter that a complaint is about, since serde does not say: the one without which it is another or none.
/// A complaint about a missing or unknown one says its name by itself.
fn culprit<'a, T: DeserializeOwned>(params: &'a Map<String, Value>, sentence: &str) -> Option<&'a str> {
    let named = ["missing field", "unknown field"].iter().any(|start| sentence.starts_with(start));
    let changes = |name: &&str| {
        from_all_but::<T>(Some(name), params).map_or_else(|error| error.to_string() != sentence, |_| true)
    };
    // No operation has more parameters than this: a flood of unknown ones is not gone through.
    let mut names = params.keys().take(16).map(String::as_str).filter(|_| !named);
    names.find(changes)
}

commands! {
    Hello = "hello" -> HelloReply;
    Launch = "launch" -> ProcessReply;
    Attach = "attach" -> ProcessReply;
    Detach = "detach" -> EndReply;
    Terminate = "terminate" -> EndReply;
    GetStatus = "get_status" -> StatusReply;
    SetBreakpoint = "set_breakpoint" -> BreakpointReply;
    RemoveBreakpoint = "remove_breakpoint" -> BreakpointReply;
    ListBreakpoints = "list_breakpoints" -> BreakpointsReply;
    SetWatchpoint = "set_watchpoint" -> WatchpointReply;
    RemoveWatchpoint = "remove_watchpoint" -> WatchpointReply;
    ListWatchpoints = "list_watchpoints" -> WatchpointsReply;
    ContinueExecution = "continue_execution" -> StopReply;
    Pause = "pause" -> PauseReply;
    Step = "step" -> StepReply;
    ReadMemory = "read_memory" -> MemoryReply;
    WriteMemory = "write_memory" -> WrittenReply;
    GetRegisters = "get_registers" -> RegistersReply;
    SetRegisters = "set_registers" -> RegistersReply;
    ListThreads = "list_threads" -> ThreadsReply;
    ListModules = "list_modules" -> ModulesReply;
    Disassemble = "disassemble" -> DisassemblyReply;
    Backtrace = "backtrace" -> BacktraceReply;
    Screenshot = "screenshot" -> ScreenshotReply;
}

/// Any reply, as it goes out.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[expect(missing_docs, reason = "each variant is named like the type it holds")]
pub enum Reply {
    Hello(HelloReply),
    Process(ProcessReply),
    End(EndReply),
    Status(StatusReply),
    Breakpoint(BreakpointReply),
    Breakpoints(BreakpointsReply),
    Watchpoint(WatchpointReply),
    Watchpoints(WatchpointsReply),
    Stop(StopReply),
    Pause(PauseReply),
    Step(StepReply),
    Memory(MemoryReply),
    Written(WrittenReply),
    Registers(RegistersReply),
    Threads(ThreadsReply),
    Modules(ModulesReply),
    Disassembly(DisassemblyReply),
    Backtrace(BacktraceReply),
    Screenshot(ScreenshotReply),
}
