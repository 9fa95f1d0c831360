//! `desmume_probe_gdb`: whether the stub can be reached now.

use super::prelude::*;
use std::collections::BTreeMap;

/// The tool.
#[derive(Debug)]
pub struct DesmumeProbeGdb;

/// Nothing.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Params {}

impl Tool for DesmumeProbeGdb {
    const NAME: &'static str = "desmume_probe_gdb";
    const DESCRIPTION: &'static str =
        "Check whether the GDB stub of the emulator answers and its program is loaded, without waiting.";
    const EFFECT: Effect = Effect::READS;
    type Params = Params;
    type Output = Shown<Probed>;

    async fn run(context: &Context, params: Params) -> Result<Self::Output, ToolError> {
        let Params {} = params;
        reach(context, Instant::now() + Duration::from_millis(limits::MIN_LIVE_TIMEOUT_MS)).await.map(Shown)
    }
}

/// What a probe found.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Probed {
    host: String,
    port: u16,
    /// Whether the stub answers and its program is loaded.
    reachable: bool,
    elapsed_ms: u64,
    /// Why not.
    error: Option<String>,
    /// What the stub said of itself; most say nothing.
    features: BTreeMap<String, String>,
    #[serde(flatten)]
    place: Where,
}

impl Probed {
    /// Whether the stub answers and its program is loaded.
    pub const fn is_reachable(&self) -> bool {
        self.reachable
    }
}

/// Tries to reach the stub until then.
///
/// # Errors
/// `emulator_not_running`.
pub async fn reach(context: &Context, until: Instant) -> Result<Probed, ToolError> {
    session::with(context, move |state| {
        let begun = Instant::now();
        let machine = state.machine()?;
        let address = machine.arm9;
        let outcome = machine.connect(until).and_then(|()| machine.reconnect(until));
        if let Err(error) = &outcome
            && error.code == ErrorCode::EmulatorStartFailed
        {
            return Err(error.clone());
        }
        let console = machine.console.as_ref();
        let features =
            console.and_then(|console| Some(console.look(Processor::Arm9).ok()?.capabilities().features.clone()));
        Ok(Probed {
            host: address.ip().to_string(),
            port: address.port(),
            reachable: outcome.is_ok(),
            elapsed_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            error: outcome.err().map(|error| error.message),
            features: features.unwrap_or_default(),
            place: Where::of(state),
        })
    })
    .await
}
