//! The races: every one that can lose a hit, count one twice, or leave something behind.

use super::*;
use crate::platform::Platform;
use crate::platform::fake::asm::{EAX, ECX, EDI};
use crate::platform::fake::{
    CODE, LIBRARY, SIGALRM, SIGTERM, SYS_EXEC, SYS_EXIT_GROUP, SYS_FORK, SYS_LOAD, SYS_VFORK, SYS_WAIT,
};
use wire::{CompareOp, Condition};

#[test]
fn eight_threads_through_one_breakpoint_lose_no_hit() {
    each_way(8, |seed, with_scratch| {
        let mut rig = Rig::new(workers(8, 25), seed, with_scratch);
        rig.count_at("work");
        rig.go_to_end();
        // 8 threads, 25 rounds each.
        assert_eq!((rig.hits("work"), rig.fake().data(WORK)), (200, 200), "seed {seed}");
    });
}

#[test]
fn every_stop_is_one_execution() {
    each_way(8, |seed, with_scratch| {
        let mut rig = Rig::new(workers(3, 4), seed, with_scratch);
        let at = rig.break_at("work");
        for stop in 1..=12 {
            let (report, live) = rig.go();
            assert_eq!(live.reason, Some(format!("breakpoint@{at}")));
            assert_eq!((report.unwrap().hits, live.pc.unwrap().0), (Some(stop), at));
            // All but the reported one have been executed already, at most; the others have not been counted.
            assert!(u64::from(rig.fake().data(WORK)) < stop);
            assert_eq!(rig.seen(), rig.fake().image());
        }
        rig.go_to_end();
        assert_eq!((rig.hits("work"), rig.fake().data(WORK)), (12, 12), "seed {seed}");
    });
}

#[test]
fn a_false_condition_is_never_noticed() {
    each_way(4, |seed, with_scratch| {
        let mut rig = Rig::new(workers(4, 10), seed, with_scratch);
        // esi counts from 10 down to 1: it is 3 once in each thread.
        let condition =
            Condition::Register { register: "esi".into(), op: CompareOp::Eq, value: 3.into(), signed: false };
        rig.ok(SetBreakpoint { condition: Some(condition), ..breakpoint("work") });
        let before = rig.engine.generation;
        for stop in 1..=4 {
            let (report, live) = rig.go();
            let report = report.unwrap();
            assert_eq!((report.hits, report.registers["esi"].as_str()), (Some(stop), "0x3"));
            // One for running, one for stopping, each time: false hits do not count.
            assert_eq!(live.generation, before + stop * 2);
        }
        rig.go_to_end();
        assert_eq!(rig.fake().data(WORK), 40);
    });
}

#[test]
fn two_threads_hit_one_breakpoint_at_once() {
    each_way(4, |seed, with_scratch| {
        let mut rig = Rig::new(workers(2, 1), seed, with_scratch);
        rig.break_at("work");
        let answer = rig.run();
        // Both run into the INT3 before the engine hears of either.
        rig.fake().run_thread(1, 50);
        let second = *rig.fake().threads().last().unwrap();
        let mut waited = 0;
        while !rig.fake().is_held(second) || rig.fake().pc(second) != rig.fake().label("work").wrapping_add(1) {
            waited += 1;
            assert!(waited < 200);
            if answer.try_recv().is_ok() {
                break;
            }
            rig.engine.poll(Duration::ZERO);
            rig.fake().run_thread(second, 50);
        }
        let mut stops = usize::from(rig.engine.phase == State::Stopped);
        loop {
            let (_, live) = if stops == 0 { rig.stop_of(&answer).into_live() } else { rig.go().into_live() };
            if live.state == State::Exited {
                break;
            }
            stops += 1;
        }
        assert_eq!((stops, rig.hits("work"), rig.fake().data(WORK)), (2, 2, 2), "seed {seed}");
    });
}

trait IntoLive {
    fn into_live(self) -> ((), Live);
}

impl<T> IntoLive for (T, Live) {
    fn into_live(self) -> ((), Live) {
        ((), self.1)
    }
}

#[test]
fn a_hit_while_another_thread_is_stepped_past() {
    each_way(12, |seed, with_scratch| {
        let mut rig = Rig::new(workers(4, 10), seed, with_scratch);
        // Three breakpoints in a row, so that some thread nearly always stands on one.
        for place in ["work", "work_end", "back"] {
            rig.count_at(place);
        }
        rig.go_to_end();
        for place in ["work", "work_end", "back"] {
            assert_eq!(rig.hits(place), 40, "{place}, seed {seed}");
        }
        assert_eq!((rig.fake().data(WORK), rig.fake().data(DONE)), (40, 4));
    });
}

#[test]
fn a_breakpoint_removed_while_threads_stand_on_it() {
    each_way(6, |seed, with_scratch| {
        let mut rig = Rig::new(workers(3, 5), seed, with_scratch);
        rig.break_at("work");
        let answer = rig.run();
        rig.fake().run_thread(1, 50);
        // Thread 1 has executed the INT3, or waits to be told to go on; the engine has not been told.
        rig.remove("work");
        rig.finish(&answer).unwrap();
        assert_eq!((rig.fake().data(WORK), rig.fake().data(DONE)), (15, 3), "seed {seed}");

        let mut rig = Rig::new(workers(3, 5), seed, with_scratch);
        rig.break_at("work");
        rig.go();
        rig.remove("work");
        assert_eq!(rig.fake().code_now(), rig.fake().image());
        rig.go_to_end();
        assert_eq!(rig.fake().data(WORK), 15, "seed {seed}");
    });
}

#[test]
fn a_watchpoint_and_a_breakpoint_in_one_stop() {
    each_way(2, |seed, with_scratch| {
        let mut asm = Asm::at(CODE);
        asm.mov(EAX, 7).label("writer").store(DATA + 4).label("next").nop().sys(SYS_EXIT);
        let mut rig = Rig::new(asm, seed, with_scratch);
        let next = rig.break_at("next");
        let writer = rig.fake().label("writer");
        rig.ok(watch(4, WatchMode::Write));
        let (report, live) = rig.go();
        assert_eq!((live.reason.as_deref(), live.pc.unwrap().0), (Some("watchpoint@slot0"), next));
        let report = report.unwrap();
        let watch = &report.watchpoints[0];
        assert_eq!((watch.old_value.as_deref(), watch.new_value.as_deref()), (Some("0x00000000"), Some("0x00000007")));
        let instruction = watch.writer.as_ref().unwrap();
        assert_eq!((instruction.addr.0, watch.attribution.as_str()), (writer, "exact"));
        assert_eq!(rig.hits("next"), 0);
        let (report, live) = rig.go();
        assert_eq!((live.reason, report.unwrap().hits), (Some(format!("breakpoint@{next}")), Some(1)));
        rig.go_to_end();
    });
}

#[test]
fn a_watched_write_by_the_instruction_under_a_breakpoint() {
    each_way(4, |seed, with_scratch| {
        let mut rig = Rig::new(workers(3, 4), seed, with_scratch);
        let work = rig.break_at("work");
        rig.ok(watch(WORK, WatchMode::Write));
        let (mut hits, mut writes) = (0, 0);
        loop {
            let (report, live) = rig.go();
            if live.state == State::Exited {
                break;
            }
            let report = report.unwrap();
            if live.reason.as_deref() == Some("watchpoint@slot0") {
                writes += 1;
                assert_eq!(live.pc.unwrap().0, rig.fake().label("work_end"));
                assert_eq!(report.watchpoints[0].writer.as_ref().unwrap().addr.0, work);
            } else {
                hits += 1;
                assert_eq!(live.pc.unwrap().0, work);
            }
        }
        assert_eq!((hits, writes, rig.fake().data(WORK)), (12, 12, 12), "seed {seed}");
    });
}

#[test]
fn each_write_is_told_with_what_was_there_before() {
    each_way(1, |seed, with_scratch| {
        let mut rig = Rig::new(workers(1, 3), seed, with_scratch);
        // The second write is not told, by an ignore_count of 1 from then on; the third must know of it all the same.
        rig.ok(watch(WORK, WatchMode::Write));
        let values = |report: Option<StopReport>| {
            let watch = report.unwrap().watchpoints.remove(0);
            (watch.old_value.unwrap(), watch.new_value.unwrap())
        };
        assert_eq!(values(rig.go().0), ("0x00000000".into(), "0x00000001".into()));
        rig.ok(SetWatchpoint { ignore_count: Some(1), ..watch(WORK, WatchMode::Write) });
        assert_eq!(values(rig.go().0), ("0x00000002".into(), "0x00000003".into()));
        rig.go_to_end();
    });
}

#[test]
fn watchpoints_are_in_every_thread_also_in_later_ones() {
    each_way(6, |seed, with_scratch| {
        let mut rig = Rig::new(workers(6, 5), seed, with_scratch);
        rig.ok(SetWatchpoint { ignore_count: Some(29), ..watch(WORK, WatchMode::Write) });
        let (report, live) = rig.go();
        // 6 threads, 5 writes each: the thirtieth stops.
        assert_eq!(live.reason.as_deref(), Some("watchpoint@slot0"), "seed {seed}");
        assert_eq!(report.unwrap().watchpoints[0].new_value.as_deref(), Some("0x0000001e"));
        rig.go_to_end();
    });
}

#[test]
fn a_thread_is_born_or_dies_in_the_instruction_under_a_breakpoint() {
    each_way(6, |seed, with_scratch| {
        let mut asm = Asm::at(CODE);
        asm.jmp("main");
        asm.label("worker").inc_mem(DATA + WORK).mov(EAX, SYS_EXIT).label("dies").bytes(&[0xcd, 0x80]);
        asm.label("main");
        let worker = asm.address("worker");
        asm.mov(ESI, 3).mov(EBX, worker);
        asm.label("again").mov(EAX, SYS_CLONE).label("born").bytes(&[0xcd, 0x80]).dec(ESI).jnz("again").jmp("worker");
        let mut rig = Rig::new(asm, seed, with_scratch);
        rig.count_at("born");
        rig.count_at("dies");
        rig.go_to_end();
        // Three births; four threads run `worker` and die.
        assert_eq!((rig.hits("born"), rig.hits("dies"), rig.fake().data(WORK)), (3, 4, 4), "seed {seed}");
    });
}

#[test]
fn the_program_ends_in_the_midst_of_it() {
    each_way(20, |seed, with_scratch| {
        // One thread ends the process while the others hit, stop and are stepped.
        let mut asm = Asm::at(CODE);
        asm.jmp("main");
        asm.label("work").inc_mem(DATA + WORK).ret();
        asm.label("worker").call("work").jmp("worker");
        asm.label("main");
        let worker = asm.address("worker");
        for _ in 0..3 {
            asm.mov(EBX, worker).sys(SYS_CLONE);
        }
        asm.mov(ESI, 40).label("delay").dec(ESI).jnz("delay").mov(EBX, 5).sys(SYS_EXIT_GROUP);
        let mut rig = Rig::new(asm, seed, with_scratch);
        rig.break_at("work");
        rig.ok(watch(WORK, WatchMode::Write));
        for round in 0..5_000 {
            let live = if round % 3 == 2 && rig.engine.phase == State::Stopped {
                rig.step(StepMode::Into, 2).2
            } else {
                rig.go().1
            };
            if live.state == State::Exited {
                assert_eq!(live.exit_code, Some(5));
                break;
            }
        }
        assert_eq!(rig.engine.phase, State::Exited, "seed {seed}");
        assert_eq!(rig.refused(ContinueExecution { timeout: 1.0 }), ErrorCode::TargetExited);
        assert_eq!(rig.refused(Pause {}), ErrorCode::TargetExited);
    });
}

#[test]
fn a_signal_arrives_at_the_breakpoint() {
    each_way(4, |seed, with_scratch| {
        // Before the INT3 is executed.
        let mut rig = Rig::new(workers(1, 3), seed, with_scratch);
        rig.count_at("work");
        let answer = rig.run();
        let work = rig.fake().label("work");
        while rig.fake().pc(PID) != work {
            rig.fake().run_thread(PID, 1);
        }
        rig.fake().post(PID, SIGALRM);
        rig.finish(&answer).unwrap();
        assert_eq!((rig.hits("work"), rig.fake().data(WORK), rig.fake().data(0x20)), (3, 3, 1));
    });
}

#[test]
fn a_signal_arrives_after_the_hit_and_before_the_instruction() {
    each_way(4, |seed, with_scratch| {
        // While the thread is stopped at the breakpoint: the signal comes when it is let go past it.
        let mut rig = Rig::new(workers(1, 3), seed, with_scratch);
        rig.break_at("work");
        rig.go();
        rig.fake().post(PID, SIGALRM);
        for hit in 2..=3 {
            assert_eq!(rig.go().0.unwrap().hits, Some(hit));
        }
        rig.go_to_end();
        assert_eq!((rig.fake().data(WORK), rig.fake().data(0x20)), (3, 1));
    });
}

#[test]
fn a_signal_arrives_while_a_thread_is_stepped_to_its_end() {
    each_way(4, |seed, with_scratch| {
        let mut rig = Rig::new(workers(1, 1), seed, with_scratch);
        rig.break_at("over");
        rig.go();
        rig.fake().post(PID, SIGALRM);
        // Six instructions: `inc`, `mov`, then the handler's `inc` and `sigreturn` before the system call that ends the thread.
        let handler = rig.fake().label("handler");
        let mut seen = Vec::new();
        for _ in 0..6 {
            rig.ask(Step::default()).unwrap();
            if rig.engine.phase == State::Exited {
                break;
            }
            seen.push(rig.fake().pc(PID));
        }
        assert_eq!(rig.engine.phase, State::Exited);
        assert_eq!(seen.get(2), Some(&handler), "the signal is given before the system call: {seen:?}");
        assert_eq!((rig.fake().raised, rig.fake().data(0x20), rig.fake().data(DONE)), (1, 1, 1));
    });
}

#[test]
fn signals_rain_on_threads_that_hit() {
    each_way(10, |seed, with_scratch| {
        let mut rig = Rig::new(workers(4, 20), seed, with_scratch);
        rig.count_at("work");
        rig.count_at("back");
        let answer = rig.run();
        for round in 0..40 {
            let threads = rig.fake().threads();
            let Some(thread) = threads.get(round % threads.len().max(1)).copied() else { break };
            rig.fake().post(thread, SIGALRM);
            // Fewer instructions than there are between two hits.
            for _ in 0..3 {
                rig.fake().script.extend(&threads);
                rig.engine.poll(Duration::ZERO);
            }
        }
        rig.finish(&answer).unwrap();
        assert_eq!((rig.hits("work"), rig.hits("back"), rig.fake().data(WORK)), (80, 80, 80), "seed {seed}");
        // A thread may have ended with one on its way; what arrived was handled, once.
        assert!(rig.fake().raised > 10);
        assert_eq!(rig.fake().data(0x20), rig.fake().raised, "seed {seed}");
    });
}

#[test]
fn a_fatal_signal_stops_and_then_ends_the_program() {
    each_way(2, |seed, with_scratch| {
        let mut rig = Rig::new(workers(2, 50), seed, with_scratch);
        rig.count_at("work");
        let answer = rig.run();
        rig.engine.poll(Duration::ZERO);
        rig.fake().post(PID, SIGTERM);
        let (report, live) = rig.stop_of(&answer);
        assert_eq!((live.reason.as_deref(), live.thread), (Some("signal SIGTERM"), Some(PID)));
        assert_eq!(report.exception.unwrap().number, 15);
        let (_, live) = rig.go();
        assert_eq!((live.state, live.exit_signal.as_deref()), (State::Exited, Some("SIGTERM")));
    });
}

#[test]
fn a_faulting_instruction_under_a_breakpoint_faults_at_its_own_address() {
    each_way(2, |seed, with_scratch| {
        let mut asm = Asm::at(CODE);
        asm.label("bad").load(0x10).sys(SYS_EXIT);
        let mut rig = Rig::new(asm, seed, with_scratch);
        let bad = rig.break_at("bad");
        assert_eq!(rig.go().1.reason, Some(format!("breakpoint@{bad}")));
        let (report, live) = rig.go();
        assert_eq!((live.reason.as_deref(), live.pc.unwrap().0), (Some("signal SIGSEGV"), bad));
        assert_eq!(report.unwrap().exception.unwrap().address.unwrap().0, VirtAddr::new(0x10));
        assert_eq!(rig.go().1.exit_signal.as_deref(), Some("SIGSEGV"));
    });
}

#[test]
fn a_handled_fault_under_a_breakpoint_is_handled() {
    each_way(2, |seed, with_scratch| {
        let mut asm = Asm::at(CODE);
        asm.label("bad").load(0x10).label("handler").inc_mem(DATA + 0x20).sys(SYS_EXIT);
        let mut rig = Rig::new(asm, seed, with_scratch);
        rig.count_at("bad");
        rig.go_to_end();
        assert_eq!((rig.hits("bad"), rig.fake().data(0x20)), (1, 1));
    });
}

#[test]
fn an_instruction_that_is_tried_again_after_its_fault_is_hit_again() {
    each_way(2, |seed, with_scratch| {
        let mut asm = Asm::at(CODE);
        // The handler mends nothing and gives up at the third fault: 0xfffffffd + 3 is 0 in 32 bits.
        asm.mov(EAX, 0xffff_fffd).store(DATA + 0x24).label("bad").load(0x10).sys(SYS_EXIT);
        asm.label("handler").inc_mem(DATA + 0x24).jnz("retry").sys(SYS_EXIT).label("retry").sigreturn();
        let mut rig = Rig::new(asm, seed, with_scratch);
        rig.count_at("bad");
        rig.go_to_end();
        assert_eq!((rig.hits("bad"), rig.fake().data(0x24)), (3, 0));
    });
}

#[test]
fn handlers_that_see_the_registers_of_the_fault_see_no_scratch_memory() {
    // The fake refuses to deliver anything with a program counter in scratch memory.
    for frozen in [false, true] {
        each_way(2, |seed, with_scratch| {
            let mut asm = Asm::at(CODE);
            // As above, with something after the fault that a lost breakpoint would be noticed at.
            asm.mov(EAX, 0xffff_fffd).store(DATA + 0x24).label("bad").load(0x10).sys(SYS_EXIT);
            asm.label("handler").inc_mem(DATA + 0x24).jnz("retry").sys(SYS_EXIT).label("retry").sigreturn();
            let mut rig = Rig::new(asm, seed, with_scratch);
            rig.fake().faults_are_frozen = frozen;
            rig.count_at("bad");
            rig.count_at("retry");
            rig.go_to_end();
            assert_eq!((rig.hits("bad"), rig.hits("retry"), rig.fake().data(0x24)), (3, 2, 0), "{frozen}");
        });
    }
}

#[test]
fn an_indirect_call_through_nowhere_is_undone() {
    each_way(1, |seed, with_scratch| {
        // call [0x10]: the target cannot be read, after the return address has been pushed in a scratch slot.
        let mut asm = Asm::at(CODE);
        asm.label("bad").bytes(&[0xff, 0x15, 0x10, 0, 0, 0]).sys(SYS_EXIT);
        let mut rig = Rig::new(asm, seed, with_scratch);
        let bad = rig.break_at("bad");
        let (before, _) = rig.go();
        let (after, live) = rig.go();
        assert_eq!((live.reason.as_deref(), live.pc.unwrap().0), (Some("signal SIGSEGV"), bad));
        assert_eq!(before.unwrap().registers["esp"], after.unwrap().registers["esp"]);
    });
}

#[test]
fn a_repeated_instruction_under_a_breakpoint_is_one_execution() {
    each_way(6, |seed, with_scratch| {
        let mut asm = Asm::at(CODE);
        asm.mov(EAX, 0x5a).mov(EDI, DATA + 0x100).mov(ECX, 50).label("fill").rep_stosb().label("filled");
        asm.sys(SYS_EXIT).label("handler").inc_mem(DATA + 0x20).sigreturn();
        let mut rig = Rig::new(asm, seed, with_scratch);
        rig.count_at("fill");
        let answer = rig.run();
        // Into the midst of it; then a signal, and a pause.
        rig.fake().run_thread(PID, 4);
        rig.engine.poll(Duration::ZERO);
        rig.fake().post(PID, SIGALRM);
        rig.pause();
        rig.finish(&answer).unwrap();
        if rig.engine.phase == State::Stopped {
            let pc = rig.fake().pc(PID);
            assert!(!rig.fake().in_scratch(pc));
            rig.go_to_end();
        }
        assert_eq!(rig.hits("fill"), 1, "seed {seed}");
        assert_eq!(rig.fake().memory.read(u64::from(DATA + 0x100), 51), [vec![0x5a; 50], vec![0]].concat());
    });
}

#[test]
fn detach_at_any_moment_leaves_the_program_unharmed() {
    each_way(25, |seed, with_scratch| {
        let mut rig = Rig::new(workers(4, 30), seed, with_scratch);
        rig.count_at("work");
        rig.count_at("back");
        rig.count_at("round");
        rig.ok(watch(0x40, WatchMode::Readwrite));
        let _answer = rig.run();
        for _ in 0..seed % 97 {
            rig.engine.poll(Duration::ZERO);
        }
        if rig.engine.phase == State::Exited {
            return;
        }
        let threads = rig.fake().threads();
        if let Some(thread) = threads.first() {
            rig.fake().post(*thread, SIGALRM);
        }
        rig.detach();
        assert!(rig.fake().exited.is_some() || rig.fake().detached);
        if rig.fake().exited.is_none() {
            rig.assert_clean();
            rig.fake().run_to_end();
        }
        assert_eq!((rig.fake().data(WORK), rig.fake().data(DONE)), (120, 4), "seed {seed}");
    });
}

#[test]
fn a_forked_child_has_the_programs_own_bytes() {
    each_way(2, |seed, with_scratch| {
        let mut asm = Asm::at(CODE);
        asm.mov(EAX, SYS_FORK).label("fork").bytes(&[0xcd, 0x80]).label("work").inc_mem(DATA + WORK).sys(SYS_EXIT);
        let mut rig = Rig::new(asm, seed, with_scratch);
        rig.count_at("fork");
        rig.count_at("work");
        rig.go_to_end();
        assert_eq!((rig.hits("fork"), rig.hits("work")), (1, 1));
        let image = rig.fake().image().to_vec();
        let child = rig.fake().children.values().next().unwrap().clone();
        assert!(child.released);
        assert_eq!(child.memory.read(u64::from(CODE), image.len()), image);
    });
}

#[test]
fn a_child_that_shares_the_memory_meets_no_breakpoint() {
    each_way(8, |seed, with_scratch| {
        let mut asm = Asm::at(CODE);
        asm.jmp("main");
        asm.label("work").inc_mem(DATA + WORK).ret();
        asm.label("worker").mov(ESI, 10).label("round").call("work").dec(ESI).jnz("round").sys(SYS_EXIT);
        asm.label("main");
        let worker = asm.address("worker");
        asm.mov(EBX, worker).sys(SYS_CLONE).sys(SYS_VFORK).jmp("worker");
        asm.label("child").call("work").sys(SYS_EXEC);
        let mut rig = Rig::new(asm, seed, with_scratch);
        rig.count_at("work");
        rig.go_to_end();
        assert!(!rig.fake().child_trapped);
        // Two threads of 10 rounds, and the child once, which is nobody's hit.
        assert_eq!((rig.hits("work"), rig.fake().data(WORK)), (20, 21), "seed {seed}");
    });
}

#[test]
fn exec_drops_what_was_planted_and_tells() {
    each_way(2, |seed, with_scratch| {
        let mut asm = workers(2, 2);
        asm.label("start_second").sys(SYS_EXEC);
        let mut rig = Rig::new(asm, seed, with_scratch);
        rig.break_at("start_second");
        rig.ok(watch(4, WatchMode::Write));
        let (registers, _) = (rig.fake().label("start_second"), ());
        rig.ok(wire::commands::SetRegisters {
            registers: [("eip".to_owned(), wire::IntValue::from(registers.get()))].into(),
            thread: None,
        });
        assert_eq!(rig.go().1.reason, Some(format!("breakpoint@{registers}")));
        let (report, live) = rig.go();
        assert_eq!((live.state, live.reason.as_deref()), (State::Stopped, Some("exec")));
        assert!(report.unwrap().notes.iter().any(|note| note.contains("1 watchpoints")));
        let second = rig.fake().second.clone();
        assert_eq!(rig.fake().memory.read(u64::from(CODE), second.len()), second);
    });
}

#[test]
fn the_programs_own_int3_is_its_own() {
    each_way(2, |seed, with_scratch| {
        for counted in [false, true] {
            let mut asm = Asm::at(CODE);
            asm.label("trap").int3().label("after").nop().sys(SYS_EXIT);
            asm.label("handler").inc_mem(DATA + 0x20).sigreturn();
            let mut rig = Rig::new(asm, seed, with_scratch);
            if counted {
                rig.count_at("trap");
            }
            rig.count_at("after");
            rig.go_to_end();
            assert_eq!((rig.fake().data(0x20), rig.hits("after")), (1, 1));
            assert!(!counted || rig.hits("trap") == 1);
        }
    });
}

#[test]
fn a_pending_breakpoint_is_planted_when_its_module_is_loaded() {
    each_way(2, |seed, with_scratch| {
        let mut asm = Asm::at(CODE);
        asm.label("load").sys(SYS_LOAD).bytes(&[0xe8]);
        let behind = asm.here() + 4;
        asm.bytes(&LIBRARY.wrapping_sub(behind).to_le_bytes()).sys(SYS_EXIT);
        let mut rig = Rig::new(asm, seed, with_scratch);
        let Reply::Breakpoint(reply) = rig.ok(breakpoint("plugin!plugin_start")) else { panic!() };
        assert!(reply.breakpoint.pending && reply.breakpoint.addr.is_none());
        let (report, live) = rig.go();
        assert_eq!(live.reason, Some(format!("breakpoint@0x{LIBRARY:x}")));
        assert_eq!(report.unwrap().symbol.as_deref(), Some("plugin_start"));
        rig.go_to_end();
    });
}

#[test]
fn a_system_call_under_a_breakpoint_may_wait_for_another_thread() {
    each_way(2, |seed, with_scratch| {
        let mut asm = Asm::at(CODE);
        asm.jmp("main");
        asm.label("waker").mov(ESI, 20).label("delay").dec(ESI).jnz("delay").inc_mem(DATA).sys(SYS_EXIT);
        asm.label("main");
        let waker = asm.address("waker");
        asm.mov(EBX, waker).sys(SYS_CLONE).mov(EAX, SYS_WAIT).label("wait").bytes(&[0xcd, 0x80]).label("woken").nop();
        asm.sys(SYS_EXIT);
        let mut rig = Rig::new(asm, seed, with_scratch);
        rig.count_at("wait");
        rig.count_at("woken");
        rig.go_to_end();
        assert_eq!((rig.hits("wait"), rig.hits("woken")), (1, 1));
    });
}

#[test]
fn a_thread_without_time_is_counted_once() {
    // Stepped in place, it does not get to its instruction before the others run on; then the INT3 stands there again.
    let mut rig = Rig::new(workers(2, 3), 9, false);
    rig.break_at("work");
    let (report, live) = rig.go();
    assert_eq!(report.unwrap().hits, Some(1));
    rig.fake().starved = live.thread;
    rig.count_at("work");
    let answer = rig.run();
    rig.engine.poll(Duration::ZERO);
    rig.fake().starved = None;
    rig.finish(&answer).unwrap();
    assert_eq!((rig.hits("work"), rig.fake().data(WORK)), (6, 6));
}

#[test]
fn a_trap_of_a_removed_watchpoint_is_not_taken_for_another() {
    each_way(4, |seed, with_scratch| {
        let mut rig = Rig::new(workers(2, 1), seed, with_scratch);
        rig.ok(watch(WORK, WatchMode::Write));
        let answer = rig.run();
        // Both threads write before the engine hears of either.
        while rig.fake().threads().len() < 2 {
            rig.fake().run_thread(PID, 1);
            if rig.fake().is_held(PID) {
                rig.engine.poll(Duration::ZERO);
            }
        }
        let second = 2;
        for _ in 0..20 {
            if rig.fake().is_held(second) && rig.fake().data(WORK) == 0 {
                rig.fake().starved = Some(PID);
                rig.engine.poll(Duration::ZERO);
                rig.fake().starved = None;
            }
            rig.fake().run_thread(second, 1);
        }
        rig.fake().run_thread(PID, 30);
        rig.stop_of(&answer);
        rig.ok(wire::commands::RemoveWatchpoint { slot: Some(0), addr: None });
        rig.ok(watch(0x200, WatchMode::Write));
        rig.go_to_end();
    });
}
