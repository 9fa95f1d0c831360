//! Runs `cargo test` and adds up what the test binaries report, so that one last line can say how many passed.

use std::io::{BufRead, BufReader};
use std::process::{ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::sh;

/// How many tests passed and failed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    pub passed: u64,
    pub failed: u64,
}

impl Count {
    /// Adds what one line of output reports, if it is the closing line of a test binary.
    fn add_line(&mut self, line: &str) {
        let Some(rest) = line.trim().strip_prefix("test result: ") else { return };
        let fields = rest.split([';', '.']).map(str::trim);
        for field in fields {
            match field.split_once(' ') {
                Some((number, "passed")) => self.passed += number.parse().unwrap_or(0),
                Some((number, "failed")) => self.failed += number.parse().unwrap_or(0),
                _ => {}
            }
        }
    }
}

/// How one step ended, when it did not end well.
#[derive(Debug, PartialEq, Eq)]
pub enum Bad {
    /// The command failed, which it also does when something does not compile.
    Failed(String),
    /// It did not end in time and was killed.
    Hung(String),
}

/// Runs a `cargo test` for at most `limit`, copies its output to ours and adds its counts to `count`.
pub fn run(command: &mut Command, limit: Duration, count: &mut Count) -> Result<(), Bad> {
    let line = sh::line(command);
    println!("$ {line}");
    let start = Instant::now();
    let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let mut child = spawned.map_err(|error| Bad::Failed(format!("cannot start `{line}`: {error}")))?;
    let lines = lines(child.stdout.take());
    let mut ended = None;
    loop {
        match lines.recv_timeout(Duration::from_millis(100)) {
            Ok(text) => {
                println!("{text}");
                count.add_line(&text);
            }
            Err(RecvTimeoutError::Disconnected) => break,
            // A process that a test left behind holds the pipe open after its end.
            Err(RecvTimeoutError::Timeout) if ended.is_some() => break,
            Err(RecvTimeoutError::Timeout) => ended = child.try_wait().ok().flatten(),
        }
        if start.elapsed() > limit {
            drop(child.kill());
            drop(child.wait());
            return Err(Bad::Hung(format!("`{line}` did not end within {} s", limit.as_secs())));
        }
    }
    let status = match ended {
        Some(status) => status,
        None => child.wait().map_err(|error| Bad::Failed(format!("cannot wait for `{line}`: {error}")))?,
    };
    if status.success() { Ok(()) } else { Err(Bad::Failed(format!("`{line}` failed: {status}"))) }
}

/// The lines of a pipe, read by a thread so that waiting for one can end.
fn lines(pipe: Option<ChildStdout>) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let Some(pipe) = pipe else { return };
        // Bytes, since a test may print anything.
        for bytes in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
            if sender.send(String::from_utf8_lossy(&bytes).into_owned()).is_err() {
                return;
            }
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_are_added_up_and_others_ignored() {
        let mut count = Count::default();
        for line in [
            "running 3 tests",
            "test a ... ok",
            "test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "test result: FAILED. 40 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.25s",
            "said: 9 passed; 9 failed",
        ] {
            count.add_line(line);
        }
        assert_eq!(count, Count { passed: 42, failed: 3 });
    }

    fn sh(script: &str, limit: Duration, count: &mut Count) -> Result<(), Bad> {
        run(Command::new("sh").args(["-c", script]), limit, count)
    }

    /// Far longer than any of these scripts takes, and far shorter than what they leave behind lives.
    const ENOUGH: Duration = Duration::from_secs(60);

    #[test]
    fn a_failing_run_is_counted_and_is_an_error() {
        let script = "echo 'test result: FAILED. 1 passed; 2 failed; 0 ignored'; exit 101";
        let mut count = Count { passed: 1, failed: 0 };
        assert!(matches!(sh(script, ENOUGH, &mut count), Err(Bad::Failed(_))));
        assert_eq!(count, Count { passed: 2, failed: 2 });
    }

    #[test]
    fn a_process_left_behind_with_the_pipe_does_not_hold_the_run_up() {
        let note = std::env::temp_dir().join(format!("xtask-left-behind-{}", std::process::id()));
        let script = format!("sleep 600 & echo $! > {}; echo 'test result: ok. 1 passed; 0 failed'", note.display());
        let mut count = Count::default();
        assert_eq!(sh(&script, ENOUGH, &mut count), Ok(()));
        assert_eq!(count, Count { passed: 1, failed: 0 });
        let pid = std::fs::read_to_string(&note).unwrap();
        std::fs::remove_file(&note).unwrap();
        let still_there = Command::new("kill").arg(pid.trim()).status().unwrap().success();
        assert!(still_there, "the run waited for the process that was left behind");
    }

    #[test]
    fn a_run_that_hangs_is_killed() {
        let hung = sh("exec sleep 600", Duration::from_millis(300), &mut Count::default());
        assert!(matches!(hung, Err(Bad::Hung(_))), "{hung:?}");
    }
}
