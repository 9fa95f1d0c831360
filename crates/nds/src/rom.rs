//! The canonical model of one ROM file: read once, checked, and shared by everything that asks about it.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use base::{Budget, Problem, Reader, limits};
use sha2::{Digest, Sha256};

use crate::arm9::{Autoload, ModuleParams, SecureArea};
use crate::build::{self, Built};
use crate::component::{Component, ComponentId, Processor};
use crate::dsi::{self, DsiHeader};
use crate::fat::{self, File};
use crate::fnt;
use crate::header::{HEADER_BYTES, Header};
use crate::overlay::{self, Overlay};
use crate::problems::Problems;
use crate::refusal::Refusal;

/// A ROM and all that is known of its structure.
#[derive(Debug)]
pub struct Rom {
    bytes: Vec<u8>,
    sha256: String,
    header: Header,
    dsi: Option<DsiHeader>,
    secure_area: SecureArea,
    files: Vec<File>,
    directories: usize,
    overlays: Vec<Overlay>,
    built: [Built; 2],
    components: Vec<Component>,
    index: HashMap<ComponentId, usize>,
    overlay_files: HashSet<u32>,
    by_start: Vec<FileSpan>,
    problems: Vec<Problem>,
    decoded_left: AtomicU64,
}

/// A file with bytes, in the order of starts, with the furthest end among it and those before it.
#[derive(Debug)]
struct FileSpan {
    start: u32,
    end: u32,
    reach: u32,
    id: u32,
}

impl Rom {
    /// Reads a ROM. Damage becomes problems; only a file without any model is refused: one that is too small for a header, too
    /// large for a card, or without an ARM9 program where the checksum of the header says nothing for it either.
    pub fn parse(bytes: Vec<u8>) -> Result<Self, Refusal> {
        let size = bytes.len() as u64;
        if size > limits::MAX_NDS_ROM_BYTES {
            let message = format!("the file has {size} bytes; the largest card holds {}", limits::MAX_NDS_ROM_BYTES);
            return Err(Refusal::new("invalid-rom", message, "Name a Nintendo DS ROM (.nds)."));
        }
        let header = Header::parse(&bytes).map_err(|_| {
            let message = format!("the file has {size} bytes; the header of a ROM alone has {HEADER_BYTES}");
            Refusal::new("invalid-rom", message, "Name a complete Nintendo DS ROM (.nds).").at(size)
        })?;
        if !header.is_sealed(&bytes) {
            check_arm9(&header, size)?;
        }

        let mut problems = Problems::default();
        header.check(&bytes, &mut problems);
        let dsi = dsi::parse(&bytes, &header, &mut problems);
        let secure_area = SecureArea::of(&bytes, &header);
        let mut files = fat::parse(&bytes, header.fat, &mut problems);
        let directories = fnt::name_files(&bytes, header.fnt, &mut files, &mut problems);
        let mut overlays = overlay::parse(&bytes, header.arm9_overlays, Processor::Arm9, &mut problems);
        overlays.extend(overlay::parse(&bytes, header.arm7_overlays, Processor::Arm7, &mut problems));

        let mut decoded = Budget::new(limits::MAX_NDS_DECODED_BYTES);
        let mut builder = build::Builder {
            rom: &bytes,
            header: &header,
            dsi: dsi.as_ref(),
            secure_area,
            files: &files,
            problems: &mut problems,
            decoded: &mut decoded,
            components: Vec::new(),
        };
        let built = [builder.program(Processor::Arm9), builder.program(Processor::Arm7)];
        builder.overlays(&overlays);
        let mut components = builder.components;
        components.sort_by_key(|component| component.id);

        let index = components.iter().enumerate().map(|(index, component)| (component.id, index)).collect();
        let overlay_files = overlays.iter().map(|overlay| overlay.file_id).collect();
        let sha256 = sha256_hex(&bytes);
        let by_start = spans(&files);
        Ok(Self {
            bytes,
            sha256,
            header,
            dsi,
            secure_area,
            files,
            directories,
            overlays,
            built,
            components,
            index,
            overlay_files,
            by_start,
            problems: problems.into_vec(),
            decoded_left: AtomicU64::new(decoded.left()),
        })
    }

    /// The whole file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// SHA-256 of the whole file, 64 lowercase hexadecimal digits: the ROM's identity.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The DSi header, when the unit code says that there is one and the file has it.
    pub fn dsi(&self) -> Option<&DsiHeader> {
        self.dsi.as_ref()
    }

    /// The state of the secure area.
    pub fn secure_area(&self) -> SecureArea {
        self.secure_area
    }

    /// Every file of the FAT, in the order of numbers, those of overlays included.
    pub fn files(&self) -> &[File] {
        &self.files
    }

    /// The file with a number.
    pub fn file(&self, id: u32) -> Option<&File> {
        self.files.get(usize::try_from(id).ok()?)
    }

    /// How many directories the FNT names and reaches, the root included; 0 without an FNT.
    pub fn directories(&self) -> usize {
        self.directories
    }

    /// Every overlay, those of the ARM9 first, in the order of the tables.
    pub fn overlays(&self) -> &[Overlay] {
        &self.overlays
    }

    /// The module parameters of a processor's main program, when it was made with the SDK.
    pub fn module_params(&self, processor: Processor) -> Option<&ModuleParams> {
        self.built(processor).params.as_ref()
    }

    /// The autoload blocks of a processor's main program, in the order of its list.
    pub fn autoloads(&self, processor: Processor) -> &[Autoload] {
        &self.built(processor).autoloads
    }

    /// Every component, in the order of identities: the ARM9's main program, overlays, autoload blocks and DSi program, then
    /// the ARM7's.
    pub fn components(&self) -> &[Component] {
        &self.components
    }

    /// What is wrong with the ROM.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The component with an identity; `None` where the ROM has none, or where its bytes are out of range.
    pub fn component(&self, id: ComponentId) -> Option<&Component> {
        self.components.get(*self.index.get(&id)?)
    }

    /// Whether a file is part of the file system: it has a name, or no overlay is made of it.
    pub fn is_nitrofs(&self, file: &File) -> bool {
        file.path.is_some() || !self.overlay_files.contains(&file.id)
    }

    /// The files that own the byte at an offset, in the order of numbers.
    pub fn files_at(&self, offset: u32) -> impl Iterator<Item = &File> {
        let after = self.by_start.partition_point(|span| span.start <= offset);
        let before = self.by_start.get(..after).unwrap_or_default().iter().rev();
        let owners = before.take_while(|span| span.reach > offset).filter(|span| span.end > offset);
        let ids: BTreeSet<u32> = owners.map(|span| span.id).collect();
        ids.into_iter().filter_map(|id| self.file(id))
    }

    /// The structures of the ROM that have bytes in the file, with the contract's words for them.
    pub fn structures(&self) -> Vec<(&'static str, Range<u64>)> {
        let size = self.bytes.len() as u64;
        // Homebrew puts code behind the short header and says so in its size; anything stranger is not believed.
        let header = u64::from(self.header.header_size).clamp(HEADER_BYTES, 0x4000);
        let header = header.min(u64::from(self.header.arm9.rom_offset).max(HEADER_BYTES));
        let all = [
            ("header", 0..header),
            ("fnt", self.header.fnt.rom()),
            ("fat", self.header.fat.rom()),
            ("arm9-overlay-table", self.header.arm9_overlays.rom()),
            ("arm7-overlay-table", self.header.arm7_overlays.rom()),
        ];
        all.into_iter()
            .map(|(kind, range)| (kind, range.start.min(size)..range.end.min(size)))
            .filter(|(_, range)| !range.is_empty())
            .collect()
    }

    /// Takes bytes from the bound on decoded images; `None` when there are not enough left.
    pub(crate) fn charge_decoded(&self, bytes: u64) -> Option<()> {
        let take = |left: u64| left.checked_sub(bytes);
        self.decoded_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).ok().map(|_| ())
    }

    fn built(&self, processor: Processor) -> &Built {
        let [arm9, arm7] = &self.built;
        match processor {
            Processor::Arm9 => arm9,
            Processor::Arm7 => arm7,
        }
    }
}

/// Refuses what has no ARM9 program: without bytes, or without addresses for them.
fn check_arm9(header: &Header, size: u64) -> Result<(), Refusal> {
    if header.arm9.size == 0 {
        let message = "the header names no ARM9 program, and its checksum is wrong".to_owned();
        return Err(Refusal::new("invalid-rom", message, "Name a Nintendo DS ROM (.nds).").at(0x2c));
    }
    let (rom, ram_end) = (header.arm9.rom(), header.arm9.ram_end());
    if rom.end > size {
        let message = format!(
            "the ARM9 program is said to be at 0x{:x} to 0x{:x}, but the file ends at 0x{size:x}",
            rom.start, rom.end
        );
        return Err(
            Refusal::new("range-out-of-bounds", message, "Check that this is a complete Nintendo DS ROM.").at(0x20)
        );
    }
    if ram_end > 1 << 32 {
        let message = format!(
            "the ARM9 program is said to be loaded at 0x{:x} with {} bytes, past the end of the address space",
            header.arm9.ram_address, header.arm9.size
        );
        return Err(Refusal::new("range-out-of-bounds", message, "Check that this is a Nintendo DS ROM.").at(0x28));
    }
    Ok(())
}

fn spans(files: &[File]) -> Vec<FileSpan> {
    let mut spans: Vec<FileSpan> = files
        .iter()
        .filter_map(|file| file.range().map(|range| (range, file.id)))
        .filter(|(range, _)| !range.is_empty())
        .map(|(range, id)| FileSpan { start: range.start, end: range.end, reach: range.end, id })
        .collect();
    spans.sort_by_key(|span| (span.start, span.id));
    let mut reach = 0;
    for span in &mut spans {
        reach = reach.max(span.end);
        span.reach = reach;
    }
    spans
}

/// SHA-256 of bytes as 64 lowercase hexadecimal digits.
pub fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A part of the ROM's bytes; empty where the range does not lie in them.
pub(crate) fn part(rom: &[u8], range: Range<u64>) -> &[u8] {
    Reader::new(rom).slice(range).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle;
    use crate::testing::RomBuilder;

    #[test]
    fn decoded_images_are_kept_up_to_a_bound() {
        let id = |overlay| ComponentId::overlay(Processor::Arm9, overlay);
        let mut rom = Rom::parse(RomBuilder::everything().build()).unwrap();
        // Overlay 1 is the first compressed one and has 0x400 bytes; the ARM7's has 0x300, of which one is not left.
        rom.decoded_left = AtomicU64::new(0x400 + 0x2ff);
        assert_eq!(rom.component(id(1)).unwrap().image(&rom).map(<[u8]>::len), Some(0x400));
        let arm7 = ComponentId::overlay(Processor::Arm7, 0);
        assert_eq!(rom.component(arm7).unwrap().image(&rom), None);
        assert_eq!(bundle(&rom).unwrap_err().category, "output-bound-exceeded");
        assert!(rom.component(id(1)).unwrap().image(&rom).is_some(), "what is kept costs nothing again");
    }
}
