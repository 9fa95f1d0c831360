//! The tools that name the platform: registers, KERNAL entries, system variables.

mod apply_c64_symbol_profile;
mod get_c64_symbol_profile;
pub mod profile;

use super::{Entry, Group};

/// The group.
pub const GROUP: Group = Group {
    name: "c64-symbols",
    purpose: "Names of the C64's registers, KERNAL entries and system variables, for a program in Ghidra.",
    // A workspace is needed only when a call names a file.
    files: false,
    tools: &[
        Entry::of::<get_c64_symbol_profile::GetC64SymbolProfile>(),
        Entry::of::<apply_c64_symbol_profile::ApplyC64SymbolProfile>(),
    ],
};
