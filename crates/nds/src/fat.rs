//! The file allocation table, the authority for byte ranges (GBATEK, "DS Cartridge NitroROM and NitroARC File Systems").

use std::ops::Range;

use base::{Reader, limits};

use crate::header::Table;
use crate::problems::Problems;

/// Bytes of an entry: start and end, both offsets in the ROM.
pub(crate) const ENTRY_BYTES: u64 = 8;

/// A file: what the FAT says of its bytes and the FNT of its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its number in the FAT.
    pub id: u32,
    /// Its path without a leading slash; `None` where the FNT does not name it, as with overlays.
    pub path: Option<String>,
    /// Start of its bytes as stored.
    pub start: u32,
    /// End of its bytes as stored.
    pub end: u32,
    pub(crate) rom_len: u64,
}

impl File {
    /// Its bytes in the ROM; `None` when the stored range is reversed or passes the end of the file.
    pub fn range(&self) -> Option<Range<u32>> {
        (self.start <= self.end && u64::from(self.end) <= self.rom_len).then_some(self.start..self.end)
    }

    /// Its length by the FAT; 0 for a reversed range.
    pub fn size(&self) -> u32 {
        self.end.saturating_sub(self.start)
    }
}

/// Reads the table. What is wrong with it becomes problems; what is right stays usable.
pub(crate) fn parse(rom: &[u8], table: Table, problems: &mut Problems) -> Vec<File> {
    let rom_len = rom.len() as u64;
    let at = u64::from(table.offset);
    if table.size == 0 {
        return Vec::new();
    }
    if !u64::from(table.size).is_multiple_of(ENTRY_BYTES) {
        problems.at("fat-size", 0x4c, || {
            format!("the FAT has {} bytes, no multiple of 8: its last entry is cut off and left out", table.size)
        });
    }
    let mut count = table.size / 8;
    if count > limits::MAX_NDS_FILES {
        problems.at("fat-too-many", 0x4c, || {
            format!("the FAT has {count} entries; only {} can have names, the rest are left out", limits::MAX_NDS_FILES)
        });
        count = limits::MAX_NDS_FILES;
    }
    let there = u32::try_from(rom_len.saturating_sub(at) / ENTRY_BYTES).unwrap_or(u32::MAX);
    if count > there {
        problems.at("fat-out-of-range", 0x48, || {
            format!(
                "the FAT is said to be at 0x{at:x} with {count} entries, but the file of {rom_len} bytes ends after {there} of them"
            )
        });
        count = there;
    }
    let Ok(mut reader) = Reader::new(rom).at(at) else { return Vec::new() };
    let mut files = Vec::with_capacity(count as usize);
    for id in 0..count {
        let (Ok(start), Ok(end)) = (reader.u32(), reader.u32()) else { break };
        let file = File { id, path: None, start, end, rom_len };
        let place = at + u64::from(id) * ENTRY_BYTES;
        if start > end {
            problems.at("fat-entry-reversed", place, || {
                format!("file {id} ends at 0x{end:x}, before it begins at 0x{start:x}: it has no bytes")
            });
        } else if file.range().is_none() {
            problems.at("fat-entry-past-end", place, || {
                format!(
                    "file {id} is said to be at 0x{start:x} to 0x{end:x}, past the end of the file at 0x{rom_len:x}"
                )
            });
        }
        files.push(file);
    }
    overlaps(&files, at, problems);
    files
}

/// Notes files that share some bytes but not all: one of the two is wrong. Equal ranges are files stored once.
fn overlaps(files: &[File], table: u64, problems: &mut Problems) {
    let mut ranges: Vec<(Range<u32>, u32)> = files
        .iter()
        .filter_map(|file| file.range().filter(|range| !range.is_empty()).map(|range| (range, file.id)))
        .collect();
    ranges.sort_by_key(|(range, id)| (range.start, range.end, *id));
    let mut furthest: Option<(Range<u32>, u32)> = None;
    for (range, id) in ranges {
        if let Some((before, other)) = &furthest
            && range.start < before.end
            && range != *before
        {
            problems.at("fat-overlap", table + u64::from(id) * ENTRY_BYTES, || {
                format!(
                    "file {id} at 0x{:x} to 0x{:x} and file {other} at 0x{:x} to 0x{:x} overlap",
                    range.start, range.end, before.start, before.end
                )
            });
        }
        if furthest.as_ref().is_none_or(|(before, _)| range.end > before.end) {
            furthest = Some((range, id));
        }
    }
}
