//! `search_tools`: which tool does what, by words. The tools about tools are not among what it finds.

use crate::context::Context;
use crate::errors::{ErrorCode, ToolError};
use crate::tools::{self, Effect, Entry, Tool};
use base::limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The tool.
#[derive(Debug)]
pub struct SearchTools;

/// What is looked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Words: what is to be done (`what writes a variable`), or a tool's name.
    query: String,
    /// Give the argument schema of each tool too; default false.
    #[serde(default)]
    include_schemas: bool,
}

/// The tools found, best first.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Found {
    /// The tools.
    tools: Vec<FoundTool>,
    /// Tools that fit the words.
    total: usize,
    /// Tools in this answer.
    returned: usize,
    /// Why there are fewer than fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<String>,
}

/// One tool.
#[derive(Debug, Serialize, JsonSchema)]
struct FoundTool {
    /// Its name.
    name: &'static str,
    /// Its group.
    group: &'static str,
    /// What it does.
    summary: &'static str,
    /// Schema of its arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    input_schema: Option<Map<String, Value>>,
}

impl Tool for SearchTools {
    const NAME: &'static str = "search_tools";
    const DESCRIPTION: &'static str = "Search the tools of every group by words, such as `what writes a variable`, \
         `screenshot` or `disassemble`. Answers with names, first sentences and, when asked, argument schemas.";
    const EFFECT: Effect = Effect::READS;
    type Params = Params;
    type Output = Found;

    async fn run(context: &Context, params: Params) -> Result<Found, ToolError> {
        let words = words(&params.query);
        if words.is_empty() {
            return Err(ToolError::new(ErrorCode::InvalidArguments, "`query` names no word")
                .hint("list_tool_groups lists everything"));
        }
        let mut scored = ranked(&words);
        let total = scored.len();
        let mut truncated = None;
        if total > limits::MAX_SEARCH_RESULTS {
            scored.truncate(limits::MAX_SEARCH_RESULTS);
            truncated =
                Some(format!("one answer names {} tools; use more particular words", limits::MAX_SEARCH_RESULTS));
        }
        let mut found: Vec<FoundTool> = scored
            .into_iter()
            .map(|(_, group, tool)| FoundTool {
                name: tool.name,
                group,
                summary: tool.summary(),
                input_schema: params.include_schemas.then(tool.input_schema),
            })
            .collect();
        if let Some(cut) = tools::page::keep_first(context, &mut found) {
            truncated = Some(cut);
        }
        Ok(Found { returned: found.len(), tools: found, total, truncated })
    }
}

/// The tools that fit, best first.
fn ranked(words: &[String]) -> Vec<(usize, &'static str, &'static Entry)> {
    let mut scored: Vec<_> = tools::GROUPS
        .iter()
        .flat_map(|group| group.tools.iter().map(|tool| (group.name, tool)))
        .map(|(group, tool)| (score(words, group, tool), group, tool))
        .filter(|(score, ..)| *score > 0)
        .collect();
    scored.sort_by_key(|(score, ..)| std::cmp::Reverse(*score));
    scored
}

/// The words of a query in small letters, without those that say nothing.
fn words(query: &str) -> Vec<String> {
    const EMPTY: &[&str] = &[
        "a", "an", "and", "at", "do", "does", "for", "how", "in", "is", "it", "of", "on", "or", "that", "the", "this",
        "to", "tool", "what", "which", "with",
    ];
    let mut words: Vec<String> = query
        .to_lowercase()
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty() && !EMPTY.contains(word))
        .take(32)
        .map(str::to_owned)
        .collect();
    words.dedup();
    words
}

/// How well a tool fits: a word in its name counts most, then in its first sentence, then in the rest.
fn score(words: &[String], group: &str, tool: &Entry) -> usize {
    let (name, summary, all) = (tool.name, tool.summary().to_lowercase(), tool.description.to_lowercase());
    words
        .iter()
        .map(|word| {
            // `writes`, `writing` and `write` are the same to whoever searches.
            let stem = ["ing", "es", "s", "e"].iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word);
            let stem = if stem.len() < 3 { word } else { stem };
            4 * usize::from(name.contains(stem))
                + 3 * usize::from(summary.contains(stem))
                + usize::from(all.contains(stem))
                + usize::from(group == word)
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(query: &str) -> &'static str {
        ranked(&words(query)).first().map(|(_, _, tool)| tool.name).unwrap()
    }

    #[test]
    fn what_a_person_would_ask_finds_the_tool() {
        for (query, tool) in [
            ("which code writes this variable", "set_watchpoint"),
            ("picture of the window", "screenshot"),
            ("call stack", "backtrace"),
            ("single step", "step"),
            ("resume the program", "continue_execution"),
            ("hex dump", "read_memory"),
            ("patch bytes", "write_memory"),
            ("kill the game", "terminate"),
            ("loaded libraries DLL", "list_modules"),
        ] {
            assert_eq!(first(query), tool, "{query}");
        }
    }
}
