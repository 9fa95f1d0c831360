//! Tests of the engine on the fake platform: programs whose arithmetic says how often each instruction is executed, under
//! schedules that a seed or a script decides.

mod commands;
mod property;
mod races;

use super::{Engine, EngineOptions, OnExit, SymbolMap};
use crate::platform::fake::asm::{Asm, EBX, ESI};
use crate::platform::fake::{DATA, Fake, PID, SYS_CLONE, SYS_EXIT};
use crate::reply::{Outcome, ReplyTo};
use base::VirtAddr;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;
use wire::commands::{
    Attach, ContinueExecution, Detach, ListBreakpoints, Pause, ReadMemory, RemoveBreakpoint, SetBreakpoint,
    SetWatchpoint, Step, StepMode, WatchMode,
};
use wire::{AddrExpr, ErrorCode, Live, Reply, Request, State, StopReport};

/// The word that every execution of `work` adds 1 to.
pub const WORK: u32 = 8;
/// The word that every thread adds 1 to when it is done.
pub const DONE: u32 = 0x10;

/// An engine with a fake program, attached to and stopped.
pub struct Rig {
    pub engine: Engine<Fake>,
}

pub fn options() -> EngineOptions {
    EngineOptions {
        on_exit: OnExit::Detach,
        launch_roots: Vec::new(),
        orphan_after: Duration::from_secs(300),
        out_of_line: true,
        symbols: SymbolMap::default(),
    }
}

impl Rig {
    pub fn new(code: Asm, seed: u64, with_scratch: bool) -> Self {
        let mut rig = Self { engine: Engine::new(Fake::new(code, seed, with_scratch), options()) };
        rig.engine.clients_changed(1);
        rig.ok(Attach { pid: Some(PID), name: None });
        rig
    }

    pub fn fake(&mut self) -> &mut Fake {
        &mut self.engine.platform
    }

    /// Starts a command; the answer comes when it comes.
    pub fn start(&mut self, request: impl Into<Request>) -> Receiver<Outcome> {
        let (sender, answer) = mpsc::channel();
        self.engine.handle(request.into(), ReplyTo::new(move |outcome| drop(sender.send(outcome))));
        answer
    }

    /// Polls until a command is answered.
    pub fn finish(&mut self, answer: &Receiver<Outcome>) -> Outcome {
        for _ in 0..200_000 {
            if let Ok(outcome) = answer.try_recv() {
                return outcome;
            }
            self.engine.poll(Duration::ZERO);
        }
        panic!("a command is not answered");
    }

    pub fn ask(&mut self, request: impl Into<Request>) -> Outcome {
        let answer = self.start(request);
        self.finish(&answer)
    }

    pub fn ok(&mut self, request: impl Into<Request>) -> Reply {
        self.ask(request).unwrap()
    }

    pub fn refused(&mut self, request: impl Into<Request>) -> ErrorCode {
        self.ask(request).unwrap_err().code
    }

    /// Lets the program run to its next stop or its end.
    pub fn go(&mut self) -> (Option<StopReport>, Live) {
        let Reply::Stop(reply) = self.ok(ContinueExecution { timeout: 300.0 }) else { panic!() };
        assert!(!reply.timed_out);
        (reply.stop, reply.live)
    }

    /// As [`Rig::go`], to its end.
    pub fn go_to_end(&mut self) {
        let (_, live) = self.go();
        assert_eq!((live.state, live.reason.as_deref()), (State::Exited, Some("exited")));
    }

    pub fn step(&mut self, mode: StepMode, count: u32) -> (u32, StopReport, Live) {
        let Reply::Step(reply) = self.ok(Step { mode, count: Some(count), ..Step::default() }) else { panic!() };
        (reply.steps, reply.stop.unwrap_or_default(), reply.live)
    }

    /// Waits until a started command is answered with a stop.
    pub fn stop_of(&mut self, answer: &Receiver<Outcome>) -> (StopReport, Live) {
        let Reply::Stop(reply) = self.finish(answer).unwrap() else { panic!() };
        (reply.stop.unwrap(), reply.live)
    }

    /// Starts to run without polling.
    pub fn run(&mut self) -> Receiver<Outcome> {
        self.start(ContinueExecution { timeout: 300.0 })
    }

    pub fn hits(&mut self, spec: &str) -> u64 {
        let Reply::Breakpoints(reply) = self.ok(ListBreakpoints {}) else { panic!() };
        reply.list.iter().find(|breakpoint| breakpoint.spec == spec).expect(spec).hits
    }

    /// A breakpoint that only counts.
    pub fn count_at(&mut self, spec: &str) {
        self.ok(SetBreakpoint { ignore_count: Some(u64::MAX), ..breakpoint(spec) });
    }

    pub fn break_at(&mut self, spec: &str) -> VirtAddr {
        let Reply::Breakpoint(reply) = self.ok(breakpoint(spec)) else { panic!() };
        reply.breakpoint.addr.expect("planted").0
    }

    pub fn remove(&mut self, spec: &str) {
        self.ok(RemoveBreakpoint { addr: addr(spec) });
    }

    pub fn detach(&mut self) {
        self.ok(Detach {});
    }

    pub fn pause(&mut self) -> Reply {
        self.ok(Pause {})
    }

    /// The code as clients see it.
    pub fn seen(&mut self) -> Vec<u8> {
        let length = self.fake().image().len() as u64;
        let at = AddrExpr(format!("0x{:x}", crate::platform::fake::CODE));
        let Reply::Memory(reply) = self.ok(ReadMemory { addr: at, length }) else { panic!() };
        reply.data.0
    }

    /// Nothing of ours is left anywhere.
    pub fn assert_clean(&mut self) {
        let fake = self.fake();
        assert_eq!(fake.code_now(), fake.image());
        assert_eq!(fake.scratch_regions(), 0);
        for thread in crate::platform::Platform::threads(fake) {
            assert_eq!(fake.debug_of(thread).dr7, 0);
            let pc = fake.pc(thread);
            assert!(!fake.in_scratch(pc));
        }
    }
}

pub fn addr(text: &str) -> AddrExpr {
    AddrExpr(text.to_owned())
}

pub fn breakpoint(spec: &str) -> SetBreakpoint {
    SetBreakpoint { addr: addr(spec), condition: None, ignore_count: None, one_shot: false }
}

pub fn watch(offset: u32, mode: WatchMode) -> SetWatchpoint {
    SetWatchpoint {
        addr: AddrExpr(format!("0x{:x}", DATA + offset)),
        size: None,
        mode,
        condition: None,
        ignore_count: None,
    }
}

/// `threads` threads that each call `work` `rounds` times.
pub fn workers(threads: u32, rounds: u32) -> Asm {
    let mut asm = Asm::at(crate::platform::fake::CODE);
    asm.jmp("main");
    asm.label("work").inc_mem(DATA + WORK).label("work_end").ret();
    asm.label("worker").mov(ESI, rounds);
    asm.label("round").call("work").label("back").dec(ESI).jnz("round");
    asm.label("over").inc_mem(DATA + DONE).sys(SYS_EXIT);
    asm.label("main");
    let worker = asm.address("worker");
    for _ in 1..threads {
        asm.mov(EBX, worker).sys(SYS_CLONE);
    }
    asm.jmp("worker");
    asm.label("handler").inc_mem(DATA + 0x20).sigreturn();
    asm
}

/// Both ways of passing a breakpoint, under several schedules.
pub fn each_way(seeds: u64, test: impl Fn(u64, bool)) {
    for with_scratch in [true, false] {
        for seed in 1..=seeds {
            test(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), with_scratch);
        }
    }
}
