//! Calls whose target stands in a literal pool, proven along a straight line of instructions.

use super::{FlowKind, Insn, LR, Mode, decode};

/// How the processor gets to the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LiteralForm {
    /// `blx rX`.
    Blx,
    /// `bx rX`, with or without a return address in the link register.
    Bx,
    /// Thumb `bl` to a `bx rX`, as compilers call through a register on ARMv4T.
    BlToBx,
}

/// A proven call or jump to an address from a literal pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LiteralCall {
    /// Address of the instruction that branches.
    pub site: u32,
    /// How.
    pub form: LiteralForm,
    /// Register that holds the target, 0 to 14.
    pub register: u8,
    /// Address of the `ldr` that loads it.
    pub load: u32,
    /// Address of the literal.
    pub slot: u32,
    /// Where it goes, bit 0 clear.
    pub target: u32,
    /// Instruction set at the target, by bit 0 of the literal.
    pub target_mode: Mode,
    /// Where the target returns to, when the link register provably holds an address behind the site's straight line;
    /// `None` for a jump.
    pub returns_to: Option<u32>,
}

/// Proves where the last instruction of `window` goes when that is an address from a literal pool.
///
/// `window` is a straight line: each instruction stands behind the one before it, and nothing else may branch between them (the
/// caller's part of the proof: a basic block has that property). What comes before a gap, a change of mode or
/// anything but an instruction that falls through is not looked at. `word` gives the little-endian word at an address divisible
/// by 4, and `None` for what it must not trust: outside the component, or writable.
pub fn literal_call(window: &[Insn], word: &dyn Fn(u32) -> Option<u32>) -> Option<LiteralCall> {
    let (site, before) = window.split_last()?;
    let flow = site.flow();
    let (form, register) = match (flow.kind, flow.register, flow.direct_target) {
        (FlowKind::IndirectCall, Some(register), _) => (LiteralForm::Blx, register),
        (FlowKind::IndirectBranch | FlowKind::Return, Some(register), _) => (LiteralForm::Bx, register),
        (FlowKind::Call, None, Some(veneer)) if site.mode == Mode::Thumb && flow.target_mode == Some(Mode::Thumb) => {
            (LiteralForm::BlToBx, bx_at(site, veneer, word)?)
        }
        _ => return None,
    };
    let load = last_write(before, site, register)?;
    let slot = load.literal_slot().filter(|_| !load.is_conditional())?;
    let literal = word(slot & !3).filter(|_| slot & 3 == 0)?;
    let (target, target_mode) = match literal & 3 {
        0 => (literal, Mode::Arm),
        // Bits 1:0 = 10 is unpredictable (ARM ARM A4.1.10).
        2 => return None,
        _ => (literal & !1, Mode::Thumb),
    };
    let returns_to = match form {
        LiteralForm::Blx | LiteralForm::BlToBx => Some(site.end()),
        LiteralForm::Bx => return_address(window),
    };
    Some(LiteralCall { site: site.address, form, register, load: load.address, slot, target, target_mode, returns_to })
}

/// The address that the link register holds when the last instruction of `window` branches, when an ARM `mov lr, pc` or
/// `add lr, pc, #n` on the straight line before it put it there: then that branch is a call. `window` as for [`literal_call`].
pub fn return_address(window: &[Insn]) -> Option<u32> {
    let (site, before) = window.split_last()?;
    let link = last_write(before, site, LR)?;
    // Under the site's own condition it has run when the site branches, provided that nothing between can change the flags.
    let runs = !link.is_conditional() || link.condition() == site.condition() && link.end() == site.address;
    // In Thumb mode bit 0 of the link register would be clear, and a return would change the mode.
    if !runs || link.mode != Mode::Arm {
        return None;
    }
    // MOV lr, pc (ARM ARM A4.1.35).
    let copies_pc = link.raw & 0x0fff_ffff == 0x01a0_e00f;
    let address = if copies_pc { Some(link.mode.pc(link.address)) } else { link.pc_relative_address() };
    address.filter(|address| Mode::Arm.is_aligned(*address))
}

/// The instruction that last wrote `register` on the straight line `before` the site.
fn last_write<'a>(before: &'a [Insn], site: &Insn, register: u8) -> Option<&'a Insn> {
    let mut next = site;
    for insn in before.iter().rev() {
        let joined = insn.end() == next.address && insn.mode == next.mode && insn.address < next.address;
        if !joined || insn.flow().kind != FlowKind::Fallthrough || insn.is_exception() {
            return None;
        }
        if insn.writes().contains(register) {
            return Some(insn);
        }
        next = insn;
    }
    None
}

/// X of the Thumb `bx rX` at `address`, which the program reaches from `site`.
fn bx_at(site: &Insn, address: u32, word: &dyn Fn(u32) -> Option<u32>) -> Option<u8> {
    let halves = word(address & !3)?.to_le_bytes();
    let bytes = halves.get((address & 2) as usize..)?;
    let bx = decode(site.arch(), Mode::Thumb, address, bytes).ok()?;
    bx.flow().register.filter(|_| bx.flow().kind == FlowKind::IndirectBranch)
}
