//! Running other programs: each command is printed before it runs, and one that fails is an error with its name.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::{Outcome, workspace};

/// A cargo command in the repository's root: the cargo that runs this program.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(workspace::root());
    command
}

/// Runs `command` with its output on ours, and without input so that nothing can wait for a person.
pub fn run(command: &mut Command) -> Outcome {
    println!("$ {}", line(command));
    let status = command.stdin(Stdio::null()).status().map_err(|error| cannot_start(command, &error))?;
    if status.success() { Ok(()) } else { Err(format!("`{}` failed: {status}", line(command))) }
}

/// Runs `command` quietly and gives what it printed to standard output.
pub fn output(command: &mut Command) -> Result<String, String> {
    let done = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| cannot_start(command, &error))?;
    if !done.status.success() {
        return Err(format!("`{}` failed: {}", line(command), done.status));
    }
    String::from_utf8(done.stdout).map_err(|_| format!("`{}` printed something else than UTF-8", line(command)))
}

/// Whether `command` runs and exits with 0; its output is dropped.
pub fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// The first file named `program` in the folders of `PATH`.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// The command as a person would type it.
pub fn line(command: &Command) -> String {
    let program = PathBuf::from(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned();
    let words = command.get_args().map(OsStr::to_string_lossy).map(|word| quoted(&word));
    std::iter::once(name).chain(words).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@+%".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.to_owned() } else { format!("'{word}'") }
}

fn cannot_start(command: &Command, error: &std::io::Error) -> String {
    format!("cannot start `{}`: {error}", line(command))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_printed_as_it_would_be_typed() {
        let mut command = Command::new("/usr/bin/apt-get");
        command.args(["install", "-y", "two words"]);
        assert_eq!(line(&command), "apt-get install -y 'two words'");
    }

    #[test]
    fn a_failing_command_is_an_error_that_names_it() {
        let error = run(Command::new("sh").args(["-c", "exit 3"])).unwrap_err();
        assert!(error.contains("sh -c 'exit 3'") && error.contains('3'), "{error}");
        assert!(!succeeds(Command::new("sh").args(["-c", "exit 1"])));
        assert!(run(&mut Command::new("no-such-program-here")).unwrap_err().contains("cannot start"));
    }

    #[test]
    fn only_programs_that_exist_are_found() {
        assert!(find("sh").is_some());
        assert_eq!(find("no-such-program-here"), None);
    }
}
