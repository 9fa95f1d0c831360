//! The registers of a held thread as Windows gives them: read once, changed here, written back when the thread goes on.

use super::sys::{self, Context32, Failure};
use crate::registers::{DebugRegisters, Registers};
use base::VirtAddr;
use code::x86::Bitness;
use std::os::windows::io::OwnedHandle;

#[cfg(target_arch = "x86_64")]
use super::sys::Context64;

/// The trap flag in EFLAGS (Intel SDM volume 1, section 3.4.3.3).
pub const TRAP_FLAG: u64 = 1 << 8;

/// Groups of registers, as `CONTEXT_*` has them for both word sizes: control, integer and segments.
const GENERAL: u32 = 7;
/// Floating point: the old form in 32-bit sets, the FXSAVE image in 64-bit ones.
#[cfg(target_arch = "x86_64")]
const FLOATING: u32 = 8;
/// Debug registers.
const DEBUG: u32 = 0x10;
/// The FXSAVE image of 32-bit sets.
const EXTENDED: u32 = 0x20;
/// Marks a 32-bit set.
const KIND_32: u32 = 0x1_0000;
/// Marks a 64-bit set.
#[cfg(target_arch = "x86_64")]
const KIND_64: u32 = 0x10_0000;

enum Set {
    Of32(Box<Context32>),
    #[cfg(target_arch = "x86_64")]
    Of64(Box<Context64>),
}

/// One thread's registers, of which only some groups have been read, and some changed.
pub struct Context {
    set: Set,
    loaded: u32,
    changed: u32,
}

impl Context {
    /// Knows nothing yet.
    pub fn new(bitness: Bitness) -> Self {
        let set = match bitness {
            #[cfg(target_arch = "x86_64")]
            Bitness::Bits64 => Set::Of64(Box::default()),
            _ => Set::Of32(Box::default()),
        };
        Self { set, loaded: 0, changed: 0 }
    }

    /// Reads groups that have not been read yet.
    fn load(&mut self, thread: &OwnedHandle, groups: u32) -> Result<(), Failure> {
        let missing = groups & !self.loaded;
        if missing == 0 {
            return Ok(());
        }
        if missing & DEBUG != 0 {
            self.settle(thread)?;
        }
        match &mut self.set {
            Set::Of32(context) => {
                // A call fills in the groups it is asked for and leaves the others as they are.
                context.ContextFlags = KIND_32 | missing;
                sys::get_context32(thread, context)?;
            }
            #[cfg(target_arch = "x86_64")]
            Set::Of64(context) => {
                context.0.ContextFlags = KIND_64 | missing;
                sys::get_context64(thread, context)?;
            }
        }
        self.loaded |= missing;
        Ok(())
    }

    /// Asks for the general registers, which waits until a suspended thread has come to rest. Wine takes the debug registers
    /// with ptrace, and a thread that is on its way to its suspension loses it when that comes between.
    pub fn settle(&mut self, thread: &OwnedHandle) -> Result<(), Failure> {
        self.load(thread, GENERAL)
    }

    /// Whether the thread is known to rest.
    pub fn is_settled(&self) -> bool {
        self.loaded & GENERAL != 0
    }

    /// Writes what was changed.
    pub fn store(&mut self, thread: &OwnedHandle) -> Result<(), Failure> {
        if self.changed == 0 {
            return Ok(());
        }
        if self.changed & DEBUG != 0 {
            self.settle(thread)?;
        }
        match &mut self.set {
            Set::Of32(context) => {
                context.ContextFlags = KIND_32 | self.changed;
                sys::set_context32(thread, context)?;
            }
            #[cfg(target_arch = "x86_64")]
            Set::Of64(context) => {
                context.0.ContextFlags = KIND_64 | self.changed;
                sys::set_context64(thread, context)?;
            }
        }
        self.changed = 0;
        Ok(())
    }

    /// Integer registers; `segment_base` is where the thread's environment block lies.
    pub fn registers(&mut self, thread: &OwnedHandle, segment_base: u64) -> Result<Registers, Failure> {
        self.load(thread, GENERAL)?;
        Ok(match &self.set {
            Set::Of32(c) => {
                let mut general = [0; 16];
                let values = [c.Eax, c.Ecx, c.Edx, c.Ebx, c.Esp, c.Ebp, c.Esi, c.Edi];
                for (to, from) in general.iter_mut().zip(values) {
                    *to = u64::from(from);
                }
                Registers {
                    bitness: Bitness::Bits32,
                    general,
                    pc: VirtAddr::new(u64::from(c.Eip)),
                    flags: u64::from(c.EFlags),
                    segments: [c.SegCs, c.SegSs, c.SegDs, c.SegEs, c.SegFs, c.SegGs].map(selector),
                    fs_base: segment_base,
                    gs_base: 0,
                }
            }
            #[cfg(target_arch = "x86_64")]
            Set::Of64(c) => {
                let c = &c.0;
                Registers {
                    bitness: Bitness::Bits64,
                    general: [
                        c.Rax, c.Rcx, c.Rdx, c.Rbx, c.Rsp, c.Rbp, c.Rsi, c.Rdi, c.R8, c.R9, c.R10, c.R11, c.R12, c.R13,
                        c.R14, c.R15,
                    ],
                    pc: VirtAddr::new(c.Rip),
                    flags: u64::from(c.EFlags),
                    segments: [c.SegCs, c.SegSs, c.SegDs, c.SegEs, c.SegFs, c.SegGs],
                    fs_base: 0,
                    gs_base: segment_base,
                }
            }
        })
    }

    /// Sets the integer registers.
    pub fn set_registers(&mut self, thread: &OwnedHandle, registers: &Registers) -> Result<(), Failure> {
        self.load(thread, GENERAL)?;
        let [cs, ss, ds, es, fs, gs] = registers.segments;
        match &mut self.set {
            Set::Of32(c) => {
                let [eax, ecx, edx, ebx, esp, ebp, esi, edi, ..] = registers.general.map(low);
                (c.Eax, c.Ecx, c.Edx, c.Ebx) = (eax, ecx, edx, ebx);
                (c.Esp, c.Ebp, c.Esi, c.Edi) = (esp, ebp, esi, edi);
                c.Eip = low(registers.pc.get());
                c.EFlags = low(registers.flags);
                (c.SegCs, c.SegSs, c.SegDs) = (u32::from(cs), u32::from(ss), u32::from(ds));
                (c.SegEs, c.SegFs, c.SegGs) = (u32::from(es), u32::from(fs), u32::from(gs));
            }
            #[cfg(target_arch = "x86_64")]
            Set::Of64(c) => {
                let c = &mut c.0;
                [
                    c.Rax, c.Rcx, c.Rdx, c.Rbx, c.Rsp, c.Rbp, c.Rsi, c.Rdi, c.R8, c.R9, c.R10, c.R11, c.R12, c.R13,
                    c.R14, c.R15,
                ] = registers.general;
                c.Rip = registers.pc.get();
                c.EFlags = low(registers.flags);
                (c.SegCs, c.SegSs, c.SegDs) = (cs, ss, ds);
                (c.SegEs, c.SegFs, c.SegGs) = (es, fs, gs);
            }
        }
        self.changed |= GENERAL;
        Ok(())
    }

    /// The program counter.
    pub fn pc(&mut self, thread: &OwnedHandle) -> Result<VirtAddr, Failure> {
        self.load(thread, GENERAL)?;
        Ok(VirtAddr::new(match &self.set {
            Set::Of32(c) => u64::from(c.Eip),
            #[cfg(target_arch = "x86_64")]
            Set::Of64(c) => c.0.Rip,
        }))
    }

    /// Sets the program counter.
    pub fn set_pc(&mut self, thread: &OwnedHandle, pc: VirtAddr) -> Result<(), Failure> {
        self.load(thread, GENERAL)?;
        match &mut self.set {
            Set::Of32(c) => c.Eip = low(pc.get()),
            #[cfg(target_arch = "x86_64")]
            Set::Of64(c) => c.0.Rip = pc.get(),
        }
        self.changed |= GENERAL;
        Ok(())
    }

    /// Sets or clears the trap flag.
    pub fn set_trap(&mut self, thread: &OwnedHandle, on: bool) -> Result<(), Failure> {
        self.load(thread, GENERAL)?;
        let flags = match &mut self.set {
            Set::Of32(c) => &mut c.EFlags,
            #[cfg(target_arch = "x86_64")]
            Set::Of64(c) => &mut c.0.EFlags,
        };
        let wanted = if on { *flags | low(TRAP_FLAG) } else { *flags & !low(TRAP_FLAG) };
        if wanted != *flags {
            *flags = wanted;
            self.changed |= GENERAL;
        }
        Ok(())
    }

    /// The debug registers.
    pub fn debug(&mut self, thread: &OwnedHandle) -> Result<DebugRegisters, Failure> {
        self.load(thread, DEBUG)?;
        Ok(match &self.set {
            Set::Of32(c) => DebugRegisters {
                address: [c.Dr0, c.Dr1, c.Dr2, c.Dr3].map(u64::from),
                dr6: u64::from(c.Dr6),
                dr7: u64::from(c.Dr7),
            },
            #[cfg(target_arch = "x86_64")]
            Set::Of64(c) => {
                DebugRegisters { address: [c.0.Dr0, c.0.Dr1, c.0.Dr2, c.0.Dr3], dr6: c.0.Dr6, dr7: c.0.Dr7 }
            }
        })
    }

    /// Sets all debug registers, DR6 included.
    pub fn set_debug(&mut self, registers: &DebugRegisters) {
        match &mut self.set {
            Set::Of32(c) => {
                [c.Dr0, c.Dr1, c.Dr2, c.Dr3] = registers.address.map(low);
                c.Dr6 = low(registers.dr6);
                c.Dr7 = low(registers.dr7);
            }
            #[cfg(target_arch = "x86_64")]
            Set::Of64(c) => {
                [c.0.Dr0, c.0.Dr1, c.0.Dr2, c.0.Dr3] = registers.address;
                c.0.Dr6 = registers.dr6;
                c.0.Dr7 = registers.dr7;
            }
        }
        self.loaded |= DEBUG;
        self.changed |= DEBUG;
    }

    /// The FXSAVE image.
    pub fn fxsave(&mut self, thread: &OwnedHandle) -> Result<Vec<u8>, Failure> {
        match self.set {
            Set::Of32(_) => self.load(thread, EXTENDED)?,
            #[cfg(target_arch = "x86_64")]
            Set::Of64(_) => self.load(thread, FLOATING)?,
        }
        Ok(match &self.set {
            Set::Of32(c) => c.ExtendedRegisters.to_vec(),
            #[cfg(target_arch = "x86_64")]
            Set::Of64(c) => sys::float_image(c).to_vec(),
        })
    }
}

/// The lower half: all there is of a register of a 32-bit program.
#[allow(clippy::cast_possible_truncation, reason = "the upper half is what is meant to be cut")]
fn low(value: u64) -> u32 {
    value as u32
}

/// Selectors have 16 bits; the upper half of the field is not defined.
#[allow(clippy::cast_possible_truncation, reason = "the upper half is what is meant to be cut")]
fn selector(value: u32) -> u16 {
    value as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The layout is the system's; a wrong one would corrupt the program.
    #[test]
    fn register_sets_have_the_documented_sizes() {
        // winnt.h: CONTEXT of x86 is 716 bytes (0x2CC), of x64 1,232 (0x4D0), aligned to 16.
        assert_eq!(size_of::<Context32>(), 0x2cc);
        #[cfg(target_arch = "x86_64")]
        assert_eq!((size_of::<Context64>(), align_of::<Context64>()), (0x4d0, 16));
    }

    #[test]
    fn only_changed_groups_are_written() {
        let mut context = Context::new(Bitness::Bits32);
        assert_eq!((context.loaded, context.changed), (0, 0));
        context.set_debug(&DebugRegisters { address: [1, 2, 3, 4], dr6: 0, dr7: 0x55 });
        assert_eq!((context.loaded, context.changed), (DEBUG, DEBUG));
    }
}
