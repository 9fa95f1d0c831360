//! What `/proc` says about processes and threads. Everything here is text from the kernel, read whole and parsed with care:
//! names in it are the program's own choice.

use code::x86::Bitness;
use nix::libc;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The marker that the kernel puts behind the path of a file that is deleted.
const DELETED: &[u8] = b" (deleted)";

/// One line of `/proc/PID/maps`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// First address after it.
    pub end: u64,
    /// It may be written.
    pub write: bool,
    /// It may be executed.
    pub execute: bool,
    /// Writes are seen by others who map the file.
    pub shared: bool,
    /// Offset of `start` in the file.
    pub offset: u64,
    /// The file, or a name in brackets; empty for anonymous memory. Without the marker of deleted files.
    pub path: PathBuf,
    /// The file has been deleted.
    pub deleted: bool,
}

/// The mappings of a thread's process, by address.
pub fn maps(thread: u32) -> std::io::Result<Vec<Mapping>> {
    Ok(parse_maps(&fs::read(format!("/proc/{thread}/maps"))?))
}

/// Parses the text of `/proc/PID/maps`; lines that are not understood are left out.
pub fn parse_maps(text: &[u8]) -> Vec<Mapping> {
    text.split(|byte| *byte == b'\n').filter_map(parse_mapping).collect()
}

fn parse_mapping(line: &[u8]) -> Option<Mapping> {
    let mut fields = line.splitn(6, |byte| *byte == b' ');
    let mut field = || fields.next().and_then(|field| std::str::from_utf8(field).ok());
    let (start, end) = field()?.split_once('-')?;
    let permissions = field()?.as_bytes();
    let offset = u64::from_str_radix(field()?, 16).ok()?;
    let (_device, _inode) = (field()?, field()?);
    let path = fields.next().unwrap_or_default().trim_ascii_start();
    let (path, deleted) = match path.strip_suffix(DELETED) {
        Some(path) => (path, true),
        None => (path, false),
    };
    Some(Mapping {
        start: u64::from_str_radix(start, 16).ok()?,
        end: u64::from_str_radix(end, 16).ok()?,
        write: permissions.get(1) == Some(&b'w'),
        execute: permissions.get(2) == Some(&b'x'),
        shared: permissions.get(3) == Some(&b's'),
        offset,
        path: unescape(path),
        deleted,
    })
}

/// The kernel writes a newline in a name as `\012`, and nothing else in this way.
fn unescape(path: &[u8]) -> PathBuf {
    let mut plain = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((first, after)) = rest.split_first() {
        if let Some(after) = rest.strip_prefix(b"\\012") {
            plain.push(b'\n');
            rest = after;
        } else {
            plain.push(*first);
            rest = after;
        }
    }
    PathBuf::from(std::ffi::OsStr::from_bytes(&plain))
}

/// The fields of `/proc/TID/status` that matter to us.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// The letter of its state: `R`, `S`, `D`, `T`, `t`, `Z`, `X`.
    pub state: char,
    /// The process that the thread belongs to.
    pub process: u32,
    /// The parent process.
    pub parent: u32,
    /// Who traces it, 0 for nobody.
    pub tracer: u32,
    /// Bit `n - 1`: signal `n` is ignored.
    pub ignored: u64,
    /// Bit `n - 1`: signal `n` has a handler.
    pub caught: u64,
    /// Bit `n - 1`: signal `n` is blocked.
    pub blocked: u64,
    /// A filter decides about its system calls (seccomp).
    pub filtered: bool,
    /// Bit `n - 1`: signal `n` has been sent to this thread and waits to be delivered.
    pub pending: u64,
}

/// Status of a thread; `None` when it is gone.
pub fn status(thread: u32) -> Option<Status> {
    Some(parse_status(&fs::read(format!("/proc/{thread}/status")).ok()?))
}

fn parse_status(text: &[u8]) -> Status {
    let mut status = Status::default();
    for line in text.split(|byte| *byte == b'\n') {
        let Some((key, value)) = std::str::from_utf8(line).ok().and_then(|line| line.split_once(':')) else { continue };
        let value = value.trim();
        let mask = || u64::from_str_radix(value, 16).unwrap_or(0);
        match key {
            "State" => status.state = value.chars().next().unwrap_or_default(),
            "Tgid" => status.process = value.parse().unwrap_or(0),
            "PPid" => status.parent = value.parse().unwrap_or(0),
            "TracerPid" => status.tracer = value.parse().unwrap_or(0),
            "SigIgn" => status.ignored = mask(),
            "SigCgt" => status.caught = mask(),
            "SigBlk" => status.blocked = mask(),
            "Seccomp" => status.filtered = value != "0",
            "SigPnd" => status.pending = mask(),
            _ => {}
        }
    }
    status
}

/// The threads of a process.
pub fn tasks(process: u32) -> Vec<u32> {
    numbers(&format!("/proc/{process}/task"))
}

/// All processes.
pub fn processes() -> Vec<u32> {
    numbers("/proc")
}

fn numbers(folder: &str) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut numbers: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

/// Path of a thread's executable as the kernel knows it, without the marker of deleted files.
pub fn executable(thread: u32) -> Option<PathBuf> {
    let path = fs::read_link(format!("/proc/{thread}/exe")).ok()?;
    let bytes = path.as_os_str().as_bytes();
    Some(match bytes.strip_suffix(DELETED) {
        Some(plain) if !path.exists() => PathBuf::from(std::ffi::OsStr::from_bytes(plain)),
        _ => path,
    })
}

/// A thread's name.
pub fn thread_name(thread: u32) -> Option<String> {
    let name = fs::read(format!("/proc/{thread}/comm")).ok()?;
    Some(String::from_utf8_lossy(name.trim_ascii_end()).into_owned())
}

/// The thread is inside `vfork` or a `clone` like it, where nothing but the child's `execve` or end lets it go on.
pub fn waits_for_vfork(thread: u32) -> bool {
    let in_kernel = status(thread).is_some_and(|status| status.state == 'D');
    let call = fs::read_to_string(format!("/proc/{thread}/syscall")).unwrap_or_default();
    // x86-64: clone 56, vfork 58, clone3 435; i386: clone 120, vfork 190, clone3 435.
    in_kernel && matches!(call.split(' ').next(), Some("56" | "58" | "435" | "120" | "190"))
}

/// The first word of a process's command line, which Wine sets to the program's path.
pub fn first_argument(process: u32) -> Option<String> {
    let bytes = fs::read(format!("/proc/{process}/cmdline")).ok()?;
    let first = bytes.split(|byte| *byte == 0).next()?;
    Some(String::from_utf8_lossy(first).trim_end().to_owned())
}

/// The value of an entry of a process's auxiliary vector.
pub fn auxiliary(thread: u32, bitness: Bitness, key: u64) -> Option<u64> {
    let bytes = fs::read(format!("/proc/{thread}/auxv")).ok()?;
    let width = match bitness {
        Bitness::Bits32 => 4,
        Bitness::Bits64 => 8,
    };
    let words: Vec<u64> = bytes.chunks_exact(width).map(little_endian).collect();
    words.chunks_exact(2).find_map(|pair| match pair {
        [found, value] if *found == key => Some(*value),
        _ => None,
    })
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// A variable of a process's environment as it was when the program began.
pub fn variable(process: u32, name: &str) -> Option<std::ffi::OsString> {
    let bytes = fs::read(format!("/proc/{process}/environ")).ok()?;
    bytes.split(|byte| *byte == 0).find_map(|entry| {
        let value = entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        Some(std::ffi::OsStr::from_bytes(value).to_owned())
    })
}

/// What kind of program a file is, by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// An ELF file for x86.
    Elf(Bitness),
    /// An ELF file for another processor.
    ForeignElf,
    /// `#!`.
    Script,
    /// `MZ`: a DOS or Windows program.
    Windows,
    /// None of these.
    Unknown,
}

/// Opens a file to read it, and nothing else: a pipe would have us wait for its writer, a device might never end.
pub fn open_regular(path: &Path) -> std::io::Result<fs::File> {
    let file = fs::File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, "not a regular file"))
    }
}

/// Looks at a file's first bytes.
pub fn file_kind(path: &Path) -> std::io::Result<FileKind> {
    let mut head = Vec::new();
    open_regular(path)?.take(20).read_to_end(&mut head)?;
    const I386: [u8; 2] = [3, 0];
    const X86_64: [u8; 2] = [62, 0];
    Ok(match (head.get(..5), head.get(18..20)) {
        (Some(b"\x7fELF\x02"), Some(machine)) if machine == X86_64 => FileKind::Elf(Bitness::Bits64),
        (Some(b"\x7fELF\x01"), Some(machine)) if machine == I386 => FileKind::Elf(Bitness::Bits32),
        _ if head.starts_with(b"\x7fELF") => FileKind::ForeignElf,
        _ if head.starts_with(b"#!") => FileKind::Script,
        _ if head.starts_with(b"MZ") => FileKind::Windows,
        _ => FileKind::Unknown,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_maps_is_taken_apart() {
        // The format of proc_pid_maps(5).
        let text =
            b"7f0a-7f0b r-xp 00001000 fe:01 17 /opt/a b/lib.so (deleted)\n08048000-08049000 rw-s 00000000 00:00 0\n\
            7ffd-7ffe r-xp 00000000 00:00 0                  [vdso]\nnonsense\nff-fe\n1-2 r--p 0 0:0 0  /new\\012line";
        let found = parse_maps(text);
        assert_eq!(found.len(), 4);
        assert_eq!(
            found[0],
            Mapping {
                start: 0x7f0a,
                end: 0x7f0b,
                write: false,
                execute: true,
                shared: false,
                offset: 0x1000,
                path: "/opt/a b/lib.so".into(),
                deleted: true
            }
        );
        assert_eq!((found[1].write, found[1].shared, found[1].path.as_os_str().is_empty()), (true, true, true));
        assert_eq!(found[2].path, Path::new("[vdso]"));
        assert_eq!(found[3].path, Path::new("/new\nline"));
    }

    #[test]
    fn our_own_status_and_executable_are_found() {
        let own = status(std::process::id()).unwrap();
        assert_eq!((own.process, own.parent, own.tracer), (std::process::id(), std::os::unix::process::parent_id(), 0));
        assert_eq!(executable(std::process::id()), std::env::current_exe().ok());
        assert_eq!(status(u32::MAX), None);
    }

    #[test]
    fn kinds_of_files_are_told_apart() {
        assert_eq!(file_kind(Path::new("/proc/self/exe")).unwrap(), FileKind::Elf(Bitness::Bits64));
        let folder = tempfile::tempdir().unwrap();
        let kind = |bytes: &[u8]| {
            let path = folder.path().join("file");
            fs::write(&path, bytes).unwrap();
            file_kind(&path).unwrap()
        };
        assert_eq!(kind(b""), FileKind::Unknown);
        assert_eq!(kind(b"\x7fELF"), FileKind::ForeignElf);
        assert_eq!(kind(b"#!/bin/sh\n"), FileKind::Script);
        assert_eq!(kind(b"MZ\x90\0"), FileKind::Windows);
        assert_eq!(kind(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\xb7\0"), FileKind::ForeignElf);
    }

    #[test]
    fn only_regular_files_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        for path in [&pipe, Path::new("/dev/zero"), folder.path()] {
            assert_eq!(open_regular(path).unwrap_err().kind(), std::io::ErrorKind::InvalidInput, "{}", path.display());
        }
    }

    #[test]
    fn auxiliary_vector_gives_our_page_size() {
        const AT_PAGESZ: u64 = 6;
        assert_eq!(auxiliary(std::process::id(), Bitness::Bits64, AT_PAGESZ), Some(4096));
    }
}
