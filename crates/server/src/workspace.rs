//! Files below one folder, opened by descriptor, so that neither `..` nor a symbolic link leads out of it; and writing them so
//! that a reader sees the old file or the new one, never half of it.

use crate::errors::{ErrorCode, ToolError};
use base::limits;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, OpenOptions};
use std::fs::TryLockError;
use std::io::{self, Write as _};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The folder that tools work below.
#[derive(Debug)]
pub struct Workspace {
    root: PathBuf,
    folder: Dir,
    #[cfg(test)]
    pub(crate) observer: tests::Observer,
}

/// A file to read, known to be a regular one of an allowed size.
#[derive(Debug)]
pub struct Opened {
    /// The file, opened for reading only.
    pub file: std::fs::File,
    /// Where it is, for people.
    pub path: PathBuf,
    /// Bytes it has.
    pub size: u64,
    /// What tells it from every other file, and from itself once it is written to.
    pub identity: Identity,
}

/// What tells a file from every other, and from itself before somebody wrote to it. Who writes to a file and then sets every
/// one of these back is not noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Device, or serial number of the volume.
    device: u64,
    /// Inode, or file index.
    file: u64,
    size: u64,
    /// Time of the last write, as the system counts.
    written: (i64, i64),
    /// Time of the last change of anything, names and rights included.
    changed: (i64, i64),
}

impl Workspace {
    /// Opens the folder.
    ///
    /// # Errors
    /// `config_invalid` when it cannot be opened.
    pub fn open(root: &Path) -> Result<Self, ToolError> {
        let failed = |error: io::Error| {
            ToolError::new(ErrorCode::ConfigInvalid, format!("the workspace {}: {error}", root.display()))
        };
        let folder = Dir::open_ambient_dir(root, ambient_authority()).map_err(failed)?;
        Ok(Self {
            root: root.to_owned(),
            folder,
            #[cfg(test)]
            observer: tests::Observer::default(),
        })
    }

    /// Tells a test how far work that publishes something is; outside of tests there is nobody to tell.
    pub fn reached(&self, step: &str) {
        #[cfg(test)]
        self.observer.tell(step);
        #[cfg(not(test))]
        let _: &str = step;
    }

    /// The folder's path.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    /// `path_refused` for a path that leads out; `file_not_found`; `file_refused` for what is no regular file, is empty, or
    /// has more than `most` bytes.
    pub fn open_file(&self, path: &str, most: u64) -> Result<Opened, ToolError> {
        let opened = self.open_any_file(path, most)?;
        if opened.size == 0 {
            let empty = ToolError::new(ErrorCode::FileRefused, format!("`{path}` is empty: it has 0 bytes"));
            return Err(empty.hint("name a file with something in it"));
        }
        Ok(opened)
    }

    /// Opens a file for reading, an empty one too.
    ///
    /// # Errors
    /// As `open_file`.
    pub fn open_any_file(&self, path: &str, most: u64) -> Result<Opened, ToolError> {
        let relative = self.relative(path)?;
        let failed = |error: io::Error| self.refusal(path, &error);
        // Asked by name first: opening a pipe or a device may already do something.
        let kind = self.folder.metadata(&relative).map_err(failed)?;
        check_kind(path, kind.is_file(), kind.is_dir())?;
        let mut options = OpenOptions::new();
        options.read(true);
        #[cfg(unix)]
        {
            use cap_std::fs::OpenOptionsExt as _;
            // It may have become a pipe since, and opening one waits for its writer.
            options.custom_flags(nix::fcntl::OFlag::O_NONBLOCK.bits());
        }
        let file = self.folder.open_with(&relative, &options).map_err(failed)?.into_std();
        let metadata = file.metadata().map_err(failed)?;
        check_kind(path, metadata.is_file(), metadata.is_dir())?;
        let size = metadata.len();
        if size > most {
            let large = format!("`{path}` has {size} bytes; {most} are allowed");
            return Err(ToolError::new(ErrorCode::FileRefused, large)
                .hint("name a smaller file")
                .detail("limit", most)
                .detail("size", size));
        }
        let identity = Identity::of(&file).map_err(failed)?;
        Ok(Opened { file, path: self.root.join(&relative), size, identity })
    }

    /// The identity of what is at a path now.
    ///
    /// # Errors
    /// As `open_file`.
    pub fn identity(&self, path: &str, most: u64) -> Result<Identity, ToolError> {
        self.open_file(path, most).map(|opened| opened.identity)
    }

    /// Writes a file whole: under another name, to the disk, then by its name. One that is there is replaced.
    /// Gives the path for people.
    ///
    /// # Errors
    /// `generated-path-failure`, with nothing changed.
    pub fn write(&self, relative: &Path, contents: &[u8]) -> Result<PathBuf, ToolError> {
        self.try_write(relative, contents).map_err(|error| self.unwritable(relative, &error))?;
        Ok(self.root.join(relative))
    }

    fn try_write(&self, relative: &Path, contents: &[u8]) -> io::Result<()> {
        let name = relative.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let folder = self.make_folder(relative.parent().unwrap_or(Path::new("")))?;
        let temporary = temporary_name();
        let written = write_new(&folder, Path::new(&temporary), contents)
            .and_then(|()| folder.rename(&temporary, &folder, name))
            .and_then(|()| sync_folder(&folder));
        if written.is_err() {
            // What failed is told; a name that was never made cannot be removed.
            drop(folder.remove_file(&temporary));
        }
        written
    }

    /// Refuses what would replace a file that is read from: `source` itself, or another name of it, at `relative` or below.
    ///
    /// # Errors
    /// `generated-path-failure`; those of opening `source`.
    pub fn refuse_to_replace(&self, relative: &Path, source: &str) -> Result<(), ToolError> {
        let source_file = self.open_any_file(source, u64::MAX)?.identity;
        let Some(found) = self.same_file_below(relative, &source_file) else { return Ok(()) };
        Err(ToolError::new(
            ErrorCode::GeneratedPathFailure,
            format!(
                "{} is `{source}` itself, by this or another name, and would be replaced",
                self.root.join(found).display()
            ),
        )
        .hint("nothing was changed; move that file away, or make it a copy instead of a hard link"))
    }

    /// The path of a file at `relative` or below it that is the same as another.
    fn same_file_below(&self, relative: &Path, wanted: &Identity) -> Option<PathBuf> {
        let mut left = vec![relative.to_owned()];
        while let Some(path) = left.pop() {
            // What cannot be looked at is refused where it is written to.
            let Ok(found) = self.folder.symlink_metadata(&path) else { continue };
            if found.is_dir() {
                let names = self.folder.read_dir(&path).into_iter().flatten().flatten();
                left.extend(names.map(|entry| path.join(entry.file_name())));
            } else if found.is_file()
                && let Ok(file) = self.folder.open(&path)
                && let Ok(identity) = Identity::of(&file.into_std())
                && (identity.device, identity.file) == (wanted.device, wanted.file)
            {
                return Some(path);
            }
        }
        None
    }

    /// Where a file will be made: its path from the root. Nothing is written yet.
    ///
    /// # Errors
    /// `path_refused` for a path that leads out; `file_not_found` when its folder is not there; `file_exists` when it is
    /// there itself, unless it may be overwritten; `file_refused` when it is no file.
    pub fn new_file(&self, path: &str, overwrite: bool) -> Result<PathBuf, ToolError> {
        let relative = self.relative(path)?;
        let above = relative.parent().filter(|above| !above.as_os_str().is_empty());
        let above = above.map_or_else(|| Ok(true), |above| self.folder.metadata(above).map(|found| found.is_dir()));
        match above {
            Ok(true) => {}
            Ok(false) => return Err(ToolError::new(ErrorCode::FileRefused, format!("`{path}` is not below a folder"))),
            Err(error) => return Err(self.refusal(path, &error).hint("make the folder first")),
        }
        // A link is the file that is there, wherever it leads.
        match self.folder.symlink_metadata(&relative) {
            Ok(found) if found.is_dir() => Err(ToolError::new(ErrorCode::FileRefused, format!("`{path}` is a folder"))),
            Ok(_) if !overwrite => Err(already_there(path)),
            Ok(_) => Ok(relative),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(relative),
            Err(error) => Err(self.refusal(path, &error)),
        }
    }

    /// Writes a file whole, readable by its owner alone: under another name, to the disk, then by its name. Gives the path
    /// for people.
    ///
    /// # Errors
    /// `file_exists` when it has come meanwhile and may not be overwritten; `file_refused`, with nothing changed.
    pub fn write_file(&self, relative: &Path, contents: &[u8], overwrite: bool) -> Result<PathBuf, ToolError> {
        let path = self.root.join(relative);
        self.try_write_file(relative, contents, overwrite).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => already_there(&relative.display().to_string()),
            _ => ToolError::new(ErrorCode::FileRefused, format!("{} cannot be written: {error}", path.display()))
                .hint("nothing was changed there; check rights and free space"),
        })?;
        Ok(path)
    }

    fn try_write_file(&self, relative: &Path, contents: &[u8], overwrite: bool) -> io::Result<()> {
        let name = relative.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let folder = match relative.parent().filter(|above| !above.as_os_str().is_empty()) {
            Some(above) => self.folder.open_dir(above)?,
            None => self.folder.try_clone()?,
        };
        let temporary = temporary_name();
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        {
            use cap_std::fs::OpenOptionsExt as _;
            options.mode(0o600);
        }
        let written = folder.open_with(&temporary, &options).and_then(|mut file| {
            file.write_all(contents)?;
            file.sync_all()?;
            if overwrite {
                return folder.rename(&temporary, &folder, name);
            }
            // A second name, unlike a rename, replaces nothing.
            folder.hard_link(&temporary, &folder, name)?;
            folder.remove_file(&temporary)
        });
        let written = written.and_then(|()| sync_folder(&folder));
        if written.is_err() {
            // What failed is told; a name that was never made cannot be removed.
            drop(folder.remove_file(&temporary));
        }
        written
    }

    /// Writes a folder whole, all files or none. One that is there is replaced; when that fails it is there again.
    /// Gives the path for people.
    ///
    /// # Errors
    /// `generated-path-failure`, with the old folder as it was.
    pub fn write_folder(&self, relative: &Path, files: &[(PathBuf, &[u8])]) -> Result<PathBuf, ToolError> {
        self.try_write_folder(relative, files).map_err(|error| self.unwritable(relative, &error))?;
        Ok(self.root.join(relative))
    }

    fn try_write_folder(&self, relative: &Path, files: &[(PathBuf, &[u8])]) -> io::Result<()> {
        let name = relative.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let above = self.make_folder(relative.parent().unwrap_or(Path::new("")))?;
        let (fresh, aside) = (temporary_name(), temporary_name());
        let outcome =
            fill(&above, &fresh, files, &|_| ()).and_then(|()| exchange(&above, name.as_ref(), &fresh, &aside));
        if outcome.is_err() {
            drop(above.remove_dir_all(&fresh));
        }
        outcome
    }

    /// Writes a folder whole where nothing is yet, and never over anything. `Ok(false)` when something is there.
    ///
    /// # Errors
    /// The code is that of the step: `staging-failed` while nothing has its name yet, `publish-failed` after.
    pub fn publish_folder(&self, relative: &Path, files: &[(PathBuf, &[u8])]) -> Result<bool, ToolError> {
        let refused = |code: ErrorCode| {
            move |error: io::Error| {
                ToolError::new(code, format!("{} cannot be written: {error}", relative.display())).hint(
                    "nothing is left of it; check rights and free space, and that no link below `output` leads out",
                )
            }
        };
        let staging = refused(ErrorCode::StagingFailed);
        let name = relative.file_name().ok_or_else(|| staging(io::ErrorKind::InvalidInput.into()))?;
        self.reached("making the folders above");
        let above = self.make_folder(relative.parent().unwrap_or(Path::new(""))).map_err(&staging)?;
        self.reached("removing what was abandoned");
        let _held = hold_staging(&above).map_err(&staging)?;
        let fresh = temporary_name();
        if let Err(error) = fill(&above, &fresh, files, &|step| self.reached(step)) {
            drop(above.remove_dir_all(&fresh));
            return Err(staging(error));
        }
        self.reached("renaming");
        let moved = above.rename(&fresh, &above, name);
        self.reached(if moved.is_ok() { "renamed" } else { "not renamed" });
        if moved.is_err() {
            drop(above.remove_dir_all(&fresh));
        }
        // A folder with something in it is never replaced by a rename.
        match moved {
            Ok(()) => sync_folder(&above).map(|()| true).map_err(refused(ErrorCode::PublishFailed)),
            Err(_) if above.symlink_metadata(name).is_ok() => Ok(false),
            Err(error) => Err(refused(ErrorCode::PublishFailed)(error)),
        }
    }

    /// The names in a folder, sorted; `None` when it is not there.
    ///
    /// # Errors
    /// As `open_file`.
    pub fn names(&self, relative: &Path) -> Result<Option<Vec<String>>, ToolError> {
        let path = relative.display().to_string();
        let entries = match self.folder.read_dir(relative) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.refusal(&path, &error)),
        };
        let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        let mut names = names.collect::<io::Result<Vec<_>>>().map_err(|error| self.refusal(&path, &error))?;
        names.sort();
        Ok(Some(names))
    }

    /// Whether a path names a link.
    pub fn is_link(&self, path: &str) -> bool {
        let metadata = self.relative(path).ok().and_then(|relative| self.folder.symlink_metadata(relative).ok());
        metadata.is_some_and(|metadata| metadata.is_symlink())
    }

    /// Makes a folder and those above it, and opens it.
    fn make_folder(&self, relative: &Path) -> io::Result<Dir> {
        if relative.as_os_str().is_empty() {
            return self.folder.try_clone();
        }
        self.folder.create_dir_all(relative)?;
        self.folder.open_dir(relative)
    }

    /// The path from the root: of a relative path itself, of an absolute one what follows the root.
    fn relative(&self, path: &str) -> Result<PathBuf, ToolError> {
        if path.is_empty() || path.contains('\0') {
            return Err(ToolError::new(ErrorCode::InvalidArguments, "the path is empty or has a zero in it")
                .hint("name a file below the workspace"));
        }
        let given = Path::new(path);
        let relative = if given.is_absolute() { self.below_root(given) } else { Some(given.to_owned()) };
        relative.filter(|relative| stays_below(relative)).ok_or_else(|| self.outside(path))
    }

    fn below_root(&self, given: &Path) -> Option<PathBuf> {
        // Another name of the same folder is as good: what is opened is still found from the root's descriptor.
        let real = || given.canonicalize().ok().and_then(|real| Some(real.strip_prefix(&self.root).ok()?.to_owned()));
        given.strip_prefix(&self.root).ok().map(Path::to_owned).or_else(real)
    }

    fn outside(&self, path: &str) -> ToolError {
        let shown: String = path.chars().take(200).collect();
        ToolError::new(
            ErrorCode::Agent(wire::ErrorCode::PathRefused),
            format!("`{shown}` leads out of the workspace {}", self.root.display()),
        )
        .hint("name a file below the workspace, or start the server with another --workspace")
    }

    fn refusal(&self, path: &str, error: &io::Error) -> ToolError {
        let shown: String = path.chars().take(200).collect();
        match error.kind() {
            io::ErrorKind::NotFound => {
                ToolError::new(ErrorCode::FileNotFound, format!("there is no `{shown}` in {}", self.root.display()))
                    .hint("paths are relative to the workspace")
            }
            // So cap-std refuses a path that leaves the folder; the system's own refusals have a number.
            io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => self.outside(path),
            _ => ToolError::new(ErrorCode::FileRefused, format!("`{shown}` cannot be read: {error}"))
                .hint("check the path and the rights of the file"),
        }
    }

    /// What stands where a folder above a path should be.
    fn obstacle(&self, relative: &Path) -> Option<String> {
        let above: Vec<&Path> = relative.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()).collect();
        let (at, found) = above
            .into_iter()
            .rev()
            .map_while(|above| Some((above, self.folder.symlink_metadata(above).ok()?)))
            .find(|(above, found)| !found.is_dir() && !self.folder.metadata(above).is_ok_and(|end| end.is_dir()))?;
        let what = if found.is_symlink() { "a link that leads to no folder of the workspace" } else { "no folder" };
        Some(format!("{} is {what}", self.root.join(at).display()))
    }

    fn unwritable(&self, relative: &Path, error: &io::Error) -> ToolError {
        let why = self.obstacle(relative).unwrap_or_else(|| error.to_string());
        ToolError::new(
            ErrorCode::GeneratedPathFailure,
            format!("{} cannot be written: {why}", self.root.join(relative).display()),
        )
        .hint("nothing was changed there; check rights and free space, and that no link below `analysis` leads out")
    }
}

/// Whether a relative path never goes above where it starts. The descriptor holds too; this gives the better message.
fn stays_below(path: &Path) -> bool {
    let mut depth = 0_i64;
    for component in path.components() {
        match component {
            Component::Normal(_) => depth += 1,
            Component::ParentDir => depth -= 1,
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return false,
        }
        if depth < 0 {
            return false;
        }
    }
    true
}

fn already_there(path: &str) -> ToolError {
    ToolError::new(ErrorCode::FileExists, format!("`{path}` already exists"))
        .hint("pass overwrite=true to replace it, or name another file")
}

fn check_kind(path: &str, is_file: bool, is_folder: bool) -> Result<(), ToolError> {
    if is_file {
        return Ok(());
    }
    let what = if is_folder { "a folder" } else { "a pipe, a socket or a device" };
    Err(ToolError::new(ErrorCode::FileRefused, format!("`{path}` is {what}")).hint("name a regular file"))
}

/// A name that nothing else has: an earlier process of this number may have left one.
fn temporary_name() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    format!(".retroscope-{}-{now:x}-{}.tmp", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Says that something is being staged in a folder, until the answer is dropped. When nobody else says so, what is staged
/// there was left by servers that were killed, and is removed: the system takes the lock from a process that ends, where a
/// number of a process may belong to another one by then, above all in a container.
fn hold_staging(folder: &Dir) -> io::Result<Option<std::fs::File>> {
    if !cfg!(target_os = "linux") {
        return Ok(None);
    }
    let held = folder.open(".")?.into_std();
    // What cannot be locked, as on some file systems of a network, is staged in all the same, and nothing removed.
    if held.try_lock().is_ok() {
        for entry in folder.entries()?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let staged = name.starts_with(".retroscope-") && name.ends_with(".tmp");
            if staged && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folder.remove_dir_all(&name)?;
            }
        }
    }
    // Who removes is done in an instant, or is no server of ours that works.
    for _ in 0..limits::STAGING_LOCK_TRIES {
        match held.try_lock_shared() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(limits::STAGING_LOCK_WAIT_MS)),
            Ok(()) | Err(TryLockError::Error(_)) => return Ok(Some(held)),
        }
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "another process holds a lock on the folder above"))
}

fn write_new(folder: &Dir, name: &Path, contents: &[u8]) -> io::Result<()> {
    let mut file: File = folder.open_with(name, OpenOptions::new().write(true).create_new(true))?;
    file.write_all(contents)?;
    file.sync_all()
}

/// Makes names last: on Unix they are content of the folder.
fn sync_folder(folder: &Dir) -> io::Result<()> {
    if cfg!(unix) { folder.open(".")?.sync_all() } else { Ok(()) }
}

fn fill(above: &Dir, name: &str, files: &[(PathBuf, &[u8])], reached: &dyn Fn(&str)) -> io::Result<()> {
    reached("making the staging folder");
    above.create_dir(name)?;
    let folder = above.open_dir(name)?;
    for (path, contents) in files {
        reached("writing a file");
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            folder.create_dir_all(parent)?;
        }
        write_new(&folder, path, contents)?;
        reached("wrote a file");
    }
    sync_folder(&folder)
}

/// Puts `fresh` where `name` is, and `name` back when that fails.
fn exchange(above: &Dir, name: &Path, fresh: &str, aside: &str) -> io::Result<()> {
    let had_one = match above.rename(name, above, aside) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(error),
    };
    if let Err(error) = above.rename(fresh, above, name) {
        if had_one {
            above.rename(aside, above, name)?;
        }
        return Err(error);
    }
    if had_one {
        above.remove_dir_all(aside)?;
    }
    sync_folder(above)
}

impl Identity {
    /// The identity of an open file.
    ///
    /// # Errors
    /// When the system does not tell.
    #[cfg(unix)]
    pub fn of(file: &std::fs::File) -> io::Result<Self> {
        use std::os::unix::fs::MetadataExt as _;
        let metadata = file.metadata()?;
        Ok(Self {
            device: metadata.dev(),
            file: metadata.ino(),
            size: metadata.size(),
            written: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }

    /// The identity of an open file.
    ///
    /// # Errors
    /// When the system does not tell.
    #[cfg(windows)]
    pub fn of(file: &std::fs::File) -> io::Result<Self> {
        let found = agent::platform::win32::file_identity(file)?;
        Ok(Self {
            device: found.volume.into(),
            file: found.index,
            size: found.size,
            written: (found.written, 0),
            changed: (found.changed, 0),
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    type Told = Box<dyn Fn(&str) + Send>;

    /// What a test does at each step of publishing.
    #[derive(Default)]
    pub(crate) struct Observer(std::sync::Mutex<Option<Told>>);

    impl std::fmt::Debug for Observer {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("Observer")
        }
    }

    impl Observer {
        pub(crate) fn set(&self, told: impl Fn(&str) + Send + 'static) {
            *self.0.lock().unwrap() = Some(Box::new(told));
        }

        pub(super) fn tell(&self, step: &str) {
            if let Some(told) = &*self.0.lock().unwrap() {
                told(step);
            }
        }
    }

    fn workspace() -> (tempfile::TempDir, Workspace) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("root");
        std::fs::create_dir(&root).unwrap();
        std::fs::write(folder.path().join("outside"), "secret").unwrap();
        std::fs::write(root.join("inside"), "open").unwrap();
        let workspace = Workspace::open(&root).unwrap();
        (folder, workspace)
    }

    fn code(workspace: &Workspace, path: &str) -> &'static str {
        workspace.open_file(path, 100).map_or_else(|error| error.code.word(), |_| "opened")
    }

    #[test]
    fn files_below_the_root_are_opened_by_any_of_their_names() {
        let (_folder, workspace) = workspace();
        std::fs::create_dir(workspace.root().join("sub")).unwrap();
        std::fs::write(workspace.root().join("..name"), "x").unwrap();
        let absolute = workspace.root().join("inside").display().to_string();
        for path in ["inside", "./inside", "sub/../inside", "..name", &absolute] {
            assert_eq!(code(&workspace, path), "opened", "{path}");
        }
        assert_eq!(workspace.open_file("inside", 4).unwrap().size, 4);
    }

    #[test]
    fn nothing_leads_out() {
        let (folder, workspace) = workspace();
        let outside = folder.path().join("outside").display().to_string();
        for path in ["../outside", "sub/../../outside", &outside, "/etc/passwd", ".."] {
            assert_eq!(code(&workspace, path), "path_refused", "{path}");
        }
        assert_eq!(code(&workspace, ""), "invalid_arguments");
        assert_eq!(code(&workspace, "absent"), "file_not_found");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_that_leads_out_is_refused_and_one_that_stays_is_followed() {
        use std::os::unix::fs::symlink;
        let (folder, workspace) = workspace();
        let root = workspace.root();
        symlink(folder.path().join("outside"), root.join("absolute")).unwrap();
        symlink("../outside", root.join("relative")).unwrap();
        symlink(folder.path(), root.join("folder")).unwrap();
        symlink("inside", root.join("stays")).unwrap();
        for path in ["absolute", "relative", "folder/outside"] {
            assert_eq!(code(&workspace, path), "path_refused", "{path}");
            let absolute = root.join(path).display().to_string();
            assert_eq!(code(&workspace, &absolute), "path_refused", "{absolute}");
        }
        assert_eq!(code(&workspace, "stays"), "opened");
        // Nor does writing follow one out.
        symlink(folder.path(), root.join("analysis")).unwrap();
        let error = workspace.write(Path::new("analysis/generated/x"), b"x").unwrap_err();
        assert_eq!(error.code.word(), "generated-path-failure");
        assert!(!folder.path().join("generated").exists());
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_file_is_refused_without_waiting() {
        let (_folder, workspace) = workspace();
        let pipe = workspace.root().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(workspace.root().join("socket")).unwrap();
        std::fs::create_dir(workspace.root().join("sub")).unwrap();
        for path in ["pipe", "socket", "sub", "."] {
            assert_eq!(code(&workspace, path), "file_refused", "{path}");
        }
    }

    #[test]
    fn size_decides_before_anything_is_read() {
        let (_folder, workspace) = workspace();
        std::fs::write(workspace.root().join("empty"), "").unwrap();
        let large = std::fs::File::create(workspace.root().join("large")).unwrap();
        large.set_len(600 << 20).unwrap();
        let line = |path: &str, most| workspace.open_file(path, most).unwrap_err().line();
        assert!(line("empty", 100).contains("0 bytes"));
        assert!(line("large", 512 << 20).contains("629145600 bytes; 536870912 are allowed"));
        assert!(line("inside", 3).contains("4 bytes; 3 are allowed"));
    }

    #[test]
    fn an_identity_changes_with_the_file() {
        let (_folder, workspace) = workspace();
        let before = workspace.identity("inside", 100).unwrap();
        assert_eq!(workspace.identity("inside", 100).unwrap(), before);
        std::fs::write(workspace.root().join("other"), "open").unwrap();
        assert_ne!(workspace.identity("other", 100).unwrap(), before);
        std::fs::rename(workspace.root().join("other"), workspace.root().join("inside")).unwrap();
        assert_ne!(workspace.identity("inside", 100).unwrap(), before);
    }

    #[test]
    fn a_file_is_written_whole_and_leaves_nothing_beside_it() {
        let (_folder, workspace) = workspace();
        for contents in ["first", "second"] {
            let path = workspace.write(Path::new("a/b/c.bin"), contents.as_bytes()).unwrap();
            assert_eq!(std::fs::read_to_string(path).unwrap(), contents);
        }
        // A folder in the way is no file to replace.
        workspace.write(Path::new("a/b/d/e"), b"x").unwrap();
        assert!(workspace.write(Path::new("a/b/d"), b"x").is_err());
        let mut names: Vec<_> = std::fs::read_dir(workspace.root().join("a/b"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, ["c.bin", "d"]);
    }

    #[test]
    fn a_folder_is_replaced_whole_or_not_at_all() {
        let (_folder, workspace) = workspace();
        let place = Path::new("out/bundle");
        let good = [(PathBuf::from("x/y"), b"1".as_slice()), (PathBuf::from("z"), b"2")];
        workspace.write_folder(place, &good).unwrap();
        workspace.write_folder(place, &[(PathBuf::from("w"), b"3".as_slice())]).unwrap();
        let root = workspace.root().join(place);
        assert!(root.join("w").exists() && !root.join("z").exists());
        // The second file of this one cannot be made: its folder is the first file.
        let bad = [(PathBuf::from("v"), b"4".as_slice()), (PathBuf::from("v/u"), b"5")];
        assert_eq!(workspace.write_folder(place, &bad).unwrap_err().code, ErrorCode::GeneratedPathFailure);
        let names: Vec<_> = std::fs::read_dir(workspace.root().join("out")).unwrap().collect();
        assert_eq!(names.len(), 1, "{names:?}");
        assert_eq!(std::fs::read(root.join("w")).unwrap(), b"3");
    }

    #[test]
    fn the_old_folder_comes_back_when_the_new_one_cannot_take_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let above = Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap();
        above.create_dir("old").unwrap();
        above.write("old/file", b"1").unwrap();
        assert!(exchange(&above, Path::new("old"), "never made", "aside").is_err());
        assert_eq!(above.read("old/file").unwrap(), b"1");
        assert!(!above.exists("aside"));
    }

    #[test]
    fn a_new_file_replaces_nothing_unless_told_to() {
        let (_folder, workspace) = workspace();
        let refused = |path: &str, overwrite| workspace.new_file(path, overwrite).unwrap_err().code.word();
        assert_eq!(refused("inside", false), "file_exists");
        assert_eq!(refused("absent/new", false), "file_not_found");
        assert_eq!(refused("inside/new", false), "file_refused");
        assert_eq!(refused("../new", true), "path_refused");
        std::fs::create_dir(workspace.root().join("sub")).unwrap();
        assert_eq!(refused("sub", true), "file_refused");

        let place = workspace.new_file("sub/new", false).unwrap();
        let written = workspace.write_file(&place, b"one", false).unwrap();
        assert_eq!(std::fs::read(&written).unwrap(), b"one");
        assert_eq!(workspace.write_file(&place, b"two", false).unwrap_err().code.word(), "file_exists");
        assert_eq!(std::fs::read(&written).unwrap(), b"one");
        workspace.write_file(&workspace.new_file("sub/new", true).unwrap(), b"two", true).unwrap();
        assert_eq!(std::fs::read(&written).unwrap(), b"two");
        assert_eq!(std::fs::read_dir(workspace.root().join("sub")).unwrap().count(), 1, "nothing is left beside it");
        #[cfg(unix)]
        {
            use std::os::unix::fs::{MetadataExt as _, symlink};
            assert_eq!(std::fs::metadata(&written).unwrap().mode() & 0o777, 0o600);
            symlink("../..", workspace.root().join("up")).unwrap();
            assert_eq!(refused("up/new", false), "path_refused");
        }
    }
}
