//! ROMs that were opened, so that a file is read and hashed once for as long as it stays the same file.
//!
//! *The same file* means the same device, inode, size, and times of the last write and the last change (on Windows volume, file
//! index, size and the same two times), asked before and after each operation. With `identity = "sha256"` in the configuration,
//! and for extraction always, the whole file is hashed instead, before and after.

use crate::errors::{ErrorCode, ToolError};
use crate::job::Job;
use crate::workspace::{Identity, Opened, Workspace};
use base::limits;
use nds::Rom;
use sha2::{Digest as _, Sha256};
use std::io::{Read as _, Seek as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What makes a file the one that was read before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RomIdentity {
    /// What the file system says of it.
    #[default]
    Metadata,
    /// All its bytes, hashed each time.
    Sha256,
}

/// The ROMs kept, the one used last at the end.
#[derive(Debug)]
pub struct RomCache {
    identity: RomIdentity,
    most_bytes: u64,
    kept: Mutex<Vec<(Identity, Arc<Rom>)>>,
    /// Held while a ROM is read, so that two calls on one ROM do not read it twice.
    loading: Mutex<()>,
}

impl RomCache {
    /// A cache that keeps at most `most_bytes` of ROMs.
    pub fn new(identity: RomIdentity, most_bytes: u64) -> Self {
        Self { identity, most_bytes, kept: Mutex::default(), loading: Mutex::default() }
    }

    /// Opens a ROM, works on it, and makes sure that it is the same file afterwards. `rehash` hashes it whatever the
    /// configuration says.
    ///
    /// # Errors
    /// Those of opening a file; the model's refusals; those of `work`; `file_changed`; `cancelled`.
    pub fn with<R>(
        &self,
        workspace: &Workspace,
        path: &str,
        rehash: bool,
        job: &Job,
        work: impl FnOnce(&Arc<Rom>) -> Result<R, ToolError>,
    ) -> Result<R, ToolError> {
        let rehash = rehash || self.identity == RomIdentity::Sha256;
        let mut opened = workspace.open_file(path, limits::MAX_NDS_ROM_BYTES)?;
        let identity = opened.identity;
        let rom = self.open(&mut opened, path, rehash, job)?;
        let outcome = work(&rom);
        // A change explains whatever the work says, so it is told first.
        let after = workspace.open_file(path, limits::MAX_NDS_ROM_BYTES);
        let same = match after {
            Ok(mut after) if after.identity == identity => !rehash || hash(&mut after, job)? == rom.sha256(),
            Ok(_) | Err(_) => false,
        };
        if !same {
            self.forget(identity);
            return Err(changed(path));
        }
        outcome
    }

    fn open(&self, opened: &mut Opened, path: &str, rehash: bool, job: &Job) -> Result<Arc<Rom>, ToolError> {
        if let Some(rom) = self.known(opened, rehash, job)? {
            return Ok(rom);
        }
        let _one_at_a_time = locked(&self.loading);
        if let Some(rom) = self.known(opened, rehash, job)? {
            return Ok(rom);
        }
        // Room is made first, so that the old and the new are not in memory together.
        self.make_room(opened.size);
        let bytes = read(opened, path, job)?;
        if Identity::of(&opened.file).ok() != Some(opened.identity) {
            return Err(changed(path));
        }
        let rom = Arc::new(Rom::parse(bytes)?);
        if opened.size <= self.most_bytes {
            locked(&self.kept).push((opened.identity, Arc::clone(&rom)));
        }
        Ok(rom)
    }

    /// The ROM if it was read before and is still the same.
    fn known(&self, opened: &mut Opened, rehash: bool, job: &Job) -> Result<Option<Arc<Rom>>, ToolError> {
        let Some(rom) = self.take_up(opened.identity) else { return Ok(None) };
        if rehash && hash(opened, job)? != rom.sha256() {
            self.forget(opened.identity);
            return Ok(None);
        }
        Ok(Some(rom))
    }

    /// Finds a ROM and makes it the one used last.
    fn take_up(&self, identity: Identity) -> Option<Arc<Rom>> {
        let mut kept = locked(&self.kept);
        let at = kept.iter().position(|(known, _)| *known == identity)?;
        let entry = kept.remove(at);
        let rom = Arc::clone(&entry.1);
        kept.push(entry);
        Some(rom)
    }

    fn forget(&self, identity: Identity) {
        locked(&self.kept).retain(|(known, _)| *known != identity);
    }

    /// Drops those used longest ago until `bytes` more may be kept.
    fn make_room(&self, bytes: u64) {
        let mut kept = locked(&self.kept);
        let mut sum: u64 = kept.iter().map(|(_, rom)| rom.bytes().len() as u64).sum();
        while sum.saturating_add(bytes) > self.most_bytes && !kept.is_empty() {
            sum -= kept.remove(0).1.bytes().len() as u64;
        }
    }
}

/// The lock, whatever became of an earlier holder: the list is whole between any two of its steps.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads a file of a known size whole.
fn read(opened: &mut Opened, path: &str, job: &Job) -> Result<Vec<u8>, ToolError> {
    let failed = |error: std::io::Error| unreadable(path, &error);
    let size = usize::try_from(opened.size).map_err(|_| changed(path))?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(size).map_err(|error| {
        ToolError::new(ErrorCode::OutputBoundExceeded, format!("there is no memory for the {size} bytes: {error}"))
            .hint("free some memory on the server's machine")
    })?;
    while bytes.len() < size {
        job.going_on(bytes.len() as u64, opened.size, "reading the ROM")?;
        let chunk = limits::FILE_CHUNK_BYTES.min((size - bytes.len()) as u64);
        // Asking for no more than there is keeps the buffer from growing.
        if opened.file.by_ref().take(chunk).read_to_end(&mut bytes).map_err(failed)? == 0 {
            return Err(changed(path));
        }
    }
    Ok(bytes)
}

/// SHA-256 of a file from its start, as 64 lowercase hexadecimal digits.
///
/// # Errors
/// `file_refused` when it cannot be read; `cancelled`.
pub fn hash(opened: &mut Opened, job: &Job) -> Result<String, ToolError> {
    let shown = opened.path.display().to_string();
    let failed = |error: std::io::Error| unreadable(&shown, &error);
    opened.file.rewind().map_err(failed)?;
    let mut hasher = Sha256::new();
    let mut chunk = Vec::new();
    let mut done = 0;
    loop {
        job.going_on(done, opened.size, "hashing the file")?;
        chunk.clear();
        let got = opened.file.by_ref().take(limits::FILE_CHUNK_BYTES).read_to_end(&mut chunk).map_err(failed)?;
        if got == 0 {
            break;
        }
        hasher.update(&chunk);
        done += got as u64;
    }
    opened.file.rewind().map_err(failed)?;
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

fn unreadable(path: &str, error: &std::io::Error) -> ToolError {
    ToolError::new(ErrorCode::FileRefused, format!("`{path}` cannot be read: {error}"))
        .hint("check the rights of the file and the disk")
}

/// The refusal of a file that did not stay the same.
pub fn changed(path: &str) -> ToolError {
    ToolError::new(ErrorCode::FileChanged, format!("`{path}` changed while it was worked on"))
        .hint("let nothing write to the ROM during a call, and call again")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A workspace with three small ROMs.
    fn workspace() -> (tempfile::TempDir, Workspace) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for (name, byte) in [("a", 1), ("b", 2), ("c", 3)] {
            fs::write(root.join(name), rom(byte)).unwrap();
        }
        let workspace = Workspace::open(&root).unwrap();
        (folder, workspace)
    }

    /// A ROM of 2,048 bytes whose last is `byte`; its ARM9 program is the word behind the header.
    fn rom(byte: u8) -> Vec<u8> {
        let mut rom = vec![0; 2_048];
        for (at, word) in [(0x20, 0x400_u32), (0x24, 0x0200_0000), (0x28, 0x0200_0000), (0x2c, 4)] {
            rom[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
        rom[2_047] = byte;
        rom
    }

    fn open(cache: &RomCache, workspace: &Workspace, path: &str) -> Arc<Rom> {
        cache.with(workspace, path, false, &Job::default(), |rom| Ok(Arc::clone(rom))).unwrap()
    }

    #[test]
    fn a_rom_is_read_once_and_again_when_it_changed() {
        let (_folder, workspace) = workspace();
        let cache = RomCache::new(RomIdentity::Metadata, 10_000);
        let first = open(&cache, &workspace, "a");
        assert!(Arc::ptr_eq(&first, &open(&cache, &workspace, "./a")));
        fs::write(workspace.root().join("new"), rom(9)).unwrap();
        fs::rename(workspace.root().join("new"), workspace.root().join("a")).unwrap();
        let second = open(&cache, &workspace, "a");
        assert_eq!(second.bytes()[2_047], 9);
    }

    #[test]
    fn the_one_used_longest_ago_makes_room() {
        let (_folder, workspace) = workspace();
        let cache = RomCache::new(RomIdentity::Metadata, 2 * 2_048);
        let (a, b) = (open(&cache, &workspace, "a"), open(&cache, &workspace, "b"));
        assert!(Arc::ptr_eq(&a, &open(&cache, &workspace, "a")));
        open(&cache, &workspace, "c");
        assert!(Arc::ptr_eq(&a, &open(&cache, &workspace, "a")));
        assert!(!Arc::ptr_eq(&b, &open(&cache, &workspace, "b")));
        // What is larger than the whole cache is worked on all the same.
        let small = RomCache::new(RomIdentity::Metadata, 2_047);
        assert!(!Arc::ptr_eq(&open(&small, &workspace, "a"), &open(&small, &workspace, "a")));
    }

    #[test]
    fn a_change_during_the_work_is_an_error() {
        let (_folder, workspace) = workspace();
        let place = workspace.root().join("a");
        for rehash in [false, true] {
            let cache = RomCache::new(RomIdentity::Metadata, 10_000);
            for change in [
                &(|| fs::write(&place, rom(7)).unwrap()) as &dyn Fn(),
                &|| drop(fs::OpenOptions::new().append(true).open(&place).unwrap().set_len(3_000)),
                &|| fs::remove_file(&place).unwrap(),
            ] {
                fs::write(&place, rom(1)).unwrap();
                let changing = cache.with(&workspace, "a", rehash, &Job::default(), |_| {
                    // Beyond the coarsest clock that stamps files.
                    std::thread::sleep(std::time::Duration::from_millis(20));
                    change();
                    Ok(())
                });
                assert_eq!(changing.unwrap_err().code, ErrorCode::FileChanged);
            }
        }
    }

    #[cfg(unix)]
    #[test]
    fn hashing_notices_what_times_do_not_tell() {
        let (_folder, workspace) = workspace();
        let identity = workspace.identity("a", 10_000).unwrap();
        let other = Arc::new(Rom::parse(rom(8)).unwrap());
        for (kind, found) in [(RomIdentity::Metadata, 8), (RomIdentity::Sha256, 1)] {
            let cache = RomCache::new(kind, 10_000);
            // As if the file had been written to with all its times kept.
            locked(&cache.kept).push((identity, Arc::clone(&other)));
            let path = "a";
            let outcome = cache.with(&workspace, path, false, &Job::default(), |rom| Ok(rom.bytes()[2_047]));
            assert_eq!(outcome.unwrap(), found, "{kind:?}");
        }
    }

    #[test]
    fn a_hash_is_that_of_the_whole_file() {
        let (_folder, workspace) = workspace();
        fs::write(workspace.root().join("abc"), "abc").unwrap();
        let mut opened = workspace.open_file("abc", 100).unwrap();
        // FIPS 180-2, appendix B.1.
        let published = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hash(&mut opened, &Job::default()).unwrap(), published);
    }

    #[test]
    fn a_cancelled_call_reads_no_further() {
        let (_folder, workspace) = workspace();
        let cache = RomCache::new(RomIdentity::Metadata, 10_000);
        let outcome = cache.with(&workspace, "a", false, &Job::cancelled(), |_| Ok(()));
        assert_eq!(outcome.unwrap_err().code, ErrorCode::Cancelled);
    }
}
