//! `desmume_step_instruction`: executes single instructions.

use super::prelude::*;
use super::session::State;
use code::arm::{self, Arch};
use debug::gdb_remote::Steps;
use std::collections::{BTreeMap, BTreeSet};

/// The tool.
#[derive(Debug)]
pub struct DesmumeStepInstruction;

/// How many.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Params {
    #[serde(default = "one")]
    count: u32,
    #[serde(default)]
    per_step_timeout_ms: Moment,
    /// Says of each instruction what it was and which registers it changed.
    #[serde(default)]
    report: bool,
    /// Registers and memory with the stop.
    #[serde(default = "yes")]
    capture_context: bool,
    /// Memory to show besides, up to 8.
    #[serde(default)]
    additional_regions: Vec<RegionWanted>,
    /// `arm9` (default) or `arm7`.
    #[serde(default)]
    processor: Which,
}

/// The steps.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Told {
    requested: u32,
    completed: u32,
    completed_all: bool,
    result: RunShown,
    /// One for each instruction, when a report was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    steps: Vec<StepShown>,
    /// Of the report: how many instructions at how many different addresses, and registers that differ at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
}

impl Tool for DesmumeStepInstruction {
    const NAME: &'static str = "desmume_step_instruction";
    const DESCRIPTION: &'static str = "Step the stopped program by 1 to 100 instructions; with `report` each is told with its text and the registers it changed.";
    const EFFECT: Effect = Effect::RUNS;
    type Params = Params;
    type Output = Shown<Told>;

    async fn run(context: &Context, params: Params) -> Result<Self::Output, ToolError> {
        let bad = ErrorCode::InvalidArguments;
        let each = Duration::from_millis(params.per_step_timeout_ms.get("perStepTimeoutMs", bad)?);
        let wanted = regions(params.additional_regions, limits::MAX_GDB_STOP_REGIONS)?;
        let wanted = params.capture_context.then_some(wanted);
        let processor = params.processor.into();
        let (count, report) = (params.count, params.report);
        let (done, steps, summary) = session::with(context, move |state| {
            let done = state.step(processor, count, each, report)?;
            let (steps, summary) = if report { told(state, processor, &done)? } else { (Vec::new(), None) };
            Ok((done, steps, summary))
        })
        .await?;
        let result = shown(context, done.end, wanted, None).await?;
        Ok(Shown(Told {
            requested: count,
            completed: done.completed,
            completed_all: done.completed == count,
            result,
            steps,
            summary,
        }))
    }
}

const fn one() -> u32 {
    1
}

/// One instruction that was executed.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
struct StepShown {
    address: u32,
    mode: &'static str,
    text: String,
    /// The registers it changed, pc apart, and their new values.
    changed: BTreeMap<String, u32>,
}

/// Says what the instructions between the registers were. Their bytes are read after the steps, so code that changed itself
/// meanwhile is shown as it is now.
fn told(state: &mut State, processor: Processor, done: &Steps) -> Result<(Vec<StepShown>, Option<String>), ToolError> {
    let arch = match processor {
        Processor::Arm9 => Arch::V5TE,
        Processor::Arm7 => Arch::V4T,
    };
    // A step that is still under way has no end, and a running program cannot be read.
    if matches!(done.end, debug::gdb_remote::Resumed::Running) {
        return Ok((Vec::new(), None));
    }
    let debugger = state.stopped(processor)?;
    let mut texts: BTreeMap<(u32, bool), String> = BTreeMap::new();
    let mut steps = Vec::new();
    for (before, after) in done.registers.iter().zip(done.registers.iter().skip(1)) {
        let is_thumb = before.mode() == debug::gdb_remote::Mode::Thumb;
        let mode = if is_thumb { arm::Mode::Thumb } else { arm::Mode::Arm };
        let key = (before.pc(), is_thumb);
        let text = texts.entry(key).or_insert_with(|| {
            let bytes = debugger.read_memory(before.pc(), 4, soon()).unwrap_or_default();
            match arm::decode(arch, mode, before.pc(), &bytes) {
                Ok(insn) => format!("{} {}", insn.mnemonic(), insn.operands()).trim_end().to_owned(),
                Err(_) => format!("(no instruction) {}", hex(&bytes)),
            }
        });
        let text = text.clone();
        let (old, new) = (registers(before), registers(after));
        let changed = new.into_iter().filter(|(name, value)| name != "pc" && old.get(name) != Some(value)).collect();
        steps.push(StepShown { address: before.pc(), mode: session::mode_word(before.mode()), text, changed });
    }
    let places: BTreeSet<u32> = steps.iter().map(|step| step.address).collect();
    let summary = done.registers.first().zip(done.registers.last()).map(|(first, last)| {
        let (old, new) = (registers(first), registers(last));
        let differ: Vec<String> =
            new.into_iter().filter(|(name, value)| old.get(name) != Some(value)).map(|(name, _)| name).collect();
        format!("{} instructions at {} addresses; changed in all: {}", steps.len(), places.len(), differ.join(", "))
    });
    Ok((steps, summary))
}
