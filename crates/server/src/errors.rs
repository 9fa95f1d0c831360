//! The one list of error codes that a tool can answer with, and the error itself: what was wrong and what to do next.

use serde_json::{Map, Value, json};
use std::fmt;
use wire::AgentError;

macro_rules! server_codes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $word:literal, retryable: $retryable:literal;)+) => {
        /// What kind of refusal an error is: the agent's kinds, and those of the server itself.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ErrorCode {
            /// A kind that the agent protocol defines.
            Agent(wire::ErrorCode),
            $($(#[doc = $doc])+ $variant,)+
        }

        impl ErrorCode {
            /// The server's own codes, in the order of the documents; the agent's are `wire::ErrorCode::ALL`.
            pub const OWN: &'static [Self] = &[$(Self::$variant),+];

            /// The word in an error's `code`.
            pub const fn word(self) -> &'static str {
                match self { Self::Agent(code) => code.word(), $(Self::$variant => $word),+ }
            }

            /// What the code means, as the documents say it.
            pub const fn meaning(self) -> &'static str {
                match self { Self::Agent(code) => code.meaning(), $(Self::$variant => concat!($($doc),+)),+ }
            }

            /// The server's own code of that word.
            pub fn named(word: &str) -> Option<Self> {
                Self::OWN.iter().copied().find(|code| code.word() == word)
            }

            /// Whether the same call may succeed later with nothing changed by the caller.
            pub const fn retryable(self) -> bool {
                match self { Self::Agent(code) => code.retryable(), $(Self::$variant => $retryable),+ }
            }
        }
    };
}

server_codes! {
    /// No debug agent answers at the configured address.
    AgentUnreachable = "agent_unreachable", retryable: true;
    /// The connection to the agent broke while a command was on its way: it may or may not have been carried out.
    AgentConnectionLost = "agent_connection_lost", retryable: false;
    /// The agent did not answer within the command's time and some slack.
    AgentNoAnswer = "agent_no_answer", retryable: true;
    /// What answers at the agent's address is no agent, or one of another protocol version.
    AgentIncompatible = "agent_incompatible", retryable: false;
    /// An argument is missing, unknown, of the wrong type, or out of range.
    InvalidArguments = "invalid_arguments", retryable: false;
    /// There is no tool of that name in this profile.
    UnknownTool = "unknown_tool", retryable: false;
    /// There is no group of tools of that name.
    UnknownGroup = "unknown_group", retryable: false;
    /// This client's list of tools does not change: the transport or the revision of the protocol forbids it.
    ToolListFixed = "tool_list_fixed", retryable: false;
    /// The profile `full` lists every group and lets none go.
    NoPartialUnload = "no_partial_unload", retryable: false;
    /// The group belongs to the profile, which keeps it.
    ProtectedGroup = "protected_group", retryable: false;
    /// A group could not be loaded; the list is as it was.
    RegistrationFailed = "registration_failed", retryable: false;
    /// What is searched for has no word.
    InvalidQuery = "invalid_query", retryable: false;
    /// The number of results asked for is out of its range.
    InvalidLimit = "invalid_limit", retryable: false;
    /// The answer would be longer than one answer may be; ask for less, or raise the limit.
    OutputTooLarge = "output_too_large", retryable: false;
    /// The tool works on files and the server was started without a workspace.
    WorkspaceMissing = "workspace_missing", retryable: false;
    /// A file is there already, and the call did not say to overwrite it.
    FileExists = "file_exists", retryable: false;
    /// Ghidra did not answer in its time; what a call that changes something has done by then is not known.
    GhidraHttpTimeout = "ghidra_http_timeout", retryable: false;
    /// No connection to Ghidra, or it broke before the answer was whole.
    GhidraTransportFailure = "ghidra_transport_failure", retryable: false;
    /// Ghidra answered with a refusal, or with something that is no whole answer to the question.
    GhidraResponseError = "ghidra_response_error", retryable: false;
    /// The server has no connection to VICE.
    ViceNotConnected = "vice_not_connected", retryable: false;
    /// An argument of a call to VICE is out of its range.
    ViceInvalidArgument = "vice_invalid_argument", retryable: false;
    /// What answers at the connector's address serves no VICE.
    ViceConnectorUnavailable = "vice_connector_unavailable", retryable: true;
    /// The connector lacks something of the contract; the message names it.
    ViceConnectorIncompatible = "vice_connector_incompatible", retryable: false;
    /// The connector that was connected to is gone, or another one answers in its place.
    ViceConnectorChanged = "vice_connector_changed", retryable: false;
    /// There is a connection to another connector already.
    ViceBindingConflict = "vice_binding_conflict", retryable: false;
    /// The call to the connector took longer than the layer above it waits.
    ViceTargetMethodTimeout = "vice_target_method_timeout", retryable: false;
    /// The call did not reach the connector, or was refused before it.
    ViceTargetMethodFailed = "vice_target_method_failed", retryable: false;
    /// The connector did not have VICE's answer in time.
    ViceTimeout = "vice_timeout", retryable: false;
    /// The machine runs, and VICE answers this only while it is stopped.
    ViceTargetNotStopped = "vice_target_not_stopped", retryable: false;
    /// VICE refused a command.
    ViceCommandFailed = "vice_command_failed", retryable: false;
    /// VICE answered what is no answer, and the connector let go of it.
    ViceProtocolError = "vice_protocol_error", retryable: false;
    /// The connector has lost VICE.
    ViceConnectionLost = "vice_connection_lost", retryable: false;
    /// This build of VICE writes beyond its memory when it is asked for its screen.
    ViceUnsupportedBuild = "vice_unsupported_build", retryable: false;
    /// The connector gave no picture of the screen, or one that does not fit together.
    ViceCaptureFailed = "vice_capture_failed", retryable: false;
    /// The connector did not read the memory that was asked for.
    ViceReadFailed = "vice_read_failed", retryable: false;
    /// There is no file of that name in the workspace.
    FileNotFound = "file_not_found", retryable: false;
    /// What the path names is no regular file, is empty, is too large, or cannot be read.
    FileRefused = "file_refused", retryable: false;
    /// The file was written to, or replaced, while it was worked on: what was found belongs to neither.
    FileChanged = "file_changed", retryable: true;
    /// The call was cancelled.
    Cancelled = "cancelled", retryable: true;
    /// The file is no Nintendo DS ROM of which anything could be said.
    InvalidRom = "invalid-rom", retryable: false;
    /// A range that the ROM's tables name does not lie in the file or in the address space.
    RangeOutOfBounds = "range-out-of-bounds", retryable: false;
    /// The ROM has no file of that number or path.
    UnknownFileId = "unknown-file-id", retryable: false;
    /// The processor has no overlay of that number.
    UnknownOverlayId = "unknown-overlay-id", retryable: false;
    /// The result would be larger than what is kept or written at once.
    OutputBoundExceeded = "output-bound-exceeded", retryable: false;
    /// A file below `analysis/generated` could not be written; nothing was changed.
    GeneratedPathFailure = "generated-path-failure", retryable: false;
    /// A part of an argument that names code contradicts another, or the address is not aligned for its mode.
    DisassemblyBackendFailure = "disassembly-backend-failure", retryable: false;
    /// Several components have the target of a search for references.
    AmbiguousReferenceTarget = "ambiguous-reference-target", retryable: false;
    /// The target of a search for references has no address at run time.
    ReferenceTargetNotRuntimeAddressable = "reference-target-not-runtime-addressable", retryable: false;
    /// The scope of a search for references names what the ROM does not have.
    InvalidReferenceScope = "invalid-reference-scope", retryable: false;
    /// A seed of a search for references does not lie in a component of the scope, or in several.
    InvalidReferenceSeed = "invalid-reference-seed", retryable: false;
    /// A bound of a search for references is out of its range.
    ReferenceScanLimitExceeded = "reference-scan-limit-exceeded", retryable: false;
    /// The pattern cannot be searched for: malformed, empty, too long, or of wildcards alone.
    InvalidPattern = "invalid-pattern", retryable: false;
    /// The scope of a search for a pattern names nothing, or what the ROM does not have.
    InvalidPatternScope = "invalid-pattern-scope", retryable: false;
    /// A bound of a search for a pattern is out of its range.
    PatternSearchLimitExceeded = "pattern-search-limit-exceeded", retryable: false;
    /// The scope of a search for functions names what the ROM does not have.
    InvalidFunctionScope = "invalid-function-scope", retryable: false;
    /// A seed of a search for functions does not lie in a component of the scope, or in several.
    InvalidFunctionSeed = "invalid-function-seed", retryable: false;
    /// The entry of the function does not lie in exactly one component that can be read.
    FunctionEntryNotUniquelyResolved = "function-entry-not-uniquely-resolved", retryable: false;
    /// A bound of a search for functions is out of its range.
    FunctionDiscoveryLimitExceeded = "function-discovery-limit-exceeded", retryable: false;
    /// There is no emulator, or it has ended.
    EmulatorNotRunning = "emulator_not_running", retryable: false;
    /// An emulator is running already: a server owns one.
    EmulatorRunning = "emulator_running", retryable: false;
    /// The emulator could not be started, has no GDB stub, or its port is taken.
    EmulatorStartFailed = "emulator_start_failed", retryable: false;
    /// The emulator's GDB stub cannot be reached yet, or its program is not loaded yet.
    EmulatorNotReady = "emulator_not_ready", retryable: true;
    /// The program runs, and a stub understands nothing meanwhile.
    DebuggerRunning = "debugger_running", retryable: false;
    /// The program is stopped, and the call is about one that runs.
    DebuggerStopped = "debugger_stopped", retryable: false;
    /// The connection to the GDB stub broke.
    GdbConnectionLost = "gdb_connection_lost", retryable: true;
    /// The GDB stub does not know the packet, or refused it.
    GdbRefused = "gdb_refused", retryable: false;
    /// The configuration does not switch this on.
    NotConfigured = "not_configured", retryable: false;
    /// A stop is to be correlated and no emulator runs.
    CorrelationNoOwnedProcess = "runtime-correlation-no-owned-process", retryable: false;
    /// The ROM that the emulator was started with cannot be opened any more.
    CorrelationRomIdentityMissing = "runtime-correlation-rom-identity-missing", retryable: false;
    /// The ROM is not the one any more that the emulator was started with.
    CorrelationRomIdentityMismatch = "runtime-correlation-rom-identity-mismatch", retryable: false;
    /// A stop is to be correlated and the program runs.
    CorrelationDebuggerNotStopped = "runtime-correlation-debugger-not-stopped", retryable: false;
    /// Registers or memory of the stop could not be read.
    CorrelationContextFailed = "runtime-correlation-context-failed", retryable: true;
    /// The correlation would be longer than one answer may be; ask for fewer instructions or references.
    CorrelationOutputLimit = "runtime-correlation-output-limit", retryable: false;
    /// The manifest of changes is no strict JSON of its format; the message says where.
    MutationManifestInvalid = "mutation-manifest-invalid", retryable: false;
    /// The manifest is about another ROM.
    SourceRomMismatch = "source-rom-mismatch", retryable: false;
    /// The ROM has no such target, or it cannot be changed in that way.
    UnsupportedMutationTarget = "unsupported-mutation-target", retryable: false;
    /// The target cannot be replaced by that operation, or the ROM cannot be rebuilt without a loss that the manifest does not accept.
    UnsupportedRebuildTarget = "unsupported-rebuild-target", retryable: false;
    /// A change is about the header, the file tables or the overlay tables, which only the rebuild itself writes.
    StructuralMetadataMutation = "structural-metadata-mutation", retryable: false;
    /// Several components are at that address at different times.
    AmbiguousRuntimeTarget = "ambiguous-runtime-target", retryable: false;
    /// The ROM does not have the bytes that the manifest expects there.
    OriginalByteGuardFailed = "original-byte-guard-failed", retryable: false;
    /// What the ROM stores is not what the manifest expects.
    OriginalComponentGuardFailed = "original-component-guard-failed", retryable: false;
    /// The decoded image is not what the manifest expects.
    DecodedOverlayGuardFailed = "decoded-overlay-guard-failed", retryable: false;
    /// A file that the manifest names is not there or cannot be read.
    ReplacementArtifactMissing = "replacement-artifact-missing", retryable: false;
    /// A file that the manifest names has other content than it says.
    ReplacementArtifactHashMismatch = "replacement-artifact-hash-mismatch", retryable: false;
    /// A replacement has another size than is possible there.
    ReplacementSizeMismatch = "replacement-size-mismatch", retryable: false;
    /// An operation changes nothing.
    MutationNoOp = "mutation-no-op", retryable: false;
    /// Two operations change the same bytes.
    MutationOverlap = "mutation-overlap", retryable: false;
    /// The stored bytes of a compressed overlay would not decode to its image, or do not.
    CompressedOverlayInvalid = "compressed-overlay-invalid", retryable: false;
    /// The overlay table cannot be written anew.
    OverlayTableRebuildFailed = "overlay-table-rebuild-failed", retryable: false;
    /// An image cannot be compressed.
    BlzEncodeFailed = "blz-encode-failed", retryable: false;
    /// A compressed stream does not decode to the image that it stands for.
    BlzRoundtripMismatch = "blz-roundtrip-mismatch", retryable: false;
    /// A compressed stream is larger than its field or its room.
    BlzPackedSizeOverflow = "blz-packed-size-overflow", retryable: false;
    /// A new file cannot be added there, or they are too many.
    FilesystemExtensionInvalid = "filesystem-extension-invalid", retryable: false;
    /// The name of a new file or directory is in use.
    FilesystemPathCollision = "filesystem-path-collision", retryable: false;
    /// There would be more files or directories than the format can number.
    FilesystemIdCapacityExceeded = "filesystem-id-capacity-exceeded", retryable: false;
    /// The file name table cannot be written anew.
    FntRebuildFailed = "fnt-rebuild-failed", retryable: false;
    /// The file allocation table cannot be written anew.
    FatRebuildFailed = "fat-rebuild-failed", retryable: false;
    /// The header cannot be written anew.
    HeaderRebuildFailed = "header-rebuild-failed", retryable: false;
    /// The header's checksum is wrong already in the source.
    HeaderChecksumInvalid = "header-checksum-invalid", retryable: false;
    /// The result would be larger than the largest card.
    RomCapacityExceeded = "rom-capacity-exceeded", retryable: false;
    /// More would be appended than is allowed.
    RebuildLayoutOverflow = "rebuild-layout-overflow", retryable: false;
    /// The result could not be made or written; nothing is left of it.
    StagingFailed = "staging-failed", retryable: false;
    /// The result is no ROM in order.
    PostBuildParseFailed = "post-build-parse-failed", retryable: false;
    /// The result has other files, overlays or components than planned.
    StructuralMapChanged = "structural-map-changed", retryable: false;
    /// The result differs from the source where no operation changed it.
    UnexpectedRomDiff = "unexpected-rom-diff", retryable: false;
    /// The result or what is beside it is not what was asked for.
    OutputVerificationFailed = "output-verification-failed", retryable: false;
    /// There is a build of this identity with other content; it is neither used nor replaced.
    PublishCollision = "publish-collision", retryable: false;
    /// The finished build could not be put in its place; nothing is left of it.
    PublishFailed = "publish-failed", retryable: false;
    /// The configuration is wrong; the message says where.
    ConfigInvalid = "config_invalid", retryable: false;
    /// A fault of the server itself.
    ServerFault = "server_fault", retryable: false;
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A refusal: what was wrong, what is allowed, what to do next.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{}", self.line())]
pub struct ToolError {
    /// The kind.
    pub code: ErrorCode,
    /// The sentence.
    pub message: String,
    /// What to do next; empty when the sentence says it all.
    pub hint: String,
    /// Facts a program may want: the limit, the candidates, what could be read.
    pub details: Map<String, Value>,
}

impl ToolError {
    /// An error with a sentence and no hint yet.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: String::new(), details: Map::new() }
    }

    /// Says what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    /// Adds a fact.
    #[must_use]
    pub fn detail(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.details.insert(key.to_owned(), value.into());
        self
    }

    /// `code: message; hint`.
    pub fn line(&self) -> String {
        if self.hint.is_empty() {
            format!("{}: {}", self.code, self.message)
        } else {
            format!("{}: {}; {}", self.code, self.message, self.hint)
        }
    }

    /// The whole error for programs.
    pub fn json(&self) -> Value {
        json!({
            "code": self.code.word(),
            "message": self.message,
            "hint": self.hint,
            "retryable": self.code.retryable(),
            "details": self.details,
        })
    }

    /// The text of an error answer: a line for readers, then the JSON for programs.
    pub fn text(&self) -> String {
        format!("{}\n{}", self.line(), self.json())
    }
}

/// A refusal of the ROM model: its category is the code.
impl From<nds::Refusal> for ToolError {
    fn from(refusal: nds::Refusal) -> Self {
        let code = ErrorCode::named(refusal.category).unwrap_or(ErrorCode::ServerFault);
        let error =
            Self::new(code, refusal.message).hint(refusal.corrective_action).detail("category", refusal.category);
        match refusal.offset {
            Some(offset) => error.detail("offset", offset),
            None => error,
        }
    }
}

/// Work on a ROM that gave no result.
impl From<nds::Failure> for ToolError {
    fn from(failure: nds::Failure) -> Self {
        match failure {
            nds::Failure::Refused(refusal) => refusal.into(),
            nds::Failure::Cancelled => crate::job::cancelled(),
        }
    }
}

impl From<AgentError> for ToolError {
    fn from(error: AgentError) -> Self {
        Self { code: ErrorCode::Agent(error.code), message: error.message, hint: error.hint, details: error.details }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_text_is_a_sentence_and_then_json() {
        let error = ToolError::from(
            AgentError::new(wire::ErrorCode::NoFreeSlot, "all 4 registers are in use")
                .hint("remove one")
                .detail("slots", 4),
        );
        let text = error.text();
        let (line, json) = text.split_once('\n').unwrap();
        assert_eq!(line, "no_free_slot: all 4 registers are in use; remove one");
        assert_eq!(
            serde_json::from_str::<Value>(json).unwrap(),
            json!({"code": "no_free_slot", "message": "all 4 registers are in use", "hint": "remove one",
                   "retryable": false, "details": {"slots": 4}})
        );
    }

    #[test]
    fn no_code_is_used_twice() {
        let words: Vec<&str> = ErrorCode::OWN
            .iter()
            .copied()
            .chain(wire::ErrorCode::ALL.iter().map(|code| ErrorCode::Agent(*code)))
            .map(ErrorCode::word)
            .collect();
        assert_eq!(words.iter().collect::<HashSet<_>>().len(), words.len());
    }
}
