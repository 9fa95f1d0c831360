//! Conditions of breakpoints and watchpoints: checked once when they are set, then evaluated at each hit.

use crate::registers::{RegisterRef, Registers, mask};
use base::{VirtAddr, limits};
use code::x86::Bitness;
use wire::{AgentError, CompareOp, Condition, ErrorCode, IntValue};

/// A condition that can be evaluated without anything being looked up.
#[derive(Clone, Debug, PartialEq)]
pub struct Compiled(Node);

#[derive(Clone, Debug, PartialEq)]
enum Node {
    Register { register: RegisterRef, test: Test },
    Memory { place: Place, bytes: usize, test: Test },
    All(Vec<Node>),
    Any(Vec<Node>),
}

/// An address: fixed parts summed up, and registers added or subtracted at each hit.
#[derive(Clone, Debug, PartialEq)]
struct Place {
    fixed: u64,
    registers: Vec<(RegisterRef, bool)>,
    bitness: Bitness,
}

#[derive(Clone, Debug, PartialEq)]
struct Test {
    op: CompareOp,
    /// Two's complement bits, cut to `bits`.
    value: u64,
    bits: u32,
    signed: bool,
}

/// An address expression of a condition taken apart: what is fixed, and the registers to add (`true`) or subtract.
#[derive(Clone, Debug, PartialEq)]
pub struct Operand {
    /// Sum of the fixed parts, modulo 2^64.
    pub fixed: u64,
    /// Registers, and whether they are added.
    pub registers: Vec<(RegisterRef, bool)>,
}

/// A condition could not be evaluated: this address is not readable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreadable(pub VirtAddr);

/// Checks a condition for a program of that word size. `resolve` takes an address expression apart, `read` says whether
/// the bytes at an address can be read.
///
/// # Errors
/// What is wrong with it: an unknown register, a value that does not fit, too many parts, memory that is not mapped.
pub fn compile(
    condition: &Condition,
    bitness: Bitness,
    resolve: &mut dyn FnMut(&str) -> Result<Operand, AgentError>,
    read: &dyn Fn(VirtAddr, usize) -> bool,
) -> Result<Compiled, AgentError> {
    let mut terms = 0;
    Compiler { bitness, resolve, read }.node(condition, 1, &mut terms).map(Compiled)
}

struct Compiler<'a> {
    bitness: Bitness,
    resolve: &'a mut dyn FnMut(&str) -> Result<Operand, AgentError>,
    read: &'a dyn Fn(VirtAddr, usize) -> bool,
}

impl Compiler<'_> {
    fn node(&mut self, condition: &Condition, depth: usize, terms: &mut usize) -> Result<Node, AgentError> {
        if depth > limits::MAX_CONDITION_DEPTH + 1 {
            return Err(too_much("levels of `all` and `any`", limits::MAX_CONDITION_DEPTH));
        }
        match condition {
            Condition::All(list) => Ok(Node::All(self.list(list, depth, terms)?)),
            Condition::Any(list) => Ok(Node::Any(self.list(list, depth, terms)?)),
            Condition::Register { register, op, value, signed } => {
                count(terms)?;
                let found = self.register(register)?;
                let test = Test::new(*op, *value, found.bits(), *signed, register)?;
                Ok(Node::Register { register: found, test })
            }
            Condition::Memory { memory, size, op, value, signed } => {
                count(terms)?;
                if !matches!(size, 1 | 2 | 4 | 8) {
                    return Err(AgentError::new(
                        ErrorCode::InvalidCondition,
                        format!("`size` is {size}; allowed are 1, 2, 4 and 8"),
                    ));
                }
                let operand = (self.resolve)(&memory.0)?;
                let test = Test::new(*op, *value, u32::from(*size) * 8, *signed, &memory.0)?;
                let bytes = usize::from(*size);
                let place = Place { fixed: operand.fixed, registers: operand.registers, bitness: self.bitness };
                if place.registers.is_empty() {
                    let address = VirtAddr::new(self.bitness.wrap(place.fixed));
                    if !(self.read)(address, bytes) {
                        return Err(AgentError::new(
                            ErrorCode::AddressUnmapped,
                            format!("the condition compares {size} bytes at {address}, where nothing is mapped"),
                        )
                        .hint(
                            "list_modules shows what is mapped; an address in a register can be given as \"ecx+0x18\"",
                        )
                        .detail("first_bad", address.to_string()));
                    }
                }
                Ok(Node::Memory { place, bytes, test })
            }
        }
    }

    fn list(&mut self, list: &[Condition], depth: usize, terms: &mut usize) -> Result<Vec<Node>, AgentError> {
        list.iter().map(|part| self.node(part, depth + 1, terms)).collect()
    }

    fn register(&self, name: &str) -> Result<RegisterRef, AgentError> {
        RegisterRef::find(name, self.bitness).ok_or_else(|| unknown_register(name, self.bitness))
    }
}

/// The answer to a register name that does not exist in such a program.
pub(super) fn unknown_register(name: &str, bitness: Bitness) -> AgentError {
    let shown: String = name.chars().take(32).collect();
    let near = RegisterRef::suggestions(name, bitness);
    let width = if bitness == Bitness::Bits64 { "64" } else { "32" };
    AgentError::new(ErrorCode::UnknownRegister, format!("a {width}-bit program has no register `{shown}`"))
        .hint(format!("did you mean: {}", near.join(", ")))
        .detail("candidates", near)
}

fn count(terms: &mut usize) -> Result<(), AgentError> {
    *terms += 1;
    if *terms > limits::MAX_CONDITION_TERMS {
        return Err(too_much("comparisons", limits::MAX_CONDITION_TERMS));
    }
    Ok(())
}

fn too_much(what: &str, limit: usize) -> AgentError {
    AgentError::new(ErrorCode::LimitExceeded, format!("a condition may have at most {limit} {what}"))
        .hint("test the rest in a second breakpoint, or after the stop")
        .detail("limit", limit)
}

impl Test {
    fn new(op: CompareOp, value: IntValue, bits: u32, signed: bool, of: &str) -> Result<Self, AgentError> {
        let raw = value.get();
        let (least, most) =
            if signed { (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1) } else { (0, i128::from(mask(bits))) };
        // The bits of an unsigned number may stand for a negative one: 0xffffffff for -1.
        let as_bits = signed && raw >= 0 && raw <= i128::from(mask(bits));
        if !as_bits && (raw < least || raw > most) {
            let of: String = of.chars().take(64).collect();
            let hint = if raw < 0 && !signed { "add \"signed\": true to compare with negative numbers" } else { "" };
            return Err(AgentError::new(
                ErrorCode::InvalidCondition,
                format!("{raw} can never be the value of `{of}`: {bits} bits hold {least} to {most}"),
            )
            .hint(hint)
            .detail("least", least.to_string())
            .detail("most", most.to_string()));
        }
        Ok(Self { op, value: value.bits() & mask(bits), bits, signed })
    }

    fn holds(&self, actual: u64) -> bool {
        let ordering = if self.signed {
            sign_extend(actual, self.bits).cmp(&sign_extend(self.value, self.bits))
        } else {
            actual.cmp(&self.value)
        };
        match self.op {
            CompareOp::Eq => ordering.is_eq(),
            CompareOp::Ne => ordering.is_ne(),
            CompareOp::Lt => ordering.is_lt(),
            CompareOp::Gt => ordering.is_gt(),
            CompareOp::Le => ordering.is_le(),
            CompareOp::Ge => ordering.is_ge(),
        }
    }
}

fn sign_extend(value: u64, bits: u32) -> i64 {
    let unused = 64 - bits.clamp(1, 64);
    ((value << unused) as i64) >> unused
}

impl Compiled {
    /// Evaluates it. `read` fills the buffer from the program's memory, as the program sees it, and says whether all of
    /// it could be read.
    ///
    /// # Errors
    /// [`Unreadable`], when memory that matters cannot be read.
    pub fn holds(&self, registers: &Registers, read: &dyn Fn(VirtAddr, &mut [u8]) -> bool) -> Result<bool, Unreadable> {
        self.0.holds(registers, read)
    }
}

impl Node {
    fn holds(&self, registers: &Registers, read: &dyn Fn(VirtAddr, &mut [u8]) -> bool) -> Result<bool, Unreadable> {
        match self {
            Self::Register { register, test } => Ok(test.holds(register.get(registers))),
            Self::Memory { place, bytes, test } => {
                let address = place.at(registers);
                let mut buffer = [0; 8];
                let Some(window) = buffer.get_mut(..*bytes).filter(|_| *bytes <= 8) else {
                    return Err(Unreadable(address));
                };
                if !read(address, window) {
                    return Err(Unreadable(address));
                }
                Ok(test.holds(u64::from_le_bytes(buffer)))
            }
            Self::All(list) => {
                for part in list {
                    if !part.holds(registers, read)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Self::Any(list) => {
                for part in list {
                    if part.holds(registers, read)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }
}

impl Place {
    fn at(&self, registers: &Registers) -> VirtAddr {
        let sum = self.registers.iter().fold(self.fixed, |sum, (register, added)| {
            let value = register.get(registers);
            if *added { sum.wrapping_add(value) } else { sum.wrapping_sub(value) }
        });
        VirtAddr::new(self.bitness.wrap(sum))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn compiled(value: serde_json::Value, bitness: Bitness) -> Result<Compiled, AgentError> {
        let condition: Condition = serde_json::from_value(value).unwrap();
        let mut resolve = |text: &str| {
            let ecx = RegisterRef::find("ecx", bitness).unwrap();
            match text {
                "ecx+0x18" => Ok(Operand { fixed: 0x18, registers: vec![(ecx, true)] }),
                "0x1000-ecx" => Ok(Operand { fixed: 0x1000, registers: vec![(ecx, false)] }),
                _ => Ok(Operand { fixed: text.parse::<VirtAddr>().unwrap().get(), registers: vec![] }),
            }
        };
        compile(&condition, bitness, &mut resolve, &|address, _| address.get() == 0x40)
    }

    fn holds(value: serde_json::Value, ecx: u64) -> Result<bool, Unreadable> {
        let mut registers = Registers::zeroed(Bitness::Bits32, VirtAddr::new(0));
        registers.general[1] = ecx;
        // Memory holds, at every address below 0x2000, the low byte of the address.
        let read = |address: VirtAddr, bytes: &mut [u8]| {
            let all = address.get() < 0x2000;
            for (index, byte) in bytes.iter_mut().enumerate() {
                *byte = (address.get() as u8).wrapping_add(index as u8);
            }
            all
        };
        compiled(value, Bitness::Bits32).unwrap().holds(&registers, &read)
    }

    #[test]
    fn comparisons_are_unsigned_unless_asked() {
        let test = |op: &str, signed: bool| json!({"register": "cl", "op": op, "value": "0x80", "signed": signed});
        // 0x7f against 0x80: 127 < 128 unsigned, 127 > -128 signed.
        for (op, signed, expected) in [
            ("<", false, true),
            (">", false, false),
            ("<", true, false),
            (">", true, true),
            ("==", false, false),
            ("!=", true, true),
            ("<=", false, true),
            (">=", true, true),
        ] {
            assert_eq!(holds(test(op, signed), 0xffff_ff7f), Ok(expected), "{op} {signed}");
        }
        assert_eq!(holds(json!({"register": "ecx", "op": "==", "value": -1, "signed": true}), 0xffff_ffff), Ok(true));
    }

    #[test]
    fn memory_is_little_endian_at_a_computed_address() {
        // ecx + 0x18 = 0x118: bytes 18 19 1a 1b.
        let at = |size: u8, value: &str| json!({"memory": "ecx+0x18", "size": size, "op": "==", "value": value});
        assert_eq!(holds(at(1, "0x18"), 0x100), Ok(true));
        assert_eq!(holds(at(2, "0x1918"), 0x100), Ok(true));
        assert_eq!(holds(at(4, "0x1b1a1918"), 0x100), Ok(true));
        assert_eq!(holds(at(8, "0x1f1e1d1c1b1a1918"), 0x100), Ok(true));
        assert_eq!(holds(json!({"memory": "0x1000-ecx", "size": 1, "op": "==", "value": "0xf0"}), 0x10), Ok(true));
        // The address wraps as the program's addresses do.
        assert_eq!(holds(at(1, "0x17"), 0xffff_ffff), Ok(true));
        assert_eq!(holds(at(1, "0x18"), 0x8000_0000), Err(Unreadable(VirtAddr::new(0x8000_0018))));
    }

    #[test]
    fn all_and_any_stop_at_the_first_answer() {
        let yes = json!({"register": "ecx", "op": "==", "value": "0x80000000"});
        let no = json!({"register": "ecx", "op": "!=", "value": "0x80000000"});
        let unreadable = json!({"memory": "ecx+0x18", "size": 1, "op": "==", "value": 0});
        assert_eq!(holds(json!({"any": [yes, unreadable]}), 0x8000_0000), Ok(true));
        assert_eq!(holds(json!({"all": [no, unreadable]}), 0x8000_0000), Ok(false));
        assert!(holds(json!({"all": [yes, unreadable]}), 0x8000_0000).is_err());
        assert_eq!(holds(json!({"all": [yes, {"any": [no, yes]}]}), 0x8000_0000), Ok(true));
        assert_eq!(holds(json!({"all": [yes, yes]}), 0x8000_0000), Ok(true));
        assert_eq!(holds(json!({"any": [no, no]}), 0x8000_0000), Ok(false));
    }

    #[test]
    fn what_cannot_be_meant_is_refused_when_it_is_set() {
        let code = |value, bitness| compiled(value, bitness).unwrap_err().code;
        let register = |name: &str, value: i64| json!({"register": name, "op": "==", "value": value});
        assert_eq!(code(register("rax", 0), Bitness::Bits32), ErrorCode::UnknownRegister);
        assert_eq!(code(register("xmm0", 0), Bitness::Bits64), ErrorCode::UnknownRegister);
        assert_eq!(code(register("al", 256), Bitness::Bits64), ErrorCode::InvalidCondition);
        assert_eq!(code(register("al", -1), Bitness::Bits64), ErrorCode::InvalidCondition);
        assert_eq!(code(register("zf", 2), Bitness::Bits64), ErrorCode::InvalidCondition);
        assert!(compiled(register("al", 255), Bitness::Bits64).is_ok());
        // Eight bits hold -128 to 127, or 0 to 255 as bits.
        let signed = |value: i64| json!({"register": "al", "op": "==", "value": value, "signed": true});
        assert_eq!(code(signed(-129), Bitness::Bits64), ErrorCode::InvalidCondition);
        assert_eq!(code(signed(256), Bitness::Bits64), ErrorCode::InvalidCondition);
        assert!(compiled(signed(-128), Bitness::Bits64).is_ok() && compiled(signed(255), Bitness::Bits64).is_ok());
        let memory = |at: &str| json!({"memory": at, "size": 4, "op": "==", "value": 0});
        assert_eq!(code(memory("0x50"), Bitness::Bits64), ErrorCode::AddressUnmapped);
        assert!(compiled(memory("0x40"), Bitness::Bits64).is_ok());
        assert!(compiled(memory("ecx+0x18"), Bitness::Bits64).is_ok());
    }

    #[test]
    fn size_and_depth_are_bounded() {
        let leaf = json!({"register": "al", "op": "==", "value": 0});
        let wide = |count: usize| json!({"all": vec![leaf.clone(); count]});
        assert!(compiled(wide(limits::MAX_CONDITION_TERMS), Bitness::Bits64).is_ok());
        let error = compiled(wide(limits::MAX_CONDITION_TERMS + 1), Bitness::Bits64).unwrap_err();
        assert_eq!(error.code, ErrorCode::LimitExceeded);
        let deep = |levels: usize| (0..levels).fold(leaf.clone(), |inner, _| json!({"any": [inner]}));
        assert!(compiled(deep(limits::MAX_CONDITION_DEPTH), Bitness::Bits64).is_ok());
        let error = compiled(deep(limits::MAX_CONDITION_DEPTH + 1), Bitness::Bits64).unwrap_err();
        assert_eq!(error.code, ErrorCode::LimitExceeded);
    }
}
