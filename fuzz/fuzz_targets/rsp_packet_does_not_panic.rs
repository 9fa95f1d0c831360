//! Any bytes as what a GDB stub sends: packets come out within their limit, and every reading of one is a value or an error.
#![no_main]

use debug::gdb_remote::{Decoder, StopReply, Token, encode};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut decoder = Decoder::default();
    for byte in bytes {
        if let Some(Token::Packet(payload)) = decoder.push(*byte) {
            assert!(payload.len() <= base::limits::MAX_GDB_PACKET_BYTES);
            if let Ok(stop) = StopReply::read(&payload) {
                assert!(stop.watch().is_none() || !stop.fields.is_empty());
            }
            let _ = debug::gdb_remote::Registers::read(&payload);
        }
    }
    // What we send comes back as it was.
    let mut echo = Decoder::default();
    let tokens: Vec<Token> = encode(bytes).into_iter().filter_map(|byte| echo.push(byte)).collect();
    if bytes.len() * 2 <= base::limits::MAX_GDB_PACKET_BYTES {
        assert_eq!(tokens, [Token::Packet(bytes.to_vec())]);
    }
});
