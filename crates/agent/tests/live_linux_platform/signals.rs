//! Signals, faults and job control: whose they are, and when the program gets them.

use super::rig::*;

#[test]
fn signals_reach_the_program_when_they_are_delivered_and_only_then() {
    for bits in BITS {
        let mut rig = Rig::game(bits, &["--signals", "100"]);
        rig.go(rig.start.thread);
        let mut delivered = 0;
        for round in 0..20 {
            let event = rig.next();
            let Event::Exception { thread, name, number, address, synchronous, fatal } = event else {
                panic!("{event:?}")
            };
            assert_eq!((name.as_str(), number, address, synchronous, fatal), ("SIGALRM", 14, None, false, false));
            assert_eq!(rig.word(G_ALARMS), delivered);
            let pending = if round % 2 == 0 { Pending::Deliver } else { Pending::Discard };
            delivered += u32::from(pending == Pending::Deliver);
            rig.platform.resume(thread, Run::Free, pending).unwrap();
        }
    }
}

#[test]
fn a_kept_signal_is_delivered_later() {
    for bits in BITS {
        let mut rig = Rig::game(bits, &["--signals", "20"]);
        rig.go(rig.start.thread);
        for round in 1..=5 {
            let Event::Exception { thread, .. } = rig.next() else { panic!() };
            for pending in [Pending::Keep, Pending::Discard] {
                rig.platform.resume(thread, Run::Step, pending).unwrap();
                rig.step_ends(thread);
            }
            assert_eq!(rig.word(G_ALARMS), round - 1);
            rig.platform.resume(thread, Run::Free, Pending::Deliver).unwrap();
            eventually("the handler", || rig.word(G_ALARMS) == round);
        }
    }
}

#[test]
fn faults_are_reported_with_their_address_and_end_the_program_when_delivered() {
    for bits in BITS {
        for (kind, name, fault_at_zero, synchronous) in
            [("segv", "SIGSEGV", true, true), ("fpe", "SIGFPE", false, true), ("abort", "SIGABRT", false, false)]
        {
            let mut rig = Rig::game(bits, &["--crash", kind, "--crash-after", "50"]);
            rig.go(rig.start.thread);
            let event = rig.next();
            let Event::Exception { thread, name: seen, address, synchronous: seen_synchronous, fatal, .. } = event
            else {
                panic!("{event:?}")
            };
            assert_eq!((seen.as_str(), seen_synchronous, fatal), (name, synchronous, true));
            if fault_at_zero {
                assert_eq!(address, Some(VirtAddr::new(0)));
            } else if synchronous {
                // The address of a division error is the instruction's.
                assert_eq!(address, Some(rig.registers(thread).pc));
            } else {
                assert_eq!(address, None);
            }
            rig.platform.resume(thread, Run::Free, Pending::Deliver).unwrap();
            assert_eq!(rig.exit(), Exit::Signal(name.to_owned()));
        }
    }
}

#[test]
fn handled_faults_are_not_fatal_and_the_programs_own_int3_reaches_it() {
    for bits in BITS {
        let mut rig = Rig::game(bits, &["--crash", "segv", "--crash-after", "30", "--handle"]);
        rig.go(rig.start.thread);
        let Event::Exception { thread, fatal, .. } = rig.next() else { panic!() };
        assert!(!fatal);
        rig.platform.resume(thread, Run::Free, Pending::Deliver).unwrap();
        assert!(matches!(rig.next(), Event::Exception { .. }));
        assert_eq!(rig.word(G_HANDLED_SIGNALS), 1);

        let mut rig = Rig::game(bits, &["--crash", "int3", "--crash-after", "30", "--handle"]);
        rig.go(rig.start.thread);
        for handled in 0..3 {
            let Event::Int3 { thread, at } = rig.next() else { panic!() };
            assert_eq!(rig.bytes(at.get(), 1), [0xcc]);
            assert_eq!(rig.word(G_HANDLED_SIGNALS), handled);
            rig.platform.resume(thread, Run::Free, Pending::Deliver).unwrap();
        }

        let mut rig = Rig::game(bits, &["--crash", "int3", "--crash-after", "30"]);
        rig.go(rig.start.thread);
        let Event::Int3 { thread, .. } = rig.next() else { panic!() };
        rig.platform.resume(thread, Run::Free, Pending::Deliver).unwrap();
        assert_eq!(rig.exit(), Exit::Signal("SIGTRAP".to_owned()));
    }
}

#[test]
fn a_process_stopped_by_job_control_stays_so() {
    let game = Running::start(driftgame(Bitness::Bits64), &["--headless", "--threads", "2"]);
    let pid = game.pid();
    let send =
        |signal: &str| assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
    let state = || status_field(pid, "State").chars().next();
    eventually("a frame", || memory_word(pid, G_FRAME_COUNT) > 0);
    send("-STOP");
    eventually("the stop", || state() == Some('T'));
    let mut rig = Rig::attach(pid);
    let frames = rig.word(G_FRAME_COUNT);
    for thread in rig.platform.threads() {
        rig.registers(thread);
    }
    rig.go_all();
    assert_eq!(rig.platform.wait(Duration::from_millis(100)), Ok(None));
    assert_eq!(rig.word(G_FRAME_COUNT), frames);
    assert_eq!(rig.hold(), []);
    rig.platform.detach().unwrap();
    eventually("the stop again", || state() == Some('T'));

    let mut rig = Rig::attach(pid);
    rig.go_all();
    send("-CONT");
    let event = rig.until(|event| match event {
        Event::Exception { name, thread, .. } if name == "SIGCONT" => Some(*thread),
        _ => None,
    });
    rig.platform.resume(event, Run::Free, Pending::Deliver).unwrap();
    let deadline = Instant::now() + LIMIT;
    while rig.word(G_FRAME_COUNT) == frames {
        assert!(Instant::now() < deadline);
        assert_eq!(rig.platform.wait(Duration::from_millis(20)), Ok(None));
    }
    send("-STOP");
    let thread = rig.until(|event| match event {
        Event::Exception { name, thread, fatal: false, .. } if name == "SIGSTOP" => Some(*thread),
        _ => None,
    });
    rig.platform.resume(thread, Run::Free, Pending::Deliver).unwrap();
    assert_eq!(rig.platform.wait(Duration::from_millis(100)), Ok(None));
    let frames = rig.word(G_FRAME_COUNT);
    assert_eq!(rig.platform.wait(Duration::from_millis(100)), Ok(None));
    assert_eq!(rig.word(G_FRAME_COUNT), frames);
    rig.platform.detach().unwrap();
    eventually("the stop at last", || state() == Some('T'));
}
