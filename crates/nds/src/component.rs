//! What a processor can execute: main program, overlays, autoload blocks, the DSi's second program. Each with its own
//! stored bytes, initialised runtime bytes and BSS.

use std::ops::Range;
use std::sync::OnceLock;

use code::arm::Arch;

use crate::blz;
use crate::rom::Rom;

/// One of the two processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Processor {
    /// The ARM946E-S, ARMv5TE.
    Arm9,
    /// The ARM7TDMI, ARMv4T.
    Arm7,
}

impl Processor {
    /// The word of the contract.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Arm9 => "arm9",
            Self::Arm7 => "arm7",
        }
    }

    /// The architecture that its code is decoded as.
    pub const fn arch(self) -> Arch {
        match self {
            Self::Arm9 => Arch::V5TE,
            Self::Arm7 => Arch::V4T,
        }
    }
}

/// Which part of a processor's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// The program that the header names.
    Main,
    /// The overlay with this identifier.
    Overlay(u32),
    /// The autoload block with this index, in the order of the table: bytes of the main program that its start-up code
    /// copies to where they run, ITCM or DTCM for instance.
    Autoload(u8),
    /// The second program of a DSi title, arm9i or arm7i.
    Twl,
}

/// The identity of a component within its ROM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ComponentId {
    /// Who executes it.
    pub processor: Processor,
    /// Which part it is.
    pub part: Part,
}

impl ComponentId {
    /// The main program of a processor.
    pub const fn main(processor: Processor) -> Self {
        Self { processor, part: Part::Main }
    }

    /// An overlay.
    pub const fn overlay(processor: Processor, id: u32) -> Self {
        Self { processor, part: Part::Overlay(id) }
    }

    /// The word of the contract for the kind: `arm9-main`, `arm7-overlay`, and beyond it `arm9-autoload` and `arm9i`.
    pub const fn kind(self) -> &'static str {
        match (self.processor, self.part) {
            (Processor::Arm9, Part::Main) => "arm9-main",
            (Processor::Arm7, Part::Main) => "arm7-main",
            (Processor::Arm9, Part::Overlay(_)) => "arm9-overlay",
            (Processor::Arm7, Part::Overlay(_)) => "arm7-overlay",
            (Processor::Arm9, Part::Autoload(_)) => "arm9-autoload",
            (Processor::Arm7, Part::Autoload(_)) => "arm7-autoload",
            (Processor::Arm9, Part::Twl) => "arm9i",
            (Processor::Arm7, Part::Twl) => "arm7i",
        }
    }

    /// The kind of an address in its BSS: `overlay-bss` by the contract, `main-bss` and `autoload-bss` beyond it.
    pub const fn bss_kind(self) -> &'static str {
        match self.part {
            Part::Main => "main-bss",
            Part::Overlay(_) => "overlay-bss",
            Part::Autoload(_) => "autoload-bss",
            Part::Twl => "twl-bss",
        }
    }

    /// The overlay's identifier, for an overlay.
    pub const fn overlay_id(self) -> Option<u32> {
        match self.part {
            Part::Overlay(id) => Some(id),
            Part::Main | Part::Autoload(_) | Part::Twl => None,
        }
    }

    /// The autoload block's index, for an autoload block.
    pub const fn autoload_index(self) -> Option<u8> {
        match self.part {
            Part::Autoload(index) => Some(index),
            Part::Main | Part::Overlay(_) | Part::Twl => None,
        }
    }

    /// A name that no other component of the ROM has: `arm9-main`, `arm9-overlay-3`, `arm9-autoload-0`, `arm7i`.
    pub fn name(self) -> String {
        match self.part {
            Part::Main | Part::Twl => self.kind().to_owned(),
            Part::Overlay(id) => format!("{}-{id}", self.kind()),
            Part::Autoload(index) => format!("{}-{index}", self.kind()),
        }
    }
}

/// How the initialised runtime bytes come about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Representation {
    /// They are bytes of the ROM, in the same order.
    RomFileBacked,
    /// They are decoded from a checked BLZ stream; none of them has a ROM offset.
    DerivedBlz,
    /// They cannot be had; the problem says why, and stands among the ROM's problems too.
    Undecodable {
        /// The code of that problem.
        problem: &'static str,
    },
}

/// A component: where it runs, what of it is stored, and how the bytes come about.
#[derive(Debug)]
pub struct Component {
    /// Its identity.
    pub id: ComponentId,
    /// First address.
    pub start: u32,
    /// End of the initialised bytes, an address, at most 2^32.
    pub initialized_end: u64,
    /// Zero-initialised addresses; empty where there are none. They need not follow the initialised ones at once.
    pub bss: Range<u64>,
    /// End of everything, BSS included, an address, at most 2^32.
    pub end: u64,
    /// The stored bytes in the ROM; for an overlay its file, whole.
    pub stored: Option<Range<u32>>,
    /// How the initialised bytes come about.
    pub representation: Representation,
    /// Whether the ROM says that the stored bytes are compressed, decodable or not.
    pub compressed: bool,
    /// The file that holds an overlay.
    pub file_id: Option<u32>,
    /// Addresses whose bytes are still encrypted in the ROM: the start of an encrypted secure area, a modcrypt area.
    pub encrypted: Vec<Range<u64>>,
    pub(crate) source: Source,
}

/// Where the initialised bytes are taken from.
#[derive(Debug)]
pub(crate) enum Source {
    /// The ROM from this offset on.
    Rom(u32),
    /// The BLZ stream in these bytes of the ROM, decoded when it is first asked for and then kept.
    Blz { stream: Range<u32>, kept: OnceLock<Option<Vec<u8>>> },
    /// A part of the decoded bytes of the main program of the same processor.
    Main(Range<u32>),
    /// Nowhere.
    Nothing,
}

impl Component {
    /// Whether an address has initialised bytes.
    pub fn is_initialized(&self, address: u32) -> bool {
        (u64::from(self.start)..self.initialized_end).contains(&u64::from(address))
    }

    /// Whether an address is in the BSS.
    pub fn is_bss(&self, address: u32) -> bool {
        self.bss.contains(&u64::from(address))
    }

    /// Whether the bytes at an address can be read as code: initialised, decodable, and not encrypted.
    pub fn contains_code(&self, address: u32) -> bool {
        let encrypted = self.encrypted.iter().any(|range| range.contains(&u64::from(address)));
        self.is_initialized(address) && !encrypted && !matches!(self.representation, Representation::Undecodable { .. })
    }

    /// The initialised runtime bytes, the first of them at `start`. `None` when they cannot be had: undecodable, or the
    /// ROM's bound on decoded bytes is reached.
    pub fn image<'a>(&'a self, rom: &'a Rom) -> Option<&'a [u8]> {
        let length = usize::try_from(self.initialized_end.checked_sub(u64::from(self.start))?).ok()?;
        self.source_bytes(rom)?.get(..length)
    }

    /// All bytes of the source, which for a main program with autoload blocks are more than its image.
    pub(crate) fn source_bytes<'a>(&'a self, rom: &'a Rom) -> Option<&'a [u8]> {
        match &self.source {
            Source::Rom(offset) => rom.bytes().get(*offset as usize..),
            Source::Blz { stream, kept } => kept.get_or_init(|| rom.decode(stream.clone())).as_deref(),
            Source::Main(range) => {
                let main = rom.component(ComponentId::main(self.id.processor))?;
                main.source_bytes(rom)?.get(range.start as usize..range.end as usize)
            }
            Source::Nothing => None,
        }
    }

    /// Where the byte at an address is stored; `None` for BSS, for derived bytes and outside.
    pub fn rom_offset_of(&self, address: u32) -> Option<u32> {
        match self.source {
            Source::Rom(offset) if self.is_initialized(address) => offset.checked_add(address.checked_sub(self.start)?),
            _ => None,
        }
    }

    /// Where a stored byte runs; `None` for derived bytes and for offsets outside.
    pub fn address_of(&self, rom_offset: u32) -> Option<u32> {
        let Source::Rom(offset) = self.source else { return None };
        let address = self.start.checked_add(rom_offset.checked_sub(offset)?)?;
        self.is_initialized(address).then_some(address)
    }

    /// The whole decoded image of a BLZ stream, for those who checked it.
    pub(crate) fn decoded(stream: Range<u32>, image: Vec<u8>) -> Source {
        let kept = OnceLock::new();
        // A fresh cell is empty, so this cannot fail.
        let _ = kept.set(Some(image));
        Source::Blz { stream, kept }
    }
}

impl Rom {
    /// Decodes a stream within the ROM's bound on decoded bytes.
    fn decode(&self, stream: Range<u32>) -> Option<Vec<u8>> {
        let bytes = self.bytes().get(stream.start as usize..stream.end as usize)?;
        let shape = blz::shape(bytes).ok()?;
        self.charge_decoded(shape.image_len())?;
        blz::decode(bytes, &mut base::Budget::new(shape.image_len())).ok()
    }
}
