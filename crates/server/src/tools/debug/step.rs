//! `step`: executes single instructions.

use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct Step;

/// Where the steps led.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Steps {
    /// The reply.
    #[serde(flatten)]
    reply: commands::StepReply,
    /// Instructions at the start of `trace` that are left out because one answer does not hold them.
    #[serde(skip_serializing_if = "is_zero")]
    trace_omitted: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Tool for Step {
    const NAME: &'static str = "step";
    const DESCRIPTION: &'static str = "Step: execute one instruction or more in one thread, into or over calls, \
         or out of the function until its return. Answers with the stop and, for `into`, the instructions \
         executed.";
    const EFFECT: Effect = Effect::RUNS;
    type Params = commands::Step;
    type Output = Steps;

    async fn run(context: &Context, params: Self::Params) -> Result<Self::Output, ToolError> {
        // The agent's own default, when none is named.
        let seconds = params.timeout.unwrap_or(limits::DEFAULT_CONTINUE_TIMEOUT_S as f64);
        let mut reply = context.agent().call_waiting(params, seconds).await?;
        let trace_omitted = keep_last(context, &mut reply.trace);
        Ok(Steps { reply, trace_omitted })
    }
}
