//! The pages that follow from the code: tools, errors, limits, schemas. `UPDATE_DOCS=1 cargo test -p retroscope --test
//! generated_docs` rewrites them; without it, a page that is not what the code says fails.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]
#![cfg(not(feature = "conformance"))]

use retroscope::errors::ErrorCode;
use retroscope::mcp;
use retroscope::tools::{Entry, GROUPS, Profile, meta};
use serde_json::{Map, Value};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Compares a page with what it should be, or rewrites it.
fn check(name: &str, wanted: &str) {
    let path = root().join(name);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, wanted).unwrap();
        return;
    }
    let is = std::fs::read_to_string(&path).unwrap_or_default();
    let line = is.lines().zip(wanted.lines()).take_while(|(is, wanted)| is == wanted).count();
    assert!(
        is == wanted,
        "{name} is not what the code says from line {} on; UPDATE_DOCS=1 cargo test -p retroscope --test generated_docs",
        line + 1
    );
}

const MADE: &str = "<!-- Made from the code by crates/server/tests/generated_docs.rs; do not edit. -->\n";

#[test]
fn tools_page() {
    let mut page = format!(
        "# Tools\n\n{MADE}\nEach tool can be called by an MCP client and as `retroscope call NAME JSON`. Results of tools \
         about the program carry its state too: `state` and `status` (the same word), `reason`, `pc`, `thread`, \
         `generation`, `exit_code`, `exit_signal`; those are explained at `get_status` and left out elsewhere.\n\n\
         ## Profiles\n\n| profile | tools | bytes of its list | what for |\n|---|---:|---:|---|\n"
    );
    for profile in Profile::all() {
        let list = mcp::listed(profile);
        let bytes = serde_json::to_vec(&list).unwrap().len();
        writeln!(page, "| `{}` | {} | {bytes} | {} |", profile.name(), list.len(), profile.purpose()).unwrap();
    }
    page.push_str(
        "\n## Group `meta`\n\nListed in every profile; `call_tool` in `minimal` only. `load_tool_group` and \
         `unload_tool_group` are listed over stdio for revisions of the protocol before 2026-07-28; everywhere else a list does not \
         change, and they answer with `tool_list_fixed` and what to do instead.\n\nc64-mcp's names for these are understood in \
         every profile and listed in none: `list_c64_tool_groups`, `search_c64_tools`, `load_c64_tool_group` and \
         `unload_c64_tool_group`, for the C64 groups under the names they had there, and with the results of there; and its \
         profiles `static` (`c64`) and `vice` (`c64-live`).\n",
    );
    for tool in meta::GROUP.tools.iter().chain(meta::LOADING).chain([&meta::CALL_TOOL]) {
        describe(&mut page, tool);
    }
    for group in GROUPS {
        writeln!(page, "\n## Group `{}`\n\n{}", group.name, group.purpose).unwrap();
        for tool in group.tools {
            describe(&mut page, tool);
        }
    }
    check("docs/tools.md", &page);
}

fn describe(page: &mut String, tool: &Entry) {
    let effect = tool.effect;
    let mut effects = vec![if effect.read_only { "reads only" } else { "changes something" }];
    effects.extend(effect.destructive.then_some("may destroy"));
    effects.extend(effect.idempotent.then_some("a second call changes nothing more"));
    effects.extend(effect.open_world.then_some("reaches beyond the program"));
    writeln!(page, "\n### `{}`\n\n{}\n\n*{}.*", tool.name, tool.description, effects.join(", ")).unwrap();
    fields(page, "Arguments", &(tool.input_schema)(), &[]);
    match (tool.output_schema)() {
        Some(schema) if tool.name == "get_status" => fields(page, "Result", &schema, &[]),
        Some(schema) => {
            let live = ["state", "status", "reason", "pc", "thread", "generation", "exit_code", "exit_signal"];
            fields(page, "Result", &schema, &live);
        }
        None if tool.name == meta::CALL_TOOL.name => page.push_str("\nResult: that of the tool it calls.\n"),
        None => page.push_str("\nResult: the picture, and its facts as JSON text.\n"),
    }
}

fn fields(page: &mut String, title: &str, schema: &Map<String, Value>, without: &[&str]) {
    let empty = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    let properties: Vec<_> = properties.iter().filter(|(name, _)| !without.contains(&name.as_str())).collect();
    if properties.is_empty() {
        writeln!(page, "\n{title}: none.").unwrap();
        return;
    }
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    writeln!(page, "\n{title}:\n").unwrap();
    for (name, property) in properties {
        field(page, 0, name, property, required.contains(&name.as_str()) && title == "Arguments");
    }
}

fn field(page: &mut String, depth: usize, name: &str, schema: &Value, required: bool) {
    let must = if required { ", required" } else { "" };
    let text = schema["description"].as_str().unwrap_or_default().replace('\n', " ");
    writeln!(page, "{}- `{name}` ({}{must}): {text}", "  ".repeat(depth), kind(schema)).unwrap();
    let inner = if schema["type"] == "array" { &schema["items"] } else { schema };
    for (name, property) in inner["properties"].as_object().into_iter().flatten().filter(|_| depth < 3) {
        field(page, depth + 1, name, property, false);
    }
    for form in forms_of(inner).iter().filter(|_| depth < 3) {
        let fields = form["properties"].as_object().into_iter().flatten();
        let (words, others): (Vec<_>, Vec<_>) = fields.partition(|(_, property)| property["const"].is_string());
        let words: Vec<String> = words.iter().map(|(name, word)| format!("\"{name}\": {}", word["const"])).collect();
        if words.is_empty() {
            continue;
        }
        let with = if others.is_empty() { "nothing more." } else { "also:" };
        writeln!(page, "{}- `{{{}}}`, {with}", "  ".repeat(depth + 1), words.join(", ")).unwrap();
        for (name, property) in others {
            let required = form["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name.as_str()));
            field(page, depth + 2, name, property, required);
        }
    }
}

/// The forms that a value may have.
fn forms_of(schema: &Value) -> &[Value] {
    let forms = ["oneOf", "anyOf"].iter().find_map(|key| schema[key].as_array());
    forms.map(Vec::as_slice).unwrap_or_default()
}

fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next()) {
        return name.to_lowercase();
    }
    if let Some(words) = schema["enum"].as_array() {
        return words
            .iter()
            .map(|word| format!("`{}`", word.as_str().unwrap_or_default()))
            .collect::<Vec<_>>()
            .join(" or ");
    }
    match &schema["type"] {
        Value::String(kind) if kind == "array" => format!("list of {}", kind_of_items(&schema["items"])),
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ if forms_of(schema).iter().all(|form| form["properties"].is_object()) && !forms_of(schema).is_empty() => {
            "object of one of these forms".to_owned()
        }
        _ if !forms_of(schema).is_empty() => forms_of(schema).iter().map(kind).collect::<Vec<_>>().join(" or "),
        _ => "any".to_owned(),
    }
}

#[test]
fn an_argument_with_several_forms_shows_them() {
    let mut page = String::new();
    let tool = retroscope::tools::find("nds_search_pattern").unwrap();
    describe(&mut page, tool);
    for line in [
        "- `scope` (object of one of these forms, required): Where; a hit lies wholly inside one component.\n  - `{\"kind\": \"whole-rom\"}`, nothing more.\n",
        "  - `{\"kind\": \"byte-signature\"}`, also:\n    - `signature` (string, required): Hex pairs; `??` is any byte.\n",
        "    - `endian` (`little` or `big`, required): \n",
    ] {
        assert!(page.contains(line), "{line}{page}");
    }
    for group in GROUPS.iter().filter(|group| group.name.starts_with("nds")) {
        for tool in group.tools {
            for (name, argument) in (tool.input_schema)()["properties"].as_object().unwrap() {
                assert_ne!(kind(argument), "any", "{} {name}", tool.name);
            }
        }
    }
}

fn kind_of_items(items: &Value) -> String {
    if items["properties"].is_object() { "objects".to_owned() } else { kind(items) }
}

#[test]
fn errors_page() {
    let mut page = format!(
        "# Errors\n\n{MADE}\nA tool that refuses answers with `isError` and one text: a line `code: message; hint`, then the \
         same as JSON: `{{\"code\", \"message\", \"hint\", \"retryable\", \"details\"}}`. `retroscope call` prints it on \
         stderr and exits with 1. *Again* says whether the same call may succeed later with nothing changed by the \
         caller.\n"
    );
    let mut table = |title: &str, codes: &mut dyn Iterator<Item = ErrorCode>| {
        writeln!(page, "\n## {title}\n\n| code | again | meaning |\n|---|---|---|").unwrap();
        for code in codes {
            let again = if code.retryable() { "yes" } else { "no" };
            writeln!(page, "| `{code}` | {again} | {} |", code.meaning().trim()).unwrap();
        }
    };
    table("Of the server", &mut ErrorCode::OWN.iter().copied());
    table("Of the debug agent", &mut wire::ErrorCode::ALL.iter().map(|code| ErrorCode::Agent(*code)));
    check("docs/errors.md", &page);
}

#[test]
fn limits_page() {
    let source = std::fs::read_to_string(root().join("crates/base/src/limits.rs")).unwrap();
    let mut page =
        format!("# Limits\n\n{MADE}\nEvery number that bounds the work, from `crates/base/src/limits.rs`.\n");
    let mut text = String::new();
    let mut count = 0;
    for line in source.lines() {
        if let Some(section) = line.strip_prefix("// ---- ").and_then(|rest| rest.strip_suffix(" ----")) {
            writeln!(page, "\n## {section}\n\n| name | value | what it bounds, and why |\n|---|---|---|").unwrap();
        } else if let Some(comment) = line.strip_prefix("/// ") {
            text.push_str(comment);
            text.push(' ');
        } else if let Some((name, value)) = line.strip_prefix("pub const ").and_then(|rest| rest.split_once(": ")) {
            let value = value.split_once(" = ").unwrap().1.trim_end_matches(';');
            writeln!(page, "| `{name}` | `{value}` | {} |", text.trim().replace('|', "\\|")).unwrap();
            text.clear();
            count += 1;
        }
    }
    assert_eq!(count, source.matches("pub const ").count(), "a constant was not understood");
    check("docs/limits.md", &page);
}

#[test]
fn c64_symbol_profile() {
    // The profile that Ghidra gets, from the tables in `crates/c64/src/symbols.rs`: making it again changes no byte.
    let profile = serde_json::to_string_pretty(&retroscope::tools::c64_symbols::profile::view()).unwrap();
    check("docs/c64-symbol-profile.json", &(profile + "\n"));
}

#[test]
fn schemas() {
    for profile in Profile::all() {
        let list = serde_json::to_string_pretty(&mcp::listed(profile)).unwrap();
        check(&format!("schemas/{}.json", profile.name()), &(list + "\n"));
    }
}
