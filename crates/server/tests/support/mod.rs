//! What the tests of the server share: an agent that answers as it is told, and clients that speak raw MCP.
#![allow(dead_code, reason = "each test uses its part")]

pub mod desmume;
pub mod fake_agent;
pub mod fake_connector;
pub mod fake_ghidra;
pub mod http_client;
pub mod nds;
pub mod stdio_client;
#[cfg(target_os = "linux")]
pub mod vice;

use serde_json::{Value, json};

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_retroscope");
pub const MODERN: &str = "2026-07-28";

/// The `_meta` that every request of the modern era carries.
pub fn modern_meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}
