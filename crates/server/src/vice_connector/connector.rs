//! One VICE as the endpoints show it: what can be called, and what came of a call.

use super::arguments::Arguments;
use super::request::{Refusal, Request};
use super::{calls, present};
use debug::vice::contract::{self, DefaultValue, Method, Parameter};
use debug::vice::{Monitor, Status};
use serde_json::{Value, json};
use std::hash::{BuildHasher as _, RandomState};

/// One VICE with its two names: the token of the target, and the instance.
#[derive(Debug)]
pub struct Connector {
    monitor: Monitor,
    instance: String,
    token: String,
    old_display: bool,
}

impl Connector {
    /// Serves `monitor`. `old_display` lets builds be asked for their display whose command is not mended.
    pub fn new(monitor: Monitor, old_display: bool) -> Self {
        Self { monitor, instance: uuid(), token: uuid(), old_display }
    }

    pub(super) const fn monitor(&self) -> &Monitor {
        &self.monitor
    }

    pub(super) fn instance(&self) -> &str {
        &self.instance
    }

    pub(super) const fn allows_old_display(&self) -> bool {
        self.old_display
    }

    /// The answer of `GET /debugger/target_methods`.
    pub fn discovery(&self) -> String {
        let methods: Vec<Value> = contract::METHODS.iter().chain(contract::EXTENSIONS).map(described).collect();
        let mut answer = self.view(&self.monitor.status());
        if let Value::Object(answer) = &mut answer {
            answer.insert("ok".to_owned(), true.into());
            answer.insert("target_token".to_owned(), self.token.as_str().into());
            answer.insert("methods".to_owned(), methods.into());
        }
        answer.to_string()
    }

    /// Refuses a call that is meant for another connector.
    pub(super) fn admit(&self, request: &Request) -> Result<(), Refusal> {
        if request.token == self.token {
            return Ok(());
        }
        Err(Refusal::new(
            "stale_target_token",
            "this is another connector than the one that was discovered: discover anew",
        ))
    }

    /// Calls a method, and gives the answer of `POST /debugger/invoke_target_method`. Takes as long as the call itself may.
    pub(super) fn invoke(&self, request: &Request) -> String {
        let before = self.view(&self.monitor.status());
        let outcome = calls::call(self, request.method, &Arguments(&request.arguments));
        let status = self.monitor.status();
        let mut envelope = json!({
            "api": contract::API,
            "ok": outcome.is_ok(),
            "command_sequence": status.commands,
            "instance_id": self.instance,
            "connection_state": self.connection_state(&status),
            "execution_state": status.execution.name(),
        });
        let mut long = None;
        if let Value::Object(envelope) = &mut envelope {
            match outcome {
                Ok(result) => {
                    long = result.long;
                    envelope.insert("result".to_owned(), result.shape)
                }
                Err(error) => envelope.insert("error".to_owned(), present::error(&error, request.method.name)),
            };
        }
        let answer = json!({
            "ok": true,
            "target_token": self.token,
            "method": request.method.full_name(),
            "result": envelope.to_string(),
            "before": before,
            "after": self.view(&status),
        });
        present::put_in(answer.to_string(), long.as_deref())
    }

    pub(super) fn connection_state(&self, status: &Status) -> &'static str {
        if status.lost.is_some() { "disconnected" } else { "connected" }
    }

    /// The target as the endpoints describe it.
    fn view(&self, status: &Status) -> Value {
        json!({
            "trace_name": contract::ROOT_OBJECT,
            "snapshot": 0,
            "execution_state": status.execution.name().to_uppercase(),
            "connection_description": format!("VICE {} at {}", self.monitor.version(), self.monitor.address()),
            "active_object_path": contract::ROOT_OBJECT,
            "pc": status.pc,
        })
    }
}

/// A method as discovery lists it.
fn described(method: &Method) -> Value {
    let parameter = |parameter: &Parameter| {
        let default = match parameter.default {
            DefaultValue::Required => Value::Null,
            DefaultValue::Long(value) => value.into(),
            DefaultValue::Bool(value) => value.into(),
            DefaultValue::String(value) => value.into(),
        };
        json!({
            "name": parameter.name,
            "type": parameter.parameter_type.name(),
            "required": parameter.required(),
            "default_available": !parameter.required(),
            "default": default,
            "display": parameter.name,
            "description": "",
        })
    };
    json!({
        "name": method.full_name(),
        "action": method.full_name(),
        "display": method.name,
        "description": "",
        "return_type": contract::RETURN_TYPE,
        "parameters": method.parameters.iter().map(parameter).collect::<Vec<_>>(),
    })
}

/// A random UUID (RFC 9562, version 4). The keys of the standard library's hash come from the system's source of chance.
fn uuid() -> String {
    let chance = || RandomState::new().hash_one(0_u8);
    let (high, low) = (chance(), chance());
    let (high, low) = (high & !0xF000 | 0x4000, low & !(0xC000 << 48) | 0x8000 << 48);
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xFFFF,
        high & 0xFFFF,
        low >> 48,
        low & 0xFFFF_FFFF_FFFF
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_random_and_have_the_form_of_rfc_9562() {
        let (one, other) = (uuid(), uuid());
        assert_ne!(one, other);
        assert_eq!(one.split('-').map(str::len).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
        assert_eq!(&one[14..15], "4");
        assert!("89ab".contains(&one[19..20]), "{one}");
    }

    #[test]
    fn a_method_is_described_with_its_defaults() {
        let step = described(contract::method("step").unwrap());
        assert_eq!((step["name"].as_str(), step["return_type"].as_str()), (Some("c64_vice_v1_step"), Some("STRING")));
        let count = &step["parameters"][1];
        assert_eq!(count["name"], "count");
        assert_eq!((count["default"].as_i64(), count["default_available"].as_bool()), (Some(1), Some(true)));
        assert_eq!(
            (step["parameters"][0]["type"].as_str(), &step["parameters"][0]["default"]),
            (Some("C64"), &Value::Null)
        );
    }
}
