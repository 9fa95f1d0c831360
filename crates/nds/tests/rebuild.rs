//! What must hold of every rebuild: what is asked for is there, nothing else changed, and a flipped byte is found.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeMap;

use nds::rebuild::{self, ArtifactRef, Plan, Report};
use nds::testing::{RomBuilder, SdkProgram, put32, seal};
use nds::{ComponentId, Processor, Refusal, Rom, sha256_hex};
use proptest::prelude::*;
use serde_json::{Value, json};

type Files = BTreeMap<String, Vec<u8>>;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn artifact(files: &mut Files, name: &str, bytes: &[u8]) -> Value {
    files.insert(name.to_owned(), bytes.to_vec());
    json!({"artifact": name, "sha256": sha256_hex(bytes)})
}

fn manifest(rom: &Rom, version: u8, operations: &Value) -> Value {
    json!({"format": "re-mcp-nds-mutation", "formatVersion": version, "source": {"sha256": rom.sha256()},
           "output": {"filename": "mod.nds"}, "operations": operations})
}

fn planned(rom: &Rom, manifest: &Value, files: &Files) -> Result<Plan, Refusal> {
    let manifest = rebuild::parse(manifest.to_string().as_bytes())?;
    let mut source = |artifact: &ArtifactRef| Ok(files[&artifact.path].clone());
    rebuild::plan(rom, manifest, &mut source, None)
}

fn built(rom: &Rom, manifest: &Value, files: &Files) -> Result<(Plan, Report), Refusal> {
    let plan = planned(rom, manifest, files)?;
    let report = rebuild::verify(rom, &plan, rebuild::apply(rom, &plan)?)?;
    Ok((plan, report))
}

/// Everything but the DSi's programs, whose digests are another matter.
fn source() -> Rom {
    Rom::parse(RomBuilder { dsi: None, ..RomBuilder::everything() }.build()).unwrap()
}

fn stored(rom: &Rom, id: u32) -> Vec<u8> {
    let range = rom.file(id).unwrap().range().unwrap();
    rom.bytes()[range.start as usize..range.end as usize].to_vec()
}

fn named(rom: &Rom, path: &str) -> u32 {
    rom.files().iter().find(|file| file.path.as_deref() == Some(path)).unwrap().id
}

#[test]
fn bytes_are_replaced_and_nothing_else() {
    let rom = source();
    let at = rom.header().arm7.rom_offset as usize;
    let operation = json!({"type": "replace-bytes", "target": {"component": "arm7", "relativeOffset": 2},
        "expected": hex(&rom.bytes()[at + 2..at + 4]), "replacement": "AaBb"});
    let (plan, report) = built(&rom, &manifest(&rom, 1, &json!([operation])), &Files::new()).unwrap();
    let mut expected = rom.bytes().to_vec();
    expected[at + 2..at + 4].copy_from_slice(&[0xaa, 0xbb]);
    assert_eq!(report.output.bytes(), expected);
    assert_eq!((report.changed_bytes, plan.layout.is_none()), (2, true));
    // The identity by the contract, written out: canonical JSON of the canonical manifest's hash and of what it depends on.
    let text = format!(
        "{{\"format\":\"re-mcp-nds-mutation\",\"formatVersion\":1,\"operations\":[{{\"expected\":\"{}\",\"replacement\":\"aabb\",\
         \"target\":{{\"component\":\"arm7\",\"relativeOffset\":2}},\"type\":\"replace-bytes\"}}],\
         \"output\":{{\"filename\":\"mod.nds\"}},\"source\":{{\"sha256\":\"{}\"}}}}",
        hex(&rom.bytes()[at + 2..at + 4]),
        rom.sha256()
    );
    let identity = format!(
        "{{\"format\":\"re-mcp-nds-build-identity\",\"formatVersion\":1,\"manifestSha256\":\"{}\",\
         \"replacementArtifactSha256\":[],\"sourceSha256\":\"{}\"}}",
        sha256_hex(text.as_bytes()),
        rom.sha256()
    );
    assert_eq!(plan.build_id, sha256_hex(identity.as_bytes()));
}

/// A manifest of version 2 with one operation of each kind, and the new image of overlay 1.
fn everything(rom: &Rom) -> (Value, Files, Vec<u8>) {
    let mut files = Files::new();
    let overlay = ComponentId::overlay(Processor::Arm9, 1);
    let mut image = rom.component(overlay).unwrap().image(rom).unwrap().to_vec();
    let runtime = sha256_hex(&image);
    image[5] ^= 0x55;
    let file =
        rom.overlays().iter().find(|overlay| (overlay.processor, overlay.id) == (Processor::Arm9, 1)).unwrap().file_id;
    let plain = rom.overlays()[0].file_id;
    let (a, z) = (stored(rom, named(rom, "data/a.bin")), stored(rom, named(rom, "z/d")));
    let operations = json!([
        {"type": "replace-bytes", "target": {"component": "nitrofs-path", "filePath": "z/d", "relativeOffset": 0},
         "expected": hex(&z[..1]), "replacement": hex(&[z[0] ^ 1])},
        {"type": "replace-component", "target": {"component": "arm9-overlay", "overlayId": 0},
         "expectedOriginalSha256": sha256_hex(&stored(rom, plain)),
         "replacement": artifact(&mut files, "ov0.bin", &vec![9; stored(rom, plain).len()])},
        {"type": "replace-nitrofs-file", "target": {"filePath": "data/a.bin"}, "expectedOriginalSha256": sha256_hex(&a),
         "replacement": artifact(&mut files, "a.bin", &a.repeat(5))},
        {"type": "add-nitrofs-file", "path": "new/deep/x.bin", "replacement": artifact(&mut files, "x.bin", b"x file")},
        {"type": "add-nitrofs-file", "path": "new/y.bin", "replacement": artifact(&mut files, "y.bin", b"y file")},
        {"type": "replace-decoded-overlay", "target": {"processor": "arm9", "overlayId": 1},
         "expectedStoredSha256": sha256_hex(&stored(rom, file)), "expectedRuntimeSha256": runtime,
         "replacement": artifact(&mut files, "ov1.bin", &image)},
    ]);
    (manifest(rom, 2, &operations), files, image)
}

#[test]
fn one_of_each_is_laid_out_as_the_contract_says() {
    let rom = source();
    let (manifest, files, image) = everything(&rom);
    let (plan, report) = built(&rom, &manifest, &files).unwrap();
    let (layout, output) = (plan.layout.as_ref().unwrap(), &report.output);
    assert_eq!(layout.tail_start, rom.bytes().len().next_multiple_of(0x200) as u64);
    let kinds: Vec<_> = layout.segments.iter().map(|segment| segment.kind).collect();
    assert_eq!(kinds, ["relocated-file", "relocated-file", "new-file", "new-file", "fnt", "fat", "arm9-overlay-table"]);
    assert_eq!((output.bytes().len(), output.header().device_capacity), (128 << 10, 0));
    assert_eq!(u64::from(output.header().used_size), layout.used_size);
    for (path, content) in [("new/deep/x.bin", &b"x file"[..]), ("new/y.bin", b"y file")] {
        assert_eq!(stored(output, named(output, path)), content);
        assert!(named(output, path) as usize >= rom.files().len());
    }
    for file in rom.files() {
        assert_eq!(output.file(file.id).unwrap().path, file.path);
    }
    let overlay = ComponentId::overlay(Processor::Arm9, 1);
    assert_eq!(output.component(overlay).unwrap().image(output).unwrap(), image);
    assert_eq!(stored(output, named(&rom, "readme.txt")), stored(&rom, named(&rom, "readme.txt")));
}

#[test]
fn a_flipped_byte_of_the_result_or_of_the_evidence_is_found() {
    let rom = source();
    let (manifest, files, _) = everything(&rom);
    for version in [2, 3] {
        let mut manifest = manifest.clone();
        manifest["formatVersion"] = json!(version);
        let (plan, report) = built(&rom, &manifest, &files).unwrap();
        let output = report.output.bytes();
        for at in (0..output.len()).step_by(997).chain([0x14, 0x15e, output.len() - 1]) {
            let mut damaged = output.to_vec();
            damaged[at] ^= 0x10;
            assert!(rebuild::verify(&rom, &plan, damaged).is_err(), "0x{at:x}");
        }
        let evidence = rebuild::evidence(&rom, &plan, &report).unwrap();
        assert_eq!(evidence, rebuild::evidence(&rom, &plan, &report).unwrap());
        rebuild::check_evidence(&evidence, &evidence, &plan, &report).unwrap();
        for file in 0..evidence.len() {
            for at in (0..evidence[file].1.len()).step_by(7) {
                let mut damaged = evidence.clone();
                damaged[file].1[at] ^= 1;
                assert!(
                    rebuild::check_evidence(&evidence, &damaged, &plan, &report).is_err(),
                    "{} {at}",
                    evidence[file].0
                );
            }
        }
    }
}

#[test]
fn version_3_adds_to_old_directories_and_keeps_every_number() {
    let rom = source();
    let mut files = Files::new();
    let operations = json!([
        {"type": "add-nitrofs-file", "path": "data/b.bin", "replacement": artifact(&mut files, "b", b"more")},
        {"type": "add-nitrofs-file", "path": "top.bin", "replacement": artifact(&mut files, "t", b"top")},
    ]);
    assert_eq!(
        planned(&rom, &manifest(&rom, 2, &operations), &files).unwrap_err().category,
        "filesystem-extension-invalid"
    );
    let mut manifest = manifest(&rom, 3, &operations);
    manifest["output"]["padToCapacity"] = json!(false);
    let (plan, report) = built(&rom, &manifest, &files).unwrap();
    let output = &report.output;
    assert_eq!(output.bytes().len() as u64, plan.layout.as_ref().unwrap().used_size);
    for file in rom.files() {
        assert_eq!(stored(output, file.id), stored(&rom, file.id), "number {}", file.id);
        if let Some(path) = &file.path {
            assert_eq!(stored(output, named(output, path)), stored(&rom, file.id), "{path}");
        }
    }
    assert_eq!(stored(output, named(output, "data/b.bin")), b"more");
    assert_eq!(stored(output, named(output, "top.bin")), b"top");
}

#[test]
fn version_3_replaces_a_compressed_program() {
    let program = SdkProgram::new(0x0200_4000, 0x3000);
    let (bytes, image) = program.compressed().unwrap();
    let builder = RomBuilder {
        arm9: nds::testing::ProgramSpec { ram_address: 0x0200_4000, entry: 0x0200_4800, bytes: bytes.clone() },
        ..RomBuilder::default()
    };
    let rom = Rom::parse(builder.build()).unwrap();
    let mut new = image.clone();
    new[0x2000] ^= 0xff;
    let mut files = Files::new();
    let operation = json!({"type": "replace-decoded-program", "target": {"processor": "arm9"},
        "expectedStoredSha256": sha256_hex(&bytes), "expectedRuntimeSha256": sha256_hex(&image),
        "replacement": artifact(&mut files, "arm9.bin", &new)});
    let (_, report) = built(&rom, &manifest(&rom, 3, &json!([operation])), &files).unwrap();
    let main = report.output.component(ComponentId::main(Processor::Arm9)).unwrap();
    let decoded = main.image(&report.output).unwrap();
    assert_eq!(decoded[0x2000], new[0x2000]);
    let size = report.output.header().arm9.size;
    assert_eq!(report.output.module_params(Processor::Arm9).unwrap().compressed_end, 0x0200_4000 + size);
    let differing = decoded.iter().zip(&image).enumerate().filter(|(_, (one, other))| one != other);
    // The changed byte, and the word that tells where the stream ends.
    assert!(differing.map(|(at, _)| at).all(|at| at == 0x2000 || (0xa14..0xa18).contains(&at)));
}

#[test]
fn version_3_leaves_the_start_of_an_overlay_as_it_is() {
    let rom = source();
    let (mut manifest, files, image) = everything(&rom);
    let alone = |manifest: &mut Value| {
        let operation = manifest["operations"][5].clone();
        manifest["operations"] = json!([operation]);
    };
    alone(&mut manifest);
    let stream = |manifest: &Value| {
        let (_, report) = built(&rom, manifest, &files).unwrap();
        let id = rom.overlays().iter().find(|one| (one.processor, one.id) == (Processor::Arm9, 1)).unwrap().file_id;
        stored(&report.output, id)
    };
    // The footer's first three bytes are the length of the part that is compressed, from the stream's end on (GBATEK, "BLZ").
    let plain = |stream: &[u8]| {
        let [.., a, b, c, _, _, _, _, _] = *stream else { panic!("no footer") };
        stream.len() - (usize::from(a) | usize::from(b) << 8 | usize::from(c) << 16)
    };
    manifest["formatVersion"] = json!(3);
    let usual = stream(&manifest);
    let wanted = plain(&usual) + 0x40;
    manifest["operations"][0]["ignoreBoundary"] = json!(wanted);
    let bounded = stream(&manifest);
    assert!(plain(&bounded) >= wanted && plain(&usual) < wanted, "{} {}", plain(&bounded), plain(&usual));
    assert_eq!(bounded[..wanted], image[..wanted]);
    assert_eq!(nds::blz::decode(&bounded, &mut base::Budget::new(1 << 20)).unwrap(), image);
    manifest["formatVersion"] = json!(2);
    let refusal = planned(&rom, &manifest, &files).unwrap_err();
    assert_eq!((refusal.category, refusal.message.contains("ignoreBoundary")), ("mutation-manifest-invalid", true));
}

#[test]
fn version_3_changes_bytes_of_autoload_blocks() {
    let mut program = SdkProgram::new(0x0200_4000, 0x1000);
    program.autoloads = vec![(0x01ff_8000, vec![1; 0x40], 0x10), (0x027e_0000, vec![2; 0x24], 0)];
    let of = |bytes: Vec<u8>| {
        let arm9 = nds::testing::ProgramSpec { ram_address: 0x0200_4000, entry: 0x0200_4800, bytes };
        Rom::parse(RomBuilder { arm9, ..RomBuilder::default() }.build()).unwrap()
    };
    let rom = of(program.image());
    // The blocks follow the code, which begins at 0x4000 of the ROM and has 0x1000 bytes; the second one follows 0x40 bytes.
    let edit = |target: Value, expected: &str| json!({"type": "replace-bytes", "target": target, "expected": expected, "replacement": "aabb"});
    let block =
        |index: u32, place: &str, at: u32| json!({"component": "arm9-autoload", "autoloadIndex": index, place: at});
    let files = Files::new();
    for (target, offset, expected) in [
        (block(0, "relativeOffset", 0x3e), 0x503e, "0101"),
        (block(0, "runtimeAddress", 0x01ff_8002), 0x5002, "0101"),
        (block(1, "relativeOffset", 4), 0x5044, "0202"),
        (block(1, "runtimeAddress", 0x027e_0022), 0x5062, "0202"),
    ] {
        let operations = json!([edit(target.clone(), expected)]);
        let (_, report) = built(&rom, &manifest(&rom, 3, &operations), &files).unwrap();
        let mut wanted = rom.bytes().to_vec();
        wanted[offset..offset + 2].copy_from_slice(&[0xaa, 0xbb]);
        assert!(report.output.bytes() == wanted, "{target}");
    }
    for (target, expected, refusal) in [
        // A byte beyond the block, its BSS, another block's address, and a block that is not there.
        (block(0, "relativeOffset", 0x3f), "0102", "unsupported-mutation-target"),
        (block(0, "runtimeAddress", 0x01ff_8040), "0000", "unsupported-mutation-target"),
        (block(0, "runtimeAddress", 0x027e_0000), "0202", "unsupported-mutation-target"),
        (block(2, "relativeOffset", 0), "0000", "unsupported-mutation-target"),
        (block(1, "relativeOffset", 0), "0203", "original-byte-guard-failed"),
    ] {
        assert_eq!(word(&rom, 3, &edit(target.clone(), expected), &files), refusal, "{target}");
    }
    assert_eq!(word(&rom, 2, &edit(block(0, "relativeOffset", 0), "0101"), &files), "mutation-manifest-invalid");
    // In a compressed program the blocks are stored nowhere as they are.
    let compressed = of(program.compressed().unwrap().0);
    let refusal = word(&compressed, 3, &edit(block(0, "relativeOffset", 0), "0101"), &files);
    assert_eq!(refusal, "unsupported-mutation-target");
}

#[test]
fn a_dsi_title_needs_its_stale_digests_acknowledged() {
    let rom = Rom::parse(RomBuilder::everything().build()).unwrap();
    let mut files = Files::new();
    let operations =
        json!([{"type": "add-nitrofs-file", "path": "n/x", "replacement": artifact(&mut files, "x", b"x")}]);
    let mut three = manifest(&rom, 3, &operations);
    let refusal = planned(&rom, &three, &files).unwrap_err();
    assert_eq!(refusal.category, "unsupported-rebuild-target");
    assert!(refusal.corrective_action.contains("stale-dsi-digests"));
    three["acknowledge"] = json!(["stale-dsi-digests"]);
    assert!(planned(&rom, &three, &files).unwrap().problems.iter().all(|problem| problem.code == "stale-dsi-digest"));
    assert!(!planned(&rom, &manifest(&rom, 2, &operations), &files).unwrap().problems.is_empty());
}

#[test]
fn every_manifest_error_names_its_place() {
    let rom = source();
    let good = manifest(
        &rom,
        1,
        &json!([{"type": "replace-bytes", "target": {"component": "arm9", "relativeOffset": 0},
        "expected": "00", "replacement": "01"}]),
    );
    assert!(rebuild::parse(good.to_string().as_bytes()).is_ok());
    for (place, value, told) in [
        ("/format", json!("x"), "/format"),
        ("/formatVersion", json!(4), "/formatVersion"),
        ("/source/sha256", json!("AB"), "/source/sha256"),
        ("/output/filename", json!(".nds"), "/output/filename"),
        ("/output/filename", json!("a/b.nds"), "/output/filename"),
        ("/operations", json!([]), "/operations"),
        ("/operations/0/expected", json!("0"), "/operations/0/expected"),
        ("/operations/0/replacement", json!("0102"), "/operations/0/replacement"),
        ("/operations/0/type", json!("add-nitrofs-file"), "/operations/0/type"),
        ("/operations/0/target/component", json!("arm9-autoload"), "/operations/0/target/component"),
        ("/operations/0/target/relativeOffset", json!(-1), "/operations/0/target/relativeOffset"),
    ] {
        let mut bad = good.clone();
        *bad.pointer_mut(place).unwrap() = value;
        let refusal = rebuild::parse(bad.to_string().as_bytes()).unwrap_err();
        assert_eq!(refusal.category, "mutation-manifest-invalid");
        assert!(refusal.message.starts_with(told), "{}", refusal.message);
    }
    for place in ["", "/source", "/output", "/operations/0", "/operations/0/target"] {
        let mut bad = good.clone();
        bad.pointer_mut(place).unwrap()["more"] = json!(1);
        let refusal = rebuild::parse(bad.to_string().as_bytes()).unwrap_err();
        assert!(refusal.message.starts_with(&format!("{place}/more")), "{}", refusal.message);
    }
    let mut bad = good.clone();
    bad["output"]["padToCapacity"] = json!(false);
    assert!(rebuild::parse(bad.to_string().as_bytes()).unwrap_err().message.starts_with("/output/padToCapacity"));
}

/// The word that a manifest of one operation is refused with.
fn word(rom: &Rom, version: u8, operation: &Value, files: &Files) -> &'static str {
    built(rom, &manifest(rom, version, &json!([operation])), files).map_or_else(|refusal| refusal.category, |_| "built")
}

#[test]
fn every_refusal_has_the_word_of_the_contract() {
    let rom = source();
    let mut files = Files::new();
    let bytes = |target: Value, expected: &str, replacement: &str| json!({"type": "replace-bytes", "target": target, "expected": expected, "replacement": replacement});
    let arm7 = |at: u32| json!({"component": "arm7", "relativeOffset": at});
    assert_eq!(word(&rom, 1, &bytes(arm7(0), "00", "01"), &files), "built");
    assert_eq!(word(&rom, 1, &bytes(arm7(0), "00", "00"), &files), "mutation-no-op");
    assert_eq!(word(&rom, 1, &bytes(arm7(0), "01", "00"), &files), "original-byte-guard-failed");
    assert_eq!(word(&rom, 1, &bytes(arm7(0x40), "01", "00"), &files), "unsupported-mutation-target");
    // Overlays 0 and 1 share 0x02100000; the second is compressed.
    let address = json!({"component": "arm9-overlay", "runtimeAddress": 0x0210_0000});
    assert_eq!(word(&rom, 1, &bytes(address, "01", "00"), &files), "ambiguous-runtime-target");
    let address = json!({"component": "arm9-overlay", "overlayId": 1, "runtimeAddress": 0x0210_0000});
    assert_eq!(word(&rom, 1, &bytes(address, "01", "00"), &files), "unsupported-mutation-target");
    let last = stored(&rom, rom.overlays()[1].file_id);
    let tail = json!({"component": "arm9-overlay", "overlayId": 1, "relativeOffset": last.len() - 4});
    assert_eq!(
        word(&rom, 1, &bytes(tail, &hex(&last[last.len() - 4..]), "00000001"), &files),
        "compressed-overlay-invalid"
    );

    let other = json!({"format": "re-mcp-nds-mutation", "formatVersion": 1, "source": {"sha256": "0".repeat(64)},
        "output": {"filename": "m.nds"}, "operations": [bytes(arm7(0), "00", "01")]});
    assert_eq!(planned(&rom, &other, &files).unwrap_err().category, "source-rom-mismatch");
    let twice = json!([bytes(arm7(0), "0001", "0101"), bytes(arm7(1), "01", "02")]);
    assert_eq!(planned(&rom, &manifest(&rom, 1, &twice), &files).unwrap_err().category, "mutation-overlap");

    let a = sha256_hex(&stored(&rom, named(&rom, "data/a.bin")));
    let small = artifact(&mut files, "small", b"small");
    let empty = artifact(&mut files, "empty", b"");
    let mut wrong = small.clone();
    wrong["sha256"] = json!("0".repeat(64));
    let replace = |target: Value, sha: &str, with: &Value| json!({"type": "replace-nitrofs-file", "target": target, "expectedOriginalSha256": sha, "replacement": with});
    let path = || json!({"filePath": "data/a.bin"});
    assert_eq!(word(&rom, 2, &replace(path(), &a, &small), &files), "built");
    assert_eq!(word(&rom, 2, &replace(path(), &"0".repeat(64), &small), &files), "original-component-guard-failed");
    assert_eq!(word(&rom, 2, &replace(path(), &a, &wrong), &files), "replacement-artifact-hash-mismatch");
    assert_eq!(word(&rom, 2, &replace(path(), &a, &empty), &files), "replacement-size-mismatch");
    let overlay = sha256_hex(&stored(&rom, 0));
    assert_eq!(word(&rom, 2, &replace(json!({"fileId": 0}), &overlay, &small), &files), "unsupported-rebuild-target");

    let add = |path: &str| json!({"type": "add-nitrofs-file", "path": path, "replacement": small});
    assert_eq!(word(&rom, 2, &add("data/a.bin"), &files), "filesystem-path-collision");
    assert_eq!(word(&rom, 3, &add("data/a.bin/x"), &files), "filesystem-path-collision");
    assert_eq!(word(&rom, 2, &add("data/new.bin"), &files), "filesystem-extension-invalid");
    let deep: Vec<String> = (0..2_040).map(|at| format!("{}", at % 10)).collect();
    let many: Vec<Value> = (0..3).map(|at| add(&format!("n{at}/{}", deep.join("/")))).collect();
    assert_eq!(
        planned(&rom, &manifest(&rom, 2, &json!(many)), &files).unwrap_err().category,
        "filesystem-id-capacity-exceeded"
    );

    let decoded = |runtime: &str, with: &Value| {
        json!({"type": "replace-decoded-overlay", "target": {"processor": "arm9", "overlayId": 1},
            "expectedStoredSha256": sha256_hex(&last), "expectedRuntimeSha256": runtime, "replacement": with})
    };
    let runtime = sha256_hex(rom.component(ComponentId::overlay(Processor::Arm9, 1)).unwrap().image(&rom).unwrap());
    assert_eq!(word(&rom, 2, &decoded(&"0".repeat(64), &small), &files), "decoded-overlay-guard-failed");
    assert_eq!(word(&rom, 2, &decoded(&runtime, &small), &files), "replacement-size-mismatch");
    // Hashes of numbers: nothing in them repeats.
    let noise: String = (0..0x20_u32).map(|at| sha256_hex(&at.to_le_bytes())).collect();
    let digit = |byte: u8| char::from(byte).to_digit(16).unwrap() as u8;
    let noise: Vec<u8> = noise.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect();
    assert_eq!(noise.len(), 0x400);
    let noise = artifact(&mut files, "noise", &noise);
    assert_eq!(word(&rom, 2, &decoded(&runtime, &noise), &files), "blz-encode-failed");
}

#[test]
fn a_damaged_source_is_not_rebuilt() {
    let good = source();
    let word = |change: &dyn Fn(&mut Vec<u8>, &Rom)| {
        let mut bytes = good.bytes().to_vec();
        change(&mut bytes, &good);
        let rom = Rom::parse(bytes).unwrap();
        let mut files = Files::new();
        let operation =
            json!({"type": "add-nitrofs-file", "path": "n/x", "replacement": artifact(&mut files, "x", b"x")});
        word(&rom, 2, &operation, &files)
    };
    assert_eq!(word(&|_, _| {}), "built");
    assert_eq!(word(&|bytes, _| bytes[0x15e] ^= 1), "header-checksum-invalid");
    assert_eq!(word(&|bytes, rom| bytes[rom.header().fnt.offset as usize] ^= 0x80), "fnt-rebuild-failed");
    let reversed = |bytes: &mut Vec<u8>, rom: &Rom| put32(bytes, rom.header().fat.offset as usize, u32::MAX);
    assert_eq!(word(&reversed), "fat-rebuild-failed");
    let tables = |bytes: &mut Vec<u8>, rom: &Rom| {
        put32(bytes, 0x40, rom.header().arm7.rom_offset);
        seal(bytes);
    };
    assert_eq!(word(&tables), "fnt-rebuild-failed");
    // A file that lies over the FAT cannot be edited through.
    let mut bytes = good.bytes().to_vec();
    let fat = good.header().fat;
    let id = named(&good, "readme.txt");
    put32(&mut bytes, (fat.offset + 8 * id) as usize, fat.offset);
    put32(&mut bytes, (fat.offset + 8 * id + 4) as usize, fat.offset + 8);
    let rom = Rom::parse(bytes).unwrap();
    let target = json!({"component": "nitrofs-file", "fileId": id, "relativeOffset": 0});
    let byte = hex(&rom.bytes()[fat.offset as usize..=fat.offset as usize]);
    let operation = json!({"type": "replace-bytes", "target": target, "expected": byte, "replacement": "ff"});
    assert_eq!(self::word(&rom, 1, &operation, &Files::new()), "structural-metadata-mutation");
}

#[test]
fn two_overlays_of_one_number_are_not_rebuilt() {
    let good = source();
    let mut bytes = good.bytes().to_vec();
    // The second record of 32 bytes begins with its number.
    put32(&mut bytes, good.header().arm9_overlays.offset as usize + 32, 0);
    let rom = Rom::parse(bytes).unwrap();
    let target = json!({"component": "arm9-overlay", "overlayId": 0, "relativeOffset": 0});
    let operation = json!({"type": "replace-bytes", "target": target, "expected": "00", "replacement": "01"});
    assert_eq!(word(&rom, 1, &operation, &Files::new()), "overlay-table-rebuild-failed");
}

#[test]
fn a_program_that_compresses_to_more_than_there_is_room_for_is_refused() {
    let program = SdkProgram::new(0x0200_4000, 0x3000);
    let (bytes, image) = program.compressed().unwrap();
    let arm9 = nds::testing::ProgramSpec { ram_address: 0x0200_4000, entry: 0x0200_4800, bytes: bytes.clone() };
    let rom = Rom::parse(RomBuilder { arm9, ..RomBuilder::default() }.build()).unwrap();
    let refused = |noisy: usize| {
        let mut new = image.clone();
        // Hashes of numbers do not become shorter; from 0x1000 on nothing of the SDK's own is in the image.
        let noise = (0..).flat_map(|at: u32| nds::sha256_hex(&at.to_le_bytes()).into_bytes());
        let pairs: Vec<u8> = noise.take(2 * noisy).collect();
        for (place, pair) in new[0x1000..0x1000 + noisy].iter_mut().zip(pairs.chunks(2)) {
            let digit = |byte: u8| char::from(byte).to_digit(16).unwrap() as u8;
            *place = digit(pair[0]) << 4 | digit(pair[1]);
        }
        let mut files = Files::new();
        let operation = json!({"type": "replace-decoded-program", "target": {"processor": "arm9"},
            "expectedStoredSha256": sha256_hex(&bytes), "expectedRuntimeSha256": sha256_hex(&image),
            "replacement": artifact(&mut files, "arm9.bin", &new)});
        word(&rom, 3, &operation, &files)
    };
    // Room up to the next thing, which begins at a multiple of 0x200.
    assert_eq!(refused(1), "built");
    assert_eq!(refused(0x1800), "blz-packed-size-overflow");
}

#[test]
fn what_the_plan_does_not_say_is_refused() {
    let rom = source();
    let (manifest, files, _) = everything(&rom);
    let (plan, report) = built(&rom, &manifest, &files).unwrap();
    let output = report.output.bytes().to_vec();
    let refused = |plan: &Plan, bytes: Vec<u8>| rebuild::verify(&rom, plan, bytes).unwrap_err().category;
    let mut damaged = output.clone();
    damaged[0x4000] ^= 1;
    assert_eq!(refused(&plan, damaged), "unexpected-rom-diff");
    assert_eq!(refused(&plan, output[1..].to_vec()), "output-verification-failed");
    let mut other = plan.clone();
    other.files.pop();
    assert_eq!(refused(&other, output.clone()), "structural-map-changed");
    // A plan that would put the FAT outside the ROM: what comes of it is no ROM any more, whatever the plan says.
    let mut other = plan.clone();
    let mut broken = output.clone();
    let field = other.patches.iter_mut().find(|patch| patch.start == 0x40).unwrap();
    field.bytes[8..12].copy_from_slice(&0x7fff_0000_u32.to_le_bytes());
    broken[0x40..0x40 + field.bytes.len()].copy_from_slice(&field.bytes);
    assert_eq!(refused(&other, broken), "post-build-parse-failed");
    let mut other = plan.clone();
    other.operations[3].sha256 = "0".repeat(64);
    assert_eq!(refused(&other, output.clone()), "output-verification-failed");
    // A build recorded by an earlier encoder is judged by what its streams decode to; this one has another image.
    let manifest = rebuild::parse(manifest.to_string().as_bytes()).unwrap();
    let mut source = |artifact: &ArtifactRef| Ok(files[&artifact.path].clone());
    let again = rebuild::plan(&rom, manifest.clone(), &mut source, Some(&report.output)).unwrap();
    assert_ne!(again.build_id, plan.build_id);
    rebuild::verify(&rom, &again, output).unwrap();
    let refusal = rebuild::plan(&rom, manifest, &mut source, Some(&rom)).unwrap_err();
    assert_eq!(refusal.category, "blz-roundtrip-mismatch");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn random_manifests_are_built_and_verified_twice_alike(
        edits in proptest::collection::btree_map(0_u32..0x40, any::<u8>(), 0..6),
        replaced in proptest::option::of(proptest::collection::vec(any::<u8>(), 1..3_000)),
        added in proptest::collection::btree_map("n[a-c]/[d-f]{1,3}", proptest::collection::vec(any::<u8>(), 1..600), 0..5),
        version in 2_u8..=3,
        flipped in any::<prop::sample::Index>(),
    ) {
        let rom = source();
        let mut files = Files::new();
        let mut operations = Vec::new();
        let arm7 = rom.header().arm7.rom_offset;
        for (at, mask) in &edits {
            let old = rom.bytes()[(arm7 + at) as usize];
            operations.push(json!({"type": "replace-bytes", "target": {"component": "arm7", "relativeOffset": at},
                "expected": hex(&[old]), "replacement": hex(&[old ^ (mask | 1)])}));
        }
        if let Some(bytes) = &replaced {
            let original = sha256_hex(&stored(&rom, named(&rom, "data/a.bin")));
            operations.push(json!({"type": "replace-nitrofs-file", "target": {"filePath": "data/a.bin"},
                "expectedOriginalSha256": original, "replacement": artifact(&mut files, "r", bytes)}));
        }
        for (path, bytes) in &added {
            operations.push(json!({"type": "add-nitrofs-file", "path": path, "replacement": artifact(&mut files, path, bytes)}));
        }
        prop_assume!(!operations.is_empty());
        let manifest = manifest(&rom, version, &json!(operations));
        let (plan, report) = built(&rom, &manifest, &files).unwrap();
        let again = built(&rom, &manifest, &files).unwrap().1;
        prop_assert_eq!(report.output.bytes(), again.output.bytes());
        for file in rom.files().iter().filter(|file| file.path.as_deref() != Some("data/a.bin")) {
            prop_assert_eq!(stored(&report.output, file.id), stored(&rom, file.id));
        }
        for (path, bytes) in &added {
            prop_assert_eq!(&stored(&report.output, named(&report.output, path)), bytes);
        }
        let mut damaged = report.output.bytes().to_vec();
        let at = flipped.index(damaged.len());
        damaged[at] ^= 0x80;
        prop_assert!(rebuild::verify(&rom, &plan, damaged).is_err());
    }
}
