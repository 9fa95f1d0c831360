//! Operations on what is stored compressed: overlays, which move, and the ARM9 program, which stays where it is.

use super::super::manifest::Operation;
use super::super::target::{self, Stored, refuse};
use super::{Planner, guard, no_op, unsupported_rebuild};
use crate::blz::{self, EncodeError};
use crate::component::{ComponentId, Processor};
use crate::refusal::Refusal;
use crate::rom::sha256_hex;
use base::{Budget, limits};

impl Planner<'_> {
    pub(super) fn decoded_overlay(
        &mut self,
        index: usize,
        operation: &Operation,
        place: Stored,
        runtime: &str,
        new: &[u8],
        plain: u32,
    ) -> Result<(), Refusal> {
        let (processor, id) = place.overlay.unwrap_or((Processor::Arm9, 0));
        let component = self.rom.component(ComponentId::overlay(processor, id));
        let overlay = self.rom.overlays().iter().find(|overlay| overlay.processor == processor && overlay.id == id);
        let (Some(component), Some(overlay)) = (component, overlay) else {
            return Err(target::unsupported(format!("{} overlay {id} has no bytes", processor.word())));
        };
        if !overlay.is_compressed() {
            return Err(unsupported_rebuild(format!(
                "{} overlay {id} is not compressed: use replace-component",
                processor.word()
            )));
        }
        if self.rom.overlays().iter().filter(|other| other.file_id == overlay.file_id).count() > 1 {
            return Err(unsupported_rebuild(format!("several overlays are made of file {}", overlay.file_id)));
        }
        let image = component.image(self.rom).ok_or_else(|| {
            let message = format!("{} overlay {id} cannot be decoded", processor.word());
            refuse("compressed-overlay-invalid", message, "See `problems` of nds_inspect_rom.")
        })?;
        let actual = sha256_hex(image);
        guard("decoded-overlay-guard-failed", "the decoded overlay", runtime, &actual)?;
        if new.len() != overlay.ram_size as usize {
            let message = format!("the new image has {} bytes, the overlay {}", new.len(), overlay.ram_size);
            return Err(refuse(
                "replacement-size-mismatch",
                message,
                "The size of an overlay in memory cannot change.",
            ));
        }
        let sha256 = sha256_hex(new);
        if sha256 == actual {
            return Err(no_op(index));
        }
        let stream =
            match self.recorded.and_then(|recorded| recorded.file(overlay.file_id).map(|file| (recorded, file))) {
                Some((recorded, file)) => {
                    let range = file.range().unwrap_or_default();
                    recorded.bytes().get(range.start as usize..range.end as usize).unwrap_or_default().to_vec()
                }
                None => blz::encode(new, plain as usize).map_err(|error| encode_failed(&error))?,
            };
        round_trip(&stream, new)?;
        self.recompressed.insert((processor, id), stream.len() as u32);
        self.compressed.push((processor, id, sha256.clone()));
        self.relocate(index, operation, "decoded-overlay", place, stream, sha256)
    }

    /// The ARM9 program stays where it is, as its start-up code and the card's protocol want it. What it gains or loses is
    /// the room up to what follows.
    pub(super) fn decoded_program(
        &mut self,
        index: usize,
        operation: &Operation,
        place: Stored,
        runtime: &str,
        mut new: Vec<u8>,
        plain: u32,
    ) -> Result<(), Refusal> {
        let processor = Processor::Arm9;
        let main = self.rom.component(ComponentId::main(processor));
        let params = self.rom.module_params(processor);
        let (Some(main), Some(params)) = (main.filter(|main| main.compressed), params) else {
            return Err(unsupported_rebuild("the ARM9 program is not compressed: use replace-component".to_owned()));
        };
        let undecodable = || unsupported_rebuild("the ARM9 program cannot be decoded".to_owned());
        let image = main.source_bytes(self.rom).ok_or_else(undecodable)?;
        guard("decoded-overlay-guard-failed", "the decoded program", runtime, &sha256_hex(image))?;
        if new.len() != image.len() {
            let message = format!("the new image has {} bytes, the program {}", new.len(), image.len());
            return Err(refuse(
                "replacement-size-mismatch",
                message,
                "The size of the program in memory cannot change.",
            ));
        }
        if new == image {
            return Err(no_op(index));
        }
        let old_length = params.compressed_end.saturating_sub(main.start);
        let old = self.bytes(&(place.range.start..place.range.start.saturating_add(old_length))).to_vec();
        let shape = blz::shape(&old).map_err(|_| undecodable())?;
        let least = usize::try_from(shape.plain).unwrap_or_default().max(plain as usize);
        // The word that tells the start-up code where the stream ends is part of the image, and depends on the stream.
        let word = (params.offset as usize).saturating_add(0x14);
        if least < word + 4 {
            return Err(unsupported_rebuild("the program's own parameters are compressed".to_owned()));
        }
        let mut stream = blz::encode(&new, least).map_err(|error| encode_failed(&error))?;
        let end = (main.start).saturating_add(stream.len() as u32).to_le_bytes();
        for bytes in [&mut new, &mut stream] {
            if let Some(place) = bytes.get_mut(word..word + 4) {
                place.copy_from_slice(&end);
            }
        }
        round_trip(&stream, &new)?;
        // What the SDK puts behind the program: 12 bytes for its own start-up code.
        let rest = self.bytes(&(place.range.start.saturating_add(old_length)..place.range.end)).to_vec();
        let footer = self.bytes(&(place.range.end..place.range.end.saturating_add(12))).to_vec();
        let footer = if footer.starts_with(&0xdec0_0621_u32.to_le_bytes()) { footer } else { Vec::new() };
        let size = (stream.len() + rest.len()) as u32;
        let sha256 = sha256_hex(&new);
        let mut bytes = stream;
        bytes.extend(rest);
        bytes.extend(&footer);
        let old_end = place.range.end.saturating_add(footer.len() as u32);
        bytes.resize(bytes.len().max((old_end - place.range.start) as usize), 0);
        let range = place.range.start..place.range.start.saturating_add(bytes.len() as u32);
        if let Some(next) = self.next_owner(place.range.end).filter(|next| *next < range.end) {
            let room = next - place.range.start;
            let message = format!("the compressed program needs {} bytes, and there is room for {room}", bytes.len());
            return Err(refuse("blz-packed-size-overflow", message, "Change less, or so that it compresses better."));
        }
        self.arm9_size = Some(size);
        let stored = Stored { range: range.clone(), file: None, overlay: None };
        self.fixed(index, operation, stored, bytes, None);
        if let Some(planned) = self.operations.last_mut() {
            planned.kind = "decoded-program";
            planned.sha256 = sha256;
            planned.range = range.start..range.start + size;
            planned.source = Some(place.range);
        }
        Ok(())
    }

    /// Where the next thing that anybody owns begins.
    fn next_owner(&self, from: u32) -> Option<u32> {
        let header = self.rom.header();
        let files = self.rom.files().iter().filter_map(|file| file.range()).map(|range| range.start);
        let structures = self.rom.structures().into_iter().map(|(_, range)| range.start as u32);
        let others = [header.arm7.rom_offset, header.banner_offset, self.rom.bytes().len() as u32];
        let dsi = self.rom.dsi().into_iter().flat_map(|dsi| [dsi.arm9i.rom_offset, dsi.arm7i.rom_offset]);
        files.chain(structures).chain(others).chain(dsi).filter(|start| *start >= from).min()
    }

    /// Checks the streams of compressed overlays of which stored bytes were edited.
    pub(super) fn check_compressed(&mut self) -> Result<(), Refusal> {
        for overlay in self.rom.overlays().iter().filter(|overlay| overlay.is_compressed()) {
            let Some(range) = self.rom.file(overlay.file_id).and_then(|file| file.range()) else { continue };
            let mut stored = self.bytes(&range).to_vec();
            let mut touched = false;
            for patch in self.fixed.iter().filter(|patch| patch.end() > range.start.into() && patch.start < range.end) {
                touched = true;
                for (at, byte) in (patch.start..).zip(&patch.bytes) {
                    if let Some(place) = at.checked_sub(range.start).and_then(|at| stored.get_mut(at as usize)) {
                        *place = *byte;
                    }
                }
            }
            if !touched {
                continue;
            }
            stored.truncate(overlay.compressed_size as usize);
            let invalid = |what: String| {
                let name = format!("{} overlay {}", overlay.processor.word(), overlay.id);
                let action = "Edit compressed code as a decoded image (replace-decoded-overlay).";
                refuse("compressed-overlay-invalid", format!("{name} would be no stream of its image: {what}"), action)
            };
            let image = blz::decode(&stored, &mut Budget::new(limits::MAX_NDS_IMAGE_BYTES))
                .map_err(|error| invalid(error.to_string()))?;
            if image.len() != overlay.ram_size as usize {
                return Err(invalid(format!("it decodes to {} bytes, not {}", image.len(), overlay.ram_size)));
            }
            self.compressed.push((overlay.processor, overlay.id, sha256_hex(&image)));
        }
        Ok(())
    }
}

fn encode_failed(error: &EncodeError) -> Refusal {
    let category = match error {
        EncodeError::NoGain(_) => "blz-encode-failed",
        EncodeError::TooLarge(_) => "blz-packed-size-overflow",
    };
    refuse(category, error.to_string(), "Change the image so that it compresses, or change less.")
}

/// Proves that a stream decodes to what it was made of.
fn round_trip(stream: &[u8], image: &[u8]) -> Result<(), Refusal> {
    let decoded = blz::decode(stream, &mut Budget::new(limits::MAX_NDS_IMAGE_BYTES));
    if decoded.as_deref() == Ok(image) {
        return Ok(());
    }
    let message = "the stored stream does not decode to the replacement".to_owned();
    Err(refuse("blz-roundtrip-mismatch", message, "Nothing was written. Please report this with the manifest."))
}
