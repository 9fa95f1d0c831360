//! A client of `retroscope serve` over stdio that shows every message as it is.

use super::{PROGRAM, modern_meta};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

pub struct StdioClient {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    modern: bool,
    last_id: u64,
    /// What the server said at the start.
    pub hello: Value,
}

impl StdioClient {
    /// Starts a server and does what the era asks for at the start.
    pub fn start(arguments: &[&str], version: &str) -> Self {
        Self::start_with(arguments, version, &[])
    }

    /// The same with environment variables.
    pub fn start_with(arguments: &[&str], version: &str, variables: &[(&str, &str)]) -> Self {
        let folder = std::env::temp_dir();
        let mut command = Command::new(PROGRAM);
        command.arg("serve").args(arguments).env("RETROSCOPE_WORKSPACE_ROOT", &folder);
        command.envs(variables.iter().copied()).current_dir(folder);
        Self::of(command, version)
    }

    /// The same with any program that speaks MCP.
    pub fn of(mut command: Command, version: &str) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let stdin = child.stdin.take();
        let modern = version == super::MODERN;
        let mut client = Self { child, stdin, lines, modern, last_id: 0, hello: Value::Null };
        if !modern {
            let hello = client.request(
                "initialize",
                json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}),
            );
            assert_eq!(hello["result"]["protocolVersion"], version, "{hello}");
            client.hello = hello["result"].clone();
            client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        }
        client
    }

    pub fn send(&mut self, message: &Value) {
        self.send_raw(message.to_string().as_bytes());
    }

    pub fn send_raw(&mut self, line: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(line).unwrap();
        stdin.write_all(b"\n").unwrap();
    }

    /// Sends a request and gives its id.
    pub fn ask(&mut self, method: &str, mut params: Value) -> u64 {
        self.last_id += 1;
        if self.modern {
            params["_meta"] = modern_meta();
        }
        self.send(&json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}));
        self.last_id
    }

    /// The answer to request `id`; other messages are thrown away.
    pub fn answer(&self, id: u64) -> Value {
        loop {
            let message = self.lines.recv_timeout(Duration::from_secs(30)).expect("no answer");
            if message["id"] == id {
                return message;
            }
        }
    }

    /// The result of a tool, and the methods of the notifications that came before it.
    pub fn call_noting(&mut self, tool: &str, arguments: Value) -> (Value, Vec<String>) {
        let id = self.ask("tools/call", json!({"name": tool, "arguments": arguments}));
        let mut noted = Vec::new();
        loop {
            let message = self.lines.recv_timeout(Duration::from_secs(30)).expect("no answer");
            if message["id"] == id {
                assert!(message["error"].is_null(), "{message}");
                return (message["result"].clone(), noted);
            }
            noted.extend(message["method"].as_str().map(str::to_owned));
        }
    }

    /// Names of the tools that are listed.
    pub fn listed(&mut self) -> Vec<String> {
        let list = self.request("tools/list", json!({}))["result"]["tools"].clone();
        list.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// The next message, or nothing within the time.
    pub fn next(&self, limit: Duration) -> Option<Value> {
        self.lines.recv_timeout(limit).ok()
    }

    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        self.answer(id)
    }

    /// The result of a tool.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        assert!(answer["error"].is_null(), "{answer}");
        answer["result"].clone()
    }

    /// The text of a tool's refusal.
    pub fn refused(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{result}");
        assert!(result["structuredContent"].is_null(), "{result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Closes stdin and waits for the end.
    pub fn end(mut self) -> std::process::ExitStatus {
        drop(self.stdin.take());
        self.child.wait().unwrap()
    }
}

impl Drop for StdioClient {
    fn drop(&mut self) {
        drop(self.stdin.take());
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
