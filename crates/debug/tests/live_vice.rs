//! The client against the real VICE, which runs ROMs and a program of our own: `fixtures/vice/README.md` says what is where.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![cfg(unix)]

mod transcript;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use debug::emulator::{Emulator, find_launcher, port_is_free};
use debug::vice::launch::{PROGRAM, Roms, ViceLaunch};
use debug::vice::{Arrival, Checkpoint, Error, EventKind, Execution, Monitor, NewCheckpoint, Place, ResetKind};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Long enough for a busy machine; only what hangs waits it out.
const LONG: u64 = 30_000;
const RAM: Place = Place { bank: 1, memspace: 0, start: 0, side_effects: false };
const COUNTER: u16 = 0xC100;

/// VICE with the program running in it.
struct Rig {
    emulator: Emulator,
    monitor: Monitor,
    /// Addresses by their names in the program's source, as 64tass wrote them.
    labels: Vec<(String, u16)>,
    home: tempfile::TempDir,
}

impl Rig {
    fn start() -> Self {
        let fixtures = std::env::var_os("RETROSCOPE_FIXTURES").expect("RETROSCOPE_FIXTURES names the built fixtures");
        let vice = PathBuf::from(fixtures).join("vice");
        let file = |name: &str| Some(vice.join(name));
        let home = tempfile::tempdir().unwrap();
        let launch = ViceLaunch {
            program: find_launcher(Path::new(PROGRAM)).expect("x64sc is not installed: cargo xtask install"),
            prg: file("demo.prg"),
            roms: Roms { kernal: file("kernal.bin"), basic: file("basic.bin"), chargen: file("chargen.bin") },
            home: home.path().to_owned(),
            environment: vec![("DISPLAY".into(), std::env::var_os("DISPLAY").expect("DISPLAY names an Xvfb"))],
            guard: None,
        };
        let (emulator, monitor) = launch.start().unwrap();
        // Lines `al 930 .count`.
        let labels = std::fs::read_to_string(vice.join("demo.labels")).unwrap();
        let labels = labels.lines().map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            (words[2].trim_start_matches('.').to_owned(), u16::from_str_radix(words[1], 16).unwrap())
        });
        let rig = Self { emulator, monitor, labels: labels.collect(), home };
        rig.run_to_loop();
        rig
    }

    fn label(&self, name: &str) -> u16 {
        self.labels.iter().find(|(known, _)| known == name).unwrap_or_else(|| panic!("no label {name}")).1
    }

    /// Runs until the program does what it does once a frame, however long VICE takes to put it into memory.
    fn run_to_loop(&self) {
        let count = self.set(&self.at(self.label("count")));
        self.resume_and_wait();
        self.monitor.delete_checkpoint(count.number, LONG).unwrap();
    }

    fn at(&self, address: u16) -> NewCheckpoint {
        NewCheckpoint {
            start: address,
            end: address,
            stops: true,
            enabled: true,
            operations: 4,
            temporary: false,
            memspace: 0,
        }
    }

    fn set(&self, new: &NewCheckpoint) -> Checkpoint {
        let made = self.monitor.set_checkpoint(new, LONG).unwrap();
        assert!(!made.resumed);
        made.checkpoint
    }

    fn resume_and_wait(&self) -> debug::vice::Published {
        let resumed = self.monitor.resume(LONG).unwrap().event.sequence;
        self.monitor.wait_for_stop(resumed, LONG).unwrap()
    }

    fn byte(&self, address: u16) -> u8 {
        self.monitor.read_memory(Place { start: address, ..RAM }, address, 1, LONG).unwrap().bytes[0]
    }

    fn register(&self, name: &str) -> u16 {
        self.monitor.registers(&[name.to_owned()], 0, LONG).unwrap()[0].value
    }

    fn set_register(&self, name: &str, value: u16) {
        self.monitor.set_registers(&[(name.to_owned(), value.into())], 0, LONG).unwrap();
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.emulator.pid().try_into().unwrap()), signal).unwrap();
    }

    /// Stops the process, and waits until each of its threads has stopped.
    fn freeze(&self) {
        self.signal(Signal::SIGSTOP);
        let tasks = format!("/proc/{}/task", self.emulator.pid());
        let is_stopped = |stat: &str| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'));
        let all = || {
            let mut tasks = std::fs::read_dir(&tasks).unwrap().flatten();
            tasks.all(|task| std::fs::read_to_string(task.path().join("stat")).is_ok_and(|stat| is_stopped(&stat)))
        };
        let until = Instant::now() + Duration::from_millis(LONG);
        while !all() {
            assert!(Instant::now() < until, "it does not stop");
            std::thread::yield_now();
        }
    }

    /// Ends it and proves that nothing is left.
    fn end(mut self) {
        let (pid, port) = (self.emulator.pid(), self.monitor.address().port());
        let _ = self.monitor.close();
        drop(self.monitor);
        self.emulator.stop();
        assert!(!Path::new(&format!("/proc/{pid}")).exists(), "the process is still there");
        // The end of a connection keeps the port for a while; nobody may listen there.
        assert!(
            port_is_free(port) || std::net::TcpStream::connect(("127.0.0.1", port)).is_err(),
            "port {port} is taken"
        );
        self.home.close().unwrap();
    }
}

#[test]
fn registers_banks_and_memory_are_the_machines() {
    let rig = Rig::start();
    assert_eq!(rig.register("PC"), rig.label("count"));
    let banks = rig.monitor.banks(LONG).unwrap();
    let names: Vec<(u16, &str)> = banks.iter().map(|bank| (bank.id, bank.name.as_str())).collect();
    assert_eq!(names, [(0, "default"), (0, "cpu"), (1, "ram"), (2, "rom"), (3, "io"), (4, "cart")]);

    // The KERNAL is ours, byte by byte, in its bank; RAM lies under it.
    let fixtures = PathBuf::from(std::env::var_os("RETROSCOPE_FIXTURES").unwrap());
    let kernal = std::fs::read(fixtures.join("vice/kernal.bin")).unwrap();
    let rom = Place { bank: 2, start: 0xE000, ..RAM };
    assert_eq!(rig.monitor.read_memory(rom, 0xFFFF, 65_536, LONG).unwrap().bytes, kernal);
    // The program is as assembled, behind the two bytes of its address.
    let program = std::fs::read(fixtures.join("vice/demo.prg")).unwrap();
    let end = 0x0801 + u16::try_from(program.len() - 2).unwrap() - 1;
    let memory = rig.monitor.read_memory(Place { start: 0x0801, ..RAM }, end, 65_536, LONG).unwrap();
    assert_eq!((&memory.bytes[..], memory.next), (&program[2..], None));

    let whole: Vec<u8> = (0..65_536_u32).map(|at| (at * 7 + (at >> 8)) as u8).collect();
    rig.monitor.write_memory(RAM, &whole, LONG).unwrap();
    let read = rig.monitor.read_memory(RAM, 0xFFFF, 65_536, LONG).unwrap().bytes;
    // The first two are the processor's own port.
    assert_eq!(read[2..], whole[2..]);
    let error = rig.monitor.read_memory(Place { bank: 99, ..RAM }, 1, 2, LONG).unwrap_err();
    assert!(matches!(error, Error::Refused { command: 1, code: 0x81, .. }), "{error}");
    let part = rig.monitor.read_memory(Place { start: 0x1000, ..RAM }, 0x1FFF, 16, LONG).unwrap();
    assert_eq!((part.bytes.len(), part.next), (16, Some(0x1010)));
    rig.end();
}

#[test]
fn steps_run_the_program_and_the_first_one_behind_a_set_register_only_arrives() {
    let rig = Rig::start();
    // `inc counter`, then `bne` to the RTS or not; all that is known without us is the length of INC, three bytes.
    let count = rig.label("count");
    let before = rig.byte(COUNTER);
    let ran = rig.monitor.step(false, 1, LONG).unwrap();
    assert_eq!((ran.event.pc, ran.event.kind), (Some(count + 3), EventKind::Stopped));
    assert_eq!(rig.byte(COUNTER), before.wrapping_add(1));

    for name in ["PC", "A"] {
        rig.set_register(name, if name == "PC" { count } else { 7 });
        let pc = rig.register("PC");
        let ran = rig.monitor.step(false, 1, LONG).unwrap();
        let moved = ran.event.pc != Some(pc);
        assert_eq!(ran.arrival == Arrival::Executed, moved, "{name}: {:04x} to {:?}", pc, ran.event.pc);
    }
    let finished = rig.monitor.finish(LONG).unwrap();
    assert!((rig.label("loop")..count).contains(&finished.event.pc.unwrap()), "{finished:?}");
    let ran = rig.monitor.step(false, 65_535, LONG).unwrap();
    assert_eq!((ran.event.kind, ran.arrival), (EventKind::Stopped, Arrival::Executed));
    // The call, three bytes before the return, is one step for `next` and three or four for `step`.
    let returned = finished.event.pc.unwrap();
    rig.set(&rig.at(returned - 3));
    rig.resume_and_wait();
    assert_eq!(rig.monitor.step(true, 1, LONG).unwrap().event.pc, Some(returned));
    let error = rig.monitor.set_registers(&[("A".to_owned(), 0x1FF)], 0, LONG).unwrap_err();
    assert!(matches!(error, Error::Argument(_)));
    rig.end();
}

#[test]
fn four_overlapping_checkpoints_make_one_stop() {
    let rig = Rig::start();
    let count = rig.label("count");
    let range = |start: u16, end: u16| NewCheckpoint { start, end, ..rig.at(0) };
    let numbers: Vec<u32> = [(count, count), (count, count + 1), (count - 1, count), (count - 8, count)]
        .map(|(start, end)| rig.set(&range(start, end)).number)
        .to_vec();
    // The last ones are hit before `count` is reached: by the way to it.
    let stop = loop {
        let stop = rig.resume_and_wait();
        if stop.pc == Some(count) {
            break stop;
        }
    };
    let hit: Vec<u32> = stop.checkpoints.iter().map(|hit| hit.number).collect();
    assert_eq!(hit, numbers);
    assert!(stop.checkpoints.iter().all(|hit| hit.hit && hit.hits >= 1 && hit.stops));
    let listed = rig.monitor.checkpoints(LONG).unwrap();
    assert_eq!(listed.iter().map(|listed| listed.number).collect::<Vec<_>>(), numbers);

    let gone = rig.monitor.delete_checkpoint(99, LONG).unwrap_err();
    assert!(matches!(gone, Error::Refused { code: 0x01, .. }), "{gone}");
    rig.monitor.toggle_checkpoint(numbers[0], false, LONG).unwrap();
    assert!(!rig.monitor.checkpoints(LONG).unwrap()[0].enabled);
    // When all are deleted, their numbers are given again.
    for number in &numbers {
        rig.monitor.delete_checkpoint(*number, LONG).unwrap();
    }
    assert_eq!(rig.set(&rig.at(0xC000)).number, 1);
    rig.end();
}

#[test]
fn a_condition_decides_and_a_bad_one_is_refused() {
    let rig = Rig::start();
    let made = rig.set(&NewCheckpoint { enabled: false, ..rig.at(rig.label("count")) });
    // The loop keeps the screen's number in X.
    rig.monitor.set_condition(made.number, "X == $02", LONG).unwrap();
    rig.monitor.toggle_checkpoint(made.number, true, LONG).unwrap();
    assert!(rig.monitor.checkpoints(LONG).unwrap()[0].conditional);
    let resumed = rig.monitor.resume(LONG).unwrap().event.sequence;
    // Several frames pass it by.
    assert!(matches!(rig.monitor.wait_for_stop(resumed, 300), Err(Error::TimedOut { .. })));
    rig.monitor.interrupt(LONG).unwrap();
    rig.monitor.write_memory(Place { start: 0xC102, ..RAM }, &[2], LONG).unwrap();
    rig.resume_and_wait();
    assert_eq!(rig.register("X"), 2);
    let error = rig.monitor.set_condition(made.number, "X = (", LONG).unwrap_err();
    assert!(matches!(error, Error::Refused { command: 0x22, code: 0x8F, .. }), "{error}");
    rig.end();
}

#[test]
fn a_storm_of_hits_is_told_while_commands_are_answered() {
    let rig = Rig::start();
    // All the program's instructions, without a stop.
    rig.set(&NewCheckpoint { start: rig.label("start"), end: 0x0BFF, stops: false, ..rig.at(0) });
    let before = rig.monitor.resume(LONG).unwrap().event.sequence;
    let until = Instant::now() + Duration::from_millis(LONG);
    while rig.monitor.status().sequence < before + 5_000 {
        assert!(Instant::now() < until, "there is no storm");
        std::thread::sleep(Duration::from_millis(5));
    }
    let ran = rig.monitor.interrupt(LONG).unwrap();
    assert!(ran.preceding.iter().all(|event| event.kind == EventKind::CheckpointHit));
    assert!(rig.monitor.registers(&[], 0, LONG).is_ok());
    rig.end();
}

#[test]
fn what_resumes_the_machine_is_told_at_once() {
    let rig = Rig::start();
    let temporary = NewCheckpoint { temporary: true, ..rig.at(rig.label("count")) };
    let before = rig.monitor.status().sequence;
    let made = rig.monitor.set_checkpoint(&temporary, LONG).unwrap();
    assert!(made.resumed, "VICE runs after a temporary checkpoint was made");
    let stop = rig.monitor.wait_for_stop(before, LONG).unwrap();
    assert_eq!(stop.checkpoints[0].number, made.checkpoint.number);
    assert!(rig.monitor.checkpoints(LONG).unwrap().is_empty(), "it is gone");
    rig.monitor.reset(ResetKind::Drive8, LONG).unwrap();
    assert_eq!(rig.monitor.status().execution, Execution::Stopped);
    rig.monitor.reset(ResetKind::Soft, LONG).unwrap();
    assert_eq!(rig.monitor.status().execution, Execution::Running);
    rig.monitor.interrupt(LONG).unwrap();
    rig.end();
}

#[test]
fn a_snapshot_brings_memory_and_registers_back() {
    let rig = Rig::start();
    let path = rig.home.path().join("state.vsf");
    let path = path.to_str().unwrap();
    let (pc, counter) = (rig.register("PC"), rig.byte(COUNTER));
    rig.monitor.save_snapshot(path, false, false, LONG).unwrap();
    rig.monitor.write_memory(Place { start: COUNTER, ..RAM }, &[counter.wrapping_add(9)], LONG).unwrap();
    rig.monitor.step(false, 9, LONG).unwrap();
    assert_eq!(rig.monitor.load_snapshot(path, LONG).unwrap(), pc);
    assert_eq!((rig.register("PC"), rig.byte(COUNTER)), (pc, counter));
    assert!(matches!(rig.monitor.load_snapshot("state.vsf", LONG), Err(Error::Argument(_))));
    rig.end();
}

#[test]
fn a_frozen_vice_costs_each_call_its_time_and_works_again_when_it_goes_on() {
    let rig = Rig::start();
    let before = rig.monitor.status().sequence;
    rig.freeze();
    let begun = Instant::now();
    for _ in 0..3 {
        let error = rig.monitor.registers(&[], 0, 100).unwrap_err();
        assert!(matches!(error, Error::TimedOut { limit_ms: 100, request: Some(_), .. }), "{error}");
    }
    assert!(matches!(rig.monitor.step(false, 1, 100), Err(Error::TimedOut { changed: true, .. })));
    assert!(begun.elapsed() < Duration::from_millis(LONG), "a call hung");
    rig.signal(Signal::SIGCONT);
    // The late answers are dropped; that the step made it run and stop is told.
    let until = Instant::now() + Duration::from_millis(LONG);
    while rig.monitor.status().sequence < before + 2 || rig.monitor.registers(&[], 0, 1_000).is_err() {
        assert!(Instant::now() < until, "it does not answer again");
    }
    rig.end();
}

#[test]
fn a_vice_that_dies_ends_every_operation_in_words() {
    type Operation = fn(&Monitor) -> Result<(), Error>;
    let operations: [(&str, Operation); 4] = [
        ("step", |monitor| monitor.step(false, 65_535, LONG).map(drop)),
        ("read", |monitor| monitor.read_memory(RAM, 0xFFFF, 65_536, LONG).map(drop)),
        ("checkpoints", |monitor| monitor.checkpoints(LONG).map(drop)),
        ("wait", |monitor| {
            monitor.resume(LONG)?;
            monitor.wait_for_stop(monitor.status().sequence, LONG).map(drop)
        }),
    ];
    for (name, operation) in operations {
        let rig = Rig::start();
        let outcome = std::thread::scope(|scope| {
            let working = scope.spawn(|| {
                // Until it is dead.
                loop {
                    if let Err(error) = operation(&rig.monitor) {
                        return error;
                    }
                }
            });
            let begun = rig.monitor.status().commands;
            while rig.monitor.status().commands == begun && name != "wait" {
                std::thread::yield_now();
            }
            rig.signal(Signal::SIGKILL);
            working.join().unwrap()
        });
        assert_eq!(outcome.code(), "vice_connection_lost", "{name}: {outcome}");
        assert!(rig.monitor.status().lost.is_some());
        rig.end();
    }
}

#[test]
fn no_checkpoint_of_ours_is_left_when_the_connection_ends() {
    let rig = Rig::start();
    rig.set(&rig.at(rig.label("count")));
    rig.monitor.resume(LONG).unwrap();
    let address = rig.monitor.address();
    rig.monitor.close().unwrap();
    let next = Monitor::connect(address, Duration::from_millis(LONG)).unwrap();
    assert!(next.checkpoints(LONG).unwrap().is_empty());
    drop(next);
    rig.end();
}

/// The recording that another test plays: the real VICE still says the same. With `UPDATE_TRANSCRIPT` it is made anew.
#[test]
fn the_recorded_session_is_what_vice_says() {
    let mut rig = Rig::start();
    let (address, count) = (rig.monitor.address(), rig.label("count"));
    rig.monitor.close().unwrap();
    let recorder = transcript::Recorder::before(address);
    rig.monitor = Monitor::connect(recorder.address, Duration::from_millis(LONG)).unwrap();
    let told = transcript::session(&rig.monitor, count);
    let text = recorder.text();
    if std::env::var_os("UPDATE_TRANSCRIPT").is_some() {
        std::fs::write(transcript::file(), &text).unwrap();
    }
    let recording = std::fs::read_to_string(transcript::file()).unwrap();
    let played = Monitor::connect(transcript::play(&recording), Duration::from_millis(LONG)).unwrap();
    assert_eq!(told, transcript::session(&played, count));
    rig.end();
}
