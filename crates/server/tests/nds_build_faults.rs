//! The shipped program killed in the midst of a build, or without room: afterwards there is the whole build or none, and the
//! source is as it was.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use nds::testing::RomBuilder;
use nds::{Rom, sha256_hex};
use serde_json::json;
use tempfile::TempDir;

const CALL: [&str; 3] = ["call", "nds_mutation_build", "{\"rom\": \"rom.nds\", \"manifest\": \"mod.json\"}"];

struct Rig {
    folder: TempDir,
    sha256: String,
}

impl Rig {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let rom = Rom::parse(RomBuilder::large(3 << 20, 50).build()).unwrap();
        let manifest = json!({"format": "re-mcp-nds-mutation", "formatVersion": 3, "source": {"sha256": rom.sha256()},
            "output": {"filename": "mod.nds"}, "operations": [{"type": "add-nitrofs-file", "path": "new/x",
                "replacement": {"artifact": "x", "sha256": sha256_hex(b"x")}}]});
        fs::write(folder.path().join("rom.nds"), rom.bytes()).unwrap();
        fs::write(folder.path().join("mod.json"), manifest.to_string()).unwrap();
        fs::write(folder.path().join("x"), b"x").unwrap();
        Self { folder, sha256: rom.sha256().to_owned() }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_retroscope"));
        command.args(CALL).current_dir(self.folder.path()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn build(&self) -> Output {
        self.command().stdout(Stdio::piped()).output().unwrap()
    }

    fn builds(&self) -> PathBuf {
        self.folder.path().join("output/nds").join(&self.sha256[..16])
    }

    /// The names of builds, staging folders left out.
    fn published(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.builds()).into_iter().flatten().map(|entry| entry.unwrap().path());
        entries.filter(|path| !path.file_name().unwrap().to_str().unwrap().starts_with('.')).collect()
    }

    /// Builds to the end after whatever happened before, and looks at everything.
    fn check(&self) {
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

#[test]
fn a_build_killed_at_any_instant_is_whole_or_not_there() {
    let rig = Rig::new();
    let start = Instant::now();
    rig.check();
    let whole = start.elapsed();
    for step in 0..40_u32 {
        drop(fs::remove_dir_all(rig.folder.path().join("output")));
        let mut child = rig.command().spawn().unwrap();
        // Instants spread over the time that a build took here.
        std::thread::sleep(Duration::from_nanos((whole.as_nanos() as u64 / 40) * u64::from(step)));
        child.kill().unwrap();
        child.wait().unwrap();
        rig.check();
    }
}

#[test]
fn a_build_without_room_leaves_nothing() {
    let rig = Rig::new();
    // 64 blocks of 512 or 1,024 bytes for any file; the signal is ignored, so that the write fails instead.
    let script = format!("trap '' XFSZ; ulimit -f 64; exec {} \"$@\"", env!("CARGO_BIN_EXE_retroscope"));
    let limited =
        Command::new("sh").args(["-c", &script, "sh"]).args(CALL).current_dir(rig.folder.path()).output().unwrap();
    assert!(!limited.status.success());
    let told = [limited.stdout, limited.stderr].concat();
    assert!(String::from_utf8_lossy(&told).contains("staging-failed"), "{}", String::from_utf8_lossy(&told));
    assert_eq!(fs::read_dir(rig.builds()).unwrap().count(), 0);
    rig.check();
}
