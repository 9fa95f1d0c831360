//! Instructions of the NMOS 6502 and its relatives, the 6510 of the Commodore 64 among them, with those that the manual does not
//! list. Documented ones: MOS Technology, MCS6500 Microcomputer Family Programming Manual, appendix B. The others have the
//! names that 64tass gives them (`.cpu "6502i"`); `jam` stands for the twelve that halt the processor.

/// How an instruction names its operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// None.
    Implied,
    /// The accumulator.
    Accumulator,
    /// `#$12`
    Immediate,
    /// `$12`
    ZeroPage,
    /// `$12,x`
    ZeroPageX,
    /// `$12,y`
    ZeroPageY,
    /// `$1234`
    Absolute,
    /// `$1234,x`
    AbsoluteX,
    /// `$1234,y`
    AbsoluteY,
    /// `($12,x)`
    IndirectX,
    /// `($12),y`
    IndirectY,
    /// `($1234)`, of `jmp` alone.
    Indirect,
    /// A branch: one byte, counted from the next instruction.
    Relative,
}

use Mode as M;

impl Mode {
    /// Bytes of an instruction with it, 1 to 3.
    pub const fn length(self) -> u8 {
        match self {
            Self::Implied | Self::Accumulator => 1,
            Self::Absolute | Self::AbsoluteX | Self::AbsoluteY | Self::Indirect => 3,
            _ => 2,
        }
    }
}

/// One instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Where it stands.
    pub address: u16,
    /// Its first byte.
    pub opcode: u8,
    /// Its name, in small letters.
    pub mnemonic: &'static str,
    /// How it names its operand.
    pub mode: Mode,
    /// What follows the first byte: one byte, two with the low one first, or 0 for none.
    pub operand: u16,
}

/// The instruction that `bytes` begin with; `None` when more bytes are needed. Any bytes are one: no code is undefined.
pub fn decode(address: u16, bytes: &[u8]) -> Option<Instruction> {
    let opcode = *bytes.first()?;
    let [first, ..] = &OPCODES;
    let (mnemonic, mode) = *OPCODES.get(usize::from(opcode)).unwrap_or(first);
    let operand = match mode.length() {
        1 => 0,
        2 => u16::from(*bytes.get(1)?),
        _ => u16::from_le_bytes([*bytes.get(1)?, *bytes.get(2)?]),
    };
    Some(Instruction { address, opcode, mnemonic, mode, operand })
}

impl Instruction {
    /// Bytes, 1 to 3.
    pub const fn length(&self) -> u8 {
        self.mode.length()
    }

    /// The address that its operand names: where it may go on, or what it reads or writes before an index is added. Branches
    /// and what follows wrap as the program counter does, after $FFFF.
    pub fn target(&self) -> Option<u16> {
        match self.mode {
            Mode::Implied | Mode::Accumulator | Mode::Immediate => None,
            Mode::Relative => {
                let [distance, _] = self.operand.to_le_bytes();
                Some(self.address.wrapping_add(2).wrapping_add_signed(i16::from(distance.cast_signed())))
            }
            _ => Some(self.operand),
        }
    }

    /// Whether the manual lists it.
    pub fn is_documented(&self) -> bool {
        // Columns 3, 7, B and F of the matrix have none; of the others these rows and columns are beyond the manual.
        match self.opcode & 0x0F {
            0x03 | 0x07 | 0x0B | 0x0F => false,
            0x02 => self.opcode == 0xA2,
            _ => !(self.mnemonic == "nop" && self.opcode != 0xEA || matches!(self.opcode, 0x9C | 0x9E)),
        }
    }

    /// The instruction as an assembler takes it, in small letters; `label` gives addresses names.
    pub fn text(&self, label: impl Fn(u16) -> Option<String>) -> String {
        let name = self.mnemonic;
        let target = self.target().unwrap_or_default();
        let byte = || label(target).unwrap_or_else(|| format!("${:02x}", self.operand));
        // Below $100 an assembler would take the shorter form.
        let wide = if self.operand < 0x100 { "@w " } else { "" };
        let word = || label(target).unwrap_or_else(|| format!("${target:04x}"));
        match self.mode {
            Mode::Implied => name.to_owned(),
            Mode::Accumulator => format!("{name} a"),
            Mode::Immediate => format!("{name} #${:02x}", self.operand),
            Mode::ZeroPage => format!("{name} {}", byte()),
            Mode::ZeroPageX => format!("{name} {},x", byte()),
            Mode::ZeroPageY => format!("{name} {},y", byte()),
            // Jumps have no shorter form.
            Mode::Absolute if matches!(name, "jmp" | "jsr") => format!("{name} {}", word()),
            Mode::Absolute => format!("{name} {wide}{}", word()),
            Mode::AbsoluteX => format!("{name} {wide}{},x", word()),
            Mode::AbsoluteY => format!("{name} {wide}{},y", word()),
            Mode::IndirectX => format!("{name} ({},x)", byte()),
            Mode::IndirectY => format!("{name} ({}),y", byte()),
            Mode::Indirect => format!("{name} ({})", word()),
            Mode::Relative => format!("{name} {}", word()),
        }
    }
}

/// Name and mode of each first byte, in rows of sixteen.
#[rustfmt::skip]
const OPCODES: [(&str, Mode); 256] = [
    ("brk", M::Implied), ("ora", M::IndirectX), ("jam", M::Implied), ("slo", M::IndirectX), ("nop", M::ZeroPage), ("ora", M::ZeroPage), ("asl", M::ZeroPage), ("slo", M::ZeroPage), ("php", M::Implied), ("ora", M::Immediate), ("asl", M::Accumulator), ("anc", M::Immediate), ("nop", M::Absolute), ("ora", M::Absolute), ("asl", M::Absolute), ("slo", M::Absolute),
    ("bpl", M::Relative), ("ora", M::IndirectY), ("jam", M::Implied), ("slo", M::IndirectY), ("nop", M::ZeroPageX), ("ora", M::ZeroPageX), ("asl", M::ZeroPageX), ("slo", M::ZeroPageX), ("clc", M::Implied), ("ora", M::AbsoluteY), ("nop", M::Implied), ("slo", M::AbsoluteY), ("nop", M::AbsoluteX), ("ora", M::AbsoluteX), ("asl", M::AbsoluteX), ("slo", M::AbsoluteX),
    ("jsr", M::Absolute), ("and", M::IndirectX), ("jam", M::Implied), ("rla", M::IndirectX), ("bit", M::ZeroPage), ("and", M::ZeroPage), ("rol", M::ZeroPage), ("rla", M::ZeroPage), ("plp", M::Implied), ("and", M::Immediate), ("rol", M::Accumulator), ("anc", M::Immediate), ("bit", M::Absolute), ("and", M::Absolute), ("rol", M::Absolute), ("rla", M::Absolute),
    ("bmi", M::Relative), ("and", M::IndirectY), ("jam", M::Implied), ("rla", M::IndirectY), ("nop", M::ZeroPageX), ("and", M::ZeroPageX), ("rol", M::ZeroPageX), ("rla", M::ZeroPageX), ("sec", M::Implied), ("and", M::AbsoluteY), ("nop", M::Implied), ("rla", M::AbsoluteY), ("nop", M::AbsoluteX), ("and", M::AbsoluteX), ("rol", M::AbsoluteX), ("rla", M::AbsoluteX),
    ("rti", M::Implied), ("eor", M::IndirectX), ("jam", M::Implied), ("sre", M::IndirectX), ("nop", M::ZeroPage), ("eor", M::ZeroPage), ("lsr", M::ZeroPage), ("sre", M::ZeroPage), ("pha", M::Implied), ("eor", M::Immediate), ("lsr", M::Accumulator), ("alr", M::Immediate), ("jmp", M::Absolute), ("eor", M::Absolute), ("lsr", M::Absolute), ("sre", M::Absolute),
    ("bvc", M::Relative), ("eor", M::IndirectY), ("jam", M::Implied), ("sre", M::IndirectY), ("nop", M::ZeroPageX), ("eor", M::ZeroPageX), ("lsr", M::ZeroPageX), ("sre", M::ZeroPageX), ("cli", M::Implied), ("eor", M::AbsoluteY), ("nop", M::Implied), ("sre", M::AbsoluteY), ("nop", M::AbsoluteX), ("eor", M::AbsoluteX), ("lsr", M::AbsoluteX), ("sre", M::AbsoluteX),
    ("rts", M::Implied), ("adc", M::IndirectX), ("jam", M::Implied), ("rra", M::IndirectX), ("nop", M::ZeroPage), ("adc", M::ZeroPage), ("ror", M::ZeroPage), ("rra", M::ZeroPage), ("pla", M::Implied), ("adc", M::Immediate), ("ror", M::Accumulator), ("arr", M::Immediate), ("jmp", M::Indirect), ("adc", M::Absolute), ("ror", M::Absolute), ("rra", M::Absolute),
    ("bvs", M::Relative), ("adc", M::IndirectY), ("jam", M::Implied), ("rra", M::IndirectY), ("nop", M::ZeroPageX), ("adc", M::ZeroPageX), ("ror", M::ZeroPageX), ("rra", M::ZeroPageX), ("sei", M::Implied), ("adc", M::AbsoluteY), ("nop", M::Implied), ("rra", M::AbsoluteY), ("nop", M::AbsoluteX), ("adc", M::AbsoluteX), ("ror", M::AbsoluteX), ("rra", M::AbsoluteX),
    ("nop", M::Immediate), ("sta", M::IndirectX), ("nop", M::Immediate), ("sax", M::IndirectX), ("sty", M::ZeroPage), ("sta", M::ZeroPage), ("stx", M::ZeroPage), ("sax", M::ZeroPage), ("dey", M::Implied), ("nop", M::Immediate), ("txa", M::Implied), ("ane", M::Immediate), ("sty", M::Absolute), ("sta", M::Absolute), ("stx", M::Absolute), ("sax", M::Absolute),
    ("bcc", M::Relative), ("sta", M::IndirectY), ("jam", M::Implied), ("sha", M::IndirectY), ("sty", M::ZeroPageX), ("sta", M::ZeroPageX), ("stx", M::ZeroPageY), ("sax", M::ZeroPageY), ("tya", M::Implied), ("sta", M::AbsoluteY), ("txs", M::Implied), ("shs", M::AbsoluteY), ("shy", M::AbsoluteX), ("sta", M::AbsoluteX), ("shx", M::AbsoluteY), ("sha", M::AbsoluteY),
    ("ldy", M::Immediate), ("lda", M::IndirectX), ("ldx", M::Immediate), ("lax", M::IndirectX), ("ldy", M::ZeroPage), ("lda", M::ZeroPage), ("ldx", M::ZeroPage), ("lax", M::ZeroPage), ("tay", M::Implied), ("lda", M::Immediate), ("tax", M::Implied), ("lax", M::Immediate), ("ldy", M::Absolute), ("lda", M::Absolute), ("ldx", M::Absolute), ("lax", M::Absolute),
    ("bcs", M::Relative), ("lda", M::IndirectY), ("jam", M::Implied), ("lax", M::IndirectY), ("ldy", M::ZeroPageX), ("lda", M::ZeroPageX), ("ldx", M::ZeroPageY), ("lax", M::ZeroPageY), ("clv", M::Implied), ("lda", M::AbsoluteY), ("tsx", M::Implied), ("las", M::AbsoluteY), ("ldy", M::AbsoluteX), ("lda", M::AbsoluteX), ("ldx", M::AbsoluteY), ("lax", M::AbsoluteY),
    ("cpy", M::Immediate), ("cmp", M::IndirectX), ("nop", M::Immediate), ("dcp", M::IndirectX), ("cpy", M::ZeroPage), ("cmp", M::ZeroPage), ("dec", M::ZeroPage), ("dcp", M::ZeroPage), ("iny", M::Implied), ("cmp", M::Immediate), ("dex", M::Implied), ("sbx", M::Immediate), ("cpy", M::Absolute), ("cmp", M::Absolute), ("dec", M::Absolute), ("dcp", M::Absolute),
    ("bne", M::Relative), ("cmp", M::IndirectY), ("jam", M::Implied), ("dcp", M::IndirectY), ("nop", M::ZeroPageX), ("cmp", M::ZeroPageX), ("dec", M::ZeroPageX), ("dcp", M::ZeroPageX), ("cld", M::Implied), ("cmp", M::AbsoluteY), ("nop", M::Implied), ("dcp", M::AbsoluteY), ("nop", M::AbsoluteX), ("cmp", M::AbsoluteX), ("dec", M::AbsoluteX), ("dcp", M::AbsoluteX),
    ("cpx", M::Immediate), ("sbc", M::IndirectX), ("nop", M::Immediate), ("isb", M::IndirectX), ("cpx", M::ZeroPage), ("sbc", M::ZeroPage), ("inc", M::ZeroPage), ("isb", M::ZeroPage), ("inx", M::Implied), ("sbc", M::Immediate), ("nop", M::Implied), ("sbc", M::Immediate), ("cpx", M::Absolute), ("sbc", M::Absolute), ("inc", M::Absolute), ("isb", M::Absolute),
    ("beq", M::Relative), ("sbc", M::IndirectY), ("jam", M::Implied), ("isb", M::IndirectY), ("nop", M::ZeroPageX), ("sbc", M::ZeroPageX), ("inc", M::ZeroPageX), ("isb", M::ZeroPageX), ("sed", M::Implied), ("sbc", M::AbsoluteY), ("nop", M::Implied), ("isb", M::AbsoluteY), ("nop", M::AbsoluteX), ("sbc", M::AbsoluteX), ("inc", M::AbsoluteX), ("isb", M::AbsoluteX),
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(address: u16, bytes: &[u8]) -> String {
        decode(address, bytes).unwrap().text(|_| None)
    }

    #[test]
    fn operands_are_read_low_byte_first_and_branches_from_the_next_instruction() {
        assert_eq!(text(0x1000, &[0x8D, 0x20, 0xD0]), "sta $d020");
        assert_eq!(text(0x1000, &[0xB1, 0xFB]), "lda ($fb),y");
        assert_eq!(text(0x1000, &[0xAD, 0x12, 0x00]), "lda @w $0012");
        // $1000 + 2 - 2, and $FFFE + 2 + 127 beyond the end.
        assert_eq!(text(0x1000, &[0xD0, 0xFE]), "bne $1000");
        assert_eq!(text(0xFFFE, &[0xF0, 0x7F]), "beq $007f");
        assert_eq!(decode(0, &[0x20, 0xD2]), None);
        assert_eq!(decode(0, &[]), None);
        let named = decode(0, &[0x20, 0xD2, 0xFF]).unwrap().text(|at| (at == 0xFFD2).then(|| "CHROUT".to_owned()));
        assert_eq!(named, "jsr CHROUT");
    }

    #[test]
    fn the_manual_lists_151_instructions() {
        // Appendix B: 56 mnemonics in 151 forms.
        let all: Vec<Instruction> = (0..=255).map(|opcode| decode(0, &[opcode, 0, 0]).unwrap()).collect();
        let listed: Vec<&Instruction> = all.iter().filter(|one| one.is_documented()).collect();
        assert_eq!(listed.len(), 151);
        let names: std::collections::BTreeSet<&str> = listed.iter().map(|one| one.mnemonic).collect();
        assert_eq!(names.len(), 56, "{names:?}");
        assert_eq!(all.iter().filter(|one| one.mnemonic == "jam").count(), 12);
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_instruction_within_them(address: u16, bytes in proptest::collection::vec(any::<u8>(), 0..4)) {
            match decode(address, &bytes) {
                Some(one) => {
                    prop_assert!((1..=3).contains(&one.length()) && usize::from(one.length()) <= bytes.len());
                    prop_assert!(!one.text(|_| None).is_empty());
                }
                None => prop_assert!(bytes.len() < 3),
            }
        }
    }
}
