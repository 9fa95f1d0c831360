//! The file name table written anew with more names: no directory and no file gets another number.
//!
//! Files of one directory have consecutive numbers (GBATEK, "FNT"). So where a directory that has files gets more, all its
//! names move to a block of appended numbers; the old numbers stay in the FAT, with the same bytes and without a name.

use std::collections::{BTreeMap, BTreeSet};

use base::{Reader, limits};

use super::target::refuse;
use crate::refusal::Refusal;
use crate::rom::Rom;

/// Number of the root directory.
const ROOT: u16 = 0xf000;

/// A directory as it will be written.
struct Directory {
    first: u32,
    parent: u16,
    /// Its list without the zero at the end.
    names: Vec<u8>,
    files: u32,
    below: BTreeMap<Vec<u8>, u16>,
    file_names: BTreeSet<Vec<u8>>,
}

/// The tables after files were added.
#[derive(Debug, Default)]
pub(super) struct Named {
    pub fnt: Vec<u8>,
    /// For every appended number: the index of the new file, or the earlier number of the file whose bytes it has.
    pub appended: Vec<Owner>,
    pub added_directories: usize,
    pub directories: usize,
}

/// Whose bytes an appended number has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    New(usize),
    Moved(u32),
}

fn failed(message: String) -> Refusal {
    refuse("fnt-rebuild-failed", message, "See `problems` of nds_inspect_rom; files cannot be added to a damaged FNT.")
}

/// Adds files with these paths. `anywhere` allows directories that are there already.
pub(super) fn add(rom: &Rom, paths: &[&str], anywhere: bool) -> Result<Named, Refusal> {
    if let Some(problem) = rom.problems().iter().find(|problem| problem.code.starts_with("fnt-")) {
        return Err(failed(format!("the FNT is damaged: {}", problem.message)));
    }
    let mut directories = read(rom)?;
    let before = directories.len();
    let mut wanted: BTreeMap<Vec<&str>, BTreeMap<&str, usize>> = BTreeMap::new();
    for (index, path) in paths.iter().enumerate() {
        let mut folders: Vec<&str> = path.split('/').collect();
        let name = folders.pop().unwrap_or_default();
        let root = directories.first();
        let is_old = folders.first().is_none_or(|top| root.is_some_and(|root| root.below.contains_key(top.as_bytes())));
        if !anywhere && is_old {
            // A name that is there is the nearer reason.
            if rom.files().iter().any(|file| file.path.as_deref() == Some(*path)) {
                return Err(collision(path));
            }
            return Err(refuse(
                "filesystem-extension-invalid",
                format!("`{path}` is not below a new directory of the root"),
                "Choose a directory name that the root does not have, or use format version 3.",
            ));
        }
        if wanted.entry(folders).or_default().insert(name, index).is_some() {
            return Err(collision(path));
        }
    }
    let mut appended = Vec::new();
    let first_new = rom.files().len() as u32;
    for (folders, names) in &wanted {
        let at = make(&mut directories, folders)?;
        let directory =
            directories.get_mut(usize::from(at - ROOT)).ok_or_else(|| failed("a directory is missing".to_owned()))?;
        let next = first_new + appended.len() as u32;
        if directory.files == 0 {
            directory.first = next;
        } else if directory.first + directory.files != next {
            appended.extend((directory.first..directory.first + directory.files).map(Owner::Moved));
            directory.first = next;
        }
        for (name, index) in names {
            if directory.below.contains_key(name.as_bytes()) || !directory.file_names.insert(name.as_bytes().to_vec()) {
                return Err(collision(&[folders.join("/"), (*name).to_owned()].join("/")));
            }
            directory.names.push(name.len() as u8);
            directory.names.extend(name.as_bytes());
            directory.files += 1;
            appended.push(Owner::New(*index));
        }
    }
    let total = first_new as usize + appended.len();
    if total > limits::MAX_NDS_FILES as usize {
        let message = format!("there would be {total} files; {} are possible", limits::MAX_NDS_FILES);
        return Err(refuse("filesystem-id-capacity-exceeded", message, "Add fewer files."));
    }
    let fnt = write(&directories)?;
    Ok(Named { fnt, appended, added_directories: directories.len() - before, directories: directories.len() })
}

fn collision(path: &str) -> Refusal {
    let message = format!("`{path}` is there already, or both a file and a directory");
    refuse("filesystem-path-collision", message, "Choose another name, or replace the file that is there.")
}

/// The directory at a path, made where it is missing.
fn make(directories: &mut Vec<Directory>, folders: &[&str]) -> Result<u16, Refusal> {
    let mut at = ROOT;
    for (depth, name) in folders.iter().enumerate() {
        let next = ROOT as usize + directories.len();
        let here =
            directories.get_mut(usize::from(at - ROOT)).ok_or_else(|| failed("a directory is missing".to_owned()))?;
        if here.file_names.contains(name.as_bytes()) {
            return Err(collision(&folders.get(..=depth).unwrap_or_default().join("/")));
        }
        if let Some(below) = here.below.get(name.as_bytes()) {
            at = *below;
            continue;
        }
        let id = u16::try_from(next).map_err(|_| {
            let message = format!("there would be more than {} directories", limits::MAX_NDS_DIRECTORIES);
            refuse("filesystem-id-capacity-exceeded", message, "Add fewer directories.")
        })?;
        here.below.insert(name.as_bytes().to_vec(), id);
        here.names.push(0x80 | name.len() as u8);
        here.names.extend(name.as_bytes());
        here.names.extend(id.to_le_bytes());
        let empty = Directory {
            first: 0,
            parent: at,
            names: Vec::new(),
            files: 0,
            below: BTreeMap::new(),
            file_names: BTreeSet::new(),
        };
        directories.push(empty);
        at = id;
    }
    Ok(at)
}

fn read(rom: &Rom) -> Result<Vec<Directory>, Refusal> {
    let cut_off = |_| failed("the FNT is cut off".to_owned());
    let table = Reader::new(rom.bytes()).slice(rom.header().fnt.rom()).map_err(cut_off)?;
    if table.is_empty() {
        let first = rom.files().len() as u32;
        let root = Directory {
            first,
            parent: 1,
            names: Vec::new(),
            files: 0,
            below: BTreeMap::new(),
            file_names: BTreeSet::new(),
        };
        return Ok(vec![root]);
    }
    let mut all = Vec::new();
    for index in 0..rom.directories() {
        let mut entry = Reader::new(table).at(index as u64 * 8).map_err(cut_off)?;
        let (start, first, parent) =
            (entry.u32().map_err(cut_off)?, entry.u16().map_err(cut_off)?, entry.u16().map_err(cut_off)?);
        let mut list = Reader::new(table).at(start.into()).map_err(cut_off)?;
        let mut directory = Directory {
            first: first.into(),
            parent,
            names: Vec::new(),
            files: 0,
            below: BTreeMap::new(),
            file_names: BTreeSet::new(),
        };
        loop {
            let kind = list.u8().map_err(cut_off)?;
            if kind == 0 {
                break;
            }
            let name = list.bytes(usize::from(kind & 0x7f)).map_err(cut_off)?.to_vec();
            directory.names.push(kind);
            directory.names.extend(&name);
            if kind & 0x80 == 0 {
                directory.files += 1;
                directory.file_names.insert(name);
            } else {
                let id = list.u16().map_err(cut_off)?;
                directory.names.extend(id.to_le_bytes());
                directory.below.insert(name, id);
            }
        }
        // A list may be shared by directories without an end; what was read is bounded by the FNT's own bound all the same.
        all.push(directory);
        let bytes: usize = all.iter().map(|directory| directory.names.len()).sum();
        if bytes as u64 > limits::MAX_NDS_TABLE_BYTES {
            return Err(too_long(bytes));
        }
    }
    Ok(all)
}

fn too_long(bytes: usize) -> Refusal {
    failed(format!("the FNT would have {bytes} bytes; {} are allowed", limits::MAX_NDS_TABLE_BYTES))
}

fn write(directories: &[Directory]) -> Result<Vec<u8>, Refusal> {
    let mut main = Vec::new();
    let mut lists = Vec::new();
    for (index, directory) in directories.iter().enumerate() {
        let start = directories.len() * 8 + lists.len();
        main.extend((start as u32).to_le_bytes());
        let first = u16::try_from(directory.first).map_err(|_| failed("a file number is too large".to_owned()))?;
        main.extend(first.to_le_bytes());
        let parent = if index == 0 { directories.len() as u16 } else { directory.parent };
        main.extend(parent.to_le_bytes());
        lists.extend(&directory.names);
        lists.push(0);
    }
    main.extend(lists);
    if main.len() as u64 > limits::MAX_NDS_TABLE_BYTES {
        return Err(too_long(main.len()));
    }
    Ok(main)
}
