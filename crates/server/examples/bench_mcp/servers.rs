//! The four servers that are measured, ours and the peer's over stdio and HTTP, each a child that ends with its value.

use crate::connection::{Connection, Http, Stdio};
use crate::message::Era;
use serde_json::Value;
use std::cell::RefCell;
use std::error::Error;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf, absolute};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio as Pipe};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What HTTP clients show; nobody else can connect to an address that is gone in a minute.
const TOKEN: &str = "a-token-of-the-benchmark";
/// Life of a server, so that one that does not answer ends the run instead of hanging it.
const LIFE: Duration = Duration::from_secs(300);

/// How the servers are started.
pub struct Programs {
    retroscope: PathBuf,
    python: PathBuf,
    peer: PathBuf,
    c64_mcp: PathBuf,
    folder: PathBuf,
}

impl Programs {
    /// The servers run in `folder`, so that relative paths are made absolute first; links stay, because a Python knows its
    /// packages by the path that it was called by.
    pub fn new(retroscope: &str, python: &str, peer: &str, c64_mcp: &str, folder: &Path) -> std::io::Result<Self> {
        let (retroscope, python, peer) = (absolute(retroscope)?, absolute(python)?, absolute(peer)?);
        Ok(Self { retroscope, python, peer, c64_mcp: absolute(c64_mcp)?, folder: folder.into() })
    }

    /// Gives the peer the answer that its tool is to give.
    pub fn tell_peer(&self, answer: &Value) -> Result<(), Box<dyn Error>> {
        Ok(std::fs::write(self.answer(), answer.to_string())?)
    }

    fn answer(&self) -> PathBuf {
        self.folder.join("answer.json")
    }

    pub fn stdio(&self) -> Result<Server, Box<dyn Error>> {
        Server::start_stdio(&mut self.retroscope())
    }

    pub fn http(&self) -> Result<Server, Box<dyn Error>> {
        Server::start_http(self.retroscope().args(["--http", "127.0.0.1:0"]))
    }

    pub fn peer_stdio(&self) -> Result<Server, Box<dyn Error>> {
        Server::start_stdio(&mut self.peer("stdio"))
    }

    pub fn peer_http(&self) -> Result<Server, Box<dyn Error>> {
        Server::start_http(&mut self.peer("http"))
    }

    /// The server whose C64 tools ours succeed, with the tools of a profile of its own.
    pub fn predecessor(&self, profile: &str) -> Result<Server, Box<dyn Error>> {
        let mut command = Command::new(&self.c64_mcp);
        Server::start_stdio(command.args(["--tool-profile", profile]).current_dir(&self.folder).stderr(Pipe::null()))
    }

    fn retroscope(&self) -> Command {
        let mut command = Command::new(&self.retroscope);
        // A configuration of the person who measures would change what is measured.
        command.env("XDG_CONFIG_HOME", &self.folder).env("RETROSCOPE_TOKEN", TOKEN).current_dir(&self.folder);
        command.args(["serve", "--tool-profile", "full", "--workspace"]).arg(&self.folder);
        command
    }

    fn peer(&self, transport: &str) -> Command {
        let mut command = Command::new(&self.python);
        command.env("RETROSCOPE_TOKEN", TOKEN).current_dir(&self.folder);
        command.arg(&self.peer).arg(transport).arg(self.answer());
        command
    }
}

/// A running server.
pub struct Server {
    child: Arc<Mutex<Child>>,
    pid: u32,
    reach: Reach,
}

/// How a client gets to it.
enum Reach {
    /// Its pipes, for one client.
    Pipes(RefCell<Option<(ChildStdin, ChildStdout)>>),
    /// `host:port`. Its standard error stays open, so that it can go on writing there.
    Address(String, #[expect(dead_code, reason = "held open")] BufReader<ChildStderr>),
}

impl Server {
    fn start_stdio(command: &mut Command) -> Result<Self, Box<dyn Error>> {
        let mut child = start(command.stdin(Pipe::piped()).stdout(Pipe::piped()))?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        Ok(Self::watched(child, Reach::Pipes(RefCell::new(pipes))))
    }

    fn start_http(command: &mut Command) -> Result<Self, Box<dyn Error>> {
        let mut child = start(command.stdin(Pipe::null()).stdout(Pipe::null()).stderr(Pipe::piped()))?;
        let mut messages = BufReader::new(child.stderr.take().ok_or("the server has no standard error")?);
        let mut said = String::new();
        loop {
            let before = said.len();
            if messages.read_line(&mut said)? == 0 {
                drop(child.wait());
                return Err(format!("the server did not say where it listens: {said}").into());
            }
            let line = said.get(before..).unwrap_or_default().trim();
            if let Some((_, address)) = line.strip_suffix("/mcp").and_then(|line| line.rsplit_once("http://")) {
                let address = address.to_owned();
                return Ok(Self::watched(child, Reach::Address(address, messages)));
            }
        }
    }

    fn watched(child: Child, reach: Reach) -> Self {
        let pid = child.id();
        let child = Arc::new(Mutex::new(child));
        let watched = Arc::downgrade(&child);
        std::thread::spawn(move || {
            std::thread::sleep(LIFE);
            if let Some(child) = watched.upgrade() {
                drop(child.lock().unwrap_or_else(PoisonError::into_inner).kill());
            }
        });
        Self { child, pid, reach }
    }

    /// Connects; over HTTP to the endpoint below `/mcp` that `path` names. A child has one client only.
    pub fn connect(&self, era: Era, path: &str) -> Result<Box<dyn Connection>, Box<dyn Error>> {
        match &self.reach {
            Reach::Pipes(pipes) => {
                let (input, output) = pipes.borrow_mut().take().ok_or("the server's pipes are in use")?;
                Ok(Box::new(Stdio::open(input, output, era)?))
            }
            Reach::Address(address, _) => Ok(Box::new(Http::open(address, &format!("/mcp{path}"), TOKEN, era)?)),
        }
    }

    /// Resident memory in KiB, as the kernel counts it.
    pub fn resident_kib(&self) -> Result<f64, Box<dyn Error>> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS in /proc")?;
        Ok(line.trim().trim_end_matches("kB").trim().parse()?)
    }
}

fn start(command: &mut Command) -> Result<Child, Box<dyn Error>> {
    command.spawn().map_err(|error| format!("{}: {error}", command.get_program().display()).into())
}

impl Drop for Server {
    fn drop(&mut self) {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        drop(child.kill());
        drop(child.wait());
    }
}
