//! Every error word of a rebuild is reached here, and every word in its sources is one of these.

use std::collections::{BTreeMap, BTreeSet};

use base::limits;
use serde_json::{Value, json};

use super::{ArtifactRef, Manifest, Plan, layout};
use crate::testing::{OverlaySpec, ProgramSpec, RomBuilder, SdkProgram, put, put32, rebuild_words, seal};
use crate::{ComponentId, Processor, Refusal, Rom, sha256_hex};

/// Manifests, and the words that they were refused with.
struct Words {
    rom: Rom,
    files: BTreeMap<String, Vec<u8>>,
    reached: BTreeSet<&'static str>,
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn builder() -> RomBuilder {
    RomBuilder { dsi: None, ..RomBuilder::everything() }
}

impl Words {
    fn artifact(&mut self, name: &str, bytes: Vec<u8>) -> Value {
        let sha256 = sha256_hex(&bytes);
        self.files.insert(name.to_owned(), bytes);
        json!({"artifact": name, "sha256": sha256})
    }

    fn stored(&self, id: u32) -> &[u8] {
        let range = self.rom.file(id).unwrap().range().unwrap();
        &self.rom.bytes()[range.start as usize..range.end as usize]
    }

    fn named(&self, path: &str) -> u32 {
        self.rom.files().iter().find(|file| file.path.as_deref() == Some(path)).unwrap().id
    }

    fn manifest(&self, version: u8, operations: &Value) -> Result<Manifest, Refusal> {
        let manifest = json!({"format": "re-mcp-nds-mutation", "formatVersion": version,
            "source": {"sha256": self.rom.sha256()}, "output": {"filename": "mod.nds"}, "operations": operations});
        super::parse(manifest.to_string().as_bytes())
    }

    fn plan(&self, version: u8, operations: &Value, recorded: Option<&Rom>) -> Result<Plan, Refusal> {
        let manifest = self.manifest(version, operations)?;
        let mut source = |artifact: &ArtifactRef| Ok(self.files[&artifact.path].clone());
        super::plan(&self.rom, manifest, &mut source, recorded)
    }

    fn reach<T>(&mut self, word: &'static str, outcome: Result<T, Refusal>) {
        let refusal = outcome.err().unwrap_or_else(|| panic!("{word} is not reached"));
        assert_eq!(refusal.category, word, "{}", refusal.message);
        assert!(!refusal.message.is_empty() && !refusal.corrective_action.is_empty());
        self.reached.insert(word);
    }

    fn refused(&mut self, word: &'static str, version: u8, operations: &Value) {
        let outcome = self.plan(version, operations, None);
        self.reach(word, outcome);
    }

    /// The same on another ROM.
    fn refused_of(&mut self, word: &'static str, version: u8, rom: Vec<u8>, operations: impl Fn(&mut Self) -> Value) {
        let rom = std::mem::replace(&mut self.rom, Rom::parse(rom).unwrap());
        let operations = operations(self);
        self.refused(word, version, &operations);
        self.rom = rom;
    }

    fn add(&mut self, path: &str) -> Value {
        json!({"type": "add-nitrofs-file", "path": path, "replacement": self.artifact("small", b"small".to_vec())})
    }

    fn replace(&mut self, path: &str, with: Value) -> Value {
        let original = sha256_hex(self.stored(self.named(path)));
        json!({"type": "replace-nitrofs-file", "target": {"filePath": path}, "expectedOriginalSha256": original,
            "replacement": with})
    }

    /// The operation that replaces the decoded overlay 1 of the ARM9.
    fn decoded(&mut self, image: Vec<u8>) -> Value {
        let overlay = self.rom.overlays().iter().find(|overlay| overlay.id == 1).unwrap();
        let stored = sha256_hex(self.stored(overlay.file_id));
        let component = self.rom.component(ComponentId::overlay(Processor::Arm9, 1)).unwrap();
        let runtime = sha256_hex(component.image(&self.rom).unwrap_or_default());
        json!({"type": "replace-decoded-overlay", "target": {"processor": "arm9", "overlayId": 1},
            "expectedStoredSha256": stored, "expectedRuntimeSha256": runtime, "replacement": self.artifact("image", image)})
    }
}

fn edit(target: &Value, expected: &[u8], replacement: &[u8]) -> Value {
    json!({"type": "replace-bytes", "target": target, "expected": hex(expected), "replacement": hex(replacement)})
}

/// An operation on the ARM7 program, which begins with 00 01 02.
fn arm7(at: u32, expected: &[u8], replacement: &[u8]) -> Value {
    edit(&json!({"component": "arm7", "relativeOffset": at}), expected, replacement)
}

/// Bytes in which nothing repeats, by a linear congruential generator (Knuth's numbers).
fn noise(length: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..length).map(next).collect()
}

#[test]
fn every_word_is_reached_and_none_is_without_a_test() {
    let rom = Rom::parse(builder().build()).unwrap();
    let mut words = Words { rom, files: BTreeMap::new(), reached: BTreeSet::new() };
    manifests_and_guards(&mut words);
    files_and_names(&mut words);
    compressed(&mut words);
    damaged_sources(&mut words);
    too_large(&mut words);
    results(&mut words);
    let known: BTreeSet<String> = words.reached.iter().map(|word| (*word).to_owned()).collect();
    assert_eq!(known, rebuild_words());
    assert_eq!(known.len(), 32, "the contract has 35, and three of those are about files outside of the ROM");
}

fn manifests_and_guards(words: &mut Words) {
    words.reach("mutation-manifest-invalid", super::parse(b"{"));
    let edits = json!([arm7(0, &[0], &[1])]);
    let other = Rom::parse(RomBuilder::default().build()).unwrap();
    let manifest = words.manifest(1, &edits).unwrap();
    let outcome = super::plan(&other, manifest, &mut |_| Ok(Vec::new()), None);
    words.reach("source-rom-mismatch", outcome);
    words.plan(1, &json!([arm7(0, &[0], &[1])]), None).unwrap();
    words.refused("unsupported-mutation-target", 1, &json!([arm7(0x40, &[0], &[1])]));
    words.refused("original-byte-guard-failed", 1, &json!([arm7(0, &[1], &[0])]));
    words.refused("mutation-no-op", 1, &json!([arm7(0, &[0], &[0])]));
    words.refused("mutation-overlap", 1, &json!([arm7(0, &[0, 1], &[1, 1]), arm7(1, &[1], &[2])]));
    let address = json!({"component": "arm9-overlay", "runtimeAddress": 0x0210_0000});
    words.refused("ambiguous-runtime-target", 1, &json!([edit(&address, &[1], &[0])]));
    // A file that lies over the FAT is no way into it.
    let (fat, id) = (words.rom.header().fat.offset, words.named("readme.txt"));
    let mut bytes = words.rom.bytes().to_vec();
    put32(&mut bytes, (fat + 8 * id) as usize, fat);
    put32(&mut bytes, (fat + 8 * id + 4) as usize, fat + 8);
    let target = json!({"component": "nitrofs-file", "fileId": id, "relativeOffset": 0});
    let byte = bytes[fat as usize];
    words.refused_of("structural-metadata-mutation", 1, bytes, |_| json!([edit(&target, &[byte], &[!byte])]));
}

fn files_and_names(words: &mut Words) {
    let small = words.artifact("small", b"small".to_vec());
    let good = words.replace("data/a.bin", small.clone());
    words.plan(2, &json!([good]), None).unwrap();
    let mut bad = good.clone();
    bad["expectedOriginalSha256"] = json!("0".repeat(64));
    words.refused("original-component-guard-failed", 2, &json!([bad]));
    let mut bad = good.clone();
    bad["replacement"]["sha256"] = json!("0".repeat(64));
    words.refused("replacement-artifact-hash-mismatch", 2, &json!([bad]));
    let empty = words.artifact("empty", Vec::new());
    let bad = words.replace("data/a.bin", empty);
    words.refused("replacement-size-mismatch", 2, &json!([bad]));
    let overlay = sha256_hex(words.stored(0));
    let bad = json!({"type": "replace-nitrofs-file", "target": {"fileId": 0}, "expectedOriginalSha256": overlay,
        "replacement": small});
    words.refused("unsupported-rebuild-target", 2, &json!([bad]));
    let add = words.add("data/new.bin");
    words.refused("filesystem-extension-invalid", 2, &json!([add]));
    let add = words.add("data/a.bin");
    words.refused("filesystem-path-collision", 3, &json!([add]));
    // 3 times 2,040 directories, of 4,096 that have numbers.
    let deep = vec!["d"; 2_040].join("/");
    let add: Vec<Value> = (0..3).map(|at| words.add(&format!("n{at}/{deep}"))).collect();
    words.refused("filesystem-id-capacity-exceeded", 2, &json!(add));
}

fn compressed(words: &mut Words) {
    let image =
        words.rom.component(ComponentId::overlay(Processor::Arm9, 1)).unwrap().image(&words.rom).unwrap().to_vec();
    let mut new = image.clone();
    new[0] ^= 1;
    let good = json!([words.decoded(new)]);
    words.plan(2, &good, None).unwrap();
    let mut bad = good.clone();
    bad[0]["expectedRuntimeSha256"] = json!("0".repeat(64));
    words.refused("decoded-overlay-guard-failed", 2, &bad);
    // What an earlier encoder's build would have stored there is the old image.
    let recorded = Rom::parse(words.rom.bytes().to_vec()).unwrap();
    let outcome = words.plan(2, &good, Some(&recorded));
    words.reach("blz-roundtrip-mismatch", outcome);
    let bad = json!([words.decoded(noise(image.len()))]);
    words.refused("blz-encode-failed", 2, &bad);
    let last = words.stored(words.rom.overlays()[1].file_id);
    let (at, old) = (last.len() - 4, last[last.len() - 4..].to_vec());
    let tail = json!({"component": "arm9-overlay", "overlayId": 1, "relativeOffset": at});
    words.refused("compressed-overlay-invalid", 1, &json!([edit(&tail, &old, &[0, 0, 0, 1])]));

    // Its 0x3000 bytes come in a tenth of that, and there is no room for more than 0x800 that have no shorter form. A stream
    // that is too large for its own field is never met: an image has at most 16 MiB, as many as the field can say.
    let program = SdkProgram::new(0x0200_4000, 0x3000);
    let (stored, image) = program.compressed().unwrap();
    let arm9 = ProgramSpec { ram_address: 0x0200_4000, entry: 0x0200_4800, bytes: stored.clone() };
    let rom = RomBuilder { arm9, ..RomBuilder::default() }.build();
    let mut new = image.clone();
    put(&mut new, 0x2000, &noise(0x800));
    words.refused_of("blz-packed-size-overflow", 3, rom, |words| {
        json!([{"type": "replace-decoded-program", "target": {"processor": "arm9"},
            "expectedStoredSha256": sha256_hex(&stored), "expectedRuntimeSha256": sha256_hex(&image),
            "replacement": words.artifact("program", new.clone())}])
    });
}

fn damaged_sources(words: &mut Words) {
    let good = words.rom.bytes().to_vec();
    let header = words.rom.header().clone();
    let damaged = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        bytes
    };
    let add = |words: &mut Words| json!([words.add("n/x")]);
    words.refused_of("header-checksum-invalid", 2, damaged(&|bytes| bytes[0x15e] ^= 1), add);
    words.refused_of("fnt-rebuild-failed", 2, damaged(&|bytes| bytes[header.fnt.offset as usize] ^= 0x80), add);
    let reversed = damaged(&|bytes| put32(bytes, header.fat.offset as usize, u32::MAX));
    words.refused_of("fat-rebuild-failed", 2, reversed, add);

    let image: Vec<u8> = (0..0x400_u32).map(|at| (at / 48) as u8).collect();
    let mut new = image.clone();
    new[9] = 99;
    // A table whose size is no number of records.
    let ragged = damaged(&|bytes| {
        put32(bytes, 0x54, header.arm9_overlays.size + 4);
        seal(bytes);
    });
    words.refused_of("overlay-table-rebuild-failed", 2, ragged, |words| {
        let mut new =
            words.rom.component(ComponentId::overlay(Processor::Arm9, 1)).unwrap().image(&words.rom).unwrap().to_vec();
        new[9] ^= 1;
        json!([words.decoded(new)])
    });
    // Two records of one number: nobody knows which is meant.
    let overlay = OverlaySpec::blz(Processor::Arm9, 1, 0x0210_0000, &image);
    let twice = RomBuilder { overlays: vec![overlay.clone(), overlay], ..RomBuilder::default() }.build();
    words.refused_of("overlay-table-rebuild-failed", 2, twice, |words| json!([words.decoded(new.clone())]));

    // No ROM has too short a header, since it would be no ROM; so the function gets a field behind the header instead.
    let outcome = layout::seal(&words.rom, &mut Vec::new(), |fields| fields.push((0x15c, vec![0; 4])));
    words.reach("header-rebuild-failed", outcome);
}

fn too_large(words: &mut Words) {
    // More than may be read: nothing is hashed any more.
    let bad = words.replace("data/a.bin", json!({"artifact": "huge", "sha256": "0".repeat(64)}));
    let manifest = words.manifest(2, &json!([bad])).unwrap();
    let mut huge = |_: &ArtifactRef| Ok(vec![0; limits::MAX_MUTATION_ARTIFACTS_BYTES as usize + 1]);
    let outcome = super::plan(&words.rom, manifest, &mut huge, None);
    words.reach("rom-capacity-exceeded", outcome);
    // Behind a ROM that is as large as a card can be is no room.
    let mut full = vec![0; limits::MAX_NDS_ROM_BYTES as usize];
    put(&mut full, 0, words.rom.bytes());
    words.refused_of("rom-capacity-exceeded", 2, full, |words| json!([words.add("n/x")]));
    // Two files with all that a file may have are all that may be appended; the FAT is beyond.
    let half = words.artifact("half", vec![0; limits::MAX_MUTATION_ARTIFACT_BYTES as usize]);
    assert_eq!(2 * limits::MAX_MUTATION_ARTIFACT_BYTES, limits::MAX_NDS_GROWTH_BYTES);
    let both = json!([words.replace("data/a.bin", half.clone()), words.replace("z/d", half)]);
    words.refused("rebuild-layout-overflow", 2, &both);
    words.files.clear();
}

/// A plan that says what no manifest can, since what is wrong with it is refused earlier: judging a result trusts no plan.
fn results(words: &mut Words) {
    let add = words.add("new/x");
    let plan = words.plan(2, &json!([add]), None).unwrap();
    let output = super::apply(&words.rom, &plan).unwrap();
    super::verify(&words.rom, &plan, output.clone()).unwrap();
    let mut short = plan.clone();
    short.final_size = plan.source_size;
    let outcome = super::apply(&words.rom, &short);
    words.reach("staging-failed", outcome);
    let mut damaged = output.clone();
    damaged[0x4000] ^= 1;
    let outcome = super::verify(&words.rom, &plan, damaged);
    words.reach("unexpected-rom-diff", outcome);
    let outcome = super::verify(&words.rom, &plan, output[1..].to_vec());
    words.reach("output-verification-failed", outcome);
    let mut other = plan.clone();
    other.files.pop();
    let outcome = super::verify(&words.rom, &other, output);
    words.reach("structural-map-changed", outcome);
    // The new FAT ends a file before it begins; and the header leads the ARM9 program out of the file.
    for (kind, field) in [("fat", 0), ("header", 0x20)] {
        let mut other = plan.clone();
        let patch = other.patches.iter_mut().find(|patch| patch.kind == kind).unwrap();
        if kind == "fat" {
            put32(&mut patch.bytes, field, u32::MAX);
        } else {
            let patch = super::Patch { start: field as u32, bytes: vec![0xff; 4], kind, owner: None };
            other.patches.push(patch);
            other.patches.sort_by_key(|patch| patch.start);
        }
        let outcome = super::apply(&words.rom, &other).and_then(|output| super::verify(&words.rom, &other, output));
        words.reach("post-build-parse-failed", outcome);
    }
}
