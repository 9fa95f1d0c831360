//! Measures the live tools beside a bare client of the same stub: steps per second, and a correlation besides its reads.

use debug::emulator::{Launch, find_launcher, headless};
use debug::gdb_remote::{Driver, Request};
use retroscope::agent_client::AgentClient;
use retroscope::context::{Context, Facts};
use retroscope::launch_roots::LaunchRoots;
use retroscope::tools::{self, Answer};
use retroscope::workspace::Workspace;
use serde_json::{Value, json};
use std::error::Error;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::time::{Duration, Instant};

/// Steps of each measurement.
const STEPS: u32 = 10_000;
/// Correlations of which the mean is taken.
const CORRELATIONS: u32 = 100;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let rom = std::env::args().nth(1).ok_or("the path of the overlay ROM is missing")?;
    let folder = std::env::temp_dir().join(format!("retroscope-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let outcome = measure(Path::new(&rom), &folder).await;
    std::fs::remove_dir_all(&folder)?;
    outcome
}

async fn measure(rom: &Path, folder: &Path) -> Result<(), Box<dyn Error>> {
    let bare = bare(rom, folder)?;
    std::fs::copy(rom, folder.join("game.nds"))?;
    let workspace = Workspace::open(&folder.canonicalize()?)?;
    let agent = AgentClient::new("", Duration::ZERO);
    let context = Context::new(agent, None, Some(workspace), LaunchRoots::default(), Facts::default());
    call(&context, "desmume_start", json!({"rom": "game.nds", "arm9GdbPort": free_port()?})).await?;
    call(&context, "desmume_wait_for_gdb", json!({"timeoutMs": 30_000})).await?;
    let begun = Instant::now();
    for _ in 0..STEPS / 100 {
        call(&context, "desmume_step_instruction", json!({"count": 100, "captureContext": false})).await?;
    }
    let own = f64::from(STEPS) / begun.elapsed().as_secs_f64();
    println!("steps per second: {own:.0} by the tool, {bare:.0} bare: ratio {:.2} (wanted: 0.50 or more)", own / bare);

    let range =
        json!({"id": "o", "label": "overlays", "start": "0x02100000", "end": "0x02101000", "source": "overlay"});
    call(&context, "desmume_executable_ranges_replace", json!({"ranges": [range]})).await?;
    call(&context, "desmume_breakpoint_add", json!({"address": "0x02100000", "mode": "thumb"})).await?;
    call(&context, "desmume_continue", json!({"timeoutMs": 30_000})).await?;
    call(&context, "nds_correlate_stop_context", json!({})).await?;
    let begun = Instant::now();
    for _ in 0..CORRELATIONS {
        call(&context, "nds_correlate_stop_context", json!({})).await?;
    }
    let whole = begun.elapsed() / CORRELATIONS;
    println!("a warm correlation: {:.2} ms, its reads included (wanted: under 20 ms)", whole.as_secs_f64() * 1000.0);
    call(&context, "desmume_stop", json!({})).await?;
    Ok(())
}

/// Steps per second of a client that does nothing else.
fn bare(rom: &Path, folder: &Path) -> Result<f64, Box<dyn Error>> {
    let port = free_port()?;
    let launch = Launch {
        launcher: find_launcher(Path::new("desmume-cli")).ok_or("desmume-cli is not installed")?,
        rom: rom.canonicalize()?,
        arm9_port: port,
        arm7_port: None,
        home: folder.to_owned(),
        environment: headless(),
    };
    let _emulator = launch.start()?;
    let soon = || Instant::now() + Duration::from_secs(30);
    let until = soon();
    let mut driver = loop {
        match Driver::connect((Ipv4Addr::LOCALHOST, port).into(), until) {
            Ok(driver) => break driver,
            Err(error) if Instant::now() >= until => return Err(error.into()),
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    // The program is loaded when pc, the sixteenth word, is the ROM's entry 0x02000000.
    while driver.exchange(Request::ask(b"g".to_vec()), until)?.get(120..128) != Some(b"00000002".as_slice()) {
        std::thread::sleep(Duration::from_millis(10));
    }
    let begun = Instant::now();
    for _ in 0..STEPS {
        driver.resume(b"s".to_vec(), soon())?;
        driver.wait_for_stop(soon())?;
    }
    Ok(f64::from(STEPS) / begun.elapsed().as_secs_f64())
}

fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

async fn call(context: &Context, tool: &str, arguments: Value) -> Result<Value, Box<dyn Error>> {
    let Value::Object(arguments) = arguments else { return Err("arguments are an object".into()) };
    match tools::find(tool).ok_or("no such tool")?.call(context, arguments).await? {
        Answer::Data(data) => Ok(data),
        _ => Err("an answer without data".into()),
    }
}
