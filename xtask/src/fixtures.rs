//! Builds the programs that tests run, from `fixtures/`, into the target folder.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Outcome, no_arguments, sh, workspace};

/// Builds every fixture.
pub fn run(arguments: &[String]) -> Outcome {
    no_arguments(arguments)?;
    build()
}

/// Where the built fixtures are; tests get it as `RETROSCOPE_FIXTURES`.
pub fn folder() -> PathBuf {
    workspace::target().join("fixtures")
}

/// The build script that the server embeds driftgame with. It is the only place with the compiler's flags, and it needs
/// nothing but std, so it is compiled and run here as a program: seconds instead of a build of the server.
const RECIPE: &str = "crates/server/build.rs";

/// Builds every fixture that is older than its sources.
pub fn build() -> Outcome {
    let folder = folder();
    std::fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    gba_loop(&folder)?;
    vice(&folder)?;
    let recipe = workspace::root().join(RECIPE);
    let mut sources = files(&workspace::root().join("fixtures/driftgame"))?;
    sources.push(recipe.clone());
    let programs = ["driftgame64", "driftgame32"].map(|name| folder.join(name));
    if programs.iter().all(|program| is_newer(program, &sources)) {
        return Ok(());
    }
    let builder = folder.join("build-driftgame");
    sh::run(Command::new("rustc").args(["--edition", "2024", "-o"]).arg(&builder).arg(&recipe))?;
    let mut build = Command::new(&builder);
    build.env("CARGO_MANIFEST_DIR", workspace::root().join("crates/server")).env("OUT_DIR", &folder);
    build.env("CARGO_CFG_TARGET_OS", "linux").env("CARGO_CFG_TARGET_ARCH", "x86_64");
    sh::run(&mut build)?;
    for program in &programs {
        // The server can do without one of them, which the script then leaves empty; the tests cannot.
        if program.metadata().map_or(0, |metadata| metadata.len()) == 0 {
            return Err(format!("{} could not be built; the compiler's reason stands above", program.display()));
        }
    }
    Ok(())
}

/// Assembles the program for the Game Boy Advance.
fn gba_loop(folder: &Path) -> Outcome {
    let source = workspace::root().join("fixtures/gba-loop/loop.s");
    let [object, linked, program] = ["o", "elf", "gba"].map(|ending| folder.join(format!("gba-loop.{ending}")));
    if is_newer(&program, std::slice::from_ref(&source)) {
        return Ok(());
    }
    sh::run(Command::new("arm-none-eabi-as").arg("-mcpu=arm7tdmi").arg("-o").arg(&object).arg(&source))?;
    // Where a cartridge is in memory.
    sh::run(Command::new("arm-none-eabi-ld").arg("-Ttext=0x08000000").arg("-o").arg(&linked).arg(&object))?;
    sh::run(Command::new("arm-none-eabi-objcopy").args(["-O", "binary"]).arg(&linked).arg(&program))
}

/// Assembles what VICE runs: three ROMs and a program.
fn vice(folder: &Path) -> Outcome {
    let (from, to) = (workspace::root().join("fixtures/vice"), folder.join("vice"));
    std::fs::create_dir_all(&to).map_err(|error| format!("cannot make {}: {error}", to.display()))?;
    // A ROM has nothing before its bytes; a program has the address where it is loaded.
    for (name, ending, form) in [
        ("kernal", "bin", "--nostart"),
        ("basic", "bin", "--nostart"),
        ("chargen", "bin", "--nostart"),
        ("demo", "prg", "--cbm-prg"),
    ] {
        let source = from.join(format!("{name}.asm"));
        let built = to.join(format!("{name}.{ending}"));
        if is_newer(&built, std::slice::from_ref(&source)) {
            continue;
        }
        let mut assembler = Command::new("64tass");
        assembler.args(["--quiet", "-Wall", form, "--vice-labels", "--labels"]).arg(to.join(format!("{name}.labels")));
        sh::run(assembler.arg("--output").arg(&built).arg(&source))?;
    }
    Ok(())
}

/// The files of a folder, by name, so that the order on the command line never depends on the file system.
pub fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("cannot list {}: {error}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.sort();
    Ok(files)
}

pub fn is_newer(program: &Path, files: &[PathBuf]) -> bool {
    let modified = |path: &Path| path.metadata().and_then(|metadata| metadata.modified()).ok();
    let Some(built) = modified(program) else { return false };
    files.iter().all(|file| modified(file).is_some_and(|changed| changed < built))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_built_again_when_a_source_is_newer_or_it_is_missing() {
        let folder = std::env::temp_dir().join(format!("xtask-newer-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (source, program) = (folder.join("a.c"), folder.join("a"));
        let at = |file: &Path, seconds: u64| {
            let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
            std::fs::File::create(file).unwrap().set_modified(time).unwrap();
        };
        at(&source, 1000);
        let sources = [source.clone()];
        assert!(!is_newer(&program, &sources));
        at(&program, 2000);
        assert!(is_newer(&program, &sources));
        at(&source, 3000);
        assert!(!is_newer(&program, &sources));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
