//! A client of VICE's binary monitor: VICE manual, chapter "Binary monitor", protocol version 2.
//!
//! [`Session`] is the protocol without sockets: bytes and time go in, bytes and events come out. The driver moves its bytes over
//! TCP with one reading thread, one operation at a time and one deadline per call. [`Monitor`] is one VICE with its machine, and
//! checks what VICE does not. [`contract`] is what the connector says to its clients.

pub mod commands;
pub mod contract;
mod driver;
mod error;
mod framing;
pub mod launch;
mod machine;
mod monitor;
mod session;

pub use commands::{Bank, Checkpoint, Display, NewCheckpoint, Register, ResetKind, Version};
pub use error::Error;
pub use framing::{Decoder, Frame, NO_REQUEST, encode, encode_response};
pub use machine::{EventKind, Execution, Machine, Published};
pub use monitor::{Arrival, Made, Memory, Monitor, Named, Picture, Place, Ran, Status, Written};
pub use session::{Answer, Event, Request, Session};
