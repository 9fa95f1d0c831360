//! The TCP side: clients on loopback, one line a command. A client costs two threads and a bounded amount of memory; what
//! it does, or fails to do, never holds up the engine or another client.

use crate::log;
use crate::reply::{Gone, Outcome, ReplyTo};
use crate::runner::{self, EngineHandle};
use base::limits;
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, BufReader, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use wire::{AgentError, Envelope, ErrorCode, FrameError, LineReader, Request};

/// Opens the port. Port 0 takes a free one.
///
/// # Errors
/// A sentence: the address is not loopback, or the system refuses it.
pub fn bind(address: IpAddr, port: u16) -> Result<TcpListener, String> {
    if !address.is_loopback() {
        return Err(format!(
            "the agent does not listen on {address}: whoever reaches it can run any program, so it takes loopback \
             addresses only (127.0.0.1, ::1); for another machine use `retroscope serve --http`, which asks for a \
             token, or an ssh tunnel"
        ));
    }
    TcpListener::bind(SocketAddr::new(address, port)).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => {
            format!("port {port} on {address} is taken: another agent may run there; stop it, or name another --port")
        }
        _ => format!("port {port} on {address} cannot be opened: {error}"),
    })
}

/// Serves clients for as long as the process lives.
pub fn run(listener: &TcpListener, engine: &EngineHandle) {
    run_with(listener, engine, runner::time_limit);
}

type TimeLimit = fn(&Request) -> Duration;

fn run_with(listener: &TcpListener, engine: &EngineHandle, limit: TimeLimit) {
    let seats = Arc::new(Seats { taken: Mutex::new(0), engine: engine.clone() });
    for stream in listener.incoming() {
        let stream = match stream {
            Ok(stream) => stream,
            Err(error) => {
                log::warn(format_args!("a client could not be accepted: {error}"));
                // Out of descriptors, most likely: it would fail again at once.
                thread::sleep(Duration::from_millis(50));
                continue;
            }
        };
        match seats.take() {
            Some(seat) => {
                let engine = engine.clone();
                let serving = thread::Builder::new().name("client".to_owned()).spawn(move || {
                    if let Err(error) = serve(stream, engine, limit) {
                        log::info(format_args!("a client was lost: {error}"));
                    }
                    drop(seat);
                });
                if let Err(error) = serving {
                    log::warn(format_args!("no thread for a client: {error}"));
                }
            }
            None => refuse(stream),
        }
    }
}

/// Counts the clients and tells the engine.
struct Seats {
    taken: Mutex<usize>,
    engine: EngineHandle,
}

struct Seat(Arc<Seats>);

impl Seats {
    fn take(self: &Arc<Self>) -> Option<Seat> {
        let mut taken = lock(&self.taken);
        if *taken >= limits::MAX_CLIENTS {
            return None;
        }
        *taken += 1;
        // Told under the lock, so that the engine hears the numbers in order.
        self.engine.clients(*taken);
        log::info(format_args!("a client came; there are {}", *taken));
        Some(Seat(Arc::clone(self)))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = lock(&self.0.taken);
        *taken -= 1;
        self.0.engine.clients(*taken);
        log::info(format_args!("a client went; there are {}", *taken));
    }
}

fn refuse(mut stream: TcpStream) {
    let error = AgentError::new(
        ErrorCode::LimitExceeded,
        format!("{} clients are connected already, which is the most there may be", limits::MAX_CLIENTS),
    )
    .hint("close a connection and connect again")
    .detail("max_clients", limits::MAX_CLIENTS);
    log::info(format_args!("a client was refused: {}", error.message));
    // The buffer of a new connection is empty, so this does not block; a client that does not want it loses nothing.
    drop(stream.write_all(format!("{}\n", wire::encode_error(&error, None)).as_bytes()));
}

/// What the reader, the writer and the engine share about one client.
struct Client {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Answers to be written, in order of completion.
    answers: VecDeque<Answer>,
    /// Commands that the engine has not answered.
    open: BTreeMap<u64, Open>,
    next: u64,
    /// Commands read and not yet answered on the socket, and the bytes they stand for.
    commands: usize,
    bytes: u64,
    /// Nothing more comes from the client.
    input_ended: bool,
    /// Nothing more goes to the client.
    closed: bool,
}

struct Answer {
    outcome: Outcome,
    id: Option<Value>,
    weight: u64,
}

struct Open {
    id: Option<Value>,
    op: &'static str,
    asked: Instant,
    limit: Duration,
    gone: Gone,
    waits: bool,
    weight: u64,
}

impl Open {
    fn deadline(&self) -> Instant {
        self.asked + self.limit
    }
}

/// Serves one client to its end.
fn serve(stream: TcpStream, engine: EngineHandle, limit: TimeLimit) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let client = Arc::new(Client { state: Mutex::new(State::default()), changed: Condvar::new() });
    let output = stream.try_clone()?;
    let sender = Arc::clone(&client);
    let writer = thread::Builder::new().name("client writer".to_owned()).spawn(move || {
        if let Err(error) = sender.write(&output) {
            log::info(format_args!("a client does not take its answers: {error}"));
        }
        sender.close();
        // The reader may be waiting for a line.
        drop(output.shutdown(Shutdown::Both));
    })?;
    let end = client.read(&stream, &engine, limit);
    match &end {
        Ok(End::Input) => {
            lock(&client.state).input_ended = true;
            client.changed.notify_all();
        }
        Ok(End::Foreign) => log::warn(format_args!("a connection was closed: it speaks HTTP or TLS")),
        Err(error) => log::info(format_args!("a client was lost: {error}")),
    }
    if !matches!(end, Ok(End::Input)) {
        client.close();
        // The writer may be waiting for the client to take an answer.
        drop(stream.shutdown(Shutdown::Both));
    }
    client.forget_waits(&engine);
    // The writer cannot panic; it ends when all is written or the client is lost.
    drop(writer.join());
    Ok(())
}

/// Why reading ended.
enum End {
    Input,
    Foreign,
}

impl Client {
    fn read(self: &Arc<Self>, stream: &TcpStream, engine: &EngineHandle, limit: TimeLimit) -> io::Result<End> {
        let mut lines = LineReader::new(BufReader::with_capacity(64 * 1024, stream), limits::MAX_FRAME_BYTES);
        loop {
            let (envelope, length) = match lines.next_line() {
                Ok(None) => return Ok(End::Input),
                Ok(Some(line)) if is_foreign(line) => return Ok(End::Foreign),
                Ok(Some(line)) => (wire::parse_request(line), line.len() as u64),
                Err(FrameError::TooLong { start, .. }) if is_foreign(&start) => return Ok(End::Foreign),
                Err(FrameError::TooLong { limit, .. }) => (too_long(limit), 0),
                Err(FrameError::Io(error)) => return Err(error),
            };
            let Envelope { id, request } = envelope;
            let weight = length + request.as_ref().map_or(0, expected_bytes);
            if !self.admit(weight) {
                return Ok(End::Input);
            }
            match request {
                Ok(request) => self.submit(request, id, weight, engine, limit),
                Err(error) => self.push(Answer { outcome: Err(error), id, weight }),
            }
        }
    }

    /// Waits until the client may have one more unanswered command of this weight; false when it is lost.
    fn admit(&self, weight: u64) -> bool {
        let mut state = lock(&self.state);
        while !state.closed
            && (state.commands >= limits::MAX_CLIENT_COMMANDS
                || (state.commands > 0 && state.bytes + weight > limits::MAX_CLIENT_BYTES))
        {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.commands += 1;
        state.bytes += weight;
        !state.closed
    }

    fn submit(
        self: &Arc<Self>,
        request: Request,
        id: Option<Value>,
        weight: u64,
        engine: &EngineHandle,
        limit: TimeLimit,
    ) {
        log::debug(format_args!("{}", request.op()));
        let mut state = lock(&self.state);
        let number = state.next;
        state.next += 1;
        let client = Arc::clone(self);
        let reply = ReplyTo::new(move |outcome| client.answer(number, outcome));
        let open = Open {
            id,
            op: request.op(),
            asked: Instant::now(),
            limit: limit(&request),
            gone: reply.gone(),
            waits: runner::waits(&request),
            weight,
        };
        state.open.insert(number, open);
        drop(state);
        // The writer must know the new deadline.
        self.changed.notify_all();
        engine.submit(request, reply);
    }

    /// Takes the engine's answer, on the engine's thread. One that comes too late has been answered already.
    fn answer(&self, number: u64, outcome: Outcome) {
        let mut state = lock(&self.state);
        if let Some(open) = state.open.remove(&number) {
            state.answers.push_back(Answer { outcome, id: open.id, weight: open.weight });
        }
        drop(state);
        self.changed.notify_all();
    }

    fn push(&self, answer: Answer) {
        lock(&self.state).answers.push_back(answer);
        self.changed.notify_all();
    }

    /// Writes answers until the client is lost, or has said all and been answered all.
    fn write(&self, mut stream: &TcpStream) -> io::Result<()> {
        while let Some(answer) = self.next_answer() {
            let mut line = match &answer.outcome {
                Ok(reply) => wire::encode_result(reply, answer.id.as_ref()),
                Err(error) => wire::encode_error(error, answer.id.as_ref()),
            };
            line.push('\n');
            let until = Instant::now() + Duration::from_secs(limits::CLIENT_WRITE_TIMEOUT_S);
            let mut rest = line.as_bytes();
            while !rest.is_empty() {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                stream.set_write_timeout(Some(left))?;
                match stream.write(rest) {
                    Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                    Ok(written) => rest = rest.get(written..).unwrap_or_default(),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            let mut state = lock(&self.state);
            state.commands -= 1;
            state.bytes -= answer.weight;
            drop(state);
            self.changed.notify_all();
        }
        Ok(())
    }

    fn next_answer(&self) -> Option<Answer> {
        let mut state = lock(&self.state);
        loop {
            if state.closed {
                return None;
            }
            if let Some(answer) = state.answers.pop_front() {
                return Some(answer);
            }
            if state.input_ended && state.open.is_empty() {
                return None;
            }
            let now = Instant::now();
            let first = state.open.iter().min_by_key(|(_, open)| open.deadline()).map(|(number, open)| (*number, open));
            state = match first {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some((_, open)) if open.deadline() > now => {
                    let left = open.deadline() - now;
                    self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
                Some((number, _)) => {
                    if let Some(open) = state.open.remove(&number) {
                        open.gone.set();
                        let outcome = Err(runner::silence(open.op, open.limit));
                        state.answers.push_back(Answer { outcome, id: open.id, weight: open.weight });
                    }
                    state
                }
            };
        }
    }

    /// Nothing more is written, and nothing more is read.
    fn close(&self) {
        lock(&self.state).closed = true;
        self.changed.notify_all();
    }

    /// Makes the engine forget what it waits for on this client's behalf, since nobody is there to hear it.
    fn forget_waits(&self, engine: &EngineHandle) {
        let mut state = lock(&self.state);
        let closed = state.closed;
        state.open.retain(|_, open| {
            let forget = closed || open.waits;
            if forget {
                open.gone.set();
            }
            !forget
        });
        drop(state);
        self.changed.notify_all();
        engine.wake();
    }
}

fn too_long(limit: usize) -> Envelope {
    let error = AgentError::new(ErrorCode::FrameTooLarge, format!("the line is longer than {limit} bytes"))
        .hint("write memory in several parts")
        .detail("max_bytes", limit);
    Envelope { id: None, request: Err(error) }
}

/// Bytes of the answer, where the request says so.
fn expected_bytes(request: &Request) -> u64 {
    match request {
        Request::ReadMemory(params) => params.length.min(limits::MAX_READ_BYTES),
        _ => 0,
    }
}

/// Whether the line is the start of another protocol. A web page can make a browser send HTTP to any local port, with a
/// body of the page's choice, and a TLS greeting with parts of the server's choice; neither may reach a command.
fn is_foreign(line: &[u8]) -> bool {
    let word = line.iter().take_while(|byte| byte.is_ascii_uppercase()).count();
    let http = word >= 3 && line.get(word) == Some(&b' ');
    http || line.starts_with(&[0x16, 0x03])
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Hold, Script};
    use serde_json::json;
    use std::io::{BufRead, Read};
    use std::sync::mpsc;

    struct Served {
        address: SocketAddr,
        clients: mpsc::Receiver<usize>,
    }

    fn serving(hold: Hold, limit: TimeLimit) -> Served {
        let (sender, clients) = mpsc::channel();
        let script = move || Ok(Script::new(hold, sender));
        let engine = runner::start(script, || ()).unwrap();
        let listener = bind(IpAddr::from([127, 0, 0, 1]), 0).unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || run_with(&listener, &engine, limit));
        Served { address, clients }
    }

    struct Conversation {
        stream: TcpStream,
        lines: BufReader<TcpStream>,
    }

    impl Served {
        fn connect(&self) -> Conversation {
            let stream = TcpStream::connect(self.address).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            Conversation { lines: BufReader::new(stream.try_clone().unwrap()), stream }
        }

        /// Waits until the engine has been told of this many clients.
        fn wait_for_clients(&self, wanted: usize) {
            while self.clients.recv_timeout(Duration::from_secs(60)).unwrap() != wanted {}
        }
    }

    impl Conversation {
        fn send(&mut self, bytes: &[u8]) {
            self.stream.write_all(bytes).unwrap();
        }

        fn receive(&mut self) -> Option<Value> {
            let mut line = String::new();
            self.lines.read_line(&mut line).unwrap();
            (!line.is_empty()).then(|| serde_json::from_str(&line).unwrap())
        }

        fn ask(&mut self, line: &str) -> Value {
            self.send(line.as_bytes());
            self.send(b"\n");
            self.receive().unwrap()
        }
    }

    fn plain() -> Served {
        serving(Hold::default(), runner::time_limit)
    }

    #[test]
    fn only_loopback_is_listened_on() {
        for address in ["0.0.0.0", "192.0.2.1", "::"] {
            let refused = bind(address.parse().unwrap(), 0).unwrap_err();
            assert!(refused.contains("loopback"), "{refused}");
        }
        let taken = bind(IpAddr::from([127, 0, 0, 1]), 0).unwrap();
        let refused = bind(IpAddr::from([127, 0, 0, 1]), taken.local_addr().unwrap().port()).unwrap_err();
        assert!(refused.contains("is taken") && refused.contains("--port"), "{refused}");
    }

    #[test]
    fn the_id_is_echoed_and_a_wait_does_not_hold_up_other_lines() {
        let served = plain();
        let mut client = served.connect();
        client.send(b"{\"op\":\"continue_execution\",\"params\":{\"timeout\":300},\"id\":[1]}\n");
        assert_eq!(client.ask(r#"{"op":"hello","id":{"a":null}}"#)["id"], json!({"a": null}));
        assert_eq!(client.ask(r#"{"op":"hello"}"#).get("id"), None);
        client.send(b"{\"op\":\"pause\",\"id\":\"p\"}\n");
        let mut ids = [client.receive().unwrap()["id"].clone(), client.receive().unwrap()["id"].clone()];
        ids.sort_by_key(|id| id.is_string());
        assert_eq!(ids, [json!([1]), json!("p")]);
    }

    #[test]
    fn bad_lines_are_answered_and_the_connection_lives_on() {
        let served = plain();
        let mut client = served.connect();
        for (line, code) in [
            ("{", "bad_request"),
            ("", "bad_request"),
            ("[]", "bad_request"),
            (r#"{"op":"fly"}"#, "unknown_op"),
            (r#"{"op":"hello","params":{"protocol":"x"}}"#, "invalid_params"),
        ] {
            assert_eq!(client.ask(line)["code"], code, "{line}");
        }
        client.send(b"\xff\xfe\0garbage\n");
        assert_eq!(client.receive().unwrap()["code"], "bad_request");
        let mut long = vec![b'['; limits::MAX_FRAME_BYTES + 1];
        long.push(b'\n');
        client.send(&long);
        assert_eq!(client.receive().unwrap()["code"], "frame_too_large");
        assert_eq!(client.ask(r#"{"op":"hello"}"#)["ok"], true);
    }

    #[test]
    fn a_browser_gets_nothing() {
        let served = plain();
        let mut long = b"POST /".to_vec();
        long.resize(limits::MAX_FRAME_BYTES + 10, b'a');
        for start in [b"POST / HTTP/1.1".as_slice(), b"GET /".as_slice(), b"\x16\x03\x01\x02\0\x01", &long] {
            let mut client = served.connect();
            client.send(start);
            // The agent may close while the rest is on its way.
            drop(client.stream.write_all(b"\r\nHost: a\r\n\r\n{\"op\":\"pause\"}\n"));
            let mut answer = Vec::new();
            drop(client.stream.read_to_end(&mut answer));
            assert!(answer.is_empty(), "{}", String::from_utf8_lossy(&answer));
        }
        assert!(!is_foreign(br#"{"op":"hello"}"#) && !is_foreign(b"") && !is_foreign(b"GETS") && !is_foreign(b"A b"));
    }

    #[test]
    fn what_was_asked_before_the_end_of_input_is_answered() {
        let served = plain();
        let mut client = served.connect();
        for _ in 0..5 {
            client.send(b"{\"op\":\"hello\"}\n");
        }
        client.stream.shutdown(Shutdown::Write).unwrap();
        for _ in 0..5 {
            assert_eq!(client.receive().unwrap()["ok"], true);
        }
        assert_eq!(client.receive(), None);
    }

    #[test]
    fn a_lost_client_leaves_no_wait_behind() {
        let served = plain();
        let mut lost = served.connect();
        lost.send(b"{\"op\":\"continue_execution\",\"params\":{\"timeout\":300}}\n");
        assert_eq!(lost.ask(r#"{"op":"hello"}"#)["ok"], true);
        served.wait_for_clients(1);
        drop(lost);
        served.wait_for_clients(0);
        assert_eq!(served.connect().ask(r#"{"op":"pause"}"#)["error"], "nobody waits");
    }

    #[test]
    fn a_client_too_many_is_told_and_closed() {
        let served = plain();
        let mut clients: Vec<_> = (0..limits::MAX_CLIENTS).map(|_| served.connect()).collect();
        assert!(clients.iter_mut().all(|client| client.ask(r#"{"op":"hello"}"#)["ok"] == true));
        let mut more = served.connect();
        let refused = more.receive().unwrap();
        assert_eq!(refused["code"], "limit_exceeded");
        assert_eq!(more.receive(), None);
        drop(clients.pop());
        served.wait_for_clients(limits::MAX_CLIENTS);
        served.wait_for_clients(limits::MAX_CLIENTS - 1);
        assert_eq!(served.connect().ask(r#"{"op":"hello"}"#)["ok"], true);
    }

    #[test]
    fn a_client_that_never_reads_does_not_hold_up_another() {
        let served = plain();
        let mut deaf = served.connect();
        // Far more than the buffers of a socket hold.
        let request = br#"{"op":"read_memory","params":{"addr":0,"length":4000000}}"#;
        for _ in 0..20 {
            deaf.send(request);
            deaf.send(b"\n");
        }
        let mut other = served.connect();
        for _ in 0..100 {
            assert_eq!(other.ask(r#"{"op":"hello"}"#)["ok"], true);
        }
    }

    #[test]
    fn a_silent_engine_is_answered_for() {
        let hold = Hold::default();
        let served = serving(hold.clone(), |_| Duration::from_millis(50));
        let mut client = served.connect();
        let answer = client.ask(r#"{"op":"list_modules","id":7}"#);
        assert_eq!((&answer["code"], &answer["id"]), (&json!("timeout"), &json!(7)));
        hold.release();
        // The late answer is not sent: the next line is the answer to the next command.
        while client.ask(r#"{"op":"hello","id":8}"#)["code"] == "timeout" {}
        assert_eq!(client.ask(r#"{"op":"hello","id":9}"#)["id"], 9);
    }

    #[test]
    fn many_commands_at_once_are_all_answered() {
        let served = plain();
        let mut client = served.connect();
        let mut writer = client.stream.try_clone().unwrap();
        let sending = thread::spawn(move || {
            for number in 0..5_000 {
                writer.write_all(format!("{{\"op\":\"hello\",\"id\":{number}}}\n").as_bytes()).unwrap();
            }
        });
        let mut ids: Vec<u64> = (0..5_000).map(|_| client.receive().unwrap()["id"].as_u64().unwrap()).collect();
        sending.join().unwrap();
        ids.sort_unstable();
        assert!(ids.into_iter().eq(0..5_000));
    }
}
