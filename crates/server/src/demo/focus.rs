//! Takes the keyboard focus away from the game and gives it back, as alt-tab does: with real X events where there is a
//! display, through the game's event file where there is none.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use x11rb::connection::Connection as _;
use x11rb::protocol::xproto::{
    AtomEnum, ClientMessageEvent, ConnectionExt as _, CreateWindowAux, EventMask, InputFocus, MapState, Window,
    WindowClass,
};
use x11rb::rust_connection::RustConnection;
use x11rb::wrapper::ConnectionExt as _;
use x11rb::{COPY_DEPTH_FROM_PARENT, CURRENT_TIME};

/// A second window to go to, and the way back.
pub enum Focus {
    /// On a display.
    Display {
        /// Connection of our own.
        connection: Box<RustConnection>,
        /// The window that the player goes to.
        elsewhere: Window,
        /// Root of the screen.
        root: Window,
    },
    /// Without one: lines appended to this file.
    File(PathBuf),
}

impl Focus {
    /// Opens a second window on the display that `DISPLAY` names.
    ///
    /// # Errors
    /// A sentence, when there is no usable display.
    pub fn display() -> Result<Self, String> {
        let (connection, screen) =
            x11rb::connect(None).map_err(|error| format!("there is no X display to use: {error}"))?;
        let root = connection.setup().roots.get(screen).map(|screen| screen.root).ok_or("the display has no screen")?;
        let elsewhere = (|| {
            let window = connection.generate_id()?;
            connection.create_window(
                COPY_DEPTH_FROM_PARENT,
                window,
                root,
                400,
                300,
                120,
                80,
                0,
                WindowClass::INPUT_OUTPUT,
                0,
                &CreateWindowAux::new().background_pixel(0x0060_4020),
            )?;
            connection.change_property8(
                x11rb::protocol::xproto::PropMode::REPLACE,
                window,
                AtomEnum::WM_NAME,
                AtomEnum::STRING,
                b"another program",
            )?;
            connection.map_window(window)?;
            connection.sync()?;
            Ok::<_, Box<dyn std::error::Error>>(window)
        })()
        .map_err(|error| format!("the second window could not be opened: {error}"))?;
        Ok(Self::Display { connection: Box::new(connection), elsewhere, root })
    }

    /// Focus events through lines in `path`, which is created.
    ///
    /// # Errors
    /// A sentence.
    pub fn file(path: &Path) -> Result<Self, String> {
        std::fs::write(path, b"").map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self::File(path.to_path_buf()))
    }

    /// The player goes to the other window.
    ///
    /// # Errors
    /// A sentence.
    pub fn away(&self) -> Result<(), String> {
        match self {
            Self::Display { connection, elsewhere, .. } => focus(connection, *elsewhere),
            Self::File(path) => append(path, "focus out\n"),
        }
    }

    /// The player comes back to the game's window, found by its `title`.
    ///
    /// # Errors
    /// A sentence.
    pub fn back(&self, title: &str) -> Result<(), String> {
        match self {
            Self::Display { connection, root, .. } => {
                let window = find(connection, *root, title, 4)
                    .ok_or_else(|| format!("there is no visible window with the title {title}"))?;
                focus(connection, window)?;
                tell(connection, window).map_err(|error| format!("the window could not be told: {error}"))
            }
            Self::File(path) => append(path, "focus in\n"),
        }
    }
}

fn append(path: &Path, line: &str) -> Result<(), String> {
    OpenOptions::new()
        .append(true)
        .open(path)
        .and_then(|mut file| file.write_all(line.as_bytes()))
        .map_err(|error| format!("{}: {error}", path.display()))
}

fn focus(connection: &RustConnection, window: Window) -> Result<(), String> {
    connection
        .set_input_focus(InputFocus::POINTER_ROOT, window, CURRENT_TIME)
        .map_err(|error| error.to_string())
        .and_then(|cookie| cookie.check().map_err(|error| format!("the focus could not be moved: {error}")))
}

/// Tells a window that wants to hear it that it may take the focus, as window managers do (ICCCM, section 4.1.7). Programs
/// under Wine become active by that alone.
fn tell(connection: &RustConnection, window: Window) -> Result<(), Box<dyn std::error::Error>> {
    let protocols = connection.intern_atom(false, b"WM_PROTOCOLS")?.reply()?.atom;
    let take_focus = connection.intern_atom(false, b"WM_TAKE_FOCUS")?.reply()?.atom;
    let wanted = connection.get_property(false, window, protocols, AtomEnum::ATOM, 0, 32)?.reply()?;
    if !wanted.value32().is_some_and(|mut atoms| atoms.any(|atom| atom == take_focus)) {
        return Ok(());
    }
    let event = ClientMessageEvent::new(32, window, protocols, [take_focus, CURRENT_TIME, 0, 0, 0]);
    connection.send_event(false, window, EventMask::NO_EVENT, event)?.check()?;
    Ok(())
}

/// The first visible window with that title, at most `depth` levels below `parent`.
fn find(connection: &RustConnection, parent: Window, title: &str, depth: u32) -> Option<Window> {
    let children = connection.query_tree(parent).ok()?.reply().ok()?.children;
    for &window in &children {
        let name = connection
            .get_property(false, window, AtomEnum::WM_NAME, AtomEnum::ANY, 0, 256)
            .ok()
            .and_then(|cookie| cookie.reply().ok());
        let visible = connection
            .get_window_attributes(window)
            .ok()
            .and_then(|cookie| cookie.reply().ok())
            .is_some_and(|attributes| attributes.map_state == MapState::VIEWABLE);
        if visible && name.is_some_and(|name| name.value == title.as_bytes()) {
            return Some(window);
        }
    }
    let deeper = depth.checked_sub(1)?;
    children.iter().find_map(|&window| find(connection, window, title, deeper))
}
