//! What machine code means: decoding, the memory an instruction touches, which instruction did it, and how to run one elsewhere.

pub mod arm;
pub mod mos6502;
pub mod x86;
