//! A client of the GDB Remote Serial Protocol for ARM emulators: GDB manual, appendix "GDB Remote Serial Protocol".
//!
//! [`Session`] is the protocol without sockets: bytes and time go in, bytes and events come out. [`Driver`] moves its bytes
//! over TCP, one deadline per call. [`Debugger`] is one processor with its breakpoints, and [`Console`] the processors of
//! one machine, which run and stop together. What a stub can do is found out by asking it, never by its name or version.

mod breakpoints;
mod capabilities;
mod console;
mod context;
mod debugger;
mod driver;
mod error;
mod framing;
mod packets;
mod ranges;
mod session;
mod watchpoints;

pub use breakpoints::Breakpoint;
pub use capabilities::{AddressOrder, Answer, Capabilities};
pub use console::{Console, Processor};
pub use context::{Region, RegionBytes, StopContext};
pub use debugger::{Cause, Debugger, Resumed, Steps, Stop};
pub use driver::Driver;
pub use error::Error;
pub use framing::{Decoder, Token, encode};
pub use packets::{Mode, PointKind, Registers, StopKind, StopReply};
pub use ranges::{ModeRequest, Range, RangeSource};
pub use session::{Event, Request, Session};
pub use watchpoints::{WatchKind, Watchpoint};
