//! The three tools on a workspace: a build is whole or not there, reused when it is right, and never repaired.

#[cfg(target_os = "linux")]
mod steps;

use crate::context::{Context, Facts};
use crate::tools::nds::tests::{Call, caller, code, context};
use ::nds::testing::RomBuilder;
use ::nds::{Rom, sha256_hex};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

const FIRST: &[u8] = b"a new file";

pub(super) struct Rig {
    folder: TempDir,
    context: Context,
    call: Call,
    rom: Rom,
}

impl Rig {
    pub(super) fn new() -> Self {
        let bytes = RomBuilder { dsi: None, ..RomBuilder::everything() }.build();
        let rom = Rom::parse(bytes.clone()).unwrap();
        let text = manifest(&rom).to_string();
        let folder = tempfile::tempdir().unwrap();
        for (name, contents) in [("rom.nds", bytes.as_slice()), ("mod.json", text.as_bytes()), ("new.bin", FIRST)] {
            fs::write(folder.path().join(name), contents).unwrap();
        }
        let context = context(&folder, Facts::default());
        Self { call: caller(context.clone()), context, folder, rom }
    }

    pub(super) async fn tool(&self, name: &'static str) -> Result<Value, crate::errors::ToolError> {
        (self.call)(name, json!({"rom": "rom.nds", "manifest": "mod.json"})).await
    }

    pub(super) fn place(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What is below `output`, staging folders included.
    fn outputs(&self) -> Vec<String> {
        let folder = self.place("output/nds").join(&self.rom.sha256()[..16]);
        let entries = fs::read_dir(folder)
            .map(|entries| entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect());
        entries.unwrap_or_default()
    }
}

fn manifest(rom: &Rom) -> Value {
    json!({"format": "re-mcp-nds-mutation", "formatVersion": 3, "source": {"sha256": rom.sha256()},
    "output": {"filename": "mod.nds"}, "operations": [
        {"type": "add-nitrofs-file", "path": "data/new.bin", "replacement": {"artifact": "new.bin", "sha256": sha256_hex(FIRST)}},
        {"type": "replace-bytes", "target": {"component": "arm7", "relativeOffset": 1}, "expected": "01", "replacement": "ff"},
    ]})
}

#[tokio::test]
async fn a_build_is_planned_made_verified_and_reused() {
    let rig = Rig::new();
    let planned = rig.tool("nds_mutation_validate").await.unwrap();
    assert_eq!((&planned["status"], &planned["problems"]), (&json!("valid"), &json!([])));
    assert_eq!(planned["plan"]["operations"][1]["replacement"], "ff");
    assert_eq!(code(rig.tool("nds_mutation_verify").await), "output-verification-failed");
    assert!(!rig.place("output").exists(), "validate and verify write nothing");

    let built = rig.tool("nds_mutation_build").await.unwrap();
    assert_eq!((&built["reused"], &built["buildId"]), (&json!(false), &planned["buildId"]));
    let output = fs::read(rig.place(built["outputRomPath"].as_str().unwrap())).unwrap();
    assert_eq!(built["outputSha256"], sha256_hex(&output));
    let patch = fs::read(rig.place(built["outputRoot"].as_str().unwrap()).join("mod.nds.bps")).unwrap();
    assert_eq!(::nds::rebuild::bps::apply(&patch, rig.rom.bytes(), output.len()).unwrap(), output);

    let again = rig.tool("nds_mutation_build").await.unwrap();
    let verified = rig.tool("nds_mutation_verify").await.unwrap();
    assert_eq!((&again["reused"], &again["verification"]), (&json!(true), &built["verification"]));
    assert_eq!(verified, again);
    assert_eq!(fs::read(rig.place("rom.nds")).unwrap(), rig.rom.bytes());
    assert_eq!(rig.outputs().len(), 1);
}

#[tokio::test]
async fn a_build_that_was_damaged_is_neither_reused_nor_repaired() {
    let rig = Rig::new();
    let built = rig.tool("nds_mutation_build").await.unwrap();
    let root = rig.place(built["outputRoot"].as_str().unwrap());
    for name in ["mod.nds", "verification.json", "output.sha256", "mod.nds.bps"] {
        let good = fs::read(root.join(name)).unwrap();
        let mut bad = good.clone();
        *bad.last_mut().unwrap() ^= 1;
        fs::write(root.join(name), &bad).unwrap();
        assert_eq!(code(rig.tool("nds_mutation_build").await), "publish-collision", "{name}");
        assert!(rig.tool("nds_mutation_verify").await.is_err(), "{name}");
        assert_eq!(fs::read(root.join(name)).unwrap(), bad);
        fs::write(root.join(name), &good).unwrap();
    }
    fs::write(root.join("more"), "x").unwrap();
    assert_eq!(code(rig.tool("nds_mutation_build").await), "publish-collision");
}

#[tokio::test]
async fn what_is_missing_or_changed_leaves_nothing_behind() {
    let rig = Rig::new();
    rig.tool("nds_mutation_validate").await.unwrap();
    fs::write(rig.place("new.bin"), "changed").unwrap();
    assert_eq!(code(rig.tool("nds_mutation_build").await), "replacement-artifact-hash-mismatch");
    fs::remove_file(rig.place("new.bin")).unwrap();
    assert_eq!(code(rig.tool("nds_mutation_build").await), "replacement-artifact-missing");
    fs::write(rig.place("mod.json"), "{").unwrap();
    assert_eq!(code(rig.tool("nds_mutation_build").await), "mutation-manifest-invalid");
    assert!(!rig.place("output").exists());
}

#[tokio::test]
async fn two_builds_at_once_make_one() {
    let rig = Rig::new();
    let (one, other) = tokio::join!(rig.tool("nds_mutation_build"), rig.tool("nds_mutation_build"));
    assert_eq!(one.unwrap()["outputSha256"], other.unwrap()["outputSha256"]);
    assert_eq!(rig.outputs().len(), 1);
}

#[cfg(unix)]
#[tokio::test]
async fn links_and_a_file_in_the_way_are_refused() {
    use std::os::unix::fs::symlink;
    let rig = Rig::new();
    let outside = tempfile::tempdir().unwrap();
    symlink(outside.path(), rig.place("output")).unwrap();
    assert!(rig.tool("nds_mutation_build").await.is_err());
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    fs::remove_file(rig.place("output")).unwrap();
    fs::write(rig.place("output"), "a file").unwrap();
    assert!(rig.tool("nds_mutation_build").await.is_err());
    fs::rename(rig.place("mod.json"), rig.place("real.json")).unwrap();
    symlink("real.json", rig.place("mod.json")).unwrap();
    assert_eq!(code(rig.tool("nds_mutation_validate").await), "mutation-manifest-invalid");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_a_killed_server_left_is_removed_by_the_next_build() {
    let rig = Rig::new();
    // A child that has ended and was waited for: its number is no process.
    let mut child = std::process::Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    let left = rig.place("output/nds").join(&rig.rom.sha256()[..16]).join(format!(".retroscope-{}-0.tmp", child.id()));
    fs::create_dir_all(&left).unwrap();
    fs::write(left.join("mod.nds"), "half").unwrap();
    rig.tool("nds_mutation_build").await.unwrap();
    assert_eq!(rig.outputs().len(), 1);
}
