//! The registers of one thread, the same on every platform, and their names.

use base::VirtAddr;
use code::x86::Bitness;

/// General registers in the processor's numbering: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 to r15.
pub const GENERAL_64: [&str; 16] =
    ["rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"];
/// The same for 32-bit programs.
pub const GENERAL_32: [&str; 8] = ["eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi"];
/// Segment registers in the order of [`Registers::segments`].
pub const SEGMENTS: [&str; 6] = ["cs", "ss", "ds", "es", "fs", "gs"];
/// Flags with a name, and their bit in EFLAGS (Intel SDM volume 1, section 3.4.3).
pub const FLAGS: [(&str, u8); 9] =
    [("CF", 0), ("PF", 2), ("AF", 4), ("ZF", 6), ("SF", 7), ("TF", 8), ("IF", 9), ("DF", 10), ("OF", 11)];
/// Low bytes of the first four general registers, then the second bytes of the same.
const BYTES_OLD: [&str; 8] = ["al", "cl", "dl", "bl", "ah", "ch", "dh", "bh"];
/// Low bytes that only 64-bit code can name.
const BYTES_NEW: [&str; 4] = ["spl", "bpl", "sil", "dil"];
const WORDS: [&str; 8] = ["ax", "cx", "dx", "bx", "sp", "bp", "si", "di"];
/// Index of the stack pointer in [`Registers::general`].
const SP: usize = 4;
/// Index of the frame pointer in [`Registers::general`].
const BP: usize = 5;

/// Integer registers of one thread. In a 32-bit program the upper halves are zero and r8 to r15 mean nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    /// Word size of the program.
    pub bitness: Bitness,
    /// In the order of [`GENERAL_64`].
    pub general: [u64; 16],
    /// Program counter.
    pub pc: VirtAddr,
    /// EFLAGS or RFLAGS.
    pub flags: u64,
    /// Selectors: cs, ss, ds, es, fs, gs.
    pub segments: [u16; 6],
    /// Base of the fs segment, where the system tells it (0 otherwise).
    pub fs_base: u64,
    /// Base of the gs segment, where the system tells it (0 otherwise).
    pub gs_base: u64,
}

/// DR0 to DR3, DR6 and DR7 (Intel SDM volume 3, section 18.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DebugRegisters {
    /// Linear addresses.
    pub address: [u64; 4],
    /// Status.
    pub dr6: u64,
    /// Control.
    pub dr7: u64,
}

/// A register, a part of one, or a flag, found by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterRef {
    place: Place,
    bits: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    General { index: usize, shift: u32 },
    Pc,
    Flags,
    Flag(u8),
    Segment(usize),
    FsBase,
    GsBase,
}

impl RegisterRef {
    /// Looks a name up, in any case of letters: `ecx`, `cl`, `r8d`, `eip` or `pc`, `eflags`, `zf`, `fs_base`. `None` when
    /// a program of that word size has no such register.
    pub fn find(name: &str, bitness: Bitness) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let name = name.as_str();
        let wide = bitness == Bitness::Bits64;
        let word = if wide { 64 } else { 32 };
        let position = |list: &[&str]| list.iter().position(|known| *known == name);
        let general = |index, shift, bits| Some(Self { place: Place::General { index, shift }, bits });
        if let Some(index) = position(&GENERAL_32) {
            return general(index, 0, 32);
        }
        if let Some(index) = position(&WORDS) {
            return general(index, 0, 16);
        }
        if let Some(index) = position(&BYTES_OLD) {
            return general(index % 4, if index < 4 { 0 } else { 8 }, 8);
        }
        if let Some(index) = position(&SEGMENTS) {
            return Some(Self { place: Place::Segment(index), bits: 16 });
        }
        if let Some((_, bit)) = FLAGS.iter().find(|(flag, _)| flag.eq_ignore_ascii_case(name)) {
            return Some(Self { place: Place::Flag(*bit), bits: 1 });
        }
        match name {
            "pc" => return Some(Self { place: Place::Pc, bits: word }),
            "eip" => return Some(Self { place: Place::Pc, bits: 32 }),
            "eflags" => return Some(Self { place: Place::Flags, bits: 32 }),
            "rip" if wide => return Some(Self { place: Place::Pc, bits: 64 }),
            "rflags" if wide => return Some(Self { place: Place::Flags, bits: 64 }),
            "fs_base" if wide => return Some(Self { place: Place::FsBase, bits: 64 }),
            "gs_base" if wide => return Some(Self { place: Place::GsBase, bits: 64 }),
            _ => {}
        }
        if !wide {
            return None;
        }
        if let Some(index) = position(&GENERAL_64) {
            return general(index, 0, 64);
        }
        if let Some(index) = position(&BYTES_NEW) {
            return general(index + 4, 0, 8);
        }
        let (stem, bits) = match name.strip_suffix(['d', 'w', 'b']) {
            Some(stem) if name.ends_with('d') => (stem, 32),
            Some(stem) if name.ends_with('w') => (stem, 16),
            Some(stem) => (stem, 8),
            None => return None,
        };
        let index = GENERAL_64.iter().position(|known| *known == stem).filter(|index| *index >= 8)?;
        general(index, 0, bits)
    }

    /// Names that exist in such a program and resemble `name`, or the main ones when none does.
    pub fn suggestions(name: &str, bitness: Bitness) -> Vec<&'static str> {
        let name = name.to_ascii_lowercase();
        let all = Self::all(bitness);
        let tail = |text: &str| text.trim_start_matches(['e', 'r']).to_owned();
        let near: Vec<&'static str> =
            all.iter().copied().filter(|known| !tail(known).is_empty() && tail(known) == tail(&name)).collect();
        if near.is_empty() { all } else { near }
    }

    fn all(bitness: Bitness) -> Vec<&'static str> {
        let mut all: Vec<&'static str> = match bitness {
            Bitness::Bits32 => GENERAL_32.to_vec(),
            Bitness::Bits64 => GENERAL_64.to_vec(),
        };
        all.push(Registers::pc_name(bitness));
        all.push(Registers::flags_name(bitness));
        all.extend(SEGMENTS);
        all.extend(WORDS);
        all.extend(BYTES_OLD);
        all.extend(["zf", "cf", "sf", "of", "pf", "af", "df", "if", "tf"]);
        all
    }

    /// Width in bits, 1 to 64.
    pub fn bits(self) -> u32 {
        self.bits
    }

    /// Its value, zero-extended.
    pub fn get(self, registers: &Registers) -> u64 {
        let (raw, shift) = match self.place {
            Place::General { index, shift } => (registers.general.get(index).copied().unwrap_or(0), shift),
            Place::Pc => (registers.pc.get(), 0),
            Place::Flags => (registers.flags, 0),
            Place::Flag(bit) => (registers.flags, u32::from(bit)),
            Place::Segment(index) => (registers.segments.get(index).copied().unwrap_or(0).into(), 0),
            Place::FsBase => (registers.fs_base, 0),
            Place::GsBase => (registers.gs_base, 0),
        };
        (raw >> shift) & mask(self.bits)
    }

    /// Changes it as `mov` to that part would: other bits stay, except that a 32-bit part of a 64-bit register clears the
    /// upper half. Bits of `value` beyond its width are ignored.
    pub fn set(self, registers: &mut Registers, value: u64) {
        let value = value & mask(self.bits);
        let whole = match self.place {
            Place::General { index, shift } => {
                let Some(slot) = registers.general.get_mut(index) else { return };
                *slot = if self.bits == 32 { value } else { merge(*slot, value, shift, self.bits) };
                return;
            }
            Place::Pc => {
                registers.pc = VirtAddr::new(value);
                return;
            }
            Place::Segment(index) => {
                if let Some(slot) = registers.segments.get_mut(index) {
                    *slot = value as u16;
                }
                return;
            }
            Place::Flags => &mut registers.flags,
            Place::Flag(bit) => {
                registers.flags = merge(registers.flags, value, u32::from(bit), 1);
                return;
            }
            Place::FsBase => &mut registers.fs_base,
            Place::GsBase => &mut registers.gs_base,
        };
        *whole = value;
    }
}

/// The `bits` lowest bits set.
pub fn mask(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

fn merge(old: u64, value: u64, shift: u32, bits: u32) -> u64 {
    let field = mask(bits) << shift;
    (old & !field) | (value << shift)
}

impl Registers {
    /// All zero, at `pc`.
    pub fn zeroed(bitness: Bitness, pc: VirtAddr) -> Self {
        Self { bitness, general: [0; 16], pc, flags: 0x202, segments: [0; 6], fs_base: 0, gs_base: 0 }
    }

    /// Stack pointer.
    pub fn sp(&self) -> u64 {
        self.general.get(SP).copied().unwrap_or(0)
    }

    /// Changes the stack pointer.
    pub fn set_sp(&mut self, value: u64) {
        if let Some(slot) = self.general.get_mut(SP) {
            *slot = self.bitness.wrap(value);
        }
    }

    /// Frame pointer: rbp or ebp.
    pub fn bp(&self) -> u64 {
        self.general.get(BP).copied().unwrap_or(0)
    }

    /// `eip` or `rip`.
    pub fn pc_name(bitness: Bitness) -> &'static str {
        if bitness == Bitness::Bits64 { "rip" } else { "eip" }
    }

    /// `eflags` or `rflags`.
    pub fn flags_name(bitness: Bitness) -> &'static str {
        if bitness == Bitness::Bits64 { "rflags" } else { "eflags" }
    }

    /// General registers, program counter and flags under their names of that word size.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let names: &'static [&'static str] = match self.bitness {
            Bitness::Bits32 => &GENERAL_32,
            Bitness::Bits64 => &GENERAL_64,
        };
        let general = names.iter().copied().zip(self.general.iter().copied());
        general.chain([(Self::pc_name(self.bitness), self.pc.get()), (Self::flags_name(self.bitness), self.flags)])
    }

    /// Names of the flags that are set.
    pub fn flag_names(&self) -> impl Iterator<Item = &'static str> + '_ {
        FLAGS.iter().filter(|(_, bit)| self.flags >> bit & 1 == 1).map(|(name, _)| *name)
    }

    /// The value that the decoder of crate `code` asks for by name.
    pub fn for_decoder(&self, name: &str) -> Option<u64> {
        match name {
            "fs_base" => return Some(self.fs_base),
            "gs_base" => return Some(self.gs_base),
            _ => {}
        }
        RegisterRef::find(name, self.bitness).map(|register| register.get(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(bitness: Bitness) -> Registers {
        let mut registers = Registers::zeroed(bitness, VirtAddr::new(0x40_1000));
        registers.general[0] = 0x1122_3344_5566_7788;
        registers.general[6] = 0x55_aa;
        registers.general[9] = 0x99_8877_6655;
        registers.flags = 0x246;
        registers
    }

    #[test]
    fn every_part_reads_its_own_bits() {
        let registers = sample(Bitness::Bits64);
        for (name, bits, value) in [
            ("rax", 64, 0x1122_3344_5566_7788),
            ("EAX", 32, 0x5566_7788),
            ("ax", 16, 0x7788),
            ("ah", 8, 0x77),
            ("al", 8, 0x88),
            ("sil", 8, 0xaa),
            ("r9d", 32, 0x8877_6655),
            ("r9w", 16, 0x6655),
            ("r9b", 8, 0x55),
            ("pc", 64, 0x40_1000),
            ("rip", 64, 0x40_1000),
            ("rflags", 64, 0x246),
            ("zf", 1, 1),
            ("cf", 1, 0),
            ("pf", 1, 1),
        ] {
            let found = RegisterRef::find(name, Bitness::Bits64).expect(name);
            assert_eq!((found.bits(), found.get(&registers)), (bits, value), "{name}");
        }
        assert_eq!(registers.flag_names().collect::<Vec<_>>(), ["PF", "ZF", "IF"]);
    }

    #[test]
    fn names_of_the_other_word_size_and_nonsense_are_unknown() {
        for name in ["rax", "r8", "r8d", "sil", "rip", "rflags", "fs_base"] {
            assert_eq!(RegisterRef::find(name, Bitness::Bits32), None, "{name}");
        }
        for name in ["", "xmm0", "raxd", "axd", "r16", "r8x", "d", "é"] {
            assert_eq!(RegisterRef::find(name, Bitness::Bits64), None, "{name}");
        }
        assert_eq!(RegisterRef::suggestions("rax", Bitness::Bits32), ["eax", "ax"]);
    }

    #[test]
    fn writes_change_a_part_as_mov_does() {
        let mut registers = sample(Bitness::Bits64);
        let mut set = |name: &str, value| {
            RegisterRef::find(name, Bitness::Bits64).unwrap().set(&mut registers, value);
            registers
        };
        assert_eq!(set("ah", 0x101).general[0], 0x1122_3344_5566_0188);
        assert_eq!(set("ax", 0xffff).general[0], 0x1122_3344_5566_ffff);
        // A 32-bit destination clears the upper half (Intel SDM volume 1, section 3.4.1.1).
        assert_eq!(set("eax", 1).general[0], 1);
        assert_eq!(set("cf", 1).flags, 0x247);
        assert_eq!(set("zf", 0).flags, 0x207);
        assert_eq!(set("pc", 0x1234).pc, VirtAddr::new(0x1234));
    }
}
