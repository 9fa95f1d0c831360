//! Any geometry, colours and bytes as a C64 picture or a picture file: refused, or a picture within its caps.
#![no_main]

use base::limits;
use c64::graphics::*;
use c64::picture_file::{Prg, parts, recognise};
use libfuzzer_sys::fuzz_target;

type Input<'a> = ([i16; 6], Vec<i64>, Vec<[u8; 3]>, bool, &'a [u8]);

fuzz_target!(|input: Input<'_>| {
    let (numbers, colors, palette, multicolor, bytes) = input;
    let [columns, rows, count, stride, one, two] = numbers.map(i64::from);
    let Ok(palette) = Palette::new(palette) else { return };
    let look = |picture: Result<Picture, c64::Problem>| {
        let Ok(picture) = picture else { return };
        assert_eq!(picture.pixels.len(), picture.width * picture.height);
        assert!(picture.pixels.len() <= limits::MAX_C64_PIXELS);
        assert!(picture.pixels.iter().all(|pixel| *pixel < 16));
        if let Ok(file) = encode(&picture, &palette) {
            assert!(file.png.len() <= limits::MAX_C64_PNG_BYTES && file.palette_size <= 256);
        }
    };
    let (Ok(background), Ok(foreground)) = (Color::new("background", one), Color::new("foreground", two)) else {
        return;
    };
    if let Ok(grid) = Grid::new(columns, rows) {
        look(hires_bitmap(Bitmap { grid }, bytes, bytes));
        look(multicolor_bitmap(Bitmap { grid }, bytes, bytes, bytes, background));
        if let Ok(multicolor) = Multicolor::of(multicolor, Some(one), Some(two)) {
            let screen = CharScreen { grid, background, foreground, multicolor };
            look(char_screen(screen, bytes, bytes, Some(bytes)));
            look(char_screen(screen, bytes, bytes, None));
        }
    }
    if let Ok(multicolor) = Multicolor::of(multicolor, Some(one), Some(two))
        && let Ok(sheet) = Charset::new(count, columns, foreground, background, multicolor)
    {
        look(charset(sheet, bytes));
    }
    if let Ok(multicolor) = MulticolorSprites::of(multicolor, Some(one), Some(two))
        && let Ok(sheet) = Sprites::new(count, &colors, stride, columns, background, multicolor)
    {
        look(sprites(&sheet, bytes));
    }
    for multicolor in [false, true] {
        if let Ok(parts) = parts(bytes, multicolor) {
            assert_eq!((parts.bitmap.len(), parts.screen.len()), (8_000, 1_000));
        }
    }
    if let Ok(prg) = Prg::new(bytes) {
        assert!(prg.from_address(prg.load_address.into()).is_ok_and(|rest| rest == prg.bytes) || prg.bytes.is_empty());
    }
    let _known = recognise("x.64c", bytes);
});
