//! A small MCP client: starts a server as a child and calls its tools over the real stdio transport.

use base64::Engine as _;
use rmcp::model::{CallToolRequestParams, ContentBlock, ProtocolVersion};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt as _, RoleClient, RunningService};
use serde_json::Value;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// What a tool answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The result; for a picture, the JSON text beside it.
    pub json: Value,
    /// PNG bytes, when the answer holds a picture.
    pub png: Option<Vec<u8>>,
}

/// A running server and the connection to it.
pub struct McpClient {
    service: RunningService<RoleClient, ()>,
    child: tokio::process::Child,
}

/// Why a call gave no result.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server could not be started or does not speak MCP.
    #[error("the MCP server did not start: {0}")]
    Start(String),
    /// The tool refused; this is its text.
    #[error("{0}")]
    Tool(String),
    /// The connection failed.
    #[error("the MCP connection failed: {0}")]
    Transport(String),
}

impl McpClient {
    /// Starts `program` with `arguments` and greets it as a client of the 2026-07-28 revision does.
    ///
    /// # Errors
    /// [`ClientError::Start`].
    pub async fn start<S: AsRef<OsStr>>(program: &Path, arguments: &[S]) -> Result<Self, ClientError> {
        let mut child = tokio::process::Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| ClientError::Start(format!("{}: {error}", program.display())))?;
        let (Some(stdout), Some(stdin)) = (child.stdout.take(), child.stdin.take()) else {
            return Err(ClientError::Start("its pipes are missing".to_owned()));
        };
        let lifecycle = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
        let service =
            ().serve_with_lifecycle((stdout, stdin), lifecycle)
                .await
                .map_err(|error| ClientError::Start(error.to_string()))?;
        Ok(Self { service, child })
    }

    /// Calls one tool. `arguments` is a JSON object.
    ///
    /// # Errors
    /// [`ClientError::Tool`] with the tool's own words; [`ClientError::Transport`].
    pub async fn call(&self, tool: &str, arguments: Value) -> Result<Answer, ClientError> {
        let mut request = CallToolRequestParams::new(tool.to_owned());
        if let Value::Object(arguments) = arguments {
            request = request.with_arguments(arguments);
        }
        let result =
            self.service.call_tool(request).await.map_err(|error| ClientError::Transport(error.to_string()))?;
        let mut text = String::new();
        let mut png = None;
        for block in &result.content {
            match block {
                ContentBlock::Text(block) => text.push_str(&block.text),
                ContentBlock::Image(image) => {
                    let bytes = base64::engine::general_purpose::STANDARD
                        .decode(&image.data)
                        .map_err(|error| ClientError::Transport(format!("the picture is not base64: {error}")))?;
                    png = Some(bytes);
                }
                _ => {}
            }
        }
        if result.is_error == Some(true) {
            return Err(ClientError::Tool(text));
        }
        let json = match result.structured_content {
            Some(json) => json,
            None => serde_json::from_str(&text)
                .map_err(|error| ClientError::Transport(format!("the answer is not JSON: {error}")))?,
        };
        Ok(Answer { json, png })
    }

    /// Names of the listed tools.
    ///
    /// # Errors
    /// [`ClientError::Transport`].
    pub async fn tool_names(&self) -> Result<Vec<String>, ClientError> {
        let tools = self.service.list_all_tools().await.map_err(|error| ClientError::Transport(error.to_string()))?;
        Ok(tools.into_iter().map(|tool| tool.name.into_owned()).collect())
    }

    /// Closes the connection and waits for the server to end, at most `limit` long; then it is killed.
    pub async fn close(self, limit: Duration) {
        let Self { service, mut child } = self;
        // A failed goodbye changes nothing: the child is waited for, and killed if need be.
        drop(service.cancel().await);
        if tokio::time::timeout(limit, child.wait()).await.is_err() {
            drop(child.kill().await);
        }
    }
}
