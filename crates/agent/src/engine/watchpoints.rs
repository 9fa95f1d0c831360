//! Watchpoints of clients: the debug registers of every thread, the verdict at each trap, and the commands.

use super::condition::Compiled;
use super::report::hex;
use super::{Engine, State};
use crate::platform::{Event, Platform, ThreadId};
use crate::registers::{DebugRegisters, Registers};
use crate::reply::Outcome;
use base::{VirtAddr, limits};
use code::x86::{self, Attribution, Bitness, PcMeaning, Suspect, Trap, WatchKind};
use std::collections::BTreeMap;
use wire::commands::{RemoveWatchpoint, SetWatchpoint, WatchMode, WatchpointInfo, WatchpointReply, WatchpointsReply};
use wire::{AgentError, Condition, ErrorCode, HexAddr, Reply, StopReport, WatchReport};

/// One watchpoint; its place in the table is its debug register.
#[derive(Clone, Debug)]
pub(super) struct Watch {
    at: VirtAddr,
    spec: String,
    size: u8,
    mode: WatchMode,
    condition: Option<Condition>,
    compiled: Option<Compiled>,
    hits: u64,
    ignore_count: u64,
    /// Value when it was last looked at.
    value: Option<Vec<u8>>,
}

impl<P: Platform> Engine<P> {
    /// Slots in use, as the low bits of DR6 have them.
    pub(super) fn watched_slots(&self) -> u8 {
        self.watches.iter().enumerate().filter(|(_, watch)| watch.is_some()).fold(0, |bits, (slot, _)| bits | 1 << slot)
    }

    /// Debug registers as the watchpoints want them (Intel SDM volume 3, section 18.2.4).
    fn debug_registers(&self) -> DebugRegisters {
        let mut registers = DebugRegisters::default();
        for (slot, watch) in self.watches.iter().enumerate() {
            let (Some(watch), Some(address)) = (watch, registers.address.get_mut(slot)) else { continue };
            *address = watch.at.get();
            let access = if watch.mode == WatchMode::Write { 0b01 } else { 0b11 };
            let length = match watch.size {
                1 => 0b00,
                2 => 0b01,
                8 => 0b10,
                _ => 0b11,
            };
            registers.dr7 |= 1 << (slot * 2) | access << (16 + slot * 4) | length << (18 + slot * 4);
        }
        registers
    }

    /// Gives a held thread the debug registers that it should have.
    pub(super) fn apply_debug_registers(&mut self, thread: ThreadId) {
        let version = self.debug_version;
        let Some(state) = self.threads.get_mut(&thread).filter(|state| state.held) else { return };
        if state.debug_version == version {
            return;
        }
        state.debug_version = version;
        let registers = self.debug_registers();
        let result = self.platform.set_debug_registers(thread, &registers);
        self.tolerate(result, "setting debug registers");
    }

    /// The table has changed: every thread gets it. All threads hold.
    fn debug_registers_changed(&mut self, slot: usize) {
        self.debug_version += 1;
        for event in &mut self.deferred {
            if let Event::Debug { slots, .. } = event {
                // A trap of the watchpoint that was in this slot before.
                *slots &= !(1 << slot);
            }
        }
        let threads: Vec<ThreadId> = self.threads.keys().copied().collect();
        for thread in threads {
            self.apply_debug_registers(thread);
        }
    }

    /// Forgets all watchpoints; gives how many there were.
    pub(super) fn drop_watchpoints(&mut self) -> usize {
        let count = self.watches.iter().flatten().count();
        self.watches = [const { None }; limits::WATCH_SLOTS];
        self.debug_version += 1;
        count
    }

    /// Data breakpoints fired in a thread: they are counted, and judged. What the program is to stop for, if it is.
    pub(super) fn judge_watchpoints(&mut self, thread: ThreadId, slots: u8) -> Option<(String, StopReport)> {
        let mut reason = None;
        let mut report = StopReport::default();
        for slot in (0..limits::WATCH_SLOTS).filter(|slot| slots & (1 << slot) != 0) {
            if let Some(Trapped { watch, unreadable }) = self.judge_slot(thread, slot) {
                let word = match unreadable {
                    None => format!("watchpoint@slot{slot}"),
                    Some(address) => {
                        report
                            .notes
                            .push(format!("the condition of watchpoint {slot} reads {address}, which is not readable"));
                        format!("condition_unreadable@slot{slot}")
                    }
                };
                reason.get_or_insert(word);
                report.hits.get_or_insert(watch.hits);
                report.watchpoints.push(watch);
            }
        }
        reason.map(|reason| (reason, report))
    }

    fn judge_slot(&mut self, thread: ThreadId, slot: usize) -> Option<Trapped> {
        let watch = self.watches.get(slot)?.as_ref()?;
        let (at, size) = (watch.at, usize::from(watch.size));
        // Looking for the instruction costs more than the trap; it is done when something depends on it.
        let mut found = None;
        if watch.mode == WatchMode::Read {
            let attribution = self.attribute(thread, slot)?;
            if only_writes(&attribution) {
                let value = self.peek(at, size);
                if let Some(Some(watch)) = self.watches.get_mut(slot) {
                    watch.value = Some(value);
                }
                return None;
            }
            found = Some(attribution);
        }
        let watch = self.watches.get(slot)?.as_ref()?;
        let mut unreadable = None;
        if let Some(compiled) = &watch.compiled {
            let registers = self.registers_at_trap(thread)?;
            let (sites, platform) = (&self.sites, &self.platform);
            let read = |address: VirtAddr, bytes: &mut [u8]| {
                sites.read(platform, address, bytes).is_ok_and(|count| count == bytes.len())
            };
            match compiled.holds(&registers, &read) {
                Ok(true) => {}
                Ok(false) => {
                    let value = self.peek(at, size);
                    self.watches.get_mut(slot)?.as_mut()?.value = Some(value);
                    return None;
                }
                Err(address) => unreadable = Some(address.0),
            }
        }
        let value = self.peek(at, size);
        let watch = self.watches.get_mut(slot)?.as_mut()?;
        let old = watch.value.replace(value.clone());
        if unreadable.is_none() {
            watch.hits += 1;
            if watch.ignore_count > 0 {
                watch.ignore_count -= 1;
                return None;
            }
        }
        let attribution = match found {
            Some(attribution) => attribution,
            None => self.attribute(thread, slot)?,
        };
        let watch = self.watch_report(slot, old.as_deref(), &value, &attribution)?;
        Some(Trapped { watch, unreadable })
    }

    fn watch_report(
        &mut self,
        slot: usize,
        old: Option<&[u8]>,
        new: &[u8],
        attribution: &Attribution,
    ) -> Option<WatchReport> {
        let watch = self.watches.get(slot)?.as_ref()?;
        let mut report = WatchReport {
            slot: slot as u8,
            addr: HexAddr(watch.at),
            size: watch.size,
            mode: watch.mode.word().to_owned(),
            old_value: old.and_then(number),
            new_value: number(new),
            writer: None,
            candidates: Vec::new(),
            attribution: String::new(),
            attribution_note: None,
            hits: watch.hits,
        };
        match attribution {
            Attribution::Exact(suspect) => {
                report.attribution = "exact".to_owned();
                report.writer = Some(self.present(&suspect.insn));
            }
            Attribution::Candidates(suspects) => {
                report.attribution = "candidates".to_owned();
                report.candidates =
                    suspects.iter().take(limits::NEAR_NAMES).map(|suspect| self.present(&suspect.insn)).collect();
                let note = "the processor traps after the access, and more than one instruction may have made it";
                report.attribution_note = Some(note.to_owned());
            }
            Attribution::Unknown { why } => {
                report.attribution = "unknown".to_owned();
                report.attribution_note = Some(why.clone());
            }
        }
        Some(report)
    }

    /// Registers of a thread as they would be if it had not been in a scratch slot.
    fn registers_at_trap(&self, thread: ThreadId) -> Option<Registers> {
        let mut registers = self.platform.registers(thread).ok()?;
        if self.threads.get(&thread).is_some_and(|state| state.in_slot)
            && let Some(place) = self.sites.locate(registers.pc)
        {
            registers.pc = match place.meaning {
                Some(PcMeaning::Done(next)) => VirtAddr::new(next),
                _ => place.site,
            };
        }
        Some(registers)
    }

    /// Which instruction set off a data breakpoint.
    fn attribute(&mut self, thread: ThreadId, slot: usize) -> Option<Attribution> {
        let registers = self.registers_at_trap(thread)?;
        if let Some(done) = self.executed_in_slot(thread) {
            return Some(done);
        }
        let start = self.symbol_of(VirtAddr::new(registers.pc.get().wrapping_sub(1))).map(|(_, start)| start.get());
        let watch = self.watches.get(slot)?.as_ref()?;
        let trap = Trap {
            pc: registers.pc.get(),
            bits: registers.bitness,
            watched: watch.at.get(),
            watched_bytes: u64::from(watch.size),
            kind: if watch.mode == WatchMode::Write { WatchKind::Write } else { WatchKind::ReadWrite },
            function_start: start,
        };
        let read = |address: u64, length: usize| {
            let bytes = self.peek(VirtAddr::new(address), length);
            (bytes.len() == length).then_some(bytes)
        };
        Some(x86::attribute(&trap, &read, &|name| registers.for_decoder(name)))
    }

    /// In a scratch slot there is no doubt: it stands for one instruction.
    fn executed_in_slot(&self, thread: ThreadId) -> Option<Attribution> {
        if !self.threads.get(&thread)?.in_slot {
            return None;
        }
        let pc = self.platform.registers(thread).ok()?.pc;
        let place = self.sites.locate(pc)?;
        let insn = self.decode_at(place.site)?;
        // Whether it read or wrote is left to the search where that matters.
        let reads_and_writes = self.watches.iter().flatten().any(|watch| watch.mode == WatchMode::Read);
        if reads_and_writes {
            return None;
        }
        Some(Attribution::Exact(Suspect { insn, reads: true, writes: true, checked: true, paths: 0 }))
    }

    pub(super) fn set_watchpoint(&mut self, params: SetWatchpoint) -> Outcome {
        self.alive()?;
        let size = params.size.unwrap_or(4);
        let wide = self.bitness() == Bitness::Bits64;
        let fits = matches!(size, 1 | 2 | 4) || (size == 8 && wide);
        if !fits {
            let allowed = if wide { "1, 2, 4 and 8" } else { "1, 2 and 4" };
            return Err(AgentError::new(
                ErrorCode::InvalidParams,
                format!("`size` is {size}; a debug register of this program watches {allowed} bytes"),
            )
            .hint("watch a larger object with several watchpoints"));
        }
        let at = self.address(&params.addr.0)?;
        let off = at.get() % u64::from(size);
        if off != 0 {
            let nearest = at.wrapping_sub(off);
            return Err(AgentError::new(
                ErrorCode::Misaligned,
                format!("{at} is not a multiple of {size}, which the hardware needs to watch {size} bytes"),
            )
            .hint(format!("watch {nearest}, which covers {at}, or fewer bytes"))
            .detail("aligned", nearest.to_string()));
        }
        self.must_be_mapped(at, "set_watchpoint")?;
        let compiled = params.condition.as_ref().map(|condition| self.compile(condition)).transpose()?;
        let same = |watch: &Option<Watch>| watch.as_ref().is_some_and(|watch| watch.at == at && watch.size == size);
        let known = self.watches.iter().position(same);
        let Some(slot) = known.or_else(|| self.watches.iter().position(Option::is_none)) else {
            return Err(self.all_in_use());
        };
        let hits = known.and_then(|slot| self.watches.get(slot)?.as_ref()).map_or(0, |watch| watch.hits);
        self.hold();
        let watch = Watch {
            at,
            spec: params.addr.0.trim().to_owned(),
            size,
            mode: params.mode,
            condition: params.condition,
            compiled,
            hits,
            ignore_count: params.ignore_count.unwrap_or(0),
            value: Some(self.peek(at, usize::from(size))),
        };
        if self.phase == State::Exited {
            return Err(self.exited_error());
        }
        if let Some(place) = self.watches.get_mut(slot) {
            *place = Some(watch);
        }
        self.debug_registers_changed(slot);
        let reply = self.watchpoint_reply(slot);
        self.run_on();
        reply
    }

    fn all_in_use(&self) -> AgentError {
        let used = self.slots_to_addresses();
        let list: Vec<String> = used.iter().map(|(slot, address)| format!("slot {slot}={address}")).collect();
        AgentError::new(
            ErrorCode::NoFreeSlot,
            format!("all 4 hardware debug registers (DR0-DR3) are in use by {}", list.join(", ")),
        )
        .hint("remove one with remove_watchpoint")
        .detail(
            "watchpoints",
            used.iter()
                .map(|(slot, address)| (slot.clone(), address.to_string().into()))
                .collect::<serde_json::Map<_, _>>(),
        )
    }

    fn slots_to_addresses(&self) -> BTreeMap<String, HexAddr> {
        let used = self.watches.iter().enumerate();
        used.filter_map(|(slot, watch)| Some((slot.to_string(), HexAddr(watch.as_ref()?.at)))).collect()
    }

    fn watchpoint_info(&mut self, slot: usize) -> Option<WatchpointInfo> {
        let at = self.watches.get(slot)?.as_ref()?.at;
        let location = self.location(at);
        let watch = self.watches.get(slot)?.as_ref()?;
        Some(WatchpointInfo {
            slot: slot as u8,
            addr: HexAddr(at),
            spec: watch.spec.clone(),
            location,
            size: watch.size,
            mode: watch.mode,
            condition: watch.condition.clone(),
            hits: watch.hits,
            ignore_count: watch.ignore_count,
        })
    }

    fn watchpoint_reply(&mut self, slot: usize) -> Outcome {
        let Some(watchpoint) = self.watchpoint_info(slot) else {
            return Err(AgentError::new(ErrorCode::NoSuchBreakpoint, "the watchpoint is gone already"));
        };
        Ok(Reply::Watchpoint(WatchpointReply {
            slot: slot as u8,
            watchpoint,
            watchpoints: self.slots_to_addresses(),
            live: self.live(),
        }))
    }

    pub(super) fn remove_watchpoint(&mut self, params: &RemoveWatchpoint) -> Outcome {
        self.alive()?;
        let slot = match (params.slot, &params.addr) {
            (Some(slot), None) => Some(usize::from(slot)),
            (None, Some(addr)) => {
                let at = self.address(&addr.0)?;
                self.watches.iter().position(|watch| watch.as_ref().is_some_and(|watch| watch.at == at))
            }
            _ => {
                return Err(AgentError::new(ErrorCode::InvalidParams, "one of `slot` and `addr` is needed, not both")
                    .hint("list_watchpoints shows both"));
            }
        };
        let Some((slot, info)) = slot.and_then(|slot| Some((slot, self.watchpoint_info(slot)?))) else {
            let used = self.slots_to_addresses();
            let list: Vec<String> = used.iter().map(|(slot, address)| format!("slot {slot}={address}")).collect();
            let hint = if list.is_empty() { "none is set".to_owned() } else { format!("set are: {}", list.join(", ")) };
            return Err(AgentError::new(ErrorCode::NoSuchBreakpoint, "there is no such watchpoint").hint(hint));
        };
        self.hold();
        if let Some(place) = self.watches.get_mut(slot) {
            *place = None;
        }
        self.debug_registers_changed(slot);
        let reply = Reply::Watchpoint(WatchpointReply {
            slot: slot as u8,
            watchpoint: info,
            watchpoints: self.slots_to_addresses(),
            live: self.live(),
        });
        self.run_on();
        Ok(reply)
    }

    pub(super) fn list_watchpoints(&mut self) -> Reply {
        let list = (0..limits::WATCH_SLOTS).filter_map(|slot| self.watchpoint_info(slot)).collect();
        Reply::Watchpoints(WatchpointsReply { watchpoints: self.slots_to_addresses(), list, live: self.live() })
    }
}

/// A watchpoint that stops the program.
struct Trapped {
    watch: WatchReport,
    unreadable: Option<VirtAddr>,
}

/// Every instruction that may have made the access writes the watched bytes.
fn only_writes(attribution: &Attribution) -> bool {
    match attribution {
        Attribution::Exact(suspect) => suspect.writes,
        Attribution::Candidates(suspects) => suspects.iter().all(|suspect| suspect.writes),
        Attribution::Unknown { .. } => false,
    }
}

/// Bytes as one little-endian number in hexadecimal.
fn number(bytes: &[u8]) -> Option<String> {
    let mut big_endian = bytes.to_vec();
    big_endian.reverse();
    (!bytes.is_empty()).then(|| format!("0x{}", hex(&big_endian)))
}
