//! The fake processor: one instruction of one thread at a time, on the fake memory. It knows what the fake programs
//! contain and what scratch slots contain, and raises an exception for everything else, as a processor does.

use super::memory::Memory;
use crate::registers::Registers;
use base::VirtAddr;

const ZERO_FLAG: u64 = 1 << 6;

/// What executing one instruction led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is done.
    Next,
    /// An INT3; the program counter is behind it.
    Int3,
    /// An exception; nothing has changed.
    Fault { name: &'static str, number: u32, address: Option<u64> },
    /// A system call; the program counter is behind it.
    System(u32),
    /// The end of a signal handler.
    SignalReturn,
}

/// Memory that an instruction touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    pub address: u64,
    pub size: u64,
    pub write: bool,
}

struct Cpu<'a> {
    registers: &'a mut Registers,
    memory: &'a mut Memory,
    accesses: Vec<Access>,
}

struct Fault(u64);

/// Executes the instruction at the program counter. Registers and memory change only when it is done.
pub fn execute(registers: &mut Registers, memory: &mut Memory) -> (Outcome, Vec<Access>) {
    let before = *registers;
    let mut cpu = Cpu { registers, memory, accesses: Vec::new() };
    match cpu.step() {
        Ok(outcome) => {
            if matches!(outcome, Outcome::Fault { .. }) {
                *cpu.registers = before;
            }
            (outcome, cpu.accesses)
        }
        Err(Fault(address)) => {
            *cpu.registers = before;
            (Outcome::Fault { name: "SIGSEGV", number: 11, address: Some(address) }, Vec::new())
        }
    }
}

impl Cpu<'_> {
    fn step(&mut self) -> Result<Outcome, Fault> {
        let pc = self.registers.pc.get();
        let illegal = Outcome::Fault { name: "SIGILL", number: 4, address: Some(pc) };
        let opcode = self.byte(pc)?;
        let low = usize::from(opcode & 7);
        match opcode {
            0x90 => self.go(pc + 1),
            0x40..=0x47 => self.count(low, 1, pc),
            0x48..=0x4f => self.count(low, u64::from(u32::MAX), pc),
            0x50..=0x57 => {
                self.push(self.registers.general[low])?;
                self.go(pc + 1)
            }
            0x58..=0x5f => {
                let value = self.pop()?;
                self.registers.general[low] = value;
                self.go(pc + 1)
            }
            0x68 => {
                let value = self.word(pc + 1)?;
                self.push(value)?;
                self.go(pc + 5)
            }
            0x9c => {
                self.push(self.registers.flags)?;
                self.go(pc + 1)
            }
            0x9d => {
                self.registers.flags = self.pop()?;
                self.go(pc + 1)
            }
            0xa1 => {
                let address = self.word(pc + 1)?;
                self.registers.general[0] = self.load(address, 4)?;
                self.go(pc + 5)
            }
            0xa3 => {
                let address = self.word(pc + 1)?;
                self.store(address, 4, self.registers.general[0])?;
                self.go(pc + 5)
            }
            0xb8..=0xbf => {
                self.registers.general[low] = self.word(pc + 1)?;
                self.go(pc + 5)
            }
            0xc3 => {
                let target = self.pop()?;
                self.go(target)
            }
            0xcc => {
                self.registers.pc = VirtAddr::new(pc + 1);
                Ok(Outcome::Int3)
            }
            0xcd => {
                self.registers.pc = VirtAddr::new(pc + 2);
                Ok(Outcome::System(self.registers.general[0] as u32))
            }
            0xe8 => {
                let distance = self.word(pc + 1)?;
                self.push(pc + 5)?;
                self.go(pc + 5 + distance)
            }
            0xe9 => {
                let distance = self.word(pc + 1)?;
                self.go(pc + 5 + distance)
            }
            0xf4 => Ok(Outcome::SignalReturn),
            0x74 | 0x75 => {
                let distance = self.byte(pc + 1)? as i8;
                let taken = (self.registers.flags & ZERO_FLAG != 0) == (opcode == 0x74);
                self.go(if taken { (pc + 2).wrapping_add(distance as u64) } else { pc + 2 })
            }
            0x0f => match self.byte(pc + 1)? {
                0x85 => {
                    let distance = self.word(pc + 2)?;
                    let taken = self.registers.flags & ZERO_FLAG == 0;
                    self.go(if taken { pc + 6 + distance } else { pc + 6 })
                }
                _ => Ok(illegal),
            },
            0xf3 if self.byte(pc + 1)? == 0xaa => self.rep_stosb(pc),
            0xff => match self.byte(pc + 1)? {
                0x05 => {
                    let address = self.word(pc + 2)?;
                    let value = (self.load(address, 4)? + 1) & 0xffff_ffff;
                    self.store(address, 4, value)?;
                    self.set_zero(value);
                    self.go(pc + 6)
                }
                // call [address] and jmp [address]
                modrm @ (0x15 | 0x25) => {
                    let place = self.word(pc + 2)?;
                    let target = self.load(place, 4)?;
                    if modrm == 0x15 {
                        self.push(pc + 6)?;
                    }
                    self.go(target)
                }
                _ => Ok(illegal),
            },
            _ => Ok(illegal),
        }
    }

    fn rep_stosb(&mut self, pc: u64) -> Result<Outcome, Fault> {
        if self.registers.general[1] == 0 {
            return self.go(pc + 2);
        }
        self.store(self.registers.general[7], 1, self.registers.general[0])?;
        self.registers.general[7] = (self.registers.general[7] + 1) & 0xffff_ffff;
        self.registers.general[1] -= 1;
        self.go(if self.registers.general[1] == 0 { pc + 2 } else { pc })
    }

    fn go(&mut self, pc: u64) -> Result<Outcome, Fault> {
        self.registers.pc = VirtAddr::new(pc & 0xffff_ffff);
        Ok(Outcome::Next)
    }

    fn count(&mut self, register: usize, by: u64, pc: u64) -> Result<Outcome, Fault> {
        let value = (self.registers.general[register] + by) & 0xffff_ffff;
        self.registers.general[register] = value;
        self.set_zero(value);
        self.go(pc + 1)
    }

    fn set_zero(&mut self, value: u64) {
        self.registers.flags &= !ZERO_FLAG;
        if value == 0 {
            self.registers.flags |= ZERO_FLAG;
        }
    }

    /// An instruction byte: not an access that a data breakpoint sees.
    fn byte(&self, address: u64) -> Result<u8, Fault> {
        self.memory.get(address & 0xffff_ffff).ok_or(Fault(address))
    }

    fn word(&self, address: u64) -> Result<u64, Fault> {
        (0..4).try_fold(0, |value, index| Ok(value | u64::from(self.byte(address + index)?) << (8 * index)))
    }

    fn load(&mut self, address: u64, size: u64) -> Result<u64, Fault> {
        let mut value = 0;
        for index in 0..size {
            value |= u64::from(self.byte(address + index)?) << (8 * index);
        }
        self.accesses.push(Access { address, size, write: false });
        Ok(value)
    }

    fn store(&mut self, address: u64, size: u64, value: u64) -> Result<(), Fault> {
        for index in 0..size {
            self.byte(address + index)?;
        }
        for index in 0..size {
            self.memory.set(address + index, (value >> (8 * index)) as u8);
        }
        self.accesses.push(Access { address, size, write: true });
        Ok(())
    }

    fn push(&mut self, value: u64) -> Result<(), Fault> {
        let sp = (self.registers.sp() - 4) & 0xffff_ffff;
        self.store(sp, 4, value)?;
        self.registers.set_sp(sp);
        Ok(())
    }

    fn pop(&mut self) -> Result<u64, Fault> {
        let sp = self.registers.sp();
        let value = self.load(sp, 4)?;
        self.registers.set_sp(sp + 4);
        Ok(value)
    }
}
