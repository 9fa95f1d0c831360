//! Every mode against pictures whose pixels follow from arithmetic written here.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use base::limits;
use c64::Kind;
use c64::graphics::*;
use proptest::prelude::*;

fn color(number: i64) -> Color {
    Color::new("color", number).unwrap()
}

fn grid(columns: i64, rows: i64) -> Grid {
    Grid::new(columns, rows).unwrap()
}

/// The bytes of a source: each follows from its place and the source's own number.
fn bytes(seed: usize, length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 37 + at / 251 * 11 + seed * 101) as u8).collect()
}

/// Every pixel by a rule of its cell, its byte's row in the cell and its place in the byte.
fn expected(columns: usize, rows: usize, rule: impl Fn(usize, usize, usize) -> u8) -> Vec<u8> {
    let mut pixels = Vec::new();
    for y in 0..rows * 8 {
        for x in 0..columns * 8 {
            pixels.push(rule(y / 8 * columns + x / 8, y % 8, x % 8));
        }
    }
    pixels
}

/// The bit of a byte, counted from the left.
fn bit(byte: u8, x: usize) -> bool {
    byte & (0x80 >> x) != 0
}

/// The pair of bits that a pixel belongs to: 00, 01, 10, 11 as 0 to 3.
fn pair(byte: u8, x: usize) -> usize {
    usize::from(bit(byte, x / 2 * 2)) * 2 + usize::from(bit(byte, x / 2 * 2 + 1))
}

#[test]
fn hires_bitmaps_have_two_colors_a_cell() {
    for (columns, rows) in [(40, 25), (3, 2), (64, 32), (1, 64)] {
        let (columns_u, rows_u) = (columns as usize, rows as usize);
        let (bitmap, screen) = (bytes(1, columns_u * rows_u * 8 + 5), bytes(2, columns_u * rows_u));
        let picture = hires_bitmap(Bitmap { grid: grid(columns, rows) }, &bitmap, &screen).unwrap();
        assert_eq!((picture.width, picture.height), (columns_u * 8, rows_u * 8));
        let rule = |cell: usize, row: usize, x: usize| {
            if bit(bitmap[cell * 8 + row], x) { screen[cell] / 16 } else { screen[cell] % 16 }
        };
        assert!(picture.pixels == expected(columns_u, rows_u, rule), "{columns} x {rows}");
    }
}

#[test]
fn multicolor_bitmaps_have_three_colors_a_cell_and_the_background() {
    let (bitmap, screen, ram) = (bytes(3, 8_000), bytes(4, 1_000), bytes(5, 1_000));
    let size = Bitmap { grid: grid(40, 25) };
    let picture = multicolor_bitmap(size, &bitmap, &screen, &ram, color(6)).unwrap();
    let rule = |cell: usize, row: usize, x: usize| {
        [6, screen[cell] / 16, screen[cell] % 16, ram[cell] % 16][pair(bitmap[cell * 8 + row], x)]
    };
    assert!(picture.pixels == expected(40, 25, rule));
    for (bitmap, screen, ram, words) in [
        (&bitmap[1..], &screen[..], &ram[..], "bitmap supplies 7999 bytes but 8000 are required"),
        (&bitmap[..], &screen[1..], &ram[..], "screen supplies 999 bytes but 1000 are required"),
        (&bitmap[..], &screen[..], &[], "color supplies 0 bytes but 1000 are required"),
    ] {
        assert_eq!(multicolor_bitmap(size, bitmap, screen, ram, color(6)).unwrap_err().message, words);
    }
}

#[test]
fn a_charset_sheet_is_padded_with_background() {
    let glyphs = bytes(6, 24);
    let sheet = Charset::new(3, 2, color(7), color(5), None).unwrap();
    let picture = charset(sheet, &glyphs).unwrap();
    let rule = |cell: usize, row: usize, x: usize| if cell < 3 && bit(glyphs[cell * 8 + row], x) { 7 } else { 5 };
    assert_eq!(picture.pixels, expected(2, 2, rule));

    let more = Multicolor::of(true, Some(1), Some(2)).unwrap();
    // 13 is 8 + 5: the pairs 11 have colour 5.
    let sheet = Charset::new(3, 2, color(13), color(9), more).unwrap();
    let picture = charset(sheet, &glyphs).unwrap();
    let rule =
        |cell: usize, row: usize, x: usize| if cell < 3 { [9, 1, 2, 5][pair(glyphs[cell * 8 + row], x)] } else { 9 };
    assert_eq!(picture.pixels, expected(2, 2, rule));
    // A sheet has no colour RAM, so a colour below 8 means the same.
    let low = Charset::new(3, 2, color(5), color(9), more).unwrap();
    assert_eq!(charset(low, &glyphs).unwrap(), picture);
}

#[test]
fn a_screen_of_characters_takes_its_colors_from_where_they_are() {
    let screen: Vec<u8> = vec![0, 3, 2, 2, 1, 0];
    let glyphs = bytes(7, 32);
    let ram = [0x00, 0x0f, 0xf5, 0x0d, 0x2b, 0x98];
    assert_eq!(charset_bytes_for(&screen), 32);
    let mut size = CharScreen { grid: grid(3, 2), background: color(11), foreground: color(14), multicolor: None };
    let set = |cell: usize, row: usize, x: usize| bit(glyphs[usize::from(screen[cell]) * 8 + row], x);
    let picture = char_screen(size, &screen, &glyphs, None).unwrap();
    assert_eq!(picture.pixels, expected(3, 2, |cell, row, x| if set(cell, row, x) { 14 } else { 11 }));
    let picture = char_screen(size, &screen, &glyphs, Some(&ram)).unwrap();
    assert_eq!(picture.pixels, expected(3, 2, |cell, row, x| if set(cell, row, x) { ram[cell] & 15 } else { 11 }));

    // Each cell chooses by bit 3 of its colour.
    size.multicolor = Multicolor::of(true, Some(1), Some(2)).unwrap();
    let picture = char_screen(size, &screen, &glyphs, Some(&ram)).unwrap();
    let rule = |cell: usize, row: usize, x: usize| {
        let low = ram[cell] % 8;
        if ram[cell] / 8 % 2 == 1 {
            [11, 1, 2, low][pair(glyphs[usize::from(screen[cell]) * 8 + row], x)]
        } else if set(cell, row, x) {
            low
        } else {
            11
        }
    };
    assert_eq!(picture.pixels, expected(3, 2, rule));
    assert!(char_screen(size, &screen, &glyphs, None).unwrap_err().message.starts_with("color is required"));
    let short = char_screen(size, &screen, &glyphs[..31], Some(&ram)).unwrap_err();
    assert_eq!(short.message, "charset supplies 31 bytes but 32 are required");
}

#[test]
fn sprites_stand_padded_or_packed_on_a_sheet() {
    for (stride, length) in [(64, 2 * 64 + 63), (63, 3 * 63)] {
        let data = bytes(8, length);
        let sheet = Sprites::new(3, &[1, 2, 3], stride as i64, 2, color(9), None).unwrap();
        assert_eq!(sheet.bytes(), length);
        let picture = sprites(&sheet, &data).unwrap();
        assert_eq!((picture.width, picture.height), (48, 42));
        let mut clear = 0;
        for y in 0..42 {
            for x in 0..48 {
                let sprite = y / 21 * 2 + x / 24;
                let wanted = if sprite == 3 {
                    9
                } else if bit(data[sprite * stride + y % 21 * 3 + x % 24 / 8], x % 8) {
                    [1, 2, 3][sprite]
                } else {
                    clear += 1;
                    9
                };
                assert_eq!(picture.pixels[y * 48 + x], wanted, "{x}, {y}");
            }
        }
        assert_eq!(picture.transparent, clear);
        let short = sprites(&sheet, &data[1..]).unwrap_err().message;
        assert_eq!(short, format!("sprites supplies {} bytes but {length} are required", length - 1));
    }
}

#[test]
fn multicolor_sprites_share_d025_and_d026() {
    // 00 01 10 11: transparent, $D025, the sprite's own, $D026.
    let shared = MulticolorSprites::of(true, Some(3), Some(4)).unwrap();
    let sheet = Sprites::new(1, &[7], 64, 1, color(9), shared).unwrap();
    let picture = sprites(&sheet, &[0b0001_1011; 63]).unwrap();
    assert_eq!(picture.pixels, [9, 9, 3, 3, 7, 7, 4, 4].repeat(3 * 21));
    // A quarter of 24 x 21.
    assert_eq!(picture.transparent, 24 * 21 / 4);
    // One transparent pair of four in any place, and none.
    for (bits, pairs) in
        [(0b0001_0101, 1), (0b0100_0101, 1), (0b0101_0001, 1), (0b0101_0100, 1), (0b1110_0111, 0), (0, 4)]
    {
        assert_eq!(sprites(&sheet, &[bits; 63]).unwrap().transparent, 63 * 2 * pairs, "{bits:08b}");
    }
}

#[test]
fn numbers_out_of_range_are_refused() {
    let message = |problem: Result<Grid, c64::Problem>| problem.unwrap_err().message;
    assert_eq!(message(Grid::new(65, 1)), "columns must be from 1 to 64, not 65");
    assert_eq!(message(Grid::new(1, 0)), "rows must be from 1 to 64, not 0");
    assert_eq!(message(Grid::new(64, 33)), "columns * rows is 2112, which exceeds the 2048-cell hard maximum");
    // 2,049 cells are 3 * 683, so no grid has them.
    assert!(Grid::new(683, 3).is_err() && Grid::new(i64::MIN, i64::MAX).is_err());
    assert!(Color::new("background", 16).unwrap_err().message.contains("0 to 15, not 16"));
    assert!(Multicolor::of(true, Some(1), None).unwrap_err().message.starts_with("background_2 must be"));
    assert_eq!(Multicolor::of(false, Some(99), None).unwrap(), None);
    assert!(MulticolorSprites::of(true, None, Some(1)).unwrap_err().message.starts_with("multicolor_0 must be"));
    assert!(Charset::new(257, 16, color(1), color(0), None).unwrap_err().message.contains("1 to 256"));
    assert!(Charset::new(1, 65, color(1), color(0), None).unwrap_err().message.contains("1 to 64"));
    let refused = |count, colors: &[i64], stride, columns| {
        Sprites::new(count, colors, stride, columns, color(0), None).unwrap_err().message
    };
    assert!(refused(0, &[], 64, 8).contains("1 to 256"));
    assert!(refused(257, &[1; 257], 64, 8).contains("1 to 256"));
    assert!(refused(1, &[1], 65, 8).contains("64 for padded"));
    assert!(refused(1, &[1], 64, 0).contains("sheet_columns"));
    assert_eq!(refused(2, &[1], 64, 8), "sprite_colors holds 1 entries but sprite_count is 2");
    assert!(refused(2, &[1, 16], 64, 8).starts_with("sprite_colors[1] must be"));
}

#[test]
fn palettes_are_one_to_256_colors() {
    assert_eq!(Palette::parse(0, "#FF8000").unwrap(), [255, 128, 0]);
    assert_eq!(Palette::parse(0, "0a0b0c").unwrap(), [10, 11, 12]);
    for text in ["", "#12345", "##12345", "#1234567", "+12345", "#12é45"] {
        assert!(Palette::parse(3, text).unwrap_err().message.starts_with("palette entry 3 must be six"), "{text}");
    }
    assert!(Palette::new(vec![]).unwrap_err().message.contains("non-empty"));
    assert!(Palette::new(vec![[0; 3]; 257]).unwrap_err().message.contains("256"));
    assert!(Palette::new(vec![[0; 3]; 256]).is_ok());
}

#[test]
fn the_default_palette_is_peptos() {
    // In the order of the VIC-II's colour numbers, as published in 2001.
    let published = [
        "000000", "ffffff", "68372b", "70a4b2", "6f3d86", "588d43", "352879", "b8c76f", "6f4f25", "433900", "9a6759",
        "444444", "6c6c6c", "9ad284", "6c5eb5", "959595",
    ];
    assert_eq!(PEPTO.to_vec(), published.map(|text| Palette::parse(0, text).unwrap()).to_vec());
    assert_eq!(Palette::default().colors(), PEPTO);
}

#[test]
fn a_color_register_has_four_bits() {
    // The upper four read as ones on the machine.
    assert_eq!([0x00, 0x0f, 0xf6, 0x10].map(|byte| Color::of_register(byte).index()), [0, 15, 6, 0]);
}

/// What a reader of the file sees: palette, indices.
fn read(png: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let mut decoder = png::Decoder::new(std::io::Cursor::new(png));
    decoder.set_transformations(png::Transformations::IDENTITY);
    let mut reader = decoder.read_info().unwrap();
    let info = reader.info();
    assert_eq!(
        (info.color_type, info.bit_depth, info.trns.is_none()),
        (png::ColorType::Indexed, png::BitDepth::Eight, true)
    );
    let palette = info.palette.clone().unwrap().into_owned();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    reader.next_frame(&mut pixels).unwrap();
    (palette, pixels)
}

#[test]
fn the_file_holds_the_indices_and_the_palette() {
    let screen = [0x23];
    let picture = hires_bitmap(Bitmap { grid: grid(1, 1) }, &[0x0f; 8], &screen).unwrap();
    let file = encode(&picture, &Palette::default()).unwrap();
    assert_eq!((file.palette_size, file.used_indices.as_slice()), (16, [2, 3].as_slice()));
    assert!(file.unmapped_indices.is_empty() && file.unmapped_pixels == 0);
    let (palette, pixels) = read(&file.png);
    assert_eq!(palette, PEPTO.concat());
    assert_eq!(pixels, [3, 3, 3, 3, 2, 2, 2, 2].repeat(8));
    assert_eq!(file.png.windows(4).filter(|chunk| chunk == b"IDAT").count(), 1);

    // What stands just behind the palette is not in it: index 2 is the first that a palette of two colours lacks.
    let of_two = |screen: u8| {
        let picture = hires_bitmap(Bitmap { grid: grid(1, 1) }, &[0x0f; 8], &[screen]).unwrap();
        let file = encode(&picture, &Palette::new(vec![[1, 2, 3], [4, 5, 6]]).unwrap()).unwrap();
        (file.palette_size, file.unmapped_indices, file.unmapped_pixels)
    };
    assert_eq!(of_two(0x01), (2, vec![], 0));
    assert_eq!(of_two(0x12), (3, vec![2], 32));

    // A palette of one colour is continued with black up to index 3.
    let file = encode(&picture, &Palette::new(vec![[1, 2, 3]]).unwrap()).unwrap();
    assert_eq!(read(&file.png), ([vec![1, 2, 3], vec![0; 9]].concat(), [3, 3, 3, 3, 2, 2, 2, 2].repeat(8)));
    assert_eq!((file.palette_size, file.unmapped_indices, file.unmapped_pixels), (4, vec![2, 3], 64));
    // A colour is used when one pixel has it.
    let dot = hires_bitmap(Bitmap { grid: grid(1, 1) }, &[0x7f, 255, 255, 255, 255, 255, 255, 255], &screen).unwrap();
    let file = encode(&dot, &Palette::new(vec![[7; 3]; 3]).unwrap()).unwrap();
    assert_eq!((file.used_indices, file.unmapped_indices, file.unmapped_pixels), (vec![2, 3], vec![3], 1));
    // One of 256 is kept whole.
    let large = encode(&picture, &Palette::new(vec![[9; 3]; 256]).unwrap()).unwrap();
    assert_eq!((large.palette_size, read(&large.png).0.len()), (256, 768));
}

#[test]
fn the_largest_pictures_fit_and_larger_ones_cannot_be_asked_for() {
    let largest = Sprites::new(256, &[1; 256], 64, 64, color(0), None).unwrap();
    let picture = sprites(&largest, &bytes(9, largest.bytes())).unwrap();
    assert_eq!((picture.width, picture.height), (1_536, 84));
    let file = encode(&picture, &Palette::default()).unwrap();
    assert!(file.png.len() < picture.pixels.len() + 4_096);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_geometry_and_bytes_make_a_picture_or_a_refusal(
        columns in -1_i64..70,
        rows in -1_i64..70,
        count in -1_i64..300,
        stride in 62_i64..66,
        data in prop::collection::vec(any::<u8>(), 0..3_000),
    ) {
        if let Ok(grid) = Grid::new(columns, rows) {
            let size = Bitmap { grid };
            match hires_bitmap(size, &data, &data) {
                Ok(picture) => prop_assert_eq!(picture.pixels.len(), picture.width * picture.height),
                Err(problem) => prop_assert_eq!(problem.kind, Kind::Data),
            }
            let screen = CharScreen { grid, background: color(0), foreground: color(1), multicolor: None };
            match char_screen(screen, &data, &data, Some(&data)) {
                Ok(picture) => prop_assert_eq!(picture.pixels.len(), grid.cells() * 64),
                Err(problem) => prop_assert_eq!(problem.kind, Kind::Data),
            }
        }
        if let Ok(sheet) = Charset::new(count, columns, color(1), color(0), None)
            && let Ok(picture) = charset(sheet, &data) {
            prop_assert!(picture.pixels.len() <= limits::MAX_C64_PIXELS);
        }
        let colors = vec![1; usize::try_from(count).unwrap_or_default()];
        if let Ok(sheet) = Sprites::new(count, &colors, stride, columns, color(0), None)
            && let Ok(picture) = sprites(&sheet, &data) {
            prop_assert!(picture.pixels.len() <= limits::MAX_C64_PIXELS);
        }
    }
}
