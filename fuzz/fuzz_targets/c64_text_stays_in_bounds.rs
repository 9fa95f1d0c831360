//! Any bytes, options and tokens as C64 text: refused, or a text within its caps whose records and matches agree with it.
#![no_main]

use base::limits;
use c64::charset::Encoding;
use c64::text::{Controls, Graphics, HighBit, Length, Options, Query, Search, Tokens, decode, search};
use libfuzzer_sys::fuzz_target;

type Input<'a> = (&'a [u8], [u8; 8], Vec<(u8, String)>, String);

fuzz_target!(|input: Input<'_>| {
    let (bytes, choices, tokens, query) = input;
    let [encoding, mode, number, high_bit, look, recursive, limit, stride] = choices;
    let keys: Vec<(String, String)> = tokens.into_iter().map(|(byte, text)| (byte.to_string(), text)).collect();
    let Ok(tokens) = Tokens::parse(keys.iter().map(|(key, text)| (key.as_str(), text.as_str()))) else { return };
    let options = Options {
        encoding: Encoding::ALL[usize::from(encoding) % 4],
        length: match mode % 3 {
            0 => Length::Fixed(usize::from(number)),
            1 => Length::Terminator(number),
            _ => Length::Prefix { size: number % 2 + 1, includes_self: number & 2 != 0 },
        },
        high_bit: [HighBit::Exact, HighBit::Strip, HighBit::AnnotateReverse][usize::from(high_bit) % 3],
        controls: [Controls::Names, Controls::Escaped, Controls::Unicode][usize::from(look) % 3],
        graphics: if look & 4 == 0 { Graphics::Names } else { Graphics::Unicode },
        tokens,
        recursive: recursive & 1 != 0,
        recursion_limit: usize::from(limit),
    };
    if let Ok(text) = decode(bytes, &options) {
        let chars = text.plain.chars().count() + text.lossless.chars().count();
        assert!(chars <= limits::MAX_C64_RENDERED_CHARS);
        let shown: String =
            text.records(0).filter(|record| record.included_in_text).map(|record| record.plain_fragment).collect();
        assert_eq!(shown, text.plain);
    }
    for query in [Query::Text(query.clone()), Query::Bytes(query.into_bytes())] {
        let wanted = Search { query, stride: usize::from(stride), max_results: 8 };
        if let Ok(found) = search(bytes, &options, &wanted) {
            assert!(found.matches.len() <= 8);
            for found in &found.matches {
                let again = decode(&bytes[found.offset..], &options).unwrap();
                assert_eq!(again.plain, found.decoded.plain);
                if let Query::Text(text) = &wanted.query {
                    assert_eq!(&again.plain, text);
                }
            }
        }
    }
});
