//! The `retroscope` program.

use clap::Parser as _;
use retroscope::cli::Cli;
use std::process::ExitCode;

fn main() -> ExitCode {
    Cli::parse().run()
}
