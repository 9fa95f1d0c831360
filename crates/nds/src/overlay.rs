//! Overlay tables: code that is loaded over other code at run time (GBATEK, "DS Cartridge NitroROM", "OVT").

use base::{OutOfRange, Reader, limits};

use crate::component::Processor;
use crate::header::Table;
use crate::problems::Problems;

/// Bytes of an entry.
pub(crate) const ENTRY_BYTES: u64 = 32;

/// An entry of an overlay table, as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overlay {
    /// Who loads it.
    pub processor: Processor,
    /// Its identifier.
    pub id: u32,
    /// Where it is loaded, an address.
    pub ram_address: u32,
    /// Bytes of its initialised image.
    pub ram_size: u32,
    /// Bytes of its BSS, which follows the image.
    pub bss_size: u32,
    /// Start of its list of static initialisers, an address.
    pub static_init_start: u32,
    /// End of that list.
    pub static_init_end: u32,
    /// The file that holds it.
    pub file_id: u32,
    /// Bytes of the compressed stream; only means something when it is compressed.
    pub compressed_size: u32,
    /// Bit 0: compressed; bit 1: signed.
    pub flags: u8,
    /// Where the entry itself is, in bytes from the start of the ROM.
    pub entry_offset: u32,
}

impl Overlay {
    /// Whether the stored bytes are a BLZ stream.
    pub const fn is_compressed(&self) -> bool {
        self.flags & 1 != 0
    }

    /// End of the initialised image in memory; above 2^32 when the range wraps.
    pub const fn ram_end(&self) -> u64 {
        self.ram_address as u64 + self.ram_size as u64
    }

    /// End of the BSS in memory; above 2^32 when the range wraps.
    pub const fn bss_end(&self) -> u64 {
        self.ram_end() + self.bss_size as u64
    }
}

/// Reads one processor's table. Entries that the file does not have become a problem.
pub(crate) fn parse(rom: &[u8], table: Table, processor: Processor, problems: &mut Problems) -> Vec<Overlay> {
    let rom_len = rom.len() as u64;
    let at = u64::from(table.offset);
    let field: u64 = match processor {
        Processor::Arm9 => 0x50,
        Processor::Arm7 => 0x58,
    };
    let word = processor.word();
    if table.size == 0 {
        return Vec::new();
    }
    if !u64::from(table.size).is_multiple_of(ENTRY_BYTES) {
        problems.at("overlay-table-size", field + 4, || {
            format!("the {word} overlay table has {} bytes, no multiple of 32: its last entry is left out", table.size)
        });
    }
    let mut count = table.size / 32;
    if count > limits::MAX_NDS_OVERLAYS {
        problems.at("overlay-table-too-long", field + 4, || {
            format!(
                "the {word} overlay table has {count} entries; those after {} are left out",
                limits::MAX_NDS_OVERLAYS
            )
        });
        count = limits::MAX_NDS_OVERLAYS;
    }
    let there = u32::try_from(rom_len.saturating_sub(at) / ENTRY_BYTES).unwrap_or(u32::MAX);
    if count > there {
        problems.at("overlay-table-out-of-range", field, || {
            format!(
                "the {word} overlay table is said to be at 0x{at:x} with {count} entries, but the file of {rom_len} bytes ends after {there} of them"
            )
        });
        count = there;
    }
    let Ok(mut reader) = Reader::new(rom).at(at) else { return Vec::new() };
    (0..count).map_while(|_| entry(&mut reader, processor).ok()).collect()
}

fn entry(at: &mut Reader<'_>, processor: Processor) -> Result<Overlay, OutOfRange> {
    let entry_offset = u32::try_from(at.position()).unwrap_or(u32::MAX);
    let (id, ram_address, ram_size, bss_size) = (at.u32()?, at.u32()?, at.u32()?, at.u32()?);
    let (static_init_start, static_init_end, file_id) = (at.u32()?, at.u32()?, at.u32()?);
    let last = at.u32()?;
    Ok(Overlay {
        processor,
        id,
        ram_address,
        ram_size,
        bss_size,
        static_init_start,
        static_init_end,
        file_id,
        compressed_size: last & 0x00ff_ffff,
        flags: (last >> 24) as u8,
        entry_offset,
    })
}
