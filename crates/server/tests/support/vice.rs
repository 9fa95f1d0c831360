//! `retroscope vice-connector` as a child, with a VICE that runs our own ROMs and program.

use super::PROGRAM;
use super::http_client::HttpClient;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// The built file of `fixtures/vice` with this name.
pub fn fixture(name: &str) -> PathBuf {
    let fixtures = std::env::var_os("RETROSCOPE_FIXTURES").expect("RETROSCOPE_FIXTURES names the built fixtures");
    PathBuf::from(fixtures).join("vice").join(name)
}

/// An address by its name in the program's source, as 64tass wrote it: `al 930 .count`.
pub fn label(name: &str) -> u16 {
    let text = std::fs::read_to_string(fixture("demo.labels")).unwrap();
    let line = text.lines().find(|line| line.ends_with(&format!(" .{name}"))).unwrap_or_else(|| panic!("no {name}"));
    u16::from_str_radix(line.split_whitespace().nth(1).unwrap(), 16).unwrap()
}

/// A connector.
pub struct Connector {
    pub child: Child,
    /// Where it listens.
    pub address: String,
    /// Where VICE's monitor is.
    pub monitor: String,
    home: tempfile::TempDir,
}

impl Connector {
    /// Starts one that starts VICE with the program.
    pub fn launch(more: &[&str]) -> Self {
        let program = fixture("demo.prg");
        Self::launch_bare(&[&["--prg", program.to_str().unwrap()], more].concat())
    }

    /// Starts one that starts VICE.
    pub fn launch_bare(more: &[&str]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut command = Command::new(PROGRAM);
        command.args(["vice-connector", "--launch", "--listen", "127.0.0.1:0"]);
        for rom in ["kernal", "basic", "chargen"] {
            command.arg(format!("--{rom}")).arg(fixture(&format!("{rom}.bin")));
        }
        Self::start(command.args(more), home)
    }

    /// Starts one for a VICE that runs.
    pub fn connect(monitor: &str) -> Self {
        Self::connect_at(monitor, "127.0.0.1:0")
    }

    /// The same at a known address.
    pub fn connect_at(monitor: &str, listen: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut command = Command::new(PROGRAM);
        Self::start(command.args(["vice-connector", "--listen", listen, "--connect", monitor]), home)
    }

    fn start(command: &mut Command, home: tempfile::TempDir) -> Self {
        command.env("HOME", home.path()).env_remove("XDG_CONFIG_HOME").env_remove("XDG_DATA_HOME");
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        stderr.read_line(&mut line).unwrap();
        std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::stderr()));
        let words: Vec<&str> = line.split([' ', '(', ')', '\n']).collect();
        let after =
            |word: &str| words.iter().skip_while(|known| **known != word).nth(2).unwrap_or_else(|| panic!("{line}"));
        let monitor = (*after("monitor")).to_owned();
        let address = words.iter().rev().find_map(|word| word.strip_prefix("http://")).unwrap().to_owned();
        Self { child, address, monitor, home }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn client(&self) -> Client {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(90))).unwrap();
        let mut http = HttpClient::of(stream, &self.address);
        let discovery = http.request("GET", "/debugger/target_methods", &[], "");
        assert_eq!(discovery.status, 200);
        let discovery: Value = serde_json::from_str(&discovery.body).unwrap();
        Client { token: discovery["target_token"].as_str().unwrap().to_owned(), discovery, http }
    }

    /// The processes that it started.
    pub fn children(&self) -> Vec<i32> {
        let pid = self.child.id();
        let listed = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        let mut all: Vec<i32> = listed.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
        // Those of its other threads.
        for task in std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
            let listed = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
            all.extend(listed.split_whitespace().map(|pid| pid.parse::<i32>().unwrap()));
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Asks it to end, and waits for it.
    pub fn end(mut self) -> ExitStatus {
        let pid = nix::unistd::Pid::from_raw(self.child.id().try_into().unwrap());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
        let status = self.child.wait().unwrap();
        assert!(self.home.path().exists());
        status
    }
}

impl Drop for Connector {
    fn drop(&mut self) {
        let children = self.children();
        drop(self.child.kill());
        drop(self.child.wait());
        for pid in children {
            let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL);
        }
    }
}

/// A VICE with a monitor at a free port, and nobody connected to it.
pub struct Vice {
    pub child: Child,
    pub monitor: String,
    _home: tempfile::TempDir,
}

impl Vice {
    pub fn start() -> Self {
        let home = tempfile::tempdir().unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let monitor = listener.local_addr().unwrap().to_string();
        drop(listener);
        let mut command = Command::new("x64sc");
        command.args(["-default", "-sounddev", "dummy", "-binarymonitor", "-binarymonitoraddress"]);
        command.arg(format!("ip4://{monitor}")).env("HOME", home.path());
        for rom in ["kernal", "basic", "chargen"] {
            command.arg(format!("-{rom}")).arg(fixture(&format!("{rom}.bin")));
        }
        command.args(["-autostartprgmode", "1", "-autostart"]).arg(fixture("demo.prg"));
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let until = std::time::Instant::now() + Duration::from_secs(30);
        while TcpStream::connect(&monitor).is_err() {
            assert!(std::time::Instant::now() < until, "VICE's monitor does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { child, monitor, _home: home }
    }
}

impl Drop for Vice {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A client of a connector, on one connection.
pub struct Client {
    pub http: HttpClient,
    pub discovery: Value,
    pub token: String,
}

impl Client {
    /// The body of a call.
    pub fn body(&self, method: &str, mut arguments: Value) -> String {
        arguments["process"] = json!({"object_path": "C64"});
        let timeout = arguments["timeout_ms"].as_u64().unwrap_or(10_000) + 5_000;
        let method = format!("c64_vice_v1_{method}");
        json!({"target_token": self.token, "method": method, "arguments": arguments, "timeout_ms": timeout}).to_string()
    }

    /// What the endpoint answers to a body.
    pub fn post(&mut self, body: &str) -> Value {
        let json = [("Content-Type", "application/json")];
        let response = self.http.request("POST", "/debugger/invoke_target_method", &json, body);
        assert_eq!(response.status, 200, "{response:?}");
        serde_json::from_str(&response.body).unwrap()
    }

    /// The envelope that a method answers.
    pub fn envelope(&mut self, method: &str, arguments: Value) -> Value {
        let answer = self.post(&self.body(method, arguments));
        assert_eq!(answer["ok"], true, "{answer}");
        serde_json::from_str(answer["result"].as_str().unwrap()).unwrap()
    }

    /// The result of a method.
    pub fn call(&mut self, method: &str, arguments: Value) -> Value {
        let envelope = self.envelope(method, arguments);
        assert_eq!(envelope["ok"], true, "{method}: {envelope}");
        envelope["result"].clone()
    }

    /// The error of a method.
    pub fn refused(&mut self, method: &str, arguments: Value) -> Value {
        let envelope = self.envelope(method, arguments);
        assert_eq!(envelope["ok"], false, "{method}: {envelope}");
        envelope["error"].clone()
    }

    /// Runs until `address` is reached, which the program does once it is in memory.
    pub fn run_to(&mut self, address: u16) -> Value {
        let made = self.call("set_checkpoint", json!({"start": address, "end": address}));
        let resumed = self.call("resume", json!({}));
        let after = resumed["event"]["sequence"].clone();
        let stop = self.call("wait_for_stop", json!({"after_sequence": after, "timeout_ms": 50_000}));
        self.call("delete_checkpoint", json!({"number": made["checkpoint"]["number"]}));
        stop["event"].clone()
    }
}
