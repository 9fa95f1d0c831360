//! A session with VICE 3.7.1 that was recorded, and can be played again without VICE: the calls, and what came of them.
#![allow(dead_code, reason = "each test uses its part")]

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use debug::vice::{Monitor, NewCheckpoint, Place};

const LONG: u64 = 30_000;

/// Where it is kept: lines of `>` and what was sent, `<` and what came, in hexadecimal digits.
pub fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcript/vice-3.7.1.txt")
}

/// The calls, on a machine whose program is at `count`, once a frame; and what is true of them on every run.
pub fn session(monitor: &Monitor, count: u16) -> Vec<String> {
    let mut told = vec![format!("version {}", monitor.version())];
    let banks = monitor.banks(LONG).unwrap();
    told.push(banks.iter().map(|bank| format!("{}={}", bank.name, bank.id)).collect::<Vec<_>>().join(" "));
    let refused = monitor.read_memory(Place { bank: 99, memspace: 0, start: 0, side_effects: false }, 1, 2, LONG);
    // The number of the request is the connection's own.
    told.push(refused.unwrap_err().code().to_owned());
    let new = NewCheckpoint {
        start: count,
        end: count,
        stops: true,
        enabled: true,
        operations: 4,
        temporary: false,
        memspace: 0,
    };
    let made = monitor.set_checkpoint(&new, LONG).unwrap().checkpoint;
    monitor.set_condition(made.number, "A == $00", LONG).unwrap();
    told.push(format!("condition {}", monitor.set_condition(made.number, "A ==", LONG).unwrap_err().code()));
    let resumed = monitor.resume(LONG).unwrap().event.sequence;
    let stop = monitor.wait_for_stop(resumed, LONG).unwrap();
    let hits: Vec<String> =
        stop.checkpoints.iter().map(|hit| format!("{:04x} {}", hit.start, hit.conditional)).collect();
    told.push(format!("stop {:04x?} {hits:?}", stop.pc));
    let names = ["PC", "A", "SP"].map(str::to_owned);
    let registers = monitor.registers(&names, 0, LONG).unwrap();
    told.push(
        registers.iter().map(|one| format!("{}={:x}", one.register.name, one.value)).collect::<Vec<_>>().join(" "),
    );
    let code =
        monitor.read_memory(Place { bank: 1, memspace: 0, start: count, side_effects: false }, count + 8, 9, LONG);
    told.push(format!("{:02x?}", code.unwrap().bytes));
    let step = monitor.step(false, 1, LONG).unwrap();
    told.push(format!("step {:04x?} {:?}", step.event.pc, step.arrival));
    monitor.delete_checkpoint(made.number, LONG).unwrap();
    told.push(format!("{} checkpoints", monitor.checkpoints(LONG).unwrap().len()));
    told
}

type Log = Arc<Mutex<Vec<(char, Vec<u8>)>>>;

/// Lets a client through to VICE and writes down what passes.
pub struct Recorder {
    pub address: SocketAddr,
    log: Log,
}

impl Recorder {
    pub fn before(vice: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let log = Log::default();
        let shared = Arc::clone(&log);
        std::thread::spawn(move || {
            let (client, _) = listener.accept().unwrap();
            let vice = TcpStream::connect(vice).unwrap();
            let (client_again, vice_again) = (client.try_clone().unwrap(), vice.try_clone().unwrap());
            let other = Arc::clone(&shared);
            std::thread::spawn(move || pass('>', client, vice, &other));
            pass('<', vice_again, client_again, &shared);
        });
        Self { address, log }
    }

    /// What passed, in the form of the file.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (direction, bytes) in self.log.lock().unwrap().iter() {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            writeln!(text, "{direction} {digits}").unwrap();
        }
        text
    }
}

fn pass(direction: char, mut from: TcpStream, mut to: TcpStream, log: &Log) {
    let mut buffer = [0; 65_536];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let bytes = buffer[..count].to_vec();
        log.lock().unwrap().push((direction, bytes.clone()));
        if to.write_all(&bytes).is_err() {
            return;
        }
    }
    drop(to.shutdown(std::net::Shutdown::Both));
}

/// Plays VICE's part of a recording to one client, which must send what the recorded one sent.
pub fn play(text: &str) -> SocketAddr {
    let lines: Vec<(char, Vec<u8>)> = text
        .lines()
        .map(|line| {
            let (direction, digits) = line.split_once(' ').unwrap();
            let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
            (direction.chars().next().unwrap(), (0..digits.len()).step_by(2).map(byte).collect())
        })
        .collect();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        for (direction, bytes) in lines {
            if direction == '<' {
                client.write_all(&bytes).unwrap();
                continue;
            }
            let mut sent = vec![0; bytes.len()];
            client.read_exact(&mut sent).unwrap();
            assert_eq!(sent, bytes, "the client sends what it sent when it was recorded");
        }
        // It stays until the client leaves.
        let _ = client.read(&mut [0]);
    });
    address
}
