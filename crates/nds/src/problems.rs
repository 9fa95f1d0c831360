//! Collects what is wrong with a ROM, up to a bound: a hostile file has as many problems as it has bytes.

use base::{Problem, limits};

/// The problems found so far.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    found: Vec<Problem>,
    more: u64,
}

impl Problems {
    /// Notes a problem at `offset` of the ROM; past the bound it is only counted.
    pub fn at(&mut self, code: &'static str, offset: u64, message: impl FnOnce() -> String) {
        self.push(code, Some(offset), message);
    }

    /// Notes a problem without a place of its own.
    pub fn push(&mut self, code: &'static str, offset: Option<u64>, message: impl FnOnce() -> String) {
        if self.found.len() < limits::MAX_NDS_PROBLEMS {
            self.found.push(Problem { code, offset, message: message() });
        } else {
            self.more += 1;
        }
    }

    /// The problems, the last of them saying how many more there were.
    pub fn into_vec(mut self) -> Vec<Problem> {
        if self.more > 0 {
            let message = format!("{} more problems of this ROM are not listed", self.more);
            self.found.push(Problem { code: "more-problems", offset: None, message });
        }
        self.found
    }
}
