//! Reads the plug-in's view of memory: both forms of its hex dump, and that every byte is there.

use super::Answer;
use crate::errors::{ErrorCode, ToolError};
use serde_json::Value;

/// The endpoint.
pub(super) const ENDPOINT: &str = "/inspect_memory_content";

/// The bytes of an answer, which must be `length`.
pub(super) fn bytes(answer: &Answer, length: usize) -> Result<Vec<u8>, ToolError> {
    let wrong = |what: String| {
        ToolError::new(ErrorCode::GhidraResponseError, format!("{}: {what}", ENDPOINT.trim_start_matches('/')))
    };
    let read = answer.get("bytes_read").and_then(Value::as_u64);
    let read = read.ok_or_else(|| wrong("the answer has no number `bytes_read`".to_owned()))?;
    if read != length as u64 {
        return Err(wrong(format!("{read} of {length} requested bytes were returned"))
            .hint("the block of memory ends there, or a part of it has no bytes; ask for fewer")
            .detail("requested", length)
            .detail("returned", read));
    }
    let dump = answer.get("hex_dump").and_then(Value::as_str);
    let dump = dump.ok_or_else(|| wrong("the answer has no text `hex_dump`".to_owned()))?;
    // Rows end in a backslash and an n, two characters; newer versions write one row without any separator.
    let bytes = c64::from_hex("hex_dump", &dump.replace("\\n", " ")).map_err(|problem| wrong(problem.message))?;
    if bytes.len() != length {
        return Err(wrong(format!("`bytes_read` is {length} and `hex_dump` has {} bytes", bytes.len())));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(answer: Value, length: usize) -> Result<Vec<u8>, String> {
        bytes(answer.as_object().unwrap(), length).map_err(|error| error.message)
    }

    #[test]
    fn both_forms_of_the_dump_are_read() {
        assert_eq!(read(json!({"bytes_read": 3, "hex_dump": "EA \\nA9 20"}), 3), Ok(vec![0xea, 0xa9, 0x20]));
        assert_eq!(read(json!({"bytes_read": 3, "hex_dump": "eaA920"}), 3), Ok(vec![0xea, 0xa9, 0x20]));
    }

    #[test]
    fn what_is_not_whole_is_an_error() {
        for (answer, words) in [
            (json!({"bytes_read": 2, "hex_dump": "EA A9"}), "2 of 3 requested bytes"),
            (json!({"bytes_read": 4, "hex_dump": "EA A9 20 60"}), "4 of 3 requested bytes"),
            (json!({"bytes_read": 3, "hex_dump": "EA A9"}), "`hex_dump` has 2 bytes"),
            (json!({"bytes_read": 3, "hex_dump": "EA A9 2"}), "even number"),
            (json!({"bytes_read": 3, "hex_dump": "EA A9 zz"}), "even number"),
            (json!({"bytes_read": 3}), "no text `hex_dump`"),
            (json!({"bytes_read": "3", "hex_dump": "EA A9 20"}), "no number `bytes_read`"),
            (json!({}), "no number `bytes_read`"),
        ] {
            let message = read(answer, 3).unwrap_err();
            assert!(message.contains(words), "{message}");
        }
    }
}
