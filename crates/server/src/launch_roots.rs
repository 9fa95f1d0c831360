//! The folders that programs may be launched from, as far as the server can tell: the agent, which may run on another
//! machine, checks its own list by its own file system.

use crate::errors::{ErrorCode, ToolError};
use std::path::{Component, Path};

/// The folders; none of them means no bound.
#[derive(Clone, Debug, Default)]
pub struct LaunchRoots(Vec<String>);

impl LaunchRoots {
    /// Folders as configured, absolute paths of this machine or of a Windows one.
    ///
    /// # Errors
    /// `config_invalid` for a relative one or one with `..`.
    pub fn new(roots: Vec<String>) -> Result<Self, ToolError> {
        for root in &roots {
            if parts(root).is_none() {
                return Err(ToolError::new(
                    ErrorCode::ConfigInvalid,
                    format!("the launch root `{root}` is not an absolute path without `..`"),
                )
                .hint("write it like /home/me/games or C:\\Games"));
            }
        }
        Ok(Self(roots))
    }

    /// Whether there is any bound.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The folders as configured.
    pub fn as_slice(&self) -> &[String] {
        &self.0
    }

    /// Refuses a path that is not below one of the folders.
    ///
    /// # Errors
    /// `path_refused`.
    pub fn check(&self, path: &str) -> Result<(), ToolError> {
        if self.0.is_empty() {
            return Ok(());
        }
        // A symbolic link may lead out of the folder; where the file is on this machine, its real place counts.
        let real = std::fs::canonicalize(path).ok().and_then(|real| real.to_str().map(str::to_owned));
        let inside = self.0.iter().any(|root| {
            let real_root = std::fs::canonicalize(root).ok().and_then(|real| real.to_str().map(str::to_owned));
            is_below(path, root)
                && match (&real, &real_root) {
                    (Some(path), Some(root)) => is_below(path, root),
                    _ => true,
                }
        });
        if inside {
            return Ok(());
        }
        Err(ToolError::new(
            ErrorCode::Agent(wire::ErrorCode::PathRefused),
            format!("`{path}` is not below a folder that programs may be launched from"),
        )
        .hint(format!("give an absolute path below {}", self.0.join(" or ")))
        .detail("launch_roots", self.0.clone()))
    }
}

fn is_below(path: &str, root: &str) -> bool {
    match (parts(path), parts(root)) {
        (Some(path), Some(root)) => path.len() > root.len() && path.starts_with(&root),
        _ => false,
    }
}

/// The names of an absolute path without `..`; those of a Windows path in small letters.
fn parts(path: &str) -> Option<Vec<String>> {
    // So Windows writes the real place of a file.
    let path = path.strip_prefix(r"\\?\").unwrap_or(path);
    let drive = path.as_bytes().first().is_some_and(u8::is_ascii_alphabetic) && path.as_bytes().get(1) == Some(&b':');
    if drive {
        let path = path.to_lowercase();
        let names: Vec<String> =
            path.split(['\\', '/']).filter(|name| !name.is_empty() && *name != ".").map(str::to_owned).collect();
        let rooted = matches!(path.as_bytes().get(2), Some(b'\\' | b'/'));
        return (rooted && !names.iter().any(|name| name == "..")).then_some(names);
    }
    let mut names = Vec::new();
    for component in Path::new(path).components() {
        match component {
            Component::RootDir if names.is_empty() => names.push("/".to_owned()),
            Component::Normal(name) if !names.is_empty() => names.push(name.to_str()?.to_owned()),
            _ => return None,
        }
    }
    (!names.is_empty()).then_some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(roots: &[&str], path: &str) -> bool {
        LaunchRoots::new(roots.iter().map(|root| (*root).to_owned()).collect()).unwrap().check(path).is_ok()
    }

    #[test]
    fn only_paths_below_a_root_pass() {
        assert!(check(&[], "/anything"));
        assert!(check(&["/games"], "/games/a/b.exe"));
        assert!(check(&["/other", "/games/"], "/games/./b"));
        for bad in ["/games", "/gamesx/b", "/games/../etc/passwd", "games/b", "b", "", "C:\\games\\b"] {
            assert!(!check(&["/games"], bad), "{bad}");
        }
        assert!(check(&["C:\\Games"], "c:/games/A.exe"));
        assert!(check(&["C:\\Games"], r"\\?\C:\Games\x.exe"));
        for bad in [r"\\?\C:\x.exe", "C:\\Games\\..\\x.exe", "D:\\Games\\x.exe", "C:Games\\x.exe", "/Games/x"] {
            assert!(!check(&["C:\\Games"], bad), "{bad}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_that_leads_out_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        std::fs::create_dir(&root).unwrap();
        std::fs::write(folder.path().join("outside"), "x").unwrap();
        std::fs::write(root.join("inside"), "x").unwrap();
        std::os::unix::fs::symlink(folder.path().join("outside"), root.join("link")).unwrap();
        let roots = [root.to_str().unwrap()];
        assert!(check(&roots, root.join("inside").to_str().unwrap()));
        assert!(!check(&roots, root.join("link").to_str().unwrap()));
    }

    #[test]
    fn a_relative_root_is_refused() {
        assert_eq!(LaunchRoots::new(vec!["games".to_owned()]).unwrap_err().code, ErrorCode::ConfigInvalid);
    }
}
