//! Random ROMs for properties.

use nds::Processor;
use nds::testing::{OverlaySpec, ProgramSpec, RomBuilder, SdkProgram};
use proptest::prelude::*;

/// An image that compresses: runs of random bytes.
pub fn image() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec((any::<u8>(), 4_usize..40), 1..12)
        .prop_map(|runs| runs.into_iter().flat_map(|(byte, count)| vec![byte; count]).collect())
}

fn overlay() -> impl Strategy<Value = (bool, u32, u32, Vec<u8>, bool)> {
    (any::<bool>(), 0_u32..4, 0_u32..0x40, image(), any::<bool>())
}

prop_compose! {
    pub fn builder()(
        overlays in proptest::collection::vec(overlay(), 0..5),
        files in proptest::collection::btree_map("[a-c]{1,2}(/[d-f]{1,2}){0,3}\\.x", image(), 0..8),
        sdk in any::<bool>(),
        compress in any::<bool>(),
        block in image(),
        dsi in any::<bool>(),
    ) -> RomBuilder {
        let overlays = overlays.into_iter().enumerate().map(|(id, (arm9, place, bss_size, image, blz))| {
            let processor = if arm9 { Processor::Arm9 } else { Processor::Arm7 };
            let make = if blz { OverlaySpec::blz } else { OverlaySpec::plain };
            OverlaySpec { bss_size, ..make(processor, id as u32, 0x0210_0000 + place * 0x40, &image) }
        });
        let mut builder = RomBuilder { overlays: overlays.collect(), ..RomBuilder::default() };
        builder.files = files.into_iter().collect();
        if sdk {
            let mut program = SdkProgram::new(0x0200_0000, 0x1800);
            program.autoloads = vec![(0x01ff_8000, block, 8)];
            let bytes = if compress { program.compressed().unwrap().0 } else { program.image() };
            builder.arm9 = ProgramSpec { ram_address: 0x0200_0000, entry: 0x0200_0800, bytes };
        }
        if dsi {
            builder.dsi = RomBuilder::everything().dsi;
        }
        builder
    }
}
