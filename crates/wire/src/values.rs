//! How addresses, numbers and bytes are written in messages.

use base::VirtAddr;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;

/// An address that is already known, written as a `0x…` string because many JSON readers hold numbers as doubles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(with = "String"))]
pub struct HexAddr(pub VirtAddr);

impl From<VirtAddr> for HexAddr {
    fn from(address: VirtAddr) -> Self {
        Self(address)
    }
}

impl fmt::Display for HexAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for HexAddr {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for HexAddr {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(de::Error::custom)
    }
}

/// An address to be resolved by the agent: `0x40C8E0`, `module+0x1000`, a symbol (`game_frame`, `game_frame+0x10`), or
/// an integer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(with = "AddrExprSchema"))]
pub struct AddrExpr(pub String);

/// An address: `"0x40C8E0"`, `"module+0x1000"`, a symbol, or an integer.
#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[schemars(untagged, inline)]
#[expect(dead_code, reason = "only its schema is used")]
enum AddrExprSchema {
    Text(String),
    Number(u64),
}

impl fmt::Display for AddrExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for AddrExpr {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = AddrExpr;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an address: \"0x40C8E0\", \"module+0x1000\", a symbol, or a non-negative integer")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<AddrExpr, E> {
                let longest = base::limits::MAX_ADDR_EXPR_BYTES;
                if text.trim().is_empty() {
                    return Err(E::custom("the address is empty: write it like \"0x40C8E0\""));
                }
                if text.len() > longest {
                    return Err(E::custom(format!(
                        "the address is {} bytes long; at most {longest} are allowed",
                        text.len()
                    )));
                }
                Ok(AddrExpr(text.to_owned()))
            }

            fn visit_u64<E: de::Error>(self, raw: u64) -> Result<AddrExpr, E> {
                Ok(AddrExpr(VirtAddr::new(raw).to_string()))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// An integer of up to 64 bits, signed or not, written as a JSON number or as a string (`"0x1f"`, `"-5"`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(with = "IntValueSchema"))]
pub struct IntValue(i128);

/// An integer, or a string like `"0x1f"` or `"-5"`.
#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[schemars(untagged, inline)]
#[expect(dead_code, reason = "only its schema is used")]
enum IntValueSchema {
    Number(i64),
    Text(String),
}

impl IntValue {
    /// The value as given, between -2^63 and 2^64 - 1.
    pub const fn get(self) -> i128 {
        self.0
    }

    /// The two's complement bits, for a comparison or a register.
    pub const fn bits(self) -> u64 {
        self.0 as u64
    }

    fn checked<E: de::Error>(value: i128) -> Result<Self, E> {
        if value < i128::from(i64::MIN) || value > i128::from(u64::MAX) {
            return Err(E::custom(format!("{value} does not fit in 64 bits")));
        }
        Ok(Self(value))
    }
}

impl From<u64> for IntValue {
    fn from(value: u64) -> Self {
        Self(i128::from(value))
    }
}

impl Serialize for IntValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0 < 0 {
            serializer.collect_str(&self.0)
        } else {
            serializer.collect_str(&format_args!("{:#x}", self.0))
        }
    }
}

impl<'de> Deserialize<'de> for IntValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = IntValue;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an integer, or a string like \"0x1f\" or \"-5\"")
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<IntValue, E> {
                IntValue::checked(i128::from(value))
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<IntValue, E> {
                IntValue::checked(i128::from(value))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<IntValue, E> {
                let (negative, magnitude) = match text.strip_prefix('-') {
                    Some(rest) => (true, rest),
                    None => (false, text),
                };
                let magnitude: VirtAddr = magnitude
                    .parse()
                    .map_err(|_| E::custom(format!("`{text}` is not an integer: write 31, \"0x1f\" or \"-5\"")))?;
                let value = i128::from(magnitude.get());
                IntValue::checked(if negative { -value } else { value })
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// Bytes, written as base64 (RFC 4648 section 4, with padding).
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(with = "String"))]
pub struct Bytes(pub Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Bytes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes as a base64 string")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Bytes, E> {
                STANDARD
                    .decode(text)
                    .map(Bytes)
                    .map_err(|error| E::custom(format!("not base64 (RFC 4648, with padding): {error}")))
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}
