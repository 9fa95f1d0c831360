//! The system calls that no crate wraps safely: the only place of the Linux platform with `unsafe`.

#![allow(unsafe_code)]

use nix::libc;
use std::ffi::{CStr, CString, c_int, c_long, c_void};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// How a stopped thread goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Go {
    /// `PTRACE_CONT`.
    Cont,
    /// `PTRACE_SINGLESTEP`.
    Step,
    /// `PTRACE_LISTEN`: stays stopped by job control, but reports when that ends.
    Listen,
    /// `PTRACE_DETACH`.
    Detach,
}

/// Lets a stopped thread go on, with a signal (0 for none). Real-time signals have no place in `nix`'s enum.
pub fn go(thread: u32, how: Go, signal: i32) -> io::Result<()> {
    let request = match how {
        Go::Cont => libc::PTRACE_CONT,
        Go::Step => libc::PTRACE_SINGLESTEP,
        Go::Listen => libc::PTRACE_LISTEN,
        Go::Detach => libc::PTRACE_DETACH,
    };
    let no_address: *mut c_void = std::ptr::null_mut();
    // SAFETY: these requests take numbers only; the kernel checks the thread and touches none of our memory.
    check(unsafe { libc::ptrace(request, thread as libc::pid_t, no_address, c_long::from(signal)) }).map(|_| ())
}

/// The next state of one of this thread's tracees (never a child of another thread of ours): thread and raw status.
/// `None` when there is none yet and `block` is false.
///
/// # Errors
/// `EINTR` when a signal came, `ECHILD` when there is nothing to wait for.
pub fn wait_any(block: bool) -> io::Result<Option<(u32, i32)>> {
    wait(-1, libc::__WALL | libc::__WNOTHREAD | if block { 0 } else { libc::WNOHANG })
}

/// The next state of one thread or child process, as [`wait_any`] has it.
pub fn wait_one(thread: u32, block: bool) -> io::Result<Option<(u32, i32)>> {
    wait(thread as libc::pid_t, libc::__WALL | if block { 0 } else { libc::WNOHANG })
}

fn wait(which: libc::pid_t, flags: c_int) -> io::Result<Option<(u32, i32)>> {
    let mut status: c_int = 0;
    // SAFETY: `status` lives across the call and is all that the kernel writes.
    let thread = check(c_long::from(unsafe { libc::waitpid(which, &mut status, flags) }))?;
    Ok((thread != 0).then_some((thread as u32, status)))
}

/// Makes the real-time signal that interrupts waits do nothing but interrupt, and lets the calling thread receive it.
pub fn prepare_kicks() -> io::Result<()> {
    extern "C" fn nothing(_signal: c_int) {}
    // SAFETY: all bits zero is a valid `sigaction`: no flags (no SA_RESTART), an empty mask, handler set below.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    let handler: extern "C" fn(c_int) = nothing;
    action.sa_sigaction = handler as usize;
    // SAFETY: `action` is initialised, and the handler does nothing, which is safe in a signal handler.
    check(c_long::from(unsafe { libc::sigaction(kick_signal(), &action, std::ptr::null_mut()) }))?;
    // SAFETY: all bits zero is a valid signal set, which the next call fills anyway.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is a valid set.
    unsafe { libc::sigemptyset(&mut set) };
    // SAFETY: `set` is a valid set and the signal number is in range.
    unsafe { libc::sigaddset(&mut set, kick_signal()) };
    // SAFETY: `set` is a valid set; the old mask is not asked for.
    match unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut()) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

fn kick_signal() -> c_int {
    libc::SIGRTMIN() + 3
}

/// The number of the first real-time signal that programs may use.
pub fn first_real_time_signal() -> i32 {
    libc::SIGRTMIN()
}

/// Interrupts the system call that a thread of ours is in.
pub fn kick(thread: u32) {
    send(std::process::id(), thread, kick_signal());
}

/// Sends a signal to one thread; one that is gone needs none.
pub fn send(process: u32, thread: u32, signal: i32) {
    // SAFETY: the call takes numbers only.
    let _ = unsafe { libc::syscall(libc::SYS_tgkill, process as libc::pid_t, thread as libc::pid_t, signal) };
}

/// Sends a signal to a process.
pub fn send_process(process: u32, signal: i32) -> io::Result<()> {
    // SAFETY: the call takes numbers only.
    check(c_long::from(unsafe { libc::kill(process as libc::pid_t, signal) })).map(|_| ())
}

/// Sends a signal to one thread with what the system knew about it. The kernel lets nobody forge a signal of its own,
/// so one of those is sent bare.
pub fn send_again(process: u32, thread: u32, info: &libc::siginfo_t) {
    let (process_arg, thread_arg) = (process as libc::pid_t, thread as libc::pid_t);
    let pointer: *const libc::siginfo_t = info;
    // SAFETY: `info` is a whole `siginfo_t` that lives across the call and is only read.
    let sent = unsafe { libc::syscall(libc::SYS_rt_tgsigqueueinfo, process_arg, thread_arg, info.si_signo, pointer) };
    if sent != 0 {
        send(process, thread, info.si_signo);
    }
}

/// Whether two processes share their memory; `None` when the kernel does not tell.
pub fn share_memory(one: u32, other: u32) -> Option<bool> {
    const KCMP_VM: c_int = 1;
    // SAFETY: the call takes numbers only.
    let order = unsafe { libc::syscall(libc::SYS_kcmp, one as libc::pid_t, other as libc::pid_t, KCMP_VM, 0, 0) };
    (order >= 0).then_some(order == 0)
}

/// The address in a `siginfo_t` of SIGSEGV, SIGBUS, SIGFPE or SIGILL.
pub fn fault_address(info: &libc::siginfo_t) -> u64 {
    // SAFETY: the accessor reads 8 bytes inside the structure, which is initialised whole; for other signals the number
    // means nothing, which is no matter of memory safety.
    unsafe { info.si_addr() as u64 }
}

/// The 512-byte FXSAVE image of a stopped thread.
pub fn fxsave(thread: u32) -> io::Result<Vec<u8>> {
    let mut image = vec![0u8; std::mem::size_of::<libc::user_fpregs_struct>()];
    let no_address: *mut c_void = std::ptr::null_mut();
    let target: *mut c_void = image.as_mut_ptr().cast();
    // SAFETY: `image` has exactly the size of the structure that this request writes.
    check(unsafe { libc::ptrace(libc::PTRACE_GETFPREGS, thread as libc::pid_t, no_address, target) })?;
    Ok(image)
}

/// A program to start, prepared so that nothing is left to allocate after the fork.
pub struct Program {
    /// The executable.
    pub path: CString,
    /// Arguments, the program's name first.
    pub arguments: Vec<CString>,
    /// The whole environment, `NAME=value`.
    pub environment: Vec<CString>,
    /// Working folder.
    pub folder: CString,
}

/// A child that waits for a byte before it becomes the program.
pub struct Prepared {
    /// Its process id.
    pub pid: u32,
    /// Writing a byte here lets it go on; closing this makes it end.
    pub go: File,
    /// Holds a [`Failure`] when it could not become the program; at its end otherwise.
    pub failure: File,
}

/// What a child of [`fork_waiting`] could not do, as it stands in its pipe: the step's number and `errno`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The step.
    pub step: FailedStep,
    /// `errno`.
    pub errno: i32,
}

/// A step between fork and the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailedStep {
    /// Entering the working folder.
    Folder,
    /// Wiring the standard streams.
    Streams,
    /// `execve`.
    Exec,
}

impl Failure {
    /// Reads what [`Prepared::failure`] gave.
    pub fn parse(bytes: &[u8]) -> Option<Failure> {
        let (step, errno) = bytes.split_first()?;
        let step = match step {
            b'd' => FailedStep::Folder,
            b's' => FailedStep::Streams,
            b'x' => FailedStep::Exec,
            _ => return None,
        };
        Some(Failure { step, errno: i32::from_le_bytes(errno.try_into().ok()?) })
    }
}

/// Forks a child that waits for a byte and then becomes `program`: in its own process group, standard input empty,
/// standard output and error both on our standard error (our standard output may be a protocol).
///
/// `std::process::Command` cannot be used: its `spawn` waits for the `execve`, at which the child of a tracer stops, and
/// it reaps a child whose `execve` failed, of which the tracer must hear.
pub fn fork_waiting(program: &Program) -> io::Result<Prepared> {
    let (go_reader, go_writer) = pipe()?;
    let (failure_reader, failure_writer) = pipe()?;
    let null = std::fs::OpenOptions::new().read(true).open("/dev/null")?;
    let arguments = pointers(&program.arguments);
    let environment = pointers(&program.environment);
    let plan = Plan {
        go: go_reader.as_raw_fd(),
        go_writer: go_writer.as_raw_fd(),
        failure: failure_writer.as_raw_fd(),
        null: null.as_raw_fd(),
        path: &program.path,
        arguments: &arguments,
        environment: &environment,
        folder: &program.folder,
    };
    // SAFETY: the child calls only async-signal-safe functions (in `become_program`) and never returns from here.
    let pid = check(c_long::from(unsafe { libc::fork() }))?;
    if pid == 0 {
        become_program(&plan);
    }
    Ok(Prepared { pid: pid as u32, go: File::from(go_writer), failure: File::from(failure_reader) })
}

/// What the child needs, all of it made before the fork.
struct Plan<'a> {
    go: RawFd,
    go_writer: RawFd,
    failure: RawFd,
    null: RawFd,
    path: &'a CStr,
    arguments: &'a [*const libc::c_char],
    environment: &'a [*const libc::c_char],
    folder: &'a CStr,
}

fn become_program(plan: &Plan<'_>) -> ! {
    let mut byte = 0u8;
    let target: *mut c_void = std::ptr::from_mut(&mut byte).cast();
    // SAFETY: takes numbers only. Our own copy of the writing end must go, or the read below would never see the end.
    unsafe { libc::close(plan.go_writer) };
    loop {
        // SAFETY: `byte` is one byte large and lives across the call.
        match unsafe { libc::read(plan.go, target, 1) } {
            1 => break,
            -1 if errno() == libc::EINTR => {}
            _ => quit(),
        }
    }
    // SAFETY: takes numbers only. A failure leaves the child in our group, which is no reason not to start it.
    unsafe { libc::setpgid(0, 0) };
    for (from, to) in [(plan.null, 0), (2, 1)] {
        // SAFETY: takes numbers only.
        if unsafe { libc::dup2(from, to) } < 0 {
            fail(plan, b's');
        }
    }
    // SAFETY: `folder` ends with a zero byte.
    if unsafe { libc::chdir(plan.folder.as_ptr()) } != 0 {
        fail(plan, b'd');
    }
    // SAFETY: takes numbers only; Rust's start-up code ignores SIGPIPE, which the program must not inherit.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    // SAFETY: all bits zero is a valid signal set.
    let mut none: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: `none` is a valid set.
    unsafe { libc::sigemptyset(&mut none) };
    // SAFETY: `none` is a valid set; the old mask is not asked for.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut()) };
    // SAFETY: all strings end with a zero byte, both lists with a null pointer, and all live until this process is replaced.
    unsafe { libc::execve(plan.path.as_ptr(), plan.arguments.as_ptr(), plan.environment.as_ptr()) };
    fail(plan, b'x')
}

fn fail(plan: &Plan<'_>, step: u8) -> ! {
    let [a, b, c, d] = errno().to_le_bytes();
    let report = [step, a, b, c, d];
    // SAFETY: `report` is 5 bytes large and only read. Nobody is left to hear of a failed write.
    unsafe { libc::write(plan.failure, report.as_ptr().cast(), report.len()) };
    quit()
}

fn quit() -> ! {
    // SAFETY: ends this process at once, without running anything of ours.
    unsafe { libc::_exit(127) }
}

fn errno() -> i32 {
    // SAFETY: the function only gives the address of this thread's own variable.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: the address is valid for the life of the thread.
    unsafe { *place }
}

fn pointers(strings: &[CString]) -> Vec<*const libc::c_char> {
    strings.iter().map(|text| text.as_ptr()).chain(std::iter::once(std::ptr::null())).collect()
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends: [RawFd; 2] = [-1; 2];
    // SAFETY: `ends` has room for the two numbers that the kernel writes.
    check(c_long::from(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) }))?;
    let [reader, writer] = ends;
    // SAFETY: the kernel has just made this descriptor for us, and nobody else owns it.
    let reader = unsafe { OwnedFd::from_raw_fd(reader) };
    // SAFETY: as above.
    let writer = unsafe { OwnedFd::from_raw_fd(writer) };
    Ok((reader, writer))
}

fn check(result: c_long) -> io::Result<c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
