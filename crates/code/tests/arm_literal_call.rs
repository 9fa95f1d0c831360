//! Calls through a literal pool: each form that is proven, and each way in which the proof fails.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use code::arm::{Arch, Insn, LiteralCall, LiteralForm, Mode, decode, literal_call, return_address};

/// Where the code begins; the literal that it loads stands at `POOL`.
const AT: u32 = 0x0200_0000;
const POOL: u32 = AT + 0x20;

// Encodings: ARM ARM A4.1 and A7.1.
const ADD_R0: u32 = 0xe080_0001;
const BLX_R3: u32 = 0xe12f_ff33;
const BX_R3: u32 = 0xe12f_ff13;
const MOV_LR_PC: u32 = 0xe1a0_e00f;
const ADD_LR_PC_4: u32 = 0xe28f_e004;

/// `ldr r3, [pc, #n]` in the word at `index` of the code, for the literal at `POOL`.
fn ldr_r3(index: u32) -> u32 {
    0xe59f_3000 | (POOL - (AT + 4 * index + 8))
}

fn arm(words: &[u32]) -> Vec<Insn> {
    let at = |(index, word): (usize, &u32)| {
        decode(Arch::V5TE, Mode::Arm, AT + 4 * index as u32, &word.to_le_bytes()).unwrap()
    };
    words.iter().enumerate().map(at).collect()
}

/// Thumb code, of which no instruction but the last is a pair.
fn thumb(arch: Arch, halfwords: &[u16]) -> Vec<Insn> {
    let bytes: Vec<u8> = halfwords.iter().flat_map(|halfword| halfword.to_le_bytes()).collect();
    let (mut insns, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let insn = decode(arch, Mode::Thumb, AT + at as u32, &bytes[at..]).unwrap();
        at += usize::from(insn.size);
        insns.push(insn);
    }
    insns
}

/// The proof with `literal` in the pool and nothing else to read.
fn prove(window: &[Insn], literal: u32) -> Option<LiteralCall> {
    literal_call(window, &|address| (address == POOL).then_some(literal))
}

fn call(form: LiteralForm, site: u32, returns_to: Option<u32>) -> LiteralCall {
    let (target, target_mode) = (0x0200_1234, Mode::Arm);
    LiteralCall { site, form, register: 3, load: AT, slot: POOL, target, target_mode, returns_to }
}

#[test]
fn arm_forms() {
    let after = |index: u32| Some(AT + 4 * index);
    let cases: [(&[u32], LiteralCall); 8] = [
        (&[ldr_r3(0), BLX_R3], call(LiteralForm::Blx, AT + 4, after(2))),
        (&[ldr_r3(0), ADD_R0, BLX_R3], call(LiteralForm::Blx, AT + 8, after(3))),
        (&[ldr_r3(0), BX_R3], call(LiteralForm::Bx, AT + 4, None)),
        (&[ldr_r3(0), MOV_LR_PC, BX_R3], call(LiteralForm::Bx, AT + 8, after(3))),
        // lr = AT + 4 + 8 + 4, whatever is in between.
        (&[ldr_r3(0), ADD_LR_PC_4, BX_R3], call(LiteralForm::Bx, AT + 8, after(4))),
        (&[ldr_r3(0), MOV_LR_PC, ADD_R0, BX_R3], call(LiteralForm::Bx, AT + 12, after(3))),
        // bxne r3; movne lr, pc; bxne r3.
        (&[ldr_r3(0), 0x112f_ff13], call(LiteralForm::Bx, AT + 4, None)),
        (&[ldr_r3(0), 0x11a0_e00f, 0x112f_ff13], call(LiteralForm::Bx, AT + 8, after(3))),
    ];
    for (words, wanted) in cases {
        assert_eq!(prove(&arm(words), 0x0200_1234), Some(wanted), "{words:08x?}");
    }
    // ldr lr, =…; bx lr: no return, for the link register holds the literal.
    let window = arm(&[0xe59f_e018, 0xe12f_ff1e]);
    let jump = prove(&window, 0x0200_1234).unwrap();
    assert_eq!((jump.register, jump.returns_to), (14, None));
}

#[test]
fn bit_0_of_the_literal_chooses_the_mode() {
    let window = arm(&[ldr_r3(0), BLX_R3]);
    let to = |literal| prove(&window, literal).map(|call| (call.target, call.target_mode));
    assert_eq!(to(0x0200_1234), Some((0x0200_1234, Mode::Arm)));
    assert_eq!(to(0x0200_1235), Some((0x0200_1234, Mode::Thumb)));
    assert_eq!(to(0x0200_1237), Some((0x0200_1236, Mode::Thumb)));
    assert_eq!(to(0x0200_1236), None, "an ARM address that is no multiple of 4");
}

#[test]
fn what_breaks_the_straight_line_proves_nothing() {
    let broken: [(&str, &[u32]); 12] = [
        ("no load", &[ADD_R0, BLX_R3]),
        ("another register", &[ldr_r3(0), 0xe12f_ff34]),
        ("moved over", &[ldr_r3(0), 0xe1a0_3000, BLX_R3]),
        ("perhaps moved over", &[ldr_r3(0), 0x01a0_3000, BLX_R3]),
        ("loaded again", &[ldr_r3(0), 0xe590_3000, BLX_R3]),
        ("written back: ldr r0, [r3], #4", &[ldr_r3(0), 0xe493_0004, BLX_R3]),
        ("written back: strt r0, [r3], #4", &[ldr_r3(0), 0xe4a3_0004, BLX_R3]),
        ("high half of a product: umull r2, r3, r0, r1", &[ldr_r3(0), 0xe083_2190, BLX_R3]),
        ("a call", &[ldr_r3(0), 0xeb00_0002, BLX_R3]),
        ("a branch under a condition", &[ldr_r3(0), 0x0a00_0002, BLX_R3]),
        ("a system call", &[ldr_r3(0), 0xef00_0000, BLX_R3]),
        ("a load under a condition", &[ldr_r3(0) & 0x0fff_ffff, BLX_R3]),
    ];
    for (why, words) in broken {
        assert_eq!(prove(&arm(words), 0x0200_1234), None, "{why}");
    }
    let whole = arm(&[ldr_r3(0), ADD_R0, BLX_R3]);
    assert_eq!(prove(&[whole[0], whole[2]], 0x0200_1234), None, "a gap");
    assert_eq!(prove(&[], 0x0200_1234), None);
    assert_eq!(prove(&whole[..2], 0x0200_1234), None, "does not end in a branch");
    assert_eq!(literal_call(&whole, &|_| None), None, "the literal may not be read");
}

#[test]
fn a_return_address_is_claimed_only_where_it_is_certain() {
    assert_eq!(return_address(&arm(&[MOV_LR_PC, BX_R3])), Some(AT + 8));
    assert_eq!(return_address(&arm(&[MOV_LR_PC, 0xe1a0_f003])), Some(AT + 8), "mov pc, r3");
    let uncertain: [(&str, &[u32]); 5] = [
        ("never written", &[ADD_R0, BX_R3]),
        ("written again", &[MOV_LR_PC, 0xe1a0_e000, BX_R3]),
        ("under another condition", &[0x01a0_e00f, BX_R3]),
        ("the flags may have changed", &[0x11a0_e00f, ADD_R0, 0x112f_ff13]),
        ("a return to no word address", &[0xe28f_e002, BX_R3]),
    ];
    for (why, words) in uncertain {
        assert_eq!(return_address(&arm(words)), None, "{why}");
    }
    // In Thumb, mov lr, pc leaves bit 0 clear: the return would be to ARM mode.
    assert_eq!(return_address(&thumb(Arch::V4T, &[0x46fe, 0x4718])), None);
}

#[test]
fn thumb_forms() {
    // ldr r3, [pc, #28] at AT: AT + 4 + 28 = POOL.
    const LDR_R3: u16 = 0x4b07;
    let blx = prove(&thumb(Arch::V5TE, &[LDR_R3, 0x1840, 0x4798]), 0x0200_1234);
    assert_eq!(blx, Some(call(LiteralForm::Blx, AT + 4, Some(AT + 6))));
    let bx = prove(&thumb(Arch::V4T, &[LDR_R3, 0x4718]), 0x0200_1234);
    assert_eq!(bx, Some(call(LiteralForm::Bx, AT + 2, None)));

    // bl to AT + 2 + 4 + 12 = AT + 0x12, where a veneer is in the upper half of the word at AT + 0x10.
    let through = |veneer: u16| {
        let window = thumb(Arch::V4T, &[LDR_R3, 0xf000, 0xf806]);
        literal_call(&window, &move |address| match address - AT {
            0x20 => Some(0x0200_1234),
            0x10 => Some(u32::from(veneer) << 16),
            _ => None,
        })
    };
    assert_eq!(through(0x4718), Some(call(LiteralForm::BlToBx, AT + 2, Some(AT + 6))), "bx r3");
    assert_eq!(through(0x4720), None, "bx r4");
    assert_eq!(through(0x4770), None, "bx lr: a function that does nothing");
    assert_eq!(through(0x4b07), None, "an ordinary function");
    assert_eq!(prove(&thumb(Arch::V4T, &[LDR_R3, 0xf000, 0xf806]), 0), None, "a veneer that may not be read");
}
