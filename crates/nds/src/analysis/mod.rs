//! Proofs about code, read from the ROM alone: what is decoded, what is reached, who refers to whom, which addresses are
//! functions. Nothing is guessed: ambiguity is returned as ambiguity, and a negative counts only where a scan was complete.

mod candidates;
mod cfg;
mod coverage;
mod function;
mod functions;
mod graph;
mod linear;
mod references;
mod scan;
mod source;
mod tables;
mod xrefs;

pub use candidates::{CandidateKind, SeedCandidate};
pub use cfg::{
    Block, BlockStop, Call, CfgBudget, CfgTotals, CodeId, ControlFlow, ControlFlowRequest, Edge, EdgeKind,
    UnresolvedEdge, analyze_control_flow, component_words,
};
pub use coverage::Coverage;
pub use function::{FunctionAnalysis, FunctionRequest, analyze_function};
pub use functions::{
    CallEvidence, Discovery, DiscoveryBudget, DiscoveryRequest, DiscoveryTotals, Evidence, Function, FunctionCall,
    FunctionCfg, FunctionEntry, Page, Paged, discover_functions,
};
pub use linear::{Disassembly, Instruction, LinearRequest, disassemble_range};
pub use references::{Reference, ReferenceKind, ReferenceSource, ReferenceTarget, References, list_references};
pub use scan::{EvidenceKinds, Root, Seed};
pub use source::{CodeSource, ModeChoice, Place, Scope, SourceStatus, TargetResolution, Where};
pub use xrefs::{ScanTotals, UnresolvedSite, UnresolvedSites, XrefTarget, Xrefs, XrefsRequest, find_xrefs};
