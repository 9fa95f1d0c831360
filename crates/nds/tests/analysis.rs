//! Analysis of code that was assembled by GNU as and listed by objdump; the listing stands beside the words.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use code::arm::{FlowKind, Mode};
use nds::analysis::*;
use nds::testing::{OverlaySpec, ProgramSpec, RomBuilder};
use nds::{AddressStatus, ComponentId, Failure, Processor, Rom, UNWATCHED};
use proptest::prelude::*;

const BASE: u32 = 0x0200_0000;

/// The ARM9 program of most tests.
const PROGRAM: [u32; 36] = [
    0xeb00_0006, // 00 _start:     bl armfn
    0xeb00_0011, // 04             bl tailfn
    0xe59f_300c, // 08             ldr r3, [pc, #12]   ; 1c
    0xe12f_ff33, // 0c             blx r3
    0xe594_2000, // 10             ldr r2, [r4]
    0xe12f_ff32, // 14             blx r2
    0xeaff_fffe, // 18             b 18
    0x0200_0075, // 1c             .word thumb_main + 1
    0xe350_0002, // 20 armfn:      cmp r0, #2
    0x979f_f100, // 24             ldrls pc, [pc, r0, lsl #2]
    0xea00_0007, // 28             b default
    0x0200_0038, // 2c             .word case0, case1, case2
    0x0200_0040, // 30
    0x0200_0048, // 34
    0xe3a0_0001, // 38 case0:      mov r0, #1
    0xe12f_ff1e, // 3c             bx lr
    0xe3a0_0002, // 40 case1:      mov r0, #2
    0x012f_ff1e, // 44             bxeq lr
    0xe3a0_0003, // 48 case2:      mov r0, #3
    0xeaff_ffff, // 4c default:    b tailfn
    0xe92d_4010, // 50 tailfn:     push {r4, lr}
    0xeb00_0000, // 54             bl leaf
    0xe8bd_8010, // 58             pop {r4, pc}
    0xe59f_0000, // 5c leaf:       ldr r0, [pc]        ; 64
    0xe12f_ff1e, // 60             bx lr
    0x0210_0000, // 64             .word 0x02100000
    0xe92d_4010, // 68 unreached:  push {r4, lr}
    0xe8bd_8010, // 6c             pop {r4, pc}
    0x0200_0068, // 70             .word unreached
    0x2801_b510, // 74 thumb_main: push {r4, lr}       ; 76 cmp r0, #1
    0xf000_d801, // 78             bhi 7e              ; 7a bl thumb_leaf
    0xbc10_f803, // 7c                                 ; 7e pop {r4}
    0x4708_bc02, // 80             pop {r1}            ; 82 bx r1
    0xe000_a001, // 84 thumb_leaf: add r0, pc, #4      ; 86 b 8a
    0x4770_46c0, // 88             nop                 ; 8a bx lr
    0x1122_3344, // 8c data
];

/// Thumb: `push {lr}; bl +6; pop {pc}; bx lr`, a function that calls the one behind it.
const OVERLAY: [u32; 4] = [0xf000_b500, 0xbd00_f801, 0x46c0_4770, 0];

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn rom_of(program: Vec<u8>, overlays: Vec<OverlaySpec>) -> Rom {
    let arm9 = ProgramSpec { ram_address: BASE, entry: BASE, bytes: program };
    Rom::parse(RomBuilder { arm9, overlays, ..RomBuilder::default() }.build()).unwrap()
}

/// The program, and over one another a plain overlay and a compressed one; one more elsewhere.
fn rom() -> Rom {
    let mut long = bytes(&OVERLAY);
    long.resize(0x200, 0);
    let blz = OverlaySpec::blz(Processor::Arm9, 1, 0x0210_0000, &long);
    assert!(blz.compressed);
    let overlays = vec![
        OverlaySpec { bss_size: 0x40, ..OverlaySpec::plain(Processor::Arm9, 0, 0x0210_0000, &bytes(&OVERLAY)) },
        blz,
        OverlaySpec::plain(Processor::Arm9, 7, 0x0220_0000, &bytes(&OVERLAY)),
    ];
    rom_of(bytes(&PROGRAM), overlays)
}

fn place(address: u32, mode: ModeChoice) -> Place {
    Place { processor: Processor::Arm9, at: Where::Address(address), overlay_id: None, mode }
}

const ARM: ModeChoice = ModeChoice::Fixed(Mode::Arm);
const THUMB: ModeChoice = ModeChoice::Fixed(Mode::Thumb);

fn linear(place: Place) -> LinearRequest {
    LinearRequest { place, max_instructions: 32, max_bytes: 128 }
}

const ROOM: u64 = 1 << 20;
const CFG_ROOM: CfgBudget = CfgBudget { blocks: ROOM, instructions: ROOM, bytes: ROOM, edges: ROOM };
const ALL: Page = Page { offset: 0, limit: usize::MAX };

fn discovery(scope: Scope) -> DiscoveryRequest {
    DiscoveryRequest {
        processor: Processor::Arm9,
        scope,
        seeds: Vec::new(),
        evidence: EvidenceKinds::PROOFS,
        budget: DiscoveryBudget {
            max_components: ROOM,
            max_functions: ROOM,
            max_call_sites: ROOM,
            max_total_blocks: ROOM,
            max_total_instructions: ROOM,
            max_total_bytes: ROOM,
            max_total_edges: ROOM,
            per_function: CFG_ROOM,
        },
        functions: ALL,
        calls: ALL,
        sites: ALL,
        candidates: ALL,
    }
}

fn entries(discovery: &Discovery) -> Vec<(u32, &'static str, String)> {
    let words = |function: &Function| function.evidence.iter().map(Evidence::word).collect::<Vec<_>>().join("+");
    let show = |function: &Function| (function.entry.id.address - BASE, function.entry.id.mode.word(), words(function));
    discovery.functions.items.iter().map(show).collect()
}

#[test]
fn a_line_is_decoded_with_what_it_needs_to_be_read() {
    let rom = rom();
    let shown = disassemble_range(&rom, &linear(place(BASE, ARM))).unwrap();
    let first = &shown.instructions[0];
    assert_eq!((first.mnemonic.as_str(), first.bytes.as_slice()), ("bl", [6, 0, 0, 0xeb].as_slice()));
    assert_eq!(first.flow.direct_target, Some(BASE + 0x20));
    let target = first.target_resolution.as_ref().unwrap();
    assert_eq!(target.status, SourceStatus::Resolved);
    let source = shown.source.as_ref().unwrap();
    let stored = rom.component(ComponentId::main(Processor::Arm9)).unwrap().stored.clone().unwrap();
    assert_eq!(source.rom_offset, Some(stored.start));
    assert_eq!((source.runtime_start, source.runtime_end), (BASE, u64::from(BASE) + 0x90));
    assert_eq!(target.source.as_ref().unwrap().rom_offset, Some(stored.start + 0x20));
    let two = LinearRequest { max_instructions: 2, ..linear(place(BASE, ARM)) };
    let two = disassemble_range(&rom, &two).unwrap();
    assert_eq!((two.status, two.decoded_bytes, two.stop_address), ("complete", 8, Some(BASE + 8)));
    let few = LinearRequest { max_bytes: 7, ..linear(place(BASE, ARM)) };
    assert_eq!(disassemble_range(&rom, &few).unwrap().decoded_bytes, 4);
    // The last words: a branch and a return of two bytes each, then 0x11223344, two halfwords of Thumb that decode.
    let end = disassemble_range(&rom, &linear(place(BASE + 0x88, THUMB))).unwrap();
    assert_eq!((end.status, end.decoded_bytes, end.stop_address), ("component-boundary", 8, Some(BASE + 0x90)));
}

#[test]
fn decoding_stops_at_what_the_processor_does_not_have() {
    // UDF (ARM ARM A3.16.1: always undefined), behind a no-operation.
    let rom = rom_of(bytes(&[0xe1a0_0000, 0xe7ff_ffff, 0xe1a0_0000]), Vec::new());
    let shown = disassemble_range(&rom, &linear(place(BASE, ARM))).unwrap();
    assert_eq!((shown.status, shown.instructions.len(), shown.stop_address), ("decode-stopped", 1, Some(BASE + 4)));
}

#[test]
fn a_source_is_chosen_only_where_one_is_left() {
    let rom = rom();
    let status = |place: Place| disassemble_range(&rom, &linear(place)).unwrap().status;
    assert_eq!(status(place(0x0210_0000, THUMB)), "ambiguous-code-source");
    assert_eq!(status(place(0x0210_0010, THUMB)), "ambiguous-code-source");
    assert_eq!(status(place(0x0300_0000, THUMB)), "unmapped-address");
    let ambiguous = disassemble_range(&rom, &linear(place(0x0210_0000, THUMB))).unwrap();
    assert_eq!(ambiguous.candidates.len(), 2);
    let with = |id, address| Place { overlay_id: Some(id), ..place(address, THUMB) };
    let plain = disassemble_range(&rom, &linear(with(0, 0x0210_0000))).unwrap();
    let derived = disassemble_range(&rom, &linear(with(1, 0x0210_0000))).unwrap();
    assert_eq!(plain.source.as_ref().unwrap().representation, "rom-file-backed");
    let source = derived.source.as_ref().unwrap();
    assert_eq!((source.representation, source.rom_offset, source.rom_start), ("derived-blz", None, None));
    assert_eq!(derived.instructions[0].bytes, plain.instructions[0].bytes);
    // The compressed overlay has no BSS: what the plain one has is asked of it by name.
    assert_eq!(status(with(0, 0x0210_0010)), "runtime-only-bss");
    assert_eq!(status(with(0, 0x0220_0000)), "unmapped-address");
    let refusal = disassemble_range(&rom, &linear(with(9, 0x0210_0000))).unwrap_err();
    assert_eq!(refusal.category, "unknown-overlay-id");
    for (address, mode) in [(BASE + 2, ARM), (BASE + 1, THUMB), (BASE + 1, ModeChoice::Auto)] {
        let refusal = disassemble_range(&rom, &linear(place(address, mode))).unwrap_err();
        assert_eq!(refusal.category, "disassembly-backend-failure", "{address:x}");
    }
}

#[test]
fn a_mode_is_settled_by_proof_alone() {
    let rom = rom();
    let mode = |address| {
        let shown = disassemble_range(&rom, &linear(place(address, ModeChoice::Auto))).unwrap();
        (shown.status, shown.source.map(|source| source.mode))
    };
    assert_eq!(mode(BASE).1, Some(Mode::Arm));
    // Called directly, and through a literal.
    assert_eq!(mode(BASE + 0x5c).1, Some(Mode::Arm));
    assert_eq!(mode(BASE + 0x74).1, Some(Mode::Thumb));
    // Reached as code, but no function; and not reached.
    assert_eq!(mode(BASE + 0x40), ("mode-ambiguous", None));
    assert_eq!(mode(BASE + 0x68), ("mode-ambiguous", None));
}

#[test]
fn a_place_in_the_rom_is_one_in_memory() {
    let rom = rom();
    let stored = rom.component(ComponentId::main(Processor::Arm9)).unwrap().stored.clone().unwrap();
    let at = |offset| Place { at: Where::RomOffset(offset), ..place(0, ARM) };
    let shown = disassemble_range(&rom, &linear(at(stored.start + 0x50))).unwrap();
    assert_eq!(shown.source.unwrap().runtime_address, BASE + 0x50);
    assert_eq!(disassemble_range(&rom, &linear(at(0))).unwrap().status, "unmapped-address");
    let blz = rom.component(ComponentId::overlay(Processor::Arm9, 1)).unwrap().stored.clone().unwrap();
    let shown = disassemble_range(&rom, &linear(at(blz.start))).unwrap();
    assert_eq!(shown.status, "compressed-overlay-not-decodable");
}

#[test]
fn a_graph_has_the_blocks_that_the_listing_shows() {
    let rom = rom();
    let request = ControlFlowRequest { place: place(BASE + 0x20, ARM), budget: CFG_ROOM };
    let graph = analyze_control_flow(&rom, &request).unwrap();
    let blocks: Vec<_> = graph
        .blocks
        .iter()
        .map(|block| (block.id.address - BASE, block.instructions.len(), block.stop.word()))
        .collect();
    assert_eq!(
        blocks,
        [
            (0x20, 2, "indirect-branch"),
            (0x28, 1, "branch"),
            (0x38, 2, "return"),
            (0x40, 2, "return"),
            (0x48, 1, "fallthrough"),
            (0x4c, 1, "branch"),
            (0x50, 3, "return"),
        ]
    );
    let edges: Vec<_> = graph
        .edges
        .iter()
        .map(|edge| (edge.from.address - BASE, edge.target_address - BASE, edge.kind.word()))
        .collect();
    assert_eq!(
        edges,
        [
            (0x20, 0x38, "jump-table"),
            (0x20, 0x40, "jump-table"),
            (0x20, 0x48, "jump-table"),
            (0x20, 0x28, "fallthrough"),
            (0x28, 0x4c, "branch"),
            (0x40, 0x48, "fallthrough"),
            (0x48, 0x4c, "fallthrough"),
            (0x4c, 0x50, "branch"),
        ]
    );
    assert!(graph.edges.iter().all(|edge| edge.target_block.is_some() && edge.target_function.is_none()));
    let calls: Vec<_> = graph.calls.iter().map(|call| (call.instruction_address, call.target_address)).collect();
    assert_eq!(calls, [(BASE + 0x54, BASE + 0x5c)]);
    let unresolved: Vec<_> = graph.unresolved.iter().map(|edge| (edge.instruction_address - BASE, edge.kind)).collect();
    assert_eq!(unresolved, [(0x3c, "return"), (0x44, "return"), (0x58, "return")]);
    assert_eq!(graph.totals, CfgTotals { blocks: 7, instructions: 12, bytes: 48, edges: 8 });
    assert_eq!(graph.blocks[0].id.block_id(), "arm9:main:main:2000020:arm");
}

#[test]
fn a_branch_into_a_block_splits_it() {
    // cmp r0, #0; mov r1, #1; subs r0, r0, #1; bne -1 (to the mov); bx lr
    let words = [0xe350_0000, 0xe3a0_1001, 0xe250_0001, 0x1aff_fffc, 0xe12f_ff1e];
    let rom = rom_of(bytes(&words), Vec::new());
    let request = ControlFlowRequest { place: place(BASE, ARM), budget: CFG_ROOM };
    let graph = analyze_control_flow(&rom, &request).unwrap();
    let blocks: Vec<_> = graph.blocks.iter().map(|block| (block.id.address - BASE, block.instructions.len())).collect();
    assert_eq!(blocks, [(0, 1), (4, 3), (16, 1)]);
    assert_eq!(graph.totals, CfgTotals { blocks: 3, instructions: 5, bytes: 20, edges: 3 });
    // With room for two blocks only, the second is the one behind the branch or the one that the branch goes to.
    let request = ControlFlowRequest { budget: CfgBudget { blocks: 2, ..CFG_ROOM }, ..request };
    let graph = analyze_control_flow(&rom, &request).unwrap();
    assert_eq!((graph.status, graph.truncation_reasons.as_slice()), ("truncated", ["block-limit"].as_slice()));
    assert_eq!(graph.totals.blocks, 2);
}

#[test]
fn functions_have_their_proofs() {
    let rom = rom();
    let found = discover_functions(&rom, &discovery(Scope::Main), UNWATCHED).unwrap();
    let expected = [
        (0x00, "arm", "program-entry"),
        (0x20, "arm", "direct-call"),
        (0x50, "arm", "direct-call"),
        (0x5c, "arm", "direct-call"),
        (0x74, "thumb", "literal-call"),
        (0x84, "thumb", "direct-call"),
    ];
    let expected: Vec<_> = expected.map(|(at, mode, words)| (at, mode, words.to_owned())).into();
    assert_eq!(entries(&found), expected);
    assert_eq!(found.status, "complete");
    // The `blx r2` of a word in memory. The jump table is proven, and `pop {r1}; bx r1` is a return.
    let sites = &found.unresolved_indirect_calls;
    assert_eq!((sites.count, sites.sites[0].instruction_address), (1, BASE + 0x14));
    assert_eq!((sites.sites[0].kind, sites.sites[0].register), ("indirect-call", Some(2)));
    // armfn ends where tailfn begins: its own are 20 to 4c, less the table.
    let armfn = &found.functions.items[1];
    assert_eq!(armfn.cfg.totals, CfgTotals { blocks: 6, instructions: 9, bytes: 36, edges: 8 });
    assert_eq!((armfn.cfg.return_sites, armfn.cfg.function_exits, armfn.cfg.unresolved_edges), (2, 1, 0));
    let main = &found.functions.items[4];
    assert_eq!((main.cfg.return_sites, main.cfg.unresolved_edges), (1, 0));
    assert_eq!((main.direct_call_site_count, main.literal_call_site_count), (0, 1));
    let Evidence::LiteralCall { call, literal } = main.evidence[0] else { panic!("{:?}", main.evidence) };
    assert_eq!((call.instruction_address, literal.load, literal.slot), (BASE + 0xc, BASE + 8, BASE + 0x1c));
    assert_eq!(call.caller.unwrap().function_id(), "arm9:main:02000000:arm");
    let calls: Vec<_> = found.calls.items.iter().map(|call| (call.instruction_address - BASE, call.kind)).collect();
    let direct = |at| (at, "direct-call");
    assert_eq!(calls, [direct(0), direct(4), (0xc, "literal-call"), direct(0x54), direct(0x7a)]);
    // What no proof reaches is named, and is no function.
    let candidate = found.seed_candidates.items[0];
    assert_eq!((candidate.runtime_address, candidate.pointer_address), (BASE + 0x68, Some(BASE + 0x70)));
    assert_eq!((candidate.kind, found.seed_candidates.total), (CandidateKind::CodePointer, 1));
}

#[test]
fn candidates_of_both_modes_follow_an_end_of_code() {
    let words = [
        0xeaff_fffe, // 00 b 00
        0x0200_0011, // 04 .word 11: Thumb at 10
        0x0200_0001, // 08 .word 1: no prologue there
        0x0000_0000, // 0c
        0xbd10_b510, // 10 push {r4, lr}; 12 pop {r4, pc}
        0xb500_4770, // 14 bx lr; 16 push {lr}
        0x46c0_bd00, // 18 pop {pc}; 1a nop
        0xbd00_b500, // 1c push {lr}; 1e pop {pc}
        0x46c0_1c00, // 20 adds r0, r0, #0; 22 nop
        0xbd00_b500, // 24 push {lr}, behind no end; 26 pop {pc}
        0xb500_46c0, // 28 nop; 2a push {lr}
        0x0000_bd00, // 2c pop {pc}
        0xb500_e7fe, // 30 b 30; 32 push {lr}
        0x0000_bd00, // 34 pop {pc}
        0xe12f_ff1e, // 38 bx lr
        0xe92d_4010, // 3c push {r4, lr}
        0xe8bd_8010, // 40 pop {r4, pc}
    ];
    let rom = rom_of(bytes(&words), Vec::new());
    let found = discover_functions(&rom, &discovery(Scope::Main), UNWATCHED).unwrap();
    let candidates = found.seed_candidates.items.iter();
    let candidates: Vec<_> = candidates
        .map(|seed| (seed.runtime_address - BASE, seed.mode, seed.kind.word(), seed.pointer_address))
        .collect();
    let prologue = |at, mode| (at, mode, "unreached-prologue", None);
    assert_eq!(
        candidates,
        [
            (0x10, Mode::Thumb, "code-pointer", Some(BASE + 4)),
            prologue(0x16, Mode::Thumb),
            prologue(0x1c, Mode::Thumb),
            prologue(0x2a, Mode::Thumb),
            prologue(0x32, Mode::Thumb),
            prologue(0x3c, Mode::Arm),
        ]
    );
}

#[test]
fn kinds_of_evidence_are_chosen_and_candidates_are_told_apart() {
    let rom = rom();
    let with = |evidence| DiscoveryRequest { evidence, ..discovery(Scope::Main) };
    let strict = EvidenceKinds { literal_call: false, ..EvidenceKinds::PROOFS };
    let found = discover_functions(&rom, &with(strict), UNWATCHED).unwrap();
    let at: Vec<_> = entries(&found).into_iter().map(|(at, ..)| at).collect();
    assert_eq!(at, [0, 0x20, 0x50, 0x5c]);
    assert_eq!(found.unresolved_indirect_calls.count, 2, "the call through the literal is not resolved then");
    // Only calls of the kinds asked for, and from one function to another, are listed; thumb_main is not reached.
    let calls = |found: &Discovery| {
        found.calls.items.iter().map(|call| (call.instruction_address - BASE, call.kind)).collect::<Vec<_>>()
    };
    let direct = |at| (at, "direct-call");
    assert_eq!(calls(&found), [direct(0), direct(4), direct(0x54)]);
    let indirect = EvidenceKinds { direct_call: false, ..EvidenceKinds::PROOFS };
    let found = discover_functions(&rom, &with(indirect), UNWATCHED).unwrap();
    assert_eq!(calls(&found), [(0xc, "literal-call")]);
    let found = discover_functions(&rom, &with(EvidenceKinds::ALL), UNWATCHED).unwrap();
    let candidate = found.functions.items.iter().find(|function| function.entry.id.address == BASE + 0x68).unwrap();
    assert_eq!((candidate.root, candidate.evidence[0].word()), (Root::Candidate, "code-pointer"));
    assert!(found.functions.items.iter().filter(|function| function.root == Root::Candidate).count() == 1);
    assert_eq!(found.seed_candidates.total, 0);
    let seed = Seed { runtime_address: BASE + 0x68, mode: Mode::Arm, overlay_id: None };
    let seeded = DiscoveryRequest { seeds: vec![seed], ..discovery(Scope::Main) };
    let found = discover_functions(&rom, &seeded, UNWATCHED).unwrap();
    let function = found.functions.items.iter().find(|function| function.entry.id.address == BASE + 0x68).unwrap();
    assert_eq!((function.root, function.evidence.as_slice()), (Root::Seed, [Evidence::UserSeed].as_slice()));
}

#[test]
fn pages_walk_through_everything() {
    let rom = rom();
    let whole = discover_functions(&rom, &discovery(Scope::Main), UNWATCHED).unwrap();
    let (mut functions, mut offset) = (Vec::new(), Some(0));
    while let Some(at) = offset {
        let request = DiscoveryRequest { functions: Page { offset: at, limit: 4 }, ..discovery(Scope::Main) };
        let page = discover_functions(&rom, &request, UNWATCHED).unwrap().functions;
        assert_eq!(page.total, 6);
        functions.extend(page.items);
        offset = page.next;
    }
    assert_eq!(functions, whole.functions.items);
    let beyond = DiscoveryRequest { calls: Page { offset: 5, limit: 4 }, ..discovery(Scope::Main) };
    let calls = discover_functions(&rom, &beyond, UNWATCHED).unwrap().calls;
    assert_eq!((calls.total, calls.next, calls.items.len()), (5, None, 0));
}

#[test]
fn coverage_is_said_for_every_component() {
    let rom = rom();
    let found = discover_functions(&rom, &discovery(Scope::AllExecutableComponents), UNWATCHED).unwrap();
    assert_eq!(found.status, "partial-coverage");
    let statuses: Vec<_> = found.coverage.iter().map(|part| (part.component.name(), part.status)).collect();
    let none = "no-proven-seed";
    assert_eq!(
        statuses,
        [
            ("arm9-main".to_owned(), "scanned"),
            ("arm9-overlay-0".to_owned(), none),
            ("arm9-overlay-1".to_owned(), none),
            ("arm9-overlay-7".to_owned(), none),
        ]
    );
    let seed = |id, address| Seed { runtime_address: address, mode: Mode::Thumb, overlay_id: id };
    let request = DiscoveryRequest {
        seeds: vec![seed(Some(0), 0x0210_0000), seed(Some(1), 0x0210_0000), seed(None, 0x0220_0000)],
        ..discovery(Scope::AllExecutableComponents)
    };
    let found = discover_functions(&rom, &request, UNWATCHED).unwrap();
    assert_eq!(found.status, "complete");
    // A call inside an overlay stays in it, though another has the same address: each has two functions.
    assert_eq!(found.functions.total, 6 + 3 * 2);
    let ids: Vec<_> = found.functions.items.iter().map(|function| function.entry.id.function_id()).collect();
    assert!(ids.contains(&"arm9:overlay:1:02100008:thumb".to_owned()), "{ids:?}");
    let two = DiscoveryRequest {
        budget: DiscoveryBudget { max_components: 2, ..request.budget },
        ..discovery(Scope::AllExecutableComponents)
    };
    let found = discover_functions(&rom, &two, UNWATCHED).unwrap();
    assert_eq!((found.status, found.coverage[2].status, found.coverage.len()), ("truncated", "out-of-limit", 4));
    let refused =
        |seed| discover_functions(&rom, &DiscoveryRequest { seeds: vec![seed], ..request.clone() }, UNWATCHED);
    let category = |result: Result<Discovery, Failure>| match result {
        Err(Failure::Refused(refusal)) => refusal.category,
        other => panic!("{other:?}"),
    };
    assert_eq!(category(refused(seed(None, 0x0210_0000))), "function-entry-not-uniquely-resolved");
    assert_eq!(category(refused(seed(None, BASE + 1))), "invalid-function-seed");
    assert_eq!(category(refused(seed(Some(5), BASE))), "unknown-overlay-id");
    let cancelled = discover_functions(&rom, &request, &|_| false);
    assert!(cancelled.is_ok(), "so short a scan asks nobody");
}

#[test]
fn one_function_is_proven_or_not() {
    let rom = rom();
    let request = |address, mode, evidence| FunctionRequest {
        processor: Processor::Arm9,
        entry: Seed { runtime_address: address, mode, overlay_id: None },
        proof_scope: Scope::Main,
        seeds: Vec::new(),
        evidence,
        proof_budget: discovery(Scope::Main).budget,
        cfg_budget: CFG_ROOM,
    };
    let ask = |request: FunctionRequest| analyze_function(&rom, &request, UNWATCHED).unwrap();
    let tail = ask(request(BASE + 0x50, Mode::Arm, EvidenceKinds::PROOFS));
    assert_eq!((tail.proof_status, tail.callers.len(), tail.outgoing_calls.len()), ("proven", 1, 1));
    assert_eq!(tail.return_sites.len(), 1);
    assert!(tail.unresolved_exits.is_empty());
    let armfn = ask(request(BASE + 0x20, Mode::Arm, EvidenceKinds::PROOFS));
    let exit = armfn.cfg.edges.iter().find(|edge| edge.target_function.is_some()).unwrap();
    assert_eq!((exit.from.address, exit.target_address, exit.target_block), (BASE + 0x4c, BASE + 0x50, None));
    // `blx r2` may go there: the search cannot say no.
    let inside = ask(request(BASE + 0x48, Mode::Arm, EvidenceKinds::PROOFS));
    assert_eq!((inside.proof_status, inside.evidence.len()), ("proof-inconclusive", 0));
    assert_eq!(inside.unresolved_indirect_calls.count, 1);
    let seeded = FunctionRequest {
        seeds: vec![Seed { runtime_address: BASE + 0x68, mode: Mode::Arm, overlay_id: None }],
        ..request(BASE + 0x68, Mode::Arm, EvidenceKinds::PROOFS)
    };
    assert_eq!(ask(seeded).proof_status, "proof-inconclusive", "a seed does not prove itself");
    // Without indirect calls the search is conclusive: bl 0c; b .; bx lr; bx lr.
    let plain = rom_of(bytes(&[0xeb00_0001, 0xeaff_fffe, 0xe12f_ff1e, 0xe12f_ff1e]), Vec::new());
    let other = analyze_function(&plain, &request(BASE + 8, Mode::Arm, EvidenceKinds::PROOFS), UNWATCHED).unwrap();
    assert_eq!((other.proof_status, other.proof_search_status), ("not-proven-function-entry", "complete"));
}

#[test]
fn references_come_from_single_instructions() {
    let rom = rom();
    let list = |address, mode| list_references(&rom, &linear(place(address, mode))).unwrap().references;
    let short: Vec<_> = list(BASE, ARM)
        .iter()
        .take(4)
        .map(|reference| (reference.kind.word(), reference.target.runtime_address - BASE, reference.mechanism))
        .collect();
    assert_eq!(
        short,
        [
            ("direct-call", 0x20, "direct-control-flow"),
            ("direct-call", 0x50, "direct-control-flow"),
            ("literal-pool", 0x75, "literal-pool-value"),
            ("direct-branch", 0x18, "direct-control-flow"),
        ]
    );
    let leaf = &list(BASE + 0x5c, ARM)[0];
    assert_eq!((leaf.target.runtime_address, leaf.literal_slot), (0x0210_0000, Some(BASE + 0x64)));
    assert_eq!((leaf.target.status, leaf.target.candidate.is_none()), (AddressStatus::Ambiguous, true));
    let adr = &list(BASE + 0x84, THUMB)[0];
    assert_eq!((adr.kind, adr.target.runtime_address), (ReferenceKind::PcRelativeAddress, BASE + 0x8c));
}

#[test]
fn references_to_an_address_are_found_with_the_coverage_said() {
    let rom = rom();
    let request = |target, scope| XrefsRequest {
        processor: Processor::Arm9,
        target: Where::Address(target),
        scope,
        seeds: Vec::new(),
        max_components: 128,
        max_blocks: ROOM,
        max_instructions: ROOM,
        max_bytes: ROOM,
        max_edges: ROOM,
        max_xrefs: 100,
    };
    let find = |request: &XrefsRequest| find_xrefs(&rom, request, UNWATCHED).unwrap();
    let sites = |xrefs: &Xrefs| {
        let show = |xref: &Reference| (xref.source.instruction_address - BASE, xref.kind.word(), xref.mechanism);
        xrefs.xrefs.iter().map(show).collect::<Vec<_>>()
    };
    let tail = find(&request(BASE + 0x50, Scope::Main));
    let flow = "direct-control-flow";
    assert_eq!(sites(&tail), [(0x4, "direct-call", flow), (0x4c, "direct-branch", flow)]);
    assert_eq!((tail.status, tail.unresolved_indirect_calls.count), ("complete", 1));
    // A Thumb pointer has bit 0 set.
    assert_eq!(sites(&find(&request(BASE + 0x74, Scope::Main))), [(0x8, "literal-pool", "literal-pool-value")]);
    assert_eq!(sites(&find(&request(BASE + 0x1c, Scope::Main))), [(0x8, "literal-pool", "literal-pool-slot")]);
    assert_eq!(sites(&find(&request(0x0210_0000, Scope::Main))), [(0x5c, "literal-pool", "literal-pool-value")]);
    assert_eq!(find(&request(BASE + 0x68, Scope::AllExecutableComponents)).status, "partial-coverage");
    let one = find(&XrefsRequest { max_xrefs: 1, ..request(BASE + 0x50, Scope::Main) });
    assert_eq!(
        (one.status, one.truncation_reasons.as_slice(), one.xrefs.len()),
        ("truncated", ["xref-limit"].as_slice(), 1)
    );
    let few = find(&XrefsRequest { max_instructions: 3, ..request(BASE + 0x50, Scope::Main) });
    assert_eq!(
        (few.truncation_reasons.as_slice(), few.scan.instructions_decoded),
        (["instruction-limit"].as_slice(), 3)
    );
    let nowhere = XrefsRequest { target: Where::RomOffset(0), ..request(0, Scope::Main) };
    let Err(Failure::Refused(refusal)) = find_xrefs(&rom, &nowhere, UNWATCHED) else {
        panic!("the header runs nowhere")
    };
    assert_eq!(refusal.category, "reference-target-not-runtime-addressable");
}

#[test]
fn the_fixture_is_understood() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/nds-overlay-rom/ndslab-test.nds");
    let rom = Rom::parse(std::fs::read(path).unwrap()).unwrap();
    let found = discover_functions(&rom, &discovery(Scope::AllExecutableComponents), UNWATCHED).unwrap();
    // crt9.s: `_start` calls `main`, which calls the loader.
    assert!(found.functions.total >= 3);
    assert!(found.functions.items[0].evidence.iter().any(|evidence| evidence.word() == "program-entry"));
    // ov.c: the first function of each overlay calls `mix`, in Thumb mode.
    for id in [0, 1] {
        let seed = Seed { runtime_address: 0x0210_0000, mode: Mode::Thumb, overlay_id: Some(id) };
        let request = DiscoveryRequest { seeds: vec![seed], ..discovery(Scope::Overlays(vec![id])) };
        let found = discover_functions(&rom, &request, UNWATCHED).unwrap();
        assert_eq!((found.status, found.functions.total), ("complete", 2), "overlay {id}");
        assert_eq!(
            found.functions.items[1].direct_call_site_count + found.functions.items[0].direct_call_site_count,
            1
        );
    }
    let ambiguous = disassemble_range(&rom, &linear(place(0x0210_0000, THUMB))).unwrap();
    assert_eq!(ambiguous.status, "ambiguous-code-source");
}

/// Random bytes, and bytes that are mostly branches, calls and returns of both modes.
fn code_bytes() -> impl Strategy<Value = Vec<u8>> {
    let arm_flow = prop::sample::select(vec![
        0xea00_0000_u32,
        0x0aff_fff0,
        0xeb00_0004,
        0x1a00_0003,
        0xe12f_ff1e,
        0x012f_ff1e,
        0xe12f_ff33,
        0xe59f_3004,
        0xe350_0003,
        0x979f_f100,
        0xfa00_0001,
        0xe8bd_8010,
        0xeaff_fffc,
    ]);
    let thumb_flow = prop::sample::select(vec![
        0xe7fe_d0fc_u32,
        0xf800_f000,
        0x4770_d102,
        0x4718_4b01,
        0xf7ff_4798,
        0xbd10_b510,
        0xe801_f000,
        0x469f_58d3,
    ]);
    let word = prop_oneof![any::<u32>(), arm_flow, thumb_flow];
    prop::collection::vec(word, 1..80).prop_map(|words| bytes(&words))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]

    #[test]
    fn no_budget_is_exceeded_and_graphs_hold_together(
        program in code_bytes(),
        start in 0_u32..80,
        thumb in any::<bool>(),
        (blocks, instructions, size, edges) in (0_u64..20, 0_u64..40, 0_u64..120, 0_u64..30),
    ) {
        let length = program.len() as u32;
        let rom = rom_of(program, Vec::new());
        let mode = if thumb { THUMB } else { ARM };
        let address = BASE + start * 4 % length;
        let tight = CfgBudget { blocks, instructions, bytes: size, edges };
        for budget in [tight, CFG_ROOM] {
            let request = ControlFlowRequest { place: place(address, mode), budget };
            let graph = analyze_control_flow(&rom, &request).unwrap();
            let totals = graph.totals;
            prop_assert!(totals.blocks <= budget.blocks && totals.instructions <= budget.instructions);
            prop_assert!(totals.bytes <= budget.bytes && totals.edges <= budget.edges);
            prop_assert_eq!(graph.blocks.len() as u64, totals.blocks);
            prop_assert_eq!(graph.edges.len() as u64, totals.edges);
            let instructions: Vec<_> = graph.blocks.iter().flat_map(|block| &block.instructions).collect();
            prop_assert_eq!(instructions.len() as u64, totals.instructions);
            prop_assert_eq!(instructions.iter().map(|insn| u64::from(insn.size)).sum::<u64>(), totals.bytes);
            prop_assert_eq!(graph.status == "truncated", !graph.truncation_reasons.is_empty());
            for block in &graph.blocks {
                prop_assert_eq!(block.id.address, block.instructions[0].address);
                for pair in block.instructions.windows(2) {
                    prop_assert_eq!(pair[0].address + u32::from(pair[0].size), pair[1].address);
                    prop_assert!(pair[0].flow.falls_through);
                    prop_assert!(!matches!(pair[0].flow.kind, FlowKind::Branch | FlowKind::ConditionalBranch));
                }
            }
            let again = analyze_control_flow(&rom, &request).unwrap();
            prop_assert_eq!(graph, again);
        }
    }

    #[test]
    fn no_discovery_exceeds_its_budgets(
        program in code_bytes(),
        (functions, sites, blocks, instructions, size, edges) in
            (0_u64..6, 0_u64..6, 0_u64..30, 0_u64..60, 0_u64..200, 0_u64..40),
        candidates in any::<bool>(),
    ) {
        let rom = rom_of(program, Vec::new());
        let budget = DiscoveryBudget {
            max_components: 4,
            max_functions: functions,
            max_call_sites: sites,
            max_total_blocks: blocks,
            max_total_instructions: instructions,
            max_total_bytes: size,
            max_total_edges: edges,
            per_function: CfgBudget { blocks: 8, instructions: 20, bytes: 64, edges: 12 },
        };
        let evidence = EvidenceKinds { candidates, ..EvidenceKinds::PROOFS };
        let request = DiscoveryRequest { budget, evidence, ..discovery(Scope::AllExecutableComponents) };
        let found = discover_functions(&rom, &request, UNWATCHED).unwrap();
        let totals = found.totals;
        prop_assert!(totals.functions <= functions && totals.call_sites <= sites);
        prop_assert!(totals.graphs.blocks <= blocks && totals.graphs.instructions <= instructions);
        prop_assert!(totals.graphs.bytes <= size && totals.graphs.edges <= edges);
        for function in &found.functions.items {
            let cfg = function.cfg.totals;
            prop_assert!(cfg.blocks <= 8 && cfg.instructions <= 20 && cfg.bytes <= 64 && cfg.edges <= 12);
            prop_assert!(!function.evidence.is_empty());
        }
        let xrefs = XrefsRequest {
            processor: Processor::Arm9,
            target: Where::Address(BASE),
            scope: Scope::Main,
            seeds: Vec::new(),
            max_components: 1,
            max_blocks: blocks,
            max_instructions: instructions,
            max_bytes: size,
            max_edges: edges,
            max_xrefs: 2,
        };
        let xrefs = find_xrefs(&rom, &xrefs, UNWATCHED).unwrap();
        prop_assert!(xrefs.scan.blocks_decoded <= blocks && xrefs.scan.instructions_decoded <= instructions);
        prop_assert!(xrefs.scan.decoded_bytes <= size && xrefs.scan.traversal_edges <= edges);
        prop_assert!(xrefs.xrefs.len() <= 2);
    }
}

/// A literal is the only target of a `bx` if nothing else comes to it with another value: not if a call enters in between.
#[test]
fn a_call_between_load_and_branch_leaves_the_branch_unresolved() {
    let rom = rom_of(
        bytes(&[
            0xeb00_0003, // 00 bl 14
            0xe59f_300c, // 04 ldr r3, [pc, #12]   ; 18
            0xe1a0_0000, // 08 nop
            0xe1a0_0000, // 0c nop
            0xe1a0_0000, // 10 nop
            0xe12f_ff13, // 14 bx r3
            0x0200_001c, // 18 .word 1c
            0xe12f_ff1e, // 1c bx lr
        ]),
        Vec::new(),
    );
    let found = discover_functions(&rom, &discovery(Scope::Main), UNWATCHED).unwrap();
    let sites: Vec<u32> = found.unresolved_indirect_calls.sites.iter().map(|site| site.instruction_address).collect();
    assert_eq!(sites, [BASE + 0x14]);
    let request = FunctionRequest {
        processor: Processor::Arm9,
        entry: Seed { runtime_address: BASE + 0x14, mode: Mode::Arm, overlay_id: None },
        proof_scope: Scope::Main,
        seeds: Vec::new(),
        evidence: EvidenceKinds::PROOFS,
        proof_budget: discovery(Scope::Main).budget,
        cfg_budget: CFG_ROOM,
    };
    let called = analyze_function(&rom, &request, UNWATCHED).unwrap();
    assert_eq!(called.unresolved_exits.len(), 1, "{:?}", called.unresolved_exits);
}

/// What was called and lies in no component has not been looked at.
#[test]
fn calls_out_of_the_scope_leave_the_coverage_partial() {
    // bl 03800000: (0x01800000 - 8) / 4 = 0x5ffffe; b .
    let rom = rom_of(bytes(&[0xeb5f_fffe, 0xeaff_fffe]), Vec::new());
    let found = discover_functions(&rom, &discovery(Scope::Main), UNWATCHED).unwrap();
    assert_eq!((found.status, found.unfollowed_calls), ("partial-coverage", 1));
}

/// A Thumb address with bit 0 set, as pointers have it, finds the calls of the code there too.
#[test]
fn a_thumb_pointer_finds_the_calls_too() {
    // blx 08; b .; 08: bx lr; nop
    let rom = rom_of(bytes(&[0xfa00_0000, 0xeaff_fffe, 0x46c0_4770]), Vec::new());
    for target in [BASE + 8, BASE + 9] {
        let request = XrefsRequest {
            processor: Processor::Arm9,
            target: Where::Address(target),
            scope: Scope::Main,
            seeds: Vec::new(),
            max_components: 128,
            max_blocks: ROOM,
            max_instructions: ROOM,
            max_bytes: ROOM,
            max_edges: ROOM,
            max_xrefs: 100,
        };
        let found = find_xrefs(&rom, &request, UNWATCHED).unwrap();
        let sites: Vec<u32> = found.xrefs.iter().map(|xref| xref.source.instruction_address).collect();
        assert_eq!((sites.as_slice(), found.unfollowed_calls), ([BASE].as_slice(), 0), "{target:#x}");
    }
}

/// Nothing looked at is no complete answer.
#[test]
fn a_rom_without_its_program_has_no_complete_scan() {
    let mut whole = RomBuilder::default().build();
    whole.truncate(0x4010);
    let rom = Rom::parse(whole).unwrap();
    let found = discover_functions(&rom, &discovery(Scope::Main), UNWATCHED).unwrap();
    assert_eq!((found.status, found.coverage.len(), found.functions.total), ("partial-coverage", 0, 0));
}
