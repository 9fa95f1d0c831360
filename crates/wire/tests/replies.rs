//! Replies: each is written with its state beside it, and read back the same by a client.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use base::VirtAddr;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Debug;
use wire::commands::*;
use wire::{Bytes, HexAddr, Instruction, Live, State, StopReport, WatchReport, encode_result, parse_reply};

fn stopped() -> Live {
    Live {
        state: State::Stopped,
        status: State::Stopped,
        reason: Some("watchpoint@slot0".into()),
        pc: Some(at(0x40_1234)),
        thread: Some(7),
        generation: 3,
        exit_code: None,
        exit_signal: None,
    }
}

fn at(raw: u64) -> HexAddr {
    HexAddr(VirtAddr::new(raw))
}

fn instruction() -> Instruction {
    Instruction { addr: at(0x40_1230), bytes: "8901".into(), text: "mov [ecx], eax".into(), location: None }
}

fn report() -> StopReport {
    StopReport {
        symbol: Some("update+0x10".into()),
        registers: BTreeMap::from([("eax".into(), "0x1".into())]),
        watchpoints: vec![WatchReport {
            slot: 0,
            addr: at(0x47_eb48),
            size: 4,
            mode: "write".into(),
            old_value: Some("0x2".into()),
            new_value: Some("0x1".into()),
            writer: Some(instruction()),
            candidates: vec![],
            attribution: "exact".into(),
            attribution_note: None,
            hits: 1,
        }],
        notes: vec!["a note".into()],
        ..StopReport::default()
    }
}

/// Goes over the wire and comes back; gives the JSON for a look at it.
fn round_trip<R: Serialize + DeserializeOwned + PartialEq + Debug>(reply: R) -> Value {
    let line = encode_result(&reply, Some(&json!(1)));
    assert!(!line.contains('\n'));
    let value = parse_reply(line.as_bytes()).unwrap();
    assert_eq!(serde_json::from_value::<R>(value.clone()).unwrap(), reply);
    value
}

#[test]
fn every_kind_of_reply_survives_the_wire() {
    let live = stopped();
    round_trip(HelloReply {
        agent: "retroscope-agent".into(),
        version: "0.1.0".into(),
        protocol: 1,
        platform: "linux".into(),
        archs: vec!["x86".into()],
        features: vec![],
        agent_pid: 1,
        on_exit: "detach".into(),
        live: live.clone(),
    });
    round_trip(ProcessReply {
        pid: 1,
        path: "/game".into(),
        arch: "x86".into(),
        attached: false,
        entry: Some(at(1)),
        base: None,
        threads: 1,
        stop: report(),
        live: live.clone(),
    });
    round_trip(EndReply { pid: 1, notes: vec![], live: Live::default() });
    round_trip(StatusReply {
        pid: None,
        path: None,
        arch: None,
        threads: None,
        breakpoint_count: 0,
        watchpoint_count: 0,
        waiting: false,
        debug_output: vec!["loading level 1\n".into()],
        stop: Some(report()),
        live: live.clone(),
    });
    let condition = serde_json::from_value(json!({"register": "ecx", "op": "==", "value": 1})).unwrap();
    let breakpoint = BreakpointInfo {
        addr: None,
        spec: "libgame.so+0x10".into(),
        location: None,
        pending: true,
        condition: Some(condition),
        hits: u64::MAX,
        ignore_count: 2,
        one_shot: true,
    };
    round_trip(BreakpointReply { breakpoint: breakpoint.clone(), breakpoints: vec![at(16)], live: live.clone() });
    round_trip(BreakpointsReply { breakpoints: vec![], list: vec![breakpoint], live: live.clone() });
    let watchpoint = WatchpointInfo {
        slot: 3,
        addr: at(0x47_eb48),
        spec: "state".into(),
        location: Some("state".into()),
        size: 4,
        mode: WatchMode::Readwrite,
        condition: None,
        hits: 0,
        ignore_count: 0,
    };
    let slots = BTreeMap::from([("3".to_owned(), at(0x47_eb48))]);
    round_trip(WatchpointReply {
        slot: 3,
        watchpoint: watchpoint.clone(),
        watchpoints: slots.clone(),
        live: live.clone(),
    });
    round_trip(WatchpointsReply { watchpoints: slots, list: vec![watchpoint], live: live.clone() });
    round_trip(PauseReply { how: "interrupt".into(), stop: Some(report()), live: live.clone() });
    round_trip(StepReply {
        steps: 2,
        timed_out: false,
        trace: vec![instruction()],
        stop: Some(report()),
        live: live.clone(),
    });
    round_trip(WrittenReply { addr: at(1), length: 2, breakpoints_kept: vec![at(1)], live: live.clone() });
    round_trip(RegistersReply {
        registers: BTreeMap::from([("eip".into(), "0x401234".into())]),
        flags: vec!["ZF".into()],
        of_thread: 7,
        live: live.clone(),
    });
    round_trip(ThreadsReply {
        threads: vec![ThreadInfo { thread: 7, name: None, pc: Some(at(1)), location: None, current: true }],
        live: live.clone(),
    });
    round_trip(ModulesReply {
        modules: vec![ModuleInfo {
            name: "game".into(),
            path: "/game".into(),
            base: at(0x40_0000),
            size: 1,
            symbols: 2,
            main: true,
            host: false,
        }],
        live: live.clone(),
    });
    round_trip(DisassemblyReply { instructions: vec![instruction()], ended: None, next: at(2), live: live.clone() });
    round_trip(BacktraceReply {
        frames: vec![Frame { index: 0, pc: at(1), location: None, found_by: "pc".into() }],
        ended: "the stack ends".into(),
        of_thread: 7,
        live: live.clone(),
    });
    round_trip(ScreenshotReply {
        png_base64: Bytes(vec![1]),
        width: 1,
        height: 1,
        title: "Game".into(),
        method: "get_image".into(),
        live,
    });
}

#[test]
fn names_that_scripts_use_stand_where_they_look() {
    let memory = round_trip(MemoryReply { addr: at(0x40_c8e0), length: 2, data: Bytes(vec![0, 1]), live: stopped() });
    assert_eq!(
        memory,
        json!({"addr": "0x40c8e0", "length": 2, "data": "AAE=", "state": "stopped", "status": "stopped",
               "reason": "watchpoint@slot0", "pc": "0x401234", "thread": 7, "generation": 3})
    );
    let exited = Live { state: State::Exited, status: State::Exited, exit_code: Some(-1), ..Live::default() };
    let end = round_trip(StopReply { timed_out: false, stop: None, live: exited });
    assert_eq!(
        end,
        json!({"timed_out": false, "state": "exited", "status": "exited", "generation": 0, "exit_code": -1})
    );
    let stop = round_trip(StopReply { timed_out: false, stop: Some(report()), live: stopped() });
    assert_eq!(stop["stop"]["watchpoints"][0]["writer"]["text"], "mov [ecx], eax");
}

#[test]
fn a_client_may_ignore_what_it_does_not_know() {
    let line =
        br#"{"ok":true,"result":{"pid":1,"state":"running","status":"running","generation":1,"new":2},"later":3}"#;
    let reply: EndReply = serde_json::from_value(parse_reply(line).unwrap()).unwrap();
    assert_eq!((reply.pid, reply.live.state), (1, State::Running));
}
