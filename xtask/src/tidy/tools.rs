//! The rule that every tool of the server has a test.

use super::RustFile;

const TOOLS: &str = "crates/server/src/tools/";
const TESTS: &str = "crates/server/tests/";

/// Tools (`tools/GROUP/TOOL.rs`) with neither a test in their file nor their name in a test of the server.
pub fn untested(files: &[RustFile]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files {
        let Some(name) = tool_name(&file.path) else { continue };
        let quoted = format!("\"{name}\"");
        let named = files.iter().any(|test| test.path.starts_with(TESTS) && test.text.contains(&quoted));
        if !has_own_test(file) && !named {
            found.push(file.at(1, format!("the tool `{name}` has no test, here or below {TESTS}")));
        }
    }
    found
}

/// The name of the tool in the file at `path`, when it is the file of one tool.
fn tool_name(path: &str) -> Option<&str> {
    let (_group, file) = path.strip_prefix(TOOLS)?.split_once('/')?;
    let name = file.strip_suffix(".rs")?;
    (name != "mod" && !name.contains('/')).then_some(name)
}

fn has_own_test(file: &RustFile) -> bool {
    let code = &file.split.code;
    code.contains("#[cfg(test)]") && (code.contains("#[test]") || code.contains("::test]") || code.contains("::test("))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(tool: &str, test: &str) -> usize {
        let files = [
            RustFile::new("crates/server/src/tools/debug/mod.rs", ""),
            RustFile::new("crates/server/src/tools/debug/launch.rs", tool),
            RustFile::new("crates/server/tests/tools.rs", test),
        ];
        untested(&files).len()
    }

    #[test]
    fn a_tool_without_a_test_is_found() {
        assert_eq!(check("pub fn launch() {}", ""), 1);
        assert_eq!(check("// #[cfg(test)] #[test]", "// launch is not tested"), 1);
        assert_eq!(check("#[cfg(test)] mod tests {}", ""), 1);
    }

    #[test]
    fn a_test_in_the_file_or_by_name_is_enough() {
        assert_eq!(check("#[cfg(test)]\nmod tests { #[test] fn t() {} }", ""), 0);
        assert_eq!(check("#[cfg(test)]\nmod tests { #[tokio::test] async fn t() {} }", ""), 0);
        assert_eq!(check("", "call(\"launch\")"), 0);
    }
}
