//! Decoding against a fixed table (bytes from GNU as, meaning from its listing) and, over whole programs, against objdump.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::process::Command;

use code::x86::{Bitness, DecodeError, FlowKind, Stop, decode, disassemble, length};

const B32: Bitness = Bitness::Bits32;
const B64: Bitness = Bitness::Bits64;

#[test]
fn text_and_flow_of_known_encodings() {
    let jump = |target| FlowKind::Jump { target };
    let cond = |target| FlowKind::CondJump { target };
    let call = |target| FlowKind::Call { target };
    // Addresses: 0x401000 plus the length plus the distance in the bytes.
    let table: &[(Bitness, &[u8], &str, FlowKind)] = &[
        (B32, &[0x89, 0x41, 0x04], "mov dword ptr [ecx+0x4], eax", FlowKind::Next),
        (B32, &[0x8d, 0x44, 0x8b, 0x09], "lea eax, [ebx+ecx*4+0x9]", FlowKind::Next),
        (B32, &[0x64, 0xa1, 0x18, 0, 0, 0], "mov eax, dword ptr fs:[0x18]", FlowKind::Next),
        (B32, &[0xf3, 0xa5], "rep movsd dword ptr [edi], dword ptr [esi]", FlowKind::Next),
        (B32, &[0xe8, 0xfb, 0x0f, 0, 0], "call 0x402000", call(0x40_2000)),
        (B32, &[0xeb, 0xfe], "jmp 0x401000", jump(0x40_1000)),
        (B32, &[0x75, 0x0e], "jne 0x401010", cond(0x40_1010)),
        (B32, &[0xe2, 0x0e], "loop 0x401010", cond(0x40_1010)),
        (B32, &[0xe3, 0xee], "jecxz 0x400ff0", cond(0x40_0ff0)),
        (B32, &[0xff, 0x15, 0, 0x30, 0x40, 0], "call dword ptr [0x403000]", FlowKind::IndirectCall),
        (B32, &[0xff, 0xe0], "jmp eax", FlowKind::IndirectJump),
        (B32, &[0x9a, 0, 0x10, 0, 0, 0x33, 0], "call far 0x1000, 0x33", FlowKind::FarCall),
        (B32, &[0xff, 0x28], "jmp far fword ptr [eax]", FlowKind::FarJump),
        (B32, &[0xc2, 0x08, 0], "ret 0x8", FlowKind::Return),
        (B32, &[0xcb], "ret far", FlowKind::Return),
        (B32, &[0xcf], "iretd", FlowKind::System),
        (B32, &[0xcc], "int3", FlowKind::Interrupt),
        (B32, &[0xcd, 0x80], "int 0x80", FlowKind::Interrupt),
        (B32, &[0x0f, 0x34], "sysenter", FlowKind::Syscall),
        (B32, &[0x0f, 0x0b], "ud2", FlowKind::Undefined),
        (B64, &[0x0f, 0x05], "syscall", FlowKind::Syscall),
        (B64, &[0xc7, 0xf8, 4, 0, 0, 0], "xbegin 0x40100a", FlowKind::Transaction),
        (B64, &[0x48, 0x8d, 0x05, 0x10, 0, 0, 0], "lea rax, [0x401017]", FlowKind::Next),
        (B64, &[0x41, 0xff, 0xd4], "call r12", FlowKind::IndirectCall),
        (B64, &[0x48, 0x89, 0x41, 0x08], "mov qword ptr [rcx+0x8], rax", FlowKind::Next),
    ];
    for (bits, bytes, text, flow) in table {
        let insn = decode(bytes, 0x40_1000, *bits).unwrap();
        assert_eq!((insn.text.as_str(), insn.flow), (*text, *flow));
        assert_eq!(insn.bytes(), *bytes);
        assert_eq!(insn.end(), 0x40_1000 + bytes.len() as u64);
        assert_eq!(length(bytes, 0x40_1000, *bits), Ok(bytes.len()));
    }
    assert!(decode(&[0xf3, 0xa5], 0, B32).unwrap().repeats);
    assert!(!decode(&[0xf3, 0xc3], 0, B32).unwrap().repeats, "rep ret repeats nothing");
    assert!(decode(&[0xff, 0xd0], 0, B32).unwrap().is_call());
    assert!(decode(&[0xc3], 0, B32).unwrap().is_return());
}

#[test]
fn branches_of_32_bit_code_wrap_at_4_gib() {
    // 0xfffffff0 + 5 + 0x20 = 0x1_0000_0015
    let insn = decode(&[0xe8, 0x20, 0, 0, 0], 0xffff_fff0, B32).unwrap();
    assert_eq!(insn.flow, FlowKind::Call { target: 0x15 });
}

#[test]
fn a_cut_off_instruction_is_not_a_bad_one() {
    let whole = [0xc7, 0x84, 0x8b, 1, 2, 3, 4, 5, 6, 7, 8];
    for have in 0..whole.len() {
        assert_eq!(decode(&whole[..have], 0, B32), Err(DecodeError::Incomplete { have }));
    }
    assert!(decode(&whole, 0, B32).is_ok());
    // 06 is push es in 32-bit code and nothing in 64-bit code.
    assert_eq!(decode(&[0x06, 0, 0], 0, B64), Err(DecodeError::Invalid));
    // 15 prefixes leave no room for an opcode, however many bytes follow.
    assert_eq!(decode(&[0x66; 15], 0, B32), Err(DecodeError::Invalid));
    assert_eq!(decode(&[0x66; 14], 0, B32), Err(DecodeError::Incomplete { have: 14 }));
}

#[test]
fn a_listing_says_why_it_ends() {
    let nops_then = |tail: &[u8]| [&[0x90, 0x90][..], tail].concat();
    let stop = |bytes: &[u8], max| {
        let listing = disassemble(bytes, 0x1000, B64, max);
        (listing.insns.len(), listing.stop)
    };
    assert_eq!(stop(&nops_then(&[]), 9), (2, Stop::EndOfBytes));
    assert_eq!(stop(&nops_then(&[]), 2), (2, Stop::EndOfBytes));
    assert_eq!(stop(&nops_then(&[0x90]), 2), (2, Stop::MaxReached { next: 0x1002 }));
    assert_eq!(stop(&nops_then(&[0x06, 0]), 9), (2, Stop::Bad { address: 0x1002 }));
    assert_eq!(stop(&nops_then(&[0xe8, 0]), 9), (2, Stop::Incomplete { address: 0x1002, have: 2 }));
    assert_eq!(Stop::Bad { address: 0x1002 }.to_string(), "(bad) at 0x1002: not an instruction");
}

/// One line of objdump: its bytes and its text.
type Line = (Vec<u8>, String);

fn objdump(args: &[&str]) -> BTreeMap<u64, Line> {
    let run = Command::new("objdump").args(args).output();
    let run = run.expect("objdump runs (Debian package binutils)");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let mut lines = BTreeMap::new();
    for line in String::from_utf8_lossy(&run.stdout).lines() {
        let mut parts = line.split('\t');
        let (Some(at), Some(bytes), Some(text)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let Ok(at) = u64::from_str_radix(at.trim().trim_end_matches(':'), 16) else {
            continue;
        };
        let bytes = bytes.split_whitespace().map(|b| u8::from_str_radix(b, 16).unwrap());
        lines.insert(at, (bytes.collect(), text.trim().to_owned()));
    }
    lines
}

/// Compares lengths and branch targets; gives the number of instructions compared and the disagreements.
fn compare(lines: &BTreeMap<u64, Line>, bits: Bitness) -> (usize, Vec<String>) {
    let (mut compared, mut wrong) = (0, Vec::new());
    for (at, (bytes, text)) in lines {
        let first = text.split_whitespace().next().unwrap_or("");
        let mnemonic = text
            .split_whitespace()
            .find(|w| !["bnd", "notrack", "repz", "rep", "repnz", "addr16", "gs", "fs"].contains(w));
        let Some(mnemonic) = mnemonic else { continue };
        // objdump puts superfluous prefixes on lines of their own, which are no instructions.
        let prefix = first.starts_with("rex") || ["cs", "ds", "es", "ss", "fs", "gs"].contains(&first);
        if text.contains("(bad)") || prefix || text.contains("addr32") || text.contains("data16") {
            continue;
        }
        // objdump shows a lock prefix wherever it stands; processors refuse it except on read-modify-write (SDM, LOCK).
        if text.contains("lock ") && decode(bytes, *at, bits) == Err(DecodeError::Invalid) {
            continue;
        }
        compared += 1;
        let insn = match decode(bytes, *at, bits) {
            Ok(insn) => insn,
            Err(error) => {
                wrong.push(format!("0x{at:x} {bytes:02x?} objdump: {text}; ours: {error}"));
                continue;
            }
        };
        let branch = mnemonic.starts_with('j') || mnemonic.starts_with("call") || mnemonic.starts_with("loop");
        let target = text
            .split_whitespace()
            .skip_while(|w| *w != mnemonic)
            .nth(1)
            .and_then(|w| u64::from_str_radix(w.trim_start_matches("0x"), 16).ok())
            .filter(|_| branch);
        let ours = match insn.flow {
            FlowKind::Jump { target } | FlowKind::CondJump { target } | FlowKind::Call { target } => Some(target),
            _ => None,
        };
        if usize::from(insn.len) != bytes.len() || ours != target {
            wrong.push(format!("0x{at:x} {bytes:02x?} objdump: {text}; ours: {} {:?}", insn.text, insn.flow));
        }
    }
    (compared, wrong)
}

#[test]
fn objdump_agrees_on_a_whole_64_bit_program() {
    let lines = objdump(&["-d", "-w", "-M", "intel", "-j", ".text", "/usr/bin/objdump"]);
    let (compared, wrong) = compare(&lines, B64);
    assert!(compared > 20_000, "only {compared} instructions compared");
    assert!(wrong.is_empty(), "{} of {compared}:\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n"));
}

#[test]
fn objdump_agrees_on_the_same_bytes_as_32_bit_code() {
    let args = ["-D", "-w", "-b", "binary", "-m", "i386", "-M", "intel"];
    let range = ["--start-address=0x4000", "--stop-address=0x40000", "/usr/bin/objdump"];
    let mut lines = objdump(&[&args[..], &range[..]].concat());
    // The last instruction crosses the end of the range, and its line is cut there.
    lines.pop_last();
    let (compared, wrong) = compare(&lines, B32);
    assert!(compared > 20_000, "only {compared} instructions compared");
    assert!(wrong.is_empty(), "{} of {compared}:\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n"));
}
