//! Jump tables of `switch`, proven: the index is compared with a constant, and the table stands in the component. Where any
//! link of that proof is missing, there is no table and the branch stays unresolved.

use code::arm::{FlowKind, Insn, Mode};

use super::source::{At, Code};
use base::limits;

/// Condition bits "lower or same" and "lower" (ARM ARM A3.2.1). The opposite of a condition has the other bit 0.
const LS: u32 = 9;
const CC: u32 = 3;

/// Where the branch at `site` can go by its table, in the order of the table. Instructions count as standing before it when
/// `seen` says that they were reached.
pub(crate) fn targets(code: &Code<'_>, site: At, seen: &dyn Fn(At) -> bool) -> Option<Vec<(u32, Mode)>> {
    let insn = code.decode(site).ok()?;
    match site.mode {
        Mode::Arm => arm(code, site, &insn, seen),
        Mode::Thumb if insn.raw & 0xff87 == 0x4687 => loaded(code, site, &insn, seen),
        Mode::Thumb if insn.raw & 0xff87 == 0x4487 => added(code, site, &insn, seen),
        Mode::Thumb => None,
    }
}

/// `cmp rX, #n` … `ldrls pc, [pc, rX, lsl #2]` before a table of addresses, or `addls pc, pc, rX, lsl #2` before
/// instructions.
fn arm(code: &Code<'_>, site: At, insn: &Insn, seen: &dyn Fn(At) -> bool) -> Option<Vec<(u32, Mode)>> {
    let load = match insn.raw & 0x0fff_fff0 {
        0x079f_f100 => true,
        0x008f_f100 => false,
        _ => return None,
    };
    let (index, condition) = ((insn.raw & 0xf) as u8, insn.raw >> 28);
    let mut line = Line::new(code, site, seen);
    let count = loop {
        let before = line.back()?;
        // CMP rX, #n (ARM ARM A4.1.15).
        if before.raw & 0xffff_f000 == 0xe350_0000 | u32::from(index) << 16 {
            let bound = (before.raw & 0xff).rotate_right(before.raw >> 7 & 0x1e);
            break entries(condition, bound)?;
        }
        // Loads, stores, and data processing that leaves the flags alone; MSR has S clear too, and writes rX 15.
        let flags_stay = match before.raw >> 26 & 3 {
            0 => before.raw & 1 << 20 == 0 && before.raw >> 12 & 0xf != 15,
            1 => true,
            _ => before.flow().kind == FlowKind::ConditionalBranch,
        };
        if !flags_stay || before.writes().contains(index) {
            return None;
        }
    };
    let table = site.address.checked_add(8)?;
    (0..count)
        .map(|number| {
            let entry = table.checked_add(number * 4)?;
            let target = if load { code.word(site.part, entry)? } else { entry };
            (target & 3 == 0).then_some((target, Mode::Arm))
        })
        .collect()
}

/// `cmp rX, #n; bhi …; lsls rY, rX, #2; ldr rT, =table; ldr rD, [rT, rY]; mov pc, rD` in any order that works.
fn loaded(code: &Code<'_>, site: At, insn: &Insn, seen: &dyn Fn(At) -> bool) -> Option<Vec<(u32, Mode)>> {
    let destination = (insn.raw >> 3 & 0xf) as u8;
    let mut line = Line::new(code, site, seen);
    // LDR rD, [rN, rM] (ARM ARM A7.1.29).
    let load = line.last_write(destination).filter(|load| load.size == 2 && load.raw >> 9 == 0b0101100)?;
    let pair = [(load.raw >> 3 & 7) as u8, (load.raw >> 6 & 7) as u8];
    // The address of the table and the register it is in; the scaled index and the register it was scaled from.
    let mut table: Option<(u32, u8)> = None;
    let mut index: Option<(u8, u8)> = None;
    let mut bound = None;
    while table.is_none() || bound.is_none() {
        let before = line.back()?;
        let writes = before.writes();
        if let Some((_, from)) = index
            && bound.is_none()
        {
            bound = line.bound(&before, from);
            if writes.contains(from) {
                return None;
            }
        }
        for register in pair {
            let known =
                table.is_some_and(|(_, known)| known == register) || index.is_some_and(|(known, _)| known == register);
            if known || !writes.contains(register) {
                continue;
            }
            // LSLS rY, rX, #2 (ARM ARM A7.1.38), or the load of the table's address.
            if before.size == 2 && before.raw & 0xffc0 == 0x0080 && index.is_none() {
                index = Some((register, (before.raw >> 3 & 7) as u8));
            } else if table.is_none() {
                table = Some((code.word(site.part, before.literal_slot()?)?, register));
            } else {
                return None;
            }
        }
    }
    let table = table.map(|(table, _)| table).filter(|table| table & 3 == 0)?;
    (0..bound?)
        .map(|number| {
            let target = code.word(site.part, table.checked_add(number * 4)?)?;
            // MOV to the program counter stays in Thumb mode and ignores bit 0 (ARM ARM A7.1.43).
            Some((target & !1, Mode::Thumb))
        })
        .collect()
}

/// `cmp rX, #n; bhi …; adds rX, rX, rX; add rX, pc; ldrh rX, [rX, #6]; lsls rX, rX, #16; asrs rX, rX, #16; add pc, rX` before
/// a table of distances, as the SDK's compiler makes it.
fn added(code: &Code<'_>, site: At, insn: &Insn, seen: &dyn Fn(At) -> bool) -> Option<Vec<(u32, Mode)>> {
    let register = insn.raw >> 3 & 0xf;
    if register > 7 {
        return None;
    }
    let mut line = Line::new(code, site, seen);
    let shape = [
        0x1400 | register << 3 | register,
        0x0400 | register << 3 | register,
        0x88c0 | register << 3 | register,
        0x4478 | register,
        0x1800 | register << 6 | register << 3 | register,
    ];
    for raw in shape {
        line.back().filter(|before| before.size == 2 && before.raw == raw)?;
    }
    let count = loop {
        let before = line.back()?;
        if let Some(count) = line.bound(&before, register as u8) {
            break count;
        }
        if before.writes().contains(register as u8) {
            return None;
        }
    };
    let table = site.address.checked_add(2)?;
    (0..count)
        .map(|number| {
            let entry = table.checked_add(number * 2)?;
            let word = code.word(site.part, entry & !3).or_else(|| code.word(site.part, entry - 2))?;
            let half = if entry & 2 == 0 { word as u16 } else { (word >> 16) as u16 };
            let target = table.wrapping_add(2).wrapping_add_signed(i32::from(half as i16));
            Some((target & !1, Mode::Thumb))
        })
        .collect()
}

/// How many entries a table has whose index passes the condition after a comparison with `bound`.
fn entries(condition: u32, bound: u32) -> Option<u32> {
    let count = match condition {
        LS => bound.checked_add(1)?,
        CC => bound,
        _ => return None,
    };
    (1..=limits::NDS_JUMP_TABLE_ENTRIES).contains(&count).then_some(count)
}

/// Instructions backwards from a site, as one path through them runs.
struct Line<'a, 'r> {
    code: &'a Code<'r>,
    at: At,
    left: usize,
    seen: &'a dyn Fn(At) -> bool,
    /// In Thumb mode, the condition under which the branch passed last leads on to the site.
    guard: Option<u32>,
    /// Whether the instruction passed last may have changed the flags, so that a comparison before it says nothing.
    flags_lost: bool,
}

impl<'a, 'r> Line<'a, 'r> {
    fn new(code: &'a Code<'r>, site: At, seen: &'a dyn Fn(At) -> bool) -> Self {
        Self { code, at: site, left: limits::NDS_LITERAL_WINDOW, seen, guard: None, flags_lost: false }
    }

    /// The instruction reached at `address` when it ends where the line begins now.
    fn ending_here(&self, end: u32) -> Option<Insn> {
        let sizes: &[u32] = if self.at.mode == Mode::Arm { &[4] } else { &[2, 4] };
        sizes.iter().find_map(|size| {
            let at = At { address: end.checked_sub(*size)?, ..self.at };
            let insn = if (self.seen)(at) { self.code.decode(at).ok() } else { None };
            insn.filter(|insn| u32::from(insn.size) == *size)
        })
    }

    /// One instruction further back: the one before, when it falls through; or a conditional branch over the one before.
    fn back(&mut self) -> Option<Insn> {
        self.left = self.left.checked_sub(1)?;
        let here = self.at.address;
        let before = self.ending_here(here)?;
        let flow = before.flow();
        if std::mem::take(&mut self.flags_lost) {
            self.guard = None;
        }
        if flow.kind == FlowKind::Fallthrough {
            self.at.address = before.address;
            // Thumb loads and stores are 0100 1… to 1001 …, everything before sets flags or may (ARM ARM A6.4).
            self.flags_lost = before.size != 2 || !(0b01001..=0b10011).contains(&(before.raw >> 11));
            return Some(before);
        }
        // B (1): 1101 cond (ARM ARM A7.1.13).
        let condition = |insn: &Insn| insn.raw >> 8 & 0xf;
        if flow.kind == FlowKind::ConditionalBranch {
            // Not taken on this line.
            self.guard = Some(condition(&before) ^ 1);
            self.at.address = before.address;
            return Some(before);
        }
        // A `b` or far `bl` to the default case, and a branch over it.
        let over = self.ending_here(before.address)?;
        let is_over = over.flow().kind == FlowKind::ConditionalBranch && over.flow().direct_target == Some(here);
        if !is_over {
            return None;
        }
        self.guard = Some(condition(&over));
        self.at.address = over.address;
        Some(over)
    }

    /// The last write of a register that is not conditional.
    fn last_write(&mut self, register: u8) -> Option<Insn> {
        loop {
            let before = self.back()?;
            if before.writes().contains(register) {
                return Some(before).filter(|before| !before.is_conditional());
            }
        }
    }

    /// Entries of a table whose index is in `index`, when `insn` is the Thumb comparison just before the guard.
    fn bound(&self, insn: &Insn, index: u8) -> Option<u32> {
        let condition = self.guard?;
        // CMP rX, #n (ARM ARM A7.1.17).
        if insn.size != 2 || insn.raw >> 8 != 0x28 | u32::from(index) {
            return None;
        }
        entries(condition, insn.raw & 0xff)
    }
}
