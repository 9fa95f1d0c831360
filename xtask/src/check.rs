//! The checks of the tree that cargo makes: format, lints, documentation.

use crate::{Outcome, fuzz, no_arguments, sh, windows, workspace};

/// `cargo fmt` for every package of the workspace and for the fuzz targets.
pub fn fmt(arguments: &[String]) -> Outcome {
    let check = match arguments {
        [] => false,
        [flag] if flag == "--check" => true,
        _ => return Err(format!("unexpected arguments `{}`; only --check", arguments.join(" "))),
    };
    for manifest in ["Cargo.toml", "fuzz/Cargo.toml"] {
        let mut cargo = sh::cargo();
        cargo.args(["fmt", "--manifest-path", manifest]);
        if manifest == "Cargo.toml" {
            cargo.arg("--all");
        }
        if check {
            cargo.arg("--check");
        }
        sh::run(&mut cargo)?;
    }
    Ok(())
}

/// Clippy on every target, the live tests and the fuzz targets included, once more with the server's conformance
/// fixtures, and on what only Windows compiles.
pub fn clippy(arguments: &[String]) -> Outcome {
    no_arguments(arguments)?;
    let mut features = vec![LIVE.to_owned()];
    if workspace::has_feature(&workspace::metadata()?, "retroscope", "conformance") {
        features.push(format!("{LIVE},retroscope/conformance"));
    }
    for features in features {
        let mut cargo = sh::cargo();
        cargo.args(["clippy", "--workspace", "--all-targets", "--features", &features, "--", "-D", "warnings"]);
        sh::run(&mut cargo)?;
    }
    windows::clippy()?;
    fuzz::clippy()
}

/// The features that build the live tests, those under Wine included, in the packages that have some.
pub const LIVE: &str = "agent/live,agent/wine,code/live,debug/live,nds/live,retroscope/live,retroscope/wine";

/// The test that writes or compares the generated pages.
const GENERATED: &str = "generated_docs";

/// Rustdoc without warnings; with `--update` the generated pages (tools, errors, limits, schemas) are rewritten.
/// Without it `cargo xtask test` compares them, since the comparison is an ordinary test.
pub fn docs(arguments: &[String]) -> Outcome {
    match arguments {
        [] => {}
        [flag] if flag == "--update" => {
            let mut cargo = sh::cargo();
            cargo.args(["test", "--package", "retroscope", "--test", GENERATED]).env("UPDATE_DOCS", "1");
            return sh::run(&mut cargo);
        }
        _ => return Err(format!("unexpected arguments `{}`; only --update", arguments.join(" "))),
    }
    let mut rustdoc = sh::cargo();
    rustdoc.args(["doc", "--workspace", "--no-deps", "--document-private-items"]).env("RUSTDOCFLAGS", "-D warnings");
    sh::run(&mut rustdoc)
}
