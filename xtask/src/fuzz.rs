//! Runs every property test with many cases, and every fuzz target of `fuzz/` for a while. The targets need a nightly
//! toolchain, for the sanitizer.

use std::process::Command;

use crate::{Outcome, no_arguments, pins, provision, sh, workspace};

/// How long each target runs unless the person says otherwise.
const USUAL_SECONDS: u32 = 60;

/// Seconds for each target where the question is only whether it runs at all.
const SMOKE_SECONDS: &str = "3";
/// What makes the compiler count branches for libFuzzer; unlike the sanitizer it needs no nightly toolchain.
const COVERAGE: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
                        -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table";
/// The only target that [`COVERAGE`] is for; given, so that build scripts are compiled without it.
const TRIPLE: &str = "x86_64-unknown-linux-gnu";

/// Cases per property test: some minutes' worth of the slowest.
const PROPERTY_CASES: &str = "100000";
/// What the names of the property tests' files and modules have in common.
const PROPERTY_TESTS: &str = "propert";

/// Plays the property tests with a seed of chance, then fuzzes each target for the given number of seconds.
pub fn run(arguments: &[String]) -> Outcome {
    let seconds = match arguments {
        [] => USUAL_SECONDS,
        [number] => number.parse().map_err(|_| format!("`{number}` is not a number of seconds"))?,
        _ => return Err("too many arguments; only the seconds per target".to_owned()),
    };
    if !sh::succeeds(Command::new("rustup").args(["run", "nightly", "cargo", "--version"])) {
        return Err("cargo-fuzz needs a nightly toolchain: rustup toolchain install nightly".to_owned());
    }
    let own = provision::cargo_tool_path("cargo-fuzz");
    let program = match own.is_file() {
        true => own,
        false => sh::find("cargo-fuzz").map_or_else(|| provision::cargo_tool("cargo-fuzz", pins::CARGO_FUZZ), Ok)?,
    };
    properties()?;
    for target in targets()? {
        let mut fuzz = Command::new("rustup");
        fuzz.args(["run", "nightly"]).arg(&program).args(["fuzz", "run", &target, "--"]);
        fuzz.args([&format!("-max_total_time={seconds}"), "-timeout=10", "-rss_limit_mb=1024", "-dict=fuzz/wire.dict"]);
        // The cargo that runs this program is the stable one; cargo-fuzz must find the nightly one by itself.
        fuzz.env_remove("CARGO").env_remove("RUSTC").env_remove("RUSTUP_TOOLCHAIN").current_dir(workspace::root());
        sh::run(&mut fuzz)?;
    }
    Ok(())
}

/// Builds every target without a sanitizer and lets each run for some seconds, so that none is broken unseen.
pub fn smoke(arguments: &[String]) -> Outcome {
    no_arguments(arguments)?;
    let folder = workspace::target().join("fuzz-smoke");
    let mut cargo = sh::cargo();
    cargo
        .args(["build", "--manifest-path", "fuzz/Cargo.toml", "--target", TRIPLE, "--release", "--target-dir"])
        .arg(&folder);
    cargo.env_remove("CARGO_ENCODED_RUSTFLAGS").env("RUSTFLAGS", COVERAGE).env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1");
    sh::run(cargo.env("CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS", "true"))?;
    for target in targets()? {
        let mut fuzz = Command::new(folder.join(TRIPLE).join("release").join(&target));
        fuzz.args([
            &format!("-max_total_time={SMOKE_SECONDS}"),
            "-verbosity=0",
            "-timeout=20",
            "-rss_limit_mb=1024",
            "-dict=fuzz/wire.dict",
        ]);
        // libFuzzer writes what it finds into its folder.
        sh::run(fuzz.arg(format!("-artifact_prefix={}/", folder.display())).current_dir(workspace::root()))?;
    }
    Ok(())
}

/// Plays sequences that no test has played before; proptest prints the one that fails, made small.
fn properties() -> Outcome {
    let mut cargo = sh::cargo();
    cargo.args(["test", "--release", "--workspace", "--exclude", "xtask", "--lib", PROPERTY_TESTS]);
    sh::run(cargo.env("PROPTEST_CASES", PROPERTY_CASES).env_remove("PROPTEST_RNG_SEED"))
}

/// Clippy on the targets with the stable toolchain, so that they keep up with the crates they fuzz.
pub fn clippy() -> Outcome {
    let mut cargo = sh::cargo();
    cargo.args(["clippy", "--manifest-path", "fuzz/Cargo.toml", "--target-dir"]);
    cargo.arg(workspace::target().join("fuzz-clippy")).args(["--", "-D", "warnings"]);
    // Nothing is linked here, so libFuzzer itself, a minute of C++, need not be there.
    cargo.env("CUSTOM_LIBFUZZER_PATH", workspace::target().join("fuzz-clippy/libfuzzer.a"));
    sh::run(&mut cargo)
}

/// The names of the targets: the files of `fuzz/fuzz_targets`.
fn targets() -> Result<Vec<String>, String> {
    let folder = workspace::root().join("fuzz/fuzz_targets");
    let entries = std::fs::read_dir(&folder).map_err(|error| format!("cannot list {}: {error}", folder.display()))?;
    let names = entries.flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        name.strip_suffix(".rs").map(str::to_owned)
    });
    let mut names: Vec<String> = names.collect();
    names.sort();
    if names.is_empty() { Err("there are no fuzz targets".to_owned()) } else { Ok(names) }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_target_file_is_declared_in_the_manifest() {
        let manifest = std::fs::read_to_string(crate::workspace::root().join("fuzz/Cargo.toml")).unwrap();
        for name in super::targets().unwrap() {
            assert!(manifest.contains(&format!("name = \"{name}\"")), "{name} has no [[bin]] in fuzz/Cargo.toml");
        }
    }
}
