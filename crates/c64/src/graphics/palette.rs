//! Colours: the sixteen of the VIC-II by their numbers, and palettes that say what they look like.

use crate::Problem;
use base::limits;

/// Red, green, blue.
pub type Rgb = [u8; 3];

/// The sixteen colours of a PAL machine as Philip "Pepto" Timmermann computed them in 2001 (Calculating the color palette of
/// the VIC II).
pub const PEPTO: [Rgb; 16] = [
    [0x00, 0x00, 0x00],
    [0xff, 0xff, 0xff],
    [0x68, 0x37, 0x2b],
    [0x70, 0xa4, 0xb2],
    [0x6f, 0x3d, 0x86],
    [0x58, 0x8d, 0x43],
    [0x35, 0x28, 0x79],
    [0xb8, 0xc7, 0x6f],
    [0x6f, 0x4f, 0x25],
    [0x43, 0x39, 0x00],
    [0x9a, 0x67, 0x59],
    [0x44, 0x44, 0x44],
    [0x6c, 0x6c, 0x6c],
    [0x9a, 0xd2, 0x84],
    [0x6c, 0x5e, 0xb5],
    [0x95, 0x95, 0x95],
];

/// The number of a colour, 0 to 15.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Color(u8);

impl Color {
    /// Black.
    pub const BLACK: Self = Self(0);

    /// The colour of that number.
    ///
    /// # Errors
    /// `Option` when it is not 0 to 15; `name` is the argument's name in the message.
    pub fn new(name: &str, number: i64) -> Result<Self, Problem> {
        u8::try_from(number)
            .ok()
            .filter(|number| *number < 16)
            .map(Self)
            .ok_or_else(|| Problem::option(format!("{name} must be a colour index from 0 to 15, not {number}")))
    }

    /// The same for a number that must be there.
    ///
    /// # Errors
    /// `Option` when it is missing too.
    pub fn needed(name: &str, number: Option<i64>) -> Result<Self, Problem> {
        match number {
            Some(number) => Self::new(name, number),
            None => Err(Problem::option(format!(
                "{name} must be a colour index from 0 to 15; it is required when multicolor is true"
            ))),
        }
    }

    /// The colour in the low four bits of a register.
    pub const fn of_register(byte: u8) -> Self {
        Self(byte & 15)
    }

    /// Its number.
    pub const fn index(self) -> u8 {
        self.0
    }
}

/// What colour numbers look like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Palette(Vec<Rgb>);

impl Default for Palette {
    fn default() -> Self {
        Self(PEPTO.to_vec())
    }
}

impl Palette {
    /// A palette of these colours.
    ///
    /// # Errors
    /// `Option` for none, or more than [`limits::MAX_C64_PALETTE`].
    pub fn new(colors: Vec<Rgb>) -> Result<Self, Problem> {
        let most = limits::MAX_C64_PALETTE;
        if colors.is_empty() {
            return Err(Problem::option("palette must be a non-empty array of '#rrggbb' strings or [r, g, b] triples"));
        }
        if colors.len() > most {
            return Err(Problem::option(format!("palette must not exceed {most} entries; it has {}", colors.len())));
        }
        Ok(Self(colors))
    }

    /// The colour that `#rrggbb` or `rrggbb` names.
    ///
    /// # Errors
    /// `Option` for anything else; `at` is the entry's number in the message.
    pub fn parse(at: usize, text: &str) -> Result<Rgb, Problem> {
        let digits = text.strip_prefix('#').unwrap_or(text);
        let channel = |from: usize| digits.get(from..from + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
        let plain = digits.len() == 6 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        match (plain, channel(0), channel(2), channel(4)) {
            (true, Some(red), Some(green), Some(blue)) => Ok([red, green, blue]),
            _ => Err(Problem::option(format!(
                "palette entry {at} must be six hexadecimal digits, optionally '#'-prefixed"
            ))),
        }
    }

    /// The colours.
    pub fn colors(&self) -> &[Rgb] {
        &self.0
    }
}
