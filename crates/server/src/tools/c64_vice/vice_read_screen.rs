//! `vice_read_screen`: the text on the screen.

use super::prelude::*;
use super::shared::{either, invalid, refuse};
use crate::errors::ErrorCode;
use c64::charset::Encoding;

/// The tool.
#[derive(Debug)]
pub struct ViceReadScreen;

/// What is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Where the screen lies, if not where the registers say.
    screen: Option<u16>,
    /// Letters; the default is what the registers say.
    #[serde(default)]
    encoding: Letters,
    /// Milliseconds for the whole call.
    #[serde(default)]
    timeout_ms: Time,
}

impl Tool for ViceReadScreen {
    const NAME: &'static str = "vice_read_screen";
    const DESCRIPTION: &'static str = "Read the text screen of the stopped C64 as text: where it lies is found from the registers of the VIC-II and the CIA.";
    const EFFECT: Effect = Effect::READS;
    type Params = Params;
    type Output = Envelope;

    async fn run(context: &Context, params: Params) -> Result<Envelope, ToolError> {
        either(run(context, params).await)
    }
}

/// The two sets of letters, or the one that is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
#[allow(missing_docs, reason = "the words say it, and docs would be in the schema")]
pub enum Letters {
    #[default]
    AsShown,
    ScreenCodeUpper,
    ScreenCodeLower,
}

/// What is said of characters that are not the ROM's.
const FROM_RAM: &str =
    "the characters are drawn from RAM and may look different; `encoding` chooses how they are read here";

/// Characters in a row, and rows.
const COLUMNS: usize = 40;
const ROWS: usize = 25;

async fn run(context: &Context, params: Params) -> Result<Envelope, Envelope> {
    let mut row = Row::new(context, params.timeout_ms, None)?;
    let io = row.bank("io").await?;
    let ram = row.bank("ram").await?;
    let registers = row.memory(io, 0xD000, 0x19).await?;
    let port = row.memory(io, 0xDD00, 3).await?;
    let seen = Seen::of(&registers, &port);
    if seen.bitmap && params.screen.is_none() {
        let message = format!("the screen shows a bitmap, at ${:04X}, and no text", seen.bitmap_address());
        return Err(refuse(
            ToolError::new(ErrorCode::ViceReadFailed, message)
                .hint("vice_capture_screen shows it; `screen` reads text from an address all the same"),
        ));
    }
    let screen = params.screen.unwrap_or_else(|| seen.screen());
    let count = COLUMNS * ROWS;
    if usize::from(screen) + count > 0x1_0000 {
        return Err(refuse(invalid(format!("a screen at ${screen:04X} would not end by $FFFF"))));
    }
    let codes = row.memory(ram, screen, count).await?;
    let (charset, in_rom) = seen.charset();
    // The ROM has the set with upper-case letters first, 2 KiB before the other; of other characters nothing is known.
    let lower = in_rom && charset & 0x0800 != 0;
    let encoding = match params.encoding {
        Letters::ScreenCodeLower => Encoding::ScreenCodeLower,
        Letters::AsShown if lower => Encoding::ScreenCodeLower,
        Letters::AsShown | Letters::ScreenCodeUpper => Encoding::ScreenCodeUpper,
    };
    let shown = |code: &u8| {
        // With extended colours the upper two bits choose a background.
        let code = if seen.extended { code & 0x3F } else { *code };
        encoding.entry(code).unicode.unwrap_or(' ')
    };
    let lines: Vec<String> = codes.chunks(COLUMNS).map(|line| line.iter().map(shown).collect::<String>()).collect();
    let reversed = |line: &[u8]| line.iter().filter(|code| !seen.extended && **code >= 0x80).count();
    let reversed: Vec<usize> = codes.chunks(COLUMNS).map(reversed).collect();
    Ok(row.answer(json!({
        "lines": lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>(),
        "reversed_in_line": reversed,
        "screen": screen,
        "screen_display": format!("${screen:04X}"),
        "encoding": encoding.word(),
        "charset": charset,
        "charset_display": format!("${charset:04X}"),
        "charset_in_rom": in_rom,
        "mode": seen.mode(),
        "vic_bank": seen.bank,
        "note": (!in_rom).then_some(FROM_RAM),
    })))
}

/// What the registers say (Programmer's Reference Guide, chapter 3, and appendices G and M).
struct Seen {
    /// Which quarter of memory the VIC-II sees.
    bank: u16,
    /// $D018.
    pointers: u16,
    bitmap: bool,
    extended: bool,
    multicolor: bool,
}

impl Seen {
    fn of(registers: &[u8], port: &[u8]) -> Self {
        let vic = |number: usize| registers.get(number).copied().unwrap_or_default();
        let cia = |number: usize| port.get(number).copied().unwrap_or_default();
        // Lines that are inputs are high.
        let lines = cia(0) | !cia(2);
        Self {
            bank: u16::from(3 - (lines & 3)),
            pointers: u16::from(vic(0x18)),
            bitmap: vic(0x11) & 0x20 != 0,
            extended: vic(0x11) & 0x40 != 0,
            multicolor: vic(0x16) & 0x10 != 0,
        }
    }

    fn base(&self) -> u16 {
        self.bank << 14
    }

    fn screen(&self) -> u16 {
        self.base() | (self.pointers & 0xF0) << 6
    }

    fn bitmap_address(&self) -> u16 {
        self.base() | (self.pointers & 0x08) << 10
    }

    /// Where the characters are, and whether that is the ROM: in two of the four banks it lies over RAM at $1000.
    fn charset(&self) -> (u16, bool) {
        let offset = (self.pointers & 0x0E) << 10;
        let in_rom = self.bank & 1 == 0 && offset & 0x3000 == 0x1000;
        (self.base() | offset, in_rom)
    }

    const fn mode(&self) -> &'static str {
        match (self.bitmap, self.extended, self.multicolor) {
            (true, ..) => "bitmap",
            (_, true, _) => "extended color text",
            (_, _, true) => "multicolor text",
            _ => "text",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(d011: u8, d016: u8, d018: u8, dd00: u8) -> Seen {
        let mut registers = [0; 0x19];
        (registers[0x11], registers[0x16], registers[0x18]) = (d011, d016, d018);
        Seen::of(&registers, &[dd00, 0xFF, 0x3F])
    }

    #[test]
    fn registers_say_where_the_screen_is() {
        // After power-on: $D018 is $15, $DD00 is $97 (the guide's memory map).
        let usual = seen(0x1B, 0xC8, 0x15, 0x97);
        assert_eq!((usual.screen(), usual.charset(), usual.mode()), (0x0400, (0x1000, true), "text"));
        // $17 has the second set.
        assert_eq!(seen(0x1B, 0xC8, 0x17, 0x97).charset(), (0x1800, true));
        // Bank 3, screen 3 * 1024 in it, characters at 1 * 2048.
        let high = seen(0x1B, 0xD8, 0x32, 0x94);
        assert_eq!((high.screen(), high.charset(), high.mode()), (0xCC00, (0xC800, false), "multicolor text"));
        // In bank 1 there is no ROM at $1000.
        assert_eq!(seen(0x5B, 0xC8, 0x15, 0x96).charset(), (0x5000, false));
        assert_eq!(seen(0x5B, 0xC8, 0x15, 0x96).mode(), "extended color text");
        let bitmap = seen(0x3B, 0xC8, 0x38, 0x97);
        assert_eq!((bitmap.mode(), bitmap.bitmap_address()), ("bitmap", 0x2000));
        // Lines that are inputs are pulled up: bank 0.
        assert_eq!(Seen::of(&[], &[0, 0, 0]).bank, 0);
    }
}
