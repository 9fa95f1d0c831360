//! Any signature in any bytes: the hits are those of the plainest search there is.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nds::testing::{ProgramSpec, RomBuilder};
use nds::{PatternSpec, Rom, SearchRequest, SearchScope, UNWATCHED, search};

const BASE: u32 = 0x0200_0000;

fuzz_target!(|bytes: &[u8]| {
    // Eight bytes of signature and the mask of its wildcards; few values, so that there are hits.
    let Some(([length, mask, signature @ ..], program)) = bytes.split_first_chunk::<10>() else { return };
    let length = usize::from(length % 8) + 1;
    let wanted: Vec<Option<u8>> = (0..length).map(|at| (mask >> at & 1 == 0).then_some(signature[at] & 3)).collect();
    if program.is_empty() || wanted.iter().all(Option::is_none) {
        return;
    }
    let program: Vec<u8> = program.iter().map(|byte| byte & 3).collect();
    let arm9 = ProgramSpec { ram_address: BASE, entry: BASE, bytes: program };
    let rom =
        Rom::parse(RomBuilder { arm9, ..RomBuilder::default() }.build()).expect("what the builder builds is legal");

    let text = wanted.iter().map(|byte| byte.map_or("??".to_owned(), |byte| format!("{byte:02x}")));
    let request = SearchRequest {
        pattern: PatternSpec::ByteSignature(text.collect()),
        scope: SearchScope::WholeRom,
        offset: 0,
        limit: usize::MAX,
        max_scan_bytes: u64::MAX,
        context_bytes: 0,
    };
    let found = search(&rom, &request, UNWATCHED).expect("the signature is good");
    let fits = |window: &[u8]| window.iter().zip(&wanted).all(|(is, wanted)| wanted.is_none_or(|wanted| *is == wanted));
    let naive: Vec<u32> =
        (0..).zip(rom.bytes().windows(length)).filter(|(_, window)| fits(window)).map(|(at, _)| at).collect();
    assert_eq!(found.discovered_matches, naive.len());
    let offsets: Vec<u32> = found.matches.iter().map(|hit| hit.rom_offset).collect();
    assert_eq!(offsets, naive);
});
