//! Reading and setting registers by their names.

use std::collections::BTreeMap;

use super::super::commands::Register;
use super::super::commands::registers::{self, RegisterValue};
use super::super::error::Error;
use super::Monitor;

/// A register with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// What it is.
    pub register: Register,
    /// Its value.
    pub value: u16,
}

impl Monitor {
    /// The registers of these names in their order, or all.
    ///
    /// # Errors
    /// [`Error::Argument`] for a name that is not there, and those of every call.
    pub fn registers(&self, names: &[String], memspace: u8, limit_ms: u64) -> Result<Vec<Named>, Error> {
        let operation = self.stopped("get_registers", limit_ms, false)?;
        let known = self.known_registers(memspace, &operation)?;
        let wanted = chosen(&known, names)?;
        let values = registers::answer(&operation.exchange(&registers::get(memspace))?.body)?;
        self.note_pc(&known, &values, memspace);
        named(&wanted, &values)
    }

    /// Sets registers, and gives what they are afterwards. On 3.7.1 the next step then only arrives at the program counter
    /// instead of executing there.
    ///
    /// # Errors
    /// [`Error::Argument`] for a name that is not there and for a value beyond the register's width, which VICE would cut off;
    /// those of every call.
    pub fn set_registers(&self, values: &[(String, i64)], memspace: u8, limit_ms: u64) -> Result<Vec<Named>, Error> {
        if values.is_empty() {
            return Err(Error::Argument("name at least one register".to_owned()));
        }
        let operation = self.stopped("set_registers", limit_ms, true)?;
        let known = self.known_registers(memspace, &operation)?;
        let names: Vec<String> = values.iter().map(|(name, _)| name.clone()).collect();
        let wanted = chosen(&known, &names)?;
        let mut items = Vec::new();
        for (register, (_, value)) in wanted.iter().zip(values) {
            let largest = register.largest();
            let Some(value) = u16::try_from(*value).ok().filter(|value| *value <= largest) else {
                return Err(Error::Argument(format!(
                    "register {} has {} bits: a value must be 0 to {largest}, and is {value}",
                    register.name, register.bits
                )));
            };
            items.push(RegisterValue { id: register.id, value });
        }
        let answer = operation.exchange(&registers::set(memspace, &items))?;
        if memspace == 0 {
            self.driver.state().machine.registers_were_set();
        }
        let values = registers::answer(&answer.body)?;
        self.note_pc(&known, &values, memspace);
        named(&wanted, &values)
    }

    fn note_pc(&self, known: &[Register], values: &[RegisterValue], memspace: u8) {
        let pc = known.iter().find(|register| register.name == "PC" && memspace == 0);
        if let Some(value) = pc.and_then(|pc| values.iter().find(|value| value.id == pc.id)) {
            self.driver.state().machine.set_pc(value.value);
        }
    }
}

/// The registers of these names, or all of them for no names.
fn chosen(known: &[Register], names: &[String]) -> Result<Vec<Register>, Error> {
    if names.is_empty() {
        return Ok(known.to_vec());
    }
    let mut seen = BTreeMap::new();
    for name in names {
        if seen.insert(name, ()).is_some() {
            return Err(Error::Argument(format!("register {name} is named twice")));
        }
    }
    let find = |name: &String| known.iter().find(|register| register.name == *name);
    let unknown: Vec<&str> = names.iter().filter(|name| find(name).is_none()).map(String::as_str).collect();
    if !unknown.is_empty() {
        let there: Vec<&str> = known.iter().map(|register| register.name.as_str()).collect();
        return Err(Error::Argument(format!(
            "unknown register names: {}; there are: {}",
            unknown.join(", "),
            there.join(", ")
        )));
    }
    Ok(names.iter().filter_map(find).cloned().collect())
}

fn named(wanted: &[Register], values: &[RegisterValue]) -> Result<Vec<Named>, Error> {
    let one = |register: &Register| match values.iter().find(|value| value.id == register.id) {
        Some(value) => Ok(Named { register: register.clone(), value: value.value }),
        None => Err(Error::Protocol(format!("registers without {}", register.name))),
    };
    wanted.iter().map(one).collect()
}
