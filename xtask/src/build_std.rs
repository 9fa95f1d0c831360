//! The standard library of a target that rustup cannot bring: built from the sources that Debian packages for the same
//! version of Rust, and put where rustc looks for it, so that every later cargo command works as usual.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::private_apt::{PrivateApt, make, remove, unpack, write};
use crate::{Outcome, sh, workspace};

/// The release whose `rust-src` follows Rust's own releases.
const SUITE: &str = "trixie-backports";

/// What a target's library folder holds besides std itself; `test` is for test binaries.
const CRATES: &str = "std,panic_abort,panic_unwind,proc_macro,test";

/// rustc's own build compiles `panic_abort` with the strategy that it implements; cargo does not.
const WRAPPER: &str =
    "#!/bin/sh\ncase \"$*\" in *'--crate-name panic_abort '*) set -- \"$@\" -C panic=abort ;; esac\nexec \"$@\"\n";

/// Where the standard library of `triple` is or belongs.
pub fn folder(triple: &str) -> Result<PathBuf, String> {
    Ok(rustlib()?.join(triple).join("lib"))
}

/// Whether the standard library of `triple` is there.
pub fn is_there(triple: &str) -> Result<bool, String> {
    let entries = std::fs::read_dir(folder(triple)?).into_iter().flatten().flatten();
    Ok(entries.map(|entry| entry.file_name()).any(|name| name.to_string_lossy().starts_with("libstd-")))
}

/// Builds and installs it for each of `triples`.
pub fn install(triples: &[&str]) -> Outcome {
    let version = sh::output(Command::new("rustc").arg("--version"))?;
    let version = version.split_whitespace().nth(1).ok_or("rustc did not say its version")?.to_owned();
    let work = workspace::target().join("build-std");
    let source = work.join("source/usr/src").join(format!("rustc-{version}"));
    if !source.join("library/std/Cargo.toml").is_file() {
        remove(&work)?;
        let apt = PrivateApt::new(work.join("apt"), "amd64", SUITE, "main")?;
        let wanted = format!("rust-src={}", apt.version("rust-src", &version)?);
        for package in apt.download(&[&wanted])?.iter().filter(|package| is_named(package, "rust-src_")) {
            unpack(package, &work.join("source"))?;
        }
        apt.clean()?;
    }
    link(&source, &rustlib()?.join("src/rust"))?;

    let seed = work.join("seed");
    make(&seed.join("src"))?;
    write(&seed.join("src/lib.rs"), "")?;
    let manifest = "[package]\nname = \"seed\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n";
    write(&seed.join("Cargo.toml"), manifest)?;
    let wrapper = work.join("rustc-wrapper");
    write(&wrapper, WRAPPER)?;
    sh::output(Command::new("chmod").arg("+x").arg(&wrapper))?;
    triples.iter().try_for_each(|triple| build(triple, &source, &seed, &wrapper))
}

fn build(triple: &str, source: &Path, seed: &Path, wrapper: &Path) -> Outcome {
    let built = seed.join("target").join(triple).join("release/deps");
    // What an earlier version left would be copied too.
    remove(&built)?;
    let mut cargo = sh::cargo();
    cargo.current_dir(seed).args(["build", "--release", "--target", triple, "--target-dir", "target"]);
    cargo.arg(format!("-Zbuild-std={CRATES}")).env("RUSTC_BOOTSTRAP", "1").env("RUSTC_WRAPPER", wrapper);
    sh::run(cargo.env_remove("RUSTFLAGS").env_remove("CARGO_TARGET_DIR"))?;

    let folder = folder(triple)?;
    make(&folder)?;
    // mingw's programs begin and end with these two.
    for object in ["rsbegin", "rsend"] {
        let mut rustc = Command::new("rustc");
        rustc.args(["--target", triple, "--emit=obj", "--edition", "2015", "-o"]);
        rustc.arg(folder.join(format!("{object}.o")));
        rustc.arg(source.join("library/rtstartup").join(format!("{object}.rs"))).env("RUSTC_BOOTSTRAP", "1");
        sh::run(&mut rustc)?;
    }
    let entries = std::fs::read_dir(&built).map_err(|error| format!("{}: {error}", built.display()))?;
    let mut libraries: Vec<_> = entries.flatten().map(|entry| entry.path()).filter(|file| is_library(file)).collect();
    // std last: it stands for all of them.
    libraries.sort_by_key(|file| is_named(file, "libstd-"));
    for library in libraries {
        let to = folder.join(library.file_name().unwrap_or_default());
        std::fs::copy(&library, &to).map_err(|error| format!("cannot write {}: {error}", to.display()))?;
    }
    Ok(())
}

fn rustlib() -> Result<PathBuf, String> {
    let sysroot = sh::output(Command::new("rustc").args(["--print", "sysroot"]))?;
    Ok(Path::new(sysroot.trim()).join("lib/rustlib"))
}

fn is_named(file: &Path, beginning: &str) -> bool {
    file.file_name().is_some_and(|name| name.to_string_lossy().starts_with(beginning))
}

fn is_library(file: &Path) -> bool {
    let ending = file.extension().is_some_and(|ending| ending == "rlib" || ending == "rmeta");
    ending && !is_named(file, "libseed-")
}

/// Makes `to` lead to `from`, unless sources are there already.
fn link(from: &Path, to: &Path) -> Outcome {
    if to.join("library/std/Cargo.toml").is_file() {
        return Ok(());
    }
    if let Some(parent) = to.parent() {
        make(parent)?;
    }
    // A link whose sources are gone.
    drop(std::fs::remove_file(to));
    std::os::unix::fs::symlink(from, to).map_err(|error| format!("cannot make {}: {error}", to.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_libraries_are_installed_and_not_the_seed() {
        for (name, wanted) in
            [("libstd-1.rlib", true), ("libstd-1.rmeta", true), ("libseed-1.rlib", false), ("std-1.d", false)]
        {
            assert_eq!(is_library(Path::new(name)), wanted, "{name}");
        }
    }

    #[test]
    fn the_wrapper_changes_only_panic_abort() {
        let said = |name: &str| {
            let words = ["-c", WRAPPER, "wrapper", "echo", "--crate-name", name, "--edition=2024"];
            sh::output(Command::new("sh").args(words)).unwrap()
        };
        assert_eq!(said("panic_abort"), "--crate-name panic_abort --edition=2024 -C panic=abort\n");
        assert_eq!(said("panic_unwind"), "--crate-name panic_unwind --edition=2024\n");
    }
}
