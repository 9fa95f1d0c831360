//! The four code tables against the published mappings and against an independent codec.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use c64::charset::{Encoding, SOURCE_CONTROL, SOURCE_LAST, SOURCE_LOWER, SOURCE_UPPER};

fn hex(text: &str) -> u32 {
    u32::from_str_radix(text, 16).unwrap()
}

fn rows(text: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split(' ').collect())
}

#[test]
fn petscii_is_what_the_published_mappings_say() {
    let mut seen = 0;
    for row in rows(include_str!("petscii_facts.txt")) {
        let byte = u8::try_from(hex(row[0])).unwrap();
        for (encoding, code, source) in
            [(Encoding::PetsciiUpper, row[1], SOURCE_UPPER), (Encoding::PetsciiLower, row[2], SOURCE_LOWER)]
        {
            let entry = encoding.entry(byte);
            if byte == 0xff {
                // Here the mapping repeats $BF, and the machine and the guide $7E.
                assert_eq!((code, entry.source), ("259A", SOURCE_LAST));
                assert_eq!(entry.unicode, encoding.entry(0x7e).unicode);
                continue;
            }
            assert_eq!(entry.unicode.map(u32::from), Some(hex(code)), "{encoding:?} {byte:02X}");
            assert!(entry.printable && !entry.reverse_video && entry.byte == byte && entry.source == source);
        }
        seen += 1;
    }
    // All but the two ranges of control codes.
    assert_eq!(seen, 256 - 64);
    for byte in (0..0x20).chain(0x80..0xa0) {
        for encoding in [Encoding::PetsciiUpper, Encoding::PetsciiLower] {
            let entry = encoding.entry(byte);
            assert!(!entry.printable && entry.unicode.is_none() && entry.source == SOURCE_CONTROL);
        }
    }
}

/// Where the codec has a character of the Private Use Area, or the older of two candidates, and the mapping has one of the
/// block Symbols for Legacy Computing or another look-alike: screen code, the codec's character, ours, in the upper-case set.
const UPPER: &[(u8, u32, u32)] = &[
    (0x42, 0xf13c, 0x1fb72),
    (0x43, 0xf13b, 0x1fb78),
    (0x44, 0xf122, 0x1fb77),
    (0x45, 0xf123, 0x1fb76),
    (0x46, 0xf124, 0x1fb7a),
    (0x47, 0xf126, 0x1fb71),
    (0x48, 0xf128, 0x1fb74),
    (0x4c, 0xf12a, 0x1fb7c),
    (0x4f, 0xf12b, 0x1fb7d),
    (0x50, 0xf12c, 0x1fb7e),
    // Black circle; the mapping names the bullet first and the circle as its alternative.
    (0x51, 0x25cf, 0x2022),
    (0x52, 0xf125, 0x1fb7b),
    (0x54, 0xf127, 0x1fb70),
    (0x59, 0xf129, 0x1fb75),
    (0x5c, 0xf12e, 0x1fb8c),
    (0x68, 0xf12f, 0x1fb8f),
    (0x6a, 0xf130, 0x1fb87),
    (0x76, 0xf131, 0x1fb88),
    (0x77, 0xf132, 0x1fb82),
    (0x78, 0xf133, 0x1fb83),
    (0x7a, 0xf12d, 0x1fb7f),
];

/// The same in the lower-case set.
const LOWER: &[(u8, u32, u32)] = &[
    (0x5c, 0xf12e, 0x1fb8c),
    // Medium shade; the glyph is the inverse checker board, which the older code had no character for.
    (0x5e, 0x2592, 0x1fb96),
    (0x5f, 0xf139, 0x1fb98),
    (0x68, 0xf12f, 0x1fb8f),
    (0x69, 0xf13a, 0x1fb99),
    (0x6a, 0xf130, 0x1fb87),
    (0x76, 0xf131, 0x1fb88),
    (0x77, 0xf132, 0x1fb82),
    (0x78, 0xf133, 0x1fb83),
];

#[test]
fn the_codec_says_the_same_but_for_the_differences_listed() {
    let mut differences = [Vec::new(), Vec::new()];
    for row in rows(include_str!("cbmcodecs2_facts.txt")) {
        let byte = u8::try_from(hex(row[0])).unwrap();
        for (at, encoding) in Encoding::ALL.into_iter().enumerate() {
            let entry = encoding.entry(byte);
            // Its screen codes end before reverse video; ours repeat there.
            if encoding.is_screen_code() && byte >= 0x80 {
                assert_eq!(row[at + 1], "-");
                assert_eq!(entry.unicode, encoding.entry(byte - 0x80).unicode);
                continue;
            }
            if !entry.printable {
                continue;
            }
            let (theirs, ours) = (hex(row[at + 1]), u32::from(entry.unicode.unwrap()));
            if theirs != ours {
                let code = if encoding.is_screen_code() { byte } else { c64::charset::screen_code_of(byte).unwrap() };
                differences[at % 2].push((code, theirs, ours));
            }
        }
    }
    for (mut found, listed) in differences.into_iter().zip([UPPER, LOWER]) {
        found.sort_unstable();
        found.dedup();
        assert_eq!(found, listed);
    }
}

#[test]
fn the_lower_case_set_has_graphic_characters_where_ascii_has_signs() {
    for byte in [0x60, 0x7b, 0x7c, 0x7d, 0x7e, 0x7f, 0xc0, 0xdb, 0xdc, 0xdd, 0xde, 0xdf, 0xff] {
        let entry = Encoding::PetsciiLower.entry(byte);
        assert!(entry.glyph.is_none() && entry.name.starts_with("GRAPHIC_"), "{byte:02X}: {entry:?}");
    }
    for code in [0x40, 0x5b, 0x5c, 0x5d, 0x5e, 0x5f] {
        let entry = Encoding::ScreenCodeLower.entry(code);
        assert!(entry.glyph.is_none() && entry.name == format!("GRAPHIC_{code:02X}"), "{entry:?}");
        let reverse = Encoding::ScreenCodeLower.entry(code | 0x80);
        assert!(reverse.glyph.is_none() && reverse.name == format!("REVERSE_GRAPHIC_{code:02X}"), "{reverse:?}");
    }
}

#[test]
fn glyphs_are_the_characters_of_ordinary_text() {
    // 64 codes of letters, digits and signs, pi once in screen codes.
    let count =
        |encoding: Encoding, to: usize| encoding.table()[..to].iter().filter(|entry| entry.glyph.is_some()).count();
    assert_eq!(count(Encoding::ScreenCodeUpper, 128), 64 + 1);
    // 64, and 26 capital letters.
    assert_eq!(count(Encoding::ScreenCodeLower, 128), 64 + 26);
    // The same; pi at $7E, $DE and $FF.
    assert_eq!(count(Encoding::PetsciiUpper, 256), 64 + 3);
    // Capital letters at $61 and $C1.
    assert_eq!(count(Encoding::PetsciiLower, 256), 64 + 2 * 26);
}
