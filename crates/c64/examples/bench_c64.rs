//! How long a picture takes, and how a text search compares with memchr over the same memory. `cargo xtask bench c64` runs it.

use c64::graphics::{Bitmap, Grid, Palette, encode, hires_bitmap};
use c64::text::{Length, Options, Query, Search, search};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// The shortest of several runs: what the machine does when nothing else is in the way.
fn shortest(mut work: impl FnMut()) -> Duration {
    let run = |work: &mut dyn FnMut()| {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    (0..20).map(|_| run(&mut work)).min().unwrap_or_default()
}

fn main() -> Result<(), c64::Problem> {
    // Bytes of a linear congruential generator (Numerical Recipes), so that nothing repeats.
    let mut state = 1_u32;
    let mut random = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let memory: Vec<u8> = (0..1 << 20).map(|_| random()).collect();

    let size = Bitmap { grid: Grid::new(40, 25)? };
    let picture = shortest(|| {
        let decoded = hires_bitmap(size, black_box(&memory), black_box(&memory));
        black_box(decoded.and_then(|decoded| encode(&decoded, &Palette::default())).is_ok());
    });
    println!("320 x 200 hires of noise, PNG included: {picture:?}");

    // A byte that is rare, so that memchr's own loop is what is measured.
    let rare: Vec<u8> = memory.iter().map(|byte| if *byte == 0xee { 0xef } else { *byte }).collect();
    let peer = shortest(|| {
        black_box(memchr::memchr(0xee, black_box(&rare)));
    });
    println!("memchr over 1 MiB: {peer:?}");
    for (name, length) in [("length", Length::Fixed(11)), ("terminator", Length::Terminator(0))] {
        let options = Options::new(length);
        let wanted = Search { query: Query::Text("HELLO WORLD".to_owned()), stride: 1, max_results: 100 };
        let ours = shortest(|| {
            black_box(search(black_box(&memory), &options, &wanted).is_ok());
        });
        println!(
            "text search over 1 MiB, {name}: {ours:?}, {:.1} times memchr",
            ours.as_secs_f64() / peer.as_secs_f64()
        );
    }
    Ok(())
}
