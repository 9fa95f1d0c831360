//! How a program comes into our hands: started by us, or taken hold of while it runs.

use super::debuggee::Debuggee;
use super::proc::{self, FileKind};
use super::sys::{self, FailedStep, Failure, Go};
use super::wake::{Waited, Wake};
use super::{os_error, regs};
use crate::platform::{Event, LaunchSpec, PlatformError, Started};
use base::limits;
use code::x86::Bitness;
use nix::errno::Errno;
use nix::libc;
use nix::sys::ptrace::{self, Options};
use nix::unistd::Pid;
use std::ffi::{CString, OsString};
use std::io::{Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::parent_id;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What every thread reports beside its signals.
fn options(die_with_agent: bool) -> Options {
    let mut options = Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_TRACEFORK
        | Options::PTRACE_O_TRACEVFORK
        | Options::PTRACE_O_TRACEEXEC
        | Options::PTRACE_O_TRACEEXIT;
    options.set(Options::PTRACE_O_EXITKILL, die_with_agent);
    options
}

/// Starts a program; it is held at its first instruction, in the loader where it has one.
pub fn launch(wake: &Wake, spec: &LaunchSpec) -> Result<(Debuggee, Started), PlatformError> {
    if !spec.cwd.is_dir() {
        return Err(PlatformError::NotFound(spec.cwd.clone()));
    }
    let path = check_program(&spec.cwd.join(&spec.path))?;
    let program = prepare(spec, &path)?;
    let child = sys::fork_waiting(&program).map_err(|error| os_error("fork", &error))?;
    let deadline = Instant::now() + Duration::from_millis(limits::COMMAND_TIMEOUT_MS);
    let result = take_through_exec(wake, spec, &path, child, deadline);
    result.map(|debuggee| {
        let started = started(&debuggee, debuggee.pid);
        (debuggee, started)
    })
}

fn take_through_exec(
    wake: &Wake,
    spec: &LaunchSpec,
    path: &Path,
    mut child: sys::Prepared,
    deadline: Instant,
) -> Result<Debuggee, PlatformError> {
    let pid = child.pid;
    let seized = ptrace::seize(Pid::from_raw(pid as i32), options(spec.die_with_agent));
    if let Err(error) = seized.and_then(|()| child.go.write_all(&[1]).map_err(|_| Errno::EPIPE)) {
        // The child ends when its pipe closes, and is reaped.
        drop(child.go);
        let _ = sys::wait_one(pid, true);
        return Err(refused(pid, error));
    }
    drop(child.go);
    loop {
        let (number, status) = match wake.wait(deadline, true)? {
            Waited::Status(number, status) => (number, status),
            _ => {
                sys::send(pid, pid, libc::SIGKILL);
                return Err(PlatformError::Timeout("the start of the program"));
            }
        };
        if number != pid {
            continue;
        }
        if libc::WIFEXITED(status) || libc::WIFSIGNALED(status) {
            let mut report = Vec::new();
            let _ = child.failure.read_to_end(&mut report);
            return Err(not_started(path, spec, Failure::parse(&report)));
        }
        match status >> 16 {
            libc::PTRACE_EVENT_EXEC => break,
            0 => go_on(pid, libc::WSTOPSIG(status)),
            _ => go_on(pid, 0),
        }
    }
    let kind = proc::file_kind(format!("/proc/{pid}/exe").as_ref());
    let Ok(FileKind::Elf(bitness)) = kind else {
        sys::send(pid, pid, libc::SIGKILL);
        return Err(PlatformError::BadProgram(format!("{} runs as a program that is not for x86", path.display())));
    };
    let mut debuggee = Debuggee::new(pid, path.to_owned(), bitness);
    let mut event = debuggee.on_exec()?;
    loop {
        match event {
            Some(Event::Executed { .. }) => return Ok(debuggee),
            Some(Event::ProcessExited(_)) => return Err(not_started(path, spec, None)),
            _ => {}
        }
        event = match wake.wait(deadline, true)? {
            Waited::Status(number, status) if number == pid => debuggee.on_status(number, status, false)?,
            Waited::Status(..) => None,
            _ => {
                sys::send(pid, pid, libc::SIGKILL);
                return Err(PlatformError::Timeout("the start of the program"));
            }
        };
    }
}

fn go_on(thread: u32, signal: i32) {
    let _ = sys::go(thread, Go::Cont, signal);
}

/// Refuses what cannot be started, in words that say what it is. Returns the absolute path.
fn check_program(path: &Path) -> Result<PathBuf, PlatformError> {
    match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(PlatformError::NotFound(path.to_owned()));
        }
        Err(error) => return Err(PlatformError::Permission(format!("{} cannot be reached: {error}", path.display()))),
        Ok(metadata) if metadata.is_dir() => {
            return Err(PlatformError::BadProgram(format!("{} is a folder, not a program", path.display())));
        }
        Ok(metadata) if !metadata.is_file() => {
            return Err(PlatformError::BadProgram(format!("{} is a pipe or a device, not a program", path.display())));
        }
        Ok(_) => {}
    }
    if let Ok(FileKind::ForeignElf) = proc::file_kind(path) {
        return Err(PlatformError::BadProgram(format!(
            "{} is a program for another processor: this agent debugs x86 and x86-64 programs",
            path.display()
        )));
    }
    std::path::absolute(path).map_err(|error| os_error("finding the current folder", &error))
}

fn prepare(spec: &LaunchSpec, path: &Path) -> Result<sys::Program, PlatformError> {
    let mut arguments = vec![text(path.as_os_str().to_owned(), "the path")?];
    for argument in &spec.args {
        arguments.push(text(argument.into(), "an argument")?);
    }
    let mut environment = Vec::new();
    let inherited = std::env::vars_os().filter(|(name, _)| !spec.env.keys().any(|own| name == own.as_str()));
    let own = spec.env.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    for (mut entry, value) in inherited.chain(own) {
        entry.push("=");
        entry.push(value);
        environment.push(text(entry, "an environment variable")?);
    }
    let folder = text(spec.cwd.as_os_str().to_owned(), "the working folder")?;
    Ok(sys::Program { path: text(path.as_os_str().to_owned(), "the path")?, arguments, environment, folder })
}

fn text(value: OsString, what: &str) -> Result<CString, PlatformError> {
    CString::new(value.into_vec())
        .map_err(|_| PlatformError::BadProgram(format!("{what} contains a zero byte, which no program can be given")))
}

/// Why a child ended before it was the program.
fn not_started(path: &Path, spec: &LaunchSpec, failure: Option<Failure>) -> PlatformError {
    let Some(failure) = failure else {
        return PlatformError::BadProgram(format!("{} was ended before its first instruction", path.display()));
    };
    let error = Errno::from_raw(failure.errno);
    let shown = path.display();
    match (failure.step, error) {
        (FailedStep::Folder, Errno::ENOENT | Errno::ENOTDIR) => PlatformError::NotFound(spec.cwd.clone()),
        (FailedStep::Folder, _) => {
            PlatformError::Permission(format!("the folder {} cannot be entered: {}", spec.cwd.display(), error.desc()))
        }
        (FailedStep::Streams, _) => os_error("dup2", &error.into()),
        (FailedStep::Exec, Errno::ENOENT) => PlatformError::BadProgram(format!(
            "{shown} needs a loader or interpreter that is not installed; `file` and `ldd` name it"
        )),
        (FailedStep::Exec, Errno::EACCES | Errno::EPERM) => PlatformError::Permission(format!(
            "{shown} may not be executed: give it the execute permission (chmod +x), on a file system mounted without noexec"
        )),
        (FailedStep::Exec, Errno::ENOEXEC) => {
            let what = match proc::file_kind(path) {
                Ok(FileKind::Windows) => "a DOS or Windows program, which Linux does not start by itself",
                Ok(FileKind::Elf(_)) => "damaged, or needs a kernel that runs 32-bit programs",
                _ => "not in a format that Linux executes",
            };
            PlatformError::BadProgram(format!("{shown} is {what}"))
        }
        (FailedStep::Exec, Errno::E2BIG) => {
            PlatformError::BadProgram("the arguments and environment are too long for the system".to_owned())
        }
        (FailedStep::Exec, _) => PlatformError::BadProgram(format!("{shown} cannot be executed: {}", error.desc())),
    }
}

/// Takes hold of a running program: all its threads, also those that are born meanwhile.
pub fn attach(wake: &Wake, pid: u32) -> Result<(Debuggee, Started), PlatformError> {
    let bitness = check_process(pid)?;
    let path = proc::executable(pid).or_else(|| proc::tasks(pid).into_iter().find_map(proc::executable));
    let mut debuggee = Debuggee::new(pid, path.unwrap_or_default(), bitness);
    let deadline = Instant::now() + Duration::from_millis(limits::HOLD_TIMEOUT_MS);
    let result = seize_all(wake, &mut debuggee, deadline);
    if let Err(error) = result {
        debuggee.release_all();
        return Err(error);
    }
    let thread = debuggee.witness();
    let started = started(&debuggee, thread);
    Ok((debuggee, started))
}

/// Seizes until a look at the list of threads shows none that is new, then waits until all are held. What they receive
/// meanwhile is theirs: it is passed on.
fn seize_all(wake: &Wake, debuggee: &mut Debuggee, deadline: Instant) -> Result<(), PlatformError> {
    // The kernel takes the tracer to be a thread.
    let own = nix::unistd::gettid().as_raw() as u32;
    loop {
        let mut found_new = false;
        for thread in proc::tasks(debuggee.pid) {
            if debuggee.knows(thread) {
                continue;
            }
            match ptrace::seize(Pid::from_raw(thread as i32), options(false)) {
                Ok(()) => {
                    debuggee.add_running(thread);
                    found_new = true;
                }
                Err(Errno::ESRCH) => {}
                Err(Errno::EPERM) if is_no_matter(thread, own) => {}
                Err(error) => return Err(refused(debuggee.pid, error)),
            }
        }
        if !found_new {
            break;
        }
    }
    if debuggee.threads().is_empty() {
        return Err(PlatformError::NoProcess(debuggee.pid));
    }
    debuggee.hold_quietly(wake, deadline)
}

/// A thread that cannot be seized and need not be: it has ended (a first thread perhaps long ago), or it was born of one
/// that we have already and comes to us by itself.
fn is_no_matter(thread: u32, tracer: u32) -> bool {
    proc::status(thread).is_none_or(|status| matches!(status.state, 'Z' | 'X') || status.tracer == tracer)
}

fn check_process(pid: u32) -> Result<Bitness, PlatformError> {
    let Some(status) = proc::status(pid).filter(|_| pid != 0) else { return Err(PlatformError::NoProcess(pid)) };
    if status.process != pid {
        return Err(PlatformError::BadProgram(format!(
            "{pid} is a thread of process {}: attach to that",
            status.process
        )));
    }
    if pid == std::process::id() {
        return Err(PlatformError::Permission("the agent cannot debug itself".to_owned()));
    }
    if pid == parent_id() {
        return Err(PlatformError::Permission(format!(
            "process {pid} started this agent: halting it could halt whoever gives the commands"
        )));
    }
    if status.tracer != 0 {
        let name = proc::thread_name(status.tracer).unwrap_or_default();
        return Err(PlatformError::Permission(format!(
            "process {pid} is already debugged by process {} ({name}): end that first",
            status.tracer
        )));
    }
    let alive = |thread: &u32| proc::status(*thread).is_some_and(|status| !matches!(status.state, 'Z' | 'X'));
    let Some(live) = proc::tasks(pid).into_iter().find(alive) else {
        return Err(PlatformError::BadProgram(format!("process {pid} has ended; its parent has not taken note yet")));
    };
    match proc::file_kind(format!("/proc/{live}/exe").as_ref()) {
        Ok(FileKind::Elf(bitness)) => Ok(bitness),
        Ok(_) => Err(PlatformError::BadProgram(format!("process {pid} is not an x86 program"))),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Err(refused(pid, Errno::EPERM)),
        Err(_) => Err(PlatformError::BadProgram(format!("process {pid} is a part of the kernel, not a program"))),
    }
}

/// Why the system does not let us trace a process.
fn refused(pid: u32, error: Errno) -> PlatformError {
    if error != Errno::EPERM && error != Errno::EACCES {
        return regs::failed("PTRACE_SEIZE", pid, error);
    }
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    let advice = match scope.trim() {
        "1" => {
            "this system lets a debugger only at programs that it started (kernel.yama.ptrace_scope is 1): launch the \
                program with the agent, or type `sudo sysctl kernel.yama.ptrace_scope=0`"
        }
        "2" | "3" => "this system forbids debugging to all but administrators (kernel.yama.ptrace_scope)",
        _ => "run the agent as the same user, or as root; setuid programs only let root",
    };
    PlatformError::Permission(format!("the system does not allow to debug process {pid}: {advice}"))
}

fn started(debuggee: &Debuggee, thread: u32) -> Started {
    Started { pid: debuggee.pid, path: debuggee.path.clone(), bitness: debuggee.bitness, thread }
}

/// Whether an executable's path is what a user named: the whole path, or its last part.
pub fn is_named(path: &Path, name: &str) -> bool {
    if name.contains('/') {
        path.as_os_str().as_bytes() == name.as_bytes()
    } else {
        path.file_name() == Some(name.as_ref())
    }
}
