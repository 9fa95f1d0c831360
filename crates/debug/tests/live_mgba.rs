//! The same client against mGBA: a second dialect of the protocol, for a Game Boy Advance.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[allow(dead_code)]
mod live_common;

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use debug::emulator::headless;
use debug::gdb_remote::{Answer, Cause, Debugger, Driver, Mode, Registers, Resumed, WatchKind};
use live_common::{ARM, THUMB, in_ms, launcher, local, program, soon, stopped};

/// The port is mGBA's own; it has no option for another.
const PORT: u16 = 2345;
/// Addresses of `fixtures/gba-loop/loop.s`, whose every line is one instruction: `main` is at 0xC0.
const AGAIN: u32 = 0x0800_00CC;
const AFTER_CALL: u32 = 0x0800_00DC;
const INCREASE: u32 = 0x0800_00E8;
const COUNTER: u32 = 0x0200_0000;
const STEP: Duration = Duration::from_secs(20);

/// The emulator, killed at the end: it has no stub command for that.
struct Mgba {
    child: Child,
    _home: tempfile::TempDir,
}

impl Mgba {
    fn start() -> Self {
        let fixtures = std::env::var_os("RETROSCOPE_FIXTURES").expect("RETROSCOPE_FIXTURES names the built fixtures");
        let home = tempfile::tempdir().unwrap();
        let rom = home.path().join("loop.gba");
        std::fs::copy(PathBuf::from(fixtures).join("gba-loop.gba"), &rom).unwrap();
        let mut command = Command::new(launcher("mgba"));
        command.arg("-g").arg(rom).envs(headless()).env("HOME", home.path());
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        Self { child, _home: home }
    }

    fn debugger(&mut self) -> Debugger {
        let driver = loop {
            match Driver::connect(local(PORT), soon()) {
                Ok(driver) => break driver,
                Err(error) => assert!(self.child.try_wait().unwrap().is_none(), "{error}"),
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        Debugger::attach(driver, program("cartridge", 0x0800_0000, 0x100), soon()).unwrap()
    }
}

impl Drop for Mgba {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn counter(debugger: &mut Debugger) -> u32 {
    u32::from_le_bytes(debugger.read_memory(COUNTER, 4, soon()).unwrap().try_into().unwrap())
}

/// One emulator for all of it: its port is always the same.
#[test]
fn the_client_does_with_mgba_what_it_does_with_desmume() {
    let mut mgba = Mgba::start();
    let mut debugger = mgba.debugger();
    assert_eq!(debugger.capabilities().single_register, Answer::Yes);
    assert_eq!(debugger.register_packet(soon()).unwrap().len(), 17 * 4);

    let breakpoint = debugger.add_breakpoint(AGAIN, ARM, None, None, soon()).unwrap();
    for round in 0..3 {
        debugger.resume(soon()).unwrap();
        let stop = stopped(debugger.wait(soon()).unwrap());
        assert_eq!((stop.registers.pc(), stop.registers.mode()), (AGAIN, Mode::Arm));
        assert_eq!((stop.breakpoint.as_deref(), stop.registers.r[4]), (Some("bp-1"), COUNTER));
        assert_eq!(counter(&mut debugger), round);
    }
    // Seven instructions around the loop: four, two in Thumb, and the store.
    let steps = debugger.step(7, STEP, true).unwrap();
    let path: Vec<u32> = steps.registers.iter().map(Registers::pc).collect();
    let [a, d, i] = [AGAIN, AFTER_CALL, INCREASE];
    assert_eq!(path, [a, a + 4, a + 8, a + 12, i, i + 2, d, d + 4]);
    assert_eq!(steps.registers[4].mode(), Mode::Thumb);
    debugger.remove_breakpoint(&breakpoint.id, soon()).unwrap();

    // More than it can give at once.
    let rom = debugger.read_memory(0x0800_0000, 2_000, soon()).unwrap();
    assert_eq!((rom.len(), rom[0xB2]), (2_000, 0x96));
    debugger.write_memory(COUNTER + 0x10, &[1, 2, 3], soon()).unwrap();
    assert_eq!(debugger.read_memory(COUNTER + 0x10, 4, soon()).unwrap(), [1, 2, 3, 0]);
    assert_eq!(debugger.capabilities().confirms_writes, Answer::Yes);

    let watchpoint = debugger.add_watchpoint(COUNTER, 4, WatchKind::Write, soon()).unwrap();
    debugger.resume(soon()).unwrap();
    let stop = stopped(debugger.wait(soon()).unwrap());
    assert_eq!((stop.accessed, stop.watchpoint.as_deref()), (Some(COUNTER), Some(watchpoint.id.as_str())));
    debugger.remove_watchpoint(&watchpoint.id, soon()).unwrap();

    debugger.add_breakpoint(INCREASE, THUMB, None, None, soon()).unwrap();
    debugger.resume(soon()).unwrap();
    let stop = stopped(debugger.wait(soon()).unwrap());
    assert_eq!((stop.registers.pc(), stop.registers.mode()), (INCREASE, Mode::Thumb));
    debugger.remove_breakpoint("bp-2", soon()).unwrap();

    debugger.resume(soon()).unwrap();
    assert_eq!(debugger.wait(in_ms(200)).unwrap(), Resumed::Running);
    assert_eq!(stopped(debugger.pause(soon()).unwrap()).reply.signal, 2);

    // Left running with a breakpoint taken out, and taken over by another client, for which this stub stops it.
    debugger.add_breakpoint(AGAIN, ARM, None, None, soon()).unwrap();
    debugger.resume(soon()).unwrap();
    debugger.let_go(soon()).unwrap();
    drop(debugger);
    let mut next = Debugger::take_over(local(PORT), program("cartridge", 0x0800_0000, 0x100), soon()).unwrap();
    let found = next.last_stop().unwrap().clone();
    assert_eq!((found.cause, found.breakpoint), (Cause::Found, None));
    next.resume(soon()).unwrap();
    assert_eq!(next.wait(in_ms(200)).unwrap(), Resumed::Running);
    assert_eq!(stopped(next.pause(soon()).unwrap()).cause, Cause::Run);
}
