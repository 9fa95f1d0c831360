//! Any bytes as what VICE sends, split anywhere: frames stay within their limit, every reading of a body is a value or an error, and
//! after its deadline no request waits.
#![no_main]

use std::time::Duration;

use debug::vice::commands::{banks, checkpoint, display, info, memory_get, palette, registers, registers_available, snapshot};
use debug::vice::{Decoder, Machine, Session};
use libfuzzer_sys::fuzz_target;

const DEADLINE: Duration = Duration::from_secs(1);

fuzz_target!(|parts: Vec<Vec<u8>>| {
    let mut decoder = Decoder::default();
    let mut session = Session::default();
    let mut machine = Machine::default();
    let _ = session.send(&checkpoint::list(), DEADLINE);
    for part in &parts {
        decoder.push(part);
        while let Ok(Some(frame)) = decoder.next_frame() {
            assert!(frame.body.len() <= base::limits::MAX_VICE_FRAME_BYTES);
        }
        session.receive(part);
        while let Some(event) = session.next_event() {
            machine.observe(event);
        }
        let _ = (banks::answer(part), checkpoint::info(part), info::answer(part), palette::answer(part));
        let _ = (registers::answer(part), registers_available::answer(part), snapshot::undumped(part));
        let _ = memory_get::answer(part, part.len());
        if let Ok(display) = display::answer(part) {
            assert_eq!(display.pixels.len(), usize::from(display.width) * usize::from(display.height));
        }
    }
    session.tick(DEADLINE);
    assert!(!session.is_waiting());
    assert!(machine.between(0, u64::MAX).len() <= base::limits::MAX_VICE_PRECEDING);
});
