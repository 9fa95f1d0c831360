//! Memory for code that is mapped into a held program.

use super::rig::*;

/// The mapping of `/proc/PID/maps` that begins at an address: its permissions.
fn permissions(pid: u32, address: VirtAddr) -> Option<String> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let begin = format!("{:08x}-", address.get());
    let line = maps.lines().find(|line| line.starts_with(&begin))?;
    line.split(' ').nth(1).map(str::to_owned)
}

#[test]
fn scratch_memory_is_mapped_in_reach_wherever_the_threads_are() {
    for bits in BITS {
        let program = driftgame(bits);
        let near = VirtAddr::new(function(&program, "hot_step"));
        // Held at its very first instruction, still in the kernel for the exec.
        let mut rig = Rig::game(bits, &["--frames", "5", "--exit-code", "3"]);
        let thread = rig.start.thread;
        let before = rig.registers(thread);
        let scratch = rig.platform.allocate_code(near, 5_000).unwrap();
        assert_eq!(rig.registers(thread), before);
        assert_eq!(permissions(rig.start.pid, scratch).as_deref(), Some("r-xp"));
        assert!(scratch.get().abs_diff(near.get()) < 1 << 31);
        rig.platform.write_memory(scratch.wrapping_add(4_990), &[0x90; 1_000]).unwrap();
        let other = rig.platform.allocate_code(near, 4_096).unwrap();
        assert!(other.get() + 4_096 <= scratch.get() || scratch.get() + 8_192 <= other.get());
        rig.platform.free_code(scratch, 5_000).unwrap();
        assert_eq!(permissions(rig.start.pid, scratch), None);
        // Code in it runs: a jump back to where the program was.
        let mut jump = vec![0xe9];
        let distance = before.pc.get().wrapping_sub(other.get() + 5) as u32;
        jump.extend(distance.to_le_bytes());
        rig.platform.write_memory(other, &jump).unwrap();
        rig.platform.set_pc(thread, other).unwrap();
        rig.go(thread);
        assert_eq!(rig.exit(), Exit::Code(3));
    }
}

#[test]
fn a_system_call_that_scratch_memory_interrupted_goes_on() {
    // Blocked in a read that only we can end.
    let script = "import sys; line = sys.stdin.readline(); sys.exit(len(line))";
    let mut command = Command::new("/usr/bin/python3");
    let child = command.args(["-c", script]).stdin(Stdio::piped()).spawn().unwrap();
    let mut python = Running(child);
    let pid = python.pid();
    let reads = || std::fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap_or_default().starts_with("0 0x0 ");
    eventually("the read", reads);
    let mut rig = Rig::attach(pid);
    let before = rig.registers(pid);
    let near = rig.platform.modules().unwrap().into_iter().find(|module| module.main).unwrap().base;
    let scratch = rig.platform.allocate_code(near, 100).unwrap();
    assert_eq!(permissions(pid, scratch).as_deref(), Some("r-xp"));
    assert_eq!(rig.registers(pid), before);
    rig.go(pid);
    eventually("the read again", reads);
    rig.hold();
    rig.platform.free_code(scratch, 100).unwrap();
    rig.go(pid);
    use std::io::Write;
    python.0.stdin.take().unwrap().write_all(b"hello\n").unwrap();
    assert_eq!(rig.exit(), Exit::Code(6));
}

#[test]
fn scratch_memory_does_not_disturb_signals_and_stops() {
    for bits in BITS {
        let near = VirtAddr::new(0x40_0000);
        let mut rig = Rig::game(bits, &["--signals", "500"]);
        rig.go(rig.start.thread);
        for delivered in 1..=60 {
            let held = rig.until(|event| match event {
                Event::Exception { thread, .. } => Some(*thread),
                _ => None,
            });
            // Held at the signal's delivery: the call must not swallow it.
            assert_eq!(rig.hold(), []);
            let scratch = rig.platform.allocate_code(near, 4_096).unwrap();
            rig.platform.free_code(scratch, 4_096).unwrap();
            rig.platform.resume(held, Run::Free, Pending::Deliver).unwrap();
            eventually("the handler", || rig.word(G_ALARMS) == delivered);
        }
        // Stopped by job control, it stays so.
        let pid = rig.start.pid;
        assert!(Command::new("kill").args(["-STOP", &pid.to_string()]).status().unwrap().success());
        let thread = rig.until(|event| match event {
            Event::Exception { thread, name, .. } if name == "SIGSTOP" => Some(*thread),
            _ => None,
        });
        rig.platform.resume(thread, Run::Free, Pending::Deliver).unwrap();
        while rig.platform.wait(Duration::from_millis(50)).unwrap().is_some_and(|event| {
            let Event::Exception { thread, .. } = event else { panic!("{event:?}") };
            rig.platform.resume(thread, Run::Free, Pending::Deliver).unwrap();
            true
        }) {}
        rig.hold();
        rig.platform.allocate_code(near, 4_096).unwrap();
        rig.go_all();
        let frames = rig.word(G_FRAME_COUNT);
        assert_eq!(rig.platform.wait(Duration::from_millis(100)), Ok(None));
        assert_eq!(rig.word(G_FRAME_COUNT), frames);
    }
}
