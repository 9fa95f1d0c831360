//! The one error of this crate: what was wrong with the input and what is allowed.

/// What kind of refusal a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An option is out of range or contradicts another.
    Option,
    /// The bytes are fewer than what was asked for needs.
    Data,
    /// The result would be larger than its limit.
    TooLarge,
}

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Problem {
    /// The kind.
    pub kind: Kind,
    /// What was wrong and what is allowed.
    pub message: String,
}

impl Problem {
    /// A wrong option.
    pub fn option(message: impl Into<String>) -> Self {
        Self { kind: Kind::Option, message: message.into() }
    }

    /// Too few bytes.
    pub fn data(message: impl Into<String>) -> Self {
        Self { kind: Kind::Data, message: message.into() }
    }

    /// Too large a result.
    pub fn too_large(message: impl Into<String>) -> Self {
        Self { kind: Kind::TooLarge, message: message.into() }
    }
}
