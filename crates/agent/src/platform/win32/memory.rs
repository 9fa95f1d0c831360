//! Reading, writing and allocating memory of the program, with the system's own view of what is mapped as the judge.

use super::sys::{self, Failure};
use crate::platform::PlatformError;
use base::VirtAddr;
use std::os::windows::io::OwnedHandle;

/// Bytes of a page.
const PAGE: u64 = 4_096;
/// Bytes to which the system aligns what it allocates.
const GRANULARITY: u64 = 0x1_0000;
/// How far from an instruction a 32-bit displacement reaches, with room for the code around both ends.
const REACH: u64 = 0x7000_0000;

/// Reads as many bytes from `address` on as are mapped.
///
/// A read that the system calls complete is believed where it brought anything else than zeros: Wine gives zeros for pages
/// that are only reserved, so pages of zeros are asked about.
pub fn read(process: &OwnedHandle, address: VirtAddr, buffer: &mut [u8]) -> usize {
    let at = address.get();
    let (_, complete) = sys::read(process, at, buffer);
    let wanted = if complete { first_doubtful_page(at, buffer) } else { Some(0) };
    let Some(sure) = wanted else { return buffer.len() };
    let usable = sure + readable(process, at.wrapping_add(sure as u64), (buffer.len() - sure) as u64);
    if complete {
        return usable;
    }
    let (done, complete) = buffer.get_mut(..usable).map_or((0, false), |part| sys::read(process, at, part));
    if complete { usable } else { done }
}

/// Offset of the first page, or part of one, that holds nothing but zeros.
fn first_doubtful_page(address: u64, buffer: &[u8]) -> Option<usize> {
    let mut offset = 0;
    let mut room = (PAGE - address % PAGE) as usize;
    while let Some(rest) = buffer.get(offset..).filter(|rest| !rest.is_empty()) {
        let page = rest.get(..room).unwrap_or(rest);
        if page.iter().all(|byte| *byte == 0) {
            return Some(offset);
        }
        offset += page.len();
        room = PAGE as usize;
    }
    None
}

/// How many of `length` bytes from `address` on the program could read.
fn readable(process: &OwnedHandle, address: u64, length: u64) -> usize {
    stretch(process, address, length, |region| region.readable)
}

/// How many of `length` bytes from `address` on lie in regions that are as wanted.
fn stretch(process: &OwnedHandle, address: u64, length: u64, wanted: impl Fn(&sys::Region) -> bool) -> usize {
    let mut done = 0;
    while done < length {
        let Some(at) = address.checked_add(done) else { break };
        let Some(region) = sys::region(process, at).filter(&wanted) else { break };
        let Some(end) = region.start.checked_add(region.length).filter(|end| *end > at) else { break };
        done += end - at;
    }
    usize::try_from(done.min(length)).unwrap_or(usize::MAX)
}

/// Writes all bytes, or none. `mapped` says that the place is known to be mapped; Wine writes to pages that are not.
pub fn write(process: &OwnedHandle, address: VirtAddr, bytes: &[u8], mapped: bool) -> Result<(), PlatformError> {
    let at = address.get();
    if !mapped {
        let usable = stretch(process, at, bytes.len() as u64, |region| region.committed);
        if usable < bytes.len() {
            return Err(PlatformError::Unmapped { usable: usable as u64 });
        }
    }
    if sys::write(process, at, bytes).is_err() {
        write_protected(process, at, bytes)?;
    }
    sys::flush_instructions(process, at, bytes.len())?;
    Ok(())
}

/// Writes to pages whose protection forbids it, region by region, and sets each one's own protection again.
fn write_protected(process: &OwnedHandle, address: u64, bytes: &[u8]) -> Result<(), Failure> {
    let mut done = 0usize;
    while let Some(rest) = bytes.get(done..).filter(|rest| !rest.is_empty()) {
        let at = address.wrapping_add(done as u64);
        let room =
            sys::region(process, at).map_or(0, |region| region.start.wrapping_add(region.length).wrapping_sub(at));
        let part = rest.get(..usize::try_from(room).unwrap_or(usize::MAX)).unwrap_or(rest);
        if part.is_empty() {
            return Err(Failure { call: "VirtualQueryEx", code: 487 });
        }
        let before = sys::protect(process, at, part.len(), sys::EVERYTHING)?;
        let written = sys::write(process, at, part);
        sys::protect(process, at, part.len(), before)?;
        written?;
        done += part.len();
    }
    Ok(())
}

/// Maps executable memory within reach of `near`: anywhere in a 32-bit program, where displacements wrap.
pub fn allocate_near(
    process: &OwnedHandle,
    near: VirtAddr,
    length: u64,
    anywhere: bool,
) -> Result<VirtAddr, PlatformError> {
    let size = usize::try_from(length).map_err(|_| PlatformError::Unsupported("so much executable memory"))?;
    if anywhere {
        return Ok(VirtAddr::new(sys::allocate(process, 0, size)?));
    }
    let near = near.get();
    let above = free_places(process, near, length, near.saturating_add(REACH), true);
    let below = free_places(process, near, length, near.saturating_sub(REACH), false);
    for place in above.into_iter().chain(below) {
        // Another thread of the system may have taken the place meanwhile.
        if let Ok(at) = sys::allocate(process, place, size) {
            return Ok(VirtAddr::new(at));
        }
    }
    Err(PlatformError::Os {
        call: "VirtualAllocEx",
        message: "no free address space within 2 GiB of the code".to_owned(),
    })
}

/// Up to four free places between `from` and `limit`, the nearest first.
fn free_places(process: &OwnedHandle, from: u64, length: u64, limit: u64, upwards: bool) -> Vec<u64> {
    let mut found = Vec::new();
    let mut at = from;
    while found.len() < 4 && (if upwards { at < limit } else { at > limit }) {
        let Some(region) = sys::region(process, at) else { break };
        let end = region.start.saturating_add(region.length);
        if region.free {
            let place = if upwards {
                region.start.max(from).next_multiple_of(GRANULARITY)
            } else {
                end.min(from).saturating_sub(length) / GRANULARITY * GRANULARITY
            };
            if place >= region.start.max(GRANULARITY) && place.saturating_add(length) <= end {
                found.push(place);
            }
        }
        at = if upwards { end } else { region.start.saturating_sub(1) };
        if end <= region.start || at == 0 {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_zeros_are_doubtful() {
        let mut bytes = vec![1; 3 * 4096];
        assert_eq!(first_doubtful_page(0x1000, &bytes), None);
        bytes[4096..8192].fill(0);
        assert_eq!(first_doubtful_page(0x1000, &bytes), Some(4096));
        // From the middle of a page on, its second half is a page's part of its own.
        assert_eq!(first_doubtful_page(0x1800, &bytes), Some(6144));
        assert_eq!(first_doubtful_page(0x1ffc, &[0; 4]), Some(0));
        assert_eq!(first_doubtful_page(0x1000, &[]), None);
    }
}
