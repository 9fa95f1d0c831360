//! The tripwire between `docs/agent-protocol.md` and the code: operations, fields, types, error codes and numbers must be
//! the same in both. The words around them are for people and are not compared.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use base::limits;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use wire::{ErrorCode, commands};

const DOCUMENT: &str = include_str!("../../../docs/agent-protocol.md");

/// The rows of one table: name, type and `yes` or `no`.
type Rows = BTreeSet<[String; 3]>;

/// What the document or the code says: error codes, and tables by heading and first column name.
#[derive(Debug, Default, PartialEq, Eq)]
struct Contract {
    codes: BTreeSet<(String, String)>,
    tables: BTreeMap<(String, String), Rows>,
}

impl Contract {
    fn put(&mut self, heading: &str, column: &str, rows: Rows) {
        if !rows.is_empty() {
            self.tables.insert((heading.to_owned(), column.to_owned()), rows);
        }
    }

    /// One sentence for each difference.
    fn differences(&self, document: &Self) -> Vec<String> {
        let mut found = Vec::new();
        for (code, retryable) in self.codes.symmetric_difference(&document.codes) {
            found.push(format!("error code `{code}` (retryable: {retryable}) is not the same in both"));
        }
        let headings: BTreeSet<_> = self.tables.keys().chain(document.tables.keys()).collect();
        for key @ (heading, column) in headings {
            let (code, text) = (self.tables.get(key), document.tables.get(key));
            let empty = Rows::new();
            for row in code.unwrap_or(&empty).difference(text.unwrap_or(&empty)) {
                found.push(format!("`{heading}`, {column}: the code has {row:?}, the document has not"));
            }
            for row in text.unwrap_or(&empty).difference(code.unwrap_or(&empty)) {
                found.push(format!("`{heading}`, {column}: the document has {row:?}, the code has not"));
            }
        }
        found
    }
}

/// Reads the tables of the document: those under a heading `### …`, and that of the error codes.
fn read_document(text: &str) -> Contract {
    let mut contract = Contract::default();
    let (mut heading, mut column) = (String::new(), String::new());
    for line in text.lines() {
        if let Some(title) = line.strip_prefix('#') {
            heading = title.trim_start_matches('#').trim().replace('`', "");
            column.clear();
            // The heading itself counts, though nothing be below it.
            if line.starts_with("### ") && !PROSE.contains(&heading.as_str()) {
                contract.put(&heading, "Heading", heading_row(&heading));
            }
        } else if let Some(cells) = line.strip_prefix("| ") {
            let cells: Vec<&str> = cells.trim_end_matches(" |").split(" | ").collect();
            let (Some(name), Some(second), Some(third)) = (cells.first(), cells.get(1), cells.get(2)) else { continue };
            let Some(name) = name.strip_prefix('`').and_then(|name| name.strip_suffix('`')) else {
                if *name != "---" {
                    column = (*name).to_owned();
                }
                continue;
            };
            let row = [name.to_owned(), (*second).to_owned(), (*third).to_owned()];
            match column.as_str() {
                "Code" => drop(contract.codes.insert((row[0].clone(), row[1].clone()))),
                "Parameter" | "Reply" | "Field" => {
                    contract.tables.entry((heading.clone(), column.clone())).or_default().insert(row);
                }
                _ => {}
            }
        }
    }
    contract
}

fn heading_row(heading: &str) -> Rows {
    Rows::from([[heading.to_owned(), String::new(), String::new()]])
}

/// Headings of the third level that are no operation and no object.
const PROSE: [&str; 2] = ["Order and time", "Security"];

/// The same out of the schemas.
fn read_code() -> Contract {
    let mut contract = Contract::default();
    for code in ErrorCode::ALL {
        let retryable = if code.retryable() { "yes" } else { "no" };
        contract.codes.insert((code.word().to_owned(), retryable.to_owned()));
    }
    let replies: Vec<(String, Rows)> = commands::schemas()
        .into_iter()
        .map(|schema| {
            contract.put(schema.op, "Parameter", rows(schema.params.as_value()));
            for (name, object) in objects(schema.params.as_value()).chain(objects(schema.reply.as_value())) {
                contract.put(&format!("Object {name}"), "Field", rows(object));
            }
            (schema.op.to_owned(), rows(schema.reply.as_value()))
        })
        .collect();
    // What every reply has is the state of the program.
    let live = replies.iter().map(|(_, rows)| rows.clone()).reduce(|all, one| &all & &one).unwrap();
    for (op, rows) in &replies {
        contract.put(op, "Reply", rows - &live);
    }
    contract.put("Object Live", "Field", live);
    let headings: BTreeSet<String> = contract.tables.keys().map(|(heading, _)| heading.clone()).collect();
    for heading in headings {
        contract.put(&heading, "Heading", heading_row(&heading));
    }
    contract
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::iter)
}

fn rows(schema: &Value) -> Rows {
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let row = |(name, property): (&String, &Value)| {
        let always = if required.contains(&name.as_str()) { "yes" } else { "no" };
        [name.clone(), type_words(property), always.to_owned()]
    };
    properties(schema).map(row).collect()
}

fn objects(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let definitions = schema.get("$defs").and_then(Value::as_object).into_iter().flat_map(Map::iter);
    definitions.filter(|(_, definition)| definition["type"] == "object")
}

/// A type as the document writes it.
fn type_words(schema: &Value) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        return reference.rsplit('/').next().unwrap_or_default().to_owned();
    }
    if let Some(choices) = schema["anyOf"].as_array() {
        let named: Vec<String> = choices.iter().filter(|choice| choice["type"] != "null").map(type_words).collect();
        return named.join(" or ");
    }
    if let Some(words) = schema["oneOf"].as_array() {
        let words: Vec<String> = words.iter().map(|word| format!("`{}`", word["const"].as_str().unwrap())).collect();
        return words.join(", ");
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null"),
        kind => kind.as_str(),
    };
    match kind {
        Some("array") => format!("list of {}", type_words(&schema["items"])),
        Some("object") => format!("object: name to {}", type_words(&schema["additionalProperties"])),
        kind => kind.unwrap_or("?").to_owned(),
    }
}

#[test]
fn the_document_and_the_code_say_the_same() {
    let found = read_code().differences(&read_document(DOCUMENT));
    assert!(found.is_empty(), "docs/agent-protocol.md and crates/wire differ:\n{}", found.join("\n"));
}

#[test]
fn every_operation_has_its_heading() {
    let headings: Vec<&str> = DOCUMENT
        .lines()
        .filter_map(|line| line.strip_prefix("### `"))
        .filter_map(|line| line.strip_suffix('`'))
        .collect();
    assert_eq!(headings.iter().collect::<BTreeSet<_>>(), commands::OPERATIONS.iter().collect::<BTreeSet<_>>());
}

#[test]
fn numbers_are_those_of_the_limits() {
    let grouped = |number: u64| {
        let digits = number.to_string();
        let mut text = String::new();
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                text.push(',');
            }
            text.push(digit);
        }
        text
    };
    // "15 seconds after that": the time of one command before, and the slack.
    let late = (limits::COMMAND_TIMEOUT_MS + limits::ENGINE_SLACK_MS) / 1000;
    for sentence in [
        format!("Version {}.", wire::PROTOCOL_VERSION),
        format!("127.0.0.1, port {}", limits::DEFAULT_AGENT_PORT),
        format!("up to {} clients", limits::MAX_CLIENTS),
        format!("A line has at most {} bytes", grouped(limits::MAX_FRAME_BYTES as u64)),
        format!("`--orphan-after`, {} seconds", limits::DEFAULT_ORPHAN_AFTER_S),
        format!("Up to {} commands", limits::MAX_CLIENT_COMMANDS),
        format!("and {} MiB of requests", limits::MAX_CLIENT_BYTES / 1024 / 1024),
        format!("up to {} seconds;", limits::MAX_CONTINUE_TIMEOUT_S),
        format!("all others at most {} seconds", limits::COMMAND_TIMEOUT_MS / 1000),
        format!("`timeout` {late} seconds"),
        format!("answers for {} seconds is disconnected", limits::CLIENT_WRITE_TIMEOUT_S),
        format!("At most {} bytes", limits::MAX_ADDR_EXPR_BYTES),
        format!(
            "At most {} comparisons, nested at most {} deep",
            limits::MAX_CONDITION_TERMS,
            limits::MAX_CONDITION_DEPTH
        ),
        format!("At most {} at once", grouped(limits::MAX_BREAKPOINTS as u64)),
        format!("Number of bytes, 1 to {}", grouped(limits::MAX_READ_BYTES)),
        format!("How often, 1 to {}", grouped(limits::MAX_STEP_COUNT.into())),
        format!(
            "How many, 1 to {}; default {}",
            grouped(limits::MAX_DISASSEMBLE_COUNT.into()),
            limits::DEFAULT_DISASSEMBLE_COUNT
        ),
        format!("1 to {}; default {}", limits::MAX_BACKTRACE_FRAMES, limits::DEFAULT_BACKTRACE_FRAMES),
        format!("at most {} seconds. SIGKILL", limits::SHUTDOWN_TIMEOUT_MS / 1000),
    ] {
        let text = DOCUMENT.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(&sentence), "the document does not say: {sentence}");
    }
}

#[test]
fn a_change_on_either_side_is_noticed() {
    let code = read_code();
    let row = "| `one_shot` | boolean | no |";
    for (change, from, to, word) in [
        (
            "a parameter is left out",
            format!("{row} Remove the breakpoint at its first stop. |\n"),
            String::new(),
            "one_shot",
        ),
        ("a parameter is renamed", row.to_owned(), "| `once` | boolean | no |".to_owned(), "once"),
        ("a type is changed", row.to_owned(), "| `one_shot` | integer | no |".to_owned(), "integer"),
        ("what may be left out is changed", row.to_owned(), "| `one_shot` | boolean | yes |".to_owned(), "one_shot"),
        ("an operation is renamed", "### `pause`".to_owned(), "### `halt`".to_owned(), "halt"),
        (
            "an operation without parameters is added",
            "### `pause`".to_owned(),
            "### `sleep`\n\n### `pause`".to_owned(),
            "sleep",
        ),
        ("an error code is renamed", "| `busy` |".to_owned(), "| `occupied` |".to_owned(), "occupied"),
        ("retryable is changed", "| `busy` | yes |".to_owned(), "| `busy` | no |".to_owned(), "busy"),
        ("a word is changed", "| `into`, `over`, `out` |".to_owned(), "| `in`, `over`, `out` |".to_owned(), "`in`"),
        ("an object is renamed", "### Object `Frame`".to_owned(), "### Object `Level`".to_owned(), "Level"),
        ("the state changes", "| `generation` | integer".to_owned(), "| `moment` | integer".to_owned(), "moment"),
    ] {
        let changed = DOCUMENT.replacen(&from, &to, 1);
        assert_ne!(changed, DOCUMENT, "{change}: the text to be changed is not in the document");
        let found = code.differences(&read_document(&changed));
        assert!(found.iter().any(|sentence| sentence.contains(word)), "{change}: {found:?}");
    }
}
