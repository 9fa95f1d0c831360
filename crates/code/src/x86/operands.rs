//! Which memory an instruction touches, given the registers it starts with.

use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register, UsedMemory};

use super::decode::{is_repeated_string, raw};
use super::{Bitness, DecodeError, Regs};

/// Memory that an instruction reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemAccess {
    /// Linear address of the first byte.
    pub address: u64,
    /// Bytes; never 0.
    pub size: u64,
    /// It is read.
    pub read: bool,
    /// It is written.
    pub write: bool,
    /// Only under a condition that was not evaluated (`cmov`, `cmpxchg`, masked moves).
    pub conditional: bool,
}

/// Whether two ranges of addresses share a byte; an empty one shares none.
pub(super) fn overlap(a: u64, a_size: u64, b: u64, b_size: u64) -> bool {
    let (Some(a_more), Some(b_more)) = (a_size.checked_sub(1), b_size.checked_sub(1)) else {
        return false;
    };
    a <= b.saturating_add(b_more) && b <= a.saturating_add(a_more)
}

/// A memory operand whose place could not be computed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownAccess {
    /// It is read.
    pub read: bool,
    /// It is written.
    pub write: bool,
    /// What was missing.
    pub why: String,
}

/// All memory operands of an instruction, implied ones (stack, string) included.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Accesses {
    /// Those with a known place.
    pub known: Vec<MemAccess>,
    /// Those without.
    pub unknown: Vec<UnknownAccess>,
}

/// The memory that the instruction at the start of `bytes` touches when it is executed at `ip` with these registers.
/// Of a `rep` string instruction it is the next element, or nothing when the count is 0.
///
/// # Errors
/// [`DecodeError`]: the bytes are no instruction.
pub fn memory_accesses(bytes: &[u8], ip: u64, bits: Bitness, regs: &Regs) -> Result<Accesses, DecodeError> {
    let (instr, _) = raw(bytes, ip, bits)?;
    let value = |register| register_value(register, bits, regs);
    if is_repeated_string(&instr) && value(count_register(&instr, bits)) == Some(0) {
        return Ok(Accesses::default());
    }
    Ok(accesses(&instr, bits, &value))
}

/// As [`memory_accesses`], of a decoded instruction with any source of register values; a `rep` count is not looked at.
pub(super) fn accesses(instr: &Instruction, bits: Bitness, value: &dyn Fn(Register) -> Option<u64>) -> Accesses {
    let mut out = Accesses::default();
    for memory in InstructionInfoFactory::new().info(instr).used_memory() {
        let (read, write, conditional) = match memory.access() {
            OpAccess::Read => (true, false, false),
            OpAccess::CondRead => (true, false, true),
            OpAccess::Write => (false, true, false),
            OpAccess::CondWrite => (false, true, true),
            OpAccess::ReadWrite => (true, true, false),
            OpAccess::ReadCondWrite => (true, true, true),
            OpAccess::None | OpAccess::NoMemAccess => continue,
        };
        match place(instr, memory, bits, value) {
            Ok((address, size)) => out.known.push(MemAccess { address, size, read, write, conditional }),
            Err(why) => out.unknown.push(UnknownAccess { read, write, why }),
        }
    }
    out
}

fn place(
    instr: &Instruction,
    memory: &UsedMemory,
    bits: Bitness,
    value: &dyn Fn(Register) -> Option<u64>,
) -> Result<(u64, u64), String> {
    let kind = match memory.memory_size().size() {
        // The library leaves the size of a repeated string instruction open; its element is what one iteration touches.
        0 => instr.memory_size(),
        _ => memory.memory_size(),
    };
    let size = match kind.size() {
        0 => return Err("the size of the operand depends on the state of the processor".into()),
        _ if kind.is_broadcast() => kind.element_size(),
        size => size,
    };
    let mut missing = None;
    let address = memory.virtual_address(0, |register, _, vector_element| {
        let found = match register {
            _ if vector_element != 0 => None,
            Register::ES | Register::CS | Register::SS | Register::DS => Some(0),
            other => value(other),
        };
        if found.is_none() {
            missing = Some(register);
        }
        found
    });
    let Some(address) = address else {
        let name = missing.and_then(|r| name(r, bits));
        return Err(match name {
            Some(name) => format!("the value of {name} before the instruction is not known"),
            None => "an address register of the instruction is not available".into(),
        });
    };
    let beyond =
        bit_string_offset(instr, size as u64, value).ok_or("the bit offset before the instruction is not known")?;
    Ok((bits.wrap(address.wrapping_add(beyond)), size as u64))
}

/// `bt`, `bts`, `btr`, `btc` with a bit offset in a register reach beyond their operand, in steps of the operand size.
fn bit_string_offset(instr: &Instruction, size: u64, value: &dyn Fn(Register) -> Option<u64>) -> Option<u64> {
    if !matches!(instr.mnemonic(), Mnemonic::Bt | Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc)
        || instr.op0_kind() != OpKind::Memory
        || instr.op1_kind() != OpKind::Register
    {
        return Some(0);
    }
    let raw = value(instr.op1_register())?;
    let bit = match size {
        2 => i64::from(raw as i16),
        4 => i64::from(raw as i32),
        _ => raw as i64,
    };
    Some((bit.div_euclid(size as i64 * 8) * size as i64) as u64)
}

/// Value of a register of the decoder library, asked by name and cut to its size.
pub(super) fn register_value(register: Register, bits: Bitness, regs: &Regs) -> Option<u64> {
    let value = regs(name(register, bits)?)?;
    Some(match register.size() {
        1 => value & 0xff,
        2 if register.is_gpr() => value & 0xffff,
        4 => value & 0xffff_ffff,
        _ => value,
    })
}

/// The register that counts the iterations, by the address size of the instruction.
fn count_register(instr: &Instruction, bits: Bitness) -> Register {
    let narrow = (0..instr.op_count())
        .any(|i| matches!(instr.op_kind(i), OpKind::MemoryESEDI | OpKind::MemorySegESI | OpKind::MemorySegEDI));
    let short = (0..instr.op_count())
        .any(|i| matches!(instr.op_kind(i), OpKind::MemoryESDI | OpKind::MemorySegSI | OpKind::MemorySegDI));
    match bits {
        _ if short => Register::CX,
        Bitness::Bits64 if !narrow => Register::RCX,
        _ => Register::ECX,
    }
}

/// The name under which the caller knows the whole register.
fn name(register: Register, bits: Bitness) -> Option<&'static str> {
    match register {
        Register::FS => return Some("fs_base"),
        Register::GS => return Some("gs_base"),
        _ => {}
    }
    let wide = bits == Bitness::Bits64;
    let pick = |short, long| Some(if wide { long } else { short });
    match register.full_register() {
        Register::RAX => pick("eax", "rax"),
        Register::RCX => pick("ecx", "rcx"),
        Register::RDX => pick("edx", "rdx"),
        Register::RBX => pick("ebx", "rbx"),
        Register::RSP => pick("esp", "rsp"),
        Register::RBP => pick("ebp", "rbp"),
        Register::RSI => pick("esi", "rsi"),
        Register::RDI => pick("edi", "rdi"),
        Register::R8 if wide => Some("r8"),
        Register::R9 if wide => Some("r9"),
        Register::R10 if wide => Some("r10"),
        Register::R11 if wide => Some("r11"),
        Register::R12 if wide => Some("r12"),
        Register::R13 if wide => Some("r13"),
        Register::R14 if wide => Some("r14"),
        Register::R15 if wide => Some("r15"),
        _ => None,
    }
}
