//! Decoding of ARM and Thumb against objdump, over libraries that a compiler made and whose symbols say what is code, and
//! over words of chance.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod arm_objdump;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use arm_objdump::normal::normal;
use arm_objdump::{Line, disassemble, parse, run};
use code::arm::{Arch, DecodeError, Mode, decode};

/// Libraries of Debian's newlib; its variants are named as the compiler's are.
const NEWLIB: &str = "/usr/lib/arm-none-eabi/newlib";

/// The variants that a DS program may have, and the processor that runs them: ARM code for either, Thumb code.
const VARIANTS: [(Arch, &str); 4] =
    [(Arch::V4T, ""), (Arch::V5TE, "arm/v5te/softfp"), (Arch::V4T, "thumb/nofp"), (Arch::V5TE, "thumb/nofp")];

/// Instructions of which objdump says more than is true of the processors of a DS, and how many there are at most.
const EXCEPTIONS: [(&str, usize); 3] = [
    // VFP code of the variant for ARMv5TE, and libgcc's unwinder, which saves the registers of coprocessors that may be there.
    ("a coprocessor that the processors lack", 11_845),
    // An `ldrh` with a bit that should be zero, in place of an instruction of iWMMXt.
    ("unpredictable by objdump's own account", 2),
    // The assembler fills with a hint of Thumb-2, 0xbf00, which is undefined in Thumb (ARM ARM A6.2, figure A6-2).
    ("padding from Thumb-2", 8),
];

/// Links a whole library, so that its branches have real distances. What it calls elsewhere stays undefined.
fn link(variant: &str, library: &str, folder: &Path) -> PathBuf {
    let archive = match library {
        "libgcc" => {
            let own = run("arm-none-eabi-gcc", &["-print-libgcc-file-name".as_ref()]);
            Path::new(own.trim()).parent().unwrap().join(variant).join("libgcc.a")
        }
        _ => Path::new(NEWLIB).join(variant).join(format!("{library}.a")),
    };
    assert!(archive.is_file(), "{} is missing; `cargo xtask install` installs it", archive.display());
    let elf = folder.join("linked.elf");
    let options = "--whole-archive -Ttext 0x2000000 -e 0 --unresolved-symbols=ignore-all --allow-multiple-definition";
    let mut arguments: Vec<&OsStr> = options.split(' ').map(OsStr::new).collect();
    arguments.extend([archive.as_os_str(), OsStr::new("-o"), elf.as_os_str()]);
    run("arm-none-eabi-ld", &arguments);
    elf
}

/// Why a difference is none, by the encodings of the manual and not by what our decoder says.
fn exception(line: &Line) -> Option<&'static str> {
    let raw = line.raw();
    match line.mode {
        // ARM ARM A3.1, figure A3-1: coprocessor loads, stores, operations and register transfers.
        Mode::Arm if raw >> 25 & 7 == 0b110 => Some(EXCEPTIONS[0].0),
        Mode::Arm if raw >> 24 & 0xf == 0b1110 && raw >> 8 & 0xf < 14 => Some(EXCEPTIONS[0].0),
        Mode::Arm if line.operands.contains("UNPREDICTABLE") => Some(EXCEPTIONS[1].0),
        Mode::Thumb if raw == 0xbf00 => Some(EXCEPTIONS[2].0),
        _ => None,
    }
}

/// What is wrong with our view of an instruction of objdump's.
fn difference(arch: Arch, line: &Line) -> Option<String> {
    let ours = match decode(arch, line.mode, line.address, &line.bytes) {
        Ok(ours) => ours,
        Err(DecodeError::Undecodable { .. }) if line.is_undefined() => return None,
        Err(error) => return Some(error.to_string()),
    };
    if line.is_undefined() {
        return Some("accepted".to_owned());
    }
    let (text, theirs) = (normal(&ours.mnemonic(), &ours.operands()), normal(&line.mnemonic, &line.operands));
    let same = text == theirs
        && usize::from(ours.size) == line.bytes.len()
        && ours.flow().direct_target == line.target()
        && ours.writes() == theirs.written()
        && ours.reads().union(ours.writes()) == theirs.touched();
    (!same).then(|| {
        let registers = (ours.reads(), ours.writes(), theirs.touched(), theirs.written());
        format!("{text:?} {theirs:?} {:x?} {:x?} {registers:?}", ours.flow().direct_target, line.target())
    })
}

/// Fails with the first of the differences.
fn none(differences: &[String]) {
    let first = differences.iter().take(10).cloned().collect::<Vec<_>>().join("\n");
    assert!(differences.is_empty(), "{} differences:\n{first}", differences.len());
}

#[test]
fn libraries_decode_as_objdump_has_them() {
    let mut exceptions: BTreeMap<&str, usize> = BTreeMap::new();
    let mut counts = [0; 2];
    let mut differences = Vec::new();
    for (arch, variant) in VARIANTS {
        for library in ["libc", "libc_nano", "libm", "libgcc"] {
            let folder = tempfile::tempdir().unwrap();
            let lines = disassemble(&link(variant, library, folder.path()));
            assert!(lines.len() > 10_000, "{variant} {library}: only {} instructions", lines.len());
            for line in lines {
                counts[usize::from(line.mode == Mode::Thumb)] += 1;
                let Some(difference) = difference(arch, &line) else { continue };
                match exception(&line) {
                    Some(name) => *exceptions.entry(name).or_default() += 1,
                    None => differences.push(format!("{variant} {library} {line:x?}: {difference}")),
                }
            }
        }
    }
    none(&differences);
    println!("{} ARM and {} Thumb instructions; exceptions: {exceptions:?}", counts[0], counts[1]);
    assert!(counts.iter().all(|count| *count >= 200_000), "{counts:?}");
    for (name, most) in EXCEPTIONS {
        let count = exceptions.get(name).copied().unwrap_or_default();
        assert!(count <= most, "{name}: {count}");
    }
}

#[test]
fn words_of_chance_are_accepted_only_where_objdump_knows_them() {
    const WORDS: usize = 200_000;
    for (arch, machine) in [(Arch::V4T, "armv4t"), (Arch::V5TE, "armv5te")] {
        // xorshift64 (Marsaglia 2003) with a fixed seed.
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 16) as u32
        };
        let bytes: Vec<u8> = std::iter::repeat_with(|| next().to_le_bytes()).take(WORDS).flatten().collect();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("words.bin");
        std::fs::write(&file, bytes).unwrap();
        let options = ["-D", "-z", "-b", "binary", "-m", machine].map(OsStr::new);
        let lines = parse(&run("arm-none-eabi-objdump", &[&options[..], &[file.as_ref()]].concat()));
        assert_eq!(lines.len(), WORDS);
        let (mut accepted, mut differences) = (0, Vec::new());
        for line in lines {
            if decode(arch, line.mode, line.address, &line.bytes).is_err() {
                // Refusing more is allowed: what the manual calls unpredictable, which objdump mostly shows.
                continue;
            }
            accepted += 1;
            // There objdump may show less, or other names.
            if line.operands.contains("UNPREDICTABLE") && !line.is_undefined() {
                continue;
            }
            if let Some(difference) = difference(arch, &line) {
                differences.push(format!("{machine} {line:x?}: {difference}"));
            }
        }
        none(&differences);
        println!("{machine}: {accepted} of {WORDS} accepted");
        assert!(accepted > WORDS / 2, "{accepted}");
    }
}
