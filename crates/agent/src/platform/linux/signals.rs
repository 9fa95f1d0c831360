//! Signals: their names, what they mean when nobody handles them, and which events they make.

use super::{proc, sys};
use crate::platform::{Event, ThreadId};
use base::VirtAddr;
use nix::libc::{self, siginfo_t};

/// Signals with a name, in numeric order from 1 on (signal(7), x86).
const NAMES: [&str; 31] = [
    "SIGHUP",
    "SIGINT",
    "SIGQUIT",
    "SIGILL",
    "SIGTRAP",
    "SIGABRT",
    "SIGBUS",
    "SIGFPE",
    "SIGKILL",
    "SIGUSR1",
    "SIGSEGV",
    "SIGUSR2",
    "SIGPIPE",
    "SIGALRM",
    "SIGTERM",
    "SIGSTKFLT",
    "SIGCHLD",
    "SIGCONT",
    "SIGSTOP",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGURG",
    "SIGXCPU",
    "SIGXFSZ",
    "SIGVTALRM",
    "SIGPROF",
    "SIGWINCH",
    "SIGIO",
    "SIGPWR",
    "SIGSYS",
];

/// A signal's name.
pub fn name(signal: i32) -> String {
    let index = usize::try_from(signal).ok().and_then(|signal| signal.checked_sub(1));
    match index.and_then(|index| NAMES.get(index)) {
        Some(name) => (*name).to_owned(),
        None if signal >= sys::first_real_time_signal() => match signal - sys::first_real_time_signal() {
            0 => "SIGRTMIN".to_owned(),
            offset => format!("SIGRTMIN+{offset}"),
        },
        None => format!("signal {signal}"),
    }
}

/// Signals that stop a process by job control.
pub fn is_stopping(signal: i32) -> bool {
    matches!(signal, libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU)
}

/// A SIGTRAP by the processor's INT3: x86 Linux says `SI_KERNEL` of it, and of no other trap.
pub fn is_int3(info: &siginfo_t) -> bool {
    info.si_signo == libc::SIGTRAP && info.si_code == libc::SI_KERNEL
}

/// A signal by the instruction that the thread is at, not by anybody's wish.
pub fn is_fault(info: &siginfo_t) -> bool {
    let kind = matches!(
        info.si_signo,
        libc::SIGSEGV | libc::SIGBUS | libc::SIGFPE | libc::SIGILL | libc::SIGTRAP | libc::SIGSYS
    );
    kind && info.si_code > 0
}

/// The event of a signal that is the program's own.
pub fn exception(thread: ThreadId, signal: i32, info: &siginfo_t) -> Event {
    let synchronous = is_fault(info);
    // Of a fault that has no address (a non-canonical one) the kernel says `SI_KERNEL`.
    let has_address = synchronous && !matches!(signal, libc::SIGTRAP | libc::SIGSYS) && info.si_code != libc::SI_KERNEL;
    Event::Exception {
        thread,
        name: name(signal),
        number: signal as u32,
        address: has_address.then(|| VirtAddr::new(sys::fault_address(info))),
        synchronous,
        fatal: is_fatal(thread, signal, synchronous),
    }
}

/// The event of an INT3 that is the program's own; without `info` the thread is gone, and nobody is left to end.
pub fn int3(thread: ThreadId, info: Option<&siginfo_t>) -> Event {
    match info {
        Some(info) => exception(thread, libc::SIGTRAP, info),
        None => Event::Exception {
            thread,
            name: name(libc::SIGTRAP),
            number: libc::SIGTRAP as u32,
            address: None,
            synchronous: true,
            fatal: false,
        },
    }
}

/// Whether the signal ends the program when it gets it now.
fn is_fatal(thread: ThreadId, signal: i32, synchronous: bool) -> bool {
    // Signals whose default is to be ignored, or to stop or continue (signal(7)).
    if is_stopping(signal) || matches!(signal, libc::SIGCHLD | libc::SIGCONT | libc::SIGURG | libc::SIGWINCH) {
        return false;
    }
    let Some(status) = proc::status(thread) else { return false };
    let bit = u32::try_from(signal - 1).ok().and_then(|shift| 1u64.checked_shl(shift)).unwrap_or(0);
    if synchronous {
        // A fault is not to be ignored or blocked: the kernel gives such a program the default action.
        return status.caught & bit == 0 || status.blocked & bit != 0;
    }
    status.caught & bit == 0 && status.ignored & bit == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_system() {
        for signal in nix::sys::signal::Signal::iterator() {
            assert_eq!(name(signal as i32), signal.as_str());
        }
        assert_eq!(name(sys::first_real_time_signal()), "SIGRTMIN");
        assert_eq!(name(sys::first_real_time_signal() + 2), "SIGRTMIN+2");
        assert_eq!(name(0), "signal 0");
        assert_eq!(name(-1), "signal -1");
    }
}
