//! The client against a stub with DeSmuME's habits: each is answered without a crash, a hang or a wrong report.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod stub;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use debug::gdb_remote::{
    Answer, Cause, Console, Debugger, Driver, Error, Mode, ModeRequest, Processor, Range, RangeSource, Region, Resumed,
    WatchKind,
};
use stub::{ENTRY, Script, Stub};

/// Long enough for a busy machine; nothing waits it out but what must.
fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

fn in_ms(ms: u64) -> Instant {
    Instant::now() + Duration::from_millis(ms)
}

fn main_range() -> Range {
    Range {
        id: "arm9-main".to_owned(),
        label: "ARM9 program".to_owned(),
        start: ENTRY,
        end: ENTRY + 0x1000,
        source: RangeSource::Main,
        default_mode: None,
        symbol_modes: BTreeMap::new(),
    }
}

fn attach(stub: &Stub) -> Debugger {
    Debugger::attach(Driver::connect(stub.address, soon()).unwrap(), main_range(), soon()).unwrap()
}

const ARM: ModeRequest = ModeRequest::Known(Mode::Arm);

#[test]
fn ready_is_the_entry_in_pc_and_not_an_open_port() {
    let stub = Stub::start(Script { loading: 5, ..Script::default() });
    let mut debugger = Debugger::when_ready(stub.address, main_range(), ENTRY, soon(), || true).unwrap();
    assert_eq!(debugger.registers(soon()).unwrap().pc(), ENTRY);
    assert!(stub.script().seen.iter().filter(|packet| *packet == "g").count() >= 6);

    let never = Stub::start(Script { loading: u32::MAX, ..Script::default() });
    let error = Debugger::when_ready(never.address, main_range(), ENTRY, in_ms(100), || true).unwrap_err();
    assert!(matches!(error, Error::NotReady { pc: 0, entry: ENTRY, .. }));
    let mut asked = 0;
    let dead = Debugger::when_ready(never.address, main_range(), ENTRY, soon(), || {
        asked += 1;
        asked < 3
    });
    assert!(matches!(dead, Err(Error::NotReady { .. })));
}

#[test]
fn large_reads_never_ask_for_more_than_the_buffer_holds() {
    let stub = Stub::start(Script::default());
    let mut debugger = attach(&stub);
    let bytes = debugger.read_memory(ENTRY, 65_536, soon()).unwrap();
    assert_eq!(bytes.len(), 65_536);
    let script = stub.script();
    // 65,536 / 512.
    assert_eq!(script.seen.iter().filter(|packet| packet.starts_with('m')).count(), 128);
    assert!(script.seen.contains(&"m2000000,200".to_owned()) && script.seen.contains(&"m200fe00,200".to_owned()));
    assert!(!script.crashed);
}

#[test]
fn reads_that_cannot_be_are_refused_unasked() {
    let stub = Stub::start(Script::default());
    let mut debugger = attach(&stub);
    for (address, length) in [(ENTRY, 0), (ENTRY, 65_537), (u32::MAX, 2)] {
        assert!(matches!(debugger.read_memory(address, length, soon()), Err(Error::BadRead { .. })));
    }
    assert_eq!(debugger.read_memory(u32::MAX, 1, soon()).unwrap().len(), 1);
    assert_eq!(stub.script().seen.iter().filter(|packet| packet.starts_with('m')).count(), 1);
}

#[test]
fn what_was_read_is_told_when_the_rest_cannot_be() {
    let stub = Stub::start(Script::default());
    let mut debugger = attach(&stub);
    stub.script().deaf_to = Some('m');
    let error = debugger.read_memory(ENTRY, 16, in_ms(50)).unwrap_err();
    assert!(matches!(&error, Error::PartRead { start: ENTRY, reached, .. } if *reached == u64::from(ENTRY)), "{error}");
    // A late answer would be taken for another's, so the connection is given up.
    assert!(matches!(debugger.read_memory(ENTRY, 16, soon()), Err(Error::Broken)));
}

#[test]
fn a_write_that_is_answered_by_nothing_is_read_back() {
    let stub = Stub::start(Script::default());
    let mut debugger = attach(&stub);
    debugger.write_memory(ENTRY + 0x10, &[1, 2, 3], soon()).unwrap();
    assert_eq!(stub.script().memory[0x10..0x14], [1, 2, 3, 0]);
    assert_eq!(debugger.capabilities().confirms_writes, Answer::No);
    stub.script().read_only = true;
    let error = debugger.write_memory(ENTRY + 0x10, &[4], soon()).unwrap_err();
    assert!(matches!(error, Error::NotWritten { address } if address == ENTRY + 0x10), "{error}");
}

#[test]
fn nothing_is_sent_while_the_program_runs_and_a_wait_leaves_no_trace() {
    let stub = Stub::start(Script::default());
    let mut debugger = attach(&stub);
    debugger.resume(soon()).unwrap();
    stub.wait(|script| script.seen.last().is_some_and(|packet| packet == "c"));
    let before = stub.script().seen.len();
    assert_eq!(debugger.wait(in_ms(30)).unwrap(), Resumed::Running);
    assert!(matches!(debugger.read_memory(ENTRY, 4, soon()), Err(Error::Running)));
    assert!(matches!(debugger.registers(soon()), Err(Error::Running)));
    assert!(matches!(debugger.add_breakpoint(ENTRY, ARM, None, None, soon()), Err(Error::Running)));
    assert!(matches!(debugger.resume(soon()), Err(Error::Running)));
    assert!(matches!(debugger.step(1, Duration::from_secs(5), false), Err(Error::Running)));
    assert_eq!(stub.script().seen.len(), before);
    let Resumed::Stopped(stop) = debugger.pause(soon()).unwrap() else { panic!("still running") };
    assert_eq!(stop.reply.signal, 2);
    // Pausing what is stopped tells the same again.
    assert_eq!(debugger.pause(soon()).unwrap(), Resumed::Stopped(stop));
}

#[test]
fn several_breakpoints_at_one_address_are_one_to_the_stub() {
    let stub = Stub::start(Script::default());
    let mut debugger = attach(&stub);
    let first = debugger.add_breakpoint(ENTRY, ARM, None, None, soon()).unwrap();
    let second = debugger.add_breakpoint(ENTRY, ARM, Some("start".to_owned()), None, soon()).unwrap();
    assert_eq!(stub.script().planted, ["0,2000000,4"]);
    debugger.remove_breakpoint(&first.id, soon()).unwrap();
    assert_eq!(stub.script().planted, ["0,2000000,4"]);
    debugger.remove_breakpoint(&second.id, soon()).unwrap();
    assert_eq!(stub.script().planted, Vec::<String>::new());
    // Watchpoints likewise.
    let [first, second] = [(); 2].map(|()| debugger.add_watchpoint(ENTRY, 4, WatchKind::Write, soon()).unwrap());
    debugger.remove_watchpoint(&first.id, soon()).unwrap();
    assert_eq!(stub.script().planted, ["2,2000000,4"]);
    debugger.remove_watchpoint(&second.id, soon()).unwrap();
    assert_eq!(stub.script().planted, Vec::<String>::new());
}

#[cfg(unix)]
#[test]
fn a_stub_that_ended_first_has_its_port_back_at_once() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let driver = Driver::connect(address, soon()).unwrap();
    drop(listener.accept().unwrap());
    drop(listener);
    // It closed first, so it is the stub's side that would wait for stray packets of this connection.
    drop(driver);
    assert!(debug::emulator::port_is_free(address.port()));
}

#[test]
fn the_thirty_third_breakpoint_is_refused() {
    let stub = Stub::start(Script::default());
    let mut debugger = attach(&stub);
    for index in 0..32 {
        debugger.add_breakpoint(ENTRY + index * 4, ARM, None, None, soon()).unwrap();
    }
    let error = debugger.add_breakpoint(ENTRY + 0x80, ARM, None, None, soon()).unwrap_err();
    assert!(matches!(error, Error::Full { most: 32, .. }));
    assert_eq!(stub.script().planted.len(), 32);
}

#[test]
fn a_range_with_a_breakpoint_stays() {
    let stub = Stub::start(Script::default());
    let mut debugger = attach(&stub);
    let overlay = Range {
        id: "ov0".to_owned(),
        start: 0x0210_0000,
        end: 0x0210_1000,
        source: RangeSource::Overlay(Some(0)),
        default_mode: Some(Mode::Thumb),
        ..main_range()
    };
    debugger.replace_ranges(vec![overlay.clone()]).unwrap();
    let breakpoint = debugger.add_breakpoint(0x0210_0000, ModeRequest::Auto, None, None, soon()).unwrap();
    assert_eq!((breakpoint.mode, breakpoint.range.as_str()), (Mode::Thumb, "ov0"));
    assert!(matches!(debugger.replace_ranges(Vec::new()), Err(Error::RangeInUse { .. })));
    debugger.remove_breakpoint(&breakpoint.id, soon()).unwrap();
    debugger.replace_ranges(Vec::new()).unwrap();
}

#[test]
fn a_watched_address_is_read_from_its_last_digit() {
    let stub = Stub::start(Script { stops: vec!["T06watch:c0000320;"], ..Script::default() });
    let mut debugger = attach(&stub);
    debugger.add_watchpoint(0x0230_000C, 4, WatchKind::Write, soon()).unwrap();
    assert_eq!(stub.script().planted, ["2,230000c,4"]);
    debugger.resume(soon()).unwrap();
    let Resumed::Stopped(stop) = debugger.wait(soon()).unwrap() else { panic!("still running") };
    assert_eq!((stop.accessed, stop.watchpoint.as_deref()), (Some(0x0230_000C), Some("wp-1")));
    assert_eq!(debugger.watchpoints()[0].hits, 1);
}

#[test]
fn steps_end_early_at_a_watched_access_and_count_what_was_done() {
    let stub = Stub::start(Script { stops: vec!["S05", "T06watch:c0000320;"], ..Script::default() });
    let mut debugger = attach(&stub);
    debugger.add_watchpoint(0x0230_000C, 4, WatchKind::Write, soon()).unwrap();
    let steps = debugger.step(10, Duration::from_secs(20), true).unwrap();
    assert_eq!(steps.completed, 2);
    assert_eq!(steps.registers.iter().map(|registers| registers.pc() - ENTRY).collect::<Vec<_>>(), [0, 4, 8]);
    for count in [0, 101] {
        assert!(matches!(debugger.step(count, Duration::from_secs(1), false), Err(Error::OutOfRange { .. })));
    }
}

#[test]
fn a_step_that_is_never_answered_leaves_the_program_running() {
    let stub = Stub::start(Script { deaf_to: Some('s'), ..Script::default() });
    let mut debugger = attach(&stub);
    let steps = debugger.step(3, Duration::from_millis(50), false).unwrap();
    assert_eq!((steps.completed, steps.end), (0, Resumed::Running));
    assert!(debugger.is_running());
}

#[test]
fn a_stub_whose_program_runs_is_interrupted_to_take_it_over() {
    let stub = Stub::start(Script { running: true, ..Script::default() });
    let mut debugger = Debugger::take_over(stub.address, main_range(), soon()).unwrap();
    assert_eq!(debugger.last_stop().unwrap().cause, Cause::Found);
    // Asked once on a connection that was given up, nothing else while it ran, and once when it was stopped.
    assert_eq!(stub.script().seen[0], "?");
    assert_eq!(stub.script().seen.iter().filter(|packet| *packet == "?").count(), 2);
    // What another client left there is taken out before ours is planted.
    stub.script().planted.push("0,2000000,4".to_owned());
    debugger.add_breakpoint(ENTRY, ARM, None, None, soon()).unwrap();
    assert_eq!(stub.script().planted, ["0,2000000,4"]);
    debugger.resume(soon()).unwrap();
    debugger.let_go(soon()).unwrap();
    stub.wait(|script| script.running && script.planted.is_empty());
    // A stub that never answers is given up when the time is over.
    let deaf = Stub::start(Script { deaf_to: Some('?'), ..Script::default() });
    let error = Debugger::take_over(deaf.address, main_range(), in_ms(100)).unwrap_err();
    assert!(matches!(error, Error::TimedOut { .. }), "{error}");
}

#[test]
fn a_stop_in_time_is_told_though_its_registers_come_later() {
    let stub = Stub::start(Script { stops: vec!["S05"], ..Script::default() });
    let mut debugger = attach(&stub);
    stub.script().slow_registers = Duration::from_millis(1_500);
    debugger.resume(soon()).unwrap();
    let Resumed::Stopped(stop) = debugger.wait(in_ms(1_000)).unwrap() else { panic!("still running") };
    assert_eq!(stop.registers.pc(), ENTRY);
}

#[test]
fn a_program_that_no_interrupt_stops_is_told_apart_from_one_that_runs() {
    let stub = Stub::start(Script { never_interrupted: true, ..Script::default() });
    let mut debugger = attach(&stub);
    debugger.resume(soon()).unwrap();
    assert!(matches!(debugger.registers(soon()), Err(Error::Running)));
    assert_eq!(debugger.pause(in_ms(50)).unwrap(), Resumed::Running);
    for _ in 0..2 {
        assert!(matches!(debugger.read_memory(ENTRY, 4, soon()), Err(Error::Deaf)));
    }
}

#[test]
fn what_survived_a_lost_connection_is_cleared_and_planted_again() {
    let stub = Stub::start(Script::default());
    let mut debugger = attach(&stub);
    debugger.add_breakpoint(ENTRY, ARM, None, None, soon()).unwrap();
    debugger.add_watchpoint(ENTRY, 4, WatchKind::Access, soon()).unwrap();
    stub.script().deaf_to = Some('g');
    assert!(matches!(debugger.registers(in_ms(50)), Err(Error::TimedOut { .. })));
    assert!(debugger.is_broken());
    stub.script().deaf_to = None;
    let driver = Driver::connect(stub.address, soon()).unwrap();
    debugger.reattach(driver, soon()).unwrap();
    // It stands where a breakpoint was set, and has not stopped at it.
    assert_eq!((debugger.last_stop().unwrap().cause, debugger.breakpoints()[0].hits), (Cause::Found, 0));
    assert_eq!(stub.script().planted, Vec::<String>::new());
    debugger.resume(soon()).unwrap();
    stub.wait(|script| script.planted == ["0,2000000,4", "4,2000000,4"]);
}

#[test]
fn a_context_holds_both_windows_and_the_regions() {
    let stub = Stub::start(Script::default());
    let mut debugger = attach(&stub);
    let region = Region { label: "counter".to_owned(), address: ENTRY + 0xC, length: 8 };
    let context = debugger.context(&[region], soon()).unwrap();
    assert_eq!((context.pc_window.address, context.pc_window.bytes.len()), (ENTRY - 32, 64));
    assert_eq!((context.stack_window.address, context.stack_window.bytes.len()), (0, 64));
    assert_eq!((context.regions[0].address, context.regions[0].bytes.len()), (ENTRY + 0xC, 8));
}

#[test]
fn only_the_resumed_processors_breakpoints_are_planted() {
    let (stub9, stub7) = (Stub::start(Script::default()), Stub::start(Script::default()));
    let mut console = Console::new(attach(&stub9), Some(attach(&stub7)));
    for processor in [Processor::Arm9, Processor::Arm7] {
        console.stopped(processor).unwrap().add_breakpoint(ENTRY, ARM, None, None, soon()).unwrap();
    }
    console.resume(Processor::Arm9, soon()).unwrap();
    assert_eq!((stub9.script().planted.len(), stub7.script().planted.len()), (1, 0));
    for processor in [Processor::Arm9, Processor::Arm7] {
        assert!(matches!(console.stopped(processor), Err(Error::Running)));
        assert!(matches!(console.resume(processor, soon()), Err(Error::Running)));
    }
    assert!(matches!(console.pause(soon()).unwrap(), Resumed::Stopped(_)));
    console.resume(Processor::Arm7, soon()).unwrap();
    assert_eq!((stub9.script().planted.len(), stub7.script().planted.len()), (0, 1));
    console.pause(soon()).unwrap();
    let mut alone = Console::new(attach(&Stub::start(Script::default())), None);
    assert!(matches!(alone.resume(Processor::Arm7, soon()), Err(Error::NoProcessor(_))));
}
