//! Bounds a call that the system may never return from: it runs on a thread of its own, which is given up when the time is over.

use std::cell::RefCell;
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

type Job = Box<dyn FnOnce() + Send>;

/// A thread for such calls, started when the first is made and again when one did not return.
#[derive(Default)]
pub struct Bounded(RefCell<Option<Sender<Job>>>);

impl Bounded {
    /// What `call` gives, or `None` when it did not return in time.
    pub fn run<T: Send + 'static>(&self, limit: Duration, call: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let mut jobs = self.0.borrow_mut();
        if jobs.is_none() {
            *jobs = start();
        }
        let (sender, answer) = mpsc::channel();
        // Whoever asked has given up when nobody receives.
        let job: Job = Box::new(move || drop(sender.send(call())));
        jobs.as_ref()?.send(job).ok()?;
        let answer = answer.recv_timeout(limit).ok();
        if answer.is_none() {
            *jobs = None;
        }
        answer
    }
}

fn start() -> Option<Sender<Job>> {
    let (sender, jobs) = mpsc::channel::<Job>();
    let body = move || jobs.into_iter().for_each(|job| job());
    std::thread::Builder::new().name("bounded".to_owned()).spawn(body).ok().map(|_| sender)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_does_not_return_is_given_up_and_the_next_is_made() {
        let bounded = Bounded::default();
        assert_eq!(bounded.run(Duration::from_secs(60), || 1), Some(1));
        let (hold, held) = mpsc::channel::<()>();
        assert_eq!(bounded.run(Duration::from_millis(10), move || held.recv()), None);
        assert_eq!(bounded.run(Duration::from_secs(60), || 2), Some(2));
        drop(hold);
    }
}
