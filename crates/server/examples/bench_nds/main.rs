//! `cargo xtask bench nds`: the tools on a 64 MiB ROM of 1,000 files, beside what the predecessor took, `memchr` and SHA-256
//! alone, as ratios.
//!
//! Times are processor time of the whole process, so that a busy machine changes them little. Nothing here is a test: a missed
//! ratio is printed, and only what could not be measured is an error.

#[cfg(unix)]
mod measure;

#[cfg(unix)]
fn main() -> measure::Outcome<()> {
    measure::run()
}

#[cfg(not(unix))]
fn main() {
    eprintln!("processor time is measured on Unix only");
}
