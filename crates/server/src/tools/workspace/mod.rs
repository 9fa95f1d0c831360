//! The tools about the files that other tools work on, and about the server itself.

mod server_capabilities;
mod verify_file_sha256;

use super::{Entry, Group};

/// The group.
pub const GROUP: Group = Group {
    name: "workspace",
    purpose: "Files below the workspace, and what this server may do.",
    files: true,
    tools: &[
        Entry::of::<verify_file_sha256::VerifyFileSha256>(),
        Entry::of::<server_capabilities::ServerCapabilities>(),
    ],
};
