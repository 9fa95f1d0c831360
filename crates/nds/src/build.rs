//! Makes the components of a ROM from its tables: decides what can be decoded, and says what is wrong with the rest.

use std::collections::HashSet;
use std::ops::Range;

use base::{Budget, limits};

use crate::arm9::{Autoload, ModuleParams, SecureArea};
use crate::blz;
use crate::component::{Component, ComponentId, Part, Processor, Representation, Source};
use crate::dsi::DsiHeader;
use crate::fat::File;
use crate::header::{Header, Program};
use crate::overlay::Overlay;
use crate::problems::Problems;
use crate::rom::part;

/// The end of the address space.
const ADDRESSES: u64 = 1 << 32;

/// What was read from a main program.
#[derive(Debug, Default)]
pub(crate) struct Built {
    pub params: Option<ModuleParams>,
    pub autoloads: Vec<Autoload>,
}

/// Collects components.
pub(crate) struct Builder<'a> {
    pub rom: &'a [u8],
    pub header: &'a Header,
    pub dsi: Option<&'a DsiHeader>,
    pub secure_area: SecureArea,
    pub files: &'a [File],
    pub problems: &'a mut Problems,
    pub decoded: &'a mut Budget,
    pub components: Vec<Component>,
}

/// The bytes that a main program has once it is loaded and, where it is compressed, decompressed.
struct Loaded {
    representation: Representation,
    source: Source,
    /// Length of the bytes.
    length: u64,
}

impl Builder<'_> {
    /// Adds a processor's main program, its autoload blocks and its DSi program.
    pub fn program(&mut self, processor: Processor) -> Built {
        self.twl(processor);
        let (program, field) = match processor {
            Processor::Arm9 => (self.header.arm9, 0x20),
            Processor::Arm7 => (self.header.arm7, 0x30),
        };
        let (word, size) = (processor.word(), self.rom.len() as u64);
        let rom = program.rom();
        let Some(stored) = narrow(&rom).filter(|_| rom.end <= size) else {
            self.problems.at("program-out-of-range", field, || {
                format!(
                    "the {word} program is said to be at 0x{:x} to 0x{:x}, past the end of the file at 0x{size:x}",
                    rom.start, rom.end
                )
            });
            return Built::default();
        };
        if program.ram_end() > ADDRESSES {
            self.problems.at("ram-range-wraps", field + 8, || {
                format!("the {word} program is said to be loaded at 0x{:x} with {} bytes, past the end of the address space", program.ram_address, program.size)
            });
            return Built::default();
        }
        let params = ModuleParams::find(part(self.rom, rom));
        let compressed = params.filter(|params| params.compressed_end != 0);
        let loaded = match compressed {
            Some(params) => self.decompress(processor, program, &stored, params.compressed_end),
            None => Loaded {
                representation: Representation::RomFileBacked,
                source: Source::Rom(stored.start),
                length: u64::from(program.size),
            },
        };
        let (start, whole_end) = (u64::from(program.ram_address), u64::from(program.ram_address) + loaded.length);
        let autoloads = self.autoloads(processor, program, params, &loaded);
        let mut initialized_end = whole_end;
        let mut bss = whole_end..whole_end;
        if let Some(params) = params {
            if !autoloads.is_empty() {
                initialized_end = u64::from(params.autoload_start).clamp(start, whole_end);
            }
            // The BSS is cleared over the autoload blocks once they are copied, but never over the program itself.
            let bss_start = u64::from(params.bss_start).max(initialized_end);
            bss = bss_start..u64::from(params.bss_end).max(bss_start);
        }
        if !(start..whole_end).contains(&u64::from(program.entry)) {
            self.problems.at("entry-outside", field + 4, || {
                format!(
                    "the {word} entry 0x{:x} is no address of its program, 0x{start:x} to 0x{whole_end:x}",
                    program.entry
                )
            });
        }
        let encrypted = self.encrypted(processor, &stored, program.ram_address);
        for (index, block) in autoloads.iter().enumerate() {
            self.autoload(processor, index, block, &loaded, &stored);
        }
        self.components.push(Component {
            id: ComponentId::main(processor),
            start: program.ram_address,
            initialized_end,
            end: bss.end.max(initialized_end),
            bss,
            stored: Some(stored),
            representation: loaded.representation,
            compressed: compressed.is_some(),
            file_id: None,
            encrypted,
            source: loaded.source,
        });
        Built { params, autoloads }
    }

    /// Decodes a compressed main program at once: its autoload list is inside.
    fn decompress(&mut self, processor: Processor, program: Program, stored: &Range<u32>, end: u32) -> Loaded {
        let word = processor.word();
        let length = end.checked_sub(program.ram_address).filter(|length| *length <= program.size);
        let stream = length.map(|length| stored.start..stored.start + length);
        let decoded = match &stream {
            Some(stream) => blz::decode(part(self.rom, wide(stream)), self.decoded)
                .map_err(|error| (error.category(), error.to_string())),
            None => Err((
                "malformed-blz",
                format!("its end 0x{end:x} is no address of the {} bytes that are stored", program.size),
            )),
        };
        let wraps = |image: &Vec<u8>| u64::from(program.ram_address) + image.len() as u64 > ADDRESSES;
        match (decoded, stream) {
            (Ok(image), Some(stream)) if !wraps(&image) => Loaded {
                representation: Representation::DerivedBlz,
                length: image.len() as u64,
                source: Component::decoded(stream, image),
            },
            (decoded, _) => {
                let (problem, message) = match decoded {
                    Err(error) => error,
                    Ok(_) => ("malformed-blz", "it passes the end of the address space".to_owned()),
                };
                self.problems.at(problem, u64::from(stored.start), || {
                    format!("the compressed {word} program cannot be decoded: {message}")
                });
                Loaded {
                    representation: Representation::Undecodable { problem },
                    source: Source::Nothing,
                    length: u64::from(program.size),
                }
            }
        }
    }

    fn autoloads(
        &mut self,
        processor: Processor,
        program: Program,
        params: Option<ModuleParams>,
        loaded: &Loaded,
    ) -> Vec<Autoload> {
        let Some(params) = params else { return Vec::new() };
        let image = match &loaded.source {
            Source::Rom(_) => part(self.rom, program.rom()),
            Source::Blz { kept, .. } => kept.get().and_then(Option::as_deref).unwrap_or_default(),
            Source::Main(_) | Source::Nothing => return Vec::new(),
        };
        params.autoloads(image, program.ram_address).unwrap_or_else(|error| {
            let at = u64::from(program.rom_offset) + u64::from(params.offset);
            self.problems.at("autoload-list", at, || {
                format!("the {} autoload blocks cannot be read: {error}", processor.word())
            });
            Vec::new()
        })
    }

    fn autoload(&mut self, processor: Processor, index: usize, block: &Autoload, loaded: &Loaded, stored: &Range<u32>) {
        let Ok(index) = u8::try_from(index) else { return };
        let bytes = block.image_offset..block.image_offset + block.size;
        let derived = matches!(loaded.source, Source::Blz { .. });
        let in_rom = stored.start + block.image_offset..stored.start + block.image_offset + block.size;
        let initialized_end = u64::from(block.address) + u64::from(block.size);
        let bss = initialized_end..initialized_end + u64::from(block.bss_size);
        self.components.push(Component {
            id: ComponentId { processor, part: Part::Autoload(index) },
            start: block.address,
            initialized_end,
            end: bss.end,
            bss,
            source: if derived { Source::Main(bytes) } else { Source::Rom(in_rom.start) },
            stored: (!derived).then_some(in_rom),
            representation: loaded.representation.clone(),
            compressed: derived,
            file_id: None,
            encrypted: Vec::new(),
        });
    }

    /// Adds the second program of a DSi title.
    fn twl(&mut self, processor: Processor) {
        let Some(dsi) = self.dsi else { return };
        let (program, field) = match processor {
            Processor::Arm9 => (dsi.arm9i, 0x1c0),
            Processor::Arm7 => (dsi.arm7i, 0x1d0),
        };
        if program.size == 0 {
            return;
        }
        let (word, size) = (processor.word(), self.rom.len() as u64);
        let rom = u64::from(program.rom_offset)..u64::from(program.rom_offset) + u64::from(program.size);
        let end = u64::from(program.ram_address) + u64::from(program.size);
        let Some(stored) = narrow(&rom).filter(|_| rom.end <= size && end <= ADDRESSES) else {
            self.problems.at("program-out-of-range", field, || {
                format!(
                    "the {word}i program is said to be at 0x{:x} to 0x{:x} and loaded at 0x{:x}: past the end of the file at 0x{size:x} or of the address space",
                    rom.start, rom.end, program.ram_address
                )
            });
            return;
        };
        let encrypted = self.encrypted(processor, &stored, program.ram_address);
        self.components.push(Component {
            id: ComponentId { processor, part: Part::Twl },
            start: program.ram_address,
            initialized_end: end,
            bss: end..end,
            end,
            source: Source::Rom(stored.start),
            stored: Some(stored),
            representation: Representation::RomFileBacked,
            compressed: false,
            file_id: None,
            encrypted,
        });
    }

    /// The addresses of a program whose stored bytes are encrypted.
    fn encrypted(&mut self, processor: Processor, stored: &Range<u32>, ram: u32) -> Vec<Range<u64>> {
        let secure = self.secure_area.encrypted().filter(|_| processor == Processor::Arm9);
        let modcrypt = self.dsi.map(|dsi| dsi.encrypted(self.header)).unwrap_or_default();
        let areas = secure.map(|area| ("secure-area-encrypted", area)).into_iter();
        let areas = areas.chain(modcrypt.into_iter().map(|area| ("modcrypt-encrypted", area)));
        let mut found = Vec::new();
        for (code, area) in areas {
            let start = area.start.max(u64::from(stored.start));
            let end = area.end.min(u64::from(stored.end));
            if start >= end {
                continue;
            }
            self.problems.at(code, start, || {
                format!(
                    "the {} code at 0x{start:x} to 0x{end:x} is encrypted: it is not read as code",
                    processor.word()
                )
            });
            let to_address = |offset: u64| u64::from(ram) + (offset - u64::from(stored.start));
            found.push(to_address(start)..to_address(end));
        }
        found
    }

    /// Adds the overlays.
    pub fn overlays(&mut self, overlays: &[Overlay]) {
        let mut seen = HashSet::new();
        let mut checked = Budget::new(limits::MAX_NDS_CHECKED_BYTES);
        for overlay in overlays {
            let (word, at) = (overlay.processor.word(), u64::from(overlay.entry_offset));
            let id = ComponentId::overlay(overlay.processor, overlay.id);
            if !seen.insert(id) {
                self.problems.at("overlay-id-twice", at, || {
                    format!("overlay {} of the {word} is in the table twice; only the first is a component", overlay.id)
                });
            } else if overlay.bss_end() > ADDRESSES {
                self.problems.at("ram-range-wraps", at + 4, || {
                    format!(
                        "overlay {} of the {word} is said to be loaded at 0x{:x} with {} and {} bytes, past the end of the address space",
                        overlay.id, overlay.ram_address, overlay.ram_size, overlay.bss_size
                    )
                });
            } else {
                let component = self.overlay(id, overlay, &mut checked);
                self.components.push(component);
            }
        }
    }

    fn overlay(&mut self, id: ComponentId, overlay: &Overlay, checked: &mut Budget) -> Component {
        let file = usize::try_from(overlay.file_id).ok().and_then(|id| self.files.get(id));
        let stored = file.and_then(File::range);
        let made = match (&stored, file) {
            (Some(stored), _) if overlay.is_compressed() => self.compressed(overlay, stored, checked),
            (Some(stored), _) => Ok((Representation::RomFileBacked, Source::Rom(stored.start))),
            (None, None) => Err((
                "overlay-unknown-file",
                format!("it is file {}, and the FAT has {}", overlay.file_id, self.files.len()),
            )),
            (None, Some(_)) => Err(("overlay-file-range", format!("file {} has no bytes in the ROM", overlay.file_id))),
        };
        let at = u64::from(overlay.entry_offset);
        let name = format!("overlay {} of the {}", overlay.id, overlay.processor.word());
        let (representation, source) = made.unwrap_or_else(|(problem, message)| {
            self.problems.at(problem, at + 0x18, || format!("{name} cannot be had: {message}"));
            (Representation::Undecodable { problem }, Source::Nothing)
        });
        let mut initialized_end = overlay.ram_end();
        if let (Representation::RomFileBacked, Some(stored)) = (&representation, &stored) {
            let size = stored.end - stored.start;
            if size < overlay.ram_size {
                self.problems.at("overlay-size", at + 8, || {
                    format!(
                        "{name} is said to have {} bytes, its file has {size}: the rest is not known",
                        overlay.ram_size
                    )
                });
                initialized_end = u64::from(overlay.ram_address) + u64::from(size);
            }
        }
        Component {
            id,
            start: overlay.ram_address,
            initialized_end,
            bss: overlay.ram_end()..overlay.bss_end(),
            end: overlay.bss_end(),
            stored,
            representation,
            compressed: overlay.is_compressed(),
            file_id: Some(overlay.file_id),
            encrypted: Vec::new(),
            source,
        }
    }

    /// Checks a compressed overlay without decoding it: that is done when somebody asks for its bytes.
    fn compressed(
        &self,
        overlay: &Overlay,
        stored: &Range<u32>,
        checked: &mut Budget,
    ) -> Result<(Representation, Source), (&'static str, String)> {
        let size = stored.end - stored.start;
        let length = overlay.compressed_size;
        if length == 0 || length > size {
            return Err((
                "malformed-blz",
                format!("its table entry names {length} compressed bytes, its file has {size}"),
            ));
        }
        checked.charge(u64::from(length)).map_err(|_| {
            (
                "blz-output-limit",
                format!("more than {} compressed bytes would have to be checked", limits::MAX_NDS_CHECKED_BYTES),
            )
        })?;
        let stream = stored.start..stored.start + length;
        let bytes = part(self.rom, wide(&stream));
        let shape = blz::check(bytes).map_err(|error| (error.category(), error.to_string()))?;
        // A stream that nothing was gained by is stored as it is, with padding and a zero word behind it.
        let padded = shape.extra == 0 && shape.image_len() >= u64::from(overlay.ram_size);
        if shape.image_len() != u64::from(overlay.ram_size) && !padded {
            let message =
                format!("it decodes to {} bytes, its table entry names {}", shape.image_len(), overlay.ram_size);
            return Err(("blz-output-size-mismatch", message));
        }
        Ok((Representation::DerivedBlz, Source::Blz { stream, kept: std::sync::OnceLock::new() }))
    }
}

/// A range of the ROM as offsets of 32 bits, which all that lie in a file of legal size are.
fn narrow(range: &Range<u64>) -> Option<Range<u32>> {
    Some(u32::try_from(range.start).ok()?..u32::try_from(range.end).ok()?)
}

fn wide(range: &Range<u32>) -> Range<u64> {
    u64::from(range.start)..u64::from(range.end)
}
