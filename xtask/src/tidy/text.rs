//! Rules about every text file, whatever its language.

use super::source::has_word;
use crate::workspace::TextFile;

/// Paths and hosts that belong to some machine, not to the project. Written in pieces so that this file passes.
const FOREIGN: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/.lib", "rary/"),
    concat!("/tmp/bash", "_jobs"),
    concat!("static.cra", "tes.io"),
    concat!("index.cra", "tes.io"),
    concat!("registry.np", "mjs.org"),
    concat!("pypi", ".org"),
    concat!("files.python", "hosted.org"),
    concat!("deb.deb", "ian.org"),
];

/// Machine paths and hosts of registries: nobody else has the first, and the second are the reader's to choose.
pub fn foreign_paths(files: &[TextFile]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files {
        for (index, line) in file.text.lines().enumerate() {
            for needle in FOREIGN {
                if line.match_indices(needle).any(|(at, _)| starts_a_path(line, at)) {
                    found.push(format!(
                        "{}:{}: `{needle}` is of one machine, not of the project",
                        file.path,
                        index + 1
                    ));
                }
            }
        }
    }
    found
}

/// Whether the needle at `at` begins a path; further inside it is a folder of ours that only has the same name.
fn starts_a_path(line: &str, at: usize) -> bool {
    let before = line.get(..at).and_then(|part| part.chars().next_back());
    !before.is_some_and(|c| c.is_alphanumeric() || "_-.}".contains(c))
}

/// Notes that mean "not finished" in scripts and C sources; Rust has its own rule.
pub fn unfinished(files: &[TextFile]) -> Vec<String> {
    const ENDINGS: &[&str] = &[".c", ".h", ".s", ".S", ".ld", ".sh", ".py", ".js", ".toml", ".yml"];
    let mut found = Vec::new();
    for file in files.iter().filter(|file| ENDINGS.iter().any(|ending| file.path.ends_with(ending))) {
        for (index, line) in file.text.lines().enumerate() {
            if let Some(note) = ["TODO", "FIXME", "XXX", "HACK"].iter().find(|note| has_word(line, note)) {
                found.push(format!("{}:{}: `{note}`: do it, or say in an issue what is missing", file.path, index + 1));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> [TextFile; 1] {
        [TextFile { path: path.to_owned(), text: text.to_owned() }]
    }

    #[test]
    fn paths_and_hosts_of_a_machine_are_found() {
        for bad in [concat!("see /wo", "rk/shared"), concat!("`/wo", "rk/x`"), concat!("https://pypi", ".org/simple")] {
            assert_eq!(foreign_paths(&file("README.md", bad)).len(), 1, "{bad}");
        }
        for good in
            [concat!("docs/wo", "rk/x"), "it is on crates.io", "the library/ folder", concat!("$HOME/x/wo", "rk/")]
        {
            assert!(foreign_paths(&file("README.md", good)).is_empty(), "{good}");
        }
    }

    #[test]
    fn unfinished_work_is_found_in_c_and_scripts_but_prose_may_name_it() {
        assert_eq!(unfinished(&file("fixtures/a.c", "/* FIXME */")).len(), 1);
        assert_eq!(
            unfinished(&file("build.sh", "true\n# TODO\n")),
            ["build.sh:2: `TODO`: do it, or say in an issue what is missing"]
        );
        assert!(unfinished(&file("CONTRIBUTING.md", "no TODO")).is_empty());
    }
}
