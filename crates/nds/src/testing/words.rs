//! The error words that the rebuild's sources have in them, so that tests can say that they reach every one.

use std::collections::BTreeSet;
use std::path::Path;

/// What a word stands behind where an error is made.
const MADE: [&str; 6] = ["refuse(", "failed(", "guard(", "Refusal::new(", "category: ", "EncodeError::"];

/// The words of errors in the sources of `rebuild`, those of their tests left out.
pub fn rebuild_words() -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/rebuild");
    let entries = |folder| std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let paths = entries(folder.clone()).chain(entries(folder.join("plan")));
    let sources = paths.filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    let sources = sources.filter(|path| path.file_stem().is_some_and(|name| name != "words"));
    sources.filter_map(|path| std::fs::read_to_string(path).ok()).flat_map(|source| words(&source)).collect()
}

fn words(source: &str) -> Vec<String> {
    let code = source.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let mut found = Vec::new();
    for made in MADE {
        for rest in code.split(made).skip(1) {
            // The match from encoder's errors to words is the one place where something stands between.
            let rest = if made == "EncodeError::" { rest.split_once("=> ").map_or("", |(_, rest)| rest) } else { rest };
            let literal = rest.trim_start().strip_prefix('"').and_then(|rest| rest.split_once('"'));
            let word = literal.map(|(word, _)| word).filter(|word| {
                word.contains('-') && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
            });
            found.extend(word.map(str::to_owned));
        }
    }
    found
}
