//! The text of an instruction: unified syntax, lower case, numbers as `#0x…`, branch targets as absolute addresses.

use std::fmt::{Result, Write};

use unarm::{FormatIns, FormatValue as _, Ins, LdrStrOffset, MsrOp2, Options, ShiftOp};

/// The mnemonic with its suffixes, such as `ldrbeq`.
pub(super) fn mnemonic(ins: &Ins, options: &Options) -> String {
    let mut out = Out { options, raw: 0, text: String::new() };
    // Writing to a string cannot fail.
    let _ = ins.write_opcode(&mut out);
    out.text
}

/// What stands behind the mnemonic of `ins`, whose word is `raw`; empty when nothing does.
pub(super) fn operands(ins: &Ins, raw: u32, options: &Options) -> String {
    let mut out = Out { options, raw, text: String::new() };
    let _ = ins.write_params(&mut out);
    out.text.trim_start().to_owned()
}

struct Out<'a> {
    options: &'a Options,
    raw: u32,
    text: String,
}

impl Write for Out<'_> {
    fn write_str(&mut self, text: &str) -> Result {
        self.text.push_str(text);
        Ok(())
    }
}

impl FormatIns for Out<'_> {
    fn options(&self) -> &Options {
        self.options
    }

    // The library leaves the 0 that stands for `asr #32` in the bits (ARM ARM A5.2.4).
    fn write_ldr_str_offset(&mut self, offset: LdrStrOffset) -> Result {
        match offset {
            LdrStrOffset::Reg { subtract, rm, shift_op: shift_op @ ShiftOp::Asr, imm: 0 } => {
                LdrStrOffset::Reg { subtract, rm, shift_op, imm: 32 }.write(self)
            }
            _ => offset.write(self),
        }
    }

    // The library rotates by half of what the bits say (ARM ARM A4.1.39).
    fn write_msr_op2(&mut self, operand: MsrOp2) -> Result {
        match operand {
            MsrOp2::Imm(_) => MsrOp2::Imm(rotated_immediate(self.raw)).write(self),
            MsrOp2::Reg(_) => operand.write(self),
        }
    }
}

/// The constant of an ARM data-processing instruction (ARM ARM A5.1.3).
pub(super) fn rotated_immediate(raw: u32) -> u32 {
    (raw & 0xff).rotate_right(raw >> 7 & 0x1e)
}
