//! Whether what answers is a connector of the contract that the tools speak: everything that is missing is named.

use debug::vice::contract::{self, DefaultValue, Method, Parameter};
use serde_json::{Map, Value, json};

/// What the discovered methods lack; empty when they are those of the contract.
pub(super) fn methods(listed: &[Value]) -> Vec<String> {
    contract::METHODS.iter().filter_map(|method| lacks(method, listed)).collect()
}

/// Whether a method beyond the contract is there, as it must be.
pub(super) fn has(method: &Method, listed: &[Value]) -> bool {
    lacks(method, listed).is_none()
}

fn lacks(method: &Method, listed: &[Value]) -> Option<String> {
    let name = method.full_name();
    let found: Vec<&Value> = listed.iter().filter(|one| one.get("name") == Some(&json!(name))).collect();
    let [found] = found.as_slice() else {
        return Some(format!("{name} is listed {} times", found.len()));
    };
    if found.get("return_type") != Some(&json!(contract::RETURN_TYPE)) {
        return Some(format!("{name} does not return {}", contract::RETURN_TYPE));
    }
    let parameters = found.get("parameters").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if parameters.len() != method.parameters.len() {
        return Some(format!("{name} has {} parameters, not {}", parameters.len(), method.parameters.len()));
    }
    let wrong = method.parameters.iter().find(|wanted| !parameters.iter().any(|given| is(wanted, given)))?;
    Some(format!("{name} has no {} as the contract has it", wanted_text(wrong)))
}

fn wanted_text(wanted: &Parameter) -> String {
    format!("parameter {} of type {}", wanted.name, wanted.parameter_type.name())
}

fn is(wanted: &Parameter, given: &Value) -> bool {
    let get = |key: &str| given.get(key).cloned().unwrap_or_default();
    let default = match wanted.default {
        DefaultValue::Required => None,
        DefaultValue::Long(value) => Some(json!(value)),
        DefaultValue::Bool(value) => Some(json!(value)),
        DefaultValue::String(value) => Some(json!(value)),
    };
    get("name") == json!(wanted.name)
        && get("type") == json!(wanted.parameter_type.name())
        && get("required") == json!(wanted.required())
        && default.is_none_or(|value| get("default_available") == json!(true) && get("default") == value)
}

/// What the answer of `capabilities` lacks.
pub(super) fn capabilities(said: &Map<String, Value>) -> Vec<String> {
    let mut missing = Vec::new();
    let get = |key: &str| said.get(key).cloned().unwrap_or_default();
    for (key, wanted) in [
        ("protocol", json!(contract::PROTOCOL)),
        ("api_major", json!(contract::API_MAJOR)),
        ("connector_name", json!(contract::CONNECTOR_NAME)),
        ("machine", json!(contract::MACHINE)),
        ("binary_monitor_api", json!(contract::BINARY_MONITOR_API)),
        ("method_namespace", json!(contract::NAMESPACE)),
    ] {
        if get(key) != wanted {
            missing.push(format!("{key} is {}, not {wanted}", get(key)));
        }
    }
    let revision = get("surface_revision");
    if revision.as_u64().is_none_or(|revision| revision < contract::SURFACE_REVISION.into()) {
        missing.push(format!("surface_revision is {revision}; {} or higher is needed", contract::SURFACE_REVISION));
    }
    let instance = get("instance_id");
    if !instance.as_str().is_some_and(is_uuid) {
        missing.push("instance_id is no UUID in small letters".to_owned());
    }
    let listed = get("capabilities");
    let listed = listed.as_array().map(Vec::as_slice).unwrap_or_default();
    for capability in contract::CAPABILITIES {
        let times = listed.iter().filter(|one| **one == json!(capability)).count();
        if times != 1 {
            missing.push(format!("the capability {capability} is listed {times} times"));
        }
    }
    let minor = get("api_minor").as_u64();
    if minor.is_none() {
        missing.push("api_minor is no number".to_owned());
    } else if minor == Some(contract::API_MINOR.into()) && listed.len() > contract::CAPABILITIES.len() {
        missing.push("capabilities beyond those of api_minor 0 are listed".to_owned());
    }
    for (name, least) in contract::LIMITS {
        let value = said.get("limits").and_then(|limits| limits.get(name)).and_then(Value::as_u64);
        if value.is_none_or(|value| value < least) {
            missing.push(format!("the limit {name} is below {least}"));
        }
    }
    missing
}

fn is_uuid(text: &str) -> bool {
    let groups: Vec<&str> = text.split('-').collect();
    groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12])
        && groups.iter().all(|group| group.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')))
}
