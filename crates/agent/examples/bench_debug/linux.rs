//! The measurements, in rounds that alternate between the agent and its peers, so that a busy moment hits both.

use crate::agent_process::Agent;
use crate::peers::{Game, gdb, two_stop_loop, watch_loop};
use crate::wine;
use agent::platform::Platform as _;
use agent::platform::linux::LinuxPlatform;
use base::VirtAddr;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;
use object::{Object as _, ObjectSymbol as _};
use serde_json::{Value, json};
use std::error::Error;
use std::io::{BufRead as _, BufReader, IoSliceMut};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: usize = 5;
const SPAN: Duration = Duration::from_millis(1_000);
const BLOCK: usize = 64 * 1024 * 1024;
const WIRE_BLOCK: usize = 64 * 1024;
const READS: usize = 15;
const WIRE_READS: usize = 200;

/// Measures everything. The one argument `victim` makes this program the one whose memory is read.
pub fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    match arguments {
        [word] if word == "victim" => be_victim(),
        [agent, game] => {
            println!(
                "Per second, medians of {ROUNDS} rounds of {:.1} s, the sides taking turns:\n",
                SPAN.as_secs_f64()
            );
            let (agent, game) = (Path::new(agent), Path::new(game));
            hits(agent, game)?;
            println!();
            memory(agent)
        }
        [word, agent, bare, platform, game] if word == "wine" => {
            let [agent, bare, platform, game] = [agent, bare, platform, game].map(Path::new);
            wine::run(&wine::Programs { agent, bare, platform, game })
        }
        _ => Err("arguments: AGENT DRIFTGAME, or wine AGENT LOOP PLATFORM DRIFTGAME".into()),
    }
}

fn hits(agent: &Path, game: &Path) -> Result<(), Box<dyn Error>> {
    let (step, counter) = (symbol(game, "hot_step")?, symbol(game, "g_hot_count")?);
    let start = || Game::start(game, counter);
    let never = json!({"register": "rdi", "op": "==", "value": "0xffffffffffffffff"});
    let breakpoint = json!({"addr": "hot_step", "condition": never});
    // Every hit is judged, and none is ever the one to stop for.
    let watchpoint = json!({"addr": "g_hot_count", "size": 4, "ignore_count": u32::MAX});

    let (mut displaced, mut in_place, mut two_stops, mut gdbs) = (vec![], vec![], vec![], vec![]);
    let (mut watched, mut watches) = (vec![], vec![]);
    for _ in 0..ROUNDS {
        displaced.push(agent_rate(agent, &[], &start()?, "set_breakpoint", &breakpoint)?);
        gdbs.push(gdb(&start()?, "hot_step", SPAN)?);
        in_place.push(agent_rate(agent, &["--step-in-place"], &start()?, "set_breakpoint", &breakpoint)?);
        two_stops.push(two_stop_loop(&start()?, step, SPAN)?);
        watched.push(agent_rate(agent, &[], &start()?, "set_watchpoint", &watchpoint)?);
        watches.push(watch_loop(&start()?, counter, SPAN)?);
    }
    let (displaced, in_place) = (median(displaced), median(in_place));
    let (two_stops, gdbs) = (median(two_stops), median(gdbs));
    report("false hits, displaced", displaced, "gdb", gdbs, 6.0);
    report("false hits, in place", in_place, "gdb", gdbs, 3.0);
    report("false hits, in place", in_place, "two-stop loop", two_stops, 0.8);
    report("watchpoint stops", median(watched), "one-stop loop", median(watches), 0.8);
    Ok(())
}

/// Iterations per second of the game while the agent passes hits of `point`, set by operation `op`.
fn agent_rate(program: &Path, extra: &[&str], game: &Game, op: &str, point: &Value) -> Result<f64, Box<dyn Error>> {
    let mut agent = Agent::start(program, extra)?;
    agent.call("attach", &json!({"pid": game.pid()}))?;
    agent.call(op, point)?;
    // Much longer than it is measured: a stop would be an error, the end of this wait is not awaited.
    agent.send("continue_execution", &json!({"timeout": 60}))?;
    game.wait_until_stopped_often()?;
    let rate = game.rate(SPAN)?;
    agent.send("pause", &json!({}))?;
    for _ in 0..2 {
        let reply = agent.receive()?;
        if !reply.contains("\"reason\":\"pause\"") {
            return Err(format!("the program was to run on until it was paused: {reply}").into());
        }
    }
    agent.call("detach", &json!({}))?;
    Ok(rate)
}

pub(crate) fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

pub(crate) fn report(what: &str, ours: f64, peer_name: &str, peer: f64, wanted: f64) {
    let ratio = ours / peer;
    println!(
        "  {what:<22} agent {ours:>9.0} | {peer_name:<16} {peer:>9.0} | ratio {ratio:>6.2} | wanted {wanted}: {}",
        verdict(ratio >= wanted)
    );
}

fn verdict(reached: bool) -> &'static str {
    if reached { "reached" } else { "MISSED" }
}

pub(crate) fn symbol(path: &Path, name: &str) -> Result<u64, Box<dyn Error>> {
    let bytes = std::fs::read(path)?;
    let file = object::File::parse(&*bytes)?;
    let found = file.symbols().find(|symbol| symbol.name() == Ok(name)).map(|symbol| symbol.address());
    found.ok_or_else(|| format!("{} has no symbol {name}", path.display()).into())
}

/// Holds 64 MiB still until its input ends, and prints where they are.
fn be_victim() -> Result<(), Box<dyn Error>> {
    let block: Vec<u8> = (0..BLOCK).map(|index| u8::try_from(index % 251).unwrap_or(0)).collect();
    println!("{}", block.as_ptr().addr());
    std::io::stdin().read_line(&mut String::new())?;
    std::hint::black_box(&block);
    Ok(())
}

/// A process that holds 64 MiB still.
struct Victim {
    child: Child,
    address: u64,
}

impl Victim {
    fn start() -> Result<Self, Box<dyn Error>> {
        let program = std::env::current_exe()?;
        let mut child = Command::new(program).arg("victim").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take();
        let mut victim = Self { child, address: 0 };
        let mut line = String::new();
        BufReader::new(output.ok_or("the victim has no output")?).read_line(&mut line)?;
        victim.address = line.trim().parse()?;
        Ok(victim)
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn memory(agent: &Path) -> Result<(), Box<dyn Error>> {
    let victim = Victim::start()?;
    let pid = victim.child.id();
    let (ours, bare) = read_whole(pid, victim.address)?;
    report("read 64 MiB, MiB/s", ours, "process_vm_readv", bare, 0.8);

    let mut agent = Agent::start(agent, &[])?;
    agent.call("attach", &json!({"pid": pid}))?;
    let mut times = vec![];
    for _ in 0..WIRE_READS {
        let start = Instant::now();
        agent.send("read_memory", &json!({"addr": victim.address, "length": WIRE_BLOCK}))?;
        let reply = agent.receive()?;
        times.push(start.elapsed().as_secs_f64() * 1e6);
        // Base64 has 4 characters for 3 bytes.
        if reply.len() < WIRE_BLOCK / 3 * 4 {
            return Err(format!("a read of 64 KiB was answered: {reply}").into());
        }
    }
    agent.call("detach", &json!({}))?;
    let time = median(times);
    println!("  read 64 KiB over the wire, median {time:.0} µs | wanted below 1000 µs: {}", verdict(time < 1_000.0));
    Ok(())
}

/// MiB per second of the platform's read, as the engine calls it, and of the bare system call.
fn read_whole(pid: u32, address: u64) -> Result<(f64, f64), Box<dyn Error>> {
    let mut platform = LinuxPlatform::new()?;
    platform.attach(pid)?;
    // Not zeroed: pages of the buffer that are touched for the first time would cost whoever reads first.
    let mut buffer = vec![1_u8; BLOCK];
    let mib = (BLOCK / 1024 / 1024) as f64;
    let (mut ours, mut bare) = (vec![], vec![]);
    for _ in 0..READS {
        let start = Instant::now();
        if platform.read_memory(VirtAddr::new(address), &mut buffer)? != BLOCK {
            return Err("the platform read less than 64 MiB".into());
        }
        ours.push(mib / start.elapsed().as_secs_f64());
        let start = Instant::now();
        let remote = [RemoteIoVec { base: usize::try_from(address)?, len: BLOCK }];
        let target = Pid::from_raw(i32::try_from(pid)?);
        if process_vm_readv(target, &mut [IoSliceMut::new(&mut buffer)], &remote)? != BLOCK {
            return Err("process_vm_readv read less than 64 MiB".into());
        }
        bare.push(mib / start.elapsed().as_secs_f64());
    }
    platform.detach()?;
    Ok((median(ours), median(bare)))
}
