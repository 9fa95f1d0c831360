//! The shapes of results, as the contract has them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use debug::vice::{Checkpoint, Error, Memory, Named, Picture, Place, Published, Ran, Version, Written};
use serde_json::{Value, json};

/// Stands in a shape for a long text of digits or base64, which is put in last: JSON's writer would look through it twice for what
/// has to be escaped. Shapes with it have no text of a client's in them.
pub(super) const LONG_TEXT: &str = "LONG-TEXT";

/// What a method gives.
#[derive(Debug)]
pub(super) struct Outcome {
    /// Its shape.
    pub shape: Value,
    /// What [`LONG_TEXT`] stands for.
    pub long: Option<String>,
}

impl From<Value> for Outcome {
    fn from(shape: Value) -> Self {
        Self { shape, long: None }
    }
}

/// Puts the long text into what was written.
pub(super) fn put_in(text: String, long: Option<&str>) -> String {
    match (long, text.split_once(LONG_TEXT)) {
        (Some(long), Some((before, behind))) => [before, long, behind].concat(),
        _ => text,
    }
}

/// An address as people write it.
pub(super) fn display(address: u16) -> String {
    format!("${address:04X}")
}

pub(super) fn registers(memspace: u8, registers: &[Named]) -> Value {
    let one = |named: &Named| {
        let digits = usize::from(named.register.bits.div_ceil(4));
        json!({
            "name": named.register.name,
            "id": named.register.id,
            "bits": named.register.bits,
            "value": named.value,
            "display": format!("${:0digits$X}", named.value),
        })
    };
    json!({"memspace": memspace, "registers": registers.iter().map(one).collect::<Vec<_>>()})
}

pub(super) fn checkpoint(checkpoint: &Checkpoint) -> Value {
    json!({
        "number": checkpoint.number,
        "start": checkpoint.start,
        "start_display": display(checkpoint.start),
        "end": checkpoint.end,
        "end_display": display(checkpoint.end),
        "stop_on_hit": checkpoint.stops,
        "enabled": checkpoint.enabled,
        "operations": {
            "load": checkpoint.operations & 1 != 0,
            "store": checkpoint.operations & 2 != 0,
            "execute": checkpoint.operations & 4 != 0,
        },
        "temporary": checkpoint.temporary,
        "currently_hit": checkpoint.hit,
        "hit_count": checkpoint.hits,
        "ignore_count": checkpoint.ignored,
        "has_condition": checkpoint.conditional,
        "memspace": checkpoint.memspace,
    })
}

pub(super) fn event(event: &Published) -> Value {
    let checkpoints: Vec<Value> = event.checkpoints.iter().map(checkpoint).collect();
    json!({
        "sequence": event.sequence,
        "raw_sequence": event.sequence,
        "kind": event.kind.name(),
        "pc": event.pc,
        "pc_display": event.pc.map(display),
        "checkpoint": checkpoints.first(),
        "checkpoints": checkpoints,
        "snapshot": null,
    })
}

pub(super) fn operation(ran: &Ran) -> Value {
    json!({
        "request_id": ran.request,
        "event": event(&ran.event),
        "preceding_events": ran.preceding.iter().map(event).collect::<Vec<_>>(),
    })
}

pub(super) fn memory(place: Place, memory: &Memory) -> Outcome {
    let count = memory.bytes.len();
    let end = usize::from(place.start).saturating_add(count.saturating_sub(1));
    let end = u16::try_from(end).unwrap_or(u16::MAX);
    let shape = json!({
        "bank_id": place.bank,
        "memspace": place.memspace,
        "start": place.start,
        "start_display": display(place.start),
        "end": end,
        "end_display": display(end),
        "bytes": LONG_TEXT,
        "byte_count": count,
        "complete": memory.next.is_none(),
        "next_address": memory.next,
    });
    Outcome { shape, long: Some(hex(&memory.bytes)) }
}

pub(super) fn written(place: Place, written: Written) -> Value {
    json!({
        "bank_id": place.bank,
        "memspace": place.memspace,
        "start": written.start,
        "start_display": display(written.start),
        "end": written.end,
        "end_display": display(written.end),
        "byte_count": u32::from(written.end - written.start) + 1,
        "completed_ranges": [{"start": written.start, "end": written.end}],
    })
}

pub(super) fn picture(picture: &Picture, version: &Version) -> Outcome {
    let shown = &picture.display;
    let palette: Vec<Value> = picture.palette.iter().map(|[r, g, b]| json!({"r": r, "g": g, "b": b})).collect();
    let shape = json!({
        "width": shown.width,
        "height": shown.height,
        "inner": {
            "x_offset": shown.x,
            "y_offset": picture.inner_y(),
            "width": shown.inner_width,
            "height": shown.inner_height,
        },
        // What VICE says is one line too low; the picture starts above it.
        "reported_y_offset": shown.y,
        // Pixels that VICE did not send, at the end of the last line of the border.
        "missing_bytes": shown.missing,
        "bits_per_pixel": 8,
        "buffer_length": shown.pixels.len(),
        "buffer_base64": LONG_TEXT,
        "palette": palette,
        "vice_version": version.to_string(),
        "vice_revision": version.revision,
    });
    Outcome { shape, long: Some(STANDARD.encode(&shown.pixels)) }
}

/// An error with what belongs to it.
pub(super) fn error(error: &Error, command: &str) -> Value {
    let mut shape = json!({
        "code": error.code(),
        "message": error.to_string(),
        "command": command,
        "request_id": error.request(),
        "outcome_unknown": error.outcome_unknown(),
    });
    let more = match error {
        Error::TimedOut { changed, .. } => json!({"state_may_have_changed": changed}),
        Error::PartWrite { start, reached, failed, end, source } => json!({
            "partial": true,
            "completed_bytes": u32::from(*reached - *start) + 1,
            "completed_ranges": [{"start": start, "end": reached}],
            "failed_range": {"start": failed, "end": end},
            "memory_may_be_modified": true,
            "cause": source.code(),
        }),
        Error::Superseded { event: stop } => json!({"checkpoint_event": event(stop), "vice_action_applied": true}),
        Error::HistoryLost { oldest, .. } => json!({"oldest_sequence": oldest}),
        Error::OldBuild { version, revision } => json!({"vice_version": version, "vice_revision": revision}),
        _ => json!({}),
    };
    if let (Value::Object(shape), Value::Object(more)) = (&mut shape, more) {
        shape.extend(more);
    }
    shape
}

/// Bytes as digits, computed and not formatted one by one: 64 KiB are read often.
pub(super) fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| if value < 10 { b'0' + value } else { b'a' - 10 + value };
    let mut digits = vec![0; bytes.len() * 2];
    let (pairs, _) = digits.as_chunks_mut::<2>();
    for (pair, byte) in pairs.iter_mut().zip(bytes) {
        *pair = [digit(byte >> 4), digit(byte & 0x0F)];
    }
    String::from_utf8(digits).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use debug::vice::Register;

    #[test]
    fn digits_are_as_wide_as_the_register() {
        let named = |bits, value| Named { register: Register { id: 0, bits, name: "R".to_owned() }, value };
        let shapes = registers(0, &[named(16, 0x0D), named(8, 0x0D)]);
        assert_eq!(shapes["registers"][0]["display"], "$000D");
        assert_eq!(shapes["registers"][1]["display"], "$0D");
    }

    #[test]
    fn a_long_text_is_put_in_where_it_belongs_two_levels_deep() {
        let envelope = json!({"result": {"bytes": LONG_TEXT, "byte_count": 2}}).to_string();
        let text = put_in(json!({"result": envelope, "token": "t"}).to_string(), Some("c0ff"));
        let answer: Value = serde_json::from_str(&text).unwrap();
        let envelope: Value = serde_json::from_str(answer["result"].as_str().unwrap()).unwrap();
        assert_eq!(envelope, json!({"result": {"bytes": "c0ff", "byte_count": 2}}));
        // What a client named so is left alone.
        assert_eq!(put_in(LONG_TEXT.to_owned(), None), LONG_TEXT);
    }

    #[test]
    fn all_bytes_have_their_digits() {
        let all: Vec<u8> = (0..=255).collect();
        let expected: String = (0..256).map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex(&all), expected);
    }

    #[test]
    fn a_part_of_a_write_is_told_with_what_is_missing() {
        let source = Box::new(Error::Refused { command: 2, code: 0x8F, request: 7 });
        let shape =
            error(&Error::PartWrite { start: 0, reached: 0xFFFE, failed: 0xFFFF, end: 0xFFFF, source }, "write_memory");
        assert_eq!((shape["completed_bytes"].as_u64(), shape["request_id"].as_u64()), (Some(65_535), Some(7)));
        assert_eq!(shape["failed_range"], json!({"start": 65_535, "end": 65_535}));
        assert_eq!(shape["code"], "vice_partial_write");
    }
}
