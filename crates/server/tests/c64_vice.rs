//! The tools of VICE against a stand-in of the connector, which is made of the contract's own table.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

mod support;

use serde_json::json;
use support::fake_connector::{Caller, OTHER, Said, capabilities, discovery};

#[tokio::test]
async fn a_connector_is_bound_kept_and_let_go() {
    let caller = Caller::start().await;
    let early = caller.call("vice_read_memory", json!({"bank_id": 0, "start": 0, "end": 1})).await;
    assert_eq!((&early["ok"], &early["error"]["code"]), (&json!(false), &json!("vice_not_connected")));
    assert_eq!(caller.call("vice_status", json!({})).await["state"], "unbound");
    let first = caller.call("vice_connect", json!({})).await;
    assert_eq!((&first["ok"], &first["idempotent"], &first["generation"]), (&json!(true), &json!(false), &json!(1)));
    assert_eq!((&first["state"], &first["last_pc"]), (&json!("stopped"), &json!(0xE5CF)));
    let second = caller.call("vice_connect", json!({})).await;
    assert_eq!((&second["idempotent"], &second["generation"]), (&json!(true), &json!(1)));
    assert_eq!(caller.call("vice_disconnect", json!({})).await["released"], true);
    assert_eq!(caller.call("vice_disconnect", json!({})).await["released"], false);
}

#[tokio::test]
async fn each_tool_asks_as_the_contract_has_it() {
    let caller = Caller::start().await;
    caller.call("vice_connect", json!({})).await;
    for (tool, given, asked) in [
        ("vice_get_registers", json!({}), json!({"names": [], "memspace": 0})),
        ("vice_set_registers", json!({"values": {"A": 7}}), json!({"names": ["A"], "values": [7], "memspace": 0})),
        ("vice_list_banks", json!({}), json!({})),
        (
            "vice_read_memory",
            json!({"bank_id": 1, "start": 1024, "end": 2023}),
            json!({"bank_id": 1, "start": 1024, "end": 2023, "side_effects": false, "max_bytes": 4096, "memspace": 0}),
        ),
        (
            "vice_write_memory",
            json!({"bank_id": 1, "start": 1024, "bytes": "0x0aff"}),
            json!({"bank_id": 1, "start": 1024, "data": {"encoding": "hex", "data": "0aff"}, "side_effects": false,
                "memspace": 0}),
        ),
        ("vice_list_checkpoints", json!({}), json!({})),
        (
            "vice_set_checkpoint",
            json!({"start": 2064, "end": 2064}),
            json!({"start": 2064, "end": 2064, "stop_on_hit": true, "enabled": true, "operations": 4,
                "temporary": false, "memspace": 0}),
        ),
        ("vice_delete_checkpoint", json!({"number": 2}), json!({"number": 2})),
        ("vice_toggle_checkpoint", json!({"number": 2, "enabled": false}), json!({"number": 2, "enabled": false})),
        ("vice_step", json!({}), json!({"count": 1})),
        ("vice_next", json!({"count": 5}), json!({"count": 5})),
        ("vice_finish", json!({}), json!({})),
        ("vice_resume", json!({}), json!({})),
        ("vice_interrupt", json!({}), json!({})),
        ("vice_wait_for_stop", json!({"after_sequence": 9, "timeout_ms": 10_000}), json!({"after_sequence": 9})),
        ("vice_reset", json!({"kind": "drive8"}), json!({"kind": "drive8"})),
    ] {
        let answer = caller.call(tool, given).await;
        assert_eq!(answer["result"]["method"], tool.strip_prefix("vice_").unwrap());
        let body = caller.said.lock().unwrap().asked.last().unwrap().clone();
        let mut asked = asked;
        asked["process"] = json!({"object_path": "C64"});
        asked["timeout_ms"] = json!(10_000);
        assert_eq!(body["arguments"], asked, "{tool}");
        // The layer above the connector waits 5 s longer.
        assert_eq!((&body["target_token"], &body["timeout_ms"]), (&json!("token-1"), &json!(15_000)), "{tool}");
    }
}

#[tokio::test]
async fn what_a_connector_lacks_is_named() {
    let caller = Caller::start().await;
    let refused = async |what: &str| {
        let answer = caller.call("vice_connect", json!({})).await;
        assert_eq!(answer["error"]["code"], "vice_connector_incompatible", "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(what), "{answer}");
    };
    let change = |change: &dyn Fn(&mut Said)| {
        let mut said = caller.said.lock().unwrap();
        (said.discovery, said.capabilities) = (discovery(), capabilities());
        change(&mut said);
    };
    change(&|said| said.discovery["methods"][5]["name"] = json!("other"));
    refused("c64_vice_v1_read_memory is listed 0 times").await;
    change(&|said| said.discovery["methods"][2]["parameters"][2]["default"] = json!(1));
    refused("c64_vice_v1_get_registers has no parameter memspace of type LONG").await;
    change(&|said| said.discovery["methods"][0]["return_type"] = json!("LONG"));
    refused("c64_vice_v1_capabilities does not return STRING").await;
    change(&|said| said.capabilities["surface_revision"] = json!(1));
    refused("surface_revision is 1").await;
    change(&|said| said.capabilities["machine"] = json!("vic20"));
    refused("machine is \"vic20\"").await;
    change(&|said| said.capabilities["capabilities"][17] = json!("x"));
    refused("display.capture is listed 0 times").await;
    change(&|said| said.capabilities["limits"]["banks"] = json!(4095));
    refused("the limit banks is below 4096").await;
    change(&|said| said.capabilities["instance_id"] = json!("ABC"));
    refused("instance_id").await;
    change(&|said| said.discovery = json!({"ok": false, "error": {"code": "no_target", "message": "no trace"}}));
    let answer = caller.call("vice_connect", json!({})).await;
    assert_eq!(answer["error"]["code"], "vice_connector_unavailable");
    assert!(answer["error"]["message"].as_str().unwrap().contains("no trace"));
}

#[tokio::test]
async fn another_instance_makes_the_connection_stale() {
    let caller = Caller::start().await;
    caller.call("vice_connect", json!({})).await;
    caller.said.lock().unwrap().instance = OTHER;
    assert_eq!(caller.call("vice_step", json!({})).await["error"]["code"], "vice_connector_changed");
    assert_eq!(caller.call("vice_status", json!({})).await["state"], "stale");
    let asked = caller.said.lock().unwrap().asked.len();
    assert_eq!(caller.call("vice_step", json!({})).await["error"]["code"], "vice_connector_changed");
    // A stale connection asks nobody.
    assert_eq!(caller.said.lock().unwrap().asked.len(), asked);
}

#[tokio::test]
async fn another_connector_is_not_taken_for_the_one_that_is_connected() {
    let caller = Caller::start().await;
    caller.call("vice_connect", json!({})).await;
    caller.change(|said| (said.instance, said.capabilities["instance_id"]) = (OTHER, json!(OTHER)));
    let refused = caller.call("vice_connect", json!({})).await;
    assert_eq!(refused["error"]["code"], "vice_binding_conflict", "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains(OTHER), "{refused}");
    assert_eq!(caller.call("vice_status", json!({})).await["state"], "stale");
    let again = caller.call("vice_connect", json!({})).await;
    assert_eq!((&again["ok"], &again["instance_id"], &again["generation"]), (&json!(true), &json!(OTHER), &json!(2)));
}

#[tokio::test]
async fn a_failed_call_says_what_may_have_changed() {
    let caller = Caller::start().await;
    caller.call("vice_connect", json!({})).await;
    caller.said.lock().unwrap().failure = Some(
        json!({"ok": false, "error": {"code": "invocation_timeout", "message": "too slow"}, "outcome_unknown": true}),
    );
    let answer = caller.call("vice_write_memory", json!({"bank_id": 0, "start": 0, "bytes": [1]})).await;
    assert_eq!(answer["error"]["code"], "vice_target_method_timeout");
    assert_eq!(answer["error"]["vice_memory_may_be_modified"], true);
    assert_eq!(answer["error"]["timeout_layer"], "generic");
    let long = caller.call("vice_step", json!({"timeout_ms": 55_001})).await;
    assert_eq!(long["error"]["code"], "vice_invalid_argument");
    assert_eq!(long["error"]["vice_state_may_have_changed"], false);
}
