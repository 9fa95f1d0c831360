//! `cargo xtask test`: the one command that installs, builds and runs every test, and proves that nothing is left over.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::check::LIVE;
use crate::count::{self, Bad, Count};
use crate::leftovers::Before;
use crate::workspace::TestTarget;
use crate::xvfb::Xvfb;
use crate::{Outcome, diff, fixtures, no_arguments, provision, sh, wine_tests, workspace};

/// The seed of the property tests here, so that a green commit stays green; plain `cargo test` and `cargo xtask fuzz` try others.
const PROPERTY_SEED: &str = "20260214";

/// The tests on real ROMs, which are not ours to copy into the repository.
const NEEDS_ROMS: &[&str] = &["live_desmume", "live_functions", "live_ndspy", "live_nds"];

/// How long one `cargo test` may take, its compiling included, before it counts as hung.
const STEP_TIME: Duration = Duration::from_secs(25 * 60);

/// Runs everything and prints `N passed, N failed` alone on the last line.
pub fn run(arguments: &[String]) -> Outcome {
    no_arguments(arguments)?;
    let tools = provision::install()?;
    fixtures::build()?;
    // The features are the same in every step, so that nothing is compiled twice.
    sh::run(sh::cargo().args(["build", "--workspace", "--features", LIVE]))?;

    let tests = workspace::test_targets(&workspace::metadata()?);
    let mut count = Count::default();
    let mut problems = Vec::new();
    let before = Before::look();

    let mut steps = vec![quick(&tests), documentation()];
    let xvfb = Xvfb::start()?;
    let roms = workspace::roms()?;
    let (with, without): (Vec<_>, Vec<_>) =
        tests.iter().cloned().partition(|test| roms.is_some() || !NEEDS_ROMS.contains(&test.name.as_str()));
    for mut live in live(&with) {
        live.env("DISPLAY", xvfb.display());
        tools.put_into(&mut live);
        steps.push(live);
    }
    for step in &mut steps {
        step.env("RETROSCOPE_FIXTURES", fixtures::folder()).env("PROPTEST_RNG_SEED", PROPERTY_SEED);
        if let Some(roms) = &roms {
            step.env("RETROSCOPE_ROMS", roms);
        }
        before.mark(step);
        match count::run(step, STEP_TIME, &mut count) {
            Ok(()) => {}
            // One failing step does not hide what the others would say.
            Err(Bad::Failed(problem)) => problems.push(problem),
            // What hangs still runs and would disturb the others; the look around below ends it.
            Err(Bad::Hung(problem)) => {
                problems.push(problem);
                break;
            }
        }
    }
    drop(xvfb);
    match wine_tests::all("", &before, &mut count) {
        Ok(failed) => problems.extend(failed),
        Err(problem) => problems.push(problem),
    }
    problems.extend(before.check().err());

    for test in without {
        println!("NOT RUN: {}: the ROMs it needs are in no folder; {}", test.name, workspace::ROMS_HINT);
    }
    println!("{} passed, {} failed", count.passed, count.failed);
    match (count, problems.is_empty()) {
        (Count { passed: 0, .. }, true) => Err("no test ran".to_owned()),
        (_, true) => Ok(()),
        (_, false) => Err(problems.join("; ")),
    }
}

/// Unit tests, property tests and the integration tests that need no other program.
fn quick(tests: &[TestTarget]) -> Command {
    let mut cargo = sh::cargo();
    cargo.args(["test", "--workspace", "--no-fail-fast", "--features", LIVE, "--lib", "--bins"]);
    for test in tests.iter().filter(|test| test.required_features.is_empty()) {
        cargo.args(["--test", &test.name]);
    }
    cargo
}

/// The examples in the documentation.
fn documentation() -> Command {
    let mut cargo = sh::cargo();
    cargo.args(["test", "--workspace", "--no-fail-fast", "--features", LIVE, "--doc"]);
    cargo
}

/// The tests that require features, one `cargo test` per set of features, each test alone: they share the display,
/// the default port and two cores. Those that need Wine follow later.
fn live(tests: &[TestTarget]) -> Vec<Command> {
    let mut groups: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    // Those for Wine have a runner of their own (wine_tests.rs).
    let under_wine = |test: &&TestTarget| test.required_features.iter().any(|feature| feature == "wine");
    for test in tests.iter().filter(|test| !test.required_features.is_empty() && !under_wine(test)) {
        let others = test.required_features.iter().filter(|feature| *feature != "live");
        let own: Vec<_> = others.map(|feature| format!("{}/{feature}", test.package)).collect();
        let features = std::iter::once(LIVE.to_owned()).chain(own).collect::<Vec<_>>().join(",");
        groups.entry(features).or_default().push(&test.name);
    }
    let commands = groups.into_iter().map(|(features, names)| {
        let mut cargo = sh::cargo();
        cargo.args(["test", "--workspace", "--no-fail-fast", "--features", &features]);
        for name in names {
            cargo.args(["--test", name]);
        }
        cargo.args(["--", "--test-threads=1"]);
        cargo
    });
    commands.collect()
}

/// Programs for the tests that are not on everybody's `PATH`.
pub struct Tools {
    pub node: PathBuf,
    pub npm: PathBuf,
    pub python: PathBuf,
    pub c64_python: PathBuf,
    pub claude: Option<PathBuf>,
}

impl Tools {
    /// Tells `command` where they are.
    fn put_into(&self, command: &mut Command) {
        command.env("RETROSCOPE_NODE", &self.node);
        command.env("RETROSCOPE_NPM", &self.npm);
        command.env("RETROSCOPE_PYTHON", &self.python);
        command.env(diff::C64_PYTHON, &self.c64_python);
        if let Some(claude) = &self.claude {
            command.env("RETROSCOPE_CLAUDE", claude);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(package: &str, name: &str, features: &[&str]) -> TestTarget {
        let required_features = features.iter().map(|feature| (*feature).to_owned()).collect();
        TestTarget { package: package.to_owned(), name: name.to_owned(), required_features }
    }

    #[test]
    fn every_integration_test_is_in_exactly_one_step() {
        let tests = [
            test("agent", "protocol_page", &[]),
            test("agent", "live_linux", &["live"]),
            test("retroscope", "acceptance", &["live"]),
            test("retroscope", "live_conformance", &["live", "conformance"]),
            test("retroscope", "live_windows", &["live", "wine"]),
        ];
        assert_eq!(
            sh::line(&quick(&tests)),
            "cargo test --workspace --no-fail-fast --features agent/live,agent/wine,code/live,debug/live,nds/live,retroscope/live,retroscope/wine --lib --bins --test protocol_page"
        );
        let lines: Vec<_> = live(&tests).iter().map(sh::line).collect();
        assert_eq!(
            lines,
            [
                "cargo test --workspace --no-fail-fast --features agent/live,agent/wine,code/live,debug/live,nds/live,retroscope/live,retroscope/wine --test live_linux --test \
                 acceptance -- --test-threads=1",
                "cargo test --workspace --no-fail-fast --features agent/live,agent/wine,code/live,debug/live,nds/live,retroscope/live,retroscope/wine,retroscope/conformance \
                 --test live_conformance -- --test-threads=1",
            ]
        );
    }
}
