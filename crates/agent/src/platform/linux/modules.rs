//! The module list: which files a program has mapped as code, where, and by how much they are moved.

use super::memory::{self, PAGE};
use super::proc::Mapping;
use super::symbols;
use crate::platform::Module;
use base::VirtAddr;
use std::fs::File;
use std::path::Path;

/// Bytes read from the start of a module to find its program headers: linkers put them into the first page.
const HEAD_BYTES: usize = PAGE as usize;

/// Finds the modules among mappings. `main` is the path of the executable.
pub fn list(thread: u32, file: Option<&File>, maps: &[Mapping], main: &Path) -> Vec<Module> {
    let mut modules: Vec<Module> = Vec::new();
    for group in group(maps) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        if !group.iter().any(|mapping| mapping.execute) {
            continue;
        }
        let mut head = vec![0; HEAD_BYTES];
        let got = memory::read(thread, file, first.start, &mut head).unwrap_or(0);
        head.truncate(got);
        let Some(extent) = symbols::extent(&head) else { continue };
        let mapped = last.end - first.start;
        // Memory that no file backs (.bss) belongs to the module too, unless the header has been overwritten.
        let size = if extent.size < mapped.saturating_mul(1 << 16) { extent.size.max(mapped) } else { mapped };
        let is_main = first.path == main && !modules.iter().any(|module| module.main);
        modules.push(Module {
            name: first.path.file_name().unwrap_or(first.path.as_os_str()).to_string_lossy().into_owned(),
            path: first.path.clone(),
            base: VirtAddr::new(first.start),
            size,
            bias: first.start.wrapping_sub(extent.lowest),
            main: is_main,
            host: false,
        });
    }
    modules
}

/// The mappings of each loaded file: by path, and anew where the offsets begin again (a file may be mapped twice).
fn group(maps: &[Mapping]) -> Vec<Vec<&Mapping>> {
    let mut groups: Vec<Vec<&Mapping>> = Vec::new();
    for mapping in maps.iter().filter(|mapping| is_file(&mapping.path)) {
        let open = groups.iter_mut().rev().find(|group| group.last().is_some_and(|last| last.path == mapping.path));
        match open {
            Some(group) if group.last().is_some_and(|last| mapping.offset > last.offset || mapping.offset != 0) => {
                group.push(mapping);
            }
            _ => groups.push(vec![mapping]),
        }
    }
    groups
}

/// A file, or the library that the kernel maps; not anonymous memory, nor what only looks like a path.
fn is_file(path: &Path) -> bool {
    path == Path::new("[vdso]")
        || (path.is_absolute() && !path.starts_with("/dev") && !path.starts_with("/SYSV00000000"))
}

#[cfg(test)]
mod tests {
    use super::super::proc;
    use super::*;

    #[test]
    fn a_file_mapped_twice_makes_two_groups() {
        let maps = proc::parse_maps(
            b"1000-2000 r--p 00000000 0:0 1 /a\n2000-3000 r-xp 00001000 0:0 1 /a\n3000-4000 rw-p 00002000 0:0 1 /a\n\
              4000-5000 rw-p 00000000 0:0 0 \n5000-6000 r--p 00000000 0:0 2 /b\n6000-7000 rw-p 00000000 0:0 1 /a\n\
              7000-8000 r--p 00000000 0:0 1 [heap]\n8000-9000 r-xp 00001000 0:0 2 /b\n",
        );
        let starts: Vec<Vec<u64>> =
            group(&maps).into_iter().map(|group| group.iter().map(|mapping| mapping.start).collect()).collect();
        assert_eq!(starts, [vec![0x1000, 0x2000, 0x3000], vec![0x5000, 0x8000], vec![0x6000]]);
    }

    #[test]
    fn our_own_modules_are_what_the_loader_says() {
        let own = std::process::id();
        let main = std::env::current_exe().unwrap();
        let modules = list(own, None, &proc::maps(own).unwrap(), &main);
        let program = modules.iter().find(|module| module.main).unwrap();
        assert_eq!(program.path, main);
        // The auxiliary vector gives the address of the program headers (AT_PHDR, 3): they lie in the executable.
        let headers = proc::auxiliary(own, code::x86::Bitness::Bits64, 3).unwrap();
        assert!(VirtAddr::new(headers).is_in(program.base, program.size));
        // AT_SYSINFO_EHDR (33) is the vdso's address.
        let vdso = proc::auxiliary(own, code::x86::Bitness::Bits64, 33).unwrap();
        assert!(modules.iter().any(|module| module.name == "[vdso]" && module.base.get() == vdso));
        assert!(modules.iter().any(|module| module.name.starts_with("libc.so")));
        assert!(modules.windows(2).all(|pair| pair[0].base < pair[1].base));
    }
}
