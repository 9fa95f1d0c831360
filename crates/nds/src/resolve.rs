//! Where an address lives, and what a byte of the ROM is: every candidate, never a choice among them.

use crate::component::{Component, ComponentId, Processor, Representation};
use crate::rom::Rom;

/// How an address resolves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressStatus {
    /// One component, and the byte is stored in the ROM.
    Resolved,
    /// Several components could be there; which one is loaded cannot be told from the ROM.
    Ambiguous,
    /// Zero-initialised memory of one component.
    RuntimeOnlyBss,
    /// One component, whose stored bytes are compressed: the byte has no ROM offset.
    CompressedNoDirectRomMapping,
    /// Nothing that the ROM tells of.
    Unmapped,
}

impl AddressStatus {
    /// The word of the contract.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Resolved => "resolved",
            Self::Ambiguous => "ambiguous-runtime-address",
            Self::RuntimeOnlyBss => "runtime-only-bss",
            Self::CompressedNoDirectRomMapping => "compressed-no-direct-rom-mapping",
            Self::Unmapped => "unmapped",
        }
    }
}

/// How the byte at a candidate comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CandidateRepresentation {
    /// A byte of the ROM.
    RomFileBacked,
    /// A byte of a decoded image.
    DerivedBlz,
    /// Zero at start, stored nowhere.
    RuntimeOnly,
    /// A byte that cannot be had; the ROM's problems say why.
    Undecodable,
}

impl CandidateRepresentation {
    /// The word of the contract; `undecodable` is beyond it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::RomFileBacked => "rom-file-backed",
            Self::DerivedBlz => "derived-blz",
            Self::RuntimeOnly => "runtime-only",
            Self::Undecodable => "undecodable",
        }
    }
}

/// A component that could have an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The kind: `arm9-main`, `arm9-overlay`, `overlay-bss`, …
    pub kind: &'static str,
    /// The component.
    pub component: ComponentId,
    /// The address that was asked for.
    pub runtime_address: u32,
    /// How many bytes it lies after the component's first address.
    pub relative_offset: u32,
    /// Its place in the component's initialised image; `None` in BSS and where there is no image.
    pub runtime_image_offset: Option<u32>,
    /// How the byte comes about.
    pub representation: CandidateRepresentation,
    /// The file that holds the component, for an overlay.
    pub file_id: Option<u32>,
    /// Where the byte is stored; `None` where it is not.
    pub rom_offset: Option<u32>,
    /// Where the component's stored bytes begin.
    pub backing_rom_offset: Option<u32>,
    /// How many bytes of the component are stored.
    pub backing_rom_size: Option<u32>,
    /// Whether those are compressed.
    pub compressed: bool,
}

/// What is at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressResolution {
    /// How it resolves.
    pub status: AddressStatus,
    /// Every component that could be there, in the order of components.
    pub candidates: Vec<Candidate>,
}

/// Something that a byte of the ROM belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetMatch {
    /// `header`, `fnt`, `fat`, `arm9-overlay-table`, `arm7-overlay-table`, `nitrofs-file`, or a component's kind.
    pub kind: &'static str,
    /// The component, where it is one.
    pub component: Option<ComponentId>,
    /// The file, for files and overlays.
    pub file_id: Option<u32>,
    /// Where the byte runs; `None` for compressed and for structural bytes.
    pub runtime_address: Option<u32>,
}

impl Rom {
    /// What a processor has at an address.
    pub fn resolve_address(&self, processor: Processor, address: u32) -> AddressResolution {
        let components = self.components().iter().filter(|component| component.id.processor == processor);
        let candidates: Vec<_> = components.filter_map(|component| candidate(component, address)).collect();
        let status = match candidates.as_slice() {
            [] => AddressStatus::Unmapped,
            [only] if only.rom_offset.is_some() => AddressStatus::Resolved,
            [only] if only.representation == CandidateRepresentation::RuntimeOnly => AddressStatus::RuntimeOnlyBss,
            [_] => AddressStatus::CompressedNoDirectRomMapping,
            _ => AddressStatus::Ambiguous,
        };
        AddressResolution { status, candidates }
    }

    /// Everything that owns the byte at an offset, structures first; nothing past the end of the ROM.
    pub fn resolve_offset(&self, offset: u32) -> Vec<OffsetMatch> {
        let at = u64::from(offset);
        if at >= self.bytes().len() as u64 {
            return Vec::new();
        }
        let mut matches: Vec<_> = self
            .structures()
            .into_iter()
            .filter(|(_, range)| range.contains(&at))
            .map(|(kind, _)| OffsetMatch { kind, component: None, file_id: None, runtime_address: None })
            .collect();
        let owners = self.components().iter().filter(|component| component.owns(offset));
        matches.extend(owners.map(|component| OffsetMatch {
            kind: component.id.kind(),
            component: Some(component.id),
            file_id: component.file_id,
            runtime_address: component.address_of(offset),
        }));
        matches.extend(self.files_at(offset).filter(|file| self.is_nitrofs(file)).map(|file| OffsetMatch {
            kind: "nitrofs-file",
            component: None,
            file_id: Some(file.id),
            runtime_address: None,
        }));
        matches
    }
}

impl Component {
    /// Whether the stored byte at an offset is of this component.
    fn owns(&self, offset: u32) -> bool {
        self.stored.as_ref().is_some_and(|stored| stored.contains(&offset))
    }
}

fn candidate(component: &Component, address: u32) -> Option<Candidate> {
    let initialized = component.is_initialized(address);
    if !initialized && !component.is_bss(address) {
        return None;
    }
    let relative_offset = address.checked_sub(component.start);
    let representation = match (&component.representation, initialized) {
        (_, false) => CandidateRepresentation::RuntimeOnly,
        (Representation::RomFileBacked, true) => CandidateRepresentation::RomFileBacked,
        (Representation::DerivedBlz, true) => CandidateRepresentation::DerivedBlz,
        (Representation::Undecodable { .. }, true) => CandidateRepresentation::Undecodable,
    };
    let has_image =
        matches!(representation, CandidateRepresentation::RomFileBacked | CandidateRepresentation::DerivedBlz);
    Some(Candidate {
        kind: if initialized { component.id.kind() } else { component.id.bss_kind() },
        component: component.id,
        runtime_address: address,
        relative_offset: relative_offset.unwrap_or_default(),
        runtime_image_offset: relative_offset.filter(|_| has_image),
        representation,
        file_id: component.file_id,
        rom_offset: component.rom_offset_of(address),
        backing_rom_offset: component.stored.as_ref().map(|stored| stored.start),
        backing_rom_size: component.stored.as_ref().map(|stored| stored.end - stored.start),
        compressed: component.compressed,
    })
}
