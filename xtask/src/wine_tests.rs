//! The live tests of the agent and of the server, run against the Windows programs under Wine. Each test is a process of its
//! own with a time limit. Two faults are Wine's: it loses debug events now and then when debug registers are in use and the
//! machine is busy (the agent answers `running` then, the test fails), and it may itself die of SIGSEGV when a
//! program ends. Those tests alone are tried again, and every such try is printed and counted.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::check::LIVE;
use crate::count::Count;
use crate::leftovers::Before;
use crate::windows::{self, BOTH, Windows};
use crate::wine::Wine;
use crate::xvfb::Xvfb;
use crate::{Outcome, fixtures, provision, sh, workspace};

/// How long one test may take.
const TEST_TIME: Duration = Duration::from_secs(150);

/// How often a test with debug registers is tried.
const TRIES: u32 = 3;

/// What a test says when Wine died of SIGSEGV as the agent ended, after all that it tests had held. A fault of the agent's own
/// would be an exit code, as every exception of a Windows program is.
const DIED_IN_WINE: &str = "ended with signal: ";

/// Tests with debug registers, by a part of their names.
const WITH_DEBUG_REGISTERS: &[&str] = &[
    "watch",
    "reads_are_told",
    "baseline",
    "attached_and_let_go",
    "no_one_here_wrote",
    "alt_tab",
    "outlive_their_program",
    "strange_parameters",
    "stays_in_the_program",
];

/// The suites that run here and talk to Windows programs: those that every agent must pass, Windows' own,
/// and the one that compares what the Windows agent and the Linux agent see.
const SUITES: &[&str] =
    &["live_debug", "live_rules", "live_ends", SOAK, "live_wine", "live_wine_view", "acceptance", SERVER];

/// How the names of tests of theirs begin that are about Linux alone.
const ONLY_LINUX: &str = "linux::";

/// The suite of long runs.
const SOAK: &str = "live_soak";

/// The suite about `retroscope.exe`, which is for 64 bits alone.
const SERVER: &str = "live_windows";

/// Tests of the platform alone, which are Windows programs themselves.
const PLATFORM: &str = "live_win32_platform";

/// The task: build what is needed and run all of it, or the tests whose names hold a given part.
pub fn run(arguments: &[String]) -> Outcome {
    let part = match arguments {
        [] => "",
        [part] => part,
        _ => return Err(format!("unexpected arguments `{}`; only a part of tests' names", arguments.join(" "))),
    };
    provision::debian()?;
    let before = Before::look();
    let mut count = Count::default();
    let problems = all(part, &before, &mut count)?;
    println!("{} passed, {} failed", count.passed, count.failed);
    match (count, problems.is_empty()) {
        (Count { passed: 0, .. }, true) => Err(format!("no test has `{part}` in its name")),
        (_, true) => before.check(),
        (_, false) => Err(problems.join("; ")),
    }
}

/// Runs the tests under Wine whose names hold `part`, and gives what failed.
pub fn all(part: &str, before: &Before, count: &mut Count) -> Result<Vec<String>, String> {
    windows::targets()?;
    windows::fixtures()?;
    fixtures::build()?;
    let wine = Wine::install()?;
    windows::programs()?;
    let xvfb = Xvfb::start()?;
    let mut runner = Runner { wine: &wine, display: xvfb.display(), part, before, count, tried_again: 0 };
    let mut problems = Vec::new();
    let suites = SUITES.iter().map(|suite| Ok((*suite, native_binary(suite)?))).collect::<Result<Vec<_>, String>>()?;
    for kind in BOTH {
        for (suite, binary) in suites.iter().filter(|(suite, _)| *suite != SERVER || kind.bits == 64) {
            problems.extend(runner.suite(suite, binary, kind)?);
        }
        problems.extend(runner.platform(kind)?);
    }
    println!("under Wine: {} tests were tried again", runner.tried_again);
    wine.end();
    Ok(problems)
}

/// What every test under Wine needs.
struct Runner<'a> {
    wine: &'a Wine,
    display: &'a str,
    part: &'a str,
    before: &'a Before,
    count: &'a mut Count,
    tried_again: u32,
}

impl Runner<'_> {
    /// A suite that runs here, by the agent of one word size.
    fn suite(&mut self, suite: &str, binary: &Path, kind: Windows) -> Result<Vec<String>, String> {
        let mut problems = Vec::new();
        for test in tests_of(&mut Command::new(binary))? {
            // The 32-bit agent debugs 32-bit programs only; the 64-bit agent passes both halves, but the minutes of the long runs
            // once.
            let one_half = kind.bits == 32 || suite == SOAK;
            if test.starts_with(ONLY_LINUX) || (one_half && test.starts_with("bits64")) {
                continue;
            }
            let mut command = Command::new(binary);
            command.args(["--exact", &test, "--test-threads=1"]).env("RETROSCOPE_TEST_WINE", self.wine.launcher());
            command.env("RETROSCOPE_TEST_AGENT", kind.agent("debug"));
            command.env("RETROSCOPE_TEST_SERVER", kind.program("debug", "retroscope.exe"));
            command.env("RETROSCOPE_FIXTURES", fixtures::folder());
            problems.extend(self.tried(&format!("{suite} {test} by the {}-bit agent", kind.bits), &mut command));
        }
        Ok(problems)
    }

    /// The platform's own tests: on each kind of program that the agent of this word size can debug.
    fn platform(&mut self, kind: Windows) -> Result<Vec<String>, String> {
        let binary = test_binary(PLATFORM, &kind.selection())?;
        let (launcher, display) = (self.wine.launcher(), self.display);
        let start = || {
            let mut command = Command::new(&launcher);
            command.arg(&binary).env("DISPLAY", display);
            command
        };
        let mut problems = Vec::new();
        for test in tests_of(&mut start())? {
            for program in BOTH.iter().filter(|program| program.bits <= kind.bits) {
                let mut command = start();
                command.args(["--exact", &test, "--test-threads=1"]);
                command.env("RETROSCOPE_TEST_GAME", format!("driftgame{}.exe", program.bits));
                command.env("RETROSCOPE_FIXTURES", format!("Z:{}", fixtures::folder().display()));
                let name = format!("{PLATFORM} {test} by {} bits on a {}-bit program", kind.bits, program.bits);
                problems.extend(self.tried(&name, &mut command));
            }
        }
        Ok(problems)
    }

    /// Runs one test, again when it is one of those that Wine may disturb.
    fn tried(&mut self, name: &str, command: &mut Command) -> Option<String> {
        if !name.contains(self.part) {
            return None;
        }
        command.env("DISPLAY", self.display);
        self.before.mark(command);
        let mut tries = if may_be_disturbed(name) { TRIES } else { 1 };
        let mut attempt = 0;
        while attempt < tries {
            attempt += 1;
            self.tried_again += u32::from(attempt > 1);
            let start = Instant::now();
            let log = workspace::target().join("wine-test.log");
            let outcome = once(command, &log);
            match outcome {
                Ok(()) => {
                    println!("ok, {:.1} s: {name}", start.elapsed().as_secs_f32());
                    self.count.passed += 1;
                    return None;
                }
                Err(problem) => {
                    let said = std::fs::read_to_string(&log).unwrap_or_default();
                    println!("{said}");
                    if said.contains(DIED_IN_WINE) {
                        tries = TRIES;
                    }
                    println!("FAILED, try {attempt} of {tries}: {name}: {problem}");
                    self.before.end_all();
                }
            }
        }
        self.count.failed += 1;
        Some(name.to_owned())
    }
}

fn may_be_disturbed(name: &str) -> bool {
    WITH_DEBUG_REGISTERS.iter().any(|part| name.contains(part))
}

/// Builds a test of this machine's and gives the path of its binary.
fn native_binary(name: &str) -> Result<PathBuf, String> {
    // As in every other step, so that nothing is compiled twice with other features.
    test_binary(name, &["--workspace", "--features", LIVE])
}

/// Builds a test and gives the path of its binary; `selection` says of which packages and for which target.
fn test_binary(name: &str, selection: &[&str]) -> Result<PathBuf, String> {
    let mut cargo = sh::cargo();
    cargo.args(["test", "--no-run", "--message-format=json-render-diagnostics", "--test", name]).args(selection);
    let messages = sh::output(&mut cargo)?;
    let artifacts = messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let named = |message: &serde_json::Value| message.pointer("/target/name").is_some_and(|target| target == name);
    let executable = |message: serde_json::Value| message.get("executable")?.as_str().map(PathBuf::from);
    let last = artifacts.filter(named).filter_map(executable).next_back();
    last.ok_or_else(|| format!("cargo built no test named {name}"))
}

fn tests_of(command: &mut Command) -> Result<Vec<String>, String> {
    let list = sh::output(command.arg("--list").env("WINEDEBUG", "-all"))?;
    Ok(list.lines().filter_map(|line| line.trim().strip_suffix(": test")).map(str::to_owned).collect())
}

/// Runs the test with its output in a file: Wine's server inherits a pipe and would hold it open.
fn once(command: &mut Command, log: &Path) -> Outcome {
    let file = std::fs::File::create(log).map_err(|error| format!("{}: {error}", log.display()))?;
    let errors = file.try_clone().map_err(|error| format!("{}: {error}", log.display()))?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(errors)
        .spawn()
        .map_err(|error| format!("cannot start it: {error}"))?;
    let until = Instant::now() + TEST_TIME;
    while Instant::now() < until {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(status.to_string()),
            Ok(None) => std::thread::sleep(Duration::from_millis(20)),
            Err(error) => return Err(error.to_string()),
        }
    }
    drop(child.kill());
    drop(child.wait());
    Err(format!("it did not end within {} s", TEST_TIME.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tests_with_debug_registers_are_tried_again() {
        assert!(may_be_disturbed("live_debug bits32::four_watchpoints_and_not_five by the 32-bit agent"));
        assert!(!may_be_disturbed("live_debug bits32::conditions_decide by the 32-bit agent"));
    }

    #[test]
    fn a_test_that_hangs_or_fails_is_an_error() {
        let log = std::env::temp_dir().join(format!("xtask-wine-test-{}", std::process::id()));
        assert!(once(Command::new("sh").args(["-c", "echo said; exit 3"]), &log).unwrap_err().contains('3'));
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "said\n");
        assert_eq!(once(Command::new("true").arg("x"), &log), Ok(()));
        std::fs::remove_file(&log).unwrap();
    }
}
