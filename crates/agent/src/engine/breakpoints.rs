//! Breakpoints of clients: the table, the verdict at each hit, and the commands.

use super::address::Unresolved;
use super::condition::{self, Compiled, Operand};
use super::sites::Owner;
use super::{Engine, State, refused};
use crate::platform::{Platform, ThreadId};
use crate::reply::Outcome;
use base::{VirtAddr, limits};
use wire::commands::{BreakpointInfo, BreakpointReply, BreakpointsReply, RemoveBreakpoint, SetBreakpoint};
use wire::{AgentError, Condition, ErrorCode, HexAddr, Reply, StopReport};

/// One breakpoint. It outlives the process it was set in.
#[derive(Debug)]
pub(super) struct Breakpoint {
    /// As the client wrote it.
    spec: String,
    /// Where it is planted; `None` while pending.
    pub(super) at: Option<VirtAddr>,
    /// The spec is a plain number, whose meaning ends with the process; `home` goes on.
    absolute: bool,
    /// Module and offset, once known.
    home: Option<(String, u64)>,
    condition: Option<Condition>,
    compiled: Option<Compiled>,
    hits: u64,
    ignore_count: u64,
    one_shot: bool,
}

/// What a hit means.
pub(super) enum Verdict {
    /// Nobody is to notice.
    Pass,
    /// The program stops.
    Stop {
        /// Why.
        reason: String,
        /// What it is about.
        report: Box<StopReport>,
    },
}

impl<P: Platform> Engine<P> {
    /// A thread is about to execute the instruction at `at`: the hit is counted, and judged.
    pub(super) fn judge_breakpoint(&mut self, thread: ThreadId, at: VirtAddr) -> Verdict {
        let Some(index) = self.breakpoints.iter().position(|breakpoint| breakpoint.at == Some(at)) else {
            return Verdict::Pass;
        };
        let Some(breakpoint) = self.breakpoints.get(index) else { return Verdict::Pass };
        if let Some(compiled) = &breakpoint.compiled {
            let Ok(mut registers) = self.platform.registers(thread) else { return Verdict::Pass };
            registers.pc = at;
            let (sites, platform) = (&self.sites, &self.platform);
            let read = |address: VirtAddr, bytes: &mut [u8]| {
                sites.read(platform, address, bytes).is_ok_and(|count| count == bytes.len())
            };
            match compiled.holds(&registers, &read) {
                Ok(true) => {}
                Ok(false) => return Verdict::Pass,
                Err(condition::Unreadable(address)) => {
                    let notes = vec![format!(
                        "the condition of the breakpoint at {at} reads {address}, which is not readable; \
                         the hit is not counted"
                    )];
                    let report = StopReport { hits: Some(breakpoint.hits), notes, ..StopReport::default() };
                    return Verdict::Stop { reason: format!("condition_unreadable@{at}"), report: Box::new(report) };
                }
            }
        }
        let Some(breakpoint) = self.breakpoints.get_mut(index) else { return Verdict::Pass };
        breakpoint.hits += 1;
        if breakpoint.ignore_count > 0 {
            breakpoint.ignore_count -= 1;
            return Verdict::Pass;
        }
        let mut report = StopReport { hits: Some(breakpoint.hits), ..StopReport::default() };
        if breakpoint.one_shot {
            report.notes.push("the breakpoint was one_shot and is removed".to_owned());
            self.remove_at(index);
        }
        Verdict::Stop { reason: format!("breakpoint@{at}"), report: Box::new(report) }
    }

    /// Takes a breakpoint out of the table and its INT3 out of the memory.
    fn remove_at(&mut self, index: usize) {
        if index >= self.breakpoints.len() {
            return;
        }
        let breakpoint = self.breakpoints.remove(index);
        if let Some(at) = breakpoint.at {
            self.unplant(at, Owner::User);
        }
    }

    /// Takes `owner` off a place in memory.
    pub(super) fn unplant(&mut self, at: VirtAddr, owner: Owner) {
        self.hold();
        self.settle();
        let result = self.sites.release(&mut self.platform, at, owner);
        self.tolerate(result, "taking a breakpoint out");
    }

    /// Tries to plant what is pending. Every thread is held.
    pub(super) fn resolve_pending(&mut self) {
        for index in 0..self.breakpoints.len() {
            let Some(breakpoint) = self.breakpoints.get(index).filter(|breakpoint| breakpoint.at.is_none()) else {
                continue;
            };
            let (spec, home, absolute) = (breakpoint.spec.clone(), breakpoint.home.clone(), breakpoint.absolute);
            let at = if absolute { home.and_then(|home| self.at_home(&home)) } else { self.resolve(&spec).ok() };
            let Some(at) = at.filter(|at| !self.breakpoints.iter().any(|other| other.at == Some(*at))) else {
                continue;
            };
            let condition = self.breakpoints.get(index).and_then(|breakpoint| breakpoint.condition.clone());
            let compiled = match condition.map(|condition| self.compile(&condition)).transpose() {
                Ok(compiled) => compiled,
                Err(error) => {
                    self.note(format!("the breakpoint `{spec}` stays pending: {}", error.message));
                    continue;
                }
            };
            if let Err(error) = self.plant(at, Owner::User) {
                self.note(format!("the breakpoint `{spec}` stays pending: {}", error.message));
                continue;
            }
            let home = self.home(at);
            if let Some(breakpoint) = self.breakpoints.get_mut(index) {
                breakpoint.at = Some(at);
                breakpoint.compiled = compiled;
                breakpoint.home = home;
            }
        }
    }

    /// Plants an INT3 with all threads held.
    pub(super) fn plant(&mut self, at: VirtAddr, owner: Owner) -> Result<(), AgentError> {
        self.hold();
        // The program would read the INT3 as its data.
        if owner == Owner::User && self.platform.may_execute(at) == Some(false) {
            return Err(AgentError::new(
                ErrorCode::InvalidParams,
                format!("{at} holds data, not code: the memory there is not executable"),
            )
            .hint("to learn who writes or reads it use set_watchpoint"));
        }
        let bitness = self.bitness();
        let with_slot = self.options.out_of_line && matches!(owner, Owner::User | Owner::Step);
        self.sites
            .plant(&mut self.platform, at, owner, bitness, with_slot)
            .map_err(|error| refused(error, &format!("planting a breakpoint at {at}")))
    }

    /// Checks a condition for the present program.
    pub(super) fn compile(&mut self, condition: &Condition) -> Result<Compiled, AgentError> {
        let mut operands = Vec::new();
        self.operands_of(condition, &mut operands, 0)?;
        let mut next = operands.into_iter();
        let mut resolve = |_: &str| {
            next.next().ok_or_else(|| AgentError::new(ErrorCode::Internal, "an address of the condition was lost"))
        };
        let (sites, platform) = (&self.sites, &self.platform);
        let read = |address: VirtAddr, length: usize| {
            let mut buffer = [0; 8];
            let window = buffer.get_mut(..length).unwrap_or_default();
            sites.read(platform, address, window).is_ok_and(|count| count == length)
        };
        condition::compile(condition, self.bitness(), &mut resolve, &read)
    }

    /// The address expressions of a condition, in the order in which compiling meets them.
    fn operands_of(&mut self, condition: &Condition, out: &mut Vec<Operand>, depth: usize) -> Result<(), AgentError> {
        if depth > limits::MAX_CONDITION_DEPTH || out.len() > limits::MAX_CONDITION_TERMS {
            // Compiling refuses it, and says why.
            return Ok(());
        }
        match condition {
            Condition::Register { .. } => Ok(()),
            Condition::Memory { memory, .. } => {
                out.push(self.operand(&memory.0, true).map_err(Unresolved::error)?);
                Ok(())
            }
            Condition::All(list) | Condition::Any(list) => {
                list.iter().try_for_each(|part| self.operands_of(part, out, depth + 1))
            }
        }
    }

    pub(super) fn set_breakpoint(&mut self, params: SetBreakpoint) -> Outcome {
        self.alive()?;
        let spec = params.addr.0.trim().to_owned();
        let absolute = spec.parse::<VirtAddr>().is_ok();
        let at = match self.resolve(&spec) {
            Ok(at) => Some(at),
            Err(Unresolved::Unknown(_)) => None,
            Err(Unresolved::Wrong(error)) => return Err(error),
        };
        if let Some(at) = at {
            self.must_be_mapped(at, "set_breakpoint")?;
        }
        let compiled = match &params.condition {
            None => None,
            Some(condition) => match self.compile(condition) {
                Ok(compiled) => Some(compiled),
                // The module it names may come together with that of the breakpoint.
                Err(error) if at.is_none() && error.code == ErrorCode::UnknownSymbol => None,
                Err(error) => return Err(error),
            },
        };
        let known = self.breakpoints.iter().position(|breakpoint| match at {
            Some(at) => breakpoint.at == Some(at),
            None => breakpoint.at.is_none() && breakpoint.spec == spec,
        });
        let index = match known {
            Some(index) => index,
            None => {
                if self.breakpoints.len() >= limits::MAX_BREAKPOINTS {
                    return Err(AgentError::new(
                        ErrorCode::LimitExceeded,
                        format!("{} breakpoints are set, which is the most there may be", limits::MAX_BREAKPOINTS),
                    )
                    .hint("remove one with remove_breakpoint")
                    .detail("limit", limits::MAX_BREAKPOINTS));
                }
                let home = at.and_then(|at| self.home(at));
                if let Some(at) = at
                    && let Err(error) = self.plant(at, Owner::User)
                {
                    self.run_on();
                    return Err(error);
                }
                self.breakpoints.push(Breakpoint {
                    spec,
                    at,
                    absolute,
                    home,
                    condition: None,
                    compiled: None,
                    hits: 0,
                    ignore_count: 0,
                    one_shot: false,
                });
                self.breakpoints.len() - 1
            }
        };
        if let Some(breakpoint) = self.breakpoints.get_mut(index) {
            breakpoint.condition = params.condition;
            breakpoint.compiled = compiled;
            breakpoint.ignore_count = params.ignore_count.unwrap_or(0);
            breakpoint.one_shot = params.one_shot;
        }
        let reply = self.breakpoint_reply(index);
        self.run_on();
        reply
    }

    fn breakpoint_reply(&mut self, index: usize) -> Outcome {
        let Some(breakpoint) = self.breakpoint_info(index) else {
            return Err(AgentError::new(ErrorCode::NoSuchBreakpoint, "the breakpoint is gone already"));
        };
        Ok(Reply::Breakpoint(BreakpointReply { breakpoint, breakpoints: self.planted(), live: self.live() }))
    }

    fn breakpoint_info(&mut self, index: usize) -> Option<BreakpointInfo> {
        let at = self.breakpoints.get(index)?.at;
        let location = at.and_then(|at| self.location(at));
        let breakpoint = self.breakpoints.get(index)?;
        Some(BreakpointInfo {
            addr: at.map(HexAddr),
            spec: breakpoint.spec.clone(),
            location,
            pending: at.is_none(),
            condition: breakpoint.condition.clone(),
            hits: breakpoint.hits,
            ignore_count: breakpoint.ignore_count,
            one_shot: breakpoint.one_shot,
        })
    }

    fn planted(&self) -> Vec<HexAddr> {
        let mut planted: Vec<HexAddr> =
            self.breakpoints.iter().filter_map(|breakpoint| breakpoint.at.map(HexAddr)).collect();
        planted.sort();
        planted
    }

    pub(super) fn remove_breakpoint(&mut self, params: &RemoveBreakpoint) -> Outcome {
        if self.phase == State::NotLaunched && self.breakpoints.is_empty() {
            self.alive()?;
        }
        let spec = params.addr.0.trim();
        let by_spec = self.breakpoints.iter().position(|breakpoint| breakpoint.spec == spec);
        let index = match by_spec {
            Some(index) => Some(index),
            None if self.alive().is_ok() => {
                let at = self.address(spec)?;
                self.breakpoints.iter().position(|breakpoint| breakpoint.at == Some(at))
            }
            None => None,
        };
        let Some(index) = index else {
            let set: Vec<String> = self
                .breakpoints
                .iter()
                .take(limits::NEAR_NAMES)
                .map(|breakpoint| breakpoint.at.map_or_else(|| breakpoint.spec.clone(), |at| at.to_string()))
                .collect();
            let hint = if set.is_empty() { "none is set".to_owned() } else { format!("set are: {}", set.join(", ")) };
            return Err(AgentError::new(ErrorCode::NoSuchBreakpoint, format!("there is no breakpoint at {spec}"))
                .hint(hint)
                .detail("breakpoints", set));
        };
        let Some(info) = self.breakpoint_info(index) else {
            return Err(AgentError::new(ErrorCode::Internal, "the breakpoint was lost"));
        };
        self.remove_at(index);
        self.run_on();
        Ok(Reply::Breakpoint(BreakpointReply { breakpoint: info, breakpoints: self.planted(), live: self.live() }))
    }

    pub(super) fn list_breakpoints(&mut self) -> Reply {
        let list = (0..self.breakpoints.len()).filter_map(|index| self.breakpoint_info(index)).collect();
        Reply::Breakpoints(BreakpointsReply { breakpoints: self.planted(), list, live: self.live() })
    }
}
