//! Finds what a test run leaves behind: processes that it started, and a listener on the agent's default port.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::{Outcome, sh};

/// The variable that marks every process of one run, since children inherit it however often they fork.
const MARK: &str = "RETROSCOPE_TEST_RUN";

/// The agent's default port. A copy on purpose: xtask depends on none of the crates it checks.
const AGENT_PORT: u16 = 47474;

/// How long a process may take to be gone after its test.
const GRACE: Duration = Duration::from_secs(5);

/// What was there before the run.
pub struct Before {
    mark: String,
    port_taken: bool,
}

impl Before {
    /// Looks around before the first test.
    pub fn look() -> Self {
        let mark = format!("{MARK}={}", std::process::id());
        Self { mark, port_taken: listens(AGENT_PORT) }
    }

    /// Marks what `command` starts.
    pub fn mark(&self, command: &mut Command) {
        if let Some((name, value)) = self.mark.split_once('=') {
            command.env(name, value);
        }
    }

    /// Ends every process of this run that still lives.
    pub fn end_all(&self) {
        for (pid, _) in marked(Path::new("/proc"), &self.mark) {
            sh::succeeds(Command::new("kill").args(["-KILL", &pid.to_string()]));
        }
    }

    /// Fails when something of this run is left, after ending it so that the next run starts clean.
    pub fn check(&self) -> Outcome {
        let until = Instant::now() + GRACE;
        let left = loop {
            let left = marked(Path::new("/proc"), &self.mark);
            if left.is_empty() || Instant::now() > until {
                break left;
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        for (pid, _) in &left {
            sh::succeeds(Command::new("kill").args(["-KILL", &pid.to_string()]));
        }
        if !left.is_empty() {
            let names: Vec<_> = left.iter().map(|(pid, name)| format!("{name} (pid {pid})")).collect();
            return Err(format!("the tests left processes running, ended now: {}", names.join(", ")));
        }
        if !self.port_taken && listens(AGENT_PORT) {
            return Err(format!("the tests left a listener on port {AGENT_PORT}"));
        }
        Ok(())
    }
}

/// The processes whose environment has the mark, with their names. A zombie has no environment and is not listed.
fn marked(proc: &Path, mark: &str) -> BTreeSet<(u32, String)> {
    let entries = std::fs::read_dir(proc).into_iter().flatten().flatten();
    let mut found = BTreeSet::new();
    for entry in entries {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let Ok(environment) = std::fs::read(entry.path().join("environ")) else { continue };
        if environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes()) {
            let name = std::fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            found.insert((pid, name.trim().to_owned()));
        }
    }
    found
}

fn listens(port: u16) -> bool {
    ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|file| std::fs::read_to_string(file).ok())
        .any(|table| has_listener(&table, port))
}

/// Whether a table of `/proc/net/tcp` has a socket in the state LISTEN (0A) on `port`.
fn has_listener(table: &str, port: u16) -> bool {
    let ending = format!(":{port:04X}");
    table.lines().any(|line| {
        let mut fields = line.split_whitespace();
        fields.nth(1).is_some_and(|local| local.ends_with(&ending)) && fields.nth(1) == Some("0A")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_is_told_from_a_connection_and_from_other_ports() {
        // 47474 = 0xB972; the states and columns are those of proc(5).
        let line = |port: &str, state: &str| {
            format!(
                "  sl  local_address rem_address   st\n   0: 0100007F:{port} 00000000:0000 {state} 00000000:00000000\n"
            )
        };
        assert!(has_listener(&line("B972", "0A"), 47474));
        assert!(!has_listener(&line("B972", "01"), 47474));
        assert!(!has_listener(&line("B973", "0A"), 47474));
    }

    #[test]
    fn a_listener_of_ours_is_seen() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(listens(listener.local_addr().unwrap().port()));
    }

    #[test]
    fn a_marked_process_is_found_by_name_and_gone_after_its_end() {
        let mark = format!("{MARK}=own-test-{}", std::process::id());
        let (name, value) = mark.split_once('=').unwrap();
        let mut child = Command::new("sleep").arg("60").env(name, value).spawn().unwrap();
        let until = Instant::now() + GRACE;
        let expected = BTreeSet::from([(child.id(), "sleep".to_owned())]);
        // Between fork and exec the child still has our name.
        while marked(Path::new("/proc"), &mark) != expected && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(marked(Path::new("/proc"), &mark), expected);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(marked(Path::new("/proc"), &mark), BTreeSet::new());
    }
}
