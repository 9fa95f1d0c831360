//! The protocol without sockets: one request at a time, bytes and time in, bytes and events out.
//!
//! A stub that runs the program understands nothing but the interrupt: a packet sent meanwhile is refused by `-` and may
//! nevertheless be executed later (seen with DeSmuME). So nothing else is sent then, and what changes something is never sent twice.

use std::collections::VecDeque;
use std::time::Duration;

use base::limits;

use super::error::{Error, beginning};
use super::framing::{Decoder, Token, encode};
use super::packets::{StopReply, interrupt, stop_reason, stop_reply};

/// A packet to send, and what may be done with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    payload: Vec<u8>,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Asks,
    Changes,
    Resumes,
}

impl Request {
    /// A question, which may be sent again.
    pub const fn ask(payload: Vec<u8>) -> Self {
        Self { payload, kind: Kind::Asks }
    }

    /// Changes something, so it is sent once.
    pub const fn change(payload: Vec<u8>) -> Self {
        Self { payload, kind: Kind::Changes }
    }

    /// Makes the program run; its answer is the next stop.
    pub const fn resume(payload: Vec<u8>) -> Self {
        Self { payload, kind: Kind::Resumes }
    }
}

/// What came of the bytes that were received.
#[derive(Debug)]
pub enum Event {
    /// The answer to the request.
    Answer(Vec<u8>),
    /// The program stopped.
    Stopped(StopReply),
    /// The program wrote something (packet `O`).
    Output(Vec<u8>),
    /// The request failed, and with it the connection.
    Failed(Error),
}

/// One connection to a stub.
#[derive(Debug)]
pub struct Session {
    decoder: Decoder,
    phase: Phase,
    outgoing: Vec<u8>,
    events: VecDeque<Event>,
    acknowledging: bool,
    /// An interrupt was sent since the program was made to run. Where it meets another stop, two come, in either order.
    interrupted: bool,
    strays: u64,
}

#[derive(Debug)]
enum Phase {
    Idle,
    Waiting { request: Request, deadline: Duration, tries: u32 },
    Running { payload: Vec<u8>, damaged: u32 },
    Broken,
}

impl Default for Session {
    fn default() -> Self {
        Self {
            decoder: Decoder::default(),
            phase: Phase::Idle,
            outgoing: Vec::new(),
            events: VecDeque::new(),
            acknowledging: true,
            interrupted: false,
            strays: 0,
        }
    }
}

impl Session {
    /// Sends `request`, to be answered until `deadline` (time since any moment, the same for all calls). A request that makes
    /// the program run has no deadline.
    ///
    /// # Errors
    /// [`Error::Running`] while the program runs or another answer is awaited, [`Error::Broken`] after a failure.
    pub fn send(&mut self, request: Request, deadline: Duration) -> Result<(), Error> {
        match self.phase {
            Phase::Idle => {}
            Phase::Waiting { .. } | Phase::Running { .. } => return Err(Error::Running),
            Phase::Broken => return Err(Error::Broken),
        }
        self.outgoing.extend(encode(&request.payload));
        self.phase = if request.kind == Kind::Resumes {
            self.interrupted = false;
            Phase::Running { payload: request.payload, damaged: 0 }
        } else {
            Phase::Waiting { request, deadline, tries: 0 }
        };
        Ok(())
    }

    /// Says that the program was running before this connection was made, so that it may be interrupted.
    pub fn assume_running(&mut self) {
        if matches!(self.phase, Phase::Idle) {
            self.phase = Phase::Running { payload: Vec::new(), damaged: 0 };
        }
    }

    /// Asks a running program to stop. A second call changes nothing until the program has stopped.
    ///
    /// # Errors
    /// [`Error::Stopped`] while it does not run, [`Error::Broken`] after a failure.
    pub fn interrupt(&mut self) -> Result<(), Error> {
        match self.phase {
            Phase::Running { .. } if self.interrupted => Ok(()),
            Phase::Running { .. } => {
                self.interrupted = true;
                self.outgoing.push(interrupt::BYTE);
                Ok(())
            }
            Phase::Idle | Phase::Waiting { .. } => Err(Error::Stopped),
            Phase::Broken => Err(Error::Broken),
        }
    }

    /// Takes bytes from the stub, split in any way.
    pub fn receive(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match self.decoder.push(*byte) {
                Some(Token::Nak) => self.refused(),
                Some(Token::Damaged) => self.damaged(),
                Some(Token::Packet(payload)) => self.packet(payload),
                Some(Token::Ack) | None => {}
            }
        }
    }

    /// Says what time it is.
    pub fn tick(&mut self, now: Duration) {
        if let Phase::Waiting { request, deadline, .. } = &self.phase
            && now >= *deadline
        {
            let packet = beginning(&request.payload);
            self.fail(Error::TimedOut { packet });
        }
    }

    /// What is to be sent now.
    pub fn take_outgoing(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.outgoing)
    }

    /// What has happened since.
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Whether the program runs.
    pub const fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Running { .. })
    }

    /// Whether an answer is awaited.
    pub const fn is_waiting(&self) -> bool {
        matches!(self.phase, Phase::Waiting { .. })
    }

    /// Whether the connection was given up.
    pub const fn is_broken(&self) -> bool {
        matches!(self.phase, Phase::Broken)
    }

    /// Packets that belonged to nothing.
    pub const fn strays(&self) -> u64 {
        self.strays
    }

    /// Ends acknowledgements, after the stub agreed to it ("Packet Acknowledgment").
    pub const fn stop_acknowledging(&mut self) {
        self.acknowledging = false;
    }

    /// The connection is lost or of no use any more.
    pub fn give_up(&mut self) {
        self.phase = Phase::Broken;
        self.outgoing.clear();
    }

    fn fail(&mut self, error: Error) {
        self.events.push_back(Event::Failed(error));
        self.give_up();
    }

    fn refused(&mut self) {
        match &mut self.phase {
            Phase::Waiting { request, tries, .. }
                if request.kind == Kind::Asks && *tries < limits::MAX_GDB_RETRANSMISSIONS =>
            {
                *tries += 1;
                self.outgoing.extend(encode(&request.payload));
            }
            Phase::Waiting { request, .. } => {
                let packet = beginning(&request.payload);
                self.fail(Error::Refused { packet });
            }
            Phase::Running { payload, .. } => {
                let packet = beginning(payload);
                self.fail(Error::Refused { packet });
            }
            Phase::Idle | Phase::Broken => {}
        }
    }

    fn damaged(&mut self) {
        let (count, payload) = match &mut self.phase {
            Phase::Waiting { tries, request, .. } => (tries, &request.payload),
            Phase::Running { damaged, payload } => (damaged, &*payload),
            Phase::Idle | Phase::Broken => return,
        };
        *count += 1;
        if self.acknowledging && *count <= limits::MAX_GDB_RETRANSMISSIONS {
            self.outgoing.push(b'-');
        } else {
            let packet = beginning(payload);
            self.fail(Error::Damaged { packet });
        }
    }

    fn packet(&mut self, payload: Vec<u8>) {
        if self.is_broken() {
            return;
        }
        if self.acknowledging {
            self.outgoing.push(b'+');
        }
        match &self.phase {
            Phase::Running { .. } => match stop_reply::answer(&payload) {
                Ok(stop) => {
                    self.phase = Phase::Idle;
                    self.events.push_back(Event::Stopped(stop));
                }
                Err(_) => match payload.split_first() {
                    Some((b'O', text)) if payload != b"OK" => {
                        self.events.push_back(Event::Output(super::packets::unhex(text).unwrap_or_default()));
                    }
                    // Nothing, or an error: the stub does not run the program at all.
                    Some((b'E', _)) | None => {
                        self.phase = Phase::Idle;
                        self.events.push_back(Event::Answer(payload));
                    }
                    Some(_) => self.strays = self.strays.saturating_add(1),
                },
            },
            Phase::Waiting { request, .. } => {
                // The second of two stops comes before the answer.
                let late = self.interrupted
                    && request.payload != stop_reason::request()
                    && stop_reply::answer(&payload).is_ok();
                if late {
                    self.interrupted = false;
                    self.strays = self.strays.saturating_add(1);
                } else {
                    self.phase = Phase::Idle;
                    self.events.push_back(Event::Answer(payload));
                }
            }
            Phase::Idle | Phase::Broken => self.strays = self.strays.saturating_add(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LATER: Duration = Duration::from_secs(1);

    fn waiting(request: Request) -> Session {
        let mut session = Session::default();
        session.send(request, LATER).unwrap();
        session.take_outgoing();
        session
    }

    fn question() -> Request {
        Request::ask(b"g".to_vec())
    }

    #[test]
    fn a_question_is_answered_and_the_answer_acknowledged() {
        let mut session = Session::default();
        session.send(question(), LATER).unwrap();
        // 'g' is 0x67.
        assert_eq!(session.take_outgoing(), b"$g#67");
        session.receive(b"+$00#60");
        assert!(matches!(session.next_event(), Some(Event::Answer(answer)) if answer == b"00"));
        assert_eq!(session.take_outgoing(), b"+");
        assert!(!session.is_waiting() && session.next_event().is_none());
    }

    #[test]
    fn a_refused_question_is_asked_again_and_a_refused_change_is_not() {
        let mut session = waiting(question());
        for _ in 0..limits::MAX_GDB_RETRANSMISSIONS {
            session.receive(b"-");
            assert_eq!(session.take_outgoing(), b"$g#67");
        }
        session.receive(b"-");
        assert!(matches!(session.next_event(), Some(Event::Failed(Error::Refused { packet })) if packet == "g"));
        for request in [Request::change(b"Z0,0,4".to_vec()), Request::resume(b"c".to_vec())] {
            let mut session = waiting(request);
            session.receive(b"-");
            assert!(matches!(session.next_event(), Some(Event::Failed(Error::Refused { .. }))));
            assert!(session.take_outgoing().is_empty() && session.is_broken());
        }
    }

    #[test]
    fn a_damaged_answer_is_asked_for_again_a_few_times() {
        let mut session = waiting(question());
        for _ in 0..limits::MAX_GDB_RETRANSMISSIONS {
            session.receive(b"$00#61");
            assert_eq!(session.take_outgoing(), b"-");
        }
        session.receive(b"$00#61");
        assert!(matches!(session.next_event(), Some(Event::Failed(Error::Damaged { .. }))));
    }

    #[test]
    fn without_acknowledgements_a_damaged_answer_cannot_be_asked_for_again() {
        let mut session = Session::default();
        session.stop_acknowledging();
        session.send(question(), LATER).unwrap();
        session.take_outgoing();
        session.receive(b"$00#61");
        assert!(matches!(session.next_event(), Some(Event::Failed(Error::Damaged { packet })) if packet == "g"));
        assert!(session.take_outgoing().is_empty());
    }

    #[test]
    fn a_deadline_ends_the_connection_because_a_late_answer_would_be_anothers() {
        let mut session = waiting(question());
        session.tick(LATER - Duration::from_nanos(1));
        assert!(session.next_event().is_none());
        session.tick(LATER);
        assert!(matches!(session.next_event(), Some(Event::Failed(Error::TimedOut { .. }))));
        session.receive(b"$00#60");
        assert!(session.next_event().is_none());
        assert!(matches!(session.send(question(), LATER), Err(Error::Broken)));
    }

    #[test]
    fn nothing_but_one_interrupt_is_sent_while_the_program_runs() {
        let mut session = waiting(Request::resume(b"c".to_vec()));
        assert!(session.is_running());
        assert!(matches!(session.send(question(), LATER), Err(Error::Running)));
        session.interrupt().unwrap();
        session.interrupt().unwrap();
        assert_eq!(session.take_outgoing(), [0x03]);
        // 'O' and "Hi" in digits: 0x4F + 0x34 + 0x38 + 0x36 + 0x39 = 0x12A.
        session.receive(b"+$O4869#2a$S02#b5");
        assert!(matches!(session.next_event(), Some(Event::Output(text)) if text == b"Hi"));
        assert!(matches!(session.next_event(), Some(Event::Stopped(stop)) if stop.signal == 2));
        assert!(matches!(session.interrupt(), Err(Error::Stopped)));
    }

    #[test]
    fn a_program_that_ran_before_is_interrupted_without_a_word_before() {
        let mut session = Session::default();
        assert!(matches!(session.interrupt(), Err(Error::Stopped)));
        session.assume_running();
        session.interrupt().unwrap();
        assert_eq!(session.take_outgoing(), [0x03]);
        session.receive(b"$S02#b5");
        assert!(matches!(session.next_event(), Some(Event::Stopped(stop)) if stop.signal == 2));
        // A request that waits is not forgotten.
        let mut waiting = waiting(question());
        waiting.assume_running();
        assert!(waiting.is_waiting());
    }

    #[test]
    fn the_second_stop_of_an_interrupt_that_met_another_is_not_taken_for_an_answer() {
        for (first, second, signal) in [("$S05#b8", "$S02#b5", 5), ("$S02#b5", "$S05#b8", 2)] {
            let mut session = waiting(Request::resume(b"c".to_vec()));
            session.interrupt().unwrap();
            session.receive(format!("+{first}").as_bytes());
            assert!(matches!(session.next_event(), Some(Event::Stopped(stop)) if stop.signal == signal));
            session.send(question(), LATER).unwrap();
            session.receive(format!("{second}+$00#60").as_bytes());
            assert!(matches!(session.next_event(), Some(Event::Answer(answer)) if answer == b"00"));
            assert_eq!(session.strays(), 1);
            // There are two, and no more.
            session.send(question(), LATER).unwrap();
            session.receive(second.as_bytes());
            assert!(matches!(session.next_event(), Some(Event::Answer(answer)) if answer.starts_with(b"S0")));
        }
    }

    #[test]
    fn a_stub_that_cannot_step_says_so_instead_of_running_for_ever() {
        let mut session = waiting(Request::resume(b"s".to_vec()));
        session.receive(b"+$#00");
        assert!(matches!(session.next_event(), Some(Event::Answer(answer)) if answer.is_empty()));
        assert!(!session.is_running());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn property_after_its_deadline_no_request_waits(
            bytes in proptest::collection::vec(prop_oneof![Just(b'$'), Just(b'#'), Just(b'+'), Just(b'-'), any::<u8>()], 0..300),
            split in 1_usize..40,
        ) {
            let mut session = waiting(question());
            for part in bytes.chunks(split) {
                session.receive(part);
                prop_assert!(session.take_outgoing().len() <= part.len() * 5);
            }
            session.tick(LATER);
            prop_assert!(!session.is_waiting());
        }
    }
}
