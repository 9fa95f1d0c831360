//! The byte that stops a running program (GDB manual, "Interrupts"): it is no packet and is not acknowledged.

/// What is sent, outside of any packet.
pub const BYTE: u8 = 0x03;

#[cfg(test)]
mod tests {
    #[test]
    fn the_byte_is_never_part_of_a_packets_frame() {
        assert!(!b"$#+-%}*".contains(&super::BYTE));
    }
}
