//! `retroscope demo`: the investigation that the product exists for, told as a story. A small game of ours falls back to its
//! menu after alt-tab; the demo starts it under the agent and, as an MCP client over the real transport, finds out why.

pub mod client;
#[cfg(target_os = "linux")]
pub mod focus;
#[cfg(target_os = "linux")]
mod story;

#[cfg(target_os = "linux")]
pub use story::{DemoOptions, GAME_32, GAME_64, GameFile, run};
