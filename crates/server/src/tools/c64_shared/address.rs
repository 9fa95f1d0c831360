//! Addresses of Ghidra as people write them: `0840`, `0x0840`, `RAM:0840`, `OV1::a000`. Arithmetic keeps the way of writing.

use super::invalid;
use crate::errors::ToolError;

/// An address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address<'a> {
    /// What stands before the digits, the address space and `0x`.
    prefix: &'a str,
    /// Digits as written.
    width: usize,
    /// The offset.
    pub offset: u64,
}

impl<'a> Address<'a> {
    /// Reads one; `name` is the argument's name in messages.
    ///
    /// # Errors
    /// `invalid_arguments`.
    pub fn parse(name: &str, text: &'a str) -> Result<Self, ToolError> {
        if text.trim().is_empty() {
            return Err(invalid(format!("{name} must be a non-empty address")));
        }
        let after_space = text.rfind(':').map_or(0, |colon| colon + 1);
        let rest = text.get(after_space..).unwrap_or_default();
        let marker = if rest.starts_with("0x") || rest.starts_with("0X") { 2 } else { 0 };
        let (prefix, digits) = text.split_at_checked(after_space + marker).unwrap_or((text, ""));
        let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        match u64::from_str_radix(digits, 16) {
            Ok(offset) if plain => Ok(Self { prefix, width: digits.len(), offset }),
            _ => Err(invalid(format!("{name} must end in a hexadecimal offset of at most 16 digits, like RAM:0840"))),
        }
    }

    /// Whether both are of one address space, by the way they are written.
    pub fn same_space(&self, other: &Self) -> bool {
        self.space() == other.space()
    }

    /// The address space as it is written, with its colon.
    fn space(&self) -> &'a str {
        self.prefix.strip_suffix("0x").or_else(|| self.prefix.strip_suffix("0X")).unwrap_or(self.prefix)
    }

    /// The address so many bytes further on, written the same way.
    pub fn plus(&self, bytes: usize) -> String {
        let offset = self.offset.saturating_add(bytes as u64);
        format!("{}{offset:0width$x}", self.prefix, width = self.width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_keeps_the_way_of_writing() {
        for (text, plus, expected) in [
            ("0840", 11, "084b"),
            ("RAM:0840", 0, "RAM:0840"),
            ("ram:840", 32, "ram:860"),
            ("0X08AF", 76, "0X08fb"),
            ("OV1::a000", 15, "OV1::a00f"),
            ("RAM:0xfff0", 16, "RAM:0x10000"),
            ("f", 1, "10"),
        ] {
            assert_eq!(Address::parse("start", text).unwrap().plus(plus), expected, "{text}");
        }
    }

    #[test]
    fn what_has_no_offset_is_no_address() {
        for text in ["zz", "$0840", "RAM:", "0x", "RAM:+1", "10000000000000000"] {
            assert!(Address::parse("start", text).unwrap_err().message.contains("hexadecimal offset"), "{text}");
        }
        assert!(Address::parse("end", " ").unwrap_err().message.contains("end must be a non-empty"));
        let (one, other) = (Address::parse("a", "ram:1").unwrap(), Address::parse("a", "1").unwrap());
        assert!(!one.same_space(&other) && one.same_space(&one));
        let marked = Address::parse("a", "0X1").unwrap();
        assert!(other.same_space(&marked) && !one.same_space(&marked));
    }
}
