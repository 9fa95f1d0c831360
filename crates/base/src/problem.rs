//! What is wrong with a file that could still be understood in part.

/// One thing that was wrong, beside the answer and never instead of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// A word for programs, kebab-case, the same for the same kind of problem.
    pub code: &'static str,
    /// Where in the file it stands, in bytes from its start; `None` where it has no one place.
    pub offset: Option<u64>,
    /// A sentence for people: what is wrong, and what that means for the answer.
    pub message: String,
}
