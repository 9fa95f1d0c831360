//! System calls that a held thread makes for us, to map scratch memory into the program.

use super::debuggee::Debuggee;
use super::memory::{self, PAGE};
use super::proc::{self, Mapping};
use super::wake::Wake;
use super::{os_error, regs};
use crate::platform::PlatformError;
use code::x86::Bitness;
use nix::errno::Errno;
use nix::libc;
use std::path::Path;

/// Lowest address asked for: kernels keep the first 64 KiB free (`vm.mmap_min_addr`), and null pointers with an offset
/// should go on faulting.
const LOWEST: u64 = 0x10_0000;
/// Farthest distance of scratch memory from the code it serves: 32-bit displacements reach 2 GiB, from every place in a
/// module to every place in the scratch memory.
const REACH: u64 = (1 << 31) - (1 << 28);
/// Places tried before giving up.
const TRIES: usize = 8;
/// Entry of the auxiliary vector: the entry point, where code certainly is (`AT_ENTRY`).
const AUX_ENTRY: u64 = 9;

/// Numbers and arguments of the calls in the two worlds.
struct Call {
    number_64: u64,
    number_32: u64,
    arguments: [u64; 6],
}

/// Maps executable memory within reach of `near`.
pub fn map_code(program: &mut Debuggee, wake: &Wake, near: u64, length: u64) -> Result<u64, PlatformError> {
    let length = length.max(1).next_multiple_of(PAGE);
    let maps = maps_of(program)?;
    let mut last =
        PlatformError::Os { call: "mmap", message: "there is no free place near the program's code".to_owned() };
    for place in places(&maps, near, length).into_iter().take(TRIES) {
        let protection = libc::PROT_READ | libc::PROT_EXEC;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
        let arguments = [place, length, protection as u64, flags as u64, u64::MAX, 0];
        let call = Call { number_64: 9, number_32: 192, arguments };
        match make(program, wake, &call)? {
            Ok(address) if address == place => return Ok(address),
            Ok(elsewhere) => {
                // A kernel before 4.17 takes the place as a wish only.
                unmap(program, wake, elsewhere, length)?;
            }
            Err(error) => last = os_error("mmap in the program", &error.into()),
        }
    }
    Err(last)
}

/// Unmaps what [`map_code`] mapped.
pub fn unmap(program: &mut Debuggee, wake: &Wake, address: u64, length: u64) -> Result<(), PlatformError> {
    let arguments = [address, length.max(1).next_multiple_of(PAGE), 0, 0, 0, 0];
    let call = Call { number_64: 11, number_32: 91, arguments };
    make(program, wake, &call)?.map(|_| ()).map_err(|error| os_error("munmap in the program", &error.into()))
}

/// Has a thread make a system call; the outer result says whether it was made, the inner one is the call's own.
fn make(program: &mut Debuggee, wake: &Wake, call: &Call) -> Result<Result<u64, Errno>, PlatformError> {
    let thread = program.settle_one(wake)?;
    if proc::status(thread).is_some_and(|status| status.filtered) {
        return Err(PlatformError::Permission(
            "the program filters its system calls (seccomp) and could be ended for one that we make in it".to_owned(),
        ));
    }
    let before = program.raw(thread)?;
    let bitness = regs::bitness(&before);
    let (place, planted) = instruction(program, bitness)?;
    let mut asked = before;
    asked.rip = place;
    asked.orig_rax = u64::MAX;
    let [a, b, c, d, e, f] = call.arguments;
    match bitness {
        Bitness::Bits64 => {
            asked.rax = call.number_64;
            (asked.rdi, asked.rsi, asked.rdx, asked.r10, asked.r8, asked.r9) = (a, b, c, d, e, f);
        }
        Bitness::Bits32 => {
            asked.rax = call.number_32;
            (asked.rbx, asked.rcx, asked.rdx, asked.rsi, asked.rdi, asked.rbp) = (a, b, c, d, bitness.wrap(e), f);
        }
    }
    let made = program.set_raw_aside(thread, asked).and_then(|()| program.step_aside(wake, thread));
    let after = program.raw(thread);
    if let Some(bytes) = planted {
        memory::write(program.witness(), program.memory.as_ref(), place, &bytes)?;
    }
    program.set_raw_aside(thread, before)?;
    program.settle_again(wake, thread)?;
    made?;
    let after = after?;
    if bitness.wrap(after.rip) != place + 2 {
        return Err(PlatformError::Os { call: "a call in the program", message: "it was not executed".to_owned() });
    }
    let result = match bitness {
        Bitness::Bits64 => after.rax as i64,
        Bitness::Bits32 => i64::from(after.rax as i32),
    };
    // Errors are the last page of numbers; addresses of 32-bit programs may be negative too.
    Ok(match i32::try_from(result) {
        Ok(error @ -4095..=-1) => Err(Errno::from_raw(-error)),
        _ => Ok(bitness.wrap(after.rax)),
    })
}

/// Where a system call instruction is: in the vdso if there is one, else planted at the entry point, with the bytes to
/// put back. All threads are held.
fn instruction(program: &Debuggee, bitness: Bitness) -> Result<(u64, Option<Vec<u8>>), PlatformError> {
    let wanted: [u8; 2] = match bitness {
        Bitness::Bits64 => [0x0f, 0x05],
        Bitness::Bits32 => [0xcd, 0x80],
    };
    let (thread, file) = (program.witness(), program.memory.as_ref());
    let vdso = maps_of(program)?.into_iter().find(|mapping| mapping.path == Path::new("[vdso]"));
    if let Some(vdso) = vdso.filter(|_| bitness == program.bitness) {
        let mut bytes = vec![0; usize::try_from(vdso.end - vdso.start).unwrap_or(0)];
        let got = memory::read(thread, file, vdso.start, &mut bytes)?;
        bytes.truncate(got);
        if let Some(offset) = bytes.windows(2).position(|pair| pair == wanted) {
            return Ok((vdso.start + offset as u64, None));
        }
    }
    let entry = proc::auxiliary(thread, program.bitness, AUX_ENTRY).unwrap_or(0);
    let mut old = vec![0; wanted.len()];
    let got = memory::read(thread, file, entry, &mut old)?;
    if got < old.len() {
        return Err(PlatformError::Unmapped { usable: got as u64 });
    }
    memory::write(thread, file, entry, &wanted)?;
    Ok((entry, Some(old)))
}

/// Free places for `length` bytes in reach, the nearest below `near` first: what is above is often where the heap or the
/// stack is going to grow.
fn places(maps: &[Mapping], near: u64, length: u64) -> Vec<u64> {
    let (lowest, highest) = (near.saturating_sub(REACH).max(LOWEST), near.saturating_add(REACH));
    let ends = std::iter::once(0).chain(maps.iter().map(|mapping| mapping.end));
    let stack = Path::new("[stack]");
    let mut below = Vec::new();
    let mut above = Vec::new();
    for (end, next) in ends.zip(maps) {
        let start = end.max(lowest).next_multiple_of(PAGE);
        // Below a stack is where it grows to.
        if next.path == stack || next.start > highest || start.saturating_add(length) > next.start {
            continue;
        }
        if next.start <= near {
            below.push(next.start - length);
        } else {
            above.push(next.start - length);
        }
    }
    below.reverse();
    below.extend(above);
    below
}

fn maps_of(program: &Debuggee) -> Result<Vec<Mapping>, PlatformError> {
    proc::maps(program.witness()).map_err(|error| os_error("reading /proc/PID/maps", &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_places_are_near_and_not_where_something_grows() {
        let maps = proc::parse_maps(
            b"400000-401000 r-xp 0 0:0 1 /a\n480000-481000 rw-p 0 0:0 1 /a\n500000-600000 rw-p 0 0:0 0 [heap]\n\
              7f0000000000-7f0000001000 r-xp 0 0:0 2 /b\n7ffd00000000-7ffd00010000 rw-p 0 0:0 0 [stack]\n",
        );
        assert_eq!(places(&maps, 0x40_0000, 0x1000), [0x3f_f000, 0x47_f000, 0x4f_f000]);
        assert_eq!(places(&maps, 0x48_0000, 0x1000), [0x47_f000, 0x3f_f000, 0x4f_f000]);
        assert_eq!(places(&maps, 0x7f00_0000_0000, 0x2000), [0x7eff_ffff_e000]);
        assert_eq!(places(&maps, 0x7ffd_0000_0000, 0x1000), Vec::<u64>::new());
        // 0x300000 bytes fit below 0x400000 (from 0x100000 on), one page more does not.
        assert_eq!(places(&maps, 0x40_0000, 0x30_0000), [0x10_0000]);
        assert_eq!(places(&maps, 0x40_0000, 0x30_1000), Vec::<u64>::new());
    }
}
