//! An agent process and one connection to it.

use serde_json::{Value, json};
use std::error::Error;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Longest wait for a reply: the agent answers every command sooner than that.
const PATIENCE: Duration = Duration::from_secs(120);

/// It ends with this value.
pub struct Agent {
    child: Child,
    stream: BufReader<TcpStream>,
}

impl Agent {
    /// Starts `program` on a free port, with `extra` options.
    pub fn start(program: &Path, extra: &[&str]) -> Result<Self, Box<dyn Error>> {
        let mut command = Command::new(program);
        command.args(["--port", "0", "--log", "error"]).args(extra).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("{}: {error}", program.display()))?;
        match connect(&mut child) {
            Ok(stream) => Ok(Self { child, stream }),
            Err(error) => {
                drop(child.kill());
                drop(child.wait());
                Err(error)
            }
        }
    }

    /// Sends a command.
    pub fn send(&mut self, op: &str, params: &Value) -> Result<(), Box<dyn Error>> {
        let mut line = json!({"op": op, "params": params}).to_string();
        line.push('\n');
        Ok(self.stream.get_mut().write_all(line.as_bytes())?)
    }

    /// The next reply, as it came.
    pub fn receive(&mut self) -> Result<String, Box<dyn Error>> {
        let mut line = String::new();
        match self.stream.read_line(&mut line)? {
            0 => Err("the agent closed the connection".into()),
            _ => Ok(line),
        }
    }

    /// Sends a command and gives its result.
    pub fn call(&mut self, op: &str, params: &Value) -> Result<Value, Box<dyn Error>> {
        self.send(op, params)?;
        let mut reply: Value = serde_json::from_str(&self.receive()?)?;
        if reply.get("ok") != Some(&Value::Bool(true)) {
            return Err(format!("{op}: {reply}").into());
        }
        Ok(reply.get_mut("result").map(Value::take).unwrap_or_default())
    }
}

fn connect(child: &mut Child) -> Result<BufReader<TcpStream>, Box<dyn Error>> {
    let mut line = String::new();
    BufReader::new(child.stdout.take().ok_or("the agent has no output")?).read_line(&mut line)?;
    let address = line.trim().rsplit(' ').next().unwrap_or_default();
    let stream = TcpStream::connect(address).map_err(|error| format!("the agent said `{}`: {error}", line.trim()))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(BufReader::new(stream))
}

impl Drop for Agent {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
