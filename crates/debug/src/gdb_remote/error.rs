//! What can go wrong between us and a stub, each with what to do next.

use std::io;
use std::time::Duration;

use base::limits;

/// Why something could not be done with a stub.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The connection could not be made.
    #[error("no GDB stub can be reached at {address}: {source}")]
    Connect {
        /// Where one was looked for.
        address: std::net::SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// The connection broke.
    #[error("the connection to the GDB stub failed: {0}")]
    Io(#[from] io::Error),
    /// The stub closed the connection: the emulator ended, or it serves somebody else.
    #[error("the GDB stub closed the connection: the emulator has ended, or another client is connected")]
    Closed,
    /// No answer in time. The connection is given up, since a late answer would be taken for another's.
    #[error("the GDB stub did not answer `{packet}` in time")]
    TimedOut {
        /// The packet's beginning.
        packet: String,
    },
    /// The stub refused a packet by `-`, which it does while the program runs.
    #[error("the GDB stub refused `{packet}`, as stubs do while the program runs")]
    Refused {
        /// The packet's beginning.
        packet: String,
    },
    /// Every try was damaged.
    #[error("the GDB stub's answers to `{packet}` were damaged")]
    Damaged {
        /// The packet's beginning.
        packet: String,
    },
    /// The connection was given up after an earlier failure.
    #[error("the connection to the GDB stub was given up after an earlier failure: connect anew")]
    Broken,
    /// The stub answers this packet with nothing: it does not know it.
    #[error("this GDB stub does not know `{packet}`")]
    Unsupported {
        /// What the packet is for.
        packet: &'static str,
    },
    /// The stub answered with an error number.
    #[error("the GDB stub answered `{packet}` with the error E{code:02x}")]
    Stub {
        /// What the packet is for.
        packet: &'static str,
        /// The stub's own number.
        code: u8,
    },
    /// An answer that the packet cannot have.
    #[error("the GDB stub's answer to `{packet}` makes no sense: {what}")]
    BadAnswer {
        /// What the packet is for.
        packet: &'static str,
        /// What is wrong with it.
        what: String,
    },
    /// The program runs, and a stub understands nothing while it does.
    #[error("the program runs: pause it, or wait for it to stop")]
    Running,
    /// The program runs, and an interrupt was not answered.
    #[error(
        "the program runs, and the GDB stub does not stop it: DeSmuME's recompiler (--cpu-mode=1) answers neither interrupts nor steps"
    )]
    Deaf,
    /// The program is stopped already.
    #[error("the program is stopped: continue it first")]
    Stopped,
    /// A read whose bounds are wrong.
    #[error("{length} bytes from {address:#010x} cannot be read: 1 to {most} bytes that end at or below 0x100000000")]
    BadRead {
        /// First address.
        address: u32,
        /// Bytes asked for.
        length: u32,
        /// Most bytes of this read.
        most: u32,
    },
    /// A read that failed after a part of it.
    #[error("memory could be read from {start:#010x} to {reached:#010x} only: {source}")]
    PartRead {
        /// First address.
        start: u32,
        /// First address that could not be read.
        reached: u64,
        /// Why.
        source: Box<Error>,
    },
    /// Memory did not take what was written.
    #[error("memory at {address:#010x} did not take what was written to it")]
    NotWritten {
        /// First address.
        address: u32,
    },
    /// An address where no instruction of this mode can be.
    #[error("{address:#010x} is not a multiple of {alignment}, as {mode} instructions are")]
    Misaligned {
        /// The address.
        address: u32,
        /// `ARM` or `Thumb`.
        mode: &'static str,
        /// Bytes.
        alignment: u32,
    },
    /// An address that the processor cannot access at this size.
    #[error("{address:#010x} is not a multiple of {size}: the processor accesses {size} bytes only there")]
    MisalignedWatch {
        /// The address.
        address: u32,
        /// Bytes.
        size: u32,
    },
    /// An address outside all ranges where code may be.
    #[error("{address:#010x} lies in no executable range; there are: {ranges}")]
    OutsideRanges {
        /// The address.
        address: u32,
        /// The ranges, as text.
        ranges: String,
    },
    /// Several ranges hold the address.
    #[error("{address:#010x} lies in several executable ranges: name one of {ranges}")]
    AmbiguousRange {
        /// The address.
        address: u32,
        /// The ranges' names.
        ranges: String,
    },
    /// Nothing says whether the code is ARM or Thumb.
    #[error("nothing says whether the code at {address:#010x} is ARM or Thumb: name the mode")]
    AmbiguousMode {
        /// The address.
        address: u32,
    },
    /// No range has this name.
    #[error("there is no executable range `{id}` that holds {address:#010x}; there are: {ranges}")]
    UnknownRange {
        /// The name.
        id: String,
        /// The address.
        address: u32,
        /// The ranges, as text.
        ranges: String,
    },
    /// A range that cannot be.
    #[error("the executable range `{id}` cannot be: {what}")]
    BadRange {
        /// Its name.
        id: String,
        /// What is wrong.
        what: String,
    },
    /// Ranges that go away although breakpoints are in them.
    #[error("the range `{range}` still holds the breakpoint {breakpoint}: remove that first, or keep the range")]
    RangeInUse {
        /// The range's name.
        range: String,
        /// The breakpoint's name.
        breakpoint: String,
    },
    /// The table is full.
    #[error("{what} are full: {most} at most; remove one first")]
    Full {
        /// Which table.
        what: &'static str,
        /// Its size.
        most: usize,
    },
    /// No such breakpoint or watchpoint.
    #[error("there is no {id}; there are: {known}")]
    Unknown {
        /// The name asked for.
        id: String,
        /// Those there are.
        known: String,
    },
    /// A number outside its bounds.
    #[error("{what} must be {least} to {most}, and is {asked}")]
    OutOfRange {
        /// What the number is.
        what: &'static str,
        /// Smallest.
        least: u64,
        /// Largest.
        most: u64,
        /// What was asked for.
        asked: u64,
    },
    /// The emulator has no stub for this processor.
    #[error("this emulator was not started with a GDB stub for {0}")]
    NoProcessor(&'static str),
    /// The stub was not ready in time.
    #[error(
        "the GDB stub answers, but the program is not loaded after {waited:?}: pc is {pc:#010x} and should be {entry:#010x}"
    )]
    NotReady {
        /// How long was waited.
        waited: Duration,
        /// What it last said.
        pc: u32,
        /// What is waited for.
        entry: u32,
    },
}

/// The beginning of a packet, for messages.
pub(super) fn beginning(payload: &[u8]) -> String {
    let start = payload.iter().take(limits::MAX_GDB_NAME_CHARS).copied().map(char::from);
    start.filter(|c| c.is_ascii_graphic()).collect()
}
