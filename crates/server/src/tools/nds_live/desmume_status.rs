//! `desmume_status`: whether the emulator runs, and what it wrote.

use super::prelude::*;
use super::session::State;
use debug::emulator::Emulator;

/// The tool.
#[derive(Debug)]
pub struct DesmumeStatus;

/// Nothing.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Params {}

impl Tool for DesmumeStatus {
    const NAME: &'static str = "desmume_status";
    const DESCRIPTION: &'static str =
        "Show whether the emulator runs, how it was started, what it wrote last, and how it ended.";
    const EFFECT: Effect = Effect::READS;
    type Params = Params;
    type Output = Shown<Status>;

    async fn run(context: &Context, params: Params) -> Result<Self::Output, ToolError> {
        let Params {} = params;
        session::with(context, |state| Ok(Shown(status(state)))).await
    }
}

/// The emulator.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    running: bool,
    pid: Option<u32>,
    started_at: Option<String>,
    executable: Option<String>,
    args: Vec<String>,
    metadata: Metadata,
    /// The end of it.
    stdout: String,
    /// The end of it.
    stderr: String,
    /// Whether it wrote more than is shown.
    output_truncated: bool,
    last_exit_code: Option<i32>,
    last_signal: Option<i32>,
    /// The debugger's session, while there is one.
    debugger: Option<DebuggerShown>,
    #[serde(flatten)]
    place: Where,
    /// What to know about the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<&'static str>,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
struct Metadata {
    #[serde(skip_serializing_if = "Option::is_none")]
    emulator: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arm9_gdb_port: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arm7_gdb_port: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rom: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rom_sha256: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
struct DebuggerShown {
    session_identity: String,
    state: &'static str,
    arm9_executable_range: RangeEnds,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct RangeEnds {
    start: u32,
    end: u64,
}

/// What there is to say of the emulator.
pub fn status(state: &mut State) -> Status {
    let place = Where::of(state);
    let mut told = Status {
        running: false,
        pid: None,
        started_at: None,
        executable: None,
        args: Vec::new(),
        metadata: Metadata::default(),
        stdout: String::new(),
        stderr: String::new(),
        output_truncated: false,
        last_exit_code: None,
        last_signal: None,
        debugger: None,
        place,
        warning: None,
    };
    let Some(machine) = state.seen() else { return told };
    let started = iso(machine.started);
    told.running = machine.exit.is_none();
    told.last_exit_code = machine.exit.and_then(|exit| exit.code);
    told.last_signal = machine.exit.and_then(|exit| exit.signal);
    told.metadata = Metadata {
        emulator: Some(if machine.emulator.is_some() { "desmume" } else { "attached" }),
        arm9_gdb_port: Some(machine.arm9.port()),
        arm7_gdb_port: machine.arm7.map(|address| address.port()),
        rom: Some(machine.rom_path.clone()),
        rom_sha256: Some(machine.rom.sha256().to_owned()),
    };
    let program = machine.rom.header().arm9;
    let pid = machine.emulator.as_ref().map(Emulator::pid);
    if told.running {
        told.debugger = Some(DebuggerShown {
            session_identity: format!("desmume:{}:{started}", pid.unwrap_or(0)),
            state: machine.state(),
            arm9_executable_range: RangeEnds { start: program.ram_address, end: program.ram_end() },
        });
    }
    if let Some(emulator) = &machine.emulator {
        told.pid = pid;
        told.executable = Some(emulator.launcher().display().to_string());
        told.args = emulator.arguments().iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let output = emulator.output();
        let (stdout, more_out) = end_of(&output.stdout);
        let (stderr, more_err) = end_of(&output.stderr);
        (told.stdout, told.stderr) = (stdout, stderr);
        told.output_truncated = output.truncated || more_out || more_err;
        told.warning = told.running.then_some(
            "the stub listens on all network interfaces and has no password: let a firewall close its port to other machines",
        );
    }
    told.started_at = Some(started);
    told
}

/// The last characters of a text, and whether there are more.
fn end_of(text: &str) -> (String, bool) {
    let more = text.chars().count().saturating_sub(limits::MAX_EMULATOR_OUTPUT_SHOWN);
    (text.chars().skip(more).collect(), more > 0)
}
