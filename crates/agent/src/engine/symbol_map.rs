//! Names that a user gives to addresses in a file, as disassemblers export them: for programs that name little themselves.

use crate::platform::{Module, Symbol};
use base::{VirtAddr, limits};
use std::io::Read;
use std::path::Path;

/// Named places of programs that need not run yet.
#[derive(Clone, Debug, Default)]
pub struct SymbolMap {
    entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    place: Place,
    name: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// An address in the executable, where its linker wanted it to be.
    Preferred(u64),
    /// An offset in the module of that name.
    Relative(String, u64),
}

impl SymbolMap {
    /// Reads a file of lines `address name` or `module+rva name`; numbers are hexadecimal. An empty line, and what stands
    /// behind a `#` that begins a word, is a comment.
    ///
    /// # Errors
    /// A sentence that names the file, and the line where one is wrong.
    pub fn read(path: &Path) -> Result<Self, String> {
        let failed = |what: &dyn std::fmt::Display| format!("{}: {what}", path.display());
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path).map_err(|error| failed(&error))?;
        file.take(limits::MAX_SYMBOL_MAP_BYTES + 1).read_to_end(&mut bytes).map_err(|error| failed(&error))?;
        if bytes.len() as u64 > limits::MAX_SYMBOL_MAP_BYTES {
            return Err(failed(&format_args!("it is longer than {} bytes", limits::MAX_SYMBOL_MAP_BYTES)));
        }
        // Disassemblers on Windows put a mark before UTF-8.
        let text = std::str::from_utf8(&bytes).map_err(|_| failed(&"it is not UTF-8 text"))?;
        Self::parse(text.strip_prefix('\u{feff}').unwrap_or(text)).map_err(|reason| failed(&reason))
    }

    /// As [`SymbolMap::read`], from the text.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut entries = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let wrong = |what: String| format!("line {}: {what}", index + 1);
            let mut words = line.split_whitespace().take_while(|word| !word.starts_with('#'));
            let Some(place) = words.next() else { continue };
            let place = parse_place(place).map_err(wrong)?;
            let name = words.next().ok_or_else(|| wrong("a name is missing behind the address".to_owned()))?;
            if let Some(more) = words.next() {
                return Err(wrong(format!("`{}` is too much: a line is an address and a name", clip(more))));
            }
            if name.len() > limits::MAX_ADDR_EXPR_BYTES {
                return Err(wrong(format!("the name is longer than {} bytes", limits::MAX_ADDR_EXPR_BYTES)));
            }
            if name.parse::<VirtAddr>().is_ok() {
                return Err(wrong(format!("`{}` is a number, not a name", clip(name))));
            }
            if entries.len() == limits::MAX_SYMBOLS_PER_MODULE {
                return Err(wrong(format!("there are more than {} names", limits::MAX_SYMBOLS_PER_MODULE)));
            }
            entries.push(Entry { place, name: name.to_owned() });
        }
        Ok(Self { entries })
    }

    /// The symbols that lie in a module, and how many are meant for it but lie outside.
    pub(super) fn symbols_of(&self, module: &Module) -> (Vec<Symbol>, usize) {
        let mut outside = 0;
        let mut symbols = Vec::new();
        for entry in &self.entries {
            let offset = match &entry.place {
                Place::Preferred(address) if module.main => {
                    address.wrapping_add(module.bias).wrapping_sub(module.base.get())
                }
                Place::Relative(name, offset) if super::address::is_called(module, name) => *offset,
                _ => continue,
            };
            match module.base.checked_add(offset).filter(|_| offset < module.size) {
                Some(address) => symbols.push(Symbol { name: entry.name.clone(), address, size: 0, function: true }),
                None => outside += 1,
            }
        }
        (symbols, outside)
    }
}

fn parse_place(text: &str) -> Result<Place, String> {
    let number = |digits: &str| {
        let bare = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")).unwrap_or(digits);
        let value = u64::from_str_radix(bare, 16).ok().filter(|_| !bare.starts_with('+'));
        value.ok_or_else(|| format!("`{}` is not a hexadecimal number of up to 64 bits", clip(digits)))
    };
    match text.rsplit_once('+') {
        Some(("", _)) => Err(format!("`{}` names no module before the `+`", clip(text))),
        Some((module, offset)) => Ok(Place::Relative(module.to_owned(), number(offset)?)),
        None => number(text).map(Place::Preferred),
    }
}

fn clip(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(name: &str, base: u64, bias: u64, main: bool) -> Module {
        let path = format!("/games/{name}").into();
        Module { name: name.to_owned(), path, base: VirtAddr::new(base), size: 0x9000, bias, main, host: false }
    }

    fn named(map: &SymbolMap, module: &Module) -> Vec<(String, u64)> {
        map.symbols_of(module).0.into_iter().map(|symbol| (symbol.name, symbol.address.get())).collect()
    }

    #[test]
    fn names_follow_their_modules_wherever_these_are_loaded() {
        let map = SymbolMap::parse(
            "# exported\r\n\n00401000 entry\n0x401020\tframe_limiter # sixty times\n  GAME.dll+1a0 hook\nplug+in.dll+0x10 b\n",
        )
        .unwrap();
        let own = [("entry".to_owned(), 0x40_1000), ("frame_limiter".to_owned(), 0x40_1020)];
        assert_eq!(named(&map, &module("game.exe", 0x40_0000, 0, true)), own);
        // Moved from 0x400000 to 0x7f0000: by 0x3f0000.
        let moved = own.map(|(name, address)| (name, address + 0x3f_0000));
        assert_eq!(named(&map, &module("game.exe", 0x7f_0000, 0x3f_0000, true)), moved);
        assert_eq!(named(&map, &module("game.dll", 0x1000_0000, 0, false)), [("hook".to_owned(), 0x1000_01a0)]);
        assert_eq!(named(&map, &module("plug+in.dll", 0x2000_0000, 0, false)), [("b".to_owned(), 0x2000_0010)]);
        assert_eq!(named(&map, &module("other.dll", 0x3000_0000, 0, false)), []);
    }

    #[test]
    fn places_outside_of_the_module_are_counted_not_named() {
        let map = SymbolMap::parse("3fffff before\n400000 first\n408fff last\n409000 behind\n").unwrap();
        let game = module("game.exe", 0x40_0000, 0, true);
        assert_eq!(named(&map, &game), [("first".to_owned(), 0x40_0000), ("last".to_owned(), 0x40_8fff)]);
        assert_eq!(map.symbols_of(&game).1, 2);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (text, line, reason) in [
            ("401000 a\n\n40100g b", 3, "`40100g` is not a hexadecimal number"),
            ("401000", 1, "a name is missing"),
            ("401000 # only a comment", 1, "a name is missing"),
            ("401000 void f", 1, "`f` is too much"),
            ("401000 0x12", 1, "is a number"),
            ("10000000000000000 a", 1, "64 bits"),
            ("game.exe+ a", 1, "is not a hexadecimal number"),
            ("+10 a", 1, "names no module"),
            ("game.exe++10 a", 1, ""),
            ("name 401000", 1, "`name` is not a hexadecimal number"),
        ] {
            match SymbolMap::parse(text) {
                Err(error) => {
                    assert!(error.starts_with(&format!("line {line}: ")) && error.contains(reason), "{text}: {error}");
                }
                // A module may be called `game.exe+`.
                Ok(map) => assert_eq!(map.entries[0].place, Place::Relative("game.exe+".to_owned(), 0x10)),
            }
        }
        let long = format!("401000 {}", "n".repeat(limits::MAX_ADDR_EXPR_BYTES + 1));
        assert!(SymbolMap::parse(&long).unwrap_err().contains("longer than"));
    }

    #[test]
    fn files_are_read_with_their_mark_and_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("game.map");
        assert!(SymbolMap::read(&path).unwrap_err().contains("game.map"));
        std::fs::write(&path, "\u{feff}401000 a").unwrap();
        assert_eq!(SymbolMap::read(&path).unwrap().entries.len(), 1);
        std::fs::write(&path, [b'4', b' ', 0xff]).unwrap();
        assert!(SymbolMap::read(&path).unwrap_err().contains("UTF-8"));
        let file = std::fs::File::create(&path).unwrap();
        file.set_len(limits::MAX_SYMBOL_MAP_BYTES + 1).unwrap();
        assert!(SymbolMap::read(&path).unwrap_err().contains("longer than"));
    }
}
