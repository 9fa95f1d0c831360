//! What a new process is started from: its command line, its environment, and whether the file is a program for this agent.

use crate::platform::pe::{self, HEADER_BYTES, Header};
use crate::platform::{LaunchSpec, PlatformError};
use code::x86::Bitness;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::windows::ffi::OsStrExt;
use std::path::Path;

/// UTF-16 units that Windows allows in a command line, its zero included.
const COMMAND_LINE_UNITS: usize = 32_767;

/// Whether `bitness` is what this agent can debug; the sentence names the other agent.
pub fn check_bitness(what: &str, bitness: Bitness) -> Result<(), PlatformError> {
    if bitness == Bitness::Bits64 && cfg!(target_arch = "x86") {
        return Err(PlatformError::BadProgram(format!(
            "{what} is a 64-bit program and this is the 32-bit agent; start retroscope-agent.exe of the x86_64 build, which \
             debugs 64-bit and 32-bit programs"
        )));
    }
    Ok(())
}

/// Reads the headers of the program, and refuses what cannot be started or debugged here.
pub fn examine(path: &Path) -> Result<Header, PlatformError> {
    let file = File::open(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound | std::io::ErrorKind::InvalidFilename => PlatformError::NotFound(path.to_owned()),
        std::io::ErrorKind::PermissionDenied => {
            PlatformError::Permission(format!("{} may not be read: {error}", path.display()))
        }
        _ => PlatformError::Os { call: "open", message: format!("{}: {error}", path.display()) },
    })?;
    let mut head = Vec::new();
    let room = u64::try_from(HEADER_BYTES).unwrap_or(u64::MAX);
    file.take(room)
        .read_to_end(&mut head)
        .map_err(|error| PlatformError::Os { call: "read", message: format!("{}: {error}", path.display()) })?;
    let header = pe::header(&head).map_err(|reason| {
        PlatformError::BadProgram(format!("{} is not a program that can be debugged: {reason}", path.display()))
    })?;
    if header.library {
        return Err(PlatformError::BadProgram(format!(
            "{} is a library; launch the program that uses it",
            path.display()
        )));
    }
    check_bitness(&path.display().to_string(), header.bitness)?;
    Ok(header)
}

/// The command line from which the program's C library makes `path` and `args` again.
pub fn command_line(spec: &LaunchSpec) -> Result<Vec<u16>, PlatformError> {
    let mut line = quoted(spec.path.as_os_str(), true);
    for argument in &spec.args {
        line.push(u16::from(b' '));
        line.extend(quoted(OsStr::new(argument), false));
    }
    line.push(0);
    if line.len() > COMMAND_LINE_UNITS {
        return Err(PlatformError::BadProgram(format!(
            "the command line has {} UTF-16 units; Windows allows {COMMAND_LINE_UNITS}",
            line.len()
        )));
    }
    Ok(line)
}

/// One word by the rules of `CommandLineToArgvW`: a backslash is only special before a quotation mark.
fn quoted(word: &OsStr, always: bool) -> Vec<u16> {
    const QUOTE: u16 = b'"' as u16;
    const BACKSLASH: u16 = b'\\' as u16;
    let units: Vec<u16> = word.encode_wide().collect();
    let special = |unit: &u16| [b' ', b'\t', b'\n', 0x0b, b'"'].iter().any(|special| u16::from(*special) == *unit);
    if !always && !units.is_empty() && !units.iter().any(special) {
        return units;
    }
    let mut out = vec![QUOTE];
    let mut backslashes = 0;
    for unit in units {
        if unit == QUOTE {
            out.extend(std::iter::repeat_n(BACKSLASH, backslashes + 1));
        }
        backslashes = if unit == BACKSLASH { backslashes + 1 } else { 0 };
        out.push(unit);
    }
    out.extend(std::iter::repeat_n(BACKSLASH, backslashes));
    out.push(QUOTE);
    out
}

/// Our own environment with `extra` on top, as Windows wants it: sorted without regard to case, each text ended by a zero.
pub fn environment(own: impl Iterator<Item = (OsString, OsString)>, extra: &BTreeMap<String, String>) -> Vec<u16> {
    let mut variables: BTreeMap<String, (OsString, OsString)> = BTreeMap::new();
    let extra = extra.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    for (name, value) in own.chain(extra) {
        variables.insert(name.to_string_lossy().to_uppercase(), (name, value));
    }
    let mut block = Vec::new();
    for (name, value) in variables.values() {
        block.extend(name.encode_wide());
        block.push(u16::from(b'='));
        block.extend(value.encode_wide());
        block.push(0);
    }
    // An empty block, too, ends in two zeros.
    if block.is_empty() {
        block.push(0);
    }
    block.push(0);
    block
}

/// A text with a zero at its end.
pub fn wide(text: &OsStr) -> Vec<u16> {
    text.encode_wide().chain([0]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn text(units: &[u16]) -> String {
        String::from_utf16(units).unwrap()
    }

    #[test]
    fn words_are_quoted_as_the_c_library_reads_them() {
        // The table of Microsoft's "Parsing C command-line arguments", read from right to left.
        let cases = [
            ("abc", "abc"),
            ("", "\"\""),
            ("a b", "\"a b\""),
            (r"a\b", r"a\b"),
            (r#"ab"c"#, r#""ab\"c""#),
            (r"a\\b", r"a\\b"),
            (r#"a\"b"#, r#""a\\\"b""#),
            (r"a b\", r#""a b\\""#),
        ];
        for (word, expected) in cases {
            assert_eq!(text(&quoted(OsStr::new(word), false)), expected);
        }
    }

    #[test]
    fn a_command_line_begins_with_the_quoted_path() {
        let spec = LaunchSpec {
            path: PathBuf::from("C:\\Jeux rétro\\drift.exe"),
            args: vec!["--frames".into(), "3".into(), "two words".into()],
            cwd: PathBuf::from("C:\\"),
            env: BTreeMap::new(),
            die_with_agent: false,
        };
        let line = text(&command_line(&spec).unwrap());
        assert_eq!(line, "\"C:\\Jeux rétro\\drift.exe\" --frames 3 \"two words\"\0");
        let long = LaunchSpec { args: vec!["x".repeat(40_000)], ..spec };
        assert!(matches!(command_line(&long), Err(PlatformError::BadProgram(_))));
    }

    #[test]
    fn variables_replace_ours_whatever_their_case() {
        let own = [("Path", "a"), ("=C:", "C:\\x"), ("B", "1")].map(|(name, value)| (name.into(), value.into()));
        let extra = BTreeMap::from([("PATH".to_owned(), "b".to_owned()), ("a".to_owned(), String::new())]);
        assert_eq!(text(&environment(own.into_iter(), &extra)), "=C:=C:\\x\0a=\0B=1\0PATH=b\0\0");
        assert_eq!(environment(std::iter::empty(), &BTreeMap::new()), [0, 0]);
    }
}
