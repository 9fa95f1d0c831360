//! The protocol without sockets: one request at a time, bytes and time in, bytes and events out.
//!
//! A request that was not answered in time is abandoned: its answer, should it come, is known by its number and dropped, so that
//! the connection stays of use. Events belong to no request and come at any time.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use base::limits;

use super::commands::checkpoint::{self, Checkpoint};
use super::commands::registers;
use super::error::Error;
use super::framing::{Decoder, Fields, Frame, NO_REQUEST, encode};

/// Kind of the event "JAM": the processor met an instruction that halts it.
const JAM: u8 = 0x61;
/// Kind of the event "Stopped".
const STOPPED: u8 = 0x62;
/// Kind of the event "Resumed".
const RESUMED: u8 = 0x63;
/// Kind of an answer that is nothing but an error code.
const REFUSAL: u8 = 0x00;

/// A command with what belongs to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    command: u8,
    body: Vec<u8>,
}

impl Request {
    /// Command number `command` of the manual.
    pub const fn new(command: u8, body: Vec<u8>) -> Self {
        Self { command, body }
    }

    /// Its number in the manual.
    pub const fn command(&self) -> u8 {
        self.command
    }

    /// What is sent with it.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Kind of frame that answers it.
    const fn answered_by(&self) -> u8 {
        match self.command {
            checkpoint::SET => checkpoint::INFO,
            registers::SET => registers::GET,
            other => other,
        }
    }
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The request's number.
    pub request: u32,
    /// VICE's error code; 0 for none.
    pub error: u8,
    /// What was answered.
    pub body: Vec<u8>,
    /// The checkpoints that came before the answer to a list of them.
    pub listed: Vec<Checkpoint>,
}

/// What came of the bytes that were received.
#[derive(Clone, Debug)]
pub enum Event {
    /// The answer to the request.
    Answer(Answer),
    /// The request was not answered in time, and was abandoned.
    Abandoned {
        /// Its number.
        request: u32,
    },
    /// The machine stopped, at these checkpoints if at any.
    Stopped {
        /// Where.
        pc: u16,
        /// What it hit.
        checkpoints: Vec<Checkpoint>,
    },
    /// The machine runs.
    Resumed {
        /// From where.
        pc: u16,
    },
    /// A checkpoint that does not stop was hit.
    Hit(Checkpoint),
    /// A checkpoint was made by a request that was abandoned.
    LateCheckpoint(Checkpoint),
    /// The connection is of no more use.
    Failed(Error),
}

#[derive(Debug)]
struct Waiting {
    id: u32,
    command: u8,
    kind: u8,
    deadline: Duration,
    listed: Vec<Checkpoint>,
}

/// One connection to VICE.
#[derive(Debug)]
pub struct Session {
    decoder: Decoder,
    outgoing: Vec<u8>,
    events: VecDeque<Event>,
    next_id: u32,
    waiting: Option<Waiting>,
    /// Requests that were not answered in time, with their commands.
    abandoned: BTreeMap<u32, u8>,
    /// Checkpoints that VICE has named and whose stop is on its way.
    stopping: Vec<Checkpoint>,
    strays: u64,
    broken: bool,
}

impl Default for Session {
    fn default() -> Self {
        Self {
            decoder: Decoder::default(),
            outgoing: Vec::new(),
            events: VecDeque::new(),
            next_id: 1,
            waiting: None,
            abandoned: BTreeMap::new(),
            stopping: Vec::new(),
            strays: 0,
            broken: false,
        }
    }
}

impl Session {
    /// Sends `request`, to be answered until `deadline` (time since any moment, the same for all calls), and gives its number.
    ///
    /// # Errors
    /// [`Error::Lost`] after a failure, [`Error::Protocol`] while another answer is awaited.
    pub fn send(&mut self, request: &Request, deadline: Duration) -> Result<u32, Error> {
        if self.broken {
            return Err(Error::Lost("it was given up after an earlier failure".to_owned()));
        }
        if self.waiting.is_some() {
            return Err(Error::Protocol("nothing yet to the request before".to_owned()));
        }
        let id = self.next_id;
        self.next_id = match self.next_id.wrapping_add(1) {
            NO_REQUEST => 1,
            next => next,
        };
        self.outgoing.extend(encode(request, id));
        self.waiting =
            Some(Waiting { id, command: request.command, kind: request.answered_by(), deadline, listed: Vec::new() });
        Ok(id)
    }

    /// Takes bytes from VICE, split in any way.
    pub fn receive(&mut self, bytes: &[u8]) {
        if self.broken {
            return;
        }
        self.decoder.push(bytes);
        while !self.broken {
            match self.decoder.next_frame() {
                Ok(Some(frame)) => {
                    if let Err(error) = self.frame(frame) {
                        self.fail(error);
                    }
                }
                Ok(None) => break,
                Err(error) => self.fail(error),
            }
        }
    }

    /// Says what time it is.
    pub fn tick(&mut self, now: Duration) {
        if self.waiting.as_ref().is_some_and(|waiting| now >= waiting.deadline)
            && let Some(Waiting { id, command, .. }) = self.waiting.take()
        {
            if self.abandoned.len() >= limits::MAX_VICE_ABANDONED {
                self.abandoned.pop_first();
            }
            self.abandoned.insert(id, command);
            self.events.push_back(Event::Abandoned { request: id });
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

    /// Whether an answer is awaited.
    pub const fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// Whether the connection was given up.
    pub const fn is_broken(&self) -> bool {
        self.broken
    }

    /// Frames that belonged to nothing.
    pub const fn strays(&self) -> u64 {
        self.strays
    }

    /// The connection is lost or of no use any more.
    pub fn give_up(&mut self) {
        self.broken = true;
        self.waiting = None;
        self.outgoing.clear();
    }

    fn fail(&mut self, error: Error) {
        self.give_up();
        self.events.push_back(Event::Failed(error));
    }

    fn frame(&mut self, frame: Frame) -> Result<(), Error> {
        if frame.request == NO_REQUEST {
            return self.unsolicited(&frame);
        }
        match &mut self.waiting {
            Some(waiting) if waiting.id == frame.request => {
                if frame.kind == checkpoint::INFO && waiting.kind == checkpoint::LIST {
                    if waiting.listed.len() >= limits::MAX_VICE_CHECKPOINTS {
                        return Err(Error::Protocol(format!("more than {} checkpoints", limits::MAX_VICE_CHECKPOINTS)));
                    }
                    waiting.listed.push(checkpoint::info(&frame.body)?);
                    return Ok(());
                }
                let refused = frame.error != 0 && frame.kind == REFUSAL;
                if frame.kind != waiting.kind && !refused {
                    return Err(Error::Protocol(format!(
                        "a frame {:#04x} as the answer to request {}, which {:#04x} answers",
                        frame.kind, frame.request, waiting.kind
                    )));
                }
                let listed = std::mem::take(&mut waiting.listed);
                self.waiting = None;
                self.events.push_back(Event::Answer(Answer {
                    request: frame.request,
                    error: frame.error,
                    body: frame.body,
                    listed,
                }));
            }
            _ => {
                self.strays = self.strays.saturating_add(1);
                let late = self.abandoned.get(&frame.request).copied();
                if late == Some(checkpoint::SET) && frame.error == 0 {
                    self.events.push_back(Event::LateCheckpoint(checkpoint::info(&frame.body)?));
                }
                // A list has more frames to come before the last one.
                if late.is_some() && (frame.kind != checkpoint::INFO || late == Some(checkpoint::SET)) {
                    self.abandoned.remove(&frame.request);
                }
            }
        }
        Ok(())
    }

    fn unsolicited(&mut self, frame: &Frame) -> Result<(), Error> {
        match frame.kind {
            STOPPED => {
                let pc = Fields::of(&frame.body, "a stop").word()?;
                let checkpoints = std::mem::take(&mut self.stopping);
                self.events.push_back(Event::Stopped { pc, checkpoints });
            }
            RESUMED => {
                self.stopping.clear();
                let pc = Fields::of(&frame.body, "a resumption").word()?;
                self.events.push_back(Event::Resumed { pc });
            }
            checkpoint::INFO => {
                let hit = checkpoint::info(&frame.body)?;
                if !hit.stops {
                    self.events.push_back(Event::Hit(hit));
                } else if self.stopping.len() < limits::MAX_VICE_CHECKPOINTS {
                    self.stopping.push(hit);
                }
            }
            // Registers come before each stop, and a jam is followed by a stop.
            registers::GET | JAM => {}
            _ => self.strays = self.strays.saturating_add(1),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::commands::{checkpoint, info, ping};
    use super::super::framing::encode_response;
    use super::*;
    use proptest::prelude::*;

    const LATER: Duration = Duration::from_secs(1);

    fn waiting(request: &Request) -> Session {
        let mut session = Session::default();
        assert_eq!(session.send(request, LATER).unwrap(), 1);
        session.take_outgoing();
        session
    }

    fn events(session: &mut Session) -> Vec<Event> {
        std::iter::from_fn(|| session.next_event()).collect()
    }

    /// A checkpoint's frame as VICE has it.
    fn hit(number: u8, stops: bool, request: u32) -> Vec<u8> {
        let mut body = vec![number, 0, 0, 0, 1, 0x30, 0x09, 0x30, 0x09, u8::from(stops), 1, 4, 0];
        body.extend([1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        encode_response(checkpoint::INFO, 0, request, &body)
    }

    #[test]
    fn a_request_has_the_manuals_bytes_and_its_answer_ends_it() {
        let mut session = Session::default();
        session.send(&info::request(), LATER).unwrap();
        assert_eq!(session.take_outgoing(), [2, 2, 0, 0, 0, 0, 1, 0, 0, 0, 0x85]);
        assert!(session.send(&ping::request(), LATER).is_err());
        session.receive(&[2, 2, 2, 0, 0, 0, 0x85, 0, 1, 0, 0, 0, 7, 8]);
        assert!(matches!(&events(&mut session)[..], [Event::Answer(answer)] if answer.body == [7, 8]));
        assert_eq!(session.send(&ping::request(), LATER).unwrap(), 2);
    }

    #[test]
    fn a_late_answer_is_dropped_and_the_connection_goes_on() {
        let mut session = waiting(&ping::request());
        session.tick(LATER - Duration::from_nanos(1));
        assert!(session.is_waiting());
        session.tick(LATER);
        assert!(matches!(events(&mut session)[..], [Event::Abandoned { request: 1 }]));
        session.send(&ping::request(), LATER * 2).unwrap();
        let late = encode_response(0x81, 0, 1, &[]);
        session.receive(&late);
        assert!(events(&mut session).is_empty() && session.is_waiting());
        session.receive(&encode_response(0x81, 0, 2, &[]));
        // The same again belongs to nothing.
        session.receive(&encode_response(0x81, 0, 2, &[]));
        assert!(matches!(&events(&mut session)[..], [Event::Answer(answer)] if answer.request == 2));
        assert_eq!(session.strays(), 2);
    }

    #[test]
    fn a_checkpoint_that_was_made_late_is_told() {
        let new = checkpoint::NewCheckpoint {
            start: 0x0930,
            end: 0x0930,
            stops: true,
            enabled: true,
            operations: 4,
            temporary: false,
            memspace: 0,
        };
        let mut session = waiting(&checkpoint::set(&new));
        session.tick(LATER);
        session.receive(&hit(9, true, 1));
        assert!(
            matches!(&events(&mut session)[..], [Event::Abandoned { .. }, Event::LateCheckpoint(late)] if late.number == 9)
        );
    }

    #[test]
    fn what_is_abandoned_is_bounded() {
        let mut session = Session::default();
        for _ in 0..limits::MAX_VICE_ABANDONED + 10 {
            session.send(&ping::request(), LATER).unwrap();
            session.tick(LATER);
            session.take_outgoing();
        }
        assert_eq!(session.abandoned.len(), limits::MAX_VICE_ABANDONED);
    }

    #[test]
    fn a_stop_names_every_checkpoint_and_a_hit_that_does_not_stop_is_told_at_once() {
        let mut session = Session::default();
        session.receive(&hit(3, false, NO_REQUEST));
        assert!(matches!(&events(&mut session)[..], [Event::Hit(hit)] if hit.number == 3));
        for number in [1, 2] {
            session.receive(&hit(number, true, NO_REQUEST));
        }
        session.receive(&encode_response(registers::GET, 0, NO_REQUEST, &[0, 0]));
        assert!(events(&mut session).is_empty());
        session.receive(&encode_response(STOPPED, 0, NO_REQUEST, &[0x30, 0x09]));
        let [Event::Stopped { pc: 0x0930, checkpoints }] = &events(&mut session)[..] else { panic!("no stop") };
        assert_eq!(checkpoints.iter().map(|hit| hit.number).collect::<Vec<_>>(), [1, 2]);
        session.receive(&encode_response(RESUMED, 0, NO_REQUEST, &[0x30, 0x09]));
        assert!(matches!(events(&mut session)[..], [Event::Resumed { pc: 0x0930 }]));
    }

    #[test]
    fn a_list_comes_in_frames_of_its_own() {
        let mut session = waiting(&checkpoint::list());
        session.receive(&[hit(1, true, 1), hit(2, false, 1)].concat());
        session.receive(&encode_response(checkpoint::LIST, 0, 1, &[2, 0, 0, 0]));
        let [Event::Answer(answer)] = &events(&mut session)[..] else { panic!("no answer") };
        assert_eq!(answer.listed.len(), 2);
    }

    #[test]
    fn a_refusal_is_an_answer_and_an_answer_of_another_kind_is_none() {
        let mut session = waiting(&ping::request());
        session.receive(&encode_response(0, 0x8F, 1, &[]));
        assert!(matches!(&events(&mut session)[..], [Event::Answer(answer)] if answer.error == 0x8F));
        let mut session = waiting(&ping::request());
        session.receive(&encode_response(0x85, 0, 1, &[]));
        assert!(matches!(events(&mut session)[..], [Event::Failed(Error::Protocol(_))]));
        assert!(session.is_broken() && session.send(&ping::request(), LATER).is_err());
    }

    #[test]
    fn unknown_events_are_passed_over_and_malformed_frames_end_the_connection() {
        let mut session = waiting(&ping::request());
        session.receive(&encode_response(0x77, 0, NO_REQUEST, &[1, 2, 3]));
        assert!(events(&mut session).is_empty() && session.strays() == 1);
        let huge = [2, 2, 0xFF, 0xFF, 0xFF, 0x7F, 0x81, 0, 1, 0, 0, 0];
        let short_stop = encode_response(STOPPED, 0, NO_REQUEST, &[1]);
        for bad in [&[3][..], &[2, 3], &huge, &short_stop] {
            let mut session = waiting(&ping::request());
            session.receive(bad);
            assert!(matches!(events(&mut session)[..], [Event::Failed(Error::Protocol(_))]), "{bad:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn property_what_is_received_does_not_depend_on_how_it_was_split(
            frames in proptest::collection::vec((any::<u8>(), 0_u8..3, proptest::collection::vec(any::<u8>(), 0..40)), 0..12),
            split in 1_usize..50,
        ) {
            let bytes: Vec<u8> = frames
                .iter()
                .flat_map(|(kind, whose, body)| {
                    let kind = [STOPPED, RESUMED, checkpoint::INFO, 0x81, *kind][usize::from(*kind) % 5];
                    encode_response(kind, 0, [NO_REQUEST, 1, 7][usize::from(*whose)], body)
                })
                .collect();
            let run = |parts: &mut dyn Iterator<Item = &[u8]>| {
                let mut session = waiting(&ping::request());
                parts.for_each(|part| session.receive(part));
                format!("{:?} {}", events(&mut session), session.strays())
            };
            prop_assert_eq!(run(&mut std::iter::once(&bytes[..])), run(&mut bytes.chunks(split)));
        }

        #[test]
        fn property_after_its_deadline_no_request_waits(
            bytes in proptest::collection::vec(prop_oneof![Just(2_u8), Just(0), any::<u8>()], 0..300),
            split in 1_usize..40,
        ) {
            let mut session = waiting(&ping::request());
            for part in bytes.chunks(split) {
                session.receive(part);
                prop_assert!(session.take_outgoing().is_empty());
            }
            session.tick(LATER);
            prop_assert!(!session.is_waiting());
        }
    }
}
