//! Searches of whole ROMs: scopes, owners, pages and limits.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use nds::testing::{OverlaySpec, ProgramSpec, RomBuilder};
use nds::{
    ComponentId, Failure, PatternSpec, Processor, Rom, SearchRequest, SearchResult, SearchScope, UNWATCHED, search,
};

fn rom() -> Rom {
    // `needle` in the ARM9 program, in an overlay and in a file.
    let arm9 = ProgramSpec { ram_address: 0x0200_0000, entry: 0x0200_0000, bytes: b"....needle..".to_vec() };
    let overlays = vec![OverlaySpec::plain(Processor::Arm9, 3, 0x0210_0000, b"..needleneedle..")];
    let files = vec![("data/a.bin".to_owned(), b"needle".to_vec()), ("b.bin".to_owned(), b"nothing".to_vec())];
    Rom::parse(RomBuilder { arm9, overlays, files, ..RomBuilder::default() }.build()).unwrap()
}

fn request(scope: SearchScope) -> SearchRequest {
    let pattern = PatternSpec::Ascii("needle".to_owned());
    SearchRequest { pattern, scope, offset: 0, limit: 100, max_scan_bytes: 1 << 30, context_bytes: 2 }
}

fn components() -> SearchScope {
    SearchScope::Components {
        arm9_main: false,
        arm7_main: false,
        arm9_overlay_ids: Vec::new(),
        arm7_overlay_ids: Vec::new(),
        nitro_fs_file_ids: Vec::new(),
        nitro_fs_paths: Vec::new(),
    }
}

fn find(rom: &Rom, request: &SearchRequest) -> SearchResult {
    search(rom, request, UNWATCHED).unwrap()
}

#[test]
fn every_hit_names_its_owners() {
    let rom = rom();
    let found = find(&rom, &request(SearchScope::WholeRom));
    assert_eq!((found.status, found.discovered_matches, found.next_offset), ("complete", 4, None));
    assert_eq!(found.scanned_bytes, rom.bytes().len() as u64);
    let owners: Vec<Vec<_>> =
        found.matches.iter().map(|hit| hit.owners.iter().map(|owner| owner.kind).collect()).collect();
    assert_eq!(owners.iter().filter(|kinds| kinds.contains(&"arm9-main")).count(), 1);
    assert_eq!(owners.iter().filter(|kinds| kinds.contains(&"arm9-overlay")).count(), 2);
    assert_eq!(owners.iter().filter(|kinds| kinds.as_slice() == ["nitrofs-file"]).count(), 1);
    let main = &found.matches[0];
    assert_eq!(main.owners[0].runtime_address, Some(0x0200_0004));
    assert_eq!((main.bytes.as_slice(), main.end_offset), (b"needle".as_slice(), u64::from(main.rom_offset) + 6));
    assert_eq!((main.context.before.as_slice(), main.context.after.as_slice()), (b"..".as_slice(), b"..".as_slice()));
}

#[test]
fn a_scope_holds_whole_hits_only() {
    type Set = fn(&mut Vec<u32>, &mut Vec<u32>, &mut Vec<String>, &mut bool);
    let rom = rom();
    let scope = |request: &mut SearchRequest, set: Set| {
        let SearchScope::Components { arm9_main, arm9_overlay_ids, nitro_fs_file_ids, nitro_fs_paths, .. } =
            &mut request.scope
        else {
            panic!("components")
        };
        set(arm9_overlay_ids, nitro_fs_file_ids, nitro_fs_paths, arm9_main);
    };
    let count = |set: Set| {
        let mut request = request(components());
        scope(&mut request, set);
        find(&rom, &request).discovered_matches
    };
    assert_eq!(count(|_, _, _, main| *main = true), 1);
    assert_eq!(count(|overlays, _, _, _| overlays.push(3)), 2);
    assert_eq!(count(|_, _, paths, _| paths.push("/data/a.bin".to_owned())), 1);
    assert_eq!(count(|_, _, paths, _| paths.push("b.bin".to_owned())), 0);
    // The overlay is file 0: both name the same bytes, whose hits come once.
    assert_eq!(
        count(|overlays, files, _, _| {
            overlays.push(3);
            files.push(0);
        }),
        2
    );
    let category = |set: Set| {
        let mut request = request(components());
        scope(&mut request, set);
        match search(&rom, &request, UNWATCHED) {
            Err(Failure::Refused(refusal)) => refusal.category,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(category(|_, _, _, _| ()), "invalid-pattern-scope");
    assert_eq!(category(|overlays, _, _, _| overlays.push(4)), "unknown-overlay-id");
    assert_eq!(category(|_, files, _, _| files.push(99)), "unknown-file-id");
    assert_eq!(category(|_, _, paths, _| paths.push("data".to_owned())), "unknown-file-id");
}

#[test]
fn pages_and_limits_are_said() {
    let rom = rom();
    let page = find(&rom, &SearchRequest { offset: 1, limit: 2, ..request(SearchScope::WholeRom) });
    assert_eq!((page.matches.len(), page.next_offset, page.discovered_matches), (2, Some(3), 4));
    let last = find(&rom, &SearchRequest { offset: 3, limit: 2, ..request(SearchScope::WholeRom) });
    assert_eq!((last.matches.len(), last.next_offset), (1, None));
    let main = rom.component(ComponentId::main(Processor::Arm9)).unwrap().stored.clone().unwrap();
    let short = SearchRequest { max_scan_bytes: u64::from(main.start) + 10, ..request(SearchScope::WholeRom) };
    let short = find(&rom, &short);
    assert_eq!((short.status, short.truncation_reasons.as_slice()), ("truncated", ["byte-limit"].as_slice()));
    assert_eq!((short.discovered_matches, short.scanned_bytes), (1, u64::from(main.start) + 10));
    let start = SearchRequest {
        pattern: PatternSpec::ByteSignature("42 55 49 4c 54".to_owned()),
        context_bytes: 4,
        ..request(SearchScope::WholeRom)
    };
    // The title BUILT stands at the very start.
    let title = &find(&rom, &start).matches[0];
    assert_eq!((title.rom_offset, title.owners[0].kind), (0, "header"));
    assert!(title.context.clipped_at_start && !title.context.clipped_at_end);
    assert_eq!((title.context.before.len(), title.context.after.len()), (0, 4));
}

#[test]
fn a_file_that_lies_wholly_inside_a_hit_is_an_owner_too() {
    let files = ["a", "b", "c"].map(|name| (name.to_owned(), b"needle".to_vec()));
    let mut bytes = RomBuilder { files: files.to_vec(), ..RomBuilder::default() }.build();
    let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    // The FAT's place in the header, and its entries of start and end; the files share the bytes of the first: nee, d, le.
    let fat = word(&bytes, 0x48) as usize;
    let start = word(&bytes, fat);
    for (entry, (from, to)) in [(0, 3), (3, 4), (4, 6)].into_iter().enumerate() {
        nds::testing::put32(&mut bytes, fat + entry * 8, start + from);
        nds::testing::put32(&mut bytes, fat + entry * 8 + 4, start + to);
    }
    let rom = Rom::parse(bytes).unwrap();
    let found = find(&rom, &request(SearchScope::WholeRom));
    let hit = found.matches.iter().find(|hit| hit.rom_offset == start).unwrap();
    let owners: Vec<_> = hit.owners.iter().filter_map(|owner| owner.file_id).collect();
    assert_eq!(owners, [0, 1, 2]);
}
