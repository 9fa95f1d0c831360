//! The calls to Windows that debugging needs, each made safe: owned handles in, values out, the error code kept.

#![allow(unsafe_code)]

use crate::platform::PlatformError;
use std::ffi::{OsString, c_void};
use std::mem::size_of;
use std::os::windows::ffi::OsStringExt;
use std::os::windows::io::{AsRawHandle, BorrowedHandle, FromRawHandle, OwnedHandle};
use std::path::PathBuf;
use std::ptr::{from_mut, from_ref, null, null_mut};
use windows_sys::Win32::Foundation::{
    ERROR_SEM_TIMEOUT, FALSE, GetLastError, HANDLE, INVALID_HANDLE_VALUE, LocalFree, NTSTATUS, WAIT_OBJECT_0,
};
use windows_sys::Win32::Storage::FileSystem::{FILE_NAME_NORMALIZED, GetFinalPathNameByHandleW};
use windows_sys::Win32::System::Diagnostics::Debug::{
    CREATE_PROCESS_DEBUG_EVENT, CREATE_THREAD_DEBUG_EVENT, CheckRemoteDebuggerPresent, ContinueDebugEvent, DEBUG_EVENT,
    DebugActiveProcess, DebugActiveProcessStop, DebugBreakProcess, DebugSetProcessKillOnExit, EXCEPTION_DEBUG_EVENT,
    EXIT_PROCESS_DEBUG_EVENT, EXIT_THREAD_DEBUG_EVENT, FlushInstructionCache, LOAD_DLL_DEBUG_EVENT,
    OUTPUT_DEBUG_STRING_EVENT, RIP_EVENT, ReadProcessMemory, UNLOAD_DLL_DEBUG_EVENT, WaitForDebugEvent,
    WriteProcessMemory,
};
use windows_sys::Win32::System::Diagnostics::ToolHelp::{
    CreateToolhelp32Snapshot, PROCESSENTRY32W, Process32FirstW, Process32NextW, TH32CS_SNAPPROCESS,
};
use windows_sys::Win32::System::Memory::{
    MEM_COMMIT, MEM_FREE, MEM_RELEASE, MEM_RESERVE, MEMORY_BASIC_INFORMATION, PAGE_EXECUTE_READWRITE, PAGE_GUARD,
    PAGE_NOACCESS, VirtualAllocEx, VirtualFreeEx, VirtualProtectEx, VirtualQueryEx,
};
use windows_sys::Win32::System::ProcessStatus::K32GetMappedFileNameW;
use windows_sys::Win32::System::Threading::{
    CREATE_NEW_PROCESS_GROUP, CREATE_UNICODE_ENVIRONMENT, CreateProcessW, DEBUG_ONLY_THIS_PROCESS, GetCurrentProcess,
    GetThreadDescription, IsWow64Process, OpenProcess, PROCESS_INFORMATION, QueryFullProcessImageNameW, ResumeThread,
    STARTUPINFOW, SuspendThread, TerminateProcess, WaitForSingleObject,
};

pub use windows_sys::Win32::System::Threading::{PROCESS_ALL_ACCESS, PROCESS_QUERY_LIMITED_INFORMATION};

/// UTF-16 units of the longest path that Windows has.
const PATH_UNITS: usize = 32_768;

/// A call that failed, with the number Windows gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The call.
    pub call: &'static str,
    /// What `GetLastError` said.
    pub code: u32,
}

impl Failure {
    fn last(call: &'static str) -> Self {
        // SAFETY: takes nothing and reads a number of this thread.
        Self { call, code: unsafe { GetLastError() } }
    }
}

impl From<Failure> for PlatformError {
    fn from(failure: Failure) -> Self {
        let error = std::io::Error::from_raw_os_error(failure.code.cast_signed());
        PlatformError::Os { call: failure.call, message: error.to_string() }
    }
}

type Outcome<T> = Result<T, Failure>;

fn check(call: &'static str, answer: i32) -> Outcome<()> {
    if answer == FALSE { Err(Failure::last(call)) } else { Ok(()) }
}

/// A handle that the system gave us to close; `None` for the two values that are no handle.
fn owned(handle: HANDLE) -> Option<OwnedHandle> {
    if handle.is_null() || handle == INVALID_HANDLE_VALUE {
        return None;
    }
    // SAFETY: every caller passes a handle that a call has just opened for us, and nobody else closes it.
    Some(unsafe { OwnedHandle::from_raw_handle(handle) })
}

/// A copy of a handle that the debugging subsystem closes by itself.
fn copied(handle: HANDLE) -> Option<OwnedHandle> {
    if handle.is_null() {
        return None;
    }
    // SAFETY: the handle comes with a debug event that has not been continued, so it is open for the length of this call.
    let borrowed = unsafe { BorrowedHandle::borrow_raw(handle) };
    borrowed.try_clone_to_owned().ok()
}

/// An address in the other process, which is only a number here.
#[allow(clippy::cast_possible_truncation, reason = "a 32-bit agent debugs 32-bit programs only")]
fn remote(address: u64) -> *mut c_void {
    std::ptr::without_provenance_mut(address as usize)
}

fn number<T>(pointer: *mut T) -> u64 {
    pointer.addr() as u64
}

/// A started process, and its first thread.
pub struct Created {
    /// The process, with all rights.
    pub process: OwnedHandle,
    /// Its number.
    pub pid: u32,
}

/// Starts a program under debugging. All texts end in a zero unit; the environment block in two.
pub fn create_process(
    application: &[u16],
    command_line: &mut [u16],
    environment: &[u16],
    folder: &[u16],
) -> Outcome<Created> {
    let mut startup = STARTUPINFOW { cb: u32_size::<STARTUPINFOW>(), ..Default::default() };
    let mut info = PROCESS_INFORMATION::default();
    // A process group of its own: Ctrl+C in the agent's console is not for the program.
    let flags = DEBUG_ONLY_THIS_PROCESS | CREATE_UNICODE_ENVIRONMENT | CREATE_NEW_PROCESS_GROUP;
    // SAFETY: all pointers are to live, zero-terminated buffers of this function's caller; the two structures are ours.
    let answer = unsafe {
        CreateProcessW(
            application.as_ptr(),
            command_line.as_mut_ptr(),
            null(),
            null(),
            FALSE,
            flags,
            environment.as_ptr().cast(),
            folder.as_ptr(),
            from_mut(&mut startup),
            from_mut(&mut info),
        )
    };
    check("CreateProcess", answer)?;
    drop(owned(info.hThread));
    let process = owned(info.hProcess).ok_or(Failure { call: "CreateProcess", code: 0 })?;
    Ok(Created { process, pid: info.dwProcessId })
}

fn u32_size<T>() -> u32 {
    u32::try_from(size_of::<T>()).unwrap_or(u32::MAX)
}

/// Begins to debug a running process.
pub fn debug_active_process(pid: u32) -> Outcome<()> {
    // SAFETY: takes a number only.
    check("DebugActiveProcess", unsafe { DebugActiveProcess(pid) })
}

/// Ends debugging; the process goes on.
pub fn debug_active_process_stop(pid: u32) -> Outcome<()> {
    // SAFETY: takes a number only.
    check("DebugActiveProcessStop", unsafe { DebugActiveProcessStop(pid) })
}

/// Whether debugged processes end with the thread that debugs them.
pub fn set_kill_on_exit(kill: bool) -> Outcome<()> {
    // SAFETY: takes a number only.
    check("DebugSetProcessKillOnExit", unsafe { DebugSetProcessKillOnExit(i32::from(kill)) })
}

/// Makes a thread in the process that runs into an INT3.
pub fn debug_break(process: &OwnedHandle) -> Outcome<()> {
    // SAFETY: the handle is open.
    check("DebugBreakProcess", unsafe { DebugBreakProcess(process.as_raw_handle()) })
}

/// An event as the system reports it.
pub struct RawEvent {
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// What happened.
    pub what: Raw,
}

/// What happened.
pub enum Raw {
    /// An exception.
    Exception {
        /// Its code.
        code: u32,
        /// The program's handlers have not seen it.
        first_chance: bool,
        /// Of the instruction.
        address: u64,
        /// Its parameters.
        parameters: Vec<u64>,
    },
    /// A thread begins.
    CreateThread {
        /// The thread.
        handle: Option<OwnedHandle>,
        /// Its environment block.
        local_base: u64,
    },
    /// The process begins, with its first thread.
    CreateProcess {
        /// The executable.
        file: Option<OwnedHandle>,
        /// The first thread.
        thread: Option<OwnedHandle>,
        /// Where the executable is loaded.
        base: u64,
        /// The thread's environment block.
        local_base: u64,
    },
    /// A thread ended.
    ExitThread,
    /// The process ended.
    ExitProcess {
        /// With this code.
        code: u32,
    },
    /// A library was loaded.
    LoadDll {
        /// The library.
        file: Option<OwnedHandle>,
        /// Where it is loaded.
        base: u64,
        /// Where the program keeps a pointer to its name, or 0.
        name: u64,
        /// The name is in UTF-16.
        unicode: bool,
    },
    /// A library was unloaded.
    UnloadDll {
        /// Where it was loaded.
        base: u64,
    },
    /// `OutputDebugString`.
    DebugString {
        /// Where the text is.
        address: u64,
        /// It is in UTF-16.
        unicode: bool,
        /// Its length in units, with the zero at its end.
        length: u16,
    },
    /// Something else.
    Other {
        /// The number of the event, and of its error.
        raw: u64,
    },
}

/// The next debug event of this thread's debuggees, or `None` when the time is over.
pub fn wait_for_event(milliseconds: u32) -> Outcome<Option<RawEvent>> {
    let mut event = DEBUG_EVENT::default();
    // SAFETY: the structure is ours and live.
    let answer = unsafe { WaitForDebugEvent(from_mut(&mut event), milliseconds) };
    if answer == FALSE {
        let failure = Failure::last("WaitForDebugEvent");
        return if failure.code == ERROR_SEM_TIMEOUT { Ok(None) } else { Err(failure) };
    }
    Ok(Some(RawEvent { pid: event.dwProcessId, tid: event.dwThreadId, what: decode(&event) }))
}

fn decode(event: &DEBUG_EVENT) -> Raw {
    match event.dwDebugEventCode {
        EXCEPTION_DEBUG_EVENT => {
            // SAFETY: the event's code says that this member is the valid one.
            let info = unsafe { event.u.Exception };
            let record = info.ExceptionRecord;
            let count = usize::try_from(record.NumberParameters).unwrap_or(0);
            Raw::Exception {
                code: record.ExceptionCode.cast_unsigned(),
                first_chance: info.dwFirstChance != 0,
                address: number(record.ExceptionAddress),
                parameters: record.ExceptionInformation.iter().take(count).map(|value| *value as u64).collect(),
            }
        }
        CREATE_THREAD_DEBUG_EVENT => {
            // SAFETY: the event's code says that this member is the valid one.
            let info = unsafe { event.u.CreateThread };
            Raw::CreateThread { handle: copied(info.hThread), local_base: number(info.lpThreadLocalBase) }
        }
        CREATE_PROCESS_DEBUG_EVENT => {
            // SAFETY: the event's code says that this member is the valid one.
            let info = unsafe { event.u.CreateProcessInfo };
            Raw::CreateProcess {
                file: owned(info.hFile),
                thread: copied(info.hThread),
                base: number(info.lpBaseOfImage),
                local_base: number(info.lpThreadLocalBase),
            }
        }
        EXIT_THREAD_DEBUG_EVENT => Raw::ExitThread,
        EXIT_PROCESS_DEBUG_EVENT => {
            // SAFETY: the event's code says that this member is the valid one.
            let info = unsafe { event.u.ExitProcess };
            Raw::ExitProcess { code: info.dwExitCode }
        }
        LOAD_DLL_DEBUG_EVENT => {
            // SAFETY: the event's code says that this member is the valid one.
            let info = unsafe { event.u.LoadDll };
            Raw::LoadDll {
                file: owned(info.hFile),
                base: number(info.lpBaseOfDll),
                name: number(info.lpImageName),
                unicode: info.fUnicode != 0,
            }
        }
        UNLOAD_DLL_DEBUG_EVENT => {
            // SAFETY: the event's code says that this member is the valid one.
            let info = unsafe { event.u.UnloadDll };
            Raw::UnloadDll { base: number(info.lpBaseOfDll) }
        }
        OUTPUT_DEBUG_STRING_EVENT => {
            // SAFETY: the event's code says that this member is the valid one.
            let info = unsafe { event.u.DebugString };
            Raw::DebugString {
                address: number(info.lpDebugStringData),
                unicode: info.fUnicode != 0,
                length: info.nDebugStringLength,
            }
        }
        RIP_EVENT => {
            // SAFETY: the event's code says that this member is the valid one.
            let info = unsafe { event.u.RipInfo };
            Raw::Other { raw: (u64::from(RIP_EVENT) << 32) | u64::from(info.dwError) }
        }
        other => Raw::Other { raw: u64::from(other) << 32 },
    }
}

/// Lets the process go on from the event that was reported last.
pub fn continue_event(pid: u32, tid: u32, status: NTSTATUS) -> Outcome<()> {
    // SAFETY: takes numbers only.
    check("ContinueDebugEvent", unsafe { ContinueDebugEvent(pid, tid, status) })
}

/// Suspends a thread once more.
pub fn suspend(thread: &OwnedHandle) -> Outcome<()> {
    // SAFETY: the handle is open.
    let before = unsafe { SuspendThread(thread.as_raw_handle()) };
    if before == u32::MAX { Err(Failure::last("SuspendThread")) } else { Ok(()) }
}

/// Takes one suspension of a thread back.
pub fn resume(thread: &OwnedHandle) -> Outcome<()> {
    // SAFETY: the handle is open.
    let before = unsafe { ResumeThread(thread.as_raw_handle()) };
    if before == u32::MAX { Err(Failure::last("ResumeThread")) } else { Ok(()) }
}

/// Reads memory of the process; says how many bytes the system claims to have read, and whether that was all.
pub fn read(process: &OwnedHandle, address: u64, buffer: &mut [u8]) -> (usize, bool) {
    let mut done = 0;
    // SAFETY: the buffer is live and as long as said; the address is only a number to this process.
    let answer = unsafe {
        ReadProcessMemory(
            process.as_raw_handle(),
            remote(address),
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            from_mut(&mut done),
        )
    };
    (done.min(buffer.len()), answer != FALSE)
}

/// Writes memory of the process, all or an error.
pub fn write(process: &OwnedHandle, address: u64, bytes: &[u8]) -> Outcome<()> {
    let mut done = 0;
    // SAFETY: the bytes are live and as many as said; the address is only a number to this process.
    let answer = unsafe {
        WriteProcessMemory(
            process.as_raw_handle(),
            remote(address),
            bytes.as_ptr().cast(),
            bytes.len(),
            from_mut(&mut done),
        )
    };
    check("WriteProcessMemory", answer)?;
    if done == bytes.len() { Ok(()) } else { Err(Failure { call: "WriteProcessMemory", code: 299 }) }
}

/// Makes the processor forget what it has decoded of `length` bytes.
pub fn flush_instructions(process: &OwnedHandle, address: u64, length: usize) -> Outcome<()> {
    // SAFETY: the handle is open; the address is only a number to this process.
    check("FlushInstructionCache", unsafe { FlushInstructionCache(process.as_raw_handle(), remote(address), length) })
}

/// A stretch of address space with one state and protection.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    /// Its first byte.
    pub start: u64,
    /// Its length in bytes.
    pub length: u64,
    /// Memory is there, and the program may read it.
    pub readable: bool,
    /// Memory is there.
    pub committed: bool,
    /// Nothing is there at all.
    pub free: bool,
}

/// The region that `address` lies in; `None` beyond the end of the address space.
pub fn region(process: &OwnedHandle, address: u64) -> Option<Region> {
    let mut info = MEMORY_BASIC_INFORMATION::default();
    // SAFETY: the structure is ours and as long as said; the address is only a number to this process.
    let length = unsafe {
        VirtualQueryEx(
            process.as_raw_handle(),
            remote(address),
            from_mut(&mut info),
            size_of::<MEMORY_BASIC_INFORMATION>(),
        )
    };
    if length == 0 || info.RegionSize == 0 {
        return None;
    }
    let committed = info.State == MEM_COMMIT;
    Some(Region {
        start: number(info.BaseAddress),
        length: info.RegionSize as u64,
        readable: committed && info.Protect & (PAGE_NOACCESS | PAGE_GUARD) == 0 && info.Protect != 0,
        committed,
        free: info.State == MEM_FREE,
    })
}

/// Sets the protection of pages and gives the one before.
pub fn protect(process: &OwnedHandle, address: u64, length: usize, protection: u32) -> Outcome<u32> {
    let mut before = 0;
    // SAFETY: the result is ours; the address is only a number to this process.
    let answer = unsafe {
        VirtualProtectEx(process.as_raw_handle(), remote(address), length, protection, from_mut(&mut before))
    };
    check("VirtualProtectEx", answer)?;
    Ok(before)
}

/// The protection with which everything is allowed.
pub const EVERYTHING: u32 = PAGE_EXECUTE_READWRITE;

/// Maps executable memory, at `address` or (0) anywhere.
pub fn allocate(process: &OwnedHandle, address: u64, length: usize) -> Outcome<u64> {
    let kind = MEM_COMMIT | MEM_RESERVE;
    // SAFETY: the handle is open; the address is only a number to this process.
    let at = unsafe { VirtualAllocEx(process.as_raw_handle(), remote(address), length, kind, PAGE_EXECUTE_READWRITE) };
    if at.is_null() { Err(Failure::last("VirtualAllocEx")) } else { Ok(number(at)) }
}

/// Unmaps what [`allocate`] mapped.
pub fn free(process: &OwnedHandle, address: u64) -> Outcome<()> {
    // SAFETY: the handle is open; the address is only a number to this process.
    check("VirtualFreeEx", unsafe { VirtualFreeEx(process.as_raw_handle(), remote(address), 0, MEM_RELEASE) })
}

/// Ends the process.
pub fn terminate(process: &OwnedHandle, code: u32) -> Outcome<()> {
    // SAFETY: the handle is open.
    check("TerminateProcess", unsafe { TerminateProcess(process.as_raw_handle(), code) })
}

/// Ends this program at once, without the farewells to its libraries, in which Wine 8 dies now and then of threads that
/// still run. Returns only if that fails.
pub fn end_this_program(code: u32) {
    // SAFETY: takes nothing and gives a number that stands for this process and needs no closing.
    let this = unsafe { GetCurrentProcess() };
    // SAFETY: the handle is valid as long as this process.
    unsafe { TerminateProcess(this, code) };
}

/// Waits until the process is gone.
pub fn wait_gone(process: &OwnedHandle, milliseconds: u32) -> bool {
    // SAFETY: the handle is open.
    unsafe { WaitForSingleObject(process.as_raw_handle(), milliseconds) == WAIT_OBJECT_0 }
}

/// Opens a process.
pub fn open_process(pid: u32, access: u32) -> Outcome<OwnedHandle> {
    // SAFETY: takes numbers only.
    let handle = unsafe { OpenProcess(access, FALSE, pid) };
    owned(handle).ok_or_else(|| Failure::last("OpenProcess"))
}

/// Whether a process is a 32-bit one on a 64-bit Windows.
pub fn is_wow64(process: &OwnedHandle) -> Outcome<bool> {
    let mut answer = FALSE;
    // SAFETY: the handle is open, the result is ours.
    check("IsWow64Process", unsafe { IsWow64Process(process.as_raw_handle(), from_mut(&mut answer)) })?;
    Ok(answer != FALSE)
}

/// Whether a process has a debugger.
pub fn is_debugged(process: &OwnedHandle) -> Outcome<bool> {
    let mut answer = FALSE;
    // SAFETY: the handle is open, the result is ours.
    let done = unsafe { CheckRemoteDebuggerPresent(process.as_raw_handle(), from_mut(&mut answer)) };
    check("CheckRemoteDebuggerPresent", done)?;
    Ok(answer != FALSE)
}

/// A path in the buffer, without the prefix that switches path parsing off.
fn path(buffer: &[u16], units: usize) -> Option<PathBuf> {
    let units = buffer.get(..units).filter(|units| !units.is_empty())?;
    let verbatim: Vec<u16> = r"\\?\".encode_utf16().collect();
    let unc: Vec<u16> = r"\\?\UNC\".encode_utf16().collect();
    let text = match (units.strip_prefix(unc.as_slice()), units.strip_prefix(verbatim.as_slice())) {
        (Some(share), _) => OsString::from_wide(&[&[0x5c, 0x5c], share].concat()),
        (None, Some(plain)) => OsString::from_wide(plain),
        (None, None) => OsString::from_wide(units),
    };
    Some(PathBuf::from(text))
}

/// The path of an open file.
pub fn file_path(file: &OwnedHandle) -> Option<PathBuf> {
    let mut buffer = vec![0u16; PATH_UNITS];
    let room = u32::try_from(buffer.len()).ok()?;
    // SAFETY: the buffer is live and as long as said.
    let units =
        unsafe { GetFinalPathNameByHandleW(file.as_raw_handle(), buffer.as_mut_ptr(), room, FILE_NAME_NORMALIZED) };
    path(&buffer, usize::try_from(units).ok()?)
}

/// The path of the executable of a process.
pub fn image_path(process: &OwnedHandle) -> Option<PathBuf> {
    let mut buffer = vec![0u16; PATH_UNITS];
    let mut units = u32::try_from(buffer.len()).ok()?;
    // SAFETY: the buffer is live and as long as said.
    let answer =
        unsafe { QueryFullProcessImageNameW(process.as_raw_handle(), 0, buffer.as_mut_ptr(), from_mut(&mut units)) };
    check("QueryFullProcessImageName", answer).ok()?;
    path(&buffer, usize::try_from(units).ok()?)
}

/// The path, in the kernel's form, of the file mapped at an address.
pub fn mapped_path(process: &OwnedHandle, address: u64) -> Option<PathBuf> {
    let mut buffer = vec![0u16; PATH_UNITS];
    let room = u32::try_from(buffer.len()).ok()?;
    // SAFETY: the buffer is live and as long as said; the address is only a number to this process.
    let units = unsafe { K32GetMappedFileNameW(process.as_raw_handle(), remote(address), buffer.as_mut_ptr(), room) };
    path(&buffer, usize::try_from(units).ok()?)
}

/// The processes that run: number, and name of the executable.
pub fn processes() -> Outcome<Vec<(u32, OsString)>> {
    // SAFETY: takes numbers only.
    let snapshot = owned(unsafe { CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0) })
        .ok_or_else(|| Failure::last("CreateToolhelp32Snapshot"))?;
    let mut entry = PROCESSENTRY32W { dwSize: u32_size::<PROCESSENTRY32W>(), ..Default::default() };
    let mut found = Vec::new();
    // SAFETY: the structure is ours and says its own length.
    let mut more = unsafe { Process32FirstW(snapshot.as_raw_handle(), from_mut(&mut entry)) };
    while more != FALSE {
        let name = entry.szExeFile.split(|unit| *unit == 0).next().unwrap_or_default();
        found.push((entry.th32ProcessID, OsString::from_wide(name)));
        // SAFETY: as above.
        more = unsafe { Process32NextW(snapshot.as_raw_handle(), from_mut(&mut entry)) };
    }
    Ok(found)
}

/// The name that a program gave its thread.
pub fn thread_description(thread: &OwnedHandle) -> Option<String> {
    let mut text = null_mut();
    // SAFETY: the handle is open, the result is ours.
    let answer = unsafe { GetThreadDescription(thread.as_raw_handle(), from_mut(&mut text)) };
    if answer < 0 || text.is_null() {
        return None;
    }
    let mut units = Vec::new();
    loop {
        // SAFETY: the text ends in a zero, which has not been passed yet.
        let at = unsafe { text.add(units.len()) };
        // SAFETY: as above, so this unit belongs to the text.
        match unsafe { at.read() } {
            0 => break,
            unit => units.push(unit),
        }
    }
    // SAFETY: the call says that its result is to be freed so.
    unsafe { LocalFree(text.cast()) };
    Some(String::from_utf16_lossy(&units)).filter(|name| !name.is_empty())
}

/// 32-bit register sets: of the own kind in the 32-bit agent, of the WOW64 kind in the 64-bit one. The layout is the same.
#[cfg(target_arch = "x86")]
pub type Context32 = windows_sys::Win32::System::Diagnostics::Debug::CONTEXT;
#[cfg(target_arch = "x86_64")]
pub type Context32 = windows_sys::Win32::System::Diagnostics::Debug::WOW64_CONTEXT;

/// The 64-bit register set, at the alignment that the system demands.
#[cfg(target_arch = "x86_64")]
#[repr(C, align(16))]
#[derive(Clone, Copy, Default)]
pub struct Context64(pub windows_sys::Win32::System::Diagnostics::Debug::CONTEXT);

/// Reads what `context.ContextFlags` asks for.
pub fn get_context32(thread: &OwnedHandle, context: &mut Context32) -> Outcome<()> {
    #[cfg(target_arch = "x86")]
    use windows_sys::Win32::System::Diagnostics::Debug::GetThreadContext as get;
    #[cfg(target_arch = "x86_64")]
    use windows_sys::Win32::System::Diagnostics::Debug::Wow64GetThreadContext as get;
    // SAFETY: the handle is open, the structure is ours.
    check("GetThreadContext", unsafe { get(thread.as_raw_handle(), from_mut(context)) })
}

/// Writes what `context.ContextFlags` names.
pub fn set_context32(thread: &OwnedHandle, context: &Context32) -> Outcome<()> {
    #[cfg(target_arch = "x86")]
    use windows_sys::Win32::System::Diagnostics::Debug::SetThreadContext as set;
    #[cfg(target_arch = "x86_64")]
    use windows_sys::Win32::System::Diagnostics::Debug::Wow64SetThreadContext as set;
    // SAFETY: the handle is open, the structure is live.
    check("SetThreadContext", unsafe { set(thread.as_raw_handle(), from_ref(context)) })
}

/// Reads what `context.ContextFlags` asks for.
#[cfg(target_arch = "x86_64")]
pub fn get_context64(thread: &OwnedHandle, context: &mut Context64) -> Outcome<()> {
    use windows_sys::Win32::System::Diagnostics::Debug::GetThreadContext;
    // SAFETY: the handle is open, the structure is ours and aligned.
    check("GetThreadContext", unsafe { GetThreadContext(thread.as_raw_handle(), from_mut(&mut context.0)) })
}

/// Writes what `context.ContextFlags` names.
#[cfg(target_arch = "x86_64")]
pub fn set_context64(thread: &OwnedHandle, context: &Context64) -> Outcome<()> {
    use windows_sys::Win32::System::Diagnostics::Debug::SetThreadContext;
    // SAFETY: the handle is open, the structure is live and aligned.
    check("SetThreadContext", unsafe { SetThreadContext(thread.as_raw_handle(), from_ref(&context.0)) })
}

/// The FXSAVE image inside a 64-bit register set.
#[cfg(target_arch = "x86_64")]
pub fn float_image(context: &Context64) -> [u8; 512] {
    // SAFETY: both members of the union are plain numbers without padding, so either may be read.
    let area = unsafe { context.0.Anonymous.FltSave };
    // SAFETY: the structure is 512 bytes of plain numbers, which have no invalid values as bytes.
    unsafe { std::mem::transmute(area) }
}
