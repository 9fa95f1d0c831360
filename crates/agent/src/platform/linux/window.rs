//! Pictures of the program's window, from the X server.

use super::display::{Display, Timed, host_name};
use crate::platform::{Picture, PlatformError};
use base::limits;
use std::collections::HashMap;
use std::time::{Duration, Instant};
use x11rb::connection::{Connection, RequestConnection};
use x11rb::errors::{ConnectionError, ReplyError, ReplyOrIdError};
use x11rb::protocol::composite::ConnectionExt as _;
use x11rb::protocol::res::{ClientIdMask, ClientIdSpec, ConnectionExt as _};
use x11rb::protocol::xproto::{
    AtomEnum, ConnectionExt as _, Drawable, GetGeometryReply, GetImageReply, GetPropertyReply, ImageFormat, ImageOrder,
    MapState, Setup, VisualClass, Visualid, Visualtype, Window, WindowClass,
};
use x11rb::rust_connection::RustConnection;

type X11 = RustConnection<Timed>;

/// Windows nested deeper than this are parts of a window, not windows of a program: frames are one or two levels.
const DEPTH: usize = 4;

/// A window of the program.
struct Candidate {
    window: Window,
    visual: Visualid,
    viewable: bool,
    geometry: GetGeometryReply,
    title: String,
}

/// Takes a picture of the largest window of a process, or of the one whose title contains `title`.
pub fn take(process: u32, display: &Display, title: Option<&str>) -> Result<Picture, PlatformError> {
    let deadline = Instant::now() + Duration::from_millis(limits::X11_TIMEOUT_MS);
    let (connection, screen) = display.connect(deadline)?;
    let Some(root) = connection.setup().roots.get(screen).map(|screen| screen.root) else {
        return Err(PlatformError::NoDisplay("the display has no such screen".to_owned()));
    };
    let windows = windows_of(&connection, root, process).map_err(failed)?;
    let chosen = choose(process, windows, title)?;
    picture(&connection, root, chosen)
}

/// All windows of a process, those nearest to the root first.
fn windows_of(connection: &X11, root: Window, process: u32) -> Result<Vec<Candidate>, ReplyError> {
    let pid_atom = connection.intern_atom(false, b"_NET_WM_PID")?;
    let name_atom = connection.intern_atom(false, b"_NET_WM_NAME")?;
    let (pid_atom, name_atom) = (pid_atom.reply()?.atom, name_atom.reply()?.atom);
    let mut found = Vec::new();
    let mut seen = 0;
    let mut level = vec![root];
    for _ in 0..DEPTH {
        // One round trip for all windows of a level; a window may vanish at any time.
        let trees = level.iter().map(|window| connection.query_tree(*window)).collect::<Result<Vec<_>, _>>()?;
        let children = trees.into_iter().filter_map(|tree| tree.reply().ok()).flat_map(|tree| tree.children);
        level = children.take(limits::MAX_WINDOWS_SEEN.saturating_sub(seen)).collect();
        seen += level.len();
        let owners = owners(connection, &level, pid_atom)?;
        for window in level.iter().copied().filter(|window| owners.get(window) == Some(&process)) {
            found.extend(candidate(connection, window, name_atom)?);
        }
    }
    Ok(found)
}

/// Which process made each window: what the window says of itself, where it is of this machine, else what the server
/// knows of the connection that made it.
fn owners(connection: &X11, windows: &[Window], pid_atom: u32) -> Result<HashMap<Window, u32>, ReplyError> {
    let ask = |window: Window, property: u32, kind: AtomEnum| {
        connection.get_property(false, window, property, kind, 0, limits::MAX_TITLE_BYTES / 4)
    };
    let mut asked = Vec::new();
    for window in windows {
        let pid = ask(*window, pid_atom, AtomEnum::CARDINAL)?;
        asked.push((*window, pid, ask(*window, AtomEnum::WM_CLIENT_MACHINE.into(), AtomEnum::STRING)?));
    }
    let host = host_name();
    let mut owners = HashMap::new();
    let mut silent = Vec::new();
    for (window, pid, machine) in asked {
        let pid = pid.reply().ok().and_then(|reply| reply.value32().and_then(|mut values| values.next()));
        let machine = machine.reply().map(|reply| reply.value).unwrap_or_default();
        match pid {
            Some(pid) if machine.is_empty() || machine == host => {
                owners.insert(window, pid);
            }
            Some(_) => {}
            None => silent.push(window),
        }
    }
    if !silent.is_empty() && connection.extension_information(x11rb::protocol::res::X11_EXTENSION_NAME)?.is_some() {
        let specs: Vec<ClientIdSpec> = silent
            .iter()
            .map(|window| ClientIdSpec { client: *window, mask: ClientIdMask::LOCAL_CLIENT_PID })
            .collect();
        let mask = connection.setup().resource_id_mask;
        if let Ok(reply) = connection.res_query_client_ids(&specs)?.reply() {
            let clients: HashMap<u32, u32> =
                reply.ids.iter().filter_map(|id| Some((id.spec.client & !mask, *id.value.first()?))).collect();
            owners.extend(silent.into_iter().filter_map(|window| Some((window, *clients.get(&(window & !mask))?))));
        }
    }
    Ok(owners)
}

fn candidate(connection: &X11, window: Window, name_atom: u32) -> Result<Option<Candidate>, ConnectionError> {
    let attributes = connection.get_window_attributes(window)?;
    let geometry = connection.get_geometry(window)?;
    let any = AtomEnum::ANY;
    let name = connection.get_property(false, window, name_atom, any, 0, limits::MAX_TITLE_BYTES / 4)?;
    let old_name = connection.get_property(false, window, AtomEnum::WM_NAME, any, 0, limits::MAX_TITLE_BYTES / 4)?;
    let (Ok(attributes), Ok(geometry)) = (attributes.reply(), geometry.reply()) else { return Ok(None) };
    if attributes.class != WindowClass::INPUT_OUTPUT {
        return Ok(None);
    }
    let text = |reply: Result<GetPropertyReply, ReplyError>| reply.map(|reply| reply.value).unwrap_or_default();
    let (name, old_name) = (text(name.reply()), text(old_name.reply()));
    let title = if name.is_empty() { latin1_or_utf8(&old_name) } else { String::from_utf8_lossy(&name).into_owned() };
    let viewable = attributes.map_state == MapState::VIEWABLE;
    Ok(Some(Candidate { window, visual: attributes.visual, viewable, geometry, title }))
}

/// `WM_NAME` is Latin-1 by the book, and UTF-8 by many programs.
fn latin1_or_utf8(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().copied().map(char::from).collect(),
    }
}

fn choose(process: u32, windows: Vec<Candidate>, title: Option<&str>) -> Result<Candidate, PlatformError> {
    let mut titles: Vec<String> =
        windows.iter().filter(|window| !window.title.is_empty()).map(|window| format!("`{}`", window.title)).collect();
    titles.dedup();
    let titles = if titles.is_empty() { "windows without a title".to_owned() } else { titles.join(", ") };
    if windows.is_empty() {
        return Err(PlatformError::NoWindow(format!(
            "process {process} has no window on this display; let it run until it has opened one"
        )));
    }
    let any_viewable = windows.iter().any(|window| window.viewable);
    let wanted = title.map(str::to_lowercase).unwrap_or_default();
    windows
        .into_iter()
        .filter(|window| window.viewable && window.title.to_lowercase().contains(&wanted))
        // Of windows equally large the first, which is nearest to the root.
        .rev()
        .max_by_key(|window| u32::from(window.geometry.width) * u32::from(window.geometry.height))
        .ok_or_else(|| {
            PlatformError::NoWindow(match title {
                Some(title) if any_viewable => {
                    format!("process {process} shows no window with `{title}` in its title; it has {titles}")
                }
                _ => format!(
                    "process {process} shows none of its windows (they are closed or minimised); it has {titles}"
                ),
            })
        })
}

fn picture(connection: &X11, root: Window, chosen: Candidate) -> Result<Picture, PlatformError> {
    let (width, height) = (chosen.geometry.width, chosen.geometry.height);
    let pixels = u64::from(width) * u64::from(height);
    if pixels > limits::MAX_SCREENSHOT_PIXELS {
        return Err(PlatformError::NoWindow(format!(
            "the window has {width} x {height} pixels, and a picture at most {}",
            limits::MAX_SCREENSHOT_PIXELS
        )));
    }
    let (image, method, width, height) = match composited(connection, &chosen) {
        Ok(image) => (image, "GetImage of the composited window", width, height),
        Err(_) => on_screen(connection, root, &chosen)?,
    };
    let setup = connection.setup();
    let visual =
        visual(setup, chosen.visual).ok_or(PlatformError::Unsupported("picture of windows without true colours"))?;
    let layout = Layout::of(setup, image.depth, visual, usize::from(width))
        .ok_or(PlatformError::Unsupported("picture of windows in this pixel format"))?;
    let rgb = layout.rgb(&image.data, usize::from(width), usize::from(height));
    Ok(Picture { width: width.into(), height: height.into(), rgb, title: chosen.title, method })
}

/// The whole window, also where others cover it or it is off the screen: works where a compositor keeps its contents.
fn composited(connection: &X11, chosen: &Candidate) -> Result<GetImageReply, ReplyOrIdError> {
    connection.composite_query_version(0, 2)?.reply()?;
    let pixmap = connection.generate_id()?;
    connection.composite_name_window_pixmap(chosen.window, pixmap)?.check()?;
    let border = i16::try_from(chosen.geometry.border_width).unwrap_or(0);
    let (width, height) = (chosen.geometry.width, chosen.geometry.height);
    let image = get_image(connection, pixmap, (border, border), (width, height));
    connection.free_pixmap(pixmap)?;
    Ok(image?)
}

/// What is on the screen where the window is.
fn on_screen(
    connection: &X11,
    root: Window,
    chosen: &Candidate,
) -> Result<(GetImageReply, &'static str, u16, u16), PlatformError> {
    let ask = || -> Result<_, ReplyError> {
        let place = connection.translate_coordinates(chosen.window, root, 0, 0)?;
        let screen = connection.get_geometry(root)?;
        Ok((place.reply()?, screen.reply()?))
    };
    let (place, screen) = ask().map_err(failed)?;
    let (x, width) = visible(place.dst_x, chosen.geometry.width, screen.width);
    let (y, height) = visible(place.dst_y, chosen.geometry.height, screen.height);
    if width == 0 || height == 0 {
        return Err(PlatformError::NoWindow(format!("the window `{}` is off the screen", chosen.title)));
    }
    let whole = (width, height) == (chosen.geometry.width, chosen.geometry.height);
    let method = if whole { "GetImage" } else { "GetImage of the part on the screen" };
    let image = get_image(connection, chosen.window, (x, y), (width, height)).map_err(failed)?;
    Ok((image, method, width, height))
}

/// The part of a length that begins at `place` and is inside of `0..limit`: where it begins in the length, and how long it is.
fn visible(place: i16, length: u16, limit: u16) -> (i16, u16) {
    let begin = i32::from(place).max(0);
    let end = (i32::from(place) + i32::from(length)).min(i32::from(limit));
    let offset = begin - i32::from(place);
    (i16::try_from(offset).unwrap_or(i16::MAX), u16::try_from((end - begin).max(0)).unwrap_or(0))
}

fn get_image(
    connection: &X11,
    drawable: Drawable,
    place: (i16, i16),
    size: (u16, u16),
) -> Result<GetImageReply, ReplyError> {
    connection.get_image(ImageFormat::Z_PIXMAP, drawable, place.0, place.1, size.0, size.1, u32::MAX)?.reply()
}

fn visual(setup: &Setup, id: Visualid) -> Option<Visualtype> {
    let depths = setup.roots.iter().flat_map(|screen| &screen.allowed_depths);
    let visual = depths.flat_map(|depth| &depth.visuals).find(|visual| visual.visual_id == id)?;
    matches!(visual.class, VisualClass::TRUE_COLOR | VisualClass::DIRECT_COLOR).then_some(*visual)
}

/// How pixels lie in the server's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    pixel_bytes: usize,
    row_bytes: usize,
    big_endian: bool,
    masks: [u32; 3],
}

impl Layout {
    fn of(setup: &Setup, depth: u8, visual: Visualtype, width: usize) -> Option<Layout> {
        let format = setup.pixmap_formats.iter().find(|format| format.depth == depth)?;
        let pixel_bits = usize::from(format.bits_per_pixel);
        let pad = usize::from(format.scanline_pad).max(8);
        matches!(pixel_bits, 16 | 24 | 32).then_some(Layout {
            pixel_bytes: pixel_bits / 8,
            row_bytes: (width * pixel_bits).next_multiple_of(pad) / 8,
            big_endian: setup.image_byte_order == ImageOrder::MSB_FIRST,
            masks: [visual.red_mask, visual.green_mask, visual.blue_mask],
        })
    }

    /// 8-bit RGB without padding; what the answer lacks is black.
    fn rgb(&self, data: &[u8], width: usize, height: usize) -> Vec<u8> {
        let mut rgb = Vec::with_capacity(width * height * 3);
        for row in data.chunks(self.row_bytes.max(1)).take(height) {
            for pixel in row.chunks_exact(self.pixel_bytes.max(1)).take(width) {
                let fold = |value: u32, byte: &u8| value << 8 | u32::from(*byte);
                let value = if self.big_endian { pixel.iter().fold(0, fold) } else { pixel.iter().rev().fold(0, fold) };
                rgb.extend(self.masks.map(|mask| channel(value, mask)));
            }
        }
        rgb.resize(width * height * 3, 0);
        rgb
    }
}

/// One colour of a pixel, scaled to 0..=255.
fn channel(pixel: u32, mask: u32) -> u8 {
    let highest = u64::from(mask >> mask.trailing_zeros().min(31));
    let value = u64::from((pixel & mask) >> mask.trailing_zeros().min(31));
    (value * 255 + highest / 2).checked_div(highest).and_then(|value| u8::try_from(value).ok()).unwrap_or(0)
}

fn failed(error: ReplyError) -> PlatformError {
    match error {
        ReplyError::ConnectionError(ConnectionError::IoError(error))
            if error.kind() == std::io::ErrorKind::TimedOut =>
        {
            PlatformError::Timeout("the X server's answer")
        }
        ReplyError::ConnectionError(error) => {
            PlatformError::Os { call: "a request to the X server", message: error.to_string() }
        }
        ReplyError::X11Error(error) => {
            PlatformError::Os { call: "a request to the X server", message: format!("{:?}", error.error_kind) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_of_every_format_become_rgb() {
        // RGB565: 0xf800 is pure red, 0x07e0 pure green, 0x001f pure blue, 0x8410 the middle of each.
        let rgb565 = Layout { pixel_bytes: 2, row_bytes: 8, big_endian: false, masks: [0xf800, 0x07e0, 0x1f] };
        let data = [0x00, 0xf8, 0xe0, 0x07, 0x1f, 0x00, 0xaa, 0xaa, 0x10, 0x84, 0xff, 0xff, 0x00, 0x00, 0, 0];
        // 16/31 and 32/63 of 255, rounded: 132 and 130.
        let expected = [255, 0, 0, 0, 255, 0, 0, 0, 255, 132, 130, 132, 255, 255, 255, 0, 0, 0];
        assert_eq!(rgb565.rgb(&data, 3, 2), expected);
        let xrgb = Layout { pixel_bytes: 4, row_bytes: 8, big_endian: false, masks: [0xff_0000, 0xff00, 0xff] };
        assert_eq!(xrgb.rgb(&[1, 2, 3, 0xee, 4, 5, 6, 0xee], 2, 1), [3, 2, 1, 6, 5, 4]);
        let big = Layout { big_endian: true, ..xrgb };
        assert_eq!(big.rgb(&[0xee, 1, 2, 3], 1, 1), [1, 2, 3]);
        let deep = Layout { masks: [0x3ff << 20, 0x3ff << 10, 0x3ff], ..xrgb };
        assert_eq!(deep.rgb(&0x3ff0_0200u32.to_le_bytes(), 1, 1), [255, 0, 128]);
        // A short answer, and masks that no server has.
        assert_eq!(xrgb.rgb(&[1, 2], 1, 1), [0, 0, 0]);
        assert_eq!(channel(u32::MAX, 0), 0);
    }

    #[test]
    fn the_part_on_the_screen_is_cut_out() {
        assert_eq!(visible(10, 100, 640), (0, 100));
        assert_eq!(visible(-30, 100, 640), (30, 70));
        assert_eq!(visible(600, 100, 640), (0, 40));
        assert_eq!(visible(-200, 100, 640), (200, 0));
        assert_eq!(visible(700, 100, 640).1, 0);
        assert_eq!(visible(i16::MIN, u16::MAX, u16::MAX), (i16::MAX, 32_767));
    }
}
