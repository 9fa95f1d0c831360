//! Compares the model with ndspy, field by field, on real ROMs, on the fixture and on a built ROM with everything in it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::ffi::OsString;
use std::fmt::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use nds::testing::RomBuilder;
use nds::{ComponentId, Part, Processor, Rom, sha256_hex};

fn variable(name: &str, what: &str) -> OsString {
    std::env::var_os(name).unwrap_or_else(|| panic!("{name} must name {what}; `cargo xtask test` sets it"))
}

/// The real ROMs. There must be some: a comparison with nothing proves nothing.
fn real_roms() -> Vec<PathBuf> {
    let folder = PathBuf::from(variable("RETROSCOPE_ROMS", "the folder with Nintendo DS ROMs"));
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| {
        panic!(
            "the ROMs that this test needs are not in {}: {error}; RETROSCOPE_ROMS names another folder",
            folder.display()
        )
    });
    let mut roms: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    roms.retain(|path| path.extension().is_some_and(|extension| extension == "nds"));
    roms.sort();
    assert!(!roms.is_empty(), "there is no .nds file in {}", folder.display());
    roms
}

fn ndspy(rom: &Path) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ndspy_facts.py");
    let python = variable("RETROSCOPE_PYTHON", "a Python that has ndspy");
    let output = Command::new(python).arg("-B").arg(script).arg(rom).output().expect("Python starts");
    assert!(output.status.success(), "{}: {}", rom.display(), String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn digest(bytes: &[u8]) -> String {
    format!("{} {}", bytes.len(), sha256_hex(bytes))
}

/// What the script prints, from our model.
fn ours(rom: &Rom) -> String {
    let header = rom.header();
    let part = |range: Range<u64>| digest(&rom.bytes()[range.start as usize..range.end as usize]);
    let title: Vec<u8> = header.title.iter().copied().rev().skip_while(|byte| *byte == 0).collect();
    let title: Vec<u8> = title.into_iter().rev().collect();
    let mut text = String::new();
    let mut fact = |line: String| writeln!(text, "{line}").unwrap();
    fact(format!("title {}", hex(&title)));
    fact(format!("code {} {}", hex(&header.code), hex(&header.maker)));
    fact(format!("unit {} {} {}", header.unit_code, header.seed_select, header.device_capacity));
    fact(format!("flags {} {} {} {}", header.dsi_flags, header.region, header.version, header.autostart));
    for (word, program) in [("arm9", header.arm9), ("arm7", header.arm7)] {
        fact(format!("{word} {} {} {}", program.entry, program.ram_address, part(program.rom())));
    }
    fact(format!("card {} {}", header.card_control, header.secure_card_control));
    fact(format!("secure {} {} {}", header.secure_area_crc, header.secure_delay, hex(&header.secure_disable)));
    fact(format!("hooks {} {}", header.arm9_autoload_hook, header.arm7_autoload_hook));
    fact(format!("debug {}", header.debug_rom_address));
    fact(format!("tables {} {}", part(header.arm9_overlays.rom()), part(header.arm7_overlays.rom())));
    for file in rom.files() {
        let range = file.range().unwrap();
        let bytes = part(u64::from(range.start)..u64::from(range.end));
        fact(format!("file {} {bytes} {}", file.id, file.path.as_deref().unwrap_or("-")));
    }
    for overlay in rom.overlays() {
        let component = rom.component(ComponentId::overlay(overlay.processor, overlay.id)).unwrap();
        fact(format!(
            "overlay {} {} {} {} {} {} {} {} {} {} {}",
            overlay.processor.word(),
            overlay.id,
            overlay.ram_address,
            overlay.ram_size,
            overlay.bss_size,
            overlay.static_init_start,
            overlay.static_init_end,
            overlay.file_id,
            overlay.compressed_size,
            overlay.flags,
            digest(component.image(rom).unwrap())
        ));
    }
    for component in rom.components().iter().filter(|component| component.id.processor == Processor::Arm9) {
        let (word, bss) = match component.id.part {
            // ndspy does not read the BSS of the program itself.
            Part::Main => ("main", 0),
            Part::Autoload(_) => ("autoload", component.bss.end - component.bss.start),
            Part::Overlay(_) | Part::Twl => continue,
        };
        fact(format!("{word} {} {bss} {}", component.start, digest(component.image(rom).unwrap())));
    }
    text
}

fn compare(path: &Path) {
    let rom = Rom::parse(std::fs::read(path).unwrap()).unwrap();
    let (ours, theirs) = (ours(&rom), ndspy(path));
    let (ours, theirs): (Vec<_>, Vec<_>) = (ours.lines().collect(), theirs.lines().collect());
    let pairs = ours.iter().zip(&theirs).filter(|(ours, theirs)| ours != theirs);
    let different: Vec<_> = pairs.map(|(ours, theirs)| format!("ours: {ours}\nndspy: {theirs}")).collect();
    assert!(different.is_empty(), "{}:\n{}", path.display(), different.join("\n"));
    assert_eq!(ours.len(), theirs.len(), "{}: one has more facts", path.display());
}

#[test]
fn real_roms_and_the_fixture_are_what_ndspy_reads() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/nds-overlay-rom/ndslab-test.nds");
    let mut roms = real_roms();
    roms.push(fixture);
    for path in &roms {
        compare(path);
    }
    println!("{} ROMs are the same", roms.len());
}

#[test]
fn a_built_rom_with_everything_is_what_ndspy_reads() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("everything.nds");
    std::fs::write(&path, RomBuilder::everything().build()).unwrap();
    compare(&path);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn real_roms_have_no_problems() {
    for path in real_roms() {
        let rom = Rom::parse(std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(rom.problems(), [], "{}", path.display());
    }
}

/// ndspy finds every file of a rebuilt ROM by its number and name, decodes our stream of a real program, and we decode its own;
/// ours is no longer than its by more than 0.5 %.
#[test]
fn ndspy_reads_what_is_rebuilt_and_compressed() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    let source = Rom::parse(RomBuilder { dsi: None, ..RomBuilder::everything() }.build()).unwrap();
    let artifact =
        |name: &str, bytes: &[u8]| format!("{{\"artifact\":\"{name}\",\"sha256\":\"{}\"}}", sha256_hex(bytes));
    let a = source.files().iter().find(|file| file.path.as_deref() == Some("data/a.bin")).unwrap().range().unwrap();
    let original = sha256_hex(&source.bytes()[a.start as usize..a.end as usize]);
    let manifest = format!(
        "{{\"format\":\"re-mcp-nds-mutation\",\"formatVersion\":3,\"source\":{{\"sha256\":\"{}\"}},\
         \"output\":{{\"filename\":\"m.nds\"}},\"operations\":[\
         {{\"type\":\"add-nitrofs-file\",\"path\":\"data/deep/new.bin\",\"replacement\":{}}},\
         {{\"type\":\"add-nitrofs-file\",\"path\":\"data/b.bin\",\"replacement\":{}}},\
         {{\"type\":\"replace-nitrofs-file\",\"target\":{{\"filePath\":\"data/a.bin\"}},\
           \"expectedOriginalSha256\":\"{original}\",\"replacement\":{}}}]}}",
        source.sha256(),
        artifact("one", b"one"),
        artifact("two", b"two"),
        artifact("three", b"three"),
    );
    let manifest = nds::rebuild::parse(manifest.as_bytes()).unwrap();
    let mut content = |artifact: &nds::rebuild::ArtifactRef| Ok(artifact.path.clone().into_bytes());
    let plan = nds::rebuild::plan(&source, manifest, &mut content, None).unwrap();
    let output = nds::rebuild::apply(&source, &plan).unwrap();
    std::fs::write(place("rom.nds"), &output).unwrap();
    let rebuilt = nds::rebuild::verify(&source, &plan, output).unwrap().output;
    let mut expected = String::new();
    for file in rebuilt.files() {
        let range = file.range().unwrap();
        let bytes = &rebuilt.bytes()[range.start as usize..range.end as usize];
        writeln!(expected, "file {} {} {}", file.id, digest(bytes), file.path.as_deref().unwrap_or("-")).unwrap();
    }
    assert!(expected.contains("data/deep/new.bin") && expected.contains("data/b.bin"));

    let smallest = real_roms().into_iter().min_by_key(|path| std::fs::metadata(path).unwrap().len()).unwrap();
    let real = Rom::parse(std::fs::read(smallest).unwrap()).unwrap();
    let image = real.component(ComponentId::main(Processor::Arm9)).unwrap().image(&real).unwrap();
    let stream = nds::blz::encode(image, 0).unwrap();
    std::fs::write(place("image"), image).unwrap();
    std::fs::write(place("stream"), &stream).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ndspy_rebuild.py");
    let mut python = Command::new(variable("RETROSCOPE_PYTHON", "a Python that has ndspy"));
    python.arg("-B").arg(script).args(["rom.nds", "image", "stream", "other"].map(place));
    let told = python.output().expect("Python starts");
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    let other = std::fs::read(place("other")).unwrap();
    writeln!(expected, "decoded {}\nlength {}", sha256_hex(image), other.len()).unwrap();
    assert_eq!(String::from_utf8(told.stdout).unwrap(), expected);
    assert_eq!(nds::blz::decode(&other, &mut base::Budget::new(16 << 20)).unwrap(), image);
    assert!(stream.len() * 1000 <= other.len() * 1005, "{} bytes, ndspy {}", stream.len(), other.len());
}
