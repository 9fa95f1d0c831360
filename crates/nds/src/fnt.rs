//! The file name table, the authority for names (GBATEK, "DS Cartridge NitroROM and NitroARC File Systems", "FNT").

use base::{Budget, Reader, limits};

use crate::fat::File;
use crate::header::Table;
use crate::problems::Problems;

/// Number of the root directory; those of the others follow.
const ROOT: u16 = 0xf000;
/// Bytes of a directory's entry in the main table.
const DIRECTORY_BYTES: u64 = 8;

/// A directory that is to be read: its number and its path with a slash at its end, empty for the root.
struct Open {
    id: u16,
    path: String,
}

/// The table while it is read.
struct Walk<'a, 'p> {
    table: &'a [u8],
    /// Where the table is in the ROM.
    at: u64,
    count: u16,
    seen: Vec<bool>,
    open: Vec<Open>,
    paths: Budget,
    problems: &'p mut Problems,
}

/// Gives the files their names. Every directory is read once at most, so the walk ends whatever the table says.
/// Answers how many directories were reached, the root included.
pub(crate) fn name_files(rom: &[u8], table: Table, files: &mut [File], problems: &mut Problems) -> usize {
    if table.size == 0 {
        return 0;
    }
    let rom_len = rom.len() as u64;
    let at = u64::from(table.offset);
    let claimed = table.rom();
    let there = claimed.start.min(rom_len)..claimed.end.min(rom_len);
    if there != claimed {
        problems.at("fnt-out-of-range", 0x40, || {
            format!(
                "the FNT is said to be at 0x{at:x} with {} bytes, past the end of the file at 0x{rom_len:x}",
                table.size
            )
        });
    }
    let Ok(bytes) = Reader::new(rom).slice(there) else { return 0 };
    let root = Reader::new(bytes).at(6).and_then(|mut reader| reader.u16());
    let Ok(count) = root else {
        problems.at("fnt-cut-off", at, || "the FNT is too short for the root directory: no file has a name".to_owned());
        return 0;
    };
    if count == 0 || count > limits::MAX_NDS_DIRECTORIES {
        problems.at("fnt-directory-count", at + 6, || {
            format!(
                "the root directory says that there are {count} directories; 1 to {} are possible: no file has a name",
                limits::MAX_NDS_DIRECTORIES
            )
        });
        return 0;
    }
    let mut walk = Walk {
        table: bytes,
        at,
        count,
        seen: vec![false; usize::from(count)],
        open: Vec::new(),
        paths: Budget::new(limits::MAX_NDS_PATHS_BYTES),
        problems,
    };
    walk.open(ROOT, String::new());
    while let Some(directory) = walk.open.pop() {
        walk.directory(&directory, files);
    }
    let reached = walk.seen.iter().filter(|seen| **seen).count();
    if reached < usize::from(count) {
        let missing = usize::from(count) - reached;
        problems.at("fnt-unreachable", at, || {
            format!("{missing} of {count} directories are in no other one: their files have no names")
        });
    }
    reached
}

impl Walk<'_, '_> {
    /// Puts a directory on the list, unless it was there before.
    fn open(&mut self, id: u16, path: String) -> bool {
        match self.seen.get_mut(usize::from(id.wrapping_sub(ROOT))) {
            Some(seen) if !*seen => {
                *seen = true;
                self.open.push(Open { id, path });
                true
            }
            _ => false,
        }
    }

    /// Reads one directory's list of names.
    fn directory(&mut self, directory: &Open, files: &mut [File]) {
        let entry = u64::from(directory.id - ROOT) * DIRECTORY_BYTES;
        let name = format!("directory 0x{:x}", directory.id);
        let main = Reader::new(self.table).at(entry).and_then(|mut main| Ok((main.u32()?, main.u16()?)));
        let Ok((start, first)) = main else {
            self.problems.at("fnt-cut-off", self.at + entry, || format!("the entry of {name} is cut off"));
            return;
        };
        let Ok(mut reader) = Reader::new(self.table).at(u64::from(start)) else {
            self.problems.at("fnt-cut-off", self.at + entry, || {
                format!("the names of {name} are said to be at 0x{start:x} of the FNT, which ends before")
            });
            return;
        };
        let mut next = u32::from(first);
        loop {
            let place = self.at + reader.position() as u64;
            let Ok(kind) = reader.u8() else {
                self.problems.at("fnt-cut-off", place, || format!("the list of {name} has no end"));
                return;
            };
            let length = usize::from(kind & 0x7f);
            if kind == 0 {
                return;
            }
            if kind == 0x80 {
                self.problems.at("fnt-reserved", place, || {
                    format!("0x80 in the list of {name} means nothing: the rest of the list cannot be read")
                });
                return;
            }
            let Ok(bytes) = reader.bytes(length) else {
                self.problems.at("fnt-cut-off", place, || {
                    format!("a name of {length} bytes in {name} passes the end of the FNT")
                });
                return;
            };
            if kind < 0x80 {
                let path = self.path(directory, bytes, place, 0);
                self.file(next, path, place, files);
                next += 1;
                continue;
            }
            let Ok(id) = reader.u16() else {
                self.problems.at("fnt-cut-off", place, || format!("a directory in {name} has no number"));
                return;
            };
            if let Some(path) = self.path(directory, bytes, place, 1) {
                self.subdirectory(directory, id, path, place);
            }
        }
    }

    /// The path of a name, with `slash` bytes to spare; `None` when the name cannot be in a path, or the path is too long.
    fn path(&mut self, directory: &Open, name: &[u8], place: u64, slash: usize) -> Option<String> {
        if name.iter().any(|byte| matches!(byte, 0 | b'/' | b'\\')) || matches!(name, b"." | b"..") {
            self.problems.at("fnt-name", place, || {
                format!("the name `{}` in directory 0x{:x} cannot be part of a path", name.escape_ascii(), directory.id)
            });
            return None;
        }
        // One character per byte, so that no name is lost or made equal to another, whatever encoding was meant.
        let text: String = name.iter().map(|byte| char::from(*byte)).collect();
        let length = directory.path.len() + text.len() + slash;
        if length > limits::MAX_NDS_PATH_BYTES {
            self.problems.at("fnt-path-too-long", place, || {
                format!("a path of {length} bytes is longer than the {} allowed", limits::MAX_NDS_PATH_BYTES)
            });
            return None;
        }
        if self.paths.charge(length as u64).is_err() {
            self.problems.at("fnt-paths-too-long", place, || {
                format!("the paths have more than {} bytes in all: the rest have no names", limits::MAX_NDS_PATHS_BYTES)
            });
            return None;
        }
        let mut path = String::with_capacity(length);
        path.push_str(&directory.path);
        path.push_str(&text);
        if slash > 0 {
            path.push('/');
        }
        Some(path)
    }

    fn file(&mut self, id: u32, path: Option<String>, place: u64, files: &mut [File]) {
        let Some(path) = path else { return };
        let Some(file) = files.get_mut(id as usize) else {
            self.problems
                .at("fnt-unknown-file", place, || format!("`{path}` is file {id}, which the FAT does not have"));
            return;
        };
        match &file.path {
            Some(other) => self.problems.at("fnt-two-names", place, || {
                format!("file {id} is named `{path}` and before that `{other}`, which is kept")
            }),
            None => file.path = Some(path),
        }
    }

    fn subdirectory(&mut self, directory: &Open, id: u16, path: String, place: u64) {
        let index = id.wrapping_sub(ROOT);
        if id < ROOT || index >= self.count {
            self.problems.at("fnt-unknown-directory", place, || {
                format!(
                    "`{path}` is directory 0x{id:x}, and the FNT has 0xf000 to 0x{:x}",
                    u32::from(ROOT) + u32::from(self.count) - 1
                )
            });
            return;
        }
        let entry = u64::from(index) * DIRECTORY_BYTES;
        let parent = Reader::new(self.table).at(entry + 6).and_then(|mut reader| reader.u16());
        if id != ROOT && parent.is_ok_and(|parent| parent != directory.id) {
            self.problems.at("fnt-wrong-parent", self.at + entry + 6, || {
                format!(
                    "directory 0x{id:x} says that 0x{:x} is above it, but `{path}` is in 0x{:x}",
                    parent.unwrap_or_default(),
                    directory.id
                )
            });
        }
        if !self.open(id, path) {
            self.problems.at("fnt-loop", place, || {
                format!(
                    "directory 0x{id:x} is in directory 0x{:x} and was reached before: it is not read again",
                    directory.id
                )
            });
        }
    }
}
