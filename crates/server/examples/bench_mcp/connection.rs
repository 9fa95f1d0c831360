//! A client's end of stdio and of Streamable HTTP: bytes out, bytes in, nothing between the clock and the server.

use crate::message::Era;
use serde_json::Value;
use std::error::Error;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{ChildStdin, ChildStdout};
use std::time::Duration;

/// Longest wait for a server, so that nothing hangs when one does.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// One connection to a server.
pub trait Connection {
    /// The bytes that carry `message`.
    fn frame(&self, message: &Value) -> Vec<u8>;

    /// Sends a request and gives the reply, whole.
    fn exchange(&mut self, bytes: &[u8]) -> Result<Vec<u8>, Box<dyn Error>>;
}

/// Newline-delimited messages over the pipes of a child.
pub struct Stdio {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Stdio {
    pub fn open(input: ChildStdin, output: ChildStdout, era: Era) -> Result<Self, Box<dyn Error>> {
        let mut connection = Self { input, output: BufReader::new(output) };
        if let Some((request, notification)) = era.greeting() {
            let request = connection.frame(&request);
            crate::message::result(&connection.exchange(&request)?, 0)?;
            let notification = connection.frame(&notification);
            connection.input.write_all(&notification)?;
        }
        Ok(connection)
    }
}

impl Connection for Stdio {
    fn frame(&self, message: &Value) -> Vec<u8> {
        format!("{message}\n").into_bytes()
    }

    fn exchange(&mut self, bytes: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
        self.input.write_all(bytes)?;
        let mut reply = Vec::new();
        match self.output.read_until(b'\n', &mut reply)? {
            0 => Err("the server closed its output".into()),
            _ => Ok(reply),
        }
    }
}

/// POST requests over one connection that is kept alive.
pub struct Http {
    stream: BufReader<TcpStream>,
    /// Everything of a request's head that is the same in all.
    head: String,
    era: Era,
}

impl Http {
    /// Connects to `address` (`host:port`) for the endpoint `path`.
    pub fn open(address: &str, path: &str, token: &str, era: Era) -> Result<Self, Box<dyn Error>> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n"
        );
        let mut connection = Self { stream: BufReader::new(stream), head, era };
        match era.greeting() {
            Some((request, notification)) => {
                connection.greet(&request, &notification)?;
            }
            None => connection.head.push_str(&version_header(era)),
        }
        Ok(connection)
    }

    fn greet(&mut self, request: &Value, notification: &Value) -> Result<(), Box<dyn Error>> {
        let bytes = self.frame(request);
        self.stream.get_mut().write_all(&bytes)?;
        let (session, reply) = self.receive()?;
        crate::message::result(&reply, 0)?;
        self.head.push_str(&version_header(self.era));
        if let Some(session) = session {
            self.head.push_str(&format!("Mcp-Session-Id: {session}\r\n"));
        }
        let bytes = self.frame(notification);
        self.exchange(&bytes)?;
        Ok(())
    }

    /// One response: the session that it opens, if any, and its body.
    fn receive(&mut self) -> Result<(Option<String>, Vec<u8>), Box<dyn Error>> {
        let status = self.line()?;
        let (mut length, mut chunked, mut session) = (0, false, None);
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(':') else { break };
            match (name.to_ascii_lowercase().as_str(), value.trim()) {
                ("content-length", value) => length = value.parse()?,
                ("transfer-encoding", value) => chunked = value.eq_ignore_ascii_case("chunked"),
                ("mcp-session-id", value) => session = Some(value.to_owned()),
                _ => {}
            }
        }
        let mut body = Vec::new();
        if chunked {
            loop {
                let size = usize::from_str_radix(self.line()?.trim(), 16)?;
                self.take(size, &mut body)?;
                self.line()?;
                if size == 0 {
                    break;
                }
            }
        } else {
            self.take(length, &mut body)?;
        }
        if !status.starts_with("HTTP/1.1 2") {
            return Err(format!("{}: {}", status.trim(), String::from_utf8_lossy(&body)).into());
        }
        Ok((session, body))
    }

    fn line(&mut self) -> Result<String, Box<dyn Error>> {
        let mut line = String::new();
        match self.stream.read_line(&mut line)? {
            0 => Err("the server closed the connection".into()),
            _ => Ok(line),
        }
    }

    fn take(&mut self, size: usize, body: &mut Vec<u8>) -> Result<(), Box<dyn Error>> {
        let read = self.stream.by_ref().take(u64::try_from(size)?).read_to_end(body)?;
        if read == size { Ok(()) } else { Err("the server closed the connection within a reply".into()) }
    }
}

fn version_header(era: Era) -> String {
    format!("MCP-Protocol-Version: {}\r\n", era.name())
}

impl Connection for Http {
    fn frame(&self, message: &Value) -> Vec<u8> {
        let body = message.to_string();
        let mut head = self.head.clone();
        if matches!(self.era, Era::Stateless) {
            let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
            if let Some(method) = text(message.get("method")) {
                head.push_str(&format!("Mcp-Method: {method}\r\n"));
            }
            if let Some(name) = text(message.pointer("/params/name")) {
                head.push_str(&format!("Mcp-Name: {name}\r\n"));
            }
        }
        format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
    }

    fn exchange(&mut self, bytes: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
        self.stream.get_mut().write_all(bytes)?;
        Ok(self.receive()?.1)
    }
}
