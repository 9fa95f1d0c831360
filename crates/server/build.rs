//! Builds driftgame, the program that `retroscope demo` and the live tests watch, so that the binary can carry it:
//! `OUT_DIR/driftgame64` and `OUT_DIR/driftgame32`, both empty where the target is not x86-64 Linux.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Compiled together into one program.
const SOURCES: [&str; 4] = ["game.c", "options.c", "linux.c", "x11.c"];
/// Read by the sources.
const HEADERS: [&str; 3] = ["game.h", "options.h", "linux.h"];

/// No library and no header of the target is used, and every function keeps its own body, frame and symbol.
/// The addresses are part of what the game promises; its README documents them.
const FLAGS: [&str; 24] = [
    "-std=gnu11",
    "-O1",
    "-w",
    "-ffreestanding",
    "-fno-builtin",
    "-fno-inline",
    "-fno-omit-frame-pointer",
    "-fno-optimize-sibling-calls",
    "-fno-stack-protector",
    "-fcf-protection=none",
    "-fno-asynchronous-unwind-tables",
    "-fno-unwind-tables",
    "-fno-toplevel-reorder",
    "-fno-tree-loop-distribute-patterns",
    "-fno-pic",
    "-no-pie",
    "-static",
    "-nostdlib",
    "-Wl,--build-id=none",
    "-Wl,-z,noexecstack,-z,separate-code",
    "-Wl,-z,max-page-size=4096",
    "-Wl,-Ttext-segment=0x400000",
    "-Wl,--section-start=.gamevars=0x480000",
    "-Wl,-Tbss=0x500000",
];

fn main() -> ExitCode {
    match build() {
        Ok(()) => ExitCode::SUCCESS,
        Err(complaint) => {
            eprintln!("{complaint}");
            ExitCode::FAILURE
        }
    }
}

fn build() -> Result<(), String> {
    let game = variable("CARGO_MANIFEST_DIR")?.join("../../fixtures/driftgame");
    let out = variable("OUT_DIR")?;
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=CC");
    for file in SOURCES.iter().chain(&HEADERS) {
        println!("cargo:rerun-if-changed={}", game.join(file).display());
    }

    let (out64, out32) = (out.join("driftgame64"), out.join("driftgame32"));
    let target = |name: &str, wanted: &str| env::var(name).is_ok_and(|value| value == wanted);
    if !target("CARGO_CFG_TARGET_OS", "linux") || !target("CARGO_CFG_TARGET_ARCH", "x86_64") {
        write_empty(&out64)?;
        return write_empty(&out32);
    }
    compile(&game, "-m64", &out64)?;
    if let Err(complaint) = compile(&game, "-m32", &out32) {
        println!("cargo:warning=the 32-bit build of driftgame is left out: its compile failed");
        for line in complaint.lines() {
            println!("cargo:warning={line}");
        }
        write_empty(&out32)?;
    }
    Ok(())
}

fn variable(name: &str) -> Result<PathBuf, String> {
    env::var_os(name).map(PathBuf::from).ok_or_else(|| format!("cargo did not set {name}"))
}

fn write_empty(path: &Path) -> Result<(), String> {
    fs::write(path, []).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// `$CC` with its words as arguments, such as `ccache gcc`; else `cc`; else `gcc`.
fn compilers() -> Vec<Vec<String>> {
    let words: Vec<String> = env::var("CC").unwrap_or_default().split_whitespace().map(str::to_owned).collect();
    if words.is_empty() { vec![vec!["cc".to_owned()], vec!["gcc".to_owned()]] } else { vec![words] }
}

fn compile(game: &Path, width: &str, out: &Path) -> Result<(), String> {
    let mut complaint = String::new();
    for compiler in compilers() {
        let Some((program, arguments)) = compiler.split_first() else { continue };
        let result = Command::new(program)
            .args(arguments)
            .arg(width)
            .args(FLAGS)
            .arg("-o")
            .arg(out)
            .args(SOURCES)
            .current_dir(game)
            .output();
        match result {
            Ok(output) if output.status.success() => return Ok(()),
            Ok(output) => {
                return Err(format!(
                    "{program} {width} could not build fixtures/driftgame ({}):\n{}",
                    output.status,
                    String::from_utf8_lossy(&output.stderr).trim_end()
                ));
            }
            Err(error) => complaint.push_str(&format!("\n  {program}: {error}")),
        }
    }
    Err(format!(
        "no C compiler to build fixtures/driftgame with; install gcc or clang (Debian: apt-get install gcc), or name \
         one in CC. Tried:{complaint}"
    ))
}
