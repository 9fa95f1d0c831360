//! What a manifest does to its ROM, decided before anything is changed: every guard is checked here, and every byte that the
//! result will have other than the source is in a patch with an owner.

mod compressed;

use std::collections::BTreeMap;
use std::ops::Range;

use base::{Budget, Problem, limits};
use serde_json::json;

use super::layout::{self, Layout};
use super::manifest::{ArtifactRef, Manifest, Operation, Target};
use super::names::{self, Named, Owner};
use super::target::{self, Stored, refuse};
use super::{EARLIER_ENCODER_CONTRACT, ENCODER_CONTRACT, REBUILD_CONTRACT, json};
use crate::component::Processor;
use crate::refusal::Refusal;
use crate::rom::{Rom, sha256_hex};

/// Bytes that the result has in place of the source's, or behind them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    /// First offset in the result.
    pub start: u32,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// What they are: `operation`, `relocated-file`, `new-file`, `fnt`, `fat`, an overlay table, `header`.
    pub kind: &'static str,
    /// The file's number, or the operation's index.
    pub owner: Option<u32>,
}

impl Patch {
    /// End in the result.
    pub fn end(&self) -> u64 {
        u64::from(self.start) + self.bytes.len() as u64
    }
}

/// What became of one operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// `fixed`, `relocated`, `added`, `decoded-overlay` or `decoded-program`.
    pub kind: &'static str,
    /// The word of the format.
    pub operation: &'static str,
    /// Where its bytes are in the result.
    pub range: Range<u32>,
    /// Where the bytes that it replaces are in the source.
    pub source: Option<Range<u32>>,
    /// The file's number.
    pub file: Option<u32>,
    /// The overlay.
    pub overlay: Option<(Processor, u32)>,
    /// The path of a new file.
    pub path: Option<String>,
    /// SHA-256 of its bytes in the result: stored ones, or decoded ones for a decoded image.
    pub sha256: String,
    /// The first bytes before and after, for an edit of bytes.
    pub diff: Option<(String, String)>,
}

/// A plan.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The manifest.
    pub manifest: Manifest,
    /// Its identity with all that it depends on, 64 lowercase hexadecimal digits.
    pub build_id: String,
    /// Version of the encoder that the identity names.
    pub encoder: u32,
    /// Bytes of the source.
    pub source_size: u64,
    /// Bytes of the result.
    pub final_size: u64,
    /// All differences, in the order of offsets, none touching another's bytes.
    pub patches: Vec<Patch>,
    /// The operations, in the manifest's order.
    pub operations: Vec<Planned>,
    /// What was appended; `None` when every byte stays in its place.
    pub layout: Option<Layout>,
    /// What the result's FAT says, by number.
    pub files: Vec<Range<u32>>,
    /// How many directories are new.
    pub added_directories: usize,
    /// Directories of the result.
    pub directories: usize,
    /// Compressed overlays that were touched, with the SHA-256 of what they decode to.
    pub compressed: Vec<(Processor, u32, String)>,
    /// What a person should know before building.
    pub problems: Vec<Problem>,
}

/// Gives the content of a file of the workspace.
pub type Source<'a> = dyn FnMut(&ArtifactRef) -> Result<Vec<u8>, Refusal> + 'a;

/// A file whose bytes move to the end.
pub(super) struct Moving {
    pub bytes: Vec<u8>,
    pub operation: usize,
}

/// The work in progress.
struct Planner<'a> {
    rom: &'a Rom,
    /// An earlier encoder's build that is judged; its streams are taken as they are.
    recorded: Option<&'a Rom>,
    /// Changes within the source, with the operation's index.
    fixed: Vec<Patch>,
    /// Source ranges that belong to an operation.
    claims: Vec<(Range<u32>, usize)>,
    moving: BTreeMap<u32, Moving>,
    /// New compressed sizes by overlay.
    recompressed: BTreeMap<(Processor, u32), u32>,
    added: Vec<(String, Vec<u8>, usize)>,
    operations: Vec<Planned>,
    compressed: Vec<(Processor, u32, String)>,
    arm9_size: Option<u32>,
    read: Budget,
}

/// Makes the plan. `recorded` is the result of an earlier encoder that is to be judged, if there is one.
pub fn plan(rom: &Rom, manifest: Manifest, source: &mut Source<'_>, recorded: Option<&Rom>) -> Result<Plan, Refusal> {
    if rom.sha256() != manifest.source_sha256 {
        let message = format!("the manifest is about the ROM {}, this one is {}", manifest.source_sha256, rom.sha256());
        return Err(refuse("source-rom-mismatch", message, "Name the ROM that the manifest was made for."));
    }
    let mut planner = Planner {
        rom,
        recorded,
        fixed: Vec::new(),
        claims: Vec::new(),
        moving: BTreeMap::new(),
        recompressed: BTreeMap::new(),
        added: Vec::new(),
        operations: Vec::new(),
        compressed: Vec::new(),
        arm9_size: None,
        read: Budget::new(limits::MAX_MUTATION_ARTIFACTS_BYTES),
    };
    for (index, operation) in manifest.operations.iter().enumerate() {
        planner.operation(index, operation, source)?;
    }
    planner.check_overlaps()?;
    planner.check_compressed()?;
    planner.finish(manifest)
}

fn guard(category: &'static str, what: &str, expected: &str, actual: &str) -> Result<(), Refusal> {
    if expected == actual {
        return Ok(());
    }
    let message = format!("{what} has SHA-256 {actual}, the manifest expects {expected}");
    Err(refuse(category, message, "Make the manifest anew from this ROM."))
}

fn no_op(index: usize) -> Refusal {
    refuse("mutation-no-op", format!("/operations/{index} changes nothing"), "Remove it, or correct its replacement.")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().take(limits::MUTATION_DIFF_BYTES).map(|byte| format!("{byte:02x}")).collect()
}

impl Planner<'_> {
    fn bytes(&self, range: &Range<u32>) -> &[u8] {
        self.rom.bytes().get(range.start as usize..range.end as usize).unwrap_or_default()
    }

    fn artifact(&mut self, artifact: &ArtifactRef, source: &mut Source<'_>) -> Result<Vec<u8>, Refusal> {
        let bytes = source(artifact)?;
        let too_many = |_| {
            let message =
                format!("the replacements have more than {} bytes in all", limits::MAX_MUTATION_ARTIFACTS_BYTES);
            refuse("rom-capacity-exceeded", message, "Replace less.")
        };
        self.read.charge(bytes.len() as u64).map_err(too_many)?;
        let actual = sha256_hex(&bytes);
        guard("replacement-artifact-hash-mismatch", &format!("`{}`", artifact.path), &artifact.sha256, &actual)?;
        Ok(bytes)
    }

    fn operation(&mut self, index: usize, operation: &Operation, source: &mut Source<'_>) -> Result<(), Refusal> {
        match operation {
            Operation::Bytes { target, at, expected, replacement } => {
                let stored = target::edited(self.rom, target, *at, expected.len() as u32)?;
                self.check_structures(&stored.range)?;
                if self.bytes(&stored.range) != expected {
                    let message = format!(
                        "at 0x{:x} of the ROM stands {}, the manifest expects {}",
                        stored.range.start,
                        hex(self.bytes(&stored.range)),
                        hex(expected)
                    );
                    return Err(refuse("original-byte-guard-failed", message, "Make the manifest anew from this ROM."));
                }
                if expected == replacement {
                    return Err(no_op(index));
                }
                let diff = Some((hex(expected), hex(replacement)));
                self.fixed(index, operation, stored, replacement.clone(), diff);
            }
            Operation::Component { target, original, artifact } => {
                let stored = target::stored(self.rom, target)?;
                self.check_structures(&stored.range)?;
                let actual = sha256_hex(self.bytes(&stored.range));
                guard("original-component-guard-failed", "the component", original, &actual)?;
                let bytes = self.artifact(artifact, source)?;
                if bytes.len() != stored.range.len() {
                    let message =
                        format!("`{}` has {} bytes, the component {}", artifact.path, bytes.len(), stored.range.len());
                    return Err(refuse("replacement-size-mismatch", message, "Replace it by as many bytes."));
                }
                if artifact.sha256 == *original {
                    return Err(no_op(index));
                }
                self.fixed(index, operation, stored, bytes, None);
            }
            Operation::File { target, original, artifact } => {
                let stored = target::stored(self.rom, target)?;
                let actual = sha256_hex(self.bytes(&stored.range));
                guard("original-component-guard-failed", "the file", original, &actual)?;
                let id = stored.file.unwrap_or_default();
                if self.rom.overlays().iter().any(|overlay| overlay.file_id == id) {
                    return Err(unsupported_rebuild(format!("file {id} is an overlay")));
                }
                let bytes = self.artifact(artifact, source)?;
                check_file_size(artifact, &bytes)?;
                if artifact.sha256 == *original {
                    return Err(no_op(index));
                }
                let sha256 = artifact.sha256.clone();
                self.relocate(index, operation, "relocated", stored, bytes, sha256)?;
            }
            Operation::Add { path, artifact } => {
                let bytes = self.artifact(artifact, source)?;
                check_file_size(artifact, &bytes)?;
                self.operations.push(Planned {
                    kind: "added",
                    operation: operation.word(),
                    range: 0..0,
                    source: None,
                    file: None,
                    overlay: None,
                    path: Some(path.clone()),
                    sha256: artifact.sha256.clone(),
                    diff: None,
                });
                self.added.push((path.clone(), bytes, index));
                let all: u64 = self.added.iter().map(|(_, bytes, _)| bytes.len() as u64).sum();
                if self.added.len() > limits::MAX_NEW_NDS_FILES || all > limits::MAX_NEW_NDS_FILES_BYTES {
                    let (files, most) = (limits::MAX_NEW_NDS_FILES, limits::MAX_NEW_NDS_FILES_BYTES);
                    let message = format!("at most {files} files with {most} bytes in all can be added");
                    return Err(refuse("filesystem-extension-invalid", message, "Add fewer files."));
                }
            }
            Operation::Decoded { target, stored, runtime, artifact, plain } => {
                let place = target::stored(self.rom, target)?;
                let actual = sha256_hex(self.bytes(&place.range));
                guard("original-component-guard-failed", "what is stored", stored, &actual)?;
                let new = self.artifact(artifact, source)?;
                match target {
                    Target::Program(_) => self.decoded_program(index, operation, place, runtime, new, *plain)?,
                    _ => self.decoded_overlay(index, operation, place, runtime, &new, *plain)?,
                }
            }
        }
        Ok(())
    }

    fn fixed(
        &mut self,
        index: usize,
        operation: &Operation,
        stored: Stored,
        bytes: Vec<u8>,
        diff: Option<(String, String)>,
    ) {
        self.operations.push(Planned {
            kind: "fixed",
            operation: operation.word(),
            range: stored.range.clone(),
            source: Some(stored.range.clone()),
            file: stored.file,
            overlay: stored.overlay,
            path: None,
            sha256: sha256_hex(&bytes),
            diff,
        });
        self.claims.push((stored.range.clone(), index));
        self.fixed.push(Patch { start: stored.range.start, bytes, kind: "operation", owner: Some(index as u32) });
    }

    fn relocate(
        &mut self,
        index: usize,
        operation: &Operation,
        kind: &'static str,
        stored: Stored,
        bytes: Vec<u8>,
        sha256: String,
    ) -> Result<(), Refusal> {
        let id = stored.file.unwrap_or_default();
        let shared = self.rom.files().iter().find(|file| {
            file.id != id
                && file.range().is_some_and(|range| {
                    range.start < stored.range.end.max(stored.range.start + 1) && stored.range.start < range.end
                })
        });
        if let Some(other) = shared {
            return Err(unsupported_rebuild(format!("file {id} shares bytes with file {}", other.id)));
        }
        self.check_structures(&stored.range)?;
        self.claims.push((stored.range.clone(), index));
        self.operations.push(Planned {
            kind,
            operation: operation.word(),
            range: 0..0,
            source: Some(stored.range),
            file: Some(id),
            overlay: stored.overlay,
            path: None,
            sha256,
            diff: None,
        });
        if self.moving.insert(id, Moving { bytes, operation: index }).is_some() {
            return Err(overlap(&format!("file {id} is replaced twice")));
        }
        Ok(())
    }

    fn check_structures(&self, range: &Range<u32>) -> Result<(), Refusal> {
        let (start, end) = (u64::from(range.start), u64::from(range.end));
        let hit = self.rom.structures().into_iter().find(|(_, owned)| owned.start < end && start < owned.end);
        match hit {
            None => Ok(()),
            Some((kind, _)) => Err(refuse(
                "structural-metadata-mutation",
                format!("0x{start:x} to 0x{end:x} is part of the {kind}, which only the rebuild itself writes"),
                "Use the operations that change files; the tables follow.",
            )),
        }
    }

    fn check_overlaps(&mut self) -> Result<(), Refusal> {
        self.claims.sort_by_key(|(range, index)| (range.start, range.end, *index));
        for (one, other) in self.claims.iter().zip(self.claims.iter().skip(1)) {
            if other.0.start < one.0.end || one.0 == other.0 {
                return Err(overlap(&format!(
                    "/operations/{} and /operations/{} change the same bytes",
                    one.1, other.1
                )));
            }
        }
        self.fixed.sort_by_key(|patch| patch.start);
        Ok(())
    }

    fn finish(mut self, manifest: Manifest) -> Result<Plan, Refusal> {
        let problems = self.stale_digests(&manifest)?;
        let paths: Vec<&str> = self.added.iter().map(|(path, _, _)| path.as_str()).collect();
        let named =
            if paths.is_empty() { Named::default() } else { names::add(self.rom, &paths, manifest.version >= 3)? };
        let mut files: Vec<Range<u32>> = self.rom.files().iter().map(|file| file.start..file.end).collect();
        // Version 2 writes the FAT anew always; version 3 only for a reason.
        let appends = !self.moving.is_empty() || !self.added.is_empty();
        let layout = if appends || manifest.version == 2 {
            let added: Vec<&[u8]> = self.added.iter().map(|(_, bytes, _)| bytes.as_slice()).collect();
            let input = layout::Input {
                rom: self.rom,
                moving: &self.moving,
                added: &added,
                named: &named,
                recompressed: &self.recompressed,
                pad: manifest.pad_to_capacity,
            };
            Some(layout::make(&input, &mut files, &mut self.fixed)?)
        } else {
            None
        };
        if let Some(size) = self.arm9_size {
            layout::program_size(self.rom, size, &mut self.fixed)?;
        }
        for (id, moving) in &self.moving {
            if let (Some(planned), Some(range)) = (self.operations.get_mut(moving.operation), files.get(*id as usize)) {
                planned.range = range.clone();
            }
        }
        let first_new = self.rom.files().len();
        for (at, owner) in named.appended.iter().enumerate() {
            let Owner::New(index) = owner else { continue };
            let (Some((_, _, operation)), Some(range)) = (self.added.get(*index), files.get(first_new + at)) else {
                continue;
            };
            if let Some(planned) = self.operations.get_mut(*operation) {
                planned.range = range.clone();
                planned.file = Some((first_new + at) as u32);
            }
        }
        let source_size = self.rom.bytes().len() as u64;
        let encoder = if self.recorded.is_some() { EARLIER_ENCODER_CONTRACT } else { ENCODER_CONTRACT };
        self.fixed.sort_by_key(|patch| patch.start);
        Ok(Plan {
            build_id: build_id(&manifest, encoder),
            encoder,
            source_size,
            final_size: layout.as_ref().map_or(source_size, |layout| layout.final_size),
            patches: self.fixed,
            operations: self.operations,
            layout,
            files,
            added_directories: named.added_directories,
            directories: named.directories.max(self.rom.directories()),
            compressed: self.compressed,
            problems,
            manifest,
        })
    }

    /// What of a DSi title's own header the result no longer fits (GBATEK, "DSi Cartridge Header").
    fn stale_digests(&self, manifest: &Manifest) -> Result<Vec<Problem>, Refusal> {
        if self.rom.dsi().is_none() {
            return Ok(Vec::new());
        }
        let header = self.rom.header();
        let touches = |range: &Range<u64>| {
            self.fixed.iter().any(|patch| u64::from(patch.start) < range.end && range.start < patch.end())
        };
        let mut stale =
            vec![(0x328, "digest master hash, and the digest tables below it"), (0xf80, "RSA signature of the header")];
        if touches(&header.arm9.rom()) {
            stale.extend([
                (0x300, "hash of the ARM9 program with its secure area"),
                (0x3a0, "hash of the ARM9 program without it"),
            ]);
        }
        if touches(&header.arm7.rom()) {
            stale.push((0x314, "hash of the ARM7 program"));
        }
        stale.sort_unstable();
        if manifest.version >= 3 && !manifest.stale_digests {
            let names: Vec<&str> = stale.iter().map(|(_, name)| *name).collect();
            let message = format!("this is a DSi title, and the rebuild leaves these stale: {}", names.join("; "));
            let action = "A DSi may refuse the result. Add \"acknowledge\": [\"stale-dsi-digests\"] to the manifest to build it all the same.";
            return Err(refuse("unsupported-rebuild-target", message, action));
        }
        let problem = |(offset, name): (u64, &str)| Problem {
            code: "stale-dsi-digest",
            offset: Some(offset),
            message: format!("the {name} at 0x{offset:x} will not fit the result: a DSi may refuse it"),
        };
        Ok(stale.into_iter().map(problem).collect())
    }
}

fn check_file_size(artifact: &ArtifactRef, bytes: &[u8]) -> Result<(), Refusal> {
    let most = limits::MAX_MUTATION_ARTIFACT_BYTES;
    if (1..=most).contains(&(bytes.len() as u64)) {
        return Ok(());
    }
    let message = format!("`{}` has {} bytes; a file has 1 to {most}", artifact.path, bytes.len());
    Err(refuse("replacement-size-mismatch", message, "Name a file of an allowed size."))
}

fn unsupported_rebuild(message: String) -> Refusal {
    refuse("unsupported-rebuild-target", message, "Choose another operation for it.")
}

fn overlap(message: &str) -> Refusal {
    refuse("mutation-overlap", message.to_owned(), "Make one operation of the two.")
}

/// The identity of a build.
pub fn build_id(manifest: &Manifest, encoder: u32) -> String {
    let artifacts = manifest.operations.iter().filter_map(Operation::artifact);
    let artifacts: Vec<&str> = artifacts.map(|artifact| artifact.sha256.as_str()).collect();
    let mut identity = json!({
        "format": "re-mcp-nds-build-identity",
        "formatVersion": manifest.version,
        "sourceSha256": manifest.source_sha256,
        "manifestSha256": manifest.sha256,
        "replacementArtifactSha256": artifacts,
    });
    if manifest.version >= 2
        && let Some(identity) = identity.as_object_mut()
    {
        identity.insert("rebuildContractVersion".to_owned(), REBUILD_CONTRACT.into());
        identity.insert("blzEncoderContractVersion".to_owned(), encoder.into());
    }
    sha256_hex(json::canonical(&identity).as_bytes())
}
