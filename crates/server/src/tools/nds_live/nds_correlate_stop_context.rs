//! `nds_correlate_stop_context`: what the place of a stop is in the ROM, and which overlay is loaded there.

use super::prelude::*;
use super::residency::{self, Image};
use super::session::State;
use crate::job;
use crate::tools::nds::shared::present::to_value;
use crate::tools::nds::shared::references::ReferenceShown;
use crate::tools::nds::shared::shapes::{CandidateShown, InstructionShown};
use ::nds::analysis::{
    CfgBudget, DiscoveryBudget, EvidenceKinds, FunctionRequest, LinearRequest, ModeChoice, Place, Scope, Seed,
    analyze_function, disassemble_range, list_references,
};
use ::nds::{Candidate, Rom};
use code::arm::Mode;
use std::ops::Range;
use std::sync::Arc;

/// The tool.
#[derive(Debug)]
pub struct NdsCorrelateStopContext;

/// How much to say.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Params {
    #[serde(default)]
    timeout_ms:
        Bounded<{ limits::MIN_LIVE_TIMEOUT_MS }, { limits::MAX_LIVE_TIMEOUT_MS }, { limits::DEFAULT_LIVE_CONTEXT_MS }>,
    /// Instructions from pc on.
    #[serde(default)]
    nearby_instructions: Bounded<1, { limits::MAX_NEARBY_INSTRUCTIONS }, { limits::DEFAULT_NEARBY_INSTRUCTIONS }>,
    #[serde(default)]
    reference_limit: Bounded<0, { limits::MAX_CORRELATED_REFERENCES }, { limits::DEFAULT_CORRELATED_REFERENCES }>,
    /// What Ghidra knows of the place.
    #[serde(default)]
    include_ghidra: bool,
    /// Needs `includeGhidra`.
    #[serde(default)]
    decompile_ghidra_function: bool,
    /// Correlate this address instead of pc: which overlay is loaded there?
    #[serde(default)]
    address: Option<Address>,
    /// `arm9` (default) or `arm7`.
    #[serde(default)]
    processor: Which,
}

/// The place.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Told {
    /// Seen in the emulator.
    runtime_observed: Observed,
    rom: RomShown,
    /// What the ROM says of the address, whatever is loaded.
    canonical: Canonical,
    /// Every component that could be there, loaded or not.
    candidates: Vec<CandidateTold>,
    #[serde(flatten)]
    place: Where,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
struct Observed {
    captured_at: String,
    pc: u32,
    sp: u32,
    lr: u32,
    cpsr: u32,
    mode: &'static str,
    stop: Option<StopShown>,
    breakpoint: Option<BreakpointShown>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
struct RomShown {
    path: String,
    sha256: String,
    launch_sha256: String,
    identity_matched: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
struct Canonical {
    processor: &'static str,
    /// `resolved`, `ambiguous-runtime-address`, `runtime-only-bss`, `compressed-no-direct-rom-mapping` or `unmapped`.
    status: &'static str,
    candidate_count: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
struct CandidateTold {
    canonical: CandidateShown,
    /// Observed: `match` (the live bytes are this one's alone), `mismatch`, or `indistinguishable`.
    residency: &'static str,
    /// What was compared.
    compared_ranges: Vec<Compared>,
    #[serde(rename = "static")]
    proven: Static,
    #[serde(skip_serializing_if = "Option::is_none")]
    ghidra_derived: Option<Ghidra>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct Compared {
    start: u32,
    end: u32,
    equal: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
struct Static {
    /// As nds_disassemble_range says it.
    status: &'static str,
    instructions: Vec<InstructionShown>,
    references: Vec<ReferenceShown>,
    /// Whether the address is proven to be a function: `proven`, `not-proven-function-entry`, `proof-inconclusive`, or
    /// `unavailable`.
    function_proof: &'static str,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct Ghidra {
    status: &'static str,
}

/// What is read of the stopped program.
struct Live {
    observed: Observed,
    address: u32,
    mode: Mode,
    read: Vec<(Range<u32>, Vec<u8>)>,
    place: Where,
}

impl Tool for NdsCorrelateStopContext {
    const NAME: &'static str = "nds_correlate_stop_context";
    const DESCRIPTION: &'static str = "Correlate the stopped program with its Nintendo DS ROM: which components could be at pc, \
         which of overlapping overlays is loaded by its live bytes, the instructions, references and proof there.";
    const EFFECT: Effect = Effect::READS;
    type Params = Params;
    type Output = Shown<Told>;

    async fn run(context: &Context, params: Params) -> Result<Self::Output, ToolError> {
        let bad = ErrorCode::InvalidArguments;
        let until = until(params.timeout_ms, "timeoutMs")?;
        let nearby = params.nearby_instructions.get("nearbyInstructions", bad)?;
        let references = params.reference_limit.count("referenceLimit", bad)?;
        if params.decompile_ghidra_function && !params.include_ghidra {
            return Err(ToolError::new(bad, "`decompileGhidraFunction` needs `includeGhidra`"));
        }
        let ghidra = params.include_ghidra;
        let (path, launched) = session::with(context, |state| {
            let machine = state.machine().map_err(|error| {
                ToolError::new(ErrorCode::CorrelationNoOwnedProcess, error.message)
                    .hint("start the ROM that is meant with desmume_start")
            })?;
            Ok((machine.rom_path.clone(), Arc::clone(&machine.rom)))
        })
        .await?;
        let rom = match same_rom(context, &path, &launched).await {
            Ok(rom) => rom,
            Err(error) => return session::with(context, |_| Err(error)).await,
        };
        let (processor, address) = (params.processor, params.address);
        let for_reads = Arc::clone(&rom);
        let live =
            session::with(context, move |state| look(state, &for_reads, processor, address.map(|one| one.0), until))
                .await?;
        let launch_sha256 = launched.sha256().to_owned();
        job::run(context, move |context, _| {
            let processor = static_processor(processor);
            let found = rom.resolve_address(processor, live.address);
            let images = images(&rom, &found.candidates);
            let executed = (live.address == live.observed.pc).then_some(live.address);
            let residencies = residency::compare(executed, &images, &live.read);
            let candidates =
                found.candidates.iter().zip(&images).zip(residencies).map(|((candidate, image), said)| CandidateTold {
                    canonical: CandidateShown::of(candidate),
                    residency: said.word(),
                    compared_ranges: compared(image, &live.read),
                    proven: proven(&rom, candidate, live.mode, nearby, references),
                    ghidra_derived: ghidra.then_some(Ghidra { status: "not-ready" }),
                });
            let candidates: Vec<CandidateTold> = candidates.collect();
            let told = Told {
                runtime_observed: live.observed,
                rom: RomShown { path, sha256: rom.sha256().to_owned(), launch_sha256, identity_matched: true },
                canonical: Canonical {
                    processor: processor.word(),
                    status: found.status.word(),
                    candidate_count: candidates.len(),
                },
                candidates,
                place: live.place,
            };
            fits(&told, context.output_limit())?;
            Ok(Shown(told))
        })
        .await
    }
}

/// Refuses an answer that is longer than one answer may be.
fn fits(told: &Told, limit: Option<usize>) -> Result<(), ToolError> {
    let Some(limit) = limit else { return Ok(()) };
    let length = to_value(told)?.to_string().chars().count();
    if length <= limit {
        return Ok(());
    }
    Err(ToolError::new(
        ErrorCode::CorrelationOutputLimit,
        format!("the correlation is {length} characters long; {limit} are allowed"),
    )
    .hint(
        "ask for less with `nearbyInstructions` and `referenceLimit`, or raise `max_output_chars` in the configuration",
    )
    .detail("limit", limit)
    .detail("length", length))
}

const fn static_processor(which: Which) -> ::nds::Processor {
    match which {
        Which::Arm9 => ::nds::Processor::Arm9,
        Which::Arm7 => ::nds::Processor::Arm7,
    }
}

/// The ROM on disk, which must be the one that runs.
async fn same_rom(context: &Context, path: &str, launched: &Arc<Rom>) -> Result<Arc<Rom>, ToolError> {
    let (path, launch) = (path.to_owned(), launched.sha256().to_owned());
    job::run(context, move |context, job| {
        let opened = context.roms().with(context.workspace()?, &path, false, job, |rom| Ok(Arc::clone(rom)));
        let rom = opened.map_err(|error| match error.code {
            ErrorCode::Cancelled => error,
            _ => ToolError::new(ErrorCode::CorrelationRomIdentityMissing, error.message)
                .hint("put the ROM back that the emulator was started with"),
        })?;
        if rom.sha256() == launch {
            return Ok(rom);
        }
        Err(ToolError::new(
            ErrorCode::CorrelationRomIdentityMismatch,
            format!("`{path}` is not the ROM any more that the emulator was started with"),
        )
        .hint("start the emulator again with the ROM as it is now")
        .detail("launchSha256", launch)
        .detail("sha256", rom.sha256()))
    })
    .await
}

/// Reads registers, and memory wherever candidates are to be compared.
fn look(state: &mut State, rom: &Rom, which: Which, address: Option<u32>, until: Instant) -> Result<Live, ToolError> {
    let failed = |error: ToolError| match error.code {
        ErrorCode::DebuggerRunning => ToolError::new(ErrorCode::CorrelationDebuggerNotStopped, error.message)
            .hint("stop the program first: desmume_pause, or desmume_wait_for_stop"),
        _ => ToolError::new(ErrorCode::CorrelationContextFailed, error.message).hint(error.hint),
    };
    let debugger = state.stopped(which.into()).map_err(failed)?;
    let registers = debugger.registers(until).map_err(|error| failed(error.into()))?;
    let captured_at = iso(std::time::SystemTime::now());
    let last = debugger.last_stop();
    let breakpoint = last.and_then(|stop| stop.breakpoint.as_ref());
    let breakpoint = breakpoint.and_then(|id| debugger.breakpoints().iter().find(|one| one.id == *id));
    let observed = Observed {
        captured_at,
        pc: registers.pc(),
        sp: registers.sp(),
        lr: registers.lr(),
        cpsr: registers.cpsr,
        mode: session::mode_word(registers.mode()),
        stop: last.map(|stop| StopShown::of(&stop.reply)),
        breakpoint: breakpoint.map(BreakpointShown::of),
    };
    let address = address.unwrap_or_else(|| registers.pc());
    let found = rom.resolve_address(static_processor(which), address);
    let mut read = Vec::new();
    for place in residency::places(address, &images(rom, &found.candidates)) {
        let bytes = debugger.read_memory(place.start, place.end - place.start, until);
        read.push((place, bytes.map_err(|error| failed(error.into()))?));
    }
    let mode = match registers.mode() {
        debug::gdb_remote::Mode::Arm => Mode::Arm,
        debug::gdb_remote::Mode::Thumb => Mode::Thumb,
    };
    Ok(Live { observed, address, mode, read, place: Where::of(state) })
}

/// Where each candidate's initialised bytes are, and what they are.
fn images<'a>(rom: &'a Rom, candidates: &[Candidate]) -> Vec<Image<'a>> {
    let image = |candidate: &Candidate| match rom.component(candidate.component) {
        Some(component) => Image { start: component.start, bytes: component.image(rom) },
        None => Image { start: candidate.runtime_address, bytes: None },
    };
    candidates.iter().map(image).collect()
}

fn compared(image: &Image<'_>, read: &[(Range<u32>, Vec<u8>)]) -> Vec<Compared> {
    let one = |(place, _): &(Range<u32>, Vec<u8>)| {
        let equal = residency::fit(image, read, place)?;
        Some(Compared { start: place.start, end: place.end, equal })
    };
    read.iter().filter_map(one).collect()
}

/// What the ROM proves of a candidate.
fn proven(rom: &Rom, candidate: &Candidate, mode: Mode, nearby: u64, most: usize) -> Static {
    let id = candidate.component;
    let overlay_id = id.overlay_id();
    let at = candidate.runtime_address;
    let request = LinearRequest {
        place: Place {
            processor: id.processor,
            at: ::nds::analysis::Where::Address(at),
            overlay_id,
            mode: ModeChoice::Fixed(mode),
        },
        max_instructions: nearby,
        max_bytes: nearby * 4,
    };
    let (status, instructions) = match disassemble_range(rom, &request) {
        Ok(found) => (found.status, found.instructions),
        Err(refusal) => (refusal.category, Vec::new()),
    };
    let references = list_references(rom, &request).map(|found| found.references).unwrap_or_default();
    let cfg_budget = CfgBudget {
        blocks: limits::DEFAULT_CFG_BLOCKS,
        instructions: limits::DEFAULT_CFG_INSTRUCTIONS,
        bytes: limits::DEFAULT_CFG_BYTES,
        edges: limits::DEFAULT_CFG_EDGES,
    };
    let request = FunctionRequest {
        processor: id.processor,
        entry: Seed { runtime_address: at, mode, overlay_id },
        proof_scope: overlay_id.map_or(Scope::Main, |overlay| Scope::MainAndOverlays(vec![overlay])),
        seeds: Vec::new(),
        evidence: EvidenceKinds::PROOFS,
        proof_budget: DiscoveryBudget {
            max_components: limits::DEFAULT_NDS_SCAN_COMPONENTS,
            max_functions: limits::MAX_SCAN_FUNCTIONS,
            max_call_sites: limits::DEFAULT_NDS_PROOF_CALL_SITES,
            max_total_blocks: limits::DEFAULT_NDS_SCAN_BLOCKS,
            max_total_instructions: limits::DEFAULT_NDS_SCAN_INSTRUCTIONS,
            max_total_bytes: limits::DEFAULT_NDS_SCAN_BYTES,
            max_total_edges: limits::DEFAULT_NDS_SCAN_EDGES,
            per_function: cfg_budget,
        },
        cfg_budget,
    };
    let proof = analyze_function(rom, &request, &|_| true);
    Static {
        status,
        instructions: instructions.iter().map(InstructionShown::of).collect(),
        references: references.iter().take(most).map(ReferenceShown::of).collect(),
        function_proof: proof.map_or("unavailable", |proof| proof.proof_status),
    }
}
