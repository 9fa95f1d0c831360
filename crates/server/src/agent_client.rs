//! The way to the debug agent: connections that are kept between calls, one command at a time on each.
//!
//! Several connections instead of one, so that a command that waits holds nothing else up, and so that giving up a wait is
//! closing its connection, which the agent notices. Nothing about the debugged program is remembered here.

use crate::errors::{ErrorCode, ToolError};
use base::limits;
use std::io;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::{Mutex, Semaphore, SemaphorePermit};
use tokio::time::timeout;
use wire::commands::{Command, Hello, HelloReply};

/// Reaches one agent.
#[derive(Debug)]
pub struct AgentClient {
    address: String,
    command_timeout: Duration,
    /// The agent is a child of this server, and cannot be started by anybody else.
    own: bool,
    idle: Mutex<Vec<Connection>>,
    permits: Semaphore,
}

/// A connection whose greeting is done and on which nothing is in flight.
#[derive(Debug)]
struct Connection {
    stream: BufReader<TcpStream>,
    line: Vec<u8>,
    used: Instant,
}

impl AgentClient {
    /// A client of the agent at `address` (`host:port`); connects at the first call. `command_timeout` is how long a
    /// command that does not wait for the program may take in the agent.
    pub fn new(address: impl Into<String>, command_timeout: Duration) -> Self {
        Self {
            address: address.into(),
            command_timeout,
            own: false,
            idle: Mutex::new(Vec::new()),
            permits: Semaphore::new(limits::MAX_AGENT_CONNECTIONS),
        }
    }

    /// As [`Self::new`], of an agent that this server started.
    pub fn of_child(address: impl Into<String>, command_timeout: Duration) -> Self {
        Self { own: true, ..Self::new(address, command_timeout) }
    }

    /// Where the agent is.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Carries out a command that does not wait for the program.
    ///
    /// # Errors
    /// The agent's own; `agent_unreachable`, `agent_incompatible`, `agent_connection_lost`, `agent_no_answer`.
    pub async fn call<C: Command>(&self, command: C) -> Result<C::Reply, ToolError> {
        self.call_within(command, self.command_timeout).await
    }

    /// Carries out a command that may wait for the program as long as `seconds`.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub async fn call_waiting<C: Command>(&self, command: C, seconds: f64) -> Result<C::Reply, ToolError> {
        let longest = limits::MAX_CONTINUE_TIMEOUT_S as f64;
        // A nonsensical time is for the agent to refuse; here it must only not break the deadline.
        let seconds = if seconds.is_finite() { seconds.clamp(0.0, longest) } else { 0.0 };
        self.call_within(command, Duration::from_secs_f64(seconds) + self.command_timeout).await
    }

    /// Dropping the returned future closes the connection that the command went over, and nothing else.
    async fn call_within<C: Command>(&self, command: C, limit: Duration) -> Result<C::Reply, ToolError> {
        let params = serde_json::to_value(&command)
            .map_err(|error| fault(format!("the parameters of {} cannot be written: {error}", C::OP)))?;
        let _permit = self.permit().await?;
        let mut connection = self.connection().await?;
        let deadline = limit + Duration::from_millis(limits::AGENT_ANSWER_SLACK_MS);
        let answer = match timeout(deadline, connection.exchange(C::OP, &params)).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => return Err(self.lost(C::OP, &error)),
            Err(_) => {
                return Err(ToolError::new(
                    ErrorCode::AgentNoAnswer,
                    format!(
                        "the agent at {} did not answer {} within {:.0} s",
                        self.address,
                        C::OP,
                        deadline.as_secs_f64()
                    ),
                )
                .hint("call get_status to learn the state of the program"));
            }
        };
        connection.used = Instant::now();
        let mut idle = self.idle.lock().await;
        if idle.len() < limits::MAX_IDLE_AGENT_CONNECTIONS {
            idle.push(connection);
        }
        drop(idle);
        serde_json::from_value(answer?).map_err(|error| {
            ToolError::new(
                ErrorCode::AgentIncompatible,
                format!("the agent's answer to {} has another form: {error}", C::OP),
            )
            .hint("use an agent of the same version as the server")
        })
    }

    /// The right to use one more connection.
    async fn permit(&self) -> Result<SemaphorePermit<'_>, ToolError> {
        match timeout(self.command_timeout, self.permits.acquire()).await {
            Ok(permit) => permit.map_err(|error| fault(error.to_string())),
            Err(_) => {
                let most = limits::MAX_AGENT_CONNECTIONS;
                Err(ToolError::new(
                    ErrorCode::Agent(wire::ErrorCode::Busy),
                    format!("{most} calls wait for the agent already"),
                )
                .hint("let one of them end, or cancel one")
                .detail("limit", most))
            }
        }
    }

    /// A connection kept from before that is still open, or a new one.
    async fn connection(&self) -> Result<Connection, ToolError> {
        while let Some(connection) = { self.idle.lock().await.pop() } {
            if connection.is_open() {
                return Ok(connection);
            }
        }
        let limit = Duration::from_millis(limits::AGENT_CONNECT_TIMEOUT_MS);
        match timeout(limit, self.connect()).await {
            Ok(result) => result.map(|(connection, _)| connection),
            Err(_) => Err(self.unreachable(&format!("nothing answered within {} s", limit.as_secs()))),
        }
    }

    /// Greets the agent on a new connection and gives its answer.
    ///
    /// # Errors
    /// `agent_unreachable`, `agent_incompatible`.
    pub async fn hello(&self) -> Result<HelloReply, ToolError> {
        let limit = Duration::from_millis(limits::AGENT_CONNECT_TIMEOUT_MS);
        match timeout(limit, self.connect()).await {
            Ok(result) => result.map(|(_, hello)| hello),
            Err(_) => Err(self.unreachable(&format!("nothing answered within {} s", limit.as_secs()))),
        }
    }

    /// Closes the connections that no call has used for `limit`, for ever. The agent counts a client as gone when its
    /// connections are.
    pub async fn close_unused(&self, limit: Duration) -> std::convert::Infallible {
        loop {
            tokio::time::sleep(limit / 4).await;
            self.idle.lock().await.retain(|connection| connection.used.elapsed() < limit);
        }
    }

    async fn connect(&self) -> Result<(Connection, HelloReply), ToolError> {
        let stream = TcpStream::connect(&self.address).await.map_err(|error| self.unreachable(&error.to_string()))?;
        stream.set_nodelay(true).map_err(|error| self.unreachable(&error.to_string()))?;
        let mut connection =
            Connection { stream: BufReader::with_capacity(64 * 1024, stream), line: Vec::new(), used: Instant::now() };
        let params = serde_json::json!({ "protocol": wire::PROTOCOL_VERSION });
        let incompatible = |what: String| {
            ToolError::new(ErrorCode::AgentIncompatible, format!("what listens at {} {what}", self.address))
                .hint("start the agent of this version with `retroscope agent`, or name another address with --agent")
        };
        let answer = match connection.exchange(Hello::OP, &params).await {
            Ok(answer) => answer.map_err(|error| incompatible(format!("refuses the greeting: {error}")))?,
            Err(error) => return Err(incompatible(format!("does not speak the agent protocol: {error}"))),
        };
        let hello: HelloReply =
            serde_json::from_value(answer).map_err(|error| incompatible(format!("greets in another form: {error}")))?;
        if hello.agent != "retroscope-agent" || hello.protocol != wire::PROTOCOL_VERSION {
            return Err(incompatible(format!(
                "is `{}` with protocol version {}; this server needs `retroscope-agent` with {}",
                hello.agent,
                hello.protocol,
                wire::PROTOCOL_VERSION
            )));
        }
        Ok((connection, hello))
    }

    fn unreachable(&self, why: &str) -> ToolError {
        let error =
            ToolError::new(ErrorCode::AgentUnreachable, format!("no debug agent answers at {}: {why}", self.address));
        error.hint(if self.own {
            "the agent that this server started has ended; restart the server (reconnect it in your MCP client)"
        } else {
            "start one with `retroscope agent`, or start the server with --with-agent, or name another address with \
             --agent HOST:PORT"
        })
    }

    fn lost(&self, op: &str, error: &io::Error) -> ToolError {
        ToolError::new(
            ErrorCode::AgentConnectionLost,
            format!("the connection to the agent at {} broke during {op}: {error}", self.address),
        )
        .hint("whether it was carried out is unknown: call get_status before anything else")
    }
}

fn fault(message: String) -> ToolError {
    ToolError::new(ErrorCode::ServerFault, message)
}

impl Connection {
    /// Whether the other side still holds it, as far as one can tell without asking.
    fn is_open(&self) -> bool {
        let mut byte = [0];
        self.stream.buffer().is_empty()
            && matches!(self.stream.get_ref().try_read(&mut byte), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Sends one command and reads the answer to it. The outer error means that the connection is of no use any more.
    async fn exchange(
        &mut self,
        op: &str,
        params: &serde_json::Value,
    ) -> io::Result<Result<serde_json::Value, ToolError>> {
        let mut request = wire::encode_request(op, params, None);
        request.push('\n');
        self.stream.get_mut().write_all(request.as_bytes()).await?;
        self.read_line().await?;
        Ok(wire::parse_reply(&self.line).map_err(ToolError::from))
    }

    /// Reads one line into `line`, at most as long as the protocol allows.
    async fn read_line(&mut self) -> io::Result<()> {
        self.line.clear();
        self.line.shrink_to(64 * 1024);
        loop {
            let available = self.stream.fill_buf().await?;
            if available.is_empty() {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the agent closed it"));
            }
            let newline = available.iter().position(|&byte| byte == b'\n');
            let part = available.get(..newline.unwrap_or(available.len())).unwrap_or_default();
            if self.line.len() + part.len() > limits::MAX_FRAME_BYTES {
                let message = format!("a reply is longer than {} bytes", limits::MAX_FRAME_BYTES);
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
            self.line.extend_from_slice(part);
            let used = part.len() + usize::from(newline.is_some());
            self.stream.consume(used);
            if newline.is_some() {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead as _, Read as _, Write as _};

    /// Greets and tells its state once on each of `connections`, each kept until the other side closes it. Gives what was
    /// sent beside the two requests.
    fn agent(listener: std::net::TcpListener, connections: usize) -> std::thread::JoinHandle<usize> {
        std::thread::spawn(move || {
            let mut more = 0;
            for _ in 0..connections {
                let (mut stream, _) = listener.accept().unwrap();
                let live = "\"state\":\"not_launched\",\"status\":\"not_launched\",\"generation\":0";
                let hello = "\"agent\":\"retroscope-agent\",\"version\":\"1\",\"protocol\":1,\"platform\":\"linux\",\
                             \"archs\":[],\"features\":[],\"agent_pid\":1,\"on_exit\":\"detach\"";
                let status = "\"breakpoint_count\":0,\"watchpoint_count\":0,\"waiting\":false";
                let mut lines = std::io::BufReader::new(stream.try_clone().unwrap());
                for body in [hello, status] {
                    lines.read_line(&mut String::new()).unwrap();
                    stream.write_all(format!("{{\"ok\":true,\"result\":{{{body},{live}}}}}\n").as_bytes()).unwrap();
                }
                more += lines.read_to_end(&mut Vec::new()).unwrap();
            }
            more
        })
    }

    #[tokio::test]
    async fn the_hint_fits_the_agent_that_is_gone() {
        // Bound and dropped at once: nobody listens there.
        let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let hints = [
            (AgentClient::of_child(address.clone(), Duration::from_secs(1)), "restart the server"),
            (AgentClient::new(address, Duration::from_secs(1)), "retroscope agent"),
        ];
        for (client, hint) in hints {
            let error = client.call(wire::commands::GetStatus {}).await.unwrap_err();
            assert!(error.line().contains("no debug agent answers"), "{}", error.line());
            assert!(error.line().contains(hint), "{}", error.line());
        }
    }

    #[tokio::test]
    async fn a_connection_that_rests_too_long_is_given_up_and_the_next_call_makes_another() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        // The second connection is accepted only after the first has been closed.
        let agent = agent(listener, 2);
        let client = AgentClient::new(address, Duration::from_secs(10));
        client.call(wire::commands::GetStatus {}).await.unwrap();
        let calls = async {
            while !client.idle.lock().await.is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            client.call(wire::commands::GetStatus {}).await.unwrap();
            tokio::task::spawn_blocking(move || agent.join().unwrap()).await
        };
        tokio::select! {
            never = client.close_unused(Duration::from_millis(20)) => match never {},
            ended = calls => assert_eq!(ended.unwrap(), 0),
        }
    }
}
