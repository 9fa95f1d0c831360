//! A ROM and a manifest in a folder, and the shipped program that builds there.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use nds::testing::RomBuilder;
use nds::{Rom, sha256_hex};
use serde_json::json;
use tempfile::TempDir;

pub const CALL: [&str; 3] = ["call", "nds_mutation_build", "{\"rom\": \"rom.nds\", \"manifest\": \"mod.json\"}"];

pub struct Rig {
    pub folder: TempDir,
    pub sha256: String,
}

impl Rig {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let rom = Rom::parse(RomBuilder::large(256 << 10, 20).build()).unwrap();
        let manifest = json!({"format": "re-mcp-nds-mutation", "formatVersion": 3, "source": {"sha256": rom.sha256()},
            "output": {"filename": "mod.nds"}, "operations": [{"type": "add-nitrofs-file", "path": "new/x",
                "replacement": {"artifact": "x", "sha256": sha256_hex(b"x")}}]});
        fs::write(folder.path().join("rom.nds"), rom.bytes()).unwrap();
        fs::write(folder.path().join("mod.json"), manifest.to_string()).unwrap();
        fs::write(folder.path().join("x"), b"x").unwrap();
        Self { folder, sha256: rom.sha256().to_owned() }
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_retroscope"));
        command.args(CALL).current_dir(self.folder.path()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// What a tool of the program says to these two files.
    pub fn tool(&self, tool: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_retroscope"));
        command.args(["call", tool, CALL[2]]).current_dir(self.folder.path()).output().unwrap()
    }

    pub fn build(&self) -> Output {
        self.command().stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap()
    }

    pub fn builds(&self) -> PathBuf {
        self.folder.path().join("output/nds").join(&self.sha256[..16])
    }

    /// The names of builds, staging folders left out.
    pub fn published(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.builds()).into_iter().flatten().map(|entry| entry.unwrap().path());
        entries.filter(|path| !path.file_name().unwrap().to_str().unwrap().starts_with('.')).collect()
    }

    /// Builds to the end after whatever happened before, and looks at everything.
    pub fn check(&self) {
        for build in self.published() {
            assert_eq!(
                fs::read_dir(build).unwrap().count(),
                7,
                "six files of evidence and the ROM, or no folder at all"
            );
        }
        let outcome = self.build();
        assert!(outcome.status.success(), "{}", String::from_utf8_lossy(&outcome.stdout));
        assert_eq!(fs::read_dir(self.builds()).unwrap().count(), 1, "nothing is left beside the build");
        assert_eq!(sha256_hex(&fs::read(self.folder.path().join("rom.nds")).unwrap()), self.sha256);
    }
}
