//! The checksum of ROM headers: CRC-16 with the reflected polynomial 0xA001, from 0xFFFF on (GBATEK, "BIOS Misc Functions", GetCRC16);
//! and that of patch files: CRC-32 as zlib has it.

use std::sync::LazyLock;

/// The checksum of `bytes`.
pub fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0xffff, |crc, byte| {
        (0..8).fold(crc ^ u16::from(*byte), |crc, _| if crc & 1 == 1 { (crc >> 1) ^ 0xa001 } else { crc >> 1 })
    })
}

/// The remainders of all bytes for CRC-32, reflected polynomial 0xEDB88320.
static CRC32: LazyLock<[u32; 256]> = LazyLock::new(|| {
    std::array::from_fn(|byte| {
        (0..8).fold(byte as u32, |crc, _| if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 })
    })
});

/// CRC-32 of `bytes`.
pub fn crc32(bytes: &[u8]) -> u32 {
    let table: &[u32; 256] = &CRC32;
    !bytes
        .iter()
        .fold(u32::MAX, |crc, byte| (crc >> 8) ^ table.get((crc as u8 ^ byte) as usize).copied().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_check_value_of_this_crc_is_the_published_one() {
        // CRC-16/MODBUS in the catalogue of parametrised CRC algorithms: check value of the digits 1 to 9.
        assert_eq!(super::crc16(b"123456789"), 0x4b37);
        assert_eq!(super::crc16(b""), 0xffff);
        // CRC-32/ISO-HDLC there.
        assert_eq!(super::crc32(b"123456789"), 0xcbf4_3926);
    }
}
