//! `retroscope serve --http` as a child, and HTTP written by hand, so that what is on the wire can be wrong on purpose.

use super::{MODERN, PROGRAM, modern_meta};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

pub const TOKEN: &str = "a-token-for-tests";

pub struct HttpServer {
    pub child: Child,
    pub address: String,
}

impl HttpServer {
    /// Starts a server on a free port that asks for [`TOKEN`].
    pub fn start(arguments: &[&str]) -> Self {
        Self::start_with(arguments, Some(TOKEN))
    }

    pub fn start_with(arguments: &[&str], token: Option<&str>) -> Self {
        Self::run(Command::new(PROGRAM), arguments, token)
    }

    /// Starts what `program` runs, for instance a server for another system.
    pub fn run(mut command: Command, arguments: &[&str], token: Option<&str>) -> Self {
        command.args(["serve", "--http", "127.0.0.1:0"]).args(arguments).current_dir(std::env::temp_dir());
        command.env("RETROSCOPE_WORKSPACE_ROOT", std::env::temp_dir());
        command.env_remove("RETROSCOPE_TOKEN").env_remove("HAVOC_MCP_TOKEN");
        if let Some(token) = token {
            command.env("RETROSCOPE_TOKEN", token);
        }
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("retroscope: MCP at http://").unwrap_or_else(|| panic!("{line}"));
        Self { child, address: address.strip_suffix("/mcp").unwrap().to_owned() }
    }

    pub fn connect(&self) -> HttpClient {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        HttpClient {
            stream: BufReader::new(stream),
            host: self.address.clone(),
            token: Some(TOKEN.to_owned()),
            last_id: 0,
        }
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// One connection that is kept.
pub struct HttpClient {
    pub stream: BufReader<TcpStream>,
    pub host: String,
    pub token: Option<String>,
    last_id: u64,
}

/// What came back.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The JSON-RPC message with an `id`, from a JSON body or an event stream.
    pub fn message(&self) -> Value {
        let lines = self.body.lines().filter_map(|line| line.strip_prefix("data:"));
        let messages = lines.chain([self.body.as_str()]).filter_map(|text| serde_json::from_str::<Value>(text).ok());
        messages.into_iter().find(|message| !message["id"].is_null()).unwrap_or_else(|| panic!("{self:?}"))
    }
}

impl HttpClient {
    /// On a connection to `host`, without a token.
    pub fn of(stream: TcpStream, host: &str) -> Self {
        Self { stream: BufReader::new(stream), host: host.to_owned(), token: None, last_id: 0 }
    }

    /// Sends the head and the body of a request.
    pub fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) {
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n", self.host);
        if let Some(token) = &self.token {
            head.push_str(&format!("Authorization: Bearer {token}\r\n"));
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
        self.stream.get_mut().write_all((head + body).as_bytes()).unwrap();
    }

    pub fn request(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Response {
        self.send(method, path, headers, body);
        self.response()
    }

    /// Reads one response.
    pub fn response(&mut self) -> Response {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        let status = line.split(' ').nth(1).unwrap_or_else(|| panic!("no response: `{line}`")).parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).unwrap();
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            headers.push((name.to_lowercase(), value.to_owned()));
        }
        let find = |name: &str| headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
        let mut body = Vec::new();
        if find("transfer-encoding").as_deref() == Some("chunked") {
            loop {
                let mut size = String::new();
                self.stream.read_line(&mut size).unwrap();
                let size = usize::from_str_radix(size.trim(), 16).unwrap();
                let mut chunk = vec![0; size + 2];
                self.stream.read_exact(&mut chunk).unwrap();
                body.extend_from_slice(&chunk[..size]);
                if size == 0 {
                    break;
                }
            }
        } else if let Some(length) = find("content-length") {
            body = vec![0; length.parse().unwrap()];
            self.stream.read_exact(&mut body).unwrap();
        }
        Response { status, headers, body: String::from_utf8(body).unwrap() }
    }

    /// A request of the modern era.
    pub fn modern(&mut self, path: &str, method: &str, mut params: Value, name: Option<&str>) -> Response {
        self.last_id += 1;
        params["_meta"] = modern_meta();
        let body = json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}).to_string();
        let mut headers = vec![
            ("Accept", "application/json, text/event-stream"),
            ("Content-Type", "application/json"),
            ("MCP-Protocol-Version", MODERN),
            ("Mcp-Method", method),
        ];
        headers.extend(name.map(|name| ("Mcp-Name", name)));
        self.request("POST", path, &headers, &body)
    }

    /// A request of an older era, with its protocol version in the header.
    pub fn legacy(&mut self, version: &str, method: &str, params: Value) -> Response {
        self.last_id += 1;
        let body = json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}).to_string();
        let headers = [
            ("Accept", "application/json, text/event-stream"),
            ("Content-Type", "application/json"),
            ("MCP-Protocol-Version", version),
        ];
        self.request("POST", "/mcp", &headers, &body)
    }

    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let response = self.modern("/mcp", "tools/call", json!({"name": tool, "arguments": arguments}), Some(tool));
        assert_eq!(response.status, 200, "{response:?}");
        response.message()["result"].clone()
    }
}
