//! What can be extracted from a ROM, by canonical selectors only: which bytes, which facts, which file name. Writing
//! them is somebody else's work.

use crate::component::{ComponentId, Processor, Representation};
use crate::refusal::Refusal;
use crate::rom::{Rom, sha256_hex};

/// Names what to extract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// A main program, as stored.
    Program(Processor),
    /// An overlay, as stored.
    Overlay(Processor, u32),
    /// A file by its number.
    File(u32),
    /// A file by its path; a leading slash is allowed.
    Path(String),
}

/// Stored bytes and what is known of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extracted<'a> {
    /// The word of the contract: `arm9`, `arm7`, `arm9-overlay`, `arm7-overlay`, `nitrofs-file`.
    pub component: &'static str,
    /// Relative path to write to, with `/`, made of numbers only: no name from the ROM is in it.
    pub path: String,
    /// The stored bytes.
    pub bytes: &'a [u8],
    /// Their SHA-256, 64 lowercase hexadecimal digits.
    pub sha256: String,
    /// Where they are in the ROM.
    pub rom_offset: u32,
    /// Where they are loaded, for code.
    pub ram_address: Option<u32>,
    /// Who executes them, for code.
    pub processor: Option<Processor>,
    /// The overlay's identifier, for an overlay.
    pub overlay_id: Option<u32>,
    /// The file's number, for files and overlays.
    pub file_id: Option<u32>,
    /// Whether the bytes are compressed.
    pub compressed: bool,
    /// Bytes of the compressed stream as the overlay table names them, for an overlay.
    pub compressed_size: Option<u32>,
}

/// One file of the analysis bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact<'a> {
    /// Relative path within the bundle, with `/`, made of numbers only.
    pub path: String,
    /// `header`, `fnt`, `fat`, `arm9-overlay-table`, `arm7-overlay-table`, `stored` or `runtime`.
    pub role: &'static str,
    /// The component, for stored and runtime bytes.
    pub component: Option<ComponentId>,
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Their SHA-256, 64 lowercase hexadecimal digits.
    pub sha256: String,
    /// Where they are in the ROM; `None` for runtime bytes.
    pub rom_offset: Option<u32>,
    /// Where they are loaded or run, for code.
    pub ram_address: Option<u32>,
}

/// The content of the analysis bundle, its manifest excepted, which is these facts and the model's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundle<'a> {
    /// The files, in a fixed order.
    pub artifacts: Vec<Artifact<'a>>,
    /// Components whose runtime bytes cannot be had, with the code of the problem.
    pub without_runtime: Vec<(ComponentId, &'static str)>,
}

/// The stored bytes that a selector names.
pub fn extract<'a>(rom: &'a Rom, selector: &Selector) -> Result<Extracted<'a>, Refusal> {
    match selector {
        Selector::Program(processor) => program(rom, *processor),
        Selector::Overlay(processor, id) => overlay(rom, *processor, *id),
        Selector::File(id) => file(rom, *id),
        Selector::Path(path) => {
            let wanted = path.strip_prefix('/').unwrap_or(path);
            let mut found = rom.files().iter().filter(|file| file.path.as_deref() == Some(wanted));
            match (found.next(), found.next()) {
                (Some(only), None) => file(rom, only.id),
                (Some(first), Some(second)) => Err(Refusal::new(
                    "unknown-file-id",
                    format!("`{wanted}` names several files, {} and {} among them", first.id, second.id),
                    "Name the file by its fileId instead.",
                )),
                (None, _) => Err(Refusal::new(
                    "unknown-file-id",
                    format!("the ROM has no file `{wanted}`"),
                    "List the files with nds_list_files and take a path or fileId from there.",
                )),
            }
        }
    }
}

fn program(rom: &Rom, processor: Processor) -> Result<Extracted<'_>, Refusal> {
    let word = processor.word();
    let stored = rom.component(ComponentId::main(processor)).and_then(|main| Some((main, main.stored.clone()?)));
    let (main, stored) = stored.ok_or_else(|| {
        let message = format!("the bytes of the {word} program are not in the file");
        Refusal::new("range-out-of-bounds", message, "See `problems` of nds_inspect_rom for what is damaged.")
    })?;
    let bytes = rom.bytes().get(stored.start as usize..stored.end as usize).unwrap_or_default();
    Ok(Extracted {
        component: word,
        path: format!("{word}.bin"),
        bytes,
        sha256: sha256_hex(bytes),
        rom_offset: stored.start,
        ram_address: Some(main.start),
        processor: Some(processor),
        overlay_id: None,
        file_id: None,
        compressed: main.compressed,
        compressed_size: None,
    })
}

fn overlay(rom: &Rom, processor: Processor, id: u32) -> Result<Extracted<'_>, Refusal> {
    let word = processor.word();
    let mut entries = rom.overlays().iter().filter(|entry| entry.processor == processor && entry.id == id);
    let entry = entries.next().ok_or_else(|| {
        let count = rom.overlays().iter().filter(|entry| entry.processor == processor).count();
        let message = format!("the {word} has no overlay {id}; its table has {count} entries");
        Refusal::new("unknown-overlay-id", message, "Take an overlayId from nds_list_overlays.")
    })?;
    let from_file = file(rom, entry.file_id)?;
    Ok(Extracted {
        component: ComponentId::overlay(processor, id).kind(),
        path: format!("overlays/{word}-overlay-{id:04}.bin"),
        ram_address: Some(entry.ram_address),
        processor: Some(processor),
        overlay_id: Some(id),
        compressed: entry.is_compressed(),
        compressed_size: Some(entry.compressed_size),
        ..from_file
    })
}

fn file(rom: &Rom, id: u32) -> Result<Extracted<'_>, Refusal> {
    let file = rom.file(id).ok_or_else(|| {
        let message = format!("the ROM has no file {id}; its FAT has {} entries", rom.files().len());
        Refusal::new("unknown-file-id", message, "Take a fileId from nds_list_files.")
    })?;
    let range = file.range().ok_or_else(|| {
        let message =
            format!("file {id} is said to be at 0x{:x} to 0x{:x}, which the ROM does not have", file.start, file.end);
        Refusal::new("range-out-of-bounds", message, "See `problems` of nds_inspect_rom for what is damaged.")
    })?;
    let bytes = rom.bytes().get(range.start as usize..range.end as usize).unwrap_or_default();
    Ok(Extracted {
        component: "nitrofs-file",
        path: format!("files/file-{id:05}.bin"),
        bytes,
        sha256: sha256_hex(bytes),
        rom_offset: range.start,
        ram_address: None,
        processor: None,
        overlay_id: None,
        file_id: Some(id),
        compressed: false,
        compressed_size: None,
    })
}

/// Everything that an analysis outside needs: the tables, every component as stored, and the runtime bytes of those that
/// are compressed or copied. Files of the file system are not in it.
pub fn bundle(rom: &Rom) -> Result<Bundle<'_>, Refusal> {
    let mut artifacts = Vec::new();
    let mut without_runtime = Vec::new();
    for (role, range) in rom.structures() {
        let (Ok(start), Ok(end)) = (u32::try_from(range.start), u32::try_from(range.end)) else { continue };
        let bytes = rom.bytes().get(start as usize..end as usize).unwrap_or_default();
        artifacts.push(artifact(format!("{role}.bin"), role, None, bytes, Some(start), None));
    }
    for component in rom.components() {
        let (id, name) = (component.id, component.id.name());
        if let Some(stored) = &component.stored {
            let bytes = rom.bytes().get(stored.start as usize..stored.end as usize).unwrap_or_default();
            let (start, ram) = (Some(stored.start), Some(component.start));
            artifacts.push(artifact(format!("stored/{name}.bin"), "stored", Some(id), bytes, start, ram));
        }
        match &component.representation {
            Representation::RomFileBacked => {}
            Representation::Undecodable { problem } => without_runtime.push((id, *problem)),
            Representation::DerivedBlz => {
                let bytes = component.image(rom).ok_or_else(|| {
                    let limit = base::limits::MAX_NDS_DECODED_BYTES;
                    let message = format!("the decoded components have more than {limit} bytes in all");
                    Refusal::new("output-bound-exceeded", message, "Extract the components one by one.")
                })?;
                let path = format!("runtime/{name}.bin");
                artifacts.push(artifact(path, "runtime", Some(id), bytes, None, Some(component.start)));
            }
        }
    }
    Ok(Bundle { artifacts, without_runtime })
}

fn artifact<'a>(
    path: String,
    role: &'static str,
    component: Option<ComponentId>,
    bytes: &'a [u8],
    rom_offset: Option<u32>,
    ram_address: Option<u32>,
) -> Artifact<'a> {
    Artifact { path, role, component, bytes, sha256: sha256_hex(bytes), rom_offset, ram_address }
}
