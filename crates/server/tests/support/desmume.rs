//! A workspace with a ROM, a server's context, and the emulator that its tools start.

use super::nds::{answer, context, tool_call};
use retroscope::context::Context;
use retroscope::errors::ErrorCode;
use retroscope::tools::nds_live::session::EmulatorOptions;
use serde_json::{Value, json};
use std::path::Path;
use tempfile::TempDir;

/// Where the test ROM loads both overlays: their Thumb entry.
pub const OVERLAY: u32 = 0x0210_0000;
/// Where it counts their calls.
pub const COUNTER: u32 = 0x0230_000C;

/// A workspace with a ROM, and a server's context; the emulator ends with it.
pub struct Rig {
    pub folder: TempDir,
    pub context: Context,
}

impl Rig {
    pub fn new(rom: &[u8]) -> Self {
        Self::limited(rom, None)
    }

    /// The same with a longest answer.
    pub fn limited(rom: &[u8], limit: Option<usize>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("game.nds"), rom).unwrap();
        let context = context(folder.path(), limit);
        context.live().configure(EmulatorOptions { watchpoints: true, ..EmulatorOptions::default() });
        Self { folder, context }
    }

    pub async fn try_call(&self, tool: &str, arguments: Value) -> Result<Value, ErrorCode> {
        tool_call(&self.context, tool, arguments).await.map(answer).map_err(|error| error.code)
    }

    pub async fn call(&self, tool: &str, arguments: Value) -> Value {
        let outcome = tool_call(&self.context, tool, arguments).await;
        answer(outcome.unwrap_or_else(|error| panic!("{tool}: {error}")))
    }

    /// Starts the ROM, waits until it is at its entry, and adds the overlays' range.
    pub async fn started(rom: &[u8], more: Value) -> Self {
        let rig = Self::new(rom);
        rig.call("desmume_start", start(&more)).await;
        let ready = rig.call("desmume_wait_for_gdb", json!({"timeoutMs": 30_000})).await;
        assert_eq!((&ready["reachable"], &ready["state"]), (&json!(true), &json!("stopped")), "{ready}");
        let range = json!({"id": "overlays", "label": "both overlays", "start": OVERLAY, "end": OVERLAY + 0x1000,
            "source": "overlay", "defaultMode": "thumb"});
        rig.call("desmume_executable_ranges_replace", json!({"ranges": [range]})).await;
        rig
    }

    pub async fn end(self) {
        let before = self.call("desmume_status", json!({})).await;
        let after = self.call("desmume_stop", json!({})).await;
        assert_eq!(after["running"], false);
        let pid = before["pid"].as_u64().unwrap();
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
        let port = before["metadata"]["arm9GdbPort"].as_u64().unwrap();
        assert!(debug::emulator::port_is_free(u16::try_from(port).unwrap()));
    }
}

pub fn start(more: &Value) -> Value {
    let mut arguments = json!({"rom": "game.nds", "arm9GdbPort": free_port()});
    arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    arguments
}

pub fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

pub fn residencies(told: &Value) -> Vec<&str> {
    told["candidates"].as_array().unwrap().iter().map(|one| one["residency"].as_str().unwrap()).collect()
}
