//! What a rebuild appends and where: files, then names, allocation table and overlay tables; and the header that names them.

use std::collections::BTreeMap;
use std::ops::Range;

use base::limits;

use super::names::{Named, Owner};
use super::plan::{Moving, Patch};
use super::target::refuse;
use crate::component::Processor;
use crate::crc::crc16;
use crate::header::Table;
use crate::overlay::ENTRY_BYTES;
use crate::refusal::Refusal;
use crate::rom::{Rom, sha256_hex};

/// Alignment of the tail and of every file in it.
const FILE_ALIGNMENT: u64 = 0x200;
/// Alignment of the tables.
const TABLE_ALIGNMENT: u64 = 4;
/// Bytes of the smallest card.
const SMALLEST_CARD: u64 = 128 * 1024;
/// Largest capacity code, 512 MiB.
const LARGEST_CODE: u8 = 12;
/// The part of the header that its checksum covers, and the checksum.
const CHECKED: usize = 0x15e;

/// A part of the tail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// `relocated-file`, `new-file`, `fnt`, `fat`, `arm9-overlay-table` or `arm7-overlay-table`.
    pub kind: &'static str,
    /// The file's number.
    pub owner: Option<u32>,
    /// What its start is a multiple of, in bytes.
    pub alignment: u64,
    /// Where it is in the result.
    pub range: Range<u32>,
    /// SHA-256 of its bytes.
    pub sha256: String,
}

/// What a rebuild appends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Where the tail begins.
    pub tail_start: u64,
    /// End of what is used.
    pub used_size: u64,
    /// Bytes of the result.
    pub final_size: u64,
    /// The capacity code of the header.
    pub capacity: u8,
    /// The parts, in order.
    pub segments: Vec<Segment>,
}

/// What the layout is made from.
pub(super) struct Input<'a> {
    pub rom: &'a Rom,
    pub moving: &'a BTreeMap<u32, Moving>,
    pub added: &'a [&'a [u8]],
    pub named: &'a Named,
    pub recompressed: &'a BTreeMap<(Processor, u32), u32>,
    pub pad: bool,
}

struct Tail<'a> {
    at: u64,
    segments: Vec<Segment>,
    patches: &'a mut Vec<Patch>,
}

impl Tail<'_> {
    fn push(
        &mut self,
        kind: &'static str,
        owner: Option<u32>,
        alignment: u64,
        bytes: Vec<u8>,
    ) -> Result<Range<u32>, Refusal> {
        let start = self.at.next_multiple_of(alignment);
        let end = start + bytes.len() as u64;
        if end > limits::MAX_NDS_ROM_BYTES {
            let message = format!("the result would have more than {} bytes", limits::MAX_NDS_ROM_BYTES);
            return Err(refuse("rom-capacity-exceeded", message, "No card is larger; add less."));
        }
        let range = start as u32..end as u32;
        self.segments.push(Segment { kind, owner, alignment, range: range.clone(), sha256: sha256_hex(&bytes) });
        self.patches.push(Patch { start: range.start, bytes, kind, owner });
        self.at = end;
        Ok(range)
    }
}

/// Places everything, sets the ranges of `files`, and adds the patches.
pub(super) fn make(
    input: &Input<'_>,
    files: &mut Vec<Range<u32>>,
    patches: &mut Vec<Patch>,
) -> Result<Layout, Refusal> {
    let rom = input.rom;
    let header = rom.header();
    check_header(rom)?;
    let source_size = rom.bytes().len() as u64;
    let tail_start = source_size.next_multiple_of(FILE_ALIGNMENT);
    let mut tail = Tail { at: tail_start, segments: Vec::new(), patches };
    for (id, moving) in input.moving {
        let range = tail.push("relocated-file", Some(*id), FILE_ALIGNMENT, moving.bytes.clone())?;
        if let Some(file) = files.get_mut(*id as usize) {
            *file = range;
        }
    }
    for owner in &input.named.appended {
        let id = files.len() as u32;
        let range = match owner {
            Owner::New(index) => {
                let bytes = input.added.get(*index).copied().unwrap_or_default().to_vec();
                tail.push("new-file", Some(id), FILE_ALIGNMENT, bytes)?
            }
            Owner::Moved(earlier) => files.get(*earlier as usize).cloned().unwrap_or_default(),
        };
        files.push(range);
    }
    let mut regions = [header.fnt, header.fat, header.arm9_overlays, header.arm7_overlays];
    let [fnt, fat, arm9, arm7] = &mut regions;
    if !input.added.is_empty() {
        *fnt = table(&tail.push("fnt", None, TABLE_ALIGNMENT, input.named.fnt.clone())?);
    }
    *fat = table(&tail.push("fat", None, TABLE_ALIGNMENT, allocation(rom, files)?)?);
    for (processor, region, kind) in
        [(Processor::Arm9, arm9, "arm9-overlay-table"), (Processor::Arm7, arm7, "arm7-overlay-table")]
    {
        if input.recompressed.keys().any(|(touched, _)| *touched == processor) {
            let bytes = overlay_table(rom, *region, processor, input.recompressed)?;
            *region = table(&tail.push(kind, None, TABLE_ALIGNMENT, bytes)?);
        }
    }
    let used_size = tail.at;
    check_growth(used_size - source_size)?;
    let segments = tail.segments;
    let capacity = (0..=LARGEST_CODE).find(|code| SMALLEST_CARD << code >= used_size).unwrap_or(LARGEST_CODE);
    let final_size = if input.pad { SMALLEST_CARD << capacity } else { used_size };
    seal(rom, patches, |bytes| {
        let mut owned = vec![(0x14, vec![capacity])];
        owned.push((
            0x40,
            regions.iter().flat_map(|table| [table.offset, table.size]).flat_map(u32::to_le_bytes).collect(),
        ));
        owned.push((0x80, (used_size as u32).to_le_bytes().to_vec()));
        bytes.extend(owned);
    })?;
    Ok(Layout { tail_start, used_size, final_size, capacity, segments })
}

fn check_growth(appended: u64) -> Result<(), Refusal> {
    let most = limits::MAX_NDS_GROWTH_BYTES;
    if appended > most {
        let message = format!("{appended} bytes would be appended; {most} are allowed");
        return Err(refuse("rebuild-layout-overflow", message, "Add or replace less at once."));
    }
    Ok(())
}

fn check_header(rom: &Rom) -> Result<(), Refusal> {
    if rom.header().is_sealed(rom.bytes()) {
        return Ok(());
    }
    let message = "the checksum of the source's header is wrong, so the header cannot be written anew".to_owned();
    Err(refuse("header-checksum-invalid", message, "Use the undamaged ROM."))
}

/// The header's size of the ARM9 program.
pub(super) fn program_size(rom: &Rom, size: u32, patches: &mut Vec<Patch>) -> Result<(), Refusal> {
    check_header(rom)?;
    seal(rom, patches, |bytes| bytes.push((0x2c, size.to_le_bytes().to_vec())))
}

/// Writes fields of the header and its checksum, over what earlier patches make of it.
pub(super) fn seal(
    rom: &Rom,
    patches: &mut Vec<Patch>,
    fields: impl FnOnce(&mut Vec<(usize, Vec<u8>)>),
) -> Result<(), Refusal> {
    let mut owned: Vec<(usize, Vec<u8>)> = Vec::new();
    patches.retain(|patch| {
        let ours = patch.kind == "header";
        if ours && patch.start as usize != CHECKED {
            owned.push((patch.start as usize, patch.bytes.clone()));
        }
        !ours
    });
    fields(&mut owned);
    let mut header = rom.bytes().get(..CHECKED).unwrap_or_default().to_vec();
    for (at, bytes) in &owned {
        let place = header.get_mut(*at..*at + bytes.len()).filter(|_| !bytes.is_empty());
        let lost = || refuse("header-rebuild-failed", "the header is too short".to_owned(), "Use a complete ROM.");
        place.ok_or_else(lost)?.copy_from_slice(bytes);
    }
    owned.push((CHECKED, crc16(&header).to_le_bytes().to_vec()));
    patches.extend(owned.into_iter().map(|(at, bytes)| Patch { start: at as u32, bytes, kind: "header", owner: None }));
    Ok(())
}

fn table(range: &Range<u32>) -> Table {
    Table { offset: range.start, size: range.end - range.start }
}

fn allocation(rom: &Rom, files: &[Range<u32>]) -> Result<Vec<u8>, Refusal> {
    let failed = |message: String| refuse("fat-rebuild-failed", message, "See `problems` of nds_inspect_rom.");
    if let Some(problem) = rom.problems().iter().find(|problem| problem.code.starts_with("fat-")) {
        return Err(failed(format!("the FAT is damaged: {}", problem.message)));
    }
    let bytes: Vec<u8> = files.iter().flat_map(|range| [range.start, range.end]).flat_map(u32::to_le_bytes).collect();
    if bytes.len() as u64 > limits::MAX_NDS_TABLE_BYTES {
        return Err(failed(format!(
            "the FAT would have {} bytes; {} are allowed",
            bytes.len(),
            limits::MAX_NDS_TABLE_BYTES
        )));
    }
    Ok(bytes)
}

fn overlay_table(
    rom: &Rom,
    region: Table,
    processor: Processor,
    recompressed: &BTreeMap<(Processor, u32), u32>,
) -> Result<Vec<u8>, Refusal> {
    let failed =
        |message: String| refuse("overlay-table-rebuild-failed", message, "See `problems` of nds_inspect_rom.");
    if let Some(problem) = rom.problems().iter().find(|problem| problem.code.starts_with("overlay-table-")) {
        return Err(failed(format!("the overlay table is damaged: {}", problem.message)));
    }
    let range = region.rom();
    let mut bytes = rom.bytes().get(range.start as usize..range.end as usize).unwrap_or_default().to_vec();
    for overlay in rom.overlays().iter().filter(|overlay| overlay.processor == processor) {
        let Some(size) = recompressed.get(&(processor, overlay.id)) else { continue };
        let record = (u64::from(overlay.entry_offset).saturating_sub(range.start)) as usize;
        let place = bytes.get_mut(record + ENTRY_BYTES as usize - 4..record + ENTRY_BYTES as usize);
        let word = (*size & 0x00ff_ffff) | u32::from(overlay.flags) << 24;
        place.ok_or_else(|| failed("the record is cut off".to_owned()))?.copy_from_slice(&word.to_le_bytes());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::RomBuilder;

    /// Limits that an input reaches with more than a hundred megabytes only.
    #[test]
    fn what_outgrows_a_card_or_its_share_is_refused() {
        let mut patches = Vec::new();
        let at = limits::MAX_NDS_ROM_BYTES - 0x200;
        let mut tail = Tail { at, segments: Vec::new(), patches: &mut patches };
        assert_eq!(tail.push("new-file", None, 0x200, vec![1; 0x200]).unwrap(), at as u32..(at + 0x200) as u32);
        assert_eq!(tail.push("new-file", None, 0x200, vec![1]).unwrap_err().category, "rom-capacity-exceeded");
        assert_eq!((tail.segments.len(), patches.len()), (1, 1));
        assert!(check_growth(limits::MAX_NDS_GROWTH_BYTES).is_ok());
        let refusal = check_growth(limits::MAX_NDS_GROWTH_BYTES + 1).unwrap_err();
        assert_eq!(refusal.category, "rebuild-layout-overflow");
    }

    /// No ROM that was parsed has a shorter header, and every field lies in it: what a fault in the layout itself would bring about.
    #[test]
    fn a_field_outside_the_header_is_refused() {
        let rom = Rom::parse(RomBuilder::default().build()).unwrap();
        let mut patches = Vec::new();
        let refusal = seal(&rom, &mut patches, |fields| fields.push((CHECKED - 1, vec![0; 2]))).unwrap_err();
        assert_eq!(refusal.category, "header-rebuild-failed");
        seal(&rom, &mut patches, |fields| fields.push((CHECKED - 2, vec![0; 2]))).unwrap();
        assert_eq!(patches.len(), 2, "the field and the checksum");
    }
}
