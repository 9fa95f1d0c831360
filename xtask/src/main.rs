//! The project's chores as one command: `cargo xtask TASK`. Each task is a row of `TASKS` and a file of its own.

mod bench;
mod build_std;
mod check;
mod ci;
mod count;
mod deny;
mod diff;
mod dist;
mod fixtures;
mod fuzz;
mod leftovers;
mod pins;
mod private_apt;
mod provision;
mod sh;
mod test;
mod tidy;
mod windows;
mod wine;
mod wine_tests;
mod workspace;
mod xvfb;

use std::process::ExitCode;

/// What a task answers: nothing, or the sentence that says what is wrong.
type Outcome = Result<(), String>;

/// One row of the task table.
struct Task {
    name: &'static str,
    arguments: &'static str,
    about: &'static str,
    run: fn(&[String]) -> Outcome,
}

const TASKS: &[Task] = &[
    Task { name: "test", arguments: "", about: "install what is missing, build, run every test", run: test::run },
    Task { name: "ci", arguments: "", about: "tidy, fmt, clippy, docs, test", run: ci::run },
    Task { name: "tidy", arguments: "", about: "the rules of the design, checked on the tree", run: tidy::run },
    Task { name: "fmt", arguments: "[--check]", about: "format, or check the format of, every crate", run: check::fmt },
    Task { name: "clippy", arguments: "", about: "clippy on every target, warnings are errors", run: check::clippy },
    Task {
        name: "docs",
        arguments: "[--update]",
        about: "rustdoc without warnings; generated pages compared (or rewritten)",
        run: check::docs,
    },
    Task {
        name: "install",
        arguments: "",
        about: "only the first step of test: install what is missing",
        run: provision::run,
    },
    Task {
        name: "fixtures",
        arguments: "",
        about: "build the programs that tests run into target/fixtures",
        run: fixtures::run,
    },
    Task {
        name: "bench",
        arguments: "[debug|mcp|nds|nds-live|c64|vice|debug --wine]",
        about: "ratios to gdb, to bare ptrace and to the Python SDK; a missed one is no failure",
        run: bench::run,
    },
    Task {
        name: "diff",
        arguments: "c64",
        about: "the same calls on our C64 tools and on the predecessor's; an unlisted difference fails",
        run: diff::run,
    },
    Task {
        name: "windows",
        arguments: "",
        about: "build the agents, the server and the test programs for Windows",
        run: windows::run,
    },
    Task { name: "wine", arguments: "", about: "set up a Wine below target/wine", run: wine::run },
    Task {
        name: "test-wine",
        arguments: "[PART]",
        about: "only the tests of the Windows programs under Wine, or those with PART in their names",
        run: wine_tests::run,
    },
    Task {
        name: "dist",
        arguments: "[--twice]",
        about: "the packages for Windows and Linux; with --twice also from a second folder, compared",
        run: dist::run,
    },
    Task { name: "fuzz", arguments: "[SECONDS]", about: "each fuzz target for 60 s (needs nightly)", run: fuzz::run },
    Task { name: "deny", arguments: "", about: "licences, bans and sources with cargo-deny", run: deny::run },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((name, rest)) = arguments.split_first() else {
        print!("{}", usage());
        return ExitCode::from(2);
    };
    if matches!(name.as_str(), "help" | "--help" | "-h") {
        print!("{}", usage());
        return ExitCode::SUCCESS;
    }
    let Some(task) = TASKS.iter().find(|task| task.name == name) else {
        eprint!("xtask: no task named `{name}`\n\n{}", usage());
        return ExitCode::from(2);
    };
    match (task.run)(rest) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask {name}: {message}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> String {
    let mut text = String::from("usage: cargo xtask TASK\n\n");
    for task in TASKS {
        let call = format!("{} {}", task.name, task.arguments);
        text.push_str(&format!("  {call:<18} {}\n", task.about));
    }
    text
}

/// Refuses arguments for a task that takes none, so that a mistyped flag is not silently ignored.
fn no_arguments(arguments: &[String]) -> Outcome {
    match arguments.first() {
        None => Ok(()),
        Some(first) => Err(format!("unexpected argument `{first}`; this task takes none")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_names_are_unique_and_all_in_the_usage() {
        let text = usage();
        for (index, task) in TASKS.iter().enumerate() {
            assert!(TASKS[index + 1..].iter().all(|other| other.name != task.name), "{} twice", task.name);
            assert!(text.contains(&format!("  {} ", task.name)), "{} is not in the usage", task.name);
        }
    }

    #[test]
    fn an_argument_to_a_task_without_any_is_refused() {
        assert!(no_arguments(&["--chekc".to_owned()]).unwrap_err().contains("--chekc"));
        assert_eq!(no_arguments(&[]), Ok(()));
    }
}
