//! Command 0x85, "VICE info".

use std::fmt;

use super::super::error::Error;
use super::super::framing::Fields;
use super::super::session::Request;

const INFO: u8 = 0x85;

/// What VICE says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// Its version, most significant first: 3, 7, 1, 0.
    pub numbers: Vec<u8>,
    /// Its Subversion revision, which releases leave at 0.
    pub revision: Option<u32>,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<String> = self.numbers.iter().map(u8::to_string).collect();
        f.write_str(&numbers.join("."))
    }
}

impl Version {
    /// Whether its display command keeps to its buffer: mended in revision 46020, and released with 3.11.
    pub fn has_mended_display(&self) -> bool {
        match (self.revision, self.numbers.as_slice()) {
            (Some(revision), _) => revision >= 46_020,
            (None, [major, minor, ..]) => (*major, *minor) >= (3, 11),
            (None, _) => false,
        }
    }

    /// Whether the first step after a register was set only arrives there, as with 3.7.1. Revision 46200, which calls itself
    /// 3.10, executes it.
    pub fn first_step_only_arrives(&self) -> bool {
        matches!(self.numbers.as_slice(), [major, minor, ..] if (*major, *minor) < (3, 10))
    }
}

/// What is sent.
pub const fn request() -> Request {
    Request::new(INFO, Vec::new())
}

/// # Errors
/// [`Error::Protocol`].
pub fn answer(body: &[u8]) -> Result<Version, Error> {
    let mut fields = Fields::of(body, "a version");
    let length = usize::from(fields.byte()?);
    let numbers = fields.bytes(length)?.to_vec();
    let length = usize::from(fields.byte()?);
    let revision = fields.bytes(length)?.iter().rev().take(8).fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
    let revision = u32::try_from(revision).ok().filter(|revision| *revision != 0);
    Ok(Version { numbers, revision })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_of_debians_3_7_1_is_read() {
        // Recorded from x64sc 3.7.1.
        let version = answer(&[0x04, 3, 7, 1, 0, 0x04, 0, 0, 0, 0]).unwrap();
        assert_eq!((version.to_string().as_str(), version.revision), ("3.7.1.0", None));
        assert!(!version.has_mended_display() && version.first_step_only_arrives());
        assert!(matches!(answer(&[0x04, 3, 7]), Err(Error::Protocol(_))));
    }

    #[test]
    fn the_gate_goes_by_the_revision_first() {
        let build = |numbers: &[u8], revision| Version { numbers: numbers.to_vec(), revision }.has_mended_display();
        assert!(build(&[3, 10, 0, 0], Some(46_020)) && !build(&[3, 12, 0, 0], Some(46_019)));
        assert!(build(&[3, 11], None) && build(&[4, 0], None));
        assert!(!build(&[3, 10, 9], None) && !build(&[3], None) && !build(&[], None));
    }
}
