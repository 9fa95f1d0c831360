//! Addresses that look like functions and that no proof reaches: named so that a caller can look at them and give those that
//! hold as seeds. They are never functions by themselves.

use code::arm::Mode;

use super::scan::Scan;
use super::source::{At, Code};
use crate::ComponentId;

/// Why an address is a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CandidateKind {
    /// A word that is not reached as code holds the address, with bit 0 for Thumb, and a function's first instruction is
    /// there.
    CodePointer,
    /// A function's first instruction is there, and what stands before it ends code.
    UnreachedPrologue,
}

impl CandidateKind {
    /// The word.
    pub fn word(self) -> &'static str {
        match self {
            Self::CodePointer => "code-pointer",
            Self::UnreachedPrologue => "unreached-prologue",
        }
    }
}

/// An address that may be a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeedCandidate {
    /// Its component.
    pub component: ComponentId,
    /// The address.
    pub runtime_address: u32,
    /// Its instruction set.
    pub mode: Mode,
    /// Why.
    pub kind: CandidateKind,
    /// Where the word is that holds it, for a code pointer: the lowest.
    pub pointer_address: Option<u32>,
}

/// Candidates, for callers.
pub(crate) fn present(code: &Code<'_>, found: &[Found]) -> Vec<SeedCandidate> {
    let show = |(at, kind, pointer_address): &Found| SeedCandidate {
        component: code.id(at.part),
        runtime_address: at.address,
        mode: at.mode,
        kind: *kind,
        pointer_address: *pointer_address,
    };
    found.iter().map(show).collect()
}

/// A candidate: where, why, and the address of the word that names it.
pub(crate) type Found = (At, CandidateKind, Option<u32>);

/// The candidates that a scan leaves, by component and address, each once.
pub(crate) fn of(code: &Code<'_>, scan: &Scan<'_, '_>) -> Vec<Found> {
    let mut found = Vec::new();
    for (number, part) in (0..).zip(&code.parts) {
        let Some(bytes) = part.bytes.filter(|_| scan.is_in_scope(number)) else { continue };
        let first = part.start.next_multiple_of(4);
        let skip = (first - part.start) as usize;
        let mut before = 0_u32;
        for (address, word) in (first..).step_by(4).zip(bytes.get(skip..).unwrap_or_default().chunks_exact(4)) {
            let word = word.first_chunk().map_or(0, |word| u32::from_le_bytes(*word));
            if !scan.is_code(number, address) {
                pointer(code, scan, number, address, word, &mut found);
            }
            prologues(code, scan, number, address, before, word, &mut found);
            before = word;
        }
    }
    // A code pointer says more than a prologue: it comes first, and the second of the same address goes.
    found.sort_by_key(|(at, kind, pointer)| {
        (at.part, at.address, at.mode, *kind != CandidateKind::CodePointer, *pointer)
    });
    found.dedup_by_key(|(at, ..)| *at);
    found
}

fn pointer(code: &Code<'_>, scan: &Scan<'_, '_>, from: u32, address: u32, word: u32, found: &mut Vec<Found>) {
    let mode = if word & 1 == 1 { Mode::Thumb } else { Mode::Arm };
    let target = word & !1;
    if !mode.is_aligned(target) {
        return;
    }
    let Ok(part) = scan.locate(from, target) else { return };
    let at = At { part, mode, address: target };
    if is_prologue(code, at) && !scan.has_seen(at) {
        found.push((at, CandidateKind::CodePointer, Some(address)));
    }
}

/// Prologues in one word, which no reached instruction covers and which follow an end of code.
fn prologues(
    code: &Code<'_>,
    scan: &Scan<'_, '_>,
    part: u32,
    address: u32,
    before: u32,
    word: u32,
    found: &mut Vec<Found>,
) {
    let after_pool = address.checked_sub(4).is_some_and(|before| scan.is_literal(part, before));
    let mut add = |mode, address, after_end: bool| {
        let at = At { part, mode, address };
        if after_end && is_prologue(code, at) && !scan.is_code(part, address & !3) {
            found.push((at, CandidateKind::UnreachedPrologue, None));
        }
    };
    if is_arm_prologue(word) {
        add(Mode::Arm, address, after_pool || ends_arm(before));
    }
    let (low, high) = (word & 0xffff, word >> 16);
    if is_thumb_prologue(low) {
        add(Mode::Thumb, address, after_pool || ends_thumb(before >> 16, before & 0xffff));
    }
    if is_thumb_prologue(high) {
        add(Mode::Thumb, address + 2, ends_thumb(low, before >> 16));
    }
}

/// Whether the instruction at a place pushes the link register.
fn is_prologue(code: &Code<'_>, at: At) -> bool {
    code.decode(at).is_ok_and(|insn| match at.mode {
        Mode::Arm => is_arm_prologue(insn.raw),
        Mode::Thumb => insn.size == 2 && is_thumb_prologue(insn.raw),
    })
}

/// STMDB sp!, {…, lr} without the program counter and the stack pointer (ARM ARM A4.1.97).
fn is_arm_prologue(word: u32) -> bool {
    word & 0xffff_e000 == 0xe92d_4000
}

/// PUSH {…, lr} (ARM ARM A7.1.50).
fn is_thumb_prologue(halfword: u32) -> bool {
    halfword >> 8 == 0xb5
}

/// BX, LDMIA sp!, {…, pc}, B, or the no-operation that fills up to the next function.
fn ends_arm(word: u32) -> bool {
    word & 0xffff_fff0 == 0xe12f_ff10
        || word & 0xffff_8000 == 0xe8bd_8000
        || word >> 24 == 0xea
        || word == 0xe1a0_0000
        || word == 0xe49d_f004
}

/// BX, POP {…, pc}, B, or one of them before the no-operation that fills up to a word.
fn ends_thumb(halfword: u32, before: u32) -> bool {
    let ends = |halfword: u32| halfword & 0xff87 == 0x4700 || halfword >> 8 == 0xbd || halfword >> 11 == 0b11100;
    ends(halfword) || matches!(halfword, 0x46c0 | 0) && ends(before)
}
