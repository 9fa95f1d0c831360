//! The calls to Windows that pictures need, each made safe.

#![allow(unsafe_code)]

use std::mem::size_of;
use std::ptr::{from_mut, from_ref, null_mut};
use windows_sys::Win32::Foundation::{FALSE, HWND, LPARAM, POINT, RECT, TRUE};
use windows_sys::Win32::Graphics::Gdi::{
    BI_RGB, BITMAPINFO, BITMAPINFOHEADER, BitBlt, CAPTUREBLT, ClientToScreen, CreateCompatibleDC, CreateDIBSection,
    DIB_RGB_COLORS, DeleteDC, DeleteObject, GdiFlush, GetDC, HBITMAP, HDC, HGDIOBJ, ReleaseDC, SRCCOPY, SelectObject,
};
use windows_sys::Win32::Storage::Xps::{PRINT_WINDOW_FLAGS, PW_CLIENTONLY, PrintWindow};
use windows_sys::Win32::UI::HiDpi::{DPI_AWARENESS_CONTEXT_PER_MONITOR_AWARE_V2, SetThreadDpiAwarenessContext};
use windows_sys::Win32::UI::WindowsAndMessaging::{
    EnumWindows, GetClientRect, GetWindowTextW, GetWindowThreadProcessId, IsIconic, IsWindowVisible,
    PW_RENDERFULLCONTENT,
};

/// UTF-16 units of a title that are read.
const TITLE_UNITS: usize = 512;

/// A top-level window. It may be gone by the time something is asked of it, which then fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window(isize);

impl Window {
    fn handle(self) -> HWND {
        self.0 as HWND
    }

    /// The process it belongs to.
    pub fn process(self) -> u32 {
        let mut pid = 0;
        // SAFETY: a stale handle makes the call fail; the result is ours.
        unsafe { GetWindowThreadProcessId(self.handle(), from_mut(&mut pid)) };
        pid
    }

    /// It is shown at all, though perhaps behind others.
    pub fn is_visible(self) -> bool {
        // SAFETY: a stale handle makes the call fail.
        unsafe { IsWindowVisible(self.handle()) != FALSE }
    }

    /// It is minimised.
    pub fn is_minimised(self) -> bool {
        // SAFETY: a stale handle makes the call fail.
        unsafe { IsIconic(self.handle()) != FALSE }
    }

    /// Its title. Of a window of another process the system tells it without asking that process.
    pub fn title(self) -> String {
        let mut units = [0u16; TITLE_UNITS];
        let room = i32::try_from(units.len()).unwrap_or(0);
        // SAFETY: a stale handle makes the call fail; the buffer is ours and as long as said.
        let length = unsafe { GetWindowTextW(self.handle(), units.as_mut_ptr(), room) };
        String::from_utf16_lossy(usize::try_from(length).ok().and_then(|length| units.get(..length)).unwrap_or(&[]))
    }

    /// Width and height in pixels of what the program draws in.
    pub fn size(self) -> Option<(u32, u32)> {
        let mut area = RECT::default();
        // SAFETY: a stale handle makes the call fail; the result is ours.
        let answer = unsafe { GetClientRect(self.handle(), from_mut(&mut area)) };
        let side = |low: i32, high: i32| u32::try_from(high.checked_sub(low)?).ok().filter(|side| *side > 0);
        if answer == FALSE { None } else { side(area.left, area.right).zip(side(area.top, area.bottom)) }
    }

    /// Where its area begins on the desktop.
    fn place(self) -> Option<(i32, i32)> {
        let mut corner = POINT::default();
        // SAFETY: a stale handle makes the call fail; the result is ours.
        let answer = unsafe { ClientToScreen(self.handle(), from_mut(&mut corner)) };
        if answer == FALSE { None } else { Some((corner.x, corner.y)) }
    }
}

/// Real pixels instead of scaled ones, for what this thread asks about windows.
pub fn see_real_pixels() {
    // SAFETY: takes one of the documented constants.
    unsafe { SetThreadDpiAwarenessContext(DPI_AWARENESS_CONTEXT_PER_MONITOR_AWARE_V2) };
}

/// Every top-level window, from the top of the stack.
pub fn windows() -> Vec<Window> {
    unsafe extern "system" fn take(window: HWND, list: LPARAM) -> i32 {
        // SAFETY: the number is the address of the vector below, which lives and is used nowhere else during the call.
        let list = unsafe { &mut *(list as *mut Vec<Window>) };
        list.push(Window(window as isize));
        TRUE
    }
    let mut list: Vec<Window> = Vec::new();
    // SAFETY: the function has the right signature and gets the address of a live vector of the type that it expects.
    unsafe { EnumWindows(Some(take), from_mut(&mut list) as LPARAM) };
    list
}

/// The surface of a window, or of the desktop.
struct Surface {
    window: HWND,
    context: HDC,
}

impl Surface {
    fn of(window: HWND) -> Option<Self> {
        // SAFETY: a stale handle makes the call fail; null means the desktop.
        let context = unsafe { GetDC(window) };
        if context.is_null() { None } else { Some(Self { window, context }) }
    }
}

impl Drop for Surface {
    fn drop(&mut self) {
        // SAFETY: the context came from GetDC for this window and is released once.
        unsafe { ReleaseDC(self.window, self.context) };
    }
}

/// A bitmap in memory that can be drawn on.
struct Canvas {
    context: HDC,
    bitmap: HBITMAP,
    before: HGDIOBJ,
    pixels: *const u8,
    bytes: usize,
}

impl Canvas {
    fn new(width: i32, height: i32) -> Option<Self> {
        let bytes = usize::try_from(width).ok()?.checked_mul(usize::try_from(height).ok()?)?.checked_mul(4)?;
        let info = BITMAPINFO {
            bmiHeader: BITMAPINFOHEADER {
                biSize: u32::try_from(size_of::<BITMAPINFOHEADER>()).ok()?,
                biWidth: width,
                // Negative: rows from the top.
                biHeight: height.checked_neg()?,
                biPlanes: 1,
                biBitCount: 32,
                biCompression: BI_RGB,
                ..Default::default()
            },
            ..Default::default()
        };
        // SAFETY: null asks for a context like the screen's.
        let context = unsafe { CreateCompatibleDC(null_mut()) };
        if context.is_null() {
            return None;
        }
        let mut pixels = null_mut();
        // SAFETY: the description is live, the result is ours; no section is given.
        let bitmap =
            unsafe { CreateDIBSection(context, from_ref(&info), DIB_RGB_COLORS, from_mut(&mut pixels), null_mut(), 0) };
        if bitmap.is_null() || pixels.is_null() {
            // SAFETY: the context was made above and is deleted once.
            unsafe { DeleteDC(context) };
            return None;
        }
        // SAFETY: both were made above.
        let before = unsafe { SelectObject(context, bitmap) };
        Some(Self { context, bitmap, before, pixels: pixels.cast_const().cast(), bytes })
    }

    /// What was drawn, as bytes B, G, R and one without meaning.
    fn pixels(&self) -> Vec<u8> {
        // SAFETY: takes nothing.
        unsafe { GdiFlush() };
        // SAFETY: the section of 4 bytes per pixel lives as long as the bitmap, and all drawing is done.
        unsafe { std::slice::from_raw_parts(self.pixels, self.bytes) }.to_vec()
    }
}

impl Drop for Canvas {
    fn drop(&mut self) {
        // SAFETY: gives the context back the bitmap that it came with.
        unsafe { SelectObject(self.context, self.before) };
        // SAFETY: made by us, no longer selected, deleted once.
        unsafe { DeleteObject(self.bitmap) };
        // SAFETY: made by us, deleted once.
        unsafe { DeleteDC(self.context) };
    }
}

/// How a picture is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the window's own surface.
    WindowSurface,
    /// From where the window is on the desktop, with what lies over it.
    Desktop,
    /// The window draws itself, which a program that is stopped never does.
    Print,
}

/// The pixels of a window's area, as bytes B, G, R and one without meaning.
pub fn capture(window: Window, size: (u32, u32), way: Way) -> Option<Vec<u8>> {
    let (width, height) = (i32::try_from(size.0).ok()?, i32::try_from(size.1).ok()?);
    let canvas = Canvas::new(width, height)?;
    let (from, (x, y)) = match way {
        Way::WindowSurface => (Surface::of(window.handle())?, (0, 0)),
        Way::Desktop => (Surface::of(null_mut())?, window.place()?),
        Way::Print => {
            let flags: PRINT_WINDOW_FLAGS = PW_CLIENTONLY | PW_RENDERFULLCONTENT;
            // SAFETY: a stale handle makes the call fail; the context is ours.
            let answer = unsafe { PrintWindow(window.handle(), canvas.context, flags) };
            return if answer == FALSE { None } else { Some(canvas.pixels()) };
        }
    };
    // SAFETY: both contexts are ours and live.
    let answer = unsafe { BitBlt(canvas.context, 0, 0, width, height, from.context, x, y, SRCCOPY | CAPTUREBLT) };
    if answer == FALSE { None } else { Some(canvas.pixels()) }
}
