//! ROMs for tests, built from a description: every layout that a test needs. Broken ones are built by changing bytes of a good
//! one with [`put32`] and its kin. The layout is written down here a second time, apart from the parser.

mod blz;
mod program;
mod words;

use std::collections::BTreeMap;

pub use blz::compress;
pub use program::{PARAMS_AT, SdkProgram};
pub use words::rebuild_words;

use crate::Processor;
use crate::crc::crc16;

/// A program of the header.
#[derive(Clone, Debug)]
pub struct ProgramSpec {
    /// Where it is loaded.
    pub ram_address: u32,
    /// Where execution begins.
    pub entry: u32,
    /// Its stored bytes.
    pub bytes: Vec<u8>,
}

/// An overlay and its file.
#[derive(Clone, Debug)]
pub struct OverlaySpec {
    /// Who loads it.
    pub processor: Processor,
    /// Its identifier.
    pub id: u32,
    /// Where it is loaded.
    pub ram_address: u32,
    /// Bytes of its image.
    pub ram_size: u32,
    /// Bytes of its BSS.
    pub bss_size: u32,
    /// Its stored bytes.
    pub stored: Vec<u8>,
    /// Whether those are a BLZ stream.
    pub compressed: bool,
}

impl OverlaySpec {
    /// An overlay stored as it is.
    pub fn plain(processor: Processor, id: u32, ram_address: u32, image: &[u8]) -> Self {
        let ram_size = image.len() as u32;
        Self { processor, id, ram_address, ram_size, bss_size: 0, stored: image.to_vec(), compressed: false }
    }

    /// An overlay stored compressed; as it is when that gains nothing.
    pub fn blz(processor: Processor, id: u32, ram_address: u32, image: &[u8]) -> Self {
        let plain = Self::plain(processor, id, ram_address, image);
        match compress(image, 0) {
            Some(stored) => Self { stored, compressed: true, ..plain },
            None => plain,
        }
    }
}

/// What a DSi title has beyond.
#[derive(Clone, Debug, Default)]
pub struct DsiSpec {
    /// The ARM9's second program: address and bytes.
    pub arm9i: (u32, Vec<u8>),
    /// The ARM7's second program: address and bytes.
    pub arm7i: (u32, Vec<u8>),
    /// Whether the header says that the second ARM9 program is encrypted.
    pub modcrypt: bool,
}

/// The description of a ROM.
#[derive(Clone, Debug)]
pub struct RomBuilder {
    /// Title, at most 12 bytes.
    pub title: &'static str,
    /// Where the ARM9 program is stored, a multiple of 0x200.
    pub arm9_offset: u32,
    /// The ARM9 program.
    pub arm9: ProgramSpec,
    /// The ARM7 program.
    pub arm7: ProgramSpec,
    /// Checksum of the secure area in the header.
    pub secure_area_crc: u16,
    /// Overlays of both processors; their files come first, in this order.
    pub overlays: Vec<OverlaySpec>,
    /// Files of the file system: path with `/`, and bytes. Numbers follow those of the overlays, a directory at a time.
    pub files: Vec<(String, Vec<u8>)>,
    /// The DSi's part.
    pub dsi: Option<DsiSpec>,
}

impl Default for RomBuilder {
    /// A small ROM without overlays and files: an ARM9 and an ARM7 program of some bytes each.
    fn default() -> Self {
        let program = |ram_address: u32, length: u8| ProgramSpec {
            ram_address,
            entry: ram_address,
            bytes: (0..length).collect(),
        };
        Self {
            title: "BUILT",
            arm9_offset: 0x4000,
            arm9: program(0x0200_0000, 0x80),
            arm7: program(0x0380_0000, 0x40),
            secure_area_crc: 0,
            overlays: Vec::new(),
            files: Vec::new(),
            dsi: None,
        }
    }
}

impl RomBuilder {
    /// A ROM with everything: nested files, overlays of both processors at one address, compressed ones, a compressed ARM9
    /// program with autoload blocks, and a DSi's programs.
    pub fn everything() -> Self {
        let image = |seed: u8, length: usize| -> Vec<u8> { (0..length).map(|at| (at / 48) as u8 ^ seed).collect() };
        let mut main = SdkProgram::new(0x0200_4000, 0x3000);
        main.autoloads = vec![(0x01ff_8000, image(7, 0x123), 0x20), (0x027e_0000, image(9, 0x60), 0x40)];
        main.bss_size = 0x800;
        let (stored, _) = main.compressed().unwrap_or_default();
        Self {
            title: "EVERYTHING",
            arm9: ProgramSpec { ram_address: main.ram_address, entry: main.ram_address + 0x800, bytes: stored },
            overlays: vec![
                OverlaySpec { bss_size: 0x40, ..OverlaySpec::plain(Processor::Arm9, 0, 0x0210_0000, &image(1, 0x200)) },
                OverlaySpec { bss_size: 0x80, ..OverlaySpec::blz(Processor::Arm9, 1, 0x0210_0000, &image(2, 0x400)) },
                OverlaySpec::plain(Processor::Arm9, 7, 0x0218_0000, &image(3, 0x100)),
                OverlaySpec::blz(Processor::Arm7, 0, 0x0381_0000, &image(4, 0x300)),
            ],
            files: [
                ("readme.txt", 40),
                ("data/a.bin", 256),
                ("data/deep/er/b.bin", 100),
                ("data/c.bin", 0),
                ("z/d", 9),
            ]
            .map(|(path, length)| (path.to_owned(), image(path.len() as u8, length)))
            .to_vec(),
            dsi: Some(DsiSpec {
                arm9i: (0x0240_0000, image(5, 0x158)),
                arm7i: (0x02e8_0000, image(6, 0x90)),
                modcrypt: false,
            }),
            ..Self::default()
        }
    }

    /// A ROM of about `total` bytes in `count` files of equal size in ten directories, for benchmarks.
    pub fn large(total: usize, count: usize) -> Self {
        let size = total / count.max(1);
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = || {
            // Xorshift: incompressible enough that no search finds a pattern by chance, and the same each time.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()
        };
        let files = (0..count).map(|index| {
            let mut bytes: Vec<u8> = (0..size.div_ceil(8)).flat_map(|_| random()).collect();
            bytes.truncate(size);
            (format!("dir{}/file{index:04}.bin", index % 10), bytes)
        });
        Self { title: "LARGE", files: files.collect(), ..Self::default() }
    }

    /// The ROM.
    pub fn build(&self) -> Vec<u8> {
        let mut rom = vec![0; self.arm9_offset as usize];
        put(&mut rom, 0x000, self.title.as_bytes());
        put(&mut rom, 0x00c, b"NTRJ01");
        let capacity_at = 0x14;
        put16(&mut rom, 0x6c, self.secure_area_crc);
        put32(&mut rom, 0x84, self.arm9_offset.min(0x4000));

        let arm9 = append(&mut rom, &self.arm9.bytes);
        program(&mut rom, 0x20, arm9, &self.arm9);
        let arm7 = append(&mut rom, &self.arm7.bytes);
        program(&mut rom, 0x30, arm7, &self.arm7);

        for (field, processor) in [(0x50, Processor::Arm9), (0x58, Processor::Arm7)] {
            let table = self.overlay_table(processor);
            if !table.is_empty() {
                let at = append(&mut rom, &table);
                put32(&mut rom, field, at);
                put32(&mut rom, field + 4, table.len() as u32);
            }
        }
        let (fnt, order) = file_names(&self.files, self.overlays.len());
        let at = append(&mut rom, &fnt);
        put32(&mut rom, 0x40, at);
        put32(&mut rom, 0x44, fnt.len() as u32);

        let count = self.overlays.len() + order.len();
        let fat = append(&mut rom, &vec![0; count * 8]);
        put32(&mut rom, 0x48, fat);
        put32(&mut rom, 0x4c, count as u32 * 8);
        let overlays = self.overlays.iter().map(|overlay| &overlay.stored);
        let files = order.iter().filter_map(|index| self.files.get(*index)).map(|(_, bytes)| bytes);
        for (id, bytes) in overlays.chain(files).enumerate() {
            let at = append(&mut rom, bytes);
            put32(&mut rom, fat as usize + id * 8, at);
            put32(&mut rom, fat as usize + id * 8 + 4, at + bytes.len() as u32);
        }
        let used = rom.len() as u32;
        put32(&mut rom, 0x80, used);
        if let Some(dsi) = &self.dsi {
            put(&mut rom, 0x12, &[2]);
            for (field, (address, bytes)) in [(0x1c0, &dsi.arm9i), (0x1d0, &dsi.arm7i)] {
                let at = append(&mut rom, bytes);
                put32(&mut rom, field, at);
                put32(&mut rom, field + 8, *address);
                put32(&mut rom, field + 12, bytes.len() as u32);
                if dsi.modcrypt && field == 0x1c0 {
                    put(&mut rom, 0x1c, &[2]);
                    put32(&mut rom, 0x220, at);
                    put32(&mut rom, 0x224, bytes.len() as u32);
                }
            }
            let used = rom.len() as u32;
            put32(&mut rom, 0x210, used);
        }
        let capacity = (0..12_u8).find(|code| (128 * 1024) << code >= rom.len()).unwrap_or(12);
        put(&mut rom, capacity_at, &[capacity]);
        seal(&mut rom);
        rom
    }

    fn overlay_table(&self, processor: Processor) -> Vec<u8> {
        let overlays = self.overlays.iter().enumerate().filter(|(_, overlay)| overlay.processor == processor);
        let mut table = Vec::new();
        for (file, overlay) in overlays {
            let length = if overlay.compressed { overlay.stored.len() as u32 | 1 << 24 } else { 0 };
            let start = overlay.ram_address;
            let words = [overlay.id, start, overlay.ram_size, overlay.bss_size, start, start, file as u32, length];
            table.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        }
        table
    }
}

/// Writes both checksums of the header anew, after it was changed.
pub fn seal(rom: &mut [u8]) {
    let logo = crc16(rom.get(0xc0..0x15c).unwrap_or_default());
    put16(rom, 0x15c, logo);
    let header = crc16(rom.get(..0x15e).unwrap_or_default());
    put16(rom, 0x15e, header);
}

/// Writes bytes over those at an offset; nothing where they do not fit.
pub fn put(rom: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = rom.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

/// Writes a 16-bit number.
pub fn put16(rom: &mut [u8], at: usize, value: u16) {
    put(rom, at, &value.to_le_bytes());
}

/// Writes a 32-bit number.
pub fn put32(rom: &mut [u8], at: usize, value: u32) {
    put(rom, at, &value.to_le_bytes());
}

/// Reads a 32-bit number; 0 where there is none.
pub fn get32(rom: &[u8], at: usize) -> u32 {
    let bytes = rom.get(at..).and_then(|rest| rest.first_chunk::<4>());
    u32::from_le_bytes(bytes.copied().unwrap_or_default())
}

/// Puts bytes at the next multiple of 0x200 and says where that is.
fn append(rom: &mut Vec<u8>, bytes: &[u8]) -> u32 {
    rom.resize(rom.len().next_multiple_of(0x200), 0xff);
    let at = rom.len() as u32;
    rom.extend(bytes);
    at
}

fn program(rom: &mut [u8], field: usize, at: u32, program: &ProgramSpec) {
    let words = [at, program.entry, program.ram_address, program.bytes.len() as u32];
    for (index, word) in words.into_iter().enumerate() {
        put32(rom, field + 4 * index, word);
    }
}

/// A directory while names are collected: files as indices into the list, and directories below.
#[derive(Default)]
struct Directory {
    files: Vec<(String, usize)>,
    below: BTreeMap<String, Directory>,
}

/// The FNT for paths, and the order in which their files get numbers, from `first` on.
fn file_names(files: &[(String, Vec<u8>)], first: usize) -> (Vec<u8>, Vec<usize>) {
    let mut root = Directory::default();
    for (index, (path, _)) in files.iter().enumerate() {
        let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
        let mut directory = &mut root;
        for folder in folders.split('/').filter(|folder| !folder.is_empty()) {
            directory = directory.below.entry(folder.to_owned()).or_default();
        }
        directory.files.push((name.to_owned(), index));
    }
    // Breadth first: a directory's number is its place in this list.
    let mut all = vec![(&root, 0_u16)];
    let mut main = Vec::new();
    let mut names = Vec::new();
    let mut order = Vec::new();
    let mut index = 0;
    while let Some((directory, parent)) = all.get(index).copied() {
        main.push((names.len(), first + order.len(), parent));
        for (name, file) in &directory.files {
            names.push(name.len() as u8);
            names.extend(name.as_bytes());
            order.push(*file);
        }
        for (name, below) in &directory.below {
            names.push(0x80 | name.len() as u8);
            names.extend(name.as_bytes());
            names.extend((0xf000 | all.len() as u16).to_le_bytes());
            all.push((below, index as u16));
        }
        names.push(0);
        index += 1;
    }
    let mut table = Vec::new();
    for (number, (names, file, parent)) in main.iter().enumerate() {
        table.extend(((main.len() * 8 + names) as u32).to_le_bytes());
        table.extend((*file as u16).to_le_bytes());
        let above = if number == 0 { main.len() as u16 } else { 0xf000 | parent };
        table.extend(above.to_le_bytes());
    }
    table.extend(names);
    (table, order)
}
