//! Command 0x81, "Ping". Like every command it stops a machine that runs.

use super::super::session::Request;

const PING: u8 = 0x81;

/// What is sent.
pub const fn request() -> Request {
    Request::new(PING, Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_has_the_manuals_bytes() {
        assert_eq!((request().command(), request().body()), (0x81, &[][..]));
    }
}
