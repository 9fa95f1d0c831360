//! The measurements: each call of a tool in this process, and beside it the least that could do the same.

use memchr::memmem;
use nds::testing::{ProgramSpec, RomBuilder};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use retroscope::agent_client::AgentClient;
use retroscope::context::{Context, Facts};
use retroscope::launch_roots::LaunchRoots;
use retroscope::tools::{self, Answer};
use retroscope::workspace::Workspace;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::error::Error;
use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// What a measurement gives.
pub type Outcome<T> = Result<T, Box<dyn Error>>;

const ROM_BYTES: usize = 64 << 20;
const FILES: usize = 1_000;
/// Calls of which the mean is taken.
const CALLS: u32 = 50;
const MIB: f64 = 1_048_576.0;

/// Measures everything and prints it.
pub fn run() -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word, folder] = arguments.as_slice()
        && word == "peak"
    {
        return runtime.block_on(peak(Path::new(folder)));
    }
    let folder = tempfile::tempdir()?;
    let builder = RomBuilder { arm9: code(1 << 20), ..RomBuilder::large(ROM_BYTES, FILES) };
    let rom = builder.build();
    std::fs::write(folder.path().join("rom.nds"), &rom)?;
    println!(
        "\nA generated ROM of {:.0} MiB with {FILES} files and 1 MiB of ARM9 code; processor time:\n",
        rom.len() as f64 / MIB
    );
    runtime.block_on(measure(folder.path(), &rom))?;

    let output = Command::new(std::env::current_exe()?).arg("peak").arg(folder.path()).output()?;
    let peak: f64 = String::from_utf8(output.stdout)?.trim().parse()?;
    let allowed = rom.len() as f64 / MIB + 64.0;
    println!(
        "  peak memory                       {peak:>8.1} MiB | wanted at most {allowed:.0} MiB: {}",
        verdict(peak <= allowed)
    );
    Ok(())
}

/// Code of `length` bytes: functions of 64 instructions, each calling the next.
fn code(length: usize) -> ProgramSpec {
    const WORDS: usize = 64;
    let mut bytes = Vec::with_capacity(length);
    let functions = length / (WORDS * 4);
    for number in 0..functions {
        for place in 0..WORDS {
            let word: u32 = match place {
                // push {r4, lr}; bl to the next function; pop {r4, pc}; mov r0, r0
                0 => 0xe92d_4010,
                // The offset counts words from two behind this one.
                2 if number + 1 < functions => 0xeb00_0000 | (WORDS as u32 - 4),
                place if place + 1 == WORDS => 0xe8bd_8010,
                _ => 0xe1a0_0000,
            };
            bytes.extend(word.to_le_bytes());
        }
    }
    ProgramSpec { ram_address: 0x0200_0000, entry: 0x0200_0000, bytes }
}

fn context(folder: &Path) -> Outcome<Context> {
    let workspace = Workspace::open(&folder.canonicalize()?)?;
    let agent = AgentClient::new("", Duration::ZERO);
    Ok(Context::new(agent, None, Some(workspace), LaunchRoots::default(), Facts::default()))
}

async fn call(context: &Context, tool: &str, arguments: &Value) -> Outcome<Value> {
    let entry = tools::find(tool).ok_or("no such tool")?;
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    match entry.call(context, arguments).await? {
        Answer::Data(data) => Ok(data),
        _ => Err("no data".into()),
    }
}

/// Processor time of this process so far, in seconds.
fn spent() -> Outcome<f64> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let time = usage.user_time() + usage.system_time();
    Ok(time.num_microseconds() as f64 / 1e6)
}

/// Processor time of one run of something that is run `times` times.
fn timed(times: u32, mut work: impl FnMut()) -> Outcome<f64> {
    let before = spent()?;
    (0..times).for_each(|_| work());
    Ok((spent()? - before) / f64::from(times))
}

async fn measure(folder: &Path, rom: &[u8]) -> Outcome<()> {
    let context = context(folder)?;
    let hashing = timed(5, || {
        black_box(Sha256::digest(black_box(rom)));
    })?;
    let before = spent()?;
    call(&context, "nds_inspect_rom", &json!({"rom": "rom.nds"})).await?;
    let cold = spent()? - before;
    let ratio = cold / hashing;
    println!(
        "  cold open                         {:>8.1} ms | SHA-256 alone {:.1} ms | {ratio:.2} times that",
        cold * 1e3,
        hashing * 1e3
    );

    // The predecessor's figures, in seconds, were measured on a ROM of the same size and number of files.
    let at = json!({"rom": "rom.nds", "processor": "arm9", "runtimeAddress": 0x0200_0000, "mode": "arm"});
    let with = |more: Value| {
        let mut arguments = at.clone();
        if let (Some(map), Value::Object(more)) = (arguments.as_object_mut(), more) {
            map.extend(more);
        }
        arguments
    };
    for (what, tool, arguments, predecessor) in [
        ("inspect", "nds_inspect_rom", json!({"rom": "rom.nds"}), 0.11),
        (
            "resolve an address",
            "nds_resolve_runtime_address",
            json!({"rom": "rom.nds", "processor": "arm9", "address": 0x0200_0100}),
            0.11,
        ),
        ("disassemble 256", "nds_disassemble_range", with(json!({"maxInstructions": 256, "maxBytes": 1_024})), 0.32),
        ("control flow", "nds_analyze_control_flow", at.clone(), 0.43),
        (
            "references to an address",
            "nds_find_xrefs",
            json!({"rom": "rom.nds", "processor": "arm9", "targetRuntimeAddress": 0x0200_0040, "scope": {"kind": "main"}}),
            0.40,
        ),
    ] {
        call(&context, tool, &arguments).await?;
        let before = spent()?;
        for _ in 0..CALLS {
            black_box(call(&context, tool, &arguments).await?);
        }
        let each = (spent()? - before) / f64::from(CALLS);
        println!(
            "  {what:<33} {:>8.2} ms | predecessor {:.0} ms | {:>6.0} times less | wanted below 2 ms and 50: {}",
            each * 1e3,
            predecessor * 1e3,
            predecessor / each,
            verdict(each < 2e-3 && predecessor / each > 50.0)
        );
    }

    let needle = [0xde, 0xad, 0xbe, 0xef, 0x12, 0x34];
    let finder = memmem::Finder::new(&needle);
    let memchr = timed(10, || {
        black_box(finder.find_iter(black_box(rom)).count());
    })?;
    let speed = |seconds: f64| rom.len() as f64 / MIB / seconds;
    for (what, pattern, wanted, predecessor) in [
        ("6 exact bytes", json!({"kind": "byte-signature", "signature": "deadbeef1234"}), 0.5, 1.25),
        ("wildcards", json!({"kind": "byte-signature", "signature": "de ?? be ef ?? 34"}), 0.25, 1.2),
        (
            "aligned integers",
            json!({"kind": "integer", "value": 0xdead_beef_u32, "width": 32, "endian": "little", "signed": false, "alignment": 4}),
            0.25,
            0.9,
        ),
    ] {
        let arguments =
            json!({"rom": "rom.nds", "pattern": pattern, "scope": {"kind": "whole-rom"}, "maxScanBytes": 536_870_912});
        call(&context, "nds_search_pattern", &arguments).await?;
        let before = spent()?;
        for _ in 0..10 {
            black_box(call(&context, "nds_search_pattern", &arguments).await?);
        }
        let each = (spent()? - before) / 10.0;
        let ratio = memchr / each;
        println!(
            "  search: {what:<25} {:>8.0} MiB/s | memchr {:.0} MiB/s | {ratio:.2} of it | wanted {wanted}: {} | predecessor \
             {:.0} times slower",
            speed(each),
            speed(memchr),
            verdict(ratio >= wanted),
            predecessor / each
        );
    }

    let arguments = json!({
        "rom": "rom.nds", "processor": "arm9", "scope": {"kind": "main"}, "maxFunctions": 65_536,
        "maxCallSites": 1_048_576, "maxTotalBlocks": 1_048_576, "maxTotalInstructions": 4_194_304,
        "maxTotalBytes": 16_777_216, "maxTotalEdges": 2_097_152, "limit": 1,
    });
    let before = spent()?;
    let found = call(&context, "nds_discover_functions", &arguments).await?;
    let seconds = spent()? - before;
    let instructions = found.pointer("/totals/instructions").and_then(Value::as_f64).unwrap_or_default();
    let functions = found.pointer("/totals/functions").and_then(Value::as_u64).unwrap_or_default();
    let rate = instructions / seconds / 1e6;
    println!(
        "  discover {functions} functions          {rate:>8.1} million instructions/s | wanted 5: {}",
        verdict(rate >= 5.0)
    );
    Ok(())
}

/// Does everything once and prints the largest resident memory in MiB.
async fn peak(folder: &Path) -> Outcome<()> {
    let context = context(folder)?;
    call(&context, "nds_inspect_rom", &json!({"rom": "rom.nds"})).await?;
    let pattern = json!({"kind": "byte-signature", "signature": "deadbeef1234"});
    let arguments = json!({"rom": "rom.nds", "pattern": pattern, "scope": {"kind": "whole-rom"}});
    call(&context, "nds_search_pattern", &arguments).await?;
    let arguments = json!({"rom": "rom.nds", "processor": "arm9", "scope": {"kind": "main"}});
    call(&context, "nds_discover_functions", &arguments).await?;
    call(&context, "nds_extract_component", &json!({"rom": "rom.nds", "component": "arm9"})).await?;
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    let kib: f64 = line.trim().trim_end_matches(" kB").parse()?;
    println!("{}", kib / 1024.0);
    Ok(())
}

fn verdict(reached: bool) -> &'static str {
    if reached { "reached" } else { "MISSED" }
}
