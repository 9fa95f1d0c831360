//! Files of snapshots on their way between VICE, which takes only names of files, and the workspace, which VICE never sees.

use super::shared::invalid;
use crate::context::Context;
use crate::errors::{ErrorCode, ToolError};
use base::limits;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// How a snapshot of VICE begins (its source, snapshot.c).
const MAGIC: &[u8] = b"VICE Snapshot File\x1a";

/// A file in a folder of its own, which goes when this does.
pub(super) struct Passing {
    folder: TempDir,
}

impl Passing {
    /// A name for a file that is not there yet.
    pub fn new() -> Result<Self, ToolError> {
        let folder = tempfile::Builder::new().prefix("retroscope-").tempdir();
        Ok(Self { folder: folder.map_err(|error| failed("a temporary folder", &error))? })
    }

    /// The name, as VICE takes it.
    pub fn name(&self) -> Result<String, ToolError> {
        let path = self.path();
        path.to_str().map(str::to_owned).ok_or_else(|| invalid(format!("{} is no text", path.display())))
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("machine.vsf")
    }

    /// What VICE wrote.
    pub fn taken(&self) -> Result<Vec<u8>, ToolError> {
        let file = std::fs::File::open(self.path()).map_err(|error| {
            failed("the snapshot that VICE wrote", &error).hint("VICE must run on the same machine, as the same user")
        })?;
        snapshot("what VICE wrote", file, limits::MAX_VICE_SNAPSHOT_BYTES)
    }

    /// Lays a snapshot of the workspace there.
    pub fn lay(&self, context: &Context, path: &str) -> Result<usize, ToolError> {
        let opened = context.workspace()?.open_file(path, limits::MAX_VICE_SNAPSHOT_BYTES)?;
        let bytes = snapshot(&format!("`{path}`"), opened.file, limits::MAX_VICE_SNAPSHOT_BYTES)?;
        std::fs::write(self.path(), &bytes).map_err(|error| failed("a copy of the snapshot", &error))?;
        Ok(bytes.len())
    }
}

/// A whole snapshot.
fn snapshot(what: &str, file: impl std::io::Read, most: u64) -> Result<Vec<u8>, ToolError> {
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes).map_err(|error| failed(what, &error))?;
    if bytes.len() as u64 > most {
        return Err(invalid(format!("{what} has more than {most} bytes")));
    }
    if bytes.starts_with(MAGIC) {
        return Ok(bytes);
    }
    Err(invalid(format!("{what} is no snapshot of VICE: it does not begin with \"VICE Snapshot File\"")))
}

fn failed(what: &str, error: &dyn std::fmt::Display) -> ToolError {
    ToolError::new(ErrorCode::FileRefused, format!("{what}: {error}")).hint("nothing was changed in the workspace")
}

/// Where a snapshot goes, checked before VICE is asked.
pub(super) fn place(context: &Context, path: &str, overwrite: bool) -> Result<PathBuf, ToolError> {
    context.workspace()?.new_file(path, overwrite)
}

/// Writes it there, whole.
pub(super) fn publish(context: &Context, place: &Path, bytes: &[u8], overwrite: bool) -> Result<PathBuf, ToolError> {
    context.workspace()?.write_file(place, bytes, overwrite)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_snapshots_of_bearable_size_pass() {
        let file = b"VICE Snapshot File\x1a\x01\x01C64SC";
        assert_eq!(snapshot("it", file.as_slice(), 64).unwrap(), file);
        assert_eq!(snapshot("it", file.as_slice(), file.len() as u64).unwrap(), file);
        let refused = |bytes: &[u8], most: u64| snapshot("it", bytes, most).unwrap_err().message;
        assert!(refused(file, file.len() as u64 - 1).contains("has more than 25 bytes"));
        assert!(refused(b"VICE Snapshot", 64).contains("is no snapshot of VICE"));
        assert!(refused(b"", 64).contains("is no snapshot of VICE"));
    }
}
