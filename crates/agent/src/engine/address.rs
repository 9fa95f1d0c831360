//! Addresses as clients write them and as reports show them: modules, symbols, sums of these.

use super::condition::Operand;
use super::{Engine, refused};
use crate::platform::{Module, Platform, Symbol};
use crate::registers::RegisterRef;
use base::{AddrParseError, VirtAddr, limits};
use code::x86::Bitness;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::rc::Rc;
use wire::{AgentError, ErrorCode};

/// What is mapped in the program, as far as it has been asked for.
#[derive(Default)]
pub(super) struct World {
    modules: Vec<Module>,
    fresh: bool,
    tables: HashMap<(PathBuf, u64), Rc<SymbolTable>>,
}

/// The symbols of one module.
#[derive(Default)]
pub(super) struct SymbolTable {
    /// By address.
    symbols: Vec<Symbol>,
    /// Indices into `symbols`, by name.
    by_name: Vec<u32>,
}

impl World {
    /// Nothing is known any more.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// The module list has changed.
    pub(super) fn stale(&mut self) {
        self.fresh = false;
    }
}

impl SymbolTable {
    fn new(mut symbols: Vec<Symbol>) -> Self {
        symbols.sort_by_key(|symbol| symbol.address);
        let mut by_name: Vec<u32> = (0..u32::try_from(symbols.len()).unwrap_or(0)).collect();
        let name = |index: &u32| symbols.get(*index as usize).map(|symbol| symbol.name.as_str());
        by_name.sort_by(|a, b| name(a).cmp(&name(b)));
        Self { symbols, by_name }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.symbols.len()
    }

    fn name(&self, index: u32) -> &str {
        self.symbols.get(index as usize).map_or("", |symbol| symbol.name.as_str())
    }

    fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Symbol> {
        let first = self.by_name.partition_point(|index| self.name(*index) < name);
        let rest = self.by_name.get(first..).unwrap_or_default();
        rest.iter()
            .take_while(move |index| self.name(**index) == name)
            .filter_map(|index| self.symbols.get(*index as usize))
    }

    /// Names that begin with `start`, a few.
    fn beginning_with(&self, start: &str) -> Vec<String> {
        let first = self.by_name.partition_point(|index| self.name(*index) < start);
        let rest = self.by_name.get(first..).unwrap_or_default();
        let names = rest.iter().map(|index| self.name(*index)).take_while(|name| name.starts_with(start));
        names.take(limits::NEAR_NAMES).map(str::to_owned).collect()
    }

    /// The symbol that `address` lies in.
    fn around(&self, address: VirtAddr) -> Option<&Symbol> {
        let end = self.symbols.partition_point(|symbol| symbol.address <= address);
        let before = self.symbols.get(..end)?;
        let near = before.iter().rev().take(limits::NEAR_SYMBOLS);
        let covering = |symbol: &&Symbol| symbol.size > 0 && address.is_in(symbol.address, symbol.size);
        let open = |symbol: &&Symbol| {
            symbol.size == 0 && symbol.function && address.is_in(symbol.address, limits::OPEN_SYMBOL_BYTES)
        };
        let known = near.clone().find(|symbol| covering(symbol) && symbol.function);
        known.or_else(|| near.clone().find(covering)).or_else(|| near.clone().find(open))
    }
}

/// Why an expression has no address.
pub(super) enum Unresolved {
    /// A name that nothing in the program has, now.
    Unknown(AgentError),
    /// It is wrong in itself.
    Wrong(AgentError),
}

impl Unresolved {
    pub(super) fn error(self) -> AgentError {
        match self {
            Self::Unknown(error) | Self::Wrong(error) => error,
        }
    }
}

enum Term {
    Fixed(u64),
    Register(RegisterRef),
}

impl<P: Platform> Engine<P> {
    /// The modules, read again when the list may have changed.
    pub(super) fn modules(&mut self) -> Vec<Module> {
        if !self.world.fresh {
            match self.platform.modules() {
                Ok(modules) => {
                    self.world.modules = modules;
                    self.world.fresh = true;
                }
                Err(error) => self.note(format!("the modules could not be listed: {error}")),
            }
        }
        self.world.modules.clone()
    }

    /// Reads the module list again.
    pub(super) fn refresh_modules(&mut self) -> Vec<Module> {
        self.world.stale();
        self.modules()
    }

    /// The symbols of a module, read when they are first asked for.
    pub(super) fn symbol_table(&mut self, module: &Module) -> Rc<SymbolTable> {
        let key = (module.path.clone(), module.base.get());
        if let Some(table) = self.world.tables.get(&key) {
            return Rc::clone(table);
        }
        // Before those of the module itself, which are shown where both name one address.
        let (mut symbols, outside) = self.options.symbols.symbols_of(module);
        if outside > 0 {
            self.note(format!("{outside} names of the symbol file lie outside of {} and are left out", module.name));
        }
        match self.platform.symbols(module) {
            Ok(own) => symbols.extend(own),
            Err(error) => self.note(format!("symbols of {} could not be read: {error}", module.name)),
        }
        let table = Rc::new(SymbolTable::new(symbols));
        self.world.tables.insert(key, Rc::clone(&table));
        table
    }

    /// The module that an address lies in.
    pub(super) fn module_of(&mut self, address: VirtAddr) -> Option<Module> {
        self.modules();
        self.world.modules.iter().find(|module| address.is_in(module.base, module.size)).cloned()
    }

    /// The symbol that an address lies in: its name and where it begins.
    pub(super) fn symbol_of(&mut self, address: VirtAddr) -> Option<(String, VirtAddr)> {
        let module = self.module_of(address)?;
        let table = self.symbol_table(&module);
        table.around(address).map(|symbol| (symbol.name.clone(), symbol.address))
    }

    /// `function+0x10`, where a symbol is known.
    pub(super) fn symbolic(&mut self, address: VirtAddr) -> Option<String> {
        let (name, start) = self.symbol_of(address)?;
        let offset = address.offset_from(start).unwrap_or(0);
        Some(if offset == 0 { name } else { format!("{name}+0x{offset:x}") })
    }

    /// `module+0x1000`.
    pub(super) fn in_module(&mut self, address: VirtAddr) -> Option<String> {
        let module = self.module_of(address)?;
        Some(format!("{}+{}", module.name, address.to_rva(module.base)?))
    }

    /// The better of the two.
    pub(super) fn location(&mut self, address: VirtAddr) -> Option<String> {
        self.symbolic(address).or_else(|| self.in_module(address))
    }

    /// The address that an expression stands for.
    pub(super) fn resolve(&mut self, text: &str) -> Result<VirtAddr, Unresolved> {
        let operand = self.operand(text, false)?;
        Ok(VirtAddr::new(self.bitness().wrap(operand.fixed)))
    }

    /// As [`Engine::resolve`], for commands that need the address now.
    pub(super) fn address(&mut self, text: &str) -> Result<VirtAddr, AgentError> {
        self.resolve(text).map_err(Unresolved::error)
    }

    /// Takes an expression apart; with `registers`, their names are terms too.
    pub(super) fn operand(&mut self, text: &str, registers: bool) -> Result<Operand, Unresolved> {
        let bitness = self.bitness();
        let mut operand = Operand { fixed: 0, registers: Vec::new() };
        let mut rest = text.trim();
        let mut added = true;
        if rest.len() > limits::MAX_ADDR_EXPR_BYTES {
            return Err(Unresolved::Wrong(wrong(text, "it is too long")));
        }
        loop {
            let (term, length) = self.term(text, rest, registers, bitness)?;
            match term {
                Term::Fixed(value) if added => operand.fixed = operand.fixed.wrapping_add(value),
                Term::Fixed(value) => operand.fixed = operand.fixed.wrapping_sub(value),
                Term::Register(register) => operand.registers.push((register, added)),
            }
            rest = rest.get(length..).unwrap_or_default().trim_start();
            added = match rest.chars().next() {
                None => return Ok(operand),
                Some('+') => true,
                Some('-') => false,
                Some(_) => return Err(Unresolved::Wrong(wrong(text, "`+` or `-` is missing between two parts"))),
            };
            rest = rest.get(1..).unwrap_or_default().trim_start();
        }
    }

    /// The term at the start of `rest`, and its length in bytes. Names may have `+` and `-` in them (`libstdc++.so.6`),
    /// so the longest that means something counts.
    fn term(
        &mut self,
        whole: &str,
        rest: &str,
        registers: bool,
        bitness: Bitness,
    ) -> Result<(Term, usize), Unresolved> {
        let mut ends: Vec<usize> = rest.match_indices(['+', '-']).map(|(at, _)| at).filter(|at| *at > 0).collect();
        let first = ends.first().copied().unwrap_or(rest.len());
        let shortest = rest.get(..first).unwrap_or(rest).trim_end();
        if shortest.is_empty() || rest.starts_with(['+', '-']) {
            return Err(Unresolved::Wrong(wrong(whole, "a part is missing")));
        }
        match shortest.parse::<VirtAddr>() {
            Ok(number) => return Ok((Term::Fixed(number.get()), first)),
            Err(AddrParseError::TooLarge(_)) => {
                return Err(Unresolved::Wrong(wrong(whole, &format!("`{shortest}` does not fit in 64 bits"))));
            }
            Err(_) if shortest.starts_with("0x") || shortest.starts_with("0X") => {
                return Err(Unresolved::Wrong(wrong(whole, &format!("`{shortest}` is no hexadecimal number"))));
            }
            Err(_) => {}
        }
        if registers && let Some(register) = RegisterRef::find(shortest, bitness) {
            return Ok((Term::Register(register), first));
        }
        ends.push(rest.len());
        let mut unknown = None;
        for end in ends.into_iter().rev().take(limits::MAX_NAME_PARTS) {
            let name = rest.get(..end).unwrap_or(rest).trim_end();
            match self.name(name) {
                Ok(value) => return Ok((Term::Fixed(value), end)),
                Err(Unresolved::Wrong(error)) if error.code != ErrorCode::UnknownSymbol => {
                    return Err(Unresolved::Wrong(error));
                }
                // The shortest is the one that the caller most likely meant.
                Err(error) => unknown = Some(error),
            }
        }
        let plausible = shortest.chars().next().is_some_and(|first| first.is_alphabetic() || "_?@$.".contains(first))
            || shortest.contains('.');
        match unknown {
            Some(error) if plausible => Err(error),
            _ => Err(Unresolved::Wrong(wrong(whole, &format!("`{shortest}` is neither a number nor a name")))),
        }
    }

    fn name(&mut self, name: &str) -> Result<u64, Unresolved> {
        let modules = self.modules();
        if let Some((module, symbol)) = name.split_once('!') {
            let among: Vec<Module> = modules.into_iter().filter(|known| is_called(known, module)).collect();
            if among.is_empty() {
                let error =
                    AgentError::new(ErrorCode::UnknownSymbol, format!("no module `{}` is loaded", clip(module)));
                return Err(Unresolved::Unknown(error.hint("list_modules shows those that are")));
            }
            let (host, own) = among.into_iter().partition(|module| module.host);
            return match self.symbol_in_one(own, host, symbol) {
                Err(Unresolved::Unknown(error)) => Err(Unresolved::Wrong(error)),
                other => other,
            };
        }
        let (host, own): (Vec<Module>, Vec<Module>) = modules.into_iter().partition(|module| module.host);
        for known in [&own, &host] {
            let mut places = BTreeMap::new();
            for module in known.iter().filter(|known| is_called(known, name)) {
                places.insert(module.base.get(), module.path.display().to_string());
            }
            if places.is_empty() {
                match self.symbol_in(known, name) {
                    Err(Unresolved::Unknown(_)) => continue,
                    found => return found,
                }
            }
            // A program often has a function of its own name: `sleep+0x10` of a report may mean either.
            for module in known {
                for symbol in self.symbol_table(module).named(name) {
                    places.entry(symbol.address.get()).or_insert_with(|| format!("{}!{name}", module.name));
                }
            }
            return match places.len() {
                1 => Ok(places.into_keys().next().unwrap_or(0)),
                _ => Err(ambiguous(name, "modules and symbols", places)),
            };
        }
        let all: Vec<Module> = own.into_iter().chain(host).collect();
        Err(Unresolved::Unknown(self.unknown_symbol(&all, name)))
    }

    /// The address of a symbol of the program, or of its host where the program has none of that name.
    fn symbol_in_one(&mut self, own: Vec<Module>, host: Vec<Module>, name: &str) -> Result<u64, Unresolved> {
        match self.symbol_in(&own, name) {
            Err(Unresolved::Unknown(_)) if !host.is_empty() => self.symbol_in(&host, name),
            found => found,
        }
    }

    fn symbol_in(&mut self, modules: &[Module], name: &str) -> Result<u64, Unresolved> {
        let mut found = BTreeMap::new();
        for module in modules {
            let table = self.symbol_table(module);
            for symbol in table.named(name) {
                found.entry(symbol.address.get()).or_insert_with(|| format!("{}!{name}", module.name));
            }
        }
        match found.len() {
            0 => Err(Unresolved::Unknown(self.unknown_symbol(modules, name))),
            1 => Ok(found.into_keys().next().unwrap_or(0)),
            _ => Err(ambiguous(name, "symbols", found)),
        }
    }

    fn unknown_symbol(&mut self, modules: &[Module], name: &str) -> AgentError {
        let mut near = Vec::new();
        let start: String = name.chars().take(name.chars().count().div_ceil(2).max(3)).collect();
        for module in modules.iter().filter(|_| !start.is_empty()) {
            near.extend(self.symbol_table(module).beginning_with(&start));
            if near.len() >= limits::NEAR_NAMES {
                break;
            }
        }
        near.truncate(limits::NEAR_NAMES);
        let error = AgentError::new(ErrorCode::UnknownSymbol, format!("no module or symbol `{}` is known", clip(name)));
        if near.is_empty() {
            error.hint("write an address like 0x40C8E0, or module+0x1000; list_modules shows the modules")
        } else {
            error.hint(format!("did you mean: {}", near.join(", "))).detail("candidates", near)
        }
    }

    /// Where an address is, in a form that outlives the process: the module's name and the offset in it.
    pub(super) fn home(&mut self, address: VirtAddr) -> Option<(String, u64)> {
        let module = self.module_of(address)?;
        Some((module.name, address.offset_from(module.base)?))
    }

    /// The address of such a place now.
    pub(super) fn at_home(&mut self, home: &(String, u64)) -> Option<VirtAddr> {
        let module = self.modules().into_iter().find(|module| module.name == home.0 && home.1 < module.size)?;
        module.base.checked_add(home.1)
    }

    /// Reads the program's memory as the program sees it; fewer bytes where it ends.
    pub(super) fn peek(&self, address: VirtAddr, length: usize) -> Vec<u8> {
        let mut buffer = vec![0; length];
        let count = self.sites.read(&self.platform, address, &mut buffer).unwrap_or(0);
        buffer.truncate(count);
        buffer
    }

    /// One pointer of the program's memory.
    pub(super) fn peek_pointer(&self, address: u64) -> Option<u64> {
        let width = self.bitness().pointer_bytes() as usize;
        let mut buffer = [0; 8];
        let window = buffer.get_mut(..width)?;
        let count = self.sites.read(&self.platform, VirtAddr::new(address), window).ok()?;
        (count == width).then(|| u64::from_le_bytes(buffer))
    }

    /// The address, with what went wrong when nothing is mapped there.
    pub(super) fn must_be_mapped(&self, address: VirtAddr, what: &str) -> Result<(), AgentError> {
        let mut byte = [0];
        match self.platform.read_memory(address, &mut byte) {
            Ok(1) => Ok(()),
            Ok(_) | Err(crate::platform::PlatformError::Unmapped { .. }) => {
                Err(AgentError::new(ErrorCode::AddressUnmapped, format!("{what}: nothing is mapped at {address}"))
                    .hint("list_modules shows what is mapped; an address inside a module is written module+0x1000")
                    .detail("first_bad", address.to_string()))
            }
            Err(error) => Err(refused(error, what)),
        }
    }
}

/// Whether a module goes by that name: its whole path, or its file name, with or without what follows a dot, in any case
/// of letters.
pub(super) fn is_called(module: &Module, name: &str) -> bool {
    if module.path.to_str() == Some(name) {
        return !name.is_empty();
    }
    let file = module.name.as_str();
    let mut shorter = std::iter::successors(Some(file), |longer| longer.rsplit_once('.').map(|(stem, _)| stem));
    !name.is_empty() && shorter.any(|known| known.eq_ignore_ascii_case(name))
}

fn ambiguous(name: &str, what: &str, found: BTreeMap<u64, String>) -> Unresolved {
    let total = found.len();
    let candidates: Vec<String> = found
        .into_iter()
        .take(limits::NEAR_NAMES)
        .map(|(address, name)| format!("{name} = {}", VirtAddr::new(address)))
        .collect();
    Unresolved::Wrong(
        AgentError::new(ErrorCode::Ambiguous, format!("{total} {what} are called `{}`", clip(name)))
            .hint(format!(
                "write module!symbol, the module's whole path, or the address; candidates: {}",
                candidates.join(", ")
            ))
            .detail("candidates", candidates),
    )
}

fn wrong(text: &str, why: &str) -> AgentError {
    AgentError::new(ErrorCode::InvalidParams, format!("`{}` is not an address: {why}", clip(text)))
        .hint("an address is 0x40C8E0, module+0x1000, a symbol, module!symbol, or sums of these with + and -")
}

fn clip(text: &str) -> String {
    let mut short: String = text.chars().take(80).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
