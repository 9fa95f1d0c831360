//! How fast the Windows platform reads memory, as the engine calls it: 4 KiB blocks, the size that debuggers ask for. Prints
//! MiB per second. Arguments as those of fixtures/win32loop: `read GAME ADDRESS SECONDS`.

#[cfg(windows)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use agent::platform::win32::Windows;
    use agent::platform::{LaunchSpec, Platform as _};
    use std::time::{Duration, Instant};

    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [_, game, address, seconds] = arguments.as_slice() else { return Err("read GAME ADDRESS SECONDS".into()) };
    let address: base::VirtAddr = address.parse()?;
    let span = Duration::try_from_secs_f64(seconds.parse()?)?;
    let mut windows = Windows::new();
    windows.launch(&LaunchSpec {
        path: game.into(),
        args: vec!["--headless".to_owned()],
        cwd: std::env::temp_dir(),
        env: std::collections::BTreeMap::new(),
        die_with_agent: true,
    })?;
    let mut block = [0; 4_096];
    let (mut blocks, start) = (0u32, Instant::now());
    while start.elapsed() < span {
        if windows.read_memory(address, &mut block)? != block.len() {
            return Err("the block could not be read".into());
        }
        blocks += 1;
    }
    println!("{:.1}", f64::from(blocks) / 256.0 / start.elapsed().as_secs_f64());
    windows.kill()?;
    while windows
        .wait(Duration::from_secs(1))?
        .is_some_and(|event| !matches!(event, agent::platform::Event::ProcessExited(_)))
    {}
    Ok(())
}

#[cfg(not(windows))]
fn main() {
    eprintln!("this measures the Windows platform; it runs on Windows or under Wine");
}
