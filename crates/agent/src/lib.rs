//! The debug agent: an engine that owns one debugged program, the platforms it runs on, and the server that answers clients.

pub mod cli;
pub mod engine;
pub mod log;
pub mod platform;
pub mod registers;
pub mod reply;
pub mod runner;
pub mod serve;
#[cfg(test)]
mod testing;
