//! Any bytes as ARM and Thumb code of either processor: refused, or described without contradiction, and every window of what
//! was decoded can be asked for a call through a literal.
#![no_main]

use code::arm::{Arch, DecodeError, FlowKind, Insn, Mode, decode, literal_call, return_address};
use libfuzzer_sys::fuzz_target;

/// Instructions in a row that are looked at together.
const WINDOW: usize = 8;

fuzz_target!(|bytes: &[u8]| {
    let Some((head, code)) = bytes.split_first_chunk::<4>() else { return };
    let base = u32::from_le_bytes(*head);
    let word = |address: u32| {
        let offset = address.wrapping_sub(base) as usize;
        code.get(offset..)?.first_chunk().map(|word| u32::from_le_bytes(*word))
    };
    for arch in [Arch::V4T, Arch::V5TE] {
        for mode in [Mode::Arm, Mode::Thumb] {
            let mut insns: Vec<Insn> = Vec::new();
            let mut at = 0;
            while let Some(rest) = code.get(at..) {
                let address = base.wrapping_add(at as u32);
                match decode(arch, mode, address, rest) {
                    Ok(insn) => {
                        check(&insn);
                        assert!(rest.len() >= usize::from(insn.size));
                        assert_eq!(insn.end(), address.wrapping_add(u32::from(insn.size)));
                        at += usize::from(insn.size);
                        insns.push(insn);
                        let window = &insns[insns.len().saturating_sub(WINDOW)..];
                        if let Some(call) = literal_call(window, &word) {
                            assert!(call.target_mode.is_aligned(call.target) && call.site == insn.address);
                        }
                        return_address(window);
                    }
                    Err(DecodeError::Misaligned { .. }) => {
                        assert!(!mode.is_aligned(address));
                        break;
                    }
                    Err(DecodeError::Truncated { have }) => {
                        assert_eq!(have, rest.len());
                        break;
                    }
                    Err(DecodeError::Undecodable { .. }) => {
                        insns.clear();
                        at += mode.alignment() as usize;
                    }
                }
            }
        }
    }
});

fn check(insn: &Insn) {
    assert!(!insn.mnemonic().is_empty());
    insn.operands();
    insn.reads();
    insn.literal_slot();
    insn.pc_relative_address();
    let flow = insn.flow();
    assert_eq!(flow.kind == FlowKind::Fallthrough, !insn.writes().contains(15));
    assert_eq!(flow.direct_target.is_some(), flow.target_mode.is_some());
    assert!(flow.falls_through || !insn.is_conditional());
}
