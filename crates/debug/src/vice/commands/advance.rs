//! Commands 0x71, "Advance instructions", and 0x73, "Execute until return". Both are answered at once; then the machine
//! resumes, and stops.

use super::super::session::Request;

/// Command that advances.
const ADVANCE: u8 = 0x71;
/// Command that runs until the routine returns.
const UNTIL_RETURN: u8 = 0x73;

/// Executes `count` instructions; with `over`, a subroutine counts as one. VICE takes 0 and never stops then (measured), which
/// is why nobody may ask for it.
pub fn request(over: bool, count: std::num::NonZeroU16) -> Request {
    let [low, high] = count.get().to_le_bytes();
    Request::new(ADVANCE, vec![u8::from(over), low, high])
}

/// Runs until RTS or RTI.
pub const fn until_return() -> Request {
    Request::new(UNTIL_RETURN, Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU16;

    #[test]
    fn what_is_sent_has_the_manuals_bytes() {
        let steps = NonZeroU16::new(0x0102).unwrap();
        let over = request(true, steps);
        assert_eq!((over.command(), over.body()), (0x71, &[1, 2, 1][..]));
        assert_eq!(request(false, NonZeroU16::MAX).body(), [0, 0xFF, 0xFF]);
        assert_eq!((until_return().command(), until_return().body()), (0x73, &[][..]));
    }
}
