//! ELF files: how far they reach in memory, and their symbols. Whatever the bytes are, nothing panics, and what is read is
//! bounded by the file's size and [`limits`].

use crate::platform::{PlatformError, Symbol};
use base::{VirtAddr, limits};
use object::Endianness;
use object::elf::{self, FileHeader32, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, SectionTable, Sym, SymbolTable, VersionTable};
use object::read::{ReadCache, ReadRef, StringTable, SymbolIndex};
use std::path::Path;

/// Addresses that a file asks to be loaded at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The lowest, rounded down to a page.
    pub lowest: u64,
    /// Bytes up to the highest.
    pub size: u64,
}

/// Reads the extent from the first bytes of a file; `None` when they are no ELF file's.
pub fn extent(head: &[u8]) -> Option<Extent> {
    match head.get(4) {
        Some(&elf::ELFCLASS32) => extent_of::<FileHeader32<Endianness>>(head),
        Some(&elf::ELFCLASS64) => extent_of::<FileHeader64<Endianness>>(head),
        _ => None,
    }
}

fn extent_of<Elf: FileHeader<Endian = Endianness>>(head: &[u8]) -> Option<Extent> {
    let header = Elf::parse(head).ok()?;
    let endian = header.endian().ok()?;
    let mut range: Option<(u64, u64)> = None;
    for segment in header.program_headers(endian, head).ok()? {
        if segment.p_type(endian) != elf::PT_LOAD {
            continue;
        }
        let (start, length) = (segment.p_vaddr(endian).into(), segment.p_memsz(endian).into());
        let end: u64 = u64::checked_add(start, length)?;
        range = Some(range.map_or((start, end), |(low, high)| (low.min(start), high.max(end))));
    }
    let (low, high) = range?;
    let lowest = low & !(super::memory::PAGE - 1);
    Some(Extent { lowest, size: high - lowest })
}

/// The functions and objects that a file names, moved by `bias`, by address. A file that is damaged gives what can be read.
pub fn read(path: &Path, bias: u64) -> Result<Vec<Symbol>, PlatformError> {
    let failed = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => PlatformError::NotFound(path.to_owned()),
        _ => super::os_error("reading a module's file", &error),
    };
    let file = super::proc::open_regular(path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    if length > limits::MAX_MODULE_FILE_BYTES {
        return Err(PlatformError::BadProgram(format!(
            "{} has {length} bytes; symbols are read from files of at most {} bytes",
            path.display(),
            limits::MAX_MODULE_FILE_BYTES
        )));
    }
    let cache = ReadCache::new(file);
    Ok(symbols(&cache, bias))
}

/// The same from memory.
pub fn symbols_in(bytes: &[u8], bias: u64) -> Vec<Symbol> {
    symbols(bytes, bias)
}

fn symbols<'data, R: ReadRef<'data>>(data: R, bias: u64) -> Vec<Symbol> {
    let mut found = match data.read_bytes_at(4, 1) {
        Ok([elf::ELFCLASS32]) => symbols_of::<FileHeader32<Endianness>, R>(data, bias, u64::from(u32::MAX)),
        Ok([elf::ELFCLASS64]) => symbols_of::<FileHeader64<Endianness>, R>(data, bias, u64::MAX),
        _ => None,
    }
    .unwrap_or_default();
    found.sort_by(|a, b| (a.address, &a.name).cmp(&(b.address, &b.name)));
    // The two tables of a file overlap; the size is known where either knows it.
    found.dedup_by(|later, first| {
        let same = later.address == first.address && later.name == first.name;
        if same {
            first.size = first.size.max(later.size);
        }
        same
    });
    found
}

fn symbols_of<'data, Elf: FileHeader<Endian = Endianness>, R: ReadRef<'data>>(
    data: R,
    bias: u64,
    mask: u64,
) -> Option<Vec<Symbol>> {
    let header = Elf::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, data).ok()?;
    let versions = sections.versions(endian, data).ok().flatten();
    let mut found = Vec::new();
    for kind in [elf::SHT_SYMTAB, elf::SHT_DYNSYM] {
        let Ok(table) = sections.symbols(endian, data, kind) else { continue };
        let versions = versions.as_ref().filter(|_| kind == elf::SHT_DYNSYM);
        add_table(endian, data, &sections, &table, versions, &mut found);
    }
    for symbol in &mut found {
        symbol.address = VirtAddr::new(symbol.address.get().wrapping_add(bias) & mask);
    }
    Some(found)
}

fn add_table<'data, Elf: FileHeader<Endian = Endianness>, R: ReadRef<'data>>(
    endian: Endianness,
    data: R,
    sections: &SectionTable<'data, Elf, R>,
    table: &SymbolTable<'data, Elf, R>,
    versions: Option<&VersionTable<'data, Elf>>,
    found: &mut Vec<Symbol>,
) {
    // The names are read as one block: one by one they would be a system call each.
    let Ok(names) = sections.section(table.string_section()).and_then(|section| section.data(endian, data)) else {
        return;
    };
    let names: StringTable<'_, &[u8]> = StringTable::new(names, 0, names.len() as u64);
    for (number, symbol) in table.symbols().iter().enumerate() {
        if found.len() >= limits::MAX_SYMBOLS_PER_MODULE {
            return;
        }
        let section = symbol.st_shndx(endian);
        if section == elf::SHN_UNDEF || section == elf::SHN_ABS || section == elf::SHN_COMMON {
            continue;
        }
        let executable = sections
            .section(object::SectionIndex(usize::from(section)))
            .is_ok_and(|section| section.sh_flags(endian).into() & u64::from(elf::SHF_EXECINSTR) != 0);
        let function = match symbol.st_type() {
            elf::STT_FUNC | elf::STT_GNU_IFUNC => true,
            elf::STT_OBJECT => false,
            // Old assembly does not say what a name is; local names of this kind are marks, not things.
            elf::STT_NOTYPE if symbol.st_bind() != elf::STB_LOCAL => executable,
            _ => continue,
        };
        let Ok(name) = symbol.name(endian, names) else { continue };
        if name.is_empty() {
            continue;
        }
        let mut name = String::from_utf8_lossy(name).into_owned();
        if let Some((plain, _)) = name.split_once("@@") {
            name.truncate(plain.len());
        }
        if let Some(version) = versions.and_then(|versions| old_version(endian, versions, number)) {
            name = format!("{name}@{version}");
        }
        found.push(Symbol {
            name,
            address: VirtAddr::new(symbol.st_value(endian).into()),
            size: symbol.st_size(endian).into(),
            function,
        });
    }
}

/// The version of a symbol that is kept for old programs only, beside the one that new programs get.
fn old_version<Elf: FileHeader<Endian = Endianness>>(
    endian: Endianness,
    versions: &VersionTable<'_, Elf>,
    number: usize,
) -> Option<String> {
    let index = versions.version_index(endian, SymbolIndex(number));
    if !index.is_hidden() {
        return None;
    }
    let version = versions.version(index).ok()??;
    Some(String::from_utf8_lossy(version.name()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::process::Command;

    /// Functions and objects as `readelf` lists them: name, address, size.
    fn readelf(table: &str, path: &Path) -> BTreeSet<(String, u64, u64)> {
        let output = Command::new("readelf").args(["-W", table]).arg(path).output().unwrap();
        // Num: Value Size Type Bind Vis Ndx Name, the size in decimal or with 0x.
        let line = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [_, value, size, kind, bind, _, section, name, ..] = words[..] else { return None };
            let wanted = matches!(kind, "FUNC" | "OBJECT" | "IFUNC") || (kind == "NOTYPE" && bind != "LOCAL");
            if !wanted || matches!(section, "UND" | "ABS" | "COM") {
                return None;
            }
            let size = match size.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16).ok()?,
                None => size.parse().ok()?,
            };
            let name = name.split("@@").next()?;
            Some((name.to_owned(), u64::from_str_radix(value, 16).ok()?, size))
        };
        String::from_utf8(output.stdout).unwrap().lines().filter_map(line).collect()
    }

    #[test]
    fn symbols_of_a_library_are_those_that_readelf_shows() {
        let own = super::super::proc::maps(std::process::id()).unwrap();
        let is_libc = |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libc.so"));
        let library = own.into_iter().map(|mapping| mapping.path).find(|path| is_libc(path)).unwrap();
        let theirs = readelf("--dyn-syms", &library);
        assert!(theirs.len() > 1000, "readelf is installed and the C library has thousands of symbols");
        let moved = 0x10_0000;
        let ours: BTreeSet<(String, u64, u64)> = read(&library, moved)
            .unwrap()
            .into_iter()
            .map(|symbol| (symbol.name, symbol.address.get() - moved, symbol.size))
            .collect();
        assert_eq!(theirs.difference(&ours).next(), None);
        assert_eq!(ours.iter().filter(|(name, ..)| name == "open").count(), 1);
    }

    #[test]
    fn our_own_static_functions_are_found() {
        let path = std::env::current_exe().unwrap();
        let theirs: BTreeSet<(String, u64)> =
            readelf("-s", &path).into_iter().map(|(name, address, _)| (name, address)).collect();
        let ours: BTreeSet<(String, u64)> =
            read(&path, 0).unwrap().into_iter().map(|symbol| (symbol.name, symbol.address.get())).collect();
        assert!(ours.iter().any(|(name, _)| name == "main"));
        assert_eq!(theirs.symmetric_difference(&ours).next(), None);
    }

    #[test]
    fn the_extent_of_our_executable_is_what_readelf_says() {
        let path = std::env::current_exe().unwrap();
        let text = Command::new("readelf").args(["-lW"]).arg(&path).output().unwrap().stdout;
        let text = String::from_utf8(text).unwrap();
        // Type Offset VirtAddr PhysAddr FileSiz MemSiz …
        let number = |word: Option<&str>| u64::from_str_radix(word.unwrap().trim_start_matches("0x"), 16).unwrap();
        let loads: Vec<(u64, u64)> = text
            .lines()
            .filter_map(|line| line.trim().strip_prefix("LOAD "))
            .map(|line| line.split_whitespace())
            .map(|mut words| (number(words.nth(1)), number(words.nth(2))))
            .collect();
        let end = loads.iter().map(|(start, size)| start + size).max().unwrap();
        let head = std::fs::read(&path).unwrap();
        assert_eq!(extent(&head[..4096]), Some(Extent { lowest: 0, size: end }));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn damaged_files_do_not_panic(damage in prop::collection::vec((0usize..8192, any::<u8>()), 1..64), cut in 0usize..20_000) {
            let mut bytes = std::fs::read("/bin/true").unwrap();
            let section_headers = bytes.len().saturating_sub(2048);
            for (place, value) in damage {
                // Both ends of the file: the header, and the section headers.
                let place = if place < 4096 { place % 64 } else { section_headers + (place - 4096) % 2048 };
                if let Some(byte) = bytes.get_mut(place) {
                    *byte = value;
                }
            }
            bytes.truncate(bytes.len().saturating_sub(cut));
            let _ = extent(&bytes);
            let _ = symbols_in(&bytes, 0);
        }
    }
}
