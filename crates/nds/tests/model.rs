//! What the model says of ROMs whose layout is known: the fixture, whose bytes its README and build script give, and built
//! ones, whose description gives it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use nds::testing::{DsiSpec, OverlaySpec, PARAMS_AT, ProgramSpec, RomBuilder, SdkProgram, put, put32, seal};
use nds::{
    AddressStatus, CandidateRepresentation, ComponentId, Part, Processor, Representation, Rom, SecureArea, Selector,
    bundle, crc16, extract, sha256_hex,
};

const FIXTURE: &[u8] = include_bytes!("../../../fixtures/nds-overlay-rom/ndslab-test.nds");

fn fixture() -> Rom {
    Rom::parse(FIXTURE.to_vec()).unwrap()
}

fn parse(rom: Vec<u8>) -> Rom {
    Rom::parse(rom).unwrap()
}

fn codes(rom: &Rom) -> Vec<&'static str> {
    rom.problems().iter().map(|problem| problem.code).collect()
}

#[test]
fn the_fixture_is_what_its_build_script_makes() {
    let rom = fixture();
    assert_eq!(rom.sha256(), "c6046920d49b7df2a394b5bcaa7685fee516846e138d5396a404f6e3f13c41a7");
    let header = rom.header();
    assert_eq!((header.title_text().as_str(), header.code_text().as_str()), ("NDSLAB TEST", "NLAB"));
    assert_eq!((header.arm9.ram_address, header.arm9.size, header.arm9.rom_offset), (0x0200_0000, 0x6000, 0x4000));
    let files: Vec<_> = rom.files().iter().map(|file| (file.path.as_deref(), file.size())).collect();
    let expected =
        [(None, 1092), (None, 212), (Some("hello.txt"), 14), (Some("data/a.bin"), 256), (Some("data/b.bin"), 100)];
    assert_eq!(files, expected);
    assert_eq!(rom.secure_area(), SecureArea::Absent);
    assert_eq!(rom.problems(), []);
    let names: Vec<_> = rom.components().iter().map(|component| component.id.name()).collect();
    assert_eq!(names, ["arm9-main", "arm9-overlay-0", "arm9-overlay-1", "arm7-main"]);
}

#[test]
fn a_compressed_overlay_has_the_image_that_ndspy_decodes() {
    let rom = fixture();
    let [plain, blz] = [0, 1].map(|id| rom.component(ComponentId::overlay(Processor::Arm9, id)).unwrap());
    assert_eq!(
        (&plain.representation, &blz.representation),
        (&Representation::RomFileBacked, &Representation::DerivedBlz)
    );
    // Both hashes are those that ndspy 4.2 gives for the decoded overlays.
    assert_eq!(
        sha256_hex(plain.image(&rom).unwrap()),
        "8a1eaa0c901a62cabb505093cb1057b72aa735bf3671a7ab1d6e28530a8e2161"
    );
    assert_eq!(
        sha256_hex(blz.image(&rom).unwrap()),
        "ffac3d8839b0699c89080dec24569542cbb6c4ff3f390b95ae92a55ed0ef4585"
    );
    assert_eq!((blz.initialized_end, blz.end), (0x0210_0000 + 1092, 0x0210_0000 + 1092 + 64));
}

#[test]
fn addresses_resolve_by_the_words_of_the_contract() {
    let rom = fixture();
    let at = |address| rom.resolve_address(Processor::Arm9, address);
    let main = at(0x0200_0010);
    assert_eq!(main.status, AddressStatus::Resolved);
    assert_eq!((main.candidates[0].kind, main.candidates[0].rom_offset), ("arm9-main", Some(0x4010)));

    let both = at(0x0210_0004);
    assert_eq!(both.status.word(), "ambiguous-runtime-address");
    let [plain, blz] = both.candidates.as_slice() else { panic!("{both:?}") };
    let file = rom.file(0).unwrap();
    assert_eq!((plain.kind, plain.rom_offset, plain.file_id), ("arm9-overlay", Some(file.start + 4), Some(0)));
    assert_eq!((blz.representation.word(), blz.rom_offset, blz.runtime_image_offset), ("derived-blz", None, Some(4)));
    assert_eq!((blz.backing_rom_size, blz.compressed), (Some(212), true));

    // The last byte of the images, then the first of the BSS, and the last of it.
    assert_eq!(at(0x0210_0000 + 1091).candidates[0].kind, "arm9-overlay");
    let bss = at(0x0210_0000 + 1092);
    assert_eq!((bss.candidates[0].kind, bss.candidates[0].runtime_image_offset), ("overlay-bss", None));
    assert_eq!(at(0x0210_0000 + 1092 + 63).candidates.len(), 2);
    assert_eq!(at(0x0210_0000 + 1092 + 64).status, AddressStatus::Unmapped);
    assert_eq!(rom.resolve_address(Processor::Arm7, 0x0210_0004).status, AddressStatus::Unmapped);
}

#[test]
fn one_overlay_alone_is_bss_or_compressed_without_ambiguity() {
    let image: Vec<u8> = (0..200).map(|at| at / 50).collect();
    let overlay = OverlaySpec { bss_size: 8, ..OverlaySpec::blz(Processor::Arm7, 5, 0x0300_0000, &image) };
    let rom = parse(RomBuilder { overlays: vec![overlay], ..RomBuilder::default() }.build());
    let at = |address| rom.resolve_address(Processor::Arm7, address);
    assert_eq!(at(0x0300_0000).status, AddressStatus::CompressedNoDirectRomMapping);
    assert_eq!(at(0x0300_00c8).status, AddressStatus::RuntimeOnlyBss);
    assert_eq!(at(0x0300_00c8).candidates[0].representation, CandidateRepresentation::RuntimeOnly);
    let component = rom.component(ComponentId::overlay(Processor::Arm7, 5)).unwrap();
    assert_eq!(component.image(&rom), Some(&image[..]));
}

#[test]
fn offsets_name_every_owner() {
    let rom = fixture();
    let kinds = |offset| rom.resolve_offset(offset).iter().map(|owner| owner.kind).collect::<Vec<_>>();
    assert_eq!(kinds(0), ["header"]);
    assert_eq!(kinds(rom.header().fnt.offset), ["fnt"]);
    assert_eq!(kinds(rom.header().fat.offset + 0x27), ["fat"]);
    assert_eq!(kinds(rom.header().arm9_overlays.offset), ["arm9-overlay-table"]);
    let main = &rom.resolve_offset(0x4010)[0];
    assert_eq!((main.kind, main.runtime_address), ("arm9-main", Some(0x0200_0010)));
    let overlay = &rom.resolve_offset(rom.file(1).unwrap().start)[..];
    assert_eq!(
        (overlay[0].kind, overlay[0].file_id, overlay[0].runtime_address, overlay.len()),
        ("arm9-overlay", Some(1), None, 1)
    );
    let file = &rom.resolve_offset(rom.file(3).unwrap().start + 255)[..];
    assert_eq!((file[0].kind, file[0].file_id, file.len()), ("nitrofs-file", Some(3), 1));
    assert_eq!(kinds(FIXTURE.len() as u32), Vec::<&str>::new());
}

#[test]
fn files_that_lie_over_each_other_are_all_named() {
    let files = ["a", "b", "c"].map(|name| (name.to_owned(), vec![1; 0x600])).to_vec();
    let mut bytes = RomBuilder { files, ..RomBuilder::default() }.build();
    let whole = parse(bytes.clone());
    let (fat, first) = (whole.header().fat.offset as usize, whole.files()[0].start);
    // b lies inside a, at its start; c is a again.
    for (place, value) in [(8, first), (12, first + 0x10), (16, first), (20, first + 0x600)] {
        put32(&mut bytes, fat + place, value);
    }
    let rom = parse(bytes);
    let owners = |offset| rom.files_at(offset).map(|file| file.id).collect::<Vec<_>>();
    assert_eq!(owners(first), [0, 1, 2]);
    assert_eq!(owners(first + 0x10), [0, 2]);
    assert_eq!(owners(first + 0x600), Vec::<u32>::new());
    assert_eq!(codes(&rom), ["fat-overlap"], "only b and its surroundings: equal ranges are one file twice");
}

#[test]
fn autoload_blocks_run_where_the_list_says() {
    for list_words in [3, 4] {
        let mut program = SdkProgram { list_words, ..SdkProgram::new(0x0200_4000, 0x1000) };
        program.autoloads = vec![(0x01ff_8000, vec![1; 0x40], 0x10), (0x027e_0000, vec![2; 0x24], 0)];
        program.bss_size = 0x100;
        let arm9 = ProgramSpec { ram_address: 0x0200_4000, entry: 0x0200_4800, bytes: program.image() };
        let rom = parse(RomBuilder { arm9, ..RomBuilder::default() }.build());
        assert_eq!(rom.problems(), []);
        assert_eq!(rom.module_params(Processor::Arm9).unwrap().offset, PARAMS_AT);

        let main = rom.component(ComponentId::main(Processor::Arm9)).unwrap();
        assert_eq!((main.initialized_end, main.bss.clone()), (0x0200_5000, 0x0200_5000..0x0200_5100));
        let part = |index| ComponentId { processor: Processor::Arm9, part: Part::Autoload(index) };
        let itcm = rom.component(part(0)).unwrap();
        assert_eq!((itcm.start, itcm.initialized_end, itcm.end), (0x01ff_8000, 0x01ff_8040, 0x01ff_8050));
        assert_eq!(itcm.image(&rom), Some(&[1; 0x40][..]));
        // The blocks follow the code, which begins at 0x4000 of the ROM and has 0x1000 bytes.
        assert_eq!(rom.component(part(1)).unwrap().rom_offset_of(0x027e_0004), Some(0x5044));
        let owners = rom.resolve_offset(0x5044);
        let seen: Vec<_> = owners.iter().map(|owner| (owner.kind, owner.runtime_address)).collect();
        assert_eq!(seen, [("arm9-main", None), ("arm9-autoload", Some(0x027e_0004))]);
        assert_eq!(rom.resolve_address(Processor::Arm9, 0x01ff_8048).candidates[0].kind, "autoload-bss");
        assert_eq!(rom.resolve_address(Processor::Arm9, 0x0200_5044).candidates[0].kind, "main-bss");
    }
}

#[test]
fn autoload_blocks_end_with_the_address_space() {
    let with = |bss_size| {
        let mut program = SdkProgram::new(0x0200_4000, 0x1000);
        program.autoloads = vec![(0xffff_ffc0, vec![1; 0x20], bss_size)];
        let arm9 = ProgramSpec { ram_address: 0x0200_4000, entry: 0x0200_4800, bytes: program.image() };
        parse(RomBuilder { arm9, ..RomBuilder::default() }.build())
    };
    let blocks = |rom: &Rom| rom.components().iter().filter(|part| matches!(part.id.part, Part::Autoload(_))).count();
    // 0xffffffc0 and 0x20 bytes leave 0x20 more.
    let last = with(0x20);
    assert_eq!((codes(&last), blocks(&last)), (vec![], 1));
    let over = with(0x21);
    assert_eq!((codes(&over), blocks(&over)), (vec!["autoload-list"], 0));
}

#[test]
fn a_compressed_main_program_is_decoded_with_its_autoload_blocks() {
    let mut program = SdkProgram::new(0x0200_0000, 0x2000);
    program.autoloads = vec![(0x01ff_8000, vec![3; 0x80], 0)];
    let (stored, image) = program.compressed().unwrap();
    let length = stored.len();
    let arm9 = ProgramSpec { ram_address: 0x0200_0000, entry: 0x0200_0800, bytes: stored };
    let mut bytes = RomBuilder { arm9, ..RomBuilder::default() }.build();
    let rom = parse(bytes.clone());
    assert_eq!(rom.problems(), []);
    let main = rom.component(ComponentId::main(Processor::Arm9)).unwrap();
    assert_eq!((main.compressed, &main.representation), (true, &Representation::DerivedBlz));
    assert_eq!(main.image(&rom), Some(&image[..0x2000]));
    assert_eq!(main.rom_offset_of(0x0200_0000), None);
    let itcm = rom.component(ComponentId { processor: Processor::Arm9, part: Part::Autoload(0) }).unwrap();
    assert_eq!((itcm.image(&rom), itcm.rom_offset_of(0x01ff_8000)), (Some(&[3; 0x80][..]), None));

    // A footer that names more compressed bytes than there are: everything but the program is still there.
    put32(&mut bytes, 0x4000 + length - 8, 0x08ff_ffff);
    let rom = parse(bytes);
    assert_eq!(codes(&rom), ["malformed-blz"]);
    let main = rom.component(ComponentId::main(Processor::Arm9)).unwrap();
    assert_eq!(
        (&main.representation, main.image(&rom)),
        (&Representation::Undecodable { problem: "malformed-blz" }, None)
    );
    assert!(!main.contains_code(0x0200_0000));
}

#[test]
fn the_secure_area_is_told_by_its_bytes_and_its_checksum() {
    let code: Vec<u8> = (0..0x4000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8 | 1).collect();
    let of = |start: &[u8], crc: u16, entry: u32| {
        let mut bytes = code.clone();
        put(&mut bytes, 0, start);
        let arm9 = ProgramSpec { ram_address: 0x0200_0000, entry, bytes };
        parse(RomBuilder { arm9, secure_area_crc: crc, ..RomBuilder::default() }.build())
    };
    let marker = [0xff, 0xde, 0xff, 0xe7, 0xff, 0xde, 0xff, 0xe7];
    let state = |start: &[u8], crc| of(start, crc, 0x0200_0800).secure_area();
    assert_eq!(state(&marker, 0x1234), SecureArea::Decrypted);
    assert_eq!(state(&[], 0), SecureArea::Absent, "no checksum");
    assert_eq!(state(&[0; 8], 0x1234), SecureArea::Absent, "no identifier");
    assert_eq!(state(&[], crc16(&code) ^ 1), SecureArea::Unknown);
    assert_eq!(of(&[], crc16(&code), 0x0200_0000).secure_area(), SecureArea::Unknown, "code that starts inside");

    let rom = of(&[], crc16(&code), 0x0200_0800);
    assert_eq!((rom.secure_area(), codes(&rom)), (SecureArea::Encrypted, vec!["secure-area-encrypted"]));
    let main = rom.component(ComponentId::main(Processor::Arm9)).unwrap();
    assert_eq!([0x0200_0000, 0x0200_07ff, 0x0200_0800].map(|at| main.contains_code(at)), [false, false, true]);
    let rom = parse(RomBuilder { arm9_offset: 0x200, secure_area_crc: 1, ..RomBuilder::default() }.build());
    assert_eq!(rom.secure_area(), SecureArea::Absent, "the program lies elsewhere");
}

#[test]
fn a_dsi_title_has_its_second_programs() {
    let dsi = DsiSpec { arm9i: (0x0240_0000, vec![5; 0x158]), arm7i: (0x02e8_0000, vec![6; 0x90]), modcrypt: false };
    let builder = RomBuilder { dsi: Some(dsi.clone()), ..RomBuilder::default() };
    let rom = parse(builder.build());
    assert_eq!(rom.problems(), []);
    let arm9i = rom.component(ComponentId { processor: Processor::Arm9, part: Part::Twl }).unwrap();
    assert_eq!((arm9i.id.kind(), arm9i.start, arm9i.image(&rom)), ("arm9i", 0x0240_0000, Some(&[5; 0x158][..])));
    assert!(arm9i.contains_code(0x0240_0000));
    assert_eq!(rom.resolve_address(Processor::Arm7, 0x02e8_0010).candidates[0].kind, "arm7i");

    let rom = parse(RomBuilder { dsi: Some(DsiSpec { modcrypt: true, ..dsi }), ..builder }.build());
    assert_eq!(codes(&rom), ["modcrypt-encrypted"]);
    let arm9i = rom.component(ComponentId { processor: Processor::Arm9, part: Part::Twl }).unwrap();
    assert!(!arm9i.contains_code(0x0240_0000));
}

#[test]
fn wrong_checksums_are_problems_beside_the_answer() {
    let mut bytes = RomBuilder::default().build();
    bytes[0xc0] ^= 1;
    assert_eq!(codes(&parse(bytes.clone())), ["logo-crc", "header-crc"]);
    seal(&mut bytes);
    assert_eq!(codes(&parse(bytes)), Vec::<&str>::new());
}

#[test]
fn an_empty_fat_at_the_end_of_the_file_is_legal() {
    let mut bytes = RomBuilder::default().build();
    let end = bytes.len() as u32;
    for (field, value) in [(0x40, 0), (0x44, 0), (0x48, end), (0x4c, 0)] {
        put32(&mut bytes, field, value);
    }
    seal(&mut bytes);
    let rom = parse(bytes);
    assert_eq!((rom.problems(), rom.files()), (&[][..], &[][..]));
}

#[test]
fn only_canonical_selectors_extract() {
    let rom = fixture();
    let overlay = extract(&rom, &Selector::Overlay(Processor::Arm9, 1)).unwrap();
    assert_eq!((overlay.component, overlay.path.as_str()), ("arm9-overlay", "overlays/arm9-overlay-0001.bin"));
    assert_eq!((overlay.bytes.len(), overlay.compressed, overlay.compressed_size), (212, true, Some(212)));
    assert_eq!((overlay.ram_address, overlay.file_id), (Some(0x0210_0000), Some(1)));
    assert_eq!(overlay.sha256, sha256_hex(&FIXTURE[overlay.rom_offset as usize..][..212]));
    for path in ["data/a.bin", "/data/a.bin"] {
        let file = extract(&rom, &Selector::Path(path.to_owned())).unwrap();
        assert_eq!((file.bytes, file.path.as_str()), (&(0..=255).collect::<Vec<u8>>()[..], "files/file-00003.bin"));
    }
    assert_eq!(extract(&rom, &Selector::Program(Processor::Arm7)).unwrap().bytes.len(), 16);
    let refused = |selector| extract(&rom, &selector).unwrap_err().category;
    assert_eq!(refused(Selector::File(5)), "unknown-file-id");
    assert_eq!(refused(Selector::Path("data".to_owned())), "unknown-file-id");
    assert_eq!(refused(Selector::Overlay(Processor::Arm7, 0)), "unknown-overlay-id");
}

#[test]
fn the_bundle_holds_tables_components_and_decoded_images() {
    let rom = fixture();
    let bundle = bundle(&rom).unwrap();
    let paths: Vec<_> = bundle.artifacts.iter().map(|artifact| artifact.path.as_str()).collect();
    let expected = [
        "header.bin",
        "fnt.bin",
        "fat.bin",
        "arm9-overlay-table.bin",
        "stored/arm9-main.bin",
        "stored/arm9-overlay-0.bin",
        "stored/arm9-overlay-1.bin",
        "runtime/arm9-overlay-1.bin",
        "stored/arm7-main.bin",
    ];
    assert_eq!(paths, expected);
    assert_eq!(bundle.artifacts[7].sha256, "ffac3d8839b0699c89080dec24569542cbb6c4ff3f390b95ae92a55ed0ef4585");
    assert_eq!(bundle.without_runtime, []);
    for artifact in bundle.artifacts.iter().filter(|artifact| artifact.rom_offset.is_some()) {
        let at = artifact.rom_offset.unwrap() as usize;
        assert_eq!(artifact.bytes, &FIXTURE[at..at + artifact.bytes.len()], "{}", artifact.path);
    }
}
