//! A small client of the agent protocol for tests, written without the agent's own code: an agent of its own on a free
//! port, requests as plain JSON, and the proof that nothing is left behind.
#![allow(dead_code, reason = "each test file uses a part of it")]

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How long anything may take until a test gives up: only a hang takes so long.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A running agent.
pub struct Agent {
    child: Child,
    /// Kept open: the agent may be watching it.
    pub stdin: Option<ChildStdin>,
    pub port: u16,
    under_wine: bool,
}

impl Agent {
    pub fn start() -> Self {
        Self::with(&[])
    }

    pub fn with(options: &[&str]) -> Self {
        Self::by(agent(), options, wine().is_some())
    }

    /// This build's own agent, also where the others are for Windows.
    pub fn native(options: &[&str]) -> Self {
        Self::by(Command::new(env!("CARGO_BIN_EXE_retroscope-agent")), options, false)
    }

    fn by(mut command: Command, options: &[&str], under_wine: bool) -> Self {
        if under_wine {
            command.arg("--exit-with-parent");
        }
        command.args(["--port", "0"]).args(options).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("retroscope-agent listening on 127.0.0.1:");
        let port = address.unwrap_or_else(|| panic!("first line is {line:?}")).parse().unwrap();
        let stdin = child.stdin.take();
        Self { child, stdin, port, under_wine }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn connect(&self) -> Client {
        Client::connect(self.port)
    }

    pub fn signal(&self, name: &str) {
        signal(self.pid(), name);
    }

    pub fn wait(&mut self) -> ExitStatus {
        wait_for("the agent's end", || self.child.try_wait().unwrap())
    }

    /// Asks it to end, as whoever started it does.
    pub fn ask_to_end(&mut self) {
        if self.under_wine {
            // Wine has no SIGTERM for its programs.
            self.stdin = None;
        } else {
            self.signal("TERM");
        }
    }

    /// Asks it to end, and sees that it ends well and nothing of it is left.
    pub fn finish(mut self) {
        self.ask_to_end();
        let status = self.wait();
        assert_eq!(status.code(), Some(0), "the agent ended with {status}");
        // Wine's server lets go of a program's sockets a moment after its end.
        wait_for("the port to be closed", || TcpStream::connect(("127.0.0.1", self.port)).is_err().then_some(()));
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // Only after a failed test: a finished agent is gone already. What it debugs must not outlive the test.
        if let Ok(None) = self.child.try_wait()
            && let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port))
        {
            drop(stream.set_read_timeout(Some(Duration::from_secs(5))));
            drop(stream.write_all(b"{\"op\":\"terminate\"}\n"));
            drop(BufReader::new(stream).read_line(&mut String::new()));
        }
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// How to start Windows programs, where the tests are to run against the Windows agent.
pub fn wine() -> Option<PathBuf> {
    std::env::var_os("RETROSCOPE_TEST_WINE").map(PathBuf::from)
}

/// The command that starts the agent: this build's own, or the one for Windows.
pub fn agent() -> Command {
    let Some(wine) = wine() else { return Command::new(env!("CARGO_BIN_EXE_retroscope-agent")) };
    let mut command = Command::new(wine);
    command.arg(std::env::var_os("RETROSCOPE_TEST_AGENT").expect("RETROSCOPE_TEST_AGENT names retroscope-agent.exe"));
    command
}

/// A path as the agent sees it.
pub fn as_agent_sees(path: &std::path::Path) -> String {
    let path = path.to_str().unwrap();
    if wine().is_some() { format!("Z:{}", path.replace('/', "\\")) } else { path.to_owned() }
}

/// The number that Linux has for the program that the agent calls `pid`.
#[track_caller]
pub fn native_pid(pid: &Value, path: &std::path::Path) -> u32 {
    if wine().is_none() {
        return pid.as_u64().unwrap() as u32;
    }
    running(path).pop().unwrap_or_else(|| panic!("no process runs {}", path.display()))
}

/// Processes that run a Windows program, the youngest last. Their first argument is its path, in Windows' form where another
/// Windows program started them.
fn running(path: &std::path::Path) -> Vec<u32> {
    let seen = as_agent_sees(path);
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let runs = |pid: u32| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let first = words.split(|byte| *byte == 0).next()?;
        if (first != seen.as_bytes() && first != path.as_os_str().as_encoded_bytes()) || !is_alive(pid) {
            return None;
        }
        // After the name, which ends in a bracket, the start time is the 20th field.
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let started: u64 = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()?;
        Some((started, pid))
    };
    let mut found: Vec<(u64, u32)> = pids.filter_map(runs).collect();
    found.sort_unstable();
    found.into_iter().map(|(_, pid)| pid).collect()
}

/// A connection to an agent.
pub struct Client {
    pub stream: TcpStream,
    pub lines: BufReader<TcpStream>,
    next: u64,
}

impl Client {
    pub fn connect(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { lines: BufReader::new(stream.try_clone().unwrap()), stream, next: 0 }
    }

    /// Sends a request and says its id.
    pub fn send(&mut self, op: &str, params: Value) -> u64 {
        self.next += 1;
        let line = json!({"op": op, "params": params, "id": self.next}).to_string() + "\n";
        self.stream.write_all(line.as_bytes()).unwrap();
        self.next
    }

    /// The next line, whatever it answers; `None` when the agent has closed the connection.
    pub fn receive(&mut self) -> Option<Value> {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        (!line.is_empty()).then(|| serde_json::from_str(&line).unwrap())
    }

    /// The result, or the error object.
    pub fn call(&mut self, op: &str, params: Value) -> Result<Value, Value> {
        let id = self.send(op, params);
        self.answer_to(id)
    }

    /// Waits for the answer to `id`, the only one outstanding.
    pub fn answer_to(&mut self, id: u64) -> Result<Value, Value> {
        let mut reply = self.receive().expect("the agent closed the connection");
        assert_eq!(reply["id"], id, "{reply}");
        if reply["ok"] == true { Ok(reply["result"].take()) } else { Err(reply) }
    }

    #[track_caller]
    pub fn ok(&mut self, op: &str, params: Value) -> Value {
        self.call(op, params.clone()).unwrap_or_else(|error| panic!("{op} {params}: {error}"))
    }

    #[track_caller]
    pub fn refused(&mut self, op: &str, params: Value, code: &str) -> String {
        let error = self.call(op, params.clone()).expect_err(&format!("{op} {params}"));
        assert_eq!(error["code"], code, "{op} {params}: {error}");
        error["error"].as_str().unwrap().to_owned()
    }
}

/// Waits until `poll` gives something.
#[track_caller]
pub fn wait_for<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = poll() {
            return value;
        }
        assert!(start.elapsed() < PATIENCE, "gave up waiting for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub fn signal(pid: u32, name: &str) {
    let status = Command::new("kill").args([format!("-{name}"), pid.to_string()]).status().unwrap();
    assert!(status.success(), "kill -{name} {pid}");
}

/// A program built from `fixtures/`.
pub fn fixture(name: &str) -> PathBuf {
    let folder = std::env::var_os("RETROSCOPE_FIXTURES")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/fixtures"), PathBuf::from);
    let path = folder.join(if wine().is_some() { format!("{name}.exe") } else { name.to_owned() });
    path.canonicalize()
        .unwrap_or_else(|error| panic!("{}: {error}; build it by `cargo xtask fixtures`", path.display()))
}

/// An agent, a client of it and the program they debug.
pub struct Session {
    pub agent: Agent,
    pub client: Client,
    pub path: PathBuf,
    pub pid: u32,
    /// What `launch` or `attach` said.
    pub start: Value,
}

impl Session {
    /// Launches a fixture, stopped at its entry.
    pub fn launch(game: &str, arguments: &[&str]) -> Self {
        Self::launch_by(Agent::start(), game, arguments)
    }

    pub fn launch_by(agent: Agent, game: &str, arguments: &[&str]) -> Self {
        let path = fixture(game);
        let mut client = agent.connect();
        let seen = as_agent_sees(&path);
        let start = client.ok("launch", json!({"path": seen, "args": arguments, "if_running": "start_new"}));
        let pid = native_pid(&start["pid"], &path);
        Self { agent, client, path, pid, start }
    }

    /// Attaches to a running program.
    pub fn attach(game: &Game) -> Self {
        Self::attach_by(Agent::start(), game)
    }

    pub fn attach_by(agent: Agent, game: &Game) -> Self {
        let mut client = agent.connect();
        let start = client.ok("attach", game.reference());
        Self { agent, client, path: game.path.clone(), pid: game.pid(), start }
    }

    #[track_caller]
    pub fn ok(&mut self, op: &str, params: Value) -> Value {
        self.client.ok(op, params)
    }

    /// Continues until something stops the program.
    #[track_caller]
    pub fn run(&mut self) -> Value {
        let stop = self.ok("continue_execution", json!({"timeout": 30}));
        assert_eq!(stop["timed_out"], false, "{stop}");
        stop
    }

    /// Continues and sees that the program stops for `reason`.
    #[track_caller]
    pub fn run_to(&mut self, reason: &str) -> Value {
        let stop = self.run();
        assert_eq!(stop["reason"], reason, "{stop}");
        stop
    }

    /// Lets the program run for a while.
    #[track_caller]
    pub fn run_for(&mut self, seconds: f64) {
        let stop = self.ok("continue_execution", json!({"timeout": seconds}));
        assert_eq!((&stop["timed_out"], &stop["status"]), (&json!(true), &json!("running")), "{stop}");
    }

    /// A 32-bit variable of the program, read through the agent.
    #[track_caller]
    pub fn variable(&mut self, name: &str) -> u32 {
        let bytes = self.read(json!(name), 4);
        u32::from_le_bytes(bytes.try_into().unwrap())
    }

    #[track_caller]
    pub fn read(&mut self, address: Value, length: u64) -> Vec<u8> {
        let reply = self.ok("read_memory", json!({"addr": address, "length": length}));
        decode_base64(reply["data"].as_str().unwrap())
    }

    /// A register by name.
    #[track_caller]
    pub fn register(&mut self, name: &str) -> u64 {
        let reply = self.ok("get_registers", json!({}));
        hex(&reply["registers"][name])
    }

    /// Where a symbol is, as nm says.
    pub fn symbol(&self, name: &str) -> u64 {
        symbol(&self.path, name)
    }

    /// Ends the program and the agent, and sees that nothing is left.
    #[track_caller]
    pub fn finish(mut self) {
        if self.ok("get_status", json!({}))["status"] != "exited" {
            let end = self.ok("terminate", json!({}));
            assert_eq!(end["status"], "exited", "{end}");
        }
        wait_for("the program's end", || (!is_alive(self.pid)).then_some(()));
        self.agent.finish();
    }
}

/// A program that was started without the agent.
pub struct Game {
    pub child: Child,
    pub path: PathBuf,
}

impl Game {
    pub fn start(game: &str, arguments: &[&str]) -> Self {
        Self::at(fixture(game), arguments)
    }

    /// The same from another place.
    pub fn at(path: PathBuf, arguments: &[&str]) -> Self {
        match wine() {
            Some(wine) => Self::under_wine(path.clone(), Command::new(wine).arg(path).args(arguments)),
            None => Self::command(path.clone(), Command::new(path).args(arguments)),
        }
    }

    /// How `attach` finds it.
    pub fn reference(&self) -> Value {
        match wine() {
            Some(_) => json!({"name": as_agent_sees(&self.path)}),
            None => json!({"pid": self.pid()}),
        }
    }

    pub fn command(path: PathBuf, command: &mut Command) -> Self {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let game = Self { child, path };
        // Between fork and exec it is still us. The first thread may be gone soon, and its link with it.
        let runs = || {
            let tasks = std::fs::read_dir(format!("/proc/{}/task", game.pid())).ok()?;
            let links = tasks.flatten().filter_map(|task| std::fs::canonicalize(task.path().join("exe")).ok());
            links.into_iter().any(|link| link == game.path).then_some(())
        };
        wait_for("the program's start", runs);
        game
    }

    /// Starts a program under Wine that counts as driftgame does.
    pub fn under_wine(path: PathBuf, command: &mut Command) -> Self {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let game = Self { child, path };
        // Until the game's own loop runs it is Wine's loader.
        let counters = ["g_frame_count", "g_hot_count"].map(|name| symbol(&game.path, name));
        wait_for("the program's start", || {
            let counts = counters.iter().any(|at| try_peek(game.pid(), *at, 4).is_some_and(|bytes| bytes != [0; 4]));
            (running(&game.path).contains(&game.pid()) && counts).then_some(())
        });
        game
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A 32-bit variable, read without the agent.
    #[track_caller]
    pub fn variable(&self, name: &str) -> u32 {
        let bytes = peek(self.pid(), symbol(&self.path, name), 4);
        u32::from_le_bytes(bytes.try_into().unwrap())
    }

    /// Sees that it runs on by itself: nobody traces it, `counter` grows, and its code is that of its file.
    #[track_caller]
    pub fn is_unharmed(&mut self, counter: &str) {
        assert_eq!(self.child.try_wait().unwrap(), None, "it has ended");
        wait_for("the tracer to be gone", || (status_field(self.pid(), "TracerPid") == "0").then_some(()));
        let before = self.variable(counter);
        wait_for("the program to go on", || (self.variable(counter).wrapping_sub(before) > 2).then_some(()));
        let (address, text) = section(&self.path, ".text");
        assert!(peek(self.pid(), address, text.len()) == text, "its code is not that of its file");
    }

    /// Ends it, after it has been seen to live.
    pub fn finish(mut self) {
        assert_eq!(self.child.try_wait().unwrap(), None, "it has ended by itself");
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Game {
    fn drop(&mut self) {
        // Only after a failed test.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A number written as `0x…`.
#[track_caller]
pub fn hex(value: &Value) -> u64 {
    let digits = value.as_str().and_then(|text| text.strip_prefix("0x"));
    u64::from_str_radix(digits.unwrap_or_else(|| panic!("{value} is not hexadecimal")), 16).unwrap()
}

/// RFC 4648, written down again so that the agent's own decoder is not its own witness.
pub fn decode_base64(text: &str) -> Vec<u8> {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bits =
        text.bytes().filter(|byte| *byte != b'=').map(|byte| alphabet.iter().position(|one| *one == byte).unwrap());
    let mut bytes = Vec::with_capacity(text.len());
    let (mut buffer, mut have) = (0u32, 0);
    for value in bits.by_ref() {
        buffer = (buffer << 6 | value as u32) & 0xffff;
        have += 6;
        if have >= 8 {
            have -= 8;
            bytes.push((buffer >> have) as u8);
        }
    }
    bytes
}

pub fn encode_base64(bytes: &[u8]) -> String {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let number = three.iter().fold(0u32, |number, byte| number << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for digit in 0..4 {
            let index = (number >> (18 - 6 * digit) & 63) as usize;
            text.push(if digit <= three.len() { char::from(alphabet[index]) } else { '=' });
        }
    }
    text
}

/// Output of a program that must succeed.
#[track_caller]
pub fn output(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Address of a symbol in a program's file, as nm says.
#[track_caller]
pub fn symbol(path: &std::path::Path, name: &str) -> u64 {
    let table = output(Command::new("nm").arg(path));
    let line = table.lines().find(|line| line.split(' ').next_back().is_some_and(|found| is_called(found, name)));
    let address = line.unwrap_or_else(|| panic!("nm knows no {name}")).split(' ').next().unwrap();
    u64::from_str_radix(address, 16).unwrap()
}

/// Whether a symbol is `name`, as it is or as 32-bit Windows compilers decorate it: `_name`, `_name@4`, `@name@4`.
fn is_called(symbol: &str, name: &str) -> bool {
    let bare = symbol.strip_prefix(['_', '@']).unwrap_or(symbol);
    let bare = bare.rsplit_once('@').map_or(bare, |(bare, _)| bare);
    symbol == name || (wine().is_some() && bare == name)
}

/// The register that holds the argument of `hot_step`.
pub fn counter_register(game: &str) -> &'static str {
    match (game.ends_with("64"), wine().is_some()) {
        (true, false) => "rdi",
        (true, true) => "rcx",
        (false, _) => "ecx",
    }
}

/// Address and bytes of a section, as objdump and objcopy say.
pub fn section(path: &std::path::Path, name: &str) -> (u64, Vec<u8>) {
    let headers = output(Command::new("objdump").arg("-h").arg(path));
    let row =
        headers.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).find(|row| row.get(1) == Some(&name));
    let address = u64::from_str_radix(row.unwrap()[3], 16).unwrap();
    let file =
        std::env::temp_dir().join(format!("retroscope-{}-{:?}", std::process::id(), std::thread::current().id()));
    output(Command::new("objcopy").args(["-O", "binary", "--only-section", name]).arg(path).arg(&file));
    let bytes = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    (address, bytes)
}

/// One function, as objdump decodes it: address, mnemonic with operands.
pub fn listing(path: &std::path::Path, function: &str) -> Vec<(u64, String)> {
    let table = output(Command::new("nm").arg(path));
    let symbol = table.lines().filter_map(|line| line.split(' ').next_back()).find(|found| is_called(found, function));
    let text = output(
        Command::new("objdump")
            .args(["-d", "-M", "intel", "--no-show-raw-insn"])
            .arg(format!("--disassemble={}", symbol.unwrap_or(function)))
            .arg(path),
    );
    // Callees lose their decoration too.
    let text = text.replace("<_", "<");
    let line = |line: &str| {
        let (address, code) = line.trim_start().split_once(":\t")?;
        Some((u64::from_str_radix(address, 16).ok()?, code.trim().to_owned()))
    };
    text.lines().filter_map(line).collect()
}

/// Bytes of a process's memory, read without the agent.
#[track_caller]
pub fn peek(pid: u32, address: u64, length: usize) -> Vec<u8> {
    try_peek(pid, address, length).unwrap_or_else(|| panic!("{length} bytes at {address:#x} of process {pid}"))
}

fn try_peek(pid: u32, address: u64, length: usize) -> Option<Vec<u8>> {
    use std::os::unix::fs::FileExt;
    let mut bytes = vec![0; length];
    std::fs::File::open(format!("/proc/{pid}/mem")).ok()?.read_exact_at(&mut bytes, address).ok()?;
    Some(bytes)
}

pub fn status_field(pid: u32, name: &str) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let field = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    field.unwrap_or_default().trim().to_owned()
}

/// Parameters that are missing, unknown, of the wrong type, out of range or huge, whatever the operation.
pub fn strange_parameters() -> Vec<Value> {
    let long = "x".repeat(100_000);
    vec![
        json!({}),
        json!({"unknown": 1}),
        json!({"addr": [], "timeout": "x", "path": 1, "registers": 2, "length": {}, "data": 7, "condition": 1}),
        json!({"addr": u64::MAX, "length": u64::MAX, "timeout": 1e308, "count": u64::MAX}),
        json!({"addr": -1, "length": -1, "timeout": -1, "count": -1, "size": -1, "slot": -1, "thread": -1}),
        json!({"addr": long, "path": long, "data": long, "name": long, "title": long}),
        json!({"pid": 0}),
        json!({"path": "\u{0}", "cwd": "\u{0}"}),
        json!({"path": "/", "args": vec!["x"; 10_000]}),
        json!({"timeout": -1}),
        json!({"addr": "0x10", "length": 0}),
        json!({"addr": "0x10", "length": 1u64 << 40}),
        json!({"addr": "0x10", "size": 3}),
        json!({"addr": "0x11", "size": 4}),
        json!({"addr": "nothing+nowhere", "length": 4}),
        json!({"addr": "0x10", "condition": {"register": "ecx"}}),
    ]
}

/// Whether a process exists and has not ended.
pub fn is_alive(pid: u32) -> bool {
    !matches!(status_field(pid, "State").chars().next(), None | Some('Z' | 'X'))
}
