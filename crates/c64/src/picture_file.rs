//! Files that people keep C64 data in: programs with their load address, and pictures and character sets that are known by
//! their size and where they load.

use crate::Problem;
use crate::graphics::Color;
use std::fmt;

/// Bytes of the load address at the start of a program file.
pub const LOAD_ADDRESS_BYTES: usize = 2;
const BITMAP: usize = 8_000;
const CELLS: usize = 1_000;

/// A program file: a load address, little endian, and what goes there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prg<'a> {
    /// Where it loads.
    pub load_address: u16,
    /// What loads there.
    pub bytes: &'a [u8],
}

impl<'a> Prg<'a> {
    /// Takes a file apart.
    ///
    /// # Errors
    /// `Data` when it is shorter than its load address, or longer than what is left of memory there.
    pub fn new(file: &'a [u8]) -> Result<Self, Problem> {
        let [low, high, bytes @ ..] = file else {
            return Err(Problem::data(format!(
                "the file has {} bytes; a program file begins with a load address of {LOAD_ADDRESS_BYTES}",
                file.len()
            )));
        };
        let load_address = u16::from_le_bytes([*low, *high]);
        let room = 0x1_0000 - usize::from(load_address);
        if bytes.len() > room {
            return Err(Problem::data(format!(
                "the file would load {} bytes at ${load_address:04X}, where {room} are left; is it a program file?",
                bytes.len()
            )));
        }
        Ok(Self { load_address, bytes })
    }

    /// What stands from a C64 address on.
    ///
    /// # Errors
    /// `Data` when the file does not reach there.
    pub fn from_address(&self, address: u64) -> Result<&'a [u8], Problem> {
        let start = u64::from(self.load_address);
        address
            .checked_sub(start)
            .and_then(|offset| usize::try_from(offset).ok())
            .and_then(|offset| self.bytes.get(offset..))
            .filter(|rest| !rest.is_empty())
            .ok_or_else(|| match self.bytes.len() as u64 {
                0 => Problem::data("the file has a load address and nothing else"),
                length => Problem::data(format!(
                    "the file loads ${start:04X} to ${:04X}; ${address:04X} is not in it",
                    start + length - 1
                )),
            })
    }
}

/// A known form of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Koala Painter: a multicolor bitmap, its screen, colours and background.
    Koala,
    /// The same without the background's byte.
    KoalaWithoutBackground,
    /// OCP Art Studio: a hires bitmap, its screen and border.
    ArtStudio,
    /// A character set with a load address.
    Charset,
}

/// A recognised file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recognised {
    /// What it is.
    pub form: Form,
    /// Where it loads.
    pub load_address: u16,
    /// Whether that is where files of that form usually load.
    pub usual_address: bool,
}

impl Form {
    /// The form and its usual load address by the size of a file with its load address.
    fn of_size(size: usize) -> Option<(Self, u16)> {
        match size {
            10_003 => Some((Self::Koala, 0x6000)),
            10_002 => Some((Self::KoalaWithoutBackground, 0x6000)),
            9_009 => Some((Self::ArtStudio, 0x2000)),
            _ => None,
        }
    }

    /// Its name with its article.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Koala => "a Koala picture",
            Self::KoalaWithoutBackground => "a Koala picture without its background byte",
            Self::ArtStudio => "an Art Studio picture",
            Self::Charset => "a character set with a load address",
        }
    }
}

/// What a file is by its size, its load address and, for character sets, its name.
pub fn recognise(name: &str, file: &[u8]) -> Option<Recognised> {
    let load_address = Prg::new(file).ok()?.load_address;
    if let Some((form, usual)) = Form::of_size(file.len()) {
        return Some(Recognised { form, load_address, usual_address: usual == load_address });
    }
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    let glyphs = file.len() - LOAD_ADDRESS_BYTES;
    let named = extension.is_some_and(|extension| extension.eq_ignore_ascii_case("64c"));
    (named && glyphs > 0 && glyphs.is_multiple_of(8)).then_some(Recognised {
        form: Form::Charset,
        load_address,
        usual_address: true,
    })
}

impl fmt::Display for Recognised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unusual = if self.usual_address { "" } else { ", which is not the usual place" };
        write!(f, "{} that loads at ${:04X}{unusual}", self.form.name(), self.load_address)
    }
}

/// The parts of a picture file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts<'a> {
    /// What the file is.
    pub recognised: Recognised,
    /// The bitmap.
    pub bitmap: &'a [u8],
    /// Screen memory.
    pub screen: &'a [u8],
    /// Colour RAM, in multicolor pictures.
    pub color: Option<&'a [u8]>,
    /// The background's colour, where the file has it.
    pub background: Option<Color>,
}

/// The parts of a picture file that shows a multicolor or a hires bitmap.
///
/// # Errors
/// `Data` when it is no such file; the message says which are known.
pub fn parts(file: &[u8], multicolor: bool) -> Result<Parts<'_>, Problem> {
    let recognised = recognise("", file).filter(|known| match known.form {
        Form::Koala | Form::KoalaWithoutBackground => multicolor,
        Form::ArtStudio => !multicolor,
        Form::Charset => false,
    });
    let known = if multicolor {
        "a Koala picture has 10,003 bytes, or 10,002 without its background"
    } else {
        "an Art Studio picture has 9,009 bytes"
    };
    let wrong = || {
        let what = recognise("", file).map_or_else(String::new, |other| format!(" and is {other}"));
        Problem::data(format!("the file has {} bytes{what}; {known}", file.len()))
    };
    let recognised = recognised.ok_or_else(wrong)?;
    let part = |from: usize, length: usize| {
        let from = LOAD_ADDRESS_BYTES + from;
        file.get(from..from + length).ok_or_else(wrong)
    };
    Ok(Parts {
        recognised,
        bitmap: part(0, BITMAP)?,
        screen: part(BITMAP, CELLS)?,
        color: if multicolor { Some(part(BITMAP + CELLS, CELLS)?) } else { None },
        background: match recognised.form {
            Form::Koala => file.last().map(|byte| Color::of_register(*byte)),
            _ => None,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(size: usize, load_address: u16) -> Vec<u8> {
        let mut file = load_address.to_le_bytes().to_vec();
        // Each byte tells its place: the low byte of the offset, shifted by the page.
        file.extend((0..size - 2).map(|at| (at ^ at >> 8) as u8));
        file
    }

    fn byte_at(offset: usize) -> u8 {
        (offset ^ offset >> 8) as u8
    }

    #[test]
    fn a_program_knows_its_addresses() {
        let file = file(12, 0x0801);
        let prg = Prg::new(&file).unwrap();
        assert_eq!((prg.load_address, prg.bytes.len()), (0x0801, 10));
        assert_eq!(prg.from_address(0x0803).unwrap(), [2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(prg.from_address(0x080b).unwrap_err().message, "the file loads $0801 to $080A; $080B is not in it");
        assert!(prg.from_address(0).is_err() && prg.from_address(u64::MAX).is_err());
        assert!(Prg::new(&[1]).unwrap_err().message.contains("1 bytes"));
        assert!(Prg::new(&[0, 0xff]).unwrap().from_address(0xff00).is_err());
        // The last byte of memory can be loaded, and nothing behind it.
        assert_eq!(Prg::new(&[0xff, 0xff, 1]).unwrap().from_address(0xffff).unwrap(), [1]);
        assert!(Prg::new(&[0xff, 0xff, 1, 2]).unwrap_err().message.contains("where 1 are left"));
    }

    #[test]
    fn pictures_are_known_by_size_and_taken_apart() {
        let koala = file(10_003, 0x6000);
        let parts = parts(&koala, true).unwrap();
        assert_eq!(parts.recognised.to_string(), "a Koala picture that loads at $6000");
        assert_eq!((parts.bitmap.len(), parts.screen.len(), parts.color.unwrap().len()), (8_000, 1_000, 1_000));
        assert_eq!(parts.bitmap, &koala[2..8_002]);
        assert_eq!(parts.screen.first(), Some(&byte_at(8_000)));
        assert_eq!(parts.color.unwrap().first(), Some(&byte_at(9_000)));
        assert_eq!(parts.background, Some(Color::of_register(byte_at(10_000))));

        let art = file(9_009, 0x2000);
        let parts = super::parts(&art, false).unwrap();
        assert_eq!((parts.color, parts.background), (None, None));
        assert_eq!(parts.screen.first(), Some(&byte_at(8_000)));

        let bare = file(10_002, 0x2000);
        let parts = super::parts(&bare, true).unwrap();
        assert!(parts.recognised.to_string().contains("loads at $2000, which is not the usual place"));
        assert_eq!(parts.background, None);
    }

    #[test]
    fn the_wrong_kind_of_picture_is_named() {
        let art = file(9_009, 0x2000);
        assert_eq!(
            parts(&art, true).unwrap_err().message,
            "the file has 9009 bytes and is an Art Studio picture that loads at $2000; a Koala picture has 10,003 bytes, or \
             10,002 without its background"
        );
        assert!(parts(&[], false).is_err());
        let charset = recognise("font.64C", &file(2_050, 0x3000)).unwrap();
        assert_eq!(charset.to_string(), "a character set with a load address that loads at $3000");
        assert_eq!(recognise("font.64c", &file(2_051, 0x3000)), None);
        assert_eq!(recognise("font.bin", &file(2_050, 0x3000)), None);
        assert_eq!(recognise("empty.64c", &file(2, 0x3000)), None);
    }
}
