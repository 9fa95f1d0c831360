//! Address types, one per address space, so that mixing two of them does not compile.

use std::fmt;
use std::str::FromStr;

/// An address in the virtual memory of a running process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VirtAddr(u64);

/// An offset from the place where a module is loaded: what stays the same when the module moves.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rva(u64);

/// Why a text is not a number that an address can be made of.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddrParseError {
    /// Nothing stood where a number belongs.
    #[error("an address is missing: write it like 0x40C8E0")]
    Empty,
    /// A character is no digit of the number's base.
    #[error("`{0}` is not an address: write hexadecimal like 0x40C8E0, or a decimal number")]
    NotANumber(String),
    /// More than 64 bits.
    #[error("`{0}` does not fit in 64 bits: the largest address is 0xffffffffffffffff")]
    TooLarge(String),
}

impl VirtAddr {
    /// Wraps a raw 64-bit address; a 32-bit program's addresses are zero-extended.
    pub const fn new(raw: u64) -> Self {
        Self(raw)
    }

    /// The raw address.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The address `len` bytes on, or `None` where it would pass the end of the 64-bit space.
    pub fn checked_add(self, len: u64) -> Option<Self> {
        self.0.checked_add(len).map(Self)
    }

    /// The address `len` bytes on, modulo 2^64, as the processor computes it.
    pub const fn wrapping_add(self, len: u64) -> Self {
        Self(self.0.wrapping_add(len))
    }

    /// The address `len` bytes before, modulo 2^64.
    pub const fn wrapping_sub(self, len: u64) -> Self {
        Self(self.0.wrapping_sub(len))
    }

    /// How many bytes this address lies after `start`; `None` when it lies before.
    pub fn offset_from(self, start: Self) -> Option<u64> {
        self.0.checked_sub(start.0)
    }

    /// The module-relative form, given where the module is loaded; `None` below that place.
    pub fn to_rva(self, base: Self) -> Option<Rva> {
        self.offset_from(base).map(Rva)
    }

    /// Whether this address lies in the `len` bytes from `start` on.
    pub fn is_in(self, start: Self, len: u64) -> bool {
        self.offset_from(start).is_some_and(|offset| offset < len)
    }
}

impl Rva {
    /// Wraps a raw offset in bytes.
    pub const fn new(raw: u64) -> Self {
        Self(raw)
    }

    /// The raw offset in bytes.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Where this offset lies with the module loaded at `base`; `None` past the end of the 64-bit space.
    pub fn at(self, base: VirtAddr) -> Option<VirtAddr> {
        base.checked_add(self.0)
    }
}

impl fmt::Display for VirtAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:x}", self.0)
    }
}

impl fmt::Debug for VirtAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Rva {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:x}", self.0)
    }
}

impl fmt::Debug for Rva {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "+0x{:x}", self.0)
    }
}

/// Reads `0x…` as hexadecimal and bare digits as decimal; underscores are not accepted.
impl FromStr for VirtAddr {
    type Err = AddrParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
            Some(digits) => (digits, 16),
            None => (text, 10),
        };
        if digits.is_empty() {
            return Err(AddrParseError::Empty);
        }
        if !digits.chars().all(|c| c.is_digit(radix)) {
            return Err(AddrParseError::NotANumber(text.to_owned()));
        }
        u64::from_str_radix(digits, radix).map(Self).map_err(|_| AddrParseError::TooLarge(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parses_both_bases_and_refuses_the_rest() {
        assert_eq!("0x40C8E0".parse(), Ok(VirtAddr::new(0x40_C8E0)));
        assert_eq!("0X10".parse(), Ok(VirtAddr::new(16)));
        assert_eq!("10".parse(), Ok(VirtAddr::new(10)));
        assert_eq!("".parse::<VirtAddr>(), Err(AddrParseError::Empty));
        assert_eq!("0x".parse::<VirtAddr>(), Err(AddrParseError::Empty));
        assert!(matches!("40C8E0".parse::<VirtAddr>(), Err(AddrParseError::NotANumber(_))));
        assert!(matches!("+1".parse::<VirtAddr>(), Err(AddrParseError::NotANumber(_))));
        assert!(matches!("0x10000000000000000".parse::<VirtAddr>(), Err(AddrParseError::TooLarge(_))));
    }

    proptest! {
        #[test]
        fn display_parses_back(raw: u64) {
            prop_assert_eq!(VirtAddr::new(raw).to_string().parse(), Ok(VirtAddr::new(raw)));
        }

        #[test]
        fn rva_and_address_are_inverse(base: u64, offset: u64) {
            let base = VirtAddr::new(base);
            match Rva::new(offset).at(base) {
                Some(address) => prop_assert_eq!(address.to_rva(base), Some(Rva::new(offset))),
                None => prop_assert!(base.get() > u64::MAX - offset),
            }
        }
    }
}
