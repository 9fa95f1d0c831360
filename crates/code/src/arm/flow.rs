//! Where the control flow goes after an instruction, as far as that instruction alone tells.

use unarm::{AddrLdrStr, BlxTarget, Cond, Ins, LdmStmMode, LdrStrOffset, Op2, Reg, RegList, ShiftOp};

use super::{LR, Mode, PC, RegSet};

/// Kind of control flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FlowKind {
    /// To the next instruction, exceptions (`svc`, `bkpt`) included: their handlers come back.
    Fallthrough,
    /// A call of a known address.
    Call,
    /// A call of the address in a register.
    IndirectCall,
    /// Back to a caller: to the address in the link register or popped from the stack.
    Return,
    /// To an address in a register or in memory, or to a computed one.
    IndirectBranch,
    /// Always to a known address.
    Branch,
    /// To a known address under a condition.
    ConditionalBranch,
}

impl FlowKind {
    /// The word that the tools use.
    pub fn word(self) -> &'static str {
        match self {
            FlowKind::Fallthrough => "fallthrough",
            FlowKind::Call => "call",
            FlowKind::IndirectCall => "indirect-call",
            FlowKind::Return => "return",
            FlowKind::IndirectBranch => "indirect-branch",
            FlowKind::Branch => "branch",
            FlowKind::ConditionalBranch => "conditional-branch",
        }
    }
}

/// Where the control flow goes after an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Flow {
    /// What it does.
    pub kind: FlowKind,
    /// Where a branch or call goes when it is taken, bit 0 clear; `None` when the instruction does not say.
    pub direct_target: Option<u32>,
    /// Instruction set at `direct_target`; `None` exactly when that is.
    pub target_mode: Option<Mode>,
    /// Whether the next instruction may run after this one: not after an unconditional branch or return. A call falls through.
    pub falls_through: bool,
    /// X of `bx rX` and `blx rX`, 0 to 15.
    pub register: Option<u8>,
}

impl Flow {
    const NEXT: Flow = Flow {
        kind: FlowKind::Fallthrough,
        direct_target: None,
        target_mode: None,
        falls_through: true,
        register: None,
    };

    fn direct(kind: FlowKind, falls_through: bool, target: u32, mode: Mode) -> Flow {
        Flow { kind, direct_target: Some(target), target_mode: Some(mode), falls_through, register: None }
    }

    fn indirect(kind: FlowKind, falls_through: bool, register: Option<Reg>) -> Flow {
        Flow { kind, falls_through, register: register.map(|register| register as u8), ..Flow::NEXT }
    }
}

/// The flow of `ins`, which stands at `address`, runs in `mode` and may write the registers in `writes`.
pub(super) fn of(ins: &Ins, mode: Mode, address: u32, writes: RegSet) -> Flow {
    let conditional = ins.cond() != Cond::Al;
    match ins {
        Ins::B { target, .. } if conditional => Flow::direct(FlowKind::ConditionalBranch, true, target.addr, mode),
        Ins::B { target, .. } => Flow::direct(FlowKind::Branch, false, target.addr, mode),
        Ins::Bl { target, .. } => Flow::direct(FlowKind::Call, true, target.addr, mode),
        Ins::Blx { target: BlxTarget::Direct(target), .. } => {
            let other = if mode == Mode::Arm { Mode::Thumb } else { Mode::Arm };
            Flow::direct(FlowKind::Call, true, target.addr, other)
        }
        Ins::Blx { target: BlxTarget::Indirect(rm), .. } => Flow::indirect(FlowKind::IndirectCall, true, Some(*rm)),
        Ins::Bx { rm: Reg::Lr, .. } => Flow::indirect(FlowKind::Return, conditional, Some(Reg::Lr)),
        // The program counter reads as a word address here, and a Thumb one divisible by 4 is demanded (ARM ARM A7.1.14).
        Ins::Bx { rm: Reg::Pc, .. } if Mode::Arm.is_aligned(address) => {
            let kind = if conditional { FlowKind::ConditionalBranch } else { FlowKind::Branch };
            let flow = Flow::direct(kind, conditional, mode.pc(address), Mode::Arm);
            Flow { register: Some(PC), ..flow }
        }
        Ins::Bx { rm, .. } => Flow::indirect(FlowKind::IndirectBranch, conditional, Some(*rm)),
        _ if !writes.contains(PC) => Flow::NEXT,
        _ if returns(ins) => Flow::indirect(FlowKind::Return, conditional, None),
        _ => Flow::indirect(FlowKind::IndirectBranch, conditional, None),
    }
}

/// Whether `ins`, which writes the program counter, goes back to a caller.
fn returns(ins: &Ins) -> bool {
    match ins {
        Ins::Pop { .. } => true,
        Ins::Ldm { mode, rn, regs, .. } => *rn == Reg::Sp || leaves_frame(*mode, *rn, *regs),
        // A pop that also frees words above the one popped.
        Ins::Ldr { addr: AddrLdrStr::Post(post), .. } => {
            post.rn == Reg::Sp && matches!(post.offset, LdrStrOffset::Imm(1..))
        }
        Ins::Mov { op2: Op2::ShiftImm(shift), .. } => {
            shift.rm as u8 == LR && shift.shift_op == ShiftOp::Lsl && shift.imm == 0
        }
        // Return from an exception: the status register comes back too (ARM ARM A2.6).
        Ins::Sub { s: true, rn: Reg::Lr, op2: Op2::Imm(_), .. } => true,
        _ => false,
    }
}

/// `ldmdb r11, {…, r11, sp, pc}`: the end of a function with a frame of the old procedure call standard.
fn leaves_frame(mode: LdmStmMode, rn: Reg, regs: RegList) -> bool {
    mode == LdmStmMode::Db && rn == Reg::R11 && regs.contains(Reg::R11) && regs.contains(Reg::Sp)
}
