//! `search_tools`: which tool does what, by words.

use crate::context::Context;
use crate::errors::{ErrorCode, ToolError};
use crate::tool_list::ToolList;
use crate::tools::{self, Effect, Entry, Profile, Tool};
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
    /// Most tools, 1 to 50; default 15.
    limit: Option<i64>,
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
    /// Where it can be called, when it is not in this client's list.
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
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
            return Err(ToolError::new(ErrorCode::InvalidQuery, "`query` names no word")
                .hint("list_tool_groups lists everything"));
        }
        let limit = results(params.limit)?;
        let list = context.tool_list();
        let listed = list.tools();
        let mut scored = ranked(&words, &listed);
        let total = scored.len();
        let mut truncated = None;
        if total > limit {
            scored.truncate(limit);
            truncated = Some(format!("`limit` is {limit} tools"));
        }
        let mut found: Vec<FoundTool> = scored
            .into_iter()
            .map(|(group, tool)| FoundTool {
                name: tool.name,
                group,
                summary: tool.summary(),
                fix: (!listed.iter().any(|shown| shown.name == tool.name)).then(|| fix(&list, group, tool)),
                input_schema: params.include_schemas.then(tool.input_schema),
            })
            .collect();
        if let Some(cut) = tools::page::keep_first(context, &mut found) {
            truncated = Some(cut);
        }
        Ok(Found { returned: found.len(), tools: found, total, truncated })
    }
}

/// How a client comes to call a tool that it is not shown.
fn fix(list: &ToolList, group: &str, tool: &Entry) -> String {
    if list.profile().calls_any() {
        return format!("call_tool(\"{}\", {{…}})", tool.name);
    }
    if list.changes() {
        return format!("load_tool_group(\"{group}\")");
    }
    elsewhere(tool)
}

/// Which profiles list the tool.
pub fn elsewhere(tool: &Entry) -> String {
    let has = |profile: &Profile| profile.tools().any(|other| other.name == tool.name);
    let profiles: Vec<_> = Profile::all().filter(has).map(Profile::name).collect();
    format!("use the endpoint /mcp/<profile> or --tool-profile: {}", profiles.join(", "))
}

/// How many tools an answer names.
///
/// # Errors
/// `invalid_limit`.
pub fn results(given: Option<i64>) -> Result<usize, ToolError> {
    let most = limits::MAX_SEARCH_RESULTS;
    match given {
        None => Ok(limits::DEFAULT_SEARCH_RESULTS),
        Some(given) => usize::try_from(given).ok().filter(|limit| (1..=most).contains(limit)).ok_or_else(|| {
            ToolError::new(ErrorCode::InvalidLimit, format!("`limit` is {given}; allowed are 1 to {most}"))
                .detail("limit", given)
        }),
    }
}

/// The tools that fit, best first; of the tools about tools those that are listed.
fn ranked(words: &[String], listed: &[&'static Entry]) -> Vec<(&'static str, &'static Entry)> {
    let groups = tools::GROUPS.iter().flat_map(|group| group.tools.iter().map(|tool| (group.name, tool)));
    let about = tools::all().filter(|(group, tool)| {
        *group == tools::meta::GROUP.name && listed.iter().any(|shown| shown.name == tool.name)
    });
    let mut scored: Vec<_> = groups
        .chain(about)
        .map(|(group, tool)| (score(words, group, tool), group, tool))
        .filter(|(score, ..)| score.0 > 0)
        .collect();
    scored.sort_by_key(|(score, _, tool)| (std::cmp::Reverse(*score), tool.name));
    scored.into_iter().map(|(_, group, tool)| (group, tool)).collect()
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
        .take(limits::MAX_SEARCH_TERMS)
        .map(str::to_owned)
        .collect();
    words.dedup();
    words
}

/// How well a tool fits. First the points: three for each word in its name, else one for each in its group or description.
/// Among equals, how many words are in its name letter for letter, and in its first sentence; a name that is the word itself
/// counts more.
fn score(words: &[String], group: &str, tool: &Entry) -> (usize, usize) {
    let all = format!("{group} {}", tool.description).to_lowercase();
    let summary = tool.summary().to_lowercase();
    let (mut points, mut nearness) = (0, 0);
    for word in words {
        // `writes`, `writing` and `write` are the same to whoever searches.
        let stem = ["ing", "es", "s", "e"].iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word);
        let stem = if stem.len() < 3 { word } else { stem };
        points += if tool.name.contains(stem) { 3 } else { usize::from(all.contains(stem)) };
        nearness += usize::from(tool.name.contains(word.as_str())) + usize::from(summary.contains(stem));
        nearness += 2 * usize::from(tool.name == word);
    }
    (points, nearness)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(query: &str) -> &'static str {
        ranked(&words(query), &[]).first().map(|(_, tool)| tool.name).unwrap()
    }

    #[test]
    fn what_a_person_would_ask_finds_the_tool() {
        for (query, tool) in [
            ("which code writes this variable", "set_watchpoint"),
            ("picture of the window", "screenshot"),
            ("call stack", "backtrace"),
            ("single step", "step"),
            ("continue the program", "continue_execution"),
            ("resume the machine", "vice_resume"),
            ("hex dump", "read_memory"),
            ("patch bytes", "write_memory"),
            ("kill the game", "terminate"),
            ("loaded libraries DLL", "list_modules"),
        ] {
            assert_eq!(first(query), tool, "{query}");
        }
    }
}
