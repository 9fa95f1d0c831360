//! `cargo xtask bench`: builds what is measured, for release, and runs the measurements, which print ratios.

use std::path::PathBuf;
use std::process::Command;

use crate::wine::Wine;
use crate::xvfb::Xvfb;
use crate::{Outcome, fixtures, provision, sh, windows, workspace};

/// A set of measurements: its name on the command line, and what runs it.
type Bench = (&'static str, fn() -> Outcome);

const BENCHES: &[Bench] =
    &[("debug", debug), ("mcp", mcp), ("nds", nds), ("nds-live", nds_live), ("c64", c64), ("vice", vice)];

/// Runs the named sets, or all. A ratio that is missed is printed; only what could not be measured is an error.
pub fn run(arguments: &[String]) -> Outcome {
    if arguments == ["debug", "--wine"] {
        return debug_under_wine();
    }
    for (_, bench) in chosen(arguments)? {
        bench()?;
    }
    Ok(())
}

fn chosen(arguments: &[String]) -> Result<Vec<&'static Bench>, String> {
    if arguments.is_empty() {
        return Ok(BENCHES.iter().collect());
    }
    let names = || BENCHES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let find = |wanted: &String| {
        let found = BENCHES.iter().find(|(name, _)| name == wanted);
        found.ok_or_else(|| format!("there is nothing to measure called `{wanted}`; there is: {}", names()))
    };
    arguments.iter().map(find).collect()
}

/// The agent beside gdb and beside the smallest loops that do the same.
fn debug() -> Outcome {
    provision::install()?;
    fixtures::build()?;
    build(&["--package", "agent", "--bin", "retroscope-agent", "--example", "bench_debug"])?;
    let mut bench = Command::new(release("examples/bench_debug"));
    sh::run(bench.arg(release("retroscope-agent")).arg(fixtures::folder().join("driftgame64")))
}

/// The Windows agent beside the smallest Win32 debugger.
fn debug_under_wine() -> Outcome {
    provision::install()?;
    windows::targets()?;
    windows::fixtures()?;
    let wine = Wine::install()?;
    let [kind, _] = windows::BOTH;
    for program in [["--bin", "retroscope-agent"], ["--example", "bench_win32_read"]] {
        sh::run(sh::cargo().args(["build", "--release", "-p", "agent", "--target", kind.triple]).args(program))?;
    }
    build(&["--package", "agent", "--example", "bench_debug"])?;
    let xvfb = Xvfb::start()?;
    let mut bench = Command::new(release("examples/bench_debug"));
    bench.arg("wine").env("DISPLAY", xvfb.display());
    for program in
        [kind.agent("release"), windows::bare_loop(), kind.program("release", "examples/bench_win32_read.exe")]
    {
        bench.arg(wine.script(&program)?);
    }
    let outcome = sh::run(bench.arg(fixtures::folder().join("driftgame32.exe")));
    wine.end();
    outcome
}

/// The MCP server beside the Python SDK.
fn mcp() -> Outcome {
    let tools = provision::install()?;
    build(&["--package", "retroscope", "--bin", "retroscope", "--example", "bench_mcp"])?;
    let peer = workspace::root().join("crates/server/examples/bench_mcp/peer.py");
    sh::run(Command::new(release("examples/bench_mcp")).arg(release("retroscope")).arg(tools.python).arg(peer))
}

/// The tools on Nintendo DS ROMs beside `memchr`, SHA-256, and what the predecessor took.
fn nds() -> Outcome {
    build(&["--package", "retroscope", "--example", "bench_nds"])?;
    sh::run(&mut Command::new(release("examples/bench_nds")))
}

/// Pictures and text search of the C64 crate, the search beside `memchr`.
fn c64() -> Outcome {
    build(&["--package", "c64", "--example", "bench_c64"])?;
    sh::run(&mut Command::new(release("examples/bench_c64")))
}

/// The tools on a running ROM beside a bare client of the same emulator.
fn nds_live() -> Outcome {
    provision::debian()?;
    build(&["--package", "retroscope", "--example", "bench_nds_live"])?;
    let rom = workspace::root().join("fixtures/nds-overlay-rom/ndslab-test.nds");
    sh::run(Command::new(release("examples/bench_nds_live")).arg(rom))
}

/// The VICE connector beside a bare client of the same VICE.
fn vice() -> Outcome {
    provision::debian()?;
    fixtures::build()?;
    build(&["--package", "retroscope", "--bin", "retroscope", "--example", "bench_vice"])?;
    let xvfb = Xvfb::start()?;
    let mut bench = Command::new(release("examples/bench_vice"));
    sh::run(bench.arg(release("retroscope")).arg(fixtures::folder().join("vice")).env("DISPLAY", xvfb.display()))
}

fn build(what: &[&str]) -> Outcome {
    sh::run(sh::cargo().args(["build", "--release"]).args(what))
}

fn release(program: &str) -> PathBuf {
    workspace::target().join("release").join(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(arguments: &[&str]) -> Result<Vec<&'static str>, String> {
        let arguments: Vec<_> = arguments.iter().map(|word| (*word).to_owned()).collect();
        Ok(chosen(&arguments)?.iter().map(|(name, _)| *name).collect())
    }

    #[test]
    fn without_a_name_everything_is_measured() {
        assert_eq!(names(&[]).unwrap(), ["debug", "mcp", "nds", "nds-live", "c64", "vice"]);
        assert_eq!(names(&["mcp"]).unwrap(), ["mcp"]);
    }

    #[test]
    fn a_mistyped_name_is_refused_with_the_names_there_are() {
        let error = names(&["mpc"]).unwrap_err();
        assert!(error.contains("`mpc`") && error.contains("debug, mcp, nds"), "{error}");
    }
}
