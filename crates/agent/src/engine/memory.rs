//! Memory and registers for clients.

use super::condition::unknown_register;
use super::report::hex_registers;
use super::{Engine, State, refused};
use crate::platform::{Platform, PlatformError, ThreadId};
use crate::registers::{RegisterRef, Registers, SEGMENTS, mask};
use crate::reply::Outcome;
use base::{VirtAddr, limits};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use code::x86::{self, Bitness};
use std::collections::BTreeMap;
use wire::commands::{
    GetRegisters, MemoryReply, ReadMemory, RegisterSet, RegistersReply, SetRegisters, WriteMemory, WrittenReply,
};
use wire::{AgentError, Bytes, ErrorCode, HexAddr, Reply};

impl<P: Platform> Engine<P> {
    pub(super) fn read_memory(&mut self, params: &ReadMemory) -> Outcome {
        self.alive()?;
        if params.length == 0 || params.length > limits::MAX_READ_BYTES {
            return Err(out_of_range("length", params.length, limits::MAX_READ_BYTES)
                .hint("read larger areas in several pieces"));
        }
        let address = self.address(&params.addr.0)?;
        let mut data = vec![0; params.length as usize];
        let count = match self.sites.read(&self.platform, address, &mut data) {
            Ok(count) => count,
            Err(PlatformError::Unmapped { usable }) => usable as usize,
            Err(error) => return Err(refused(error, &format!("reading memory at {address}"))),
        };
        if count < data.len() {
            return Err(unmapped(address, data.get(..count).unwrap_or_default(), params.length));
        }
        Ok(Reply::Memory(MemoryReply {
            addr: HexAddr(address),
            length: params.length,
            data: Bytes(data),
            live: self.live(),
        }))
    }

    pub(super) fn write_memory(&mut self, params: &WriteMemory) -> Outcome {
        self.alive()?;
        let bytes = &params.data.0;
        let length = bytes.len() as u64;
        if length == 0 || length > limits::MAX_WRITE_BYTES {
            return Err(out_of_range("data", length, limits::MAX_WRITE_BYTES));
        }
        let address = self.address(&params.addr.0)?;
        let bitness = self.bitness();
        // An instruction under a breakpoint that begins before the bytes may reach into them.
        let affected = self.sites.within(address, length, x86::INSN_BYTES as u64 - 1);
        if !affected.is_empty() {
            self.hold();
            self.settle();
            self.alive()?;
        }
        let written = self.sites.write(&mut self.platform, address, bytes);
        if written.is_ok() && self.options.out_of_line {
            self.sites.replan(&mut self.platform, &affected, bitness);
        }
        let outcome = match written {
            Ok(kept) => {
                let kept = kept.into_iter().filter(|at| self.breakpoints.iter().any(|set| set.at == Some(*at)));
                let breakpoints_kept = kept.map(HexAddr).collect();
                Ok(Reply::Written(WrittenReply { addr: HexAddr(address), length, breakpoints_kept, live: self.live() }))
            }
            Err(PlatformError::Unmapped { usable }) => {
                let bad = address.wrapping_add(usable);
                Err(AgentError::new(
                    ErrorCode::AddressUnmapped,
                    format!(
                        "nothing was written: {usable} of {length} bytes are mapped; the first bad address is {bad}"
                    ),
                )
                .hint("list_modules shows what is mapped")
                .detail("first_bad", bad.to_string())
                .detail("writable", usable))
            }
            Err(error) => Err(refused(error, &format!("writing memory at {address}"))),
        };
        self.run_on();
        outcome
    }

    pub(super) fn get_registers(&mut self, params: &GetRegisters) -> Outcome {
        let thread = self.stopped_thread(params.thread, "its registers change with every instruction")?;
        let default = [RegisterSet::General, RegisterSet::Segment, RegisterSet::Debug];
        let sets = params.sets.as_deref().unwrap_or(&default);
        self.registers_reply(thread, sets)
    }

    fn registers_reply(&mut self, thread: ThreadId, sets: &[RegisterSet]) -> Outcome {
        let doing = format!("reading the registers of thread {thread}");
        let registers = self.platform.registers(thread).map_err(|error| refused(error, &doing))?;
        let mut all = BTreeMap::new();
        for set in sets {
            match set {
                RegisterSet::General => all.extend(hex_registers(registers.named(), registers.bitness)),
                RegisterSet::Segment => all.extend(segments(&registers)),
                RegisterSet::Debug => {
                    let debug = self.platform.debug_registers(thread).map_err(|error| refused(error, &doing))?;
                    for (index, address) in debug.address.iter().enumerate() {
                        all.insert(format!("dr{index}"), format!("0x{address:x}"));
                    }
                    all.insert("dr6".to_owned(), format!("0x{:x}", debug.dr6));
                    all.insert("dr7".to_owned(), format!("0x{:x}", debug.dr7));
                }
                RegisterSet::X87 | RegisterSet::Sse => {
                    let image = self.platform.fxsave(thread).map_err(|error| refused(error, &doing))?;
                    if *set == RegisterSet::X87 {
                        all.extend(x87(&image));
                    } else {
                        all.extend(sse(&image, registers.bitness));
                    }
                }
            }
        }
        Ok(Reply::Registers(RegistersReply {
            registers: all,
            flags: registers.flag_names().map(str::to_owned).collect(),
            of_thread: thread,
            live: self.live(),
        }))
    }

    pub(super) fn set_registers(&mut self, params: &SetRegisters) -> Outcome {
        let thread = self.stopped_thread(params.thread, "registers can be set while it is stopped")?;
        if params.registers.is_empty() {
            return Err(AgentError::new(ErrorCode::InvalidParams, "`registers` names no register")
                .hint("write it like {\"eax\": \"0x10\", \"zf\": 1}"));
        }
        let doing = format!("setting the registers of thread {thread}");
        let before = self.platform.registers(thread).map_err(|error| refused(error, &doing))?;
        let mut after = before;
        for (name, value) in &params.registers {
            let register =
                RegisterRef::find(name, before.bitness).ok_or_else(|| unknown_register(name, before.bitness))?;
            let (most, least) = (i128::from(mask(register.bits())), -(1_i128 << (register.bits() - 1)));
            let raw = value.get();
            if raw > most || raw < least {
                return Err(AgentError::new(
                    ErrorCode::InvalidParams,
                    format!("{raw} does not fit in `{name}`: {} bits hold {least} to {most}", register.bits()),
                )
                .detail("least", least.to_string())
                .detail("most", most.to_string()));
            }
            register.set(&mut after, value.bits());
        }
        self.platform.set_registers(thread, &after).map_err(|error| refused(error, &doing))?;
        if after.pc != before.pc {
            if let Some(state) = self.threads.get_mut(&thread) {
                state.pass = None;
            }
            if let Some((_, pc)) = self.focus.as_mut().filter(|(focus, _)| *focus == thread) {
                *pc = after.pc;
            }
        }
        debug_assert!(self.phase == State::Stopped, "registers are set while stopped only");
        let mut sets = vec![RegisterSet::General];
        if params.registers.keys().any(|name| SEGMENTS.contains(&name.as_str()) || name.ends_with("_base")) {
            sets.push(RegisterSet::Segment);
        }
        self.registers_reply(thread, &sets)
    }
}

fn out_of_range(name: &str, asked: u64, most: u64) -> AgentError {
    AgentError::new(ErrorCode::LimitExceeded, format!("`{name}` is {asked} bytes; allowed are 1 to {most}"))
        .detail("limit", most)
        .detail("asked", asked)
}

fn unmapped(address: VirtAddr, readable: &[u8], asked: u64) -> AgentError {
    let count = readable.len() as u64;
    let bad = address.wrapping_add(count);
    let sentence = format!("{count} of {asked} bytes are readable; the first bad address is {bad}");
    let shown = readable.get(..limits::PARTIAL_READ_BYTES).unwrap_or(readable);
    AgentError::new(ErrorCode::AddressUnmapped, sentence)
        .hint("what is readable stands in the details; list_modules shows what is mapped")
        .detail("first_bad", bad.to_string())
        .detail("readable", count)
        .detail("data", STANDARD.encode(shown))
}

fn segments(registers: &Registers) -> BTreeMap<String, String> {
    let selectors = SEGMENTS.iter().zip(registers.segments.iter());
    let mut all: BTreeMap<String, String> =
        selectors.map(|(name, value)| ((*name).to_owned(), format!("0x{value:x}"))).collect();
    if registers.bitness == Bitness::Bits64 {
        all.insert("fs_base".to_owned(), format!("0x{:x}", registers.fs_base));
        all.insert("gs_base".to_owned(), format!("0x{:x}", registers.gs_base));
    }
    all
}

/// A little-endian field of the FXSAVE image (Intel SDM volume 1, table 10-2).
fn field(image: &[u8], offset: usize, length: usize) -> Option<String> {
    let bytes = image.get(offset..offset.checked_add(length)?)?;
    let digits: String = bytes.iter().rev().map(|byte| format!("{byte:02x}")).collect();
    Some(format!("0x{digits}"))
}

fn x87(image: &[u8]) -> BTreeMap<String, String> {
    let words = [("fctrl", 0), ("fstat", 2)].map(|(name, offset)| (name.to_owned(), field(image, offset, 2)));
    let stack = (0..8).map(|index| (format!("st{index}"), field(image, 32 + index * 16, 10)));
    let tag = [("ftag".to_owned(), field(image, 4, 1))];
    words.into_iter().chain(tag).chain(stack).filter_map(|(name, value)| Some((name, value?))).collect()
}

fn sse(image: &[u8], bitness: Bitness) -> BTreeMap<String, String> {
    let count = if bitness == Bitness::Bits64 { 16 } else { 8 };
    let vectors = (0..count).map(|index| (format!("xmm{index}"), field(image, 160 + index * 16, 16)));
    let control = [("mxcsr".to_owned(), field(image, 24, 4))];
    control.into_iter().chain(vectors).filter_map(|(name, value)| Some((name, value?))).collect()
}
