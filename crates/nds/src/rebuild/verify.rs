//! Judges a result by its own bytes: nothing differs from the source outside the plan, everything in the plan is there, and
//! what a parser finds is what the manifest asked for.

use std::ops::Range;

use super::plan::{Patch, Plan, Planned};
use super::target::refuse;
use crate::component::{ComponentId, Processor};
use crate::overlay::Overlay;
use crate::refusal::Refusal;
use crate::rom::{Rom, sha256_hex};

/// What was found of a result that is right.
#[derive(Debug)]
pub struct Report {
    /// The result, parsed.
    pub output: Rom,
    /// Bytes that differ from the source; those behind its end all count.
    pub changed_bytes: u64,
}

/// The beginnings of problem codes about the structures that a rebuild writes or keeps.
const STRUCTURAL: [&str; 5] = ["header-", "fnt-", "fat-", "overlay-", "rom-"];

/// Makes the result: a copy of the source with every patch over it.
pub fn apply(rom: &Rom, plan: &Plan) -> Result<Vec<u8>, Refusal> {
    let lost = || failed("staging-failed", "a change lies outside the result".to_owned());
    let size = usize::try_from(plan.final_size).map_err(|_| lost())?;
    let mut image = Vec::new();
    image
        .try_reserve_exact(size)
        .map_err(|error| failed("staging-failed", format!("there is no memory for {size} bytes: {error}")))?;
    image.extend_from_slice(rom.bytes());
    image.resize(size, 0);
    for patch in &plan.patches {
        let start = patch.start as usize;
        let place = image.get_mut(start..start + patch.bytes.len()).ok_or_else(lost)?;
        place.copy_from_slice(&patch.bytes);
    }
    Ok(image)
}

fn failed(category: &'static str, message: String) -> Refusal {
    refuse(category, message, "Nothing of it is published. Build again from the source.")
}

/// Judges the bytes of a result.
pub fn verify(rom: &Rom, plan: &Plan, output: Vec<u8>) -> Result<Report, Refusal> {
    if output.len() as u64 != plan.final_size {
        let message = format!("the result has {} bytes, the plan {}", output.len(), plan.final_size);
        return Err(failed("output-verification-failed", message));
    }
    check_untouched(rom, plan, &output)?;
    let mut changed = plan.final_size.saturating_sub(plan.source_size);
    for patch in &plan.patches {
        let there = output.get(patch.start as usize..).and_then(|rest| rest.get(..patch.bytes.len()));
        if there != Some(patch.bytes.as_slice()) {
            let message = format!("the {} at 0x{:x} is not what was planned", patch.kind, patch.start);
            return Err(failed("output-verification-failed", message));
        }
        let before = rom.bytes().get(patch.start as usize..).unwrap_or_default();
        changed += patch.bytes.iter().zip(before).filter(|(new, old)| new != old).count() as u64;
    }
    let output = Rom::parse(output).map_err(|refusal| failed("post-build-parse-failed", refusal.message))?;
    check_structure(rom, plan, &output)?;
    for (index, operation) in plan.operations.iter().enumerate() {
        check_operation(&output, index, operation)?;
    }
    for (processor, id, sha256) in &plan.compressed {
        if decoded(&output, *processor, *id).as_ref() != Some(sha256) {
            let message = format!("{} overlay {id} does not decode to what was planned", processor.word());
            return Err(failed("output-verification-failed", message));
        }
    }
    Ok(Report { output, changed_bytes: changed })
}

/// Every byte outside the patches is the source's, or zero behind its end.
fn check_untouched(rom: &Rom, plan: &Plan, output: &[u8]) -> Result<(), Refusal> {
    let mut at = 0;
    let ends = plan.patches.iter().map(|patch| (patch.start as usize, patch_end(patch)));
    for (start, end) in ends.chain([(output.len(), output.len())]) {
        if let Some(offset) = differs(rom.bytes(), output, at..start) {
            return Err(failed("unexpected-rom-diff", format!("the byte at 0x{offset:x} was changed by no operation")));
        }
        at = end;
    }
    Ok(())
}

fn patch_end(patch: &Patch) -> usize {
    patch.start as usize + patch.bytes.len()
}

fn differs(source: &[u8], output: &[u8], range: Range<usize>) -> Option<usize> {
    let new = output.get(range.clone())?;
    let old = source.get(range.start.min(source.len())..range.end.min(source.len())).unwrap_or_default();
    let (kept, behind) = new.split_at_checked(old.len())?;
    if kept != old {
        return kept.iter().zip(old).position(|(new, old)| new != old).map(|at| range.start + at);
    }
    behind.iter().position(|byte| *byte != 0).map(|at| range.start + kept.len() + at)
}

fn check_structure(rom: &Rom, plan: &Plan, output: &Rom) -> Result<(), Refusal> {
    let is_new = |code: &str| !rom.problems().iter().any(|problem| problem.code == code);
    let structural = |code: &str| STRUCTURAL.iter().any(|start| code.starts_with(start));
    if let Some(problem) = output.problems().iter().find(|problem| structural(problem.code) && is_new(problem.code)) {
        return Err(failed("post-build-parse-failed", problem.message.clone()));
    }
    let changed = |what: String| Err(failed("structural-map-changed", what));
    let files: Vec<Range<u32>> = output.files().iter().map(|file| file.start..file.end).collect();
    if files != plan.files {
        return changed("the FAT is not the planned one".to_owned());
    }
    if plan.layout.is_some()
        && (output.directories().max(1) != plan.directories.max(1) || !output.header().is_sealed(output.bytes()))
    {
        return changed("the directories or the header's checksum are not the planned ones".to_owned());
    }
    // Version 3 may move names to appended numbers, so paths are looked for, not numbers.
    let mut paths: Vec<&str> = output.files().iter().filter_map(|file| file.path.as_deref()).collect();
    paths.sort_unstable();
    for file in rom.files() {
        let Some(path) = file.path.as_deref() else { continue };
        if output.file(file.id).and_then(|file| file.path.as_deref()) != Some(path)
            && paths.binary_search(&path).is_err()
        {
            return changed(format!("`{path}` has lost its name"));
        }
    }
    let record = |overlay: &Overlay| Overlay { compressed_size: 0, entry_offset: 0, ..overlay.clone() };
    if !rom.overlays().iter().map(record).eq(output.overlays().iter().map(record)) {
        return changed("the overlays are not those of the source".to_owned());
    }
    let places = |rom: &Rom| {
        let places = rom.components().iter().filter(|component| component.id.part != crate::component::Part::Main);
        places.map(|component| (component.id, component.start, component.end)).collect::<Vec<_>>()
    };
    if places(rom) != places(output) {
        return changed("the components are not those of the source".to_owned());
    }
    Ok(())
}

fn check_operation(output: &Rom, index: usize, operation: &Planned) -> Result<(), Refusal> {
    let found = match (operation.kind, operation.overlay, operation.file) {
        ("decoded-overlay", Some((processor, id)), _) => decoded(output, processor, id),
        ("decoded-program", _, _) => output
            .component(ComponentId::main(Processor::Arm9))
            .and_then(|main| main.source_bytes(output))
            .map(sha256_hex),
        ("added", _, Some(id))
            if output.file(id).and_then(|file| file.path.as_deref()) != operation.path.as_deref() =>
        {
            None
        }
        ("relocated" | "added", _, Some(id)) => {
            output.file(id).and_then(crate::fat::File::range).map(|range| sha256_hex(stored(output, &range)))
        }
        _ => Some(sha256_hex(stored(output, &operation.range))),
    };
    if found.as_ref() == Some(&operation.sha256) {
        return Ok(());
    }
    let message = format!("/operations/{index}: its bytes in the result are not those that were asked for");
    Err(failed("output-verification-failed", message))
}

fn stored<'a>(rom: &'a Rom, range: &Range<u32>) -> &'a [u8] {
    rom.bytes().get(range.start as usize..range.end as usize).unwrap_or_default()
}

fn decoded(rom: &Rom, processor: Processor, id: u32) -> Option<String> {
    rom.component(ComponentId::overlay(processor, id))?.image(rom).map(sha256_hex)
}
