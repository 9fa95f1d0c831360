//! Packets to bytes and back: frame, checksum, escapes and run lengths (GDB manual, "Overview" of the remote protocol).

use base::limits;

/// Starts a packet.
const START: u8 = b'$';
/// Starts a notification, which has a packet's form and is never acknowledged.
const NOTIFICATION: u8 = b'%';
/// Ends the payload; two hexadecimal digits of checksum follow.
const END: u8 = b'#';
/// The next byte is changed by [`ESCAPED`].
const ESCAPE: u8 = b'}';
/// Repeats the byte before it; the count follows.
const RUN: u8 = b'*';
/// What an escaped byte is combined with by exclusive or.
const ESCAPED: u8 = 0x20;
/// What a run's count is offset by, so that it is a printable character.
const RUN_BASE: u8 = 29;

/// What a stream of bytes from a stub is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    /// The stub took our packet.
    Ack,
    /// The stub did not understand our packet, or was not ready for one.
    Nak,
    /// A packet with its escapes and run lengths undone.
    Packet(Vec<u8>),
    /// A packet whose checksum, escapes or length were wrong.
    Damaged,
}

/// One payload as it goes over the line.
pub fn encode(payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(payload.len() + 4);
    frame.push(START);
    for byte in payload {
        if matches!(*byte, START | END | ESCAPE | RUN) {
            frame.push(ESCAPE);
            frame.push(byte ^ ESCAPED);
        } else {
            frame.push(*byte);
        }
    }
    let sum = checksum(frame.get(1..).unwrap_or_default());
    frame.push(END);
    frame.extend(format!("{sum:02x}").bytes());
    frame
}

fn checksum(payload: &[u8]) -> u8 {
    payload.iter().fold(0, |sum: u8, byte| sum.wrapping_add(*byte))
}

/// Takes a stream of bytes apart, however it is split. Holds at most one packet of [`limits::MAX_GDB_PACKET_BYTES`].
#[derive(Debug, Default)]
pub struct Decoder {
    place: Place,
    /// Payload as received, with escapes.
    payload: Vec<u8>,
    too_long: bool,
    notification: bool,
    checksum: u8,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Outside,
    Payload,
    FirstDigit,
    SecondDigit,
}

impl Decoder {
    /// Takes one byte, and gives what it completed. Bytes outside of packets that mean nothing are passed over.
    pub fn push(&mut self, byte: u8) -> Option<Token> {
        match self.place {
            Place::Outside => match byte {
                b'+' => Some(Token::Ack),
                b'-' => Some(Token::Nak),
                START | NOTIFICATION => {
                    self.start(byte);
                    None
                }
                _ => None,
            },
            Place::Payload => {
                match byte {
                    END => self.place = Place::FirstDigit,
                    // A frame that was cut off: the new one counts.
                    START => self.start(byte),
                    _ if self.payload.len() < limits::MAX_GDB_PACKET_BYTES => self.payload.push(byte),
                    _ => self.too_long = true,
                }
                None
            }
            Place::FirstDigit => {
                self.place = Place::SecondDigit;
                self.checksum = digit(byte).map_or(0, |value| value << 4);
                self.too_long |= digit(byte).is_none();
                None
            }
            Place::SecondDigit => {
                self.place = Place::Outside;
                let sum = digit(byte).map(|value| self.checksum | value);
                let payload = std::mem::take(&mut self.payload);
                if self.notification {
                    return None;
                }
                let whole = !self.too_long && sum == Some(checksum(&payload));
                Some(whole.then(|| expand(&payload)).flatten().map_or(Token::Damaged, Token::Packet))
            }
        }
    }

    fn start(&mut self, byte: u8) {
        self.place = Place::Payload;
        self.notification = byte == NOTIFICATION;
        self.too_long = false;
        self.payload.clear();
    }
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

/// Undoes escapes and run lengths; `None` where they are malformed or what comes out is longer than a packet may be.
fn expand(payload: &[u8]) -> Option<Vec<u8>> {
    let mut out: Vec<u8> = Vec::with_capacity(payload.len());
    let mut bytes = payload.iter();
    while let Some(byte) = bytes.next() {
        match *byte {
            ESCAPE => out.push(bytes.next()? ^ ESCAPED),
            RUN => {
                let count = usize::from(bytes.next()?.checked_sub(RUN_BASE)?);
                let last = *out.last()?;
                if out.len() + count > limits::MAX_GDB_PACKET_BYTES {
                    return None;
                }
                out.extend(std::iter::repeat_n(last, count));
            }
            plain => out.push(plain),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode(bytes: &[u8]) -> Vec<Token> {
        let mut decoder = Decoder::default();
        bytes.iter().filter_map(|byte| decoder.push(*byte)).collect()
    }

    #[test]
    fn a_packet_has_the_sum_of_its_bytes_behind_it() {
        // 'O' + 'K' = 0x4F + 0x4B = 0x9A.
        assert_eq!(encode(b"OK"), b"$OK#9a");
        // Escaped: '}' then 0x24 ^ 0x20 = 0x04; 0x7D + 0x04 = 0x81.
        assert_eq!(encode(b"$"), b"$}\x04#81");
        assert_eq!(decode(b"$OK#9A"), [Token::Packet(b"OK".to_vec())]);
    }

    #[test]
    fn run_lengths_are_undone_as_the_manual_shows_them() {
        // The manual's example: "0* " is "0000"; 0x30 + 0x2A + 0x20 = 0x7A.
        assert_eq!(decode(b"$0* #7a"), [Token::Packet(b"0000".to_vec())]);
        // A run with nothing before it: 0x2A + 0x20 = 0x4A.
        assert_eq!(decode(b"$* #4a"), [Token::Damaged]);
    }

    #[test]
    fn noise_wrong_sums_cut_frames_and_notifications_do_not_hide_the_next_packet() {
        let ok = Token::Packet(b"OK".to_vec());
        assert_eq!(decode(b"k$OK#9ak+-$OK#9b"), [ok.clone(), Token::Ack, Token::Nak, Token::Damaged]);
        assert_eq!(decode(b"$S0$OK#9a"), std::slice::from_ref(&ok));
        assert_eq!(decode(b"%Stop:S05#00$OK#9a"), std::slice::from_ref(&ok));
        assert_eq!(decode(b"$OK#zz$OK#9a"), [Token::Damaged, ok]);
    }

    #[test]
    fn a_packet_beyond_the_limit_is_damaged_and_holds_no_more_than_the_limit() {
        let mut decoder = Decoder::default();
        decoder.push(b'$');
        for _ in 0..limits::MAX_GDB_PACKET_BYTES * 2 {
            assert_eq!(decoder.push(b'0'), None);
        }
        assert!(decoder.payload.capacity() <= limits::MAX_GDB_PACKET_BYTES * 2);
        decoder.push(b'#');
        decoder.push(b'0');
        assert_eq!(decoder.push(b'0'), Some(Token::Damaged));
        // Two bytes that stand for 97 (126 - 29): a short payload that grows beyond the limit.
        let bomb = [b"0".as_slice(), &b"*~".repeat(limits::MAX_GDB_PACKET_BYTES / 97 + 1)].concat();
        let sum = checksum(&bomb);
        let frame = [b"$".as_slice(), &bomb, format!("#{sum:02x}").as_bytes()].concat();
        assert_eq!(decode(&frame), [Token::Damaged]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn property_what_is_encoded_decodes_however_it_is_split(payload in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(decode(&encode(&payload)), [Token::Packet(payload)]);
        }
    }
}
