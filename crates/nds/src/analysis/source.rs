//! Which bytes an address means as code, and in which instruction set: chosen only where one answer is left.

use base::limits;
use code::arm::{self, Arch, Insn, LiteralCall, Mode};

use super::cfg::CodeId;
use crate::{Candidate, Component, ComponentId, Part, Processor, Refusal, Representation, Rom};

/// Whether an address can be read as code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SourceStatus {
    /// One component has it.
    Resolved,
    /// Several components could be there.
    Ambiguous,
    /// One component, whose bytes cannot be had.
    NotDecodable,
    /// One component, whose bytes are still encrypted in the ROM.
    Encrypted,
    /// Zero-initialised memory.
    RuntimeOnlyBss,
    /// Nothing that the ROM tells of.
    Unmapped,
    /// One component, but nothing proves the instruction set.
    ModeAmbiguous,
    /// One component, which the scan was not asked to look at.
    OutOfScope,
}

impl SourceStatus {
    /// The word of the contract; `encrypted-not-decodable` and `out-of-scope` are beyond it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Resolved => "resolved",
            Self::Ambiguous => "ambiguous-code-source",
            Self::NotDecodable => "compressed-overlay-not-decodable",
            Self::Encrypted => "encrypted-not-decodable",
            Self::RuntimeOnlyBss => "runtime-only-bss",
            Self::Unmapped => "unmapped-address",
            Self::ModeAmbiguous => "mode-ambiguous",
            Self::OutOfScope => "out-of-scope",
        }
    }
}

/// Bytes that are read as code, and where they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeSource {
    /// The component.
    pub component: ComponentId,
    /// The address.
    pub runtime_address: u32,
    /// Where the byte at it is stored; `None` for derived bytes.
    pub rom_offset: Option<u32>,
    /// Its place in the component's initialised image.
    pub runtime_image_offset: u32,
    /// First address of that image.
    pub runtime_start: u32,
    /// End of that image, at most 2^32.
    pub runtime_end: u64,
    /// Where the image is stored; `None` for derived bytes.
    pub rom_start: Option<u32>,
    /// End of that, at most 2^32.
    pub rom_end: Option<u64>,
    /// `rom-file-backed` or `derived-blz`.
    pub representation: &'static str,
    /// Instruction set.
    pub mode: Mode,
}

/// What an address means as the target of a branch or call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetResolution {
    /// Whether it can be read as code.
    pub status: SourceStatus,
    /// The code; `None` unless resolved.
    pub source: Option<CodeSource>,
}

/// How a caller names a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    /// By the address where it runs.
    Address(u32),
    /// By where it is stored.
    RomOffset(u32),
}

/// Which instruction set a caller wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModeChoice {
    /// This one.
    Fixed(Mode),
    /// The proven one: that of a program entry, or of a function that a scan from there proves.
    Auto,
}

/// A place in code, as the tools take it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Who executes it.
    pub processor: Processor,
    /// Where.
    pub at: Where,
    /// The overlay that is meant, where several components could be there.
    pub overlay_id: Option<u32>,
    /// Instruction set.
    pub mode: ModeChoice,
}

/// A place that is known, or why it is not.
#[derive(Clone, Debug)]
pub(crate) enum Chosen {
    Ready(At),
    Not(SourceStatus, Vec<Candidate>),
}

/// An instruction's identity: component (its number in [`Code`]), instruction set, address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct At {
    pub part: u32,
    pub mode: Mode,
    pub address: u32,
}

/// Why no instruction could be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoInsn {
    /// It would not end inside the component's readable bytes.
    Boundary,
    /// The processor has no such instruction.
    Undecodable,
}

/// One component as code.
#[derive(Debug)]
pub(crate) struct PartCode<'r> {
    pub id: ComponentId,
    pub start: u32,
    /// The initialised bytes; `None` when they cannot be had.
    pub bytes: Option<&'r [u8]>,
    pub component: Option<&'r Component>,
}

impl PartCode<'_> {
    fn offset(&self, address: u32) -> Option<usize> {
        let offset = address.checked_sub(self.start)? as usize;
        (offset < self.bytes?.len()).then_some(offset)
    }

    fn is_encrypted(&self, address: u32) -> bool {
        self.component
            .is_some_and(|component| component.encrypted.iter().any(|range| range.contains(&u64::from(address))))
    }

    fn status(&self, address: u32) -> Option<SourceStatus> {
        if self.offset(address).is_some() {
            let encrypted = self.is_encrypted(address);
            return Some(if encrypted { SourceStatus::Encrypted } else { SourceStatus::Resolved });
        }
        let component = self.component?;
        if component.is_initialized(address) {
            return Some(SourceStatus::NotDecodable);
        }
        component.is_bss(address).then_some(SourceStatus::RuntimeOnlyBss)
    }
}

/// All code of one processor.
#[derive(Debug)]
pub(crate) struct Code<'r> {
    pub arch: Arch,
    pub processor: Processor,
    pub parts: Vec<PartCode<'r>>,
}

impl<'r> Code<'r> {
    /// The code of `processor`. Compressed components are decoded here, once per ROM.
    pub fn of(rom: &'r Rom, processor: Processor) -> Self {
        let parts = rom.components().iter().filter(|component| component.id.processor == processor);
        let parts = parts
            .map(|component| PartCode {
                id: component.id,
                start: component.start,
                bytes: component.image(rom),
                component: Some(component),
            })
            .collect();
        let arch = match processor {
            Processor::Arm9 => Arch::V5TE,
            Processor::Arm7 => Arch::V4T,
        };
        Self { arch, processor, parts }
    }

    /// The component of a number that this code gave out.
    pub fn id(&self, number: u32) -> ComponentId {
        self.part(number).map_or(ComponentId::main(self.processor), |part| part.id)
    }

    /// The identity of a place, for callers.
    pub fn code_id(&self, at: At) -> CodeId {
        CodeId { component: self.id(at.part), address: at.address, mode: at.mode }
    }

    pub fn part(&self, number: u32) -> Option<&PartCode<'r>> {
        self.parts.get(number as usize)
    }

    pub fn number_of(&self, id: ComponentId) -> Option<u32> {
        self.parts.iter().position(|part| part.id == id).and_then(|number| u32::try_from(number).ok())
    }

    /// The instruction at a place.
    pub fn decode(&self, at: At) -> Result<Insn, NoInsn> {
        let part = self.part(at.part).ok_or(NoInsn::Boundary)?;
        let offset = part.offset(at.address).ok_or(NoInsn::Boundary)?;
        if part.is_encrypted(at.address) {
            return Err(NoInsn::Boundary);
        }
        let bytes = part.bytes.and_then(|bytes| bytes.get(offset..)).unwrap_or_default();
        arm::decode(self.arch, at.mode, at.address, bytes).map_err(|error| match error {
            arm::DecodeError::Truncated { .. } => NoInsn::Boundary,
            arm::DecodeError::Misaligned { .. } | arm::DecodeError::Undecodable { .. } => NoInsn::Undecodable,
        })
    }

    /// The little-endian word at an address of a component.
    pub fn word(&self, part: u32, address: u32) -> Option<u32> {
        let part = self.part(part)?;
        let bytes = part.bytes?.get(part.offset(address)?..)?;
        let encrypted = part.is_encrypted(address);
        bytes.first_chunk().filter(|_| !encrypted).map(|word| u32::from_le_bytes(*word))
    }

    /// Which component an address means when code of component `from` goes there. Code that runs is loaded, so its own
    /// component is meant where it has the address, whatever others could be there in its place.
    pub fn locate(&self, from: Option<u32>, address: u32) -> Result<u32, SourceStatus> {
        if let Some(own) = from
            && self.part(own).and_then(|part| part.status(address)) == Some(SourceStatus::Resolved)
        {
            return Ok(own);
        }
        let mut found = None;
        for (number, part) in (0..).zip(&self.parts) {
            if let Some(status) = part.status(address) {
                if found.is_some() {
                    return Err(SourceStatus::Ambiguous);
                }
                found = Some((number, status));
            }
        }
        match found {
            Some((number, SourceStatus::Resolved)) => Ok(number),
            Some((_, status)) => Err(status),
            None => Err(SourceStatus::Unmapped),
        }
    }

    /// The description of a place that is known to be code.
    pub fn source(&self, at: At) -> Option<CodeSource> {
        let part = self.part(at.part)?;
        let component = part.component?;
        let rom_start = component.rom_offset_of(component.start);
        let length = component.initialized_end.saturating_sub(u64::from(component.start));
        Some(CodeSource {
            component: part.id,
            runtime_address: at.address,
            rom_offset: component.rom_offset_of(at.address),
            runtime_image_offset: at.address.checked_sub(component.start)?,
            runtime_start: component.start,
            runtime_end: component.initialized_end,
            rom_start,
            rom_end: rom_start.map(|start| u64::from(start) + length),
            representation: match component.representation {
                Representation::RomFileBacked => "rom-file-backed",
                Representation::DerivedBlz => "derived-blz",
                Representation::Undecodable { .. } => "undecodable",
            },
            mode: at.mode,
        })
    }

    /// What a branch or call from component `from` means by its target.
    pub fn resolve(&self, from: u32, address: u32, mode: Mode) -> TargetResolution {
        match self.locate(Some(from), address) {
            Ok(part) => {
                TargetResolution { status: SourceStatus::Resolved, source: self.source(At { part, mode, address }) }
            }
            Err(status) => TargetResolution { status, source: None },
        }
    }

    /// Where an instruction is stored.
    pub fn rom_offset(&self, at: At) -> Option<u32> {
        self.part(at.part)?.component?.rom_offset_of(at.address)
    }

    /// The entry of the main program by the header, when it can be read as code.
    pub fn program_entry(&self, rom: &Rom) -> Option<At> {
        let address = program_entry_address(rom, self.processor);
        let part = self.number_of(ComponentId::main(self.processor))?;
        // The processor starts in ARM mode: the word is copied to the program counter.
        let at = At { part, mode: Mode::Arm, address };
        (self.decode(at).is_ok() && self.locate(Some(part), address) == Ok(part)).then_some(at)
    }

    /// The straight line of instructions that ends at `at`, its last one. Backwards as long as `seen` says that the
    /// instruction before was reached as one and it does nothing but fall through.
    pub fn window(&self, at: At, seen: &dyn Fn(At) -> bool) -> Vec<Insn> {
        let Ok(site) = self.decode(at) else { return Vec::new() };
        let mut line = vec![site];
        let mut next = at.address;
        while line.len() < limits::NDS_LITERAL_WINDOW {
            let sizes: &[u32] = if at.mode == Mode::Arm { &[4] } else { &[2, 4] };
            let before = sizes.iter().find_map(|size| {
                let before = At { address: next.checked_sub(*size)?, ..at };
                let insn = if seen(before) { self.decode(before).ok() } else { None };
                insn.filter(|insn| u32::from(insn.size) == *size && insn.flow().kind == arm::FlowKind::Fallthrough)
            });
            let Some(before) = before else { break };
            next = before.address;
            line.push(before);
        }
        line.reverse();
        line
    }

    /// What the straight line before an indirect branch or call proves of its target.
    pub fn prove_indirect(&self, at: At, seen: &dyn Fn(At) -> bool) -> Indirect {
        let window = self.window(at, seen);
        if let Some(call) = arm::literal_call(&window, &|address| self.word(at.part, address)) {
            return Indirect::Literal(call);
        }
        if is_popped(&window) {
            return Indirect::Return;
        }
        match super::tables::targets(self, at, seen) {
            Some(_) => Indirect::Table,
            None => Indirect::Unknown,
        }
    }
}

/// What is proven of an indirect branch or call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Indirect {
    /// The target comes from a literal pool.
    Literal(LiteralCall),
    /// The target is popped from the stack just before: a return, as compilers make it for ARMv4T.
    Return,
    /// It goes by a jump table.
    Table,
    /// Nothing.
    Unknown,
}

/// Whether the register that a final `bx rX` goes to was last written by a pop on the straight line before.
fn is_popped(window: &[Insn]) -> bool {
    let Some((site, before)) = window.split_last() else { return false };
    let flow = site.flow();
    let (arm::FlowKind::IndirectBranch, Some(register)) = (flow.kind, flow.register) else { return false };
    let Some(write) = before.iter().rev().find(|insn| insn.writes().contains(register)) else { return false };
    match write.mode {
        // POP without pc (ARM ARM A7.1.49): 10111100.
        Mode::Thumb => write.size == 2 && write.raw >> 8 == 0b1011_1100,
        // LDMIA sp!, {…} (ARM ARM A4.1.20), or LDR rX, [sp], #n (ARM ARM A5.2.8).
        Mode::Arm => {
            write.raw & 0x0fff_0000 == 0x08bd_0000 || write.raw & 0x0fff_0000 == 0x049d_0000 && write.raw & 0xfff != 0
        }
    }
}

/// The entry address of the main program by the header.
pub(crate) fn program_entry_address(rom: &Rom, processor: Processor) -> u32 {
    let header = rom.header();
    match processor {
        Processor::Arm9 => header.arm9.entry,
        Processor::Arm7 => header.arm7.entry,
    }
}

/// Refuses an address that cannot be an instruction's in this mode.
pub(crate) fn check_alignment(address: u32, mode: Mode, category: &'static str) -> Result<(), Refusal> {
    if mode.is_aligned(address) {
        return Ok(());
    }
    let action = match mode {
        Mode::Arm => "Give an address divisible by 4, or thumb as the mode.",
        Mode::Thumb => "Give the even address: bit 0 of a Thumb pointer is not part of the address.",
    };
    let message = format!("0x{address:08x} is not divisible by {}, as in {} mode", mode.alignment(), mode.word());
    Err(Refusal::new(category, message, action))
}

/// Finds the overlay that a caller names.
pub(crate) fn overlay_number(code: &Code<'_>, id: u32) -> Result<u32, Refusal> {
    code.number_of(ComponentId::overlay(code.processor, id)).ok_or_else(|| {
        Refusal::new(
            "unknown-overlay-id",
            format!("{} has no overlay {id}", code.processor.word()),
            "nds_list_overlays tells which there are.",
        )
    })
}

/// Chooses the code that a place means.
///
/// # Errors
/// `unknown-overlay-id`, or `disassembly-backend-failure` for an address that no instruction can have.
pub(crate) fn choose(rom: &Rom, code: &Code<'_>, place: &Place) -> Result<Chosen, Refusal> {
    let wanted = place.overlay_id.map(|id| overlay_number(code, id)).transpose()?;
    let located = match place.at {
        Where::Address(address) => match wanted {
            Some(part) => match code.part(part).and_then(|part| part.status(address)) {
                Some(SourceStatus::Resolved) => Ok((part, address)),
                other => Err(other.unwrap_or(SourceStatus::Unmapped)),
            },
            None => code.locate(None, address).map(|part| (part, address)),
        },
        Where::RomOffset(offset) => at_rom_offset(code, wanted, offset),
    };
    let candidates = |address| rom.resolve_address(place.processor, address).candidates;
    let (part, address) = match located {
        Ok(found) => found,
        Err(status) => {
            let candidates = match place.at {
                Where::Address(address) => candidates(address),
                Where::RomOffset(_) => Vec::new(),
            };
            return Ok(Chosen::Not(status, candidates));
        }
    };
    let mode = match place.mode {
        ModeChoice::Fixed(mode) => mode,
        ModeChoice::Auto => {
            check_alignment(address, Mode::Thumb, "disassembly-backend-failure")?;
            match super::scan::proven_mode(rom, code, part, address) {
                Some(mode) => mode,
                None => return Ok(Chosen::Not(SourceStatus::ModeAmbiguous, candidates(address))),
            }
        }
    };
    check_alignment(address, mode, "disassembly-backend-failure")?;
    Ok(Chosen::Ready(At { part, mode, address }))
}

fn at_rom_offset(code: &Code<'_>, wanted: Option<u32>, offset: u32) -> Result<(u32, u32), SourceStatus> {
    let mut found = Err(SourceStatus::Unmapped);
    for (number, part) in (0..).zip(&code.parts) {
        let Some(component) = part.component.filter(|_| wanted.is_none_or(|wanted| wanted == number)) else { continue };
        if let Some(address) = component.address_of(offset) {
            let status = part.status(address).unwrap_or(SourceStatus::Unmapped);
            found = match found {
                Ok(_) | Err(SourceStatus::Ambiguous) => Err(SourceStatus::Ambiguous),
                Err(_) if status == SourceStatus::Resolved => Ok((number, address)),
                Err(_) => Err(status),
            };
        } else if found.is_err() && component.stored.as_ref().is_some_and(|stored| stored.contains(&offset)) {
            found = Err(SourceStatus::NotDecodable);
        }
    }
    found
}

/// Which components a scan looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The main program.
    Main,
    /// These overlays.
    Overlays(Vec<u32>),
    /// The main program and these overlays.
    MainAndOverlays(Vec<u32>),
    /// The main program, every overlay, autoload block and second program of the processor.
    AllExecutableComponents,
}

impl Scope {
    /// The numbers of its components, each once, in the order of components.
    pub(crate) fn parts(&self, code: &Code<'_>) -> Result<Vec<u32>, Refusal> {
        let overlays = |ids: &[u32]| ids.iter().map(|id| overlay_number(code, *id)).collect::<Result<Vec<_>, _>>();
        let main = || code.parts.iter().position(|part| part.id.part == Part::Main);
        let main = || main().and_then(|number| u32::try_from(number).ok());
        let mut parts = match self {
            Self::Main => main().into_iter().collect(),
            Self::Overlays(ids) => overlays(ids)?,
            Self::MainAndOverlays(ids) => main().into_iter().chain(overlays(ids)?).collect(),
            Self::AllExecutableComponents => (0..).zip(&code.parts).map(|(number, _)| number).collect::<Vec<_>>(),
        };
        parts.sort_unstable();
        parts.dedup();
        Ok(parts)
    }
}
