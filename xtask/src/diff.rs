//! Compares our tools with those of a predecessor: the same calls on both, and every difference that is not listed fails.

use crate::{Outcome, provision, sh};

/// The variable that names the Python with the predecessor.
pub const C64_PYTHON: &str = "RETROSCOPE_C64_PYTHON";

/// The task: install the predecessor, and run the test that makes the calls.
pub fn run(arguments: &[String]) -> Outcome {
    match arguments {
        [part] if part == "c64" => {}
        _ => return Err("say what to compare: c64".to_owned()),
    }
    let python = provision::c64_python()?;
    let mut cargo = sh::cargo();
    cargo.args([
        "test",
        "-p",
        "retroscope",
        "--features",
        "live",
        "--test",
        "live_c64_diff",
        "--test",
        "live_c64_groups",
    ]);
    cargo.args(["--", "--nocapture"]);
    sh::run(cargo.env(C64_PYTHON, python))
}
