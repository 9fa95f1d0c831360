//! Borrowing a held thread: it executes something for us, and nobody can tell afterwards.

use super::{Debuggee, State, Stop, Thread, pid};
use crate::platform::linux::sys::{self, Go};
use crate::platform::linux::wake::{Waited, Wake};
use crate::platform::linux::{regs, signals};
use crate::platform::{PlatformError, ThreadId};
use base::limits;
use nix::libc::{self, user_regs_struct};
use nix::sys::ptrace;
use std::time::{Duration, Instant};

impl Debuggee {
    /// A held thread whose registers can be borrowed. All threads are held; one in the middle of a system call that does
    /// not wait for anybody may be brought to its end first.
    pub fn settle_one(&mut self, wake: &Wake) -> Result<ThreadId, PlatformError> {
        let waits_for_child =
            |number| self.children.values().any(|child| child.shares_memory && child.parent == number);
        let mut best = None;
        for (number, thread) in self.threads.iter().filter(|(_, thread)| !thread.leaving) {
            let State::Held(stop) = thread.state else { continue };
            match (stop.settled, stop.group) {
                (true, false) => return Ok(*number),
                (true, true) => best = Some((*number, true)),
                (false, _) if best.is_none() && !waits_for_child(*number) => best = Some((*number, false)),
                (false, _) => {}
            }
        }
        let (number, settled) = best.ok_or(PlatformError::Timeout("a hold outside of a system call"))?;
        if !settled {
            self.halt_again(wake, number)?;
        }
        Ok(number)
    }

    /// Sets registers for a while: what the thread is held at stays as it is.
    pub fn set_raw_aside(&mut self, thread: ThreadId, raw: user_regs_struct) -> Result<(), PlatformError> {
        self.held(thread)?.raw.set(None);
        regs::set_raw(thread, raw)
    }

    /// Steps a held thread once with borrowed registers. Signals that come meanwhile are kept for it.
    pub fn step_aside(&mut self, wake: &Wake, number: ThreadId) -> Result<(), PlatformError> {
        let deadline = Instant::now() + Duration::from_millis(limits::HOLD_TIMEOUT_MS);
        loop {
            sys::go(number, Go::Step, 0).map_err(|error| regs::failed_io("PTRACE_SINGLESTEP", number, &error))?;
            let status = self.own_status(wake, number, deadline)?;
            let (signal, event) = (libc::WSTOPSIG(status), status >> 16);
            if event != 0 {
                // A halt by job control; it goes on being in effect.
                continue;
            }
            if signal == libc::SIGTRAP {
                if let Some(Thread { state: State::Held(stop), raw, .. }) = self.threads.get_mut(&number) {
                    raw.set(None);
                    stop.retold = true;
                    stop.takes_signal = true;
                }
                return Ok(());
            }
            let info =
                ptrace::getsiginfo(pid(number)).map_err(|error| regs::failed("PTRACE_GETSIGINFO", number, error))?;
            if signals::is_fault(&info) {
                return Err(PlatformError::Os { call: "a call in the program", message: signals::name(signal) });
            }
            if let Some(thread) = self.threads.get_mut(&number) {
                thread.kept.push(info);
            }
        }
    }

    /// After [`Debuggee::step_aside`]: a thread that job control had stopped is brought back to that.
    pub fn settle_again(&mut self, wake: &Wake, number: ThreadId) -> Result<(), PlatformError> {
        match self.threads.get(&number) {
            Some(Thread { state: State::Held(stop), .. }) if stop.group => self.halt_again(wake, number),
            _ => Ok(()),
        }
    }

    /// Has a held thread finish what the kernel does for it, and halt before it executes anything.
    fn halt_again(&mut self, wake: &Wake, number: ThreadId) -> Result<(), PlatformError> {
        let deadline = Instant::now() + Duration::from_millis(limits::HOLD_TIMEOUT_MS);
        // Ordered while it is stopped, the halt follows for certain, and first.
        ptrace::interrupt(pid(number)).map_err(|error| regs::failed("PTRACE_INTERRUPT", number, error))?;
        sys::go(number, Go::Cont, 0).map_err(|error| regs::failed_io("PTRACE_CONT", number, &error))?;
        loop {
            let status = self.own_status(wake, number, deadline)?;
            let (signal, event) = (libc::WSTOPSIG(status), status >> 16);
            if event == libc::PTRACE_EVENT_STOP {
                let group = signals::is_stopping(signal);
                if let Some(thread) = self.threads.get_mut(&number) {
                    thread.raw.set(None);
                    thread.state = State::Held(Stop { group, settled: true, ..Stop::default() });
                }
                return Ok(());
            }
            if event == 0
                && let Some(thread) = self.threads.get_mut(&number)
            {
                let info = ptrace::getsiginfo(pid(number));
                thread.kept.push(info.map_err(|error| regs::failed("PTRACE_GETSIGINFO", number, error))?);
            }
            let _ = ptrace::interrupt(pid(number));
            sys::go(number, Go::Cont, 0).map_err(|error| regs::failed_io("PTRACE_CONT", number, &error))?;
        }
    }

    /// The next state of one thread while all are held; what others report meanwhile waits for the next look.
    fn own_status(&mut self, wake: &Wake, number: ThreadId, deadline: Instant) -> Result<i32, PlatformError> {
        loop {
            match wake.wait(deadline, true)? {
                Waited::Status(thread, status) if thread == number && libc::WIFSTOPPED(status) => return Ok(status),
                Waited::Status(thread, status) => {
                    self.unseen.push_back((thread, status));
                    if thread == number {
                        return Err(PlatformError::NoThread(number));
                    }
                }
                _ => return Err(PlatformError::Timeout("a call in the program")),
            }
        }
    }
}
