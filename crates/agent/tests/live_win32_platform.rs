//! The Windows platform alone against driftgame, on Windows or under Wine: what the engine relies on, call by call.
#![cfg(windows)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use agent::platform::win32::Windows;
use agent::platform::{Event, Exit, LaunchSpec, Pending, Platform, PlatformError, Run, ThreadId};
use agent::registers::DebugRegisters;
use base::VirtAddr;
use code::x86::Bitness;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Addresses that the game's README promises.
const STATE: VirtAddr = VirtAddr::new(0x48_0000);
const BASELINE: VirtAddr = VirtAddr::new(0x48_0004);
const FRAMES: VirtAddr = VirtAddr::new(0x48_000c);
const TICKS: u64 = 0x48_0040;
const LIMIT: Duration = Duration::from_secs(20);

fn game() -> PathBuf {
    let name = std::env::var("RETROSCOPE_TEST_GAME").unwrap_or_else(|_| "driftgame32.exe".to_owned());
    PathBuf::from(
        std::env::var_os("RETROSCOPE_FIXTURES").expect("RETROSCOPE_FIXTURES names the folder of the fixtures"),
    )
    .join(name)
}

fn spec(args: &[&str]) -> LaunchSpec {
    LaunchSpec {
        path: game(),
        args: args.iter().map(|text| (*text).to_owned()).collect(),
        cwd: std::env::temp_dir(),
        env: BTreeMap::new(),
        die_with_agent: true,
    }
}

/// A debugger of few words: breakpoints by single-stepping with all others held, as simple as can be.
struct Session {
    windows: Windows,
    planted: BTreeMap<VirtAddr, u8>,
    held: Vec<ThreadId>,
    log: Vec<Event>,
}

impl Session {
    fn launch(args: &[&str]) -> Self {
        let mut windows = Windows::new();
        let started = windows.launch(&spec(args)).unwrap();
        Self { windows, planted: BTreeMap::new(), held: vec![started.thread], log: Vec::new() }
    }

    fn symbol(&self, name: &str) -> VirtAddr {
        let module = self.windows.modules().unwrap().into_iter().find(|module| module.main).unwrap();
        let symbols = self.windows.symbols(&module).unwrap();
        symbols.iter().find(|symbol| symbol.name == name).unwrap_or_else(|| panic!("no symbol {name}")).address
    }

    fn plant(&mut self, at: VirtAddr) {
        let mut byte = [0];
        assert_eq!(self.windows.read_memory(at, &mut byte), Ok(1));
        self.planted.insert(at, byte[0]);
        self.windows.write_memory(at, &[0xcc]).unwrap();
    }

    fn unplant(&mut self, at: VirtAddr) {
        let byte = self.planted.remove(&at).unwrap();
        self.windows.write_memory(at, &[byte]).unwrap();
    }

    fn number(&self, at: VirtAddr) -> u32 {
        let mut bytes = [0; 4];
        assert_eq!(self.windows.read_memory(at, &mut bytes), Ok(4));
        u32::from_le_bytes(bytes)
    }

    fn go(&mut self) {
        for thread in std::mem::take(&mut self.held) {
            match self.windows.resume(thread, Run::Free, Pending::Deliver) {
                Ok(()) | Err(PlatformError::NoThread(_) | PlatformError::NotHeld(_)) => {}
                Err(error) => panic!("resume {thread}: {error}"),
            }
        }
    }

    /// Runs until something that is neither a thread nor a module nor text.
    fn next(&mut self) -> Option<Event> {
        self.go();
        let until = Instant::now() + LIMIT;
        while Instant::now() < until {
            let Some(event) = self.windows.wait(Duration::from_millis(200)).unwrap() else { continue };
            self.log.push(event.clone());
            match event {
                Event::ThreadStarted { thread }
                | Event::ModulesChanged { thread }
                | Event::DebugOutput { thread, .. } => {
                    self.windows.resume(thread, Run::Free, Pending::Deliver).unwrap();
                }
                Event::ThreadExited { .. } => {}
                Event::Exception { thread, fatal: false, .. } => {
                    self.windows.resume(thread, Run::Free, Pending::Deliver).unwrap();
                }
                other => return Some(other),
            }
        }
        None
    }

    /// Lets the game run while nothing but threads come; the system may tell of one long after it began.
    fn run_for(&mut self, span: Duration) {
        let until = Instant::now() + span;
        while Instant::now() < until {
            match self.windows.wait(Duration::from_millis(20)).unwrap() {
                Some(Event::ThreadStarted { thread }) => {
                    self.windows.resume(thread, Run::Free, Pending::Deliver).unwrap();
                }
                Some(Event::ThreadExited { .. }) | None => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// Runs to the next hit of `at` and passes it: the thread and its program counter before.
    fn hit(&mut self, at: VirtAddr) -> ThreadId {
        match self.next() {
            Some(Event::Int3 { thread, at: there }) if there == at => {
                assert_eq!(self.windows.registers(thread).unwrap().pc, at.wrapping_add(1));
                self.windows.set_pc(thread, at).unwrap();
                self.held = vec![thread];
                thread
            }
            other => panic!("expected a hit of {at}, got {other:?} after {:?}", self.log),
        }
    }

    /// Steps `thread` past the breakpoint it stands on, all others held.
    fn pass(&mut self, thread: ThreadId, at: VirtAddr) {
        let mut events = self.windows.hold_all(LIMIT).unwrap();
        let byte = self.planted[&at];
        self.windows.write_memory(at, &[byte]).unwrap();
        self.windows.resume(thread, Run::Step, Pending::Discard).unwrap();
        let until = Instant::now() + LIMIT;
        loop {
            assert!(Instant::now() < until, "the step of {thread} did not end; {:?}", self.log);
            match self.windows.wait(Duration::from_millis(200)).unwrap() {
                Some(Event::Debug { thread: stepped, single_step: true, .. }) if stepped == thread => break,
                Some(event) => events.push(event),
                None => {}
            }
        }
        self.windows.write_memory(at, &[0xcc]).unwrap();
        self.log.extend(events);
        self.held = self.windows.threads();
    }

    fn watch(&mut self, slot: usize, at: VirtAddr, previous: &mut DebugRegisters) {
        previous.address[slot] = at.get();
        // Intel SDM volume 3, section 18.2.4: L(slot), write (01), 4 bytes (11).
        previous.dr7 |= (1 << (2 * slot)) | (0b1101 << (16 + 4 * slot));
    }

    fn finish(mut self) {
        self.windows.kill().unwrap();
        self.go();
        let until = Instant::now() + LIMIT;
        while Instant::now() < until {
            match self.windows.wait(Duration::from_millis(100)).unwrap() {
                Some(Event::ProcessExited(_)) => return,
                Some(_) => {
                    for thread in self.windows.threads() {
                        drop(self.windows.resume(thread, Run::Free, Pending::Deliver));
                    }
                }
                None => {}
            }
        }
        panic!("the game did not end: {:?}", self.log);
    }
}

#[test]
fn launch_runs_to_the_exit_code() {
    let mut session = Session::launch(&["--headless", "--frames", "3", "--exit-code", "42"]);
    assert_eq!(session.next(), Some(Event::ProcessExited(Exit::Code(42))));
    assert!(session.windows.threads().is_empty());
    let text = session
        .log
        .iter()
        .any(|event| matches!(event, Event::DebugOutput { text, .. } if text.starts_with("driftgame pid=")));
    assert!(text, "{:?}", session.log);
}

#[test]
fn one_hundred_hits_of_a_breakpoint_in_each_frame() {
    let mut session = Session::launch(&["--headless"]);
    let at = session.symbol("update_delta_time");
    session.plant(at);
    for frame in 0..100 {
        let thread = session.hit(at);
        assert_eq!(session.number(FRAMES), frame);
        session.pass(thread, at);
    }
    session.finish();
}

#[test]
fn no_hit_is_lost_with_three_threads() {
    let mut session = Session::launch(&["--headless", "--threads", "3", "--spin"]);
    let at = session.symbol("worker_tick");
    session.plant(at);
    for _ in 0..900 {
        let thread = session.hit(at);
        session.pass(thread, at);
    }
    // Each worker has counted what it ran through, but for the one step from the start to the count.
    let counted: u32 = (0..3).map(|worker| session.number(VirtAddr::new(TICKS + 4 * worker))).sum();
    assert!((897..=900).contains(&counted), "{counted}");
    session.finish();
}

#[test]
fn four_watchpoints_tell_which_one_fired() {
    let mut session = Session::launch(&["--headless", "--start", "playing"]);
    let at = session.symbol("main_loop");
    session.plant(at);
    let thread = session.hit(at);
    let mut registers = DebugRegisters::default();
    // g_state, g_delta_baseline_ms, g_frame_count, g_ball_x
    for (slot, address) in [STATE.get(), BASELINE.get(), FRAMES.get(), 0x48_001c].into_iter().enumerate() {
        session.watch(slot, VirtAddr::new(address), &mut registers);
    }
    session.windows.set_debug_registers(thread, &registers).unwrap();
    session.pass(thread, at);
    let mut seen = [0u32; 4];
    while seen.iter().skip(1).any(|count| *count < 5) {
        match session.next() {
            Some(Event::Debug { thread, single_step: false, slots }) => {
                assert_eq!(slots.count_ones(), 1);
                seen[slots.trailing_zeros() as usize] += 1;
                session.held = vec![thread];
            }
            other => panic!("{other:?}"),
        }
    }
    // The state is written once, by start_game; the ball moves only after its first frame.
    assert_eq!(seen[0], 1);
    assert!(seen[1].abs_diff(seen[2]) <= 1, "{seen:?}");
    session.finish();
}

#[test]
fn the_programs_own_exceptions_reach_its_handlers() {
    for (kind, name) in [("segv", "EXCEPTION_ACCESS_VIOLATION"), ("fpe", "EXCEPTION_INT_DIVIDE_BY_ZERO"), ("int3", "")]
    {
        let mut session =
            Session::launch(&["--headless", "--crash", kind, "--crash-after", "50", "--handle", "--frames", "60"]);
        let mut own = 0;
        let exit = loop {
            match session.next() {
                Some(Event::Int3 { thread, .. }) => {
                    own += 1;
                    session.held = vec![thread];
                }
                other => break other,
            }
        };
        assert_eq!(exit, Some(Event::ProcessExited(Exit::Code(0))), "{kind}: {:?}", session.log);
        let named =
            session.log.iter().filter(|event| matches!(event, Event::Exception { name: found, .. } if found == name));
        assert!(named.count() + own > 2, "{kind}: {:?}", session.log);
    }
}

#[test]
fn an_unhandled_exception_is_fatal() {
    let mut session = Session::launch(&["--headless", "--crash", "segv", "--crash-after", "50"]);
    let Some(Event::Exception { thread, name, fatal: true, synchronous: true, address, .. }) = session.next() else {
        panic!("{:?}", session.log)
    };
    assert_eq!(name, "EXCEPTION_ACCESS_VIOLATION");
    assert_eq!(address, Some(VirtAddr::new(0)));
    session.held = vec![thread];
    assert_eq!(session.next(), Some(Event::ProcessExited(Exit::Code(0xc000_0005))));
}

#[test]
fn a_pause_holds_every_thread_by_both_ways() {
    let mut session = Session::launch(&["--headless", "--threads", "3"]);
    let at = session.symbol("update_delta_time");
    session.plant(at);
    let thread = session.hit(at);
    session.pass(thread, at);
    session.unplant(at);
    session.go();
    for by_break_in in [false, true] {
        session.run_for(Duration::from_millis(200));
        let events = if by_break_in { session.windows.break_in(LIMIT) } else { session.windows.hold_all(LIMIT) };
        session.log.extend(events.unwrap());
        session.held = session.windows.threads();
        assert!(session.held.len() >= 4);
        let before = session.number(FRAMES);
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(session.number(FRAMES), before);
        for thread in &session.held {
            assert_ne!(session.windows.registers(*thread).unwrap().pc.get(), 0);
        }
        session.go();
        let until = Instant::now() + LIMIT;
        while session.number(FRAMES) == before {
            assert!(Instant::now() < until);
            if let Some(Event::ThreadExited { .. } | Event::Other { .. }) =
                session.windows.wait(Duration::from_millis(20)).unwrap()
            {}
        }
    }
    session.finish();
}

#[test]
fn attach_work_detach_and_the_game_goes_on() {
    let mut child = std::process::Command::new(game()).args(["--headless", "--threads", "2"]).spawn().unwrap();
    let mut windows = Windows::new();
    std::thread::sleep(Duration::from_millis(500));
    let name = game().file_name().unwrap().to_string_lossy().to_uppercase();
    assert!(windows.find_processes(&name).unwrap().iter().any(|process| process.pid == child.id()));
    let started = windows.attach(child.id()).unwrap();
    assert_eq!(started.pid, child.id());
    let mut session = Session { held: windows.threads(), windows, planted: BTreeMap::new(), log: Vec::new() };
    assert!(session.held.len() >= 3, "{:?}", session.held);
    let at = session.symbol("worker_tick");
    let mut code = [0; 16];
    session.windows.read_memory(at, &mut code).unwrap();
    session.plant(at);
    for _ in 0..20 {
        let thread = session.hit(at);
        session.pass(thread, at);
    }
    let thread = session.hit(at);
    session.log.extend(session.windows.hold_all(LIMIT).unwrap());
    session.unplant(at);
    let _ = thread;
    session.windows.detach().unwrap();
    let second = session.windows.attach(child.id()).unwrap();
    assert_eq!(second.pid, child.id());
    let mut again = [0; 16];
    session.windows.read_memory(at, &mut again).unwrap();
    assert_eq!(code, again);
    let ticks = session.number(VirtAddr::new(TICKS));
    session.windows.detach().unwrap();
    std::thread::sleep(Duration::from_millis(200));
    assert!(child.try_wait().unwrap().is_none(), "the game ended");
    session.windows.attach(child.id()).unwrap();
    assert!(session.number(VirtAddr::new(TICKS)) > ticks);
    session.windows.detach().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn memory_is_read_and_written_as_far_as_it_is_mapped() {
    let mut session = Session::launch(&["--headless"]);
    let at = session.symbol("update_delta_time");
    session.plant(at);
    session.hit(at);
    let mut bytes = vec![0; 0x1000];
    assert_eq!(session.windows.read_memory(VirtAddr::new(0x1000), &mut bytes), Ok(0));
    assert_eq!(session.windows.write_memory(VirtAddr::new(0x1000), &[1]), Err(PlatformError::Unmapped { usable: 0 }));
    // Code is read-only to the program.
    session.windows.write_memory(at.wrapping_add(1), &[0x90]).unwrap();
    let mut two = [0; 2];
    assert_eq!(session.windows.read_memory(at, &mut two), Ok(2));
    assert_eq!(two, [0xcc, 0x90]);
    // The last section ends within the page at 0x480000; nothing follows.
    let read = session.windows.read_memory(VirtAddr::new(0x48_0f00), &mut bytes).unwrap();
    assert_eq!(read, 0x100);
    session.log.extend(session.windows.hold_all(LIMIT).unwrap());
    let code = session.windows.allocate_code(at, 4096).unwrap();
    session.windows.write_memory(code, &[0xc3]).unwrap();
    let distance = code.get().abs_diff(at.get());
    assert!(distance < 0x8000_0000 || session.windows.registers(session.held[0]).unwrap().bitness == Bitness::Bits32);
    session.windows.free_code(code, 4096).unwrap();
    assert_eq!(session.windows.read_memory(code, &mut two), Ok(0));
    session.finish();
}

#[test]
fn what_cannot_be_started_is_refused_with_the_reason() {
    let mut windows = Windows::new();
    let missing = LaunchSpec { path: PathBuf::from("C:\\no such game.exe"), ..spec(&[]) };
    assert!(matches!(windows.launch(&missing), Err(PlatformError::NotFound(_))));
    let folder = std::env::temp_dir().join("retroscope jeux é");
    std::fs::create_dir_all(&folder).unwrap();
    let corrupt = folder.join("corrupt.exe");
    for (bytes, reason) in [(&b"MZ"[..], "DOS"), (b"hello", "does not begin"), (b"", "does not begin")] {
        std::fs::write(&corrupt, bytes).unwrap();
        let refused = windows.launch(&LaunchSpec { path: corrupt.clone(), ..spec(&[]) });
        assert!(matches!(&refused, Err(PlatformError::BadProgram(text)) if text.contains(reason)), "{refused:?}");
    }
    assert!(matches!(windows.attach(0xffff_fff0), Err(PlatformError::NoProcess(_))));
    let elsewhere = folder.join("drift game é.exe");
    std::fs::copy(game(), &elsewhere).unwrap();
    let started =
        LaunchSpec { path: elsewhere, cwd: folder, ..spec(&["--headless", "--frames", "1", "--exit-code", "7"]) };
    let thread = windows.launch(&started).unwrap().thread;
    let mut session = Session { windows, planted: BTreeMap::new(), held: vec![thread], log: Vec::new() };
    assert_eq!(session.next(), Some(Event::ProcessExited(Exit::Code(7))));
}

#[test]
fn a_picture_shows_what_the_game_draws() {
    let mut session = Session::launch(&["--window", "--start", "menu"]);
    let at = session.symbol("busywait_frame_limiter_60hz");
    session.plant(at);
    for _ in 0..30 {
        let thread = session.hit(at);
        session.pass(thread, at);
    }
    session.hit(at);
    let picture = session.windows.screenshot(Some("DRIFT")).unwrap()().unwrap();
    assert_eq!((picture.width, picture.height, picture.title.as_str()), (320, 240, "driftgame"));
    let pixel = |x: usize, y: usize| &picture.rgb[(y * 320 + x) * 3..][..3];
    // The menu of the game's README: background 0x102040, bar 0xF0C040 at 40, 100.
    assert_eq!(
        (pixel(5, 5), pixel(100, 120)),
        (&[0x10, 0x20, 0x40][..], &[0xf0, 0xc0, 0x40][..]),
        "{}",
        picture.method
    );
    assert!(matches!(session.windows.screenshot(Some("editor")).unwrap()(), Err(PlatformError::NoWindow(_))));
    session.finish();
}
