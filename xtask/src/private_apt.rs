//! An apt beside the machine's own: its sources, lists and archives in one folder. It downloads Debian packages of another
//! architecture or release and unpacks them; nothing is installed, and it needs no root.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Outcome, sh};

/// Signs Debian's package lists.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Such an apt, with fresh package lists.
pub struct PrivateApt {
    folder: PathBuf,
}

impl PrivateApt {
    /// Makes it in `folder`, for packages of `architecture` in the release `suite` and its `component`.
    pub fn new(folder: PathBuf, architecture: &str, suite: &str, component: &str) -> Result<Self, String> {
        let apt = Self { folder };
        for folder in ["lists/partial", "archives/partial", "none"] {
            make(&apt.folder.join(folder))?;
        }
        let source = format!("deb [signed-by={KEYRING} arch={architecture}] {} {suite} {component}\n", mirror()?);
        write(&apt.folder.join("sources.list"), &source)?;
        // As if nothing were installed, so that a closure is downloaded whole.
        write(&apt.folder.join("status"), "")?;
        write(&apt.configuration(), &configuration(&apt.folder, architecture))?;
        sh::run(apt.command("apt-get").args(["-q", "update"]))?;
        Ok(apt)
    }

    /// The newest version of `package` that begins with `prefix`.
    pub fn version(&self, package: &str, prefix: &str) -> Result<String, String> {
        let table = sh::output(self.command("apt-cache").args(["madison", package]))?;
        version_in(&table, prefix).ok_or_else(|| format!("Debian has no {package} {prefix}"))
    }

    /// Downloads packages with all that they need, and gives the archives, sorted.
    pub fn download(&self, packages: &[&str]) -> Result<Vec<PathBuf>, String> {
        let mut apt = self.command("apt-get");
        sh::run(apt.args(["-q", "-y", "--download-only", "install"]).args(packages))?;
        let archives = self.folder.join("archives");
        let entries = std::fs::read_dir(&archives).map_err(|error| format!("{}: {error}", archives.display()))?;
        let files = entries.flatten().map(|entry| entry.path());
        let mut files: Vec<_> = files.filter(|file| file.extension().is_some_and(|ending| ending == "deb")).collect();
        files.sort();
        Ok(files)
    }

    /// Downloads one package without what it needs, and gives the archive.
    pub fn download_alone(&self, package: &str) -> Result<PathBuf, String> {
        let archives = self.folder.join("archives");
        sh::run(self.command("apt-get").args(["-q", "download", package]).current_dir(&archives))?;
        let entries = std::fs::read_dir(&archives).map_err(|error| format!("{}: {error}", archives.display()))?;
        let mut files = entries.flatten().map(|entry| entry.path());
        let is_it = |file: &PathBuf| {
            let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            name.starts_with(&format!("{package}_")) && name.ends_with(".deb")
        };
        files.find(is_it).ok_or_else(|| format!("{package} is not there after the download"))
    }

    /// Forgets the archives and lists, which are large.
    pub fn clean(self) -> Outcome {
        remove(&self.folder)
    }

    fn configuration(&self) -> PathBuf {
        self.folder.join("apt.conf")
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("APT_CONFIG", self.configuration()).env("DEBIAN_FRONTEND", "noninteractive");
        command
    }
}

/// Unpacks a package into `folder`.
pub fn unpack(package: &Path, folder: &Path) -> Outcome {
    make(folder)?;
    sh::output(Command::new("dpkg-deb").arg("-x").arg(package).arg(folder)).map(drop)
}

/// Makes a folder and those above it.
pub fn make(folder: &Path) -> Outcome {
    std::fs::create_dir_all(folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))
}

/// Removes a folder with everything below it, if it is there.
pub fn remove(folder: &Path) -> Outcome {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("cannot remove {}: {error}", folder.display()))
        }
        _ => Ok(()),
    }
}

/// Writes a file.
pub fn write(file: &Path, text: &str) -> Outcome {
    std::fs::write(file, text).map_err(|error| format!("cannot write {}: {error}", file.display()))
}

/// The Debian mirror that this machine uses.
fn mirror() -> Result<String, String> {
    let folder = std::fs::read_dir("/etc/apt/sources.list.d").into_iter().flatten().flatten().map(|entry| entry.path());
    let files = std::iter::once(PathBuf::from("/etc/apt/sources.list")).chain(folder);
    let found = files.filter_map(|file| std::fs::read_to_string(file).ok()).find_map(|text| first_mirror(&text));
    found.ok_or_else(|| "apt's list of sources names no Debian mirror to take packages from".to_owned())
}

fn first_mirror(sources: &str) -> Option<String> {
    let lines = sources.lines().filter(|line| !line.trim_start().starts_with('#'));
    let mut words = lines.flat_map(str::split_whitespace);
    words
        .find(|word| word.starts_with("http") && word.trim_end_matches('/').ends_with("/debian"))
        .map(|word| word.trim_end_matches('/').to_owned())
}

/// The version in a table of `apt-cache madison`, newest first: `package | version | source`.
fn version_in(table: &str, prefix: &str) -> Option<String> {
    let versions = table.lines().filter_map(|line| line.split('|').nth(1)).map(str::trim);
    // `1.9` is no prefix of `1.95` here.
    let mut fitting = versions.filter(|version| {
        version.strip_prefix(prefix).is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
    });
    fitting.next().map(str::to_owned)
}

/// Everything that apt would otherwise share with the machine is below `folder`.
fn configuration(folder: &Path, architecture: &str) -> String {
    let folder = folder.display();
    let places = [
        ("Etc::sourcelist", "sources.list"),
        ("Etc::sourceparts", "none"),
        ("Etc::preferencesparts", "none"),
        ("State", ""),
        ("State::lists", "lists"),
        ("State::status", "status"),
        ("State::extended_states", "extended"),
        ("Cache", ""),
        ("Cache::archives", "archives"),
    ];
    let mut text = format!(
        "APT::Architecture \"{architecture}\";\nAPT::Architectures {{ \"{architecture}\"; }};\n\
         APT::Sandbox::User \"root\";\nAPT::Install-Recommends \"false\";\nAcquire::Languages \"none\";\n\
         Acquire::Retries \"3\";\nAcquire::IndexTargets::deb::Contents-deb::DefaultEnabled \"false\";\n"
    );
    for (key, place) in places {
        text.push_str(&format!("Dir::{key} \"{folder}/{place}\";\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mirror_is_found_in_both_forms_of_lists() {
        let line = "# deb http://old/debian x\ndeb [signed-by=/k] http://mirror.example/debian bookworm main\n";
        assert_eq!(first_mirror(line).as_deref(), Some("http://mirror.example/debian"));
        let fields = "Types: deb\nURIs: http://other.example/debian/\nSuites: bookworm\n";
        assert_eq!(first_mirror(fields).as_deref(), Some("http://other.example/debian"));
        assert_eq!(first_mirror("deb http://security.example/debian-security x main"), None);
    }

    #[test]
    fn apt_keeps_to_its_folder() {
        let text = configuration(Path::new("/x"), "i386");
        assert!(text.contains("Dir::State::status \"/x/status\";"), "{text}");
        assert!(text.contains("Dir::Cache::archives \"/x/archives\";"), "{text}");
        assert!(text.contains("APT::Architecture \"i386\";"), "{text}");
    }

    #[test]
    fn the_version_is_the_newest_that_fits() {
        let table = "  rust-src | 1.96.0-1 | http://m trixie-backports/main amd64 Packages\n  \
                     rust-src | 1.95.0+dfsg1-1~bpo13+1 | http://m trixie-backports/main amd64 Packages\n";
        assert_eq!(version_in(table, "1.95.0").as_deref(), Some("1.95.0+dfsg1-1~bpo13+1"));
        assert_eq!(version_in(table, "1.9"), None);
    }
}
