//! The fake memory: a few mapped ranges of bytes.

/// Mapped ranges, by address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    ranges: Vec<(u64, Vec<u8>)>,
}

impl Memory {
    pub fn map(&mut self, base: u64, bytes: Vec<u8>) {
        self.ranges.push((base, bytes));
    }

    pub fn unmap(&mut self, base: u64) {
        self.ranges.retain(|(start, _)| *start != base);
    }

    pub fn get(&self, address: u64) -> Option<u8> {
        self.ranges.iter().find_map(|(base, bytes)| bytes.get(address.checked_sub(*base)? as usize).copied())
    }

    /// Changes a mapped byte; false where nothing is mapped.
    pub fn set(&mut self, address: u64, value: u8) -> bool {
        let place =
            self.ranges.iter_mut().find_map(|(base, bytes)| bytes.get_mut(address.checked_sub(*base)? as usize));
        place.map(|place| *place = value).is_some()
    }

    pub fn read(&self, address: u64, length: usize) -> Vec<u8> {
        (0..length as u64).map_while(|index| self.get(address.checked_add(index)?)).collect()
    }

    pub fn word(&self, address: u64) -> u32 {
        u32::from_le_bytes(self.read(address, 4).try_into().expect("mapped"))
    }
}
