//! The shipped program killed in the midst of a build, without room, without rights, twice at once: afterwards there is the whole
//! build or none, and the source is as it was.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::time::Instant;
use support::nds_build::{CALL, Rig};

#[test]
fn a_build_killed_at_any_instant_is_whole_or_not_there() {
    let rig = Rig::new();
    let start = Instant::now();
    rig.check();
    let whole = start.elapsed();
    let mut unfinished = 0;
    for instant in instants(200) {
        drop(fs::remove_dir_all(rig.folder.path().join("output")));
        let mut child = rig.command().spawn().unwrap();
        std::thread::sleep(whole.mul_f64(instant));
        unfinished += u32::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
        rig.check();
    }
    assert!(unfinished >= 100, "{unfinished} of 200 builds were killed before their end");
}

/// Parts of the time that a build took, up to all of it: random, and the same ones each time (a linear congruential generator with the
/// constants of Knuth's MMIX).
fn instants(count: usize) -> impl Iterator<Item = f64> {
    let next =
        |state: &u64| Some(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407));
    let states = std::iter::successors(Some(20_261_201_u64), next).skip(1);
    states.take(count).map(|state| f64::from(u32::try_from(state >> 32).unwrap()) / f64::from(u32::MAX))
}

/// The program under strace, which kills it at, or fails, the `nth` call of a kind.
fn traced(rig: &Rig, call: &str, what: &str, nth: u32) -> std::process::Output {
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o", "/dev/null", "-e"]).arg(format!("trace={call}"));
    command.arg("-e").arg(format!("inject={call}:{what}:when={nth}"));
    command.arg(env!("CARGO_BIN_EXE_retroscope")).args(CALL).current_dir(rig.folder.path());
    command
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("strace: {error}; `cargo xtask install` installs it"))
}

/// Every step of a build is a call that changes the file system. It is killed at each of them, before it takes place.
#[test]
fn a_build_killed_at_each_of_its_steps_is_whole_or_not_there() {
    let rig = Rig::new();
    let mut steps = Vec::new();
    for call in ["mkdirat", "mkdir", "write", "fsync", "renameat", "renameat2", "rename"] {
        for nth in 1.. {
            assert!(nth < 200, "{call} is called without end");
            drop(fs::remove_dir_all(rig.folder.path().join("output")));
            let outcome = traced(&rig, call, "signal=KILL", nth);
            let ended = outcome.status.success();
            rig.check();
            if ended {
                break;
            }
            steps.push((call, nth));
        }
    }
    // Three folders and the staging one, seven files written and synced, one rename.
    let of = |call: &str| steps.iter().filter(|(made, _)| made.starts_with(call)).count();
    assert!(of("mkdir") >= 4 && of("write") >= 7 && of("fsync") >= 7 && of("rename") == 1, "{steps:?}");
    println!("killed at {} steps", steps.len());
}

#[test]
fn a_step_that_fails_is_told_with_its_word_and_leaves_nothing() {
    let rig = Rig::new();
    let said = |outcome: &std::process::Output| {
        String::from_utf8_lossy(&[&outcome.stdout[..], &outcome.stderr[..]].concat()).into_owned()
    };
    let rename = ["renameat", "renameat2", "rename"].into_iter().find_map(|call| {
        drop(fs::remove_dir_all(rig.folder.path().join("output")));
        let outcome = traced(&rig, call, "error=EIO", 1);
        (!outcome.status.success()).then(|| said(&outcome))
    });
    assert!(rename.as_ref().is_some_and(|said| said.contains("publish-failed")), "{rename:?}");
    assert_eq!(fs::read_dir(rig.builds()).unwrap().count(), 0, "nothing is left");
    drop(fs::remove_dir_all(rig.folder.path().join("output")));
    let outcome = traced(&rig, "fsync", "error=ENOSPC", 3);
    assert!(said(&outcome).contains("staging-failed"), "{}", said(&outcome));
    assert_eq!(fs::read_dir(rig.builds()).unwrap().count(), 0, "nothing is left");
    rig.check();
}

/// Two of the same at once: one publishes, the other finds it and judges it, and both say the same of it.
#[test]
fn two_builds_at_once_make_one() {
    let rig = Rig::new();
    for _ in 0..20 {
        drop(fs::remove_dir_all(rig.folder.path().join("output")));
        let start = || rig.command().stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let both = [start(), start()].map(|child| child.wait_with_output().unwrap());
        let told = both.map(|outcome| {
            assert!(outcome.status.success(), "{}", String::from_utf8_lossy(&outcome.stdout));
            serde_json::from_slice::<serde_json::Value>(&outcome.stdout).unwrap()
        });
        assert_eq!((&told[0]["buildId"], &told[0]["outputSha256"]), (&told[1]["buildId"], &told[1]["outputSha256"]));
        assert!(told[0]["buildId"].is_string(), "{}", told[0]);
        assert_eq!(fs::read_dir(rig.builds()).unwrap().count(), 1, "nothing is left beside the build");
    }
    rig.check();
}

/// Root writes in spite of a folder's rights, so the program runs as nobody then.
#[test]
fn a_folder_that_cannot_be_written_is_told() {
    let rig = Rig::new();
    let folder = rig.folder.path();
    fs::create_dir(folder.join("output")).unwrap();
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(folder.join("output"), fs::Permissions::from_mode(0o555)).unwrap();
    let program = env!("CARGO_BIN_EXE_retroscope");
    let root = nix::unistd::geteuid().is_root();
    // The folder of the built program may be root's alone.
    let own = folder.join("retroscope");
    fs::copy(program, &own).unwrap();
    let mut command = if root { Command::new("setpriv") } else { Command::new(&own) };
    if root {
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&own);
    }
    let outcome = command.args(CALL).current_dir(folder).env("HOME", "/nonexistent").output().unwrap();
    let told = String::from_utf8_lossy(&[&outcome.stdout[..], &outcome.stderr[..]].concat()).into_owned();
    assert!(
        !outcome.status.success() && told.contains("staging-failed") && told.contains("Permission denied"),
        "{told}"
    );
    assert_eq!(fs::read_dir(folder.join("output")).unwrap().count(), 0);
    fs::set_permissions(folder.join("output"), fs::Permissions::from_mode(0o755)).unwrap();
    rig.check();
}

#[test]
fn an_artifact_that_changed_after_the_plan_is_refused() {
    let rig = Rig::new();
    assert!(rig.tool("nds_mutation_validate").status.success());
    fs::write(rig.folder.path().join("x"), b"y").unwrap();
    let told = rig.build();
    assert!(!told.status.success());
    let said = String::from_utf8_lossy(&[&told.stdout[..], &told.stderr[..]].concat()).into_owned();
    assert!(said.contains("replacement-artifact-hash-mismatch"), "{said}");
    assert!(!rig.builds().exists(), "nothing was begun");
    fs::write(rig.folder.path().join("x"), b"x").unwrap();
    rig.check();
}

#[test]
fn an_output_folder_that_leads_out_is_not_followed() {
    let rig = Rig::new();
    let outside = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(outside.path(), rig.folder.path().join("output")).unwrap();
    let told = rig.build();
    assert!(!told.status.success());
    let said = String::from_utf8_lossy(&[&told.stdout[..], &told.stderr[..]].concat()).into_owned();
    assert!(said.contains("path_refused") || said.contains("staging-failed"), "{said}");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0, "nothing is written outside");
    fs::remove_file(rig.folder.path().join("output")).unwrap();
    rig.check();
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
