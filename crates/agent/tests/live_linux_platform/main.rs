//! The Linux platform alone, without an engine above it, on real programs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod rig;
mod scratch;
mod signals;
mod start;
mod state;
mod threads;
mod wait;
mod window;
