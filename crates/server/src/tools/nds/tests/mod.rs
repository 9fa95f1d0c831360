//! What the tests of the tools on files need: a workspace with files in it, and calls of tools by their names.

use crate::agent_client::AgentClient;
use crate::context::{Context, Facts};
use crate::errors::ToolError;
use crate::launch_roots::LaunchRoots;
use crate::tools::{self, Answer};
use crate::workspace::Workspace;
use ::nds::testing::RomBuilder;
use base::limits;
use serde_json::Value;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;
use tempfile::TempDir;

/// What a tool answers, as data.
pub type Told = Result<Value, ToolError>;
/// Calls a tool of any group.
pub type Call = Box<dyn Fn(&'static str, Value) -> Pin<Box<dyn Future<Output = Told>>>>;

/// A context over a folder, with the usual bound on answers.
pub fn context(folder: &TempDir, facts: Facts) -> Context {
    context_at(folder.path(), facts)
}

/// The same over a folder that another process made.
pub fn context_at(folder: &Path, facts: Facts) -> Context {
    let workspace = Workspace::open(&folder.canonicalize().unwrap()).unwrap();
    let agent = AgentClient::new("", Duration::ZERO);
    Context::new(agent, Some(limits::DEFAULT_OUTPUT_CHARS), Some(workspace), LaunchRoots::default(), facts)
}

/// A workspace with these files, and a way to call tools on it.
pub fn files(files: &[(&str, &[u8])]) -> (TempDir, Call) {
    let folder = tempfile::tempdir().unwrap();
    for (name, contents) in files {
        std::fs::write(folder.path().join(name), contents).unwrap();
    }
    let context = context(&folder, Facts::default());
    (folder, caller(context))
}

/// Calls tools in a context.
pub fn caller(context: Context) -> Call {
    Box::new(move |tool, arguments| {
        let context = context.clone();
        Box::pin(async move {
            let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
            match tools::find(tool).unwrap().call(&context, arguments).await? {
                Answer::Data(data) => Ok(data),
                other => panic!("{other:?}"),
            }
        })
    })
}

/// A workspace with a ROM `rom.nds` built so.
pub fn built(builder: &RomBuilder) -> (TempDir, Call) {
    files(&[("rom.nds", &builder.build())])
}

/// The code of a refusal.
pub fn code(told: Told) -> &'static str {
    told.unwrap_err().code.word()
}
