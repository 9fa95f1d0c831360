//! Windows executables and libraries (PE files): their headers, and the names they give to addresses. Every platform that can
//! hold a Windows program reads them here; the bytes may come from a file or from memory and are not trusted.

use super::{PlatformError, Symbol};
use base::{VirtAddr, limits};
use code::x86::Bitness;
use object::read::pe::{ImageNtHeaders, PeFile};
use object::{Object, ObjectSymbol, SymbolKind};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Bytes from the start of a file or mapped image within which its headers lie, in every file that a linker makes.
pub const HEADER_BYTES: usize = 4_096;

/// What the headers say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Word size of the program.
    pub bitness: Bitness,
    /// Where the linker wanted it to be.
    pub preferred_base: u64,
    /// Bytes from its base to its end, when mapped.
    pub size: u64,
    /// Its first instruction, from its base; 0 when it has none.
    pub entry: u64,
    /// It is a library.
    pub library: bool,
}

/// Why bytes are no program for this computer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotPe {
    /// The signature is missing.
    #[error("it does not begin like a Windows program")]
    NoSignature,
    /// A DOS program, or one for 16-bit Windows.
    #[error("it is a program for DOS or 16-bit Windows")]
    Dos,
    /// A PE file for another processor.
    #[error("it is for another processor (machine 0x{0:04x})")]
    Machine(u16),
    /// The headers end too early or contradict themselves.
    #[error("its headers are damaged")]
    Damaged,
}

/// Reads the headers at the beginning of `bytes`.
///
/// # Errors
/// What is wrong with them.
pub fn header(bytes: &[u8]) -> Result<Header, NotPe> {
    if bytes.get(..2) != Some(b"MZ") {
        return Err(NotPe::NoSignature);
    }
    let at = usize::try_from(field::<4>(bytes, 0x3c).ok_or(NotPe::Dos)?).map_err(|_| NotPe::Dos)?;
    let headers = bytes.get(at..).filter(|headers| headers.starts_with(b"PE\0\0")).ok_or(NotPe::Dos)?;
    let machine = field::<2>(headers, 4).ok_or(NotPe::Damaged)?;
    let characteristics = field::<2>(headers, 22).ok_or(NotPe::Damaged)?;
    let optional = headers.get(24..).ok_or(NotPe::Damaged)?;
    let magic = field::<2>(optional, 0).ok_or(NotPe::Damaged)?;
    let (bitness, preferred_base) = match (machine, magic) {
        (0x014c, 0x10b) => (Bitness::Bits32, field::<4>(optional, 28)),
        (0x8664, 0x20b) => (Bitness::Bits64, field::<8>(optional, 24)),
        (0x014c | 0x8664, _) => return Err(NotPe::Damaged),
        (other, _) => return Err(NotPe::Machine(u16::try_from(other).unwrap_or_default())),
    };
    let header = Header {
        bitness,
        preferred_base: preferred_base.ok_or(NotPe::Damaged)?,
        size: field::<4>(optional, 56).ok_or(NotPe::Damaged)?,
        entry: field::<4>(optional, 16).ok_or(NotPe::Damaged)?,
        library: characteristics & 0x2000 != 0,
    };
    if header.entry >= header.size { Err(NotPe::Damaged) } else { Ok(header) }
}

/// The base that the linker of a mapped image wanted, as its file says: whoever moves an image may write where it lies now
/// into the headers in memory, `mapped`. These count where the file cannot be read or is another one.
pub fn preferred_base(path: &Path, mapped: &Header) -> u64 {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(HEADER_BYTES as u64).read_to_end(&mut head));
    let header = read.ok().and_then(|_| header(&head).ok());
    let same = |header: &Header| (header.size, header.entry) == (mapped.size, mapped.entry);
    header.filter(same).unwrap_or(*mapped).preferred_base
}

/// A little-endian number of `N` bytes.
fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..)?.get(..N)?;
    Some(bytes.iter().rev().fold(0, |value, byte| (value << 8) | u64::from(*byte)))
}

/// The names in a file, for a copy of it mapped at `base`: exports, and the linker's symbols where it has left them.
///
/// # Errors
/// A sentence on what is wrong with the file.
pub fn symbols(file: &[u8], base: VirtAddr) -> Result<Vec<Symbol>, String> {
    let header = header(file.get(..HEADER_BYTES).unwrap_or(file)).map_err(|error| error.to_string())?;
    match header.bitness {
        Bitness::Bits32 => named(PeFile::<object::pe::ImageNtHeaders32>::parse(file), &header, base),
        Bitness::Bits64 => named(PeFile::<object::pe::ImageNtHeaders64>::parse(file), &header, base),
    }
}

/// The names in the file at `path`.
///
/// # Errors
/// The file cannot be read, or is no PE file.
pub fn read_symbols(path: &Path, base: VirtAddr) -> Result<Vec<Symbol>, PlatformError> {
    let failed = |call, error: &dyn std::fmt::Display| PlatformError::Os {
        call,
        message: format!("{}: {error}", path.display()),
    };
    let file = File::open(path).map_err(|error| failed("open", &error))?;
    let mut bytes = Vec::new();
    let length =
        file.take(limits::MAX_MODULE_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(|error| failed("read", &error))?;
    if length as u64 > limits::MAX_MODULE_FILE_BYTES {
        return Err(failed("read", &format_args!("longer than {} bytes", limits::MAX_MODULE_FILE_BYTES)));
    }
    symbols(&bytes, base).map_err(|reason| failed("symbols", &reason))
}

fn named<P: ImageNtHeaders>(
    file: object::read::Result<PeFile<'_, P>>,
    header: &Header,
    base: VirtAddr,
) -> Result<Vec<Symbol>, String> {
    let file = file.map_err(|error| error.to_string())?;
    let mut found = Vec::new();
    let mut known = BTreeSet::new();
    let mut add = |name: String, address: u64, function: bool| {
        let Some(offset) = address.checked_sub(header.preferred_base).filter(|offset| *offset < header.size) else {
            return;
        };
        let address = base.wrapping_add(offset);
        if !name.is_empty() && found.len() < limits::MAX_SYMBOLS_PER_MODULE && known.insert((name.clone(), address)) {
            found.push(Symbol { name, address, size: 0, function });
        }
    };
    // An export says nothing of its kind; a section does.
    let code: Vec<_> = file
        .section_table()
        .iter()
        .filter(|section| is_code(section))
        .map(|section| {
            let start = u64::from(section.virtual_address.get(object::LittleEndian));
            start..start + u64::from(section.virtual_size.get(object::LittleEndian))
        })
        .collect();
    let is_function = |address: u64| {
        address
            .checked_sub(header.preferred_base)
            .is_some_and(|offset| code.iter().any(|range| range.contains(&offset)))
    };
    let mut exported = BTreeSet::new();
    for export in file.exports().unwrap_or_default() {
        let name = String::from_utf8_lossy(export.name()).into_owned();
        exported.insert(name.clone());
        add(name, export.address(), is_function(export.address()));
    }
    for symbol in file.symbols().filter(|symbol| !symbol.is_undefined()) {
        let wanted = matches!(symbol.kind(), SymbolKind::Text | SymbolKind::Data | SymbolKind::Unknown);
        if let (true, Ok(name)) = (wanted, symbol.name()) {
            let name = undecorated(name, header.bitness);
            // What a library exports under a name is what that name means: not its own stub for a function it imports.
            if !exported.contains(&name) {
                add(name, symbol.address(), is_function(symbol.address()));
            }
        }
    }
    Ok(found)
}

fn is_code(section: &object::pe::ImageSectionHeader) -> bool {
    section.characteristics.get(object::LittleEndian) & object::pe::IMAGE_SCN_MEM_EXECUTE != 0
}

/// The name as it stands in the source: 32-bit C symbols carry the calling convention (`_cdecl`, `_stdcall@8`, `@fastcall@8`).
fn undecorated(name: &str, bitness: Bitness) -> String {
    if bitness == Bitness::Bits64 {
        return name.to_owned();
    }
    let Some(rest) = name.strip_prefix('_').or_else(|| name.strip_prefix('@')) else { return name.to_owned() };
    match rest.rsplit_once('@') {
        Some((plain, bytes)) if !plain.is_empty() && bytes.parse::<u16>().is_ok() => plain.to_owned(),
        _ => rest.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Offsets as in the PE/COFF specification: the signature at `e_lfanew`, 20 bytes of file header, the optional header.
    fn image(machine: u16, magic: u16) -> Vec<u8> {
        let mut bytes = vec![0; 512];
        bytes[..2].copy_from_slice(b"MZ");
        bytes[0x3c] = 0x80;
        bytes[0x80..0x84].copy_from_slice(b"PE\0\0");
        bytes[0x84..0x86].copy_from_slice(&machine.to_le_bytes());
        let optional = 0x80 + 24;
        bytes[optional..optional + 2].copy_from_slice(&magic.to_le_bytes());
        bytes[optional + 16..optional + 20].copy_from_slice(&0x1234u32.to_le_bytes());
        bytes[optional + 28..optional + 32].copy_from_slice(&0x40_0000u32.to_le_bytes());
        bytes[optional + 56..optional + 60].copy_from_slice(&0x9000u32.to_le_bytes());
        bytes
    }

    #[test]
    fn headers_are_read() {
        let expected =
            Header { bitness: Bitness::Bits32, preferred_base: 0x40_0000, size: 0x9000, entry: 0x1234, library: false };
        assert_eq!(header(&image(0x14c, 0x10b)), Ok(expected));
    }

    #[test]
    fn the_preferred_base_is_that_of_the_file_where_it_is_the_same_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("moved.dll");
        std::fs::write(&path, image(0x14c, 0x10b)).unwrap();
        let mapped = Header { preferred_base: 0x7f_0000, ..header(&image(0x14c, 0x10b)).unwrap() };
        assert_eq!(preferred_base(&path, &mapped), 0x40_0000);
        assert_eq!(preferred_base(&path, &Header { size: 0xa000, ..mapped }), 0x7f_0000);
        assert_eq!(preferred_base(&folder.path().join("none.dll"), &mapped), 0x7f_0000);
    }

    #[test]
    fn what_is_no_program_for_us_is_named() {
        assert_eq!(header(b"\x7fELF"), Err(NotPe::NoSignature));
        assert_eq!(header(b"MZ"), Err(NotPe::Dos));
        assert_eq!(header(&image(0xaa64, 0x20b)), Err(NotPe::Machine(0xaa64)));
        assert_eq!(header(&image(0x14c, 0x20b)), Err(NotPe::Damaged));
        let mut entry_outside = image(0x14c, 0x10b);
        entry_outside[0x80 + 24 + 18] = 0xff;
        assert_eq!(header(&entry_outside), Err(NotPe::Damaged));
    }

    #[test]
    fn every_cut_is_refused_without_a_panic() {
        let whole = image(0x14c, 0x10b);
        for length in 0..0x80 + 24 + 60 {
            assert!(header(&whole[..length]).is_err(), "{length}");
            assert!(symbols(&whole[..length], VirtAddr::new(0)).is_err(), "{length}");
        }
    }

    #[test]
    fn calling_conventions_are_no_part_of_a_name() {
        for (decorated, plain) in [("_main", "main"), ("_WinMain@16", "WinMain"), ("@hot_step@4", "hot_step")] {
            assert_eq!(undecorated(decorated, Bitness::Bits32), plain);
            assert_eq!(undecorated(decorated, Bitness::Bits64), decorated);
        }
        assert_eq!(undecorated("?f@@YAXXZ", Bitness::Bits32), "?f@@YAXXZ");
    }
}
