//! What a stub turned out to be able to do, and its habits: found out by asking it or by what it sent, never by its name.

use std::collections::BTreeMap;

use base::limits;

use super::packets::query_supported;

/// Whether a stub does something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Answer {
    /// Nothing has been asked yet.
    #[default]
    Unknown,
    /// It does.
    Yes,
    /// It does not.
    No,
}

/// The order of the digits in which a stub names a watched address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressOrder {
    /// As the manual says.
    Plain,
    /// Last digit first, as DeSmuME does.
    Reversed,
}

/// What is known about a stub.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// What it says of itself; empty for stubs that do not.
    pub features: BTreeMap<String, String>,
    /// Packet `p`.
    pub single_register: Answer,
    /// Whether it confirms packet `M`.
    pub confirms_writes: Answer,
    /// Packets `Z2` to `Z4`: write, read, access.
    pub watchpoints: [Answer; 3],
    /// How it names watched addresses, once one told.
    pub address_order: Option<AddressOrder>,
}

impl Capabilities {
    /// Bytes of memory that may be asked for in one packet: what every stub we know can give, or half of the packet that this
    /// one says it has room for.
    pub fn read_chunk(&self) -> u32 {
        let most = limits::MAX_GDB_READ_CHUNK_BYTES;
        query_supported::packet_size(&self.features).map_or(most, |size| (size / 2).clamp(1, most))
    }

    /// The address that a stop names by `digits`. Until the order is known it is learned from which of both readings is
    /// `watched`; `None` when neither or no number is.
    pub fn watched_address(&mut self, digits: &str, watched: impl Fn(u32) -> bool) -> Option<u32> {
        let plain = u32::from_str_radix(digits, 16).ok()?;
        let reversed = u32::from_str_radix(&format!("{digits:0>8}").chars().rev().collect::<String>(), 16).ok()?;
        match self.address_order {
            Some(AddressOrder::Plain) => Some(plain),
            Some(AddressOrder::Reversed) => Some(reversed),
            None => {
                let (order, address) = match (watched(plain), watched(reversed)) {
                    (true, false) => (Some(AddressOrder::Plain), plain),
                    (false, true) => (Some(AddressOrder::Reversed), reversed),
                    // Read the same from both ends, or two watchpoints mirror each other.
                    (true, true) if plain == reversed => (None, plain),
                    _ => return None,
                };
                self.address_order = order;
                Some(address)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stub_with_less_room_is_asked_for_less() {
        let with = |size: &str| {
            let features = BTreeMap::from([("PacketSize".to_owned(), size.to_owned())]);
            Capabilities { features, ..Capabilities::default() }.read_chunk()
        };
        assert_eq!((with("100"), with("4000"), with("0"), with("x")), (0x80, 512, 1, 512));
    }

    #[test]
    fn the_order_of_digits_is_learned_from_the_watched_addresses_and_kept() {
        let mut capabilities = Capabilities::default();
        assert_eq!(capabilities.watched_address("c0000320", |address| address == 0x0400_0004), None);
        assert_eq!(capabilities.address_order, None);
        assert_eq!(capabilities.watched_address("c0000320", |address| address == 0x0230_000C), Some(0x0230_000C));
        assert_eq!(capabilities.address_order, Some(AddressOrder::Reversed));
        assert_eq!(capabilities.watched_address("40000040", |_| true), Some(0x0400_0004));

        // The same from both ends says nothing about the order; two watchpoints that mirror each other leave the address open.
        let mut open = Capabilities::default();
        assert_eq!(open.watched_address("02000020", |address| address == 0x0200_0020), Some(0x0200_0020));
        assert_eq!(open.watched_address("02000040", |_| true), None);
        assert_eq!(open.address_order, None);

        let mut plain = Capabilities::default();
        assert_eq!(plain.watched_address("2000000", |address| address == 0x0200_0000), Some(0x0200_0000));
        assert_eq!(plain.address_order, Some(AddressOrder::Plain));
        assert_eq!(plain.watched_address("zz", |_| true), None);
    }
}
