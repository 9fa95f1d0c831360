//! The official conformance suite, both sets of requirements, on the program built with its fixture tools.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

mod support;

use std::path::PathBuf;
use std::process::Command;
use support::http_client::HttpServer;

fn tool(variable: &str) -> PathBuf {
    std::env::var_os(variable)
        .map(PathBuf::from)
        .unwrap_or_else(|| panic!("{variable} is not set: run `cargo xtask test`"))
}

fn conforms_to(revision: &str) {
    // The suite shows no token, so that it needs a server that asks for none.
    let server = HttpServer::start_with(&["--no-auth"], None);
    let results = tempfile::tempdir().unwrap();
    let suite = tool("RETROSCOPE_NPM").join("node_modules/@modelcontextprotocol/conformance/dist/index.js");
    let output = Command::new(tool("RETROSCOPE_NODE"))
        .arg(suite)
        .args(["server", "--url", &format!("http://{}/mcp", server.address), "--requirements", revision])
        .args(["--expected-failures", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/conformance-expected-failures.yml")])
        .arg("-o")
        .arg(results.path())
        .current_dir(results.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("Total: "), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_server_conforms_to_2026_07_28() {
    conforms_to("2026-07-28");
}

#[test]
fn the_server_conforms_to_2025_11_25() {
    conforms_to("2025-11-25");
}
