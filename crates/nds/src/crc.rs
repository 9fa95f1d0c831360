//! The checksum of ROM headers: CRC-16 with the reflected polynomial 0xA001, from 0xFFFF on (GBATEK, "BIOS Misc Functions", GetCRC16).

/// The checksum of `bytes`.
pub fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0xffff, |crc, byte| {
        (0..8).fold(crc ^ u16::from(*byte), |crc, _| if crc & 1 == 1 { (crc >> 1) ^ 0xa001 } else { crc >> 1 })
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_check_value_of_this_crc_is_the_published_one() {
        // CRC-16/MODBUS in the catalogue of parametrised CRC algorithms: check value of the digits 1 to 9.
        assert_eq!(super::crc16(b"123456789"), 0x4b37);
        assert_eq!(super::crc16(b""), 0xffff);
    }
}
