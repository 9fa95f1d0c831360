//! Windows programs that Wine hosts: to Linux they are Wine's loader with some files mapped, to a debugger they are the
//! Windows program, with its executable, its libraries and their names.

use super::memory;
use super::proc::{self, Mapping};
use crate::platform::pe::{self, HEADER_BYTES, Header};
use crate::platform::{Module, Symbol};
use base::VirtAddr;
use code::x86::{self, Bitness, INSN_BYTES};
use std::fs::File;
use std::path::{Path, PathBuf};

/// The library that every Windows program has.
const SYSTEM_LIBRARY: &str = "ntdll.dll";
/// Its function that the loader maps every library with.
const MAPS_LIBRARIES: &str = "NtMapViewOfSection";
/// Instructions of that function, which only enters the system, at most.
const FEW_INSNS: usize = 16;

/// A Windows program or library as it is mapped.
struct Image {
    path: PathBuf,
    base: u64,
    header: Header,
}

/// The Windows program that a process is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The executable, as Linux knows it.
    pub path: PathBuf,
    /// Its word size, which need not be that of Wine's loader.
    pub bitness: Bitness,
    /// Its first instruction, where it has one.
    pub entry: Option<VirtAddr>,
}

/// The images among mappings. Wine maps the headers of each from its file, at offset 0 and privately; sections may be copies
/// without a name. What is mapped as data is shared.
fn images(thread: u32, memory: Option<&File>, maps: &[Mapping]) -> Vec<Image> {
    let candidates = maps.iter().filter(|mapping| {
        mapping.offset == 0 && !mapping.shared && mapping.path.is_absolute() && !mapping.path.starts_with("/dev")
    });
    candidates
        .filter_map(|mapping| {
            let mut magic = [0; 2];
            let got = memory::read(thread, memory, mapping.start, &mut magic).ok()?;
            if got != magic.len() || magic != *b"MZ" {
                return None;
            }
            let mut head = vec![0; HEADER_BYTES];
            let got = memory::read(thread, memory, mapping.start, &mut head).ok()?;
            let header = pe::header(head.get(..got)?).ok()?;
            Some(Image { path: mapping.path.clone(), base: mapping.start, header })
        })
        .collect()
}

fn is_hosted(images: &[Image]) -> bool {
    images.iter().any(|image| is_system_library(&image.path))
}

fn is_system_library(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.eq_ignore_ascii_case(SYSTEM_LIBRARY))
}

/// The executable among the images: the one that the process was started with, where there are several.
fn executable(thread: u32, images: &[Image]) -> Option<&Image> {
    let mut programs = images.iter().filter(|image| !image.header.library);
    let first = programs.next()?;
    let called = proc::first_argument(thread).unwrap_or_default();
    let named =
        |image: &&Image| image.path.file_name().is_some_and(|name| name.eq_ignore_ascii_case(last_part(&called)));
    std::iter::once(first).chain(programs).find(named).or(Some(first))
}

/// The Windows program that a process is; `None` when it is none, or Wine has not mapped it yet.
pub fn program(thread: u32, memory: Option<&File>) -> Option<Program> {
    let maps = proc::maps(thread).ok()?;
    // Most processes are told apart by this alone.
    maps.iter().find(|mapping| is_system_library(&mapping.path))?;
    let images = images(thread, memory, &maps);
    if !is_hosted(&images) {
        return None;
    }
    executable(thread, &images).map(|image| Program {
        path: image.path.clone(),
        bitness: image.header.bitness,
        entry: (image.header.entry != 0).then(|| VirtAddr::new(image.base.wrapping_add(image.header.entry))),
    })
}

/// Adds the Windows modules to those of Linux, before them, and marks the latter as the host's. Changes nothing where the
/// process is no Windows program.
pub fn add_modules(thread: u32, memory: Option<&File>, maps: &[Mapping], modules: Vec<Module>) -> Vec<Module> {
    let images = images(thread, memory, maps);
    if !is_hosted(&images) {
        return modules;
    }
    let main = executable(thread, &images).map(|image| image.base);
    let windows = images.into_iter().map(|image| Module {
        name: image.path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        base: VirtAddr::new(image.base),
        size: image.header.size,
        bias: image.base.wrapping_sub(pe::preferred_base(&seen_file(thread, &image.path), &image.header)),
        main: main == Some(image.base),
        host: false,
        path: image.path,
    });
    let linux = modules.into_iter().map(|module| Module { main: module.main && main.is_none(), host: true, ..module });
    windows.chain(linux).collect()
}

/// A file as the process sees it, which may have another root folder.
pub fn seen_file(thread: u32, path: &Path) -> PathBuf {
    let seen = PathBuf::from(format!("/proc/{thread}/root{}", path.display()));
    if seen.exists() { seen } else { path.to_owned() }
}

/// The library that every Windows program has, among the modules of one.
pub fn system_library(modules: &[Module]) -> Option<&Module> {
    modules.iter().find(|module| !module.host && module.name.eq_ignore_ascii_case(SYSTEM_LIBRARY))
}

/// The word size of a Windows module.
pub fn bitness(thread: u32, memory: Option<&File>, module: &Module) -> Bitness {
    let mut head = vec![0; HEADER_BYTES];
    let got = memory::read(thread, memory, module.base.get(), &mut head).unwrap_or(0);
    head.truncate(got);
    pe::header(&head).map_or(Bitness::Bits32, |header| header.bitness)
}

/// Where the Windows loader comes by after it has mapped a library, before the library's own code runs: the return of the
/// function of the system library, whose symbols are given, that it maps with. `read` gives the program's memory.
pub fn loader_hook(
    symbols: &[Symbol],
    bitness: Bitness,
    read: impl FnOnce(VirtAddr, &mut [u8]) -> usize,
) -> Option<VirtAddr> {
    let function = symbols.iter().find(|symbol| symbol.name == MAPS_LIBRARIES)?.address;
    let mut code = vec![0; FEW_INSNS * INSN_BYTES];
    let got = read(function, &mut code);
    let listing = x86::disassemble(code.get(..got)?, function.get(), bitness, FEW_INSNS);
    // Not the return behind a `syscall`: Wine comes by the call.
    let place = listing.insns.windows(2).find_map(|pair| match pair {
        [call, back] if call.is_call() && back.is_return() => Some(back.address),
        _ => None,
    });
    place.map(VirtAddr::new)
}

/// Whether a Windows program is what a user named: its file name, its path as Linux knows it, or its Windows path, in any
/// case of letters as Windows has it.
pub fn is_named(path: &Path, name: &str) -> bool {
    let path = path.to_string_lossy().to_lowercase();
    let name = name.replace('\\', "/").to_lowercase();
    match name.split_once(':') {
        // `Z:` is the root folder; the others are somewhere below it.
        Some((drive, rest)) if drive.len() == 1 && rest.starts_with('/') => path.ends_with(rest),
        _ if name.contains('/') => path == name,
        _ => path.rsplit('/').next() == Some(name.as_str()),
    }
}

/// What stands behind the last separator of a Linux or Windows path.
fn last_part(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_by_the_names_that_both_systems_have_for_them() {
        let path = Path::new("/home/me/.wine/drive_c/Games/Drift Game/DRIFT.EXE");
        for name in ["drift.exe", "DRIFT.EXE", r"C:\Games\Drift Game\drift.exe", r"c:/games/drift game/DRIFT.exe"] {
            assert!(is_named(path, name), "{name}");
        }
        assert!(is_named(path, "/home/me/.wine/drive_c/Games/Drift Game/DRIFT.EXE"));
        assert!(is_named(Path::new("/opt/a.exe"), r"Z:\opt\a.exe"));
        for name in ["drift", "rift.exe", r"C:\Other\drift.exe", "/games/drift.exe", "", "C:", "Z:drift.exe"] {
            assert!(!is_named(path, name), "{name}");
        }
    }

    #[test]
    fn the_hook_is_the_return_behind_the_call_into_the_system() {
        let name = "NtMapViewOfSection".to_owned();
        let symbols = [Symbol { name, address: VirtAddr::new(0x1010), size: 0, function: true }];
        let find = |bitness, code: &[u8]| {
            loader_hook(&symbols, bitness, |at, buffer| {
                assert_eq!(at, VirtAddr::new(0x1010));
                buffer[..code.len()].copy_from_slice(code);
                code.len()
            })
        };
        // mov eax, 0x57; mov edx, dispatcher; call edx; ret 0x28: 5 + 5 + 2 bytes before the return.
        let wine32 = [0xb8, 0x57, 0, 0, 0, 0xba, 0x20, 0xc6, 0xc0, 0x7b, 0xff, 0xd2, 0xc2, 0x28, 0];
        assert_eq!(find(Bitness::Bits32, &wine32), Some(VirtAddr::new(0x101c)));
        // mov r10, rcx; mov eax, 0x28; test byte [0x7ffe0308], 1; jne +3; syscall; ret; call [0x7ffe1000]; ret: the last,
        // behind 3 + 5 + 8 + 2 + 2 + 1 + 7 bytes.
        let wine64 = [
            0x49, 0x89, 0xca, 0xb8, 0x28, 0, 0, 0, 0xf6, 0x04, 0x25, 0x08, 0x03, 0xfe, 0x7f, 0x01, 0x75, 0x03, 0x0f,
            0x05, 0xc3, 0xff, 0x14, 0x25, 0x00, 0x10, 0xfe, 0x7f, 0xc3,
        ];
        assert_eq!(find(Bitness::Bits64, &wine64), Some(VirtAddr::new(0x102c)));
        assert_eq!(find(Bitness::Bits32, &wine32[..12]), None);
    }

    #[test]
    fn we_are_no_windows_program() {
        let own = std::process::id();
        assert_eq!(program(own, None), None);
        let maps = proc::maps(own).unwrap();
        let modules = super::super::modules::list(own, None, &maps, &std::env::current_exe().unwrap());
        assert_eq!(add_modules(own, None, &maps, modules.clone()), modules);
    }
}
