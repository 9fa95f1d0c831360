//! Running an instruction somewhere else, so that the breakpoint planted on it can stay while other threads run.
//!
//! The plan is the code for a scratch slot and, for every instruction boundary in it, what a program counter there means
//! for the program. Whatever cannot be moved with exactly the same effect is refused; the caller then steps it in place.
//! After a fault in the slot the caller should go back to the original place (see [`PcMeaning`]) and execute it there, so
//! that the program's own handler sees the true address.

use iced_x86::{CpuidFeature, DecoderOptions, Instruction, Mnemonic, OpAccess, OpKind, Register};

use super::decode::{flow, raw, raw_with};
use super::{Bitness, DecodeError, FlowKind};

/// Bytes of a scratch slot; no plan needs more.
pub const SLOT_BYTES: usize = 64;

/// What a program counter in the slot means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PcMeaning {
    /// The instruction has not been executed: the program is at its original address.
    NotYet,
    /// It has been executed: the program is at this address.
    Done(u64),
    /// The return address of a call has been pushed, the call has not gone anywhere. Step once more to complete it; when
    /// that faults, adding `undo_stack` to the stack pointer gives the state before the instruction.
    Between {
        /// Bytes to add to the stack pointer to undo the push.
        undo_stack: u64,
    },
}

/// Code for the slot, and what it means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Displaced {
    /// To be written at the slot, at most [`SLOT_BYTES`]; it must be readable too. Execution begins at the first byte.
    pub code: Vec<u8>,
    /// Every instruction boundary at which execution can stop: offset in the slot and its meaning, in rising order.
    pub map: Vec<(u8, PcMeaning)>,
}

impl Displaced {
    /// The meaning of a program counter `offset` bytes into the slot; `None` inside an instruction or outside the code.
    pub fn meaning(&self, offset: u64) -> Option<PcMeaning> {
        let found = self.map.iter().find(|(at, _)| u64::from(*at) == offset);
        found.map(|(_, meaning)| *meaning)
    }
}

/// Why an instruction has to be executed in place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotDisplaceable {
    /// The bytes are not an instruction.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// It would not have the same effect elsewhere.
    #[error("cannot be executed out of line: {0}")]
    Refused(&'static str),
    /// A RIP-relative operand is more than 2 GiB from the slot.
    #[error("cannot be executed out of line: its operand is out of reach of the scratch slot")]
    OutOfReach,
}

/// Plans the execution at `slot_ip` of the instruction at the start of `bytes`, whose place is `orig_ip`.
///
/// # Errors
/// [`NotDisplaceable`], with the reason.
pub fn plan(bytes: &[u8], orig_ip: u64, slot_ip: u64, bits: Bitness) -> Result<Displaced, NotDisplaceable> {
    let (instr, constants) = raw(bytes, orig_ip, bits)?;
    if let Some(why) = refusal(&instr, bytes, bits) {
        return Err(NotDisplaceable::Refused(why));
    }
    let own = bytes.get(..instr.len()).unwrap_or(bytes);
    let next = bits.wrap(instr.next_ip());
    let displacement = constants.has_displacement().then(|| constants.displacement_offset());
    let mut slot = Slot::new(slot_ip, bits);
    match flow(&instr) {
        FlowKind::Next => {
            slot.mark(PcMeaning::NotYet);
            slot.original(&instr, own, displacement)?;
            slot.leave_to(next);
        }
        FlowKind::Jump { target } => {
            slot.mark(PcMeaning::NotYet);
            slot.jump(target);
        }
        FlowKind::CondJump { target } => {
            slot.mark(PcMeaning::NotYet);
            let taken = slot.jump_len(next, own.len());
            if instr.is_jcc_short_or_near() {
                // 70+cc, of a condition whose number is one less in the processor's order.
                let cc = (instr.condition_code() as u8).wrapping_sub(1) & 0xf;
                slot.code.extend([0x70 | cc, slot.jump_len(next, 2)]);
            } else {
                // loop and jecxz only have the short form, with the distance in the last byte.
                slot.code.extend(own.iter().take(own.len().saturating_sub(1)));
                slot.code.push(taken);
            }
            slot.leave_to(next);
            slot.leave_to(target);
        }
        FlowKind::Call { target } => {
            slot.push_return(next);
            slot.leave_to(target);
            slot.return_address(next);
        }
        FlowKind::IndirectCall => {
            let jump = as_jump(own).ok_or(NotDisplaceable::Refused("its form of call is unusual"))?;
            slot.push_return(next);
            slot.mark(PcMeaning::Between { undo_stack: bits.pointer_bytes() });
            slot.original(&instr, &jump, displacement)?;
            slot.return_address(next);
        }
        FlowKind::IndirectJump | FlowKind::Return => {
            slot.mark(PcMeaning::NotYet);
            slot.original(&instr, own, displacement)?;
        }
        FlowKind::FarCall
        | FlowKind::FarJump
        | FlowKind::Interrupt
        | FlowKind::Syscall
        | FlowKind::Undefined
        | FlowKind::Transaction
        | FlowKind::System => {
            return Err(NotDisplaceable::Refused("it leaves the program's code"));
        }
    }
    Ok(slot.finish())
}

/// Why the instruction would have another effect in the slot, if it would.
fn refusal(instr: &Instruction, bytes: &[u8], bits: Bitness) -> Option<&'static str> {
    match flow(instr) {
        FlowKind::Next | FlowKind::IndirectJump => {}
        FlowKind::Return if instr.mnemonic() == Mnemonic::Ret => {}
        FlowKind::Jump { .. } | FlowKind::CondJump { .. } | FlowKind::Call { .. } | FlowKind::IndirectCall => {}
        FlowKind::FarCall | FlowKind::FarJump | FlowKind::Return => {
            return Some("it changes the code segment");
        }
        FlowKind::Interrupt | FlowKind::Syscall | FlowKind::System => {
            return Some("it enters the system, which sees the program counter");
        }
        FlowKind::Undefined => return Some("it raises an exception by design"),
        FlowKind::Transaction => return Some("it belongs to a memory transaction"),
    }
    if instr.is_privileged() {
        return Some("it is privileged and only faults");
    }
    if (0..instr.op_count()).any(|i| instr.op_kind(i) == OpKind::NearBranch16) {
        return Some("it cuts the program counter to 16 bits");
    }
    if flow(instr) != FlowKind::Next {
        let amd = raw_with(bytes, instr.ip(), bits, DecoderOptions::AMD);
        if amd.map(|(other, _)| (other.code(), other.len())) != Ok((instr.code(), instr.len())) {
            return Some("Intel's and AMD's processors take it differently");
        }
    }
    if flow(instr) == FlowKind::IndirectCall {
        let stack = |r: Register| r.full_register() == Register::RSP;
        let sizes_differ = instr.stack_pointer_increment() != -(bits.pointer_bytes() as i32);
        if sizes_differ {
            return Some("it pushes a 16-bit return address");
        }
        if stack(instr.memory_base()) || stack(instr.memory_index()) {
            return Some("its target is found through the stack pointer, which the call moves");
        }
        if instr.op0_kind() == OpKind::Register && stack(instr.op0_register()) {
            return Some("it calls the stack pointer, which the call moves");
        }
    }
    if matches!(instr.mnemonic(), Mnemonic::Popf | Mnemonic::Popfd | Mnemonic::Popfq) {
        return Some("it may set the trap flag for the next instruction");
    }
    let mut info = iced_x86::InstructionInfoFactory::new();
    let writes = |access| !matches!(access, OpAccess::Read | OpAccess::CondRead);
    if info.info(instr).used_registers().iter().any(|used| used.register() == Register::SS && writes(used.access())) {
        return Some("it holds back interrupts for the next instruction");
    }
    let x87 = |f: &CpuidFeature| matches!(f, CpuidFeature::FPU | CpuidFeature::FPU287 | CpuidFeature::FPU387);
    if instr.cpuid_features().iter().any(x87) {
        return Some("the x87 unit remembers its address");
    }
    None
}

/// `call r/m` as `jmp r/m`: opcode FF, /2 becomes /4.
fn as_jump(call: &[u8]) -> Option<Vec<u8>> {
    let opcode = call.iter().position(|b| *b == 0xff)?;
    let mut jump = call.to_vec();
    let modrm = jump.get_mut(opcode + 1)?;
    *modrm = (*modrm & 0b1100_0111) | 0b0010_0000;
    Some(jump)
}

/// The code of a slot while it is being written.
struct Slot {
    ip: u64,
    bits: Bitness,
    code: Vec<u8>,
    map: Vec<(u8, PcMeaning)>,
}

impl Slot {
    fn new(ip: u64, bits: Bitness) -> Self {
        Slot { ip: bits.wrap(ip), bits, code: Vec::with_capacity(SLOT_BYTES), map: Vec::new() }
    }

    fn mark(&mut self, meaning: PcMeaning) {
        self.map.push((self.code.len() as u8, meaning));
    }

    /// The address `len` bytes behind what is written.
    fn behind(&self, len: usize) -> u64 {
        self.ip.wrapping_add((self.code.len() + len) as u64)
    }

    /// The instruction as it is, its RIP-relative operand aimed at the same place.
    fn original(
        &mut self,
        instr: &Instruction,
        own: &[u8],
        displacement: Option<usize>,
    ) -> Result<(), NotDisplaceable> {
        let start = self.code.len();
        let distance = self.distance(instr.ip_rel_memory_address(), own.len());
        self.code.extend(own);
        if !instr.is_ip_rel_memory_operand() {
            return Ok(());
        }
        let distance = match instr.memory_base() {
            // EIP-relative addresses wrap at 4 GiB, so that everything is in reach.
            Register::EIP => distance as i32,
            _ => i32::try_from(distance).map_err(|_| NotDisplaceable::OutOfReach)?,
        };
        let at = displacement.ok_or(NotDisplaceable::OutOfReach)? + start;
        let field = self.code.get_mut(at..at + 4);
        let field = field.ok_or(NotDisplaceable::OutOfReach)?;
        field.copy_from_slice(&distance.to_le_bytes());
        Ok(())
    }

    /// From the end of an instruction of `len` bytes, written next, to `target`.
    fn distance(&self, target: u64, len: usize) -> i64 {
        target.wrapping_sub(self.behind(len)) as i64
    }

    /// The 32-bit distance of a `jmp` that is written `skip` bytes further on, if it reaches.
    fn near(&self, target: u64, skip: usize) -> Option<i32> {
        let distance = self.distance(target, skip + 5);
        match self.bits {
            Bitness::Bits32 => Some(distance as i32),
            Bitness::Bits64 => i32::try_from(distance).ok(),
        }
    }

    /// Bytes of the `jmp` to `target` that is written `skip` bytes further on.
    fn jump_len(&self, target: u64, skip: usize) -> u8 {
        if self.near(target, skip).is_some() { 5 } else { 14 }
    }

    fn jump(&mut self, target: u64) {
        match self.near(target, 0) {
            Some(distance) => {
                self.code.push(0xe9);
                self.code.extend(distance.to_le_bytes());
            }
            None => {
                // jmp qword [rip+0], and its operand right behind it.
                self.code.extend([0xff, 0x25, 0, 0, 0, 0]);
                self.code.extend(target.to_le_bytes());
            }
        }
    }

    /// A jump that is only reached once the instruction is done.
    fn leave_to(&mut self, target: u64) {
        self.mark(PcMeaning::Done(target));
        self.jump(target);
    }

    /// Pushes the return address of a call. A single instruction does it, so that nobody ever sees half an address.
    fn push_return(&mut self, next: u64) {
        self.mark(PcMeaning::NotYet);
        match self.bits {
            Bitness::Bits32 => {
                self.code.push(0x68);
                self.code.extend((next as u32).to_le_bytes());
            }
            Bitness::Bits64 => {
                // push qword [rip+distance]: the operand is the end of the slot, see return_address.
                self.code.extend([0xff, 0x35]);
                let distance = (SLOT_BYTES - 8 - 6) as u32;
                self.code.extend(distance.to_le_bytes());
            }
        }
    }

    /// The operand of push_return, where it is one in memory; never executed, nor is the filling before it.
    fn return_address(&mut self, next: u64) {
        if self.bits == Bitness::Bits64 {
            self.code.resize(SLOT_BYTES - 8, 0xcc);
            self.code.extend(next.to_le_bytes());
        }
    }

    fn finish(self) -> Displaced {
        Displaced { code: self.code, map: self.map }
    }
}
