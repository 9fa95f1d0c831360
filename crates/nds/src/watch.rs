//! How a caller follows long work and ends it: the work asks now and then, and stops when told to.

use crate::Refusal;

/// How far the work is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes or instructions done.
    pub done: u64,
    /// How many there are at most: all bytes of a search, the budget of instructions of a scan.
    pub total: u64,
}

/// Is told the progress every few thousand instructions or few MiB, and returns whether to go on.
pub type Watcher<'a> = &'a dyn Fn(Progress) -> bool;

/// Goes on to the end.
pub const UNWATCHED: Watcher<'static> = &|_| true;

/// Why work gave no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The request cannot be served.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The watcher ended it.
    #[error("the work was cancelled")]
    Cancelled,
}
