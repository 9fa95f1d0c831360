//! Threads, children and programs that become others.

use super::rig::*;

/// Signals that wait for delivery to a thread.
fn waiting_signals(thread: ThreadId) -> u64 {
    u64::from_str_radix(&status_field(thread, "SigPnd"), 16).unwrap()
}

#[test]
fn threads_come_and_go_and_are_held_while_they_spin() {
    for bits in BITS {
        let mut rig = Rig::game(bits, &["--threads", "8", "--spin", "--thread-after", "300"]);
        rig.go(rig.start.thread);
        let mut started = BTreeSet::new();
        while started.len() < 8 {
            let thread = rig.until(|event| match event {
                Event::ThreadStarted { thread } => Some(*thread),
                _ => None,
            });
            assert!(started.insert(thread));
            assert!(rig.platform.threads().contains(&thread));
            rig.registers(thread);
            rig.go(thread);
        }
        for _ in 0..50 {
            for event in rig.hold() {
                let Event::ThreadStarted { thread } = event else { panic!("{event:?}") };
                started.insert(thread);
            }
            let threads = rig.platform.threads();
            let names: Vec<u32> = std::fs::read_dir(format!("/proc/{}/task", rig.start.pid))
                .unwrap()
                .map(|entry| entry.unwrap().file_name().to_str().unwrap().parse().unwrap())
                .collect();
            assert_eq!(threads.iter().copied().collect::<BTreeSet<_>>(), names.into_iter().collect());
            for thread in threads {
                assert_ne!(rig.registers(thread).pc.get(), 0);
                assert_eq!(status_field(thread, "State").chars().next(), Some('t'));
            }
            rig.go_all();
        }
    }
}

#[test]
fn threads_that_end_are_reported() {
    let mut rig = Rig::game(Bitness::Bits64, &["--threads", "4", "--thread-life", "50"]);
    rig.go(rig.start.thread);
    let (mut started, mut ended) = (BTreeSet::new(), BTreeSet::new());
    while ended.len() < 4 {
        match rig.next() {
            Event::ThreadStarted { thread } => {
                started.insert(thread);
                rig.go(thread);
            }
            Event::ThreadExited { thread } => {
                ended.insert(thread);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(started, ended);
    assert_eq!(rig.platform.threads(), [rig.start.thread]);
    let gone = *ended.first().unwrap();
    assert_eq!(rig.platform.registers(gone), Err(PlatformError::NoThread(gone)));
    assert_eq!(rig.platform.registers(rig.start.thread), Err(PlatformError::NotHeld(rig.start.thread)));
}

#[test]
fn children_go_their_way_with_clean_memory() {
    for bits in BITS {
        let program = driftgame(bits);
        let mut rig = Rig::game(bits, &["--fork-every", "20"]);
        // The child ends through the same function as everything else: with our INT3 in it, it would die of it.
        let place = function(&program, "system_call");
        rig.go(rig.start.thread);
        while rig.word(G_REAPED) < 5 {
            match rig.next() {
                Event::Forked { thread, child, shares_memory: false } => {
                    let old = rig.plant(place);
                    // As if it had been planted before the fork: the child has it too.
                    rig.platform.release_fork(child, &[(VirtAddr::new(place), vec![old])]).unwrap();
                    rig.unplant(place, old);
                    rig.go(thread);
                }
                Event::Exception { thread, name, fatal: false, .. } if name == "SIGCHLD" => {
                    rig.platform.resume(thread, Run::Free, Pending::Deliver).unwrap();
                }
                other => panic!("{other:?} was not expected"),
            }
        }
        assert!(rig.word(G_FORKS) >= 5);
    }
}

#[test]
fn a_child_that_shares_memory_runs_until_it_is_another_program() {
    let script = "import subprocess, sys; sys.exit(subprocess.run(['/bin/sh', '-c', 'exit 5']).returncode)";
    let mut rig = Rig::launch("/usr/bin/python3", &["-c", script]);
    rig.go(rig.start.thread);
    let (parent, child) = rig.until(|event| match event {
        Event::Forked { thread, child, shares_memory: true } => Some((*thread, *child)),
        _ => None,
    });
    rig.platform.run_shared_child(child).unwrap();
    assert_eq!(rig.next(), Event::SharedChildGone { child });
    rig.go(parent);
    assert_eq!(rig.exit(), Exit::Code(5));
}

#[test]
fn a_thread_in_vfork_does_not_keep_the_others_from_being_held() {
    let script = "import subprocess, sys; sys.exit(subprocess.run(['/bin/sleep', '0.1']).returncode)";
    let mut rig = Rig::launch("/usr/bin/python3", &["-c", script]);
    rig.go(rig.start.thread);
    let (parent, child) = rig.until(|event| match event {
        Event::Forked { thread, child, shares_memory: true } => Some((*thread, *child)),
        _ => None,
    });
    // The parent first: it waits in the kernel for a child that is still held.
    rig.go(parent);
    assert_eq!(rig.hold(), []);
    assert_eq!(rig.platform.registers(parent), Err(PlatformError::NotHeld(parent)));
    rig.go(parent);
    rig.platform.run_shared_child(child).unwrap();
    assert_eq!(rig.next(), Event::SharedChildGone { child });
    assert_eq!(rig.exit(), Exit::Code(0));
}

#[test]
fn exec_makes_another_program_of_it() {
    for (from, to) in [(Bitness::Bits64, Bitness::Bits32), (Bitness::Bits32, Bitness::Bits64)] {
        let other = driftgame(to);
        let path = other.to_str().unwrap();
        for extra in [&[][..], &["--threads", "4"], &["--leader-exits"]] {
            let mut args = vec!["--exec", path, "--exec-after", "60"];
            args.extend(extra);
            args.extend(["--", "--headless", "--frames", "3", "--exit-code", "4"]);
            let mut rig = Rig::game(from, &args);
            rig.go(rig.start.thread);
            let (thread, path, bitness) = rig.until(|event| match event {
                Event::Executed { thread, path, bitness } => Some((*thread, path.clone(), *bitness)),
                _ => None,
            });
            assert_eq!((thread, &path, bitness), (rig.start.pid, &other, to));
            assert_eq!(rig.platform.threads(), [thread]);
            assert_eq!(rig.registers(thread).bitness, to);
            assert_eq!(rig.registers(thread).pc, rig.platform.entry_point().unwrap());
            assert_eq!(
                rig.platform.debug_registers(thread),
                Ok(DebugRegisters::default()).map(|mut debug| {
                    let seen = rig.platform.debug_registers(thread).unwrap();
                    (debug.dr6, debug.dr7) = (seen.dr6, 0);
                    debug
                })
            );
            assert_eq!(rig.word(G_FRAME_COUNT), 0);
            rig.go(thread);
            assert_eq!(rig.exit(), Exit::Code(4));
        }
    }
}

#[test]
fn a_process_outlives_its_first_thread() {
    for bits in BITS {
        let mut rig = Rig::game(bits, &["--leader-exits", "--frames", "40", "--exit-code", "7"]);
        let leader = rig.start.thread;
        rig.go(leader);
        rig.until(|event| match event {
            Event::ThreadExited { thread } if *thread == leader => Some(()),
            _ => None,
        });
        assert!(!rig.platform.threads().contains(&leader));
        rig.hold();
        let [thread] = rig.platform.threads()[..] else { panic!() };
        assert_eq!(rig.registers(thread).bitness, bits);
        assert_eq!(rig.bytes(0x40_0000, 4), b"\x7fELF");
        rig.platform.write_memory(VirtAddr::new(G_HANDLED_SIGNALS), &[9]).unwrap();
        assert_eq!(rig.word(G_HANDLED_SIGNALS), 9);
        assert!(rig.platform.modules().unwrap().iter().any(|module| module.main));
        assert_eq!(rig.platform.entry_point().unwrap().get(), function(&driftgame(bits), "_start"));
        rig.go(thread);
        assert_eq!(rig.exit(), Exit::Code(7));
    }
}

#[test]
fn a_process_without_its_first_thread_can_be_attached_to() {
    let game = Running::start(driftgame(Bitness::Bits64), &["--headless", "--leader-exits"]);
    eventually("the end of the first thread", || status_field(game.pid(), "State").starts_with('Z'));
    let mut rig = Rig::attach(game.pid());
    let [thread] = rig.platform.threads()[..] else { panic!() };
    assert_ne!(thread, game.pid());
    assert_eq!(rig.start.path, driftgame(Bitness::Bits64));
    let before = rig.word(G_FRAME_COUNT);
    rig.go(thread);
    eventually("a frame", || rig.word(G_FRAME_COUNT) > before);
    rig.platform.kill().unwrap();
    assert_eq!(rig.exit(), Exit::Signal("SIGKILL".to_owned()));
}

#[test]
fn threads_that_are_halted_in_the_moment_of_a_trap_bring_it_with_them() {
    for bits in BITS {
        let program = driftgame(bits);
        let place = function(&program, "hot_step");
        let game = Running::start(&program, &["--headless", "--spin-loop", "--threads", "6", "--spin"]);
        eventually("the threads", || std::fs::read_dir(format!("/proc/{}/task", game.pid())).unwrap().count() == 7);
        for _ in 0..30 {
            let mut rig = Rig::attach(game.pid());
            let old = rig.plant(place);
            rig.go_all();
            let mut events = vec![rig.next()];
            events.extend(rig.hold());
            rig.unplant(place, old);
            let mut hit = BTreeSet::new();
            for event in events {
                let Event::Int3 { thread, at } = event else { panic!("{event:?}") };
                assert!(hit.insert(thread));
                rig.platform.set_pc(thread, at).unwrap();
            }
            for thread in rig.platform.threads() {
                assert_eq!(waiting_signals(thread), 0);
                let pc = rig.registers(thread).pc.get();
                assert_ne!(pc, place + 1, "a thread stands behind a trap that nobody has heard of");
            }
            rig.platform.detach().unwrap();
        }
        let count = memory_word(game.pid(), G_HOT_COUNT);
        eventually("the loop", || memory_word(game.pid(), G_HOT_COUNT) != count);
    }
}
