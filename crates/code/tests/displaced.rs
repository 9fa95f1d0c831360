//! Plans for execution out of line: the processor itself is the oracle (a tiny program runs each instruction in place and
//! displaced, and must end in the same state), then refusals, the meaning of every program counter, and random bytes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use code::x86::{
    Bitness, Displaced, FlowKind, PcMeaning, SLOT_BYTES, Trap, WatchKind, attribute, decode, disassemble, length,
    memory_accesses, plan,
};
use proptest::prelude::*;

const B32: Bitness = Bitness::Bits32;
const B64: Bitness = Bitness::Bits64;

const ORIG: u64 = 0x40_0800;
const NEAR_SLOT: u64 = 0x1000_0000;
/// More than 2 GiB away from the original.
const FAR_SLOT: u64 = 0x1000_0000_0000;

/// Checks what must hold of every plan, and gives it.
fn checked(bytes: &[u8], orig: u64, slot: u64, bits: Bitness) -> Option<Displaced> {
    let plan = plan(bytes, orig, slot, bits).ok()?;
    assert!(plan.code.len() <= SLOT_BYTES);
    assert_eq!(plan.map[0], (0, PcMeaning::NotYet));
    assert!(plan.map.windows(2).all(|pair| pair[0].0 < pair[1].0), "{plan:?}");
    let next = bits.wrap(orig.wrapping_add(length(bytes, orig, bits).unwrap() as u64));
    let original = decode(bytes, orig, bits).unwrap();
    for (offset, meaning) in &plan.map {
        let here = decode(&plan.code[usize::from(*offset)..], slot.wrapping_add(u64::from(*offset)), bits);
        let here = here.expect("an instruction begins at each offset of the map");
        // Falling through never leaves the map: each instruction that goes on to the next ends at the next entry.
        let end = *offset + here.len;
        let falls = matches!(here.flow, FlowKind::Next | FlowKind::CondJump { .. });
        assert!(!falls || plan.meaning(u64::from(end)).is_some(), "{here:?} {plan:?}");
        if let PcMeaning::Done(to) = meaning {
            let direct = here.flow == FlowKind::Jump { target: *to };
            let far = plan.code[usize::from(*offset)..].starts_with(&[0xff, 0x25, 0, 0, 0, 0])
                && plan.code[usize::from(*offset) + 6..].starts_with(&to.to_le_bytes());
            assert!(direct || far, "{here:?} {plan:?}");
            let target = match original.flow {
                FlowKind::Jump { target } | FlowKind::CondJump { target } | FlowKind::Call { target } => target,
                _ => next,
            };
            assert!([next, target].contains(to), "{original:?} {plan:?}");
        }
        if let FlowKind::CondJump { target } = here.flow {
            let taken = plan.meaning(bits.wrap(target.wrapping_sub(slot)));
            let FlowKind::CondJump { target } = original.flow else {
                panic!("{original:?} {plan:?}");
            };
            assert_eq!(taken, Some(PcMeaning::Done(target)), "{plan:?}");
            assert_eq!(plan.meaning(u64::from(end)), Some(PcMeaning::Done(next)));
        }
    }
    Some(plan)
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod on_the_processor {
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;

    use super::*;

    const BASE: u64 = 0x40_0000;
    const ENTRY: usize = 0x200;
    const DUMP: usize = 0x400;
    const TARGET: u64 = 0x40_0840;

    /// An executable of two segments: a page of program and data at BASE, and the slot.
    fn elf(bits: Bitness, page: &[u8], slot: u64, slot_code: &[u8]) -> Vec<u8> {
        let mut file = vec![0x7f, b'E', b'L', b'F', 1, 1, 1, 0];
        file.resize(16, 0);
        file.extend([2, 0]);
        let segments = [(0u64, BASE, 0x1000u64), (0x1000, slot, slot_code.len() as u64)];
        let entry = BASE + ENTRY as u64;
        // Elf32_Ehdr and Elf32_Phdr, or the same with 64-bit fields: System V ABI, chapters 4 and 5.
        if bits == B32 {
            file.extend([3, 0, 1, 0, 0, 0]);
            for word in [entry as u32, 52, 0, 0, 52 | 32 << 16, 2, 0] {
                file.extend(word.to_le_bytes());
            }
            for (offset, address, size) in segments {
                for word in [1, offset, address, address, size, size, 7, 0x1000] {
                    file.extend((word as u32).to_le_bytes());
                }
            }
        } else {
            file[4] = 2;
            file.extend([62, 0, 1, 0, 0, 0]);
            for word in [entry, 64, 0] {
                file.extend(word.to_le_bytes());
            }
            for word in [0, 64 | 56 << 16, 2, 0] {
                file.extend((word as u32).to_le_bytes());
            }
            for (offset, address, size) in segments {
                for word in [1 | 7 << 32, offset, address, address, size, size, 0x1000] {
                    file.extend(word.to_le_bytes());
                }
            }
        }
        file.extend(&page[file.len()..]);
        file.extend(slot_code);
        file
    }

    /// Runs from `start` with known registers; gives the registers, the stack and the data at the exit that was reached.
    fn run(bits: Bitness, insn: &[u8], compared_with: u8, start: u64, slot: u64, slot_code: &[u8]) -> Vec<u8> {
        let mut page = vec![0; 0x1000];
        let mut put = |at: usize, bytes: &[u8]| page[at..at + bytes.len()].copy_from_slice(bytes);
        let wide = bits == B64;
        let mut entry = Vec::new();
        // mov eax/ecx/edx/ebx/esp/ebp/esi/edi (b8+r), imm32
        for (register, value) in [
            (0u8, 0x40_0c00u32),
            (3, 0x40_0c20),
            (1, 2),
            (2, TARGET as u32),
            (6, 0x40_0c08),
            (7, 0x40_0c28),
            (5, 0x40_0b40),
            (4, 0x40_0b00),
        ] {
            entry.push(0xb8 + register);
            entry.extend(value.to_le_bytes());
        }
        entry.extend([0x83, 0xf9, compared_with]); // cmp ecx,compared_with
        if wide {
            entry.extend([0xff, 0x25, 0, 0, 0, 0]); // jmp [rip+0]
            entry.extend(start.to_le_bytes());
        } else {
            entry.push(0xe9); // jmp start
            entry.extend((start as u32).wrapping_sub((BASE as usize + ENTRY + entry.len() + 4) as u32).to_le_bytes());
        }
        put(ENTRY, &entry);
        // Dump: push the flags and registers, write(1, esp, BASE + 0x1000 - esp), exit(0); by GNU as.
        let dump: &[u8] = if wide {
            &[
                0x9c, 0x50, 0x53, 0x51, 0x52, 0x56, 0x57, 0x55, 0x54, 0xb8, 1, 0, 0, 0, 0xbf, 1, 0, 0, 0, 0x48, 0x89,
                0xe6, 0xba, 0, 0x10, 0x40, 0, 0x29, 0xf2, 0x0f, 0x05, 0xb8, 0x3c, 0, 0, 0, 0x31, 0xff, 0x0f, 0x05,
            ]
        } else {
            &[
                0x9c, 0x60, 0x89, 0xe1, 0xba, 0, 0x10, 0x40, 0, 0x29, 0xca, 0xbb, 1, 0, 0, 0, 0xb8, 4, 0, 0, 0, 0xcd,
                0x80, 0x31, 0xdb, 0xb8, 1, 0, 0, 0, 0xcd, 0x80,
            ]
        };
        put(DUMP, dump);
        let orig = (ORIG - BASE) as usize;
        put(orig, insn);
        // The two ways out say which they are: push 1 or 2, jmp DUMP.
        for (way, at) in [(1u8, orig + insn.len()), (2, (TARGET - BASE) as usize)] {
            put(at, &[0x6a, way, 0xe9]);
            put(at + 3, &(DUMP as u32).wrapping_sub(at as u32 + 7).to_le_bytes());
        }
        // Data: a pointer to the target; the same on the stack, for returns.
        put(0xc00, &TARGET.to_le_bytes());
        put(0xc20, &[7, 6, 5, 4, 3, 2, 1, 0]);
        put(0xb00, &TARGET.to_le_bytes());

        let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("displaced-program");
        // Never write over a file that may still be executing.
        let _ = std::fs::remove_file(&path);
        std::fs::write(&path, elf(bits, &page, slot, slot_code)).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let out = Command::new(&path).output().unwrap();
        assert!(out.status.success(), "{insn:02x?} from 0x{start:x}: {:?}", out.status);
        assert!(out.stdout.len() > 0x400, "{insn:02x?}: a dump of {} bytes", out.stdout.len());
        out.stdout
    }

    fn same_effect(bits: Bitness, insn: &[u8]) {
        let slots: &[u64] = if bits == B64 { &[NEAR_SLOT, FAR_SLOT] } else { &[NEAR_SLOT] };
        let rip_relative = bits == B64 && operand_moves(insn);
        for compared_with in [2, 3] {
            let in_place = run(bits, insn, compared_with, ORIG, NEAR_SLOT, &[0xcc]);
            for slot in slots {
                let plan = checked(insn, ORIG, *slot, bits);
                let Some(plan) = plan else {
                    assert!(*slot == FAR_SLOT && rip_relative, "{insn:02x?} is refused");
                    continue;
                };
                let displaced = run(bits, insn, compared_with, *slot, *slot, &plan.code);
                assert!(in_place == displaced, "{insn:02x?} at 0x{slot:x} differs: {plan:02x?}");
            }
        }
    }

    /// A memory operand that is somewhere else when the instruction is.
    fn operand_moves(insn: &[u8]) -> bool {
        let at = |ip| decode(insn, ip, B64).unwrap().text;
        at(ORIG).contains('[') && at(ORIG) != at(ORIG + 0x100)
    }

    /// `opcode` with a RIP-relative operand at `address`, and `tail` bytes of immediate behind it.
    fn rip(opcode: &[u8], address: u64, tail: &[u8]) -> Vec<u8> {
        let end = ORIG + (opcode.len() + 4 + tail.len()) as u64;
        let distance = (address.wrapping_sub(end) as u32).to_le_bytes();
        [opcode, &distance, tail].concat()
    }

    fn short(opcode: &[u8], target: u64) -> Vec<u8> {
        let end = ORIG + opcode.len() as u64 + 1;
        [opcode, &[target.wrapping_sub(end) as u8]].concat()
    }

    #[test]
    fn displaced_or_in_place_the_effect_is_the_same() {
        for bits in [B32, B64] {
            let mut insns: Vec<Vec<u8>> = vec![
                vec![0x90],                                     // nop
                vec![0x53],                                     // push ebx
                vec![0x5e],                                     // pop esi
                vec![0x9c],                                     // pushf
                vec![0x54],                                     // push esp
                vec![0xff, 0x00],                               // inc dword [eax]
                vec![0xa5],                                     // movsd
                vec![0xf3, 0xaa],                               // rep stosb
                vec![0xf3, 0xa6],                               // repe cmpsb
                vec![0x8d, 0x4b, 0x09],                         // lea ecx,[ebx+9]
                vec![0x0f, 0xb1, 0x13],                         // cmpxchg [ebx],edx
                vec![0xc8, 0x10, 0, 0],                         // enter 16,0
                vec![0xc9],                                     // leave
                vec![0xc3],                                     // ret
                vec![0xf3, 0xc3],                               // rep ret
                vec![0xc2, 0x08, 0],                            // ret 8
                vec![0xff, 0xe2],                               // jmp edx
                vec![0x3e, 0xff, 0xe2],                         // notrack jmp edx
                vec![0xff, 0x20],                               // jmp [eax]
                vec![0xff, 0x24, 0x24],                         // jmp [esp]
                vec![0xff, 0xd2],                               // call edx
                vec![0xff, 0x10],                               // call [eax]
                vec![0x3e, 0xff, 0x14, 0x25, 0, 0x0c, 0x40, 0], // call ds:[0x400c00], through a SIB byte
                rip(&[0xe8], TARGET, &[]),                      // call target
                rip(&[0xe8], ORIG + 5, &[]),                    // call $+5
                rip(&[0xe9], TARGET, &[]),                      // jmp target
                short(&[0xeb], TARGET),                         // jmp short target
                short(&[0x2e, 0x75], TARGET),                   // jne with a hint
                short(&[0xe0], TARGET),                         // loopne
                short(&[0xe1], TARGET),                         // loope
                short(&[0xe2], TARGET),                         // loop
                short(&[0xe3], TARGET),                         // jecxz, jrcxz
                short(&[0x67, 0xe3], TARGET),                   // jcxz, jecxz
                short(&[0x67, 0xe2], TARGET),                   // loop with cx, ecx
            ];
            for condition in 0..16 {
                insns.push(short(&[0x70 + condition], TARGET));
                insns.push(rip(&[0x0f, 0x80 + condition], TARGET, &[]));
            }
            if bits == B64 {
                insns.extend([
                    rip(&[0xff, 0x05], 0x40_0c20, &[]),       // inc dword [rip+…]
                    rip(&[0x48, 0x8d, 0x05], 0x40_0c20, &[]), // lea rax,[rip+…]
                    rip(&[0x80, 0x3d], 0x40_0c20, &[5]),      // cmp byte [rip+…],5
                    rip(&[0x67, 0x8b, 0x05], 0x40_0c20, &[]), // mov eax,[eip+…]
                    rip(&[0xff, 0x35], 0x40_0c20, &[]),       // push qword [rip+…]
                    rip(&[0xff, 0x15], 0x40_0c00, &[]),       // call [rip+…]
                    rip(&[0xff, 0x25], 0x40_0c00, &[]),       // jmp [rip+…]
                    rip(&[0x66, 0x48, 0xe8], TARGET, &[]),    // the call of the thread-local storage sequence
                    vec![0x48, 0xff, 0xd2],                   // call rdx with a superfluous prefix
                ]);
            } else {
                insns.extend([
                    vec![0xff, 0x15, 0, 0x0c, 0x40, 0],    // call [0x400c00]
                    vec![0xff, 0x05, 0x20, 0x0c, 0x40, 0], // inc dword [0x400c20]
                    vec![0x60],                            // pushad
                    vec![0x40],                            // inc eax
                    vec![0x8f, 0x44, 0x24, 0x08],          // pop [esp+8]
                ]);
            }
            for insn in &insns {
                same_effect(bits, insn);
            }
        }
    }
}

#[test]
fn the_return_address_is_the_original_one() {
    // call eax at 0x400800: 68 push 0x400802; ff e0 jmp eax
    let plan32 = checked(&[0xff, 0xd0], ORIG, NEAR_SLOT, B32).unwrap();
    assert_eq!(plan32.code, [0x68, 0x02, 0x08, 0x40, 0, 0xff, 0xe0]);
    assert_eq!(plan32.map, [(0, PcMeaning::NotYet), (5, PcMeaning::Between { undo_stack: 4 })]);
    // call rax: ff 35 push qword [rip+50] (6 + 50 = 56, the last 8 of 64 bytes); ff e0 jmp rax
    let plan64 = checked(&[0xff, 0xd0], ORIG, FAR_SLOT, B64).unwrap();
    assert_eq!(plan64.code[..8], [0xff, 0x35, 50, 0, 0, 0, 0xff, 0xe0]);
    assert_eq!(plan64.code[56..], 0x40_0802u64.to_le_bytes());
    assert_eq!(plan64.map, [(0, PcMeaning::NotYet), (6, PcMeaning::Between { undo_stack: 8 })]);
    assert_eq!(plan64.meaning(3), None);
}

#[test]
fn what_cannot_be_moved_is_refused_with_the_reason() {
    let rows: &[(Bitness, &[u8], &str)] = &[
        (B32, &[0xcc], "enters the system"),                    // int3
        (B32, &[0xcd, 0x80], "enters the system"),              // int 0x80
        (B32, &[0xce], "enters the system"),                    // into
        (B32, &[0xf1], "enters the system"),                    // int1
        (B32, &[0x0f, 0x34], "enters the system"),              // sysenter
        (B64, &[0x0f, 0x05], "enters the system"),              // syscall
        (B32, &[0xcf], "enters the system"),                    // iretd
        (B32, &[0xf4], "privileged"),                           // hlt
        (B32, &[0xfa], "privileged"),                           // cli
        (B32, &[0x0f, 0x0b], "exception"),                      // ud2
        (B64, &[0xc7, 0xf8, 4, 0, 0, 0], "transaction"),        // xbegin
        (B64, &[0xc6, 0xf8, 1], "transaction"),                 // xabort 1
        (B32, &[0x9a, 0, 0x10, 0, 0, 0x33, 0], "code segment"), // call 0x33:0x1000
        (B32, &[0xff, 0x28], "code segment"),                   // jmp far [eax]
        (B32, &[0xff, 0x18], "code segment"),                   // call far [eax]
        (B32, &[0xcb], "code segment"),                         // retf
        (B32, &[0x8e, 0xd0], "holds back"),                     // mov ss,eax
        (B64, &[0x8e, 0xd0], "holds back"),                     // mov ss,eax
        (B32, &[0x17], "holds back"),                           // pop ss
        (B32, &[0x0f, 0xb2, 0x01], "holds back"),               // lss eax,[ecx]
        (B32, &[0x9d], "trap flag"),                            // popf
        (B32, &[0xff, 0xd4], "stack pointer"),                  // call esp
        (B32, &[0xff, 0x54, 0x24, 4], "stack pointer"),         // call [esp+4]
        (B64, &[0xff, 0x54, 0x24, 8], "stack pointer"),         // call [rsp+8]
        (B32, &[0x66, 0xff, 0xd0], "16-bit"),                   // call ax
        (B32, &[0x66, 0xe8, 0, 0], "16 bits"),                  // call with a 16-bit distance
        (B64, &[0x66, 0xe8, 0, 0, 0, 0], "AMD"),                // the same, whose length depends on the maker
        (B32, &[0xdd, 0x5d, 0xf8], "x87"),                      // fstp qword [ebp-8]
        (B32, &[0xd9, 0xee], "x87"),                            // fldz
        (B64, &[0x06, 0], "(bad)"),
        (B64, &[0xe8, 0], "(incomplete)"),
    ];
    for (bits, bytes, why) in rows {
        let error = plan(bytes, ORIG, NEAR_SLOT, *bits).unwrap_err().to_string();
        assert!(error.contains(why), "{bytes:02x?}: {error}");
    }
    // mov eax,[rip+0], 16 TiB away
    let error = plan(&[0x8b, 5, 0, 0, 0, 0], ORIG, FAR_SLOT, B64).unwrap_err();
    assert!(error.to_string().contains("out of reach"));
}

fn bitness() -> impl Strategy<Value = Bitness> {
    prop_oneof![Just(B32), Just(B64)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_anywhere(
        bytes in prop::collection::vec(any::<u8>(), 0..40),
        ip: u64, slot: u64, value: u64, bits in bitness(), known: bool,
    ) {
        let regs = |_: &'static str| known.then_some(value);
        let listing = disassemble(&bytes, ip, bits, 100);
        let total: usize = listing.insns.iter().map(|insn| usize::from(insn.len)).sum();
        prop_assert!(total <= bytes.len());
        let _ = memory_accesses(&bytes, ip, bits, &regs);
        checked(&bytes, ip, slot, bits);
        checked(&bytes, ip, ip.wrapping_add(0x1_0000), bits);
        let read = |address: u64, len: usize| {
            let from = usize::try_from(address.wrapping_sub(ip)).ok()?;
            bytes.get(from..from.checked_add(len)?).map(<[u8]>::to_vec)
        };
        for kind in [WatchKind::Write, WatchKind::ReadWrite] {
            for start in [None, Some(ip)] {
                let pc = ip.wrapping_add(bytes.len() as u64 / 2);
                let trap = Trap { pc, bits, watched: value, watched_bytes: 8, kind, function_start: start };
                let _ = attribute(&trap, &read, &regs);
            }
        }
    }
}

#[test]
fn every_two_byte_opening_with_prefixes() {
    let prefixes: [&[u8]; 4] = [&[], &[0x66], &[0x48], &[0x0f]];
    let mut planned = 0;
    for bits in [B32, B64] {
        for prefix in prefixes {
            for opening in 0..=u16::MAX {
                let bytes =
                    [prefix, &opening.to_le_bytes(), &[0x24, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88]].concat();
                planned += usize::from(checked(&bytes, ORIG, NEAR_SLOT, bits).is_some());
            }
        }
    }
    // Most of the map is plain instructions.
    assert!(planned > 2 * 4 * 65_536 / 2, "{planned} plans");
}
