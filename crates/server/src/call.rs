//! `retroscope call`: any tool from a shell, without an MCP client.

use crate::agent_client::AgentClient;
use crate::config::{Settings, check_workspace};
use crate::context::{Context, Facts};
use crate::errors::{ErrorCode, ToolError};
use crate::ghidra::Ghidra;
use crate::tools::{self, Answer, Picture, meta::call_tool};
use crate::workspace::Workspace;
use serde_json::{Map, Value};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// What to call.
#[derive(Clone, Debug)]
pub struct CallOptions {
    /// Name of the tool.
    pub tool: String,
    /// Its arguments as a JSON object; `-` reads them from stdin.
    pub arguments: Option<String>,
    /// Where a picture goes.
    pub image_out: Option<PathBuf>,
}

/// Calls the tool and prints its answer as JSON.
///
/// # Errors
/// The tool's own; `invalid_arguments` when the arguments are no JSON object.
pub async fn run(options: CallOptions, settings: Settings) -> Result<(), ToolError> {
    let entry = tools::find(&options.tool).ok_or_else(|| call_tool::unknown(&options.tool))?;
    let arguments = arguments(options.arguments.as_deref())?;
    let here = std::env::current_dir().map_err(|error| fault(format!("the current folder: {error}")))?;
    let home = ["HOME", "USERPROFILE"].into_iter().find_map(std::env::var_os).map(PathBuf::from);
    // Without a workspace it is the current folder, unless that is one that no workspace may be.
    let workspace =
        settings.workspace.clone().or_else(|| check_workspace("the current folder", &here, home.as_deref()).ok());
    let folder = workspace.clone().unwrap_or(here);
    let workspace = workspace.map(|root| Workspace::open(&root)).transpose()?;
    let client = AgentClient::new(settings.agent, settings.command_timeout);
    let facts = Facts { transport: "call", profile: settings.profile.name(), rom_identity: settings.rom_identity };
    let context =
        Context::new(client, None, workspace, settings.launch_roots, facts).with_ghidra(Ghidra::new(settings.ghidra));
    context.live().configure(settings.emulator);
    context.vice().configure(settings.vice);
    let shown = match entry.call(&context, arguments).await? {
        Answer::Data(data) => data,
        Answer::Picture(picture) => save(picture, options.image_out, &folder, entry.name)?,
        #[cfg(feature = "conformance")]
        Answer::Content(content) => serde_json::to_value(content).unwrap_or_default(),
    };
    let text = serde_json::to_string_pretty(&shown).map_err(|error| fault(error.to_string()))?;
    // A reader that has seen enough, such as `head`, is no failure.
    drop(writeln!(io::stdout(), "{text}"));
    Ok(())
}

fn arguments(text: Option<&str>) -> Result<Map<String, Value>, ToolError> {
    let wrong = |what: String| {
        ToolError::new(ErrorCode::InvalidArguments, what)
            .hint("write them like '{\"addr\": \"0x401000\"}', or - for stdin")
    };
    let text = match text {
        None => return Ok(Map::new()),
        Some("-") => {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text).map_err(|error| wrong(format!("stdin: {error}")))?;
            text
        }
        Some(text) => text.to_owned(),
    };
    match serde_json::from_str(&text) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(wrong("the arguments are JSON but no object".to_owned())),
        Err(error) => Err(wrong(format!("the arguments are no JSON: {error}"))),
    }
}

/// Writes the picture to a file, unless the tool has already, and says which.
fn save(picture: Picture, named: Option<PathBuf>, folder: &Path, tool: &str) -> Result<Value, ToolError> {
    let failed = |path: &Path, error: io::Error| fault(format!("{}: {error}", path.display()));
    let written = picture.facts.get("output_path").and_then(Value::as_str).map(PathBuf::from);
    let path = match (named, written) {
        (Some(path), _) => {
            std::fs::write(&path, &picture.png).map_err(|error| failed(&path, error))?;
            path
        }
        (None, Some(path)) => path,
        (None, None) => {
            let (path, mut file) = new_file(folder, tool)?;
            file.write_all(&picture.png).map_err(|error| failed(&path, error))?;
            path
        }
    };
    let mut facts = picture.facts;
    if let Some(facts) = facts.as_object_mut() {
        facts.insert("image_file".to_owned(), path.display().to_string().into());
    }
    Ok(facts)
}

/// A new file under the first name that none has yet: `screenshot.png`, `screenshot-2.png`, …
fn new_file(folder: &Path, tool: &str) -> Result<(PathBuf, File), ToolError> {
    for number in 1..10_000 {
        let path = match number {
            1 => folder.join(format!("{tool}.png")),
            _ => folder.join(format!("{tool}-{number}.png")),
        };
        match File::create_new(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(fault(format!("{}: {error}", path.display()))),
        }
    }
    Err(fault(format!("{} is full of pictures; name a file with --image-out", folder.display())))
}

fn fault(message: String) -> ToolError {
    ToolError::new(ErrorCode::ServerFault, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_object_is_arguments() {
        assert_eq!(arguments(None).unwrap(), Map::new());
        assert_eq!(arguments(Some("{\"a\": 1}")).unwrap().get("a"), Some(&1.into()));
        assert!(arguments(Some("[1]")).unwrap_err().message.contains("no object"));
        assert!(arguments(Some("{a}")).unwrap_err().message.contains("no JSON"));
    }

    #[test]
    fn a_picture_overwrites_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let picture = || Picture { png: vec![1, 2], facts: serde_json::json!({"title": "x"}) };
        let first = save(picture(), None, folder.path(), "screenshot").unwrap();
        let second = save(picture(), None, folder.path(), "screenshot").unwrap();
        assert!(first["image_file"].as_str().unwrap().ends_with("/screenshot.png"));
        assert!(second["image_file"].as_str().unwrap().ends_with("/screenshot-2.png"));
        assert_eq!(std::fs::read(folder.path().join("screenshot-2.png")).unwrap(), [1, 2]);
        // What the tool wrote itself is named, and not written again.
        let own = Picture { png: vec![1, 2], facts: serde_json::json!({"output_path": "/elsewhere/own.png"}) };
        let third = save(own, None, folder.path(), "screenshot").unwrap();
        assert_eq!(third["image_file"], "/elsewhere/own.png");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
