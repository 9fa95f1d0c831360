//! Which general registers an instruction reads and writes, so that a value can be followed along a straight line.

use super::{Mode, PC};

/// A set of the registers r0 to r15.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct RegSet(u16);

impl RegSet {
    /// No register.
    pub const EMPTY: RegSet = RegSet(0);

    /// The set whose bit n stands for rn.
    pub const fn from_bits(bits: u16) -> RegSet {
        RegSet(bits)
    }

    /// Bit n stands for rn.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Whether `register`, 0 to 15, is in the set; never for a larger number.
    pub fn contains(self, register: u8) -> bool {
        register <= PC && self.0 >> register & 1 == 1
    }

    /// The set and `register`, 0 to 15; a larger number adds nothing.
    #[must_use]
    pub fn with(self, register: u8) -> RegSet {
        if register <= PC { RegSet(self.0 | 1 << register) } else { self }
    }

    /// The set without `register`.
    #[must_use]
    pub fn without(self, register: u8) -> RegSet {
        RegSet(self.0 & !RegSet::EMPTY.with(register).0)
    }

    /// What is in either.
    #[must_use]
    pub fn union(self, other: RegSet) -> RegSet {
        RegSet(self.0 | other.0)
    }

    /// Whether nothing is in it.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The numbers, ascending.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0..=PC).filter(move |register| self.contains(*register))
    }
}

impl std::fmt::Debug for RegSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// What an instruction does with the registers.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Effects {
    pub(super) reads: RegSet,
    pub(super) writes: RegSet,
}

impl Effects {
    const NONE: Effects = Effects { reads: RegSet::EMPTY, writes: RegSet::EMPTY };

    fn reads(self, register: u32) -> Effects {
        Effects { reads: self.reads.with(register as u8), ..self }
    }

    fn writes(self, register: u32) -> Effects {
        Effects { writes: self.writes.with(register as u8), ..self }
    }

    fn reads_if(self, condition: bool, register: u32) -> Effects {
        if condition { self.reads(register) } else { self }
    }

    fn writes_if(self, condition: bool, register: u32) -> Effects {
        if condition { self.writes(register) } else { self }
    }

    /// Loads into `register`, or stores it.
    fn moves(self, load: bool, register: u32) -> Effects {
        if load { self.writes(register) } else { self.reads(register) }
    }

    fn moves_list(self, load: bool, list: u32) -> Effects {
        let list = RegSet::from_bits(list as u16);
        match load {
            true => Effects { writes: self.writes.union(list), ..self },
            false => Effects { reads: self.reads.union(list), ..self },
        }
    }
}

const SP: u32 = super::SP as u32;
const LR: u32 = super::LR as u32;

/// Bits `low` and up to `low + 3`: a register's number.
fn field(raw: u32, low: u32) -> u32 {
    raw >> low & 0xf
}

fn bit(raw: u32, number: u32) -> bool {
    raw >> number & 1 == 1
}

/// Effects of an instruction that the architecture has. The program counter is written only by what branches.
pub(super) fn effects(mode: Mode, raw: u32) -> Effects {
    match mode {
        Mode::Arm => arm(raw),
        Mode::Thumb => thumb(raw),
    }
}

/// The encodings of ARM ARM A3.1, figure A3-1.
fn arm(raw: u32) -> Effects {
    let none = Effects::NONE;
    if raw >> 28 == 0xf {
        return match raw >> 25 & 7 {
            // BLX (1), and PLD with an offset in a register or without (A4.1.8, A4.1.45).
            0b101 => none.writes(LR).writes(PC.into()),
            _ => none.reads(field(raw, 16)).reads_if(bit(raw, 25), field(raw, 0)),
        };
    }
    // CMP and its kin without S.
    let miscellaneous = raw & 0x0190_0000 == 0x0100_0000;
    match raw >> 25 & 7 {
        0b000 if raw & 0x90 == 0x90 => multiply_or_extra_transfer(raw),
        0b000 if miscellaneous => miscellaneous_effects(raw),
        // MSR with an immediate.
        0b001 if miscellaneous => none,
        0b000 => data_processing(raw).reads(field(raw, 0)).reads_if(bit(raw, 4), field(raw, 8)),
        0b001 => data_processing(raw),
        0b010 | 0b011 => {
            let effects = none.moves(bit(raw, 20), field(raw, 12)).reads_if(bit(raw, 25), field(raw, 0));
            indexed(raw, effects)
        }
        0b100 => {
            let effects = none.reads(field(raw, 16)).writes_if(bit(raw, 21), field(raw, 16));
            effects.moves_list(bit(raw, 20), raw & 0xffff)
        }
        0b101 => none.writes(PC.into()).writes_if(bit(raw, 24), LR),
        // MCR and MRC; with r15 as destination MRC sets the flags and no register (A4.1.34).
        0b111 if !bit(raw, 24) && !bit(raw, 20) => none.reads(field(raw, 12)),
        0b111 if !bit(raw, 24) => none.writes_if(field(raw, 12) != u32::from(PC), field(raw, 12)),
        // SWI.
        _ => none,
    }
}

/// The base of a load or store: written when the indexing is after the transfer, or asked for (A5.2, A5.3).
fn indexed(raw: u32, effects: Effects) -> Effects {
    effects.reads(field(raw, 16)).writes_if(!bit(raw, 24) || bit(raw, 21), field(raw, 16))
}

fn data_processing(raw: u32) -> Effects {
    let opcode = field(raw, 21);
    let (moves, compares) = (matches!(opcode, 13 | 15), matches!(opcode, 8..=11));
    Effects::NONE.reads_if(!moves, field(raw, 16)).writes_if(!compares, field(raw, 12))
}

/// Figure A3-3: multiplies, swaps, and loads and stores of halfwords, signed bytes and doublewords.
fn multiply_or_extra_transfer(raw: u32) -> Effects {
    let none = Effects::NONE;
    match (raw >> 5 & 3, raw >> 23 & 3) {
        // MUL, MLA, and the long ones.
        (0, 0) => {
            let effects = none.writes(field(raw, 16)).reads(field(raw, 0)).reads(field(raw, 8));
            effects.reads_if(bit(raw, 21), field(raw, 12))
        }
        (0, 1) => long_multiply(raw, bit(raw, 21)),
        // SWP, SWPB.
        (0, _) => none.writes(field(raw, 12)).reads(field(raw, 0)).reads(field(raw, 16)),
        (kind, _) => {
            let double = !bit(raw, 20) && kind >= 2;
            let load = bit(raw, 20) || kind == 2;
            let mut effects = none.moves(load, field(raw, 12)).reads_if(!bit(raw, 22), field(raw, 0));
            if double {
                effects = effects.moves(load, field(raw, 12) | 1);
            }
            indexed(raw, effects)
        }
    }
}

fn long_multiply(raw: u32, accumulates: bool) -> Effects {
    let (low, high) = (field(raw, 12), field(raw, 16));
    let effects = Effects::NONE.writes(low).writes(high).reads(field(raw, 0)).reads(field(raw, 8));
    effects.reads_if(accumulates, low).reads_if(accumulates, high)
}

/// Figure A3-4.
fn miscellaneous_effects(raw: u32) -> Effects {
    let none = Effects::NONE;
    let (rm, operation) = (field(raw, 0), raw >> 21 & 3);
    match (raw >> 4 & 0xf, operation) {
        // MRS; MSR.
        (0b0000, 0 | 2) => none.writes(field(raw, 12)),
        (0b0000, _) => none.reads(rm),
        // BX; CLZ; BLX (2).
        (0b0001, 1) => none.reads(rm).writes(PC.into()),
        (0b0001, _) => none.reads(rm).writes(field(raw, 12)),
        (0b0011, _) => none.reads(rm).writes(LR).writes(PC.into()),
        // QADD, QSUB, QDADD, QDSUB.
        (0b0101, _) => none.reads(rm).reads(field(raw, 16)).writes(field(raw, 12)),
        (0b0111, _) => none,
        // SMLALxy; SMLAxy, SMLAWy; SMULxy, SMULWy.
        (_, 2) => long_multiply(raw, true),
        (_, operation) => {
            let accumulates = operation == 0 || operation == 1 && !bit(raw, 5);
            let effects = none.writes(field(raw, 16)).reads(rm).reads(field(raw, 8));
            effects.reads_if(accumulates, field(raw, 12))
        }
    }
}

/// The encodings of ARM ARM A6.2, figure A6-1.
fn thumb(raw: u32) -> Effects {
    let none = Effects::NONE;
    // Registers of three bits.
    let low = |at: u32| raw >> at & 7;
    match raw >> 11 & 0x1f {
        0b00000..=0b00010 => none.writes(low(0)).reads(low(3)),
        0b00011 => none.writes(low(0)).reads(low(3)).reads_if(!bit(raw, 10), low(6)),
        0b00100 => none.writes(low(8)),
        0b00101 => none.reads(low(8)),
        0b00110 | 0b00111 => none.reads(low(8)).writes(low(8)),
        0b01000 if !bit(raw, 10) => {
            let operation = field(raw, 6);
            // TST, CMP, CMN; NEG, MVN.
            let (compares, moves) = (matches!(operation, 8 | 10 | 11), matches!(operation, 9 | 15));
            none.reads(low(3)).reads_if(!moves, low(0)).writes_if(!compares, low(0))
        }
        0b01000 => {
            let (rd, rm) = (low(0) | raw >> 4 & 8, field(raw, 3));
            match raw >> 8 & 3 {
                0 => none.reads(rd).reads(rm).writes(rd),
                1 => none.reads(rd).reads(rm),
                2 => none.reads(rm).writes(rd),
                _ => none.reads(rm).writes(PC.into()).writes_if(bit(raw, 7), LR),
            }
        }
        0b01001 => none.writes(low(8)).reads(PC.into()),
        0b01010 | 0b01011 => none.moves(raw >> 9 & 7 >= 3, low(0)).reads(low(3)).reads(low(6)),
        0b01100..=0b10001 => none.moves(bit(raw, 11), low(0)).reads(low(3)),
        0b10010 | 0b10011 => none.moves(bit(raw, 11), low(8)).reads(SP),
        0b10100 => none.writes(low(8)).reads(PC.into()),
        0b10101 => none.writes(low(8)).reads(SP),
        0b10110 | 0b10111 => match raw >> 8 & 0xf {
            0b0000 => none.reads(SP).writes(SP),
            0b0100 | 0b0101 => none.reads(SP).writes(SP).moves_list(false, raw & 0xff | (raw & 0x100) << 6),
            0b1100 | 0b1101 => none.reads(SP).writes(SP).moves_list(true, raw & 0xff | (raw & 0x100) << 7),
            // BKPT.
            _ => none,
        },
        0b11000 | 0b11001 => none.reads(low(8)).writes(low(8)).moves_list(bit(raw, 11), raw & 0xff),
        // SWI; B under a condition; B.
        0b11010 | 0b11011 if field(raw, 8) == 0xf => none,
        0b11010..=0b11100 => none.writes(PC.into()),
        // BL, BLX.
        _ => none.writes(LR).writes(PC.into()),
    }
}
