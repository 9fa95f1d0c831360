//! Errors of the agent: a code for programs, a sentence and a hint for people.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! error_codes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $word:literal, retryable: $retryable:literal;)+) => {
        /// What kind of refusal an error is. The word is what stands in a reply's `code`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum ErrorCode {
            $($(#[doc = $doc])+ #[serde(rename = $word)] $variant,)+
        }

        impl ErrorCode {
            /// Every code, in the order of the documents.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word in a reply's `code`.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// What the code means, as the documents say it.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),+)),+ }
            }

            /// Whether the same call may succeed later with nothing changed by the caller.
            pub const fn retryable(self) -> bool {
                match self { $(Self::$variant => $retryable),+ }
            }
        }
    };
}

error_codes! {
    /// The line is no JSON object of the protocol's form.
    BadRequest = "bad_request", retryable: false;
    /// There is no operation of that name.
    UnknownOp = "unknown_op", retryable: false;
    /// A parameter is missing, unknown, of the wrong type, or out of range.
    InvalidParams = "invalid_params", retryable: false;
    /// A line is longer than the protocol allows.
    FrameTooLarge = "frame_too_large", retryable: false;
    /// A number is above a limit that the details name.
    LimitExceeded = "limit_exceeded", retryable: false;
    /// No program is being debugged.
    NotLaunched = "not_launched", retryable: false;
    /// A program is being debugged already.
    AlreadyDebugging = "already_debugging", retryable: false;
    /// The program must be stopped for this.
    TargetRunning = "target_running", retryable: true;
    /// The program has ended.
    TargetExited = "target_exited", retryable: false;
    /// Another command that waits for the program is in progress.
    Busy = "busy", retryable: true;
    /// The program did not do what was asked within the time limit.
    Timeout = "timeout", retryable: true;
    /// A file or process was not found.
    NotFound = "not_found", retryable: false;
    /// More than one thing fits; the details list them.
    Ambiguous = "ambiguous", retryable: false;
    /// The operating system refused.
    PermissionDenied = "permission_denied", retryable: false;
    /// The executable lies outside the folders that may be launched from.
    PathRefused = "path_refused", retryable: false;
    /// The executable could not be started.
    LaunchFailed = "launch_failed", retryable: false;
    /// The executable already runs, and the caller asked not to attach and not to start another.
    AlreadyRunning = "already_running", retryable: false;
    /// This agent cannot debug programs of that architecture or format.
    UnsupportedProgram = "unsupported_program", retryable: false;
    /// The platform has no such power.
    Unsupported = "unsupported_by_backend", retryable: false;
    /// Nothing is mapped at the address.
    AddressUnmapped = "address_unmapped", retryable: false;
    /// An address expression cannot be resolved.
    UnknownSymbol = "unknown_symbol", retryable: false;
    /// There is no thread of that number.
    UnknownThread = "unknown_thread", retryable: false;
    /// There is no register of that name in this program.
    UnknownRegister = "unknown_register", retryable: false;
    /// The condition cannot be evaluated as written.
    InvalidCondition = "invalid_condition", retryable: false;
    /// There is no breakpoint or watchpoint there.
    NoSuchBreakpoint = "no_such_breakpoint", retryable: false;
    /// All hardware debug registers are in use.
    NoFreeSlot = "no_free_slot", retryable: false;
    /// The address is not aligned as the hardware needs it.
    Misaligned = "misaligned", retryable: false;
    /// There is no display to take a picture from.
    NoDisplay = "no_display", retryable: false;
    /// The program has no visible window.
    NoWindow = "no_window", retryable: true;
    /// A fault of the agent itself; the message says which call failed.
    Internal = "internal", retryable: false;
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// An error reply: what was wrong, what is allowed, what to do next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{code}: {message}")]
pub struct AgentError {
    /// The sentence.
    #[serde(rename = "error")]
    pub message: String,
    /// The kind.
    pub code: ErrorCode,
    /// What to do next; empty when the sentence says it all.
    #[serde(default)]
    pub hint: String,
    /// Facts a program may want: the limit, the candidates, what could be read.
    #[serde(default)]
    pub details: serde_json::Map<String, serde_json::Value>,
}

impl AgentError {
    /// An error with a sentence and no hint yet.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { message: message.into(), code, hint: String::new(), details: serde_json::Map::new() }
    }

    /// Says what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    /// Adds a fact.
    #[must_use]
    pub fn detail(mut self, key: &str, value: impl Into<serde_json::Value>) -> Self {
        self.details.insert(key.to_owned(), value.into());
        self
    }
}
