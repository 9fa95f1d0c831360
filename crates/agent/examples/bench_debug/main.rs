//! `cargo xtask bench debug`: the agent beside gdb and beside the smallest ptrace loops that make the same stops, as ratios.
//!
//! Arguments: the agent's binary, the 64-bit driftgame. Nothing here is a test: a missed ratio is printed, and only what
//! could not be measured is an error.

#[cfg(target_os = "linux")]
mod agent_process;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod peers;
#[cfg(target_os = "linux")]
mod wine;

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    linux::run(&std::env::args().skip(1).collect::<Vec<_>>())
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("this benchmark measures ptrace; it runs on Linux only");
}
