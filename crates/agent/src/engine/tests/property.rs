//! Any sequence of commands under any schedule keeps the invariants: the memory that clients see is the memory without us,
//! every INT3 in it is accounted for, a stopped program shows no scratch slot, and no hit and no signal is lost or
//! counted twice.

use super::*;
use crate::platform::Platform;
use crate::platform::fake::asm::Asm;
use crate::platform::fake::{CODE, SIGALRM};
use proptest::prelude::*;

const THREADS: u32 = 4;
const ROUNDS: u32 = 12;
/// Places that breakpoints come and go at; `work_end` keeps its own all the time.
const PLACES: [&str; 3] = ["work", "back", "round"];

#[derive(Clone, Debug)]
enum Move {
    Set(usize, bool),
    Remove(usize),
    Watch(WatchMode),
    Unwatch,
    Go,
    Pause,
    Poll(u8),
    Step(u8),
    Over,
    Out,
    Signal(u8),
    /// One thread runs for a while alone.
    Burst(u8, u8),
    Rewrite,
    Reattach,
}

fn any_move() -> impl Strategy<Value = Move> {
    prop_oneof![
        1 => (0..PLACES.len(), any::<bool>()).prop_map(|(place, stops)| Move::Set(place, stops)),
        1 => (0..PLACES.len()).prop_map(Move::Remove),
        1 => prop_oneof![Just(WatchMode::Write), Just(WatchMode::Readwrite), Just(WatchMode::Read)].prop_map(Move::Watch),
        1 => Just(Move::Unwatch),
        4 => Just(Move::Go),
        1 => Just(Move::Pause),
        4 => (1_u8..20).prop_map(Move::Poll),
        1 => (1_u8..6).prop_map(Move::Step),
        1 => Just(Move::Over),
        1 => Just(Move::Out),
        2 => (0_u8..8).prop_map(Move::Signal),
        3 => (0_u8..8, 1_u8..30).prop_map(|(thread, turns)| Move::Burst(thread, turns)),
        1 => Just(Move::Rewrite),
        1 => Just(Move::Reattach),
    ]
}

/// A move may be refused (no thread to step, nothing to remove); it is never lost and never harms.
fn play(rig: &mut Rig, next: &Move) {
    match next {
        Move::Set(place, stops) => {
            let ignore_count = if *stops { None } else { Some(u64::MAX) };
            drop(rig.ask(SetBreakpoint { ignore_count, ..breakpoint(PLACES[*place]) }));
        }
        Move::Remove(place) => drop(rig.ask(RemoveBreakpoint { addr: addr(PLACES[*place]) })),
        Move::Watch(mode) => drop(rig.ask(watch(WORK, *mode))),
        Move::Unwatch => drop(rig.ask(wire::commands::RemoveWatchpoint { slot: Some(0), addr: None })),
        Move::Go => drop(rig.start(ContinueExecution { timeout: 0.0 })),
        Move::Pause => drop(rig.ask(Pause {})),
        Move::Poll(count) => (0..*count).for_each(|_| rig.engine.poll(Duration::ZERO)),
        Move::Step(count) => {
            drop(rig.ask(Step { count: Some((*count).into()), ..Step::default() }));
        }
        Move::Over => drop(rig.start(Step { mode: StepMode::Over, ..Step::default() })),
        Move::Out => drop(rig.start(Step { mode: StepMode::Out, ..Step::default() })),
        Move::Signal(thread) => rig.fake().post(u32::from(*thread), SIGALRM),
        Move::Burst(thread, turns) => rig.fake().run_thread(u32::from(*thread), (*turns).into()),
        Move::Rewrite => {
            // The bytes that are there anyway, over whatever is planted.
            let code = rig.fake().image().to_vec();
            let at = AddrExpr(format!("0x{CODE:x}"));
            drop(rig.ask(wire::commands::WriteMemory { addr: at, data: wire::Bytes(code) }));
        }
        Move::Reattach => {
            if rig.ask(Detach {}).is_ok() && rig.fake().exited.is_none() {
                rig.assert_clean();
                drop(rig.ask(Attach { pid: Some(PID), name: None }));
            }
        }
    }
}

fn check(rig: &mut Rig) {
    if !matches!(rig.engine.phase, State::Running | State::Stopped) {
        return;
    }
    assert_eq!(rig.seen(), rig.fake().image(), "clients see the program's own code");
    let Reply::Breakpoints(list) = rig.ok(ListBreakpoints {}) else { panic!() };
    let (now, image) = (rig.fake().code_now(), rig.fake().image().to_vec());
    let job_place = rig.engine.step.is_some();
    for (offset, (now, own)) in now.iter().zip(&image).enumerate() {
        let at = VirtAddr::new(u64::from(CODE) + offset as u64);
        let ours = list.breakpoints.iter().any(|known| known.0 == at);
        assert!(now == own || (*now == 0xcc && (ours || job_place)), "an INT3 at {at} that nobody wants");
        assert!(!ours || *now == 0xcc, "the breakpoint at {at} is not armed");
    }
    if rig.engine.phase == State::Stopped {
        for thread in rig.fake().threads() {
            let pc = rig.fake().pc(thread);
            assert!(rig.fake().is_held(thread), "thread {thread} runs in a stopped program");
            assert!(!rig.fake().in_scratch(pc), "thread {thread} stands in scratch memory");
            for inside in ["work", "round"].map(|name| rig.fake().label(name).wrapping_add(1)) {
                assert_ne!(pc, inside, "thread {thread} stands behind an INT3, inside an instruction");
            }
        }
    }
}

fn program() -> Asm {
    workers(THREADS, ROUNDS)
}

fn keeps_the_invariants(seed: u64, with_scratch: bool, moves: &[Move]) {
    let mut rig = Rig::new(program(), seed, with_scratch);
    rig.count_at("work_end");
    let mut reattached = 0;
    for next in moves {
        play(&mut rig, next);
        reattached += u64::from(matches!(next, Move::Reattach));
        check(&mut rig);
    }
    for place in PLACES {
        drop(rig.ask(RemoveBreakpoint { addr: addr(place) }));
    }
    drop(rig.ask(wire::commands::RemoveWatchpoint { slot: Some(0), addr: None }));
    if rig.engine.phase == State::Stopped || rig.engine.phase == State::Running {
        for _ in 0..200 {
            if rig.go().1.state == State::Exited {
                break;
            }
        }
    }
    assert_eq!(rig.engine.phase, State::Exited);
    let rounds = u64::from(THREADS * ROUNDS);
    assert_eq!(u64::from(rig.fake().data(WORK)), rounds, "the program did what it does without us");
    assert_eq!(rig.fake().data(DONE), THREADS);
    assert_eq!(rig.fake().data(0x20), rig.fake().raised, "every signal was handled, once");
    // A thread let go between its hit and the instruction is met again by the next attach: one more for each thread.
    let most = rounds + reattached * u64::from(THREADS);
    assert!((rounds..=most).contains(&rig.hits("work_end")), "{} hits of {rounds}", rig.hits("work_end"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_keeps_the_invariants(
        seed: u64,
        with_scratch: bool,
        moves in prop::collection::vec(any_move(), 1..60),
    ) {
        keeps_the_invariants(seed, with_scratch, &moves);
    }
}

#[test]
fn sequences_that_failed_once() {
    use Move::{Burst, Go, Out, Over, Pause, Poll, Reattach, Rewrite, Set, Signal, Step, Watch};
    // A signal was kept back until the stepped thread had ended.
    let moves =
        [Go, Poll(8), Poll(6), Poll(10), Poll(15), Poll(7), Poll(4), Set(1, true), Watch(WatchMode::Write), Pause];
    let moves: Vec<Move> = moves.into_iter().chain([Step(1), Signal(1), Step(4)]).collect();
    keeps_the_invariants(17_886_063_699_977_534_116, false, &moves);
    // The stepped thread ended while the others were brought to a hold: one of them stood behind the INT3 it had run into.
    let first = [Step(4), Signal(1), Set(0, false), Go, Reattach, Out, Poll(15), Rewrite, Step(1), Poll(5), Poll(8)];
    let then = [Pause, Go, Burst(1, 1), Poll(18), Burst(1, 1), Poll(16), Watch(WatchMode::Write), Pause, Over];
    let last = [Watch(WatchMode::Read), Out, Poll(18), Poll(16), Signal(1), Poll(11)];
    let moves: Vec<Move> = first.into_iter().chain(then).chain(last).collect();
    keeps_the_invariants(7_786_519_191_290_706_032, false, &moves);
}
