//! The contract between the debug agent and whoever drives it: commands and their replies, error codes, the protocol
//! version and the framing. No I/O happens here; `docs/agent-protocol.md` describes the same thing in prose.

pub mod commands;
mod condition;
mod envelope;
mod error;
mod frame;
mod live;
mod values;

pub use commands::{Command, Reply, Request};
pub use condition::{CompareOp, Condition};
pub use envelope::{Envelope, encode_error, encode_request, encode_result, parse_reply, parse_request};
pub use error::{AgentError, ErrorCode};
pub use frame::{FrameError, LineReader};
pub use live::{ExceptionReport, Instruction, Live, State, StopReport, WatchReport};
pub use values::{AddrExpr, Bytes, HexAddr, IntValue};

/// Version of the protocol; it changes when an old client would misread a new agent.
pub const PROTOCOL_VERSION: u32 = 1;
