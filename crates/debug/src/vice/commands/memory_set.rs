//! Command 0x02, "Memory set".

use super::super::session::Request;

const SET: u8 = 0x02;

/// What is sent to write `bytes` from `start` on; they must end at or below $FFFF.
pub fn request(side_effects: bool, start: u16, bytes: &[u8], memspace: u8, bank: u16) -> Request {
    let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    let end = start.saturating_add(length.saturating_sub(1));
    let mut body = Vec::with_capacity(bytes.len() + 8);
    body.push(u8::from(side_effects));
    body.extend(start.to_le_bytes());
    body.extend(end.to_le_bytes());
    body.push(memspace);
    body.extend(bank.to_le_bytes());
    body.extend_from_slice(bytes);
    Request::new(SET, body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_has_the_manuals_bytes() {
        // $C000 and $C001, in main memory, bank 0.
        assert_eq!(request(false, 0xC000, &[0xEE, 0x20], 0, 0).body(), [0, 0, 0xC0, 1, 0xC0, 0, 0, 0, 0xEE, 0x20]);
        assert_eq!(request(false, 0xFFFF, &[1], 0, 0).body(), [0, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 1]);
    }
}
