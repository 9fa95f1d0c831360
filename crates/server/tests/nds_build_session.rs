//! The mod that `docs/nds-build.md` makes: its commands are run as they stand there.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

const PAGE: &str = include_str!("../../../docs/nds-build.md");

#[test]
fn the_page_makes_the_mod_that_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_retroscope"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    symlink(root, folder.path().join("fixtures")).unwrap();
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    // One shell, as a reader has; a line of its own stands between the answers of two blocks.
    let blocks: Vec<&str> = PAGE.split("```sh\n").skip(1).map(|block| block.split("```").next().unwrap()).collect();
    let script = blocks.join("echo ====\n");
    let run =
        Command::new("sh").args(["-e", "-c", &script]).current_dir(folder.path()).env("PATH", &path).output().unwrap();
    let (told, errors) = (String::from_utf8(run.stdout).unwrap(), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success(), "{told}{errors}");
    let answers: Vec<&str> = told.split("====\n").collect();
    let first = |text: &str| serde_json::Deserializer::from_str(text).into_iter::<Value>().next().unwrap().unwrap();
    let (validated, built) = (first(answers[1]), first(answers[2]));
    assert_eq!((&validated["status"], &built["reused"]), (&Value::from("valid"), &Value::from(false)));
    assert_eq!(validated["buildId"], built["buildId"]);
    assert!(answers[2].contains("mod.nds.bps"));
    let rom = nds::Rom::parse(std::fs::read(folder.path().join("mod/mod.nds")).unwrap()).unwrap();
    let overlay = nds::ComponentId::overlay(nds::Processor::Arm9, 1);
    let image = rom.component(overlay).unwrap().image(&rom).unwrap();
    // ldr r1, =0x02300000; movs r0, #0x5a; strb r0, [r1]; movs r0, #0x77; bx lr.
    assert_eq!(image[..10], [0x02, 0x49, 0x5a, 0x20, 0x08, 0x70, 0x77, 0x20, 0x70, 0x47]);
}
