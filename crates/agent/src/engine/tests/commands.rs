//! What each command answers, and what it refuses.

use super::*;
use crate::platform::Platform;
use crate::platform::fake::asm::{EAX, ECX, EDI};
use crate::platform::fake::{CODE, SIGALRM};
use base::limits;
use std::time::Instant;
use wire::commands::{
    Backtrace, Disassemble, GetRegisters, GetStatus, Hello, IfRunning, Launch, ListModules, ListThreads,
    ListWatchpoints, RegisterSet, RemoveWatchpoint, SetRegisters, StopAt, Terminate, WriteMemory,
};
use wire::{Bytes, CompareOp, Condition, IntValue};

fn rig() -> Rig {
    Rig::new(workers(2, 3), 7, true)
}

fn launch() -> Launch {
    Launch {
        // Any file that exists: the fake does not open it.
        path: std::env::current_exe().unwrap().display().to_string(),
        args: None,
        cwd: None,
        env: None,
        stop_at: StopAt::Entry,
        if_running: IfRunning::StartNew,
    }
}

fn fresh(options: EngineOptions) -> Rig {
    let mut rig = Rig { engine: Engine::new(Fake::new(workers(2, 3), 3, true), options) };
    rig.engine.clients_changed(1);
    rig
}

#[test]
fn before_a_launch_commands_say_so() {
    let mut rig = fresh(options());
    let Reply::Hello(hello) = rig.ok(Hello { protocol: Some(wire::PROTOCOL_VERSION) }) else { panic!() };
    assert_eq!((hello.platform.as_str(), hello.live.state), ("fake", State::NotLaunched));
    assert_eq!(rig.refused(Hello { protocol: Some(99) }), ErrorCode::InvalidParams);
    let Reply::Status(status) = rig.ok(GetStatus {}) else { panic!() };
    assert_eq!((status.pid, status.waiting), (None, false));
    for request in [
        Request::from(breakpoint("work")),
        watch(0, WatchMode::Write).into(),
        ContinueExecution { timeout: 1.0 }.into(),
        Pause {}.into(),
        Step::default().into(),
        ReadMemory { addr: addr("0x400000"), length: 1 }.into(),
        WriteMemory { addr: addr("0x400000"), data: Bytes(vec![1]) }.into(),
        GetRegisters::default().into(),
        ListThreads {}.into(),
        ListModules {}.into(),
        Disassemble::default().into(),
        Backtrace::default().into(),
        Detach {}.into(),
        Terminate {}.into(),
    ] {
        let op = request.op();
        assert_eq!(rig.refused(request), ErrorCode::NotLaunched, "{op}");
    }
}

#[test]
fn a_launch_stops_at_the_entry_and_only_once() {
    let mut rig = fresh(options());
    let Reply::Process(reply) = rig.ok(launch()) else { panic!() };
    assert_eq!((reply.live.state, reply.live.reason.as_deref()), (State::Stopped, Some("entry")));
    assert_eq!((reply.arch.as_str(), reply.attached, reply.threads), ("x86", false, 1));
    assert_eq!(reply.live.pc.unwrap().0, VirtAddr::new(CODE.into()));
    assert_eq!(rig.refused(launch()), ErrorCode::AlreadyDebugging);
    assert_eq!(rig.refused(Attach { pid: Some(PID), name: None }), ErrorCode::AlreadyDebugging);
    rig.go_to_end();
}

#[test]
fn a_launch_refuses_what_it_may_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let mut rig = fresh(EngineOptions { launch_roots: vec![folder.path().to_owned()], ..options() });
    let error = rig.ask(launch()).unwrap_err();
    assert_eq!(error.code, ErrorCode::PathRefused);
    assert!(error.hint.contains(&*folder.path().to_string_lossy()));
    let inside = folder.path().join("game");
    let at = |path: &std::path::Path| Launch { path: path.display().to_string(), ..launch() };
    let error = rig.ask(at(&inside)).unwrap_err();
    assert_eq!((error.code, error.message.contains(&*inside.to_string_lossy())), (ErrorCode::NotFound, true));
    assert_eq!(rig.refused(at(folder.path())), ErrorCode::LaunchFailed);
    assert_eq!(rig.refused(Launch { path: String::new(), ..launch() }), ErrorCode::InvalidParams);
    let socket = folder.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    assert_eq!(rig.refused(at(&socket)), ErrorCode::LaunchFailed);
    std::fs::write(&inside, b"").unwrap();
    let nowhere = Launch { cwd: Some("/no/such/folder".into()), ..at(&inside) };
    assert_eq!(rig.refused(nowhere), ErrorCode::NotFound);
    assert!(rig.ask(at(&inside)).is_ok());
}

#[test]
fn arguments_and_variables_of_a_launch_are_counted_together() {
    let most = limits::MAX_LAUNCH_STRINGS;
    let with = |args: usize, env: usize| Launch {
        args: Some(vec![String::new(); args]),
        env: Some((0..env).map(|index| (format!("V{index}"), String::new())).collect()),
        ..launch()
    };
    assert_eq!(fresh(options()).refused(with(most, 1)), ErrorCode::LimitExceeded);
    assert_eq!(fresh(options()).refused(with(1, most)), ErrorCode::LimitExceeded);
    assert!(fresh(options()).ask(with(most - 1, 1)).is_ok());
}

#[test]
fn attach_finds_a_process_or_says_why_not() {
    let mut rig = fresh(options());
    assert_eq!(rig.refused(Attach { pid: None, name: None }), ErrorCode::InvalidParams);
    assert_eq!(rig.refused(Attach { pid: Some(77), name: None }), ErrorCode::NotFound);
    assert_eq!(rig.refused(Attach { pid: None, name: Some("game".into()) }), ErrorCode::NotFound);
    rig.ok(Attach { pid: Some(PID), name: None });
    rig.detach();
    let Reply::Process(reply) = rig.ok(Attach { pid: None, name: Some("game".into()) }) else { panic!() };
    assert_eq!((reply.attached, reply.live.reason.as_deref()), (true, Some("attach")));
}

#[test]
fn a_breakpoint_on_data_is_refused_and_the_data_left_alone() {
    let mut rig = rig();
    let before = rig.fake().memory.clone();
    let error = rig.ask(breakpoint(&format!("0x{:x}", DATA + 8))).unwrap_err();
    assert_eq!((error.code, error.hint.contains("set_watchpoint")), (ErrorCode::InvalidParams, true));
    assert_eq!(rig.fake().memory, before);
    rig.go_to_end();
}

#[test]
fn breakpoints_survive_a_new_attach() {
    let mut rig = rig();
    rig.break_at("work");
    rig.ok(breakpoint(&format!("0x{:x}", rig.engine.platform.labels["back"])));
    rig.detach();
    rig.assert_clean();
    let Reply::Breakpoints(list) = rig.ok(ListBreakpoints {}) else { panic!() };
    assert!(list.breakpoints.is_empty() && list.list.iter().all(|breakpoint| breakpoint.pending));
    rig.ok(Attach { pid: Some(PID), name: None });
    let Reply::Breakpoints(list) = rig.ok(ListBreakpoints {}) else { panic!() };
    assert_eq!(list.breakpoints.len(), 2);
    assert!(rig.go().1.reason.unwrap().starts_with("breakpoint@"));
}

#[test]
fn continue_waits_as_long_as_it_is_told() {
    let mut rig = rig();
    for bad in [-1.0, 300.5, f64::NAN, f64::INFINITY] {
        assert_eq!(rig.refused(ContinueExecution { timeout: bad }), ErrorCode::InvalidParams);
    }
    let answer = rig.start(ContinueExecution { timeout: 0.0 });
    let Ok(Ok(Reply::Stop(reply))) = answer.try_recv() else { panic!("0 seconds are no wait") };
    assert_eq!((reply.timed_out, reply.live.state), (true, State::Running));
    // Running already: both waits get the stop.
    let waits = [rig.run(), rig.run()];
    assert_eq!(rig.refused(Step::default()), ErrorCode::TargetRunning);
    assert_eq!(rig.refused(GetRegisters::default()), ErrorCode::TargetRunning);
    let Reply::Pause(paused) = rig.pause() else { panic!() };
    assert_eq!((paused.how.as_str(), paused.live.reason.as_deref()), ("interrupt", Some("pause")));
    for wait in &waits {
        assert_eq!(rig.stop_of(wait).1, paused.live);
    }
    let Reply::Pause(again) = rig.pause() else { panic!() };
    assert_eq!((again.how.as_str(), again.live), ("already_stopped", paused.live));
    rig.go_to_end();
}

#[test]
fn a_stop_while_nobody_waits_is_told_before_the_program_is_resumed() {
    let mut rig = rig();
    rig.break_at("work");
    let answer = rig.start(ContinueExecution { timeout: 0.0 });
    assert!(matches!(answer.try_recv(), Ok(Ok(Reply::Stop(reply))) if reply.timed_out));
    // Two workers execute `work` three times each: six hits, the first of them while nobody waits.
    for _ in 0..1_000 {
        rig.engine.poll(Duration::ZERO);
    }
    assert_eq!(rig.engine.phase, State::Stopped);
    let (stop, live) = rig.go();
    assert_eq!(stop.as_ref().unwrap().hits, Some(1));
    assert!(stop.unwrap().notes.iter().any(|note| note.contains("it was not resumed")));
    // Told once, it is resumed: the second hit has a generation of its own.
    let (stop, later) = rig.go();
    assert_eq!(stop.unwrap().hits, Some(2));
    assert!(later.generation > live.generation);
    // get_status tells it too.
    let answer = rig.start(ContinueExecution { timeout: 0.0 });
    drop(answer);
    for _ in 0..1_000 {
        rig.engine.poll(Duration::ZERO);
    }
    let Reply::Status(status) = rig.ok(GetStatus {}) else { panic!() };
    assert_eq!(status.stop.unwrap().hits, Some(3));
    assert_eq!(rig.go().0.unwrap().hits, Some(4));
    rig.remove("work");
    rig.go_to_end();
}

#[test]
fn a_wait_of_a_client_that_has_gone_is_forgotten() {
    let mut rig = rig();
    let (sender, answer) = mpsc::channel();
    let reply = ReplyTo::new(move |outcome| drop(sender.send(outcome)));
    reply.gone().set();
    rig.engine.handle(ContinueExecution { timeout: 300.0 }.into(), reply);
    rig.engine.poll(Duration::ZERO);
    assert!(answer.recv().unwrap().is_err());
    assert!(rig.engine.waiters.is_empty());
}

#[test]
fn reads_never_show_an_int3_and_writes_keep_it() {
    let mut rig = rig();
    let work = rig.break_at("work");
    assert_eq!(rig.seen(), rig.fake().image());
    assert_ne!(rig.fake().code_now(), rig.fake().image());
    // Over the breakpoint: `inc dword [DATA + 0x60]` instead of `[DATA + 8]`.
    let mut other = vec![0xff, 0x05];
    other.extend((DATA + 0x60).to_le_bytes());
    let write = WriteMemory { addr: addr("work"), data: Bytes(other.clone()) };
    let Reply::Written(written) = rig.ok(write) else { panic!() };
    assert_eq!(written.breakpoints_kept, [wire::HexAddr(work)]);
    let Reply::Memory(seen) = rig.ok(ReadMemory { addr: addr("work"), length: 6 }) else { panic!() };
    assert_eq!(seen.data.0, other);
    for _ in 0..6 {
        assert_eq!(rig.go().1.pc.unwrap().0, work);
    }
    rig.go_to_end();
    // 2 threads, 3 rounds, all by the new instruction.
    assert_eq!((rig.fake().data(WORK), rig.fake().data(0x60)), (0, 6));
}

#[test]
fn unmapped_memory_is_an_error_with_what_is_there() {
    let mut rig = rig();
    let end = DATA + 0x1000;
    let error = rig.ask(ReadMemory { addr: AddrExpr(format!("0x{:x}", end - 3)), length: 8 }).unwrap_err();
    assert_eq!(error.code, ErrorCode::AddressUnmapped);
    assert_eq!(error.details["first_bad"], format!("0x{end:x}"));
    assert_eq!((&error.details["readable"], &error.details["data"]), (&3.into(), &"AAAA".into()));
    let across = WriteMemory { addr: AddrExpr(format!("0x{:x}", end - 1)), data: Bytes(vec![1, 2]) };
    let error = rig.ask(across).unwrap_err();
    assert_eq!((error.code, &error.details["first_bad"]), (ErrorCode::AddressUnmapped, &format!("0x{end:x}").into()));
    assert_eq!(rig.fake().data(0xffc), 0, "nothing is written");
    for length in [0, limits::MAX_READ_BYTES + 1] {
        assert_eq!(rig.refused(ReadMemory { addr: addr("work"), length }), ErrorCode::LimitExceeded);
    }
    assert_eq!(rig.refused(breakpoint("0x10")), ErrorCode::AddressUnmapped);
    assert_eq!(
        rig.refused(SetWatchpoint { addr: addr("0x10"), ..watch(0, WatchMode::Write) }),
        ErrorCode::AddressUnmapped
    );
}

#[test]
fn addresses_are_numbers_symbols_modules_and_sums() {
    let mut rig = rig();
    let work = rig.fake().label("work").get();
    for (text, expected) in [
        (format!("0x{work:x}"), work),
        (format!("{work}"), work),
        ("work".into(), work),
        ("game!work+1".into(), work + 1),
        ("GAME + 0x10 - 2".into(), u64::from(CODE) + 14),
        ("work-work+0x400000".into(), 0x40_0000),
    ] {
        let Ok(found) = rig.engine.address(&text) else { panic!("{text}") };
        assert_eq!(found.get(), expected, "{text}");
    }
    for (text, code) in [
        ("", ErrorCode::InvalidParams),
        ("0xzz", ErrorCode::InvalidParams),
        ("work+", ErrorCode::InvalidParams),
        ("+work", ErrorCode::InvalidParams),
        ("work work", ErrorCode::UnknownSymbol),
        ("0x10000000000000000", ErrorCode::InvalidParams),
        ("wrok", ErrorCode::UnknownSymbol),
        ("game!wrok", ErrorCode::UnknownSymbol),
        ("other.dll!work", ErrorCode::UnknownSymbol),
        ("eax", ErrorCode::UnknownSymbol),
    ] {
        assert_eq!(rig.engine.address(text).unwrap_err().code, code, "{text}");
    }
    let error = rig.engine.address("worker2").unwrap_err();
    assert!(error.hint.contains("worker"), "{error:?}");
}

/// `inc dword ptr [DATA + WORK]` is `ff 05` and the address: a loader that moves the library changes the address alone.
#[test]
fn code_that_its_loader_moves_after_a_breakpoint_was_set_is_executed_as_it_is_then() {
    let mut rig = Rig::new(workers(1, 5), 1, true);
    let work = rig.break_at("work");
    let moved = DATA + 0x40;
    for (index, byte) in moved.to_le_bytes().into_iter().enumerate() {
        rig.fake().poke(work.get() + 2 + index as u64, byte);
    }
    for _ in 0..5 {
        assert_eq!(rig.go().1.state, State::Stopped);
    }
    rig.go_to_end();
    assert_eq!((rig.fake().data(0x40), rig.fake().data(WORK)), (5, 0));
}

#[test]
fn names_of_a_file_are_addresses_and_clash_with_others() {
    let asm = workers(2, 3);
    let work = asm.address("work");
    let map = format!("{work:x} busywait\n{CODE:x} work\ngame+0x2 second\nplugin.so.1+0 first\nffff0000 nowhere\n");
    let symbols = SymbolMap::parse(&map).unwrap();
    let mut rig = Rig { engine: Engine::new(Fake::new(asm, 3, true), EngineOptions { symbols, ..options() }) };
    rig.engine.clients_changed(1);
    rig.ok(Attach { pid: Some(PID), name: None });
    for (name, expected) in [("busywait", work), ("second", CODE + 2), ("game!busywait + 1", work + 1)] {
        assert_eq!(rig.engine.address(name).unwrap().get(), u64::from(expected), "{name}");
    }
    let clash = rig.engine.address("work").unwrap_err();
    assert_eq!(clash.code, ErrorCode::Ambiguous);
    assert!(clash.hint.contains(&format!("0x{CODE:x}")) && clash.hint.contains(&format!("0x{work:x}")), "{clash:?}");
    assert_eq!(rig.engine.address("nowhere").unwrap_err().code, ErrorCode::UnknownSymbol);
    // Of a library that is not loaded.
    assert_eq!(rig.engine.address("first").unwrap_err().code, ErrorCode::UnknownSymbol);
    let at = rig.break_at("busywait");
    assert_eq!(at.get(), u64::from(work));
    let (stop, _) = rig.go();
    let stop = stop.unwrap();
    // The program's own name is shown where it has one for the same address.
    assert_eq!(stop.symbol.as_deref(), Some("work"));
    assert!(stop.notes.iter().any(|note| note.contains("1 names") && note.contains("game")), "{:?}", stop.notes);
}

#[test]
fn a_stepped_pushf_does_not_show_the_trap_flag() {
    for out_of_line in [true, false] {
        let mut asm = Asm::at(CODE);
        asm.nop().label("look").pushf().pop(ECX).nop().label("behind").sys(SYS_EXIT);
        let mut rig = Rig::new(asm, 1, out_of_line);
        rig.step(StepMode::Into, 2);
        let registers = rig.fake().registers(PID).unwrap();
        assert_eq!(u64::from(rig.fake().memory.word(registers.sp())), registers.flags);
        rig.go_to_end();
    }
}

#[test]
fn a_step_after_a_popf_leaves_no_trap_flag() {
    let mut asm = Asm::at(CODE);
    asm.pushf().popf().nop().nop().sys(SYS_EXIT);
    let mut rig = Rig::new(asm, 1, true);
    let before = rig.fake().registers(PID).unwrap().flags;
    for _ in 0..4 {
        rig.step(StepMode::Into, 1);
        assert_eq!(rig.fake().registers(PID).unwrap().flags, before);
    }
    rig.go_to_end();
}

#[test]
fn a_name_of_a_module_and_of_a_symbol_is_ambiguous() {
    let mut asm = Asm::at(CODE);
    asm.nop().label("game").sys(SYS_EXIT);
    let mut rig = Rig::new(asm, 1, true);
    let error = rig.engine.address("game+2").unwrap_err();
    assert_eq!(error.code, ErrorCode::Ambiguous);
    for (text, expected) in [("game!game+2", CODE + 3), ("/fake/game+2", CODE + 2)] {
        assert!(error.hint.contains(text.trim_end_matches("+2")), "{error:?}");
        let Ok(found) = rig.engine.address(text) else { panic!("{text}") };
        assert_eq!(found.get(), u64::from(expected), "{text}");
    }
    rig.go_to_end();
}

#[test]
fn breakpoints_are_counted_limited_and_listed() {
    let mut asm = Asm::at(CODE);
    for _ in 0..limits::MAX_BREAKPOINTS + 1 {
        asm.nop();
    }
    asm.sys(SYS_EXIT);
    let mut rig = Rig::new(asm, 1, true);
    for index in 0..limits::MAX_BREAKPOINTS {
        rig.ok(SetBreakpoint { ignore_count: Some(u64::MAX), ..breakpoint(&format!("game+{index}")) });
    }
    assert_eq!(rig.refused(breakpoint("game+1024")), ErrorCode::LimitExceeded);
    rig.go_to_end();
    let Reply::Breakpoints(list) = rig.ok(ListBreakpoints {}) else { panic!() };
    assert_eq!(list.list.iter().map(|breakpoint| breakpoint.hits).collect::<Vec<_>>(), [1; limits::MAX_BREAKPOINTS]);
}

#[test]
fn a_breakpoint_set_again_is_updated_and_keeps_its_hits() {
    let mut rig = rig();
    rig.break_at("work");
    rig.go();
    let again = SetBreakpoint { ignore_count: Some(1), ..breakpoint("work") };
    let Reply::Breakpoint(reply) = rig.ok(again) else { panic!() };
    assert_eq!((reply.breakpoint.hits, reply.breakpoint.ignore_count, reply.breakpoints.len()), (1, 1, 1));
    assert_eq!(rig.go().0.unwrap().hits, Some(3));
    assert_eq!(rig.refused(RemoveBreakpoint { addr: addr("back") }), ErrorCode::NoSuchBreakpoint);
    rig.remove("work");
    assert_eq!(rig.refused(RemoveBreakpoint { addr: addr("work") }), ErrorCode::NoSuchBreakpoint);
    let Reply::Breakpoint(reply) = rig.ok(SetBreakpoint { one_shot: true, ..breakpoint("back") }) else { panic!() };
    assert!(reply.breakpoint.one_shot);
    assert!(rig.go().0.unwrap().notes.iter().any(|note| note.contains("one_shot")));
    rig.go_to_end();
    assert_eq!(rig.fake().code_now(), rig.fake().image());
}

#[test]
fn a_program_counter_that_was_set_is_where_the_stop_is() {
    let mut rig = rig();
    let worker = u64::from(rig.engine.platform.labels["worker"]);
    let before = rig.ok(GetStatus {});
    let Reply::Status(before) = before else { panic!() };
    assert_ne!(before.live.pc.unwrap().0, VirtAddr::new(worker));
    rig.ok(SetRegisters { registers: [("eip".to_owned(), IntValue::from(worker))].into(), thread: None });
    let Reply::Status(after) = rig.ok(GetStatus {}) else { panic!() };
    assert_eq!(after.live.pc.unwrap().0, VirtAddr::new(worker));
}

#[test]
fn a_watchpoints_condition_reads_memory() {
    let mut rig = rig();
    let condition = Condition::Memory {
        memory: AddrExpr(format!("{:#x}", DATA + WORK)),
        size: 4,
        op: CompareOp::Eq,
        value: IntValue::from(5),
        signed: false,
    };
    rig.ok(SetWatchpoint { condition: Some(condition), ..watch(WORK, WatchMode::Write) });
    // Six executions count from 0; the watchpoint sees the memory after the access.
    let (report, live) = rig.go();
    assert_eq!(live.reason.as_deref(), Some("watchpoint@slot0"));
    assert!(report.unwrap().notes.is_empty());
    assert_eq!(rig.fake().data(WORK), 5);
    rig.go_to_end();
    assert_eq!(rig.fake().data(WORK), 6);
}

#[test]
fn a_condition_that_becomes_unreadable_stops_with_that_reason() {
    let mut rig = rig();
    let condition = Condition::Memory {
        memory: addr("ebx+0x10"),
        size: 4,
        op: CompareOp::Eq,
        value: IntValue::from(1),
        signed: false,
    };
    let work = rig.fake().label("work");
    let set = |condition| SetBreakpoint { condition: Some(condition), ..breakpoint("work") };
    rig.ok(set(condition));
    // ebx is 0 in the second thread, or the address of its code; neither plus 0x10 holds a 1, and 0x10 is not mapped.
    rig.ok(SetRegisters { registers: [("ebx".to_owned(), IntValue::from(0))].into(), thread: None });
    rig.ok(SetRegisters {
        registers: [("eip".to_owned(), IntValue::from(u64::from(rig.engine.platform.labels["worker"])))].into(),
        thread: None,
    });
    let (report, live) = rig.go();
    assert_eq!(live.reason, Some(format!("condition_unreadable@{work}")));
    assert!(report.unwrap().notes[0].contains("0x10"));
    let fixed =
        Condition::Memory { memory: addr("0x10"), size: 4, op: CompareOp::Eq, value: IntValue::from(1), signed: false };
    assert_eq!(rig.refused(set(fixed)), ErrorCode::AddressUnmapped);
    let register =
        Condition::Register { register: "rax".into(), op: CompareOp::Eq, value: IntValue::from(1), signed: false };
    assert_eq!(rig.refused(set(register)), ErrorCode::UnknownRegister);
}

#[test]
fn watchpoints_have_four_slots() {
    let mut rig = rig();
    for slot in 0..4 {
        let Reply::Watchpoint(reply) = rig.ok(watch(0x100 + slot * 4, WatchMode::Write)) else { panic!() };
        assert_eq!(u32::from(reply.slot), slot);
    }
    let error = rig.ask(watch(0x200, WatchMode::Write)).unwrap_err();
    assert_eq!(error.code, ErrorCode::NoFreeSlot);
    assert!(
        error.message.starts_with("all 4 hardware debug registers (DR0-DR3) are in use by slot 0=0x500100"),
        "{}",
        error.message
    );
    // The same place again is an update.
    let Reply::Watchpoint(reply) = rig.ok(watch(0x104, WatchMode::Readwrite)) else { panic!() };
    assert_eq!((reply.slot, reply.watchpoint.mode), (1, WatchMode::Readwrite));
    // Slots 0, 2, 3 write (01), slot 1 read and write (11), 4 bytes each (11); SDM volume 3, figure 18-1.
    assert_eq!(rig.fake().debug_of(PID).dr7, 0xddfd_0055);
    rig.ok(RemoveWatchpoint { slot: Some(2), addr: None });
    rig.ok(RemoveWatchpoint { slot: None, addr: Some(addr("0x500100")) });
    assert_eq!(rig.refused(RemoveWatchpoint { slot: Some(0), addr: None }), ErrorCode::NoSuchBreakpoint);
    assert_eq!(rig.refused(RemoveWatchpoint::default()), ErrorCode::InvalidParams);
    let Reply::Watchpoints(list) = rig.ok(ListWatchpoints {}) else { panic!() };
    assert_eq!(list.watchpoints.keys().collect::<Vec<_>>(), ["1", "3"]);
    let odd = SetWatchpoint { addr: addr("0x500106"), ..watch(0, WatchMode::Write) };
    let error = rig.ask(odd).unwrap_err();
    assert_eq!((error.code, error.hint.contains("0x500104")), (ErrorCode::Misaligned, true));
    for size in [0, 3, 8, 16] {
        let refused = SetWatchpoint { size: Some(size), ..watch(0x300, WatchMode::Write) };
        assert_eq!(rig.refused(refused), ErrorCode::InvalidParams, "a 32-bit program watches no {size} bytes");
    }
}

#[test]
fn a_read_watchpoint_leaves_writes_out() {
    let mut asm = Asm::at(CODE);
    asm.store(DATA + 4).label("reader").load(DATA + 4).label("behind").inc_mem(DATA + 4).store(DATA + 4).sys(SYS_EXIT);
    let mut rig = Rig::new(asm, 1, true);
    rig.ok(watch(4, WatchMode::Read));
    let (report, live) = rig.go();
    let reader = rig.fake().label("reader");
    assert_eq!((live.pc.unwrap().0, live.reason.as_deref()), (rig.fake().label("behind"), Some("watchpoint@slot0")));
    assert_eq!(report.unwrap().watchpoints[0].writer.as_ref().unwrap().addr.0, reader);
    rig.go_to_end();
}

#[test]
fn registers_are_read_and_written_in_parts() {
    let mut rig = rig();
    let Reply::Registers(reply) = rig.ok(GetRegisters::default()) else { panic!() };
    for name in ["eax", "esp", "eip", "eflags", "cs", "dr0", "dr7"] {
        assert!(reply.registers.contains_key(name), "{name}");
    }
    let sets = Some(vec![RegisterSet::X87, RegisterSet::Sse]);
    let Reply::Registers(reply) = rig.ok(GetRegisters { thread: None, sets }) else { panic!() };
    // The fake's FXSAVE image is the bytes 0 to 255 twice; st0 lies at 32, xmm0 at 160, mxcsr at 24.
    assert_eq!(reply.registers["st0"], "0x29282726252423222120");
    assert_eq!(reply.registers["xmm0"], "0xafaeadacabaaa9a8a7a6a5a4a3a2a1a0");
    assert_eq!(reply.registers["mxcsr"], "0x1b1a1918");
    let set = |name: &str, value: u64| SetRegisters {
        registers: [(name.to_owned(), IntValue::from(value))].into(),
        thread: None,
    };
    rig.ok(set("eax", 0x1122_3344));
    let Reply::Registers(reply) = rig.ok(set("ah", 0xff)) else { panic!() };
    assert_eq!(reply.registers["eax"], "0x1122ff44");
    let Reply::Registers(reply) = rig.ok(set("zf", 1)) else { panic!() };
    assert!(reply.flags.contains(&"ZF".to_owned()));
    assert_eq!(rig.refused(set("rax", 1)), ErrorCode::UnknownRegister);
    assert_eq!(rig.refused(set("al", 256)), ErrorCode::InvalidParams);
    assert_eq!(rig.refused(GetRegisters { thread: Some(99), sets: None }), ErrorCode::UnknownThread);
}

#[test]
fn steps_go_into_over_and_out() {
    for with_scratch in [true, false] {
        let mut rig = Rig::new(workers(1, 3), 5, with_scratch);
        rig.break_at("round");
        rig.go();
        let label = |rig: &mut Rig, name: &str| rig.fake().label(name);
        let (steps, _, live) = rig.step(StepMode::Into, 1);
        assert_eq!((steps, live.pc.unwrap().0), (1, label(&mut rig, "work")));
        let (steps, _, live) = rig.step(StepMode::Out, 1);
        assert_eq!((steps, live.pc.unwrap().0, live.reason.as_deref()), (1, label(&mut rig, "back"), Some("step")));
        // dec, jnz, and the breakpoint at `round`: a step that comes to a breakpoint is a hit.
        let (steps, report, live) = rig.step(StepMode::Into, 5);
        assert_eq!((steps, report.hits), (2, Some(2)));
        assert_eq!(live.reason, Some(format!("breakpoint@{}", label(&mut rig, "round"))));
        let (steps, _, live) = rig.step(StepMode::Over, 1);
        assert_eq!((steps, live.pc.unwrap().0), (1, label(&mut rig, "back")));
        // A breakpoint in the call wins over its end.
        rig.break_at("work");
        let (steps, _, live) = rig.step(StepMode::Over, 3);
        assert_eq!((steps, live.reason), (2, Some(format!("breakpoint@{}", label(&mut rig, "round")))));
        let (steps, _, live) = rig.step(StepMode::Over, 1);
        assert_eq!((steps, live.reason), (0, Some(format!("breakpoint@{}", label(&mut rig, "work")))));
        rig.remove("work");
        rig.remove("round");
        rig.go_to_end();
        assert_eq!(rig.fake().code_now(), rig.fake().image());
    }
}

#[test]
fn a_step_that_starts_on_a_breakpoint_counts_it() {
    let mut rig = Rig::new(workers(1, 3), 5, true);
    rig.break_at("work_end");
    rig.break_at("work");
    rig.go();
    let (_, report, live) = rig.step(StepMode::Into, 1);
    assert_eq!((report.hits, live.pc.unwrap().0), (Some(1), rig.fake().label("work_end")));
    // Not counted again when it goes on.
    rig.remove("work");
    assert_eq!(rig.go().0.unwrap().hits, Some(2));
}

#[test]
fn a_recursive_call_is_stepped_over_as_a_whole() {
    for with_scratch in [true, false] {
        let mut asm = Asm::at(CODE);
        asm.mov(ECX, 4).label("outer").call("f").label("after").sys(SYS_EXIT);
        // f calls itself until ecx is 0; every level returns to `inner_back`.
        asm.label("f").dec(ECX).jnz("deeper").ret().label("deeper").label("inner").call("f").label("inner_back").ret();
        let mut rig = Rig::new(asm, 1, with_scratch);
        // mov, call, dec, jnz.
        rig.step(StepMode::Into, 4);
        let inner = rig.fake().label("inner");
        assert_eq!(rig.fake().pc(PID), rig.fake().label("deeper"));
        assert_eq!(rig.fake().pc(PID), inner);
        let sp = rig.fake().registers(PID).unwrap().sp();
        let (_, _, live) = rig.step(StepMode::Over, 1);
        assert_eq!(live.pc.unwrap().0, rig.fake().label("inner_back"));
        // The deepest levels came by here too, with less stack.
        assert_eq!((rig.fake().registers(PID).unwrap().sp(), rig.fake().registers(PID).unwrap().general[1]), (sp, 0));
    }
}

#[test]
fn a_repeated_instruction_is_stepped_by_iterations_or_as_a_whole() {
    let mut asm = Asm::at(CODE);
    asm.mov(EAX, 1).mov(EDI, DATA + 0x100).mov(ECX, 9).label("fill").rep_stosb().label("filled").sys(SYS_EXIT);
    let mut rig = Rig::new(asm, 1, true);
    let fill = rig.break_at("fill");
    rig.go();
    let (_, _, live) = rig.step(StepMode::Into, 2);
    assert_eq!((live.pc.unwrap().0, rig.fake().registers(PID).unwrap().general[1]), (fill, 7));
    assert_eq!(rig.hits("fill"), 1);
    let (_, _, live) = rig.step(StepMode::Over, 1);
    assert_eq!((live.pc.unwrap().0, rig.fake().registers(PID).unwrap().general[1]), (rig.fake().label("filled"), 0));
}

#[test]
fn steps_are_bounded_and_traced() {
    let mut rig = Rig::new(workers(1, 3), 5, true);
    for bad in [0, limits::MAX_STEP_COUNT + 1] {
        assert_eq!(rig.refused(Step { count: Some(bad), ..Step::default() }), ErrorCode::InvalidParams);
    }
    assert_eq!(rig.refused(Step { mode: StepMode::Out, ..Step::default() }), ErrorCode::NotFound);
    let Reply::Step(reply) = rig.ok(Step { count: Some(4), ..Step::default() }) else { panic!() };
    let texts: Vec<&str> = reply.trace.iter().map(|instruction| instruction.text.split(' ').next().unwrap()).collect();
    // jmp main; jmp worker; mov esi; call work.
    assert_eq!(texts, ["jmp", "jmp", "mov", "call"]);
    // The rest of the program: it ends before the steps do.
    let Reply::Step(reply) = rig.ok(Step { count: Some(10_000), ..Step::default() }) else { panic!() };
    assert_eq!((reply.live.state, reply.timed_out), (State::Exited, false));
    // 3 rounds of inc, ret, dec, jnz; 2 more calls; inc, mov eax, and the system call that does not come back.
    assert_eq!(reply.steps, 3 * 4 + 2 + 2);
}

#[test]
fn a_signal_while_stepping_comes_afterwards() {
    let mut rig = Rig::new(workers(1, 3), 5, true);
    rig.fake().post(PID, SIGALRM);
    let (steps, _, live) = rig.step(StepMode::Into, 2);
    assert_eq!((steps, live.pc.unwrap().0, rig.fake().data(0x20)), (2, rig.fake().label("worker"), 0));
    rig.go_to_end();
    assert_eq!(rig.fake().data(0x20), 1);
}

#[test]
fn the_stack_is_walked() {
    let mut asm = Asm::at(CODE);
    asm.label("main").call("outer").label("back_in_main").sys(SYS_EXIT);
    asm.label("outer").push(EAX).push(EAX).call("leaf").label("back_in_outer").pop(EAX).pop(EAX).ret();
    asm.label("leaf").nop().label("in_leaf").ret();
    let mut rig = Rig::new(asm, 1, true);
    rig.break_at("in_leaf");
    rig.go();
    let Reply::Backtrace(reply) = rig.ok(Backtrace::default()) else { panic!() };
    let places: Vec<_> = reply.frames.iter().map(|frame| frame.pc.0).collect();
    let expected = ["in_leaf", "back_in_outer", "back_in_main"].map(|name| rig.fake().label(name));
    assert_eq!(places, expected);
    let Reply::Backtrace(reply) = rig.ok(Backtrace { limit: Some(1), thread: None }) else { panic!() };
    assert_eq!(reply.frames.len(), 1);
    assert_eq!(rig.refused(Backtrace { limit: Some(0), thread: None }), ErrorCode::InvalidParams);
}

#[test]
fn code_threads_and_modules_are_listed() {
    let mut rig = rig();
    rig.break_at("work");
    let listing = Disassemble { addr: Some(addr("work")), count: Some(2) };
    let Reply::Disassembly(reply) = rig.ok(listing) else { panic!() };
    let texts: Vec<&str> = reply.instructions.iter().map(|instruction| instruction.text.as_str()).collect();
    assert_eq!(texts, ["inc dword ptr [0x500008]", "ret"]);
    assert_eq!(reply.instructions[0].location.as_deref(), Some("work"));
    assert_eq!(rig.refused(Disassemble { addr: None, count: Some(0) }), ErrorCode::InvalidParams);
    assert_eq!(rig.refused(Disassemble { addr: Some(addr("0x10")), count: None }), ErrorCode::AddressUnmapped);
    let Reply::Modules(reply) = rig.ok(ListModules {}) else { panic!() };
    assert_eq!((reply.modules.len(), reply.modules[0].main), (1, true));
    rig.go();
    let Reply::Threads(reply) = rig.ok(ListThreads {}) else { panic!() };
    assert_eq!(reply.threads.iter().filter(|thread| thread.current).count(), 1);
    assert!(reply.threads.iter().all(|thread| thread.pc.is_some()));
}

#[test]
fn terminate_ends_the_program_and_may_be_repeated() {
    let mut rig = rig();
    let waiting = rig.run();
    let Reply::End(reply) = rig.ok(Terminate {}) else { panic!() };
    assert_eq!((reply.live.state, reply.live.exit_signal.as_deref()), (State::Exited, Some("SIGKILL")));
    let Ok(Reply::Stop(stop)) = rig.finish(&waiting) else { panic!() };
    assert_eq!(stop.live.state, State::Exited);
    let Reply::End(reply) = rig.ok(Terminate {}) else { panic!() };
    assert!(reply.notes[0].contains("already"));
    assert_eq!(rig.refused(GetRegisters::default()), ErrorCode::TargetExited);
}

#[test]
fn a_program_left_stopped_is_let_go() {
    let mut rig = fresh(EngineOptions { orphan_after: Duration::from_millis(1), ..options() });
    rig.ok(Attach { pid: Some(PID), name: None });
    rig.break_at("work");
    let (_, live) = rig.go();
    assert_eq!(live.state, State::Stopped);
    rig.engine.clients_changed(0);
    let start = Instant::now();
    while rig.engine.phase == State::Stopped {
        assert!(start.elapsed() < Duration::from_secs(60));
        rig.engine.poll(Duration::ZERO);
    }
    let Reply::Status(status) = rig.ok(GetStatus {}) else { panic!() };
    assert_eq!((status.live.state, status.live.reason.as_deref()), (State::NotLaunched, Some("orphaned")));
    rig.assert_clean();
    rig.fake().run_to_end();
    assert_eq!(rig.fake().data(WORK), 6);
}

#[test]
fn the_end_of_the_agent_detaches_or_kills() {
    for (on_exit, attached, killed) in
        [(OnExit::Detach, false, false), (OnExit::Kill, false, true), (OnExit::Kill, true, false)]
    {
        let mut rig = fresh(EngineOptions { on_exit, ..options() });
        if attached {
            rig.ok(Attach { pid: Some(PID), name: None });
        } else {
            rig.ok(launch());
        }
        rig.count_at("work");
        let _answer = rig.run();
        rig.engine.poll(Duration::ZERO);
        rig.engine.shutdown();
        rig.engine.shutdown();
        if !killed && rig.fake().exited.is_none() {
            rig.assert_clean();
            rig.fake().run_to_end();
        }
        let signal = crate::platform::Exit::Signal("SIGKILL".into());
        assert_eq!(rig.fake().exited == Some(signal), killed, "{on_exit:?} {attached}");
    }
}

#[test]
fn the_last_texts_for_the_debugger_are_kept() {
    let mut rig = rig();
    let thread = rig.engine.platform.threads()[0];
    for number in 0..limits::MAX_DEBUG_OUTPUTS + 3 {
        rig.engine.on_event(crate::platform::Event::DebugOutput { thread, text: format!("line {number}") });
    }
    let Reply::Status(status) = rig.ok(GetStatus {}) else { panic!() };
    // 67 lines, of which the first three have made room.
    assert_eq!(status.debug_output.len(), 64);
    assert_eq!((status.debug_output[0].as_str(), status.debug_output[63].as_str()), ("line 3", "line 66"));
}
