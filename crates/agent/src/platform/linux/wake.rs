//! The one blocking wait of the platform: for a tracee's next state, a deadline, or somebody who wakes us.
//!
//! The hot path must cost hardly more than a bare `waitpid`, so that is what it is: blocking, without a timer armed. A
//! helper thread, the kicker, interrupts it by a signal when the deadline has come or a waker asks for it.
//!
//! No wakeup can be lost. A waker stores `woken`, then reads `phase`; the waiter stores `phase`, then reads `woken`; both
//! in one total order (SeqCst), so either the waiter sees `woken` and does not block, or the waker sees it waiting and
//! rouses the kicker. A signal that comes after the waiter's check but before it is inside `waitpid` interrupts nothing,
//! so the kicker repeats it every millisecond until `phase` says that the wait is over. Deadlines likewise: the kicker
//! publishes in `next_look` when it will look again, then looks at `deadline`; the waiter stores its deadline, then reads
//! `next_look`, and rouses the kicker when that would be too late. Waits usually have ever later deadlines, so on the hot
//! path that never happens, and the kicker wakes as often as a deadline passes.

use super::sys;
use crate::platform::{PlatformError, Waker};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::SeqCst};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

const IDLE: u8 = 0;
const WAITING: u8 = 1;
const WAITING_DEAF: u8 = 2;
const CLOSED: u8 = 3;

/// How soon a signal that may have come too early is repeated.
const REPEAT: Duration = Duration::from_millis(1);

/// What the waiter, the kicker and the wakers share. Times are nanoseconds since `start`.
struct Shared {
    start: Instant,
    waiter: Thread,
    waiter_number: u32,
    phase: AtomicU8,
    woken: AtomicBool,
    deadline: AtomicU64,
    next_look: AtomicU64,
    kicker: std::sync::OnceLock<Thread>,
}

/// Owned by the thread that waits.
pub struct Wake {
    shared: Arc<Shared>,
    kicker: Option<JoinHandle<()>>,
}

/// How a wait ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Waited {
    /// A tracee has this raw status.
    Status(u32, i32),
    /// The deadline is over.
    TimeIsUp,
    /// A waker was used.
    Woken,
}

impl Wake {
    /// Makes the calling thread the waiter.
    pub fn new() -> Result<Wake, PlatformError> {
        sys::prepare_kicks().map_err(|error| super::os_error("sigaction", &error))?;
        let shared = Arc::new(Shared {
            start: Instant::now(),
            waiter: thread::current(),
            waiter_number: nix::unistd::gettid().as_raw() as u32,
            phase: AtomicU8::new(IDLE),
            woken: AtomicBool::new(false),
            deadline: AtomicU64::new(u64::MAX),
            next_look: AtomicU64::new(0),
            kicker: std::sync::OnceLock::new(),
        });
        let theirs = Arc::clone(&shared);
        let kicker = thread::Builder::new()
            .name("kicker".to_owned())
            .spawn(move || kick_in_time(&theirs))
            .map_err(|error| super::os_error("starting a thread", &error))?;
        let _ = shared.kicker.set(kicker.thread().clone());
        Ok(Wake { shared, kicker: Some(kicker) })
    }

    /// A handle for other threads.
    pub fn waker(&self) -> Waker {
        let shared = Arc::clone(&self.shared);
        Arc::new(move || {
            shared.woken.store(true, SeqCst);
            if shared.phase.load(SeqCst) == WAITING {
                shared.rouse_kicker();
                // Where there is no tracee, the waiter is parked.
                shared.waiter.unpark();
            }
        })
    }

    /// Waits for a tracee's next state until `deadline`; a waker ends it early unless `deaf`. Without tracees it waits too.
    pub fn wait(&self, deadline: Instant, deaf: bool) -> Result<Waited, PlatformError> {
        let shared = &*self.shared;
        let due = shared.nanoseconds(deadline);
        shared.deadline.store(due, SeqCst);
        shared.phase.store(if deaf { WAITING_DEAF } else { WAITING }, SeqCst);
        if due < shared.next_look.load(SeqCst) {
            shared.rouse_kicker();
        }
        let result = shared.wait_in_phase(deadline, deaf);
        shared.phase.store(IDLE, SeqCst);
        result.map_err(|error| super::os_error("waitpid", &error))
    }
}

impl Drop for Wake {
    fn drop(&mut self) {
        self.shared.phase.store(CLOSED, SeqCst);
        self.shared.rouse_kicker();
        if let Some(kicker) = self.kicker.take() {
            let _ = kicker.join();
        }
    }
}

impl Shared {
    fn wait_in_phase(&self, deadline: Instant, deaf: bool) -> io::Result<Waited> {
        loop {
            if !deaf && self.woken.load(SeqCst) {
                self.woken.store(false, SeqCst);
                return Ok(Waited::Woken);
            }
            let over = Instant::now() >= deadline;
            match sys::wait_any(!over) {
                Ok(Some((thread, status))) => return Ok(Waited::Status(thread, status)),
                Ok(None) => return Ok(Waited::TimeIsUp),
                Err(error) => match error.raw_os_error() {
                    Some(nix::libc::EINTR) => {}
                    Some(nix::libc::ECHILD) if over => return Ok(Waited::TimeIsUp),
                    Some(nix::libc::ECHILD) => thread::park_timeout(deadline.saturating_duration_since(Instant::now())),
                    _ => return Err(error),
                },
            }
        }
    }

    fn nanoseconds(&self, time: Instant) -> u64 {
        u64::try_from(time.saturating_duration_since(self.start).as_nanos()).unwrap_or(u64::MAX)
    }

    fn rouse_kicker(&self) {
        if let Some(kicker) = self.kicker.get() {
            kicker.unpark();
        }
    }
}

fn kick_in_time(shared: &Shared) {
    loop {
        // Published before looking: a deadline stored after our look is compared with this.
        shared.next_look.store(u64::MAX, SeqCst);
        let phase = shared.phase.load(SeqCst);
        let due = shared.deadline.load(SeqCst);
        let now = shared.nanoseconds(Instant::now());
        match phase {
            CLOSED => return,
            IDLE => thread::park(),
            _ if now >= due || (phase == WAITING && shared.woken.load(SeqCst)) => {
                sys::kick(shared.waiter_number);
                thread::park_timeout(REPEAT);
            }
            _ => {
                shared.next_look.store(due, SeqCst);
                // The waiter may have stored an earlier deadline between our look and this store.
                if shared.deadline.load(SeqCst) >= due {
                    thread::park_timeout(Duration::from_nanos(due - now));
                }
            }
        }
    }
}
