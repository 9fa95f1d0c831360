//! The arguments of a call by their names, with the bounds that their use has.

use super::request::Argument;
use base::limits;
use debug::vice::Error;

/// The arguments of a call.
#[derive(Debug)]
pub(super) struct Arguments<'a>(pub &'a [(&'static str, Argument)]);

impl<'a> Arguments<'a> {
    fn get(&self, name: &str) -> Option<&'a Argument> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// An integer. The table has seen to it that it is there.
    pub fn long(&self, name: &str) -> i64 {
        match self.get(name) {
            Some(Argument::Long(value)) => *value,
            _ => 0,
        }
    }

    pub fn bool(&self, name: &str) -> bool {
        matches!(self.get(name), Some(Argument::Bool(true)))
    }

    pub fn text(&self, name: &str) -> &'a str {
        match self.get(name) {
            Some(Argument::Text(text)) => text,
            _ => "",
        }
    }

    pub fn texts(&self, name: &str) -> &'a [String] {
        match self.get(name) {
            Some(Argument::Texts(texts)) => texts,
            _ => &[],
        }
    }

    pub fn longs(&self, name: &str) -> &'a [i64] {
        match self.get(name) {
            Some(Argument::Longs(longs)) => longs,
            _ => &[],
        }
    }

    pub fn bytes(&self, name: &str) -> &'a [u8] {
        match self.get(name) {
            Some(Argument::Bytes(bytes)) => bytes,
            _ => &[],
        }
    }

    /// An integer that its type has room for.
    pub fn number<T: TryFrom<i64>>(&self, name: &str, most: u32) -> Result<T, Error> {
        let value = self.long(name);
        T::try_from(value).map_err(|_| Error::Argument(format!("{name} must be 0 to {most}, and is {value}")))
    }

    pub fn address(&self, name: &str) -> Result<u16, Error> {
        self.number(name, u32::from(u16::MAX))
    }

    pub fn memspace(&self) -> Result<u8, Error> {
        self.number("memspace", u32::from(u8::MAX))
    }

    /// The time that the call has.
    pub fn timeout_ms(&self) -> Result<u64, Error> {
        let (value, most) = (self.long("timeout_ms"), limits::MAX_VICE_TIMEOUT_MS);
        u64::try_from(value)
            .ok()
            .filter(|ms| (1..=most).contains(ms))
            .ok_or_else(|| Error::Argument(format!("timeout_ms must be 1 to {most}, and is {value}")))
    }
}
