//! What tells an open file from every other and from itself before a change: the server asks, and Windows calls are made here.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::mem::size_of;
use std::os::windows::io::AsRawHandle as _;
use std::ptr::from_mut;
use windows_sys::Win32::Storage::FileSystem::{
    BY_HANDLE_FILE_INFORMATION, FILE_BASIC_INFO, FileBasicInfo, GetFileInformationByHandle,
    GetFileInformationByHandleEx,
};

/// The numbers that Windows keeps of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileIdentity {
    /// Serial number of the volume.
    pub volume: u32,
    /// Number of the file on its volume.
    pub index: u64,
    /// Bytes it has.
    pub size: u64,
    /// Time of the last write, in units of 100 ns since 1601.
    pub written: i64,
    /// Time of the last change of anything, in the same unit.
    pub changed: i64,
}

/// Asks Windows for them.
///
/// # Errors
/// The error of the call that failed.
pub fn file_identity(file: &File) -> io::Result<FileIdentity> {
    let mut found = BY_HANDLE_FILE_INFORMATION::default();
    // SAFETY: the handle is open, the structure is ours.
    if unsafe { GetFileInformationByHandle(file.as_raw_handle(), from_mut(&mut found)) } == 0 {
        return Err(io::Error::last_os_error());
    }
    let mut basic = FILE_BASIC_INFO::default();
    let length = size_of::<FILE_BASIC_INFO>() as u32;
    let handle = file.as_raw_handle();
    // SAFETY: the handle is open, the structure is ours and `length` bytes long.
    if unsafe { GetFileInformationByHandleEx(handle, FileBasicInfo, from_mut(&mut basic).cast(), length) } == 0 {
        return Err(io::Error::last_os_error());
    }
    let wide = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
    Ok(FileIdentity {
        volume: found.dwVolumeSerialNumber,
        index: wide(found.nFileIndexHigh, found.nFileIndexLow),
        size: wide(found.nFileSizeHigh, found.nFileSizeLow),
        written: basic.LastWriteTime,
        changed: basic.ChangeTime,
    })
}
