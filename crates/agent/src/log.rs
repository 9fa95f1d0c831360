//! Messages for the person who runs the agent: one line each on stderr, with the seconds since the start and a level.

use clap::ValueEnum;
use std::fmt;
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Instant;

/// How much is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Level {
    /// Nothing.
    Off,
    /// What keeps the agent from doing its work.
    Error,
    /// What a person should look at.
    Warn,
    /// Clients and programs that come and go.
    Info,
    /// Every command.
    Debug,
}

static LEVEL: AtomicU8 = AtomicU8::new(Level::Warn as u8);
static START: OnceLock<Instant> = OnceLock::new();

/// Sets how much is written from now on.
pub fn set_level(level: Level) {
    LEVEL.store(level as u8, Ordering::Relaxed);
    START.get_or_init(Instant::now);
}

/// Writes a message of level [`Level::Error`].
pub fn error(message: fmt::Arguments<'_>) {
    write(Level::Error, "error", message);
}

/// Writes a message of level [`Level::Warn`].
pub fn warn(message: fmt::Arguments<'_>) {
    write(Level::Warn, "warn", message);
}

/// Writes a message of level [`Level::Info`].
pub fn info(message: fmt::Arguments<'_>) {
    write(Level::Info, "info", message);
}

/// Writes a message of level [`Level::Debug`].
pub fn debug(message: fmt::Arguments<'_>) {
    write(Level::Debug, "debug", message);
}

fn write(level: Level, word: &str, message: fmt::Arguments<'_>) {
    if level as u8 > LEVEL.load(Ordering::Relaxed) {
        return;
    }
    let since = START.get_or_init(Instant::now).elapsed();
    // One write, so that lines of several threads do not mix. A closed stderr is no reason to stop debugging.
    let line = format!("[{:10.3}] {word}: {message}\n", since.as_secs_f64());
    drop(std::io::stderr().write_all(line.as_bytes()));
}
