//! The byte that stops a running program (GDB manual, "Interrupts"): it is no packet and is not acknowledged.

/// What is sent, outside of any packet.
pub const BYTE: u8 = 0x03;

/// The signal that a program stopped by it reports: SIGINT, in GDB's own numbers.
pub const SIGNAL: u8 = 2;

#[cfg(test)]
mod tests {
    #[test]
    fn the_byte_is_never_part_of_a_packets_frame() {
        assert!(!b"$#+-%}*".contains(&super::BYTE));
    }
}
