//! Any bytes as a connection: lines come out within their cap, and each is a request or an error that can be answered.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::{FrameError, LineReader};

/// Small, so that the fuzzer reaches the far side of it.
const CAP: usize = 256;

fuzz_target!(|bytes: &[u8]| {
    let mut lines = LineReader::new(bytes, CAP);
    loop {
        match lines.next_line() {
            Ok(Some(line)) => {
                assert!(line.len() <= CAP && !line.contains(&b'\n'));
                let envelope = wire::parse_request(line);
                if let Err(error) = &envelope.request {
                    let reply = wire::encode_error(error, envelope.id.as_ref());
                    assert!(!reply.contains('\n'), "a reply is one line");
                    assert!(wire::parse_reply(reply.as_bytes()).is_err(), "an error reads back as an error");
                }
            }
            Ok(None) => break,
            Err(FrameError::TooLong { limit, start }) => {
                assert_eq!(limit, CAP);
                assert!(start.len() <= CAP && bytes.windows(start.len().max(1)).any(|part| part.starts_with(&start)));
            }
            Err(FrameError::Io(error)) => unreachable!("a slice has no I/O errors, and yet: {error}"),
        }
    }
});
