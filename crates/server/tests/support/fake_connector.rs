//! A stand-in of a VICE connector, made of the contract's own table, and a caller of the tools that is configured for it.

use axum::Router;
use axum::extract::State;
use axum::routing::{get, post};
use debug::vice::contract::{self, DefaultValue, Method};
use retroscope::agent_client::AgentClient;
use retroscope::context::{Context, Facts};
use retroscope::errors::ToolError;
use retroscope::ghidra::{Ghidra, GhidraSettings};
use retroscope::launch_roots::LaunchRoots;
use retroscope::tools::{self, Answer, Picture};
use retroscope::workspace::Workspace;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub const INSTANCE: &str = "0a1b2c3d-0000-4000-8000-0123456789ab";
pub const OTHER: &str = "ffffffff-0000-4000-8000-0123456789ab";

/// What the stand-in says, and what it was asked.
pub struct Said {
    pub discovery: Value,
    pub capabilities: Value,
    pub instance: &'static str,
    /// What it answers to every call, instead of an envelope.
    pub failure: Option<Value>,
    pub asked: Vec<Value>,
    /// What a method answers, other than its name.
    pub results: BTreeMap<&'static str, Value>,
    /// What a method refuses with.
    pub refusals: BTreeMap<&'static str, Value>,
    /// Memory that is read and written, in all banks alike.
    pub memory: Option<Vec<u8>>,
    pub execution: &'static str,
    sequence: u64,
}

pub type Shared = Arc<Mutex<Said>>;

pub fn discovery() -> Value {
    listing(contract::METHODS)
}

/// That of `retroscope vice-connector`, which has more methods than the contract.
pub fn own_discovery() -> Value {
    listing(&[contract::METHODS, contract::EXTENSIONS].concat())
}

fn listing(methods: &[Method]) -> Value {
    let methods = methods.iter().map(|method| {
        let parameters = method.parameters.iter().map(|parameter| {
            let default = match parameter.default {
                DefaultValue::Required => Value::Null,
                DefaultValue::Long(value) => json!(value),
                DefaultValue::Bool(value) => json!(value),
                DefaultValue::String(value) => json!(value),
            };
            json!({"name": parameter.name, "type": parameter.parameter_type.name(), "required": parameter.required(),
                "default_available": !parameter.required(), "default": default})
        });
        json!({"name": method.full_name(), "return_type": "STRING", "parameters": parameters.collect::<Vec<_>>()})
    });
    json!({"ok": true, "target_token": "token-1", "methods": methods.collect::<Vec<_>>()})
}

/// As the contract has it in its section on identity.
pub fn capabilities() -> Value {
    json!({"protocol": "c64.vice", "api_major": 1, "api_minor": 0, "connector_name": "ghidra-vice-connector",
        "connector_version": "0.100.0", "instance_id": INSTANCE, "machine": "c64", "vice_version": "3.7.1.0",
        "binary_monitor_api": 2, "capabilities": contract::CAPABILITIES, "method_namespace": "c64_vice_v1_",
        "surface_revision": 2, "limits": {"response_body_bytes": 16_777_216, "event_history": 1024, "banks": 4096,
        "checkpoints": 4096, "memory_read_bytes": 65_536, "memory_write_bytes": 65_536}})
}

/// What a method answers.
fn result(said: &mut Said, method: &str, arguments: &Value) -> Value {
    if let Some(result) = said.results.get(method) {
        return result.clone();
    }
    let at = |key: &str| usize::try_from(arguments[key].as_u64().unwrap()).unwrap();
    match (method, &mut said.memory) {
        ("capabilities", _) => said.capabilities.clone(),
        ("status", _) => json!({"pc": 0xE5CF, "event_sequence": 3}),
        ("list_banks", Some(_)) => {
            let named = |(id, name): (u8, &str)| json!({"id": id, "name": name});
            let banks = [(0, "default"), (0, "cpu"), (1, "ram"), (2, "rom"), (3, "io")].map(named);
            json!({ "banks": banks })
        }
        ("read_memory", Some(memory)) => {
            let end = at("end").min(at("start") + at("max_bytes") - 1);
            json!({"bytes": c64::to_hex(&memory[at("start")..=end])})
        }
        ("write_memory", Some(memory)) => {
            let bytes = c64::from_hex("data", arguments["data"]["data"].as_str().unwrap()).unwrap();
            memory[at("start")..at("start") + bytes.len()].copy_from_slice(&bytes);
            json!({"byte_count": bytes.len()})
        }
        _ => json!({"method": method}),
    }
}

async fn invoke(State(said): State<Shared>, body: String) -> String {
    let body: Value = serde_json::from_str(&body).unwrap();
    let mut said = said.lock().unwrap();
    let full = body["method"].as_str().unwrap().to_owned();
    let arguments = body["arguments"].clone();
    said.asked.push(body);
    if let Some(failure) = &said.failure {
        return failure.to_string();
    }
    said.sequence += 1;
    let method = full.strip_prefix("c64_vice_v1_").unwrap();
    let mut envelope = json!({"api": "c64.vice/1", "ok": true, "command_sequence": said.sequence,
        "instance_id": said.instance, "connection_state": "connected", "execution_state": said.execution});
    if let Some(error) = said.refusals.get(method) {
        (envelope["ok"], envelope["error"]) = (json!(false), error.clone());
    } else {
        envelope["result"] = result(&mut said, method, &arguments);
    }
    json!({"ok": true, "method": full, "result": envelope.to_string()}).to_string()
}

pub struct Caller {
    pub context: Context,
    pub said: Shared,
    pub folder: tempfile::TempDir,
}

impl Caller {
    pub async fn start() -> Self {
        Self::with_ghidra("http://127.0.0.1:1").await
    }

    /// With Ghidra at this address; nothing listens on port 1.
    pub async fn with_ghidra(ghidra: &str) -> Self {
        let said = Said {
            discovery: discovery(),
            capabilities: capabilities(),
            instance: INSTANCE,
            failure: None,
            asked: Vec::new(),
            results: BTreeMap::new(),
            refusals: BTreeMap::new(),
            memory: None,
            execution: "stopped",
            sequence: 0,
        };
        let said = Arc::new(Mutex::new(said));
        let discover = |State(said): State<Shared>| async move { said.lock().unwrap().discovery.to_string() };
        let routes = Router::new()
            .route("/debugger/target_methods", get(discover))
            .route("/debugger/invoke_target_method", post(invoke))
            .with_state(Arc::clone(&said));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        let agent = AgentClient::new("", Duration::ZERO);
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(&folder.path().canonicalize().unwrap()).unwrap();
        let context = Context::new(agent, None, Some(workspace), LaunchRoots::default(), Facts::default());
        let variable = |name: &str| (name == "GHIDRA_MCP_URL").then(|| ghidra.to_owned());
        let context = context.with_ghidra(Ghidra::new(GhidraSettings::resolve(&variable).unwrap()));
        let variable = |name: &str| (name == "RETROSCOPE_VICE_URL").then(|| url.clone());
        context.vice().configure(GhidraSettings::of_vice(&variable).unwrap());
        Self { context, said, folder }
    }

    /// One that is connected, with this memory and the methods of our own connector.
    pub async fn connected(memory: Vec<u8>) -> Self {
        let caller = Self::start().await;
        {
            let mut said = caller.said.lock().unwrap();
            said.discovery = own_discovery();
            said.memory = Some(memory);
        }
        assert_eq!(caller.call("vice_connect", json!({})).await["ok"], true);
        caller
    }

    /// Changes what the stand-in says.
    pub fn change(&self, change: impl FnOnce(&mut Said)) {
        change(&mut self.said.lock().unwrap());
    }

    /// The arguments of every call of a method, oldest first.
    pub fn asked(&self, method: &str) -> Vec<Value> {
        let said = self.said.lock().unwrap();
        let of = |body: &&Value| body["method"].as_str().unwrap().ends_with(&format!("v1_{method}"));
        said.asked.iter().filter(of).map(|body| body["arguments"].clone()).collect()
    }

    async fn answer(&self, tool: &str, arguments: Value) -> Result<Answer, ToolError> {
        let arguments = arguments.as_object().unwrap().clone();
        tools::find(tool).unwrap().call(&self.context, arguments).await
    }

    pub async fn call(&self, tool: &str, arguments: Value) -> Value {
        match self.answer(tool, arguments).await.unwrap() {
            Answer::Data(data) => data,
            other => panic!("{other:?}"),
        }
    }

    pub async fn picture(&self, tool: &str, arguments: Value) -> Picture {
        match self.answer(tool, arguments).await.unwrap() {
            Answer::Picture(picture) => picture,
            other => panic!("{other:?}"),
        }
    }

    pub async fn refused(&self, tool: &str, arguments: Value) -> ToolError {
        match self.answer(tool, arguments).await {
            Err(error) => error,
            Ok(answer) => panic!("{tool}: {answer:?}"),
        }
    }
}
