//! How a thread came where it is. Old programs carry no unwind tables, so the walk follows frame pointers, and otherwise
//! takes what looks like a return address; nothing counts as one unless a call stands before it.

use super::Engine;
use crate::platform::{Platform, ThreadId};
use crate::registers::Registers;
use crate::reply::Outcome;
use base::{VirtAddr, limits};
use code::x86::{self, FlowKind, Insn};
use wire::commands::{Backtrace, BacktraceReply, Frame};
use wire::{AgentError, ErrorCode, HexAddr, Reply};

/// Longest call that is looked for before a return address, in bytes; prefixes make it longer, compilers do not.
const CALL_BYTES: u64 = 8;

/// A caller found on the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Caller {
    pc: u64,
    /// Stack address that the return address stands at.
    slot: u64,
    /// Its frame pointer, where it is known.
    bp: Option<u64>,
    by: &'static str,
}

impl<P: Platform> Engine<P> {
    pub(super) fn backtrace(&mut self, params: &Backtrace) -> Outcome {
        let thread = self.stopped_thread(params.thread, "its stack changes with every call")?;
        let limit = params.limit.unwrap_or(limits::DEFAULT_BACKTRACE_FRAMES);
        if limit == 0 || limit > limits::MAX_BACKTRACE_FRAMES {
            return Err(AgentError::new(
                ErrorCode::InvalidParams,
                format!("`limit` is {limit}; allowed are 1 to {}", limits::MAX_BACKTRACE_FRAMES),
            )
            .detail("least", 1)
            .detail("most", limits::MAX_BACKTRACE_FRAMES));
        }
        let registers = self
            .platform
            .registers(thread)
            .map_err(|error| super::refused(error, &format!("reading the registers of thread {thread}")))?;
        let pc = registers.pc;
        let mut frames = vec![self.frame(0, pc, "pc")];
        let mut next = self.first_caller(&registers);
        let ended = loop {
            let Some(caller) = next else { break "no further return address was found on the stack" };
            if frames.len() >= limit as usize {
                break "as many frames as were asked for";
            }
            frames.push(self.frame(frames.len(), VirtAddr::new(caller.pc), caller.by));
            next = self.caller_of(caller);
        };
        Ok(Reply::Backtrace(BacktraceReply { frames, ended: ended.to_owned(), of_thread: thread, live: self.live() }))
    }

    fn frame(&mut self, index: usize, pc: VirtAddr, by: &str) -> Frame {
        Frame {
            index: u32::try_from(index).unwrap_or(u32::MAX),
            pc: HexAddr(pc),
            location: self.location(pc),
            found_by: by.to_owned(),
        }
    }

    /// Where the present function of a thread returns to, and the stack address where that is written.
    pub(super) fn return_of(&mut self, thread: ThreadId) -> Option<(VirtAddr, u64)> {
        let registers = self.platform.registers(thread).ok()?;
        self.first_caller(&registers).map(|caller| (VirtAddr::new(caller.pc), caller.slot))
    }

    fn first_caller(&mut self, registers: &Registers) -> Option<Caller> {
        let pointer = self.bitness().pointer_bytes();
        let (pc, sp, bp) = (registers.pc, registers.sp(), registers.bp());
        let function = self.symbol_of(pc).map(|(_, start)| start);
        // At the first instruction, and behind the push of the frame pointer, the frame is not there yet; at the return
        // it is gone.
        let returns = self.decode_at(pc).is_some_and(|insn| insn.is_return());
        if (function == Some(pc) || self.pushes_frame_pointer(pc) || returns)
            && let Some(caller) = self.checked(sp, Some(bp), "return_address")
        {
            return Some(caller);
        }
        if self.pushes_frame_pointer(pc.wrapping_sub(1))
            && let Some(caller) = self.checked(sp.wrapping_add(pointer), self.peek_pointer(sp), "return_address")
        {
            return Some(caller);
        }
        let framed = (bp >= sp).then(|| self.framed(bp)).flatten();
        let end = framed.map_or(u64::MAX, |caller| caller.slot);
        // A frame pointer that still belongs to the caller would skip a frame: a call of this very function comes first.
        if let Some(start) = function
            && let Some(caller) = self.scan(sp, end, Some(start))
        {
            return Some(Caller { bp: Some(bp), ..caller });
        }
        framed.or_else(|| self.scan(sp, u64::MAX, None))
    }

    fn caller_of(&mut self, inner: Caller) -> Option<Caller> {
        let pointer = self.bitness().pointer_bytes();
        let above = inner.slot.wrapping_add(pointer);
        let framed = inner.bp.filter(|bp| *bp >= above).and_then(|bp| self.framed(bp));
        framed.or_else(|| self.scan(above, u64::MAX, None))
    }

    /// The caller by a frame pointer: the saved one lies at it, the return address behind that.
    fn framed(&mut self, bp: u64) -> Option<Caller> {
        let saved = self.peek_pointer(bp)?;
        self.checked(bp.wrapping_add(self.bitness().pointer_bytes()), Some(saved), "frame_pointer")
    }

    /// The caller whose return address lies at `slot`, when a call stands before it.
    fn checked(&mut self, slot: u64, bp: Option<u64>, by: &'static str) -> Option<Caller> {
        let pc = self.peek_pointer(slot)?;
        self.call_before(pc)?;
        Some(Caller { pc, slot, bp, by })
    }

    /// The first return address on the stack from `from` on and below `end`; of a call of `function`, when that is given.
    fn scan(&mut self, from: u64, end: u64, function: Option<VirtAddr>) -> Option<Caller> {
        let pointer = self.bitness().pointer_bytes();
        let length = limits::STACK_SCAN_BYTES.min(end.saturating_sub(from));
        let stack = self.peek(VirtAddr::new(from), length as usize);
        for (index, bytes) in stack.chunks_exact(pointer as usize).enumerate() {
            let pc = bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
            if self.module_of(VirtAddr::new(pc)).is_none() {
                continue;
            }
            let Some(call) = self.call_before(pc) else { continue };
            let fits = function.is_none_or(|start| call.flow == FlowKind::Call { target: start.get() });
            if fits {
                return Some(Caller {
                    pc,
                    slot: from.wrapping_add(index as u64 * pointer),
                    bp: None,
                    by: "return_address",
                });
            }
        }
        None
    }

    /// The call that ends exactly at `pc`, inside a module.
    fn call_before(&mut self, pc: u64) -> Option<Insn> {
        self.module_of(VirtAddr::new(pc))?;
        (2..=CALL_BYTES).find_map(|length| {
            let start = pc.checked_sub(length)?;
            let bytes = self.peek(VirtAddr::new(start), length as usize);
            let insn = x86::decode(&bytes, start, self.bitness()).ok()?;
            (u64::from(insn.len) == length && insn.is_call()).then_some(insn)
        })
    }

    fn pushes_frame_pointer(&self, pc: VirtAddr) -> bool {
        // 55: push rbp or ebp.
        self.peek(pc, 1) == [0x55]
    }
}
