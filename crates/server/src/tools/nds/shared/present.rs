//! How answers about ROMs are shown: addresses as integers with a hexadecimal sibling, and long lists in parts.

use super::params::{Most, Skip};
use crate::context::Context;
use crate::errors::{ErrorCode, ToolError};
use crate::schema;
use crate::tools::page;
use crate::tools::{Answer, Output};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::ops::Range;

/// Fields that a person compares with a disassembly or a hex editor.
const ADDRESSES: &[&str] = &[
    "address",
    "autoloadHook",
    "backingRomOffset",
    "bssEnd",
    "directTarget",
    "end",
    "endOffset",
    "entryAddress",
    "fallthrough",
    "headerEntryAddress",
    "initializedEnd",
    "instructionAddress",
    "instructionRomOffset",
    "literalSlot",
    "loadAddress",
    "pointerAddress",
    "ramAddress",
    "ramEnd",
    "romEnd",
    "romOffset",
    "romStart",
    "runtimeAddress",
    "runtimeEnd",
    "runtimeStart",
    "start",
    "startAddress",
    "staticInitEnd",
    "staticInitStart",
    "stopAddress",
    "targetAddress",
];

/// An answer whose addresses have siblings, `ramAddressHex` beside `ramAddress`.
#[derive(Debug)]
pub struct Shown<T>(pub T);

impl<T: Serialize + JsonSchema> Output for Shown<T> {
    fn schema() -> Option<Map<String, Value>> {
        let mut schema = schema::of_output::<T>();
        if let Some(Value::Object(properties)) = schema.get_mut("properties") {
            for name in ADDRESSES.iter().filter(|name| properties.contains_key(**name)).collect::<Vec<_>>() {
                let text = format!("`{name}` as a person reads it; absent where that is null.");
                properties.insert(format!("{name}Hex"), json!({"type": "string", "description": text}));
            }
        }
        Some(schema)
    }

    fn answer(self) -> Result<Answer, ToolError> {
        to_value(&self.0).map(Answer::Data)
    }
}

/// The JSON of an answer or a part of one, with the siblings.
///
/// # Errors
/// `server_fault` when it cannot be written.
pub fn to_value<T: Serialize>(answer: &T) -> Result<Value, ToolError> {
    let mut value = serde_json::to_value(answer)
        .map_err(|error| ToolError::new(ErrorCode::ServerFault, format!("the answer cannot be written: {error}")))?;
    add_siblings(&mut value);
    Ok(value)
}

fn add_siblings(value: &mut Value) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(add_siblings),
        Value::Object(map) => {
            for name in ADDRESSES {
                if let Some(number) = map.get(*name).and_then(Value::as_u64) {
                    map.insert(format!("{name}Hex"), format!("0x{number:08x}").into());
                }
            }
            map.values_mut().for_each(add_siblings);
        }
        _ => {}
    }
}

/// Which part of a long answer is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Items to skip.
    pub offset: usize,
    /// Items at most; `None` for as many as fit.
    pub limit: Option<usize>,
}

impl Wanted {
    /// From the arguments `offset` and `limit`.
    ///
    /// # Errors
    /// `invalid_arguments` out of range.
    pub fn new(offset: Skip, limit: Option<Most>) -> Result<Self, ToolError> {
        let offset = offset.count("offset", ErrorCode::InvalidArguments)?;
        let limit = limit.map(|limit| limit.count("limit", ErrorCode::InvalidArguments)).transpose()?;
        Ok(Self { offset, limit })
    }
}

/// Which items of a long answer are in this one, and where to go on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Part {
    /// Items there are, those of every list that `offset` counts together.
    pub total: usize,
    /// Items in this answer.
    pub returned: usize,
    /// Why the answer ends before the items do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncated: Option<String>,
    /// `offset` of the next part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<usize>,
    #[serde(skip)]
    pub range: Range<usize>,
}

/// Chooses the items of this part: from `offset` on, at most `limit`, and as many as fit beside `rest`, which is the answer
/// without them. At least one, so that every part gets on. `show` gives the JSON of the item with a number.
///
/// # Errors
/// `invalid_arguments` for an offset behind the end.
pub fn part(
    context: &Context,
    wanted: Wanted,
    total: usize,
    rest: &impl Serialize,
    mut show: impl FnMut(usize) -> Result<Value, ToolError>,
) -> Result<Part, ToolError> {
    let Wanted { offset, limit } = wanted;
    if offset > total {
        return Err(ToolError::new(
            ErrorCode::InvalidArguments,
            format!("`offset` is {offset}, but there are {total} items"),
        )
        .hint("begin at 0 and go on at `next`"));
    }
    let end = limit.map_or(total, |limit| total.min(offset.saturating_add(limit)));
    let mut truncated = (end < total).then(|| format!("`limit` is {} items", end - offset));
    let mut range = offset..end;
    if let Some(most) = context.output_limit() {
        let mut left = most.saturating_sub(length(&to_value(rest)?) + ENVELOPE_CHARS);
        for at in offset..end {
            match left.checked_sub(length(&show(at)?) + 1) {
                Some(less) => left = less,
                None if at > offset => {
                    range.end = at;
                    truncated = Some(page::reason(context));
                    break;
                }
                // It is refused as too long where answers are measured, and that says what to do.
                None => left = 0,
            }
        }
    }
    let next = (range.end < total).then_some(range.end);
    Ok(Part { total, returned: range.len(), truncated, next, range })
}

/// The part of a list that is in `range`, when the list's first item has the number `before`.
pub fn within<'a, T>(list: &'a [T], range: &Range<usize>, before: usize) -> &'a [T] {
    let place = |at: usize| at.saturating_sub(before).min(list.len());
    list.get(place(range.start)..place(range.end)).unwrap_or_default()
}

/// Characters of an answer's fields about its part.
const ENVELOPE_CHARS: usize = 200;

fn length(value: &Value) -> usize {
    value.to_string().chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent_client::AgentClient;
    use crate::context::Facts;
    use crate::launch_roots::LaunchRoots;
    use std::time::Duration;

    fn context(limit: Option<usize>) -> Context {
        Context::new(AgentClient::new("", Duration::ZERO), limit, None, LaunchRoots::default(), Facts::default())
    }

    #[test]
    fn addresses_have_siblings_and_null_has_none() {
        let shown = to_value(&json!({"ramAddress": 33554432, "list": [{"romOffset": null, "address": 16, "size": 4}]}));
        assert_eq!(
            shown.unwrap(),
            json!({"ramAddress": 33554432, "ramAddressHex": "0x02000000",
                   "list": [{"romOffset": null, "address": 16, "addressHex": "0x00000010", "size": 4}]})
        );
    }

    #[test]
    fn parts_follow_each_other_without_a_gap() {
        for (limit, chars) in [(Some(7), None), (None, Some(600)), (Some(3), Some(600)), (None, None)] {
            let (mut seen, mut offset) = (Vec::new(), 0);
            loop {
                let wanted = Wanted { offset, limit };
                let part =
                    part(&context(chars), wanted, 100, &json!({}), |at| Ok(json!(format!("{at:0>50}")))).unwrap();
                assert!(part.returned > 0 && part.returned == part.range.len());
                assert_eq!(part.truncated.is_some(), part.next.is_some());
                // 50 characters, quotes and a comma, and what is around.
                assert!(chars.is_none_or(|chars| part.returned * 53 <= chars));
                seen.extend(part.range);
                match part.next {
                    Some(next) => offset = next,
                    None => break,
                }
            }
            assert_eq!(seen, (0..100).collect::<Vec<_>>());
        }
    }

    #[test]
    fn lists_one_after_the_other_share_a_range() {
        let (first, second) = ([0, 1, 2], [3, 4, 5, 6]);
        for (range, wanted) in [(0..7, 0..7), (2..4, 2..4), (0..3, 0..3), (3..4, 3..4), (5..7, 5..7), (7..7, 7..7)] {
            let shown = [within(&first, &range, 0), within(&second, &range, 3)].concat();
            assert_eq!(shown, wanted.collect::<Vec<_>>());
        }
    }

    #[test]
    fn an_item_that_is_too_long_alone_does_not_stop_the_walk() {
        let wanted = Wanted { offset: 0, limit: None };
        let part = part(&context(Some(300)), wanted, 3, &json!({}), |_| Ok(json!("x".repeat(500)))).unwrap();
        assert_eq!((part.returned, part.next), (1, Some(1)));
        let wanted = Wanted { offset: 4, limit: None };
        let error = super::part(&context(None), wanted, 3, &json!({}), |_| Ok(json!(0))).unwrap_err();
        assert!(error.message.contains("there are 3 items"));
    }
}
