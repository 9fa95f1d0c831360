//! The engine's own thread, and the handle by which all others talk to it. A debuggee belongs to the thread that took hold
//! of it (ptrace and the Win32 debug API both want it so), so everything about it happens there, one command at a time.

use crate::platform::Waker;
use crate::reply::{Outcome, ReplyTo};
use base::limits;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;
use wire::{AgentError, ErrorCode, Request};

/// What the runner drives: the engine, or a scripted one in tests.
pub trait Debugger {
    /// Makes a [`Debugger::poll`] in progress, or the next one, return early.
    fn waker(&self) -> Waker;
    /// Starts a command; those that wait keep `reply` until they are done or their time is up.
    fn handle(&mut self, request: Request, reply: ReplyTo);
    /// Waits at most `timeout` for something to happen and handles it.
    fn poll(&mut self, timeout: Duration);
    /// Says how many clients there are now.
    fn clients_changed(&mut self, connected: usize);
    /// Lets the program go or ends it, as configured; may be called again, and is bounded in time.
    fn shutdown(&mut self);
}

enum Job {
    Request(Request, ReplyTo),
    Clients(usize),
    Shutdown(Sender<()>),
}

/// Talks to the engine from any thread.
#[derive(Clone)]
pub struct EngineHandle {
    jobs: Sender<Job>,
    queued: Arc<AtomicUsize>,
    waker: Waker,
}

/// Starts the engine on a thread of its own, where `make` builds it. `ended` runs there when the engine is gone: after a
/// shutdown, or because it failed.
///
/// # Errors
/// What `make` says, or that no thread could be started.
pub fn start<D: Debugger>(
    make: impl FnOnce() -> Result<D, String> + Send + 'static,
    ended: impl FnOnce() + Send + 'static,
) -> Result<EngineHandle, String> {
    let (jobs, inbox) = mpsc::channel();
    let (made, waker) = mpsc::channel();
    let queued = Arc::new(AtomicUsize::new(0));
    let taken = Arc::clone(&queued);
    let body = move || {
        let mut debugger = match make() {
            Ok(debugger) => debugger,
            // The receiver waits below; were it gone, nobody would be left to tell.
            Err(reason) => return drop(made.send(Err(reason))),
        };
        if made.send(Ok(debugger.waker())).is_ok() {
            run(&mut debugger, &inbox, &taken);
        }
        drop(debugger);
        drop(inbox);
        ended();
    };
    thread::Builder::new()
        .name("engine".to_owned())
        .spawn(body)
        .map_err(|error| format!("the engine's thread could not be started: {error}"))?;
    let waker = waker.recv().map_err(|_| "the engine's thread ended at its start".to_owned())??;
    Ok(EngineHandle { jobs, queued, waker })
}

/// Runs until a shutdown. A panic is a fault of ours; the program being debugged must not pay for it, so it is let go.
fn run<D: Debugger>(debugger: &mut D, inbox: &Receiver<Job>, queued: &AtomicUsize) {
    let served = catch_unwind(AssertUnwindSafe(|| serve(debugger, inbox, queued)));
    let acknowledge = match served {
        Ok(acknowledge) => acknowledge,
        Err(_) => {
            crate::log::error(format_args!("the engine failed; the program is let go and the agent ends"));
            None
        }
    };
    if catch_unwind(AssertUnwindSafe(|| debugger.shutdown())).is_err() {
        crate::log::error(format_args!("the engine failed again while it let the program go"));
    }
    if let Some(acknowledge) = acknowledge {
        // Whoever asked may have given up waiting.
        let _ = acknowledge.send(());
    }
}

fn serve<D: Debugger>(debugger: &mut D, inbox: &Receiver<Job>, queued: &AtomicUsize) -> Option<Sender<()>> {
    loop {
        loop {
            match inbox.try_recv() {
                Ok(Job::Request(request, reply)) => {
                    queued.fetch_sub(1, Ordering::AcqRel);
                    if reply.is_wanted() {
                        debugger.handle(request, reply);
                    }
                }
                Ok(Job::Clients(connected)) => debugger.clients_changed(connected),
                Ok(Job::Shutdown(acknowledge)) => return Some(acknowledge),
                Err(mpsc::TryRecvError::Empty) => break,
                Err(mpsc::TryRecvError::Disconnected) => return None,
            }
        }
        debugger.poll(Duration::from_millis(limits::ENGINE_POLL_MS));
    }
}

impl EngineHandle {
    /// Hands a command to the engine. `reply` is answered in any case, at once when the engine cannot take the command.
    pub fn submit(&self, request: Request, reply: ReplyTo) {
        if self.queued.fetch_add(1, Ordering::AcqRel) >= limits::MAX_QUEUED_COMMANDS {
            self.queued.fetch_sub(1, Ordering::AcqRel);
            let full = AgentError::new(
                ErrorCode::Busy,
                format!("{} commands are waiting for the debugger already", limits::MAX_QUEUED_COMMANDS),
            );
            return reply.send(Err(full.hint("wait for some answers before sending more")));
        }
        match self.jobs.send(Job::Request(request, reply)) {
            Ok(()) => (self.waker)(),
            Err(mpsc::SendError(job)) => {
                self.queued.fetch_sub(1, Ordering::AcqRel);
                if let Job::Request(_, reply) = job {
                    reply.send(Err(AgentError::new(ErrorCode::Internal, "the agent is shutting down")));
                }
            }
        }
    }

    /// Hands a command to the engine and waits for its answer, never longer than [`time_limit`].
    ///
    /// # Errors
    /// The engine's own; `timeout` when it does not speak in time.
    pub fn call(&self, request: impl Into<Request>) -> Outcome {
        let request = request.into();
        let (op, limit) = (request.op(), time_limit(&request));
        let (sender, answer) = mpsc::channel();
        let reply = ReplyTo::new(move |outcome| drop(sender.send(outcome)));
        let gone = reply.gone();
        self.submit(request, reply);
        answer.recv_timeout(limit).unwrap_or_else(|_| {
            gone.set();
            (self.waker)();
            Err(silence(op, limit))
        })
    }

    /// Tells the engine how many clients there are: without one, a stopped program is let go after a while.
    pub fn clients(&self, connected: usize) {
        if self.jobs.send(Job::Clients(connected)).is_ok() {
            (self.waker)();
        }
    }

    /// Makes the engine look at what changed from outside, such as a [`crate::reply::Gone`].
    pub fn wake(&self) {
        (self.waker)();
    }

    /// Lets the program go or ends it, as configured, and ends the engine. True when that was done within `timeout`, or
    /// had been done before.
    pub fn shutdown(&self, timeout: Duration) -> bool {
        let (sender, done) = mpsc::channel();
        if self.jobs.send(Job::Shutdown(sender)).is_err() {
            return true;
        }
        (self.waker)();
        !matches!(done.recv_timeout(timeout), Err(mpsc::RecvTimeoutError::Timeout))
    }
}

/// How long a command may take until whoever asked is told that the engine is silent: the command's own limit, the time
/// of one other command before it, and some slack.
pub fn time_limit(request: &Request) -> Duration {
    let command = Duration::from_millis(limits::COMMAND_TIMEOUT_MS);
    let own = match request {
        Request::ContinueExecution(params) => seconds(params.timeout),
        Request::Step(params) => params.timeout.map_or(command, seconds),
        _ => command,
    };
    own + command + Duration::from_millis(limits::ENGINE_SLACK_MS)
}

/// Whether the command waits for the program for as long as its caller says.
pub fn waits(request: &Request) -> bool {
    matches!(request, Request::ContinueExecution(_) | Request::Step(_))
}

/// A number from outside: what is out of range is refused by the engine, at once.
fn seconds(timeout: f64) -> Duration {
    Duration::try_from_secs_f64(timeout).unwrap_or_default().min(Duration::from_secs(limits::MAX_CONTINUE_TIMEOUT_S))
}

/// What is answered in the engine's place.
pub fn silence(op: &str, waited: Duration) -> AgentError {
    AgentError::new(ErrorCode::Timeout, format!("{op}: the debugger did not answer within {} s", waited.as_secs()))
        .hint("the operating system may be holding it up; try get_status")
        .detail("waited_s", waited.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::Gone;
    use crate::testing::{Hold, Script, hello};
    use wire::commands::{ContinueExecution, GetStatus, Pause, Step};

    fn started() -> (EngineHandle, mpsc::Receiver<&'static str>) {
        let (sender, ended) = mpsc::channel();
        (start(|| Ok(Script::default()), move || sender.send("ended").unwrap()).unwrap(), ended)
    }

    #[test]
    fn a_call_is_answered_by_the_engine() {
        let (engine, ended) = started();
        assert_eq!(engine.call(hello()), Script::greeting());
        assert!(engine.shutdown(Duration::from_secs(10)));
        assert_eq!(ended.recv(), Ok("ended"));
        assert!(engine.shutdown(Duration::from_secs(10)), "a second shutdown finds it done");
        let refused = engine.call(hello()).unwrap_err();
        assert_eq!((refused.code, refused.message.as_str()), (ErrorCode::Internal, "the agent is shutting down"));
    }

    #[test]
    fn a_wait_does_not_keep_others_from_being_served() {
        let (engine, _ended) = started();
        let other = engine.clone();
        let waiting = thread::spawn(move || other.call(ContinueExecution { timeout: 300.0 }));
        // `pause` answers the wait in the script; until then every other command is served.
        while engine.call(Pause {}).is_err() {
            assert_eq!(engine.call(hello()), Script::greeting());
        }
        assert_eq!(waiting.join().unwrap(), Script::stopped());
    }

    #[test]
    fn a_wait_of_a_client_that_went_is_dropped() {
        let (engine, _ended) = started();
        let (sender, answers) = mpsc::channel();
        let reply = ReplyTo::new(move |outcome| sender.send(outcome).unwrap());
        let gone: Gone = reply.gone();
        engine.submit(ContinueExecution { timeout: 300.0 }.into(), reply);
        assert!(engine.call(hello()).is_ok());
        gone.set();
        engine.wake();
        assert_eq!(answers.recv().unwrap().unwrap_err().code, ErrorCode::Internal);
        assert_eq!(engine.call(Pause {}).unwrap_err().message, "nobody waits");
    }

    #[test]
    fn a_panic_lets_the_program_go_and_is_reported() {
        let (engine, ended) = started();
        let lost = engine.call(GetStatus {}).unwrap_err();
        assert_eq!(lost.code, ErrorCode::Internal);
        assert_eq!(ended.recv(), Ok("ended"));
        assert!(engine.call(hello()).is_err());
    }

    #[test]
    fn what_cannot_be_made_is_an_error() {
        let refused = start(|| Err::<Script, _>("no ptrace here".to_owned()), || ());
        assert_eq!(refused.err(), Some("no ptrace here".to_owned()));
    }

    #[test]
    fn a_flood_is_refused_and_the_engine_lives_on() {
        let hold = Hold::default();
        let (gate, (clients, _)) = (hold.clone(), mpsc::channel());
        let engine = start(move || Ok(Script::new(gate, clients)), || ()).unwrap();
        engine.submit(Hold::request(), ReplyTo::new(drop));
        hold.wait_until_held();
        let (sender, answers) = mpsc::channel();
        for _ in 0..limits::MAX_QUEUED_COMMANDS + 3 {
            let sender = sender.clone();
            engine.submit(hello(), ReplyTo::new(move |outcome| sender.send(outcome.is_ok()).unwrap()));
        }
        drop(sender);
        hold.release();
        let (good, refused): (Vec<bool>, Vec<bool>) = answers.iter().partition(|good| *good);
        assert_eq!((good.len(), refused.len()), (limits::MAX_QUEUED_COMMANDS, 3));
    }

    #[test]
    fn limits_follow_the_command() {
        // 10 s for the command, 10 s for one before it, 5 s slack.
        assert_eq!(time_limit(&hello()), Duration::from_secs(25));
        assert_eq!(time_limit(&ContinueExecution { timeout: 60.0 }.into()), Duration::from_secs(75));
        assert_eq!(time_limit(&Step { timeout: Some(0.5), ..Step::default() }.into()), Duration::from_millis(15_500));
        for strange in [-1.0, f64::MAX, f64::INFINITY, f64::NAN] {
            assert!(time_limit(&ContinueExecution { timeout: strange }.into()) <= Duration::from_secs(315));
        }
    }
}
