//! The Windows agent under Wine beside the smallest Win32 debugger that makes the same stops, in rounds that alternate.
//!
//! Both start the game themselves. Programs are given as scripts that start them under Wine.

use crate::agent_process::Agent;
use crate::linux::{median, report, symbol};
use serde_json::{Value, json};
use std::error::Error;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: usize = 5;
const SPAN: Duration = Duration::from_millis(1_500);

/// Scripts that start the agent, its peer and the agent's platform alone, and the 32-bit game.
pub struct Programs<'a> {
    /// `retroscope-agent.exe`.
    pub agent: &'a Path,
    /// `win32loop.exe`.
    pub bare: &'a Path,
    /// `bench_win32_read.exe`.
    pub platform: &'a Path,
    /// `driftgame32.exe`.
    pub game: &'a Path,
}

/// Measures hits, watchpoint stops and reads.
pub fn run(programs: &Programs) -> Result<(), Box<dyn Error>> {
    println!(
        "Under Wine, per second, medians of {ROUNDS} rounds of {:.1} s, the sides taking turns:\n",
        SPAN.as_secs_f64()
    );
    let (step, counter) = (symbol(programs.game, "@hot_step@4")?, symbol(programs.game, "_g_hot_count")?);
    let never = json!({"register": "ecx", "op": "==", "value": "0xffffffff"});
    let breakpoint = json!({"addr": step, "condition": never});
    let watchpoint = json!({"addr": counter, "size": 4, "ignore_count": u32::MAX});
    let (mut displaced, mut in_place, mut bare_hits) = (vec![], vec![], vec![]);
    let (mut watched, mut bare_watches, mut reads, mut bare_reads) = (vec![], vec![], vec![], vec![]);
    for _ in 0..ROUNDS {
        displaced.push(rate(programs, &[], "set_breakpoint", &breakpoint, counter)?);
        bare_hits.push(bare(programs.bare, "hits", programs.game, step)?);
        in_place.push(rate(programs, &["--step-in-place"], "set_breakpoint", &breakpoint, counter)?);
        watched.push(rate(programs, &[], "set_watchpoint", &watchpoint, counter)?);
        bare_watches.push(bare(programs.bare, "watch", programs.game, counter)?);
        reads.push(bare(programs.platform, "read", programs.game, 0x40_0000)?);
        bare_reads.push(bare(programs.bare, "read", programs.game, 0x40_0000)?);
    }
    let bare_hits = median(bare_hits);
    report("false hits, displaced", median(displaced), "two-stop loop", bare_hits, 0.8);
    report("false hits, in place", median(in_place), "two-stop loop", bare_hits, 0.8);
    report("watchpoint stops", median(watched), "one-stop loop", median(bare_watches), 0.8);
    report("read 4 KiB, MiB/s", median(reads), "ReadProcessMemory", median(bare_reads), 0.8);
    Ok(())
}

/// The path as a program under Wine sees it.
fn seen(path: &Path) -> String {
    format!("Z:{}", path.display()).replace('/', "\\")
}

/// Iterations per second of the game's loop while the agent passes hits of `point`, set by operation `op`.
fn rate(programs: &Programs, extra: &[&str], op: &str, point: &Value, counter: u64) -> Result<f64, Box<dyn Error>> {
    let mut agent = Agent::start(programs.agent, extra)?;
    let arguments = ["--headless", "--spin-loop"];
    agent.call("launch", &json!({"path": seen(programs.game), "args": arguments, "if_running": "start_new"}))?;
    agent.call(op, point)?;
    let start = Instant::now();
    let stop = agent.call("continue_execution", &json!({"timeout": SPAN.as_secs_f64()}))?;
    if stop.get("timed_out") != Some(&Value::Bool(true)) {
        return Err(format!("the program was to run on: {stop}").into());
    }
    agent.call("pause", &json!({}))?;
    let time = start.elapsed().as_secs_f64();
    let count = agent.call("read_memory", &json!({"addr": counter, "length": 4}))?;
    let data = count.get("data").and_then(Value::as_str).ok_or("the counter could not be read")?;
    agent.call("terminate", &json!({}))?;
    Ok(f64::from(number(data)?) / time)
}

/// Four bytes in base64, the lowest first.
fn number(data: &str) -> Result<u32, Box<dyn Error>> {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD.decode(data)?;
    Ok(u32::from_le_bytes(bytes.as_slice().try_into()?))
}

/// What one of the small programs prints last.
fn bare(program: &Path, mode: &str, game: &Path, address: u64) -> Result<f64, Box<dyn Error>> {
    let mut command = Command::new(program);
    command.arg(mode).arg(seen(game)).arg(format!("{address:#x}")).arg(SPAN.as_secs_f64().to_string());
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text.lines().last().unwrap_or_default().trim();
    Ok(last.parse().map_err(|_| format!("{} {mode} printed `{text}`", program.display()))?)
}
