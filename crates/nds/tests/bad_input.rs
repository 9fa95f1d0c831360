//! Damaged ROMs: what was understood is answered, with the problem named at its place; a refusal is for when there is no model.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use base::limits;
use nds::testing::{OverlaySpec, RomBuilder, get32, put, put16, put32};
use nds::{ComponentId, Processor, Refusal, Representation, Rom};

/// A ROM with two overlays and files in nested directories, and where its tables are.
struct Sample {
    bytes: Vec<u8>,
    fat: usize,
    fnt: usize,
    overlays: usize,
}

fn sample() -> Sample {
    let image: Vec<u8> = (0..400_u32).map(|at| (at / 40) as u8).collect();
    let overlays = vec![
        OverlaySpec::plain(Processor::Arm9, 0, 0x0210_0000, &image),
        OverlaySpec::blz(Processor::Arm9, 1, 0x0220_0000, &image),
    ];
    let files = ["top.txt", "one/a", "one/two/b"].map(|path| (path.to_owned(), vec![7; 0x30])).to_vec();
    let bytes = RomBuilder { overlays, files, ..RomBuilder::default() }.build();
    let at = |field| get32(&bytes, field) as usize;
    let (fnt, fat, overlays) = (at(0x40), at(0x48), at(0x50));
    Sample { bytes, fat, fnt, overlays }
}

impl Sample {
    /// The ROM after a change of a 32-bit number; checksums of the header are not what these tests are about.
    fn with(mut self, at: usize, value: u32) -> Self {
        put32(&mut self.bytes, at, value);
        self
    }

    fn parse(self) -> Rom {
        Rom::parse(self.bytes).unwrap()
    }
}

fn codes(rom: &Rom) -> Vec<&'static str> {
    rom.problems().iter().map(|problem| problem.code).filter(|code| *code != "header-crc").collect()
}

/// Codes and places of the problems.
fn found(rom: &Rom) -> Vec<(&'static str, Option<u64>)> {
    let told = rom.problems().iter().filter(|problem| problem.code != "header-crc");
    told.map(|problem| (problem.code, problem.offset)).collect()
}

fn refusal(bytes: Vec<u8>) -> Refusal {
    Rom::parse(bytes).unwrap_err()
}

#[test]
fn the_sample_itself_has_no_problems() {
    assert_eq!(codes(&sample().parse()), Vec::<&str>::new());
}

#[test]
fn a_file_cut_off_in_its_header_is_refused_at_every_length() {
    let bytes = sample().bytes;
    for length in 0..0x200 {
        let refusal = refusal(bytes[..length].to_vec());
        assert_eq!((refusal.category, refusal.offset), ("invalid-rom", Some(length as u64)));
        assert!(refusal.message.contains(&format!("the file has {length} bytes")), "{refusal}");
        assert!(!refusal.corrective_action.is_empty());
    }
}

#[test]
fn a_file_cut_off_later_keeps_what_it_has() {
    let whole = sample().bytes;
    let arm9_end = 0x4000 + 0x80;
    let arm7_end = (get32(&whole, 0x30) + get32(&whole, 0x3c)) as usize;
    for length in (0x200..whole.len()).step_by(0x33) {
        let rom = Rom::parse(whole[..length].to_vec()).unwrap();
        let told = codes(&rom);
        assert!(told.contains(&"rom-truncated"), "0x{length:x}");
        let main = rom.component(ComponentId::main(Processor::Arm9));
        assert_eq!(main.is_some(), length >= arm9_end, "0x{length:x}");
        assert!(main.is_none_or(|main| main.image(&rom).is_some()));
        assert_eq!(told.contains(&"program-out-of-range"), length < arm7_end, "0x{length:x}: {told:?}");
    }
}

#[test]
fn an_arm9_program_without_bytes_or_addresses_is_refused_unless_the_header_is_sealed() {
    let broken = |field, value| refusal(sample().with(field, value).bytes);
    assert_eq!((broken(0x20, u32::MAX).category, broken(0x2c, u32::MAX).offset), ("range-out-of-bounds", Some(0x20)));
    assert_eq!(
        (broken(0x28, 0xffff_ffff).category, broken(0x28, 0xffff_ffff).offset),
        ("range-out-of-bounds", Some(0x28))
    );
    let none = broken(0x2c, 0);
    assert_eq!((none.category, none.offset), ("invalid-rom", Some(0x2c)));
    // Where the checksum of the header holds, everything else of the ROM can be told.
    let mut sealed = sample().with(0x2c, 0x7fff_0000).bytes;
    nds::testing::seal(&mut sealed);
    let rom = Rom::parse(sealed).unwrap();
    assert_eq!(found(&rom), [("program-out-of-range", Some(0x20))]);
    assert!(rom.component(ComponentId::main(Processor::Arm9)).is_none());
    // The last byte may be the last of the address space.
    let edge = sample().with(0x28, 0xffff_ff80).with(0x24, 0xffff_ff80).parse();
    assert_eq!(edge.component(ComponentId::main(Processor::Arm9)).unwrap().end, 1 << 32);
    assert_eq!(edge.resolve_address(Processor::Arm9, u32::MAX).candidates[0].rom_offset, Some(0x407f));
}

#[test]
fn an_arm7_program_without_bytes_or_addresses_is_a_problem() {
    for (field, value, code) in [(0x30, 0x7fff_0000, "program-out-of-range"), (0x38, 0xffff_fff0, "ram-range-wraps")] {
        let rom = sample().with(field, value).parse();
        assert_eq!(found(&rom), [(code, Some(field as u64))]);
        assert!(rom.component(ComponentId::main(Processor::Arm7)).is_none());
        assert!(rom.component(ComponentId::main(Processor::Arm9)).is_some());
    }
    assert_eq!(codes(&sample().with(0x34, 0).parse()), ["entry-outside"]);
}

#[test]
fn a_rom_larger_than_any_card_is_refused() {
    // Zeros that are never touched cost no memory.
    let refusal = refusal(vec![0; limits::MAX_NDS_ROM_BYTES as usize + 1]);
    assert_eq!(refusal.category, "invalid-rom");
    assert!(refusal.message.contains("536870912"), "{refusal}");
}

#[test]
fn a_fat_entry_that_is_reversed_or_past_the_end_has_no_bytes() {
    let Sample { fat, bytes, .. } = sample();
    let (size, start) = (bytes.len() as u32, get32(&bytes, fat + 16));
    for (end, code) in
        [(start - 1, "fat-entry-reversed"), (size + 1, "fat-entry-past-end"), (u32::MAX, "fat-entry-past-end")]
    {
        let rom = sample().with(fat + 20, end).parse();
        let expected = (code, Some(fat as u64 + 16));
        assert_eq!(found(&rom)[0], expected, "end 0x{end:x}");
        let file = &rom.files()[2];
        assert_eq!((file.path.as_deref(), file.end, file.range()), (Some("top.txt"), end, None));
        assert_eq!(nds::extract(&rom, &nds::Selector::File(2)).unwrap_err().category, "range-out-of-bounds");
    }
}

#[test]
fn files_that_overlap_in_part_are_told() {
    let Sample { fat, bytes, .. } = sample();
    let start = get32(&bytes, fat + 16);
    // A file that begins where another ends shares nothing with it; one byte before, it does.
    let end = get32(&bytes, fat + 20);
    let touching = sample().with(fat + 24, end).with(fat + 28, end + 8).parse();
    assert_eq!(found(&touching), []);
    let sharing = sample().with(fat + 24, end - 1).with(fat + 28, end + 8).parse();
    assert_eq!(found(&sharing), [("fat-overlap", Some(fat as u64 + 24))]);
    let rom = sample().with(fat + 24, start + 8).with(fat + 28, start + 0x38).parse();
    assert_eq!(found(&rom), [("fat-overlap", Some(fat as u64 + 24))]);
    assert!(
        rom.problems().iter().any(|problem| problem.message.contains("file 3") && problem.message.contains("file 2"))
    );
}

#[test]
fn a_fat_that_is_odd_or_outside_gives_the_entries_there_are() {
    let rom = sample().with(0x4c, 5 * 8 - 3).parse();
    assert_eq!((rom.files().len(), found(&rom)[0]), (4, ("fat-size", Some(0x4c))));
    let Sample { fat, bytes, .. } = sample();
    let rom = sample().with(0x4c, !7).parse();
    assert_eq!(&codes(&rom)[..2], ["fat-too-many", "fat-out-of-range"]);
    assert_eq!(rom.files().len(), (bytes.len() - fat) / 8);
    let rom = sample().with(0x48, u32::MAX).parse();
    assert_eq!((rom.files().len(), found(&rom)[0]), (0, ("fat-out-of-range", Some(0x48))));
}

#[test]
fn directories_that_contain_themselves_are_read_once() {
    // The sample's directories are the root, `one` and `one/two`; the names of `one` begin with the file `a`, then `two`.
    let Sample { fnt, bytes, .. } = sample();
    let two = fnt + bytes[fnt..].windows(4).position(|bytes| bytes == b"\x83two").unwrap();
    for target in [0xf000, 0xf001] {
        let mut sample = sample();
        put16(&mut sample.bytes, two + 4, target);
        let rom = sample.parse();
        let codes = codes(&rom);
        assert!(codes.contains(&"fnt-loop") && codes.contains(&"fnt-unreachable"), "{codes:?}");
        assert_eq!((rom.directories(), rom.files()[3].path.as_deref()), (2, Some("one/a")));
        assert_eq!(rom.files()[4].path, None);
    }
    let mut outside = sample();
    put16(&mut outside.bytes, two + 4, 0xf003);
    assert_eq!(codes(&outside.parse()), ["fnt-unknown-directory", "fnt-unreachable"]);
}

#[test]
fn a_wrong_parent_is_told_and_the_names_are_kept() {
    let Sample { fnt, .. } = sample();
    let mut sample = sample();
    put16(&mut sample.bytes, fnt + 2 * 8 + 6, 0xf000);
    let rom = sample.parse();
    assert_eq!(found(&rom), [("fnt-wrong-parent", Some(fnt as u64 + 22))]);
    assert_eq!(rom.files()[4].path.as_deref(), Some("one/two/b"));
}

#[test]
fn names_that_pass_the_end_or_cannot_be_in_a_path_are_told() {
    let Sample { fnt, .. } = sample();
    let size = get32(&sample().bytes, 0x44) as usize;
    // The last byte of the table ends the last list; without it that list has no end. Two less and its name is cut off too.
    assert_eq!(found(&sample().with(0x44, size as u32 - 1).parse()), [("fnt-cut-off", Some((fnt + size) as u64 - 1))]);
    let rom = sample().with(0x44, size as u32 - 2).parse();
    assert_eq!((codes(&rom), rom.files()[4].path.clone()), (vec!["fnt-cut-off"], None));
    assert_eq!(codes(&sample().with(fnt + 8, u32::MAX).parse()), ["fnt-cut-off", "fnt-unreachable"]);
    let names = fnt + 3 * 8;
    for (name, code) in [
        (&b"\x07a/b.txt"[..], "fnt-name"),
        (b"\x02..", "fnt-name"),
        (b"\x80", "fnt-reserved"),
        (b"\x7f", "fnt-cut-off"),
    ] {
        let mut sample = sample();
        put(&mut sample.bytes, names, name);
        let rom = sample.parse();
        assert!(codes(&rom).contains(&code), "{name:?}: {:?}", codes(&rom));
        assert_eq!(rom.files()[2].path, None, "{name:?}");
    }
    assert_eq!(found(&sample().with(0x40, u32::MAX).parse())[0].0, "fnt-out-of-range");
}

#[test]
fn files_that_the_fat_does_not_have_or_that_have_two_names_are_told() {
    let Sample { fnt, .. } = sample();
    let first_of_one = fnt + 8 + 4;
    let with = |id| {
        let mut sample = sample();
        put16(&mut sample.bytes, first_of_one, id);
        sample.parse()
    };
    let rom = with(5);
    assert_eq!((codes(&rom), rom.files()[3].path.clone()), (vec!["fnt-unknown-file"], None));
    let rom = with(2);
    assert_eq!((codes(&rom), rom.files()[2].path.as_deref()), (vec!["fnt-two-names"], Some("top.txt")));
}

#[test]
fn all_4096_directories_are_walked_and_one_more_is_not() {
    // Each directory lies in the one before and is called `d`: the deepest path has 4,095 times `d/`, more than a path may have.
    let count = 4096_u32;
    let mut fnt = Vec::new();
    for number in 0..count {
        fnt.extend((count * 8 + number * 5).to_le_bytes());
        fnt.extend(0_u16.to_le_bytes());
        fnt.extend(if number == 0 { count as u16 } else { 0xf000 + number as u16 - 1 }.to_le_bytes());
    }
    for number in 1..=count {
        let last = number == count;
        fnt.extend(if last { [0; 5] } else { [0x81, b'd', number as u8, 0xf0 | (number >> 8) as u8, 0] });
    }
    let mut bytes = RomBuilder::default().build();
    let at = bytes.len();
    bytes.extend(&fnt);
    put32(&mut bytes, 0x40, at as u32);
    put32(&mut bytes, 0x44, fnt.len() as u32);
    let rom = Rom::parse(bytes.clone()).unwrap();
    // 2,048 names of two bytes make 4,096; the root has none.
    assert_eq!((codes(&rom), rom.directories()), (vec!["fnt-path-too-long", "fnt-unreachable"], 2049));

    put16(&mut bytes, at + 6, 4097);
    let rom = Rom::parse(bytes).unwrap();
    assert_eq!((found(&rom), rom.directories()), (vec![("fnt-directory-count", Some(at as u64 + 6))], 0));
}

#[test]
fn many_long_paths_do_not_take_more_memory_than_is_allowed() {
    // 33 directories, one inside the other, with names of 120 bytes: paths of some 4,000 bytes. The deepest holds 60,000 files.
    let depth = 33_u32;
    let mut names: Vec<Vec<u8>> = (1..depth)
        .map(|number| [&[0x80 | 120][..], &[b'd'; 120], &(0xf000 + number as u16).to_le_bytes(), &[0]].concat())
        .collect();
    names.push([b"\x01f".repeat(60_000), vec![0]].concat());
    let mut fnt = Vec::new();
    let mut at = depth * 8;
    for (number, list) in names.iter().enumerate() {
        fnt.extend(at.to_le_bytes());
        fnt.extend(0_u16.to_le_bytes());
        fnt.extend(if number == 0 { depth as u16 } else { 0xf000 + number as u16 - 1 }.to_le_bytes());
        at += list.len() as u32;
    }
    fnt.extend(names.concat());
    let mut bytes = RomBuilder::default().build();
    let (at, fat) = (bytes.len() as u32, bytes.len() as u32 + fnt.len() as u32);
    bytes.extend(&fnt);
    bytes.extend(vec![0; 60_000 * 8]);
    for (field, value) in [(0x40, at), (0x44, fnt.len() as u32), (0x48, fat), (0x4c, 60_000 * 8)] {
        put32(&mut bytes, field, value);
    }
    let rom = Rom::parse(bytes).unwrap();
    assert!(codes(&rom).contains(&"fnt-paths-too-long"));
    let all: usize = rom.files().iter().filter_map(|file| file.path.as_ref()).map(String::len).sum();
    assert!(all as u64 <= limits::MAX_NDS_PATHS_BYTES, "{all}");
    assert!(rom.files()[0].path.is_some());
    let problems = rom.problems();
    assert_eq!(problems.len(), limits::MAX_NDS_PROBLEMS + 1);
    assert_eq!(problems.last().unwrap().code, "more-problems");
}

#[test]
fn an_overlay_without_a_file_is_kept_without_bytes() {
    let Sample { overlays, fat, .. } = sample();
    let id = ComponentId::overlay(Processor::Arm9, 0);
    for file in [5, u32::MAX] {
        let rom = sample().with(overlays + 0x18, file).parse();
        assert_eq!(found(&rom), [("overlay-unknown-file", Some(overlays as u64 + 0x18))]);
        let overlay = rom.component(id).unwrap();
        assert_eq!(overlay.representation, Representation::Undecodable { problem: "overlay-unknown-file" });
        assert_eq!((overlay.image(&rom), overlay.stored.clone(), overlay.start), (None, None, 0x0210_0000));
        assert_eq!(
            rom.resolve_address(Processor::Arm9, 0x0210_0000).candidates[0].representation.word(),
            "undecodable"
        );
        assert_eq!(
            nds::extract(&rom, &nds::Selector::Overlay(Processor::Arm9, 0)).unwrap_err().category,
            "unknown-file-id"
        );
    }
    let rom = sample().with(fat + 4, u32::MAX).parse();
    assert_eq!(codes(&rom), ["fat-entry-past-end", "overlay-file-range"]);
}

#[test]
fn an_overlay_whose_addresses_wrap_is_listed_and_has_no_component() {
    let Sample { overlays, .. } = sample();
    for (field, value) in [(4, 0xffff_fff0), (8, 0xffff_ffff), (12, 0xffff_ffff)] {
        let rom = sample().with(overlays + field, value).parse();
        assert_eq!(found(&rom), [("ram-range-wraps", Some(overlays as u64 + 4))]);
        assert_eq!(rom.overlays().len(), 2);
        assert!(rom.component(ComponentId::overlay(Processor::Arm9, 0)).is_none());
    }
}

#[test]
fn overlay_tables_and_entries_that_contradict_the_file_are_told() {
    let Sample { overlays, .. } = sample();
    assert_eq!(found(&sample().with(0x54, 63).parse()), [("overlay-table-size", Some(0x54))]);
    let far = sample().with(0x50, u32::MAX).parse();
    assert_eq!((found(&far), far.overlays().len()), (vec![("overlay-table-out-of-range", Some(0x50))], 0));
    assert!(codes(&sample().with(0x54, u32::MAX).parse()).contains(&"overlay-table-too-long"));
    assert_eq!(found(&sample().with(overlays + 32, 0).parse()), [("overlay-id-twice", Some(overlays as u64 + 32))]);
    let rom = sample().with(overlays + 8, 401).parse();
    assert_eq!(found(&rom), [("overlay-size", Some(overlays as u64 + 8))]);
    assert_eq!(rom.component(ComponentId::overlay(Processor::Arm9, 0)).unwrap().initialized_end, 0x0210_0000 + 400);
}

#[test]
fn a_compressed_overlay_that_lies_is_kept_without_bytes() {
    let Sample { overlays, fat, bytes, .. } = sample();
    let (start, end) = (get32(&bytes, fat + 8) as usize, get32(&bytes, fat + 12) as usize);
    let length = (end - start) as u32;
    let cases = [
        (overlays + 32 + 8, 399, "blz-output-size-mismatch"),
        (overlays + 32 + 28, 1 << 24, "malformed-blz"),
        (overlays + 32 + 28, 1 << 24 | (length + 1), "malformed-blz"),
        (end - 8, 0x07ff_ffff, "malformed-blz"),
        (end - 4, u32::MAX, "blz-output-limit"),
        (end - 4, get32(&bytes, end - 4) + 1, "blz-output-size-mismatch"),
    ];
    for (at, value, code) in cases {
        let rom = sample().with(at, value).parse();
        assert_eq!(found(&rom), [(code, Some(overlays as u64 + 32 + 0x18))], "0x{at:x}");
        let overlay = rom.component(ComponentId::overlay(Processor::Arm9, 1)).unwrap();
        assert_eq!(
            (&overlay.representation, overlay.image(&rom)),
            (&Representation::Undecodable { problem: code }, None)
        );
    }
}
