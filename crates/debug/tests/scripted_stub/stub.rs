//! A stub that behaves as DeSmuME 0.9.11 does, crash included, so that what would kill the real one can be tested.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use debug::gdb_remote::{Decoder, Token, encode};

/// Where the program is once it is loaded.
pub const ENTRY: u32 = 0x0200_0000;

/// What the stub has been told, and how it behaves.
#[derive(Debug, Default)]
pub struct Script {
    /// Every packet received, in order.
    pub seen: Vec<String>,
    /// What is planted; duplicates count.
    pub planted: Vec<String>,
    /// Times that `g` still shows an empty machine.
    pub loading: u32,
    /// How the next runs stop; when it is empty, the program runs until it is interrupted.
    pub stops: Vec<&'static str>,
    /// The program counter.
    pub pc: u32,
    /// Set when it was asked for more memory than its buffer holds, which ends the real one.
    pub crashed: bool,
    /// Whether the program runs, whoever is connected.
    pub running: bool,
    /// Never stops for an interrupt, as a recompiler does.
    pub never_interrupted: bool,
    /// Time it takes to answer `g`.
    pub slow_registers: Duration,
    /// Takes no writes.
    pub read_only: bool,
    /// Never answers this packet.
    pub deaf_to: Option<char>,
    /// Bytes that were written.
    pub memory: Vec<u8>,
}

/// A stub on a port of its own, serving one connection after the other until it is dropped.
pub struct Stub {
    pub address: SocketAddr,
    script: Arc<Mutex<Script>>,
}

impl Stub {
    pub fn start(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let script = Arc::new(Mutex::new(Script { pc: ENTRY, memory: vec![0; 0x1000], ..script }));
        let shared = Arc::clone(&script);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                // The test ended, or the program is dead.
                if Arc::strong_count(&shared) == 1 || shared.lock().unwrap().crashed {
                    return;
                }
                let _ = serve(stream.unwrap(), &shared);
            }
        });
        Self { address, script }
    }

    pub fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap()
    }

    /// Waits until the stub has seen what the test is about.
    pub fn wait(&self, what: impl Fn(&Script) -> bool) {
        let until = Instant::now() + Duration::from_secs(20);
        while !what(&self.script()) {
            assert!(Instant::now() < until, "{:?}", self.script());
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

fn serve(mut stream: TcpStream, script: &Mutex<Script>) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut decoder = Decoder::default();
    let mut buffer = [0; 512];
    loop {
        let count = stream.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        for byte in &buffer[..count] {
            let mut script = script.lock().unwrap();
            if script.running && !script.never_interrupted && *byte == 0x03 {
                script.running = false;
                stream.write_all(&encode(b"S02"))?;
            }
            let Some(Token::Packet(packet)) = decoder.push(*byte) else { continue };
            let packet = String::from_utf8(packet).unwrap();
            script.seen.push(packet.clone());
            if script.running {
                // As DeSmuME: refused, and answered all the same where nothing has to stop for it.
                stream.write_all(b"-")?;
                if packet == "?" {
                    stream.write_all(&encode(b"S05"))?;
                }
                continue;
            }
            stream.write_all(b"+")?;
            if script.deaf_to.is_some_and(|letter| packet.starts_with(letter)) {
                continue;
            }
            if packet == "c" || packet == "s" {
                if packet == "s" {
                    script.pc += 4;
                }
                let stop = if script.stops.is_empty() { None } else { Some(script.stops.remove(0)) };
                match stop.or((packet == "s").then_some("S05")) {
                    Some(stop) => stream.write_all(&encode(stop.as_bytes()))?,
                    None => script.running = true,
                }
                continue;
            }
            if packet == "g" {
                std::thread::sleep(script.slow_registers);
            }
            let answer = answer(&mut script, &packet);
            if script.crashed {
                return Ok(());
            }
            stream.write_all(&encode(answer.as_bytes()))?;
        }
    }
}

fn answer(script: &mut Script, packet: &str) -> String {
    let (letter, rest) = packet.split_at(1);
    let numbers: Vec<u32> = rest.split([',', ':']).filter_map(|number| u32::from_str_radix(number, 16).ok()).collect();
    match letter {
        "?" => "S05".to_owned(),
        "g" => {
            let pc = if script.loading > 0 { 0 } else { script.pc };
            script.loading = script.loading.saturating_sub(1);
            // r0 to r14, pc, eight floating point registers of 12 bytes, their status, cpsr.
            let pc: String = pc.to_le_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{}{pc}{}1f000000", "00".repeat(60), "00".repeat(100))
        }
        "Z" => {
            script.planted.push(rest.to_owned());
            "OK".to_owned()
        }
        "z" => {
            if let Some(at) = script.planted.iter().position(|planted| planted == rest) {
                script.planted.remove(at);
            }
            "OK".to_owned()
        }
        "m" => {
            let (at, length) = (numbers[0] as usize % 0x1000, numbers[1] as usize);
            // Its buffer has 2,048 characters: the end of the text is lost at 1,024 bytes, and above it crashes.
            script.crashed = length > 0x400;
            (0..length).map(|offset| format!("{:02x}", script.memory[(at + offset) % 0x1000])).collect()
        }
        "M" if script.read_only => String::new(),
        "M" => {
            let digits = rest.split_once(':').unwrap().1;
            let at = numbers[0] as usize % 0x1000;
            for (index, pair) in digits.as_bytes().chunks(2).enumerate() {
                script.memory[at + index] = u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
            }
            String::new()
        }
        _ => String::new(),
    }
}
