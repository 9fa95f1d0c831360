//! Jump tables and returns in the forms that compilers write, assembled by GNU as; the listing stands beside the words.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use code::arm::Mode;
use nds::analysis::*;
use nds::testing::{ProgramSpec, RomBuilder};
use nds::{Processor, Rom};

const BASE: u32 = 0x0200_0000;

const PROGRAM: [u32; 33] = [
    0xd803_2802, // 00 loaded:  cmp r0, #2           ; 02 bhi default
    0x4a05_0081, // 04          lsls r1, r0, #2      ; 06 ldr r2, [pc, #20]   (1c)
    0x468f_5851, // 08          ldr r1, [r2, r1]     ; 0a mov pc, r1
    0x4770_2009, // 0c default: movs r0, #9          ; 0e bx lr
    0x4770_2000, // 10 c0:      movs r0, #0          ; 12 bx lr
    0x4770_2001, // 14 c1:      movs r0, #1          ; 16 bx lr
    0x4770_2002, // 18 c2:      movs r0, #2          ; 1a bx lr
    0x0200_0020, // 1c          .word table
    0x0200_0011, // 20 table:   .word c0 + 1, c1 + 1, c2
    0x0200_0015, // 24
    0x0200_0018, // 28
    0xd808_2802, // 2c added:   cmp r0, #2           ; 2e bhi adef
    0x4478_1800, // 30          adds r0, r0, r0      ; 32 add r0, pc
    0x0400_88c0, // 34          ldrh r0, [r0, #6]    ; 36 lsls r0, r0, #16
    0x4487_1400, // 38          asrs r0, r0, #16     ; 3a add pc, r0
    0x0008_0006, // 3c          .hword a0 - 3e, a1 - 3e, a2 - 3e
    0x4770_000a, // 40                               ; 42 adef: bx lr
    0x4770_4770, // 44 a0:      bx lr                ; 46 a1: bx lr
    0x46c0_4770, // 48 a2:      bx lr                ; 4a nop
    0xe350_0002, // 4c armadd:  cmp r0, #2
    0x908f_f100, // 50          addls pc, pc, r0, lsl #2
    0xea00_0006, // 54          b ad3
    0xea00_0001, // 58          b ad0
    0xea00_0001, // 5c          b ad1
    0xea00_0001, // 60          b ad2
    0xe12f_ff1e, // 64 ad0:     bx lr
    0xe12f_ff1e, // 68 ad1:     bx lr
    0xe49d_3004, // 6c ad2:     ldr r3, [sp], #4
    0xe12f_ff13, // 70          bx r3
    0xe8bd_0018, // 74 ad3:     pop {r3, r4}
    0xe12f_ff13, // 78          bx r3
    0xe59d_3000, // 7c peek:    ldr r3, [sp]
    0xe12f_ff13, // 80          bx r3
];

/// The program with some of its words, by their index, written over.
fn rom(changes: &[(usize, u32)]) -> Rom {
    let mut words = PROGRAM;
    for (index, word) in changes {
        words[*index] = *word;
    }
    let bytes = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let arm9 = ProgramSpec { ram_address: BASE, entry: BASE, bytes };
    Rom::parse(RomBuilder { arm9, ..RomBuilder::default() }.build()).unwrap()
}

const ROOM: u64 = 1 << 20;

fn graph(rom: &Rom, at: u32, mode: Mode) -> ControlFlow {
    let place = Place {
        processor: Processor::Arm9,
        at: Where::Address(BASE + at),
        overlay_id: None,
        mode: ModeChoice::Fixed(mode),
    };
    let budget = CfgBudget { blocks: ROOM, instructions: ROOM, bytes: ROOM, edges: ROOM };
    analyze_control_flow(rom, &ControlFlowRequest { place, budget }).unwrap()
}

/// Where the jump tables of a graph lead, and what stays unresolved.
fn tables(rom: &Rom, at: u32, mode: Mode) -> (Vec<u32>, Vec<(u32, &'static str)>) {
    let graph = graph(rom, at, mode);
    let targets = graph.edges.iter().filter(|edge| edge.kind.word() == "jump-table");
    let unresolved = graph.unresolved.iter().map(|edge| (edge.instruction_address - BASE, edge.kind));
    (targets.map(|edge| edge.target_address - BASE).collect(), unresolved.collect())
}

#[test]
fn a_thumb_table_of_addresses_is_proven() {
    let returns = vec![(0x0e, "return"), (0x12, "return"), (0x16, "return"), (0x1a, "return")];
    assert_eq!(tables(&rom(&[]), 0, Mode::Thumb), (vec![0x10, 0x14, 0x18], returns));
    // The same through other registers: lsls r3, r0, #2; ldr r4, [pc, #20]; ldr r5, [r4, r3]; mov pc, r5.
    let others = rom(&[(1, 0x4c05_0083), (2, 0x46af_58e5)]);
    assert_eq!(tables(&others, 0, Mode::Thumb).0, [0x10, 0x14, 0x18]);
}

#[test]
fn a_thumb_table_with_a_link_missing_is_none() {
    let none = |changes: &[(usize, u32)]| {
        let (targets, unresolved) = tables(&rom(changes), 0, Mode::Thumb);
        assert!(targets.is_empty(), "{changes:x?}: {targets:x?}");
        assert!(unresolved.contains(&(0x0a, "indirect-branch")), "{changes:x?}: {unresolved:x?}");
    };
    // bls instead of bhi; lsls r1, r0, #3; cmp r1, #2; a table at an odd address; one outside the component.
    none(&[(0, 0xd903_2802)]);
    none(&[(1, 0x4a05_00c1)]);
    none(&[(0, 0xd803_2902)]);
    none(&[(7, 0x0200_0021)]);
    none(&[(7, 0x0300_0000)]);
}

#[test]
fn a_thumb_table_of_distances_is_proven() {
    let returns = vec![(0x42, "return"), (0x44, "return"), (0x46, "return"), (0x48, "return")];
    assert_eq!(tables(&rom(&[]), 0x2c, Mode::Thumb), (vec![0x44, 0x46, 0x48], returns));
    // ldrh r0, [r0, #4] reads another table than the one behind the branch; so does lsls #15.
    for changes in [(13, 0x0400_8880), (13, 0x03c0_88c0)] {
        let (targets, unresolved) = tables(&rom(&[changes]), 0x2c, Mode::Thumb);
        assert!(targets.is_empty() && unresolved.contains(&(0x3a, "indirect-branch")), "{targets:x?} {unresolved:x?}");
    }
}

#[test]
fn an_arm_table_of_branches_is_proven() {
    let returns = vec![(0x64, "return"), (0x68, "return"), (0x70, "return"), (0x78, "return")];
    assert_eq!(tables(&rom(&[]), 0x4c, Mode::Arm), (vec![0x58, 0x5c, 0x60], returns));
    // With `lower` the bound itself is not an index: addcc pc, pc, r0, lsl #2.
    assert_eq!(tables(&rom(&[(20, 0x308f_f100)]), 0x4c, Mode::Arm).0, [0x58, 0x5c]);
    // One word earlier: cmp r0, #2 before mov r1, #3, which leaves the flags alone, and before subs r1, r1, #1.
    assert_eq!(tables(&rom(&[(18, 0xe350_0002), (19, 0xe3a0_1003)]), 0x48, Mode::Arm).0, [0x58, 0x5c, 0x60]);
    assert_eq!(tables(&rom(&[(18, 0xe350_0002), (19, 0xe251_1001)]), 0x48, Mode::Arm).0, [] as [u32; 0]);
    // Another register is compared: cmp r1, #2.
    assert_eq!(tables(&rom(&[(19, 0xe351_0002)]), 0x4c, Mode::Arm).0, [] as [u32; 0]);
}

#[test]
fn a_popped_address_is_a_return_and_a_loaded_one_is_not() {
    let unresolved = |changes: &[(usize, u32)], at: u32| tables(&rom(changes), at, Mode::Arm).1;
    assert_eq!(unresolved(&[], 0x6c), [(0x70, "return")]);
    assert_eq!(unresolved(&[], 0x74), [(0x78, "return")]);
    assert_eq!(unresolved(&[], 0x7c), [(0x80, "indirect-branch")]);
    // ldr r3, [sp], #0 leaves the stack as it is.
    assert_eq!(unresolved(&[(27, 0xe49d_3000)], 0x6c), [(0x70, "indirect-branch")]);
}

#[test]
fn a_graph_that_uses_its_budget_up_is_complete() {
    let rom = rom(&[]);
    let whole = graph(&rom, 0, Mode::Thumb);
    assert_eq!(whole.status, "complete");
    let totals = whole.totals;
    // Fourteen instructions of two bytes.
    assert_eq!((totals.instructions, totals.bytes), (14, 28));
    let place = Place {
        processor: Processor::Arm9,
        at: Where::Address(BASE),
        overlay_id: None,
        mode: ModeChoice::Fixed(Mode::Thumb),
    };
    let exact = CfgBudget {
        blocks: totals.blocks,
        instructions: totals.instructions,
        bytes: totals.bytes,
        edges: totals.edges,
    };
    let run = |budget| analyze_control_flow(&rom, &ControlFlowRequest { place, budget }).unwrap();
    assert_eq!(run(exact).status, "complete");
    for (budget, reason) in [
        (CfgBudget { bytes: exact.bytes - 1, ..exact }, "byte-limit"),
        (CfgBudget { instructions: exact.instructions - 1, ..exact }, "instruction-limit"),
        (CfgBudget { blocks: exact.blocks - 1, ..exact }, "block-limit"),
        (CfgBudget { edges: exact.edges - 1, ..exact }, "edge-limit"),
    ] {
        let cut = run(budget);
        assert_eq!((cut.status, cut.truncation_reasons.as_slice()), ("truncated", [reason].as_slice()));
    }
}
