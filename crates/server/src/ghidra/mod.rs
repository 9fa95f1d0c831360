//! What the server asks of Ghidra, over the HTTP interface of its plug-in ghidra-mcp-next 0.100.0. One request for each
//! question; nothing is ever asked twice.

mod http;
mod memory;
mod settings;

pub use settings::GhidraSettings;

use crate::errors::{ErrorCode, ToolError};
use http::Request;
use serde_json::{Map, Value, json};

/// The answer of an endpoint.
pub type Answer = Map<String, Value>;

/// What a symbol profile does where something is defined already.
#[derive(Clone, Copy, Debug)]
pub struct ProfilePolicy<'a> {
    /// Only say what would happen.
    pub dry_run: bool,
    /// `error`, `keep` or `replace`.
    pub conflict_policy: &'a str,
    /// Whether what a person defined may be replaced.
    pub replace_user_definitions: bool,
    /// Whether the blocks of memory are made.
    pub create_memory_blocks: bool,
}

/// The client.
#[derive(Clone, Debug, Default)]
pub struct Ghidra {
    settings: GhidraSettings,
}

impl Ghidra {
    /// A client with these settings; it connects when it is asked something.
    pub fn new(settings: GhidraSettings) -> Self {
        Self { settings }
    }

    /// `length` bytes of a program's memory from `address` on: all of them, or an error.
    ///
    /// # Errors
    /// `ghidra_http_timeout`, `ghidra_transport_failure`, `ghidra_response_error`.
    pub async fn read_memory(&self, program: &str, address: &str, length: usize) -> Result<Vec<u8>, ToolError> {
        let length_text = length.to_string();
        let query = [
            ("program", program),
            ("address", address),
            ("length", &length_text),
            // As Python writes it: that is what the plug-in has always been sent.
            ("detect_strings", "False"),
        ];
        let request = Request { path: memory::ENDPOINT, query: &query, body: None, changes: false };
        let answer = http::ask(&self.settings, &request).await?;
        memory::bytes(&answer, length)
    }

    /// Writes bytes into a program's memory; `conflict_policy` is `error` or `overwrite_bytes`.
    ///
    /// # Errors
    /// As [`Self::read_memory`]; `ghidra_program_may_have_changed` in the details says whether it may have been done.
    pub async fn write_memory_bytes(
        &self,
        program: &str,
        start: &str,
        bytes: &[u8],
        conflict_policy: &str,
        dry_run: bool,
    ) -> Result<Answer, ToolError> {
        let body = json!({
            "start": start,
            "bytes": c64::to_hex(bytes),
            "conflict_policy": conflict_policy,
            "dry_run": dry_run,
        });
        self.post("/write_memory_bytes", program, body, dry_run).await
    }

    /// Gives a program the names, values and blocks of a profile.
    ///
    /// # Errors
    /// As [`Self::write_memory_bytes`].
    pub async fn apply_symbol_profile(
        &self,
        program: &str,
        profile: Value,
        policy: ProfilePolicy<'_>,
    ) -> Result<Answer, ToolError> {
        let body = json!({
            "profile": profile,
            "dry_run": policy.dry_run,
            "conflict_policy": policy.conflict_policy,
            "replace_user_definitions": policy.replace_user_definitions,
            "create_memory_blocks": policy.create_memory_blocks,
        });
        self.post("/apply_symbol_profile", program, body, policy.dry_run).await
    }

    /// Makes data of regions of a program.
    ///
    /// # Errors
    /// As [`Self::write_memory_bytes`].
    pub async fn apply_data_regions(&self, program: &str, regions: Value, dry_run: bool) -> Result<Answer, ToolError> {
        self.post("/apply_data_regions", program, json!({ "regions": regions, "dry_run": dry_run }), dry_run).await
    }

    async fn post(&self, path: &str, program: &str, body: Value, dry_run: bool) -> Result<Answer, ToolError> {
        let request = Request { path, query: &[("program", program)], body: Some(body), changes: !dry_run };
        http::ask(&self.settings, &request).await
    }
}

/// Refuses an argument that must say something.
///
/// # Errors
/// `invalid_arguments`.
pub fn not_blank(name: &str, value: &str) -> Result<(), ToolError> {
    if value.trim().is_empty() {
        return Err(ToolError::new(ErrorCode::InvalidArguments, format!("{name} must not be blank")));
    }
    Ok(())
}
