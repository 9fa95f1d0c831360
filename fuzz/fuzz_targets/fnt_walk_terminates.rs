//! Any bytes as a file name table: the walk ends, and what it names keeps to the limits.
#![no_main]

use std::collections::HashSet;
use std::sync::LazyLock;

use base::limits;
use libfuzzer_sys::fuzz_target;
use nds::Rom;
use nds::testing::{RomBuilder, put32};

/// Files that can get names.
const FILES: u32 = 64;

static GOOD: LazyLock<Vec<u8>> = LazyLock::new(|| RomBuilder::default().build());

fuzz_target!(|table: &[u8]| {
    let mut bytes = GOOD.clone();
    let (fat, fnt) = (bytes.len() as u32, bytes.len() as u32 + FILES * 8);
    bytes.resize(fnt as usize, 0);
    bytes.extend(table);
    for (field, value) in [(0x40, fnt), (0x44, table.len() as u32), (0x48, fat), (0x4c, FILES * 8)] {
        put32(&mut bytes, field, value);
    }
    let rom = Rom::parse(bytes).expect("the rest of the ROM is good");
    assert!(rom.directories() <= usize::from(limits::MAX_NDS_DIRECTORIES));
    assert!(rom.problems().len() <= limits::MAX_NDS_PROBLEMS + 1);
    assert_eq!(rom.files().len(), FILES as usize);
    let mut ids = HashSet::new();
    for file in rom.files() {
        assert!(ids.insert(file.id));
        let Some(path) = &file.path else { continue };
        assert!(path.len() <= limits::MAX_NDS_PATH_BYTES);
        assert!(path.split('/').all(|name| !name.is_empty() && name != "." && name != ".."), "{path:?}");
    }
});
