//! Rules about packages: which crate may know which, which outside crates belong where, and how many there may be.

use serde_json::Value;

use crate::workspace::{TextFile, array, has_feature, string, strings, test_targets};

/// The only arrows allowed between our packages. A crate that is not here yet needs a row and a line in the design.
const ARROWS: &[(&str, &[&str])] = &[
    ("base", &[]),
    ("wire", &["base"]),
    ("code", &["base"]),
    ("c64", &["base"]),
    ("nds", &["base", "code"]),
    ("debug", &["base"]),
    ("agent", &["base", "wire", "code"]),
    ("retroscope", &["base", "wire", "code", "c64", "nds", "debug", "agent"]),
    ("xtask", &[]),
];

/// Outside crates that are kept to some of ours: (crate, who may have it, who may have it as an optional one).
const KEPT: &[(&str, &[&str], &[&str])] = &[
    ("rmcp", &["retroscope"], &[]),
    ("axum", &["retroscope"], &[]),
    ("tokio", &["retroscope"], &[]),
    ("tokio-util", &["retroscope"], &[]),
    ("tower", &["retroscope"], &[]),
    ("hyper", &["retroscope"], &[]),
    ("schemars", &["retroscope"], &["wire"]),
    ("serde", &["wire", "agent", "nds", "retroscope"], &[]),
    ("serde_json", &["wire", "agent", "nds", "retroscope", "xtask"], &[]),
];

/// Most packages that `Cargo.lock` may hold: what rmcp, axum, tokio and schemars bring, the agent's few, what opens files by
/// descriptor (cap-std, most of whose packages are Windows' import libraries in three versions), the ARM decoder, and some air
/// for updates. A new dependency that breaks this is either worth raising the number in the same commit, or is not.
const PACKAGE_CEILING: usize = 230;

/// Dependencies between our packages that the table does not allow, and packages that it does not know.
pub fn arrows(metadata: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for package in array(metadata, "packages") {
        let name = string(package, "name");
        let Some((_, allowed)) = ARROWS.iter().find(|(from, _)| *from == name) else {
            found.push(format!("package `{name}` is not in the table of arrows in xtask/src/tidy/crates.rs"));
            continue;
        };
        for to in array(package, "dependencies").iter().filter(|to| to.get("path").is_some_and(Value::is_string)) {
            let in_tests = string(to, "kind") == "dev";
            let to = string(to, "name");
            // A package that depends on itself in tests switches one of its own features on there.
            let itself = to == name && in_tests;
            if !itself && !allowed.contains(&to.as_str()) {
                found.push(format!("`{name}` must not depend on `{to}`; allowed: {}", list(allowed)));
            }
        }
    }
    found
}

/// Outside crates in packages where they do not belong.
pub fn external(metadata: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for package in array(metadata, "packages") {
        let name = string(package, "name");
        for dependency in array(package, "dependencies") {
            let crate_name = string(dependency, "name");
            let Some((_, owners, optional)) = KEPT.iter().find(|(kept, _, _)| *kept == crate_name) else { continue };
            let is_optional = dependency.get("optional").and_then(Value::as_bool) == Some(true);
            if owners.contains(&name.as_str()) || (is_optional && optional.contains(&name.as_str())) {
                continue;
            }
            let but = if optional.is_empty() { String::new() } else { format!(", optional in {}", list(optional)) };
            found.push(format!("`{name}` must not depend on `{crate_name}`; it belongs to {}{but}", list(owners)));
        }
    }
    found
}

/// The tests that start real programs by their name: `live_…`, and the acceptance test.
fn starts_programs(name: &str) -> bool {
    name.starts_with("live_") || name == "acceptance"
}

/// Tests that start real programs and that a plain `cargo test` would build, and requirements of the feature that do not exist.
pub fn live_tests(metadata: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for test in test_targets(metadata) {
        if starts_programs(&test.name) && !test.is_live() {
            found.push(format!(
                "test `{}` of `{}` needs a [[test]] entry with required-features = [\"live\"]",
                test.name, test.package
            ));
        }
        for feature in &test.required_features {
            if !has_feature(metadata, &test.package, feature) {
                found.push(format!(
                    "test `{}` requires the feature `{feature}`, which `{}` does not declare: it would never run",
                    test.name, test.package
                ));
            }
        }
    }
    for package in array(metadata, "packages") {
        let defaults = package.get("features").map(|features| strings(features, "default")).unwrap_or_default();
        if defaults.iter().any(|feature| feature == "live") {
            found.push(format!("`{}` has `live` as a default feature", string(package, "name")));
        }
    }
    found
}

/// Whether `Cargo.lock` holds more packages than the ceiling.
pub fn package_ceiling(files: &[TextFile]) -> Vec<String> {
    let Some(lock) = files.iter().find(|file| file.path == "Cargo.lock") else {
        return vec!["Cargo.lock is missing: it must be committed".to_owned()];
    };
    let count = lock.text.lines().filter(|line| *line == "[[package]]").count();
    if count > PACKAGE_CEILING {
        return vec![format!(
            "Cargo.lock: {count} packages, the ceiling is {PACKAGE_CEILING} (xtask/src/tidy/crates.rs)"
        )];
    }
    Vec::new()
}

fn list(names: &[&str]) -> String {
    if names.is_empty() { "none of ours".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn package(name: &str, dependencies: Value) -> Value {
        json!({"packages": [{"name": name, "dependencies": dependencies}]})
    }

    #[test]
    fn an_arrow_that_is_not_in_the_table_is_found() {
        let bad = package("wire", json!([{"name": "code", "path": "/x/code"}]));
        assert_eq!(arrows(&bad), ["`wire` must not depend on `code`; allowed: base"]);
        let dev = package("base", json!([{"name": "wire", "path": "/x/wire", "kind": "dev"}]));
        assert_eq!(arrows(&dev).len(), 1);
        let own = |kind: Value| package("wire", json!([{"name": "wire", "path": "/x/wire", "kind": kind}]));
        assert_eq!((arrows(&own(json!("dev"))).len(), arrows(&own(json!("build"))).len()), (0, 1));
        let good = package("agent", json!([{"name": "wire", "path": "/x/wire"}, {"name": "png", "path": null}]));
        assert_eq!(arrows(&good), Vec::<String>::new());
    }

    #[test]
    fn a_package_that_is_not_in_the_table_is_found() {
        assert!(arrows(&package("helpers", json!([])))[0].contains("`helpers` is not in the table"));
    }

    #[test]
    fn an_outside_crate_in_the_wrong_place_is_found() {
        assert_eq!(external(&package("agent", json!([{"name": "tokio"}]))).len(), 1);
        assert_eq!(external(&package("code", json!([{"name": "serde"}, {"name": "serde_json"}]))).len(), 2);
        assert_eq!(external(&package("retroscope", json!([{"name": "tokio"}]))), Vec::<String>::new());
    }

    #[test]
    fn schemars_is_allowed_in_wire_only_as_an_optional_crate() {
        assert_eq!(external(&package("wire", json!([{"name": "schemars", "optional": false}]))).len(), 1);
        assert_eq!(external(&package("agent", json!([{"name": "schemars", "optional": true}]))).len(), 1);
        assert!(external(&package("wire", json!([{"name": "schemars", "optional": true}]))).is_empty());
    }

    #[test]
    fn a_live_test_without_its_feature_is_found() {
        let target = |required: &[&str]| {
            json!({"packages": [{"name": "agent", "features": {"live": []}, "targets": [
                {"name": "live_linux", "kind": ["test"], "required-features": required}]}]})
        };
        assert_eq!(live_tests(&target(&[])).len(), 1);
        let acceptance =
            json!({"packages": [{"name": "retroscope", "targets": [{"name": "acceptance", "kind": ["test"]}]}]});
        assert_eq!(live_tests(&acceptance).len(), 1);
        assert!(live_tests(&target(&["live", "lvie"]))[0].contains("would never run"));
        assert!(live_tests(&target(&["live"])).is_empty());
        let on = json!({"packages": [{"name": "agent", "features": {"live": [], "default": ["live"]}}]});
        assert_eq!(live_tests(&on).len(), 1);
    }

    #[test]
    fn too_many_packages_are_found() {
        let lock = |count: usize| {
            [TextFile { path: "Cargo.lock".to_owned(), text: "[[package]]\nname = \"x\"\n".repeat(count) }]
        };
        assert!(package_ceiling(&lock(PACKAGE_CEILING)).is_empty());
        assert_eq!(package_ceiling(&lock(PACKAGE_CEILING + 1)).len(), 1);
        assert_eq!(package_ceiling(&[]).len(), 1);
    }
}
