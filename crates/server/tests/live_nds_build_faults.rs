//! The shipped program killed in the midst of a build, without room or rights, and beside itself: afterwards there is the whole
//! build or none, and the source is as it was.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nds::testing::RomBuilder;
use nds::{Rom, sha256_hex};
use serde_json::{Value, json};
use tempfile::TempDir;

const ARGUMENTS: &str = "{\"rom\": \"rom.nds\", \"manifest\": \"mod.json\"}";
const PROGRAM: &str = env!("CARGO_BIN_EXE_retroscope");
/// The ROM, the patch, and five files of evidence.
const FILES: usize = 7;
const KILLS: u32 = 200;
const ROUNDS: u32 = 20;

struct Rig {
    folder: TempDir,
    sha256: String,
}

impl Rig {
    /// A workspace with a ROM of some kilobytes: most of a build is then the writing of it.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let rom = Rom::parse(RomBuilder { dsi: None, ..RomBuilder::everything() }.build()).unwrap();
        let manifest = json!({"format": "re-mcp-nds-mutation", "formatVersion": 3, "source": {"sha256": rom.sha256()},
            "output": {"filename": "mod.nds"}, "operations": [{"type": "add-nitrofs-file", "path": "new/x",
                "replacement": {"artifact": "x", "sha256": sha256_hex(b"x")}}]});
        fs::write(folder.path().join("rom.nds"), rom.bytes()).unwrap();
        fs::write(folder.path().join("mod.json"), manifest.to_string()).unwrap();
        fs::write(folder.path().join("x"), b"x").unwrap();
        Self { folder, sha256: rom.sha256().to_owned() }
    }

    fn command(&self, tool: &str) -> Command {
        self.within(&[], tool)
    }

    /// The program, started by others that limit it.
    fn within(&self, limits: &[&str], tool: &str) -> Command {
        let words = [limits, &[PROGRAM, "call", tool, ARGUMENTS]].concat();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).current_dir(self.folder.path()).stdin(Stdio::null());
        command
    }

    fn spawn(&self) -> Child {
        self.command("nds_mutation_build").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// What a build is refused with.
    fn refused(&self, limits: &[&str]) -> String {
        let outcome = self.within(limits, "nds_mutation_build").output().unwrap();
        assert!(!outcome.status.success(), "it was built all the same");
        told(&outcome)
    }

    fn builds(&self) -> PathBuf {
        self.folder.path().join("output/nds").join(&self.sha256[..16])
    }

    fn entries(&self) -> Vec<PathBuf> {
        fs::read_dir(self.builds()).into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
    }

    /// What is there is the whole build, and the next one makes it or uses it, and leaves nothing beside it.
    fn check(&self) {
        let published: Vec<PathBuf> = self.entries().into_iter().filter(|path| !is_staging(path)).collect();
        for build in &published {
            assert_eq!(fs::read_dir(build).unwrap().count(), FILES, "a build that is not whole");
        }
        let answer = answer(self.command("nds_mutation_build").output().unwrap());
        // What is there is read, judged and used; so this says that it is whole to the byte.
        assert_eq!(answer["reused"], json!(!published.is_empty()));
        let left = self.entries();
        assert_eq!(left.len(), 1, "something is left beside the build: {left:?}");
        self.check_source();
    }

    fn check_source(&self) {
        assert_eq!(sha256_hex(&fs::read(self.folder.path().join("rom.nds")).unwrap()), self.sha256);
    }
}

fn is_staging(path: &Path) -> bool {
    path.file_name().unwrap().to_str().unwrap().starts_with('.')
}

fn told(outcome: &Output) -> String {
    String::from_utf8_lossy(&[outcome.stdout.as_slice(), &outcome.stderr].concat()).into_owned()
}

fn answer(outcome: Output) -> Value {
    assert!(outcome.status.success(), "{}", told(&outcome));
    serde_json::from_slice(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {}", told(&outcome)))
}

/// SplitMix64, as its authors published it.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[test]
fn a_build_killed_at_any_instant_is_whole_or_not_there() {
    let rig = Rig::new();
    let start = Instant::now();
    answer(rig.spawn().wait_with_output().unwrap());
    let mut whole = start.elapsed();
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    println!("seed {seed}, a build takes {whole:?}");
    let (mut state, mut kills, mut staging) = (seed, 0, 0);
    while kills < KILLS {
        drop(fs::remove_dir_all(rig.folder.path().join("output")));
        let mut child = rig.spawn();
        let instant = Duration::from_nanos(random(&mut state) % (whole.as_nanos() as u64).max(1));
        std::thread::sleep(instant);
        child.kill().unwrap();
        // What a build takes changes with what else the machine does: one that had ended was not killed, and does not count.
        if child.wait().unwrap().signal() == Some(9) {
            kills += 1;
            whole = whole * 51 / 50;
        } else {
            whole = whole * 9 / 10;
        }
        let entries = rig.entries();
        println!("kill {kills} after {instant:?}: {entries:?}");
        staging += u32::from(entries.iter().any(|path| is_staging(path)));
        rig.check();
    }
    println!("{staging} of {kills} left something half done");
}

#[test]
fn two_builds_of_one_identity_at_once_make_one() {
    let rig = Rig::new();
    for _ in 0..ROUNDS {
        drop(fs::remove_dir_all(rig.folder.path().join("output")));
        let answers = [rig.spawn(), rig.spawn()].map(|child| answer(child.wait_with_output().unwrap()));
        let made = answers.iter().filter(|answer| answer["reused"] == json!(false)).count();
        assert_eq!(made, 1, "{answers:?}");
        assert_eq!(answers[0]["outputSha256"], answers[1]["outputSha256"]);
        rig.check();
    }
}

#[test]
fn a_build_without_room_leaves_nothing() {
    let rig = Rig::new();
    // Blocks of 512 bytes for any one file, too few for the ROM; the signal is ignored, so that the write fails instead.
    let limit = ["sh", "-c", "trap '' XFSZ; ulimit -f 64; exec \"$@\"", "sh"];
    let told = rig.refused(&limit);
    assert!(told.contains("staging-failed"), "{told}");
    assert_eq!(rig.entries().len(), 0);
    rig.check_source();
    rig.check();
}

/// It needs a mount of its own.
#[test]
fn a_disk_that_is_full_at_any_file_leaves_nothing() {
    let rig = Rig::new();
    fs::create_dir(rig.folder.path().join("output")).unwrap();
    // What is left is told before the disk goes, as it is seen from within alone.
    let script = "mount -t tmpfs -o size=$0k none output || exit 99
        \"$@\"; code=$?; find output -mindepth 3 -printf '\\nleft %P\\n' >&2; exit $code";
    let namespace: &[&str] = if nix::unistd::geteuid().is_root() { &["unshare", "-m"] } else { &["unshare", "-Urm"] };
    // Less and less is missing, a page at a time, from the first page of the ROM (128 KiB) to the last of the evidence.
    for (refused, kib) in (4..=128).step_by(31).chain((132..512).step_by(4)).enumerate() {
        let kib = kib.to_string();
        let limits = [namespace, &["sh", "-c", script, &kib]].concat();
        let outcome = rig.within(&limits, "nds_mutation_build").output().unwrap();
        let told = told(&outcome);
        assert_ne!(outcome.status.code(), Some(99), "there is no disk of our own: {told}");
        if outcome.status.success() {
            assert!(refused > 8, "only {refused} disks were full");
            rig.check_source();
            return;
        }
        assert!(told.contains("staging-failed") && told.contains("No space left"), "{kib} KiB: {told}");
        assert!(!told.contains("\nleft "), "{kib} KiB: {told}");
    }
    panic!("512 KiB are not enough");
}

#[test]
fn a_folder_that_may_not_be_written_to_is_told_and_left_alone() {
    let rig = Rig::new();
    let output = rig.folder.path().join("output");
    fs::create_dir(&output).unwrap();
    fs::set_permissions(&output, fs::Permissions::from_mode(0o555)).unwrap();
    // Root writes where it likes until this capability is taken from it; everybody else lacks it anyway.
    let root = nix::unistd::geteuid().is_root();
    let limits: &[&str] = if root { &["setpriv", "--bounding-set=-dac_override", "--"] } else { &["env"] };
    let probe = Command::new(limits[0]).args(&limits[1..]).arg("touch").arg(output.join("probe")).output().unwrap();
    assert!(!probe.status.success() && told(&probe).contains("Permission denied"), "the folder is writable: {probe:?}");
    let told = rig.refused(limits);
    assert!(told.contains("staging-failed") && told.contains("Permission denied"), "{told}");
    assert_eq!(fs::read_dir(&output).unwrap().count(), 0);
    rig.check_source();
    fs::set_permissions(&output, fs::Permissions::from_mode(0o755)).unwrap();
    rig.check();
}

#[test]
fn an_artifact_that_changed_since_it_was_validated_is_not_built() {
    let rig = Rig::new();
    answer(rig.command("nds_mutation_validate").output().unwrap());
    let artifact = rig.folder.path().join("x");
    fs::write(&artifact, b"y").unwrap();
    let told = rig.refused(&["env"]);
    assert!(told.contains("replacement-artifact-hash-mismatch"), "{told}");
    assert!(!rig.folder.path().join("output").exists());
    fs::write(&artifact, b"x").unwrap();
    rig.check();
}

#[test]
fn an_output_folder_that_leads_out_is_not_followed() {
    let rig = Rig::new();
    let outside = tempfile::tempdir().unwrap();
    let output = rig.folder.path().join("output");
    for below in ["", "nds"] {
        drop(fs::remove_dir_all(&output));
        let link = output.join(below);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(outside.path(), rig.folder.path().join("output").join(below).components().as_path()).unwrap();
        let told = rig.refused(&["env"]);
        assert!(told.contains("staging-failed") || told.contains("path_refused"), "{told}");
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
        rig.check_source();
        fs::remove_file(link.components().as_path()).unwrap();
        rig.check();
    }
}
