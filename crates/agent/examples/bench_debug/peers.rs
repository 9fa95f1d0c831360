//! What the agent is measured against: the smallest ptrace loops that make the same stops, and gdb.

use nix::libc::{c_long, user, user_regs_struct};
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::error::Error;
use std::io::Write as _;
use std::mem::offset_of;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// driftgame in its loop that calls `hot_step` and then stores its counter, for ever.
pub struct Game {
    child: Child,
    memory: std::fs::File,
    counter: u64,
    /// Iterations per second while nobody stops it.
    free: f64,
}

impl Game {
    /// Starts it and waits until it counts. `counter` is the address of `g_hot_count`.
    pub fn start(path: &Path, counter: u64) -> Result<Self, Box<dyn Error>> {
        let child = Command::new(path)
            .args(["--headless", "--spin-loop"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()?;
        let memory = open_memory(child.id())?;
        let mut game = Self { child, memory, counter, free: 0.0 };
        let start = Instant::now();
        // Opened too early it is still the memory of the process that makes the new one: it is opened anew then.
        while game.count().map_or(true, |count| count == 0) {
            if start.elapsed() > Duration::from_secs(10) {
                return Err("driftgame does not count".into());
            }
            std::thread::sleep(Duration::from_millis(5));
            game.memory = open_memory(game.pid())?;
        }
        game.free = game.rate(Duration::from_millis(100))?;
        Ok(game)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Iterations so far, modulo 2^32.
    pub fn count(&self) -> Result<u32, Box<dyn Error>> {
        let mut bytes = [0; 4];
        self.memory
            .read_exact_at(&mut bytes, self.counter)
            .map_err(|error| format!("driftgame's counter cannot be read: {error}"))?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// Waits until a debugger stops it at every iteration, which is seen by its speed, and a moment more.
    pub fn wait_until_stopped_often(&self) -> Result<(), Box<dyn Error>> {
        let start = Instant::now();
        // Free it makes some hundred million iterations per second; with a stop at each at most a few hundred thousand.
        while self.rate(Duration::from_millis(50))? > self.free / 50.0 {
            if start.elapsed() > Duration::from_secs(20) {
                return Err("the debugger does not stop driftgame".into());
            }
        }
        std::thread::sleep(Duration::from_millis(200));
        Ok(())
    }

    /// Iterations per second, seen from outside during `span`.
    pub fn rate(&self, span: Duration) -> Result<f64, Box<dyn Error>> {
        let (first, start) = (self.count()?, Instant::now());
        std::thread::sleep(span);
        let (last, elapsed) = (self.count()?, start.elapsed());
        Ok(f64::from(last.wrapping_sub(first)) / elapsed.as_secs_f64())
    }
}

impl Drop for Game {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn open_memory(pid: u32) -> Result<std::fs::File, Box<dyn Error>> {
    std::fs::File::open(format!("/proc/{pid}/mem")).map_err(|error| format!("the memory of driftgame: {error}").into())
}

fn stopped(pid: Pid) -> Result<(), Box<dyn Error>> {
    match waitpid(pid, Some(WaitPidFlag::__WALL))? {
        WaitStatus::Stopped(_, Signal::SIGTRAP) | WaitStatus::PtraceEvent(..) => Ok(()),
        other => Err(format!("unexpected stop: {other:?}").into()),
    }
}

fn seize(pid: Pid) -> Result<(), Box<dyn Error>> {
    ptrace::seize(pid, ptrace::Options::empty())?;
    ptrace::interrupt(pid)?;
    stopped(pid)
}

/// Hits per second of a breakpoint whose condition is false, the plain way: two stops a hit, and at each hit exactly
/// what is needed: registers read, byte restored, program counter set, single step, byte planted again.
pub fn two_stop_loop(game: &Game, address: u64, span: Duration) -> Result<f64, Box<dyn Error>> {
    let pid = Pid::from_raw(i32::try_from(game.pid())?);
    seize(pid)?;
    let place = address as *mut std::ffi::c_void;
    let original = ptrace::read(pid, place)?;
    let planted = (original & !0xff) | 0xcc;
    ptrace::write(pid, place, planted)?;
    let (mut hits, start) = (0_u32, Instant::now());
    while start.elapsed() < span {
        ptrace::cont(pid, None)?;
        stopped(pid)?;
        let mut registers = ptrace::getregs(pid)?;
        if registers.rdi == u64::MAX {
            return Err("the condition held".into());
        }
        registers.rip = address;
        ptrace::setregs(pid, registers)?;
        ptrace::write(pid, place, original)?;
        ptrace::step(pid, None)?;
        stopped(pid)?;
        ptrace::write(pid, place, planted)?;
        hits += 1;
    }
    let rate = f64::from(hits) / start.elapsed().as_secs_f64();
    ptrace::write(pid, place, original)?;
    ptrace::detach(pid, None)?;
    Ok(rate)
}

fn debug_register(index: usize) -> *mut std::ffi::c_void {
    (offset_of!(user, u_debugreg) + index * size_of::<c_long>()) as *mut std::ffi::c_void
}

/// Stops and resumes per second of a 4-byte write watchpoint at `address`: at each one DR6 is read and cleared and the
/// registers are read, as any report or condition needs.
pub fn watch_loop(game: &Game, address: u64, span: Duration) -> Result<f64, Box<dyn Error>> {
    let pid = Pid::from_raw(i32::try_from(game.pid())?);
    seize(pid)?;
    ptrace::write_user(pid, debug_register(0), i64::try_from(address)?)?;
    ptrace::write_user(pid, debug_register(7), 0x000d_0001)?;
    let (mut hits, start) = (0_u32, Instant::now());
    while start.elapsed() < span {
        ptrace::cont(pid, None)?;
        stopped(pid)?;
        if ptrace::read_user(pid, debug_register(6))? & 1 == 0 {
            return Err("a stop that is no watch hit".into());
        }
        ptrace::write_user(pid, debug_register(6), 0)?;
        let _registers: user_regs_struct = ptrace::getregs(pid)?;
        hits += 1;
    }
    let rate = f64::from(hits) / start.elapsed().as_secs_f64();
    ptrace::write_user(pid, debug_register(7), 0)?;
    ptrace::detach(pid, None)?;
    Ok(rate)
}

/// Hits per second of gdb's conditional breakpoint with the same false condition.
pub fn gdb(game: &Game, symbol: &str, span: Duration) -> Result<f64, Box<dyn Error>> {
    let mut gdb = Command::new("gdb")
        .args(["-q", "-nx", "-p", &game.pid().to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("gdb is needed as the peer: {error}"))?;
    let outcome = (|| {
        let input = gdb.stdin.as_mut().ok_or("gdb has no input")?;
        write!(input, "set pagination off\nbreak *{symbol} if $rdi == -1\ncontinue\n")?;
        input.flush()?;
        game.wait_until_stopped_often()?;
        game.rate(span)
    })();
    drop(gdb.kill());
    drop(gdb.wait());
    outcome
}
