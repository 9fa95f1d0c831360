//! `cargo xtask dist`: the packages that people download, a zip for Windows and a tarball for Linux, with their checksums.
//! They are reproducible: the same sources and tools give the same bytes in whatever folder they are built, since paths, times and
//! the order of entries are fixed. `--twice` proves it by building in two folders and comparing.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::private_apt::{make, remove, write};
use crate::workspace::{array, string};
use crate::{Outcome, provision, sh, windows, workspace};

/// Beside the packages: their checksums, to be checked by `sha256sum --check`.
const SUMS: &str = "SHA256SUMS";

/// Texts of ours that go with the programs.
const TEXTS: &[&str] = &["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// The licences of everything that is compiled in.
const OTHERS: &str = "LICENSES-OF-OTHERS.txt";

const LINUX: &str = "x86_64-unknown-linux-gnu";

/// What is built: Rust's name, the packages.
const BUILDS: &[(&str, &[&str])] = &[
    (LINUX, &["retroscope", "agent"]),
    (windows::BOTH[1].triple, &["retroscope", "agent"]),
    (windows::BOTH[0].triple, &["agent"]),
];

/// What a package holds: Rust's name of the target, the program, its name in the package.
type Program = (&'static str, &'static str, &'static str);

const FOR_WINDOWS: &[Program] = &[
    (windows::BOTH[1].triple, "retroscope.exe", "retroscope.exe"),
    (windows::BOTH[0].triple, "retroscope-agent.exe", "retroscope-agent-x86.exe"),
    (windows::BOTH[1].triple, "retroscope-agent.exe", "retroscope-agent-x64.exe"),
];

const FOR_LINUX: &[Program] = &[(LINUX, "retroscope", "retroscope"), (LINUX, "retroscope-agent", "retroscope-agent")];

/// The task.
pub fn run(arguments: &[String]) -> Outcome {
    match arguments {
        [] => packages().map(drop),
        [flag] if flag == "--twice" => twice(),
        _ => Err(format!("unexpected arguments `{}`; only --twice", arguments.join(" "))),
    }
}

/// Builds both packages and gives the folder with them.
fn packages() -> Result<PathBuf, String> {
    provision::debian()?;
    windows::targets()?;
    for (triple, packages) in BUILDS {
        build(triple, packages)?;
    }
    let metadata = sh::output(sh::cargo().args(["metadata", "--format-version", "1", "--locked"]))?;
    let metadata: serde_json::Value =
        serde_json::from_str(&metadata).map_err(|error| format!("cargo metadata: {error}"))?;
    let version = array(&metadata, "packages").iter().find(|package| string(package, "name") == "retroscope");
    let version = version.map(|package| string(package, "version")).unwrap_or_default();
    let others = licences_of_others(&metadata)?;
    let seconds = source_time()?;

    let folder = workspace::target().join("dist");
    remove(&folder)?;
    let for_windows = format!("retroscope-{version}-windows");
    let files = stage(&folder, &for_windows, FOR_WINDOWS, &others, &seconds)?;
    let mut zip = Command::new("zip");
    // Neither owners nor the time zone of this machine.
    zip.current_dir(&folder).env("TZ", "UTC").args(["-q", "-X", "-D", "-9"]).arg(format!("{for_windows}.zip"));
    sh::run(zip.args(&files))?;

    let for_linux = format!("retroscope-{version}-linux-x86_64");
    let files = stage(&folder, &for_linux, FOR_LINUX, &others, &seconds)?;
    let mut tar = Command::new("tar");
    tar.current_dir(&folder).args(["--format=ustar", "--owner=0", "--group=0", "--numeric-owner"]);
    tar.args(["--use-compress-program=gzip -n -9", "-cf"]).arg(format!("{for_linux}.tar.gz"));
    sh::run(tar.args(&files))?;

    let packages = [format!("{for_linux}.tar.gz"), format!("{for_windows}.zip")];
    let sums = sh::output(Command::new("sha256sum").current_dir(&folder).args(&packages))?;
    write(&folder.join(SUMS), &sums)?;
    print!("{}:\n{sums}", folder.display());
    Ok(folder)
}

/// Builds the programs of some packages without a trace of where that was.
fn build(triple: &str, packages: &[&str]) -> Outcome {
    let mut cargo = sh::cargo();
    cargo.args(["build", "--release", "--locked", "--bins", "--target", triple]).arg("--target-dir").arg(built());
    for package in packages {
        cargo.args(["--package", package]);
    }
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home =
        home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo"))).ok_or("there is no home folder")?;
    // The later of two that fit is taken.
    let mut flags: Vec<String> = [(&home, "/cargo"), (&workspace::root(), "/retroscope"), (&built(), "/target")]
        .iter()
        .map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display()))
        .collect();
    if triple != LINUX {
        flags.push("-Clink-arg=-Wl,--no-insert-timestamp".to_owned());
    }
    // Not by spaces, which a folder's name may have. Symbol names hold those of temporary files.
    cargo.env_remove("RUSTFLAGS").env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
    sh::run(cargo.env("CARGO_PROFILE_RELEASE_STRIP", "symbols").env("CARGO_INCREMENTAL", "0"))
}

fn built() -> PathBuf {
    workspace::target().join("dist-build")
}

/// Puts the files of a package into the folder `name` below `folder` and gives their paths there, sorted.
fn stage(folder: &Path, name: &str, programs: &[Program], others: &str, seconds: &str) -> Result<Vec<String>, String> {
    let to = folder.join(name);
    make(&to)?;
    for (triple, program, called) in programs {
        copy(&built().join(triple).join("release").join(program), &to.join(called), 0o755)?;
    }
    for text in TEXTS {
        copy(&workspace::root().join(text), &to.join(text), 0o644)?;
    }
    let file = to.join(OTHERS);
    write(&file, others)?;
    permit(&file, 0o644)?;
    let names = programs.iter().map(|(_, _, called)| *called).chain(TEXTS.iter().copied()).chain([OTHERS]);
    let mut files: Vec<String> = names.map(|file| format!("{name}/{file}")).collect();
    files.sort();
    sh::output(Command::new("touch").current_dir(folder).args(["-d", &format!("@{seconds}")]).args(&files))?;
    Ok(files)
}

fn copy(from: &Path, to: &Path, mode: u32) -> Outcome {
    std::fs::copy(from, to).map_err(|error| format!("cannot copy {} to {}: {error}", from.display(), to.display()))?;
    permit(to, mode)
}

fn permit(file: &Path, mode: u32) -> Outcome {
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(mode))
        .map_err(|error| format!("{}: {error}", file.display()))
}

/// The time that all files get, in seconds since 1970: `SOURCE_DATE_EPOCH`, or that of the last commit.
fn source_time() -> Result<String, String> {
    let text = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text,
        Err(_) => {
            let mut git = Command::new("git");
            sh::output(git.current_dir(workspace::root()).args(["log", "-1", "--format=%ct"]))?
        }
    };
    match text.trim().parse::<u64>() {
        Ok(seconds) => Ok(seconds.to_string()),
        Err(_) => Err(format!("SOURCE_DATE_EPOCH is `{}`, and not a number of seconds since 1970", text.trim())),
    }
}

/// The licence texts of all packages that are not ours, as they come with their sources.
fn licences_of_others(metadata: &serde_json::Value) -> Result<String, String> {
    let mut packages: Vec<_> = array(metadata, "packages")
        .iter()
        .filter(|package| package.get("source").is_some_and(serde_json::Value::is_string))
        .collect();
    packages.sort_by_key(|package| (string(package, "name"), string(package, "version")));
    let mut text = "Parts of these programs come from the following packages; their licences follow.\n".to_owned();
    for package in packages {
        let title =
            format!("{} {} ({})", string(package, "name"), string(package, "version"), string(package, "license"));
        text.push_str(&format!("\n{}\n{title}\n{}\n", "=".repeat(title.len()), "=".repeat(title.len())));
        let manifest = PathBuf::from(string(package, "manifest_path"));
        let folder = manifest.parent().ok_or_else(|| format!("{title}: it is nowhere"))?;
        for file in crate::fixtures::files(folder)?.iter().filter(|file| is_licence(file)) {
            text.push('\n');
            text.push_str(&String::from_utf8_lossy(&std::fs::read(file).unwrap_or_default()));
        }
    }
    Ok(text)
}

fn is_licence(file: &Path) -> bool {
    let name = file.file_name().map(|name| name.to_string_lossy().to_uppercase()).unwrap_or_default();
    ["LICENSE", "LICENCE", "COPYING", "NOTICE"].iter().any(|beginning| name.starts_with(beginning))
}

/// Builds the packages here and from a copy of the sources elsewhere, and compares.
fn twice() -> Outcome {
    let first = read(&packages()?.join(SUMS))?;
    let copy = workspace::target().join("dist-again");
    remove(&copy)?;
    for path in workspace::files()? {
        let (from, to) = (workspace::root().join(&path), copy.join(&path));
        make(to.parent().unwrap_or(&copy))?;
        std::fs::copy(&from, &to).map_err(|error| format!("cannot copy {}: {error}", from.display()))?;
    }
    let mut cargo = sh::cargo();
    cargo.current_dir(&copy).env("SOURCE_DATE_EPOCH", source_time()?).env("CARGO_TARGET_DIR", copy.join("target"));
    sh::run(cargo.args(["xtask", "dist"]))?;
    let second = read(&copy.join("target/dist").join(SUMS))?;
    if first != second {
        let [here, there] = [workspace::target(), copy.join("target")].map(|folder| folder.join("dist"));
        return Err(format!(
            "the second build differs:\n{first}{second}compare {} with {}",
            here.display(),
            there.display()
        ));
    }
    println!("both builds are the same");
    remove(&copy)
}

fn read(file: &Path) -> Result<String, String> {
    std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licences_are_found_by_their_usual_names() {
        for (name, wanted) in
            [("LICENSE-MIT", true), ("license.txt", true), ("COPYING", true), ("README.md", false), ("lib.rs", false)]
        {
            assert_eq!(is_licence(Path::new(name)), wanted, "{name}");
        }
    }

    #[test]
    fn every_program_that_is_packed_is_built() {
        for (triple, program, called) in FOR_WINDOWS.iter().chain(FOR_LINUX) {
            let package = if program.starts_with("retroscope-agent") { "agent" } else { "retroscope" };
            let built = BUILDS.iter().any(|(target, packages)| target == triple && packages.contains(&package));
            assert!(built, "{called}");
        }
    }
}
