//! What can go wrong between us and VICE, each with what to do next and the contract's code for it.

use std::io;
use std::net::SocketAddr;

use super::machine::{Execution, Published};

/// Why something could not be done with VICE.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The connection could not be made.
    #[error(
        "no VICE answers at {address}: {reason}; start it with -binarymonitor -binarymonitoraddress ip4://{address}, or let \
         `retroscope vice-connector --launch` start it"
    )]
    Connect {
        /// Where it was looked for.
        address: SocketAddr,
        /// What the system says.
        reason: String,
    },
    /// The connection was made and then nothing came.
    #[error(
        "VICE at {address} took the connection but does not answer: another client is connected, VICE is held by its own \
         monitor window, or this is no binary monitor; end the other client or close that window"
    )]
    Silent {
        /// Where.
        address: SocketAddr,
    },
    /// An argument that cannot be.
    #[error("{0}")]
    Argument(String),
    /// The machine is not in the state that this needs.
    #[error("VICE target is {is}, not {wanted}")]
    WrongState {
        /// How it is.
        is: Execution,
        /// How it must be.
        wanted: Execution,
    },
    /// VICE answered with an error code (VICE manual, "Binary monitor", "Error codes").
    #[error("VICE returned error {code:#04x} for command {command:#04x} (request {request}){}", meaning(*code))]
    Refused {
        /// The command.
        command: u8,
        /// VICE's own number.
        code: u8,
        /// Which request it was.
        request: u32,
    },
    /// No answer in time. A late one is discarded.
    #[error("{what} within {limit_ms} ms")]
    TimedOut {
        /// What did not come, as `no answer came to step`.
        what: String,
        /// The time that the call had.
        limit_ms: u64,
        /// The request, when one was sent.
        request: Option<u32>,
        /// Whether the machine may be in another state than before.
        changed: bool,
    },
    /// The connection is gone.
    #[error("the connection to VICE is gone: {0}")]
    Lost(String),
    /// VICE sent what it cannot mean. The connection is given up.
    #[error("VICE sent {0}: the connection is given up, since nothing after it could be trusted")]
    Protocol(String),
    /// A write that failed after a part of it.
    #[error("memory was written from {start:#06x} to {reached:#06x} only: {source}")]
    PartWrite {
        /// First address.
        start: u16,
        /// Last address written.
        reached: u16,
        /// First address that was not.
        failed: u16,
        /// Last address that was to be written.
        end: u16,
        /// Why.
        source: Box<Error>,
    },
    /// A build whose display command writes beyond its buffer.
    #[error(
        "VICE {version} ({}) predates the mended display command, which writes beyond its buffer: revision 46020 or \
         version 3.11 is needed, or start the connector with --allow-display-on-old-vice", revision.map_or_else(|| "no revision".to_owned(), |revision| format!("revision {revision}"))
    )]
    OldBuild {
        /// What VICE says.
        version: String,
        /// What VICE says.
        revision: Option<u32>,
    },
    /// Something else stopped the machine first.
    #[error("a checkpoint stopped the machine before the interrupt did")]
    Superseded {
        /// The stop.
        event: Box<Published>,
    },
    /// The events asked for are not remembered any more.
    #[error("stops after sequence {after} are not remembered any more: the oldest that is asked for may be {oldest}")]
    HistoryLost {
        /// What was asked for.
        after: u64,
        /// Smallest `after` that can be answered.
        oldest: u64,
    },
}

/// What VICE's error codes mean (VICE manual, "Binary monitor").
const fn meaning(code: u8) -> &'static str {
    match code {
        0x01 => ": there is no such object",
        0x02 => ": there is no such memspace",
        0x80 => ": the command has a wrong length",
        0x81 => ": a parameter has a wrong value",
        0x82 => ": the protocol version is not known",
        0x83 => ": the command is not known",
        0x8F => ": it failed",
        _ => "",
    }
}

impl Error {
    /// The contract's code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Argument(_) => "vice_invalid_argument",
            Self::WrongState { .. } => "vice_target_not_stopped",
            Self::Refused { .. } => "vice_command_failed",
            Self::TimedOut { .. } => "vice_timeout",
            Self::Connect { .. } | Self::Silent { .. } | Self::Lost(_) => "vice_connection_lost",
            Self::Protocol(_) => "vice_protocol_error",
            Self::PartWrite { .. } => "vice_partial_write",
            Self::OldBuild { .. } => "vice_unsupported_build",
            Self::Superseded { .. } => "vice_interrupt_superseded",
            Self::HistoryLost { .. } => "event_history_lost",
        }
    }

    /// The request that it belongs to.
    pub fn request(&self) -> Option<u32> {
        match self {
            Self::Refused { request, .. } => Some(*request),
            Self::TimedOut { request, .. } => *request,
            Self::PartWrite { source, .. } => source.request(),
            _ => None,
        }
    }

    /// Whether nobody knows if the command was done.
    pub fn outcome_unknown(&self) -> bool {
        match self {
            Self::TimedOut { .. } | Self::Lost(_) | Self::Protocol(_) => true,
            Self::PartWrite { source, .. } => source.outcome_unknown(),
            _ => false,
        }
    }

    /// Whether the connection is of no more use.
    pub const fn is_terminal(&self) -> bool {
        matches!(self, Self::Connect { .. } | Self::Silent { .. } | Self::Lost(_) | Self::Protocol(_))
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Lost(error.to_string())
    }
}
