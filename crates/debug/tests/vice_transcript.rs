//! A recorded session with the real VICE, played again without it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod transcript;

use debug::vice::Monitor;
use std::time::Duration;

#[test]
fn a_recorded_session_is_understood_as_it_was() {
    let recording = std::fs::read_to_string(transcript::file()).unwrap();
    let monitor = Monitor::connect(transcript::play(&recording), Duration::from_secs(20)).unwrap();
    // `count` of the program, and its bytes: inc $c100; bne +3; inc $c101; rts (fixtures/vice/demo.asm).
    let told = transcript::session(&monitor, 0x0930);
    assert_eq!(
        told,
        [
            "version 3.7.1.0",
            "default=0 cpu=0 ram=1 rom=2 io=3 cart=4",
            "vice_command_failed",
            "condition vice_command_failed",
            "stop Some(0930) [\"0930 true\"]",
            "PC=930 A=0 SP=fd",
            "[ee, 00, c1, d0, 03, ee, 01, c1, 60]",
            "step Some(0933) Executed",
            "0 checkpoints",
        ]
    );
}
