//! Where the answer to one command goes: sent once, whatever happens, and dropped early when nobody waits for it any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use wire::{AgentError, ErrorCode, Reply};

/// What a command ended with.
pub type Outcome = Result<Reply, AgentError>;

/// Takes the one answer to a command. Dropped without an answer, it answers `internal` by itself, so that no client waits
/// for ever for something that was lost.
pub struct ReplyTo {
    send: Option<Box<dyn FnOnce(Outcome) + Send>>,
    gone: Gone,
}

/// Says that whoever asked has gone. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Gone(Arc<AtomicBool>);

impl Gone {
    /// From now on [`ReplyTo::is_wanted`] is false. The engine's waker should be called after this.
    pub fn set(&self) {
        self.0.store(true, Ordering::Release);
    }
}

impl ReplyTo {
    /// Hands the answer to `send`, on the thread that answers, which `send` must not block.
    pub fn new(send: impl FnOnce(Outcome) + Send + 'static) -> Self {
        Self { send: Some(Box::new(send)), gone: Gone::default() }
    }

    /// The switch by which the one who asked says that it has gone.
    pub fn gone(&self) -> Gone {
        self.gone.clone()
    }

    /// False once the client has gone: a wait for its sake is to be dropped without a trace.
    pub fn is_wanted(&self) -> bool {
        !self.gone.0.load(Ordering::Acquire)
    }

    /// Answers.
    pub fn send(mut self, outcome: Outcome) {
        self.deliver(outcome);
    }

    fn deliver(&mut self, outcome: Outcome) {
        if let Some(send) = self.send.take() {
            send(outcome);
        }
    }
}

impl Drop for ReplyTo {
    fn drop(&mut self) {
        if self.send.is_some() {
            self.deliver(Err(AgentError::new(ErrorCode::Internal, "the command was given up without an answer")
                .hint("the agent may be shutting down; ask get_status")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    fn listening() -> (ReplyTo, mpsc::Receiver<Outcome>) {
        let (sender, receiver) = mpsc::channel();
        (ReplyTo::new(move |outcome| drop(sender.send(outcome))), receiver)
    }

    #[test]
    fn an_answer_arrives_once() {
        let (reply, answers) = listening();
        reply.send(Err(AgentError::new(ErrorCode::Busy, "later")));
        assert_eq!(answers.iter().map(|outcome| outcome.unwrap_err().code).collect::<Vec<_>>(), [ErrorCode::Busy]);
    }

    #[test]
    fn what_is_lost_is_answered_too() {
        let (reply, answers) = listening();
        drop(reply);
        assert_eq!(answers.iter().map(|outcome| outcome.unwrap_err().code).collect::<Vec<_>>(), [ErrorCode::Internal]);
    }

    #[test]
    fn a_client_that_went_is_seen() {
        let (reply, _answers) = listening();
        let gone = reply.gone();
        assert!(reply.is_wanted());
        gone.set();
        assert!(!reply.is_wanted());
    }
}
