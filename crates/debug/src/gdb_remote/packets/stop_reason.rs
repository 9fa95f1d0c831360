//! Packet `?`, why the program is stopped (GDB manual, "Packets", `?`). It is answered as a stop is.

/// What is sent.
pub fn request() -> Vec<u8> {
    b"?".to_vec()
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_is_one_character() {
        assert_eq!(super::request(), b"?");
    }
}
