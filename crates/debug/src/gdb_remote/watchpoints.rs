//! The watchpoints of one processor, as their user names them.

use std::time::SystemTime;

use base::limits;

use super::breakpoints::Key;
use super::error::Error;
use super::packets::PointKind;

/// Which accesses stop the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchKind {
    /// Writes.
    Write,
    /// Reads.
    Read,
    /// Both.
    Access,
}

impl WatchKind {
    /// All of them, in the order of [`super::Capabilities::watchpoints`].
    pub const ALL: [Self; 3] = [Self::Write, Self::Read, Self::Access];

    /// The protocol's kind.
    pub const fn point(self) -> PointKind {
        match self {
            Self::Write => PointKind::Write,
            Self::Read => PointKind::Read,
            Self::Access => PointKind::Access,
        }
    }
}

/// One watchpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watchpoint {
    /// Its name, `wp-1` and so on; none is given twice.
    pub id: String,
    /// First address watched. DeSmuME stops only for accesses that begin at exactly this address, whatever the size.
    pub address: u32,
    /// Bytes watched: 1, 2 or 4.
    pub size: u32,
    /// Which accesses.
    pub kind: WatchKind,
    /// When it was set.
    pub created: SystemTime,
    /// How often the program stopped for it.
    pub hits: u64,
}

impl Watchpoint {
    /// What the stub is told of it.
    pub const fn key(&self) -> Key {
        (self.kind.point(), self.address, self.size)
    }

    fn covers(&self, address: u32) -> bool {
        address.checked_sub(self.address).is_some_and(|offset| offset < self.size)
    }
}

/// All of them.
#[derive(Debug, Default)]
pub struct Watchpoints {
    all: Vec<Watchpoint>,
    named: u32,
}

impl Watchpoints {
    /// All, in the order in which they were set.
    pub fn all(&self) -> &[Watchpoint] {
        &self.all
    }

    /// Whether one of them covers this address.
    pub fn covers(&self, address: u32) -> bool {
        self.all.iter().any(|one| one.covers(address))
    }

    /// Checks what one may be.
    ///
    /// # Errors
    /// [`Error::Full`]; [`Error::OutOfRange`] for a size other than 1, 2 or 4; [`Error::MisalignedWatch`] for an address that is
    /// no multiple of it.
    pub fn check(&self, address: u32, size: u32) -> Result<(), Error> {
        if self.all.len() >= limits::MAX_GDB_WATCHPOINTS {
            return Err(Error::Full { what: "the watchpoints", most: limits::MAX_GDB_WATCHPOINTS });
        }
        if !matches!(size, 1 | 2 | 4) {
            let what = "the size of a watchpoint, a power of two,";
            return Err(Error::OutOfRange { what, least: 1, most: 4, asked: size.into() });
        }
        if !address.is_multiple_of(size) {
            return Err(Error::MisalignedWatch { address, size });
        }
        Ok(())
    }

    /// Notes one that has been planted.
    pub fn add(&mut self, address: u32, size: u32, kind: WatchKind) -> Watchpoint {
        self.named = self.named.saturating_add(1);
        let id = format!("wp-{}", self.named);
        let watchpoint = Watchpoint { id, address, size, kind, created: SystemTime::now(), hits: 0 };
        self.all.push(watchpoint.clone());
        watchpoint
    }

    /// The one with this name.
    ///
    /// # Errors
    /// [`Error::Unknown`].
    pub fn get(&self, id: &str) -> Result<&Watchpoint, Error> {
        self.all.iter().find(|one| one.id == id).ok_or_else(|| {
            let known: Vec<&str> = self.all.iter().map(|one| one.id.as_str()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            Error::Unknown { id: id.to_owned(), known }
        })
    }

    /// Forgets the one with this name.
    pub fn forget(&mut self, id: &str) {
        self.all.retain(|one| one.id != id);
    }

    /// Counts a stop for an access that begins at `address`; gives the name of the first watchpoint there of the field's kind.
    pub fn hit(&mut self, address: u32, field: &str) -> Option<String> {
        let kind = match field {
            "watch" => WatchKind::Write,
            "rwatch" => WatchKind::Read,
            _ => WatchKind::Access,
        };
        let one = self.all.iter_mut().find(|one| one.covers(address) && one.kind == kind)?;
        one.hits = one.hits.saturating_add(1);
        Some(one.id.clone())
    }

    /// What the stub must know of them.
    pub fn keys(&self) -> impl Iterator<Item = Key> {
        self.all.iter().map(Watchpoint::key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_processor_accesses_at_once_can_be_watched() {
        let watchpoints = Watchpoints::default();
        assert!(watchpoints.check(0x0230_000C, 4).is_ok());
        assert!(matches!(watchpoints.check(0x0230_000E, 4), Err(Error::MisalignedWatch { size: 4, .. })));
        for size in [0, 3, 8] {
            assert!(matches!(watchpoints.check(0x0230_0000, size), Err(Error::OutOfRange { .. })));
        }
    }

    #[test]
    fn a_hit_counts_for_the_watchpoint_of_its_kind() {
        let mut watchpoints = Watchpoints::default();
        watchpoints.add(0x0230_000C, 4, WatchKind::Read);
        watchpoints.add(0x0230_000C, 4, WatchKind::Write);
        assert_eq!(watchpoints.hit(0x0230_000C, "watch").as_deref(), Some("wp-2"));
        assert_eq!(watchpoints.hit(0x0230_0010, "watch"), None);
        assert_eq!(watchpoints.all()[0].hits, 0);
        assert!(watchpoints.covers(0x0230_000F) && !watchpoints.covers(0x0230_0010));
    }
}
