//! What the machine shows, what is typed into it, and snapshots of it.

use super::super::commands::{Display, display, keyboard, palette, snapshot};
use super::super::error::Error;
use super::Monitor;

/// What the machine shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// The pixels.
    pub display: Display,
    /// Red, green and blue of each colour.
    pub palette: Vec<[u8; 3]>,
}

impl Picture {
    /// First row of the picture inside the border: one above the one that VICE tells.
    pub const fn inner_y(&self) -> u16 {
        self.display.y.saturating_sub(1)
    }
}

impl Monitor {
    /// What the machine shows. `on_old` asks builds too whose command writes beyond its buffer.
    ///
    /// # Errors
    /// [`Error::OldBuild`]; [`Error::Protocol`] for a picture with more colours than its palette has; those of every call.
    pub fn capture(&self, use_vic: bool, on_old: bool, limit_ms: u64) -> Result<Picture, Error> {
        if !on_old && !self.version.has_mended_display() {
            let (version, revision) = (self.version.to_string(), self.version.revision);
            return Err(Error::OldBuild { version, revision });
        }
        let operation = self.stopped("capture_display", limit_ms, false)?;
        let display = display::answer(&operation.exchange(&display::request(use_vic))?.body)?;
        let palette = palette::answer(&operation.exchange(&palette::request(use_vic))?.body)?;
        let highest = display.pixels.iter().copied().max().unwrap_or_default();
        if palette.len() <= usize::from(highest) {
            return Err(Error::Protocol(format!(
                "a picture with colour {highest} and a palette of {} colours",
                palette.len()
            )));
        }
        Ok(Picture { display, palette })
    }

    /// Types text in PETSCII, which the machine takes as soon as it runs.
    ///
    /// # Errors
    /// [`Error::Argument`] for no byte and for more than 255; those of every call.
    pub fn feed_keyboard(&self, text: &[u8], limit_ms: u64) -> Result<(), Error> {
        let request = keyboard::request(text)?;
        self.stopped("feed_keyboard", limit_ms, true)?.exchange(&request).map(drop)
    }

    /// Saves a snapshot into a file of VICE's own form, which VICE writes.
    ///
    /// # Errors
    /// [`Error::Argument`] for a path that is not absolute; those of every call.
    pub fn save_snapshot(&self, path: &str, roms: bool, disks: bool, limit_ms: u64) -> Result<(), Error> {
        let request = snapshot::dump(path, roms, disks)?;
        self.stopped("save_snapshot", limit_ms, true)?.exchange(&request).map(drop)
    }

    /// Loads a snapshot, and gives where the machine is now.
    ///
    /// # Errors
    /// As [`Self::save_snapshot`].
    pub fn load_snapshot(&self, path: &str, limit_ms: u64) -> Result<u16, Error> {
        let request = snapshot::undump(path)?;
        let operation = self.stopped("load_snapshot", limit_ms, true)?;
        let pc = snapshot::undumped(&operation.exchange(&request)?.body)?;
        self.driver.state().machine.set_pc(pc);
        Ok(pc)
    }
}
