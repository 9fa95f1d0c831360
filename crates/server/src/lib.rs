//! retroscope: an MCP server, and a command line, for reverse-engineering old software by proof and by watching it run.

pub mod agent_client;
mod call;
pub mod cli;
pub mod config;
#[cfg(feature = "conformance")]
mod conformance;
pub mod context;
pub mod demo;
mod doctor;
pub mod errors;
pub mod ghidra;
pub mod http;
mod job;
pub mod launch_roots;
pub mod mcp;
mod picture;
pub mod rom_cache;
mod schema;
pub mod serve;
pub mod tool_list;
pub mod tools;
pub mod vice_client;
pub mod vice_connector;
pub mod workspace;
