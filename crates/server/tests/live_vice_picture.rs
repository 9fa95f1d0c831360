//! What real VICE draws, beside what the picture tools make of the same memory: not one pixel may differ.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]
#![cfg(target_os = "linux")]

mod support;

use base64::Engine as _;
use serde_json::{Value, json};
use std::fmt::Write as _;
use support::stdio_client::StdioClient;
use support::vice::{Client, Connector, label};

/// Numbers of VICE's banks (reference of the binary monitor; `vice_list_banks` gives the same).
const RAM: u32 = 1;
const ROM: u32 = 2;
const IO: u32 = 3;

/// The program's own variables, as `fixtures/vice/README.md` says.
const MODE: u16 = 0xC102;
const SPRITES: u16 = 0xC103;

const WIDTH: usize = 320;

struct Rig {
    raw: Client,
    server: StdioClient,
    workspace: tempfile::TempDir,
    _connector: Connector,
}

impl Rig {
    fn start() -> Self {
        let connector = Connector::launch(&["--allow-display-on-old-vice"]);
        let workspace = tempfile::tempdir().unwrap();
        let (url, root) = (connector.url(), workspace.path().to_str().unwrap());
        let arguments = ["--tool-profile", "full", "--workspace", root];
        let mut server = StdioClient::start_with(&arguments, "2025-06-18", &[("RETROSCOPE_VICE_URL", &url)]);
        let mut raw = connector.client();
        raw.run_to(label("count"));
        assert_eq!(server.call("vice_connect", json!({}))["structuredContent"]["ok"], true);
        Self { raw, server, workspace, _connector: connector }
    }

    fn write(&mut self, address: u16, byte: u8) {
        let data = json!({"encoding": "hex", "data": format!("{byte:02x}")});
        self.raw.call("write_memory", json!({"bank_id": RAM, "start": address, "data": data}));
    }

    /// A register of the video chip.
    fn register(&mut self, address: u16) -> u8 {
        let read = self.raw.call("read_memory", json!({"bank_id": IO, "start": address, "end": address}));
        u8::from_str_radix(read["bytes"].as_str().unwrap(), 16).unwrap()
    }

    /// Shows a screen and sprites; the machine stops below a picture that was drawn so from its first line on.
    fn show(&mut self, mode: u8, sprites: u8) {
        self.write(MODE, mode);
        self.write(SPRITES, sprites);
        for _ in 0..3 {
            self.raw.run_to(label("count"));
        }
    }

    /// The colour indices of a tool's picture, and its summary.
    fn picture(&mut self, tool: &str, arguments: Value) -> (Vec<u8>, Value) {
        let answer = self.server.call(tool, arguments);
        let content = answer["content"].as_array().unwrap();
        let image = content.iter().find(|part| part["type"] == "image").unwrap_or_else(|| panic!("{answer}"));
        let file = base64::engine::general_purpose::STANDARD.decode(image["data"].as_str().unwrap()).unwrap();
        let facts = content.iter().find_map(|part| part["text"].as_str()).unwrap();
        (indices(&file), serde_json::from_str(facts).unwrap())
    }

    fn captured(&mut self) -> Vec<u8> {
        let (pixels, facts) = self.picture("vice_capture_screen", json!({}));
        assert_eq!((&facts["width"], &facts["height"], &facts["cropped"]), (&json!(320), &json!(200), &json!(true)));
        // VICE says 51; the picture starts at row 50 of 312.
        assert_eq!(facts["inner"], json!({"x_offset": 136, "y_offset": 50, "width": 320, "height": 200}));
        pixels
    }

    /// The text screen by its memory.
    fn text(&mut self, multicolor: bool) -> Vec<u8> {
        let background = self.register(0xD021) & 15;
        let mut arguments = json!({"screen": vice(RAM, 0x0400), "charset": vice(ROM, 0xD000), "color": vice(IO, 0xD800),
            "background": background});
        if multicolor {
            arguments["multicolor"] = json!(true);
            arguments["background_1"] = json!(self.register(0xD022) & 15);
            arguments["background_2"] = json!(self.register(0xD023) & 15);
        }
        self.picture("decode_c64_char_screen", arguments).0
    }
}

fn vice(bank: u32, start: u16) -> Value {
    json!({"kind": "vice", "bank_id": bank, "start": start})
}

fn indices(file: &[u8]) -> Vec<u8> {
    let mut decoder = png::Decoder::new(std::io::Cursor::new(file));
    decoder.set_transformations(png::Transformations::IDENTITY);
    let mut reader = decoder.read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    reader.next_frame(&mut pixels).unwrap();
    pixels
}

/// No pixel differs, and the picture has enough in it to tell.
#[track_caller]
fn same(what: &str, drawn: &[u8], decoded: &[u8]) {
    assert_eq!(drawn.len(), decoded.len(), "{what}");
    let colors: std::collections::BTreeSet<u8> = drawn.iter().copied().collect();
    assert!(colors.len() >= 4, "{what} has only the colours {colors:?}");
    let differing: Vec<usize> = (0..drawn.len()).filter(|at| drawn[*at] != decoded[*at]).collect();
    let mut first = String::new();
    for at in differing.iter().take(8) {
        write!(first, " {},{}: {} {}", at % WIDTH, at / WIDTH, drawn[*at], decoded[*at]).unwrap();
    }
    assert!(differing.is_empty(), "{what}: {} pixels differ, VICE's first:{first}", differing.len());
}

/// Draws a sprite of 24 x 21 pixels over a picture; `clear` is what shows through.
fn draw(picture: &mut [u8], sprite: &[u8], left: usize, top: usize, clear: u8) {
    for (at, pixel) in sprite.iter().enumerate().filter(|(_, pixel)| **pixel != clear) {
        picture[(top + at / 24) * WIDTH + left + at % 24] = *pixel;
    }
}

#[test]
fn the_frame_of_vice_is_what_its_memory_decodes_to() {
    let mut rig = Rig::start();

    rig.show(0, 0);
    let plain = rig.text(false);
    same("text", &rig.captured(), &plain);

    // Sprite 0 is hires, sprite 1 multicolor (the program's source). A picture's corner is at 24, 50 of the sprites' coordinates.
    rig.show(0, 3);
    let mut expected = rig.text(false);
    let clear = 14;
    let of = |start: u16, more: Value| {
        let mut arguments =
            json!({"sprites": vice(RAM, start), "sprite_count": 1, "sheet_columns": 1, "background": clear});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        arguments
    };
    let colors = [rig.register(0xD027) & 15, rig.register(0xD028) & 15];
    let (shared_0, shared_1) = (rig.register(0xD025) & 15, rig.register(0xD026) & 15);
    assert!(![colors[0], colors[1], shared_0, shared_1].contains(&clear));
    let multicolor =
        json!({"sprite_colors": [colors[1]], "multicolor": true, "multicolor_0": shared_0, "multicolor_1": shared_1});
    let hires = rig.picture("decode_c64_sprites", of(0x0E00, json!({"sprite_colors": [colors[0]]}))).0;
    let multicolor = rig.picture("decode_c64_sprites", of(0x0E40, multicolor)).0;
    let place =
        |rig: &mut Rig, register: u16| (usize::from(rig.register(register)), usize::from(rig.register(register + 1)));
    let (x, y) = place(&mut rig, 0xD002);
    draw(&mut expected, &multicolor, x - 24, y - 50, clear);
    // Of two sprites the one with the lower number is in front.
    let (x, y) = place(&mut rig, 0xD000);
    draw(&mut expected, &hires, x - 24, y - 50, clear);
    let drawn = rig.captured();
    assert_ne!(drawn, plain, "sprites are there");
    same("sprites", &drawn, &expected);

    rig.show(1, 0);
    let text = rig.text(true);
    assert_ne!(text, plain);
    same("multicolor text", &rig.captured(), &text);

    rig.show(2, 0);
    let bitmap = json!({"bitmap": vice(RAM, 0x2000), "screen": vice(RAM, 0x0C00)});
    let decoded = rig.picture("decode_c64_hires_bitmap", bitmap.clone()).0;
    same("hires bitmap", &rig.captured(), &decoded);

    rig.show(3, 0);
    let mut multicolor = bitmap;
    multicolor["color"] = vice(IO, 0xD800);
    multicolor["background"] = json!(rig.register(0xD021) & 15);
    let decoded = rig.picture("decode_c64_multicolor_bitmap", multicolor).0;
    same("multicolor bitmap", &rig.captured(), &decoded);

    // The whole frame, in a file too: what is inside its border is the cropped picture.
    let cropped = rig.captured();
    let (whole, facts) = rig.picture("vice_capture_screen", json!({"crop": false, "output_path": "whole.png"}));
    assert_eq!((&facts["width"], &facts["height"]), (&json!(504), &json!(312)));
    assert_eq!(indices(&std::fs::read(rig.workspace.path().join("whole.png")).unwrap()), whole);
    let inside: Vec<u8> = whole.chunks(504).skip(50).take(200).flat_map(|row| row[136..456].to_vec()).collect();
    assert_eq!(inside, cropped);
    assert!(facts["notes"][0].as_str().unwrap().contains("VICE says y_offset 51"), "{facts}");
    assert!(facts["notes"][1].as_str().unwrap().contains("does not send the last pixels"), "{facts}");
    let again = rig.server.refused("vice_capture_screen", json!({"output_path": "whole.png"}));
    assert!(again.contains("file_exists"), "{again}");

    // While the machine runs there is no picture, and several reads would be of different moments.
    assert_eq!(rig.server.call("vice_resume", json!({}))["structuredContent"]["ok"], true);
    let refused = rig.server.refused("vice_capture_screen", json!({}));
    assert!(refused.contains("vice_target_not_stopped") && refused.contains("vice_interrupt"), "{refused}");
    let sources = json!({"bitmap": vice(RAM, 0x2000), "screen": vice(RAM, 0x0C00)});
    let refused = rig.server.refused("decode_c64_hires_bitmap", sources.clone());
    assert!(refused.contains("allow_non_atomic_vice_reads"), "{refused}");
    let mut allowed = sources;
    allowed["allow_non_atomic_vice_reads"] = json!(true);
    // Our connector reads from a machine that is stopped only, and says so.
    let refused = rig.server.refused("decode_c64_hires_bitmap", allowed);
    assert!(refused.contains("vice_target_not_stopped"), "{refused}");
}
