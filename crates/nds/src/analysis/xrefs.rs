//! Who refers to an address: a scan from program entries and seeds, with what it covered said for every component.

use code::arm::{FlowKind, Mode};

use super::coverage::{Coverage, CoverageRequest, cover};
use super::references::{self, RawReference, Reference, ReferenceKind};
use super::scan::{EvidenceKinds, IndirectSite, Scan, ScanBudget, Seed, seed_places};
use super::source::{At, Code, Scope, Where};
use crate::watch::{Failure, Watcher};
use crate::{AddressStatus, Candidate, ComponentId, Processor, Refusal, Rom};

/// A request for references to an address, as the tool takes it.
#[derive(Clone, Debug)]
pub struct XrefsRequest {
    /// Who executes the code.
    pub processor: Processor,
    /// What is referred to.
    pub target: Where,
    /// Which components are scanned.
    pub scope: Scope,
    /// Places that the caller vouches for as code.
    pub seeds: Vec<Seed>,
    /// Components.
    pub max_components: u64,
    /// Blocks.
    pub max_blocks: u64,
    /// Instructions.
    pub max_instructions: u64,
    /// Bytes of them.
    pub max_bytes: u64,
    /// Edges that are followed.
    pub max_edges: u64,
    /// References that are collected.
    pub max_xrefs: u64,
}

/// What was looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XrefTarget {
    /// `runtime-address` or `rom-offset`.
    pub requested_by: &'static str,
    /// The address.
    pub runtime_address: u32,
    /// Where the byte there is stored.
    pub rom_offset: Option<u32>,
    /// How the address resolves.
    pub status: AddressStatus,
    /// The only component that has it.
    pub candidate: Option<Candidate>,
}

/// What a scan spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanTotals {
    /// Who executes the code.
    pub processor: Processor,
    /// Components in scope.
    pub components_requested: u64,
    /// Components of which something was reached.
    pub components_scanned: u64,
    /// Blocks, as the scan came upon them.
    pub blocks_decoded: u64,
    /// Instructions, each once.
    pub instructions_decoded: u64,
    /// Bytes of them.
    pub decoded_bytes: u64,
    /// Edges that were followed, calls included.
    pub traversal_edges: u64,
}

/// An indirect call or branch whose target is not proven: what is called from there, the scan has not seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnresolvedSite {
    /// The component.
    pub component: ComponentId,
    /// The instruction.
    pub instruction_address: u32,
    /// Where it is stored.
    pub instruction_rom_offset: Option<u32>,
    /// Its instruction set.
    pub mode: Mode,
    /// `indirect-call` or `indirect-branch`.
    pub kind: &'static str,
    /// X of `bx rX` or `blx rX`.
    pub register: Option<u8>,
}

/// Sites, as a page of all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnresolvedSites {
    /// How many there are.
    pub count: u64,
    /// Some of them, by component and address.
    pub sites: Vec<UnresolvedSite>,
}

/// References to an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Xrefs {
    /// `complete`, `partial-coverage` or `truncated`. Only with `complete`, and without unresolved calls, does no
    /// reference mean that there is none.
    pub status: &'static str,
    /// What was looked for.
    pub target: XrefTarget,
    /// What the scan spent.
    pub scan: ScanTotals,
    /// What it covered.
    pub coverage: Vec<Coverage>,
    /// Why it is truncated.
    pub truncation_reasons: Vec<&'static str>,
    /// The references, by component and address.
    pub xrefs: Vec<Reference>,
    /// What the scan could not follow; the first sites, and the count of all.
    pub unresolved_indirect_calls: UnresolvedSites,
    /// Calls of addresses that are in no component of the scope.
    pub unfollowed_calls: u64,
}

/// Sites that an answer about something else shows.
const SITES_SHOWN: usize = 32;

/// The sites of a scan that are not resolved, ascending.
pub(crate) fn unresolved_sites(code: &Code<'_>, scan: &Scan<'_, '_>, offset: usize, limit: usize) -> UnresolvedSites {
    let mut sites: Vec<&IndirectSite> = scan.unresolved().collect();
    sites.sort_by_key(|site| (site.at.part, site.at.address, site.at.mode));
    UnresolvedSites {
        count: sites.len() as u64,
        sites: sites
            .into_iter()
            .skip(offset)
            .take(limit)
            .map(|site| UnresolvedSite {
                component: code.id(site.at.part),
                instruction_address: site.at.address,
                instruction_rom_offset: code.rom_offset(site.at),
                mode: site.at.mode,
                kind: if site.kind == FlowKind::IndirectCall { "indirect-call" } else { "indirect-branch" },
                register: site.register,
            })
            .collect(),
    }
}

/// Finds references to an address.
///
/// # Errors
/// `reference-target-not-runtime-addressable` for a ROM offset that runs nowhere, `ambiguous-reference-target` for one
/// that runs at several addresses; `unknown-overlay-id`; `invalid-reference-seed`; or cancelled.
pub fn find_xrefs(rom: &Rom, request: &XrefsRequest, watcher: Watcher<'_>) -> Result<Xrefs, Failure> {
    let code = Code::of(rom, request.processor);
    let target = target(rom, &code, request.processor, request.target)?;
    let seeds = seed_places(&code, &request.seeds, "invalid-reference-seed", "invalid-reference-seed")?;
    let cover_request = CoverageRequest { scope: &request.scope, max_components: request.max_components };
    let budget = ScanBudget {
        functions: u64::MAX,
        call_sites: u64::MAX,
        blocks: request.max_blocks,
        instructions: request.max_instructions,
        bytes: request.max_bytes,
        edges: request.max_edges,
    };
    let mut found: Vec<(At, RawReference, bool)> = Vec::new();
    let mut too_many = false;
    let wanted = target.runtime_address;
    let covered =
        cover(rom, &code, &cover_request, EvidenceKinds::PROOFS, budget, &seeds, watcher, &mut |insn, at| {
            let Some(raw) = references::of(&code, at.part, insn) else { return };
            // A Thumb pointer has bit 0 set, which is not part of the address.
            // Asked with it, what goes to the code there is meant too.
            let by_value = raw.address == wanted
                || raw.kind == ReferenceKind::LiteralPool && raw.address == wanted | 1
                || raw.mode == Some(Mode::Thumb) && raw.address | 1 == wanted;
            let by_slot = raw.slot == Some(wanted);
            if !by_value && !by_slot {
                return;
            }
            if found.len() as u64 >= request.max_xrefs {
                too_many = true;
            } else {
                found.push((at, raw, by_value));
            }
        })?;
    let mut reasons = covered.reasons.clone();
    if too_many {
        reasons.push("xref-limit");
    }
    found.sort_by_key(|(at, ..)| (at.part, at.address, at.mode));
    let xrefs = found.iter().filter_map(|(at, raw, by_value)| {
        let insn = code.decode(*at).ok()?;
        let mut reference = references::present(rom, &code, *at, &insn, raw);
        if !by_value {
            reference.mechanism = "literal-pool-slot";
        }
        Some(reference)
    });
    let spent = covered.scan.spent;
    Ok(Xrefs {
        status: if reasons.is_empty() { covered.status() } else { "truncated" },
        target,
        scan: ScanTotals {
            processor: request.processor,
            components_requested: covered.requested,
            components_scanned: covered.coverage.iter().filter(|part| part.status == "scanned").count() as u64,
            blocks_decoded: spent.blocks,
            instructions_decoded: spent.instructions,
            decoded_bytes: spent.bytes,
            traversal_edges: spent.edges,
        },
        xrefs: xrefs.collect(),
        unresolved_indirect_calls: unresolved_sites(&code, &covered.scan, 0, SITES_SHOWN),
        unfollowed_calls: covered.scan.unfollowed_calls(),
        coverage: covered.coverage,
        truncation_reasons: reasons,
    })
}

fn target(rom: &Rom, code: &Code<'_>, processor: Processor, target: Where) -> Result<XrefTarget, Refusal> {
    let (requested_by, runtime_address) = match target {
        Where::Address(address) => ("runtime-address", address),
        Where::RomOffset(offset) => {
            let mut addresses: Vec<u32> =
                code.parts.iter().filter_map(|part| part.component?.address_of(offset)).collect();
            addresses.sort_unstable();
            addresses.dedup();
            match addresses.as_slice() {
                [address] => ("rom-offset", *address),
                [] => {
                    return Err(Refusal::new(
                        "reference-target-not-runtime-addressable",
                        format!("the byte at 0x{offset:x} of the ROM runs nowhere on {}", processor.word()),
                        "nds_resolve_rom_offset tells what it is; for a compressed overlay give the runtime address.",
                    ));
                }
                several => {
                    let list: Vec<_> = several.iter().map(|address| format!("0x{address:08x}")).collect();
                    return Err(Refusal::new(
                        "ambiguous-reference-target",
                        format!("the byte at 0x{offset:x} of the ROM runs at {}", list.join(" and ")),
                        "Give one of these as targetRuntimeAddress.",
                    ));
                }
            }
        }
    };
    let resolution = rom.resolve_address(processor, runtime_address);
    let candidate = match resolution.candidates.as_slice() {
        [only] => Some(only.clone()),
        _ => None,
    };
    let rom_offset = candidate.as_ref().and_then(|candidate| candidate.rom_offset);
    Ok(XrefTarget { requested_by, runtime_address, rom_offset, status: resolution.status, candidate })
}
