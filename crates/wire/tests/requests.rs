//! Requests from outside: every operation with parameters that are right, missing, unknown, of the wrong type, or huge.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use base::VirtAddr;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use wire::commands::OPERATIONS;
use wire::{AddrExpr, AgentError, Bytes, ErrorCode, HexAddr, IntValue, parse_reply, parse_request};

/// Each operation with every parameter it has.
fn complete(op: &str) -> Value {
    match op {
        "hello" => json!({"protocol": 1}),
        "launch" => json!({"path": "/bin/true", "args": ["a"], "cwd": "/", "env": {"A": "b"}, "stop_at": "loader",
                           "if_running": "start_new"}),
        "attach" => json!({"pid": 1, "name": "game"}),
        "set_breakpoint" => json!({"addr": "0x10", "condition": {"register": "ecx", "op": "==", "value": 1},
                                   "ignore_count": 3, "one_shot": true}),
        "remove_breakpoint" => json!({"addr": 16}),
        "set_watchpoint" => json!({"addr": "state", "size": 4, "mode": "readwrite", "ignore_count": 0,
                                   "condition": {"memory": "state", "op": ">", "value": "-1", "signed": true}}),
        "remove_watchpoint" => json!({"slot": 0, "addr": "0x10"}),
        "continue_execution" => json!({"timeout": 10.0}),
        "step" => json!({"mode": "over", "count": 2, "thread": 7, "timeout": 1.5}),
        "read_memory" => json!({"addr": "0x10", "length": 4}),
        "write_memory" => json!({"addr": "0x10", "data": "AAE="}),
        "get_registers" => json!({"thread": 1, "sets": ["general", "sse"]}),
        "set_registers" => json!({"registers": {"eax": "0x10", "zf": 1}, "thread": 1}),
        "disassemble" => json!({"addr": "0x10", "count": 4}),
        "backtrace" => json!({"thread": 1, "limit": 3}),
        "screenshot" => json!({"title": "Game"}),
        "detach" | "terminate" | "get_status" | "list_breakpoints" | "list_watchpoints" | "pause" | "list_threads"
        | "list_modules" => json!({}),
        other => panic!("operation `{other}` is not in this test"),
    }
}

/// Parameters without which an operation is refused.
fn required(op: &str) -> &'static [&'static str] {
    match op {
        "launch" => &["path"],
        "set_breakpoint" | "remove_breakpoint" | "set_watchpoint" => &["addr"],
        "continue_execution" => &["timeout"],
        "read_memory" => &["addr", "length"],
        "write_memory" => &["addr", "data"],
        "set_registers" => &["registers"],
        _ => &[],
    }
}

fn ask(op: &str, params: &Value) -> Result<wire::Request, AgentError> {
    let line = json!({"op": op, "params": params, "id": 7}).to_string();
    let envelope = parse_request(line.as_bytes());
    assert_eq!(envelope.id, Some(json!(7)), "the id comes back whatever is wrong");
    envelope.request
}

fn refused(op: &str, params: &Value) -> AgentError {
    let error = ask(op, params).expect_err(&format!("{op} {params}"));
    assert_eq!(error.code, ErrorCode::InvalidParams, "{op} {params}: {error}");
    assert!(error.message.starts_with(op), "{error}");
    assert!(!error.hint.is_empty(), "{error}");
    error
}

fn without(params: &Value, name: &str) -> Value {
    let kept = params.as_object().unwrap().iter().filter(|(key, _)| *key != name);
    Value::Object(kept.map(|(key, value)| (key.clone(), value.clone())).collect())
}

fn with(params: &Value, name: &str, value: Value) -> Value {
    let mut changed = params.clone();
    changed[name] = value;
    changed
}

#[test]
fn complete_requests_are_read_and_written_back_the_same() {
    for op in OPERATIONS {
        let params = complete(op);
        let request = ask(op, &params).unwrap_or_else(|error| panic!("{op}: {error}"));
        assert_eq!(request.op(), *op);
    }
}

#[test]
fn parameters_may_be_left_out_only_where_none_is_required() {
    for op in OPERATIONS {
        for name in complete(op).as_object().unwrap().keys() {
            let params = without(&complete(op), name);
            if required(op).contains(&name.as_str()) {
                let error = refused(op, &params);
                assert!(error.message.contains(&format!("missing field `{name}`")), "{op}: {error}");
            } else {
                assert!(ask(op, &params).is_ok(), "{op} without {name}");
            }
        }
        let bare = parse_request(json!({"op": op}).to_string().as_bytes()).request;
        assert_eq!(bare.is_ok(), required(op).is_empty(), "{op}");
    }
}

#[test]
fn an_unknown_parameter_is_named() {
    for op in OPERATIONS {
        let error = refused(op, &with(&complete(op), "adress", json!(1)));
        assert!(error.message.contains("unknown field `adress`"), "{op}: {error}");
    }
}

#[test]
fn a_parameter_of_the_wrong_type_is_refused() {
    for op in OPERATIONS {
        for (name, value) in complete(op).as_object().unwrap() {
            let wrong = match value {
                Value::Number(_) if matches!(name.as_str(), "addr") => {
                    vec![json!(-1), json!(1.5), json!([]), json!(null)]
                }
                Value::Number(_) => vec![json!("x"), json!([1]), json!({})],
                Value::String(_) if name == "addr" => vec![json!([]), json!({}), json!(true), json!("")],
                _ => vec![json!(1), json!([[]]), json!(true)],
            };
            // An object is never a flag, and a flag never an object.
            let wrong = if value.is_boolean() { vec![json!(1), json!("true"), json!(null)] } else { wrong };
            for wrong in wrong {
                let error = refused(op, &with(&complete(op), name, wrong));
                assert!(error.message.starts_with(&format!("{op}: `{name}`: ")), "{error}");
            }
        }
    }
}

#[test]
fn huge_parameters_give_short_refusals() {
    let long = "x".repeat(100_000);
    for op in OPERATIONS {
        for params in [with(&complete(op), &long, json!(1)), with(&complete(op), "x", json!(long))] {
            let error = refused(op, &params);
            assert!(error.message.len() < 4_000, "{op}: {} bytes", error.message.len());
        }
        for name in complete(op).as_object().unwrap().keys() {
            for huge in [json!(long), json!(1e308), json!(u64::MAX), json!(i64::MIN), json!({long.clone(): long})] {
                // Some of them are right (a path may be long); what is not is refused in a few words.
                if let Err(error) = ask(op, &with(&complete(op), name, huge)) {
                    assert!(error.message.len() < 4_000, "{op}: {} bytes", error.message.len());
                }
            }
        }
    }
    let error = parse_request(json!({"op": long}).to_string().as_bytes()).request.unwrap_err();
    assert!(error.code == ErrorCode::UnknownOp && error.message.len() < 200, "{error}");
    let error = parse_request(json!({long.as_str(): 1, "op": "hello"}).to_string().as_bytes()).request.unwrap_err();
    assert!(error.code == ErrorCode::BadRequest && error.message.len() < 200, "{error}");
}

#[test]
fn lines_that_are_no_request_say_what_one_is() {
    for (line, word) in [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("hello", "not JSON"),
        ("\"hello\"", "no object"),
        ("[1]", "no object"),
        ("{}", "`op` is missing"),
        (r#"{"op":1}"#, "`op` is not a string"),
        (r#"{"op":"hello","params":[]}"#, "`params` is not an object"),
        (r#"{"op":"hello","parms":{}}"#, "unknown key `parms`"),
        (r#"{"op":"hello"}{"op":"hello"}"#, "not JSON"),
    ] {
        let error = parse_request(line.as_bytes()).request.expect_err(line);
        assert_eq!(error.code, ErrorCode::BadRequest, "{line}");
        assert!(error.message.contains(word), "{line}: {error}");
        assert!(error.hint.contains("\"op\""), "{line}: {}", error.hint);
    }
    assert!(parse_request(b"\xff\xfe{\"op\"").request.unwrap_err().message.contains("not JSON"));
}

#[test]
fn depth_is_bounded() {
    for depth in [200, 1_000_000] {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let bomb = format!("{}1{}", open.repeat(depth), close.repeat(depth));
            let error = parse_request(bomb.as_bytes()).request.unwrap_err();
            assert!(error.message.contains("recursion limit"), "{error}");
        }
        let nested = format!("{}{}{}", "{\"all\":[".repeat(depth), "{}", "]}".repeat(depth));
        let line = format!(r#"{{"op":"set_breakpoint","params":{{"addr":1,"condition":{nested}}}}}"#);
        assert!(parse_request(line.as_bytes()).request.unwrap_err().message.contains("recursion limit"));
    }
}

proptest! {
    #[test]
    fn no_line_makes_the_parser_fail_otherwise(line in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Err(error) = parse_request(&line).request {
            prop_assert!(matches!(error.code, ErrorCode::BadRequest | ErrorCode::UnknownOp | ErrorCode::InvalidParams));
        }
        prop_assert!(parse_reply(&line).is_err());
    }

    #[test]
    fn bytes_survive_the_wire(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        let text = serde_json::to_value(Bytes(bytes.clone())).unwrap();
        prop_assert_eq!(serde_json::from_value::<Bytes>(text).unwrap(), Bytes(bytes));
    }

    #[test]
    fn integers_survive_the_wire(number in -(1i128 << 63)..(1i128 << 64)) {
        let value: IntValue = serde_json::from_value(json!(number.to_string())).unwrap();
        prop_assert_eq!(value.get(), number);
        // Two's complement, written out.
        let bits = if number < 0 { (number + (1i128 << 64)) as u64 } else { number as u64 };
        prop_assert_eq!(value.bits(), bits);
        let written = serde_json::to_value(value).unwrap();
        prop_assert_eq!(serde_json::from_value::<IntValue>(written).unwrap(), value);
    }

    #[test]
    fn addresses_survive_the_wire(raw: u64) {
        let address = HexAddr(VirtAddr::new(raw));
        let written = serde_json::to_value(address).unwrap();
        prop_assert_eq!(&written, &json!(format!("{raw:#x}")));
        prop_assert_eq!(serde_json::from_value::<HexAddr>(written).unwrap(), address);
        prop_assert_eq!(serde_json::from_value::<AddrExpr>(json!(raw)).unwrap(), AddrExpr(format!("{raw:#x}")));
    }
}

#[test]
fn base64_is_that_of_rfc_4648() {
    // Section 10 of RFC 4648.
    for (bytes, text) in
        [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("foobar", "Zm9vYmFy")]
    {
        assert_eq!(serde_json::from_value::<Bytes>(json!(text)).unwrap().0, bytes.as_bytes());
        assert_eq!(serde_json::to_value(Bytes(bytes.into())).unwrap(), json!(text));
    }
    for wrong in ["Zg", "Zg=", "Z===", "Zh==", "Zm 9v", "Zm9v\n", "Zm9-", "=", "ü"] {
        let error = refused("write_memory", &json!({"addr": 1, "data": wrong}));
        assert!(error.message.contains("not base64"), "{wrong}: {error}");
    }
}

#[test]
fn integers_and_addresses_have_ranges() {
    let integer =
        |value: Value| serde_json::from_value::<IntValue>(value).map(IntValue::get).map_err(|error| error.to_string());
    for (text, value) in [
        (json!("0x1f"), 31),
        (json!("-5"), -5),
        (json!("-0x10"), -16),
        (json!("18446744073709551615"), (1i128 << 64) - 1),
        (json!("-9223372036854775808"), -(1i128 << 63)),
        (json!(u64::MAX), (1i128 << 64) - 1),
        (json!(i64::MIN), -(1i128 << 63)),
    ] {
        assert_eq!(integer(text.clone()), Ok(value), "{text}");
    }
    for wrong in
        ["-9223372036854775809", "18446744073709551616", "0x10000000000000000", "--1", "- 1", "", "-", "1.0", "0b1"]
    {
        assert!(integer(json!(wrong)).is_err(), "{wrong}");
    }
    assert!(integer(json!(1e30)).is_err() && integer(json!(1.0)).is_err() && integer(json!(null)).is_err());

    let address = |value: Value| serde_json::from_value::<AddrExpr>(value).map_err(|error| error.to_string());
    assert_eq!(address(json!("game.exe+0x10")), Ok(AddrExpr("game.exe+0x10".into())));
    assert!(address(json!(" ")).unwrap_err().contains("empty"));
    assert!(address(json!("a".repeat(512))).is_ok());
    assert!(address(json!("a".repeat(513))).unwrap_err().contains("at most 512"));
    assert!(address(json!(-1)).unwrap_err().contains("an address"));
}

#[test]
fn error_replies_survive_the_wire() {
    for code in ErrorCode::ALL {
        let error = AgentError::new(*code, "what was wrong").hint("what to do").detail("limit", 3);
        let line = wire::encode_error(&error, Some(&json!("x")));
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap()["id"], "x");
        assert_eq!(parse_reply(line.as_bytes()), Err(error));
        assert_eq!(serde_json::to_value(code).unwrap(), code.word());
    }
}

#[test]
fn lines_that_are_no_reply_are_errors() {
    for line in
        ["", "{}", "[]", r#"{"ok":1}"#, r#"{"ok":true}"#, r#"{"ok":false}"#, r#"{"ok":false,"error":"e","code":"new"}"#]
    {
        assert_eq!(parse_reply(line.as_bytes()).expect_err(line).code, ErrorCode::BadRequest, "{line}");
    }
}

#[test]
fn requests_are_written_as_they_are_read() {
    for op in OPERATIONS {
        let line = wire::encode_request(op, &complete(op), Some(&json!([1, null])));
        assert!(!line.contains('\n'));
        let envelope = parse_request(line.as_bytes());
        assert_eq!(envelope.id, Some(json!([1, null])));
        assert_eq!(envelope.request.unwrap(), wire::Request::parse(op, params(op)).unwrap());
    }
}

fn params(op: &str) -> Map<String, Value> {
    complete(op).as_object().unwrap().clone()
}
