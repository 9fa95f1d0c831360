//! Measures the VICE connector beside a bare client of the same VICE: 64 KiB of memory, and steps per second.

use debug::emulator::find_launcher;
use debug::vice::launch::{PROGRAM, Roms, ViceLaunch};
use debug::vice::{Decoder, NO_REQUEST, Request, encode};
use serde_json::{Value, json};
use std::error::Error;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Reads of each measurement.
const READS: u32 = 300;
/// Steps of each measurement.
const STEPS: u32 = 3_000;
/// Measurements of each kind, of which the best counts: the machine does other things too.
const ROUNDS: u32 = 3;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(program), Some(fixtures)) = (arguments.next(), arguments.next()) else {
        return Err("the paths of retroscope and of the fixtures for VICE are missing".into());
    };
    let home = std::env::temp_dir().join(format!("retroscope-bench-{}", std::process::id()));
    std::fs::create_dir_all(&home)?;
    let outcome = measure(&program, &fixtures, &home);
    std::fs::remove_dir_all(&home)?;
    outcome
}

fn measure(program: &Path, fixtures: &Path, home: &Path) -> Outcome<()> {
    let file = |name: &str| Some(fixtures.join(name));
    let launch = ViceLaunch {
        program: find_launcher(Path::new(PROGRAM)).ok_or("x64sc is not installed")?,
        prg: None,
        roms: Roms { kernal: file("kernal.bin"), basic: file("basic.bin"), chargen: file("chargen.bin") },
        home: home.to_owned(),
        environment: std::env::var_os("DISPLAY").map(|display| ("DISPLAY".into(), display)).into_iter().collect(),
        guard: None,
    };
    let (mut emulator, monitor) = launch.start()?;
    let address = monitor.address();
    drop(monitor);
    let (mut bare_read, mut bare_steps, mut own_read, mut own_steps) = (f64::MAX, 0_f64, f64::MAX, 0_f64);
    for _ in 0..ROUNDS {
        let mut bare = Bare::connect(address)?;
        bare_read = bare_read.min(mean_ms(READS, || bare.read())?);
        bare_steps = bare_steps.max(1000.0 / mean_ms(STEPS, || bare.step())?);
        drop(bare);
        let mut connector = Connector::start(program, address)?;
        own_read = own_read.min(mean_ms(READS, || connector.read())?);
        own_steps = own_steps.max(1000.0 / mean_ms(STEPS, || connector.step())?);
    }
    emulator.stop();
    println!(
        "64 KiB: {own_read:.2} ms by the connector, {bare_read:.2} ms bare: ratio {:.2} (wanted: under 3)",
        own_read / bare_read
    );
    println!(
        "steps per second: {own_steps:.0} by the connector, {bare_steps:.0} bare: ratio {:.2} (wanted: 0.50 or more)",
        own_steps / bare_steps
    );
    Ok(())
}

fn mean_ms(count: u32, mut work: impl FnMut() -> Outcome<()>) -> Outcome<f64> {
    work()?;
    let begun = Instant::now();
    for _ in 0..count {
        work()?;
    }
    Ok(begun.elapsed().as_secs_f64() * 1000.0 / f64::from(count))
}

/// A client that does nothing else.
struct Bare {
    stream: TcpStream,
    decoder: Decoder,
    id: u32,
    buffer: Vec<u8>,
}

impl Bare {
    fn connect(address: SocketAddr) -> Outcome<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let mut bare = Self { stream, decoder: Decoder::default(), id: 0, buffer: vec![0; 128 * 1024] };
        bare.exchange(&debug::vice::commands::ping::request(), 0x81)?;
        Ok(bare)
    }

    /// Sends a request and reads until a frame of this kind.
    fn exchange(&mut self, request: &Request, last: u8) -> Outcome<()> {
        self.id += 1;
        self.stream.write_all(&encode(request, self.id))?;
        loop {
            while let Some(frame) = self.decoder.next_frame()? {
                if frame.kind == last && (frame.request == self.id || frame.request == NO_REQUEST) {
                    return Ok(());
                }
            }
            let count = self.stream.read(&mut self.buffer)?;
            self.decoder.push(self.buffer.get(..count).unwrap_or_default());
        }
    }

    fn read(&mut self) -> Outcome<()> {
        self.exchange(&debug::vice::commands::memory_get::request(false, 0, 0xFFFF, 0, 1), 0x01)
    }

    fn step(&mut self) -> Outcome<()> {
        self.exchange(&debug::vice::commands::advance::request(false, NonZeroU16::MIN), 0x62)
    }
}

/// The connector with a client on one connection.
struct Connector {
    child: Child,
    client: BufReader<TcpStream>,
    host: String,
    token: String,
}

impl Connector {
    fn start(program: &Path, monitor: SocketAddr) -> Outcome<Self> {
        let mut command = Command::new(program);
        command.args(["vice-connector", "--listen", "127.0.0.1:0", "--connect", &monitor.to_string()]);
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stderr.take().ok_or("no stderr")?).read_line(&mut line)?;
        let host = line.trim().rsplit_once("http://").ok_or_else(|| line.clone())?.1.to_owned();
        let stream = TcpStream::connect(&host)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        let mut connector = Self { child, client: BufReader::new(stream), host, token: String::new() };
        let discovery = connector.request("GET", "/debugger/target_methods", "")?;
        let discovery: Value = serde_json::from_slice(&discovery)?;
        connector.token = discovery.get("target_token").and_then(Value::as_str).ok_or("no token")?.to_owned();
        Ok(connector)
    }

    fn request(&mut self, method: &str, path: &str, body: &str) -> Outcome<Vec<u8>> {
        let head =
            format!("{method} {path} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n\r\n{body}", self.host, body.len());
        self.client.get_mut().write_all(head.as_bytes())?;
        let mut length = 0;
        loop {
            let mut line = String::new();
            self.client.read_line(&mut line)?;
            if line.trim_end().is_empty() {
                break;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse()?;
            }
        }
        let mut answer = vec![0; length];
        self.client.read_exact(&mut answer)?;
        Ok(answer)
    }

    /// Calls a method, and reads the envelope as a client does.
    fn call(&mut self, method: &str, mut arguments: Value) -> Outcome<Value> {
        if let Some(arguments) = arguments.as_object_mut() {
            arguments.insert("process".to_owned(), json!({"object_path": "C64"}));
        }
        let method = format!("c64_vice_v1_{method}");
        let body = json!({"target_token": self.token, "method": method, "arguments": arguments, "timeout_ms": 15_000});
        let answer = self.request("POST", "/debugger/invoke_target_method", &body.to_string())?;
        let answer: Value = serde_json::from_slice(&answer)?;
        let text = answer.get("result").and_then(Value::as_str).ok_or_else(|| answer.to_string())?;
        let envelope: Value = serde_json::from_str(text)?;
        match envelope.get("ok") {
            Some(Value::Bool(true)) => Ok(envelope),
            _ => Err(envelope.to_string().into()),
        }
    }

    fn read(&mut self) -> Outcome<()> {
        let arguments = json!({"bank_id": 1, "start": 0, "end": 65_535, "max_bytes": 65_536});
        self.call("read_memory", arguments).map(drop)
    }

    fn step(&mut self) -> Outcome<()> {
        self.call("step", json!({})).map(drop)
    }
}

impl Drop for Connector {
    fn drop(&mut self) {
        // Nothing is left in VICE that would have to be taken away.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
