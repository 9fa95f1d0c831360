//! What every state that `waitpid` reports of a thread or child means.

use super::{Arrival, Child, ChildState, Debuggee, State, Stop, Thread, let_go, open_memory, pid};
use crate::platform::linux::sys::{self, Go};
use crate::platform::linux::{proc, regs, signals};
use crate::platform::{Event, Exit, PlatformError, Run, ThreadId};
use base::VirtAddr;
use nix::libc;
use nix::sys::ptrace;

/// `si_code` of the stop that the kernel makes after it has set up a signal handler during a single step.
const HANDLER_ENTERED: i32 = libc::SIGTRAP;
/// The BS bit of DR6: a single step ended.
const DR6_SINGLE_STEP: u64 = 1 << 14;

impl Debuggee {
    /// What a state that `waitpid` reported means. `holding`: a thread that halts because it was asked to stays halted.
    pub fn on_status(&mut self, number: u32, status: i32, holding: bool) -> Result<Option<Event>, PlatformError> {
        if libc::WIFEXITED(status) || libc::WIFSIGNALED(status) {
            return Ok(self.on_end(number, status));
        }
        let (signal, event) = (libc::WSTOPSIG(status), status >> 16);
        let result = if self.children.contains_key(&number) {
            self.on_child_stop(number, signal, event)
        } else if event == libc::PTRACE_EVENT_EXEC && number == self.pid {
            self.on_exec()
        } else if self.strays.remove(&number) {
            let _ = sys::go(number, Go::Detach, 0);
            Ok(None)
        } else if !self.threads.contains_key(&number) {
            self.on_unknown(number, status);
            Ok(None)
        } else {
            self.on_thread_stop(number, signal, event, holding)
        };
        match result {
            // Killed between its stop and our question: its end is reported next.
            Err(PlatformError::NoThread(_)) => Ok(None),
            result => result,
        }
    }

    /// The first stop of one that is to come, or a stop of one that could not be halted when its program was let go.
    fn on_unknown(&mut self, number: u32, status: i32) {
        let own_parent = proc::status(self.pid).map_or(0, |status| status.parent);
        let is_ours = proc::status(number).is_some_and(|status| {
            // `clone` can give a child to the parent's parent.
            status.process == self.pid || status.parent == self.pid || status.parent == own_parent
        });
        if is_ours && status >> 16 == libc::PTRACE_EVENT_STOP {
            self.early.insert(number);
        } else {
            let_go(number, status);
        }
    }

    fn on_thread_stop(
        &mut self,
        number: ThreadId,
        signal: i32,
        event: i32,
        holding: bool,
    ) -> Result<Option<Event>, PlatformError> {
        if let Some(thread) = self.threads.get_mut(&number) {
            thread.raw.set(None);
        }
        match event {
            0 => self.on_signal(number, signal).map(Some),
            libc::PTRACE_EVENT_CLONE | libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK => {
                self.on_birth(number, event, holding)
            }
            libc::PTRACE_EVENT_STOP => self.on_halt(number, signal, holding),
            libc::PTRACE_EVENT_EXIT => self.on_leaving(number),
            _ => {
                self.hold(number, Stop::default());
                Ok(Some(Event::Other { thread: number, raw: event as u64 }))
            }
        }
    }

    fn hold(&mut self, number: ThreadId, stop: Stop) {
        if let Some(thread) = self.threads.get_mut(&number) {
            thread.state = State::Held(stop);
            thread.interrupted = false;
        }
    }

    /// A thread stopped at the delivery of a signal.
    fn on_signal(&mut self, number: ThreadId, signal: i32) -> Result<Event, PlatformError> {
        let info = ptrace::getsiginfo(pid(number)).map_err(|error| regs::failed("PTRACE_GETSIGINFO", number, error))?;
        let stop = Stop { own: Some(info), takes_signal: true, settled: true, ..Stop::default() };
        if signal != libc::SIGTRAP {
            self.hold(number, stop);
            return Ok(signals::exception(number, signal, &info));
        }
        if signals::is_int3(&info) {
            self.hold(number, stop);
            let pc = self.bitness.wrap(self.raw(number)?.rip);
            return Ok(Event::Int3 { thread: number, at: VirtAddr::new(pc).wrapping_sub(1) });
        }
        let stepping = self.threads.get(&number).is_some_and(|thread| thread.last == Some(Run::Step));
        let code = info.si_code;
        if !matches!(code, libc::TRAP_BRKPT | libc::TRAP_TRACE | libc::TRAP_HWBKPT | HANDLER_ENTERED) {
            self.hold(number, stop);
            return Ok(signals::exception(number, signal, &info));
        }
        let watched = enabled_slots(self.dr7(number)?);
        // With nothing watched DR6 could only repeat that a step ended; not asking keeps stepping fast.
        let dr6 = if watched == 0 && code == libc::TRAP_TRACE { 0 } else { regs::take_dr6(number)? };
        let slots = dr6 as u8 & watched;
        // After a system call, and at the entry of a signal handler, the kernel ends a step by itself, without DR6.
        let single_step = stepping && (code != libc::TRAP_HWBKPT || dr6 & DR6_SINGLE_STEP != 0);
        if single_step || slots != 0 {
            self.hold(number, Stop { own: None, takes_signal: code != HANDLER_ENTERED, ..stop });
            return Ok(Event::Debug { thread: number, single_step, slots });
        }
        self.hold(number, stop);
        Ok(signals::exception(number, signal, &info))
    }

    /// A stop without an event of the program's own: asked for, by job control, or a new thread's first.
    fn on_halt(&mut self, number: ThreadId, signal: i32, holding: bool) -> Result<Option<Event>, PlatformError> {
        let group = signals::is_stopping(signal);
        let Some(thread) = self.threads.get_mut(&number) else { return Ok(None) };
        let arrival = thread.arrival.take();
        if arrival.is_some() || holding || thread.interrupted {
            if arrival.is_none() && has_trap_waiting(number) {
                // It ran into an INT3, or ended a step, in the same moment: the kernel halts it first. It goes on to the
                // delivery of that trap, before any other instruction; left waiting it would end a program let go.
                sys::go(number, Go::Cont, 0).map_err(|error| regs::failed_io("PTRACE_CONT", number, &error))?;
                return Ok(None);
            }
            self.hold(number, Stop { group, settled: true, ..Stop::default() });
            return Ok(arrival.map(|arrival| match arrival {
                Arrival::Born => Event::ThreadStarted { thread: number },
                Arrival::Executed => Event::Executed { thread: number, path: self.path.clone(), bitness: self.bitness },
            }));
        }
        let how = if group { Go::Listen } else { thread.again() };
        sys::go(number, how, 0).map_err(|error| regs::failed_io("PTRACE_CONT", number, &error))?;
        Ok(None)
    }

    /// Lets a thread go on as if nothing had been.
    fn go_on(&mut self, number: ThreadId, holding: bool) -> Result<(), PlatformError> {
        let Some(thread) = self.threads.get_mut(&number) else { return Ok(()) };
        sys::go(number, thread.again(), 0).map_err(|error| regs::failed_io("PTRACE_CONT", number, &error))?;
        if holding || thread.interrupted {
            // Any stop cancels a halt that was asked for.
            thread.interrupted = true;
            let _ = ptrace::interrupt(pid(number));
        }
        Ok(())
    }

    /// A thread made a thread or a process.
    fn on_birth(&mut self, number: ThreadId, event: i32, holding: bool) -> Result<Option<Event>, PlatformError> {
        let born = event_message(number)?;
        let seen = self.early.remove(&born);
        // One that is gone already was hardly a thread whose start anybody must hear of.
        if proc::status(born).is_none_or(|status| status.process == self.pid) {
            let state = if seen { State::Held(Stop { settled: true, ..Stop::default() }) } else { State::Running };
            self.threads.insert(born, Thread { state, arrival: (!seen).then_some(Arrival::Born), ..Thread::default() });
            self.go_on(number, holding)?;
            return Ok(seen.then_some(Event::ThreadStarted { thread: born }));
        }
        let shares_memory = sys::share_memory(self.pid, born).unwrap_or(event == libc::PTRACE_EVENT_VFORK);
        let state = if seen { ChildState::Held } else { ChildState::Unborn };
        self.children.insert(born, Child { parent: number, shares_memory, state });
        self.hold(number, Stop::default());
        Ok(seen.then_some(Event::Forked { thread: number, child: born, shares_memory }))
    }

    fn on_child_stop(&mut self, number: u32, signal: i32, event: i32) -> Result<Option<Event>, PlatformError> {
        let Some(child) = self.children.get_mut(&number) else { return Ok(None) };
        if child.state == ChildState::Unborn && event == libc::PTRACE_EVENT_STOP {
            child.state = ChildState::Held;
            return Ok(Some(Event::Forked { thread: child.parent, child: number, shares_memory: child.shares_memory }));
        }
        let (how, signal) = match event {
            0 => (Go::Cont, signal),
            libc::PTRACE_EVENT_STOP if signals::is_stopping(signal) => (Go::Listen, 0),
            libc::PTRACE_EVENT_EXEC => {
                self.children.remove(&number);
                let _ = sys::go(number, Go::Detach, 0);
                return Ok(Some(Event::SharedChildGone { child: number }));
            }
            libc::PTRACE_EVENT_CLONE | libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK => {
                let born = event_message(number)?;
                if self.early.remove(&born) {
                    let _ = sys::go(born, Go::Detach, 0);
                } else {
                    self.strays.insert(born);
                }
                (Go::Cont, 0)
            }
            _ => (Go::Cont, 0),
        };
        sys::go(number, how, signal).map_err(|error| regs::failed_io("PTRACE_CONT", number, &error))?;
        Ok(None)
    }

    /// The process is another program now. Whichever thread did it, it has the first one's number. Before it is reported
    /// it finishes the system call, so that its registers are those that the program begins with.
    pub fn on_exec(&mut self) -> Result<Option<Event>, PlatformError> {
        self.threads.clear();
        self.leader_traced = true;
        self.threads.insert(self.pid, Thread { arrival: Some(Arrival::Executed), ..Thread::default() });
        self.memory = open_memory(self.pid);
        if let Some(path) = proc::executable(self.pid) {
            self.path = path;
        }
        if let Ok(proc::FileKind::Elf(bitness)) = proc::file_kind(format!("/proc/{}/exe", self.pid).as_ref()) {
            self.bitness = bitness;
        }
        ptrace::interrupt(pid(self.pid)).map_err(|error| regs::failed("PTRACE_INTERRUPT", self.pid, error))?;
        sys::go(self.pid, Go::Cont, 0).map_err(|error| regs::failed_io("PTRACE_CONT", self.pid, &error))?;
        Ok(None)
    }

    /// A thread is about to end. Of a first thread this is all that is heard until the others are gone too.
    fn on_leaving(&mut self, number: ThreadId) -> Result<Option<Event>, PlatformError> {
        if let Some(thread) = self.threads.get_mut(&number) {
            thread.leaving = true;
            thread.state = State::Running;
        }
        sys::go(number, Go::Cont, 0).map_err(|error| regs::failed_io("PTRACE_CONT", number, &error))?;
        let others = self.threads.values().any(|thread| !thread.leaving);
        Ok((number == self.pid && others).then_some(Event::ThreadExited { thread: number }))
    }

    fn on_end(&mut self, number: u32, status: i32) -> Option<Event> {
        self.early.remove(&number);
        self.strays.remove(&number);
        if let Some(child) = self.children.remove(&number) {
            return match child.state {
                ChildState::Running => Some(Event::SharedChildGone { child: number }),
                ChildState::Held => None,
                ChildState::Unborn => {
                    // Killed before it was born: nobody has heard of it, and its parent is held for it.
                    if let Some(parent) = self.threads.get_mut(&child.parent) {
                        parent.state = State::Running;
                        let _ = sys::go(child.parent, parent.again(), 0);
                    }
                    None
                }
            };
        }
        let known = self.threads.remove(&number).is_some();
        let last = self.threads.is_empty() && !self.leader_traced && known;
        if number == self.pid || last {
            self.threads.clear();
            self.release_all();
            return Some(Event::ProcessExited(exit_of(status)));
        }
        known.then_some(Event::ThreadExited { thread: number })
    }
}

/// Slots whose L or G bit is set in DR7.
fn enabled_slots(dr7: u64) -> u8 {
    (0..4).filter(|slot| dr7 >> (slot * 2) & 3 != 0).fold(0, |slots, slot| slots | 1 << slot)
}

fn event_message(thread: ThreadId) -> Result<u32, PlatformError> {
    let message = ptrace::getevent(pid(thread)).map_err(|error| regs::failed("PTRACE_GETEVENTMSG", thread, error))?;
    Ok(message as u32)
}

fn exit_of(status: i32) -> Exit {
    if libc::WIFEXITED(status) {
        Exit::Code(i64::from(libc::WEXITSTATUS(status)))
    } else {
        Exit::Signal(signals::name(libc::WTERMSIG(status)))
    }
}

/// Whether a SIGTRAP has been raised for the thread and not been delivered.
fn has_trap_waiting(thread: ThreadId) -> bool {
    proc::status(thread).is_some_and(|status| status.pending >> (libc::SIGTRAP - 1) & 1 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enabled_slots_are_those_of_dr7() {
        // Intel SDM volume 3, 18.2.4: L0 is bit 0, G0 bit 1, L1 bit 2, and so on.
        assert_eq!(enabled_slots(0), 0);
        assert_eq!(enabled_slots(0x1), 1);
        assert_eq!(enabled_slots(0x2), 1);
        assert_eq!(enabled_slots(0x44), 0b1010);
        assert_eq!(enabled_slots(0xffff_ff00), 0);
    }
}
