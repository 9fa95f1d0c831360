//! The symbol profile in the form that Ghidra's plug-in takes (schema version 1).

use c64::symbols::{MEMORY_SOURCE, Profile};
use schemars::JsonSchema;
use serde::Serialize;

/// The profile.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ProfileView {
    /// Version of this form.
    schema_version: u32,
    /// Name of the profile.
    id: &'static str,
    /// Its version.
    version: &'static str,
    /// What it is, and its sources.
    description: String,
    /// Names of addresses.
    pub symbols: Vec<SymbolView>,
    /// Names of values.
    pub equates: Vec<EquateView>,
    /// None.
    comments: Vec<Comment>,
    /// Blocks of memory.
    memory_blocks: Vec<MemoryBlockView>,
}

/// A comment; the profile has none.
#[derive(Debug, Serialize, JsonSchema)]
struct Comment {}

/// A name of an address.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SymbolView {
    address: String,
    name: String,
    namespace: &'static str,
    kind: &'static str,
    primary: bool,
    source_note: &'static str,
}

/// A name of a value.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EquateView {
    name: String,
    value: u8,
    description: String,
    /// Places that use it; none.
    applications: Vec<String>,
}

/// A block of memory.
#[derive(Debug, Serialize, JsonSchema)]
struct MemoryBlockView {
    name: &'static str,
    start: String,
    length: u32,
    fill: u8,
    overlay: bool,
    read: bool,
    write: bool,
    execute: bool,
    comment: String,
}

/// The profile, made anew.
pub fn view() -> ProfileView {
    let profile = Profile::new();
    let symbols = profile.symbols.into_iter().map(|symbol| SymbolView {
        address: format!("RAM:{:04x}", symbol.address),
        name: symbol.name,
        namespace: symbol.namespace,
        kind: if symbol.entry_point { "entry_point" } else { "label" },
        primary: false,
        source_note: symbol.source,
    });
    let equates = profile.equates.into_iter().map(|equate| EquateView {
        name: equate.name,
        value: equate.value,
        description: format!("{} ({})", equate.description, equate.source),
        applications: Vec::new(),
    });
    let memory_blocks = profile.memory_blocks.iter().map(|block| MemoryBlockView {
        name: block.name,
        start: format!("{:04x}", block.start),
        length: block.length,
        fill: 0,
        overlay: block.overlay,
        read: true,
        write: block.write,
        execute: block.execute,
        comment: format!("{} ({MEMORY_SOURCE})", block.comment),
    });
    ProfileView {
        schema_version: 1,
        id: profile.id,
        version: profile.version,
        description: profile.description,
        symbols: symbols.collect(),
        equates: equates.collect(),
        comments: Vec::new(),
        memory_blocks: memory_blocks.collect(),
    }
}
