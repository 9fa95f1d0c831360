//! What the scans share: scope, seeds and kinds of proof as arguments; coverage, unresolved sites and functions as answers.

use super::params::{Address, OneMode};
use super::references::InstructionPlace;
use super::shapes::ComponentShown;
use crate::errors::{ErrorCode, ToolError};
use ::nds::ComponentId;
use ::nds::analysis::{
    self, CandidateKind, Coverage, Evidence, EvidenceKinds, FunctionCall, FunctionEntry, SeedCandidate, UnresolvedSite,
    UnresolvedSites,
};
use base::limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

// Which components are scanned.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub enum Scope {
    Main {},
    Overlay {
        #[schemars(length(min = 1, max = limits::MAX_SCOPE_OVERLAYS))]
        overlay_ids: Vec<u32>,
    },
    MainAndOverlays {
        #[schemars(length(min = 1, max = limits::MAX_SCOPE_OVERLAYS))]
        overlay_ids: Vec<u32>,
    },
    AllExecutableComponents {},
}

impl Scope {
    /// The scope, if it names neither no overlay nor too many.
    ///
    /// # Errors
    /// `code`.
    pub fn checked(self, code: ErrorCode) -> Result<analysis::Scope, ToolError> {
        let ids = |ids: Vec<u32>| {
            let most = limits::MAX_SCOPE_OVERLAYS;
            if ids.is_empty() || ids.len() > most {
                return Err(ToolError::new(
                    code,
                    format!("`overlayIds` names {} overlays; allowed are 1 to {most}", ids.len()),
                )
                .hint("`all-executable-components` has every overlay"));
            }
            Ok(ids)
        };
        Ok(match self {
            Self::Main {} => analysis::Scope::Main,
            Self::Overlay { overlay_ids } => analysis::Scope::Overlays(ids(overlay_ids)?),
            Self::MainAndOverlays { overlay_ids } => analysis::Scope::MainAndOverlays(ids(overlay_ids)?),
            Self::AllExecutableComponents {} => analysis::Scope::AllExecutableComponents,
        })
    }
}

// A place that the caller vouches for as code.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
pub struct Seed {
    runtime_address: Address,
    mode: OneMode,
    #[serde(default)]
    overlay_id: Option<u32>,
}

/// The seeds, if they are not too many.
///
/// # Errors
/// `code`.
pub fn checked_seeds(seeds: &[Seed], most: usize, code: ErrorCode) -> Result<Vec<analysis::Seed>, ToolError> {
    if seeds.len() > most {
        let message = format!("`seeds` has {} places; {most} are allowed", seeds.len());
        return Err(ToolError::new(code, message).hint("a place that another reaches need not be named"));
    }
    let seeds = seeds.iter().map(|seed| analysis::Seed {
        runtime_address: seed.runtime_address.0,
        mode: seed.mode.into(),
        overlay_id: seed.overlay_id,
    });
    Ok(seeds.collect())
}

// A kind of proof, or what looks like a function and is none by proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Proof {
    ProgramEntry,
    DirectCall,
    LiteralCall,
    Candidate,
}

/// The kinds named; all that prove when none is.
///
/// # Errors
/// `invalid_arguments` for an empty list.
pub fn kinds(named: Option<&[Proof]>) -> Result<EvidenceKinds, ToolError> {
    let Some(named) = named else { return Ok(EvidenceKinds::PROOFS) };
    if named.is_empty() {
        return Err(ToolError::new(ErrorCode::InvalidArguments, "`evidence` names no kind of proof")
            .hint("leave it out for all: program-entry, direct-call, literal-call"));
    }
    let has = |proof| named.contains(&proof);
    Ok(EvidenceKinds {
        program_entry: has(Proof::ProgramEntry),
        direct_call: has(Proof::DirectCall),
        literal_call: has(Proof::LiteralCall),
        candidates: has(Proof::Candidate),
    })
}

/// How far a component was covered.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CoverageShown {
    /// `main`, `overlay`, `autoload` or `twl`.
    component: &'static str,
    overlay_id: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    autoload_index: Option<u8>,
    /// `scanned`, `no-proven-seed`, `compressed-overlay-not-decodable` or `out-of-limit`.
    status: &'static str,
}

impl CoverageShown {
    pub fn of(coverage: &Coverage) -> Self {
        Self {
            component: analysis::component_words(coverage.component).0,
            overlay_id: coverage.component.overlay_id(),
            autoload_index: coverage.component.autoload_index(),
            status: coverage.status,
        }
    }
}

/// Calls and branches through registers that no proof settles: what they reach was not looked at for that.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct UnresolvedShown {
    /// How many there are.
    pub count: u64,
    /// Some of them.
    pub sites: Vec<SiteShown>,
}

impl UnresolvedShown {
    /// The count alone.
    pub fn count(all: &UnresolvedSites) -> Self {
        Self { count: all.count, sites: Vec::new() }
    }
}

/// One of these.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SiteShown {
    #[serde(flatten)]
    place: InstructionPlace,
    /// `indirect-call` or `indirect-branch`.
    kind: &'static str,
    /// X of `bx rX` or `blx rX`.
    register: Option<u8>,
}

impl SiteShown {
    pub fn of(site: &UnresolvedSite) -> Self {
        Self {
            place: instruction(site.component, site.instruction_address, site.instruction_rom_offset, site.mode.word()),
            kind: site.kind,
            register: site.register,
        }
    }
}

fn instruction(
    component: ComponentId,
    instruction_address: u32,
    instruction_rom_offset: Option<u32>,
    mode: &'static str,
) -> InstructionPlace {
    InstructionPlace { component: component.into(), instruction_address, instruction_rom_offset, mode }
}

/// Where a function begins.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EntryShown {
    #[serde(flatten)]
    component: ComponentShown,
    runtime_address: u32,
    rom_offset: Option<u32>,
    mode: &'static str,
}

impl EntryShown {
    pub fn of(entry: &FunctionEntry) -> Self {
        Self {
            component: entry.id.component.into(),
            runtime_address: entry.id.address,
            rom_offset: entry.rom_offset,
            mode: entry.id.mode.word(),
        }
    }
}

/// Why an address is a function. Each kind has its own fields.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum EvidenceShown {
    /// The header names it.
    ProgramEntry { processor: &'static str, header_entry_address: u32 },
    /// A `bl` or `blx` goes to it.
    DirectCall { caller_function_id: Option<String>, instruction_address: u32, instruction_rom_offset: Option<u32> },
    /// A call through a register that holds a literal goes to it.
    LiteralCall {
        caller_function_id: Option<String>,
        instruction_address: u32,
        instruction_rom_offset: Option<u32>,
        /// Register that holds the target.
        register: u8,
        /// Address of the instruction that loads it.
        load_address: u32,
        /// Address of the literal.
        literal_slot: u32,
    },
    /// The caller named it: no proof.
    UserSeed {},
    /// A word that is no code holds its address, and a function's first instruction is there: no proof.
    CodePointer { pointer_address: Option<u32> },
    /// A function's first instruction is there, behind what ends code: no proof.
    UnreachedPrologue {},
}

impl EvidenceShown {
    pub fn of(evidence: &Evidence) -> Self {
        match evidence {
            Evidence::ProgramEntry { processor, header_entry_address } => {
                Self::ProgramEntry { processor: processor.word(), header_entry_address: *header_entry_address }
            }
            Evidence::DirectCall(call) => Self::DirectCall {
                caller_function_id: call.caller.map(|caller| caller.function_id()),
                instruction_address: call.instruction_address,
                instruction_rom_offset: call.instruction_rom_offset,
            },
            Evidence::LiteralCall { call, literal } => Self::LiteralCall {
                caller_function_id: call.caller.map(|caller| caller.function_id()),
                instruction_address: call.instruction_address,
                instruction_rom_offset: call.instruction_rom_offset,
                register: literal.register,
                load_address: literal.load,
                literal_slot: literal.slot,
            },
            Evidence::UserSeed => Self::UserSeed {},
            Evidence::Candidate { kind: CandidateKind::CodePointer, pointer_address } => {
                Self::CodePointer { pointer_address: *pointer_address }
            }
            Evidence::Candidate { kind: CandidateKind::UnreachedPrologue, .. } => Self::UnreachedPrologue {},
        }
    }
}

/// A call between functions.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FunctionCallShown {
    caller_function_id: String,
    instruction_address: u32,
    instruction_rom_offset: Option<u32>,
    callee_function_id: String,
    /// `direct-call` or `literal-call`.
    kind: &'static str,
}

impl FunctionCallShown {
    pub fn of(call: &FunctionCall) -> Self {
        Self {
            caller_function_id: call.caller.function_id(),
            instruction_address: call.instruction_address,
            instruction_rom_offset: call.instruction_rom_offset,
            callee_function_id: call.callee.function_id(),
            kind: call.kind,
        }
    }
}

/// What looks like a function and no proof reaches.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CandidateSeedShown {
    #[serde(flatten)]
    component: ComponentShown,
    runtime_address: u32,
    mode: &'static str,
    /// `code-pointer` or `unreached-prologue`.
    kind: &'static str,
    /// Address of the word that holds it.
    pointer_address: Option<u32>,
}

impl CandidateSeedShown {
    pub fn of(candidate: &SeedCandidate) -> Self {
        Self {
            component: candidate.component.into(),
            runtime_address: candidate.runtime_address,
            mode: candidate.mode.word(),
            kind: candidate.kind.word(),
            pointer_address: candidate.pointer_address,
        }
    }
}
