//! Memory of the debuggee: `process_vm_readv` for much, `/proc/PID/mem` for little and for what only a debugger may touch.

use super::proc::{self, Mapping};
use crate::platform::PlatformError;
use nix::errno::Errno;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;
use std::fs::File;
use std::io::IoSliceMut;
use std::os::unix::fs::FileExt;

/// Bytes of a page, the granularity of mappings on x86.
pub const PAGE: u64 = 4096;

/// Up to so many bytes the file is the faster way: a call costs half of `process_vm_readv`, a byte more.
const FEW: usize = 256;

/// Reads as many bytes as are readable from `address` on.
pub fn read(thread: u32, memory: Option<&File>, address: u64, buffer: &mut [u8]) -> Result<usize, PlatformError> {
    let mut done = 0;
    while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
        let at = address.wrapping_add(done as u64);
        if rest.len() <= FEW
            && let Some(Ok(got @ 1..)) = memory.map(|file| file.read_at(rest, at))
        {
            done += got;
            continue;
        }
        let Ok(base) = usize::try_from(at) else { break };
        let remote = [RemoteIoVec { base, len: rest.len() }];
        let pid = Pid::from_raw(thread as i32);
        let got = match process_vm_readv(pid, &mut [IoSliceMut::new(rest)], &remote) {
            Ok(got) if got > 0 => got,
            // Not readable for the program, yet perhaps for its debugger; and when the thread is gone, through the
            // file that still holds the memory.
            Ok(_) | Err(Errno::EFAULT | Errno::EPERM | Errno::ESRCH | Errno::EINVAL | Errno::ENOSYS) => {
                // Only to the end of the page: behind it the fast way may work again.
                let length = rest.len().min((PAGE - at % PAGE) as usize);
                let part = rest.get_mut(..length).unwrap_or_default();
                match memory.map(|file| file.read_at(part, at)) {
                    Some(Ok(got)) if got > 0 => got,
                    _ => break,
                }
            }
            Err(error) => return Err(super::os_error("process_vm_readv", &error.into())),
        };
        done += got;
    }
    Ok(done)
}

/// Writes all bytes or none.
pub fn write(thread: u32, memory: Option<&File>, address: u64, bytes: &[u8]) -> Result<(), PlatformError> {
    let Some(file) = memory else {
        return Err(PlatformError::Permission(format!(
            "/proc/{thread}/mem cannot be opened for writing: run the agent as the user that the program runs as"
        )));
    };
    let length = bytes.len() as u64;
    // Within one page the kernel writes all or nothing by itself.
    if address % PAGE + length > PAGE {
        let maps = proc::maps(thread).map_err(|error| super::os_error("reading /proc/PID/maps", &error))?;
        let usable = writable_length(&maps, address, length);
        if usable < length {
            return Err(PlatformError::Unmapped { usable });
        }
    }
    let mut done = 0;
    while let Some(rest) = bytes.get(done..).filter(|rest| !rest.is_empty()) {
        match file.write_at(rest, address.wrapping_add(done as u64)) {
            Ok(put) if put > 0 => done += put,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            _ => return Err(PlatformError::Unmapped { usable: done as u64 }),
        }
    }
    Ok(())
}

/// How many bytes from `address` on a debugger may write: all private mappings, and shared ones that are writable.
fn writable_length(maps: &[Mapping], address: u64, length: u64) -> u64 {
    let end = address.saturating_add(length);
    let mut at = address;
    for mapping in maps.iter().filter(|mapping| mapping.end > address) {
        let refused = mapping.shared && !mapping.write;
        if mapping.start > at || at >= end || refused {
            break;
        }
        at = mapping.end;
    }
    at.min(end) - address
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(start: u64, end: u64, write: bool, shared: bool) -> Mapping {
        Mapping { start, end, write, execute: false, shared, offset: 0, path: Default::default(), deleted: false }
    }

    #[test]
    fn what_may_be_written_ends_at_a_gap_or_a_shared_page() {
        let maps = [
            mapping(0x1000, 0x2000, false, false),
            mapping(0x2000, 0x3000, true, true),
            mapping(0x3000, 0x4000, false, true),
            mapping(0x5000, 0x6000, true, false),
        ];
        assert_eq!(writable_length(&maps, 0x1800, 0x1000), 0x1000);
        assert_eq!(writable_length(&maps, 0x1800, 0x2000), 0x1800);
        assert_eq!(writable_length(&maps, 0x3000, 1), 0);
        assert_eq!(writable_length(&maps, 0x4fff, 1), 0);
        assert_eq!(writable_length(&maps, 0x5ff0, 0x20), 0x10);
        assert_eq!(writable_length(&maps, 0x7000, 1), 0);
    }

    #[test]
    fn our_own_memory_is_read_exactly() {
        let own = std::process::id();
        let secret = [0x5au8; 3 * PAGE as usize];
        let maps = proc::maps(own).unwrap();
        // A mapping with a hole behind it: the count must say exactly where the hole begins.
        let last = maps.windows(2).find(|pair| pair[0].end < pair[1].start && pair[0].write).unwrap()[0].clone();
        let file = File::open("/proc/self/mem").unwrap();
        for memory in [None, Some(&file)] {
            let mut copy = vec![0; secret.len()];
            assert_eq!(read(own, memory, secret.as_ptr() as u64, &mut copy), Ok(secret.len()));
            assert_eq!(copy, secret);
            let mut few = [0; FEW];
            assert_eq!(read(own, memory, secret.as_ptr() as u64, &mut few), Ok(FEW));
            assert_eq!(few, [0x5a; FEW]);
            assert_eq!(read(own, memory, last.end - 10, &mut few), Ok(10));
            assert_eq!(read(own, memory, last.end, &mut few), Ok(0));
            assert_eq!(read(own, memory, u64::MAX - 3, &mut few), Ok(0));
        }
    }
}
