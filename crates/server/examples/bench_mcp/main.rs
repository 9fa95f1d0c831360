//! `cargo xtask bench mcp`: the round trip of a tool call, beside the same tool on the Python SDK, as ratios.
//!
//! Arguments: the `retroscope` binary, a Python with the package `mcp`, the script of the peer, and `c64-mcp`, the server whose
//! C64 tools ours succeed: the sizes of both tool lists are printed beside each other. Both sides take turns in
//! blocks of calls, so that a busy moment of the machine hits both. Nothing here is a test: a missed ratio is printed,
//! and only what could not be measured is an error.

mod connection;
mod message;
mod servers;

use connection::Connection;
use message::{Era, TOOL};
use serde_json::{Value, json};
use servers::{Programs, Server};
use std::error::Error;
use std::time::Instant;

/// Rounds in which each side makes a block of calls.
const BLOCKS: usize = 10;
/// Calls of one block.
const CALLS: usize = 100;
/// Calls before the first block, so that neither side pays for its start.
const WARM_UP: usize = 200;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [retroscope, python, peer, c64_mcp] = arguments.as_slice() else {
        return Err("arguments: RETROSCOPE PYTHON PEER_SCRIPT C64_MCP".into());
    };
    let folder = tempfile::tempdir()?;
    let programs = Programs::new(retroscope, python, peer, c64_mcp, folder.path())?;
    let answer = lists(&programs)?;
    programs.tell_peer(&answer)?;

    println!("\nMedian round trip of `{TOOL}`, {BLOCKS} blocks of {CALLS} calls on each side:\n");
    let mut resident = Resident::default();
    for era in Era::ALL {
        let stdio = Duel::fight(&programs.stdio()?, &programs.peer_stdio()?, era, &answer, &mut resident)?;
        let http = Duel::fight(&programs.http()?, &programs.peer_http()?, era, &answer, &mut resident)?;
        stdio.print(&format!("stdio, {}", era.name()), 5.0);
        http.print(&format!("HTTP, {}", era.name()), 4.0);
        let factor = http.ours / stdio.ours;
        println!("  HTTP takes {factor:.1} times as long as stdio; wanted at most 10: {}", verdict(factor <= 10.0));
    }
    let (ours, peer) = (resident.ours / 1024.0, resident.peer / 1024.0);
    println!("\nResident memory after these calls, the largest server of each side:\n");
    println!("  retroscope {ours:.1} MiB | Python SDK {peer:.1} MiB | wanted below 20 MiB: {}", verdict(ours < 20.0));
    Ok(())
}

/// Prints how long the tool list of each profile is, ours and c64-mcp's, and gives what `list_tool_groups` answers.
fn lists(programs: &Programs) -> Result<Value, Box<dyn Error>> {
    let server = programs.http()?;
    let mut answer = Value::Null;
    let mut profiles = vec!["full".to_owned()];
    println!("Tool list of each profile:\n");
    let mut done = 0;
    let mut ours = Sizes::default();
    while let Some(profile) = profiles.get(done).cloned() {
        done += 1;
        let mut connection = server.connect(Era::Stateless, &format!("/{profile}"))?;
        if answer.is_null() {
            answer = structured(&ask(&mut *connection, Era::Stateless, "tools/call", message::call())?)?;
            let named = answer.get("profiles").and_then(Value::as_array).into_iter().flatten();
            profiles.extend(named.filter_map(Value::as_str).filter(|name| *name != "full").map(str::to_owned));
        }
        let list = ask(&mut *connection, Era::Stateless, "tools/list", json!({}))?;
        let list = Sizes::of(&list)?;
        list.print(&profile);
        if profile == "full" {
            ours = list;
        }
    }
    println!("\nThat of c64-mcp:\n");
    let mut theirs = Sizes::default();
    for profile in ["minimal", "static", "vice", "full"] {
        let server = programs.predecessor(profile)?;
        let mut connection = server.connect(Era::Session, "")?;
        theirs = Sizes::of(&ask(&mut *connection, Era::Session, "tools/list", json!({}))?)?;
        theirs.print(profile);
    }
    let (mut count, mut one, mut other) = (0, 0, 0);
    for (name, bytes) in &theirs.0 {
        if let Some((_, own)) = ours.0.iter().find(|(same, _)| same == name) {
            (count, one, other) = (count + 1, one + own, other + bytes);
        }
    }
    println!("\nThe {count} tools of both, bytes per tool:\n");
    println!(
        "  retroscope {} | c64-mcp {} | wanted fewer: {}",
        one / count.max(1),
        other / count.max(1),
        verdict(one < other)
    );
    Ok(answer)
}

/// Name and bytes of each tool of a list.
#[derive(Default)]
struct Sizes(Vec<(String, usize)>);

impl Sizes {
    fn of(list: &Value) -> Result<Self, Box<dyn Error>> {
        let tools = list.get("tools").and_then(Value::as_array).ok_or("tools/list gave no tools")?;
        let name = |tool: &Value| tool.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        Ok(Self(tools.iter().map(|tool| (name(tool), tool.to_string().len())).collect()))
    }

    fn print(&self, profile: &str) {
        let (tools, bytes) = (self.0.len(), self.0.iter().map(|(_, bytes)| bytes + 1).sum::<usize>() + 1);
        println!("  {profile:<12} {tools:>3} tools {bytes:>7} bytes, {:>5} per tool", bytes / tools.max(1));
    }
}

/// One request and its result.
fn ask(connection: &mut dyn Connection, era: Era, method: &str, params: Value) -> Result<Value, Box<dyn Error>> {
    let request = era.request(1, method, params);
    let bytes = connection.frame(&request);
    message::result(&connection.exchange(&bytes)?, 1)
}

fn structured(result: &Value) -> Result<Value, Box<dyn Error>> {
    let content = result.get("structuredContent").filter(|content| content.is_object());
    content.cloned().ok_or_else(|| format!("the tool gave no structured content: {result}").into())
}

/// Largest resident memory seen on each side, in KiB.
#[derive(Default)]
struct Resident {
    ours: f64,
    peer: f64,
}

/// Median round trips of both sides, in microseconds.
struct Duel {
    ours: f64,
    peer: f64,
}

impl Duel {
    fn fight(
        ours: &Server,
        peer: &Server,
        era: Era,
        answer: &Value,
        resident: &mut Resident,
    ) -> Result<Self, Box<dyn Error>> {
        let (mut to_ours, mut to_peer) = (ours.connect(era, "")?, peer.connect(era, "")?);
        block(&mut *to_ours, era, answer, WARM_UP)?;
        block(&mut *to_peer, era, answer, WARM_UP)?;
        let (mut our_times, mut peer_times) = (Vec::new(), Vec::new());
        for _ in 0..BLOCKS {
            our_times.extend(block(&mut *to_ours, era, answer, CALLS)?);
            peer_times.extend(block(&mut *to_peer, era, answer, CALLS)?);
        }
        resident.ours = resident.ours.max(ours.resident_kib()?);
        resident.peer = resident.peer.max(peer.resident_kib()?);
        Ok(Self { ours: median(our_times), peer: median(peer_times) })
    }

    fn print(&self, what: &str, wanted: f64) {
        let Self { ours, peer } = self;
        let ratio = peer / ours;
        println!(
            "  {what:<18} retroscope {ours:>6.0} µs | Python SDK {peer:>6.0} µs | {ratio:>5.1} times faster | wanted {wanted}: {}",
            verdict(ratio >= wanted)
        );
    }
}

/// Round trips of `calls` calls in microseconds. Only the exchange is timed, not the writing and checking of JSON.
fn block(connection: &mut dyn Connection, era: Era, answer: &Value, calls: usize) -> Result<Vec<f64>, Box<dyn Error>> {
    let mut times = Vec::with_capacity(calls);
    for id in 0..calls {
        let bytes = connection.frame(&era.request(id, "tools/call", message::call()));
        let start = Instant::now();
        let reply = connection.exchange(&bytes)?;
        times.push(start.elapsed().as_secs_f64() * 1e6);
        let given = structured(&message::result(&reply, id)?)?;
        if given != *answer {
            return Err(format!("the two sides do not answer the same: {given} instead of {answer}").into());
        }
    }
    Ok(times)
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

fn verdict(reached: bool) -> &'static str {
    if reached { "reached" } else { "MISSED" }
}
