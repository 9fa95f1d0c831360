//! Any bytes as a condition: refused, or accepted and then written and read again without change; and compiled for both
//! kinds of program it is refused, or evaluated without harm.
#![no_main]

use agent::engine::condition::{Operand, compile};
use agent::registers::Registers;
use base::VirtAddr;
use code::x86::Bitness;
use libfuzzer_sys::fuzz_target;
use wire::{AgentError, Condition, ErrorCode};

fuzz_target!(|bytes: &[u8]| {
    let Ok(condition) = serde_json::from_slice::<Condition>(bytes) else { return };
    let text = serde_json::to_string(&condition).expect("what was read can be written");
    let again: Condition = serde_json::from_str(&text).expect("what was written can be read");
    assert_eq!(again, condition);

    // Numbers are addresses, everything else is unknown; the lower half of memory can be read and is full of 0xA5.
    let mut resolve = |text: &str| match text.parse::<VirtAddr>() {
        Ok(address) => Ok(Operand { fixed: address.get(), registers: Vec::new() }),
        Err(error) => Err(AgentError::new(ErrorCode::UnknownSymbol, error.to_string())),
    };
    let readable = |address: VirtAddr| address.get() < 1 << 63;
    for bitness in [Bitness::Bits32, Bitness::Bits64] {
        let Ok(compiled) = compile(&condition, bitness, &mut resolve, &|address, _| readable(address)) else {
            continue;
        };
        let registers = Registers {
            bitness,
            general: [0x1122_3344_5566_7788; 16],
            pc: VirtAddr::new(0x40_1000),
            flags: 0x246,
            segments: [0x23; 6],
            fs_base: 0,
            gs_base: 0,
        };
        let read = |address: VirtAddr, buffer: &mut [u8]| {
            buffer.fill(0xa5);
            readable(address)
        };
        let first = compiled.holds(&registers, &read);
        assert_eq!(first, compiled.holds(&registers, &read), "the same state gives the same verdict");
    }
});
