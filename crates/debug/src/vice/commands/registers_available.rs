//! Command 0x83, "Registers available".

use super::super::error::Error;
use super::super::framing::Fields;
use super::super::session::Request;

const AVAILABLE: u8 = 0x83;

/// What a register is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Register {
    /// Its number.
    pub id: u8,
    /// Its width.
    pub bits: u8,
    /// Its name.
    pub name: String,
}

impl Register {
    /// Its largest value. VICE takes a larger one and cuts it off (measured).
    pub fn largest(&self) -> u16 {
        match u32::from(self.bits) {
            0 => 0,
            bits => u16::MAX >> 16_u32.saturating_sub(bits),
        }
    }
}

/// What is sent.
pub fn request(memspace: u8) -> Request {
    Request::new(AVAILABLE, vec![memspace])
}

/// # Errors
/// [`Error::Protocol`].
pub fn answer(body: &[u8]) -> Result<Vec<Register>, Error> {
    let mut fields = Fields::of(body, "a list of registers");
    let mut registers = Vec::new();
    // Numbers have one byte, so there are 256 at most.
    for _ in 0..fields.word()?.min(256) {
        let mut item = fields.item()?;
        registers.push(Register { id: item.byte()?, bits: item.byte()?, name: item.text()? });
    }
    Ok(registers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_registers_of_3_7_1_are_read_and_have_their_widths() {
        // Recorded from x64sc 3.7.1, with the count made two.
        let registers = answer(b"\x02\x00\x05\x03\x10\x02PC\x04\x00\x08\x01A").unwrap();
        assert_eq!(registers[0], Register { id: 3, bits: 16, name: "PC".to_owned() });
        // 2^16 - 1 and 2^8 - 1.
        assert_eq!((registers[0].largest(), registers[1].largest()), (0xFFFF, 0xFF));
        assert!(matches!(answer(b"\x01\x00\x05\x03"), Err(Error::Protocol(_))));
    }
}
