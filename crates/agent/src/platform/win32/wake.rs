//! Lets other threads interrupt the one that waits for debug events.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A flag with a bell.
#[derive(Default)]
pub struct Wake {
    rung: Mutex<bool>,
    bell: Condvar,
}

impl Wake {
    fn lock(&self) -> MutexGuard<'_, bool> {
        self.rung.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the sleep in progress, or the next one.
    pub fn ring(&self) {
        *self.lock() = true;
        self.bell.notify_all();
    }

    /// Whether somebody rang since the last time.
    pub fn take(&self) -> bool {
        std::mem::take(&mut *self.lock())
    }

    /// Sleeps until `until` or until somebody rings; true in that case.
    pub fn sleep_until(&self, until: Instant) -> bool {
        let mut rung = self.lock();
        loop {
            if std::mem::take(&mut *rung) {
                return true;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left == Duration::ZERO {
                return false;
            }
            rung = self.bell.wait_timeout(rung, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The handle for other threads.
    pub fn waker(self: &Arc<Self>) -> crate::platform::Waker {
        let wake = Arc::clone(self);
        Arc::new(move || wake.ring())
    }
}
