//! A scripted debugger for the tests of the runner and the server: it answers at once, waits, blocks or fails on demand.

use crate::platform::Waker;
use crate::reply::{Outcome, ReplyTo};
use crate::runner::Debugger;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use wire::commands::{Hello, HelloReply, ListModules, MemoryReply, StopReply};
use wire::{AgentError, Bytes, ErrorCode, HexAddr, Live, Reply, Request};

/// A gate in which the command `list_modules` blocks the engine.
#[derive(Clone, Default)]
pub struct Hold(Arc<(Mutex<Gate>, Condvar)>);

#[derive(Default)]
struct Gate {
    held: bool,
    open: bool,
}

impl Hold {
    /// The command that blocks.
    pub fn request() -> Request {
        ListModules {}.into()
    }

    pub fn wait_until_held(&self) {
        let (gate, changed) = &*self.0;
        drop(changed.wait_while(gate.lock().unwrap(), |gate| !gate.held).unwrap());
    }

    pub fn release(&self) {
        let (gate, changed) = &*self.0;
        gate.lock().unwrap().open = true;
        changed.notify_all();
    }

    fn enter(&self) {
        let (gate, changed) = &*self.0;
        gate.lock().unwrap().held = true;
        changed.notify_all();
        drop(changed.wait_while(gate.lock().unwrap(), |gate| !gate.open).unwrap());
    }
}

/// `hello` is answered at once; `continue_execution` waits for `pause`; `list_modules` blocks in the [`Hold`];
/// `read_memory` gives zeros; everything else panics.
#[derive(Default)]
pub struct Script {
    woken: Arc<(Mutex<bool>, Condvar)>,
    waiting: Option<ReplyTo>,
    hold: Hold,
    clients: Option<Sender<usize>>,
}

pub fn hello() -> Request {
    Hello::default().into()
}

impl Script {
    pub fn new(hold: Hold, clients: Sender<usize>) -> Self {
        Self { hold, clients: Some(clients), ..Self::default() }
    }

    pub fn greeting() -> Outcome {
        Ok(Reply::Hello(HelloReply {
            agent: "script".into(),
            version: "1".into(),
            protocol: wire::PROTOCOL_VERSION,
            platform: "none".into(),
            archs: vec![],
            features: vec![],
            agent_pid: 1,
            on_exit: "detach".into(),
            live: Live::default(),
        }))
    }

    pub fn stopped() -> Outcome {
        Ok(Reply::Stop(StopReply { timed_out: false, stop: None, live: Live::default() }))
    }
}

impl Debugger for Script {
    fn waker(&self) -> Waker {
        let woken = Arc::clone(&self.woken);
        Arc::new(move || {
            *woken.0.lock().unwrap() = true;
            woken.1.notify_all();
        })
    }

    fn handle(&mut self, request: Request, reply: ReplyTo) {
        match request {
            Request::Hello(_) => reply.send(Self::greeting()),
            Request::ContinueExecution(_) => self.waiting = Some(reply),
            Request::Pause(_) => match self.waiting.take() {
                Some(waiting) => {
                    waiting.send(Self::stopped());
                    reply.send(Self::stopped());
                }
                None => reply.send(Err(AgentError::new(ErrorCode::NotLaunched, "nobody waits"))),
            },
            Request::ListModules(_) => {
                self.hold.enter();
                reply.send(Self::greeting());
            }
            Request::ReadMemory(params) => reply.send(Ok(Reply::Memory(MemoryReply {
                addr: HexAddr(base::VirtAddr::new(0)),
                length: params.length,
                data: Bytes(vec![0; params.length as usize]),
                live: Live::default(),
            }))),
            other => panic!("{} is not in the script", other.op()),
        }
    }

    fn poll(&mut self, timeout: Duration) {
        let (woken, changed) = &*self.woken;
        let (mut woken, _) = changed.wait_timeout_while(woken.lock().unwrap(), timeout, |woken| !*woken).unwrap();
        *woken = false;
        self.waiting.take_if(|waiting| !waiting.is_wanted());
    }

    fn clients_changed(&mut self, connected: usize) {
        if let Some(clients) = &self.clients {
            let _ = clients.send(connected);
        }
    }

    fn shutdown(&mut self) {}
}
