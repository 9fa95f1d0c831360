//! Pictures of the program's window: which window, which way of taking it, and what a useful picture is.

use super::screen::{self, Way, Window};
use crate::platform::{Picture, PlatformError};
use base::limits;
use std::sync::mpsc;
use std::time::Duration;

/// The largest visible window of the process whose title contains `title`.
pub fn picture(pid: u32, title: Option<&str>, stopped: bool) -> Result<Picture, PlatformError> {
    screen::see_real_pixels();
    let all: Vec<Window> = screen::windows().into_iter().filter(|window| window.process() == pid).collect();
    let (window, size) = choose(&all, title)?;
    let pixels = u64::from(size.0) * u64::from(size.1);
    if pixels > limits::MAX_SCREENSHOT_PIXELS {
        return Err(PlatformError::NoWindow(format!(
            "the window has {pixels} pixels; a screenshot may have {}",
            limits::MAX_SCREENSHOT_PIXELS
        )));
    }
    let mut plain = None;
    let ways = [(Way::WindowSurface, "window DC"), (Way::Desktop, "desktop DC"), (Way::Print, "PrintWindow")];
    for (way, method) in ways.into_iter().filter(|(way, _)| *way != Way::Print || !stopped) {
        let taken = match way {
            Way::Print => print_in_time(window, size),
            _ => screen::capture(window, size, way),
        };
        let Some(rgb) = taken.map(|pixels| to_rgb(&pixels)) else { continue };
        let picture = Picture { width: size.0, height: size.1, rgb, title: window.title(), method };
        if is_one_colour(&picture.rgb) {
            plain.get_or_insert(picture);
        } else {
            return Ok(picture);
        }
    }
    // One colour may be all there is to see; better than nothing, and it is what the first way gave.
    plain.ok_or_else(|| PlatformError::NoDisplay("Windows gave no picture of the window by any way".to_owned()))
}

fn choose(all: &[Window], title: Option<&str>) -> Result<(Window, (u32, u32)), PlatformError> {
    let shown: Vec<Window> = all.iter().copied().filter(|window| window.is_visible()).collect();
    let titles: Vec<String> = shown.iter().map(|window| window.title()).collect();
    let wanted = title.map(str::to_lowercase).unwrap_or_default();
    let fitting = shown.iter().zip(&titles).filter(|(_, title)| title.to_lowercase().contains(&wanted));
    let largest = fitting
        .filter_map(|(window, _)| Some((*window, window.size().filter(|_| !window.is_minimised())?)))
        .max_by_key(|(_, (width, height))| u64::from(*width) * u64::from(*height));
    largest.ok_or_else(|| {
        PlatformError::NoWindow(match (shown.is_empty(), title) {
            (true, _) => "the program shows no window".to_owned(),
            (false, None) => "the program's windows are minimised or empty".to_owned(),
            (false, Some(title)) => {
                format!("the program shows no window with `{title}` in its title; there are: {}", titles.join(", "))
            }
        })
    })
}

/// A window that does not draw itself in time is left to a thread that ends when it does.
fn print_in_time(window: Window, size: (u32, u32)) -> Option<Vec<u8>> {
    let (sender, picture) = mpsc::channel();
    let draw = move || {
        screen::see_real_pixels();
        // The receiver has given up when the time is over.
        drop(sender.send(screen::capture(window, size, Way::Print)));
    };
    std::thread::Builder::new().name("print-window".to_owned()).spawn(draw).ok()?;
    picture.recv_timeout(Duration::from_millis(limits::PRINT_WINDOW_TIMEOUT_MS)).ok()?
}

/// Drops the fourth byte, which is 0 in what GDI captures and would make the picture transparent.
fn to_rgb(pixels: &[u8]) -> Vec<u8> {
    pixels.as_chunks::<4>().0.iter().flat_map(|[blue, green, red, _]| [*red, *green, *blue]).collect()
}

fn is_one_colour(rgb: &[u8]) -> bool {
    let pixels = rgb.as_chunks::<3>().0;
    pixels.iter().all(|pixel| Some(pixel) == pixels.first())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_are_turned_round_and_lose_their_alpha() {
        assert_eq!(to_rgb(&[1, 2, 3, 0, 4, 5, 6, 0]), [3, 2, 1, 6, 5, 4]);
    }

    #[test]
    fn one_colour_is_told_from_a_picture() {
        assert!(is_one_colour(&[1, 2, 3, 1, 2, 3]) && is_one_colour(&[]));
        assert!(!is_one_colour(&[1, 2, 3, 1, 2, 4]));
    }

    #[test]
    fn a_process_without_windows_is_told_so() {
        assert!(matches!(picture(u32::MAX, None, true), Err(PlatformError::NoWindow(_))));
    }
}
