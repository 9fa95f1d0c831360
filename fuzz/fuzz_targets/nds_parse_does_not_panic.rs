//! Any bytes as a ROM, and any bytes as changes to a good one: refused, or a model that keeps its promises.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use nds::testing::{RomBuilder, put32};
use nds::{Rom, bundle};

static GOOD: LazyLock<Vec<u8>> = LazyLock::new(|| RomBuilder::everything().build());

fuzz_target!(|bytes: &[u8]| {
    look(bytes.to_vec());
    let mut changed = GOOD.clone();
    for change in bytes.chunks_exact(6) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % changed.len();
        put32(&mut changed, at, u32::from_le_bytes([change[2], change[3], change[4], change[5]]));
    }
    look(changed);
});

fn look(bytes: Vec<u8>) {
    let Ok(rom) = Rom::parse(bytes) else { return };
    for problem in rom.problems() {
        assert!(!problem.code.is_empty() && !problem.message.is_empty());
    }
    for component in rom.components() {
        assert!(component.initialized_end <= 1 << 32 && component.end <= 1 << 32);
        if let Some(image) = component.image(&rom) {
            assert_eq!(image.len() as u64, component.initialized_end - u64::from(component.start));
        }
        for address in [component.start, (component.initialized_end.wrapping_sub(1)) as u32] {
            for candidate in rom.resolve_address(component.id.processor, address).candidates {
                if let Some(offset) = candidate.rom_offset {
                    let owners = rom.resolve_offset(offset);
                    assert!(owners.iter().any(|owner| {
                        owner.component == Some(candidate.component) && owner.runtime_address == Some(address)
                    }));
                }
            }
        }
    }
    for file in rom.files() {
        if let Some(range) = file.range().filter(|range| !range.is_empty()) {
            assert!(rom.files_at(range.start).any(|owner| owner.id == file.id));
        }
    }
    let _ = bundle(&rom);
}
