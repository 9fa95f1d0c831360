//! JSON Schemas of tool arguments and results, as clients like them: self-contained, short, without what no client reads.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// Schema of a tool's arguments.
pub fn of_input<T: JsonSchema>() -> Map<String, Value> {
    let settings = SchemaSettings::draft2020_12().for_deserialize();
    let mut schema = object::<T>(settings);
    inline_definitions(&mut schema);
    // Some clients refuse an object schema without properties.
    schema.entry("properties").or_insert_with(|| json!({}));
    schema
}

/// Schema of a tool's result, in full, for the documents.
pub fn of_output<T: JsonSchema>() -> Map<String, Value> {
    let mut settings = SchemaSettings::draft2020_12().for_serialize();
    settings.inline_subschemas = true;
    object::<T>(settings)
}

/// Schema of a tool's result as clients get it: the outer fields. What is inside them explains itself where it is read,
/// and the state of the program, which is in nearly every result, is explained once, in `get_status`.
pub fn outline(full: &Map<String, Value>, explain_state: bool) -> Map<String, Value> {
    let state = of_output::<wire::Live>();
    let state = state.get("properties").and_then(Value::as_object);
    let mut outline = full.clone();
    outline.remove("$defs");
    if let Some(Value::Object(properties)) = outline.get_mut("properties") {
        for (name, property) in properties.iter_mut() {
            if !explain_state && state.is_some_and(|state| state.get(name) == Some(property)) {
                strip(property, "description");
                strip(property, "enum");
            }
            shallow(property);
        }
    }
    outline
}

/// Schema of arguments that say by their names what they are: described are those that must be given, and these.
pub fn brief(mut full: Map<String, Value>, described: &[&str]) -> Map<String, Value> {
    let required: Vec<Value> = full.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    if let Some(Value::Object(properties)) = full.get_mut("properties") {
        for (name, property) in properties.iter_mut() {
            if !described.contains(&name.as_str()) && !required.iter().any(|required| required == name.as_str()) {
                strip(property, "description");
            }
        }
    }
    full
}

/// Schema of a result whose fields say by their names what they are: those that are always there.
pub fn names(full: &Map<String, Value>) -> Map<String, Value> {
    full.iter()
        .filter(|(key, _)| matches!(key.as_str(), "type" | "required"))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

fn strip(schema: &mut Value, key: &str) {
    if let Value::Object(map) = schema {
        map.remove(key);
    }
}

/// Keeps type, words and description of a schema; the items of a list likewise.
fn shallow(schema: &mut Value) {
    let Value::Object(map) = schema else { return };
    map.retain(|key, _| matches!(key.as_str(), "type" | "description" | "enum" | "items"));
    if let Some(items) = map.get_mut("items") {
        shallow(items);
        strip(items, "description");
    }
}

/// Puts definitions where they are used, except those that use themselves: many clients read no references, and generators
/// that inline everything write the outer level of a recursive one twice.
fn inline_definitions(schema: &mut Map<String, Value>) {
    let Some(Value::Object(mut definitions)) = schema.remove("$defs") else { return };
    while let Some(name) =
        definitions.iter().find(|(_, body)| !body.to_string().contains("\"$ref\"")).map(|(name, _)| name.clone())
    {
        let Some(body) = definitions.remove(&name) else { break };
        let reference = format!("#/$defs/{name}");
        let users = schema.values_mut().chain(definitions.values_mut());
        users.for_each(|user| replace(user, &reference, &body));
    }
    if !definitions.is_empty() {
        schema.insert("$defs".to_owned(), Value::Object(definitions));
    }
}

/// Replaces references by the body; what stands beside a reference goes before what is in the body.
fn replace(value: &mut Value, reference: &str, body: &Value) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(|item| replace(item, reference, body)),
        Value::Object(map) => {
            map.values_mut().for_each(|inner| replace(inner, reference, body));
            if map.get("$ref").is_some_and(|found| found == reference) {
                map.remove("$ref");
                for (key, inner) in body.as_object().into_iter().flatten() {
                    map.entry(key.clone()).or_insert_with(|| inner.clone());
                }
            }
        }
        _ => {}
    }
}

fn object<T: JsonSchema>(settings: SchemaSettings) -> Map<String, Value> {
    let settings = settings.with(|settings| settings.meta_schema = None);
    let mut schema = match settings.into_generator().into_root_schema_for::<T>().to_value() {
        Value::Object(schema) => schema,
        _ => Map::new(),
    };
    // The tool's own description says it better than the type's.
    schema.remove("description");
    schema.remove("title");
    let mut schema = Value::Object(schema);
    tidy(&mut schema);
    let Value::Object(mut schema) = schema else { return Map::new() };
    schema.entry("type").or_insert_with(|| json!("object"));
    schema
}

/// Removes titles, formats, `null` alternatives and what holds anyway, and writes a choice of plain types as one `type`.
fn tidy(value: &mut Value) {
    tidy_nullable(value, false);
}

/// The same; a `nullable` schema keeps its `null`.
fn tidy_nullable(value: &mut Value, nullable: bool) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(tidy),
        Value::Object(map) => {
            // What is always there can be null; what may be left out is left out instead.
            let always: Vec<Value> = map.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
            // In `properties` and `$defs` the keys are names, not keywords.
            let keyword = |key: &str| !matches!(key, "properties" | "$defs" | "patternProperties");
            for (key, inner) in map.iter_mut() {
                if keyword(key) {
                    tidy(inner);
                } else if let Value::Object(named) = inner {
                    for (name, property) in named.iter_mut() {
                        let kept = key == "properties" && always.iter().any(|required| required == name.as_str());
                        tidy_nullable(property, kept);
                    }
                }
            }
            if map.get("title").is_some_and(Value::is_string) {
                map.remove("title");
            }
            if map.get("format").is_some_and(Value::is_string) {
                map.remove("format");
            }
            // Both are what holds without the keyword.
            if map.get("additionalProperties") == Some(&Value::Bool(true)) {
                map.remove("additionalProperties");
            }
            if map.get("default") == Some(&Value::Bool(false)) {
                map.remove("default");
            }
            if !nullable {
                without_null(map);
            }
            plain_choice(map);
            words(map);
        }
        _ => {}
    }
}

/// A value that may be absent is left out, never `null`.
fn without_null(map: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = map.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            map.insert("type".to_owned(), only);
        }
    }
    if map.get("default").is_some_and(Value::is_null) {
        map.remove("default");
    }
    if let Some(Value::Array(choices)) = map.get_mut("anyOf") {
        choices.retain(|choice| choice != &json!({ "type": "null" }));
        if let [Value::Object(only)] = choices.as_slice() {
            let only = only.clone();
            map.remove("anyOf");
            for (key, inner) in only {
                map.entry(key).or_insert(inner);
            }
        }
    }
}

/// `anyOf` of plain types becomes `type: [...]`.
fn plain_choice(map: &mut Map<String, Value>) {
    let Some(Value::Array(choices)) = map.get("anyOf") else { return };
    let types: Option<Vec<Value>> = choices
        .iter()
        .map(|choice| {
            let choice = choice.as_object()?;
            let plain = choice.keys().all(|key| matches!(key.as_str(), "type" | "minimum"));
            choice.get("type").filter(|kind| plain && kind.is_string()).cloned()
        })
        .collect();
    if let Some(types) = types {
        map.remove("anyOf");
        map.insert("type".to_owned(), Value::Array(types));
    }
}

/// `oneOf` of constant words becomes `enum`; their descriptions follow the field's own.
fn words(map: &mut Map<String, Value>) {
    let Some(Value::Array(choices)) = map.get("oneOf") else { return };
    let constants: Option<Vec<Value>> = choices
        .iter()
        .map(|choice| {
            let choice = choice.as_object()?;
            let plain = choice.keys().all(|key| matches!(key.as_str(), "type" | "const" | "description"));
            choice.get("const").filter(|word| plain && word.is_string()).cloned()
        })
        .collect();
    if let Some(constants) = constants {
        map.remove("oneOf");
        map.insert("type".to_owned(), json!("string"));
        map.insert("enum".to_owned(), Value::Array(constants));
    }
}

/// The forms that an argument may have, when it is more than a plain value.
pub fn forms(schema: &Value) -> Option<String> {
    if let Some(choices) = ["oneOf", "anyOf"].iter().find_map(|key| schema.get(key)?.as_array()) {
        let forms: Vec<String> = choices.iter().filter_map(|choice| forms(choice).or_else(|| plain(choice))).collect();
        return Some(forms.join(" or "));
    }
    if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        let words: Vec<String> = words.iter().map(|word| format!("`{}`", word.as_str().unwrap_or_default())).collect();
        return Some(words.join(" or "));
    }
    if let Some(items) = schema.get("items") {
        return Some(format!("a list, each item {}", forms(items).or_else(|| plain(items))?));
    }
    let properties = schema.get("properties")?.as_object()?;
    let required = schema.get("required").and_then(Value::as_array);
    let (mut first, mut others) = (Vec::new(), Vec::new());
    for (name, property) in properties {
        match property.get("const") {
            Some(word) => first.push(format!("\"{name}\": {word}")),
            None if required.is_some_and(|required| required.iter().any(|field| field == name.as_str())) => {
                first.push(format!("\"{name}\""));
            }
            None => others.push(format!("\"{name}\"?")),
        }
    }
    first.sort_by_key(|field| !field.contains(": "));
    first.append(&mut others);
    Some(format!("`{{{}}}`", first.join(", ")))
}

/// The type of a plain value.
fn plain(schema: &Value) -> Option<String> {
    match schema.get("type")? {
        Value::String(kind) => Some(kind.clone()),
        Value::Array(kinds) => Some(kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or ")),
        _ => None,
    }
}

/// A message of the JSON reader without the names of our types, which say nothing to whoever wrote the JSON.
pub fn without_type_names(message: &str) -> String {
    let mut text = message.to_owned();
    for (kind, plain) in [
        ("data did not match any variant of untagged enum ", "this is none of its forms"),
        ("internally tagged enum ", "an object"),
        ("adjacently tagged enum ", "an object"),
        ("unit struct ", "null"),
        ("newtype struct ", "one value"),
        ("tuple struct ", "a list"),
        ("struct variant ", "an object"),
        ("tuple variant ", "a list"),
        ("newtype variant ", "one value"),
        ("unit variant ", "a word"),
        ("struct ", "an object"),
        ("enum ", "a word"),
    ] {
        while let Some((before, behind)) = text.split_once(kind) {
            let name = behind.find(|c: char| !(c.is_alphanumeric() || "_:<>".contains(c))).unwrap_or(behind.len());
            let rest = behind.get(name..).unwrap_or_default();
            text = format!("{before}{plain}{rest}");
        }
    }
    text
}

/// One line that names the arguments of an input schema.
pub fn usage(schema: &Map<String, Value>) -> String {
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let Some(properties) = schema.get("properties").and_then(Value::as_object).filter(|map| !map.is_empty()) else {
        return "it takes no arguments".to_owned();
    };
    let names: Vec<String> = properties
        .keys()
        .map(
            |name| if required.contains(&name.as_str()) { format!("`{name}` (required)") } else { format!("`{name}`") },
        )
        .collect();
    format!("its arguments are {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::{Deserialize, Serialize};

    /// Not shown.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        /// An address.
        addr: wire::AddrExpr,
        /// A number.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        count: Option<u32>,
        /// A word.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<wire::commands::StepMode>,
        /// A field that is named like a keyword.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
    }

    #[test]
    fn a_schema_holds_what_clients_read_and_no_more() {
        assert_eq!(
            Value::Object(of_input::<Sample>()),
            json!({
                "type": "object",
                "properties": {
                    "addr": {"type": ["string", "integer"], "description": "An address."},
                    "count": {"type": "integer", "minimum": 0, "description": "A number."},
                    "mode": {"type": "string", "enum": ["into", "over", "out"], "description": "A word."},
                    "title": {"type": "string", "description": "A field that is named like a keyword."},
                },
                "required": ["addr"],
                "additionalProperties": false,
            })
        );
        assert_eq!(usage(&of_input::<Sample>()), "its arguments are `addr` (required), `count`, `mode`, `title`");
    }

    /// Not shown.
    #[derive(Serialize, JsonSchema)]
    struct Nullable {
        /// Always there.
        always: Option<u32>,
        /// Left out.
        #[serde(skip_serializing_if = "Option::is_none")]
        sometimes: Option<u32>,
    }

    #[test]
    fn forms_are_told_as_they_are_written() {
        let kinds = json!({"oneOf": [
            {"type": "object", "properties": {"kind": {"const": "main"}}, "required": ["kind"]},
            {
                "type": "object",
                "properties": {"ids": {"type": "array"}, "kind": {"const": "overlay"}, "more": {}},
                "required": ["ids", "kind"]
            },
        ]});
        let both = r#"`{"kind": "main"}` or `{"kind": "overlay", "ids", "more"?}`"#;
        assert_eq!(forms(&kinds).unwrap(), both);
        assert_eq!(forms(&json!({"type": "array", "items": kinds})).unwrap(), format!("a list, each item {both}"));
        assert_eq!(forms(&json!({"type": "string", "enum": ["a", "b"]})).unwrap(), "`a` or `b`");
        assert_eq!(forms(&json!({"type": "integer"})), None);
    }

    #[test]
    fn a_message_has_no_names_of_types() {
        for (message, wanted) in [
            (
                "invalid type: string \"x\", expected internally tagged enum Wanted",
                "invalid type: string \"x\", expected an object",
            ),
            (
                "invalid length 1, expected struct Seed with 3 elements",
                "invalid length 1, expected an object with 3 elements",
            ),
            ("data did not match any variant of untagged enum AddrExpr", "this is none of its forms"),
            ("unknown variant `a`, expected `b` or `c`", "unknown variant `a`, expected `b` or `c`"),
        ] {
            assert_eq!(without_type_names(message), wanted);
        }
    }

    #[test]
    fn only_a_field_that_is_always_there_can_be_null() {
        let schema = Value::Object(of_output::<Nullable>());
        assert_eq!(schema["properties"]["always"]["type"], json!(["integer", "null"]));
        assert_eq!(schema["properties"]["sometimes"]["type"], json!("integer"));
    }

    #[test]
    fn an_outline_has_the_outer_fields_only() {
        let full = of_output::<wire::commands::StopReply>();
        let outer = Value::Object(outline(&full, false));
        assert_eq!(
            outer["properties"]["stop"],
            json!({"type": "object", "description": "What the stop is about, when it stopped."})
        );
        assert_eq!(outer["properties"]["state"], json!({"type": "string"}));
        assert_eq!(outer["required"], full["required"]);
        let explained = Value::Object(outline(&full, true));
        assert!(explained["properties"]["generation"]["description"].is_string());
    }

    #[test]
    fn a_result_of_speaking_names_has_those_that_are_always_there() {
        let names = names(&of_output::<Nullable>());
        assert_eq!(Value::Object(names), json!({"type": "object", "required": ["always"]}));
    }

    /// Not shown.
    #[derive(Deserialize, JsonSchema)]
    struct Flags {
        /// Off unless said.
        #[serde(default)]
        #[allow(dead_code, reason = "it only has a schema")]
        off: bool,
        /// Anything.
        #[allow(dead_code, reason = "it only has a schema")]
        open: Map<String, Value>,
    }

    #[test]
    fn a_brief_schema_describes_what_must_be_given_and_what_it_is_told_to() {
        let full = of_input::<Sample>();
        let brief = Value::Object(brief(full.clone(), &["mode"]));
        for (name, described) in [("addr", true), ("mode", true), ("count", false), ("title", false)] {
            assert_eq!(brief["properties"][name]["description"].is_string(), described, "{name}");
        }
        assert_eq!(brief["properties"].as_object().unwrap().len(), full["properties"].as_object().unwrap().len());
    }

    #[test]
    fn what_holds_anyway_is_not_said() {
        let schema = Value::Object(of_input::<Flags>());
        assert_eq!(schema["properties"]["off"], json!({"type": "boolean", "description": "Off unless said."}));
        assert_eq!(schema["properties"]["open"], json!({"type": "object", "description": "Anything."}));
    }

    #[test]
    fn a_type_that_holds_itself_keeps_its_reference() {
        let schema = Value::Object(of_input::<wire::commands::SetBreakpoint>()).to_string();
        assert!(schema.contains("\"$ref\":\"#/$defs/Condition\""), "{schema}");
    }
}
