//! Where things are: the repository, its tracked files, and what cargo says about its packages.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::sh;

/// The repository's root, found from where this package was compiled.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_path_buf).unwrap_or_else(|| PathBuf::from("."))
}

/// The folder of everything built or installed; honours `CARGO_TARGET_DIR` as cargo does.
pub fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => root().join(folder),
        None => root().join("target"),
    }
}

/// How to have the tests on real ROMs.
pub const ROMS_HINT: &str = "put them into ../shared/roms, or name their folder in RETROSCOPE_ROMS";

/// The folder with real Nintendo DS ROMs, which are not ours to copy: `RETROSCOPE_ROMS`, or else `shared/roms` beside the
/// repository, where that exists.
///
/// # Errors
/// When `RETROSCOPE_ROMS` names no folder.
pub fn roms() -> Result<Option<PathBuf>, String> {
    match std::env::var_os("RETROSCOPE_ROMS").map(|folder| root().join(folder)) {
        Some(folder) if folder.is_dir() => Ok(Some(folder)),
        Some(folder) => Err(format!("RETROSCOPE_ROMS: {} is no folder; {ROMS_HINT}", folder.display())),
        None => Ok(Some(root().join("../shared/roms")).filter(|folder| folder.is_dir())),
    }
}

/// A text file of the repository: its path relative to the root, with `/`, and its text.
pub struct TextFile {
    pub path: String,
    pub text: String,
}

/// Every file that git tracks or would track (new files included, ignored ones not), relative to the root.
pub fn files() -> Result<Vec<String>, String> {
    let mut git = Command::new("git");
    git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(root());
    let listing = sh::output(&mut git)?;
    // A file deleted but not yet committed is still listed.
    let there = |path: &&str| !path.is_empty() && root().join(path).is_file();
    Ok(listing.split('\0').filter(there).map(str::to_owned).collect())
}

/// Those of them that are text.
pub fn text_files() -> Result<Vec<TextFile>, String> {
    let read = |path: String| std::fs::read_to_string(root().join(&path)).ok().map(|text| TextFile { path, text });
    Ok(files()?.into_iter().filter_map(read).collect())
}

/// `cargo metadata` of the workspace members, without resolving their dependencies.
pub fn metadata() -> Result<Value, String> {
    let mut cargo = sh::cargo();
    cargo.args(["metadata", "--format-version", "1", "--no-deps"]);
    let text = sh::output(&mut cargo)?;
    serde_json::from_str(&text).map_err(|error| format!("cargo metadata printed something else than JSON: {error}"))
}

/// An integration test (`tests/NAME.rs`) of a workspace member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestTarget {
    pub package: String,
    pub name: String,
    pub required_features: Vec<String>,
}

impl TestTarget {
    /// Whether this test starts real programs: it then requires the feature `live`.
    pub fn is_live(&self) -> bool {
        self.required_features.iter().any(|feature| feature == "live")
    }
}

/// Every integration test in `metadata`, in its order.
pub fn test_targets(metadata: &Value) -> Vec<TestTarget> {
    let mut tests = Vec::new();
    for package in array(metadata, "packages") {
        for target in array(package, "targets") {
            if strings(target, "kind").iter().any(|kind| kind == "test") {
                tests.push(TestTarget {
                    package: string(package, "name"),
                    name: string(target, "name"),
                    required_features: strings(target, "required-features"),
                });
            }
        }
    }
    tests
}

/// Whether the package named `package` declares the feature `feature`.
pub fn has_feature(metadata: &Value, package: &str, feature: &str) -> bool {
    array(metadata, "packages")
        .iter()
        .filter(|entry| string(entry, "name") == package)
        .any(|entry| entry.get("features").and_then(|features| features.get(feature)).is_some())
}

/// The array under `key`, or an empty one.
pub fn array<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The string under `key`, or an empty one.
pub fn string(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The strings of the array under `key`.
pub fn strings(value: &Value, key: &str) -> Vec<String> {
    array(value, key).iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn live_tests_are_told_from_the_others_by_their_required_feature() {
        let metadata = json!({"packages": [{"name": "agent", "features": {"live": []}, "targets": [
            {"name": "agent", "kind": ["lib"]},
            {"name": "wire_docs", "kind": ["test"]},
            {"name": "live_linux", "kind": ["test"], "required-features": ["live"]},
        ]}]});
        let tests = test_targets(&metadata);
        let seen: Vec<_> = tests.iter().map(|test| (test.name.as_str(), test.is_live())).collect();
        assert_eq!(seen, [("wire_docs", false), ("live_linux", true)]);
        assert!(has_feature(&metadata, "agent", "live"));
        assert!(!has_feature(&metadata, "agent", "conformance"));
        assert!(!has_feature(&metadata, "retroscope", "live"));
    }

    #[test]
    fn the_root_is_the_folder_with_the_workspace_manifest() {
        let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
        assert!(manifest.starts_with("[workspace]"));
    }
}
