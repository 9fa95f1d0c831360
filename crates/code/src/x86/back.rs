//! Which instruction set off a data breakpoint: the processor traps after the access, so the answer lies behind the program
//! counter, and x86 code cannot be decoded backwards. Every instruction that could end there is therefore checked against its
//! memory operands, with the registers it began with.

use base::limits;
use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};

use super::decode::{describe, is_repeated_string, raw};
use super::operands::{accesses, overlap, register_value};
use super::{Accesses, Bitness, FlowKind, INSN_BYTES, Insn, MemAccess, Regs};

/// Bytes that a fast `rep` string operation may move in one go before the trap is taken: a cache line.
const FAST_STRING_BYTES: u64 = 64;
/// The direction flag in `eflags`: set when string instructions run downwards.
const DIRECTION_FLAG: u64 = 1 << 10;

/// What a hardware data breakpoint listens to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchKind {
    /// Writes.
    Write,
    /// Reads and writes.
    ReadWrite,
}

/// A data breakpoint that has gone off.
#[derive(Debug, Clone, Copy)]
pub struct Trap {
    /// Program counter at the trap: behind the instruction, or at it between the iterations of a `rep`.
    pub pc: u64,
    /// Width of the code.
    pub bits: Bitness,
    /// First watched address.
    pub watched: u64,
    /// Watched bytes.
    pub watched_bytes: u64,
    /// What the breakpoint listens to.
    pub kind: WatchKind,
    /// An address at or before `pc` where an instruction is known to begin, such as the start of the function.
    pub function_start: Option<u64>,
}

/// An instruction that may have set off the data breakpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspect {
    /// The instruction.
    pub insn: Insn,
    /// It reads the watched range (or may, when not checked).
    pub reads: bool,
    /// It writes the watched range (or may, when not checked).
    pub writes: bool,
    /// Its operand was computed and touches the watched range; otherwise the operand could not be computed, since the
    /// instruction overwrote its own address registers.
    pub checked: bool,
    /// How many of the decodings begun in the bytes before `pc` run through it; the true one has most of them, as a rule.
    /// 0 when nothing had to be compared.
    pub paths: u32,
}

/// The answer to "who did it".
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attribution {
    /// Only this instruction is possible, and its operand was checked.
    Exact(Suspect),
    /// One of these, the likeliest first; a single one is one whose operand could not be checked.
    Candidates(Vec<Suspect>),
    /// None was found.
    Unknown {
        /// The reason, as a sentence.
        why: String,
    },
}

/// Finds the instruction that set off a data breakpoint.
///
/// `read` gives exactly the asked number of bytes at an address, without planted breakpoints, or `None`. `regs` gives the
/// registers of the thread *at the trap*.
pub fn attribute(trap: &Trap, read: &dyn Fn(u64, usize) -> Option<Vec<u8>>, regs: &Regs) -> Attribution {
    Search { trap, read, regs }.run()
}

struct Search<'a> {
    trap: &'a Trap,
    read: &'a dyn Fn(u64, usize) -> Option<Vec<u8>>,
    regs: &'a Regs<'a>,
}

impl Search<'_> {
    fn run(&self) -> Attribution {
        let pc = self.trap.bits.wrap(self.trap.pc);
        let known = self.known_path(pc);
        let (before, paths) = match known {
            Some(Path::Last(instr, bytes)) => (vec![(instr, bytes)], Vec::new()),
            Some(Path::Begins) => (Vec::new(), Vec::new()),
            None => (self.all_ending_at(pc), self.paths(pc)),
        };
        let mut suspects: Vec<Suspect> = before
            .iter()
            .filter(|(instr, _)| self.arrives(instr, pc))
            .filter_map(|(instr, bytes)| self.suspect(instr, bytes, false))
            .collect();
        self.add_callers(pc, &mut suspects);
        self.add_repeating(pc, &mut suspects);

        for suspect in &mut suspects {
            let on_path = |p: &&u64| **p == suspect.insn.address;
            suspect.paths = paths.iter().filter(on_path).count() as u32;
        }
        suspects.sort_by_key(|s| {
            let rank = (s.checked, s.paths, s.insn.len);
            std::cmp::Reverse(rank)
        });
        match suspects.as_slice() {
            [] => Attribution::Unknown { why: self.why_none(pc, &before) },
            [only] if only.checked => Attribution::Exact(only.clone()),
            _ => Attribution::Candidates(suspects),
        }
    }

    fn exact_read(&self, address: u64, len: usize) -> Option<Vec<u8>> {
        (self.read)(address, len).filter(|bytes| bytes.len() == len)
    }

    fn pointer_at(&self, address: u64) -> Option<u64> {
        let bytes = self.exact_read(address, self.trap.bits.pointer_bytes() as usize)?;
        Some(bytes.iter().rev().fold(0, |acc, b| (acc << 8) | u64::from(*b)))
    }

    /// Up to `wanted` readable bytes that end at `end`: all of them, or those from the start of the page on.
    fn bytes_before(&self, end: u64, wanted: u64) -> Vec<u8> {
        let in_page = end & 0xfff;
        let all = wanted.min(end);
        self.exact_read(end - all, all as usize)
            .or_else(|| self.exact_read(end - in_page.min(all), in_page.min(all) as usize))
            .unwrap_or_default()
    }

    /// The instruction before `pc` on the straight path from the known start, when that path meets `pc`.
    fn known_path(&self, pc: u64) -> Option<Path> {
        let start = self.trap.bits.wrap(self.trap.function_start?);
        if start == pc {
            return Some(Path::Begins);
        }
        let len = pc.checked_sub(start).filter(|len| *len <= limits::MAX_ATTRIBUTION_PATH_BYTES)?;
        let bytes = self.exact_read(start, len as usize)?;
        let (instr, own) = last_on_path(&bytes, start, self.trap.bits)?;
        Some(Path::Last(instr, own))
    }

    /// Every instruction that ends exactly at `end`, the shortest first.
    fn all_ending_at(&self, end: u64) -> Vec<(Instruction, Vec<u8>)> {
        let bytes = self.bytes_before(end, INSN_BYTES as u64);
        (1..=bytes.len())
            .filter_map(|len| {
                let own = bytes.get(bytes.len() - len..)?;
                let (instr, _) = raw(own, end.wrapping_sub(len as u64), self.trap.bits).ok()?;
                (instr.len() == len).then(|| (instr, own.to_vec()))
            })
            .collect()
    }

    /// For each decoding begun in the bytes before `pc` that meets `pc`: the address of its last instruction.
    fn paths(&self, pc: u64) -> Vec<u64> {
        let bytes = self.bytes_before(pc, limits::ATTRIBUTION_SYNC_BYTES);
        (0..bytes.len())
            .filter_map(|skip| {
                let rest = bytes.get(skip..)?;
                let start = pc.wrapping_sub(rest.len() as u64);
                last_on_path(rest, start, self.trap.bits).map(|(instr, _)| instr.ip())
            })
            .collect()
    }

    /// Adds calls whose target is `pc` and whose return address lies on top of the stack: they pushed it, or read the
    /// pointer they went through.
    fn add_callers(&self, pc: u64, suspects: &mut Vec<Suspect>) {
        let Some(back) = self.stack_pointer().and_then(|sp| self.pointer_at(sp)) else {
            return;
        };
        if back == pc {
            return;
        }
        for (instr, bytes) in self.all_ending_at(back) {
            let call = instr.is_call_near() || instr.is_call_near_indirect();
            if call && self.arrives(&instr, pc) {
                suspects.extend(self.suspect(&instr, &bytes, false));
            }
        }
    }

    /// Adds the `rep` string instruction at `pc` that has iterations left; a whole cache line behind it counts only when
    /// nothing else is possible.
    fn add_repeating(&self, pc: u64, suspects: &mut Vec<Suspect>) {
        // At the end of a mapping fewer bytes are readable than the longest instruction has.
        let Some(bytes) = (1..=INSN_BYTES).rev().find_map(|n| self.exact_read(pc, n)) else {
            return;
        };
        let Ok((instr, _)) = raw(&bytes, pc, self.trap.bits) else {
            return;
        };
        if is_repeated_string(&instr) {
            let line = suspects.is_empty();
            suspects.extend(self.suspect(&instr, &bytes, line));
        }
    }

    /// The instruction as a suspect, unless its operands are known to miss the watched range.
    fn suspect(&self, instr: &Instruction, bytes: &[u8], line: bool) -> Option<Suspect> {
        let counts = |read: bool, write: bool| match self.trap.kind {
            WatchKind::Write => write,
            WatchKind::ReadWrite => read || write,
        };
        let found = self.accesses(instr);
        // A finished `rep` ends behind its last line as well, so `line` is for one that is still running.
        let line = is_repeated_string(instr) && (line || instr.next_ip() == self.trap.pc);
        let (mut reads, mut writes) = (false, false);
        for access in &found.known {
            let (address, size) = match line {
                true => self.last_line(access),
                false => (access.address, access.size),
            };
            if overlap(address, size, self.trap.watched, self.trap.watched_bytes) {
                reads |= access.read;
                writes |= access.write;
            }
        }
        let checked = counts(reads, writes);
        if !checked {
            let open = || found.unknown.iter().filter(|u| counts(u.read, u.write));
            open().next()?;
            reads = open().any(|u| u.read);
            writes = open().any(|u| u.write);
        }
        Some(Suspect { insn: describe(instr, bytes), reads, writes, checked, paths: 0 })
    }

    /// The cache line that ends with the last element of a repeated string instruction.
    fn last_line(&self, element: &MemAccess) -> (u64, u64) {
        let more = FAST_STRING_BYTES.saturating_sub(element.size);
        match self.downwards() {
            Some(true) => (element.address, element.size + more),
            _ => (element.address.saturating_sub(more), element.size + more),
        }
    }

    fn accesses(&self, instr: &Instruction) -> Accesses {
        let mut written = Vec::new();
        for used in InstructionInfoFactory::new().info(instr).used_registers() {
            if !matches!(used.access(), OpAccess::Read | OpAccess::CondRead) {
                written.push(used.register().full_register());
            }
        }
        accesses(instr, self.trap.bits, &|register| self.before(instr, register, &written))
    }

    /// Value of a register before the instruction, from the registers after it.
    fn before(&self, instr: &Instruction, register: Register, written: &[Register]) -> Option<u64> {
        let full = register.full_register();
        let after = |r| register_value(r, self.trap.bits, self.regs);
        if !written.contains(&full) || register.is_segment_register() {
            return after(register);
        }
        let delta = match full {
            Register::RSP => {
                let overwritten = instr.op0_kind() == OpKind::Register
                    && instr.op0_register().full_register() == Register::RSP
                    && instr.mnemonic() == Mnemonic::Pop;
                let grown = instr.stack_pointer_increment();
                if overwritten || grown == 0 {
                    return None;
                }
                i64::from(grown)
            }
            // leave: the stack pointer becomes the old frame pointer plus the slot that was popped.
            Register::RBP if instr.mnemonic() == Mnemonic::Leave => {
                let popped = self.trap.bits.pointer_bytes();
                return Some(self.trap.bits.wrap(self.stack_pointer()?.wrapping_sub(popped)));
            }
            Register::RSI | Register::RDI if instr.is_string_instruction() => {
                let step = instr.memory_size().size() as i64;
                if self.downwards()? { -step } else { step }
            }
            _ => return None,
        };
        let value = after(register)?.wrapping_sub(delta as u64);
        Some(if register.size() == 4 { value & 0xffff_ffff } else { value })
    }

    fn stack_pointer(&self) -> Option<u64> {
        let register = match self.trap.bits {
            Bitness::Bits32 => Register::ESP,
            Bitness::Bits64 => Register::RSP,
        };
        register_value(register, self.trap.bits, self.regs)
    }

    fn downwards(&self) -> Option<bool> {
        Some((self.regs)("eflags")? & DIRECTION_FLAG != 0)
    }

    /// Whether the instruction, once executed, leaves the program counter at `pc`.
    fn arrives(&self, instr: &Instruction, pc: u64) -> bool {
        let falls_through = self.trap.bits.wrap(instr.next_ip()) == pc;
        match super::decode::flow(instr) {
            FlowKind::Jump { target } | FlowKind::Call { target } => target == pc,
            FlowKind::CondJump { target } => falls_through || target == pc,
            FlowKind::IndirectJump | FlowKind::IndirectCall if instr.op0_kind() == OpKind::Register => {
                register_value(instr.op0_register(), self.trap.bits, self.regs) == Some(pc)
            }
            FlowKind::IndirectJump | FlowKind::IndirectCall | FlowKind::Return => {
                let found = self.accesses(instr);
                let through = found.known.iter().find(|access| access.read);
                through.is_some_and(|access| self.pointer_at(access.address) == Some(pc))
            }
            FlowKind::FarCall | FlowKind::FarJump => false,
            FlowKind::Next
            | FlowKind::Interrupt
            | FlowKind::Syscall
            | FlowKind::Undefined
            | FlowKind::Transaction
            | FlowKind::System => falls_through,
        }
    }

    fn why_none(&self, pc: u64, before: &[(Instruction, Vec<u8>)]) -> String {
        let pointer = self.trap.bits.pointer_bytes();
        let watches = |address, size| overlap(address, size, self.trap.watched, self.trap.watched_bytes);
        let system =
            |instr: &Instruction| matches!(super::decode::flow(instr), FlowKind::Syscall | FlowKind::Interrupt);
        if before.iter().any(|(instr, _)| system(instr)) {
            return format!(
                "a system call ends at 0x{pc:x}: the kernel may have touched the memory on the program's behalf"
            );
        }
        if self.trap.kind == WatchKind::ReadWrite {
            let popped = self.stack_pointer().map(|sp| sp.wrapping_sub(pointer));
            if popped.is_some_and(|slot| watches(slot, pointer) && self.pointer_at(slot) == Some(pc)) {
                return format!("a return to 0x{pc:x} read the watched stack slot; which one is not recorded");
            }
            if self.pointer_at(self.trap.watched) == Some(pc) {
                return format!(
                    "the watched memory holds 0x{pc:x}: an indirect jump through it led here; which one is not recorded"
                );
            }
        }
        if before.is_empty() && self.bytes_before(pc, 1).is_empty() {
            return format!("the code before 0x{pc:x} cannot be read");
        }
        format!("no instruction that leads to 0x{pc:x} touches the watched memory with the registers as they are")
    }
}

/// What a known start says about the instruction before the trap.
enum Path {
    /// The trap is at the start itself: nothing on the path comes before it.
    Begins,
    /// This one.
    Last(Instruction, Vec<u8>),
}

/// Decodes in a straight line; gives the last instruction when it ends exactly with the bytes.
fn last_on_path(bytes: &[u8], start: u64, bits: Bitness) -> Option<(Instruction, Vec<u8>)> {
    let mut rest = bytes;
    let mut address = start;
    loop {
        let (instr, _) = raw(rest, address, bits).ok()?;
        let (own, behind) = rest.split_at_checked(instr.len())?;
        if behind.is_empty() {
            return Some((instr, own.to_vec()));
        }
        address = address.wrapping_add(instr.len() as u64);
        rest = behind;
    }
}
