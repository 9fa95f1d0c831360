//! Where a manifest's targets are in the ROM: one range of stored bytes for each, or a refusal that says why there is none.

use std::ops::Range;

use super::manifest::{Locator, Target};
use crate::component::{Component, ComponentId, Part, Processor, Representation};
use crate::refusal::Refusal;
use crate::rom::Rom;

/// Stored bytes and who owns them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    pub range: Range<u32>,
    /// The file, for files and overlays.
    pub file: Option<u32>,
    /// The overlay, for overlays.
    pub overlay: Option<(Processor, u32)>,
}

pub(super) fn refuse(category: &'static str, message: String, action: &str) -> Refusal {
    Refusal::new(category, message, action)
}

pub(super) fn unsupported(message: String) -> Refusal {
    let action = "Name another target; nds_list_overlays and nds_list_files have those of this ROM.";
    Refusal::new("unsupported-mutation-target", message, action)
}

/// The stored bytes of a target.
pub(super) fn stored(rom: &Rom, target: &Target) -> Result<Stored, Refusal> {
    match target {
        Target::Program(processor) => {
            let main = component(rom, ComponentId::main(*processor))?;
            let range = main
                .stored
                .clone()
                .ok_or_else(|| unsupported(format!("the {} has no program in this ROM", processor.word())))?;
            Ok(Stored { range, file: None, overlay: None })
        }
        Target::Overlay(processor, id) => {
            let id = id.ok_or_else(|| unsupported("an overlay needs its number here".to_owned()))?;
            let overlays = rom.overlays().iter();
            let mut same = overlays.filter(|overlay| overlay.processor == *processor && overlay.id == id);
            let missing = || unsupported(format!("this ROM has no {} overlay {id}", processor.word()));
            let overlay = same.next().ok_or_else(missing)?;
            if same.next().is_some() {
                let message = format!("this ROM has several {} overlays {id}", processor.word());
                return Err(refuse("overlay-table-rebuild-failed", message, "Repair the overlay table first."));
            }
            let stored = file(rom, overlay.file_id)?;
            Ok(Stored { overlay: Some((*processor, id)), ..stored })
        }
        Target::Autoload(processor, index) => {
            let id = ComponentId { processor: *processor, part: Part::Autoload(*index) };
            let block = component(rom, id)?;
            let main = component(rom, ComponentId::main(*processor))?;
            let place = rom.autoloads(*processor).get(usize::from(*index));
            match (&main.representation, &main.stored, place) {
                (Representation::RomFileBacked, Some(main), Some(place)) => {
                    let size = block.initialized_end.saturating_sub(block.start.into()).min(main.len() as u64) as u32;
                    let start = main.start.saturating_add(place.image_offset);
                    Ok(Stored { range: start..start.saturating_add(size).min(main.end), file: None, overlay: None })
                }
                _ => Err(refuse(
                    "unsupported-mutation-target",
                    "the main program is compressed, so its autoload blocks are not stored as they are".to_owned(),
                    "Replace the decoded program instead (replace-decoded-program).",
                )),
            }
        }
        Target::File(id) => file(rom, *id),
        Target::Path(path) => {
            let path = path.strip_prefix('/').unwrap_or(path);
            let found = rom.files().iter().find(|file| file.path.as_deref() == Some(path));
            let shown: String = path.chars().take(200).collect();
            file(rom, found.ok_or_else(|| unsupported(format!("this ROM has no file `{shown}`")))?.id)
        }
    }
}

/// The range of `length` bytes that an edit is about.
pub(super) fn edited(rom: &Rom, target: &Target, at: Locator, length: u32) -> Result<Stored, Refusal> {
    let (stored, offset) = match at {
        Locator::Offset(offset) => (stored(rom, target)?, offset),
        Locator::Address(address) => addressed(rom, target, address)?,
    };
    let start = stored.range.start.checked_add(offset);
    let end = start.and_then(|start| start.checked_add(length)).filter(|end| *end <= stored.range.end);
    let (Some(start), Some(end)) = (start, end) else {
        return Err(unsupported(format!(
            "{length} bytes from 0x{offset:x} on pass the end of the target, which has 0x{:x}",
            stored.range.len()
        )));
    };
    Ok(Stored { range: start..end, ..stored })
}

/// The component at an address, and the address' place in its stored bytes.
fn addressed(rom: &Rom, target: &Target, address: u32) -> Result<(Stored, u32), Refusal> {
    let (processor, wanted) = match target {
        Target::Program(processor) => (*processor, Some(Part::Main)),
        Target::Overlay(processor, id) => (*processor, id.map(Part::Overlay)),
        Target::Autoload(processor, index) => (*processor, Some(Part::Autoload(*index))),
        Target::File(_) | Target::Path(_) => return Err(unsupported("a file has no addresses".to_owned())),
    };
    let there = |component: &&Component| component.id.processor == processor && component.is_initialized(address);
    let all: Vec<&Component> = rom.components().iter().filter(there).collect();
    let named = |part: Part| all.iter().copied().find(|component| component.id.part == part);
    let overlays = || all.iter().copied().filter(|component| matches!(component.id.part, Part::Overlay(_)));
    let found = match wanted {
        // The main program is what is meant only where no overlay can be there too.
        Some(Part::Main) if overlays().count() > usize::from(named(Part::Main).is_none()) => None,
        Some(part) => Some(named(part)),
        None if overlays().count() > 1 => None,
        None => Some(overlays().next()),
    };
    let Some(found) = found else {
        let names: Vec<String> = all.iter().take(8).map(|component| component.id.name()).collect();
        return Err(refuse(
            "ambiguous-runtime-target",
            format!("0x{address:08x} is in {} at different times", names.join(", ")),
            "Name the overlay by overlayId, or the place by relativeOffset.",
        ));
    };
    let component = found.ok_or_else(|| unsupported(format!("0x{address:08x} is no stored byte of the target")))?;
    if component.representation != Representation::RomFileBacked {
        return Err(refuse(
            "unsupported-mutation-target",
            format!("{} is compressed: the byte at 0x{address:08x} is stored nowhere", component.id.name()),
            "Replace its decoded image (replace-decoded-overlay).",
        ));
    }
    let target = match component.id.part {
        Part::Overlay(id) => Target::Overlay(processor, Some(id)),
        Part::Autoload(index) => Target::Autoload(processor, index),
        Part::Main | Part::Twl => Target::Program(processor),
    };
    Ok((stored(rom, &target)?, address - component.start))
}

fn component(rom: &Rom, id: ComponentId) -> Result<&Component, Refusal> {
    rom.component(id).ok_or_else(|| unsupported(format!("this ROM has no {}", id.name())))
}

fn file(rom: &Rom, id: u32) -> Result<Stored, Refusal> {
    let file = rom.file(id).ok_or_else(|| unsupported(format!("this ROM has no file {id}")))?;
    let range = file.range().ok_or_else(|| unsupported(format!("the range of file {id} is damaged")))?;
    Ok(Stored { range, file: Some(id), overlay: None })
}
