//! An assembler for the handful of 32-bit instructions that the fake processor knows, so that tests can be read.

use std::collections::BTreeMap;

/// eax, ecx, edx, ebx, esp, ebp, esi, edi in the processor's numbering.
pub const EAX: u8 = 0;
pub const ECX: u8 = 1;
pub const EBX: u8 = 3;
pub const ESI: u8 = 6;
pub const EDI: u8 = 7;

/// Code under construction.
pub struct Asm {
    base: u32,
    code: Vec<u8>,
    labels: BTreeMap<String, u32>,
    /// Where a 32-bit distance to a label is to be written.
    fixups: Vec<(usize, String)>,
}

impl Asm {
    pub fn at(base: u32) -> Self {
        Self { base, code: Vec::new(), labels: BTreeMap::new(), fixups: Vec::new() }
    }

    pub fn here(&self) -> u32 {
        self.base + self.code.len() as u32
    }

    /// Where a label that was set before is.
    pub fn address(&self, label: &str) -> u32 {
        self.labels[label]
    }

    pub fn label(&mut self, name: &str) -> &mut Self {
        self.labels.insert(name.to_owned(), self.here());
        self
    }

    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.code.extend(bytes);
        self
    }

    fn with(&mut self, opcode: &[u8], operand: u32) -> &mut Self {
        self.bytes(opcode).bytes(&operand.to_le_bytes())
    }

    fn to(&mut self, opcode: &[u8], label: &str) -> &mut Self {
        self.bytes(opcode);
        self.fixups.push((self.code.len(), label.to_owned()));
        self.bytes(&[0; 4])
    }

    pub fn nop(&mut self) -> &mut Self {
        self.bytes(&[0x90])
    }

    pub fn mov(&mut self, register: u8, value: u32) -> &mut Self {
        self.with(&[0xb8 + register], value)
    }

    pub fn dec(&mut self, register: u8) -> &mut Self {
        self.bytes(&[0x48 + register])
    }

    pub fn pushf(&mut self) -> &mut Self {
        self.bytes(&[0x9c])
    }

    pub fn popf(&mut self) -> &mut Self {
        self.bytes(&[0x9d])
    }

    pub fn push(&mut self, register: u8) -> &mut Self {
        self.bytes(&[0x50 + register])
    }

    pub fn pop(&mut self, register: u8) -> &mut Self {
        self.bytes(&[0x58 + register])
    }

    /// `inc dword [address]`
    pub fn inc_mem(&mut self, address: u32) -> &mut Self {
        self.with(&[0xff, 0x05], address)
    }

    /// `mov [address], eax`
    pub fn store(&mut self, address: u32) -> &mut Self {
        self.with(&[0xa3], address)
    }

    /// `mov eax, [address]`
    pub fn load(&mut self, address: u32) -> &mut Self {
        self.with(&[0xa1], address)
    }

    pub fn jmp(&mut self, label: &str) -> &mut Self {
        self.to(&[0xe9], label)
    }

    /// `jnz`, on the result of the last `inc` or `dec`.
    pub fn jnz(&mut self, label: &str) -> &mut Self {
        self.to(&[0x0f, 0x85], label)
    }

    pub fn call(&mut self, label: &str) -> &mut Self {
        self.to(&[0xe8], label)
    }

    pub fn ret(&mut self) -> &mut Self {
        self.bytes(&[0xc3])
    }

    pub fn int3(&mut self) -> &mut Self {
        self.bytes(&[0xcc])
    }

    pub fn rep_stosb(&mut self) -> &mut Self {
        self.bytes(&[0xf3, 0xaa])
    }

    /// A system call of the fake: its number in eax.
    pub fn sys(&mut self, number: u32) -> &mut Self {
        self.mov(EAX, number).bytes(&[0xcd, 0x80])
    }

    /// The end of a signal handler.
    pub fn sigreturn(&mut self) -> &mut Self {
        self.bytes(&[0xf4])
    }

    /// The code and the addresses of its labels.
    pub fn finish(mut self) -> (Vec<u8>, BTreeMap<String, u32>) {
        for (place, label) in &self.fixups {
            let target = self.labels[label];
            let behind = self.base + *place as u32 + 4;
            self.code[*place..place + 4].copy_from_slice(&target.wrapping_sub(behind).to_le_bytes());
        }
        (self.code, self.labels)
    }
}
