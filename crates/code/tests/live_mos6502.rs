//! The text of every 6502 instruction, assembled by 64tass: the same bytes must come out.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use code::mos6502::decode;
use std::fmt::Write as _;
use std::process::Command;

/// First bytes that 64tass writes as another one of the same instruction: (ours, 64tass's).
const OTHER_FORMS: &[(u8, u8)] = &[
    // What halts the processor has twelve codes.
    (0x12, 0x02),
    (0x22, 0x02),
    (0x32, 0x02),
    (0x42, 0x02),
    (0x52, 0x02),
    (0x62, 0x02),
    (0x72, 0x02),
    (0x92, 0x02),
    (0xB2, 0x02),
    (0xD2, 0x02),
    (0xF2, 0x02),
    // So have instructions without effect.
    (0x1A, 0xEA),
    (0x3A, 0xEA),
    (0x5A, 0xEA),
    (0x7A, 0xEA),
    (0xDA, 0xEA),
    (0xFA, 0xEA),
    (0x82, 0x80),
    (0x89, 0x80),
    (0xC2, 0x80),
    (0xE2, 0x80),
    (0x44, 0x04),
    (0x64, 0x04),
    (0x34, 0x14),
    (0x54, 0x14),
    (0x74, 0x14),
    (0xD4, 0x14),
    (0xF4, 0x14),
    (0x3C, 0x1C),
    (0x5C, 0x1C),
    (0x7C, 0x1C),
    (0xDC, 0x1C),
    (0xFC, 0x1C),
    (0x2B, 0x0B),
    (0xEB, 0xE9),
];

/// Operands: both ends of the zero page, and words whose high byte is 0, small, and great.
const OPERANDS: [[u8; 2]; 6] = [[0x00, 0x00], [0x12, 0x00], [0xFF, 0x00], [0x34, 0x12], [0x00, 0xD0], [0xFF, 0xFF]];

#[test]
fn sixty_four_tass_makes_the_same_bytes_of_our_text() {
    let folder = tempfile::tempdir().unwrap();
    let (mut source, mut expected, mut at) = (".cpu \"6502i\"\n* = $1000\n".to_owned(), Vec::new(), 0x1000_u16);
    for opcode in 0..=255 {
        for [low, high] in OPERANDS {
            let bytes = [opcode, low, high];
            let one = decode(at, &bytes).unwrap();
            writeln!(source, " {}", one.text(|_| None)).unwrap();
            let mut bytes = bytes[..one.length().into()].to_vec();
            bytes[0] = OTHER_FORMS.iter().find(|(ours, _)| *ours == opcode).map_or(opcode, |(_, theirs)| *theirs);
            at += u16::from(one.length());
            expected.extend(bytes);
        }
    }
    let (text, binary) = (folder.path().join("all.asm"), folder.path().join("all.bin"));
    std::fs::write(&text, &source).unwrap();
    let mut command = Command::new("64tass");
    let output = command.args(["--nostart", "-o"]).arg(&binary).arg(&text).output();
    let output = output.unwrap_or_else(|error| panic!("64tass: {error}; `cargo xtask install` installs it"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let assembled = std::fs::read(&binary).unwrap();
    let differs = (0..expected.len().max(assembled.len())).find(|at| expected.get(*at) != assembled.get(*at));
    if let Some(differs) = differs {
        let near =
            |bytes: &[u8]| bytes.get(differs.saturating_sub(3)..(differs + 6).min(bytes.len())).map(<[u8]>::to_vec);
        panic!("at {differs}: ours {:02x?}, 64tass {:02x?}", near(&expected), near(&assembled));
    }
    // 256 codes with 6 operands each.
    assert_eq!(source.lines().count(), 2 + 256 * OPERANDS.len());
}
