//! The client against a real DeSmuME.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod live_common;

use std::process::Command;
use std::time::{Duration, Instant};

use debug::emulator::{Launch, LaunchError, headless};
use debug::gdb_remote::{
    AddressOrder, Answer, Console, Debugger, Driver, Error, Mode, Processor, Registers, Request, Resumed, WatchKind,
};
use live_common::{ARM, Rig, THUMB, free_port, in_ms, launcher, overlay_rom, program, soon, stopped};

/// Where both overlays are loaded, their Thumb entry, and the number of calls of it.
const OVERLAY: u32 = 0x0210_0000;
const COUNTER: u32 = 0x0230_000C;
const STEP: Duration = Duration::from_secs(20);

fn overlay_range() -> debug::gdb_remote::Range {
    program("overlays", OVERLAY, 0x1000)
}

fn counter(debugger: &mut Debugger) -> u32 {
    u32::from_le_bytes(debugger.read_memory(COUNTER, 4, soon()).unwrap().try_into().unwrap())
}

#[test]
fn fifty_stops_show_the_two_overlays_in_turn() {
    let mut rig = Rig::start(&overlay_rom());
    let mut debugger = rig.debugger();
    debugger.replace_ranges(vec![overlay_range()]).unwrap();
    let breakpoint = debugger.add_breakpoint(OVERLAY, THUMB, None, None, soon()).unwrap();
    // Overlay 0 is stored as it is: its bytes are those of its file, which its table entry and the FAT name.
    let header = &rig.header;
    let file = header.word(header.word(0x50) as usize + 24);
    let stored = header.bytes(header.word(header.word(0x48) as usize + 8 * file as usize), 512).to_vec();
    for round in 0..50_u32 {
        debugger.resume(soon()).unwrap();
        let stop = stopped(debugger.wait(soon()).unwrap());
        assert_eq!((stop.registers.pc(), stop.registers.mode()), (OVERLAY, Mode::Thumb));
        assert_eq!(stop.breakpoint.as_deref(), Some(breakpoint.id.as_str()));
        // r0 is the argument: the number of calls so far.
        assert_eq!((stop.registers.r[0], counter(&mut debugger)), (round, round));
        let live = debugger.read_memory(OVERLAY, 512, soon()).unwrap();
        assert_eq!(live == stored, round % 2 == 0, "round {round}");
    }
    assert_eq!(debugger.breakpoints()[0].hits, 50);
    drop(debugger);
    rig.end();
}

#[test]
fn memory_is_what_the_rom_has_however_much_is_read() {
    let mut rig = Rig::start(&overlay_rom());
    let mut debugger = rig.debugger();
    let (start, length) = (rig.header.word(0x28), rig.header.word(0x2C));
    let stored = rig.header.bytes(rig.header.word(0x20), length).to_vec();
    // Only code and constants: the program has not run yet, but its stack and marker are elsewhere.
    let read = debugger.read_memory(start, 65_536, soon()).unwrap();
    assert_eq!(read[..stored.len()], stored);
    for length in [1, 511, 512, 513, 1_023, 1_024, 1_025] {
        assert_eq!(debugger.read_memory(start, length, soon()).unwrap(), read[..length as usize]);
    }
    drop(debugger);
    rig.end();
}

#[test]
fn a_watched_counter_tells_each_write_with_pc_behind_it() {
    let mut rig = Rig::start(&overlay_rom());
    let mut debugger = rig.debugger();
    for kind in [WatchKind::Write, WatchKind::Access] {
        let watchpoint = debugger.add_watchpoint(COUNTER, 4, kind, soon()).unwrap();
        for _ in 0..4 {
            let before = counter(&mut debugger);
            debugger.resume(soon()).unwrap();
            let stop = stopped(debugger.wait(soon()).unwrap());
            assert_eq!((stop.accessed, stop.watchpoint.as_deref()), (Some(COUNTER), Some(watchpoint.id.as_str())));
            assert_eq!(counter(&mut debugger), before + 1);
            // The word before pc is a store of r1 or r5 at r4 + 12 (ARM: cond 010 P U 0 W 0, Rn 4, offset 12).
            let word = debugger.read_memory(stop.registers.pc() - 4, 4, soon()).unwrap();
            let word = u32::from_le_bytes(word.try_into().unwrap());
            assert_eq!(word & 0x0FFF_0FFF, 0x0584_000C, "{word:#010x}");
            assert_eq!(stop.registers.r[4] + 12, COUNTER);
        }
        debugger.remove_watchpoint(&watchpoint.id, soon()).unwrap();
    }
    assert_eq!(debugger.capabilities().address_order, Some(AddressOrder::Reversed));
    assert_eq!(debugger.capabilities().watchpoints, [Answer::Yes, Answer::Unknown, Answer::Yes]);
    // Only an access that begins there stops it.
    debugger.add_watchpoint(COUNTER + 2, 2, WatchKind::Write, soon()).unwrap();
    debugger.resume(soon()).unwrap();
    assert_eq!(debugger.wait(in_ms(300)).unwrap(), Resumed::Running);
    stopped(debugger.pause(soon()).unwrap());
    drop(debugger);
    rig.end();
}

/// What gdb sees before and after each of a hundred steps from the entry on.
fn by_gdb(address: std::net::SocketAddr) -> Vec<Registers> {
    let names: Vec<String> = (0..13).map(|n| format!("$r{n}")).collect();
    let values = format!("{}, $sp, $lr, $pc, $cpsr", names.join(", "));
    let line = format!("printf \"R{}\\n\", {values}\n", " %x".repeat(17));
    let script = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(
        script.path(),
        format!(
            "set pagination off\nset architecture armv5te\ntarget remote {address}\n{line}set $i = 0\nwhile $i < 100\n\
             stepi\n{line}set $i = $i + 1\nend\nkill\n"
        ),
    )
    .unwrap();
    let output = Command::new("gdb-multiarch").args(["-nx", "-q", "-batch", "-x"]).arg(script.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text.lines().filter_map(|line| line.strip_prefix("R "));
    let registers = lines.map(|line| {
        let values: Vec<u32> = line.split(' ').map(|word| u32::from_str_radix(word, 16).unwrap()).collect();
        Registers { r: values[..16].try_into().unwrap(), cpsr: values[16] }
    });
    registers.collect()
}

#[test]
fn a_hundred_steps_are_those_that_gdb_sees() {
    let mut theirs = Rig::start(&overlay_rom());
    // gdb cannot wait for the program itself.
    drop(theirs.debugger());
    let expected = by_gdb(theirs.arm9);
    theirs.end();
    assert_eq!(expected.len(), 101);

    let mut rig = Rig::start(&overlay_rom());
    let mut debugger = rig.debugger();
    let steps = debugger.step(100, STEP, true).unwrap();
    assert_eq!(steps.completed, 100);
    assert_eq!(steps.registers, expected);
    // Branches were among them.
    assert!(expected.windows(2).any(|two| two[1].pc() != two[0].pc() + 4));
    drop(debugger);
    rig.end();
}

#[test]
fn a_run_is_paused_waited_for_and_left_running() {
    let mut rig = Rig::start(&overlay_rom());
    let mut debugger = rig.debugger();
    debugger.resume(soon()).unwrap();
    assert_eq!(debugger.wait(in_ms(100)).unwrap(), Resumed::Running);
    assert!(matches!(debugger.registers(soon()), Err(Error::Running)));
    let stop = stopped(debugger.pause(soon()).unwrap());
    assert_eq!(stop.reply.signal, 2);
    // It runs on from where it was, for as long as this machine needs for another call.
    let first = counter(&mut debugger);
    assert_eq!(counter(&mut debugger), first);
    let until = soon();
    while counter(&mut debugger) == first {
        assert!(Instant::now() < until, "it does not go on");
        debugger.resume(soon()).unwrap();
        assert_eq!(debugger.wait(in_ms(50)).unwrap(), Resumed::Running);
        stopped(debugger.pause(soon()).unwrap());
    }
    // A pause that meets a breakpoint tells the one or the other, and nothing is mistaken for an answer afterwards.
    debugger.replace_ranges(vec![overlay_range()]).unwrap();
    debugger.add_breakpoint(OVERLAY, THUMB, None, None, soon()).unwrap();
    for _ in 0..50 {
        debugger.resume(soon()).unwrap();
        let stop = stopped(debugger.pause(soon()).unwrap());
        assert!(matches!(stop.reply.signal, 2 | 5));
        assert_eq!(debugger.registers(soon()).unwrap(), stop.registers);
    }
    drop(debugger);
    rig.end();
}

#[test]
fn the_stubs_habits_are_as_they_are_known() {
    let mut rig = Rig::start(&overlay_rom());
    let mut debugger = rig.debugger();
    assert_eq!(debugger.capabilities().single_register, Answer::No);
    assert!(debugger.capabilities().features.is_empty());
    // A register packet has 42 words.
    assert_eq!(debugger.register_packet(soon()).unwrap().len(), 168);
    debugger.write_memory(COUNTER + 0x10, &[1, 2, 3, 4], soon()).unwrap();
    assert_eq!(debugger.capabilities().confirms_writes, Answer::No);
    assert_eq!(debugger.read_memory(COUNTER + 0x10, 4, soon()).unwrap(), [1, 2, 3, 4]);
    drop(debugger);

    let mut raw = Driver::take_over(rig.arm9, soon()).unwrap();
    let mut ask = |packet: &[u8]| raw.exchange(Request::ask(packet.to_vec()), soon()).unwrap();
    let before = ask(b"g");
    // All registers written, none changed.
    assert_eq!(ask(&[b"G".as_slice(), &b"11".repeat(168)].concat()), b"OK");
    assert_eq!(ask(b"g"), before);
    assert_eq!(ask(b"D"), b"");
    // A duplicate stays after one removal.
    for packet in [b"Z0,2100000,2".as_slice(), b"Z0,2100000,2", b"z0,2100000,2"] {
        assert_eq!(ask(packet), b"OK");
    }
    drop(raw);
    let mut again = rig_debugger(&rig);
    again.resume(soon()).unwrap();
    assert_eq!(stopped(again.wait(soon()).unwrap()).registers.pc(), OVERLAY);
    drop(again);
    rig.end();
}

/// The ARM9 wherever it is.
fn rig_debugger(rig: &Rig) -> Debugger {
    let range = program("arm9-main", rig.header.word(0x28), rig.header.word(0x2C));
    Debugger::attach(Driver::take_over(rig.arm9, soon()).unwrap(), range, soon()).unwrap()
}

#[test]
fn what_survives_a_connection_is_cleared_when_attaching() {
    let mut rig = Rig::start(&overlay_rom());
    let mut debugger = rig.debugger();
    let entry = debugger.registers(soon()).unwrap().pc();
    let loop_start = entry + 8;
    debugger.add_breakpoint(loop_start, ARM, None, None, soon()).unwrap();
    debugger.replace_ranges(vec![overlay_range()]).unwrap();
    let stale = debugger.add_breakpoint(OVERLAY, THUMB, None, None, soon()).unwrap();
    // The old connection is lost; the stub serves one at a time.
    debugger.hang_up();
    debugger.reattach(Driver::take_over(rig.arm9, soon()).unwrap(), soon()).unwrap();
    debugger.remove_breakpoint(&stale.id, soon()).unwrap();
    // The other one is planted anew by the run, once, and the removed one is not.
    debugger.resume(soon()).unwrap();
    assert_eq!(stopped(debugger.wait(soon()).unwrap()).registers.pc(), loop_start);
    debugger.resume(soon()).unwrap();
    assert_eq!(debugger.wait(in_ms(200)).unwrap(), Resumed::Running);
    stopped(debugger.pause(soon()).unwrap());
    drop(debugger);
    rig.end();
}

#[test]
fn a_killed_emulator_is_noticed_in_each_state_and_a_second_one_starts_at_once() {
    let port = free_port();
    for state in ["at its entry", "running", "stopped at a breakpoint"] {
        let mut rig = Rig::start_at(&overlay_rom(), port, None);
        let mut debugger = rig.debugger();
        debugger.replace_ranges(vec![overlay_range()]).unwrap();
        match state {
            "running" => debugger.resume(soon()).unwrap(),
            "stopped at a breakpoint" => {
                debugger.add_breakpoint(OVERLAY, THUMB, None, None, soon()).unwrap();
                debugger.resume(soon()).unwrap();
                stopped(debugger.wait(soon()).unwrap());
            }
            _ => {}
        }
        let killed = Command::new("kill").args(["-KILL", &rig.emulator.pid().to_string()]).status().unwrap();
        assert!(killed.success());
        let error = match state {
            "running" => debugger.wait(soon()).unwrap_err(),
            _ => debugger.registers(soon()).unwrap_err(),
        };
        assert!(matches!(error, Error::Closed | Error::Io(_)), "{state}: {error}");
        assert!(matches!(debugger.registers(soon()), Err(Error::Broken)));
        drop(debugger);
        let exit = rig.emulator.stop().unwrap();
        assert_eq!((exit.code, exit.signal), (None, Some(9)), "{state}");
        rig.end();
    }
}

#[test]
fn a_taken_port_and_a_missing_rom_are_said_before_anything_starts() {
    let mut rig = Rig::start(&overlay_rom());
    let debugger = rig.debugger();
    let home = tempfile::tempdir().unwrap();
    let launch = Launch {
        launcher: launcher("desmume-cli"),
        rom: overlay_rom(),
        arm9_port: rig.arm9.port(),
        arm7_port: None,
        home: home.path().to_owned(),
        environment: headless(),
    };
    assert!(matches!(launch.start(), Err(LaunchError::PortTaken(_))));
    let gone = Launch { rom: home.path().join("gone.nds"), arm9_port: free_port(), ..launch };
    assert!(matches!(gone.start(), Err(LaunchError::NoRom(_))));
    drop(debugger);
    rig.end();
}

#[test]
fn a_second_client_is_sent_away_and_the_first_stays() {
    let mut rig = Rig::start(&overlay_rom());
    let mut debugger = rig.debugger();
    let mut second = Driver::connect(rig.arm9, soon()).unwrap();
    let error = second.exchange(Request::ask(b"?".to_vec()), soon()).unwrap_err();
    assert!(matches!(error, Error::Closed | Error::Io(_)), "{error}");
    debugger.registers(soon()).unwrap();
    drop(debugger);
    rig.end();
}

#[test]
fn both_processors_are_debugged_one_at_a_time() {
    let mut rig = Rig::start_at(&overlay_rom(), free_port(), Some(free_port()));
    let (arm9, arm7) = (rig.debugger(), rig.debugger7());
    let mut console = Console::new(arm9, Some(arm7));
    let entry7 = rig.header.word(0x34);
    let seven = console.stopped(Processor::Arm7).unwrap();
    assert_eq!(seven.registers(soon()).unwrap().pc(), entry7);
    // Its only instruction is a branch to itself.
    assert_eq!(seven.read_memory(entry7, 4, soon()).unwrap(), [0xFE, 0xFF, 0xFF, 0xEA]);
    let steps = console.step(Processor::Arm7, 3, STEP, true).unwrap();
    assert_eq!(steps.registers.iter().map(Registers::pc).collect::<Vec<_>>(), [entry7; 4]);

    let nine = console.stopped(Processor::Arm9).unwrap();
    nine.replace_ranges(vec![overlay_range()]).unwrap();
    nine.add_breakpoint(OVERLAY, THUMB, None, None, soon()).unwrap();
    for _ in 0..3 {
        console.resume(Processor::Arm9, soon()).unwrap();
        assert_eq!(stopped(console.wait(soon()).unwrap()).registers.pc(), OVERLAY);
        // With the ARM9's breakpoint withdrawn, the ARM7's run is stopped by its own pause only.
        console.resume(Processor::Arm7, soon()).unwrap();
        assert_eq!(console.wait(in_ms(50)).unwrap(), Resumed::Running);
        let stop = stopped(console.pause(soon()).unwrap());
        assert_eq!((stop.reply.signal, stop.registers.pc()), (2, entry7));
    }
    let before = counter(console.stopped(Processor::Arm9).unwrap());
    console.resume(Processor::Arm9, soon()).unwrap();
    stopped(console.wait(soon()).unwrap());
    assert!(counter(console.stopped(Processor::Arm9).unwrap()) >= before);
    drop(console);
    rig.end();
}

#[test]
fn homebrew_starts_and_stops_at_its_entry() {
    let folder = std::env::var_os("RETROSCOPE_ROMS").expect("RETROSCOPE_ROMS names the folder with Nintendo DS ROMs");
    let mut roms: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    roms.retain(|rom| rom.extension().is_some_and(|extension| extension == "nds"));
    assert!(!roms.is_empty());
    for rom in roms {
        let mut rig = Rig::start(&rom);
        let mut debugger = rig.debugger();
        assert_eq!(debugger.registers(soon()).unwrap().pc(), rig.header.word(0x24), "{}", rom.display());
        assert_eq!(debugger.step(10, STEP, false).unwrap().completed, 10);
        drop(debugger);
        rig.end();
    }
}

#[test]
fn a_flood_of_step_messages_does_not_stop_the_emulator() {
    let mut rig = Rig::start(&overlay_rom());
    let mut debugger = rig.debugger();
    let begun = Instant::now();
    let mut steps = 0;
    // It writes a line for each step: enough of them to fill any pipe.
    while rig.emulator.output().stdout.len() < 64 * 1024 {
        steps += debugger.step(100, STEP, false).unwrap().completed;
        assert!(begun.elapsed() < Duration::from_secs(300), "{steps} steps");
    }
    drop(debugger);
    rig.end();
}
