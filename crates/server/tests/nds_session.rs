//! The session in `docs/nds.md` is a real one: its commands are run again, and each answer has what the page shows of it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

mod support;

use serde_json::Value;
use support::nds::{ROM, answer, context, has, tool_call};

const PAGE: &str = include_str!("../../../docs/nds.md");

/// The tool and the arguments of each command that an answer follows, with that answer.
fn session() -> Vec<(&'static str, Value, Value)> {
    let mut found = Vec::new();
    let mut blocks = PAGE.split("```").skip(1).step_by(2).peekable();
    while let Some(block) = blocks.next() {
        let Some(command) = block.strip_prefix("sh\nretroscope call ") else { continue };
        let Some(shown) = blocks.peek().and_then(|next| next.strip_prefix("json\n")) else { continue };
        let (tool, arguments) = command.trim().split_once(' ').unwrap();
        let arguments = arguments.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')).unwrap();
        found.push((tool, serde_json::from_str(arguments).unwrap(), serde_json::from_str(shown).unwrap()));
    }
    found
}

#[tokio::test]
async fn the_page_shows_what_the_tools_answer() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("ndslab-test.nds"), ROM).unwrap();
    let context = context(folder.path(), None);
    let session = session();
    assert!(session.len() >= 10, "{} commands with answers", session.len());
    // Each tool of the profile's group on ROMs is shown at work.
    let nds = retroscope::tools::GROUPS.iter().find(|group| group.name == "nds").unwrap();
    for tool in nds.tools {
        assert!(session.iter().any(|(shown, ..)| *shown == tool.name), "{} is not shown", tool.name);
    }
    for (tool, arguments, shown) in session {
        let told = answer(tool_call(&context, tool, arguments.clone()).await.unwrap());
        assert!(has(&told, &shown), "{tool} {arguments}: the page shows\n{shown:#}\nand the answer is\n{told:#}");
    }
}

#[test]
fn what_is_not_there_is_noticed() {
    let whole = serde_json::json!({"a": [{"b": 1, "c": 2}, 3], "d": null});
    for (part, wanted) in [("{\"a\": [{\"b\": 1}]}", true), ("{\"a\": [{\"b\": 2}]}", false), ("{\"e\": 1}", false)] {
        assert_eq!(has(&whole, &serde_json::from_str(part).unwrap()), wanted, "{part}");
    }
    assert!(!has(&whole, &serde_json::json!({"a": [{}, 3, 4]})));
}
