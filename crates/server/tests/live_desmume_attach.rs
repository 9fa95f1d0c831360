//! The tools on a DeSmuME that somebody else started: found stopped, running, and with what others left in its stub.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

mod support;

use debug::emulator::{Emulator, Launch, find_launcher, headless, port_is_free};
use debug::gdb_remote::{Driver, Error, Request};
use retroscope::errors::ErrorCode;
use retroscope::tools::nds_live::session::EmulatorOptions;
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};
use support::desmume::{COUNTER, OVERLAY, Rig, free_port};
use support::nds::ROM;

/// An emulator of somebody else's, and tools that are configured to attach to it.
struct Attached {
    rig: Rig,
    theirs: Emulator,
    address: SocketAddr,
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

impl Attached {
    /// The program is loaded and stopped at its entry, and nobody is connected.
    fn new() -> Self {
        let rig = Rig::new(ROM);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        let launch = Launch {
            launcher: find_launcher(Path::new("desmume-cli")).expect("desmume is not installed: cargo xtask install"),
            rom: rig.folder.path().join("game.nds"),
            arm9_port: address.port(),
            arm7_port: None,
            home: rig.folder.path().to_owned(),
            environment: headless(),
        };
        let theirs = launch.start().unwrap();
        let attached = Self { rig, theirs, address };
        let until = soon();
        // pc is the 16th word, little-endian; the entry is 0x02000000.
        while attached.raw(&[b"g"]).is_none_or(|told| told[0][120..128] != *b"00000002") {
            assert!(Instant::now() < until, "the program was not loaded");
            std::thread::sleep(Duration::from_millis(20));
        }
        let options = EmulatorOptions { gdb: Some(address), watchpoints: true, ..EmulatorOptions::default() };
        attached.rig.context.live().configure(options);
        attached
    }

    /// Connects as another client would, whatever the program does, and says whether the stub refuses questions: the program runs.
    fn visit(&self) -> Option<(Driver, bool)> {
        let until = soon();
        loop {
            let mut driver = Driver::connect(self.address, soon()).ok()?;
            match driver.exchange(Request::change(b"?".to_vec()), soon()) {
                Ok(_) => return Some((driver, false)),
                Err(Error::Refused { .. }) => return Some((driver, true)),
                // The client before has just left.
                Err(error) => assert!(Instant::now() < until, "{error}"),
            }
        }
    }

    /// The answers to packets; `None` when the stub is not there yet.
    fn raw(&self, packets: &[&[u8]]) -> Option<Vec<Vec<u8>>> {
        let (mut driver, _) = self.visit().filter(|(_, running)| !running)?;
        let one = |packet: &&[u8]| driver.exchange(Request::change(packet.to_vec()), soon()).unwrap();
        Some(packets.iter().map(one).collect())
    }

    /// Makes the program run and leaves, as another client may.
    fn leave_running(&self) {
        let (mut driver, running) = self.visit().unwrap();
        assert!(!running);
        driver.resume(b"c".to_vec(), soon()).unwrap();
        assert!(driver.wait_for_stop(Instant::now() + Duration::from_millis(100)).unwrap().is_none());
        drop(driver);
        assert!(self.visit().unwrap().1);
    }

    async fn attach(&self) -> Value {
        let started = self.rig.call("desmume_start", json!({"rom": "game.nds"})).await;
        assert_eq!((&started["metadata"]["emulator"], &started["pid"]), (&json!("attached"), &Value::Null));
        let ready = self.rig.call("desmume_wait_for_gdb", json!({"timeoutMs": 30_000})).await;
        assert_eq!((&ready["reachable"], &ready["port"]), (&json!(true), &json!(self.address.port())), "{ready}");
        assert_eq!((&ready["state"], &ready["reason"]), (&json!("stopped"), &json!("attached")), "{ready}");
        ready
    }

    async fn add_overlays(&self) {
        let range = json!({"id": "overlays", "label": "both overlays", "start": OVERLAY, "end": OVERLAY + 0x1000,
            "source": "overlay", "defaultMode": "thumb"});
        self.rig.call("desmume_executable_ranges_replace", json!({"ranges": [range]})).await;
    }

    /// Lets it go, and proves that it was left alone, before it is ended by who started it.
    async fn end(mut self) {
        let told = self.rig.call("desmume_stop", json!({})).await;
        assert_eq!((&told["running"], &told["state"]), (&json!(false), &json!("unavailable")), "{told}");
        assert_eq!(self.theirs.exit(), None, "it was not ours to end");
        self.theirs.stop();
        assert!(port_is_free(self.address.port()));
    }
}

#[tokio::test]
async fn a_stopped_program_is_taken_over_debugged_and_left_without_our_points() {
    let attached = Attached::new();
    let rig = &attached.rig;
    let ready = attached.attach().await;
    assert_eq!((&ready["pc"], &ready["features"]), (&json!(0x0200_0000), &json!({})));
    attached.add_overlays().await;
    rig.call("desmume_breakpoint_add", json!({"address": OVERLAY, "mode": "auto"})).await;
    for round in 0..4 {
        let run = rig.call("desmume_continue", json!({"timeoutMs": 30_000})).await;
        assert_eq!((&run["reason"], &run["matchedBreakpoint"]["id"]), (&json!("breakpoint"), &json!("bp-1")));
        let told = rig.call("nds_correlate_stop_context", json!({})).await;
        let resident = &told["candidates"][round % 2];
        assert_eq!((&resident["canonical"]["overlayId"], &resident["residency"]), (&json!(round % 2), &json!("match")));
    }
    let second = rig.try_call("desmume_start", json!({"rom": "game.nds"})).await;
    assert_eq!(second.unwrap_err(), ErrorCode::EmulatorRunning);
    rig.call("desmume_stop", json!({})).await;
    // Left stopped, and with nothing planted: it runs now, past the place that it comes to every few milliseconds.
    attached.leave_running();
    std::thread::sleep(Duration::from_millis(300));
    assert!(attached.visit().unwrap().1);
    attached.end().await;
}

#[tokio::test]
async fn a_running_program_is_stopped_to_attach_and_left_running() {
    let attached = Attached::new();
    let rig = &attached.rig;
    attached.leave_running();
    let first = attached.attach().await;
    attached.add_overlays().await;
    rig.call("desmume_watchpoint_add", json!({"address": COUNTER})).await;
    rig.call("desmume_breakpoint_add", json!({"address": OVERLAY, "mode": "auto"})).await;
    let mut reasons = Vec::new();
    for _ in 0..4 {
        reasons.push(rig.call("desmume_continue", json!({"timeoutMs": 30_000})).await["reason"].clone());
    }
    // The count is written after each call.
    let turns = [json!("breakpoint"), json!("watchpoint")];
    assert!(reasons.windows(2).all(|two| two[0] != two[1] && turns.contains(&two[0])), "{reasons:?}");
    // A moment between two stops: the breakpoint alone is too far for this time.
    for (tool, id) in [("desmume_breakpoint_remove", "bp-1"), ("desmume_watchpoint_remove", "wp-1")] {
        rig.call(tool, json!({"id": id})).await;
    }
    rig.call("desmume_watchpoint_add", json!({"address": 0x0000_4000})).await;
    let run = rig.call("desmume_continue", json!({"timeoutMs": 100})).await;
    assert_eq!(run["state"], "running", "{run}");
    rig.call("desmume_stop", json!({})).await;
    assert!(attached.visit().unwrap().1, "it ran, and runs on");
    // And again, by the same server.
    let again = attached.attach().await;
    assert_eq!(again["generation"], first["generation"].as_u64().unwrap() + 1);
    attached.end().await;
}

#[tokio::test]
async fn what_another_client_left_is_told_apart_and_replaced() {
    let attached = Attached::new();
    let rig = &attached.rig;
    assert_eq!(attached.raw(&[b"Z0,2100000,2"]).unwrap(), [b"OK"]);
    attached.attach().await;
    attached.add_overlays().await;
    let run = rig.call("desmume_continue", json!({"timeoutMs": 30_000})).await;
    assert_eq!((&run["reason"], &run["pc"]), (&json!("trap"), &json!(OVERLAY)));
    assert_eq!(run["matchedBreakpoint"], Value::Null);
    // The stub counts: with theirs still there, one removal would not be enough.
    rig.call("desmume_breakpoint_add", json!({"address": OVERLAY, "mode": "auto"})).await;
    let run = rig.call("desmume_continue", json!({"timeoutMs": 30_000})).await;
    assert_eq!(run["matchedBreakpoint"]["id"], "bp-1", "{run}");
    rig.call("desmume_breakpoint_remove", json!({"id": "bp-1"})).await;
    let run = rig.call("desmume_continue", json!({"timeoutMs": 300})).await;
    assert_eq!(run["kind"], "timeout", "{run}");
    attached.end().await;
}

#[tokio::test]
async fn an_attached_emulator_that_ends_is_noticed_and_one_that_is_not_there_too() {
    let mut attached = Attached::new();
    attached.attach().await;
    attached.theirs.stop();
    let rig = &attached.rig;
    let lost = rig.try_call("desmume_read_register_packet", json!({})).await.unwrap_err();
    assert_eq!(lost, ErrorCode::GdbConnectionLost);
    let gone = rig.try_call("desmume_read_register_packet", json!({})).await.unwrap_err();
    assert_eq!(gone, ErrorCode::EmulatorNotReady);
    let probed = rig.call("desmume_probe_gdb", json!({})).await;
    assert_eq!(probed["reachable"], false, "{probed}");
    rig.call("desmume_stop", json!({})).await;
    rig.call("desmume_start", json!({"rom": "game.nds"})).await;
    let probed = rig.call("desmume_wait_for_gdb", json!({"timeoutMs": 200})).await;
    assert!(probed["error"].as_str().unwrap().contains(&attached.address.to_string()), "{probed}");
    assert_eq!(rig.call("desmume_stop", json!({})).await["running"], false);
}
