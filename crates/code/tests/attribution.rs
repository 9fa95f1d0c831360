//! Memory operands and the search for the instruction behind a watchpoint trap, on hand-made machine states.
//! Bytes are from GNU as, the addresses expected are arithmetic on the registers given.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use code::x86::{Attribution, Bitness, MemAccess, Suspect, Trap, WatchKind, attribute, memory_accesses};

const B32: Bitness = Bitness::Bits32;
const B64: Bitness = Bitness::Bits64;

type RegList<'a> = &'a [(&'a str, u64)];

fn lookup(regs: RegList<'_>) -> impl Fn(&'static str) -> Option<u64> {
    move |name| regs.iter().find(|(n, _)| *n == name).map(|(_, v)| *v)
}

/// `(address, size, "r"/"w"/"rw")` of each known access, and the number of unknown ones.
fn touched(bits: Bitness, bytes: &[u8], regs: RegList<'_>) -> (Vec<(u64, u64, &'static str)>, usize) {
    let found = memory_accesses(bytes, 0x40_1000, bits, &lookup(regs)).unwrap();
    let kind = |a: &MemAccess| match (a.read, a.write) {
        (true, true) => "rw",
        (true, false) => "r",
        _ => "w",
    };
    let known = found.known.iter().map(|a| (a.address, a.size, kind(a)));
    (known.collect(), found.unknown.len())
}

#[test]
fn operands_by_arithmetic() {
    let check32 =
        |bytes: &[u8], regs: RegList<'_>, expected: &[_]| assert_eq!(touched(B32, bytes, regs), (expected.to_vec(), 0));
    let check64 =
        |bytes: &[u8], regs: RegList<'_>, expected: &[_]| assert_eq!(touched(B64, bytes, regs), (expected.to_vec(), 0));
    // mov [ecx+4],eax: 0x1000 + 4
    check32(&[0x89, 0x41, 4], &[("ecx", 0x1000)], &[(0x1004, 4, "w")]);
    // the same wraps at 4 GiB: 0xfffffffe + 4 = 2
    check32(&[0x89, 0x41, 4], &[("ecx", 0xffff_fffe)], &[(2, 4, "w")]);
    // lea touches nothing
    check32(&[0x8d, 0x41, 4], &[], &[]);
    // inc dword [0x403000]
    check32(&[0xff, 5, 0, 0x30, 0x40, 0], &[], &[(0x40_3000, 4, "rw")]);
    // push ebx
    check32(&[0x53], &[("esp", 0x2000)], &[(0x1ffc, 4, "w")]);
    // pop dword [esp+8]: read at esp, then esp is 0x2004 and the operand at 0x200c
    check32(&[0x8f, 0x44, 0x24, 8], &[("esp", 0x2000)], &[(0x200c, 4, "w"), (0x2000, 4, "r")]);
    // mov eax,fs:[0x18]
    check32(&[0x64, 0xa1, 0x18, 0, 0, 0], &[("fs_base", 0x7f_0000)], &[(0x7f_0018, 4, "r")]);
    // rep movsd: the next element; nothing when ecx is 0
    let at = |count| [("esi", 0x3000), ("edi", 0x5000), ("ecx", count)];
    check32(&[0xf3, 0xa5], &at(7), &[(0x5000, 4, "w"), (0x3000, 4, "r")]);
    check32(&[0xf3, 0xa5], &at(0), &[]);
    // bts [ebx],ecx with bit -33: two doublewords below (-33 = -2 * 32 + 31); bit 95 is in the third (2 * 4)
    check32(&[0x0f, 0xab, 0x0b], &[("ebx", 0x1000), ("ecx", 0xffff_ffdf)], &[(0xff8, 4, "rw")]);
    check32(&[0x0f, 0xab, 0x0b], &[("ebx", 0x1000), ("ecx", 95)], &[(0x1008, 4, "rw")]);
    // xlatb: ebx + al, and only al of eax
    check32(&[0xd7], &[("ebx", 0x1000), ("eax", 0x1234_5678)], &[(0x1078, 1, "r")]);
    // call [0x403000] reads the pointer and pushes the return address
    check32(&[0xff, 0x15, 0, 0x30, 0x40, 0], &[("esp", 0x2000)], &[(0x40_3000, 4, "r"), (0x1ffc, 4, "w")]);
    // mov [rcx+8],rax
    check64(&[0x48, 0x89, 0x41, 8], &[("rcx", 0x7fff_0000_0000)], &[(0x7fff_0000_0008, 8, "w")]);
    // mov eax,[rip+0x1000] at 0x401000, 6 bytes long
    check64(&[0x8b, 5, 0, 0x10, 0, 0], &[], &[(0x40_2006, 4, "r")]);
    // movaps [rsp+0x10],xmm0
    check64(&[0x0f, 0x29, 0x44, 0x24, 0x10], &[("rsp", 0x2000)], &[(0x2010, 16, "w")]);
    // mov gs:[0x10],rax
    let gs = [0x65, 0x48, 0x89, 4, 0x25, 0x10, 0, 0, 0];
    check64(&gs, &[("gs_base", 0x1_0000_0000)], &[(0x1_0000_0010, 8, "w")]);
}

#[test]
fn a_missing_register_is_said_and_not_guessed() {
    let found = memory_accesses(&[0x89, 0x41, 4], 0, B32, &|_| None).unwrap();
    assert!(found.known.is_empty());
    assert!(found.unknown[0].write && found.unknown[0].why.contains("ecx"), "{found:?}");
    // vpgatherdd xmm0,[rax+xmm1*4],xmm2: vector registers are never asked for.
    let (known, unknown) = touched(B64, &[0xc4, 0xe2, 0x69, 0x90, 4, 0x88], &[("rax", 0)]);
    assert!(known.is_empty() && unknown > 0);
}

/// A trap in memory made of pieces; reads across the end of a piece fail.
struct Case<'a> {
    bits: Bitness,
    memory: &'a [(u64, &'a [u8])],
    regs: RegList<'a>,
    pc: u64,
    watched: u64,
    start: Option<u64>,
}

impl Case<'_> {
    fn run(&self, kind: WatchKind) -> Attribution {
        let read = |address: u64, len: usize| {
            self.memory.iter().find_map(|(base, bytes)| {
                let from = address.checked_sub(*base)? as usize;
                bytes.get(from..from.checked_add(len)?).map(<[u8]>::to_vec)
            })
        };
        let trap = Trap {
            pc: self.pc,
            bits: self.bits,
            watched: self.watched,
            watched_bytes: 4,
            kind,
            function_start: self.start,
        };
        attribute(&trap, &read, &lookup(self.regs))
    }

    fn exact(&self, kind: WatchKind) -> Suspect {
        match self.run(kind) {
            Attribution::Exact(suspect) => suspect,
            other => panic!("not exact: {other:x?}"),
        }
    }
}

/// 16 bytes of filling that decode as single-byte instructions without operands in memory, then the code.
fn after_nops(code: &[u8]) -> Vec<u8> {
    [&[0x90; 16][..], code].concat()
}

#[test]
fn a_plain_store_is_found_with_and_without_a_function_start() {
    // cmp eax,ebx; mov [ecx+4],eax; nop
    let code = after_nops(&[0x39, 0xd8, 0x89, 0x41, 4, 0x90]);
    let mut case = Case {
        bits: B32,
        memory: &[(0x40_1000, &code)],
        regs: &[("ecx", 0x8000), ("eax", 1), ("ebx", 2), ("esp", 0x2000)],
        pc: 0x40_1015,
        watched: 0x8004,
        start: Some(0x40_1000),
    };
    for start in [Some(0x40_1000), None] {
        case.start = start;
        for kind in [WatchKind::Write, WatchKind::ReadWrite] {
            let found = case.exact(kind);
            assert_eq!((found.insn.address, found.insn.text.as_str()), (0x40_1012, "mov dword ptr [ecx+0x4], eax"));
            assert_eq!((found.reads, found.writes, found.checked), (false, true, true));
        }
    }
    // Somewhere else, it was not this one.
    case.watched = 0x9000;
    assert!(matches!(case.run(WatchKind::Write), Attribution::Unknown { .. }));
}

#[test]
fn the_rex_prefix_is_ambiguous_only_without_a_function_start() {
    // mov [rcx+8],rax: its last three bytes are mov [rcx+8],eax
    let code = after_nops(&[0x48, 0x89, 0x41, 8]);
    let mut case = Case {
        bits: B64,
        memory: &[(0x40_1000, &code)],
        regs: &[("rcx", 0x8000), ("rsp", 0x2000)],
        pc: 0x40_1014,
        watched: 0x8008,
        start: Some(0x40_1000),
    };
    assert_eq!(case.exact(WatchKind::Write).insn.address, 0x40_1010);
    case.start = None;
    let Attribution::Candidates(found) = case.run(WatchKind::Write) else {
        panic!("without a start both are possible");
    };
    let addresses: Vec<_> = found.iter().map(|s| s.insn.address).collect();
    assert_eq!(addresses, [0x40_1010, 0x40_1011], "the true one comes first");
    assert!(found[0].paths > found[1].paths);
}

#[test]
fn changed_address_registers_are_undone() {
    // (code, registers after, watched, access): what the instruction has done to its registers is shown behind each.
    type Row<'a> = (Bitness, &'a [u8], RegList<'a>, u64, &'a str);
    let rows: &[Row] = &[
        // push ebx: esp 0x2000 -> 0x1ffc
        (B32, &[0x53], &[("esp", 0x1ffc)], 0x1ffc, "w"),
        // pop esi: esp 0x2000 -> 0x2004
        (B32, &[0x5e], &[("esp", 0x2004)], 0x2000, "r"),
        // pop dword [esp+8]: esp 0x2000 -> 0x2004, operand 0x200c
        (B32, &[0x8f, 0x44, 0x24, 8], &[("esp", 0x2004)], 0x200c, "w"),
        // movsd, upwards: esi 0x3000 -> 0x3004, edi 0x5000 -> 0x5004
        (B32, &[0xa5], &[("esi", 0x3004), ("edi", 0x5004), ("eflags", 2)], 0x5000, "w"),
        (B32, &[0xa5], &[("esi", 0x3004), ("edi", 0x5004), ("eflags", 2)], 0x3000, "r"),
        // the same downwards
        (B32, &[0xa5], &[("esi", 0x2ffc), ("edi", 0x4ffc), ("eflags", 0x402)], 0x5000, "w"),
        // stosw: edi 0x5000 -> 0x5002
        (B32, &[0x66, 0xab], &[("edi", 0x5002), ("eflags", 2)], 0x5000, "w"),
        // leave: ebp 0x2000, so esp -> 0x2004
        (B32, &[0xc9], &[("esp", 0x2004), ("ebp", 0x9999)], 0x2000, "r"),
        // enter 16,0: esp 0x2000 -> 0x1ffc (pushed) - 16 = 0x1fec
        (B32, &[0xc8, 0x10, 0, 0], &[("esp", 0x1fec), ("ebp", 0x1ffc)], 0x1ffc, "w"),
        // pushad: esp 0x2000 -> 0x1fe0
        (B32, &[0x60], &[("esp", 0x1fe0)], 0x1fe8, "w"),
        // xadd [edx],ecx leaves edx alone
        (B32, &[0x0f, 0xc1, 0x0a], &[("edx", 0x8000)], 0x8000, "rw"),
        // cmpxchg [esi],ecx may change eax, not esi
        (B32, &[0x0f, 0xb1, 0x0e], &[("esi", 0x8000)], 0x8000, "rw"),
        // push qword [rip+0x10] at 0x401010, 6 bytes: 0x401026
        (B64, &[0xff, 0x35, 0x10, 0, 0, 0], &[("rsp", 0x1ff8)], 0x40_1026, "r"),
    ];
    for (bits, code, regs, watched, access) in rows {
        let memory = after_nops(code);
        let case = Case {
            bits: *bits,
            memory: &[(0x40_1000, &memory)],
            regs,
            pc: 0x40_1010 + code.len() as u64,
            watched: *watched,
            start: Some(0x40_1000),
        };
        let found = case.exact(WatchKind::ReadWrite);
        assert_eq!(found.insn.address, 0x40_1010, "{code:02x?}");
        assert_eq!((found.reads, found.writes), (access.contains('r'), access.contains('w')), "{code:02x?}");
        assert_eq!(matches!(case.run(WatchKind::Write), Attribution::Exact(_)), access.contains('w'), "{code:02x?}");
    }
}

#[test]
fn an_overwritten_address_register_is_a_candidate_at_most() {
    // mov eax,[eax]; pop esp
    for (code, regs) in [(&[0x8b, 0][..], &[("eax", 5)][..]), (&[0x5c], &[("esp", 0x2000)])] {
        let memory = after_nops(code);
        let case = Case {
            bits: B32,
            memory: &[(0x40_1000, &memory)],
            regs,
            pc: 0x40_1010 + code.len() as u64,
            watched: 0x8000,
            start: Some(0x40_1000),
        };
        let Attribution::Candidates(found) = case.run(WatchKind::ReadWrite) else {
            panic!("cannot be known: {code:02x?}");
        };
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].reads, found[0].writes, found[0].checked), (true, false, false));
        assert!(matches!(case.run(WatchKind::Write), Attribution::Unknown { .. }), "a read writes nothing");
    }
}

#[test]
fn a_running_rep_traps_at_itself_and_a_finished_one_behind() {
    // nop; rep stosd; nop
    let code = after_nops(&[0xf3, 0xab, 0x90]);
    let mut case = Case {
        bits: B32,
        memory: &[(0x40_1000, &code)],
        regs: &[("edi", 0x5004), ("ecx", 3), ("eflags", 2), ("esp", 0x2000)],
        pc: 0x40_1010,
        watched: 0x5000,
        start: Some(0x40_1000),
    };
    let found = case.exact(WatchKind::Write);
    assert!(found.insn.repeats && found.insn.address == 0x40_1010);
    case.pc = 0x40_1012;
    case.regs = &[("edi", 0x5010), ("ecx", 0), ("eflags", 2), ("esp", 0x2000)];
    assert_eq!(case.exact(WatchKind::Write).insn.address, 0x40_1010, "traps at the end of the line");
    // Ahead of edi nothing has been written.
    case.watched = 0x5010;
    assert!(matches!(case.run(WatchKind::Write), Attribution::Unknown { .. }));
}

#[test]
fn a_call_is_named_by_the_return_address_it_pushed() {
    // 0x401010: call 0x402000 (distance 0x402000 - 0x401015 = 0xfeb); the trap is at the first byte of the callee.
    let direct = after_nops(&[0xe8, 0xeb, 0x0f, 0, 0]);
    // 0x401010: call [0x403000]
    let pointer = after_nops(&[0xff, 0x15, 0, 0x30, 0x40, 0]);
    // 0x401010: call eax
    let register = after_nops(&[0xff, 0xd0]);
    for code in [&direct, &pointer, &register] {
        let back = 0x40_1000 + code.len() as u32;
        let callee = after_nops(&[0x90]);
        let mut case = Case {
            bits: B32,
            memory: &[
                (0x40_1000, code),
                (0x40_1ff0, &callee),
                (0x40_3000, &0x40_2000u32.to_le_bytes()),
                (0x1ffc, &back.to_le_bytes()),
            ],
            regs: &[("esp", 0x1ffc), ("eax", 0x40_2000)],
            pc: 0x40_2000,
            watched: 0x1ffc,
            start: Some(0x40_2000),
        };
        for start in [Some(0x40_2000), None] {
            case.start = start;
            let found = case.exact(WatchKind::Write);
            assert_eq!(found.insn.address, 0x40_1010);
            assert!(found.writes && !found.reads);
        }
        case.watched = 0x40_3000;
        let reads_pointer = matches!(case.run(WatchKind::ReadWrite), Attribution::Exact(_));
        assert_eq!(reads_pointer, code == &pointer);
        // A call of something else is not the one that led here.
        case.regs = &[("esp", 0x1ffc), ("eax", 0x40_5000)];
        case.pc = 0x40_2001;
        case.watched = 0x1ffc;
        assert!(matches!(case.run(WatchKind::Write), Attribution::Unknown { .. }));
    }
}

#[test]
fn what_cannot_be_found_is_explained() {
    let code = after_nops(&[0xcd, 0x80]);
    let mut case = Case {
        bits: B32,
        memory: &[(0x40_1000, &code), (0x2000, &[0, 0x40, 0x40, 0, 0, 0, 0, 0])],
        regs: &[("esp", 0x2004)],
        pc: 0x40_1012,
        watched: 0x9000,
        start: Some(0x40_1000),
    };
    let why = |case: &Case, kind| match case.run(kind) {
        Attribution::Unknown { why } => why,
        other => panic!("{other:x?}"),
    };
    assert!(why(&case, WatchKind::Write).contains("system call"));
    case.pc = 0x40_4000;
    case.watched = 0x2000;
    case.start = None;
    assert!(why(&case, WatchKind::ReadWrite).contains("return to 0x404000"));
    assert!(why(&case, WatchKind::Write).contains("cannot be read"));
    case.regs = &[];
    assert!(why(&case, WatchKind::ReadWrite).contains("indirect jump"));
    case.pc = 0x40_1008;
    assert!(why(&case, WatchKind::Write).contains("no instruction"));
}
