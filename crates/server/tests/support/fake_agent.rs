//! A scripted agent: speaks the wire, debugs nothing, remembers what it was asked.

use base64::Engine as _;
use serde_json::{Map, Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// How an operation is answered.
#[derive(Clone)]
pub enum Script {
    /// With this result.
    Result(Value),
    /// With this error object (`error`, `code`, …).
    Refuse(Value),
    /// Not at all: the connection is closed.
    Hang,
    /// Not until [`FakeAgent::release`]; then as usual.
    Hold,
}

#[derive(Default)]
struct Shared {
    scripts: Mutex<Map<String, Value>>,
    special: Mutex<Vec<(String, Script)>>,
    asked: Mutex<Vec<(String, Value)>>,
    released: Mutex<bool>,
    bell: Condvar,
    connections: Mutex<Vec<TcpStream>>,
    accepted: Mutex<usize>,
}

/// The agent; ends with the value.
pub struct FakeAgent {
    pub address: String,
    shared: Arc<Shared>,
    /// One message for each connection that its client closed.
    pub closed: Receiver<()>,
}

impl FakeAgent {
    pub fn start() -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").unwrap())
    }

    pub fn on(listener: TcpListener) -> Self {
        let address = listener.local_addr().unwrap().to_string();
        let shared = Arc::new(Shared::default());
        let (closing, closed) = mpsc::channel();
        let accepting = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                *accepting.accepted.lock().unwrap() += 1;
                accepting.connections.lock().unwrap().push(stream.try_clone().unwrap());
                let (shared, closing) = (Arc::clone(&accepting), closing.clone());
                thread::spawn(move || answer(&stream, &shared, &closing));
            }
        });
        Self { address, shared, closed }
    }

    /// From now on `op` is answered so.
    pub fn script(&self, op: &str, script: Script) {
        let mut special = self.shared.special.lock().unwrap();
        special.retain(|(name, _)| name != op);
        special.push((op.to_owned(), script));
    }

    /// Lets every held operation go on.
    pub fn release(&self) {
        *self.shared.released.lock().unwrap() = true;
        self.shared.bell.notify_all();
    }

    /// Operations and their parameters so far, without the greetings.
    pub fn asked(&self) -> Vec<(String, Value)> {
        self.shared.asked.lock().unwrap().clone()
    }

    /// Parameters of the last `op`.
    pub fn last(&self, op: &str) -> Value {
        self.asked().into_iter().rev().find(|(name, _)| name == op).unwrap_or_else(|| panic!("{op} was not asked")).1
    }

    /// Waits until `op` has been asked.
    pub fn wait_for(&self, op: &str) {
        let start = Instant::now();
        while !self.asked().iter().any(|(name, _)| name == op) {
            assert!(start.elapsed() < Duration::from_secs(20), "{op} was not asked");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Connections accepted so far.
    pub fn accepted(&self) -> usize {
        *self.shared.accepted.lock().unwrap()
    }

    /// Closes every connection, as an agent that ends does.
    pub fn drop_connections(&self) {
        for stream in self.shared.connections.lock().unwrap().drain(..) {
            drop(stream.shutdown(Shutdown::Both));
        }
    }
}

fn answer(stream: &TcpStream, shared: &Shared, closing: &Sender<()>) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    while let Some(Ok(line)) = lines.next() {
        let request: Value = serde_json::from_str(&line).unwrap();
        let op = request["op"].as_str().unwrap().to_owned();
        let params = request["params"].clone();
        if op != "hello" {
            shared.asked.lock().unwrap().push((op.clone(), params.clone()));
        }
        let script =
            shared.special.lock().unwrap().iter().find(|(name, _)| *name == op).map(|(_, script)| script.clone());
        let reply = match script {
            None => json!({"ok": true, "result": usual(&op, &params)}),
            Some(Script::Result(result)) => json!({"ok": true, "result": result}),
            Some(Script::Refuse(mut error)) => {
                error["ok"] = json!(false);
                error
            }
            Some(Script::Hang) => {
                drop(stream.shutdown(Shutdown::Both));
                return;
            }
            Some(Script::Hold) => {
                if held(stream, shared) {
                    let _gone = closing.send(());
                    return;
                }
                json!({"ok": true, "result": usual(&op, &params)})
            }
        };
        if (&*stream).write_all(format!("{reply}\n").as_bytes()).is_err() {
            return;
        }
    }
    let _gone = closing.send(());
}

/// Waits for the release; true when the client went away first.
fn held(stream: &TcpStream, shared: &Shared) -> bool {
    stream.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
    let mut released = shared.released.lock().unwrap();
    while !*released {
        (released, _) = shared.bell.wait_timeout(released, Duration::from_millis(5)).unwrap();
        if matches!(stream.peek(&mut [0]), Ok(0)) {
            return true;
        }
    }
    stream.set_read_timeout(None).unwrap();
    false
}

fn live(more: Value) -> Value {
    let mut reply = json!({"state": "stopped", "status": "stopped", "reason": "entry", "pc": "0x401000", "thread": 7, "generation": 3});
    reply.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    reply
}

/// A PNG of one red pixel, made by Python's zlib and struct.
pub const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";

/// What an agent would answer.
pub fn usual(op: &str, params: &Value) -> Value {
    let stop = json!({"symbol": "main", "instruction": {"addr": "0x401000", "bytes": "90", "text": "nop"}});
    let breakpoint =
        json!({"addr": "0x401000", "spec": "main", "pending": false, "hits": 0, "ignore_count": 0, "one_shot": false});
    let watchpoint = json!({"slot": 0, "addr": "0x480000", "spec": "0x480000", "size": 4, "mode": "write", "hits": 0, "ignore_count": 0});
    match op {
        "hello" => live(json!({"agent": "retroscope-agent", "version": "0.1.0", "protocol": 1, "platform": "linux",
            "archs": ["x86_64"], "features": [], "agent_pid": 1, "on_exit": "detach"})),
        "launch" | "attach" => live(
            json!({"pid": 9, "path": "/games/a", "arch": "x86_64", "attached": op == "attach", "threads": 1, "stop": stop}),
        ),
        "detach" | "terminate" => live(json!({"pid": 9})),
        "get_status" => {
            live(json!({"pid": 9, "path": "/games/a", "breakpoint_count": 0, "watchpoint_count": 0, "waiting": false}))
        }
        "set_breakpoint" | "remove_breakpoint" => live(json!({"breakpoint": breakpoint, "breakpoints": ["0x401000"]})),
        "list_breakpoints" => live(json!({"breakpoints": ["0x401000"], "list": [breakpoint]})),
        "set_watchpoint" | "remove_watchpoint" => {
            live(json!({"slot": 0, "watchpoint": watchpoint, "watchpoints": {"0": "0x480000"}}))
        }
        "list_watchpoints" => live(json!({"watchpoints": {"0": "0x480000"}, "list": [watchpoint]})),
        "continue_execution" => live(json!({"timed_out": false, "stop": stop})),
        "pause" => live(json!({"how": "interrupt", "stop": stop})),
        "step" => live(json!({"steps": 1, "timed_out": false, "stop": stop})),
        "read_memory" => {
            let length = params["length"].as_u64().unwrap() as usize;
            let data = base64::engine::general_purpose::STANDARD.encode(vec![0x41; length]);
            live(json!({"addr": "0x480000", "length": length, "data": data}))
        }
        "write_memory" => live(json!({"addr": "0x480000", "length": 2})),
        "get_registers" | "set_registers" => {
            live(json!({"registers": {"rax": "0x1"}, "flags": ["ZF"], "of_thread": 7}))
        }
        "list_threads" => live(json!({"threads": [{"thread": 7, "current": true}]})),
        "list_modules" => live(
            json!({"modules": [{"name": "a", "path": "/games/a", "base": "0x400000", "size": 4096, "symbols": 3, "main": true}]}),
        ),
        "disassemble" => {
            live(json!({"instructions": [{"addr": "0x401000", "bytes": "90", "text": "nop"}], "next": "0x401001"}))
        }
        "backtrace" => live(
            json!({"frames": [{"index": 0, "pc": "0x401000", "found_by": "pc"}], "ended": "no more", "of_thread": 7}),
        ),
        "screenshot" => {
            live(json!({"png_base64": PIXEL, "width": 1, "height": 1, "title": "game", "method": "get_image"}))
        }
        other => panic!("there is no operation {other}"),
    }
}
