//! Where code may be: the program's own range, and those that the user names because overlays are loaded there.

use std::collections::BTreeMap;

use base::limits;

use super::error::Error;
use super::packets::Mode;

/// What a breakpoint's mode was asked to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModeRequest {
    /// This one.
    Known(Mode),
    /// What the range, the symbol or the address itself says, when they leave only one.
    Auto,
}

/// Where a range comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeSource {
    /// The program itself, by the ROM's header.
    Main,
    /// An overlay, with its number where it was given.
    Overlay(Option<u32>),
    /// The user.
    Explicit,
}

/// Addresses where code may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// Its name: 1 to 64 of `A-Z a-z 0-9 . _ -`.
    pub id: String,
    /// What it is, for people: 1 to 128 characters.
    pub label: String,
    /// First address.
    pub start: u32,
    /// First address behind it.
    pub end: u32,
    /// Where it comes from.
    pub source: RangeSource,
    /// The mode of all its code, where there is one.
    pub default_mode: Option<Mode>,
    /// Modes of single symbols in it.
    pub symbol_modes: BTreeMap<String, Mode>,
}

impl Range {
    fn holds(&self, address: u32, size: u32) -> bool {
        address >= self.start && address.checked_add(size).is_some_and(|end| end <= self.end)
    }

    fn check(&self) -> Result<(), Error> {
        let refuse = |what: &str| Err(Error::BadRange { id: self.id.clone(), what: what.to_owned() });
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if self.id.is_empty() || self.id.len() > limits::MAX_GDB_NAME_CHARS || !self.id.chars().all(plain) {
            return refuse("a name has 1 to 64 of the characters A-Z a-z 0-9 . _ -");
        }
        if self.label.is_empty() || self.label.chars().count() > limits::MAX_GDB_LABEL_CHARS {
            return refuse("a label has 1 to 128 characters");
        }
        if self.start >= self.end {
            return refuse("its end must lie above its start");
        }
        Ok(())
    }
}

/// A breakpoint's place, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The mode.
    pub mode: Mode,
    /// The range's name.
    pub range: String,
    /// Where the range comes from.
    pub source: RangeSource,
}

/// All ranges of one processor, the program's own first.
#[derive(Clone, Debug)]
pub struct Ranges {
    main: Range,
    others: Vec<Range>,
}

impl Ranges {
    /// Only the program's own.
    ///
    /// # Errors
    /// [`Error::BadRange`].
    pub fn new(main: Range) -> Result<Self, Error> {
        main.check()?;
        Ok(Self { main, others: Vec::new() })
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Range> {
        std::iter::once(&self.main).chain(&self.others)
    }

    /// Replaces all but the program's own, after checking every one.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::BadRange`].
    pub fn replace(&mut self, ranges: Vec<Range>) -> Result<(), Error> {
        if ranges.len() > limits::MAX_GDB_RANGES {
            return Err(Error::Full { what: "the executable ranges", most: limits::MAX_GDB_RANGES });
        }
        for (index, range) in ranges.iter().enumerate() {
            range.check()?;
            let before = ranges.iter().take(index).chain(std::iter::once(&self.main));
            if before.into_iter().any(|other| other.id == range.id) {
                return Err(Error::BadRange { id: range.id.clone(), what: "its name is taken".to_owned() });
            }
        }
        self.others = ranges;
        Ok(())
    }

    /// Where a breakpoint at `address` is, and its mode. A mode asked for by `Auto` must follow from the symbol, the range or
    /// the address (one that only Thumb can have).
    ///
    /// # Errors
    /// [`Error::Misaligned`], [`Error::OutsideRanges`], [`Error::UnknownRange`], [`Error::AmbiguousRange`],
    /// [`Error::AmbiguousMode`].
    pub fn place(
        &self,
        address: u32,
        mode: ModeRequest,
        symbol: Option<&str>,
        range: Option<&str>,
    ) -> Result<Place, Error> {
        let aligned = |mode: Mode| address.is_multiple_of(mode.size());
        let misaligned = |mode: Mode| Error::Misaligned {
            address,
            mode: if mode == Mode::Arm { "ARM" } else { "Thumb" },
            alignment: mode.size(),
        };
        if !aligned(Mode::Thumb) {
            return Err(misaligned(Mode::Thumb));
        }
        if let ModeRequest::Known(mode) = mode
            && !aligned(mode)
        {
            return Err(misaligned(mode));
        }
        let holding: Vec<&Range> = self.iter().filter(|range| range.holds(address, Mode::Thumb.size())).collect();
        let range = match (range, holding.as_slice()) {
            (Some(id), some) => some
                .iter()
                .find(|range| range.id == id)
                .copied()
                .ok_or_else(|| Error::UnknownRange { id: id.to_owned(), address, ranges: self.list() })?,
            (None, []) => return Err(Error::OutsideRanges { address, ranges: self.list() }),
            (None, [one]) => one,
            (None, several) => {
                let ranges = several.iter().map(|range| range.id.as_str()).collect::<Vec<_>>().join(", ");
                return Err(Error::AmbiguousRange { address, ranges });
            }
        };
        let mode = match mode {
            ModeRequest::Known(mode) => mode,
            ModeRequest::Auto => {
                let by_symbol = symbol.and_then(|symbol| range.symbol_modes.get(symbol)).copied();
                let by_address = (!aligned(Mode::Arm)).then_some(Mode::Thumb);
                let mode = by_symbol.or(range.default_mode).or(by_address);
                let mode = mode.ok_or(Error::AmbiguousMode { address })?;
                if !aligned(mode) {
                    return Err(misaligned(mode));
                }
                mode
            }
        };
        if !range.holds(address, mode.size()) {
            return Err(Error::OutsideRanges { address, ranges: self.list() });
        }
        Ok(Place { mode, range: range.id.clone(), source: range.source })
    }

    fn list(&self) -> String {
        let one = |range: &Range| format!("{} {:#010x}-{:#010x}", range.id, range.start, range.end);
        self.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(id: &str, start: u32, end: u32, default_mode: Option<Mode>) -> Range {
        let symbol_modes = BTreeMap::from([("thumb_one".to_owned(), Mode::Thumb)]);
        let source = RangeSource::Explicit;
        Range { id: id.to_owned(), label: id.to_owned(), start, end, source, default_mode, symbol_modes }
    }

    fn ranges() -> Ranges {
        let mut ranges = Ranges::new(range("main", 0x200_0000, 0x200_0400, None)).unwrap();
        let two = [range("a", 0x210_0000, 0x210_0100, Some(Mode::Thumb)), range("b", 0x210_0080, 0x210_0200, None)];
        ranges.replace(two.to_vec()).unwrap();
        ranges
    }

    #[test]
    fn a_mode_is_taken_only_from_what_leaves_one() {
        let ranges = ranges();
        let auto = |address, symbol| ranges.place(address, ModeRequest::Auto, symbol, None).map(|place| place.mode);
        assert!(matches!(auto(0x200_0000, None), Err(Error::AmbiguousMode { .. })));
        assert!(matches!(auto(0x200_0000, Some("unknown")), Err(Error::AmbiguousMode { .. })));
        assert_eq!(auto(0x200_0000, Some("thumb_one")).unwrap(), Mode::Thumb);
        assert_eq!(auto(0x200_0002, None).unwrap(), Mode::Thumb);
        assert_eq!(auto(0x210_0000, None).unwrap(), Mode::Thumb);
        assert!(matches!(auto(0x200_0001, None), Err(Error::Misaligned { .. })));
    }

    #[test]
    fn addresses_outside_and_in_several_ranges_are_refused_with_the_ranges() {
        let ranges = ranges();
        let arm = ModeRequest::Known(Mode::Arm);
        let outside = ranges.place(0x200_0400, arm, None, None).unwrap_err();
        assert!(outside.to_string().contains("main 0x02000000-0x02000400, a "), "{outside}");
        assert!(matches!(
            ranges.place(0x210_0080, arm, None, None),
            Err(Error::AmbiguousRange { ranges, .. }) if ranges == "a, b"
        ));
        assert_eq!(ranges.place(0x210_0080, arm, None, Some("b")).unwrap().range, "b");
        assert!(matches!(ranges.place(0x210_0180, arm, None, Some("a")), Err(Error::UnknownRange { .. })));
        assert!(matches!(ranges.place(0x200_0002, arm, None, None), Err(Error::Misaligned { alignment: 4, .. })));
    }

    #[test]
    fn an_instruction_must_lie_wholly_in_its_range() {
        let ranges = Ranges::new(range("odd", 0x200_0000, 0x200_0006, None)).unwrap();
        let place = |address, mode| ranges.place(address, ModeRequest::Known(mode), None, None);
        assert!(place(0x200_0004, Mode::Thumb).is_ok());
        assert!(matches!(place(0x200_0004, Mode::Arm), Err(Error::OutsideRanges { .. })));
    }

    #[test]
    fn ranges_that_cannot_be_change_nothing() {
        let mut ranges = ranges();
        let bad = [
            range("", 0, 4, None),
            range("with space", 0, 4, None),
            range("main", 0, 4, None),
            range("empty", 4, 4, None),
        ];
        for one in bad {
            assert!(matches!(ranges.replace(vec![one]), Err(Error::BadRange { .. })));
        }
        let many = (0..=limits::MAX_GDB_RANGES).map(|n| range(&format!("r{n}"), 0, 4, None)).collect();
        assert!(matches!(ranges.replace(many), Err(Error::Full { .. })));
        assert_eq!(ranges.iter().count(), 3);
    }
}
