//! What the SDK's start-up code does with a main program, read from the tables it uses: module parameters, autoload
//! blocks, and the state of the secure area (GBATEK, "DS Cartridge Secure Area"; the layout of the parameters is that of the
//! SDK's start-up code as open tools such as ndspy and nds-bootstrap read it).

use std::ops::Range;

use base::{OutOfRange, Reader, limits};

use crate::crc::crc16;
use crate::header::Header;

/// The two words that end the module parameters.
const MAGIC: [u8; 8] = [0x21, 0x06, 0xc0, 0xde, 0xde, 0xc0, 0x06, 0x21];
/// Bytes of the parameters before the magic words.
const BEFORE_MAGIC: usize = 0x1c;

/// The secure area of a card, and its part that is encrypted on the card.
const SECURE_AREA: Range<u64> = 0x4000..0x8000;
const SECURE_ENCRYPTED: Range<u64> = 0x4000..0x4800;
/// What the boot code writes over the first eight bytes of the secure area once it has decrypted it.
const DECRYPTED: [u8; 8] = [0xff, 0xde, 0xff, 0xe7, 0xff, 0xde, 0xff, 0xe7];

/// The module parameters of a program made with the SDK: addresses that its start-up code works with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModuleParams {
    /// Where they are, in bytes from the start of the program.
    pub offset: u32,
    /// Start of the list of autoload blocks.
    pub autoload_list_start: u32,
    /// End of that list.
    pub autoload_list_end: u32,
    /// Where the bytes of the first autoload block are loaded; the others follow.
    pub autoload_start: u32,
    /// Start of the program's BSS.
    pub bss_start: u32,
    /// End of the program's BSS.
    pub bss_end: u32,
    /// End of the compressed program as it is loaded; 0 when it is not compressed.
    pub compressed_end: u32,
    /// Version of the SDK: major, minor, and build.
    pub sdk_version: u32,
}

/// An autoload block: bytes of the program that are copied to where they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Autoload {
    /// Where it runs, an address.
    pub address: u32,
    /// Bytes that are copied.
    pub size: u32,
    /// Bytes of BSS behind them.
    pub bss_size: u32,
    /// Where its bytes are, in bytes from the start of the decompressed program.
    pub image_offset: u32,
}

/// The state of the secure area, the first 16 KiB from 0x4000 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecureArea {
    /// There is none: the ARM9 program is elsewhere, or its first words or the checksum field are zero.
    Absent,
    /// Its first eight bytes are what the boot code leaves after decrypting it.
    Decrypted,
    /// Its stored bytes give the checksum that belongs to its encrypted form, and it does not begin as a decrypted one.
    Encrypted,
    /// It begins like neither, and the checksum is of neither: homebrew, a damaged dump, or one that was edited.
    Unknown,
}

impl SecureArea {
    /// A word for the state.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Decrypted => "decrypted",
            Self::Encrypted => "encrypted",
            Self::Unknown => "unknown",
        }
    }

    /// Looks at the stored bytes.
    pub(crate) fn of(rom: &[u8], header: &Header) -> Self {
        let at = u64::from(header.arm9.rom_offset);
        let reader = Reader::new(rom);
        let (Ok(start), Ok(area)) = (reader.slice(at..at + 8), reader.slice(SECURE_AREA)) else { return Self::Absent };
        // Code that starts inside the part that would be encrypted: homebrew, since the cards' own start-up code lies behind it.
        let encrypted = SECURE_ENCRYPTED.end.saturating_sub(at);
        let runs_inside = u64::from(header.arm9.entry.wrapping_sub(header.arm9.ram_address)) < encrypted;
        if !SECURE_AREA.contains(&at) || start == [0; 8] || header.secure_area_crc == 0 {
            Self::Absent
        } else if start == DECRYPTED {
            Self::Decrypted
        } else if crc16(area) == header.secure_area_crc && !runs_inside {
            Self::Encrypted
        } else {
            Self::Unknown
        }
    }

    /// The bytes of the ROM that cannot be read as code.
    pub(crate) fn encrypted(self) -> Option<Range<u64>> {
        (self == Self::Encrypted).then_some(SECURE_ENCRYPTED)
    }
}

impl ModuleParams {
    /// Finds the parameters in the stored bytes of a program by their magic words.
    pub(crate) fn find(program: &[u8]) -> Option<Self> {
        let searched = program.get(..limits::MAX_NDS_MODULE_PARAMS_SEARCH_BYTES).unwrap_or(program);
        let (words, _) = searched.as_chunks::<4>();
        let pairs = words.iter().zip(words.iter().skip(1)).enumerate();
        let (index, _) = pairs.into_iter().find(|(_, (first, second))| [**first, **second].concat() == MAGIC)?;
        Self::read(program, (index * 4).checked_sub(BEFORE_MAGIC)?).ok()
    }

    fn read(program: &[u8], offset: usize) -> Result<Self, OutOfRange> {
        let mut at = Reader::new(program).at(offset as u64)?;
        Ok(Self {
            offset: u32::try_from(offset).unwrap_or(u32::MAX),
            autoload_list_start: at.u32()?,
            autoload_list_end: at.u32()?,
            autoload_start: at.u32()?,
            bss_start: at.u32()?,
            bss_end: at.u32()?,
            compressed_end: at.u32()?,
            sdk_version: at.u32()?,
        })
    }

    /// Reads the list of autoload blocks from a decompressed program that is loaded at `base`.
    ///
    /// Entries have three words (address, bytes, BSS) or, with later SDKs, four (a list of initialisers before the BSS). Nothing
    /// says which, but the blocks lie right before the list: the form is the one whose sizes add up to that.
    pub(crate) fn autoloads(&self, image: &[u8], base: u32) -> Result<Vec<Autoload>, String> {
        if self.autoload_list_start == self.autoload_list_end {
            return Ok(Vec::new());
        }
        let within = |address: u32| {
            let offset = address.checked_sub(base).filter(|offset| u64::from(*offset) <= image.len() as u64);
            offset.ok_or_else(|| format!("0x{address:x} is no address of the program"))
        };
        let (start, end) = (within(self.autoload_list_start)?, within(self.autoload_list_end)?);
        let first = within(self.autoload_start)?;
        let list = Reader::new(image).slice(u64::from(start)..u64::from(end)).map_err(|error| error.to_string())?;
        let mut fits = Vec::new();
        for words in [3, 4] {
            if let Some(blocks) = read_list(list, words, first, image.len() as u64) {
                let last = blocks.last().map_or(first, |block| block.image_offset + block.size);
                fits.push((last == start, blocks));
            }
        }
        let exact = fits.iter().position(|(exact, _)| *exact);
        match (exact, fits.len()) {
            (Some(index), _) => Ok(fits.swap_remove(index).1),
            (None, 1) => Ok(fits.swap_remove(0).1),
            (None, _) => Err(format!("the {} bytes of the list are no blocks that lie in the program", list.len())),
        }
    }
}

/// Reads a list with `words` words to an entry; `None` when the entries do not fill it or a block lies outside.
fn read_list(list: &[u8], words: usize, first: u32, image_len: u64) -> Option<Vec<Autoload>> {
    let count = list.len() / (4 * words);
    if !list.len().is_multiple_of(4 * words) || count > limits::MAX_NDS_AUTOLOADS {
        return None;
    }
    let mut reader = Reader::new(list);
    let mut image_offset = first;
    let mut blocks = Vec::with_capacity(count);
    for _ in 0..count {
        let (address, size) = (reader.u32().ok()?, reader.u32().ok()?);
        if words == 4 {
            reader.u32().ok()?;
        }
        let bss_size = reader.u32().ok()?;
        let end = image_offset.checked_add(size).filter(|end| u64::from(*end) <= image_len)?;
        if u64::from(address) + u64::from(size) + u64::from(bss_size) > 1 << 32 {
            return None;
        }
        blocks.push(Autoload { address, size, bss_size, image_offset });
        image_offset = end;
    }
    Some(blocks)
}
