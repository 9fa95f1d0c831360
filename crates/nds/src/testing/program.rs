//! A main program as the SDK links it, for tests: module parameters, autoload blocks behind the code, and the list behind them.

use super::blz;
use super::put32;

/// Where the module parameters are put, in bytes from the start of the program.
pub const PARAMS_AT: u32 = 0xa00;
/// Bytes of the parameters with their magic words.
const PARAMS_BYTES: usize = 0x24;

/// The description of such a program.
#[derive(Clone, Debug)]
pub struct SdkProgram {
    /// Where it is loaded.
    pub ram_address: u32,
    /// Its code; at least up to the end of the parameters, which are written into it.
    pub code: Vec<u8>,
    /// Autoload blocks: address, bytes, bytes of BSS.
    pub autoloads: Vec<(u32, Vec<u8>, u32)>,
    /// Words of an entry of the autoload list: 3, or 4 with later SDKs.
    pub list_words: usize,
    /// Bytes of BSS, from where the autoload blocks are stored.
    pub bss_size: u32,
}

impl SdkProgram {
    /// Code of `length` bytes at `ram_address`, without anything else.
    pub fn new(ram_address: u32, length: usize) -> Self {
        let code = (0..length.max(PARAMS_AT as usize + PARAMS_BYTES)).map(|place| (place / 64) as u8).collect();
        Self { ram_address, code, autoloads: Vec::new(), list_words: 3, bss_size: 0 }
    }

    /// The program as it is in memory before the blocks are copied.
    pub fn image(&self) -> Vec<u8> {
        let mut image = self.code.clone();
        let autoload_start = image.len();
        for (_, bytes, _) in &self.autoloads {
            image.extend(bytes);
        }
        let list_start = image.len();
        for (address, bytes, bss) in &self.autoloads {
            image.extend(address.to_le_bytes());
            image.extend((bytes.len() as u32).to_le_bytes());
            if self.list_words == 4 {
                image.extend(0_u32.to_le_bytes());
            }
            image.extend(bss.to_le_bytes());
        }
        let address = |offset: usize| self.ram_address + offset as u32;
        let bss_start = address(autoload_start);
        let words = [
            address(list_start),
            address(image.len()),
            address(autoload_start),
            bss_start,
            bss_start + self.bss_size,
            0,
            0x0403_7531,
            0xdec0_0621,
            0x2106_c0de,
        ];
        for (index, word) in words.into_iter().enumerate() {
            put32(&mut image, PARAMS_AT as usize + 4 * index, word);
        }
        image
    }

    /// The image as it is stored when it is compressed, and the image that decoding it must give: both hold the end of
    /// the stream in their parameters. `None` when compressing gains nothing.
    pub fn compressed(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        let mut image = self.image();
        let plain = PARAMS_AT as usize + PARAMS_BYTES;
        let mut stream = blz::compress(&image, plain)?;
        let end = self.ram_address + stream.len() as u32;
        for bytes in [&mut image, &mut stream] {
            put32(bytes, PARAMS_AT as usize + 0x14, end);
        }
        Some((stream, image))
    }
}
