//! `copy_vice_memory_to_ghidra`: memory of the stopped machine becomes that of a program in Ghidra.

use super::prelude::*;
use crate::errors::ErrorCode;
use crate::ghidra::not_blank;
use crate::tools::c64_shared::address::Address;
use crate::vice_client::{MemoryPart, Object};
use serde_json::Value;

/// The tool.
#[derive(Debug)]
pub struct CopyViceMemoryToGhidra;

/// What is done where Ghidra has other bytes.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
#[allow(missing_docs, reason = "the words say it, and docs would be in the schema")]
pub enum Conflict {
    #[default]
    Error,
    OverwriteBytes,
}

/// What is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Number from vice_list_banks.
    bank_id: u32,
    /// First address.
    start: u16,
    /// Last address, inclusive.
    end: u16,
    /// The program in Ghidra.
    program: String,
    /// Where its first byte goes, such as `RAM:c000`.
    destination: String,
    /// Refuse where Ghidra has other bytes, or write over them.
    #[serde(default)]
    conflict_policy: Conflict,
    /// Only say what would change.
    #[serde(default = "yes")]
    dry_run: bool,
    /// 0 is the computer, 1 to 4 its drives.
    #[serde(default)]
    memspace: u8,
    /// Milliseconds for the read from VICE.
    #[serde(default)]
    timeout_ms: Time,
}

impl Tool for CopyViceMemoryToGhidra {
    const NAME: &'static str = "copy_vice_memory_to_ghidra";
    const DESCRIPTION: &'static str = "Copy memory of the stopped C64, such as unpacked code, into the memory of a program in Ghidra. dry_run, which is on unless switched off, shows the ranges that differ.";
    const EFFECT: Effect = Effect { read_only: false, destructive: true, idempotent: true, open_world: true };
    type Params = Params;
    type Output = Envelope;

    async fn run(context: &Context, params: Params) -> Result<Envelope, ToolError> {
        Ok(shared::told(copy(context, &params).await))
    }
}

async fn copy(context: &Context, params: &Params) -> Result<Object, ToolError> {
    let Params { bank_id, start, end, memspace, .. } = *params;
    not_blank("program", &params.program)?;
    Address::parse("destination", &params.destination)?;
    if end < start {
        let message = format!("end, ${end:04X}, lies before start, ${start:04X}");
        return Err(
            ToolError::new(ErrorCode::ViceInvalidArgument, message).hint("both are included, and nothing wraps")
        );
    }
    let time = params.timeout_ms.get("timeout_ms", ErrorCode::ViceInvalidArgument)?;
    let part = MemoryPart { bank: bank_id, memspace, start, count: usize::from(end - start) + 1 };
    let bytes = context.vice().read_memory(part, time).await?;
    let sha256 = ::nds::sha256_hex(&bytes);
    let policy = match params.conflict_policy {
        Conflict::Error => "error",
        Conflict::OverwriteBytes => "overwrite_bytes",
    };
    let written =
        context.ghidra().write_memory_bytes(&params.program, &params.destination, &bytes, policy, params.dry_run).await;
    let display = |address: u16| format!("${address:04X}");
    let range = json!({"start": start, "start_display": display(start), "end": end, "end_display": display(end)});
    let mut told = Object::from_iter([
        ("source_range".to_owned(), range),
        ("destination".to_owned(), json!(params.destination)),
        ("byte_count".to_owned(), json!(bytes.len())),
        ("sha256".to_owned(), json!(sha256)),
    ]);
    let wrong = match written {
        Ok(answer) => {
            let wrong = differs(&answer, &sha256, bytes.len(), params.dry_run);
            told.insert("committed".to_owned(), answer.get("committed").cloned().unwrap_or(false.into()));
            told.insert("differing_ranges".to_owned(), answer.get("differing_ranges").cloned().unwrap_or(json!([])));
            told.insert("write_result".to_owned(), answer.into());
            wrong.map(|message| (message, !params.dry_run))
        }
        Err(error) if error.code == ErrorCode::GhidraResponseError => {
            told.insert("committed".to_owned(), false.into());
            told.insert("differing_ranges".to_owned(), json!([]));
            told.insert("write_result".to_owned(), json!({"error": error.message}));
            let changed = error.details.get("ghidra_program_may_have_changed") == Some(&json!(true));
            Some((error.message, changed))
        }
        // What it has done by then is not known; the details say so.
        Err(error) => return Err(error),
    };
    told.insert("ok".to_owned(), wrong.is_none().into());
    if let Some((message, changed)) = wrong {
        told.insert("error".to_owned(), message.into());
        told.insert("ghidra_program_may_have_changed".to_owned(), changed.into());
    }
    Ok(told)
}

/// What in Ghidra's answer is not as it must be for these bytes.
fn differs(answer: &Object, sha256: &str, count: usize, dry_run: bool) -> Option<String> {
    let get = |key: &str| answer.get(key).unwrap_or(&Value::Null);
    if get("committed") != &json!(!dry_run) {
        return Some(format!("Ghidra says committed {} to a call with dry_run {dry_run}", get("committed")));
    }
    if get("sha256").as_str().is_some_and(|other| !other.eq_ignore_ascii_case(sha256)) {
        return Some(format!("Ghidra took other bytes: their SHA-256 is {}", get("sha256")));
    }
    if get("length").as_u64().is_some_and(|length| usize::try_from(length) != Ok(count)) {
        return Some(format!("Ghidra took {} of {count} bytes", get("length")));
    }
    None
}
