//! cargo-deny: licences, bans and sources of the packages in `Cargo.lock`. It is not installed in CI, where building it
//! would take longer than everything else; there it runs only if it is already on the machine.

use std::path::PathBuf;
use std::process::Command;

use crate::{Outcome, no_arguments, pins, provision, sh, workspace};

/// Installs cargo-deny below the target folder if needed and runs it. Its advisory database is a repository of its own
/// that is fetched over the network, so `cargo deny check advisories` is left to who has one.
pub fn run(arguments: &[String]) -> Outcome {
    no_arguments(arguments)?;
    let program = match installed() {
        Some(program) => program,
        None => provision::cargo_tool("cargo-deny", pins::CARGO_DENY)?,
    };
    check(program)
}

/// Runs cargo-deny if it is on the machine, and says so if it is not.
pub fn run_if_installed(arguments: &[String]) -> Outcome {
    no_arguments(arguments)?;
    match installed() {
        Some(program) => check(program),
        None => {
            println!(
                "cargo-deny is not installed, so licences were not checked; `cargo xtask deny` installs and runs it"
            );
            Ok(())
        }
    }
}

fn installed() -> Option<PathBuf> {
    let own = provision::cargo_tool_path("cargo-deny");
    if own.is_file() { Some(own) } else { sh::find("cargo-deny") }
}

fn check(program: PathBuf) -> Outcome {
    let mut deny = Command::new(program);
    deny.args(["--workspace", "check", "licenses", "bans", "sources"]).current_dir(workspace::root());
    sh::run(&mut deny)
}
