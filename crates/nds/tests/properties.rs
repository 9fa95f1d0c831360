//! What must hold of every ROM: building keeps every range, and resolution in one direction undoes the other.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod builders;

use std::sync::LazyLock;

use builders::{builder, image};
use nds::testing::{OverlaySpec, ProgramSpec, RomBuilder};
use nds::{ComponentId, Processor, Representation, Rom};
use proptest::prelude::*;

/// Built once: it is damaged anew each time.
static EVERYTHING: LazyLock<Vec<u8>> = LazyLock::new(|| RomBuilder::everything().build());

/// Describes a parsed ROM anew, from the model alone.
fn describe(rom: &Rom) -> RomBuilder {
    let part = |range: std::ops::Range<u32>| rom.bytes()[range.start as usize..range.end as usize].to_vec();
    let program = |processor, header: nds::Program| ProgramSpec {
        ram_address: header.ram_address,
        entry: header.entry,
        bytes: part(rom.component(ComponentId::main(processor)).unwrap().stored.clone().unwrap()),
    };
    let overlays = rom.overlays().iter().map(|overlay| OverlaySpec {
        processor: overlay.processor,
        id: overlay.id,
        ram_address: overlay.ram_address,
        ram_size: overlay.ram_size,
        bss_size: overlay.bss_size,
        stored: part(rom.file(overlay.file_id).unwrap().range().unwrap()),
        compressed: overlay.is_compressed(),
    });
    let mut overlays: Vec<_> = rom.overlays().iter().map(|overlay| overlay.file_id).zip(overlays).collect();
    overlays.sort_by_key(|(file, _)| *file);
    let files = rom.files().iter().filter_map(|file| Some((file.path.clone()?, part(file.range()?))));
    RomBuilder {
        arm9: program(Processor::Arm9, rom.header().arm9),
        arm7: program(Processor::Arm7, rom.header().arm7),
        overlays: overlays.into_iter().map(|(_, overlay)| overlay).collect(),
        files: files.collect(),
        dsi: rom.dsi().map(|dsi| nds::testing::DsiSpec {
            arm9i: (dsi.arm9i.ram_address, part(dsi.arm9i.rom_offset..dsi.arm9i.rom_offset + dsi.arm9i.size)),
            arm7i: (dsi.arm7i.ram_address, part(dsi.arm7i.rom_offset..dsi.arm7i.rom_offset + dsi.arm7i.size)),
            modcrypt: false,
        }),
        ..RomBuilder::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn building_what_was_parsed_gives_the_same_rom(builder in builder()) {
        let bytes = builder.build();
        let rom = Rom::parse(bytes.clone()).unwrap();
        prop_assert_eq!(rom.problems(), &[]);
        prop_assert_eq!(rom.files().len(), builder.overlays.len() + builder.files.len());
        prop_assert!(describe(&rom).build() == bytes);
    }

    #[test]
    fn every_overlay_has_the_image_it_was_built_from(images in proptest::collection::vec(image(), 1..5)) {
        let overlays = images.iter().enumerate();
        let overlays = overlays.map(|(id, image)| OverlaySpec::blz(Processor::Arm9, id as u32, 0x0210_0000, image));
        let rom = Rom::parse(RomBuilder { overlays: overlays.collect(), ..RomBuilder::default() }.build()).unwrap();
        for (id, image) in images.iter().enumerate() {
            let component = rom.component(ComponentId::overlay(Processor::Arm9, id as u32)).unwrap();
            prop_assert_eq!(component.image(&rom), Some(&image[..]));
        }
    }

    #[test]
    fn offsets_and_addresses_resolve_to_each_other(builder in builder()) {
        let rom = Rom::parse(builder.build()).unwrap();
        for offset in (0..rom.bytes().len() as u32).step_by(7) {
            for owner in rom.resolve_offset(offset) {
                let (Some(component), Some(address)) = (owner.component, owner.runtime_address) else { continue };
                let candidates = rom.resolve_address(component.processor, address).candidates;
                let back = candidates.iter().find(|candidate| candidate.component == component).unwrap();
                prop_assert_eq!((back.rom_offset, back.kind), (Some(offset), owner.kind));
            }
        }
        for component in rom.components() {
            for address in (component.start..).take_while(|address| u64::from(*address) < component.end).step_by(5) {
                let candidates = rom.resolve_address(component.id.processor, address).candidates;
                let Some(own) = candidates.iter().find(|candidate| candidate.component == component.id) else {
                    prop_assert!(!component.is_initialized(address) && !component.is_bss(address));
                    continue;
                };
                let Some(offset) = own.rom_offset else {
                    prop_assert!(component.is_bss(address) || component.representation != Representation::RomFileBacked);
                    continue;
                };
                let image = component.image(&rom).unwrap();
                prop_assert_eq!(rom.bytes()[offset as usize], image[(address - component.start) as usize]);
                let owners = rom.resolve_offset(offset);
                let back = owners.iter().find(|owner| owner.component == Some(component.id)).unwrap();
                prop_assert_eq!(back.runtime_address, Some(address));
            }
        }
    }

    #[test]
    fn a_damaged_rom_is_refused_or_described_without_harm(
        changes in proptest::collection::vec((0_usize..0x200, any::<u32>()), 1..6),
        tables in proptest::collection::vec((0_usize..0x600, any::<u32>()), 0..6),
    ) {
        let mut bytes = EVERYTHING.clone();
        let fnt = nds::testing::get32(&bytes, 0x40) as usize;
        for (at, value) in changes.into_iter().chain(tables.into_iter().map(|(at, value)| (fnt - 0x200 + at, value))) {
            nds::testing::put32(&mut bytes, at, value);
        }
        if let Ok(rom) = Rom::parse(bytes) {
            for component in rom.components() {
                let image = component.image(&rom);
                prop_assert!(image.is_none_or(|image| image.len() as u64 == component.initialized_end - u64::from(component.start)));
            }
            nds::bundle(&rom).unwrap();
        }
    }
}
