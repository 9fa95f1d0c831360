//! `apply_c64_symbol_profile`: gives the names of the platform to a program in Ghidra.

use super::profile;
use crate::context::Context;
use crate::errors::{ErrorCode, ToolError};
use crate::ghidra::{Answer, ProfilePolicy, not_blank};
use crate::tools::{Effect, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tool.
#[derive(Debug)]
pub struct ApplyC64SymbolProfile;

/// To which program, and how.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Program open in Ghidra; one of 64 KiB, or with `create_memory_blocks`.
    program: String,
    /// Only say what would change (default); false changes the program.
    #[serde(default = "yes")]
    dry_run: bool,
    /// Where a name or value is taken: refuse (default), keep what is there, or replace it.
    #[serde(default)]
    conflict_policy: ConflictPolicy,
    /// `replace` also replaces what a person defined.
    #[serde(default)]
    replace_user_definitions: bool,
    /// Make blocks for RAM, ROMs and I/O.
    #[serde(default)]
    create_memory_blocks: bool,
}

const fn yes() -> bool {
    true
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum ConflictPolicy {
    #[default]
    Error,
    Keep,
    Replace,
}

/// What Ghidra answered.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Applied(Answer);

impl Tool for ApplyC64SymbolProfile {
    const NAME: &'static str = "apply_c64_symbol_profile";
    const DESCRIPTION: &'static str = "Apply the C64 symbol profile to a program in Ghidra: names registers, KERNAL entries \
         and system variables, defines equates. dry_run (default) changes nothing and lists each symbol's action. The answer \
         is Ghidra's own, some 80,000 characters.";
    const EFFECT: Effect = Effect { read_only: false, destructive: true, idempotent: true, open_world: true };
    const BRIEF: Option<&'static [&'static str]> = Some(&[]);
    type Params = Params;
    type Output = Applied;

    async fn run(context: &Context, params: Params) -> Result<Applied, ToolError> {
        not_blank("program", &params.program)?;
        let fault = |error: serde_json::Error| ToolError::new(ErrorCode::ServerFault, error.to_string());
        let policy = ProfilePolicy {
            dry_run: params.dry_run,
            conflict_policy: match params.conflict_policy {
                ConflictPolicy::Error => "error",
                ConflictPolicy::Keep => "keep",
                ConflictPolicy::Replace => "replace",
            },
            replace_user_definitions: params.replace_user_definitions,
            create_memory_blocks: params.create_memory_blocks,
        };
        let profile = serde_json::to_value(profile::view()).map_err(fault)?;
        context.ghidra().apply_symbol_profile(&params.program, profile, policy).await.map(Applied)
    }
}

#[cfg(test)]
mod tests {
    use crate::tools::c64_shared::tests::Caller;
    use serde_json::json;

    #[tokio::test]
    async fn what_ghidra_needs_must_be_said() {
        let caller = Caller::new();
        let error = caller.refused("apply_c64_symbol_profile", json!({"program": " "})).await;
        assert_eq!(error.line(), "invalid_arguments: program must not be blank");
        let error = caller.refused("apply_c64_symbol_profile", json!({"program": "x", "conflict_policy": "x"})).await;
        assert!(error.message.contains("expected one of `error`, `keep`, `replace`"), "{error}");
    }

    #[tokio::test]
    async fn without_ghidra_the_error_says_where_it_should_be() {
        let error =
            Caller::new().refused("apply_c64_symbol_profile", json!({"program": "game", "dry_run": false})).await;
        assert_eq!(error.code.word(), "ghidra_transport_failure");
        assert_eq!(error.details["ghidra_program_may_have_changed"], false);
        assert_eq!(
            (&error.details["request_committed"], &error.details["outcome_unknown"]),
            (&json!(false), &json!(false))
        );
    }
}
