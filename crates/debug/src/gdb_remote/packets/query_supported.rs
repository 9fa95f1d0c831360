//! Packet `qSupported`, what the stub says of itself (GDB manual, "General Query Packets"). Many stubs answer nothing.

use std::collections::BTreeMap;

/// What is sent: we ask for no feature.
pub fn request() -> Vec<u8> {
    b"qSupported".to_vec()
}

/// Features by name: `+` or `-`, or the value behind `=`. What cannot be read is left out.
pub fn answer(answer: &[u8]) -> BTreeMap<String, String> {
    let text = String::from_utf8_lossy(answer);
    let feature = |part: &str| {
        if let Some((name, value)) = part.split_once('=') {
            return Some((name.to_owned(), value.to_owned()));
        }
        let sign = part.strip_suffix(['+', '-', '?'])?;
        Some((sign.to_owned(), part.get(sign.len()..)?.to_owned()))
    };
    text.split(';').filter_map(feature).filter(|(name, _)| !name.is_empty()).collect()
}

/// Bytes of a packet that the stub can take and give, where it says so.
pub fn packet_size(features: &BTreeMap<String, String>) -> Option<u32> {
    u32::from_str_radix(features.get("PacketSize")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_read_and_the_packet_size_is_hexadecimal() {
        // What mGBA 0.10.1 answers, with a size added.
        let features = answer(b"swbreak+;hwbreak+;qXfer:features:read+;PacketSize=3fff;odd");
        assert_eq!(features["hwbreak"], "+");
        assert_eq!(features.len(), 4);
        assert_eq!(packet_size(&features), Some(0x3FFF));
        assert_eq!(packet_size(&answer(b"")), None);
    }
}
