//! Any bytes as a BLZ stream: refused, or decoded to what decoding in place gives.
#![no_main]

use base::{Budget, limits};
use libfuzzer_sys::fuzz_target;
use nds::blz;

fuzz_target!(|stream: &[u8]| {
    let checked = blz::check(stream);
    // Larger images are only slow here.
    if checked.is_ok_and(|shape| shape.image_len() > 1 << 20) {
        return;
    }
    let decoded = blz::decode(stream, &mut Budget::new(limits::MAX_NDS_IMAGE_BYTES));
    assert_eq!(decoded.as_ref().err(), checked.as_ref().err());
    let (Ok(shape), Ok(image)) = (checked, decoded) else { return };
    assert_eq!(image.len() as u64, shape.image_len());
    assert_eq!(image[..shape.plain as usize], stream[..shape.plain as usize]);
    assert!(image == in_place(stream), "the same as in place");
});

/// What the console's start-up code does: one buffer, read and written downwards.
fn in_place(stream: &[u8]) -> Vec<u8> {
    let word = |at: usize| u32::from_le_bytes(stream[at..at + 4].try_into().expect("four bytes")) as usize;
    let (lengths, extra) = (word(stream.len() - 8), word(stream.len() - 4));
    let mut buffer = stream.to_vec();
    if extra == 0 {
        return buffer;
    }
    buffer.resize(stream.len() + extra, 0);
    let (mut from, mut to) = (stream.len() - (lengths >> 24), buffer.len());
    let stop = stream.len() - (lengths & 0xff_ffff);
    while from > stop {
        from -= 1;
        let mut flags = buffer[from];
        for _ in 0..8 {
            if from <= stop {
                break;
            }
            if flags & 0x80 == 0 {
                (from, to) = (from - 1, to - 1);
                buffer[to] = buffer[from];
            } else {
                from -= 2;
                let token = usize::from(buffer[from + 1]) << 8 | usize::from(buffer[from]);
                for _ in 0..(token >> 12) + 3 {
                    to -= 1;
                    buffer[to] = buffer[to + (token & 0xfff) + 3];
                }
            }
            flags <<= 1;
        }
    }
    buffer
}
