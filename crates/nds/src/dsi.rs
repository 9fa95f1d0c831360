//! What a DSi title has beyond a DS one: the second programs and the parts encrypted with modcrypt (GBATEK, "DSi Cartridge Header").

use std::ops::Range;

use base::{OutOfRange, Reader};

use crate::header::Header;
use crate::problems::Problems;

/// Where the fields read here begin and end.
const FIELDS: Range<u64> = 0x1c0..0x230;

/// A second program: loaded on a DSi only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TwlProgram {
    /// Where its stored bytes begin, in bytes from the start of the ROM.
    pub rom_offset: u32,
    /// Where they are loaded, an address.
    pub ram_address: u32,
    /// How many there are.
    pub size: u32,
}

/// A part of the ROM that is encrypted with modcrypt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Modcrypt {
    /// Where it begins, in bytes from the start of the ROM.
    pub offset: u32,
    /// How many bytes it has.
    pub size: u32,
}

/// The fields of a DSi header that the model uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DsiHeader {
    /// 0x1C0: the ARM9's second program.
    pub arm9i: TwlProgram,
    /// 0x1D0: the ARM7's second program.
    pub arm7i: TwlProgram,
    /// 0x1D4: where the ARM7's list of devices goes, an address.
    pub device_list: u32,
    /// 0x210: bytes of the ROM that are used, the DSi's parts included.
    pub used_size: u32,
    /// 0x220 and 0x228: the parts encrypted with modcrypt; empty ones are unused.
    pub modcrypt: [Modcrypt; 2],
}

impl DsiHeader {
    /// The parts of the ROM that are encrypted, if the flags at 0x1C say that any is.
    pub(crate) fn encrypted(&self, header: &Header) -> Vec<Range<u64>> {
        if header.dsi_flags & 2 == 0 {
            return Vec::new();
        }
        let areas = self.modcrypt.iter().filter(|area| area.size > 0);
        areas.map(|area| u64::from(area.offset)..u64::from(area.offset) + u64::from(area.size)).collect()
    }
}

/// Reads the DSi header when the unit code says that there is one.
pub(crate) fn parse(rom: &[u8], header: &Header, problems: &mut Problems) -> Option<DsiHeader> {
    if !header.is_dsi() {
        return None;
    }
    // A title built for the DS with its program right behind the short header has no room for these fields.
    if u64::from(header.arm9.rom_offset) < FIELDS.end {
        problems.at("dsi-header-missing", 0x12, || {
            format!(
                "the unit code {} promises a DSi header, but the ARM9 program begins at 0x{:x}, where that would be",
                header.unit_code, header.arm9.rom_offset
            )
        });
        return None;
    }
    let fields = read(rom);
    if let Err(error) = &fields {
        problems.at("dsi-header-missing", FIELDS.start, || format!("the DSi header is cut off: {error}"));
    }
    fields.ok()
}

fn read(rom: &[u8]) -> Result<DsiHeader, OutOfRange> {
    let mut at = Reader::new(rom).at(FIELDS.start)?;
    let (rom_offset, _reserved, ram_address, size) = (at.u32()?, at.u32()?, at.u32()?, at.u32()?);
    let arm9i = TwlProgram { rom_offset, ram_address, size };
    let (rom_offset, device_list, ram_address, size) = (at.u32()?, at.u32()?, at.u32()?, at.u32()?);
    let arm7i = TwlProgram { rom_offset, ram_address, size };
    let mut at = at.at(0x210)?;
    let used_size = at.u32()?;
    let mut at = at.at(0x220)?;
    let modcrypt = [Modcrypt { offset: at.u32()?, size: at.u32()? }, Modcrypt { offset: at.u32()?, size: at.u32()? }];
    Ok(DsiHeader { arm9i, arm7i, device_list, used_size, modcrypt })
}
