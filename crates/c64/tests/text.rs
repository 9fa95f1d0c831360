//! Text: where it ends, its two forms, tokens, and finding it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use base::limits;
use c64::Kind;
use c64::charset::Encoding;
use c64::text::{Controls, Decoded, Graphics, HighBit, Length, Options, Query, Search, Tokens, decode, search};
use proptest::prelude::*;

const PREFIX: Length = Length::Prefix { size: 1, includes_self: false };

fn options(length: Length) -> Options {
    Options::new(length)
}

fn refusal(source: &[u8], options: &Options) -> String {
    decode(source, options).unwrap_err().message
}

#[test]
fn a_fixed_length_takes_that_many_bytes() {
    let options = options(Length::Fixed(3));
    let text = decode(b"HE\x93\x00A", &options).unwrap();
    assert_eq!((text.plain.as_str(), text.lossless.as_str()), ("HE{CLR}", "{H:$48}{E:$45}{CLR:$93}"));
    assert_eq!((text.consumed, text.terminated), (b"HE\x93".as_slice(), false));
    assert_eq!(refusal(b"HE", &options), "fixed length 3 exceeds source boundary 2");
}

#[test]
fn a_terminator_is_consumed_but_not_shown() {
    let options = options(Length::Terminator(0));
    let text = decode(b"HI\0!", &options).unwrap();
    assert_eq!((text.plain.as_str(), text.consumed, text.terminated), ("HI", b"HI\0".as_slice(), true));
    let records: Vec<_> = text.records(0).collect();
    assert_eq!(records.iter().map(|record| record.included_in_text).collect::<Vec<_>>(), [true, true, false]);
    assert_eq!(records[2].lossless_fragment, "{CONTROL_00:$00}");
    let open = decode(b"HI", &options).unwrap();
    assert_eq!(open.plain, "HI");
    assert_eq!((open.terminated, open.warnings), (false, vec!["terminator 0x00 was not found".to_owned()]));
    assert_eq!(decode(b"", &options).unwrap().consumed, b"");
}

#[test]
fn a_prefix_counts_the_text_or_itself_too() {
    let decoded = |bytes: &[u8], size, includes_self| -> Result<(String, usize), String> {
        let options = options(Length::Prefix { size, includes_self });
        let text = decode(bytes, &options).map_err(|problem| problem.message)?;
        assert!(!text.terminated && text.warnings.is_empty());
        Ok((text.plain.clone(), text.consumed.len()))
    };
    assert_eq!(decoded(b"\x02HI!", 1, false), Ok(("HI".to_owned(), 3)));
    assert_eq!(decoded(b"\x03\x00HI", 2, true), Ok(("H".to_owned(), 3)));
    assert_eq!(decoded(b"\x01HI", 1, true), Ok((String::new(), 1)));
    assert_eq!(decoded(b"\x05H", 1, false).unwrap_err(), "length prefix declares 6 bytes beyond source boundary 2");
    assert_eq!(decoded(b"\x01", 2, false).unwrap_err(), "source boundary 1 is shorter than prefix size 2");
    assert_eq!(decoded(b"\x00H", 1, true).unwrap_err(), "declared length 0 is smaller than prefix size 1");
}

#[test]
fn exactly_one_length_mode_is_needed() {
    assert_eq!(Length::of(Some(1), None, None, false), Ok(Length::Fixed(1)));
    assert_eq!(Length::of(Some(2), None, None, false), Ok(Length::Fixed(2)));
    assert_eq!(Length::of(None, Some(255), None, true), Ok(Length::Terminator(255)));
    assert_eq!(Length::of(None, None, Some(2), true), Ok(Length::Prefix { size: 2, includes_self: true }));
    for (length, terminator, prefix, words) in [
        (None, None, None, "exactly one length mode"),
        (Some(1), Some(0), None, "exactly one length mode"),
        (Some(0), None, None, "must be positive"),
        (Some(-1), None, None, "must be positive"),
        (None, Some(256), None, "0 to 255"),
        (None, None, Some(3), "1 or 2"),
    ] {
        let problem = Length::of(length, terminator, prefix, false).unwrap_err();
        assert!(problem.message.contains(words) && problem.kind == Kind::Option, "{problem}");
    }
}

#[test]
fn bit_7_is_kept_removed_or_reverse_video() {
    let forms = |bytes: &[u8], encoding, high_bit| {
        let mut options = options(Length::Fixed(bytes.len()));
        (options.encoding, options.high_bit) = (encoding, high_bit);
        let text = decode(bytes, &options).unwrap();
        (text.plain, text.lossless)
    };
    let own = |plain: &str, lossless: &str| (plain.to_owned(), lossless.to_owned());
    let screen = Encoding::ScreenCodeUpper;
    assert_eq!(
        forms(&[0x81, 0xe0], screen, HighBit::Exact),
        own("A{REVERSE_GRAPHIC_60}", "{REV A:$81}{REV REVERSE_GRAPHIC_60:$E0}")
    );
    assert_eq!(forms(&[0x81, 0xe0], screen, HighBit::Strip), own("A{GRAPHIC_60}", "{A:$81}{GRAPHIC_60:$E0}"));
    assert_eq!(forms(&[0x81, 0x01], screen, HighBit::AnnotateReverse), own("AA", "{REV A:$81}{A:$01}"));
    // Reverse video begins with bit 7 alone, screen code 0 (`@`), and 7f is the last one without.
    assert_eq!(forms(&[0x80, 0x3f], screen, HighBit::AnnotateReverse), own("@?", "{REV @:$80}{?:$3F}"));
    assert_eq!(forms(&[0x80, 0x3f], screen, HighBit::Exact), own("@?", "{REV @:$80}{?:$3F}"));
    assert!(
        !Encoding::ScreenCodeUpper.entry(0x7f).reverse_video && Encoding::ScreenCodeUpper.entry(0x80).reverse_video
    );
    assert_eq!(forms(&[0xc1, 0xa0], Encoding::PetsciiUpper, HighBit::Strip), own("A ", "{A:$C1}{ :$A0}"));
    let mut petscii = options(Length::Fixed(1));
    petscii.high_bit = HighBit::AnnotateReverse;
    assert_eq!(refusal(b"A", &petscii), "annotate_reverse is valid only for screen-code encodings");
}

#[test]
fn controls_and_graphics_are_shown_as_asked() {
    let plain = |controls, graphics| {
        let mut options = options(Length::Fixed(4));
        (options.controls, options.graphics) = (controls, graphics);
        decode(b"A\x93\x1ca", &options).unwrap().plain
    };
    assert_eq!(plain(Controls::Names, Graphics::Names), "A{CLR}{RED}{GRAPHIC_41}");
    assert_eq!(plain(Controls::Escaped, Graphics::Names), "A\\x93\\x1c{GRAPHIC_41}");
    assert_eq!(plain(Controls::Unicode, Graphics::Names), "A{CLR}{RED}{GRAPHIC_41}");
    assert_eq!(plain(Controls::Names, Graphics::Unicode), "A{CLR}{RED}\u{2660}");
}

#[test]
fn tokens_belong_to_the_byte_as_it_is_and_to_plain_text_only() {
    let mut options = options(Length::Fixed(2));
    options.encoding = Encoding::ScreenCodeUpper;
    options.high_bit = HighBit::AnnotateReverse;
    options.tokens = Tokens::parse([("5", "five"), ("133", "rev{05}")]).unwrap();
    let text = decode(&[0x85, 0x01], &options).unwrap();
    assert_eq!((text.plain.as_str(), text.lossless.as_str()), ("rev{05}A", "{REV E:$85}{A:$01}"));
    let first = text.records(0).next().unwrap();
    assert!(first.token_expanded && first.plain_fragment == "rev{05}" && first.selected_byte == 5);
    options.recursive = true;
    assert_eq!(decode(&[0x85, 0x01], &options).unwrap().plain, "revfiveA");
}

#[test]
fn what_would_be_too_long_is_refused_and_not_cut() {
    // Ten tokens of two references each: 2^10 times 8,192 characters are twice what is allowed.
    let entries: Vec<(String, String)> = (0..10)
        .map(|at| (at.to_string(), format!("{{{:02X}}}{{{:02X}}}", at + 1, at + 1)))
        .chain([("10".to_owned(), "x".repeat(8_192))])
        .collect();
    let mut options = options(Length::Fixed(1));
    options.tokens = Tokens::parse(entries.iter().map(|(key, text)| (key.as_str(), text.as_str()))).unwrap();
    options.recursive = true;
    options.recursion_limit = 256;
    let problem = decode(&[0], &options).unwrap_err();
    assert_eq!(problem.kind, Kind::TooLarge);
    assert_eq!(problem.message, "rendered output exceeds 4194304 characters");
    // One half of it is just too long as well, together with its lossless form; a quarter is not.
    assert!(decode(&[1], &options).is_err());
    assert_eq!(decode(&[2], &options).unwrap().plain.len(), 256 * 8_192);
    // A terminator is not rendered, so a token on it harms nobody.
    options.length = Length::Terminator(0);
    let text = decode(&[2, 0], &options).unwrap();
    let last = text.records(1).next().unwrap();
    assert_eq!((last.plain_fragment.as_str(), last.token_expanded), ("{CONTROL_00}", false));
    assert!(decode(&vec![0; limits::MAX_C64_TEXT_BYTES + 1], &options).is_err());
    assert!(decode(&vec![0; limits::MAX_C64_TEXT_BYTES], &options).is_ok());
}

#[test]
fn a_cycle_is_an_error_where_it_is_used() {
    let mut options = options(Length::Fixed(1));
    options.tokens = Tokens::parse([("0x41", "x{42}"), ("0x42", "y{41}")]).unwrap();
    options.recursive = true;
    assert_eq!(refusal(b"A", &options), "recursive token cycle: 0x41 -> 0x42 -> 0x41");
    assert_eq!(decode(b"C", &options).unwrap().plain, "C");
    for limit in [0, 257] {
        options.recursion_limit = limit;
        assert_eq!(refusal(b"C", &options), "token_recursion_limit must be from 1 to 256");
    }
}

fn found(
    memory: &[u8],
    options: &Options,
    query: Query,
    stride: usize,
    max_results: usize,
) -> (Vec<usize>, bool, usize) {
    let found = search(memory, options, &Search { query, stride, max_results }).unwrap();
    let offsets = found.matches.iter().map(|found| found.offset).collect();
    (offsets, found.result_limit_reached, found.invalid_candidates)
}

#[test]
fn a_search_says_how_it_ended() {
    let text = |text: &str| Query::Text(text.to_owned());
    let memory = b"HELLO WORLD\0HELLO";
    // The last four places have no room for five bytes.
    assert_eq!(found(memory, &options(Length::Fixed(5)), text("HELLO"), 1, 9), (vec![0, 12], false, 4));
    assert_eq!(found(memory, &options(Length::Fixed(5)), text("HELLO"), 1, 2), (vec![0, 12], true, 0));
    assert_eq!(found(memory, &options(Length::Fixed(5)), text("HELLO"), 5, 9), (vec![0], false, 1));
    // The last byte of all is a character too: 255 is 126, pi.
    assert_eq!(found(b"A\xffB", &options(Length::Fixed(2)), text("\u{3C0}B"), 1, 9), (vec![1], false, 1));
    assert_eq!(found(memory, &options(Length::Terminator(0)), text("WORLD"), 1, 9), (vec![6], false, 0));
    // The text that has no terminator is one too.
    assert_eq!(found(memory, &options(Length::Terminator(0)), text("HELLO"), 1, 9), (vec![12], false, 0));
    assert_eq!(found(b"\x02HI", &options(PREFIX), text("HI"), 1, 9), (vec![0], false, 2));
    assert_eq!(found(memory, &options(Length::Fixed(2)), Query::Bytes(b"LO".to_vec()), 1, 9), (vec![3, 15], false, 0));
    assert_eq!(found(memory, &options(Length::Fixed(2)), Query::Bytes(b"LO".to_vec()), 1, 1), (vec![3], true, 0));
}

#[test]
fn a_search_that_cannot_be_made_is_refused() {
    let refused = |query: Query, stride, max_results| {
        let options = options(Length::Fixed(1));
        search(b"A", &options, &Search { query, stride, max_results }).unwrap_err().message
    };
    let text = |text: &str| Query::Text(text.to_owned());
    assert_eq!(refused(text(""), 1, 1), "text query must be a non-empty string");
    assert_eq!(refused(Query::Bytes(vec![]), 1, 1), "byte query must not be empty");
    assert_eq!(refused(text("A"), 0, 1), "stride must be a positive integer");
    assert_eq!(refused(text("A"), 1, 0), "max_results must be a positive integer");
    assert_eq!(refused(text("A"), 1, 1_001), "max_results must not exceed 1000");
    assert!(refused(text(&"A".repeat(4_097)), 1, 1).contains("at most 4096"));
    let longest = Search { query: text(&"A".repeat(4_096)), stride: 1, max_results: 1_000 };
    assert!(search(b"A", &options(Length::Fixed(1)), &longest).unwrap().matches.is_empty());
}

/// The bytes that a lossless text names: what stands between `:$` and `}` of each fragment.
fn bytes_of_lossless(mut text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    while !text.is_empty() {
        // A label has at least one character, which may itself be a colon, dollar or brace.
        let label = 1 + text[1..].chars().next().unwrap().len_utf8();
        let mark = label + text[label..].find(":$").unwrap();
        bytes.push(u8::from_str_radix(&text[mark + 2..mark + 4], 16).unwrap());
        assert_eq!(&text[mark + 4..=mark + 4], "}");
        text = &text[mark + 5..];
    }
    bytes
}

fn any_encoding() -> impl Strategy<Value = Encoding> {
    prop::sample::select(Encoding::ALL.to_vec())
}

fn any_length() -> impl Strategy<Value = Length> {
    prop_oneof![
        (1_usize..6).prop_map(Length::Fixed),
        (0_u8..4).prop_map(Length::Terminator),
        (1_u8..=2, any::<bool>()).prop_map(|(size, includes_self)| Length::Prefix { size, includes_self }),
    ]
}

fn any_tokens() -> impl Strategy<Value = Tokens> {
    // Few bytes and short texts, some empty, some of references: so that they meet.
    prop::collection::btree_map(0_u8..6, "(|[AB]|\\{0[0-5]\\}){0,3}", 0..4).prop_map(|map| {
        let entries: Vec<(String, String)> = map.into_iter().map(|(key, text)| (key.to_string(), text)).collect();
        Tokens::parse(entries.iter().map(|(key, text)| (key.as_str(), text.as_str()))).unwrap()
    })
}

prop_compose! {
    fn any_options()(
        encoding in any_encoding(),
        length in any_length(),
        high_bit in prop::sample::select(vec![HighBit::Exact, HighBit::Strip, HighBit::AnnotateReverse]),
        controls in prop::sample::select(vec![Controls::Names, Controls::Escaped, Controls::Unicode]),
        graphics in prop::sample::select(vec![Graphics::Names, Graphics::Unicode]),
        tokens in any_tokens(),
        recursive in any::<bool>(),
        recursion_limit in 1_usize..4,
    ) -> Options {
        let high_bit = if encoding.is_screen_code() { high_bit } else { HighBit::Exact };
        Options { encoding, length, high_bit, controls, graphics, tokens, recursive, recursion_limit }
    }
}

/// Finds by decoding every candidate.
fn naive(memory: &[u8], options: &Options, query: &str, stride: usize) -> Option<(Vec<usize>, usize)> {
    let (mut places, mut invalid) = (Vec::new(), 0);
    for at in (0..memory.len()).step_by(stride) {
        match decode(&memory[at..], options) {
            Ok(Decoded { plain, .. }) if plain == query => places.push(at),
            Ok(_) => {}
            Err(problem) if problem.kind == Kind::Data => invalid += 1,
            // A token that cannot be expanded.
            Err(_) => return None,
        }
    }
    Some((places, invalid))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn lossless_text_names_every_byte(bytes in prop::collection::vec(any::<u8>(), 1..80), options in any_options()) {
        let options = Options { length: Length::Fixed(bytes.len()), tokens: Tokens::default(), ..options };
        let text = decode(&bytes, &options).unwrap();
        prop_assert_eq!(bytes_of_lossless(&text.lossless), bytes.clone());
        let records: Vec<_> = text.records(0).collect();
        prop_assert_eq!(records.iter().map(|record| record.plain_fragment.as_str()).collect::<String>(), text.plain);
        prop_assert_eq!(records.iter().map(|record| record.original_byte).collect::<Vec<_>>(), bytes);
    }

    #[test]
    fn search_finds_what_a_naive_search_finds(
        memory in prop::collection::vec(0_u8..8, 0..40),
        options in any_options(),
        query in prop_oneof!["[AB]{1,3}", "[@A-G]{1,3}"],
        stride in 1_usize..4,
    ) {
        if let Some(expected) = naive(&memory, &options, &query, stride) {
            // A token that only a prefix or terminator names is no error to the naive search.
            if let Ok(found) = search(&memory, &options, &Search { query: Query::Text(query), stride, max_results: 1_000 }) {
                let places: Vec<usize> = found.matches.iter().map(|found| found.offset).collect();
                prop_assert_eq!((places, found.invalid_candidates), expected);
            }
        }
    }

    #[test]
    fn search_finds_the_bytes_that_are_there(memory in prop::collection::vec(0_u8..3, 0..40), needle in prop::collection::vec(0_u8..3, 1..4)) {
        let expected: Vec<usize> =
            (0..memory.len()).filter(|at| memory[*at..].starts_with(&needle)).collect();
        let options = options(Length::Fixed(needle.len()));
        prop_assert_eq!(found(&memory, &options, Query::Bytes(needle), 1, 1_000), (expected, false, 0));
    }
}
