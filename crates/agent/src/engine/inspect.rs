//! Threads, modules and code for clients.

use super::{Engine, State};
use crate::platform::{Platform, ThreadId};
use crate::reply::Outcome;
use base::{VirtAddr, limits};
use code::x86::{self, Stop};
use wire::commands::{Disassemble, DisassemblyReply, ModuleInfo, ModulesReply, ThreadInfo, ThreadsReply};
use wire::{AgentError, ErrorCode, HexAddr, Reply};

impl<P: Platform> Engine<P> {
    pub(super) fn list_threads(&mut self) -> Outcome {
        self.alive()?;
        let ids: Vec<ThreadId> = self.threads.keys().copied().collect();
        let stopped = self.phase == State::Stopped;
        let focus = self.focus.map(|(thread, _)| thread);
        let mut threads = Vec::with_capacity(ids.len());
        for thread in ids {
            let pc = if stopped { self.logical_pc(thread) } else { None };
            threads.push(ThreadInfo {
                thread,
                name: self.platform.thread_name(thread),
                pc: pc.map(HexAddr),
                location: pc.and_then(|pc| self.location(pc)),
                current: stopped && focus == Some(thread),
            });
        }
        Ok(Reply::Threads(ThreadsReply { threads, live: self.live() }))
    }

    pub(super) fn list_modules(&mut self) -> Outcome {
        self.alive()?;
        let mut modules = Vec::new();
        for module in self.refresh_modules() {
            let symbols = self.symbol_table(&module).len() as u64;
            modules.push(ModuleInfo {
                name: module.name,
                path: module.path.display().to_string(),
                base: HexAddr(module.base),
                size: module.size,
                symbols,
                main: module.main,
                host: module.host,
            });
        }
        modules.sort_by_key(|module| (module.host, module.base));
        Ok(Reply::Modules(ModulesReply { modules, live: self.live() }))
    }

    pub(super) fn disassemble(&mut self, params: &Disassemble) -> Outcome {
        self.alive()?;
        let count = params.count.unwrap_or(limits::DEFAULT_DISASSEMBLE_COUNT);
        if count == 0 || count > limits::MAX_DISASSEMBLE_COUNT {
            return Err(AgentError::new(
                ErrorCode::InvalidParams,
                format!("`count` is {count}; allowed are 1 to {}", limits::MAX_DISASSEMBLE_COUNT),
            )
            .detail("least", 1)
            .detail("most", limits::MAX_DISASSEMBLE_COUNT));
        }
        let start = match &params.addr {
            Some(addr) => self.address(&addr.0)?,
            None => {
                let thread = self.stopped_thread(None, "without `addr` the listing begins at the program counter")?;
                self.logical_pc(thread).ok_or_else(|| {
                    AgentError::new(ErrorCode::UnknownThread, "the thread of the stop is gone").hint("give `addr`")
                })?
            }
        };
        self.must_be_mapped(start, "disassemble")?;
        let wanted = count as usize * x86::INSN_BYTES;
        let bytes = self.peek(start, wanted);
        let whole = bytes.len() == wanted;
        let listing = x86::disassemble(&bytes, start.get(), self.bitness(), count as usize);
        let next = listing.insns.last().map_or(start.get(), x86::Insn::end);
        let instructions: Vec<_> = listing.insns.iter().map(|insn| self.present(insn)).collect();
        let ended = match listing.stop {
            _ if instructions.len() == count as usize => None,
            Stop::EndOfBytes | Stop::Incomplete { .. } if !whole => {
                Some(format!("nothing is mapped at {}", start.wrapping_add(bytes.len() as u64)))
            }
            other => Some(other.to_string()),
        };
        let next = HexAddr(VirtAddr::new(self.bitness().wrap(next)));
        Ok(Reply::Disassembly(DisassemblyReply { instructions, ended, next, live: self.live() }))
    }
}
