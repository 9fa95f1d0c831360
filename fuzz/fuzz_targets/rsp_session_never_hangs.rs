//! Any order of requests, interrupts, bytes and time: after its deadline no request waits, and what is to be sent stays small.
#![no_main]

use std::time::Duration;

use debug::gdb_remote::{Request, Session};
use libfuzzer_sys::fuzz_target;

/// Time that every request has.
const PATIENCE: u64 = 10;

fuzz_target!(|parts: Vec<(u8, Vec<u8>)>| {
    let mut session = Session::default();
    let (mut now, mut deadline, mut longest) = (0_u64, 0, 0);
    for (what, bytes) in parts {
        longest = longest.max(bytes.len());
        let due = Duration::from_millis(now + PATIENCE);
        let sent = match what % 6 {
            0 => session.send(Request::ask(bytes.clone()), due),
            1 => session.send(Request::change(bytes.clone()), due),
            2 => session.send(Request::resume(bytes.clone()), due),
            3 => session.interrupt(),
            4 => {
                session.assume_running();
                Ok(())
            }
            _ => {
                session.receive(&bytes);
                Ok(())
            }
        };
        if what % 6 < 2 && sent.is_ok() {
            deadline = now + PATIENCE;
        }
        now += u64::from(what / 6);
        session.tick(Duration::from_millis(now));
        assert!(!session.is_waiting() || now < deadline, "a request waits beyond its deadline");
        while session.next_event().is_some() {}
        // A request escaped byte by byte and framed, asked again for each refusal, or an acknowledgement for each packet.
        let most = (2 * longest + 4) * (bytes.len() + 1);
        assert!(session.take_outgoing().len() <= most, "more is sent than was asked for");
    }
});
