//! What ends a console program on Windows, taken as SIGTERM is elsewhere.

#![allow(unsafe_code)]

use crate::platform::PlatformError;
use std::sync::OnceLock;
use std::time::Duration;
use windows_sys::Win32::Foundation::TRUE;
use windows_sys::Win32::System::Console::{
    CTRL_BREAK_EVENT, CTRL_C_EVENT, CTRL_CLOSE_EVENT, CTRL_LOGOFF_EVENT, SetConsoleCtrlHandler,
};

type Told = Box<dyn Fn(&'static str) + Send + Sync>;

static TOLD: OnceLock<Told> = OnceLock::new();

/// Calls `told` at each event that ends a console program, and keeps the program from being ended by it at once.
///
/// # Errors
/// The system refuses, or this has been called before.
pub fn on_end(told: impl Fn(&'static str) + Send + Sync + 'static) -> Result<(), PlatformError> {
    let refused = |message: String| PlatformError::Os { call: "SetConsoleCtrlHandler", message };
    TOLD.set(Box::new(told)).map_err(|_| refused("it is in use already".to_owned()))?;
    // SAFETY: the function has the right signature and lives as long as the program.
    let answer = unsafe { SetConsoleCtrlHandler(Some(handle), TRUE) };
    if answer == TRUE { Ok(()) } else { Err(refused(std::io::Error::last_os_error().to_string())) }
}

/// Called on a thread of the system's. When it returns from all but the first two events, the process is ended; so it
/// waits there, while the rest of the program ends in order.
unsafe extern "system" fn handle(event: u32) -> i32 {
    let name = match event {
        CTRL_C_EVENT => "Ctrl+C",
        CTRL_BREAK_EVENT => "Ctrl+Break",
        CTRL_CLOSE_EVENT => "the console was closed",
        CTRL_LOGOFF_EVENT => "the user logs off",
        _ => "the system shuts down",
    };
    if let Some(told) = TOLD.get() {
        told(name);
    }
    if !matches!(event, CTRL_C_EVENT | CTRL_BREAK_EVENT) {
        std::thread::sleep(Duration::from_millis(base::limits::SHUTDOWN_TIMEOUT_MS));
    }
    TRUE
}
