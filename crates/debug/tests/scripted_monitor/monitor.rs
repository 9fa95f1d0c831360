//! A binary monitor that answers as x64sc 3.7.1 does, or as a test says, so that what VICE cannot be made to do can be tested.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use debug::vice::{NO_REQUEST, encode_response};

/// A request that was received.
#[derive(Clone, Debug)]
pub struct Seen {
    pub command: u8,
    pub id: u32,
    pub body: Vec<u8>,
}

/// What is sent for a request: bytes, each item in a write of its own.
pub type Writes = Vec<Vec<u8>>;

/// What a test wants of a request: its own writes, or the usual ones.
type Script = dyn FnMut(&Seen) -> Option<Writes> + Send;

/// A monitor on a port of its own that serves one connection.
pub struct Monitor {
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Monitor {
    pub fn start(mut script: impl FnMut(&Seen) -> Option<Writes> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&seen);
        std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            // The client leaves when it likes.
            let _ = serve(stream, &mut script, &shared);
        });
        Self { address, seen }
    }

    /// The commands that were received, after those of connecting.
    pub fn commands(&self) -> Vec<u8> {
        self.seen.lock().unwrap().iter().skip(2).map(|seen| seen.command).collect()
    }
}

fn serve(mut stream: TcpStream, script: &mut Script, seen: &Mutex<Vec<Seen>>) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut first = true;
    loop {
        let mut head = [0; 11];
        stream.read_exact(&mut head)?;
        assert_eq!(head[..2], [2, 2], "a request of version 2");
        let number = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().unwrap());
        let mut body = vec![0; number(2) as usize];
        stream.read_exact(&mut body)?;
        let request = Seen { command: head[10], id: number(6), body };
        seen.lock().unwrap().push(request.clone());
        if std::mem::take(&mut first) {
            stream.write_all(&stopped(0xE09A))?;
        }
        let writes = script(&request).unwrap_or_else(|| vec![usual(&request)]);
        for bytes in writes {
            stream.write_all(&bytes)?;
        }
    }
}

/// Registers as VICE sends them: PC and A.
pub fn registers(pc: u16) -> Vec<u8> {
    let [low, high] = pc.to_le_bytes();
    vec![2, 0, 3, 3, low, high, 3, 0, 5, 0]
}

pub fn stopped(pc: u16) -> Vec<u8> {
    let registers = encode_response(0x31, 0, NO_REQUEST, &registers(pc));
    [registers, encode_response(0x62, 0, NO_REQUEST, &pc.to_le_bytes())].concat()
}

pub fn resumed(pc: u16) -> Vec<u8> {
    encode_response(0x63, 0, NO_REQUEST, &pc.to_le_bytes())
}

/// A checkpoint's frame.
pub fn checkpoint(number: u8, stops: bool, request: u32) -> Vec<u8> {
    let mut body = vec![number, 0, 0, 0, 1, 0x30, 0x09, 0x30, 0x09, u8::from(stops), 1, 4, 0];
    body.extend([1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    encode_response(0x11, 0, request, &body)
}

/// A refusal as VICE sends it.
pub fn refusal(code: u8, request: u32) -> Vec<u8> {
    encode_response(0, code, request, &[])
}

/// What VICE answers.
pub fn usual(request: &Seen) -> Vec<u8> {
    let answer = |body: &[u8]| encode_response(request.command, 0, request.id, body);
    match request.command {
        0x01 => {
            let at = |at: usize| u16::from_le_bytes([request.body[at], request.body[at + 1]]);
            let bytes: Vec<u8> = (at(1)..=at(3)).map(|address| address as u8).collect();
            answer(&[&(bytes.len() as u16).to_le_bytes()[..], &bytes].concat())
        }
        0x31 | 0x32 => encode_response(0x31, 0, request.id, &registers(0xC000)),
        0x71 => [answer(&[]), resumed(0xE09A), stopped(0xE09C)].concat(),
        0x83 => answer(b"\x02\x00\x05\x03\x10\x02PC\x04\x00\x08\x01A"),
        0x85 => answer(&[4, 3, 7, 1, 0, 4, 0, 0, 0, 0]),
        0xAA => [answer(&[]), resumed(0xE09A)].concat(),
        _ => answer(&[]),
    }
}
