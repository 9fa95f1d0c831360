//! Arguments that several of these tools take, each with its range in the schema and a refusal that names it.

use crate::errors::{ErrorCode, ToolError};
use base::limits;
use code::arm::Mode;
use nds::Processor;
use nds::analysis::{ModeChoice, Place, Where};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};
use std::borrow::Cow;
use std::fmt;

/// A number with a range; left out, it is `DEFAULT`, or the largest where that is larger than `MOST`.
#[derive(Clone, Copy, Debug)]
pub struct Bounded<const LEAST: u64, const MOST: u64, const DEFAULT: u64>(i64);

impl<const LEAST: u64, const MOST: u64, const DEFAULT: u64> Bounded<LEAST, MOST, DEFAULT> {
    /// The number, if it is in its range.
    ///
    /// # Errors
    /// `code`, naming the argument and the range.
    pub fn get(self, name: &str, code: ErrorCode) -> Result<u64, ToolError> {
        let value = u64::try_from(self.0).ok().filter(|value| (LEAST..=MOST).contains(value));
        value.ok_or_else(|| {
            let hint = if i128::from(self.0) < i128::from(LEAST) {
                format!("ask for {LEAST} at least")
            } else {
                format!("ask for {MOST} at most; what does not fit in one answer is continued at `next`")
            };
            ToolError::new(code, format!("`{name}` is {}; allowed are {LEAST} to {MOST}", self.0))
                .hint(hint)
                .detail("argument", name)
                .detail("limit", MOST)
        })
    }

    /// The same as a count of things in memory.
    ///
    /// # Errors
    /// `code`, naming the argument and the range.
    pub fn count(self, name: &str, code: ErrorCode) -> Result<usize, ToolError> {
        self.get(name, code).map(|value| usize::try_from(value).unwrap_or(usize::MAX))
    }
}

impl<const LEAST: u64, const MOST: u64, const DEFAULT: u64> Default for Bounded<LEAST, MOST, DEFAULT> {
    fn default() -> Self {
        Self(DEFAULT.min(MOST).cast_signed())
    }
}

impl<'de, const LEAST: u64, const MOST: u64, const DEFAULT: u64> Deserialize<'de> for Bounded<LEAST, MOST, DEFAULT> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        i64::deserialize(deserializer).map(Self)
    }
}

impl<const LEAST: u64, const MOST: u64, const DEFAULT: u64> JsonSchema for Bounded<LEAST, MOST, DEFAULT> {
    fn schema_name() -> Cow<'static, str> {
        format!("Bounded{LEAST}To{MOST}Or{DEFAULT}").into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        if DEFAULT > MOST {
            return json_schema!({"type": "integer", "minimum": LEAST, "maximum": MOST});
        }
        json_schema!({"type": "integer", "minimum": LEAST, "maximum": MOST, "default": DEFAULT})
    }
}

/// Items of a long answer to skip.
pub type Skip = Bounded<0, { limits::MAX_NDS_RESULT_ITEMS }, 0>;
/// Items of a long answer at most; as many as fit when it is left out.
pub type Most = Bounded<1, { limits::MAX_NDS_RESULT_ITEMS }, { u64::MAX }>;
/// Items of a list at most.
pub type ListMost = Bounded<1, { limits::MAX_NDS_LIST_ITEMS }, { limits::DEFAULT_NDS_LIST_ITEMS }>;

/// An address or offset of 32 bits: an integer, or a string like `"0x02000000"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address(pub u32);

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl Visitor<'_> for Either {
            type Value = Address;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an integer from 0 to 4294967295, or a string like \"0x02000000\"")
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Address, E> {
                let out = |_| E::custom(format!("{value} is out of range; allowed are 0 to 4294967295"));
                u32::try_from(value).map(Address).map_err(out)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Address, E> {
                let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
                let plain = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
                plain.and_then(|digits| u32::from_str_radix(digits, 16).ok()).map(Address).ok_or_else(|| {
                    let shown: String = text.chars().take(40).collect();
                    E::custom(format!("`{shown}` is no address; write an integer or a string like \"0x02000000\""))
                })
            }
        }

        deserializer.deserialize_any(Either)
    }
}

impl JsonSchema for Address {
    fn schema_name() -> Cow<'static, str> {
        "Address".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["integer", "string"], "minimum": 0, "maximum": u32::MAX})
    }
}

// One of the two processors.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum ProcessorName {
    Arm9,
    Arm7,
}

impl From<ProcessorName> for Processor {
    fn from(name: ProcessorName) -> Self {
        match name {
            ProcessorName::Arm9 => Self::Arm9,
            ProcessorName::Arm7 => Self::Arm7,
        }
    }
}

// An instruction set, or the one that is proven.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum AnyMode {
    Arm,
    Thumb,
    #[default]
    Auto,
}

impl From<AnyMode> for ModeChoice {
    fn from(mode: AnyMode) -> Self {
        match mode {
            AnyMode::Arm => Self::Fixed(Mode::Arm),
            AnyMode::Thumb => Self::Fixed(Mode::Thumb),
            AnyMode::Auto => Self::Auto,
        }
    }
}

// An instruction set.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum OneMode {
    Arm,
    Thumb,
}

impl From<OneMode> for Mode {
    fn from(mode: OneMode) -> Self {
        match mode {
            OneMode::Arm => Self::Arm,
            OneMode::Thumb => Self::Thumb,
        }
    }
}

/// The place that the arguments of a tool name together.
///
/// # Errors
/// `invalid_arguments` unless exactly one of address and offset is given.
pub fn place(
    processor: ProcessorName,
    runtime_address: Option<Address>,
    rom_offset: Option<Address>,
    overlay_id: Option<u32>,
    mode: AnyMode,
) -> Result<Place, ToolError> {
    let at = one_place(runtime_address, rom_offset, "runtimeAddress", "romOffset")?;
    Ok(Place { processor: processor.into(), at, overlay_id, mode: mode.into() })
}

/// Exactly one of an address and an offset.
///
/// # Errors
/// `invalid_arguments` when both or none are given.
pub fn one_place(
    address: Option<Address>,
    offset: Option<Address>,
    address_name: &str,
    offset_name: &str,
) -> Result<Where, ToolError> {
    match (address, offset) {
        (Some(Address(address)), None) => Ok(Where::Address(address)),
        (None, Some(Address(offset))) => Ok(Where::RomOffset(offset)),
        (given, _) => Err(ToolError::new(
            ErrorCode::InvalidArguments,
            format!(
                "{} of `{address_name}` and `{offset_name}` are given; exactly one is wanted",
                if given.is_some() { "both" } else { "none" }
            ),
        )),
    }
}

/// Refuses an empty path and one that is too long for any ROM.
///
/// # Errors
/// `invalid_arguments`.
pub fn check_path<'a>(name: &str, path: &'a str) -> Result<&'a str, ToolError> {
    let most = limits::MAX_NDS_PATH_BYTES;
    if path.is_empty() || path.len() > most {
        return Err(ToolError::new(
            ErrorCode::InvalidArguments,
            format!("`{name}` has {} bytes; allowed are 1 to {most}", path.len()),
        ));
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn address(value: Value) -> Result<u32, String> {
        serde_json::from_value::<Address>(value).map(|address| address.0).map_err(|error| error.to_string())
    }

    #[test]
    fn an_address_is_an_integer_or_hexadecimal() {
        for (value, wanted) in [
            (json!(33554432), 0x0200_0000),
            (json!("0x02000000"), 0x0200_0000),
            (json!("0Xffffffff"), u32::MAX),
            (json!(4_294_967_295_u64), u32::MAX),
        ] {
            assert_eq!(address(value), Ok(wanted));
        }
        for (value, word) in [
            (json!(4_294_967_296_u64), "allowed are 0 to 4294967295"),
            (json!("0x100000000"), "is no address"),
            (json!("02000000"), "0x02000000"),
            (json!("0x"), "is no address"),
            (json!("0x+1"), "is no address"),
            (json!(-1), "integer from 0"),
            (json!(1.5), "integer from 0"),
        ] {
            assert!(address(value.clone()).unwrap_err().contains(word), "{value}");
        }
    }

    #[test]
    fn one_over_a_limit_is_refused_with_the_range() {
        type Number = Bounded<2, 1_024, 128>;
        let get = |value: i64| Number::deserialize(json!(value)).unwrap().get("maxBytes", ErrorCode::InvalidPattern);
        assert_eq!((get(2).unwrap(), get(1_024).unwrap()), (2, 1_024));
        for value in [1, 1_025, 0, -1, i64::MAX] {
            let error = get(value).unwrap_err();
            assert_eq!(error.message, format!("`maxBytes` is {value}; allowed are 2 to 1024"));
            assert_eq!(error.code, ErrorCode::InvalidPattern);
            let hint = error.hint;
            let wanted = if value < 2 { "ask for 2 at least" } else { "ask for 1024 at most" };
            assert!(hint.starts_with(wanted), "{value}: {hint}");
        }
        assert_eq!(Number::default().get("", ErrorCode::InvalidPattern).unwrap(), 128);
        let schema = crate::schema::of_input::<Wrapped>();
        assert_eq!(
            schema["properties"]["number"],
            json!({"type": "integer", "minimum": 2, "maximum": 1_024, "default": 128, "description": "A number."})
        );
    }

    #[derive(Deserialize, JsonSchema)]
    struct Wrapped {
        /// A number.
        #[serde(default)]
        #[allow(dead_code, reason = "its schema is what is looked at")]
        number: Bounded<2, 1_024, 128>,
    }
}
