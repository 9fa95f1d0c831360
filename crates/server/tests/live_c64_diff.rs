//! The same calls on our C64 tools and on those of c64-mcp 0.100.0, both against the stand-in of Ghidra. Results must be equal
//! but for what is listed here: its wrong lower-case tables, and what we added.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

mod support;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Command;
use support::fake_ghidra::FakeGhidra;
use support::stdio_client::StdioClient;

const ERA: &str = "2025-06-18";

fn python() -> PathBuf {
    std::env::var_os("RETROSCOPE_C64_PYTHON").expect("RETROSCOPE_C64_PYTHON names a Python with c64-mcp").into()
}

/// Which differences a call may have, apart from the additions that any call may have.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Except {
    /// None.
    Nothing,
    /// The bytes that the peer's lower-case tables have as ASCII signs: its records of them, and both texts.
    LowerCase,
    /// Texts of the profile, which are in our words, with our citations.
    Wording,
    /// The peer takes it and we refuse: a file outside the workspace.
    Workspace,
    /// The peer takes it and we refuse: a name that is not in the contract.
    UnknownArgument,
}

type Call = (&'static str, Value, Except);

const ENCODINGS: [&str; 4] = ["petscii_upper", "petscii_lower", "screen_code_upper", "screen_code_lower"];

/// The bytes in which the peer's tables are wrong.
fn wrong_in_peer(encoding: &str, byte: u64) -> bool {
    match encoding {
        "petscii_lower" => matches!(byte, 0x60 | 0x7b..=0x7f | 0xc0 | 0xdb..=0xdf | 0xff),
        "screen_code_lower" => matches!(byte & 0x7f, 0x40 | 0x5b..=0x5f),
        _ => false,
    }
}

/// `base` and more arguments.
fn with(base: &Value, more: Value) -> Value {
    let mut arguments = base.clone();
    arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    arguments
}

/// Bytes that follow from their place and a seed.
fn bytes(seed: usize, length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 37 + at / 251 * 11 + seed * 101) as u8).collect()
}

fn inline(seed: usize, length: usize) -> Value {
    json!({"kind": "inline", "bytes": bytes(seed, length)})
}

fn memory(start: &str) -> Value {
    json!({"kind": "ghidra", "program": "full64.bin", "start": start})
}

fn text_calls() -> Vec<Call> {
    let mut calls = Vec::new();
    let all: Vec<u8> = (0..=255).collect();
    for encoding in ENCODINGS {
        let lower = if encoding.ends_with("lower") { Except::LowerCase } else { Except::Nothing };
        for controls in ["names", "escaped", "unicode"] {
            for high_bit in ["exact", "strip", "annotate_reverse"] {
                let arguments = json!({"bytes": all, "length": 256, "encoding": encoding, "controls": controls, "high_bit": high_bit});
                calls.push(("decode_c64_text", arguments, lower));
            }
        }
    }
    let hello = json!({"bytes": "48 45 4c4c 4f 00 41"});
    let tokens = json!({"72": "x{45}", "0x45": "y{4c}", "76": "z"});
    for more in [
        json!({"length": 5}),
        json!({"length": 8}),
        json!({"length": 0}),
        json!({"length": -1}),
        json!({}),
        json!({"terminator": 0}),
        json!({"terminator": 0x41}),
        json!({"terminator": 0x42}),
        json!({"terminator": 256}),
        json!({"terminator": 0, "length": 1}),
        json!({"prefix_size": 1}),
        json!({"prefix_size": 3}),
        json!({"bytes": "024849", "prefix_size": 1}),
        json!({"bytes": "0348494a", "prefix_size": 1, "prefix_includes_self": true}),
        json!({"bytes": "0348", "prefix_size": 1, "prefix_includes_self": true}),
        json!({"bytes": "0048", "prefix_size": 1, "prefix_includes_self": true}),
        json!({"bytes": "03004849", "prefix_size": 2, "prefix_includes_self": true}),
        json!({"bytes": "01", "prefix_size": 2}),
        json!({"bytes": "", "terminator": 0}),
        json!({"bytes": [], "length": 1}),
        json!({"bytes": "484", "length": 1}),
        json!({"bytes": "0x48", "length": 1}),
        json!({"bytes": "zz", "length": 1}),
        json!({"bytes": [256], "length": 1}),
        json!({"bytes": [-1], "length": 1}),
        json!({"length": 5, "prefix_includes_self": true}),
        json!({"length": 5, "tokens": tokens}),
        json!({"length": 5, "tokens": tokens, "recursive_tokens": true}),
        json!({"length": 5, "tokens": tokens, "recursive_tokens": true, "token_recursion_limit": 2}),
        json!({"length": 5, "tokens": tokens, "recursive_tokens": true, "token_recursion_limit": 1}),
        json!({"length": 5, "tokens": tokens, "recursive_tokens": true, "token_recursion_limit": 0}),
        json!({"length": 5, "tokens": tokens, "token_recursion_limit": 257}),
        json!({"length": 5, "tokens": {"72": "{45}", "69": "{48}"}, "recursive_tokens": true}),
        json!({"length": 5, "tokens": {"65": "{41}"}, "recursive_tokens": true}),
        json!({"terminator": 0x4c, "tokens": {"76": "end", "0x0": "zero"}}),
        json!({"length": 5, "tokens": {"0x48": ""}}),
        json!({"length": 5, "tokens": {"0x48": "{4G}{100}{4c}{4C}{", "76": "l"}, "recursive_tokens": true}),
        json!({"length": 5, "tokens": {"x": "y"}}),
        json!({"length": 5, "tokens": {"300": "y"}}),
        json!({"length": 5, "tokens": {"072": "y"}}),
        json!({"length": 5, "tokens": {"0x048": "y"}}),
        json!({"length": 5, "tokens": {"72": "a", "0x48": "b"}}),
        json!({"length": 1, "tokens": {"72": "x".repeat(4_194_297)}}),
        json!({"length": 1, "tokens": {"72": "x".repeat(4_194_298)}}),
        json!({"length": 5, "high_bit": "annotate_reverse"}),
        json!({"length": 5, "encoding": "ascii"}),
        json!({"length": 5, "program": "full64.bin"}),
        json!({"length": 5, "max_length": 5}),
    ] {
        calls.push(("decode_c64_text", with(&hello, more), Except::Nothing));
    }
    let ghidra = json!({"program": "full64.bin", "start": "RAM:0840", "max_length": 20});
    for more in [
        json!({"terminator": 0}),
        json!({"length": 5}),
        json!({"start": "0x840", "length": 5}),
        json!({"start": "fffe", "length": 2}),
        json!({"start": "zz", "length": 2}),
        json!({"program": "nope", "length": 2}),
        json!({"program": "game.bin", "start": "083e", "max_length": 64, "terminator": 0}),
        json!({"max_length": 0, "length": 5}),
        json!({"max_length": 1_048_577, "length": 5}),
        json!({"program": " ", "length": 5}),
    ] {
        calls.push(("decode_c64_text", with(&ghidra, more), Except::Nothing));
    }
    calls.push(("decode_c64_text", json!({"bytes": "41", "length": 1, "colour": 1}), Except::UnknownArgument));
    calls
}

fn search_calls() -> Vec<Call> {
    let base = json!({"program": "full64.bin", "start": "RAM:0800", "end": "RAM:08ff", "query": "HELLO", "length": 5});
    let bare = json!({"program": "full64.bin", "start": "0800", "end": "08ff"});
    let mut calls: Vec<Call> = [
        json!({}),
        json!({"query": "WORLD", "stride": 2}),
        json!({"query": "WORLD", "stride": 3}),
        json!({"query": "L", "length": 1}),
        json!({"query": "L", "length": 1, "max_results": 1}),
        json!({"query": "L", "length": 1, "max_results": 3}),
        json!({"query": "L", "length": 1, "max_results": 4}),
        json!({"max_scan_bytes": 64}),
        json!({"max_scan_bytes": 69}),
        json!({"end": "RAM:0843"}),
        json!({"end": "RAM:0844"}),
        json!({"start": "RAM:0840", "end": "RAM:0840"}),
        json!({"end": "RAM:0700"}),
        json!({"end": "08ff"}),
        json!({"start": "RAM:zz"}),
        json!({"start": ""}),
        json!({"query": ""}),
        json!({"query": [72]}),
        json!({"stride": 0}),
        json!({"max_results": 0}),
        json!({"max_results": 1_001}),
        json!({"max_scan_bytes": 0}),
        json!({"max_scan_bytes": 1_048_577}),
        json!({"program": ""}),
        json!({"program": "nope"}),
        json!({"query": "hello", "encoding": "petscii_lower"}),
        json!({"query": "xELLO", "tokens": {"72": "x"}}),
        json!({"query": "{CONTROL_00}", "length": 1, "max_results": 3}),
        json!({"query": "\\x00", "controls": "escaped", "length": 1, "max_results": 3}),
        json!({"start": "RAM:fffe", "end": "RAM:10010"}),
    ]
    .into_iter()
    .map(|more| ("search_c64_text", with(&base, more), Except::Nothing))
    .collect();
    calls.extend(
        [
            json!({"query": "HELLO WORLD", "terminator": 0}),
            json!({"query": "WORLD", "terminator": 0}),
            json!({"query": "HELL", "terminator": 0x4f}),
            json!({"query": "LD", "terminator": 0xff, "end": "084a"}),
            json!({"query": "ELLO", "prefix_size": 1}),
            json!({"query": "E", "prefix_size": 2, "prefix_includes_self": true}),
            json!({"query": "484c", "query_mode": "bytes"}),
            json!({"query": "4c", "query_mode": "bytes"}),
            json!({"query": [0x4c, 0x4c], "query_mode": "bytes", "stride": 2}),
            json!({"query": "4c", "query_mode": "bytes", "max_results": 2, "terminator": 0, "length": 9}),
            json!({"query": "4", "query_mode": "bytes"}),
            json!({"query": [], "query_mode": "bytes"}),
            json!({"query": [256], "query_mode": "bytes"}),
            json!({"query": "HELLO"}),
            json!({"query": "HELLO", "query_mode": "regex", "length": 5}),
            json!({"start": "0x0800", "query": "4c", "query_mode": "bytes"}),
            json!({"start": "RAM:0x0800", "end": "RAM:08ff", "query": "4c", "query_mode": "bytes"}),
            json!({"end": "RAM:08ff", "query": "4c", "query_mode": "bytes"}),
            json!({"start": "0X08A0", "end": "0x08AF", "query": "00", "query_mode": "bytes", "max_results": 2}),
        ]
        .into_iter()
        .map(|more| ("search_c64_text", with(&bare, more), Except::Nothing)),
    );
    calls
}

fn symbol_and_define_calls() -> Vec<Call> {
    let define = json!({"program": "full64.bin", "start": "RAM:0840"});
    let mut calls = vec![("get_c64_symbol_profile", json!({}), Except::Wording)];
    for more in [
        json!({}),
        json!({"conflict_policy": "keep", "replace_user_definitions": true, "create_memory_blocks": true}),
        json!({"dry_run": false}),
    ] {
        calls.push(("apply_c64_symbol_profile", with(&json!({"program": "full64.bin"}), more), Except::Wording));
    }
    for arguments in [
        json!({"program": "game.bin"}),
        json!({"program": "nope"}),
        json!({"program": " "}),
        json!({}),
        json!({"program": "full64.bin", "conflict_policy": "x"}),
    ] {
        calls.push(("apply_c64_symbol_profile", arguments, Except::Nothing));
    }
    for more in [
        json!({"length": 5}),
        json!({"length": 5, "max_length": 20, "label": "msg", "namespace": "C64", "comment": "hi"}),
        json!({"length": 5, "max_length": 3}),
        json!({"terminator": 0}),
        json!({"terminator": 0, "max_length": 20}),
        json!({"terminator": 0, "max_length": 2, "dry_run": false}),
        json!({"terminator": 0x48, "max_length": 4}),
        json!({"prefix_size": 1, "max_length": 100}),
        json!({"length": 5, "start": "0x0840", "namespace": "x"}),
        json!({"length": 5, "label": ""}),
        json!({"length": 5, "program": ""}),
        json!({"length": 5, "start": "zz"}),
        json!({"length": 5, "max_length": 1_048_577}),
        json!({}),
    ] {
        calls.push(("define_c64_text", with(&define, more), Except::Nothing));
    }
    calls
}

fn graphics_calls() -> Vec<Call> {
    const HIRES: &str = "decode_c64_hires_bitmap";
    const MULTI: &str = "decode_c64_multicolor_bitmap";
    const CHARSET: &str = "decode_c64_charset";
    const SCREEN: &str = "decode_c64_char_screen";
    const SPRITES: &str = "decode_c64_sprites";
    let hires = json!({"bitmap": inline(1, 8_000), "screen": inline(2, 1_000)});
    let small = json!({"bitmap": inline(1, 10), "screen": inline(2, 3), "columns": 1, "rows": 1});
    let multi = json!({"bitmap": inline(3, 8_000), "screen": inline(4, 1_000), "color": inline(5, 1_000)});
    let charset = json!({"charset": inline(6, 2_048)});
    let screen = json!({"screen": inline(7, 1_000), "charset": inline(8, 2_048)});
    let sprites = json!({"sprites": inline(9, 127), "sprite_count": 2, "sprite_colors": [1, 2]});
    let more_colors = json!({"multicolor": true, "background_1": 2, "background_2": 3});
    let mut calls = Vec::new();
    let mut add = |tool: &'static str, base: &Value, more: Value| calls.push((tool, with(base, more), Except::Nothing));
    for more in [
        json!({}),
        json!({"columns": 3, "rows": 2}),
        json!({"columns": 64, "rows": 2}),
        json!({"columns": 1, "rows": 64}),
    ] {
        add(HIRES, &hires, more.clone());
        add(MULTI, &multi, with(&more, json!({"background": 6})));
        add(SCREEN, &screen, more);
    }
    for more in [
        json!({"palette": ["#ff0000", [1, 2, 3]]}),
        json!({"palette": vec!["00ff00"; 256]}),
        json!({"palette": vec!["00ff00"; 257]}),
        json!({"palette": []}),
        json!({"palette": ["#00000"]}),
        json!({"palette": [[1, 2]]}),
        json!({"palette": [[1, 2, 300]]}),
        json!({"palette": [5]}),
        json!({"columns": 65}),
        json!({"rows": 0}),
        json!({"columns": 64, "rows": 33}),
        json!({"columns": 2}),
        json!({"bitmap": {"kind": "inline", "bytes": "00ff00ff00ff00ff"}}),
        json!({"bitmap": {"kind": "inline", "bytes": "00f"}}),
        json!({"bitmap": {"kind": "inline", "bytes": "0x00"}}),
        json!({"bitmap": {"kind": "inline", "bytes": [300]}}),
        json!({"bitmap": {"kind": "inline", "bytes": 5}}),
        json!({"bitmap": {"kind": "inline"}}),
        json!({"bitmap": {"kind": "inline", "bytes": "00", "x": 1}}),
        json!({"bitmap": {"kind": "disk"}}),
        json!({"bitmap": {}}),
        json!({"bitmap": inline(0, 65_537)}),
        json!({"bitmap": memory("RAM:2000")}),
        json!({"bitmap": memory("RAM:fffc")}),
        json!({"bitmap": memory("zz")}),
        json!({"bitmap": {"kind": "ghidra", "program": "full64.bin"}}),
        json!({"bitmap": {"kind": "ghidra", "start": "0"}}),
        json!({"bitmap": {"kind": "vice", "start": 0}}),
        json!({"bitmap": {"kind": "vice", "bank_id": 0, "start": 65_536}}),
        json!({"bitmap": {"kind": "vice", "bank_id": 0, "start": 65_535}}),
        json!({"bitmap": {"kind": "vice", "bank_id": 0, "start": 0}}),
        json!({"output_path": " "}),
        json!({"output_path": "/nowhere/at/all.png"}),
        json!({"allow_non_atomic_vice_reads": true}),
    ] {
        add(HIRES, &small, more);
    }
    for more in [
        json!({"background": 15}),
        json!({"background": 16}),
        json!({"color": inline(5, 999)}),
        json!({"bitmap": memory("2000"), "screen": memory("0400"), "color": memory("0xd800")}),
    ] {
        add(MULTI, &multi, more);
    }
    for more in [
        json!({}),
        json!({"glyph_count": 3, "sheet_columns": 2, "foreground": 7, "background": 5}),
        json!({"glyph_count": 1, "sheet_columns": 64}),
        json!({"glyph_count": 256, "sheet_columns": 1}),
        with(&more_colors, json!({"foreground": 13})),
        with(&more_colors, json!({"foreground": 5, "glyph_count": 9, "sheet_columns": 4})),
        with(&more_colors, json!({"palette": ["#000000", "#ffffff"]})),
        json!({"multicolor": true, "background_1": 2}),
        json!({"background_1": 99}),
        json!({"glyph_count": 257}),
        json!({"glyph_count": 0}),
        json!({"sheet_columns": 65}),
        json!({"foreground": 16}),
        json!({"charset": memory("0800")}),
        json!({"charset": inline(6, 2_047)}),
    ] {
        add(CHARSET, &charset, more);
    }
    for more in [
        json!({"foreground": 14, "background": 6}),
        json!({"color": inline(10, 1_000)}),
        with(&more_colors, json!({"color": inline(10, 1_000)})),
        with(&more_colors, json!({"color": inline(10, 1_000), "background": 11, "columns": 20, "rows": 50})),
        more_colors.clone(),
        json!({"color": inline(10, 999)}),
        json!({"charset": inline(8, 2_040)}),
        json!({"screen": {"kind": "inline", "bytes": [0, 3, 1, 2]}, "charset": inline(8, 32), "columns": 2, "rows": 2}),
        json!({"screen": {"kind": "inline", "bytes": [0, 3, 1, 2]}, "charset": inline(8, 31), "columns": 2, "rows": 2}),
        json!({"screen": memory("0400"), "charset": memory("0810")}),
        json!({"background": -1}),
    ] {
        add(SCREEN, &screen, more);
    }
    let shared = json!({"multicolor": true, "multicolor_0": 3, "multicolor_1": 4});
    for more in [
        json!({}),
        json!({"sheet_columns": 1}),
        json!({"sheet_columns": 64, "background": 9}),
        json!({"sprites": inline(9, 126), "sprite_stride": 63}),
        json!({"sprites": inline(9, 126)}),
        json!({"sprites": inline(9, 200)}),
        shared.clone(),
        with(&shared, json!({"sheet_columns": 1, "background": 6})),
        json!({"multicolor": true, "multicolor_0": 3}),
        json!({"multicolor_0": 77}),
        json!({"sprite_colors": [1]}),
        json!({"sprite_colors": [1, 16]}),
        json!({"sprite_stride": 65}),
        json!({"sprite_count": 0, "sprite_colors": []}),
        json!({"sprite_count": 257, "sprite_colors": vec![1; 257]}),
        json!({"sprites": inline(9, 16_383), "sprite_count": 256, "sprite_colors": vec![7; 256]}),
        json!({"sprites": memory("0800")}),
    ] {
        add(SPRITES, &sprites, more);
    }
    let outside = std::env::temp_dir().join(format!("../proc/self/{}.png", std::process::id()));
    calls.push((HIRES, with(&small, json!({"output_path": outside.display().to_string()})), Except::Nothing));
    calls.push((
        HIRES,
        with(&small, json!({"output_path": std::env::current_exe().unwrap(), "overwrite": false})),
        Except::Nothing,
    ));
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("c64-diff.png");
    calls.push((HIRES, with(&small, json!({"output_path": target, "overwrite": true})), Except::Workspace));
    calls
}

/// The header, the palette and the colour indices of a PNG.
fn png(result: &Value) -> Option<(Vec<u8>, Vec<u8>, Vec<u8>)> {
    let file = STANDARD.decode(result["content"][0]["data"].as_str()?).unwrap();
    let header = file[16..29].to_vec();
    let mut decoder = png::Decoder::new(std::io::Cursor::new(file));
    decoder.set_transformations(png::Transformations::IDENTITY);
    let mut reader = decoder.read_info().unwrap();
    let palette = reader.info().palette.clone().unwrap().into_owned();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    reader.next_frame(&mut pixels).unwrap();
    Some((header, palette, pixels))
}

/// The result's JSON.
fn data(result: &Value) -> Value {
    let texts = result["content"].as_array().unwrap();
    let text = texts.iter().find_map(|content| content["text"].as_str()).unwrap();
    serde_json::from_str(text).unwrap_or(Value::Null)
}

/// Takes away what may differ in `value`, which came from a call of `arguments`.
fn forgive(value: &mut Value, arguments: &Value, except: Except) {
    let encoding = arguments["encoding"].as_str().unwrap_or("petscii_upper");
    match value {
        Value::Array(list) => list.iter_mut().for_each(|entry| forgive(entry, arguments, except)),
        Value::Object(map) => {
            if map.contains_key("selected_byte") {
                // Our addition.
                map.remove("unicode");
                let selected = map["selected_byte"].as_u64().unwrap();
                if except == Except::LowerCase && wrong_in_peer(encoding, selected) {
                    for field in ["glyph", "name", "plain_fragment", "lossless_fragment"] {
                        map.remove(field);
                    }
                }
            }
            if except == Except::LowerCase && map.contains_key("plain_text") {
                map.remove("plain_text");
                map.remove("lossless");
            }
            if except == Except::Wording {
                for field in ["description", "source_note", "comment"] {
                    map.remove(field);
                }
            }
            map.values_mut().for_each(|inner| forgive(inner, arguments, except));
        }
        _ => {}
    }
}

/// The first place where two values differ.
fn difference(path: &str, ours: &Value, theirs: &Value) -> Option<String> {
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: std::collections::BTreeSet<_> = a.keys().chain(b.keys()).collect();
            keys.into_iter().find_map(|key| {
                let none = Value::String("(absent)".to_owned());
                difference(&format!("{path}.{key}"), a.get(key).unwrap_or(&none), b.get(key).unwrap_or(&none))
            })
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            (0..a.len()).find_map(|at| difference(&format!("{path}[{at}]"), &a[at], &b[at]))
        }
        (a, b) if a == b => None,
        (a, b) => {
            let short = |value: &Value| value.to_string().chars().take(200).collect::<String>();
            Some(format!("{path}: ours {}, theirs {}", short(a), short(b)))
        }
    }
}

fn compare(arguments: &Value, except: Except, ours: &Value, theirs: &Value) -> Option<String> {
    let (refused, peer_refused) = (ours["isError"] == true, theirs["isError"] == true);
    if matches!(except, Except::Workspace | Except::UnknownArgument) {
        return (!refused || peer_refused).then(|| "is no longer an exception".to_owned());
    }
    if refused != peer_refused {
        let shown = |result: &Value| {
            result["content"][0]["text"].as_str().unwrap_or("a picture").chars().take(200).collect::<String>()
        };
        return Some(format!("one refuses: ours {:?}, theirs {:?}", shown(ours), shown(theirs)));
    }
    if refused {
        // Ours carry a code and what to do next; the words of both are their own.
        return None;
    }
    let (mut a, mut b) = (data(ours), data(theirs));
    forgive(&mut a, arguments, except);
    forgive(&mut b, arguments, except);
    difference("", &a, &b).or_else(|| (png(ours) != png(theirs)).then(|| "the pictures differ".to_owned()))
}

#[test]
fn our_answers_are_the_predecessors_but_for_what_is_listed() {
    let ghidra = FakeGhidra::start();
    ghidra.put(0x400, &bytes(11, 1_000));
    ghidra.put(0x2000, &bytes(12, 8_000));
    ghidra.put(0xd800, &bytes(13, 1_000));
    // Characters are 8 bytes each; the screen's are everywhere in the set.
    ghidra.put(0x860, &bytes(14, 0x800));
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("retroscope.toml");
    std::fs::write(&config, format!("max_output_chars = {}\n", base::limits::MAX_OUTPUT_CHARS)).unwrap();
    let config = config.display().to_string();
    let variables =
        [("GHIDRA_MCP_URL", ghidra.url.as_str()), ("RETROSCOPE_WORKSPACE_ROOT", folder.path().to_str().unwrap())];
    let mut ours = StdioClient::start_with(&["--tool-profile", "c64", "--config", &config], ERA, &variables);
    let mut command = Command::new(python().parent().unwrap().join("c64-mcp"));
    command.env("GHIDRA_MCP_URL", &ghidra.url).env_remove("GHIDRA_MCP_AUTH_TOKEN").stderr(std::process::Stdio::null());
    let mut theirs = StdioClient::of(command, ERA);

    let calls: Vec<Call> =
        [text_calls(), search_calls(), symbol_and_define_calls(), graphics_calls()].into_iter().flatten().collect();
    assert!(calls.len() >= 150, "{}", calls.len());
    let mut differences = Vec::new();
    for (tool, arguments, except) in &calls {
        let asked_before = ghidra.asked().len();
        let one = ours.call(tool, arguments.clone());
        let asked_by_us = ghidra.asked().split_off(asked_before);
        let other = theirs.call(tool, arguments.clone());
        let asked_by_them = ghidra.asked().split_off(asked_before + asked_by_us.len());
        let shown: String = arguments.to_string().chars().take(300).collect();
        if let Some(difference) = compare(arguments, *except, &one, &other) {
            differences.push(format!("{tool} {shown}\n    {difference}"));
        }
        if one["isError"] == true {
            // We check more before Ghidra is asked anything.
            continue;
        }
        // What Ghidra is asked must be the same too, in its order.
        let requests = |asked: Vec<support::fake_ghidra::Asked>| -> Value {
            let mut requests: Value =
                asked.into_iter().map(|asked| json!([asked.method, asked.target, asked.body])).collect();
            forgive(&mut requests, arguments, *except);
            requests
        };
        if let Some(difference) = difference("requests", &requests(asked_by_us), &requests(asked_by_them)) {
            differences.push(format!("{tool} {shown}\n    {difference}"));
        }
    }
    println!(
        "{} calls compared, {} of them with a listed exception",
        calls.len(),
        calls.iter().filter(|(_, _, except)| *except != Except::Nothing).count()
    );
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}

#[test]
fn the_numbers_of_the_codec_are_still_its_own() {
    let script = "import cbmcodecs2
for b in range(256):
    row = ['%02X' % b]
    for n in ('petscii_c64en_uc', 'petscii_c64en_lc', 'screencode_c64_uc', 'screencode_c64_lc'):
        try:
            row.append('%04X' % ord(bytes([b]).decode(n)))
        except UnicodeDecodeError:
            row.append('-')
    print(' '.join(row))";
    let output = Command::new(python()).args(["-c", script]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let facts = include_str!("../../c64/tests/cbmcodecs2_facts.txt");
    let facts: Vec<&str> = facts.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().collect::<Vec<_>>(), facts);
}
