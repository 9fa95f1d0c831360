//! The tools of VICE that make several calls: what they ask of the connector, in which order, and what they refuse.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

mod support;

use serde_json::{Value, json};
use support::fake_connector::{Caller, discovery};

/// Memory that holds these bytes, zeros around them.
fn memory(parts: &[(usize, &[u8])]) -> Vec<u8> {
    let mut memory = vec![0; 0x1_0000];
    for (at, bytes) in parts {
        memory[*at..at + bytes.len()].copy_from_slice(bytes);
    }
    memory
}

/// The methods that were called, without those of connecting.
fn methods(caller: &Caller) -> Vec<String> {
    let said = caller.said.lock().unwrap();
    let names = said.asked.iter().map(|body| body["method"].as_str().unwrap().rsplit_once("v1_").unwrap().1.to_owned());
    names.filter(|name| !["capabilities", "status"].contains(&name.as_str())).collect()
}

async fn refused(caller: &Caller, tool: &str, arguments: Value) -> (String, String) {
    let told = caller.call(tool, arguments).await;
    assert_eq!(told["ok"], false, "{told}");
    let text = |key: &str| told["error"][key].as_str().unwrap_or_default().to_owned();
    (text("code"), format!("{} {}", text("message"), text("guidance")))
}

#[tokio::test]
async fn a_condition_is_there_before_the_checkpoint_can_be_hit() {
    let caller = Caller::connected(memory(&[])).await;
    caller.change(|said| {
        said.results.insert("set_checkpoint", json!({"checkpoint": {"number": 7, "enabled": false}}));
        let listed = [json!({"number": 6}), json!({"number": 7, "enabled": true, "has_condition": true})];
        said.results.insert("list_checkpoints", json!({ "checkpoints": listed }));
    });
    let given = json!({"start": 2064, "end": 2064, "condition": "A == $05"});
    let told = caller.call("vice_set_checkpoint", given.clone()).await;
    assert_eq!(told["result"]["checkpoint"], json!({"number": 7, "enabled": true, "has_condition": true}), "{told}");
    assert_eq!(told["result"]["condition"], "A == $05");
    assert_eq!(methods(&caller), ["set_checkpoint", "set_condition", "toggle_checkpoint", "list_checkpoints"]);
    assert_eq!(caller.asked("set_checkpoint")[0]["enabled"], false);
    let condition = &caller.asked("set_condition")[0];
    assert_eq!((&condition["number"], &condition["expression"]), (&json!(7), &json!("A == $05")));
    let toggled = &caller.asked("toggle_checkpoint")[0];
    assert_eq!((&toggled["number"], &toggled["enabled"]), (&json!(7), &json!(true)));
    // One that is to be off stays off.
    let mut off = given.clone();
    off["enabled"] = json!(false);
    caller.call("vice_set_checkpoint", off).await;
    assert_eq!(caller.asked("toggle_checkpoint").len(), 1);

    // A condition that VICE does not take leaves nothing behind.
    let refusal = json!({"code": "vice_command_failed", "message": "VICE returned error 0x8F"});
    caller.change(|said| drop(said.refusals.insert("set_condition", refusal)));
    let told = caller.call("vice_set_checkpoint", given.clone()).await;
    assert_eq!((&told["ok"], &told["error"]["code"]), (&json!(false), &json!("vice_command_failed")));
    assert_eq!(told["error"]["vice_checkpoints_may_have_changed"], false);
    assert_eq!(caller.asked("delete_checkpoint")[0]["number"], 7);
    let gone = json!({"code": "vice_connection_lost", "message": "VICE is gone"});
    caller.change(|said| drop(said.refusals.insert("delete_checkpoint", gone)));
    let told = caller.call("vice_set_checkpoint", given.clone()).await;
    assert_eq!(told["error"]["vice_checkpoints_may_have_changed"], true, "{told}");

    // A connector of the contract alone is asked for nothing.
    caller.change(|said| said.discovery = discovery());
    caller.call("vice_connect", json!({})).await;
    let before = methods(&caller).len();
    let (code, words) = refused(&caller, "vice_set_checkpoint", given).await;
    assert_eq!((code.as_str(), methods(&caller).len()), ("vice_connector_incompatible", before), "{words}");
    let (code, _) = refused(&caller, "vice_feed_keyboard", json!({"text": "x"})).await;
    assert_eq!(code, "vice_connector_incompatible");
}

#[tokio::test]
async fn keys_are_sent_as_petscii() {
    let caller = Caller::connected(memory(&[])).await;
    let told = caller.call("vice_feed_keyboard", json!({"text": "run{clr}\n"})).await;
    assert_eq!((&told["result"]["fed"], &told["result"]["keys"]), (&json!(5), &json!("52554e930d")));
    assert_eq!(caller.asked("feed_keyboard")[0]["text"], json!({"encoding": "hex", "data": "52554e930d"}));
    for (text, words) in [("", "nothing to type"), ("\u{e9}", "no key types"), ("{x}", "is no key")] {
        let (code, message) = refused(&caller, "vice_feed_keyboard", json!({"text": text})).await;
        assert_eq!((code.as_str(), message.contains(words)), ("vice_invalid_argument", true), "{message}");
    }
    assert_eq!(caller.asked("feed_keyboard").len(), 1);
}

#[tokio::test]
async fn memory_is_searched_for_bytes_and_text() {
    let caller = Caller::connected(memory(&[(0x1000, &[0xA9, 1, 0x8D, 0xA9, 2, 0x8D]), (0x0400, &[8, 5, 25])])).await;
    let search = async |arguments: Value| caller.call("vice_search_memory", arguments).await["result"].clone();
    let addresses = |told: &Value| -> Vec<u64> {
        told["matches"].as_array().unwrap().iter().map(|one| one["address"].as_u64().unwrap()).collect()
    };
    let told = search(json!({"pattern": "A9??8d"})).await;
    assert_eq!(
        (addresses(&told), &told["found"], &told["truncated"]),
        (vec![0x1000, 0x1003], &json!(2), &json!(false))
    );
    assert_eq!(told["matches"][0], json!({"bank_id": 0, "address": 0x1000, "address_display": "$1000"}));
    // What begins at the last address that a range has room for is found, what would end behind it is not.
    assert_eq!(addresses(&search(json!({"pattern": "a9 ?? 8d", "start": 0x1001, "end": 0x1005})).await), [0x1003]);
    assert_eq!(search(json!({"pattern": "a9 ?? 8d", "start": 0x1001, "end": 0x1004})).await["found"], 0);
    // HEY in screen codes: 8, 5, 25.
    let text = json!({"text": "HEY", "encoding": "screen_code_upper", "bank_ids": [1, 3], "max_results": 1});
    let told = search(text).await;
    assert_eq!((addresses(&told), &told["found"], &told["truncated"]), (vec![0x0400], &json!(2), &json!(true)));
    assert_eq!(told["banks"], json!([1, 3]));
    for (arguments, words) in [
        (json!({}), "either pattern or text"),
        (json!({"pattern": "a9", "text": "x"}), "either pattern or text"),
        (json!({"pattern": "a"}), "pairs of hexadecimal digits"),
        (json!({"pattern": "+9"}), "pairs of hexadecimal digits"),
        (json!({"pattern": "?? ??"}), "one must be known"),
        (json!({"pattern": ""}), "1 to 256"),
        (json!({"pattern": "00".repeat(257)}), "257 bytes"),
        (json!({"text": "\u{e9}"}), "the encoding has no"),
        (json!({"pattern": "a9", "start": 2, "end": 1}), "lies before start"),
        (json!({"pattern": "a9", "bank_ids": []}), "0 banks"),
        (json!({"pattern": "a9", "bank_ids": vec![1; 9]}), "9 banks"),
        (json!({"pattern": "a9", "max_results": 0}), "max_results"),
        (json!({"pattern": "a9", "timeout_ms": 0}), "timeout_ms"),
    ] {
        let (code, message) = refused(&caller, "vice_search_memory", arguments).await;
        assert_eq!((code.as_str(), message.contains(words)), ("vice_invalid_argument", true), "{words}: {message}");
    }
    caller.change(|said| drop(said.results.insert("list_banks", json!({"banks": []}))));
    let (code, message) = refused(&caller, "vice_search_memory", json!({"pattern": "a9"})).await;
    assert_eq!((code.as_str(), message.contains("no bank `cpu`")), ("vice_read_failed", true));
}

#[tokio::test]
async fn code_is_shown_to_the_end_of_memory_and_no_further() {
    let caller =
        Caller::connected(memory(&[(0xC000, &[0x20, 0xD2, 0xFF, 0x07, 0x12]), (0xFFFD, &[0xEA, 0xAD, 0x20])])).await;
    let told = caller.call("vice_disassemble", json!({"start": 0xC000, "count": 2})).await["result"].clone();
    let lines = told["instructions"].as_array().unwrap();
    // $FFD2 is CHROUT (Programmer's Reference Guide, the user callable KERNAL routines).
    assert_eq!((&lines[0]["text"], &lines[0]["target"]), (&json!("jsr CHROUT"), &json!(0xFFD2)), "{told}");
    assert_eq!((&lines[1]["text"], &lines[1]["documented"]), (&json!("slo $12"), &json!(false)));
    assert_eq!((&told["next_address"], &told["note"], lines.len()), (&json!(0xC005), &Value::Null, 2));
    let told = caller.call("vice_disassemble", json!({"start": 0xFFFD, "bank_id": 2})).await["result"].clone();
    assert_eq!(told["instructions"].as_array().unwrap().len(), 1);
    assert_eq!(told["next_address"], 0xFFFE);
    assert!(told["note"].as_str().unwrap().contains("the last 2 bytes before $FFFF"), "{told}");
    let asked = caller.asked("read_memory");
    let last = asked.last().unwrap();
    assert_eq!((&last["bank_id"], &last["start"], &last["end"]), (&json!(2), &json!(0xFFFD), &json!(0xFFFF)));
    caller.change(|said| said.memory.as_mut().unwrap()[0xFFFE..].copy_from_slice(&[0xEA, 0xEA]));
    let told = caller.call("vice_disassemble", json!({"start": 0xFFFE})).await["result"].clone();
    assert_eq!((&told["next_address"], &told["note"]), (&Value::Null, &json!("memory ends at $FFFF")));
    let (code, _) = refused(&caller, "vice_disassemble", json!({"start": 0, "count": 1_025})).await;
    assert_eq!(code, "vice_invalid_argument");
}

#[tokio::test]
async fn the_screen_is_read_where_the_registers_say() {
    // Bank 3 by $DD00, screen 3 * 1 KiB and characters 1 * 2 KiB in it by $D018; HI with a reversed I.
    let parts: [(usize, &[u8]); 6] = [
        (0xD011, &[0x1B]),
        (0xD016, &[0xC8]),
        (0xD018, &[0x32]),
        (0xDD00, &[0x94, 0, 0x3F]),
        (0xCC00, &[8, 0x89]),
        (0xCC28, &[0x20; 40]),
    ];
    let caller = Caller::connected(memory(&parts)).await;
    let read = async |arguments: Value| caller.call("vice_read_screen", arguments).await["result"].clone();
    let told = read(json!({})).await;
    // A code of 0 is the sign @.
    assert_eq!((&told["lines"][0], &told["lines"][1]), (&json!(format!("HI{}", "@".repeat(38))), &json!("")), "{told}");
    assert_eq!((&told["reversed_in_line"][0], &told["reversed_in_line"][1]), (&json!(1), &json!(0)));
    assert_eq!((&told["screen"], &told["charset"], &told["vic_bank"]), (&json!(0xCC00), &json!(0xC800), &json!(3)));
    assert_eq!((&told["charset_in_rom"], &told["mode"]), (&json!(false), &json!("text")));
    assert!(told["note"].as_str().unwrap().contains("drawn from RAM"));
    assert_eq!(told["encoding"], "screen_code_upper");
    let forced = read(json!({"encoding": "screen_code_lower", "screen": 0xCC01})).await;
    assert!(forced["lines"][0].as_str().unwrap().starts_with("i@"), "{forced}");
    // The second set of the ROM, which bank 0 has at $1800.
    caller.change(|said| {
        let memory = said.memory.as_mut().unwrap();
        (memory[0xD018], memory[0xDD00], memory[0x0C00]) = (0x37, 0x97, 8);
    });
    let second = read(json!({})).await;
    assert_eq!((&second["encoding"], &second["note"]), (&json!("screen_code_lower"), &Value::Null));
    assert!(second["lines"][0].as_str().unwrap().starts_with("h@"), "{second}");
    caller.change(|said| {
        let memory = said.memory.as_mut().unwrap();
        (memory[0xD018], memory[0xDD00]) = (0x32, 0x94);
    });
    let asked: Vec<(Value, Value)> =
        caller.asked("read_memory").iter().map(|one| (one["bank_id"].clone(), one["side_effects"].clone())).collect();
    // Registers from the bank `io`, the screen from `ram`.
    assert_eq!(asked[..3], [(json!(3), json!(false)), (json!(3), json!(false)), (json!(1), json!(false))]);
    caller.change(|said| said.memory.as_mut().unwrap()[0xD011] = 0x5B);
    let told = read(json!({})).await;
    assert_eq!((&told["mode"], &told["reversed_in_line"][0]), (&json!("extended color text"), &json!(0)));
    caller.change(|said| said.memory.as_mut().unwrap()[0xD011] = 0x3B);
    let (code, message) = refused(&caller, "vice_read_screen", json!({})).await;
    assert_eq!((code.as_str(), message.contains("a bitmap, at $C000")), ("vice_read_failed", true), "{message}");
    assert_eq!(read(json!({"screen": 0x0400})).await["mode"], "bitmap");
    let (code, _) = refused(&caller, "vice_read_screen", json!({"screen": 0xFFFF})).await;
    assert_eq!(code, "vice_invalid_argument");
}

#[tokio::test]
async fn a_program_is_loaded_and_read_back() {
    let caller = Caller::connected(memory(&[])).await;
    let file = |name: &str, bytes: &[u8]| std::fs::write(caller.folder.path().join(name), bytes).unwrap();
    file("a.prg", &[0x00, 0xC0, 1, 2, 3]);
    let told = caller.call("vice_load_prg", json!({"path": "a.prg", "run_from": 0xC001})).await["result"].clone();
    assert_eq!(
        (&told["start"], &told["end"], &told["byte_count"]),
        (&json!(0xC000), &json!(0xC002), &json!(3)),
        "{told}"
    );
    // printf '\1\2\3' | sha256sum
    assert_eq!(told["sha256"], "039058c6f2c0cb492c533b0a4d14ef77cc0f78abccced5287d84a1a2011cfb81");
    assert_eq!((&told["pc"], &told["sys_address"]), (&json!(0xC001), &Value::Null));
    assert_eq!(caller.said.lock().unwrap().memory.as_ref().unwrap()[0xC000..0xC004], [1, 2, 3, 0]);
    assert_eq!(caller.asked("write_memory")[0]["bank_id"], 1);
    assert_eq!(caller.asked("set_registers")[0]["values"], json!([0xC001]));
    let told = caller.call("vice_load_prg", json!({"path": "a.prg", "address": 0xFFFD})).await["result"].clone();
    assert_eq!((&told["end"], &told["pc"]), (&json!(0xFFFF), &Value::Null));
    let writes = caller.asked("write_memory").len();
    file("short.prg", &[0]);
    file("empty.prg", &[0, 0xC0]);
    for (arguments, code) in [
        (json!({"path": "a.prg", "address": 0xFFFE}), "vice_invalid_argument"),
        (json!({"path": "short.prg"}), "vice_invalid_argument"),
        (json!({"path": "empty.prg"}), "vice_invalid_argument"),
        (json!({"path": "none.prg"}), "file_not_found"),
        (json!({"path": "../a.prg"}), "path_refused"),
    ] {
        assert_eq!(refused(&caller, "vice_load_prg", arguments.clone()).await.0, code, "{arguments}");
    }
    assert_eq!(caller.asked("write_memory").len(), writes);
    // What does not stay is told, and the program counter is left alone.
    caller.change(|said| drop(said.results.insert("read_memory", json!({"bytes": "01ff03"}))));
    let sets = caller.asked("set_registers").len();
    let told = caller.call("vice_load_prg", json!({"path": "a.prg", "run_from": 0xC001})).await;
    assert!(told["error"]["message"].as_str().unwrap().contains("at $C001, did not stay"), "{told}");
    assert_eq!(told["error"]["vice_memory_may_be_modified"], true);
    assert_eq!(caller.asked("set_registers").len(), sets);
}

#[tokio::test]
async fn a_snapshot_that_did_not_come_changes_nothing() {
    let caller = Caller::connected(memory(&[])).await;
    std::fs::write(caller.folder.path().join("old.vsf"), b"VICE Snapshot File\x1amine").unwrap();
    // The stand-in says yes and writes nothing.
    let (code, message) = refused(&caller, "vice_save_snapshot", json!({"path": "new.vsf"})).await;
    assert_eq!((code.as_str(), message.contains("same machine")), ("file_refused", true), "{message}");
    refused(&caller, "vice_save_snapshot", json!({"path": "old.vsf", "overwrite": true})).await;
    assert_eq!(std::fs::read(caller.folder.path().join("old.vsf")).unwrap(), b"VICE Snapshot File\x1amine");
    assert!(!caller.folder.path().join("new.vsf").exists());
    let asked = caller.asked("save_snapshot");
    assert_eq!((asked.len(), &asked[0]["save_roms"], &asked[0]["save_disks"]), (2, &json!(false), &json!(false)));
    assert!(std::path::Path::new(asked[0]["path"].as_str().unwrap()).is_absolute());
    let told = caller.call("vice_load_snapshot", json!({"path": "old.vsf"})).await;
    assert_eq!((&told["ok"], &told["result"]["bytes"]), (&json!(true), &json!(23)), "{told}");
    // VICE is given a copy, which is gone again.
    assert!(!std::path::Path::new(caller.asked("load_snapshot")[0]["path"].as_str().unwrap()).exists());
    assert_eq!(refused(&caller, "vice_load_snapshot", json!({"path": "none.vsf"})).await.0, "file_not_found");
    assert_eq!(refused(&caller, "vice_save_snapshot", json!({"path": "old.vsf"})).await.0, "file_exists");
}
