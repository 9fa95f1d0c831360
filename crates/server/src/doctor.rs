//! `retroscope doctor`: what works on this machine, what is missing, and how to get it.

use crate::agent_client::AgentClient;
use crate::config::Settings;
use crate::serve::AgentChild;
use base::limits;
use debug::emulator::{find_launcher, has_stub};
use debug::vice::launch::{self, has_kernal, rom_folders};
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;
use wire::commands;

/// How one thing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It works.
    Works,
    /// It is not there, and some things go without it.
    Absent,
    /// It is not there, and nothing goes without it.
    Missing,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Works => "works",
            Self::Absent => "absent",
            Self::Missing => "MISSING",
        })
    }
}

/// One line of the report.
#[derive(Debug)]
struct Finding {
    what: &'static str,
    state: State,
    text: String,
}

/// Looks at everything, prints a line for each, and says whether what is needed is there.
pub async fn run(settings: &Settings) -> bool {
    let mut findings = vec![configuration(settings), workspace(settings), token(settings), agent(settings).await];
    findings.push(debugging(settings).await);
    findings.push(emulator(settings));
    findings.push(vice());
    findings.extend([attaching(), display(), demo()].into_iter().flatten());
    for Finding { what, state, text } in &findings {
        println!("{state:<8} {what:<14} {text}");
    }
    findings.iter().all(|finding| finding.state != State::Missing)
}

fn configuration(settings: &Settings) -> Finding {
    let text = match &settings.file {
        Some(path) => path.display().to_string(),
        None => "no retroscope.toml here or in the user's configuration folder; the defaults hold".to_owned(),
    };
    Finding { what: "configuration", state: State::Works, text: format!("{text}; profile {}", settings.profile.name()) }
}

fn workspace(settings: &Settings) -> Finding {
    match &settings.workspace {
        Some(folder) => Finding { what: "workspace", state: State::Works, text: folder.display().to_string() },
        None => Finding {
            what: "workspace",
            state: State::Absent,
            text: "none named: the debug tools need none, those on ROMs do; name one with --workspace or RETROSCOPE_WORKSPACE_ROOT"
                .to_owned(),
        },
    }
}

/// The emulator that `desmume_start` would start, by what its own help says.
fn emulator(settings: &Settings) -> Finding {
    let name = settings.emulator.launcher.clone().unwrap_or_else(|| "desmume-cli".into());
    let absent = |text: String| Finding { what: "emulator", state: State::Absent, text };
    let Some(launcher) = find_launcher(&name) else {
        return absent(format!(
            "no {}: the tools `desmume_…` need one (Debian 12: apt-get install desmume)",
            name.display()
        ));
    };
    let shown = launcher.display();
    // It writes its settings into its home, which is nobody's afterwards.
    let home = std::env::temp_dir().join(format!("retroscope-doctor-{}", std::process::id()));
    let asked = std::fs::create_dir_all(&home)
        .and_then(|()| has_stub(&launcher, &home, Duration::from_millis(limits::MAX_LIVE_SHORT_TIMEOUT_MS)));
    let _ = std::fs::remove_dir_all(&home);
    match asked {
        Ok(true) => Finding {
            what: "emulator",
            state: State::Works,
            text: format!(
                "{shown} has a GDB stub; it listens on all network interfaces: close its port to other machines"
            ),
        },
        Ok(false) => absent(format!(
            "{shown} was built without a GDB stub, as DeSmuME 0.9.13 of Debian is; 0.9.11 of Debian 12 has one"
        )),
        Err(error) => absent(format!("{shown} does not say whether it has a GDB stub: {error}")),
    }
}

/// The VICE that `vice-connector` would start or connect to.
fn vice() -> Finding {
    let finding = |state, text: String| Finding { what: "vice", state, text };
    let monitor = SocketAddr::from((Ipv4Addr::LOCALHOST, launch::MONITOR_PORT));
    let running = match TcpStream::connect_timeout(&monitor, Duration::from_millis(limits::VICE_LOOK_MS)) {
        Ok(_) => format!("something listens at {monitor}: try `retroscope vice-connector --connect {monitor}`"),
        Err(_) => format!("none that runs has its monitor at {monitor}: a running one needs -binarymonitor"),
    };
    let Some(program) = find_launcher(Path::new(launch::PROGRAM)) else {
        let text = "no x64sc: `vice-connector --launch` needs VICE (Debian: apt-get install vice, component contrib)";
        return finding(State::Absent, format!("{text}; {running}"));
    };
    let home = std::env::home_dir().unwrap_or_default();
    if has_kernal(&rom_folders(&home)) {
        let text = format!("{} with ROMs: try `retroscope vice-connector --launch`; {running}", program.display());
        return finding(State::Works, text);
    }
    let text = format!(
        "{} has no ROMs, and Debian's brings none: put those of your C64 into {}, or name them with --kernal, --basic and \
         --chargen; {running}",
        program.display(),
        home.join(".local/share/vice/C64").display()
    );
    finding(State::Absent, text)
}

fn token(settings: &Settings) -> Finding {
    match settings.token {
        Some(_) => Finding {
            what: "token",
            state: State::Works,
            text: "set; `retroscope serve --http ADDR` will ask for it".to_owned(),
        },
        None => Finding {
            what: "token",
            state: State::Absent,
            text: format!(
                "needed for HTTP only: {}",
                if cfg!(windows) {
                    "set RETROSCOPE_TOKEN to a long random word"
                } else {
                    "export RETROSCOPE_TOKEN=$(openssl rand -hex 32)"
                }
            ),
        },
    }
}

async fn agent(settings: &Settings) -> Finding {
    match AgentClient::new(settings.agent.clone(), settings.command_timeout).hello().await {
        Ok(hello) => Finding {
            what: "agent",
            state: State::Works,
            text: format!(
                "{} at {} on {}, debugs {}",
                hello.version,
                settings.agent,
                hello.platform,
                hello.archs.join(", ")
            ),
        },
        Err(error) => {
            Finding { what: "agent", state: State::Absent, text: format!("{}; {}", error.message, error.hint) }
        }
    }
}

/// Debugs a program for real: the only way to know whether the system allows it.
async fn debugging(settings: &Settings) -> Finding {
    match try_debugging(settings).await {
        Ok(text) => Finding { what: "debugging", state: State::Works, text },
        Err(text) => {
            let help = if cfg!(target_os = "linux") {
                "; in a container allow the system call ptrace (docker: --cap-add SYS_PTRACE)"
            } else {
                ""
            };
            Finding { what: "debugging", state: State::Missing, text: format!("{text}{help}") }
        }
    }
}

async fn try_debugging(settings: &Settings) -> Result<String, String> {
    let program = program_to_try();
    if !Path::new(&program).exists() {
        return Err(format!("there is no {program} to try it on"));
    }
    let child = AgentChild::start(&[], None).await.map_err(|error| error.line())?;
    let client = AgentClient::new(child.address(), settings.command_timeout);
    let launch = commands::Launch {
        path: program.clone(),
        args: None,
        cwd: None,
        env: None,
        stop_at: commands::StopAt::Entry,
        if_running: commands::IfRunning::StartNew,
    };
    let launched = client.call(launch).await;
    let ended = client.call(commands::Terminate {}).await;
    child.end().await;
    let reply = launched.map_err(|error| error.line())?;
    ended.map_err(|error| error.line())?;
    Ok(format!("launched {program} ({}) under an agent of its own, stopped it at its entry, ended it", reply.arch))
}

/// A harmless program that is everywhere.
fn program_to_try() -> String {
    if cfg!(windows) {
        let windows = std::env::var("SystemRoot").unwrap_or_else(|_| "C:\\Windows".to_owned());
        format!("{windows}\\System32\\cmd.exe")
    } else {
        "/bin/true".to_owned()
    }
}

/// Whether programs that run already can be attached to.
fn attaching() -> Option<Finding> {
    let what = "attaching";
    if !cfg!(target_os = "linux") {
        return None;
    }
    let root = std::fs::read_to_string("/proc/self/status").is_ok_and(|status| {
        status.lines().any(|line| line.starts_with("Uid:") && line.split_whitespace().nth(2) == Some("0"))
    });
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope")
        .map_or(0, |text| text.trim().parse().unwrap_or(0));
    Some(match (scope, root) {
        (0, _) => Finding { what, state: State::Works, text: "to every program of the same user".to_owned() },
        (1 | 2, true) => Finding { what, state: State::Works, text: "to every program, as root".to_owned() },
        (1, false) => Finding {
            what,
            state: State::Absent,
            text: "only launched programs can be debugged; to attach: sudo sysctl kernel.yama.ptrace_scope=0"
                .to_owned(),
        },
        (_, _) => Finding {
            what,
            state: State::Absent,
            text: format!(
                "kernel.yama.ptrace_scope is {scope}, which forbids it until it is lowered (3: until a restart)"
            ),
        },
    })
}

#[cfg(target_os = "linux")]
fn display() -> Option<Finding> {
    let what = "screenshots";
    Some(match x11rb::connect(None) {
        Ok(_) => Finding { what, state: State::Works, text: "the X display answers".to_owned() },
        Err(error) => Finding {
            what,
            state: State::Absent,
            text: format!(
                "no X display ({error}); set DISPLAY for the agent, or start one: Xvfb :99 & export DISPLAY=:99"
            ),
        },
    })
}

#[cfg(not(target_os = "linux"))]
fn display() -> Option<Finding> {
    None
}

#[cfg(target_os = "linux")]
fn demo() -> Option<Finding> {
    let what = "demo";
    Some(if crate::demo::GAME_64.is_empty() {
        let text =
            "this build carries no game: build it on x86-64 Linux with a C compiler (Debian: apt-get install gcc)";
        Finding { what, state: State::Absent, text: text.to_owned() }
    } else {
        Finding { what, state: State::Works, text: "the game is built in; try `retroscope demo`".to_owned() }
    })
}

#[cfg(not(target_os = "linux"))]
fn demo() -> Option<Finding> {
    None
}
