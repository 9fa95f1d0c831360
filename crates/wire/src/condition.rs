//! The condition of a breakpoint or watchpoint, as it is written in a message.

use crate::values::{AddrExpr, IntValue};
use serde::{Deserialize, Serialize};

/// A comparison operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum CompareOp {
    /// Equal.
    #[serde(rename = "==")]
    Eq,
    /// Not equal.
    #[serde(rename = "!=")]
    Ne,
    /// Less.
    #[serde(rename = "<")]
    Lt,
    /// Greater.
    #[serde(rename = ">")]
    Gt,
    /// Less or equal.
    #[serde(rename = "<=")]
    Le,
    /// Greater or equal.
    #[serde(rename = ">=")]
    Ge,
}

/// What must hold for a hit to stop the program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "ConditionFields", into = "ConditionFields")]
pub enum Condition {
    /// A register, or a part of one, compared with a value.
    Register {
        /// Name of the register: `ecx`, `cl`, `rip`, `xmm0` is not one.
        register: String,
        /// The operator.
        op: CompareOp,
        /// The right-hand side.
        value: IntValue,
        /// Both sides are read as two's complement of the register's width.
        signed: bool,
    },
    /// Little-endian memory compared with a value.
    Memory {
        /// Where: `0x47eb48+0x18`, `ecx+0x18`, `game_state`.
        memory: AddrExpr,
        /// Width in bytes: 1, 2, 4 or 8.
        size: u8,
        /// The operator.
        op: CompareOp,
        /// The right-hand side.
        value: IntValue,
        /// Both sides are read as two's complement of `size` bytes.
        signed: bool,
    },
    /// Every one of these holds.
    All(Vec<Condition>),
    /// At least one of these holds.
    Any(Vec<Condition>),
}

/// One of: `register` with `op` and `value`; `memory` with `size`, `op` and `value`; `all`; `any`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Condition"))]
#[serde(deny_unknown_fields)]
struct ConditionFields {
    /// Register or sub-register: `ecx`, `cl`, `r8d`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    register: Option<String>,
    /// Address expression, evaluated at each hit: `0x47eb48+0x18`, `ecx+0x18`, a symbol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    memory: Option<AddrExpr>,
    /// Bytes compared: 1, 2, 4 (default) or 8; only with `memory`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size: Option<u8>,
    /// Operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    op: Option<CompareOp>,
    /// Right-hand side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<IntValue>,
    /// Compare as two's complement; default false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signed: Option<bool>,
    /// All of these must hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    all: Option<Vec<Condition>>,
    /// One of these must hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    any: Option<Vec<Condition>>,
}

const SHAPES: &str = "a condition is {\"register\",\"op\",\"value\"} or {\"memory\",\"size\",\"op\",\"value\"} \
                      (either with \"signed\"), or {\"all\":[…]} or {\"any\":[…]}";

impl TryFrom<ConditionFields> for Condition {
    type Error = String;

    fn try_from(fields: ConditionFields) -> Result<Self, String> {
        let comparison =
            fields.op.is_some() || fields.value.is_some() || fields.signed.is_some() || fields.size.is_some();
        match (fields.register, fields.memory, fields.all, fields.any) {
            (None, None, Some(all), None) if !comparison => nonempty("all", all).map(Self::All),
            (None, None, None, Some(any)) if !comparison => nonempty("any", any).map(Self::Any),
            (Some(register), None, None, None) => {
                let (Some(op), Some(value)) = (fields.op, fields.value) else {
                    return Err(format!("`op` and `value` are needed beside `register`: {SHAPES}"));
                };
                if fields.size.is_some() {
                    return Err("`size` goes with `memory` only: a register's width follows from its name".to_owned());
                }
                Ok(Self::Register { register, op, value, signed: fields.signed.unwrap_or(false) })
            }
            (None, Some(memory), None, None) => {
                let (Some(op), Some(value)) = (fields.op, fields.value) else {
                    return Err(format!("`op` and `value` are needed beside `memory`: {SHAPES}"));
                };
                let size = fields.size.unwrap_or(4);
                if !matches!(size, 1 | 2 | 4 | 8) {
                    return Err(format!("`size` is {size}; allowed are 1, 2, 4 and 8"));
                }
                Ok(Self::Memory { memory, size, op, value, signed: fields.signed.unwrap_or(false) })
            }
            _ => Err(SHAPES.to_owned()),
        }
    }
}

fn nonempty(key: &str, list: Vec<Condition>) -> Result<Vec<Condition>, String> {
    if list.is_empty() { Err(format!("`{key}` is empty: name at least one condition")) } else { Ok(list) }
}

impl From<Condition> for ConditionFields {
    fn from(condition: Condition) -> Self {
        let none = Self::default();
        match condition {
            Condition::Register { register, op, value, signed } => Self {
                register: Some(register),
                op: Some(op),
                value: Some(value),
                signed: signed.then_some(true),
                ..none
            },
            Condition::Memory { memory, size, op, value, signed } => Self {
                memory: Some(memory),
                size: Some(size),
                op: Some(op),
                value: Some(value),
                signed: signed.then_some(true),
                ..none
            },
            Condition::All(all) => Self { all: Some(all), ..none },
            Condition::Any(any) => Self { any: Some(any), ..none },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse(value: serde_json::Value) -> Result<Condition, String> {
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    #[test]
    fn the_three_shapes_are_read() {
        assert_eq!(
            parse(json!({"register": "ecx", "op": "==", "value": "0x10"})),
            Ok(Condition::Register { register: "ecx".into(), op: CompareOp::Eq, value: 16.into(), signed: false })
        );
        assert_eq!(
            parse(json!({"memory": "0x47eb48+0x18", "size": 2, "op": "<=", "value": 7, "signed": true})),
            Ok(Condition::Memory {
                memory: AddrExpr("0x47eb48+0x18".into()),
                size: 2,
                op: CompareOp::Le,
                value: 7.into(),
                signed: true
            })
        );
        assert!(matches!(
            parse(json!({"all": [{"any": [{"register": "al", "op": "!=", "value": -1}]}]})),
            Ok(Condition::All(list)) if matches!(list.as_slice(), [Condition::Any(inner)] if inner.len() == 1)
        ));
    }

    #[test]
    fn wrong_shapes_say_what_is_allowed() {
        for (bad, word) in [
            (json!({}), "a condition is"),
            (json!({"register": "ecx"}), "`op` and `value`"),
            (json!({"register": "ecx", "op": "=", "value": 1}), "unknown variant"),
            (json!({"register": "ecx", "op": "==", "value": 1, "size": 4}), "`size` goes with `memory`"),
            (json!({"register": "ecx", "memory": "0x1", "op": "==", "value": 1}), "a condition is"),
            (json!({"memory": "0x1", "size": 3, "op": "==", "value": 1}), "allowed are 1, 2, 4 and 8"),
            (json!({"all": []}), "is empty"),
            (json!({"all": [], "value": 1}), "a condition is"),
            (json!({"registr": "ecx", "op": "==", "value": 1}), "unknown field `registr`"),
            (json!({"register": "ecx", "op": "==", "value": "ten"}), "not an integer"),
            (json!({"register": "ecx", "op": "==", "value": 1.5}), "an integer"),
        ] {
            let error = parse(bad.clone()).expect_err(&bad.to_string());
            assert!(error.contains(word), "{bad}: {error}");
        }
    }

    #[test]
    fn a_condition_survives_the_wire() {
        let text = json!({"any": [{"memory": "ecx+0x18", "size": 8, "op": ">", "value": "-5", "signed": true}]});
        let parsed = parse(text.clone()).unwrap();
        assert_eq!(serde_json::to_value(parsed).unwrap(), text);
    }
}
