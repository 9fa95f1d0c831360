//! The rules of the design that a compiler cannot hold, checked on the tree. Each rule is a function with a test
//! that shows it failing on a bad example.

mod crates;
mod source;
mod strip;
mod text;
mod tools;

use crate::{Outcome, no_arguments, workspace};

/// What the rules look at.
struct Tree {
    rust: Vec<RustFile>,
    text: Vec<workspace::TextFile>,
    metadata: serde_json::Value,
}

/// A Rust file: its path from the root, its text, and the text split into code and comments.
struct RustFile {
    path: String,
    text: String,
    split: strip::Split,
}

impl RustFile {
    fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned(), split: strip::split(text) }
    }

    /// A finding at a line of this file.
    fn at(&self, line: usize, what: impl std::fmt::Display) -> String {
        format!("{}:{line}: {what}", self.path)
    }
}

/// A rule: its name and what it finds wrong.
type Rule = (&'static str, fn(&Tree) -> Vec<String>);

const RULES: &[Rule] = &[
    ("crate arrows", |tree| crates::arrows(&tree.metadata)),
    ("external crates", |tree| crates::external(&tree.metadata)),
    ("live tests need the feature live", |tree| crates::live_tests(&tree.metadata)),
    ("packages in Cargo.lock", |tree| crates::package_ceiling(&tree.text)),
    ("first line says why", |tree| each(&tree.rust, source::first_line)),
    ("unsafe in its corners", |tree| each(&tree.rust, source::unsafe_corners)),
    ("limits in limits.rs", |tree| each(&tree.rust, source::limits)),
    ("nothing unfinished", |tree| each(&tree.rust, source::unfinished)),
    ("no commented-out code", |tree| each(&tree.rust, source::commented_out)),
    ("file length", |tree| each(&tree.rust, source::too_long)),
    ("a test per tool", |tree| tools::untested(&tree.rust)),
    ("no machine paths or registry hosts", |tree| text::foreign_paths(&tree.text)),
    ("nothing unfinished in other sources", |tree| text::unfinished(&tree.text)),
];

fn each(files: &[RustFile], rule: fn(&RustFile) -> Vec<String>) -> Vec<String> {
    files.iter().flat_map(rule).collect()
}

/// Runs every rule and fails with all that they found.
pub fn run(arguments: &[String]) -> Outcome {
    no_arguments(arguments)?;
    let text = workspace::text_files()?;
    let rust = text.iter().filter(|file| file.path.ends_with(".rs"));
    let rust = rust.map(|file| RustFile::new(&file.path, &file.text)).collect();
    let tree = Tree { rust, text, metadata: workspace::metadata()? };

    for file in &tree.rust {
        if let Some(question) = source::long(file) {
            println!("note: {question}");
        }
    }
    let mut found = 0_usize;
    for (name, rule) in RULES {
        for finding in rule(&tree) {
            eprintln!("{finding} [{name}]");
            found += 1;
        }
    }
    if found > 0 {
        return Err(format!("{found} findings; CONTRIBUTING.md explains the rules"));
    }
    println!("tidy: {} rules, {} files, nothing found", RULES.len(), tree.text.len());
    Ok(())
}
