//! Decoding of ARM and Thumb against encodings written down from the ARM Architecture Reference Manual, DDI 0100 ("ARM ARM").
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use code::arm::{Arch, DecodeError, Flow, FlowKind, Insn, Mode, RegSet, decode};
use proptest::prelude::*;

/// Where the tables' instructions stand: divisible by 4, so that both modes may.
const AT: u32 = 0x0200_0100;

fn arm(raw: u32) -> Insn {
    decode(Arch::V5TE, Mode::Arm, AT, &raw.to_le_bytes()).unwrap_or_else(|error| panic!("{raw:08x}: {error}"))
}

fn thumb(raw: u16) -> Insn {
    decode(Arch::V5TE, Mode::Thumb, AT, &raw.to_le_bytes()).unwrap_or_else(|error| panic!("{raw:04x}: {error}"))
}

fn pair(arch: Arch, address: u32, first: u16, second: u16) -> Result<Insn, DecodeError> {
    decode(arch, Mode::Thumb, address, &[first.to_le_bytes(), second.to_le_bytes()].concat())
}

fn text(insn: &Insn) -> String {
    format!("{} {}", insn.mnemonic(), insn.operands()).trim_end().to_owned()
}

/// Kind, target and its mode, whether the next instruction may run, register.
fn parts(flow: Flow) -> (FlowKind, Option<(u32, Mode)>, bool, Option<u8>) {
    assert_eq!(flow.direct_target.is_some(), flow.target_mode.is_some());
    (flow.kind, flow.direct_target.zip(flow.target_mode), flow.falls_through, flow.register)
}

use FlowKind::{Branch, Call, ConditionalBranch, Fallthrough, IndirectBranch, IndirectCall, Return};

/// The bits, the text, and the flow as [`parts`] has it.
type Row<R> = (R, &'static str, FlowKind, Option<(u32, Mode)>, bool, Option<u8>);

#[test]
fn flow_of_arm_instructions() {
    let to = |target| Some((target, Mode::Arm));
    // Branch targets: AT + 8 plus four times the signed 24-bit distance (ARM ARM A4.1.5).
    #[rustfmt::skip]
    let table: &[Row<u32>] = &[
        (0xe1a0_0001, "mov r0, r1", Fallthrough, None, true, None),                      // A4.1.35
        (0xea00_0002, "b #0x2000110", Branch, to(AT + 0x10), false, None),               // A4.1.5
        (0xeaff_fffe, "b #0x2000100", Branch, to(AT), false, None),
        (0x0a00_0002, "beq #0x2000110", ConditionalBranch, to(AT + 0x10), true, None),
        (0xeb00_0002, "bl #0x2000110", Call, to(AT + 0x10), true, None),
        (0x1b00_0002, "blne #0x2000110", Call, to(AT + 0x10), true, None),
        // BLX (1): H, bit 24, adds a halfword (A4.1.8).
        (0xfa00_0002, "blx #0x2000110", Call, Some((AT + 0x10, Mode::Thumb)), true, None),
        (0xfb00_0002, "blx #0x2000112", Call, Some((AT + 0x12, Mode::Thumb)), true, None),
        (0xe12f_ff33, "blx r3", IndirectCall, None, true, Some(3)),                      // A4.1.9
        (0xc12f_ff33, "blxgt r3", IndirectCall, None, true, Some(3)),
        (0xe12f_ff1e, "bx lr", Return, None, false, Some(14)),                           // A4.1.10
        (0x012f_ff1e, "bxeq lr", Return, None, true, Some(14)),
        (0xe12f_ff13, "bx r3", IndirectBranch, None, false, Some(3)),
        (0x112f_ff13, "bxne r3", IndirectBranch, None, true, Some(3)),
        (0xe12f_ff1f, "bx pc", Branch, to(AT + 8), false, Some(15)),
        (0xe1a0_f00e, "mov pc, lr", Return, None, false, None),
        (0x11a0_f00e, "movne pc, lr", Return, None, true, None),
        (0xe1b0_f00e, "movs pc, lr", Return, None, false, None),                         // A2.6
        (0xe25e_f004, "subs pc, lr, #0x4", Return, None, false, None),                   // A2.6.8
        (0xe1a0_f003, "mov pc, r3", IndirectBranch, None, false, None),
        (0xe1a0_f08e, "lsl pc, lr, #0x1", IndirectBranch, None, false, None),
        (0xe08f_f103, "add pc, pc, r3, lsl #0x2", IndirectBranch, None, false, None),    // A4.1.3
        (0x908f_f103, "addls pc, pc, r3, lsl #0x2", IndirectBranch, None, true, None),
        (0xe28f_f010, "add pc, pc, #0x10", IndirectBranch, None, false, None),
        (0xe49d_f004, "pop {pc}", Return, None, false, None),                            // A4.1.23, A5.2.8
        (0xe49d_f008, "ldr pc, [sp], #0x8", Return, None, false, None),
        (0xe59d_f004, "ldr pc, [sp, #0x4]", IndirectBranch, None, false, None),
        (0xe59f_f004, "ldr pc, [pc, #0x4]", IndirectBranch, None, false, None),
        (0x079f_f103, "ldreq pc, [pc, r3, lsl #0x2]", IndirectBranch, None, true, None),
        (0xe8bd_8010, "pop {r4, pc}", Return, None, false, None),                        // A4.1.20, A5.4
        (0x08bd_8010, "popeq {r4, pc}", Return, None, true, None),
        (0xe89d_8010, "ldm sp, {r4, pc}", Return, None, false, None),
        (0xe8fd_8010, "ldm sp!, {r4, pc}^", Return, None, false, None),                  // LDM (3), A4.1.22
        (0xe91b_a800, "ldmdb r11, {r11, sp, pc}", Return, None, false, None),
        (0xe890_8002, "ldm r0, {r1, pc}", IndirectBranch, None, false, None),
        (0xef00_0005, "svc #0x5", Fallthrough, None, true, None),                        // A4.1.107
        (0xe120_0070, "bkpt #0x0", Fallthrough, None, true, None),                       // A4.1.7
        (0xee1d_ff50, "mrc p15, #0x0, pc, c13, c0, #0x2", Fallthrough, None, true, None), // A4.1.38: sets flags
        (0xe15f_0001, "cmp pc, r1", Fallthrough, None, true, None),
    ];
    for &(raw, wanted, kind, target, falls_through, register) in table {
        let insn = arm(raw);
        assert_eq!(text(&insn), wanted, "{raw:08x}");
        assert_eq!(parts(insn.flow()), (kind, target, falls_through, register), "{wanted}");
        assert_eq!((insn.size, insn.raw, insn.end()), (4, raw, AT + 4));
        assert_eq!(insn.is_conditional(), raw >> 28 < 0xe, "{wanted}");
    }
}

#[test]
fn flow_of_thumb_instructions() {
    let to = |target| Some((target, Mode::Thumb));
    #[rustfmt::skip]
    let table: &[Row<u16>] = &[
        (0x1c08, "adds r0, r1, #0x0", Fallthrough, None, true, None),        // A7.1.3: also the encoding of MOV (2)
        // AT + 4 plus twice the signed distance of 8 or 11 bits (A7.1.12, A7.1.13).
        (0xd006, "beq #0x2000110", ConditionalBranch, to(AT + 0x10), true, None),
        (0xddfe, "ble #0x2000100", ConditionalBranch, to(AT), true, None),
        (0xe006, "b #0x2000110", Branch, to(AT + 0x10), false, None),
        (0xe7fe, "b #0x2000100", Branch, to(AT), false, None),
        (0x4770, "bx lr", Return, None, false, Some(14)),                    // A7.1.19
        (0x4718, "bx r3", IndirectBranch, None, false, Some(3)),
        (0x4778, "bx pc", Branch, Some((AT + 4, Mode::Arm)), false, Some(15)),
        (0x4798, "blx r3", IndirectCall, None, true, Some(3)),               // A7.1.18
        (0x46f7, "mov pc, lr", Return, None, false, None),                   // A7.1.43
        (0x469f, "mov pc, r3", IndirectBranch, None, false, None),
        (0x449f, "add pc, pc, r3", IndirectBranch, None, false, None),       // A7.1.6
        (0xbd10, "pop {r4, pc}", Return, None, false, None),                 // A7.1.49
        (0xbd00, "pop {pc}", Return, None, false, None),
        (0xbc10, "pop {r4}", Fallthrough, None, true, None),
        (0xdf05, "svc #0x5", Fallthrough, None, true, None),                 // A7.1.67
        (0xbe00, "bkpt #0x0", Fallthrough, None, true, None),                // A7.1.17
    ];
    for &(raw, wanted, kind, target, falls_through, register) in table {
        let insn = thumb(raw);
        assert_eq!(parts(insn.flow()), (kind, target, falls_through, register), "{wanted}: {}", text(&insn));
        assert_eq!((insn.size, insn.raw, insn.end()), (2, raw.into(), AT + 2));
        let conditional = kind == ConditionalBranch;
        assert_eq!(insn.is_conditional(), conditional, "{wanted}");
        if raw != 0x1c08 {
            assert_eq!(text(&insn), wanted, "{raw:04x}");
        }
    }
    // BX pc reads an address that is not divisible by 4: unpredictable, so no target is claimed (A7.1.19).
    let odd = decode(Arch::V4T, Mode::Thumb, AT + 2, &0x4778_u16.to_le_bytes()).unwrap();
    assert_eq!(parts(odd.flow()), (IndirectBranch, None, false, Some(15)));
}

#[test]
fn a_thumb_call_is_one_instruction_of_two_halves() {
    // A7.1.16: target = AT + 4 + (signed 11 bits << 12) + (11 bits << 1).
    let bl = pair(Arch::V4T, AT, 0xf000, 0xf806).unwrap();
    assert_eq!((bl.size, bl.end(), bl.raw, text(&bl)), (4, AT + 4, 0xf806_f000, "bl #0x2000110".to_owned()));
    assert_eq!(parts(bl.flow()), (Call, Some((AT + 0x10, Mode::Thumb)), true, None));
    let back = pair(Arch::V4T, AT, 0xf7ff, 0xfffe).unwrap();
    assert_eq!(parts(back.flow()), (Call, Some((AT, Mode::Thumb)), true, None));
    // BLX (1) clears bit 1 of the sum: from AT + 2, AT + 2 + 4 + 12 = AT + 0x12, so AT + 0x10.
    for address in [AT, AT + 2] {
        let blx = pair(Arch::V5TE, address, 0xf000, 0xe806).unwrap();
        assert_eq!(parts(blx.flow()), (Call, Some((AT + 0x10, Mode::Arm)), true, None));
        assert_eq!(text(&blx), "blx #0x2000110");
    }
    let undecodable = Err(DecodeError::Undecodable { raw: 0xf000 });
    assert_eq!(pair(Arch::V4T, AT, 0xf000, 0xe806), undecodable, "ARMv4T has no BLX");
    assert_eq!(pair(Arch::V5TE, AT, 0xf000, 0xe807), undecodable, "bit 0 of BLX must be clear");
    assert_eq!(pair(Arch::V5TE, AT, 0xf000, 0x4770), undecodable, "no second half");
    assert_eq!(pair(Arch::V5TE, AT, 0xf800, 0x4770), Err(DecodeError::Undecodable { raw: 0xf800 }), "no first half");
}

#[test]
fn what_armv4t_lacks_is_refused_there() {
    // CLZ, BLX (1), BLX (2), BKPT, LDRD, STRD, PLD, QADD, SMLABB, SMULTT: version 5T or 5TE only (ARM ARM A4.2).
    let words = [
        0xe16f_0f11_u32,
        0xfa00_0000,
        0xe12f_ff31,
        0xe120_0070,
        0xe1c2_00d0,
        0xe1c2_00f0,
        0xf5d0_f000,
        0xe101_0052,
        0xe100_3281,
        0xe160_02e1,
    ];
    for raw in words {
        let decoded = |arch| decode(arch, Mode::Arm, AT, &raw.to_le_bytes());
        assert!(decoded(Arch::V5TE).is_ok(), "{raw:08x}");
        assert_eq!(decoded(Arch::V4T), Err(DecodeError::Undecodable { raw }));
    }
    // BLX (2) and BKPT (A7.1.18, A7.1.17).
    for raw in [0x4798_u16, 0xbe00] {
        let decoded = |arch| decode(arch, Mode::Thumb, AT, &raw.to_le_bytes());
        assert!(decoded(Arch::V5TE).is_ok(), "{raw:04x}");
        assert_eq!(decoded(Arch::V4T), Err(DecodeError::Undecodable { raw: raw.into() }));
    }
}

#[test]
fn what_no_ds_processor_has_is_refused() {
    #[rustfmt::skip]
    let words = [
        0xe7f0_00f0_u32, // UDF: permanently undefined (A3.14.1)
        0xee30_0b01,     // CDP for coprocessor 11: VFP
        0xed9f_0b00,     // LDC for coprocessor 11
        0xec41_0b10,     // MCRR for coprocessor 11
        0xfe00_0f10,     // MCR2
        0xee00_0310,     // MCR for coprocessor 3
        0xe6ef_0071,     // UXTB: version 6
        0xe5bf_0004,     // LDR with write-back to r15: unpredictable (A5.2.5)
        0xe8bf_0001,     // LDM with write-back to r15
        0xe1c2_10d0,     // LDRD of an odd register: undefined (A4.1.26)
    ];
    for arch in [Arch::V4T, Arch::V5TE] {
        for raw in words {
            assert_eq!(decode(arch, Mode::Arm, AT, &raw.to_le_bytes()), Err(DecodeError::Undecodable { raw }));
        }
    }
}

#[test]
fn misaligned_and_cut_off_are_told_apart_from_undecodable() {
    let nop = 0xe1a0_0000_u32.to_le_bytes();
    for address in [AT + 1, AT + 2, AT + 3] {
        let misaligned = Err(DecodeError::Misaligned { address, mode: Mode::Arm });
        assert_eq!(decode(Arch::V5TE, Mode::Arm, address, &nop), misaligned);
        assert_eq!(decode(Arch::V5TE, Mode::Arm, address, &[]), misaligned, "said before the bytes are looked at");
    }
    assert!(decode(Arch::V5TE, Mode::Thumb, AT + 2, &[0x70, 0x47]).is_ok());
    let misaligned = Err(DecodeError::Misaligned { address: AT + 1, mode: Mode::Thumb });
    assert_eq!(decode(Arch::V5TE, Mode::Thumb, AT + 1, &[0x70, 0x47]), misaligned);
    for have in 0..4 {
        assert_eq!(decode(Arch::V5TE, Mode::Arm, AT, &nop[..have]), Err(DecodeError::Truncated { have }));
    }
    for have in 0..2 {
        assert_eq!(decode(Arch::V5TE, Mode::Thumb, AT, &[0x70, 0x47][..have]), Err(DecodeError::Truncated { have }));
    }
    // Only the first half of a call.
    assert_eq!(decode(Arch::V4T, Mode::Thumb, AT, &[0x00, 0xf0]), Err(DecodeError::Truncated { have: 2 }));
    let message = DecodeError::Misaligned { address: AT + 1, mode: Mode::Arm }.to_string();
    assert_eq!(message, "0x02000101 is not divisible by 4, as an instruction's address must be here");
}

#[test]
fn addresses_that_an_instruction_names() {
    // LDR from AT + 8 ± 12 bits, ADD and SUB with a rotated constant (A5.2.2, A5.1.3).
    assert_eq!(arm(0xe59f_0010).literal_slot(), Some(AT + 8 + 0x10));
    assert_eq!(arm(0xe51f_0010).literal_slot(), Some(AT + 8 - 0x10));
    assert_eq!(arm(0x159f_e010).literal_slot(), Some(AT + 8 + 0x10), "under a condition too");
    assert_eq!(arm(0xe28f_0e12).pc_relative_address(), Some(AT + 8 + 0x120));
    assert_eq!(arm(0xe24f_0010).pc_relative_address(), Some(AT + 8 - 0x10));
    assert_eq!(arm(0xe29f_0010).pc_relative_address(), Some(AT + 8 + 0x10), "also when it sets flags");
    // Not: a byte, another base, an index register, a branch, other operations.
    for raw in [0xe5df_0010, 0xe591_0010, 0xe79f_0001] {
        assert_eq!(arm(raw).literal_slot(), None, "{raw:08x}");
    }
    for raw in [0xe28f_f010, 0xe281_0010, 0xe20f_0010, 0xe08f_0001] {
        assert_eq!(arm(raw).pc_relative_address(), None, "{raw:08x}");
    }
    // Thumb rounds the program counter down to a word (A7.1.30, A7.1.7).
    for (address, base) in [(AT, AT + 4), (AT + 2, AT + 4), (0xffff_fffe, 0)] {
        let at = |raw: u16| decode(Arch::V4T, Mode::Thumb, address, &raw.to_le_bytes()).unwrap();
        assert_eq!(at(0x4803).literal_slot(), Some(base + 12));
        assert_eq!(at(0xa003).pc_relative_address(), Some(base + 12));
        assert_eq!((at(0xa803).pc_relative_address(), at(0x9803).literal_slot()), (None, None), "base sp");
    }
    let wrapped = decode(Arch::V4T, Mode::Arm, 0xffff_fffc, &0xeb00_0002_u32.to_le_bytes()).unwrap();
    assert_eq!((wrapped.end(), wrapped.flow().direct_target), (0, Some(0xc)));
}

#[test]
fn registers_read_and_written() {
    let set = |list: &[u8]| list.iter().fold(RegSet::EMPTY, |set, register| set.with(*register));
    #[rustfmt::skip]
    let words: &[(u32, &[u8], &[u8])] = &[
        (0xe080_3112, &[0, 1, 2], &[3]),         // add r3, r0, r2, lsl r1
        (0xe1a0_3182, &[2], &[3]),               // lsl r3, r2, #3
        (0xe3e0_3000, &[], &[3]),                // mvn r3, #0
        (0xe150_0001, &[0, 1], &[]),             // cmp r0, r1
        (0xe023_0291, &[0, 1, 2], &[3]),         // mla r3, r1, r2, r0
        (0xe003_0291, &[1, 2], &[3]),            // mul r3, r1, r2
        (0xe083_2190, &[0, 1], &[2, 3]),         // umull r2, r3, r0, r1
        (0xe0e3_2190, &[0, 1, 2, 3], &[2, 3]),   // smlal r2, r3, r0, r1
        (0xe143_2180, &[0, 1, 2, 3], &[2, 3]),   // smlalbb r2, r3, r0, r1
        (0xe163_0281, &[1, 2], &[3]),            // smulbb r3, r1, r2
        (0xe103_0281, &[0, 1, 2], &[3]),         // smlabb r3, r1, r2, r0
        (0xe123_02a1, &[1, 2], &[3]),            // smulwb r3, r1, r2
        (0xe123_0281, &[0, 1, 2], &[3]),         // smlawb r3, r1, r2, r0
        (0xe102_3051, &[1, 2], &[3]),            // qadd r3, r1, r2
        (0xe16f_3f11, &[1], &[3]),               // clz r3, r1
        (0xe102_3091, &[1, 2], &[3]),            // swp r3, r1, [r2]
        (0xe5b1_0004, &[1], &[0, 1]),            // ldr r0, [r1, #4]!
        (0xe491_0004, &[1], &[0, 1]),            // ldr r0, [r1], #4
        (0xe4b1_0004, &[1], &[0, 1]),            // ldrt r0, [r1], #4
        (0xe681_0002, &[0, 1, 2], &[1]),         // str r0, [r1], r2
        (0xe5c1_0000, &[0, 1], &[]),             // strb r0, [r1]
        (0xe0c1_00b2, &[0, 1], &[1]),            // strh r0, [r1], #2
        (0xe191_00d2, &[1, 2], &[0]),            // ldrsb r0, [r1, r2]
        (0xe1c4_20d8, &[4], &[2, 3]),            // ldrd r2, r3, [r4, #8]
        (0xe1e4_20f8, &[2, 3, 4], &[4]),         // strd r2, r3, [r4, #8]!
        (0xe8b0_0006, &[0], &[0, 1, 2]),         // ldm r0!, {r1, r2}
        (0xe880_0006, &[0, 1, 2], &[]),          // stm r0, {r1, r2}
        (0xe92d_4010, &[4, 13, 14], &[13]),      // push {r4, lr}
        (0xea00_0000, &[], &[15]),               // b
        (0xeb00_0000, &[], &[14, 15]),           // bl
        (0xfa00_0000, &[], &[14, 15]),           // blx
        (0xe12f_ff33, &[3], &[14, 15]),          // blx r3
        (0xe12f_ff13, &[3], &[15]),              // bx r3
        (0xe10f_0000, &[], &[0]),                // mrs r0, cpsr
        (0xe129_f000, &[0], &[]),                // msr cpsr_fc, r0
        (0xe321_f0d3, &[], &[]),                 // msr cpsr_c, #0xd3
        (0xee11_0f10, &[], &[0]),                // mrc p15, 0, r0, c1, c0, 0
        (0xee01_0f10, &[0], &[]),                // mcr p15, 0, r0, c1, c0, 0
        (0xf5d1_f000, &[1], &[]),                // pld [r1]
        (0xf7d1_f002, &[1, 2], &[]),             // pld [r1, r2]
        (0xef00_0000, &[], &[]),                 // svc 0
    ];
    for (raw, reads, writes) in words {
        let insn = arm(*raw);
        assert_eq!((insn.reads(), insn.writes()), (set(reads), set(writes)), "{raw:08x} {}", text(&insn));
    }
    #[rustfmt::skip]
    let halfwords: &[(u16, &[u8], &[u8])] = &[
        (0x0108, &[1], &[0]),              // lsls r0, r1, #4
        (0x1888, &[1, 2], &[0]),           // adds r0, r1, r2
        (0x1e48, &[1], &[0]),              // subs r0, r1, #1
        (0x2301, &[], &[3]),               // movs r3, #1
        (0x2b01, &[3], &[]),               // cmp r3, #1
        (0x3301, &[3], &[3]),              // adds r3, #1
        (0x4008, &[0, 1], &[0]),           // ands r0, r1
        (0x4208, &[0, 1], &[]),            // tst r0, r1
        (0x4248, &[1], &[0]),              // negs r0, r1
        (0x43c8, &[1], &[0]),              // mvns r0, r1
        (0x4348, &[0, 1], &[0]),           // muls r0, r1
        (0x4488, &[1, 8], &[8]),           // add r8, r1
        (0x4588, &[1, 8], &[]),            // cmp r8, r1
        (0x4688, &[1], &[8]),              // mov r8, r1
        (0x4b01, &[15], &[3]),             // ldr r3, [pc, #4]
        (0x5088, &[0, 1, 2], &[]),         // str r0, [r1, r2]
        (0x5688, &[1, 2], &[0]),           // ldrsb r0, [r1, r2]
        (0x6048, &[0, 1], &[]),            // str r0, [r1, #4]
        (0x8848, &[1], &[0]),              // ldrh r0, [r1, #2]
        (0x9301, &[3, 13], &[]),           // str r3, [sp, #4]
        (0x9b01, &[13], &[3]),             // ldr r3, [sp, #4]
        (0xa301, &[15], &[3]),             // add r3, pc, #4
        (0xab01, &[13], &[3]),             // add r3, sp, #4
        (0xb081, &[13], &[13]),            // sub sp, #4
        (0xb510, &[4, 13, 14], &[13]),     // push {r4, lr}
        (0xbd10, &[13], &[4, 13, 15]),     // pop {r4, pc}
        (0xc106, &[1, 2], &[1]),           // stm r1!, {r1, r2}
        (0xc906, &[1], &[1, 2]),           // ldm r1, {r1, r2}
        (0xd000, &[], &[15]),              // beq
        (0xdf00, &[], &[]),                // svc 0
        (0xe000, &[], &[15]),              // b
        (0x4718, &[3], &[15]),             // bx r3
        (0x4798, &[3], &[14, 15]),         // blx r3
    ];
    for (raw, reads, writes) in halfwords {
        let insn = thumb(*raw);
        assert_eq!((insn.reads(), insn.writes()), (set(reads), set(writes)), "{raw:04x} {}", text(&insn));
    }
    let bl = pair(Arch::V4T, AT, 0xf000, 0xf800).unwrap();
    assert_eq!((bl.reads(), bl.writes()), (RegSet::EMPTY, set(&[14, 15])));
}

#[test]
fn text_that_the_decoder_library_gets_wrong_is_right() {
    // A shift by 0 stands for 32 (A5.2.4); a constant is rotated by twice its four bits (A4.1.39).
    assert_eq!(text(&arm(0xe790_0041)), "ldr r0, [r0, r1, asr #0x20]");
    assert_eq!(text(&arm(0xe790_0021)), "ldr r0, [r0, r1, lsr #0x20]");
    assert_eq!(text(&arm(0xe790_0061)), "ldr r0, [r0, r1, rrx]");
    assert_eq!(text(&arm(0xe328_f20f)), "msr cpsr_f, #0xf0000000");
}

/// Whether Thumb has the 16-bit instruction, from ARM ARM A6.2, figures A6-1 and A6-2, with the bits that should be zero.
fn thumb_has(arch: Arch, halfword: u16) -> bool {
    let v5 = arch == Arch::V5TE;
    let field = |high: u32, low: u32| halfword >> low & ((1 << (high - low + 1)) - 1);
    match field(15, 12) {
        // Shifts, add, subtract, compare, move with immediates.
        0b0000..=0b0011 => true,
        0b0100 => match field(11, 8) {
            // The 16 operations on two low registers.
            0b0000..=0b0011 => true,
            // ADD, CMP, MOV with high registers. With two low ones the result is unpredictable (A7.1.6, A7.1.23, A7.1.43), but the
            // processors do what the bits say, and objdump shows it.
            0b0100..=0b0110 => true,
            // BX and BLX: bits 2 to 0 should be zero; BLX pc is unpredictable (A7.1.18, A7.1.19).
            0b0111 if field(7, 7) == 0 => field(2, 0) == 0,
            0b0111 => v5 && field(2, 0) == 0 && field(6, 3) != 15,
            // LDR (3).
            _ => true,
        },
        // Loads and stores; additions to pc and sp.
        0b0101..=0b1010 => true,
        0b1011 => match field(11, 8) {
            0b0000 => true,
            // PUSH and POP of nothing are unpredictable (A7.1.49, A7.1.50).
            0b0100 | 0b1100 => field(7, 0) != 0,
            0b0101 | 0b1101 => true,
            0b1110 => v5,
            _ => false,
        },
        // STMIA and LDMIA of nothing are unpredictable (A7.1.28, A7.1.57).
        0b1100 => field(7, 0) != 0,
        // B under a condition, of which 14 is undefined; SWI.
        0b1101 => field(11, 8) != 14,
        // B; the upper half of this space is the second half of BLX.
        0b1110 => field(11, 11) == 0,
        // Halves of BL.
        _ => false,
    }
}

#[test]
fn every_thumb_halfword_decodes_as_the_manual_has_it() {
    let mut differences = Vec::new();
    for arch in [Arch::V4T, Arch::V5TE] {
        for first in 0..=u16::MAX {
            // A following halfword that completes BL, one that completes BLX, and one that is neither.
            for second in [0xf800_u16, 0xe800, 0x46c0] {
                let decoded = pair(arch, AT, first, second);
                let is_prefix = first >> 11 == 0b11110;
                let wanted = match (is_prefix, second) {
                    (true, 0xf800) => Some(4),
                    (true, 0xe800) => (arch == Arch::V5TE).then_some(4),
                    (true, _) => None,
                    (false, _) => thumb_has(arch, first).then_some(2),
                };
                if decoded.map(|insn| insn.size).ok() != wanted {
                    differences.push(format!("{arch:?} {first:04x} {second:04x}: {decoded:?}, not {wanted:?}"));
                }
                if let Ok(insn) = decoded {
                    assert!(!insn.mnemonic().is_empty());
                    insn.operands();
                }
            }
            let alone = decode(arch, Mode::Thumb, AT, &first.to_le_bytes());
            assert_eq!(matches!(alone, Err(DecodeError::Truncated { have: 2 })), first >> 11 == 0b11110, "{first:04x}");
        }
    }
    let first: Vec<_> = differences.iter().step_by(24).take(40).collect();
    assert!(differences.is_empty(), "{} differences: {first:#?}", differences.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_word_is_refused_or_described(raw: u32, address: u32, arch in prop_oneof![Just(Arch::V4T), Just(Arch::V5TE)]) {
        for (mode, aligned) in [(Mode::Arm, address & !3), (Mode::Thumb, address & !1)] {
            let Ok(insn) = decode(arch, mode, aligned, &raw.to_le_bytes()) else { continue };
            prop_assert!(!insn.mnemonic().is_empty());
            insn.operands();
            let flow = insn.flow();
            prop_assert_eq!(flow.kind == Fallthrough, !insn.writes().contains(15));
            prop_assert!(flow.falls_through || !insn.is_conditional());
            if let Some((target, mode)) = flow.direct_target.zip(flow.target_mode) {
                prop_assert!(mode.is_aligned(target));
            }
        }
    }
}
