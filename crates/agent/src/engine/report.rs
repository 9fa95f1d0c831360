//! What clients are told: the state beside every reply, and the report of a stop.

use super::Engine;
use crate::platform::{Exit, Platform};
use base::VirtAddr;
use code::x86::{self, Bitness, Insn};
use std::collections::BTreeMap;
use wire::commands::{EndReply, StopReply};
use wire::{HexAddr, Instruction, Live, Reply, State, StopReport};

impl<P: Platform> Engine<P> {
    /// The state of the program, as every reply carries it.
    pub(super) fn live(&self) -> Live {
        let stopped = self.focus.filter(|_| self.phase == State::Stopped);
        let (exit_code, exit_signal) = match (&self.exit, self.phase) {
            (Some(Exit::Code(code)), State::Exited) => (Some(*code), None),
            (Some(Exit::Signal(name)), State::Exited) => (None, Some(name.clone())),
            _ => (None, None),
        };
        Live {
            state: self.phase,
            status: self.phase,
            reason: self.reason.clone(),
            pc: stopped.map(|(_, pc)| HexAddr(pc)),
            thread: stopped.map(|(thread, _)| thread),
            generation: self.generation,
            exit_code,
            exit_signal,
        }
    }

    /// What a wait for the program ends with.
    pub(super) fn stop_reply(&self, timed_out: bool) -> Reply {
        Reply::Stop(StopReply { timed_out, stop: self.stop.clone(), live: self.live() })
    }

    pub(super) fn end_reply(&self) -> Reply {
        let pid = self.target.as_ref().map_or(0, |target| target.pid);
        Reply::End(EndReply { pid, notes: Vec::new(), live: self.live() })
    }

    /// Adds what every report has: where the thread is, its registers, and the notes that have gathered.
    pub(super) fn complete(&mut self, mut report: StopReport) -> StopReport {
        report.notes.append(&mut self.notes);
        let Some((thread, pc)) = self.focus else { return report };
        report.symbol = self.symbolic(pc);
        report.location = self.in_module(pc);
        report.instruction = self.instruction_at(pc);
        if let Ok(registers) = self.platform.registers(thread) {
            report.registers = hex_registers(registers.named(), registers.bitness);
        }
        report
    }

    /// The instruction at an address, as the program has it; `None` where there is none.
    pub(super) fn instruction_at(&mut self, address: VirtAddr) -> Option<Instruction> {
        let insn = self.decode_at(address)?;
        Some(self.present(&insn))
    }

    pub(super) fn decode_at(&self, address: VirtAddr) -> Option<Insn> {
        let bytes = self.peek(address, x86::INSN_BYTES);
        x86::decode(&bytes, address.get(), self.bitness()).ok()
    }

    /// A decoded instruction as clients see it.
    pub(super) fn present(&mut self, insn: &Insn) -> Instruction {
        let addr = VirtAddr::new(insn.address);
        Instruction {
            addr: HexAddr(addr),
            bytes: hex(insn.bytes()),
            text: insn.text.clone(),
            location: self.location(addr),
        }
    }
}

/// Registers as clients see them: name to hexadecimal value.
pub(super) fn hex_registers(
    named: impl Iterator<Item = (&'static str, u64)>,
    bitness: Bitness,
) -> BTreeMap<String, String> {
    named.map(|(name, value)| (name.to_owned(), format!("0x{:x}", bitness.wrap(value)))).collect()
}

/// Bytes in hexadecimal, in order of address.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `x86` or `x86_64`.
pub(super) fn arch(bitness: Bitness) -> &'static str {
    match bitness {
        Bitness::Bits32 => "x86",
        Bitness::Bits64 => "x86_64",
    }
}
