//! Registers, memory, breakpoints, data breakpoints and steps of a program that is held.

use super::rig::*;

/// What gdb says the registers of a process are.
fn gdb_registers(pid: u32) -> BTreeMap<String, u64> {
    let output = Command::new("gdb")
        .args(["-nx", "-batch", "-ex", "info registers", "-ex", "info registers mxcsr", "-p", &pid.to_string()])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let name = words.next()?;
        let value = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
        Some((name.to_owned(), value))
    };
    text.lines().filter_map(line).collect()
}

#[test]
fn registers_are_those_that_gdb_shows_of_the_same_process() {
    for bits in BITS {
        // In the middle of a computation, and in a system call.
        for args in [&["--headless", "--spin-loop"][..], &["--headless"]] {
            let game = Running::start(driftgame(bits), args);
            std::thread::sleep(Duration::from_millis(30));
            // Stopped by job control, it stays where it is from one debugger to the next.
            assert!(Command::new("kill").args(["-STOP", &game.pid().to_string()]).status().unwrap().success());
            eventually("the stop", || status_field(game.pid(), "State").starts_with('T'));
            let mut rig = Rig::attach(game.pid());
            let ours = rig.registers(game.pid());
            let fxsave = rig.platform.fxsave(game.pid()).unwrap();
            rig.platform.detach().unwrap();
            let theirs = gdb_registers(game.pid());
            assert_eq!(ours.bitness, bits);
            let (names, pc): (&[&str], _) = match bits {
                Bitness::Bits64 => (&agent::registers::GENERAL_64, "rip"),
                Bitness::Bits32 => (&agent::registers::GENERAL_32, "eip"),
            };
            for (name, value) in names.iter().zip(ours.general) {
                assert_eq!((*name, value), (*name, theirs[*name]));
            }
            assert_eq!((ours.pc.get(), ours.flags), (theirs[pc], theirs["eflags"]));
            for (name, value) in ["cs", "ss", "ds", "es", "fs", "gs"].iter().zip(ours.segments) {
                assert_eq!((*name, u64::from(value)), (*name, theirs[*name]));
            }
            // Intel SDM volume 1, table 10-2: MXCSR is at byte 24.
            let mxcsr: [u8; 4] = fxsave[24..28].try_into().unwrap();
            assert_eq!((fxsave.len(), u64::from(u32::from_le_bytes(mxcsr))), (512, theirs["mxcsr"]));
        }
    }
}

#[test]
fn registers_that_are_set_are_what_the_program_goes_on_with() {
    for bits in BITS {
        let program = driftgame(bits);
        let (step, exit) = (function(&program, "hot_step"), function(&program, "hot_loop"));
        let mut rig = Rig::launch(&program, &["--headless", "--spin-loop", "--frames", "5000", "--exit-code", "9"]);
        let thread = rig.run_to(step);
        let before = rig.registers(thread);
        let mut changed = before;
        // Its counter, close to its end: the loop ends early and the program exits in order.
        changed.general[if bits == Bitness::Bits64 { 7 } else { 1 }] = 4_990;
        changed.flags ^= 1;
        rig.platform.set_registers(thread, &changed).unwrap();
        assert_eq!(rig.registers(thread), changed);
        assert!(exit > 0 && rig.word(G_HOT_COUNT) == 0);
        rig.go(thread);
        assert_eq!(rig.exit(), Exit::Code(9));
        assert!(rig.platform.threads().is_empty());
    }
}

#[test]
fn every_int3_is_an_event_with_its_address() {
    for bits in BITS {
        let program = driftgame(bits);
        let place = function(&program, "hot_step");
        let mut rig = Rig::launch(&program, &["--headless", "--spin-loop"]);
        rig.plant(place);
        rig.go(rig.start.thread);
        for _ in 0..100 {
            let Event::Int3 { thread, at } = rig.next() else { panic!() };
            assert_eq!((at.get(), rig.registers(thread).pc.get()), (place, place + 1));
            // `lea` in both builds, three bytes: passed over, its counter stands still.
            rig.platform.set_pc(thread, VirtAddr::new(place + 3)).unwrap();
            rig.go(thread);
        }
        assert!(matches!(rig.next(), Event::Int3 { .. }));
    }
}

#[test]
fn memory_is_read_and_written_to_the_byte() {
    for bits in BITS {
        let program = driftgame(bits);
        let mut rig = Rig::launch(&program, &["--headless"]);
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", rig.start.pid)).unwrap();
        // The end of the code: nothing is mapped behind it before the next segment.
        let ends: Vec<u64> =
            maps.lines().map(|line| u64::from_str_radix(line.split(['-', ' ']).nth(1).unwrap(), 16).unwrap()).collect();
        let end = *ends.iter().find(|end| !maps.contains(&format!("{end:08x}-"))).unwrap();
        let mut buffer = [0; 64];
        assert_eq!(rig.platform.read_memory(VirtAddr::new(end - 20), &mut buffer), Ok(20));
        assert_eq!(rig.platform.read_memory(VirtAddr::new(end), &mut buffer), Ok(0));
        assert_eq!(rig.platform.read_memory(VirtAddr::new(0), &mut buffer), Ok(0));
        let before = rig.bytes(end - 20, 20);
        let refused = rig.platform.write_memory(VirtAddr::new(end - 20), &[0x11; 30]);
        assert_eq!(refused, Err(PlatformError::Unmapped { usable: 20 }));
        assert_eq!(rig.platform.write_memory(VirtAddr::new(8), &[1]), Err(PlatformError::Unmapped { usable: 0 }));
        assert_eq!(rig.bytes(end - 20, 20), before);
        // Code is not writable for the program itself; the file is the oracle for what stands there.
        let file = std::fs::read(&program).unwrap();
        let head = rig.bytes(0x40_0000, 64);
        assert_eq!(head, file[..64]);
        rig.platform.write_memory(VirtAddr::new(0x40_0000), &[1, 2, 3]).unwrap();
        assert_eq!(rig.bytes(0x40_0000, 4), [1, 2, 3, file[3]]);
        assert_eq!(std::fs::read(&program).unwrap(), file);
    }
}

#[test]
fn data_breakpoints_fire_in_every_slot() {
    for bits in BITS {
        let program = driftgame(bits);
        let mut rig = Rig::launch(&program, &["--headless", "--spin-loop"]);
        let thread = rig.run_to(function(&program, "hot_loop"));
        for slot in 0..4 {
            let mut debug = DebugRegisters::default();
            debug.address[slot] = G_HOT_COUNT;
            // Write, 4 bytes: RW = 01, LEN = 11 (Intel SDM volume 3, 18.2.4).
            debug.dr7 = 1 << (slot * 2) | 0b1101 << (16 + slot * 4);
            rig.platform.set_debug_registers(thread, &debug).unwrap();
            let seen = rig.platform.debug_registers(thread).unwrap();
            assert_eq!(seen.address[slot], G_HOT_COUNT);
            for _ in 0..3 {
                let before = rig.word(G_HOT_COUNT);
                rig.go(thread);
                assert_eq!(rig.next(), Event::Debug { thread, single_step: false, slots: 1 << slot });
                // Trapped after the write.
                assert_eq!(rig.word(G_HOT_COUNT), before + 1);
                assert_eq!(rig.platform.debug_registers(thread).unwrap().dr6 & 0xf, 0);
            }
        }
        rig.platform.set_debug_registers(thread, &DebugRegisters::default()).unwrap();
        rig.go(thread);
        assert_eq!(rig.platform.wait(Duration::from_millis(50)), Ok(None));
    }
}

#[test]
fn a_data_breakpoint_and_a_step_can_end_together() {
    let program = driftgame(Bitness::Bits64);
    let mut rig = Rig::launch(&program, &["--headless", "--spin-loop"]);
    let thread = rig.run_to(function(&program, "hot_loop"));
    let debug = DebugRegisters { address: [G_HOT_COUNT, 0, 0, 0], dr6: 0, dr7: 0xd_0001 };
    rig.platform.set_debug_registers(thread, &debug).unwrap();
    for _ in 0..100 {
        rig.platform.resume(thread, Run::Step, Pending::Discard).unwrap();
        match rig.next() {
            Event::Debug { single_step: true, slots: 1, .. } => return,
            event => assert_eq!(event, Event::Debug { thread, single_step: true, slots: 0 }),
        }
    }
    panic!("the counter is written in every round of the loop");
}

#[test]
fn a_step_is_one_instruction_in_code_calls_and_handlers() {
    for bits in BITS {
        let mut rig = Rig::game(bits, &["--signals", "200", "--threads", "1"]);
        rig.go(rig.start.thread);
        let worker = rig.until(|event| match event {
            Event::ThreadStarted { thread } => Some(*thread),
            _ => None,
        });
        // From its first instruction through system calls; nothing else runs the worker.
        let mut calls = 0;
        for _ in 0..3_000 {
            let before = rig.registers(worker);
            let code = rig.bytes(before.pc.get(), 15);
            rig.platform.resume(worker, Run::Step, Pending::Discard).unwrap();
            // A system call that a signal interrupted is begun again: that is the step then.
            if rig.step_ends(worker) {
                continue;
            }
            let after = rig.registers(worker);
            assert_eq!(after.flags & 0x100, 0, "our trap flag shows");
            if code.starts_with(&[0x0f, 0x05]) || code.starts_with(&[0xcd, 0x80]) {
                assert_eq!(after.pc.get(), before.pc.get() + 2);
                calls += 1;
            } else {
                let next = code::x86::length(&code, before.pc.get(), bits).unwrap() as u64;
                let jumps = matches!(code[0], 0xe8 | 0xe9 | 0xeb | 0xc3 | 0xff | 0x70..=0x7f | 0x0f | 0xc2);
                assert!(jumps || after.pc.get() == before.pc.get() + next, "{:x?} at {}", code, before.pc);
            }
        }
        assert!(calls > 0);
    }
}
