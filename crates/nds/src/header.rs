//! The header of a ROM, field by field (GBATEK, "DS Cartridge Header").

use std::ops::Range;

use base::{OutOfRange, Reader};

use crate::crc::crc16;
use crate::problems::Problems;

/// Bytes that the classic header occupies; a shorter file has no canonical model.
pub(crate) const HEADER_BYTES: u64 = 0x200;
/// Where the logo lies, and the checksum behind it.
const LOGO: Range<u64> = 0xc0..0x15c;
/// What the header's own checksum covers.
const CHECKED: Range<u64> = 0..0x15e;

/// A program as the header names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Program {
    /// Where its stored bytes begin, in bytes from the start of the ROM.
    pub rom_offset: u32,
    /// Where execution begins, an address.
    pub entry: u32,
    /// Where the stored bytes are loaded, an address.
    pub ram_address: u32,
    /// How many bytes are stored.
    pub size: u32,
}

impl Program {
    /// The stored bytes as the header claims them, whether the file has them or not.
    pub fn rom(&self) -> Range<u64> {
        let start = u64::from(self.rom_offset);
        start..start + u64::from(self.size)
    }

    /// The end of the stored bytes in memory when they are loaded as they are; above 2^32 when the range wraps.
    pub fn ram_end(&self) -> u64 {
        u64::from(self.ram_address) + u64::from(self.size)
    }
}

/// A table as the header names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Table {
    /// Where it begins, in bytes from the start of the ROM.
    pub offset: u32,
    /// Its length in bytes.
    pub size: u32,
}

impl Table {
    /// Its bytes as the header claims them, whether the file has them or not.
    pub fn rom(&self) -> Range<u64> {
        let start = u64::from(self.offset);
        start..start + u64::from(self.size)
    }
}

/// Every field of the classic header that means something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// 0x000: title as stored, padded with zeros.
    pub title: [u8; 12],
    /// 0x00C: game code.
    pub code: [u8; 4],
    /// 0x010: maker code.
    pub maker: [u8; 2],
    /// 0x012: 0 DS, 2 DS and DSi, 3 DSi only; bit 1 says that there is a DSi header.
    pub unit_code: u8,
    /// 0x013: encryption seed select.
    pub seed_select: u8,
    /// 0x014: size of the card, 128 KiB shifted left by this.
    pub device_capacity: u8,
    /// 0x01C: flags that only a DSi reads; bit 1: parts are encrypted with modcrypt.
    pub dsi_flags: u8,
    /// 0x01D: region.
    pub region: u8,
    /// 0x01E: version of the game.
    pub version: u8,
    /// 0x01F: bit 2 skips the health warning.
    pub autostart: u8,
    /// 0x020: the ARM9 program.
    pub arm9: Program,
    /// 0x030: the ARM7 program.
    pub arm7: Program,
    /// 0x040: file name table.
    pub fnt: Table,
    /// 0x048: file allocation table.
    pub fat: Table,
    /// 0x050: overlay table of the ARM9.
    pub arm9_overlays: Table,
    /// 0x058: overlay table of the ARM7.
    pub arm7_overlays: Table,
    /// 0x060: card control for ordinary reads.
    pub card_control: u32,
    /// 0x064: card control for the secure area.
    pub secure_card_control: u32,
    /// 0x068: where icon and titles are, in bytes; 0 for none.
    pub banner_offset: u32,
    /// 0x06C: checksum of the secure area as it is on the card.
    pub secure_area_crc: u16,
    /// 0x06E: delay of secure area reads.
    pub secure_delay: u16,
    /// 0x070: ARM9 autoload hook, an address.
    pub arm9_autoload_hook: u32,
    /// 0x074: ARM7 autoload hook, an address.
    pub arm7_autoload_hook: u32,
    /// 0x078: disables the secure area.
    pub secure_disable: [u8; 8],
    /// 0x080: bytes of the ROM that are used, without the padding to the card's size.
    pub used_size: u32,
    /// 0x084: bytes of the header.
    pub header_size: u32,
    /// 0x15C: checksum of the logo, as stored.
    pub logo_crc: u16,
    /// 0x15E: checksum of the header, as stored.
    pub header_crc: u16,
    /// 0x160: where the debug ROM is.
    pub debug_rom_offset: u32,
    /// 0x164: its size.
    pub debug_rom_size: u32,
    /// 0x168: where it is loaded.
    pub debug_rom_address: u32,
}

impl Header {
    /// The title up to its first zero, one character per byte.
    pub fn title_text(&self) -> String {
        latin1(&self.title)
    }

    /// The game code, one character per byte.
    pub fn code_text(&self) -> String {
        latin1(&self.code)
    }

    /// The maker code, one character per byte.
    pub fn maker_text(&self) -> String {
        latin1(&self.maker)
    }

    /// Whether the unit code says that a DSi header follows.
    pub fn is_dsi(&self) -> bool {
        self.unit_code & 2 != 0
    }

    /// Reads the fields from the start of a ROM.
    pub(crate) fn parse(rom: &[u8]) -> Result<Self, OutOfRange> {
        Reader::new(rom).slice(0..HEADER_BYTES)?;
        let mut at = Reader::new(rom);
        let title = at.array()?;
        let code = at.array()?;
        let maker = at.array()?;
        let (unit_code, seed_select, device_capacity) = (at.u8()?, at.u8()?, at.u8()?);
        at.bytes(7)?;
        let (dsi_flags, region, version, autostart) = (at.u8()?, at.u8()?, at.u8()?, at.u8()?);
        let (arm9, arm7) = (program(&mut at)?, program(&mut at)?);
        let (fnt, fat) = (table(&mut at)?, table(&mut at)?);
        let (arm9_overlays, arm7_overlays) = (table(&mut at)?, table(&mut at)?);
        let (card_control, secure_card_control, banner_offset) = (at.u32()?, at.u32()?, at.u32()?);
        let (secure_area_crc, secure_delay) = (at.u16()?, at.u16()?);
        let (arm9_autoload_hook, arm7_autoload_hook) = (at.u32()?, at.u32()?);
        let secure_disable = at.array()?;
        let (used_size, header_size) = (at.u32()?, at.u32()?);
        let mut at = at.at(LOGO.end)?;
        let (logo_crc, header_crc) = (at.u16()?, at.u16()?);
        let (debug_rom_offset, debug_rom_size, debug_rom_address) = (at.u32()?, at.u32()?, at.u32()?);
        Ok(Self {
            title,
            code,
            maker,
            unit_code,
            seed_select,
            device_capacity,
            dsi_flags,
            region,
            version,
            autostart,
            arm9,
            arm7,
            fnt,
            fat,
            arm9_overlays,
            arm7_overlays,
            card_control,
            secure_card_control,
            banner_offset,
            secure_area_crc,
            secure_delay,
            arm9_autoload_hook,
            arm7_autoload_hook,
            secure_disable,
            used_size,
            header_size,
            logo_crc,
            header_crc,
            debug_rom_offset,
            debug_rom_size,
            debug_rom_address,
        })
    }

    /// Whether the header's own checksum holds, as it does in what a tool for the console has written.
    pub(crate) fn is_sealed(&self, bytes: &[u8]) -> bool {
        Reader::new(bytes).slice(CHECKED).is_ok_and(|checked| crc16(checked) == self.header_crc)
    }

    /// Notes what is wrong in the header itself; none of it prevents a model.
    pub(crate) fn check(&self, rom: &[u8], problems: &mut Problems) {
        let reader = Reader::new(rom);
        let checks = [
            ("logo-crc", LOGO, self.logo_crc, "logo", LOGO.end),
            ("header-crc", CHECKED, self.header_crc, "header", CHECKED.end),
        ];
        for (code, range, stored, what, at) in checks {
            let actual = reader.slice(range).map(crc16);
            if actual != Ok(stored) {
                let actual = actual.unwrap_or_default();
                problems.at(code, at, || {
                    format!(
                        "the checksum of the {what} is 0x{actual:04x}, but 0x{stored:04x} is stored: changed or damaged"
                    )
                });
            }
        }
        if u64::from(self.used_size) > rom.len() as u64 {
            problems.at("rom-truncated", 0x80, || {
                format!(
                    "the header says that {} bytes are used, the file has {}: it is cut short",
                    self.used_size,
                    rom.len()
                )
            });
        }
        if self.banner_offset != 0 && u64::from(self.banner_offset) >= rom.len() as u64 {
            problems.at("banner-out-of-range", 0x68, || {
                format!("the icon is said to be at 0x{:x}, past the end of the file", self.banner_offset)
            });
        }
    }
}

fn program(at: &mut Reader<'_>) -> Result<Program, OutOfRange> {
    Ok(Program { rom_offset: at.u32()?, entry: at.u32()?, ram_address: at.u32()?, size: at.u32()? })
}

fn table(at: &mut Reader<'_>) -> Result<Table, OutOfRange> {
    Ok(Table { offset: at.u32()?, size: at.u32()? })
}

/// Bytes up to the first zero, one character per byte, so that nothing is lost whatever encoding was meant.
pub(crate) fn latin1(bytes: &[u8]) -> String {
    bytes.iter().take_while(|byte| **byte != 0).map(|byte| char::from(*byte)).collect()
}
