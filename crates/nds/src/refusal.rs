//! Why a ROM, or a request about one, cannot be served at all; everything less is a problem beside the answer.

/// A refusal: what was wrong, and what to do next.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// The word of the error vocabulary: `invalid-rom`, `range-out-of-bounds`, `unknown-file-id`, …
    pub category: &'static str,
    /// What was wrong, with the numbers.
    pub message: String,
    /// What the caller can do about it.
    pub corrective_action: String,
    /// Where in the ROM it stands, in bytes; `None` where it is about the request.
    pub offset: Option<u64>,
}

impl Refusal {
    pub(crate) fn new(category: &'static str, message: String, corrective_action: &str) -> Self {
        Self { category, message, corrective_action: corrective_action.to_owned(), offset: None }
    }

    pub(crate) fn at(mut self, offset: u64) -> Self {
        self.offset = Some(offset);
        self
    }
}
