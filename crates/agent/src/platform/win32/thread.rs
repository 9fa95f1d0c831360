//! One thread of the program: whether it is held, by what, and its registers while it is.

use super::bounded::Bounded;
use super::context::{Context, TRAP_FLAG};
use super::sys::{self, Failure};
use crate::platform::{Event, PlatformError, Run, ThreadId};
use crate::registers::{DebugRegisters, Registers};
use base::{VirtAddr, limits};
use code::x86::Bitness;
use std::cell::{Cell, RefCell};
use std::os::windows::io::OwnedHandle;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// What did not happen, of a thread that gives no registers.
const STUCK: &str = "the halt of a thread";

/// A thread.
pub struct Thread {
    id: ThreadId,
    handle: Arc<OwnedHandle>,
    bounded: Rc<Bounded>,
    bitness: Bitness,
    /// Where its environment block lies, which is where fs (32-bit) or gs (64-bit) begins; 0 when unknown.
    segment_base: u64,
    /// The name it was given the old way, by an exception.
    pub old_name: Option<String>,
    /// The engine has not let it go.
    pub held: bool,
    /// `SuspendThread` holds it; otherwise, when held, the event that has not been continued does.
    suspended: bool,
    /// The trap flag is ours.
    stepping: bool,
    /// Handlers of the program were given registers with our trap flag in them, and may go on with those.
    trap_handed_out: bool,
    /// DR7 as set through us.
    dr7: u64,
    /// An event that came while it was held, for when it is let go.
    pub deferred: Option<Event>,
    /// An INT3 of its own that the system was told to forget while the engine had not decided yet.
    pub undecided_int3: Option<VirtAddr>,
    /// An INT3 at this place is to be delivered to the program without asking again.
    pub deliver_int3: Option<VirtAddr>,
    context: RefCell<Option<Context>>,
    /// It was told to halt and has not; nothing can be had of it.
    stuck: Cell<bool>,
}

impl Thread {
    /// A thread that the system has just told us of, held by that event.
    pub fn new(id: ThreadId, handle: OwnedHandle, bitness: Bitness, segment_base: u64, bounded: Rc<Bounded>) -> Self {
        Self {
            id,
            handle: Arc::new(handle),
            bounded,
            bitness,
            segment_base,
            old_name: None,
            held: true,
            suspended: false,
            stepping: false,
            trap_handed_out: false,
            dr7: 0,
            deferred: None,
            undecided_int3: None,
            deliver_int3: None,
            context: RefCell::new(None),
            stuck: Cell::new(false),
        }
    }

    /// Its number.
    pub fn id(&self) -> ThreadId {
        self.id
    }

    /// The name, by either way programs give one.
    pub fn name(&self) -> Option<String> {
        sys::thread_description(&self.handle).or_else(|| self.old_name.clone())
    }

    fn with<T>(&self, act: impl FnOnce(&mut Context, &OwnedHandle) -> Result<T, Failure>) -> Result<T, PlatformError> {
        if !self.held {
            return Err(PlatformError::NotHeld(self.id));
        }
        self.peek(act)
    }

    /// As [`Self::with`], for a thread that the system holds though the engine has not been told yet.
    fn peek<T>(&self, act: impl FnOnce(&mut Context, &OwnedHandle) -> Result<T, Failure>) -> Result<T, PlatformError> {
        self.come_to_rest()?;
        let mut context = self.context.borrow_mut();
        Ok(act(context.get_or_insert_with(|| Context::new(self.bitness)), &self.handle)?)
    }

    /// Waits until a thread that was suspended has come to rest, which the first look at its registers does.
    ///
    /// Under Wine a thread that runs into a watchpoint while another's event freezes the process may wait for itself for ever,
    /// and whoever asks for its registers would wait too.
    pub fn come_to_rest(&self) -> Result<(), PlatformError> {
        let mut context = self.context.borrow_mut();
        if !self.suspended || context.as_ref().is_some_and(Context::is_settled) {
            return Ok(());
        }
        if self.stuck.get() {
            return Err(PlatformError::Timeout(STUCK));
        }
        let mut unsettled = context.take().unwrap_or_else(|| Context::new(self.bitness));
        let handle = Arc::clone(&self.handle);
        let limit = Duration::from_millis(limits::THREAD_REST_TIMEOUT_MS);
        let settled = self.bounded.run(limit, move || unsettled.settle(&handle).map(|()| unsettled));
        self.stuck.set(settled.is_none());
        *context = Some(settled.ok_or(PlatformError::Timeout(STUCK))??);
        Ok(())
    }

    /// The integer registers, without the trap flag where that is ours.
    pub fn registers(&self) -> Result<Registers, PlatformError> {
        let mut registers = self.with(|context, handle| context.registers(handle, self.segment_base))?;
        if self.stepping {
            registers.flags &= !TRAP_FLAG;
        }
        Ok(registers)
    }

    /// Sets the integer registers.
    pub fn set_registers(&self, registers: &Registers) -> Result<(), PlatformError> {
        self.with(|context, handle| context.set_registers(handle, registers))
    }

    /// The program counter, at an event.
    pub fn pc(&self) -> Result<VirtAddr, PlatformError> {
        self.peek(Context::pc)
    }

    /// Sets the program counter, at an event.
    pub fn set_pc(&self, pc: VirtAddr) -> Result<(), PlatformError> {
        self.peek(|context, handle| context.set_pc(handle, pc))
    }

    /// The FXSAVE image.
    pub fn fxsave(&self) -> Result<Vec<u8>, PlatformError> {
        self.with(Context::fxsave)
    }

    /// The debug registers.
    pub fn debug_registers(&self) -> Result<DebugRegisters, PlatformError> {
        self.with(Context::debug)
    }

    /// Sets DR0 to DR3 and DR7; DR6 is cleared, so that it only ever tells of the next debug exception.
    pub fn set_debug_registers(&mut self, registers: &DebugRegisters) -> Result<(), PlatformError> {
        self.dr7 = registers.dr7;
        self.with(|context, _| {
            context.set_debug(&DebugRegisters { dr6: 0, ..*registers });
            Ok(())
        })
    }

    /// At a debug exception: what DR6 tells, which is then cleared. `None` when the program brought it about itself.
    pub fn take_debug_status(&mut self) -> Result<Option<(bool, u8)>, PlatformError> {
        if self.dr7 & 0xff == 0 {
            return Ok(self.stepping.then_some((true, 0)));
        }
        let stepping = self.stepping;
        self.peek(|context, handle| {
            let debug = context.debug(handle)?;
            let fired = (0u8..4).filter(|slot| debug.dr6 & (1 << slot) != 0);
            let slots =
                fired.filter(|slot| debug.dr7 & (0b11 << (2 * slot)) != 0).fold(0, |all, slot| all | (1 << slot));
            if debug.dr6 & 0xf != 0 {
                context.set_debug(&DebugRegisters { dr6: 0, ..debug });
            }
            // BS tells of a completed step; a system that does not pass it on leaves only that we asked.
            let stepped = stepping && (debug.dr6 & (1 << 14) != 0 || debug.dr6 & 0xf == 0);
            Ok(Some((stepped, slots)))
        })
    }

    /// Whether a step was under way; asked at an exception that is to go to the program's handlers.
    pub fn is_stepping(&self) -> bool {
        self.stepping
    }

    /// An exception that interrupted a step is continued unhandled. Its handlers get the registers of that moment, whatever
    /// has been set since, and a thread that they let go on is trapped once more.
    pub fn hand_out_trap(&mut self) {
        self.trap_handed_out = true;
    }

    /// At a debug exception: whether it is only that trap, which is then over.
    pub fn take_handed_out_trap(&mut self) -> Result<bool, PlatformError> {
        let only_that = std::mem::take(&mut self.trap_handed_out) && !self.stepping;
        if only_that {
            self.peek(|context, handle| context.set_trap(handle, false))?;
        }
        Ok(only_that)
    }

    /// Its registers are not those that were seen at an event before, of which the engine was not told.
    pub fn has_run(&mut self) {
        self.context.replace(None);
    }

    /// Holds a running thread.
    pub fn hold(&mut self) -> Result<(), Failure> {
        if !self.held {
            self.suspend()?;
            self.held = true;
        }
        Ok(())
    }

    /// Makes sure that the thread stays where it is when the event is continued.
    pub fn suspend(&mut self) -> Result<(), Failure> {
        if !self.suspended {
            sys::suspend(&self.handle)?;
            self.suspended = true;
        }
        Ok(())
    }

    /// Writes changed registers back; those read stay valid as long as the thread is held.
    pub fn store(&self) -> Result<(), Failure> {
        match self.context.borrow_mut().as_mut() {
            Some(context) => context.store(&self.handle),
            None => Ok(()),
        }
    }

    /// Lets the thread go; it runs at once, or when the event that froze the process is continued.
    pub fn release(&mut self, run: Run) -> Result<(), PlatformError> {
        match run {
            Run::Step => self.peek(|context, handle| context.set_trap(handle, true))?,
            Run::Free if self.stepping => self.peek(|context, handle| context.set_trap(handle, false))?,
            Run::Free => {}
        }
        self.stepping = run == Run::Step;
        self.let_go()
    }

    /// Lets the thread go with nothing changed but what was set.
    pub fn let_go(&mut self) -> Result<(), PlatformError> {
        self.store()?;
        self.context.replace(None);
        self.stuck.set(false);
        self.held = false;
        self.undecided_int3 = None;
        if self.suspended {
            self.suspended = false;
            sys::resume(&self.handle)?;
        }
        Ok(())
    }

    /// Before the program is let go for good: nothing of ours stays in the registers.
    pub fn clean(&mut self) -> Result<(), PlatformError> {
        if self.stepping {
            self.peek(|context, handle| context.set_trap(handle, false))?;
            self.stepping = false;
        }
        self.deferred = None;
        Ok(self.store()?)
    }
}
