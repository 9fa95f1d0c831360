//! Everything for Windows that is built here: the Rust targets, the agents, and the programs that tests run there.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::check::LIVE;
use crate::fixtures::{files, folder, is_newer};
use crate::{Outcome, build_std, no_arguments, provision, sh, workspace};

/// One word size of Windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windows {
    /// For people and file names.
    pub bits: u8,
    /// Rust's name.
    pub triple: &'static str,
    /// mingw's compiler.
    compiler: &'static str,
}

/// Both word sizes.
pub const BOTH: [Windows; 2] = [
    Windows { bits: 32, triple: "i686-pc-windows-gnu", compiler: "i686-w64-mingw32-gcc" },
    Windows { bits: 64, triple: "x86_64-pc-windows-gnu", compiler: "x86_64-w64-mingw32-gcc" },
];

/// The target of Microsoft's own linker. Nothing is linked for it here.
const MSVC: &str = "x86_64-pc-windows-msvc";

/// As for Linux (crates/server/build.rs): no library of the compiler's, every function with its own body and frame, and
/// everything at the addresses that the game's README promises.
const GAME_FLAGS: &[&str] = &[
    "-std=gnu11",
    "-O1",
    "-w",
    "-ffreestanding",
    "-fno-builtin",
    "-fno-inline",
    "-fno-omit-frame-pointer",
    "-fno-optimize-sibling-calls",
    "-fno-stack-protector",
    "-fcf-protection=none",
    "-fno-asynchronous-unwind-tables",
    "-fno-unwind-tables",
    "-fno-toplevel-reorder",
    "-fno-tree-loop-distribute-patterns",
    "-nostdlib",
    "-mwindows",
    "-Wl,-e,_start",
    "-Wl,--image-base,0x400000",
    "-Wl,--disable-dynamicbase",
    "-Wl,--disable-reloc-section",
    "-Wl,--no-insert-timestamp",
    "-Wl,--section-start=.gamevars=0x480000",
];

/// The task: targets, programs, fixtures.
pub fn run(arguments: &[String]) -> Outcome {
    no_arguments(arguments)?;
    provision::debian()?;
    targets()?;
    fixtures()?;
    programs()?;
    for windows in BOTH {
        println!("{}", windows.agent("debug").display());
    }
    Ok(())
}

impl Windows {
    /// Where the built agent is.
    pub fn agent(&self, profile: &str) -> PathBuf {
        self.program(profile, "retroscope-agent.exe")
    }

    /// Where a built program is.
    pub fn program(&self, profile: &str, name: &str) -> PathBuf {
        workspace::target().join(self.triple).join(profile).join(name)
    }

    /// What cargo is to build for it: always the same, so that nothing is compiled twice with other features. The server is
    /// for 64 bits alone: it does not care what the agent that it talks to debugs.
    pub fn selection(&self) -> Vec<&'static str> {
        let mut words = vec!["--target", self.triple, "--package", "agent", "--features", "agent/live"];
        if self.bits == 64 {
            words.extend(["--package", "retroscope"]);
        }
        words
    }

    /// The library that stands in for the one that Wine lacks.
    pub fn stand_in(&self) -> PathBuf {
        folder().join(format!("bcryptprimitives{}.dll", self.bits))
    }

    fn game(&self) -> PathBuf {
        folder().join(format!("driftgame{}.exe", self.bits))
    }
}

/// Small 32-bit programs of one C file each, by the name of their folder: the smallest Win32 debugger, which the agent is measured
/// against, and a program that debugs itself.
const SMALL: &[&str] = &[BARE_LOOP, "selfdebug"];

const BARE_LOOP: &str = "win32loop";

/// The smallest Win32 debugger.
pub fn bare_loop() -> PathBuf {
    small(BARE_LOOP)
}

fn small(name: &str) -> PathBuf {
    folder().join(format!("{name}.exe"))
}

/// Adds the Rust targets that are missing: by rustup, or built from Debian's sources where it cannot.
pub fn targets() -> Outcome {
    // mingw's dlltool cuts paths there, and fails in words that do not say so.
    let target = workspace::target();
    if target.to_string_lossy().contains(' ') {
        return Err(format!(
            "{} has a space in its name, which mingw's dlltool cannot work with; set CARGO_TARGET_DIR to a folder without",
            target.display()
        ));
    }
    let mut missing = Vec::new();
    for windows in BOTH {
        if build_std::is_there(windows.triple)? {
            continue;
        }
        if let Err(error) = sh::run(Command::new("rustup").args(["target", "add", windows.triple])) {
            println!("note: {error}");
        }
        // A toolchain that is not rustup's is not changed by it.
        if !build_std::is_there(windows.triple)? {
            missing.push(windows.triple);
        }
    }
    if missing.is_empty() { Ok(()) } else { build_std::install(&missing) }
}

/// Clippy on what only Windows compiles: for the other compiler's target where rustup brings it, so that this one compiles
/// too, and otherwise for ours.
pub fn clippy() -> Outcome {
    let mut target = MSVC;
    if !build_std::is_there(MSVC)? && !sh::succeeds(Command::new("rustup").args(["target", "add", MSVC])) {
        println!("note: rustup does not bring {MSVC}, so it is not known whether the programs compile for it");
        targets()?;
        target = BOTH[1].triple;
    }
    let mut cargo = sh::cargo();
    cargo.args(["clippy", "--target", target, "--package", "agent", "--package", "retroscope", "--lib", "--bins"]);
    cargo.args(["--test", "live_win32_platform", "--features", LIVE, "--", "-D", "warnings"]);
    sh::run(&mut cargo)
}

/// Builds both agents, and the server for 64 bits.
pub fn programs() -> Outcome {
    for windows in BOTH {
        sh::run(sh::cargo().arg("build").args(windows.selection()))?;
    }
    Ok(())
}

/// Builds the programs that tests run, those that are older than their sources.
pub fn fixtures() -> Outcome {
    std::fs::create_dir_all(folder()).map_err(|error| format!("cannot make {}: {error}", folder().display()))?;
    let game = workspace::root().join("fixtures/driftgame");
    let stand_in = workspace::root().join("fixtures/bcryptprimitives");
    let (game_sources, stand_in_sources) = (files(&game)?, files(&stand_in)?);
    for windows in BOTH {
        if !is_newer(&windows.game(), &game_sources) {
            let mut gcc = Command::new(windows.compiler);
            gcc.current_dir(&game).args(GAME_FLAGS);
            if windows.bits == 64 {
                gcc.arg("-Wl,--disable-high-entropy-va");
            }
            gcc.arg("-o").arg(windows.game()).args(["game.c", "options.c", "win32.c"]);
            sh::run(gcc.args(["-lgcc", "-lkernel32", "-luser32", "-lgdi32"]))?;
            close_gaps(&windows.game())?;
        }
        if !is_newer(&windows.stand_in(), &stand_in_sources) {
            let mut gcc = Command::new(windows.compiler);
            gcc.current_dir(&stand_in).args(["-shared", "-O1", "-s", "-Wl,--enable-stdcall-fixup", "-o"]);
            sh::run(gcc.arg(windows.stand_in()).args(["bcryptprimitives.c", "bcryptprimitives.def", "-ladvapi32"]))?;
        }
    }
    for name in SMALL {
        let source = workspace::root().join("fixtures").join(name);
        if !is_newer(&small(name), &files(&source)?) {
            let mut gcc = Command::new(BOTH[0].compiler);
            gcc.current_dir(&source).args(["-O2", "-Wall", "-o"]).arg(small(name));
            sh::run(gcc.arg(format!("{name}.c")))?;
        }
    }
    Ok(())
}

/// Windows loads no program whose sections leave a hole between them. The linker leaves one before the game's variables,
/// so the section before it is made as long as the hole.
fn close_gaps(program: &Path) -> Outcome {
    let damaged = || format!("{} is no PE file", program.display());
    let mut bytes = std::fs::read(program).map_err(|error| format!("cannot read {}: {error}", program.display()))?;
    fill(&mut bytes).ok_or_else(damaged)?;
    std::fs::write(program, bytes).map_err(|error| format!("cannot write {}: {error}", program.display()))
}

fn fill(bytes: &mut [u8]) -> Option<()> {
    let headers = usize::try_from(number::<4>(bytes, 0x3c)?).ok()?;
    let sections = usize::try_from(number::<2>(bytes, headers + 6)?).ok()?;
    let table = headers + 24 + usize::try_from(number::<2>(bytes, headers + 20)?).ok()?;
    // Each of 40 bytes: the virtual size at 8, the virtual address at 12.
    for section in 1..sections {
        let (before, this) = (table + 40 * (section - 1), table + 40 * section);
        let (start, next) = (number::<4>(bytes, before + 12)?, number::<4>(bytes, this + 12)?);
        let size = number::<4>(bytes, before + 8)?;
        if (start + size).next_multiple_of(0x1000) < next {
            let length = u32::try_from(next - start).ok()?;
            bytes.get_mut(before + 8..before + 12)?.copy_from_slice(&length.to_le_bytes());
        }
    }
    Some(())
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..)?.get(..N)?;
    Some(bytes.iter().rev().fold(0, |value, byte| (value << 8) | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hole_between_sections_is_filled_by_the_one_before() {
        // Headers at 0x40 without an optional header; two sections at 0x1000 (0x10 long) and 0x80000.
        let mut bytes = vec![0; 0x40 + 24 + 80];
        bytes[0x3c] = 0x40;
        bytes[0x46] = 2;
        let table = 0x40 + 24;
        for (at, value) in [(8, 0x10u32), (12, 0x1000), (40 + 8, 0x20), (40 + 12, 0x8_0000)] {
            bytes[table + at..table + at + 4].copy_from_slice(&value.to_le_bytes());
        }
        assert_eq!(fill(&mut bytes), Some(()));
        assert_eq!(number::<4>(&bytes, table + 8), Some(0x7_f000));
        assert_eq!(number::<4>(&bytes, table + 48), Some(0x20));
        assert_eq!(fill(&mut bytes[..0x50]), None);
    }
}
