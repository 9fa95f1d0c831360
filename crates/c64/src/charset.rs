//! The four code tables: what each byte is in PETSCII and as a screen code, in the upper-case and the lower-case set.
//!
//! The characters are those of C64IPRI.TXT (2018-04-20) and C64IALT.TXT (2018-10-11), Rebecca Bettencourt's mappings of the
//! C64's two character sets to Unicode, as c64ref keeps them. They are written here once per screen code, because PETSCII
//! only arranges the same 128 characters in another order; names of control codes follow the Commodore 64 Programmer's
//! Reference Guide, appendix C.

use std::sync::OnceLock;

/// A code table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// PETSCII with upper-case letters and graphic characters, as after power-on.
    #[default]
    PetsciiUpper,
    /// PETSCII with lower-case and upper-case letters.
    PetsciiLower,
    /// Codes in screen memory, upper-case set.
    ScreenCodeUpper,
    /// Codes in screen memory, lower-case set.
    ScreenCodeLower,
}

impl Encoding {
    /// Every table.
    pub const ALL: [Self; 4] = [Self::PetsciiUpper, Self::PetsciiLower, Self::ScreenCodeUpper, Self::ScreenCodeLower];

    /// Its word in options and results.
    pub const fn word(self) -> &'static str {
        match self {
            Self::PetsciiUpper => "petscii_upper",
            Self::PetsciiLower => "petscii_lower",
            Self::ScreenCodeUpper => "screen_code_upper",
            Self::ScreenCodeLower => "screen_code_lower",
        }
    }

    /// Whether bytes are screen codes, in which bit 7 means reverse video.
    pub const fn is_screen_code(self) -> bool {
        matches!(self, Self::ScreenCodeUpper | Self::ScreenCodeLower)
    }

    const fn is_lower(self) -> bool {
        matches!(self, Self::PetsciiLower | Self::ScreenCodeLower)
    }

    /// The 256 entries, in the order of the bytes.
    pub fn table(self) -> &'static [Entry; 256] {
        static TABLES: OnceLock<[[Entry; 256]; 4]> = OnceLock::new();
        let [upper, lower, screen_upper, screen_lower] = TABLES
            .get_or_init(|| Self::ALL.map(|encoding| std::array::from_fn(|byte| Entry::of(encoding, byte as u8))));
        match self {
            Self::PetsciiUpper => upper,
            Self::PetsciiLower => lower,
            Self::ScreenCodeUpper => screen_upper,
            Self::ScreenCodeLower => screen_lower,
        }
    }

    /// The entry of a byte.
    pub fn entry(self, byte: u8) -> &'static Entry {
        let [first, ..] = self.table();
        self.table().get(usize::from(byte)).unwrap_or(first)
    }
}

/// What one byte is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The byte.
    pub byte: u8,
    /// The character, where it is a letter, a digit, or one of the signs that the two sets share or have in common with
    /// ordinary text; none for graphic characters and control codes.
    pub glyph: Option<char>,
    /// `LETTER_A`, `GRAPHIC_41` (by the screen code), `CLR`, …; `REVERSE_…` for reverse video.
    pub name: String,
    /// Whether it takes a cell on the screen; control codes do not.
    pub printable: bool,
    /// Whether the byte itself says reverse video.
    pub reverse_video: bool,
    /// The character of every printable byte, graphic ones included.
    pub unicode: Option<char>,
    /// Where the entry comes from.
    pub source: &'static str,
}

/// Where the upper-case set comes from.
pub const SOURCE_UPPER: &str = "C64IPRI.TXT, R. Bettencourt, 2018-04-20";
/// Where the lower-case set comes from.
pub const SOURCE_LOWER: &str = "C64IALT.TXT, R. Bettencourt, 2018-10-11";
/// Where the last PETSCII code comes from: it is code 126 again, which the mappings, which are for interchange, leave out.
pub const SOURCE_LAST: &str = "Commodore 64 Programmer's Reference Guide, appendix C: code 255 is 126";
/// Where the control codes come from.
pub const SOURCE_CONTROL: &str = "Commodore 64 Programmer's Reference Guide, appendix C";

impl Entry {
    fn of(encoding: Encoding, byte: u8) -> Self {
        let (screen_code, reverse_video) = if encoding.is_screen_code() {
            (byte & 0x7f, byte >= 0x80)
        } else {
            match screen_code_of(byte) {
                Some(code) => (code, false),
                None => return Self::control(byte),
            }
        };
        let (set, source) = if encoding.is_lower() { (&LOWER, SOURCE_LOWER) } else { (&UPPER, SOURCE_UPPER) };
        let source = if byte == 0xff && !encoding.is_screen_code() { SOURCE_LAST } else { source };
        let unicode = set.get(usize::from(screen_code)).copied().unwrap_or_default();
        let name = match unicode {
            ' ' => "SPACE".to_owned(),
            '@' => "AT".to_owned(),
            '[' => "LEFT_BRACKET".to_owned(),
            ']' => "RIGHT_BRACKET".to_owned(),
            '\u{A3}' => "POUND".to_owned(),
            '\u{2191}' => "UP_ARROW".to_owned(),
            '\u{2190}' => "LEFT_ARROW".to_owned(),
            '\u{3C0}' => "PI".to_owned(),
            letter if letter.is_ascii_alphabetic() => format!("LETTER_{}", letter.to_ascii_uppercase()),
            sign if sign.is_ascii() => format!("CHAR_{screen_code:02X}"),
            _ => format!("GRAPHIC_{screen_code:02X}"),
        };
        let glyph = (!name.starts_with("GRAPHIC_")).then_some(unicode);
        let name = if reverse_video { format!("REVERSE_{name}") } else { name };
        Self { byte, glyph, name, printable: true, reverse_video, unicode: Some(unicode), source }
    }

    fn control(byte: u8) -> Self {
        let name = CONTROLS.iter().find(|(code, _)| *code == byte);
        let name = name.map_or_else(|| format!("CONTROL_{byte:02X}"), |(_, name)| (*name).to_owned());
        Self { byte, glyph: None, name, printable: false, reverse_video: false, unicode: None, source: SOURCE_CONTROL }
    }
}

/// The screen code of a PETSCII byte; none for control codes (Programmer's Reference Guide, appendices B and C).
pub const fn screen_code_of(petscii: u8) -> Option<u8> {
    match petscii {
        0x20..=0x3f => Some(petscii),
        0x40..=0x5f => Some(petscii - 0x40),
        0x60..=0x7f => Some(petscii - 0x20),
        0xa0..=0xbf => Some(petscii - 0x40),
        0xc0..=0xfe => Some(petscii - 0x80),
        0xff => Some(0x5e),
        _ => None,
    }
}

/// Control codes that do something or are keys.
const CONTROLS: [(u8, &str); 41] = [
    (0x03, "STOP"),
    (0x05, "WHITE"),
    (0x08, "DISABLE_SHIFT_CBM"),
    (0x09, "ENABLE_SHIFT_CBM"),
    (0x0d, "RETURN"),
    (0x0e, "LOWERCASE_GRAPHICS"),
    (0x11, "CURSOR_DOWN"),
    (0x12, "REVERSE_ON"),
    (0x13, "HOME"),
    (0x14, "DELETE"),
    (0x1c, "RED"),
    (0x1d, "CURSOR_RIGHT"),
    (0x1e, "GREEN"),
    (0x1f, "BLUE"),
    (0x81, "ORANGE"),
    (0x85, "F1"),
    (0x86, "F3"),
    (0x87, "F5"),
    (0x88, "F7"),
    (0x89, "F2"),
    (0x8a, "F4"),
    (0x8b, "F6"),
    (0x8c, "F8"),
    (0x8d, "SHIFT_RETURN"),
    (0x8e, "UPPERCASE_GRAPHICS"),
    (0x90, "BLACK"),
    (0x91, "CURSOR_UP"),
    (0x92, "REVERSE_OFF"),
    (0x93, "CLR"),
    (0x94, "INSERT"),
    (0x95, "BROWN"),
    (0x96, "LIGHT_RED"),
    (0x97, "DARK_GRAY"),
    (0x98, "GRAY"),
    (0x99, "LIGHT_GREEN"),
    (0x9a, "LIGHT_BLUE"),
    (0x9b, "LIGHT_GRAY"),
    (0x9c, "PURPLE"),
    (0x9d, "CURSOR_LEFT"),
    (0x9e, "YELLOW"),
    (0x9f, "CYAN"),
];

/// The upper-case set by screen code, 8 in a row.
const UPPER: [char; 128] = [
    '\u{0040}',
    '\u{0041}',
    '\u{0042}',
    '\u{0043}',
    '\u{0044}',
    '\u{0045}',
    '\u{0046}',
    '\u{0047}', // 00
    '\u{0048}',
    '\u{0049}',
    '\u{004A}',
    '\u{004B}',
    '\u{004C}',
    '\u{004D}',
    '\u{004E}',
    '\u{004F}', // 08
    '\u{0050}',
    '\u{0051}',
    '\u{0052}',
    '\u{0053}',
    '\u{0054}',
    '\u{0055}',
    '\u{0056}',
    '\u{0057}', // 10
    '\u{0058}',
    '\u{0059}',
    '\u{005A}',
    '\u{005B}',
    '\u{00A3}',
    '\u{005D}',
    '\u{2191}',
    '\u{2190}', // 18
    '\u{0020}',
    '\u{0021}',
    '\u{0022}',
    '\u{0023}',
    '\u{0024}',
    '\u{0025}',
    '\u{0026}',
    '\u{0027}', // 20
    '\u{0028}',
    '\u{0029}',
    '\u{002A}',
    '\u{002B}',
    '\u{002C}',
    '\u{002D}',
    '\u{002E}',
    '\u{002F}', // 28
    '\u{0030}',
    '\u{0031}',
    '\u{0032}',
    '\u{0033}',
    '\u{0034}',
    '\u{0035}',
    '\u{0036}',
    '\u{0037}', // 30
    '\u{0038}',
    '\u{0039}',
    '\u{003A}',
    '\u{003B}',
    '\u{003C}',
    '\u{003D}',
    '\u{003E}',
    '\u{003F}', // 38
    '\u{2500}',
    '\u{2660}',
    '\u{1FB72}',
    '\u{1FB78}',
    '\u{1FB77}',
    '\u{1FB76}',
    '\u{1FB7A}',
    '\u{1FB71}', // 40
    '\u{1FB74}',
    '\u{256E}',
    '\u{2570}',
    '\u{256F}',
    '\u{1FB7C}',
    '\u{2572}',
    '\u{2571}',
    '\u{1FB7D}', // 48
    '\u{1FB7E}',
    '\u{2022}',
    '\u{1FB7B}',
    '\u{2665}',
    '\u{1FB70}',
    '\u{256D}',
    '\u{2573}',
    '\u{25CB}', // 50
    '\u{2663}',
    '\u{1FB75}',
    '\u{2666}',
    '\u{253C}',
    '\u{1FB8C}',
    '\u{2502}',
    '\u{03C0}',
    '\u{25E5}', // 58
    '\u{00A0}',
    '\u{258C}',
    '\u{2584}',
    '\u{2594}',
    '\u{2581}',
    '\u{258F}',
    '\u{2592}',
    '\u{2595}', // 60
    '\u{1FB8F}',
    '\u{25E4}',
    '\u{1FB87}',
    '\u{251C}',
    '\u{2597}',
    '\u{2514}',
    '\u{2510}',
    '\u{2582}', // 68
    '\u{250C}',
    '\u{2534}',
    '\u{252C}',
    '\u{2524}',
    '\u{258E}',
    '\u{258D}',
    '\u{1FB88}',
    '\u{1FB82}', // 70
    '\u{1FB83}',
    '\u{2583}',
    '\u{1FB7F}',
    '\u{2596}',
    '\u{259D}',
    '\u{2518}',
    '\u{2598}',
    '\u{259A}', // 78
];

/// The lower-case set by screen code, 8 in a row.
const LOWER: [char; 128] = [
    '\u{0040}',
    '\u{0061}',
    '\u{0062}',
    '\u{0063}',
    '\u{0064}',
    '\u{0065}',
    '\u{0066}',
    '\u{0067}', // 00
    '\u{0068}',
    '\u{0069}',
    '\u{006A}',
    '\u{006B}',
    '\u{006C}',
    '\u{006D}',
    '\u{006E}',
    '\u{006F}', // 08
    '\u{0070}',
    '\u{0071}',
    '\u{0072}',
    '\u{0073}',
    '\u{0074}',
    '\u{0075}',
    '\u{0076}',
    '\u{0077}', // 10
    '\u{0078}',
    '\u{0079}',
    '\u{007A}',
    '\u{005B}',
    '\u{00A3}',
    '\u{005D}',
    '\u{2191}',
    '\u{2190}', // 18
    '\u{0020}',
    '\u{0021}',
    '\u{0022}',
    '\u{0023}',
    '\u{0024}',
    '\u{0025}',
    '\u{0026}',
    '\u{0027}', // 20
    '\u{0028}',
    '\u{0029}',
    '\u{002A}',
    '\u{002B}',
    '\u{002C}',
    '\u{002D}',
    '\u{002E}',
    '\u{002F}', // 28
    '\u{0030}',
    '\u{0031}',
    '\u{0032}',
    '\u{0033}',
    '\u{0034}',
    '\u{0035}',
    '\u{0036}',
    '\u{0037}', // 30
    '\u{0038}',
    '\u{0039}',
    '\u{003A}',
    '\u{003B}',
    '\u{003C}',
    '\u{003D}',
    '\u{003E}',
    '\u{003F}', // 38
    '\u{2500}',
    '\u{0041}',
    '\u{0042}',
    '\u{0043}',
    '\u{0044}',
    '\u{0045}',
    '\u{0046}',
    '\u{0047}', // 40
    '\u{0048}',
    '\u{0049}',
    '\u{004A}',
    '\u{004B}',
    '\u{004C}',
    '\u{004D}',
    '\u{004E}',
    '\u{004F}', // 48
    '\u{0050}',
    '\u{0051}',
    '\u{0052}',
    '\u{0053}',
    '\u{0054}',
    '\u{0055}',
    '\u{0056}',
    '\u{0057}', // 50
    '\u{0058}',
    '\u{0059}',
    '\u{005A}',
    '\u{253C}',
    '\u{1FB8C}',
    '\u{2502}',
    '\u{1FB96}',
    '\u{1FB98}', // 58
    '\u{00A0}',
    '\u{258C}',
    '\u{2584}',
    '\u{2594}',
    '\u{2581}',
    '\u{258F}',
    '\u{2592}',
    '\u{2595}', // 60
    '\u{1FB8F}',
    '\u{1FB99}',
    '\u{1FB87}',
    '\u{251C}',
    '\u{2597}',
    '\u{2514}',
    '\u{2510}',
    '\u{2582}', // 68
    '\u{250C}',
    '\u{2534}',
    '\u{252C}',
    '\u{2524}',
    '\u{258E}',
    '\u{258D}',
    '\u{1FB88}',
    '\u{1FB82}', // 70
    '\u{1FB83}',
    '\u{2583}',
    '\u{2713}',
    '\u{2596}',
    '\u{259D}',
    '\u{2518}',
    '\u{2598}',
    '\u{259A}', // 78
];
