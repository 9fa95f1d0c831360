//! `decode_c64_text`: shows what bytes say.

use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct DecodeC64Text;

/// Which bytes, and how to read them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Pairs of hexadecimal digits or numbers. Exactly one of `bytes`, `source`, and `program` with `start` and `max_length`.
    bytes: Option<ByteInput>,
    /// A file below the workspace: `{path, offset?, prg?}`; with `prg` a load address comes first and `offset` is a C64 address.
    #[schemars(with = "Option<Map<String, Value>>")]
    source: Option<FileSource>,
    /// Program open in Ghidra.
    program: Option<String>,
    /// First address in it, `"RAM:0840"`.
    start: Option<String>,
    /// Bytes to read from Ghidra, at most 1,048,576.
    max_length: Option<i64>,
    /// First byte to show of a long text; default 0.
    #[serde(default)]
    first_record: usize,
    /// `all` (default); `lossless`: without bytes and records; `plain`: plain text alone.
    #[serde(default)]
    show: Show,
    #[serde(flatten)]
    text: TextParams,
}

impl Tool for DecodeC64Text {
    const NAME: &'static str = "decode_c64_text";
    const DESCRIPTION: &'static str = "Decode C64 text, PETSCII or screen codes, from bytes, a file or Ghidra. Exactly one of \
         length, terminator, prefix_size ends it. Gives plain text, lossless text ({A:$41}), a record for each byte. Read a long \
         text with show: plain; what does not fit goes on at next.";
    const EFFECT: Effect = Effect::READS;
    const BRIEF: Option<&'static [&'static str]> = Some(&["source", "tokens"]);
    type Params = Params;
    type Output = DecodedView;

    async fn run(context: &Context, params: Params) -> Result<DecodedView, ToolError> {
        let asks_ghidra = params.program.is_some() || params.start.is_some() || params.max_length.is_some();
        let given = [params.bytes.is_some(), params.source.is_some(), asks_ghidra];
        if given.into_iter().filter(|given| *given).count() != 1 {
            return Err(invalid(
                "exactly one byte source is required: inline bytes, a file source, or program + start + max_length",
            ));
        }
        let options = params.text.options()?;
        let mut hint = None;
        let (bytes, source) = if let Some(input) = &params.bytes {
            (input.bytes("bytes")?, json!({"kind": "inline"}))
        } else if let Some(file) = &params.source {
            let loaded = file.read(context)?;
            hint = loaded.hint();
            let (at, bytes) = loaded.part(file.part())?;
            let most = limits::MAX_C64_TEXT_BYTES;
            (bytes.get(..most).unwrap_or(bytes).to_vec(), file.facts(at))
        } else {
            let present = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
            let (Some(program), Some(start), Some(max_length)) =
                (present(&params.program), present(&params.start), params.max_length)
            else {
                return Err(invalid("program, start, and max_length are required for a Ghidra byte source"));
            };
            let length = read_length("max_length", max_length)?;
            let bytes = context.ghidra().read_memory(&program, &start, length).await?;
            (bytes, json!({"kind": "ghidra", "program": program, "start": start, "max_length": length}))
        };
        let text = c64::text::decode(&bytes, &options)?;
        let configuration = params.text.configuration(&options);
        let mut view = DecodedView::new(context, &text, source, configuration, params.first_record, params.show)?;
        view.hint = hint;
        Ok(view)
    }
}

/// A number of bytes to read at once.
pub(super) fn read_length(name: &str, length: i64) -> Result<usize, ToolError> {
    let most = limits::MAX_C64_TEXT_BYTES;
    match usize::try_from(length) {
        Ok(length) if length > most => Err(invalid(format!("{name} must not exceed {most}"))),
        Ok(length) if length > 0 => Ok(length),
        _ => Err(invalid(format!("{name} must be a positive integer"))),
    }
}

#[cfg(test)]
mod tests {
    use crate::tools::c64_shared::tests::Caller;
    use serde_json::{Value, json};

    const TOOL: &str = "decode_c64_text";

    #[tokio::test]
    async fn the_answer_has_the_contracts_shape() {
        let answer = Caller::new().data(TOOL, json!({"bytes": [0x48, 0x93, 0], "terminator": 0})).await.unwrap();
        assert_eq!(answer["records"].as_array().unwrap().len(), 3);
        let record = &answer["records"][1];
        assert_eq!(
            record,
            &json!({"offset": 1, "original_byte": 147, "selected_byte": 147, "glyph": null, "name": "CLR", "printable": false,
                "reverse_video": false, "included_in_text": true, "token_expanded": false, "plain_fragment": "{CLR}",
                "lossless_fragment": "{CLR:$93}"})
        );
        let mut rest = answer.clone();
        rest.as_object_mut().unwrap().remove("records");
        assert_eq!(
            rest,
            json!({"consumed_bytes": [72, 147, 0], "consumed_hex": "489300", "consumed_length": 3, "plain_text": "H{CLR}",
                "lossless": "{H:$48}{CLR:$93}", "terminated": true, "warnings": [], "source": {"kind": "inline"},
                "configuration": {"encoding": "petscii_upper", "length_mode": "terminator", "length": null, "terminator": 0,
                    "prefix_size": null, "prefix_includes_self": false, "high_bit": "exact", "controls": "names", "tokens": {},
                    "recursive_tokens": false, "token_recursion_limit": 8}})
        );
    }

    #[tokio::test]
    async fn every_option_reaches_the_decoder() {
        let answer = Caller::new()
            .data(
                TOOL,
                json!({"bytes": "85 41 13", "length": 3, "encoding": "screen_code_lower", "graphics": "unicode",
                "high_bit": "annotate_reverse", "tokens": {"0x85": "<{19}>", "19": "!"}, "recursive_tokens": true,
                "token_recursion_limit": 2, "prefix_includes_self": true, "controls": "escaped"}),
            )
            .await
            .unwrap();
        // 0x13 = 19 is the token of "!"; 0x41 is a capital A in this set.
        assert_eq!(answer["plain_text"], "<{19}>A!");
        assert_eq!(answer["lossless"], "{REV e:$85}{A:$41}{s:$13}");
        let configuration = &answer["configuration"];
        assert_eq!(configuration["tokens"], json!({"133": "<{19}>", "19": "!"}));
        assert_eq!(
            (&configuration["graphics"], &configuration["prefix_includes_self"]),
            (&json!("unicode"), &json!(true))
        );
    }

    #[tokio::test]
    async fn a_file_is_read_from_an_offset_or_from_an_address() {
        // Loads at $0801: "HI", 0, "YOU", 0.
        let caller = Caller::with_files(&[("game.prg", b"\x01\x08HI\0YOU\0")]);
        let plain = async |source: Value| {
            let answer = caller.data(TOOL, json!({"source": source, "terminator": 0})).await.unwrap();
            (answer["plain_text"].clone(), answer["source"].clone())
        };
        let file = |offset: Value, prg: bool| json!({"kind": "file", "path": "game.prg", "offset": offset, "prg": prg});
        assert_eq!(plain(file(json!(5), false)).await, (json!("YOU"), file(json!(5), false)));
        assert_eq!(plain(file(json!(0x0804), true)).await, (json!("YOU"), file(json!(0x0804), true)));
        assert_eq!(plain(json!({"path": "game.prg", "prg": true})).await, (json!("HI"), file(json!(0x0801), true)));
        for (source, words) in [
            (file(json!(9), false), "has 9 bytes, and offset is 9"),
            (file(json!(5), true), "loads $0801 to $0807; $0005 is not in it"),
            (json!({"path": "absent"}), "there is no `absent`"),
            (json!({"path": "../game.prg"}), "leads out"),
            (json!({"path": "game.prg", "program": "x"}), "unknown field `program`"),
        ] {
            let error = caller.refused(TOOL, json!({"source": source, "terminator": 0})).await;
            assert!(error.line().contains(words), "{error}");
        }
        let error = Caller::new().refused(TOOL, json!({"source": {"path": "x"}, "length": 1})).await;
        assert_eq!(error.code.word(), "workspace_missing");
    }

    #[tokio::test]
    async fn a_long_text_comes_with_a_part_of_its_records() {
        let caller = Caller::limited(8_000);
        let mut offset = 0;
        let mut seen = Vec::new();
        loop {
            let answer = caller
                .data(TOOL, json!({"bytes": vec![0x41; 100], "length": 100, "first_record": offset}))
                .await
                .unwrap();
            assert_eq!(answer["plain_text"], "A".repeat(100));
            assert_eq!(answer["records_total"], 100);
            seen.extend(answer["records"].as_array().unwrap().iter().map(|record| record["offset"].as_u64().unwrap()));
            match answer["next"].as_u64() {
                Some(next) => offset = next,
                None => break,
            }
        }
        assert_eq!(seen, (0..100).collect::<Vec<u64>>());
        assert!(
            caller
                .refused(TOOL, json!({"bytes": "41", "length": 1, "first_record": 2}))
                .await
                .message
                .contains("1 records")
        );
    }

    /// Reads a text to its end: every answer, and the plain text of all.
    async fn read(caller: &Caller, arguments: &Value) -> (Vec<Value>, String) {
        let (mut parts, mut plain, mut next) = (Vec::new(), String::new(), json!(0));
        while !next.is_null() {
            let mut arguments = arguments.clone();
            arguments["first_record"] = next;
            let answer = caller.data(TOOL, arguments).await.unwrap();
            plain.push_str(answer["plain_text"].as_str().unwrap());
            next = answer["next"].clone();
            parts.push(answer);
        }
        (parts, plain)
    }

    #[tokio::test]
    async fn a_text_too_long_for_one_answer_is_read_in_parts() {
        const LIMIT: usize = 20_000;
        let caller = Caller::limited(LIMIT);
        // 50,000 letters A to Z over and over, and a zero, which is no text.
        let mut bytes: Vec<u8> = (0..50_000).map(|at| b'A' + (at % 26) as u8).collect();
        let wanted = String::from_utf8(bytes.clone()).unwrap();
        bytes.push(0);
        let text = json!({"bytes": bytes, "terminator": 0});
        let show = |word: &str| {
            let mut arguments = text.clone();
            arguments["show"] = json!(word);
            arguments
        };
        let (parts, plain) = read(&caller, &show("plain")).await;
        assert_eq!(plain, wanted);
        // A letter takes one character; at most an eighth of an answer stands around them.
        assert!(parts.len() <= 50_000 / (LIMIT * 7 / 8) + 1, "{} answers", parts.len());
        let first = &parts[0];
        assert_eq!((&first["consumed_length"], &first["records_total"]), (&json!(50_001), &json!(50_001)));
        for absent in ["consumed_bytes", "consumed_hex", "lossless", "records"] {
            assert!(first[absent].is_null(), "{absent}");
        }
        let (parts, plain) = read(&caller, &show("lossless")).await;
        assert_eq!(plain, wanted);
        let lossless: String = parts.iter().map(|part| part["lossless"].as_str().unwrap()).collect();
        assert_eq!(lossless.len(), 50_000 * "{A:$41}".len());
        assert!(parts[0]["records"].is_null());

        // With everything, the fields of a part are about the same bytes.
        let some = json!({"bytes": bytes[..3_000], "length": 3_000});
        let (parts, plain) = read(&caller, &some).await;
        assert_eq!(plain, wanted[..3_000]);
        for part in &parts {
            let records = part["records"].as_array().unwrap();
            let seen: Vec<&Value> = records.iter().map(|record| &record["original_byte"]).collect();
            assert_eq!(seen, part["consumed_bytes"].as_array().unwrap().iter().collect::<Vec<_>>());
            assert_eq!(part["consumed_hex"].as_str().unwrap().len(), 2 * records.len());
            assert_eq!(part["consumed_length"], 3_000);
            assert!(part.to_string().chars().count() <= LIMIT);
        }
    }

    #[tokio::test]
    async fn a_byte_that_does_not_fit_is_refused() {
        let arguments = json!({"bytes": "41", "length": 1, "tokens": {"65": "x".repeat(9_000)}, "show": "plain"});
        assert_eq!(Caller::limited(8_000).refused(TOOL, arguments).await.code.word(), "output_too_large");
    }

    #[tokio::test]
    async fn bad_input_is_named() {
        let caller = Caller::new();
        for (arguments, words) in [
            (json!({"bytes": "484", "length": 1}), "even number of hexadecimal digits"),
            (json!({"bytes": "0x48", "length": 1}), "without 0x"),
            (json!({"bytes": [256], "length": 1}), "0 to 255"),
            (json!({"bytes": [-1], "length": 1}), "0 to 255"),
            (json!({"length": 1}), "exactly one byte source"),
            (json!({"bytes": "48", "program": "x", "length": 1}), "exactly one byte source"),
            (json!({"program": "x", "start": "0", "length": 1}), "program, start, and max_length are required"),
            (json!({"program": "x", "start": "0", "max_length": 0, "length": 1}), "max_length must be a positive"),
            (json!({"program": "x", "start": "0", "max_length": 1_048_577, "length": 1}), "must not exceed 1048576"),
            (json!({"bytes": "4142"}), "exactly one length mode"),
            (json!({"bytes": "01", "prefix_size": 2}), "shorter than prefix size"),
            (json!({"bytes": "41", "length": 1, "tokens": {"65": "{41}"}, "recursive_tokens": true}), "0x41 -> 0x41"),
            (json!({"bytes": "41", "length": 1, "encoding": "ascii"}), "unknown variant `ascii`"),
            (json!({"bytes": "41", "length": 1, "colour": 1}), "unknown field `colour`"),
            (json!({"bytes": 5, "length": 1}), "bytes are a text of hexadecimal pairs"),
        ] {
            let error = caller.refused(TOOL, arguments.clone()).await;
            assert_eq!(error.code.word(), "invalid_arguments");
            assert!(error.line().contains(words), "{arguments}: {error}");
        }
    }
}
