//! What the tests of the C64 tools share: calling a tool by name, with files if it needs them.

use crate::agent_client::AgentClient;
use crate::context::{Context, Facts};
use crate::errors::ToolError;
use crate::ghidra::{Ghidra, GhidraSettings};
use crate::launch_roots::LaunchRoots;
use crate::tools::{self, Answer};
use crate::workspace::Workspace;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

/// Calls tools, without an agent and without Ghidra.
pub struct Caller {
    folder: Option<tempfile::TempDir>,
    context: Context,
}

/// A source of these bytes.
pub fn inline(bytes: &[u8]) -> Value {
    json!({"kind": "inline", "bytes": bytes})
}

impl Caller {
    fn make(files: Option<&[(&str, &[u8])]>, limit: Option<usize>) -> Self {
        let folder = files.map(|files| {
            let folder = tempfile::tempdir().unwrap();
            std::fs::create_dir(folder.path().join("root")).unwrap();
            for (name, bytes) in files {
                std::fs::write(folder.path().join("root").join(name), bytes).unwrap();
            }
            folder
        });
        let root = folder.as_ref().map(|folder| folder.path().canonicalize().unwrap().join("root"));
        let workspace = root.map(|root| Workspace::open(&root).unwrap());
        let agent = AgentClient::new("", Duration::ZERO);
        let context = Context::new(agent, limit, workspace, LaunchRoots::default(), Facts::default());
        // Nothing listens on port 1, so that no test asks a Ghidra that happens to run.
        let nowhere = |name: &str| (name == "GHIDRA_MCP_URL").then(|| "http://127.0.0.1:1".to_owned());
        let context = context.with_ghidra(Ghidra::new(GhidraSettings::resolve(&nowhere).unwrap()));
        Self { folder, context }
    }

    /// Without a workspace.
    pub fn new() -> Self {
        Self::make(None, None)
    }

    /// The same with a bound on answers.
    pub fn limited(limit: usize) -> Self {
        Self::make(None, Some(limit))
    }

    /// With a workspace of these files.
    pub fn with_files(files: &[(&str, &[u8])]) -> Self {
        Self::make(Some(files), None)
    }

    /// The same with a bound on answers.
    pub fn with_files_limited(files: &[(&str, &[u8])], limit: usize) -> Self {
        Self::make(Some(files), Some(limit))
    }

    /// A path in the workspace.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.as_ref().unwrap().path().canonicalize().unwrap().join("root").join(name)
    }

    async fn call(&self, tool: &str, arguments: Value) -> Result<Answer, ToolError> {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        tools::find(tool).unwrap().call(&self.context, arguments).await
    }

    /// The data that a tool answers with.
    pub async fn data(&self, tool: &str, arguments: Value) -> Result<Value, ToolError> {
        match self.call(tool, arguments).await? {
            Answer::Data(data) => Ok(data),
            other => panic!("{other:?}"),
        }
    }

    /// The colour indices of a picture, and its facts.
    pub async fn picture(&self, tool: &str, arguments: Value) -> Result<(Vec<u8>, Value), ToolError> {
        let picture = match self.call(tool, arguments).await? {
            Answer::Picture(picture) => picture,
            other => panic!("{other:?}"),
        };
        let mut decoder = png::Decoder::new(std::io::Cursor::new(picture.png));
        decoder.set_transformations(png::Transformations::IDENTITY);
        let mut reader = decoder.read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut pixels).unwrap();
        Ok((pixels, picture.facts))
    }

    /// The refusal of a tool.
    pub async fn refused(&self, tool: &str, arguments: Value) -> ToolError {
        match self.call(tool, arguments.clone()).await {
            Err(error) => error,
            Ok(_) => panic!("{tool} took {arguments}"),
        }
    }
}
