//! A platform without an operating system: threads of a tiny processor on a few kilobytes of memory, scheduled by a seed or
//! by a script, so that every race of the engine can be played and played again.

pub mod asm;
mod cpu;
mod memory;

use super::{
    Event, Exit, LaunchSpec, Module, Pending, Platform, PlatformError, ProcessId, Run, Started, Symbol, ThreadId, Waker,
};
use crate::registers::{DebugRegisters, Registers};
use base::VirtAddr;
use code::x86::Bitness;
use cpu::{Access, Outcome};
pub use memory::Memory;
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The process.
pub const PID: u32 = 1;
/// Where the code of the fake program lies.
pub const CODE: u32 = 0x40_0000;
/// Its writable data, one page.
pub const DATA: u32 = 0x50_0000;
/// The stack of thread n ends at `STACKS + n * 0x1000`.
const STACKS: u32 = 0x60_0000;
/// Where scratch memory is mapped.
const SCRATCH: u64 = 0x7000_0000;
/// A library that the program may load.
pub const LIBRARY: u32 = 0x66_0000;
/// Instructions of all threads in one wait.
const QUANTUM: usize = 400;

/// System calls of the fake, by the number in eax.
pub const SYS_EXIT: u32 = 1;
pub const SYS_FORK: u32 = 2;
/// Waits until the word at the start of the data is not 0.
pub const SYS_WAIT: u32 = 7;
pub const SYS_EXEC: u32 = 11;
/// A new thread begins at the address in ebx.
pub const SYS_CLONE: u32 = 120;
pub const SYS_VFORK: u32 = 190;
/// Maps the library.
pub const SYS_LOAD: u32 = 200;
/// Ends the process with the code in ebx.
pub const SYS_EXIT_GROUP: u32 = 252;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    pub name: &'static str,
    pub number: u32,
    /// The program has a handler for it.
    pub handled: bool,
}

pub const SIGALRM: Signal = Signal { name: "SIGALRM", number: 14, handled: true };
pub const SIGTERM: Signal = Signal { name: "SIGTERM", number: 15, handled: false };
const SIGTRAP: Signal = Signal { name: "SIGTRAP", number: 5, handled: true };

#[derive(Clone, Debug)]
struct Thread {
    registers: Registers,
    debug: DebugRegisters,
    held: bool,
    step: bool,
    /// Its last instruction was a `popf`, stepped.
    stepped_popf: bool,
    /// Signals on their way to it.
    queue: VecDeque<Signal>,
    /// The one that it is held at.
    current: Option<Signal>,
    kept: Vec<Signal>,
    /// The registers at its last fault.
    at_fault: Option<Registers>,
    /// What signal handlers return to.
    frames: Vec<Registers>,
    waiting: bool,
}

/// What is seen of a child.
#[derive(Clone, Debug)]
pub struct Child {
    pub memory: Memory,
    pub released: bool,
}

/// The platform, and the world in it. Fields are open to tests.
pub struct Fake {
    pub memory: Memory,
    threads: BTreeMap<ThreadId, Thread>,
    events: VecDeque<Event>,
    pub labels: BTreeMap<String, u32>,
    code: Vec<u8>,
    /// Handler of all handled signals.
    handler: Option<u32>,
    /// Handlers of faults get the registers of that moment, as on Windows.
    pub faults_are_frozen: bool,
    random: u64,
    /// Threads to run next, one instruction each.
    pub script: VecDeque<ThreadId>,
    /// A thread that gets no time from the scheduler.
    pub starved: Option<ThreadId>,
    next_thread: ThreadId,
    with_scratch: bool,
    scratch: Vec<u64>,
    pub exited: Option<Exit>,
    pub children: BTreeMap<u32, Child>,
    /// A child that shares the memory, running.
    shared: Option<(u32, Registers)>,
    vforking: Option<(u32, ThreadId)>,
    /// A child that shares the memory ran into an INT3.
    pub child_trapped: bool,
    library_loaded: bool,
    /// What `exec` executes.
    pub second: Vec<u8>,
    pub detached: bool,
    /// Signals that threads have been held at.
    pub raised: u32,
    attached: bool,
    pub instructions: u64,
}

impl Fake {
    /// A program of the given code, with one thread at its start. The label `handler`, if there is one, handles signals.
    pub fn new(code: asm::Asm, seed: u64, with_scratch: bool) -> Self {
        let (code, labels) = code.finish();
        let mut memory = Memory::default();
        memory.map(CODE.into(), code.clone());
        memory.map(DATA.into(), vec![0; 0x1000]);
        memory.map(STACKS.into(), vec![0; 0x4_0000]);
        let handler = labels.get("handler").copied();
        let mut fake = Self {
            memory,
            threads: BTreeMap::new(),
            events: VecDeque::new(),
            labels,
            code,
            handler,
            faults_are_frozen: false,
            random: seed | 1,
            script: VecDeque::new(),
            starved: None,
            next_thread: PID,
            with_scratch,
            scratch: Vec::new(),
            exited: None,
            children: BTreeMap::new(),
            shared: None,
            vforking: None,
            child_trapped: false,
            library_loaded: false,
            second: vec![0x90, 0xeb, 0xfd],
            detached: false,
            raised: 0,
            attached: false,
            instructions: 0,
        };
        fake.spawn(CODE);
        fake
    }

    pub fn label(&self, name: &str) -> VirtAddr {
        VirtAddr::new(self.labels[name].into())
    }

    /// The code as it was before anybody touched it.
    pub fn image(&self) -> &[u8] {
        &self.code
    }

    /// The code as it stands in memory.
    pub fn code_now(&self) -> Vec<u8> {
        self.memory.read(CODE.into(), self.code.len())
    }

    /// A word of the data.
    pub fn data(&self, offset: u32) -> u32 {
        self.memory.word(u64::from(DATA + offset))
    }

    /// The program changes a byte of its own memory, the code included.
    pub fn poke(&mut self, address: u64, value: u8) {
        assert!(self.memory.set(address, value), "nothing is mapped at {address:#x}");
    }

    pub fn post(&mut self, thread: ThreadId, signal: Signal) {
        if let Some(thread) = self.threads.get_mut(&thread) {
            thread.queue.push_back(signal);
        }
    }

    pub fn pc(&self, thread: ThreadId) -> VirtAddr {
        self.threads[&thread].registers.pc
    }

    pub fn is_held(&self, thread: ThreadId) -> bool {
        self.threads.get(&thread).is_some_and(|thread| thread.held)
    }

    pub fn debug_of(&self, thread: ThreadId) -> DebugRegisters {
        self.threads[&thread].debug
    }

    /// Scratch memory that is mapped.
    pub fn scratch_regions(&self) -> usize {
        self.scratch.len()
    }

    pub fn in_scratch(&self, pc: VirtAddr) -> bool {
        pc.get() >= SCRATCH
    }

    /// Runs one thread until it is held or has executed so many instructions.
    pub fn run_thread(&mut self, thread: ThreadId, instructions: usize) {
        for _ in 0..instructions {
            if !self.can_run(thread) {
                break;
            }
            self.turn(thread);
        }
    }

    /// Runs everything, without a debugger, until the program has ended.
    pub fn run_to_end(&mut self) {
        for thread in self.threads.values_mut() {
            thread.held = false;
        }
        for _ in 0..2_000_000 {
            if self.exited.is_some() {
                return;
            }
            if let Some(event) = self.events.pop_front() {
                self.let_event_go(&event);
            } else {
                self.run_somebody();
            }
        }
        panic!("the program does not end");
    }

    fn let_event_go(&mut self, event: &Event) {
        match event {
            Event::Forked { child, shares_memory: true, .. } => {
                self.run_shared_child(*child).unwrap();
            }
            Event::Int3 { .. } => panic!("an INT3 without a debugger"),
            _ => {}
        }
        let threads: Vec<ThreadId> = self.threads.keys().copied().collect();
        for thread in threads {
            if self.is_held(thread) && self.vforking.is_none_or(|(_, parent)| parent != thread) {
                self.resume(thread, Run::Free, Pending::Deliver).unwrap();
            }
        }
    }

    fn spawn(&mut self, pc: u32) -> ThreadId {
        let number = self.next_thread;
        self.next_thread += 1;
        let mut registers = Registers::zeroed(Bitness::Bits32, VirtAddr::new(pc.into()));
        registers.set_sp(u64::from(STACKS + number * 0x1000) - 16);
        let thread = Thread {
            registers,
            debug: DebugRegisters::default(),
            held: true,
            step: false,
            stepped_popf: false,
            queue: VecDeque::new(),
            current: None,
            kept: Vec::new(),
            at_fault: None,
            frames: Vec::new(),
            waiting: false,
        };
        self.threads.insert(number, thread);
        number
    }

    /// xorshift64: any sequence that looks like chance and is the same every time.
    fn chance(&mut self, below: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 16) as usize % below.max(1)
    }

    fn can_run(&self, thread: ThreadId) -> bool {
        let blocked = |thread: &Thread| thread.waiting && self.data(0) == 0 && thread.queue.is_empty();
        self.exited.is_none()
            && self.starved != Some(thread)
            && self.threads.get(&thread).is_some_and(|thread| !thread.held && !blocked(thread))
    }

    /// One turn of some thread; false when none can run.
    fn run_somebody(&mut self) -> bool {
        if let Some(thread) = self.script.pop_front() {
            if self.can_run(thread) {
                self.turn(thread);
            }
            return true;
        }
        if self.shared.is_some() && (self.chance(2) == 0 || self.threads.values().all(|thread| thread.held)) {
            self.child_turn();
            return true;
        }
        let ready: Vec<ThreadId> = self.threads.keys().copied().filter(|thread| self.can_run(*thread)).collect();
        if ready.is_empty() {
            return self.shared.is_some();
        }
        let thread = ready[self.chance(ready.len())];
        self.turn(thread);
        true
    }

    fn child_turn(&mut self) {
        let Some((child, mut registers)) = self.shared.take() else { return };
        match cpu::execute(&mut registers, &mut self.memory).0 {
            Outcome::System(SYS_EXEC) => {
                self.vforking = None;
                self.events.push_back(Event::SharedChildGone { child });
                return;
            }
            Outcome::Int3 => self.child_trapped = true,
            _ => {}
        }
        self.shared = Some((child, registers));
    }

    /// A thread takes a signal, or executes one instruction.
    fn turn(&mut self, number: ThreadId) {
        let Some(thread) = self.threads.get_mut(&number) else { return };
        if let Some(signal) = thread.queue.pop_front() {
            thread.current = Some(signal);
            self.raised += 1;
            return self.exception(number, signal, None, false);
        }
        if thread.waiting {
            thread.waiting = false;
            let step = std::mem::take(&mut thread.step);
            if step {
                self.report(number, Event::Debug { thread: number, single_step: true, slots: 0 });
            }
            return;
        }
        self.instructions += 1;
        // A step is made with the trap flag, which an instruction can see and a debugger is not shown.
        let trap_flag = if thread.step { 0x100 } else { 0 };
        thread.registers.flags |= trap_flag;
        let opcode = self.memory.get(thread.registers.pc.get());
        let (outcome, accesses) = cpu::execute(&mut thread.registers, &mut self.memory);
        // As Linux does, which takes the flag of the step after that of a `popf` for the program's own.
        if !std::mem::replace(&mut thread.stepped_popf, thread.step && opcode == Some(0x9d)) {
            thread.registers.flags &= !trap_flag;
        }
        let slots = fired(&thread.debug, &accesses);
        let step = std::mem::take(&mut thread.step);
        match outcome {
            Outcome::Int3 => {
                let at = thread.registers.pc.wrapping_sub(1);
                thread.current = Some(SIGTRAP);
                self.report(number, Event::Int3 { thread: number, at });
            }
            Outcome::Fault { name, number: code, address } => {
                let signal = Signal { name, number: code, handled: self.handler.is_some() };
                if let Some(thread) = self.threads.get_mut(&number) {
                    thread.current = Some(signal);
                    thread.at_fault = Some(thread.registers);
                }
                self.exception(number, signal, address, true);
            }
            Outcome::SignalReturn => {
                let frame = thread.frames.pop().expect("a handler returns to something");
                thread.registers = frame;
                if step {
                    self.report(number, Event::Debug { thread: number, single_step: true, slots: 0 });
                }
            }
            Outcome::System(call) => self.system(number, call, step),
            Outcome::Next if step || slots != 0 => {
                self.report(number, Event::Debug { thread: number, single_step: step, slots });
            }
            Outcome::Next => {}
        }
    }

    fn report(&mut self, thread: ThreadId, event: Event) {
        if let Some(thread) = self.threads.get_mut(&thread) {
            thread.held = true;
        }
        self.events.push_back(event);
    }

    fn exception(&mut self, thread: ThreadId, signal: Signal, address: Option<u64>, synchronous: bool) {
        let event = Event::Exception {
            thread,
            name: signal.name.to_owned(),
            number: signal.number,
            address: address.map(VirtAddr::new),
            synchronous,
            fatal: !signal.handled || self.handler.is_none(),
        };
        self.report(thread, event);
    }

    fn system(&mut self, number: ThreadId, call: u32, step: bool) {
        let Some(thread) = self.threads.get_mut(&number) else { return };
        match call {
            SYS_WAIT => {
                thread.waiting = true;
                thread.step = step;
                return;
            }
            SYS_EXIT => {
                self.threads.remove(&number);
                self.events.push_back(Event::ThreadExited { thread: number });
                if self.threads.is_empty() {
                    self.end(Exit::Code(0));
                }
                return;
            }
            SYS_EXIT_GROUP => {
                let code = thread.registers.general[3] as i64;
                return self.end(Exit::Code(code));
            }
            SYS_CLONE => {
                let start = thread.registers.general[3] as u32;
                let born = self.spawn(start);
                self.events.push_back(Event::ThreadStarted { thread: born });
            }
            SYS_FORK => {
                let child = 1000 + self.children.len() as u32;
                self.children.insert(child, Child { memory: self.memory.clone(), released: false });
                return self.report(number, Event::Forked { thread: number, child, shares_memory: false });
            }
            SYS_VFORK => {
                let child = 1000 + self.children.len() as u32;
                self.children.insert(child, Child { memory: Memory::default(), released: false });
                self.vforking = Some((child, number));
                return self.report(number, Event::Forked { thread: number, child, shares_memory: true });
            }
            SYS_EXEC => {
                self.threads.retain(|thread, _| *thread == number);
                self.events.clear();
                self.memory = Memory::default();
                self.memory.map(CODE.into(), self.second.clone());
                self.memory.map(DATA.into(), vec![0; 0x1000]);
                self.memory.map(STACKS.into(), vec![0; 0x4_0000]);
                self.scratch.clear();
                let thread = self.threads.get_mut(&number).expect("it executes");
                thread.registers.pc = VirtAddr::new(CODE.into());
                thread.debug = DebugRegisters::default();
                let path = PathBuf::from("/fake/second");
                let event = Event::Executed { thread: number, path, bitness: Bitness::Bits32 };
                return self.report(number, event);
            }
            SYS_LOAD => {
                self.library_loaded = true;
                self.memory.map(LIBRARY.into(), vec![0x90, 0x90, 0xc3]);
                return self.report(number, Event::ModulesChanged { thread: number });
            }
            other => panic!("the fake has no system call {other}"),
        }
        if step {
            self.report(number, Event::Debug { thread: number, single_step: true, slots: 0 });
        }
    }

    fn end(&mut self, exit: Exit) {
        self.threads.clear();
        self.events.clear();
        self.exited = Some(exit.clone());
        self.events.push_back(Event::ProcessExited(exit));
    }

    fn thread(&self, number: ThreadId) -> Result<&Thread, PlatformError> {
        let thread = self.threads.get(&number).ok_or(PlatformError::NoThread(number))?;
        if thread.held { Ok(thread) } else { Err(PlatformError::NotHeld(number)) }
    }

    fn held_mut(&mut self, number: ThreadId) -> Result<&mut Thread, PlatformError> {
        let thread = self.threads.get_mut(&number).ok_or(PlatformError::NoThread(number))?;
        if thread.held { Ok(thread) } else { Err(PlatformError::NotHeld(number)) }
    }
}

/// Which data breakpoints an instruction set off, as DR7 has them.
fn fired(debug: &DebugRegisters, accesses: &[Access]) -> u8 {
    let mut slots = 0;
    for slot in 0..4 {
        if debug.dr7 >> (slot * 2) & 1 == 0 {
            continue;
        }
        let (watched, kind) = (debug.address[slot], debug.dr7 >> (16 + slot * 4) & 3);
        let size = [1, 2, 8, 4][(debug.dr7 >> (18 + slot * 4) & 3) as usize];
        let hit = accesses.iter().any(|access| {
            (access.write || kind == 3) && access.address < watched + size && watched < access.address + access.size
        });
        if hit {
            slots |= 1 << slot;
        }
    }
    slots
}

impl Platform for Fake {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn archs(&self) -> &'static [Bitness] {
        &[Bitness::Bits32]
    }

    fn waker(&self) -> Waker {
        Arc::new(|| {})
    }

    fn find_processes(&self, name: &str) -> Result<Vec<ProcessId>, PlatformError> {
        let running = self.attached && name == "game";
        Ok(if running { vec![ProcessId { pid: PID, path: "/fake/game".into() }] } else { Vec::new() })
    }

    fn launch(&mut self, _: &LaunchSpec) -> Result<Started, PlatformError> {
        self.attach(PID)
    }

    fn attach(&mut self, pid: u32) -> Result<Started, PlatformError> {
        if pid != PID {
            return Err(PlatformError::NoProcess(pid));
        }
        self.attached = true;
        self.detached = false;
        for thread in self.threads.values_mut() {
            thread.held = true;
        }
        let thread = *self.threads.keys().next().ok_or(PlatformError::NoProcess(pid))?;
        Ok(Started { pid, path: "/fake/game".into(), bitness: Bitness::Bits32, thread })
    }

    fn detach(&mut self) -> Result<(), PlatformError> {
        self.detached = true;
        self.events.retain(|event| matches!(event, Event::ProcessExited(_)));
        let threads: Vec<ThreadId> = self.threads.keys().copied().collect();
        for thread in threads {
            if self.is_held(thread) {
                assert!(self.pc(thread).get() < SCRATCH, "a thread is left in scratch memory");
                let trap = self.threads[&thread].current == Some(SIGTRAP);
                if trap && self.memory.get(self.pc(thread).get() - 1) != Some(0xcc) {
                    self.held_mut(thread)?.current = None;
                }
                self.resume(thread, Run::Free, Pending::Deliver)?;
            }
        }
        Ok(())
    }

    fn kill(&mut self) -> Result<(), PlatformError> {
        self.end(Exit::Signal("SIGKILL".to_owned()));
        Ok(())
    }

    fn wait(&mut self, _: Duration) -> Result<Option<Event>, PlatformError> {
        for _ in 0..QUANTUM {
            if !self.events.is_empty() {
                let place = self.chance(self.events.len());
                let place = if self.script.is_empty() { place } else { 0 };
                // An exit is the last event there is, and what concerns one thread keeps its order.
                let event = self.events.remove(place);
                return Ok(event);
            }
            if self.detached || !self.run_somebody() {
                break;
            }
        }
        Ok(None)
    }

    fn hold_all(&mut self, _: Duration) -> Result<Vec<Event>, PlatformError> {
        // Threads run on for a moment before they halt.
        let running: Vec<ThreadId> = self.threads.keys().copied().filter(|thread| !self.is_held(*thread)).collect();
        for thread in running {
            let more = self.chance(4);
            self.run_thread(thread, more);
            if let Some(thread) = self.threads.get_mut(&thread) {
                thread.held = true;
                thread.step = false;
            }
        }
        Ok(self.events.drain(..).collect())
    }

    fn resume(&mut self, number: ThreadId, run: Run, pending: Pending) -> Result<(), PlatformError> {
        let (handler, frozen) = (self.handler, self.faults_are_frozen);
        let thread = self.held_mut(number)?;
        let at_fault = thread.at_fault.take().filter(|_| frozen && pending == Pending::Deliver);
        thread.registers = at_fault.unwrap_or(thread.registers);
        let current = thread.current.take();
        thread.held = false;
        thread.step = run == Run::Step;
        let mut deliver = Vec::new();
        match pending {
            Pending::Keep => thread.kept.extend(current),
            Pending::Discard => {}
            Pending::Deliver => {
                deliver.extend(current);
                deliver.append(&mut thread.kept);
            }
        }
        for signal in &deliver {
            match handler.filter(|_| signal.handled) {
                Some(handler) => {
                    assert!(thread.registers.pc.get() < SCRATCH, "a handler sees a program counter in scratch memory");
                    thread.waiting = false;
                    thread.frames.push(thread.registers);
                    thread.registers.pc = VirtAddr::new(handler.into());
                }
                None => {
                    self.end(Exit::Signal(signal.name.to_owned()));
                    return Ok(());
                }
            }
        }
        if !deliver.is_empty() && run == Run::Step {
            thread.step = false;
            self.report(number, Event::Debug { thread: number, single_step: true, slots: 0 });
        }
        Ok(())
    }

    fn handlers_see_set_registers(&self) -> bool {
        !self.faults_are_frozen
    }

    fn threads(&self) -> Vec<ThreadId> {
        self.threads.keys().copied().collect()
    }

    fn may_execute(&self, address: VirtAddr) -> Option<bool> {
        Some(!(u64::from(DATA)..u64::from(DATA) + 0x1000).contains(&address.get()))
    }

    fn thread_name(&self, _: ThreadId) -> Option<String> {
        None
    }

    fn read_memory(&self, address: VirtAddr, buffer: &mut [u8]) -> Result<usize, PlatformError> {
        let bytes = self.memory.read(address.get(), buffer.len());
        buffer[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }

    fn write_memory(&mut self, address: VirtAddr, bytes: &[u8]) -> Result<(), PlatformError> {
        let usable = self.memory.read(address.get(), bytes.len()).len();
        if usable < bytes.len() {
            return Err(PlatformError::Unmapped { usable: usable as u64 });
        }
        for (index, byte) in bytes.iter().enumerate() {
            self.memory.set(address.get() + index as u64, *byte);
        }
        Ok(())
    }

    fn registers(&self, thread: ThreadId) -> Result<Registers, PlatformError> {
        self.thread(thread).map(|thread| thread.registers)
    }

    fn set_registers(&mut self, thread: ThreadId, registers: &Registers) -> Result<(), PlatformError> {
        self.held_mut(thread)?.registers = *registers;
        Ok(())
    }

    fn set_pc(&mut self, thread: ThreadId, pc: VirtAddr) -> Result<(), PlatformError> {
        self.held_mut(thread)?.registers.pc = pc;
        Ok(())
    }

    fn fxsave(&self, thread: ThreadId) -> Result<Vec<u8>, PlatformError> {
        self.thread(thread)?;
        Ok((0..=255).chain(0..=255).collect())
    }

    fn debug_registers(&self, thread: ThreadId) -> Result<DebugRegisters, PlatformError> {
        self.thread(thread).map(|thread| thread.debug)
    }

    fn set_debug_registers(&mut self, thread: ThreadId, registers: &DebugRegisters) -> Result<(), PlatformError> {
        self.held_mut(thread)?.debug = *registers;
        Ok(())
    }

    fn modules(&self) -> Result<Vec<Module>, PlatformError> {
        let module = |name: &str, base: u32, main: bool| Module {
            name: name.to_owned(),
            path: PathBuf::from(format!("/fake/{name}")),
            base: VirtAddr::new(base.into()),
            size: 0x1000,
            bias: 0,
            main,
            host: false,
        };
        let mut modules = vec![module("game", CODE, true)];
        if self.library_loaded {
            modules.push(module("plugin.so.1", LIBRARY, false));
        }
        Ok(modules)
    }

    fn symbols(&self, module: &Module) -> Result<Vec<Symbol>, PlatformError> {
        let symbol = |name: &str, address: u32| Symbol {
            name: name.to_owned(),
            address: VirtAddr::new(address.into()),
            size: 0,
            function: true,
        };
        Ok(if module.main {
            self.labels.iter().map(|(name, address)| symbol(name, *address)).collect()
        } else {
            vec![symbol("plugin_start", LIBRARY)]
        })
    }

    fn entry_point(&self) -> Result<VirtAddr, PlatformError> {
        Ok(VirtAddr::new(CODE.into()))
    }

    fn allocate_code(&mut self, _: VirtAddr, length: u64) -> Result<VirtAddr, PlatformError> {
        if !self.with_scratch {
            return Err(PlatformError::Unsupported("executable scratch memory"));
        }
        assert!(self.threads.values().all(|thread| thread.held), "scratch memory is mapped while all threads hold");
        let base = self.scratch.last().map_or(SCRATCH, |last| last + 0x10_0000);
        self.memory.map(base, vec![0; length as usize]);
        self.scratch.push(base);
        Ok(VirtAddr::new(base))
    }

    fn free_code(&mut self, address: VirtAddr, _: u64) -> Result<(), PlatformError> {
        assert!(self.threads.values().all(|thread| thread.held), "scratch memory is unmapped while all threads hold");
        self.memory.unmap(address.get());
        self.scratch.retain(|base| *base != address.get());
        Ok(())
    }

    fn release_fork(&mut self, child: u32, original: &[(VirtAddr, Vec<u8>)]) -> Result<(), PlatformError> {
        let child = self.children.get_mut(&child).ok_or(PlatformError::NoProcess(child))?;
        for (address, bytes) in original {
            for (index, byte) in bytes.iter().enumerate() {
                child.memory.set(address.get() + index as u64, *byte);
            }
        }
        child.released = true;
        Ok(())
    }

    fn run_shared_child(&mut self, child: u32) -> Result<(), PlatformError> {
        let (_, parent) = self.vforking.filter(|(known, _)| *known == child).ok_or(PlatformError::NoProcess(child))?;
        let mut registers = self.threads[&parent].registers;
        registers.general[0] = 0;
        registers.pc = VirtAddr::new(self.labels["child"].into());
        self.shared = Some((child, registers));
        Ok(())
    }
}
