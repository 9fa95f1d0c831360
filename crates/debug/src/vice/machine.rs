//! What is known of the machine without asking: whether it runs, where it stopped, the last events, and our checkpoints.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;

use base::limits;

use super::commands::Checkpoint;
use super::error::Error;
use super::session::Event;

/// Whether the machine runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Execution {
    /// Nothing was heard yet, or the connection is gone.
    Unknown,
    /// It is stopped.
    Stopped,
    /// It runs.
    Running,
}

impl Execution {
    /// Its name in the contract.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Stopped => "stopped",
            Self::Running => "running",
        }
    }
}

impl fmt::Display for Execution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The machine stopped.
    Stopped,
    /// The machine runs.
    Resumed,
    /// A checkpoint that does not stop was hit.
    CheckpointHit,
}

impl EventKind {
    /// Its name in the contract.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::Resumed => "resumed",
            Self::CheckpointHit => "checkpoint_hit",
        }
    }
}

/// An event with its place among all events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// One more than the event before.
    pub sequence: u64,
    /// What it is.
    pub kind: EventKind,
    /// The program counter, where VICE told it.
    pub pc: Option<u16>,
    /// What was hit.
    pub checkpoints: Vec<Checkpoint>,
}

/// What is known of the machine.
#[derive(Debug)]
pub struct Machine {
    execution: Execution,
    pc: Option<u16>,
    sequence: u64,
    history: VecDeque<Published>,
    /// The newest stop that the history has let go.
    lost_stop: u64,
    last_stop: Option<Published>,
    last_resume: Option<Published>,
    own: BTreeSet<u32>,
    registers_set: bool,
}

impl Default for Machine {
    fn default() -> Self {
        Self {
            execution: Execution::Unknown,
            pc: None,
            sequence: 0,
            history: VecDeque::new(),
            lost_stop: 0,
            last_stop: None,
            last_resume: None,
            own: BTreeSet::new(),
            registers_set: false,
        }
    }
}

impl Machine {
    /// Takes what the session tells.
    pub fn observe(&mut self, event: Event) {
        match event {
            Event::Stopped { pc, checkpoints } => {
                // A temporary checkpoint is gone when it was hit, and its number may soon be somebody else's.
                for hit in checkpoints.iter().filter(|hit| hit.temporary) {
                    self.own.remove(&hit.number);
                }
                self.execution = Execution::Stopped;
                self.pc = Some(pc);
                self.last_stop = Some(self.publish(EventKind::Stopped, Some(pc), checkpoints));
            }
            Event::Resumed { pc } => {
                self.execution = Execution::Running;
                self.registers_set = false;
                self.pc = Some(pc);
                self.last_resume = Some(self.publish(EventKind::Resumed, Some(pc), Vec::new()));
            }
            Event::Hit(checkpoint) => {
                self.publish(EventKind::CheckpointHit, None, vec![checkpoint]);
            }
            Event::LateCheckpoint(checkpoint) => self.add_own(checkpoint.number),
            Event::Failed(_) => self.execution = Execution::Unknown,
            Event::Answer(_) | Event::Abandoned { .. } => {}
        }
    }

    fn publish(&mut self, kind: EventKind, pc: Option<u16>, checkpoints: Vec<Checkpoint>) -> Published {
        self.sequence += 1;
        let event = Published { sequence: self.sequence, kind, pc, checkpoints };
        if self.history.len() >= limits::MAX_VICE_EVENTS
            && let Some(old) = self.history.pop_front()
            && old.kind == EventKind::Stopped
        {
            self.lost_stop = old.sequence;
        }
        self.history.push_back(event.clone());
        event
    }

    /// The machine is stopped, as nobody has said: it is so behind every answer, unless an event says otherwise.
    pub fn assume_stopped(&mut self) {
        self.execution = Execution::Stopped;
    }

    /// The machine runs, as the event that is on its way will say.
    pub fn assume_running(&mut self) {
        self.execution = Execution::Running;
        self.registers_set = false;
    }

    /// The connection is gone.
    pub fn forget(&mut self) {
        self.execution = Execution::Unknown;
    }

    /// Whether it runs.
    pub const fn execution(&self) -> Execution {
        self.execution
    }

    /// The last program counter that was told.
    pub const fn pc(&self) -> Option<u16> {
        self.pc
    }

    /// Takes a program counter that was read or set.
    pub fn set_pc(&mut self, pc: u16) {
        self.pc = Some(pc);
    }

    /// The newest event's place.
    pub const fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The newest stop, if it is newer than `after`.
    pub fn stop_since(&self, after: u64) -> Option<&Published> {
        self.last_stop.as_ref().filter(|event| event.sequence > after)
    }

    /// The newest resumption, if it is newer than `after`. Asked for instead of the history, which a storm of hits empties.
    pub fn resume_since(&self, after: u64) -> Option<&Published> {
        self.last_resume.as_ref().filter(|event| event.sequence > after)
    }

    /// The first stop after `after`.
    ///
    /// # Errors
    /// [`Error::HistoryLost`] when it may have been one that is forgotten.
    pub fn first_stop_after(&self, after: u64) -> Result<Option<&Published>, Error> {
        if self.lost_stop > after {
            return Err(Error::HistoryLost { after, oldest: self.lost_stop });
        }
        Ok(self.history.iter().find(|event| event.kind == EventKind::Stopped && event.sequence > after))
    }

    /// The events after `after` and before `before`, the last ones.
    pub fn between(&self, after: u64, before: u64) -> Vec<Published> {
        let fitting = self.history.iter().filter(|event| event.sequence > after && event.sequence < before);
        let count = fitting.clone().count();
        fitting.skip(count.saturating_sub(limits::MAX_VICE_PRECEDING)).cloned().collect()
    }

    /// Remembers a checkpoint that we made.
    pub fn add_own(&mut self, number: u32) {
        self.own.insert(number);
    }

    /// Forgets a checkpoint that is gone.
    pub fn remove_own(&mut self, number: u32) {
        self.own.remove(&number);
    }

    /// The checkpoints that we made.
    pub const fn own(&self) -> &BTreeSet<u32> {
        &self.own
    }

    /// A register was set, so the next step may only arrive there.
    pub fn registers_were_set(&mut self) {
        self.registers_set = true;
    }

    /// Whether a register was set since the machine ran.
    pub const fn has_set_registers(&self) -> bool {
        self.registers_set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkpoint(number: u32, temporary: bool) -> Checkpoint {
        Checkpoint {
            number,
            hit: true,
            start: 1,
            end: 1,
            stops: true,
            enabled: true,
            operations: 4,
            temporary,
            hits: 1,
            ignored: 0,
            conditional: false,
            memspace: 0,
        }
    }

    #[test]
    fn state_follows_the_events() {
        let mut machine = Machine::default();
        assert_eq!(machine.execution(), Execution::Unknown);
        machine.observe(Event::Stopped { pc: 1, checkpoints: Vec::new() });
        machine.registers_were_set();
        machine.observe(Event::Resumed { pc: 2 });
        assert_eq!((machine.execution(), machine.pc(), machine.sequence()), (Execution::Running, Some(2), 2));
        assert!(!machine.has_set_registers());
        assert_eq!(machine.stop_since(0).unwrap().sequence, 1);
        assert!(machine.stop_since(1).is_none());
        assert_eq!(machine.resume_since(1).unwrap().sequence, 2);
    }

    #[test]
    fn only_a_forgotten_stop_makes_the_history_incomplete() {
        let mut machine = Machine::default();
        let storm = |machine: &mut Machine, count: usize| {
            (0..count).for_each(|_| machine.observe(Event::Hit(checkpoint(1, false))));
        };
        storm(&mut machine, limits::MAX_VICE_EVENTS);
        machine.observe(Event::Stopped { pc: 1, checkpoints: Vec::new() });
        let stop = machine.sequence();
        assert_eq!(machine.first_stop_after(0).unwrap().unwrap().sequence, stop);
        storm(&mut machine, limits::MAX_VICE_EVENTS - 1);
        assert!(machine.first_stop_after(0).is_ok());
        storm(&mut machine, 1);
        let lost = machine.first_stop_after(stop - 1);
        assert!(matches!(lost, Err(Error::HistoryLost { oldest, .. }) if oldest == stop));
        assert_eq!(machine.first_stop_after(stop).unwrap(), None);
        assert_eq!(machine.stop_since(0).unwrap().sequence, stop);
        assert_eq!(machine.between(0, u64::MAX).len(), limits::MAX_VICE_PRECEDING);
    }

    #[test]
    fn a_temporary_checkpoint_is_no_longer_ours_once_it_was_hit() {
        let mut machine = Machine::default();
        machine.add_own(1);
        machine.add_own(2);
        machine.observe(Event::Stopped { pc: 1, checkpoints: vec![checkpoint(1, true), checkpoint(2, false)] });
        assert_eq!(machine.own().iter().copied().collect::<Vec<_>>(), [2]);
    }
}
