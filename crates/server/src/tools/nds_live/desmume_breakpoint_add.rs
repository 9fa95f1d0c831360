//! `desmume_breakpoint_add`: stops the program before an instruction.

use super::prelude::*;
use debug::gdb_remote::{Mode, ModeRequest};

/// The tool.
#[derive(Debug)]
pub struct DesmumeBreakpointAdd;

/// Where.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Params {
    address: Address,
    /// `auto` only when the range, the symbol or the address leaves one.
    mode: AnyMode,
    #[serde(default)]
    #[schemars(length(min = 1, max = 128))]
    symbol: Option<String>,
    /// Needed where ranges overlap.
    #[serde(default)]
    range_id: Option<String>,
    /// `arm9` (default) or `arm7`.
    #[serde(default)]
    processor: Which,
}

/// The breakpoint.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Told {
    #[serde(flatten)]
    breakpoint: BreakpointShown,
    #[serde(flatten)]
    place: Where,
}

impl Tool for DesmumeBreakpointAdd {
    const NAME: &'static str = "desmume_breakpoint_add";
    const DESCRIPTION: &'static str = "Set a breakpoint in code of the stopped program, in an executable range (desmume_executable_ranges_replace adds overlays); 32 at most. Next: desmume_continue.";
    const EFFECT: Effect = Effect::SETS;
    type Params = Params;
    type Output = Shown<Told>;

    async fn run(context: &Context, params: Params) -> Result<Self::Output, ToolError> {
        if params
            .symbol
            .as_ref()
            .is_some_and(|symbol| symbol.is_empty() || symbol.chars().count() > limits::MAX_GDB_LABEL_CHARS)
        {
            return Err(ToolError::new(ErrorCode::InvalidArguments, "`symbol` has 1 to 128 characters"));
        }
        let mode = match params.mode {
            AnyMode::Arm => ModeRequest::Known(Mode::Arm),
            AnyMode::Thumb => ModeRequest::Known(Mode::Thumb),
            AnyMode::Auto => ModeRequest::Auto,
        };
        session::with(context, move |state| {
            let debugger = state.stopped(params.processor.into())?;
            let breakpoint =
                debugger.add_breakpoint(params.address.0, mode, params.symbol, params.range_id.as_deref(), soon())?;
            Ok(Shown(Told { breakpoint: BreakpointShown::of(&breakpoint), place: Where::of(state) }))
        })
        .await
    }
}
