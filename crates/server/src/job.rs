//! Work that computes for long, away from the threads that answer: it says how far it is, and ends when nobody waits any more.

use crate::context::Context;
use crate::errors::{ErrorCode, ToolError};
use base::limits;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// One piece of work, as the one who does it sees it.
#[derive(Debug, Default)]
pub struct Job {
    ended: Arc<AtomicBool>,
    told: Mutex<Option<Instant>>,
    context: Option<Context>,
}

impl Job {
    /// Says how far the work is, in any unit, and asks whether to go on.
    pub fn wanted(&self, done: u64, total: u64, what: &str) -> bool {
        if let Some(context) = &self.context {
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            let interval = Duration::from_millis(limits::JOB_PROGRESS_INTERVAL_MS);
            // The first report waits its time too: most work is done before.
            if told.get_or_insert_with(Instant::now).elapsed() >= interval {
                *told = Some(Instant::now());
                context.progress(done as f64, Some(total as f64), what);
            }
        }
        !self.ended.load(Ordering::Relaxed)
    }

    /// The same, for those who pass a refusal on.
    ///
    /// # Errors
    /// `cancelled`.
    pub fn going_on(&self, done: u64, total: u64, what: &str) -> Result<(), ToolError> {
        if self.wanted(done, total, what) { Ok(()) } else { Err(cancelled()) }
    }

    /// A job that nobody waits for.
    #[cfg(test)]
    pub fn cancelled() -> Self {
        let job = Self::default();
        job.ended.store(true, Ordering::Relaxed);
        job
    }
}

/// The answer of work that nobody waits for.
pub fn cancelled() -> ToolError {
    ToolError::new(ErrorCode::Cancelled, "the call was cancelled")
}

/// Ends the job when the call that waits for it is dropped.
struct EndOnDrop(Arc<AtomicBool>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Does the work on a thread of its own; few at a time, since each may use as much memory as a ROM.
///
/// # Errors
/// Those of the work; `server_fault` when it panicked.
pub async fn run<R: Send + 'static>(
    context: &Context,
    work: impl FnOnce(&Context, &Job) -> Result<R, ToolError> + Send + 'static,
) -> Result<R, ToolError> {
    let fault = |what: String| ToolError::new(ErrorCode::ServerFault, what);
    let permit = context.heavy_work().await.map_err(|error| fault(error.to_string()))?;
    let job = Job { context: Some(context.clone()), ..Job::default() };
    let _end = EndOnDrop(Arc::clone(&job.ended));
    let context = context.clone();
    let running = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        work(&context, &job)
    });
    running.await.map_err(|error| fault(format!("the work ended badly: {error}")))?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent_client::AgentClient;
    use crate::context::{Facts, Progress};
    use crate::launch_roots::LaunchRoots;
    use tokio::sync::mpsc;

    fn context() -> Context {
        Context::new(AgentClient::new("", Duration::ZERO), None, None, LaunchRoots::default(), Facts::default())
    }

    #[tokio::test]
    async fn work_that_nobody_waits_for_ends() {
        let (started, mut has_started) = mpsc::unbounded_channel();
        let (ended, mut has_ended) = mpsc::unbounded_channel();
        let context = context();
        let call = run(&context, move |_, job| {
            started.send(()).unwrap();
            while job.wanted(0, 1, "waiting") {
                std::thread::sleep(Duration::from_millis(1));
            }
            ended.send(()).unwrap();
            Ok(())
        });
        tokio::select! {
            _ = call => panic!("nothing ended it"),
            _ = has_started.recv() => {}
        }
        // The call is dropped, as when its client cancelled it.
        has_ended.recv().await.unwrap();
    }

    #[tokio::test]
    async fn what_takes_its_time_is_reported() {
        let (reporter, mut reports) = mpsc::unbounded_channel();
        let context = context().reporting_to(reporter);
        run(&context, |_, job| {
            let begun = Instant::now();
            job.going_on(1, 10, "begun")?;
            while begun.elapsed() <= Duration::from_millis(limits::JOB_PROGRESS_INTERVAL_MS) {
                std::thread::sleep(Duration::from_millis(1));
            }
            job.going_on(7, 10, "hashing")
        })
        .await
        .unwrap();
        let wanted = Progress { done: 7.0, total: Some(10.0), message: "hashing".to_owned() };
        assert_eq!(reports.try_recv().unwrap(), wanted);
        assert!(reports.try_recv().is_err());
    }

    #[tokio::test]
    async fn only_so_many_compute_at_once() {
        let context = context();
        let mut held = Vec::new();
        for _ in 0..limits::MAX_HEAVY_CALLS {
            held.push(context.heavy_work().await.unwrap());
        }
        let next = run(&context, |_, _| Ok(()));
        tokio::select! {
            biased;
            _ = next => panic!("one more began"),
            () = tokio::task::yield_now() => {}
        }
        held.clear();
        run(&context, |_, _| Ok(())).await.unwrap();
    }
}
