//! Command 0xAA, "Exit": the machine runs on.

use super::super::session::Request;

const EXIT: u8 = 0xAA;

/// What is sent.
pub const fn request() -> Request {
    Request::new(EXIT, Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_has_the_manuals_bytes() {
        assert_eq!((request().command(), request().body()), (0xAA, &[][..]));
    }
}
