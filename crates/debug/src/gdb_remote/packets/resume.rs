//! Packets `c` and `s`, going on and one step (GDB manual, "Packets", `c [addr]` and `s [addr]`). Neither has an answer of its
//! own: the next stop is the answer.

/// What is sent to go on from where the program is.
pub fn go_on() -> Vec<u8> {
    b"c".to_vec()
}

/// What is sent to execute one instruction.
pub fn step() -> Vec<u8> {
    b"s".to_vec()
}

#[cfg(test)]
mod tests {
    #[test]
    fn neither_names_an_address() {
        assert_eq!((super::go_on(), super::step()), (b"c".to_vec(), b"s".to_vec()));
    }
}
