//! What a client asks: the body of a call, checked against the contract's table before anything is done.

use base::limits;
use debug::vice::contract::{self, DefaultValue, Method, Parameter, ParameterType};
use serde_json::{Map, Value, json};

/// A request that was refused before anything was done, in the words of the endpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Its code.
    pub code: &'static str,
    /// What was wrong, and what is allowed.
    pub message: String,
}

impl Refusal {
    pub(super) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// As the endpoints answer it.
    pub fn to_json(&self) -> Value {
        json!({"ok": false, "error": {"code": self.code, "message": self.message}, "outcome_unknown": false})
    }
}

/// The value of an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Argument {
    Long(i64),
    Bool(bool),
    Text(String),
    Texts(Vec<String>),
    Longs(Vec<i64>),
    Bytes(Vec<u8>),
}

/// A call of a method with all its arguments, defaults filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    pub(super) token: String,
    pub(super) method: &'static Method,
    pub(super) arguments: Vec<(&'static str, Argument)>,
    pub(super) timeout_ms: u64,
}

impl Request {
    /// Reads a body.
    ///
    /// # Errors
    /// A refusal with the code that fits.
    pub fn parse(body: &[u8]) -> Result<Self, Refusal> {
        let invalid = |what: String| Refusal::new("invalid_arguments", what);
        let body: Value =
            serde_json::from_slice(body).map_err(|error| invalid(format!("the body is no JSON: {error}")))?;
        let Value::Object(mut body) = body else { return Err(invalid("the body must be a JSON object".to_owned())) };
        let Some(Value::String(token)) = body.remove("target_token") else {
            return Err(invalid("target_token must be the text that discovery gave".to_owned()));
        };
        let Some(Value::String(name)) = body.remove("method") else {
            return Err(invalid("method must be the name of a method".to_owned()));
        };
        let timeout_ms = timeout(body.remove("timeout_ms"))?;
        let arguments = match body.remove("arguments") {
            None => Map::new(),
            Some(Value::Object(arguments)) => arguments,
            Some(_) => return Err(invalid("arguments must be an object".to_owned())),
        };
        let method = contract::method(&name).filter(|method| method.full_name() == name).ok_or_else(|| {
            let shown: String = name.chars().take(limits::MAX_GDB_LABEL_CHARS).collect();
            Refusal::new("unknown_method", format!("there is no method `{shown}`; discovery lists them"))
        })?;
        Ok(Self { token, method, arguments: checked(method, arguments)?, timeout_ms })
    }
}

fn timeout(value: Option<Value>) -> Result<u64, Refusal> {
    let most = limits::MAX_VICE_TIMEOUT_MS;
    match value {
        None => Ok(most),
        Some(value) => value
            .as_u64()
            .filter(|ms| (1..=most).contains(ms))
            .ok_or_else(|| Refusal::new("invalid_timeout", format!("timeout_ms must be 1 to {most} milliseconds"))),
    }
}

/// The arguments in the order of the table, defaults filled in. `process` is checked and left out.
fn checked(method: &'static Method, mut given: Map<String, Value>) -> Result<Vec<(&'static str, Argument)>, Refusal> {
    let mut arguments = Vec::new();
    for parameter in method.parameters {
        let value = match (given.remove(parameter.name), parameter.default) {
            (Some(value), _) => argument(parameter, value)?,
            (None, DefaultValue::Required) => {
                let message = format!("{} needs the argument {}", method.name, parameter.name);
                return Err(Refusal::new("missing_argument", message));
            }
            (None, DefaultValue::Long(value)) => Some(Argument::Long(value)),
            (None, DefaultValue::Bool(value)) => Some(Argument::Bool(value)),
            (None, DefaultValue::String(value)) => Some(Argument::Text(value.to_owned())),
        };
        arguments.extend(value.map(|value| (parameter.name, value)));
    }
    match given.keys().next() {
        None => Ok(arguments),
        Some(name) => {
            let shown: String = name.chars().take(limits::MAX_GDB_NAME_CHARS).collect();
            let known: Vec<&str> = method.parameters.iter().map(|parameter| parameter.name).collect();
            let message = format!("{} has no argument `{shown}`; it has {}", method.name, known.join(", "));
            Err(Refusal::new("unknown_argument", message))
        }
    }
}

/// The value of an argument; `None` for the object that a method is called on.
fn argument(parameter: &Parameter, value: Value) -> Result<Option<Argument>, Refusal> {
    let wrong = |wanted: &str| {
        Refusal::new(
            "invalid_argument",
            format!("{} must be {wanted} ({})", parameter.name, parameter.parameter_type.name()),
        )
    };
    let argument = match (parameter.parameter_type, value) {
        (ParameterType::Object, Value::Object(object)) => {
            return match object.get("object_path").and_then(Value::as_str) {
                Some(contract::ROOT_OBJECT) => Ok(None),
                Some(_) => Err(Refusal::new(
                    "foreign_trace_object",
                    format!("{} must be the object {}", parameter.name, contract::ROOT_OBJECT),
                )),
                None => Err(wrong("an object {\"object_path\": \"C64\"}")),
            };
        }
        (ParameterType::Object, _) => return Err(wrong("an object {\"object_path\": \"C64\"}")),
        (ParameterType::Long, value) => Argument::Long(value.as_i64().ok_or_else(|| wrong("an integer"))?),
        (ParameterType::Bool, value) => Argument::Bool(value.as_bool().ok_or_else(|| wrong("true or false"))?),
        (ParameterType::String, Value::String(text)) => Argument::Text(text),
        (ParameterType::String, _) => return Err(wrong("a text")),
        (ParameterType::StringArray, Value::Array(items)) => {
            let texts = items.into_iter().map(|item| match item {
                Value::String(text) => Some(text),
                _ => None,
            });
            Argument::Texts(texts.collect::<Option<_>>().ok_or_else(|| wrong("a list of texts"))?)
        }
        (ParameterType::StringArray, _) => return Err(wrong("a list of texts")),
        (ParameterType::LongArray, Value::Array(items)) => {
            let longs: Option<_> = items.iter().map(Value::as_i64).collect();
            Argument::Longs(longs.ok_or_else(|| wrong("a list of integers"))?)
        }
        (ParameterType::LongArray, _) => return Err(wrong("a list of integers")),
        (ParameterType::ByteArray, value) => {
            let encoded = value.get("encoding").and_then(Value::as_str) == Some("hex");
            let bytes = value.get("data").and_then(Value::as_str).filter(|_| encoded).and_then(unhex);
            Argument::Bytes(
                bytes.ok_or_else(|| wrong("{\"encoding\": \"hex\", \"data\": \"…\"} with pairs of digits"))?,
            )
        }
    };
    Ok(Some(argument))
}

/// The bytes that hexadecimal digits stand for.
fn unhex(digits: &str) -> Option<Vec<u8>> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    };
    let (pairs, odd) = digits.as_bytes().as_chunks::<2>();
    let bytes = pairs.iter().map(|[high, low]| Some(value(*high)? << 4 | value(*low)?)).collect::<Option<Vec<u8>>>();
    bytes.filter(|_| odd.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(body: Value) -> Result<Request, &'static str> {
        Request::parse(body.to_string().as_bytes()).map_err(|refusal| refusal.code)
    }

    fn call(method: &str, mut arguments: Value) -> Result<Request, &'static str> {
        arguments["process"] = json!({"object_path": "C64"});
        let method = format!("c64_vice_v1_{method}");
        parse(json!({"target_token": "t", "method": method, "arguments": arguments, "timeout_ms": 15_000}))
    }

    #[test]
    fn a_call_has_its_defaults_filled_in() {
        let request = call("read_memory", json!({"bank_id": 1, "start": 0, "end": 15})).unwrap();
        assert_eq!((request.method.name, request.timeout_ms, request.token.as_str()), ("read_memory", 15_000, "t"));
        let names: Vec<&str> = request.arguments.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["bank_id", "start", "end", "side_effects", "max_bytes", "memspace", "timeout_ms"]);
        assert!(request.arguments.contains(&("max_bytes", Argument::Long(4096))));
    }

    #[test]
    fn every_encoding_of_the_contract_is_read() {
        let data = json!({"encoding": "hex", "data": "eE20d0"});
        let request = call("write_memory", json!({"bank_id": 0, "start": 1, "data": data})).unwrap();
        assert!(request.arguments.contains(&("data", Argument::Bytes(vec![0xEE, 0x20, 0xD0]))));
        let request = call("set_registers", json!({"names": ["PC"], "values": [49152]})).unwrap();
        assert!(request.arguments.contains(&("names", Argument::Texts(vec!["PC".to_owned()]))));
        assert!(request.arguments.contains(&("values", Argument::Longs(vec![49152]))));
        let request = call("toggle_checkpoint", json!({"number": 1, "enabled": false})).unwrap();
        assert!(request.arguments.contains(&("enabled", Argument::Bool(false))));
    }

    #[test]
    fn what_does_not_fit_is_refused_by_its_code() {
        assert_eq!(call("fly", json!({})).unwrap_err(), "unknown_method");
        assert_eq!(call("read_memory", json!({})).unwrap_err(), "missing_argument");
        assert_eq!(call("step", json!({"speed": 1})).unwrap_err(), "unknown_argument");
        for (method, arguments) in [
            ("step", json!({"count": 1.5})),
            ("step", json!({"count": true})),
            ("reset", json!({"kind": 1})),
            ("get_registers", json!({"names": "PC"})),
            ("get_registers", json!({"names": [1]})),
            ("set_registers", json!({"names": ["A"], "values": ["1"]})),
            ("toggle_checkpoint", json!({"number": 1, "enabled": 1})),
            ("feed_keyboard", json!({"text": "41"})),
            ("feed_keyboard", json!({"text": {"encoding": "hex", "data": "4"}})),
            ("feed_keyboard", json!({"text": {"encoding": "hex", "data": "4g"}})),
            ("feed_keyboard", json!({"text": {"encoding": "base64", "data": "QQ=="}})),
        ] {
            assert_eq!(call(method, arguments.clone()).unwrap_err(), "invalid_argument", "{method} {arguments}");
        }
        let body = |extra: Value| {
            let mut body = json!({"target_token": "t", "method": "c64_vice_v1_status", "arguments": {"process": {"object_path": "C64"}}});
            body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            body
        };
        assert!(parse(body(json!({}))).is_ok());
        for (extra, code) in [
            (json!({"timeout_ms": 0}), "invalid_timeout"),
            (json!({"timeout_ms": 60_001}), "invalid_timeout"),
            (json!({"timeout_ms": "1"}), "invalid_timeout"),
            (json!({"arguments": []}), "invalid_arguments"),
            (json!({"arguments": {"process": {"object_path": "Other"}}}), "foreign_trace_object"),
            (json!({"arguments": {"process": "C64"}}), "invalid_argument"),
            (json!({"target_token": 1}), "invalid_arguments"),
            // The short name is not the method's.
            (json!({"method": "status"}), "unknown_method"),
        ] {
            assert_eq!(parse(body(extra.clone())).unwrap_err(), code, "{extra}");
        }
        for bad in [&b"["[..], b"", b"[]", &[0xFF], "[".repeat(100_000).as_bytes()] {
            assert_eq!(Request::parse(bad).unwrap_err().code, "invalid_arguments");
        }
    }
}
