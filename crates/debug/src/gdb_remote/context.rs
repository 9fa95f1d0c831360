//! What a stop looks like: registers and memory around it.

use std::time::{Instant, SystemTime};

use base::limits;

use super::debugger::Debugger;
use super::error::Error;
use super::packets::Registers;

/// Memory that is wanted with a stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Its name in the report.
    pub label: String,
    /// First address.
    pub address: u32,
    /// Bytes: 1 to 4,096.
    pub length: u32,
}

/// Memory as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionBytes {
    /// Its name in the report.
    pub label: String,
    /// First address.
    pub address: u32,
    /// What was there.
    pub bytes: Vec<u8>,
}

/// Everything that is shown of a stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopContext {
    /// When it was read.
    pub captured: SystemTime,
    /// The registers.
    pub registers: Registers,
    /// Memory around the program counter, which lies in the middle unless that is too near an end of memory.
    pub pc_window: RegionBytes,
    /// Memory from the stack pointer on.
    pub stack_window: RegionBytes,
    /// What else was wanted.
    pub regions: Vec<RegionBytes>,
}

/// Checks regions before anything is read.
///
/// # Errors
/// [`Error::Full`], [`Error::BadRead`].
pub fn check(regions: &[Region]) -> Result<(), Error> {
    if regions.len() > limits::MAX_GDB_STOP_REGIONS {
        return Err(Error::Full { what: "the regions of one stop", most: limits::MAX_GDB_STOP_REGIONS });
    }
    let most = limits::MAX_GDB_STOP_REGION_BYTES;
    for Region { address, length, .. } in regions {
        let fits = u64::from(*address) + u64::from(*length) <= 1 << 32;
        if *length == 0 || *length > most || !fits {
            return Err(Error::BadRead { address: *address, length: *length, most });
        }
    }
    Ok(())
}

/// Reads it all from a stopped program.
///
/// # Errors
/// Those of [`check`], [`Error::Running`], and those of the reads.
pub fn capture(debugger: &mut Debugger, regions: &[Region], until: Instant) -> Result<StopContext, Error> {
    check(regions)?;
    let registers = debugger.registers(until)?;
    let captured = SystemTime::now();
    let mut read = |label: &str, address: u32, length: u32| -> Result<RegionBytes, Error> {
        let bytes = debugger.read_memory(address, length, until)?;
        Ok(RegionBytes { label: label.to_owned(), address, bytes })
    };
    let window = limits::GDB_WINDOW_BYTES;
    let highest = u32::MAX - (window - 1);
    let around = (registers.pc() & !3).saturating_sub(window / 2).min(highest);
    let pc_window = read("pc", around, window)?;
    let stack_window = read("stack", registers.sp().min(highest), window)?;
    let regions =
        regions.iter().map(|region| read(&region.label, region.address, region.length)).collect::<Result<_, _>>()?;
    Ok(StopContext { captured, registers, pc_window, stack_window, regions })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(address: u32, length: u32) -> Region {
        Region { label: "r".to_owned(), address, length }
    }

    #[test]
    fn regions_are_bounded_in_number_size_and_place() {
        assert!(check(&[region(u32::MAX, 1), region(0, 4_096)]).is_ok());
        for bad in [region(0, 0), region(0, 4_097), region(u32::MAX, 2)] {
            assert!(matches!(check(&[bad]), Err(Error::BadRead { .. })));
        }
        assert!(matches!(check(&vec![region(0, 1); 9]), Err(Error::Full { most: 8, .. })));
    }
}
