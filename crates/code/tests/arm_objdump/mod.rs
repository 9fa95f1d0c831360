//! What `arm-none-eabi-objdump` says about code, as data.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::path::Path;
use std::process::Command;

use code::arm::Mode;

pub mod normal;

/// One instruction as objdump lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub address: u32,
    /// Bytes in memory.
    pub bytes: Vec<u8>,
    pub mode: Mode,
    pub mnemonic: String,
    pub operands: String,
}

impl Line {
    /// The bytes as one number, little-endian.
    pub fn raw(&self) -> u32 {
        self.bytes.iter().rev().fold(0, |raw, byte| raw << 8 | u32::from(*byte))
    }

    /// objdump knows no instruction here, or knows it to be none for ever.
    pub fn is_undefined(&self) -> bool {
        self.operands.contains("<UNDEFINED>") || self.mnemonic.starts_with("udf")
    }

    /// Where a branch goes, as objdump prints it: hexadecimal, with the nearest symbol if the file has symbols.
    pub fn target(&self) -> Option<u32> {
        if !self.mnemonic.starts_with('b') || self.mnemonic == "bkpt" {
            return None;
        }
        if self.mnemonic.starts_with("bx") && self.operands == "pc" && self.address.is_multiple_of(4) {
            // The program counter is two instructions ahead (ARM ARM A2.4.3); objdump leaves that to the reader.
            return Some(self.address + if self.mode == Mode::Arm { 8 } else { 4 });
        }
        let (digits, prefixed) = match self.operands.split_once(" <") {
            Some((digits, _)) => (digits, true),
            None => (self.operands.trim_start_matches("0x"), self.operands.starts_with("0x")),
        };
        u32::from_str_radix(digits, 16).ok().filter(|_| prefixed)
    }
}

/// Runs a program of Debian's ARM toolchain; panics when it is missing or fails.
pub fn run(program: &str, arguments: &[&std::ffi::OsStr]) -> String {
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}; `cargo xtask install` installs it"));
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The instructions of an ELF file, in the mode that its mapping symbols give; data is left out.
pub fn disassemble(elf: &Path) -> Vec<Line> {
    parse(&run("arm-none-eabi-objdump", &["-d".as_ref(), elf.as_ref()]))
}

/// The lines of objdump's listing that are instructions: `address:<tab>raw <tab>mnemonic<tab>operands`.
pub fn parse(listing: &str) -> Vec<Line> {
    listing.lines().filter_map(line).collect()
}

fn line(line: &str) -> Option<Line> {
    let mut columns = line.split('\t');
    let address = u32::from_str_radix(columns.next()?.trim().strip_suffix(':')?, 16).ok()?;
    let raw: Vec<&str> = columns.next()?.split_whitespace().collect();
    let mnemonic = columns.next()?.trim().to_owned();
    let operands = columns.collect::<Vec<_>>().join(" ");
    if mnemonic.starts_with('.') {
        return None;
    }
    // ARM words have eight digits; Thumb halfwords have four and come in program order.
    let mode = if raw.iter().any(|word| word.len() == 8) { Mode::Arm } else { Mode::Thumb };
    let mut bytes = Vec::new();
    for word in raw {
        let value = u32::from_str_radix(word, 16).ok()?;
        bytes.extend_from_slice(&value.to_le_bytes()[..word.len() / 2]);
    }
    Some(Line { address, bytes, mode, mnemonic, operands })
}
