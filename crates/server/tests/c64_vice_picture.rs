//! Pictures of VICE, pictures of its memory, and its memory in Ghidra, against stand-ins of the connector and of Ghidra.

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
use support::fake_connector::{Caller, OTHER, discovery};
use support::fake_ghidra::{FakeGhidra, Fault};

/// A frame of the size that VICE has for PAL, complete; the pixel at x, y has the colour (x + 3 y) mod 16.
fn frame() -> Value {
    let pixels: Vec<u8> =
        (0..504 * 312).map(|at: usize| u8::try_from((at % 504 + 3 * (at / 504)) % 16).unwrap()).collect();
    let palette: Vec<Value> = (0..16).map(|value| json!({"r": value, "g": 255 - value, "b": 7})).collect();
    json!({"width": 504, "height": 312, "inner": {"x_offset": 136, "y_offset": 51, "width": 320, "height": 200},
        "bits_per_pixel": 8, "buffer_length": 504 * 312, "buffer_base64": STANDARD.encode(pixels), "palette": palette,
        "vice_version": "3.11.0.0", "vice_revision": null})
}

/// Pixels and palette of a PNG.
fn decoded(file: &[u8]) -> (usize, Vec<u8>, Vec<u8>) {
    let mut decoder = png::Decoder::new(std::io::Cursor::new(file));
    decoder.set_transformations(png::Transformations::IDENTITY);
    let mut reader = decoder.read_info().unwrap();
    let palette = reader.info().palette.as_ref().unwrap().to_vec();
    let width = reader.info().width.try_into().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    reader.next_frame(&mut pixels).unwrap();
    (width, pixels, palette)
}

#[tokio::test]
async fn a_frame_of_a_newer_vice_is_shown_and_its_rectangle_corrected() {
    let caller = Caller::connected(Vec::new()).await;
    caller.change(|said| drop(said.results.insert("capture_display", frame())));
    let cropped = caller.picture("vice_capture_screen", json!({"output_path": "screen.png"})).await;
    let (width, pixels, palette) = decoded(&cropped.png);
    assert_eq!((width, pixels.len(), &palette[45..]), (320, 320 * 200, [15, 240, 7].as_slice()));
    // The connector passed on VICE's row 51; the picture starts at 50.
    let expected: Vec<u8> =
        (50..250).flat_map(|y| (136..456).map(move |x: usize| u8::try_from((x + 3 * y) % 16).unwrap())).collect();
    assert_eq!(pixels, expected);
    let facts = &cropped.facts;
    assert_eq!(facts["inner"], json!({"x_offset": 136, "y_offset": 50, "width": 320, "height": 200}));
    assert_eq!(facts["notes"], json!(["VICE says y_offset 51, which is one row too low; this tool corrected it"]));
    assert_eq!((&facts["mode"], &facts["palette_size"]), (&json!("vice_capture"), &json!(16)));
    assert_eq!(facts["distinct_index_count"], 16);
    assert_eq!(std::fs::read(caller.folder.path().join("screen.png")).unwrap(), cropped.png);
    assert_eq!(caller.asked("capture_display")[0]["use_vic"], true);

    // Our own connector tells what VICE said, and has corrected it.
    caller.change(|said| {
        let told = said.results.get_mut("capture_display").unwrap();
        told["reported_y_offset"] = json!(51);
        told["inner"]["y_offset"] = json!(50);
    });
    let own = caller.picture("vice_capture_screen", json!({"output_path": "screen.png", "overwrite": true})).await;
    assert_eq!(own.png, cropped.png);
    assert_eq!(
        own.facts["notes"],
        json!(["VICE says y_offset 51, which is one row too low; the connector corrected it"])
    );
    let whole = caller.picture("vice_capture_screen", json!({"crop": false, "use_vic": false})).await;
    let (width, pixels, _) = decoded(&whole.png);
    assert_eq!((width, pixels.len(), pixels[504]), (504, 504 * 312, 3));
    assert_eq!(caller.asked("capture_display").last().unwrap()["use_vic"], false);
}

#[tokio::test]
async fn what_is_no_picture_is_refused_with_what_to_do() {
    let caller = Caller::start().await;
    assert_eq!(caller.refused("vice_capture_screen", json!({})).await.code.word(), "vice_not_connected");
    let caller = Caller::connected(Vec::new()).await;
    let mut bad = frame();
    bad["buffer_length"] = json!(1);
    caller.change(|said| drop(said.results.insert("capture_display", bad)));
    let arguments = json!({"output_path": "screen.png"});
    let error = caller.refused("vice_capture_screen", arguments.clone()).await;
    assert_eq!(error.code.word(), "vice_capture_failed");
    assert!(error.message.contains("said to be 1"), "{error}");
    // A code of the connector is passed on; what is no code of a connector to VICE is not.
    for (code, told, next) in [
        ("vice_target_not_stopped", "vice_target_not_stopped", "vice_interrupt"),
        ("vice_unsupported_build", "vice_unsupported_build", "--allow-display-on-old-vice"),
        ("vice_timeout", "vice_timeout", "timeout_ms"),
        ("vice_command_failed", "vice_command_failed", "no other state"),
        ("vice_protocol_error", "vice_protocol_error", "vice_status"),
        ("vice_connection_lost", "vice_connection_lost", "vice_status"),
        ("vice_is_new", "vice_capture_failed", "vice_status"),
        ("file_exists", "vice_capture_failed", "vice_status"),
    ] {
        let refusal = json!({"code": code, "message": "VICE says no"});
        caller.change(|said| drop(said.refusals.insert("capture_display", refusal.clone())));
        let error = caller.refused("vice_capture_screen", arguments.clone()).await;
        assert_eq!((error.code.word(), error.message.as_str()), (told, "there is no picture: VICE says no"));
        assert!(error.hint.contains(next), "{error}");
        assert_eq!(error.details["connector_error"], refusal);
    }
    // Nothing was written, and a file that is there is refused before VICE is asked.
    assert!(!caller.folder.path().join("screen.png").exists());
    std::fs::write(caller.folder.path().join("screen.png"), b"mine").unwrap();
    let asked = caller.asked("capture_display").len();
    assert_eq!(caller.refused("vice_capture_screen", arguments).await.code.word(), "file_exists");
    assert_eq!(caller.asked("capture_display").len(), asked);
}

fn vice(bank: u32, start: u32) -> Value {
    json!({"kind": "vice", "bank_id": bank, "start": start})
}

#[tokio::test]
async fn vice_is_a_source_of_pictures_that_is_read_whole_and_at_once() {
    let mut memory = vec![0; 0x1_0000];
    memory[0x2000..0x2008].copy_from_slice(&[0xF0; 8]);
    memory[0x0C00] = 0x12;
    let caller = Caller::connected(memory).await;
    let arguments = json!({"bitmap": vice(1, 0x2000), "screen": vice(1, 0x0C00), "columns": 1, "rows": 1});
    let picture = caller.picture("decode_c64_hires_bitmap", arguments.clone()).await;
    // Colour 1 for set bits, 2 for clear ones: the nibbles of $12.
    assert_eq!(decoded(&picture.png).1, [1, 1, 1, 1, 2, 2, 2, 2].repeat(8));
    assert_eq!(
        picture.facts["sources"]["bitmap"],
        json!({"kind": "vice", "supplied": 8, "consumed": 8, "trailing": 0})
    );
    let asked = caller.asked("read_memory");
    assert_eq!(
        (&asked[0]["start"], &asked[0]["end"], &asked[0]["max_bytes"]),
        (&json!(0x2000), &json!(0x2007), &json!(8))
    );
    assert_eq!((&asked[0]["side_effects"], &asked[1]["bank_id"]), (&json!(false), &json!(1)));

    // While the machine runs, two reads would be of different moments.
    caller.change(|said| said.execution = "running");
    caller.call("vice_resume", json!({})).await;
    let error = caller.refused("decode_c64_hires_bitmap", arguments.clone()).await;
    assert_eq!(error.code.word(), "invalid_arguments");
    assert!(error.hint.contains("allow_non_atomic_vice_reads"), "{error}");
    assert_eq!(caller.asked("read_memory").len(), asked.len(), "nothing was read");
    let mut allowed = arguments.clone();
    allowed["allow_non_atomic_vice_reads"] = json!(true);
    let picture = caller.picture("decode_c64_hires_bitmap", allowed).await;
    assert!(picture.facts["warnings"][0].as_str().unwrap().contains("non_atomic_vice_reads"), "{}", picture.facts);
    // One read is of one moment.
    let glyph = json!({"charset": vice(1, 0x2000), "glyph_count": 1, "sheet_columns": 1});
    assert_eq!(caller.picture("decode_c64_charset", glyph.clone()).await.facts["warnings"], json!([]));
    let mixed =
        json!({"bitmap": vice(1, 0x2000), "screen": {"kind": "inline", "bytes": "12"}, "columns": 1, "rows": 1});
    assert_eq!(caller.picture("decode_c64_hires_bitmap", mixed).await.facts["warnings"], json!([]));

    caller.change(|said| {
        said.refusals.insert("read_memory", json!({"code": "vice_target_not_stopped", "message": "it runs"}));
    });
    let error = caller.refused("decode_c64_charset", glyph.clone()).await;
    assert_eq!((error.code.word(), error.message.contains("it runs")), ("vice_target_not_stopped", true), "{error}");
    caller.change(|said| {
        said.refusals.clear();
        said.results.insert("read_memory", json!({"bytes": "00ff"}));
    });
    let error = caller.refused("decode_c64_charset", glyph).await;
    assert_eq!((error.code.word(), error.message.contains("2 bytes came")), ("vice_read_failed", true), "{error}");
}

/// What is copied: $E000 on.
const BYTES: [u8; 4] = [0xA9, 0x00, 0x85, 0x02];
/// `printf '\251\000\205\002' | sha256sum`.
const SHA256: &str = "b2695df3841954b6c590223754eccc0b1953fc9433b8695f4a6d8ac38482fa07";

async fn copying(ghidra: &FakeGhidra) -> Caller {
    let caller = Caller::with_ghidra(&ghidra.url).await;
    caller.change(|said| {
        let mut memory = vec![0; 0x1_0000];
        memory[0xE000..0xE004].copy_from_slice(&BYTES);
        said.memory = Some(memory);
    });
    assert_eq!(caller.call("vice_connect", json!({})).await["ok"], true);
    caller
}

fn copy(more: Value) -> Value {
    let mut arguments =
        json!({"bank_id": 2, "start": 0xE000, "end": 0xE003, "program": "full64.bin", "destination": "RAM:2000"});
    arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    arguments
}

#[tokio::test]
async fn memory_is_copied_into_ghidra_when_it_is_meant() {
    let ghidra = FakeGhidra::start();
    let caller = copying(&ghidra).await;
    let tool = "copy_vice_memory_to_ghidra";
    // Ghidra has zeros there: refused unless they may be written over.
    let refused = caller.call(tool, copy(json!({}))).await;
    assert_eq!(
        (&refused["ok"], &refused["committed"], &refused["sha256"]),
        (&json!(false), &json!(false), &json!(SHA256))
    );
    assert!(refused["error"].as_str().unwrap().contains("requested bytes differ"), "{refused}");
    assert_eq!(refused["ghidra_program_may_have_changed"], false);
    let over = json!({"conflict_policy": "overwrite_bytes"});
    let shown = caller.call(tool, copy(over)).await;
    assert_eq!((&shown["ok"], &shown["committed"]), (&json!(true), &json!(false)), "{shown}");
    // The second byte is 0 on both sides.
    assert_eq!(shown["differing_ranges"].as_array().unwrap().len(), 2, "{shown}");
    assert_eq!(ghidra.memory(0x2000, 4), [0; 4], "shown only");
    let done = caller.call(tool, copy(json!({"conflict_policy": "overwrite_bytes", "dry_run": false}))).await;
    assert_eq!(
        (&done["ok"], &done["committed"], &done["byte_count"]),
        (&json!(true), &json!(true), &json!(4)),
        "{done}"
    );
    assert_eq!(
        done["source_range"],
        json!({"start": 0xE000, "start_display": "$E000", "end": 0xE003, "end_display": "$E003"})
    );
    assert_eq!(ghidra.memory(0x2000, 4), BYTES);
    let asked = caller.asked("read_memory");
    assert_eq!((&asked[0]["bank_id"], &asked[0]["side_effects"]), (&json!(2), &json!(false)));
}

#[tokio::test]
async fn a_copy_that_cannot_be_says_why_and_what_ghidra_has() {
    let ghidra = FakeGhidra::start();
    let caller = copying(&ghidra).await;
    let tool = "copy_vice_memory_to_ghidra";
    for (more, code, words) in [
        (json!({"end": 0xDFFF}), "vice_invalid_argument", "lies before start"),
        (json!({"program": " "}), "invalid_arguments", "program"),
        (json!({"destination": "RAM:"}), "invalid_arguments", "destination"),
        (json!({"timeout_ms": 0}), "vice_invalid_argument", "timeout_ms"),
    ] {
        let told = caller.call(tool, copy(more)).await;
        assert_eq!((&told["ok"], &told["error"]["code"]), (&json!(false), &json!(code)), "{told}");
        assert!(told["error"]["message"].as_str().unwrap().contains(words), "{told}");
    }
    assert!(caller.asked("read_memory").is_empty() && ghidra.asked().is_empty(), "checked before anything is asked");
    let commit = json!({"dry_run": false, "conflict_policy": "overwrite_bytes"});
    // Ghidra goes away in the midst: it may have been done.
    ghidra.fault("/write_memory_bytes", Fault::Cut);
    let told = caller.call(tool, copy(commit.clone())).await;
    assert_eq!(told["error"]["code"], "ghidra_transport_failure", "{told}");
    assert_eq!(told["error"]["ghidra_program_may_have_changed"], true);
    // VICE reads less than all: nothing is written.
    let before = ghidra.asked().len();
    caller.change(|said| drop(said.results.insert("read_memory", json!({"bytes": "a900"}))));
    assert_eq!(caller.call(tool, copy(commit.clone())).await["error"]["code"], "vice_read_failed");
    caller.change(|said| said.instance = OTHER);
    assert_eq!(caller.call(tool, copy(commit.clone())).await["error"]["code"], "vice_connector_changed");
    assert_eq!(ghidra.asked().len(), before);
}

#[tokio::test]
async fn a_foreign_connector_lacks_only_what_is_ours() {
    let caller = Caller::connected(vec![0; 0x1_0000]).await;
    caller.change(|said| said.discovery = discovery());
    assert_eq!(caller.call("vice_connect", json!({})).await["ok"], true);
    let read = caller.call("vice_read_memory", json!({"bank_id": 1, "start": 0, "end": 1})).await;
    assert_eq!(read["result"]["bytes"], "0000");
}
