//! Any bytes as a manifest: refused, or one whose canonical text is a manifest of the same identity.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nds::rebuild::parse;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(manifest) = parse(bytes) {
        assert_eq!(parse(manifest.canonical.as_bytes()).unwrap(), manifest);
    }
});
