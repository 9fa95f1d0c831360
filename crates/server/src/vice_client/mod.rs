//! The one connection of the server to a VICE connector: found by discovery, checked against the contract, and bound to one
//! instance, so that no call reaches another machine than the one that was connected to. Nothing is ever asked twice.

mod handshake;
mod http;

use crate::errors::{ErrorCode, ToolError};
use crate::ghidra::GhidraSettings;
use base::limits;
use debug::vice::contract;
use serde_json::{Map, Value, json};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// Endpoint of the calls.
const INVOKE: &str = "/debugger/invoke_target_method";
/// Endpoint of discovery.
const DISCOVER: &str = "/debugger/target_methods";

/// A JSON object.
pub type Object = Map<String, Value>;

/// The client; it connects when it is told to.
#[derive(Debug, Default)]
pub struct Vice {
    settings: OnceLock<GhidraSettings>,
    link: http::Link,
    state: Mutex<State>,
}

/// A part of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryPart {
    /// Which view of memory.
    pub bank: u32,
    /// Which processor's; 0 is the computer's.
    pub memspace: u8,
    /// First address.
    pub start: u16,
    /// Bytes, at least one.
    pub count: usize,
}

#[derive(Debug, Default)]
struct State {
    /// Grows with each new binding.
    generation: u64,
    bound: Option<Binding>,
}

#[derive(Clone, Debug)]
struct Binding {
    token: String,
    instance: String,
    capabilities: Object,
    /// Methods beyond the contract that are there.
    extensions: Vec<&'static str>,
    stale: bool,
    /// What the last answer said, with the keys that `vice_status` shows.
    last: Object,
    sequence: u64,
}

impl Vice {
    /// Says where the connector is; the first word counts.
    pub fn configure(&self, settings: GhidraSettings) {
        self.settings.get_or_init(|| settings);
    }

    fn settings(&self) -> &GhidraSettings {
        self.settings.get_or_init(GhidraSettings::default)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds the connector, checks it, and binds to it.
    ///
    /// # Errors
    /// `vice_connector_unavailable`, `vice_connector_incompatible`, `vice_connector_changed`, `vice_binding_conflict` for another
    /// connector than the one that is connected, and those of HTTP.
    pub async fn connect(&self) -> Result<Object, ToolError> {
        let discovered =
            self.link.ask(self.settings(), DISCOVER, None, layered(limits::DEFAULT_VICE_TIMEOUT_MS)).await?;
        let token = discovered.get("target_token").and_then(Value::as_str).map(str::to_owned);
        let (Some(token), Some(true)) = (token, discovered.get("ok").and_then(Value::as_bool)) else {
            let upstream = discovered.get("error").cloned().unwrap_or_default();
            return Err(ToolError::new(
                ErrorCode::ViceConnectorUnavailable,
                format!("{} serves no VICE connector: {}", self.settings().url(), said(&upstream)),
            )
            .hint("start `retroscope vice-connector`, or Ghidra's debugger with the VICE connector")
            .detail("upstream_error", upstream));
        };
        let methods = discovered.get("methods").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        compatible(handshake::methods(methods))?;
        let envelope = self.invoke(&token, "capabilities", json!({}), limits::DEFAULT_VICE_TIMEOUT_MS).await?;
        let capabilities = result(&envelope);
        let mut missing = handshake::capabilities(&capabilities);
        let instance = capabilities.get("instance_id").and_then(Value::as_str).unwrap_or_default().to_owned();
        if envelope.get("instance_id") != Some(&json!(instance)) {
            missing.push("instance_id differs between the envelope and its result".to_owned());
        }
        compatible(missing)?;
        let extensions = contract::EXTENSIONS.iter().filter(|method| handshake::has(method, methods));
        let extensions: Vec<&'static str> = extensions.map(|method| method.name).collect();
        let status = self.invoke(&token, "status", json!({}), limits::DEFAULT_VICE_TIMEOUT_MS).await?;
        if status.get("instance_id") != Some(&json!(instance)) {
            return Err(changed(&instance));
        }
        let mut state = self.state();
        let same = state.bound.as_ref().is_some_and(|bound| bound.instance == instance && bound.token == token);
        if let Some(bound) = &mut state.bound
            && !same
            && !bound.stale
        {
            bound.stale = true;
            return Err(ToolError::new(
                ErrorCode::ViceBindingConflict,
                format!("connected to {}, and {instance} answers in its place", bound.instance),
            )
            .hint("call vice_disconnect and vice_connect; breakpoints and state are those of the new one"));
        }
        if !same {
            state.generation = state.generation.saturating_add(1);
        }
        let mut bound =
            Binding { token, instance, capabilities, extensions, stale: false, last: Object::new(), sequence: 0 };
        bound.learn(&status);
        state.bound = Some(bound);
        let mut shown = state.shown();
        shown.insert("idempotent".to_owned(), same.into());
        Ok(shown)
    }

    /// What is known, without asking anybody.
    pub fn status(&self) -> Object {
        self.state().shown()
    }

    /// Lets go of the connector, which goes on; says whether there was one.
    pub fn disconnect(&self) -> bool {
        self.state().bound.take().is_some()
    }

    /// What the connector said of itself.
    pub fn capabilities(&self) -> Object {
        self.state().bound.as_ref().map(|bound| bound.capabilities.clone()).unwrap_or_default()
    }

    /// Whether the bound connector has this method, which the contract does not ask for.
    pub fn offers(&self, method: &str) -> bool {
        self.state().bound.as_ref().is_some_and(|bound| bound.extensions.contains(&method))
    }

    /// Calls a method of the bound connector and gives its envelope, whether it says yes or no.
    ///
    /// # Errors
    /// `vice_not_connected`, `vice_connector_changed`, `vice_connector_incompatible` for a method that is not there, and
    /// those of HTTP and of Ghidra's plug-in.
    pub async fn call(&self, method: &str, mut arguments: Value, timeout_ms: u64) -> Result<Object, ToolError> {
        let (generation, bound) = {
            let state = self.state();
            (state.generation, state.bound.clone())
        };
        let bound = bound.ok_or_else(|| {
            ToolError::new(ErrorCode::ViceNotConnected, "there is no connection to VICE")
                .hint("call vice_connect first")
        })?;
        if bound.stale {
            return Err(changed(&bound.instance));
        }
        if contract::EXTENSIONS.iter().any(|one| one.name == method) && !bound.extensions.contains(&method) {
            return Err(ToolError::new(
                ErrorCode::ViceConnectorIncompatible,
                format!("the connector has no method {}{method}", contract::NAMESPACE),
            )
            .hint("`retroscope vice-connector` has it"));
        }
        if let Some(arguments) = arguments.as_object_mut() {
            arguments.insert("timeout_ms".to_owned(), timeout_ms.into());
        }
        let outcome = self.invoke(&bound.token, method, arguments, timeout_ms).await;
        let mut state = self.state();
        let current = state.generation == generation;
        match (outcome, state.bound.as_mut().filter(|_| current)) {
            (Ok(envelope), now) => {
                if envelope.get("instance_id") != Some(&json!(bound.instance)) {
                    if let Some(now) = now {
                        now.stale = true;
                    }
                    return Err(changed(&bound.instance));
                }
                if let Some(now) = now {
                    now.learn(&envelope);
                }
                Ok(envelope)
            }
            (Err(error), now) => {
                let gone = matches!(error.code, ErrorCode::GhidraTransportFailure | ErrorCode::ViceConnectorChanged);
                if let Some(now) = now.filter(|_| gone) {
                    now.stale = true;
                }
                Err(error)
            }
        }
    }

    /// Reads memory without side effects, all that was asked for or nothing.
    ///
    /// # Errors
    /// Those that [`refused`] gives, `vice_read_failed` for bytes that are not all of them, and those of [`Self::call`].
    pub async fn read_memory(&self, part: MemoryPart, timeout_ms: u64) -> Result<Vec<u8>, ToolError> {
        let MemoryPart { bank, memspace, start, count } = part;
        let end = usize::from(start).saturating_add(count.saturating_sub(1));
        let arguments = json!({"bank_id": bank, "start": start, "end": end, "side_effects": false, "max_bytes": count,
            "memspace": memspace});
        let envelope = self.call("read_memory", arguments, timeout_ms).await?;
        if envelope.get("ok") != Some(&json!(true)) {
            let what = format!("${start:04X} to ${end:04X} of bank {bank} was not read");
            return Err(refused(&envelope, ErrorCode::ViceReadFailed, &what));
        }
        let failed = |message: String| ToolError::new(ErrorCode::ViceReadFailed, message);
        let digits = result(&envelope).get("bytes").and_then(Value::as_str).unwrap_or_default().to_owned();
        let bytes = c64::from_hex("bytes", &digits).map_err(|problem| failed(problem.message))?;
        if bytes.len() == count {
            return Ok(bytes);
        }
        Err(failed(format!("{} bytes came from ${start:04X} on where {count} were asked for", bytes.len()))
            .hint("a connector must read all or say what it did not read"))
    }

    async fn invoke(
        &self,
        token: &str,
        method: &str,
        mut arguments: Value,
        timeout_ms: u64,
    ) -> Result<Object, ToolError> {
        if let Some(arguments) = arguments.as_object_mut() {
            arguments.insert(contract::PROCESS.name.to_owned(), json!({"object_path": contract::ROOT_OBJECT}));
        }
        let body = json!({
            "target_token": token,
            "method": format!("{}{method}", contract::NAMESPACE),
            "arguments": arguments,
            "timeout_ms": timeout_ms.saturating_add(limits::VICE_LAYER_MS).min(limits::MAX_VICE_TIMEOUT_MS),
        });
        let answer = self.link.ask(self.settings(), INVOKE, Some(&body), layered(timeout_ms)).await?;
        if let Some(text) = answer.get("result").and_then(Value::as_str) {
            let envelope = serde_json::from_str::<Object>(text).ok();
            return envelope.filter(|envelope| envelope.get("api") == Some(&json!(contract::API))).ok_or_else(|| {
                ToolError::new(ErrorCode::ViceConnectorIncompatible, format!("{method} gave no {}", contract::API))
                    .hint("the connector must speak this version")
            });
        }
        let upstream = answer.get("error").cloned().unwrap_or_default();
        let code = upstream.get("code").and_then(Value::as_str).unwrap_or_default();
        let kind = if code.contains("stale") || code.contains("token") {
            ErrorCode::ViceConnectorChanged
        } else if code.contains("timeout") {
            ErrorCode::ViceTargetMethodTimeout
        } else {
            ErrorCode::ViceTargetMethodFailed
        };
        let unknown = answer.get("outcome_unknown").and_then(Value::as_bool).unwrap_or(true);
        Err(ToolError::new(kind, format!("{method} was not answered by the connector: {}", said(&upstream)))
            .hint("the call was not made again; see vice_status")
            .detail("timeout_layer", "generic")
            .detail("outcome_unknown", unknown)
            .detail("upstream_error", upstream))
    }
}

impl State {
    fn shown(&self) -> Object {
        let mut shown = Object::new();
        shown.insert("ok".to_owned(), true.into());
        shown.insert("generation".to_owned(), self.generation.into());
        let Some(bound) = &self.bound else {
            shown.insert("state".to_owned(), "unbound".into());
            return shown;
        };
        let last = |key: &str| bound.last.get(key).cloned().unwrap_or_default();
        let connection = last("connection_state");
        let execution = last("execution_state");
        let state = match (bound.stale, connection.as_str(), execution.as_str()) {
            (true, ..) => "stale",
            (_, Some("disconnected"), _) => "disconnected",
            (_, _, Some(word @ ("running" | "stopped"))) => word,
            _ => "connected",
        };
        let said = |key: &str| bound.capabilities.get(key).cloned().unwrap_or_default();
        for (key, value) in [
            ("state", json!(state)),
            ("target_token", json!(bound.token)),
            ("instance_id", json!(bound.instance)),
            ("connector_name", said("connector_name")),
            ("connector_version", said("connector_version")),
            ("vice_version", said("vice_version")),
            ("connection_state", connection),
            ("execution_state", execution),
            ("last_event_sequence", last("last_event_sequence")),
            ("last_pc", last("last_pc")),
            ("last_error", last("last_error")),
            ("max_command_sequence", json!(bound.sequence)),
        ] {
            shown.insert(key.to_owned(), value);
        }
        shown
    }
}

impl Binding {
    /// Takes what an envelope says, unless a later one was seen already.
    fn learn(&mut self, envelope: &Object) {
        let sequence = envelope.get("command_sequence").and_then(Value::as_u64).unwrap_or_default();
        if sequence < self.sequence {
            return;
        }
        self.sequence = sequence;
        let result = result(envelope);
        let event = result.get("event").cloned().unwrap_or_default();
        for (key, value) in [
            ("connection_state", envelope.get("connection_state").cloned()),
            ("execution_state", envelope.get("execution_state").cloned()),
            ("last_event_sequence", result.get("event_sequence").or_else(|| event.get("sequence")).cloned()),
            ("last_pc", result.get("pc").or_else(|| event.get("pc")).cloned()),
            ("last_error", envelope.get("error").cloned()),
        ] {
            if let Some(value) = value {
                self.last.insert(key.to_owned(), value);
            }
        }
    }
}

/// The result in an envelope; empty when it says no.
pub fn result(envelope: &Object) -> Object {
    envelope.get("result").and_then(Value::as_object).cloned().unwrap_or_default()
}

/// What an envelope that says no is to a tool: an error of the connector's own code, or of `otherwise` where that is none of ours.
pub fn refused(envelope: &Object, otherwise: ErrorCode, what: &str) -> ToolError {
    let error = envelope.get("error").cloned().unwrap_or_default();
    let word = error.get("code").and_then(Value::as_str).unwrap_or_default();
    let code = ErrorCode::named(word).filter(|_| word.starts_with("vice_")).unwrap_or(otherwise);
    let hint = match code {
        ErrorCode::ViceTargetNotStopped => "call vice_interrupt first, or let it run to a checkpoint",
        ErrorCode::ViceUnsupportedBuild => {
            "use VICE 3.11 or newer; `retroscope vice-connector --allow-display-on-old-vice` asks older ones all the same"
        }
        ErrorCode::ViceTimeout => "raise timeout_ms; vice_status says what is known",
        ErrorCode::ViceCommandFailed => {
            "VICE takes it in no other state either; the banks it has are those of vice_list_banks"
        }
        _ => "vice_status says what is known of the machine",
    };
    ToolError::new(code, format!("{what}: {}", said(&error))).hint(hint).detail("connector_error", error)
}

/// Time for HTTP, which is that of the call and of the two layers below.
fn layered(timeout_ms: u64) -> Duration {
    Duration::from_millis(timeout_ms.saturating_add(limits::VICE_LAYER_MS.saturating_mul(2)))
}

fn said(error: &Value) -> String {
    let message = error.get("message").and_then(Value::as_str).unwrap_or("no reason was given");
    message.chars().take(limits::MAX_GHIDRA_ERROR_CHARS).collect()
}

fn compatible(missing: Vec<String>) -> Result<(), ToolError> {
    if missing.is_empty() {
        return Ok(());
    }
    Err(ToolError::new(
        ErrorCode::ViceConnectorIncompatible,
        format!("the connector is not of {}: {}", contract::API, missing.join("; ")),
    )
    .hint("use `retroscope vice-connector`, or ghidra-vice-connector with surface revision 2 or higher")
    .detail("missing", missing))
}

fn changed(instance: &str) -> ToolError {
    ToolError::new(
        ErrorCode::ViceConnectorChanged,
        format!("the connector {instance} that was connected to is gone, or another answers in its place"),
    )
    .hint("call vice_disconnect and vice_connect; breakpoints and state are those of the new one")
}
