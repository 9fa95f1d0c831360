//! The agent as a program of its own.

use agent::cli::{AgentOptions, run};
use clap::Parser;
use std::process::ExitCode;

/// Debug agent of retroscope: owns one debugged program and serves the protocol of docs/agent-protocol.md on loopback.
#[derive(Parser)]
#[command(name = "retroscope-agent", version)]
struct Command {
    #[command(flatten)]
    options: AgentOptions,
}

fn main() -> ExitCode {
    run(&Command::parse().options)
}
