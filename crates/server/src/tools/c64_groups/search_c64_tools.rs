//! `search_c64_tools`: which C64 tool does what, by words.

use super::ALIASES;
use super::prelude::*;
use crate::errors::ErrorCode;
use crate::tools::Entry;
use crate::tools::meta::search_tools::{elsewhere, results};
use base::limits;
use serde::Serialize;
use std::cmp::Reverse;

/// The tool.
#[derive(Debug)]
pub struct SearchC64Tools;

/// What is looked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Words with white space between them.
    query: String,
    /// Most tools, 1 to 50; default 15.
    limit: Option<i64>,
}

/// A tool that fits.
#[derive(Debug, Serialize)]
struct Match {
    name: &'static str,
    group: &'static str,
    status: &'static str,
    description: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

impl Tool for SearchC64Tools {
    const NAME: &'static str = "search_c64_tools";
    const DESCRIPTION: &'static str = "Search the C64 tools, loaded or not, by words.";
    const EFFECT: Effect = Effect::READS;
    type Params = Params;
    type Output = Value;

    async fn run(context: &Context, params: Params) -> Result<Value, ToolError> {
        Ok(search(context, &params).unwrap_or_else(refused))
    }
}

fn search(context: &Context, params: &Params) -> Result<Value, ToolError> {
    let terms: Vec<String> =
        params.query.split_whitespace().map(str::to_lowercase).take(limits::MAX_SEARCH_TERMS).collect();
    if terms.is_empty() {
        return Err(ToolError::new(ErrorCode::InvalidQuery, "`query` has no word")
            .hint("list_c64_tool_groups lists everything"));
    }
    let limit = results(params.limit)?;
    let list = context.tool_list();
    let standings = list.standings();
    let management = ALIASES.iter().map(|tool| ("management", tool));
    let groups = C64.groups();
    let catalog = groups.iter().flat_map(|(name, group)| group.tools.iter().map(|tool| (*name, tool)));
    let mut found: Vec<_> = catalog
        .chain(management)
        .map(|(group, tool)| (score(&terms, group, tool), group, tool))
        .filter(|(score, ..)| *score > 0)
        .collect();
    found.sort_by_key(|(score, _, tool)| (Reverse(*score), tool.name));
    let count = found.len();
    found.truncate(limit);
    let matches: Vec<Match> = found
        .into_iter()
        .map(|(_, group, tool)| {
            let callable = group == "management" || standings.shows(tool.name);
            let fix = match list.changes() {
                true => format!("load_c64_tool_group(\"{group}\")"),
                false => elsewhere(tool),
            };
            Match {
                name: tool.name,
                group,
                status: if callable { "callable" } else { "not_loaded" },
                description: tool.summary(),
                fix: (!callable).then_some(fix),
            }
        })
        .collect();
    Ok(json!({"ok": true, "query": params.query, "match_count": count, "returned": matches.len(), "matches": matches}))
}

/// Three points for each word in the name, else one for each in the group or the description.
fn score(terms: &[String], group: &str, tool: &Entry) -> usize {
    let all = format!("{} {group} {}", tool.name, tool.summary()).to_lowercase();
    terms
        .iter()
        .map(|term| match tool.name.contains(term.as_str()) {
            true => 3,
            false => usize::from(all.contains(term.as_str())),
        })
        .sum()
}
