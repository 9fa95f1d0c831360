//! Guarded rebuilds: a manifest of changes and the exact ROM that it is about become a plan, the plan becomes a new image, and
//! the image is judged against both before anybody may have it. Nothing is read or written here; the caller brings files in.
//!
//! The order is that of the contract: guards, plan, copy, changes, parsing again, every changed byte accounted for, evidence.

pub mod bps;
mod evidence;
mod json;
mod layout;
mod manifest;
mod names;
mod plan;
mod target;
mod verify;
#[cfg(test)]
mod words;

pub use evidence::{Evidence, check_evidence, evidence, resolved, verification};
pub use layout::{Layout, Segment};
pub use manifest::{ArtifactRef, Locator, Manifest, Operation, Target, parse};
pub use plan::{Patch, Plan, Planned, Source, build_id, plan};
pub use verify::{Report, apply, verify};

/// Version of the rules that a rebuild follows.
pub const REBUILD_CONTRACT: u32 = 1;
/// Version of the BLZ encoder: other streams, other identities.
pub const ENCODER_CONTRACT: u32 = 2;
/// The encoder of builds that were recorded before ours; its streams are judged by what they decode to.
pub const EARLIER_ENCODER_CONTRACT: u32 = 1;
