//! Rules about one Rust file at a time.

use super::RustFile;
use super::strip::{is_word, words};

/// The only places with `unsafe` code: one system's calls each, small enough to be read whole.
const UNSAFE_CORNERS: &[&str] = &["crates/agent/src/platform/win32/", "crates/agent/src/platform/linux/sys.rs"];

/// The only file with limits.
const LIMITS_FILE: &str = "crates/base/src/limits.rs";

/// From this length on a file is asked whether it is two things.
const ASK_LINES: usize = 500;

/// From this length on it is two things.
const REFUSE_LINES: usize = 900;

/// A file whose first line is not a `//!` sentence.
pub fn first_line(file: &RustFile) -> Vec<String> {
    let first = file.text.lines().next().unwrap_or_default();
    match first.strip_prefix("//! ") {
        Some(sentence) if sentence.len() > 10 => Vec::new(),
        _ => vec![file.at(1, "must begin with a `//!` sentence that says why the file exists")],
    }
}

/// `unsafe` outside its corners.
pub fn unsafe_corners(file: &RustFile) -> Vec<String> {
    if UNSAFE_CORNERS.iter().any(|corner| file.path.starts_with(corner)) {
        return Vec::new();
    }
    let lines = words(&file.split.code).filter(|(_, word)| *word == "unsafe").map(|(line, _)| line);
    lines.map(|line| file.at(line, format!("`unsafe` is only for {}", UNSAFE_CORNERS.join(" and ")))).collect()
}

/// Constants with the name of a limit outside the file of limits.
pub fn limits(file: &RustFile) -> Vec<String> {
    if file.path == LIMITS_FILE {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut declares = false;
    for (line, word) in words(&file.split.code) {
        let named_so = word.starts_with("MAX_") || word.starts_with("DEFAULT_") || word.ends_with("_LIMIT");
        if declares && named_so {
            found.push(
                file.at(line, format!("`{word}` is a limit: it belongs into {LIMITS_FILE}, with unit and reason")),
            );
        }
        declares = matches!(word, "const" | "static") || (declares && word == "mut");
    }
    found
}

/// Macros and notes that mean "not finished", and tests that are switched off.
pub fn unfinished(file: &RustFile) -> Vec<String> {
    let mut found = Vec::new();
    for (index, line) in file.split.code.lines().enumerate() {
        for name in ["todo!", "unimplemented!", "dbg!"] {
            if has_word(line, name) {
                found.push(file.at(index + 1, format!("`{name}` is not finished work")));
            }
        }
        if line.contains("#[ignore") {
            found.push(
                file.at(index + 1, "a test that is switched off proves nothing; what needs other programs is live"),
            );
        }
    }
    for comment in &file.split.comments {
        for note in ["TODO", "FIXME", "XXX", "HACK"] {
            if has_word(&comment.text, note) {
                found.push(file.at(comment.line, format!("`{note}`: do it, or say in an issue what is missing")));
            }
        }
    }
    found
}

/// Plain comments that read like statements. Documentation may hold examples.
pub fn commented_out(file: &RustFile) -> Vec<String> {
    let plain = file.split.comments.iter().filter(|comment| !comment.doc);
    let code = plain.filter(|comment| reads_like_code(&comment.text));
    code.map(|comment| file.at(comment.line, "commented-out code: delete it, the history keeps it")).collect()
}

fn reads_like_code(text: &str) -> bool {
    const STARTS: &[&str] =
        &["let ", "use ", "fn ", "pub ", "mod ", "return ", "impl ", "struct ", "if ", "for ", "match "];
    if text.starts_with("#[") && text.ends_with(']') {
        return true;
    }
    let starts = STARTS.iter().any(|start| text.starts_with(start));
    // `frame.draw(x);` but not "it is stopped (by us);"
    let path = text.split('(').next().unwrap_or_default();
    let calls = text.ends_with(");") && !path.is_empty() && path.chars().all(|c| is_word(c) || ".:!?".contains(c));
    (starts && (text.ends_with(';') || text.ends_with('{'))) || calls
}

/// A file that is too long.
pub fn too_long(file: &RustFile) -> Vec<String> {
    let lines = file.text.lines().count();
    if lines > REFUSE_LINES {
        return vec![file.at(lines, format!("{lines} lines: over {REFUSE_LINES} it is two things, split it"))];
    }
    Vec::new()
}

/// The question for a file that is long.
pub fn long(file: &RustFile) -> Option<String> {
    let lines = file.text.lines().count();
    let asked = (ASK_LINES + 1..=REFUSE_LINES).contains(&lines);
    asked.then(|| format!("{}: {lines} lines, is it two things?", file.path))
}

/// Whether `text` has `word` with no letter, digit or underscore on either side.
pub(super) fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let before = text.get(..at).and_then(|part| part.chars().next_back());
        let after = text.get(at + word.len()..).and_then(|part| part.chars().next());
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> RustFile {
        RustFile::new(path, text)
    }

    #[test]
    fn a_file_that_does_not_say_why_it_exists_is_found() {
        assert_eq!(first_line(&file("a.rs", "use std::io;\n")).len(), 1);
        assert_eq!(first_line(&file("a.rs", "\n//! Reads the headers of files.\n")).len(), 1);
        assert_eq!(first_line(&file("a.rs", "//! x\n")).len(), 1);
        assert!(first_line(&file("a.rs", "//! Reads the headers of files.\n")).is_empty());
    }

    #[test]
    fn unsafe_code_outside_its_corners_is_found() {
        let bad = "fn f() {\n    unsafe { g() }\n}\n";
        assert_eq!(unsafe_corners(&file("crates/code/src/x86.rs", bad)).len(), 1);
        assert!(unsafe_corners(&file("crates/code/src/x86.rs", bad))[0].starts_with("crates/code/src/x86.rs:2:"));
        assert!(unsafe_corners(&file("crates/agent/src/platform/linux/sys.rs", bad)).is_empty());
        assert!(unsafe_corners(&file("crates/agent/src/platform/win32/memory.rs", bad)).is_empty());
        let talk = "// unsafe is elsewhere\n#![forbid(unsafe_code)]\nlet s = \"unsafe\";\n";
        assert!(unsafe_corners(&file("crates/code/src/x86.rs", talk)).is_empty());
    }

    #[test]
    fn a_limit_outside_its_file_is_found() {
        for bad in
            ["const MAX_READ: u64 = 1;", "pub(crate) const DEFAULT_PORT: u16 = 1;", "static mut READ_LIMIT: u8 = 1;"]
        {
            assert_eq!(limits(&file("crates/wire/src/lib.rs", bad)).len(), 1, "{bad}");
            assert!(limits(&file(LIMITS_FILE, bad)).is_empty());
        }
        for good in ["use base::limits::MAX_READ;", "const TABLE: [u8; MAX_READ] = f();", "let x = u64::MAX;"] {
            assert!(limits(&file("crates/wire/src/lib.rs", good)).is_empty(), "{good}");
        }
    }

    #[test]
    fn unfinished_work_is_found() {
        for bad in [
            "todo!()",
            "std::unimplemented!(\"x\")",
            "dbg!(x)",
            "// TODO later",
            "/// FIXME: x",
            "#[ignore = \"slow\"]",
        ] {
            assert_eq!(unfinished(&file("a.rs", bad)).len(), 1, "{bad}");
        }
        for good in ["let todo = 1;", "f(\"todo!\")", "// a hack, in small letters", "// the TODOS key", "my_dbg!(x)"] {
            assert!(unfinished(&file("a.rs", good)).is_empty(), "{good}");
        }
    }

    #[test]
    fn commented_out_code_is_found() {
        for bad in ["// let x = 1;", "// frame.draw(x);", "// if x > 1 {", "// #[test]", "// println!(\"{x}\");"] {
            assert_eq!(commented_out(&file("a.rs", bad)).len(), 1, "{bad}");
        }
        for good in [
            "// The thread is stopped (by us);",
            "// 3 frames * 60 = 180;",
            "/// let x = 1;",
            "// for each of them, see below",
            "// use the other one",
        ] {
            assert!(commented_out(&file("a.rs", good)).is_empty(), "{good}");
        }
    }

    #[test]
    fn a_long_file_is_asked_and_a_very_long_one_refused() {
        let of = |lines: usize| file("a.rs", &"x\n".repeat(lines));
        assert_eq!(long(&of(500)), None);
        assert!(long(&of(501)).is_some() && too_long(&of(900)).is_empty());
        assert_eq!(too_long(&of(901)).len(), 1);
    }
}
