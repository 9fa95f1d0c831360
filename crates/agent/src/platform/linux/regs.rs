//! Registers of a held thread: the kernel's layouts to ours and back.

use super::{os_error, sys};
use crate::platform::PlatformError;
use crate::registers::{DebugRegisters, Registers};
use base::VirtAddr;
use code::x86::Bitness;
use nix::errno::Errno;
use nix::libc::{user, user_regs_struct};
use nix::sys::ptrace;
use nix::unistd::Pid;
use std::ffi::{c_long, c_ulonglong};

/// The code segment that Linux gives 32-bit programs (`__USER32_CS`).
const CODE_32: u64 = 0x23;
/// Says that no system call is to be restarted.
const NO_CALL: c_ulonglong = u64::MAX;

/// All registers, as the kernel has them.
pub fn raw(thread: u32) -> Result<user_regs_struct, PlatformError> {
    ptrace::getregs(pid(thread)).map_err(|error| failed("PTRACE_GETREGS", thread, error))
}

/// Sets all registers, as the kernel has them.
pub fn set_raw(thread: u32, raw: user_regs_struct) -> Result<(), PlatformError> {
    ptrace::setregs(pid(thread), raw).map_err(|error| match error {
        Errno::EIO | Errno::EINVAL => PlatformError::Os {
            call: "PTRACE_SETREGS",
            message: "the processor has no such segment or address".to_owned(),
        },
        error => failed("PTRACE_SETREGS", thread, error),
    })
}

/// Sets the program counter alone. `raw` is what the registers are now, and is kept up to date.
pub fn set_pc(thread: u32, raw: &mut user_regs_struct, pc: u64) -> Result<(), PlatformError> {
    poke(thread, std::mem::offset_of!(user, regs) + std::mem::offset_of!(user_regs_struct, rip), pc)?;
    raw.rip = pc;
    if (raw.orig_rax as i64) >= 0 {
        // In a system call: the kernel would move the program counter to repeat it.
        poke(thread, std::mem::offset_of!(user, regs) + std::mem::offset_of!(user_regs_struct, orig_rax), NO_CALL)?;
        raw.orig_rax = NO_CALL;
    }
    Ok(())
}

/// The width of the code that runs.
pub fn bitness(raw: &user_regs_struct) -> Bitness {
    if raw.cs == CODE_32 { Bitness::Bits32 } else { Bitness::Bits64 }
}

/// The kernel's registers as ours.
pub fn decode(raw: &user_regs_struct) -> Registers {
    let bitness = bitness(raw);
    let mut general = [
        raw.rax, raw.rcx, raw.rdx, raw.rbx, raw.rsp, raw.rbp, raw.rsi, raw.rdi, raw.r8, raw.r9, raw.r10, raw.r11,
        raw.r12, raw.r13, raw.r14, raw.r15,
    ];
    if bitness == Bitness::Bits32 {
        for (number, value) in general.iter_mut().enumerate() {
            *value = if number < 8 { bitness.wrap(*value) } else { 0 };
        }
    }
    Registers {
        bitness,
        general,
        pc: VirtAddr::new(bitness.wrap(raw.rip)),
        flags: raw.eflags,
        segments: [raw.cs, raw.ss, raw.ds, raw.es, raw.fs, raw.gs].map(|selector| selector as u16),
        fs_base: raw.fs_base,
        gs_base: raw.gs_base,
    }
}

/// Puts ours over the kernel's: only what differs from what it said is changed.
pub fn encode(registers: &Registers, raw: &user_regs_struct) -> user_regs_struct {
    let before = decode(raw);
    let mut new = *raw;
    let slots = [
        &mut new.rax,
        &mut new.rcx,
        &mut new.rdx,
        &mut new.rbx,
        &mut new.rsp,
        &mut new.rbp,
        &mut new.rsi,
        &mut new.rdi,
        &mut new.r8,
        &mut new.r9,
        &mut new.r10,
        &mut new.r11,
        &mut new.r12,
        &mut new.r13,
        &mut new.r14,
        &mut new.r15,
    ];
    for ((slot, value), old) in slots.into_iter().zip(registers.general).zip(before.general) {
        if value != old {
            *slot = value;
        }
    }
    let [cs, ss, ds, es, fs, gs] = registers.segments.map(c_ulonglong::from);
    (new.cs, new.ss, new.ds, new.es, new.fs, new.gs) = (cs, ss, ds, es, fs, gs);
    (new.fs_base, new.gs_base, new.eflags) = (registers.fs_base, registers.gs_base, registers.flags);
    if registers.pc != before.pc {
        new.rip = registers.pc.get();
        new.orig_rax = NO_CALL;
    }
    new
}

/// DR0 to DR3, DR6 and DR7.
pub fn debug(thread: u32) -> Result<DebugRegisters, PlatformError> {
    let mut address = [0; 4];
    for (slot, value) in address.iter_mut().enumerate() {
        *value = debug_register(thread, slot)?;
    }
    Ok(DebugRegisters { address, dr6: debug_register(thread, 6)?, dr7: debug_register(thread, 7)? })
}

/// Sets DR0 to DR3 and DR7. The kernel checks each address against what DR7 says of it, so DR7 goes off first and on last.
pub fn set_debug(thread: u32, registers: &DebugRegisters) -> Result<(), PlatformError> {
    let now = debug(thread)?;
    if now.dr7 == registers.dr7 && now.address == registers.address {
        return Ok(());
    }
    if now.dr7 != 0 {
        poke_debug(thread, 7, 0)?;
    }
    for (slot, address) in registers.address.iter().enumerate() {
        poke_debug(thread, slot, *address)?;
    }
    poke_debug(thread, 7, registers.dr7)
}

fn poke_debug(thread: u32, number: usize, value: u64) -> Result<(), PlatformError> {
    let place = std::ptr::without_provenance_mut(debug_offset(number));
    ptrace::write_user(pid(thread), place, value as c_long).map_err(|error| match error {
        Errno::ENOSPC => PlatformError::Os {
            call: "setting a debug register",
            message: "another program uses the processor's debug registers (perf does)".to_owned(),
        },
        Errno::EINVAL => PlatformError::Os {
            call: "setting a debug register",
            message: "the kernel watches no such address: it must be one of the program's, aligned to its size"
                .to_owned(),
        },
        error => failed("PTRACE_POKEUSER", thread, error),
    })
}

/// DR6, which is cleared.
pub fn take_dr6(thread: u32) -> Result<u64, PlatformError> {
    let dr6 = debug_register(thread, 6)?;
    if dr6 != 0 {
        poke_debug(thread, 6, 0)?;
    }
    Ok(dr6)
}

/// DR7.
pub fn dr7(thread: u32) -> Result<u64, PlatformError> {
    debug_register(thread, 7)
}

/// The FXSAVE image.
pub fn fxsave(thread: u32) -> Result<Vec<u8>, PlatformError> {
    sys::fxsave(thread).map_err(|error| failed_io("PTRACE_GETFPREGS", thread, &error))
}

fn debug_register(thread: u32, number: usize) -> Result<u64, PlatformError> {
    ptrace::read_user(pid(thread), std::ptr::without_provenance_mut(debug_offset(number)))
        .map(|value| value as u64)
        .map_err(|error| failed("PTRACE_PEEKUSER", thread, error))
}

fn debug_offset(number: usize) -> usize {
    std::mem::offset_of!(user, u_debugreg) + number * 8
}

fn poke(thread: u32, offset: usize, value: u64) -> Result<(), PlatformError> {
    let place = std::ptr::without_provenance_mut(offset);
    ptrace::write_user(pid(thread), place, value as c_long).map_err(|error| failed("PTRACE_POKEUSER", thread, error))
}

fn pid(thread: u32) -> Pid {
    Pid::from_raw(thread as i32)
}

/// A refused request about a thread: one that is gone is said to be gone.
pub fn failed(call: &'static str, thread: u32, error: Errno) -> PlatformError {
    failed_io(call, thread, &error.into())
}

/// The same for `std`'s errors.
pub fn failed_io(call: &'static str, thread: u32, error: &std::io::Error) -> PlatformError {
    match error.raw_os_error() {
        Some(nix::libc::ESRCH) => PlatformError::NoThread(thread),
        _ => os_error(call, error),
    }
}
