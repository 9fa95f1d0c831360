//! Command 0xCC, "Reset". That of the machine is answered, and then it runs; that of a drive leaves it stopped (measured).

use super::super::session::Request;

const RESET: u8 = 0xCC;

/// What is reset. VICE takes other numbers without a word (measured).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetKind {
    /// The machine, as by its reset button.
    Soft,
    /// The machine, as by switching it off and on.
    Hard,
    /// The disk drive of this number: 8 or 9.
    Drive8,
    /// The disk drive 9.
    Drive9,
}

impl ResetKind {
    /// All of them by their names.
    pub const NAMED: [(&'static str, Self); 4] =
        [("soft", Self::Soft), ("hard", Self::Hard), ("drive8", Self::Drive8), ("drive9", Self::Drive9)];

    /// Whether the machine runs afterwards.
    pub const fn resumes(self) -> bool {
        matches!(self, Self::Soft | Self::Hard)
    }

    const fn number(self) -> u8 {
        match self {
            Self::Soft => 0,
            Self::Hard => 1,
            Self::Drive8 => 8,
            Self::Drive9 => 9,
        }
    }
}

/// What is sent.
pub fn request(kind: ResetKind) -> Request {
    Request::new(RESET, vec![kind.number()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_the_manuals_numbers() {
        let numbers = ResetKind::NAMED.map(|(_, kind)| request(kind).body().to_vec());
        assert_eq!(numbers, [[0], [1], [8], [9]]);
    }
}
