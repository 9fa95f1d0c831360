//! Nintendo DS ROMs: one canonical model per file, and everything that can be proven from it without running it.
//!
//! The file allocation table (FAT) is the authority for byte ranges, the file name table (FNT) for names. Stored bytes,
//! initialised runtime bytes and zero-initialised memory (BSS) are three different things and never mixed. Field
//! layouts are those of GBATEK, "DS Cartridge Header", "DS Cartridge NitroROM and NitroARC File Systems" and "DSi
//! Cartridge Header", unless a file says otherwise.

pub mod analysis;
mod arm9;
pub mod blz;
mod build;
mod component;
mod crc;
mod dsi;
mod fat;
mod fnt;
mod header;
mod overlay;
mod pattern;
mod problems;
pub mod rebuild;
mod refusal;
mod resolve;
mod rom;
mod search;
mod select;
#[cfg(feature = "testing")]
pub mod testing;
mod watch;

pub use arm9::{Autoload, ModuleParams, SecureArea};
pub use component::{Component, ComponentId, Part, Processor, Representation};
pub use crc::{crc16, crc32};
pub use dsi::{DsiHeader, Modcrypt, TwlProgram};
pub use fat::File;
pub use header::{Header, Program, Table};
pub use overlay::Overlay;
pub use pattern::{Endian, Pattern, PatternSpec, Searcher};
pub use refusal::Refusal;
pub use resolve::{AddressResolution, AddressStatus, Candidate, CandidateRepresentation, OffsetMatch};
pub use rom::{Rom, sha256_hex};
pub use search::{Hit, HitContext, SearchRequest, SearchResult, SearchScope, search};
pub use select::{Artifact, Bundle, Extracted, Selector, bundle, extract};
pub use watch::{Failure, Progress, UNWATCHED, Watcher};
