//! What must hold of every rebuild of every ROM, against a model of the result that knows files, overlays and programs by their
//! content alone.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod builders;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use builders::{builder, image};
use nds::rebuild::{self, ArtifactRef, Evidence, Plan, Report};
use nds::{ComponentId, Processor, Refusal, Representation, Rom, sha256_hex};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

/// What somebody may want of a ROM; which of the ROM's parts it is about is chosen when the ROM is there.
#[derive(Clone, Debug)]
struct Wish {
    kind: u8,
    part: Index,
    at: Index,
    mask: u8,
    bytes: Vec<u8>,
    path: String,
}

fn wish() -> impl Strategy<Value = Wish> {
    let paths = "(n[a-c]/[d-f]{1,3}|n[a-c]/[d-f]/[d-f])";
    (0_u8..8, any::<Index>(), any::<Index>(), 1_u8..=255, image(), paths)
        .prop_map(|(kind, part, at, mask, bytes, path)| Wish { kind, part, at, mask, bytes, path })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn slice(rom: &Rom, range: Range<u32>) -> &[u8] {
    &rom.bytes()[range.start as usize..range.end as usize]
}

fn content(rom: &Rom, id: u32) -> &[u8] {
    slice(rom, rom.file(id).unwrap().range().unwrap())
}

/// A manifest in the making, and what the result has to be.
struct Order<'a> {
    rom: &'a Rom,
    version: u8,
    operations: Vec<Value>,
    artifacts: BTreeMap<String, Vec<u8>>,
    /// What is in use by an operation: no second one is made for it.
    taken: BTreeSet<String>,
    /// Contents by path, and images by component.
    files: BTreeMap<String, Vec<u8>>,
    images: BTreeMap<ComponentId, Vec<u8>>,
    arm7: Vec<u8>,
    /// Where bytes of the source are replaced in their place.
    replaced: Vec<Range<u32>>,
}

impl<'a> Order<'a> {
    fn new(rom: &'a Rom, version: u8) -> Self {
        let files = rom.files().iter().filter_map(|file| Some((file.path.clone()?, content(rom, file.id).to_vec())));
        let overlays = rom.overlays().iter().map(|overlay| ComponentId::overlay(overlay.processor, overlay.id));
        let images = overlays.map(|id| (id, rom.component(id).unwrap().image(rom).unwrap().to_vec()));
        let arm7 = rom.component(ComponentId::main(Processor::Arm7)).unwrap().image(rom).unwrap().to_vec();
        Self {
            rom,
            version,
            operations: Vec::new(),
            artifacts: BTreeMap::new(),
            taken: BTreeSet::new(),
            files: files.collect(),
            images: images.collect(),
            arm7,
            replaced: Vec::new(),
        }
    }

    fn artifact(&mut self, bytes: &[u8]) -> Value {
        let name = format!("folder/{}", self.artifacts.len());
        let sha256 = sha256_hex(bytes);
        let reference = json!({"artifact": name, "sha256": sha256});
        self.artifacts.insert(name, bytes.to_vec());
        reference
    }

    fn manifest(&self, operations: &[Value]) -> Value {
        let mut manifest = json!({"format": "re-mcp-nds-mutation", "formatVersion": self.version,
            "source": {"sha256": self.rom.sha256()}, "output": {"filename": "mod.nds"}, "operations": operations});
        if self.version == 3 && self.rom.dsi().is_some() {
            manifest["acknowledge"] = json!(["stale-dsi-digests"]);
        }
        manifest
    }

    fn plan(&self, manifest: &str) -> Result<Plan, Refusal> {
        let mut source = |artifact: &ArtifactRef| Ok(self.artifacts[&artifact.path].clone());
        rebuild::plan(self.rom, rebuild::parse(manifest.as_bytes())?, &mut source, None)
    }

    fn build(&self, manifest: &str) -> (Plan, Report, Vec<Evidence>) {
        let plan = self.plan(manifest).unwrap();
        let report = rebuild::verify(self.rom, &plan, rebuild::apply(self.rom, &plan).unwrap()).unwrap();
        let evidence = rebuild::evidence(self.rom, &plan, &report).unwrap();
        (plan, report, evidence)
    }

    fn edit(&mut self, target: Value, start: u32, old: u8, new: u8) {
        self.operations.push(json!({"type": "replace-bytes", "target": target, "expected": hex(&[old]),
            "replacement": hex(&[new])}));
        self.replaced.push(start..start + 1);
    }

    fn add(&mut self, wish: &Wish) {
        match wish.kind {
            0 => self.edit_arm7(wish),
            1 => self.edit_file(wish),
            2 => self.edit_overlay(wish),
            3 if self.version >= 2 => self.replace_file(wish),
            4 if self.version >= 2 => self.add_file(wish),
            5 if self.version >= 2 => self.replace_image(wish),
            6 => self.replace_overlay(wish),
            7 if self.version >= 3 => self.replace_program(wish),
            _ => {}
        }
    }

    fn edit_arm7(&mut self, wish: &Wish) {
        let at = wish.at.index(self.arm7.len());
        if !self.taken.insert(format!("arm7 {at}")) {
            return;
        }
        let start = self.rom.header().arm7.rom_offset + at as u32;
        let (old, new) = (self.arm7[at], self.arm7[at] ^ wish.mask);
        self.arm7[at] = new;
        let target = if wish.part.index(2) == 0 {
            json!({"component": "arm7", "relativeOffset": at})
        } else {
            json!({"component": "arm7", "runtimeAddress": self.rom.header().arm7.ram_address + at as u32})
        };
        self.edit(target, start, old, new);
    }

    /// A file that no overlay is made of and no operation is about.
    fn file(&mut self, wish: &Wish) -> Option<(u32, String)> {
        let files: Vec<(u32, String)> =
            self.rom.files().iter().filter_map(|file| Some((file.id, file.path.clone()?))).collect();
        let chosen = files.get(wish.part.index(files.len().max(1)))?.clone();
        self.taken.insert(format!("file {}", chosen.0)).then_some(chosen)
    }

    fn edit_file(&mut self, wish: &Wish) {
        let Some((id, path)) = self.file(wish) else { return };
        let old = content(self.rom, id).to_vec();
        let at = wish.at.index(old.len());
        let target = if wish.mask.is_multiple_of(2) {
            json!({"component": "nitrofs-file", "fileId": id, "relativeOffset": at})
        } else {
            json!({"component": "nitrofs-path", "filePath": path, "relativeOffset": at})
        };
        let start = self.rom.file(id).unwrap().start + at as u32;
        self.edit(target, start, old[at], old[at] ^ wish.mask);
        self.files.get_mut(&path).unwrap()[at] ^= wish.mask;
    }

    fn replace_file(&mut self, wish: &Wish) {
        let Some((id, path)) = self.file(wish) else { return };
        if content(self.rom, id) == wish.bytes {
            return;
        }
        let target = if wish.mask.is_multiple_of(2) { json!({"fileId": id}) } else { json!({"filePath": path}) };
        let original = sha256_hex(content(self.rom, id));
        let replacement = self.artifact(&wish.bytes);
        self.operations.push(json!({"type": "replace-nitrofs-file", "target": target,
            "expectedOriginalSha256": original, "replacement": replacement}));
        self.files.insert(path, wish.bytes.clone());
    }

    fn add_file(&mut self, wish: &Wish) {
        // Version 3 adds to directories that are there, too.
        let folders: Vec<&str> =
            self.files.keys().filter_map(|path| path.rsplit_once('/').map(|(folder, _)| folder)).collect();
        let path = match folders.get(wish.part.index(folders.len().max(1))) {
            Some(folder) if self.version == 3 && wish.mask.is_multiple_of(2) => {
                format!("{folder}/{}", wish.path.replace('/', "-"))
            }
            _ => wish.path.clone(),
        };
        let below = |one: &str, other: &str| one.strip_prefix(other).is_some_and(|rest| rest.starts_with('/'));
        if self.files.keys().any(|other| *other == path || below(other, &path) || below(&path, other)) {
            return;
        }
        let replacement = self.artifact(&wish.bytes);
        self.operations.push(json!({"type": "add-nitrofs-file", "path": path, "replacement": replacement}));
        self.files.insert(path, wish.bytes.clone());
    }

    /// An overlay that no operation is about: its place in the table, its component, its file, and whether it is compressed.
    fn overlay(&mut self, wish: &Wish, compressed: bool) -> Option<(ComponentId, Value, u32)> {
        let all: Vec<_> = self.rom.overlays().iter().filter(|overlay| overlay.is_compressed() == compressed).collect();
        let overlay = *all.get(wish.part.index(all.len().max(1)))?;
        let id = ComponentId::overlay(overlay.processor, overlay.id);
        let word = if overlay.processor == Processor::Arm9 { "arm9-overlay" } else { "arm7-overlay" };
        let target = json!({"component": word, "overlayId": overlay.id});
        self.taken.insert(format!("file {}", overlay.file_id)).then_some((id, target, overlay.file_id))
    }

    fn edit_overlay(&mut self, wish: &Wish) {
        let Some((id, mut target, file)) = self.overlay(wish, false) else { return };
        let old = content(self.rom, file).to_vec();
        let at = wish.at.index(old.len());
        target["runtimeAddress"] = json!(self.rom.component(id).unwrap().start + at as u32);
        let start = self.rom.file(file).unwrap().start + at as u32;
        self.edit(target, start, old[at], old[at] ^ wish.mask);
        self.images.get_mut(&id).unwrap()[at] ^= wish.mask;
    }

    fn replace_overlay(&mut self, wish: &Wish) {
        let Some((id, target, file)) = self.overlay(wish, false) else { return };
        let old = content(self.rom, file).to_vec();
        let new: Vec<u8> = old.iter().map(|byte| byte ^ wish.mask).collect();
        let replacement = self.artifact(&new);
        self.operations.push(json!({"type": "replace-component", "target": target,
            "expectedOriginalSha256": sha256_hex(&old), "replacement": replacement}));
        self.replaced.push(self.rom.file(file).unwrap().range().unwrap());
        self.images.insert(id, new);
    }

    fn replace_image(&mut self, wish: &Wish) {
        let Some((id, target, file)) = self.overlay(wish, true) else { return };
        let old = self.images[&id].clone();
        let mut new = old.clone();
        new[wish.at.index(old.len())] ^= wish.mask;
        let processor = if id.processor == Processor::Arm9 { "arm9" } else { "arm7" };
        let replacement = self.artifact(&new);
        let operation = json!({"type": "replace-decoded-overlay",
            "target": {"processor": processor, "overlayId": target["overlayId"]},
            "expectedStoredSha256": sha256_hex(content(self.rom, file)), "expectedRuntimeSha256": sha256_hex(&old),
            "replacement": replacement});
        if self.fits(&operation) {
            self.operations.push(operation);
            self.images.insert(id, new);
        }
    }

    fn replace_program(&mut self, wish: &Wish) {
        let id = ComponentId::main(Processor::Arm9);
        let main = self.rom.component(id).unwrap();
        if main.representation == Representation::RomFileBacked || !self.taken.insert("arm9".to_owned()) {
            return;
        }
        let stored = main.stored.clone().unwrap();
        let stream = self.rom.module_params(Processor::Arm9).unwrap().compressed_end - main.start;
        // All that the stream has: the autoload blocks too, which are components of their own.
        let stream = slice(self.rom, stored.start..stored.start + stream);
        let old = nds::blz::decode(stream, &mut base::Budget::new(1 << 20)).unwrap();
        let mut new = old.clone();
        // Behind what the SDK says of the program at its start, and before the blocks at its end.
        new[0x1000 + wish.at.index(0x400)] ^= wish.mask;
        let replacement = self.artifact(&new);
        let operation = json!({"type": "replace-decoded-program", "target": {"processor": "arm9"},
            "expectedStoredSha256": sha256_hex(slice(self.rom, stored.clone())), "expectedRuntimeSha256": sha256_hex(&old),
            "replacement": replacement});
        if self.fits(&operation) {
            self.operations.push(operation);
            new.truncate(main.image(self.rom).unwrap().len());
            self.images.insert(id, new);
            self.replaced.push(stored.start..self.rom.header().arm7.rom_offset);
        }
    }

    /// Whether a new image has a stream, and there is room for it. How long that is, is the encoder's affair.
    fn fits(&self, operation: &Value) -> bool {
        match self.plan(&self.manifest(std::slice::from_ref(operation)).to_string()) {
            Ok(_) => true,
            Err(refusal) => {
                let known = ["blz-encode-failed", "blz-packed-size-overflow"];
                assert!(known.contains(&refusal.category), "{}: {}", refusal.category, refusal.message);
                false
            }
        }
    }

    /// The result is what the model says, and every other byte of the source is where it was.
    fn check(&self, output: &Rom) {
        let named =
            output.files().iter().filter_map(|file| Some((file.path.clone()?, content(output, file.id).to_vec())));
        assert_eq!(named.collect::<BTreeMap<_, _>>(), self.files);
        for (id, image) in &self.images {
            let found = output.component(*id).unwrap().image(output).unwrap();
            let differs = found.iter().zip(image).filter(|(found, wanted)| found != wanted).count();
            // In a program's image one word says where its stream ends.
            let allowed = if *id == ComponentId::main(Processor::Arm9) { 4 } else { 0 };
            assert!(found.len() == image.len() && differs <= allowed, "{}: {differs} bytes differ", id.name());
        }
        let arm7 = output.component(ComponentId::main(Processor::Arm7)).unwrap();
        assert_eq!(arm7.image(output).unwrap(), self.arm7);
        let allowed: [Range<u32>; 5] = [0x14..0x15, 0x2c..0x30, 0x40..0x60, 0x80..0x84, 0x15e..0x160];
        let allowed: Vec<&Range<u32>> = allowed.iter().chain(&self.replaced).collect();
        for (at, (old, new)) in (0..).zip(self.rom.bytes().iter().zip(output.bytes())) {
            assert!(old == new || allowed.iter().any(|range| range.contains(&at)), "0x{at:x} differs");
        }
        assert!(output.bytes().len() >= self.rom.bytes().len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_manifest_is_built_as_it_says_twice_alike_and_every_flipped_byte_is_found(
        builder in builder(),
        wishes in proptest::collection::vec(wish(), 1..16),
        version in 1_u8..=3,
        pad in any::<bool>(),
        flips in proptest::collection::vec((any::<Index>(), 0_u32..8), 24),
    ) {
        let rom = Rom::parse(builder.build()).unwrap();
        let mut order = Order::new(&rom, version);
        for wish in &wishes {
            order.add(wish);
        }
        prop_assume!(!order.operations.is_empty());
        let mut manifest = order.manifest(&order.operations);
        if version == 3 {
            manifest["output"]["padToCapacity"] = json!(pad);
        }
        let source = rom.sha256().to_owned();
        let (plan, report, evidence) = order.build(&manifest.to_string());
        order.check(&report.output);
        prop_assert_eq!(sha256_hex(rom.bytes()), source);

        // The same again, of a manifest that is written otherwise.
        let (again, twice, other) = order.build(&format!("{manifest:#}\n"));
        prop_assert_eq!(&again.build_id, &plan.build_id);
        prop_assert!(twice.output.bytes() == report.output.bytes());
        prop_assert_eq!(&other, &evidence);
        rebuild::check_evidence(&evidence, &other, &plan, &report).unwrap();

        let output = report.output.bytes();
        // The FAT of a ROM without files is empty.
        let patches: Vec<_> = plan.patches.iter().filter(|patch| !patch.bytes.is_empty()).collect();
        for (number, (at, bit)) in flips.iter().enumerate() {
            // Two of three in what was planned, which is little beside the padding: most of a small ROM.
            let patch = patches[number % patches.len()];
            let at = match number % 3 {
                0 => at.index(output.len()),
                _ => patch.start as usize + at.index(patch.bytes.len()),
            };
            let mut damaged = output.to_vec();
            damaged[at] ^= 1 << bit;
            prop_assert!(rebuild::verify(&rom, &plan, damaged).is_err(), "the flip at 0x{:x} is not found", at);
        }
        for (name, bytes) in &evidence {
            for (at, bit) in &flips {
                let mut damaged = evidence.clone();
                let file = damaged.iter_mut().find(|(other, _)| other == name).unwrap();
                let at = at.index(bytes.len());
                file.1[at] ^= 1 << bit;
                let outcome = rebuild::check_evidence(&evidence, &damaged, &plan, &report);
                prop_assert!(outcome.is_err(), "the flip at {} of {} is not found", at, name);
            }
            let missing: Vec<Evidence> = evidence.iter().filter(|(other, _)| other != name).cloned().collect();
            prop_assert!(rebuild::check_evidence(&evidence, &missing, &plan, &report).is_err());
        }
    }
}
