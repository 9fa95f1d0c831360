//! The breakpoints of one processor, as their user names them.

use std::time::SystemTime;

use base::limits;

use super::error::Error;
use super::packets::{Mode, PointKind};
use super::ranges::{ModeRequest, Place, RangeSource};

/// One breakpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breakpoint {
    /// Its name, `bp-1` and so on; none is given twice.
    pub id: String,
    /// Where it is.
    pub address: u32,
    /// The mode it was asked for with.
    pub requested: ModeRequest,
    /// The mode it has.
    pub mode: Mode,
    /// The range it lies in.
    pub range: String,
    /// Where that range comes from.
    pub source: RangeSource,
    /// The symbol it was asked for with.
    pub symbol: Option<String>,
    /// When it was set.
    pub created: SystemTime,
    /// How often the program stopped at it.
    pub hits: u64,
}

/// What a stub is told of a point: kind, address, and size in bytes.
pub type Key = (PointKind, u32, u32);

/// All of them.
#[derive(Debug, Default)]
pub struct Breakpoints {
    all: Vec<Breakpoint>,
    named: u32,
}

impl Breakpoints {
    /// All, in the order in which they were set.
    pub fn all(&self) -> &[Breakpoint] {
        &self.all
    }

    /// # Errors
    /// [`Error::Full`].
    pub fn room(&self) -> Result<(), Error> {
        if self.all.len() < limits::MAX_GDB_BREAKPOINTS {
            return Ok(());
        }
        Err(Error::Full { what: "the breakpoints", most: limits::MAX_GDB_BREAKPOINTS })
    }

    /// Notes one that has been planted.
    pub fn add(&mut self, address: u32, requested: ModeRequest, place: Place, symbol: Option<String>) -> Breakpoint {
        self.named = self.named.saturating_add(1);
        let breakpoint = Breakpoint {
            id: format!("bp-{}", self.named),
            address,
            requested,
            mode: place.mode,
            range: place.range,
            source: place.source,
            symbol,
            created: SystemTime::now(),
            hits: 0,
        };
        self.all.push(breakpoint.clone());
        breakpoint
    }

    /// The one with this name.
    ///
    /// # Errors
    /// [`Error::Unknown`].
    pub fn get(&self, id: &str) -> Result<&Breakpoint, Error> {
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

    /// Counts a stop at `pc` in `mode`; gives the name of the first breakpoint there.
    pub fn hit(&mut self, pc: u32, mode: Mode) -> Option<String> {
        let mut first = None;
        for one in self.all.iter_mut().filter(|one| one.address == pc && one.mode == mode) {
            one.hits = one.hits.saturating_add(1);
            first.get_or_insert_with(|| one.id.clone());
        }
        first
    }

    /// What the stub must know of them: several at one address are one to it.
    pub fn keys(&self) -> impl Iterator<Item = Key> {
        self.all.iter().map(Breakpoint::key)
    }
}

impl Breakpoint {
    /// What the stub is told of it.
    pub const fn key(&self) -> Key {
        (PointKind::Execute, self.address, self.mode.size())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(breakpoints: &mut Breakpoints, address: u32) -> String {
        let place = Place { mode: Mode::Thumb, range: "main".to_owned(), source: RangeSource::Main };
        breakpoints.add(address, ModeRequest::Auto, place, None).id
    }

    #[test]
    fn names_are_not_given_twice_and_hits_count_for_all_at_the_address() {
        let mut breakpoints = Breakpoints::default();
        assert_eq!(add(&mut breakpoints, 2), "bp-1");
        breakpoints.forget("bp-1");
        assert_eq!((add(&mut breakpoints, 2), add(&mut breakpoints, 2)), ("bp-2".to_owned(), "bp-3".to_owned()));
        assert_eq!(breakpoints.hit(2, Mode::Thumb).as_deref(), Some("bp-2"));
        assert_eq!(breakpoints.hit(2, Mode::Arm), None);
        assert_eq!(breakpoints.all().iter().map(|one| one.hits).collect::<Vec<_>>(), [1, 1]);
        assert!(matches!(breakpoints.get("bp-1"), Err(Error::Unknown { known, .. }) if known == "bp-2, bp-3"));
    }

    #[test]
    fn there_is_room_for_as_many_as_the_limit_says() {
        let mut breakpoints = Breakpoints::default();
        for address in 0..32 {
            breakpoints.room().unwrap();
            add(&mut breakpoints, address * 2);
        }
        assert!(matches!(breakpoints.room(), Err(Error::Full { most: 32, .. })));
    }
}
