//! Operations made of any bytes on a good ROM: refused, or built and verified, the same twice.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use nds::rebuild::{ArtifactRef, Plan, apply, parse, plan, verify};
use nds::testing::RomBuilder;
use nds::{Refusal, Rom, sha256_hex};
use serde_json::{Value, json};

static ROM: LazyLock<Rom> = LazyLock::new(|| Rom::parse(RomBuilder::everything().build()).unwrap());

fuzz_target!(|bytes: &[u8]| {
    let operations: Vec<Value> = bytes.chunks(8).map(operation).collect();
    let manifest = json!({"format": "re-mcp-nds-mutation", "formatVersion": 3, "source": {"sha256": ROM.sha256()},
        "output": {"filename": "m.nds"}, "acknowledge": ["stale-dsi-digests"], "operations": operations});
    let Ok(manifest) = parse(manifest.to_string().as_bytes()) else { return };
    let mut source = |artifact: &ArtifactRef| Ok(artifact.path.clone().into_bytes());
    let planned: Result<Plan, Refusal> = plan(&ROM, manifest, &mut source, None);
    if let Ok(planned) = planned {
        let output = apply(&ROM, &planned).unwrap();
        assert_eq!(output, apply(&ROM, &planned).unwrap());
        // A byte edit may make a program that no longer reads as the source's: that is refused, not published.
        let _ = verify(&ROM, &planned, output);
    }
});

fn operation(bytes: &[u8]) -> Value {
    let byte = |at: usize| bytes.get(at).copied().unwrap_or_default();
    let at = u32::from(byte(1)) << 8 | u32::from(byte(2));
    // The content of an artifact is its own path.
    let path = format!("p{}", "x".repeat(usize::from(byte(3))));
    let replacement = json!({"artifact": path, "sha256": sha256_hex(path.as_bytes())});
    let file = u32::from(byte(1)) % 12;
    let range = ROM.file(file).and_then(nds::File::range).unwrap_or_default();
    let stored = &ROM.bytes()[range.start as usize..range.end as usize];
    match byte(0) % 3 {
        0 => {
            let start = ROM.header().arm7.rom_offset + at % ROM.header().arm7.size;
            let old = ROM.bytes()[start as usize];
            json!({"type": "replace-bytes", "target": {"component": "arm7", "relativeOffset": start - ROM.header().arm7.rom_offset},
                "expected": format!("{old:02x}"), "replacement": format!("{:02x}", byte(4))})
        }
        1 => json!({"type": "replace-nitrofs-file", "target": {"fileId": file},
            "expectedOriginalSha256": sha256_hex(stored), "replacement": replacement}),
        _ => {
            let name = format!("{}/{}", ["data", "new", "z", "data/deep"][usize::from(byte(1) % 4)], byte(2));
            json!({"type": "add-nitrofs-file", "path": name, "replacement": replacement})
        }
    }
}
