//! A build that is disturbed at each of its steps, by the observer that a workspace has in tests: killed there, or with the
//! ground moved under it.

use super::{FIRST, Rig};
use crate::context::Facts;
use crate::errors::ErrorCode;
use crate::tools::nds::tests::{caller, code, context_at};
use ::nds::sha256_hex;
use ::nds::testing::rebuild_words;
use serde_json::json;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

/// Set in the children of the test alone: the step to be killed at, and the workspace.
const KILL_AT: &str = "RETROSCOPE_TEST_KILL_AT";
const KILL_IN: &str = "RETROSCOPE_TEST_KILL_IN";
/// The ROM, the patch, and five files of evidence.
const FILES: usize = 7;

/// Builds in this process, which is killed at a step.
async fn build_until(step: usize) {
    let folder = PathBuf::from(std::env::var_os(KILL_IN).unwrap());
    let context = context_at(&folder, Facts::default());
    let left = Cell::new(step);
    context.workspace().unwrap().observer.set(move |_| {
        if left.get() == 0 {
            nix::sys::signal::raise(nix::sys::signal::Signal::SIGKILL).unwrap();
        }
        left.set(left.get() - 1);
    });
    caller(context)("nds_mutation_build", json!({"rom": "rom.nds", "manifest": "mod.json"})).await.unwrap();
}

fn child(rig: &Rig, step: usize) -> ExitStatus {
    let name = "tools::nds_build::tests::steps::a_build_killed_at_any_step_is_whole_or_not_there";
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name]).env(KILL_AT, step.to_string()).env(KILL_IN, rig.folder.path());
    command.stdout(std::process::Stdio::null()).status().unwrap()
}

#[tokio::test]
async fn a_build_killed_at_any_step_is_whole_or_not_there() {
    // The test starts itself, so that the hook is in no program that anybody gets.
    if let Ok(step) = std::env::var(KILL_AT) {
        return build_until(step.parse().unwrap()).await;
    }
    let rig = Rig::new();
    let (mut step, mut whole) = (0, 0);
    loop {
        let status = child(&rig, step);
        if status.success() {
            break;
        }
        assert_eq!(status.signal(), Some(9), "step {step}: {status}");
        let there = rig.outputs().iter().any(|name| !name.starts_with('.'));
        whole += usize::from(there);
        let built = rig.tool("nds_mutation_build").await.unwrap();
        assert_eq!(built["reused"], json!(there), "step {step}");
        assert_eq!(fs::read_dir(rig.place(built["outputRoot"].as_str().unwrap())).unwrap().count(), FILES);
        assert_eq!(rig.outputs().len(), 1, "step {step} left something: {:?}", rig.outputs());
        assert_eq!(sha256_hex(&fs::read(rig.place("rom.nds")).unwrap()), rig.rom.sha256());
        fs::remove_dir_all(rig.place("output")).unwrap();
        step += 1;
    }
    // Three steps in memory, three before the files, each file before and after, and two of publishing; the last has a build.
    assert_eq!((step, whole), (3 + 3 + 2 * FILES + 2, 1));
}

/// Does something once, when a step is reached.
fn at(rig: &Rig, step: &'static str, what: impl Fn() + Send + 'static) {
    let done = Cell::new(false);
    rig.context.workspace().unwrap().observer.set(move |reached| {
        if reached == step && !done.replace(true) {
            what();
        }
    });
}

fn staged(folder: &Path) -> PathBuf {
    let mut entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.find(|path| path.file_name().unwrap().to_str().unwrap().starts_with('.')).unwrap()
}

#[tokio::test]
async fn the_words_of_publishing_are_all_reached_and_no_word_is_without_a_test() {
    let mut reached = BTreeSet::new();
    let rig = Rig::new();
    let planned = rig.tool("nds_mutation_validate").await.unwrap();
    let place = rig.place(planned["outputRoot"].as_str().unwrap());
    let above = place.parent().unwrap().to_owned();
    let nothing_is_left = |step: &str| assert_eq!(rig.outputs(), Vec::<String>::new(), "{step}");

    // What is being staged vanishes: while it is written, and when it is finished.
    for (step, word) in [("writing a file", "staging-failed"), ("renaming", "publish-failed")] {
        let folder = above.clone();
        at(&rig, step, move || fs::remove_dir_all(staged(&folder)).unwrap());
        assert_eq!(code(rig.tool("nds_mutation_build").await), word);
        nothing_is_left(step);
        reached.insert(word);
    }

    // Somebody else's folder takes the place at the last moment: it is no build of this identity and is left alone.
    let other = place.clone();
    at(&rig, "renaming", move || {
        fs::create_dir(&other).unwrap();
        fs::write(other.join("mod.nds"), "another").unwrap();
    });
    assert_eq!(code(rig.tool("nds_mutation_build").await), "publish-collision");
    assert_eq!(fs::read(place.join("mod.nds")).unwrap(), b"another");
    assert_eq!(rig.outputs().len(), 1);
    reached.insert("publish-collision");
    fs::remove_dir_all(&place).unwrap();

    let missing = rig.place("new.bin");
    fs::remove_file(&missing).unwrap();
    assert_eq!(code(rig.tool("nds_mutation_build").await), "replacement-artifact-missing");
    reached.insert("replacement-artifact-missing");
    fs::write(&missing, FIRST).unwrap();
    assert_eq!(rig.tool("nds_mutation_build").await.unwrap()["reused"], json!(false));

    // The others are what the sources of the rebuild say, and its own test reaches each of those.
    let rebuild = rebuild_words();
    assert_eq!(rebuild.iter().find(|word| ErrorCode::named(word).is_none()), None, "a word that is no code");
    let all: BTreeSet<&str> = rebuild.iter().map(String::as_str).chain(reached).collect();
    let own = ErrorCode::OWN.iter().skip_while(|code| **code != ErrorCode::MutationManifestInvalid);
    let own = own.take_while(|code| **code != ErrorCode::ConfigInvalid).map(|code| code.word());
    assert_eq!(own.collect::<BTreeSet<_>>(), all);
}

#[tokio::test]
async fn ground_that_moves_under_a_build_harms_nothing() {
    // The place is taken when it is to be used, and free again when it is looked at.
    let rig = Rig::new();
    let planned = rig.tool("nds_mutation_validate").await.unwrap();
    let place = rig.place(planned["outputRoot"].as_str().unwrap());
    rig.context.workspace().unwrap().observer.set({
        let place = place.clone();
        move |step| match step {
            "renaming" => fs::create_dir_all(place.join("full")).unwrap(),
            // Once the build has been told of it; what it staged goes last.
            "not renamed" => fs::remove_dir_all(&place).unwrap(),
            _ => {}
        }
    });
    assert_eq!(code(rig.tool("nds_mutation_build").await), "publish-failed");
    assert_eq!(rig.outputs(), Vec::<String>::new());

    // The folder of outputs becomes a link that leads out.
    let outside = tempfile::tempdir().unwrap();
    fs::remove_dir_all(rig.place("output")).unwrap();
    let (link, target) = (rig.place("output"), outside.path().to_owned());
    at(&rig, "making the folders above", move || symlink(&target, &link).unwrap());
    assert_eq!(code(rig.tool("nds_mutation_build").await), "staging-failed");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    fs::remove_file(rig.place("output")).unwrap();

    // What the plan was made of changes: the build is of what was read, or there is none.
    let artifact = rig.place("new.bin");
    at(&rig, "planned", move || fs::write(&artifact, "changed").unwrap());
    let built = rig.tool("nds_mutation_build").await.unwrap();
    fs::write(rig.place("new.bin"), FIRST).unwrap();
    assert_eq!(rig.tool("nds_mutation_verify").await.unwrap()["outputSha256"], built["outputSha256"]);
    fs::remove_dir_all(rig.place("output")).unwrap();

    let rom = rig.place("rom.nds");
    at(&rig, "planned", move || {
        let mut bytes = fs::read(&rom).unwrap();
        bytes[0x4000] ^= 1;
        fs::write(&rom, bytes).unwrap();
    });
    assert_eq!(code(rig.tool("nds_mutation_build").await), "file_changed");
    fs::write(rig.place("rom.nds"), rig.rom.bytes()).unwrap();
    let again = rig.tool("nds_mutation_build").await.unwrap();
    assert_eq!(again["outputSha256"], built["outputSha256"]);
    assert_eq!(rig.outputs().len(), 1);
}

#[tokio::test]
async fn what_a_killed_server_left_goes_even_when_its_number_lives_again() {
    let rig = Rig::new();
    let planned = rig.tool("nds_mutation_validate").await.unwrap();
    let above = rig.place(planned["outputRoot"].as_str().unwrap()).parent().unwrap().to_owned();
    // In a container every server may have the number 1, or this one.
    for process in [1, std::process::id()] {
        for count in 0..64 {
            fs::create_dir_all(above.join(format!(".retroscope-{process}-{count}.tmp/half"))).unwrap();
        }
    }
    rig.tool("nds_mutation_build").await.unwrap();
    assert_eq!(rig.outputs().len(), 1);
}

#[tokio::test]
async fn what_another_server_is_staging_is_left_alone() {
    let rig = Rig::new();
    let planned = rig.tool("nds_mutation_validate").await.unwrap();
    let above = rig.place(planned["outputRoot"].as_str().unwrap()).parent().unwrap().to_owned();
    let staging = above.join(".retroscope-999999999-0.tmp");
    fs::create_dir_all(&staging).unwrap();
    let other = fs::File::open(&above).unwrap();
    other.lock_shared().unwrap();
    rig.tool("nds_mutation_build").await.unwrap();
    assert!(staging.exists());
    // Nor does a build wait for ever: here its place is never free.
    fs::remove_dir_all(rig.place(planned["outputRoot"].as_str().unwrap())).unwrap();
    other.lock().unwrap();
    assert_eq!(code(rig.tool("nds_mutation_build").await), "staging-failed");
    drop(other);
    rig.tool("nds_mutation_build").await.unwrap();
    assert!(!staging.exists());
}
