//! The client of Ghidra's plug-in against its stand-in, and the stand-in against answers that the real one gave.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

mod support;

use retroscope::errors::ToolError;
use retroscope::ghidra::{Ghidra, GhidraSettings, ProfilePolicy};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;
use support::fake_ghidra::{FakeGhidra, Fault};

const TOKEN: &str = "hush-hush";
const INSPECT: &str = "/inspect_memory_content";
const REGIONS: &str = "/apply_data_regions";

fn client(ghidra: &FakeGhidra, more: &[(&str, &str)]) -> Ghidra {
    let settings = GhidraSettings::resolve(&|name| {
        let more = more.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        more.or_else(|| (name == "GHIDRA_MCP_URL").then(|| ghidra.url.clone()))
    });
    Ghidra::new(settings.unwrap())
}

fn code(error: &ToolError) -> &'static str {
    error.code.word()
}

/// What a request by hand gets: status, content type, body.
fn by_hand(url: &str, method: &str, target: &str, body: &str) -> (u16, String, Value) {
    let mut stream = TcpStream::connect(url.strip_prefix("http://").unwrap()).unwrap();
    let head = format!("{method} {target} HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(head.as_bytes()).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let kind = head.lines().find_map(|line| line.strip_prefix("Content-Type: ")).unwrap().to_owned();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, kind, serde_json::from_str(body).unwrap_or_else(|_| body.into()))
}

#[test]
fn the_stand_in_answers_as_the_real_one_did() {
    let ghidra = FakeGhidra::start();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ghidra_captures");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    // Writes come in the order in which they were made.
    let order = |name: &str| ["w_ow.txt", "w_same.txt"].iter().position(|later| *later == name).map_or(0, |at| at + 1);
    paths.sort_by_key(|path| order(path.file_name().unwrap().to_str().unwrap()));
    assert_eq!(paths.len(), 26);
    for path in paths {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let capture = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        let mut lines = capture.lines();
        let (method, target) = lines.next().unwrap().split_once(' ').unwrap();
        let body = lines.next().unwrap().to_owned();
        let said = lines.next().unwrap().strip_prefix("--- ").unwrap();
        let (status, kind) = said.split_once(' ').unwrap();
        let answer = lines.next().unwrap();
        let answer = serde_json::from_str(answer).unwrap_or_else(|_| answer.into());
        let got = by_hand(&ghidra.url, method, target, &body);
        assert_eq!(got, (status.parse().unwrap(), kind.to_owned(), answer), "{name}");
    }
}

#[tokio::test]
async fn memory_is_read_as_the_plug_in_expects_to_be_asked() {
    let ghidra = FakeGhidra::start();
    let client = client(&ghidra, &[]);
    assert_eq!(client.read_memory("full64.bin", "RAM:0840", 12).await.unwrap(), b"HELLO WORLD\0");
    let asked = ghidra.asked().pop().unwrap();
    assert_eq!(
        asked.target,
        "/inspect_memory_content?program=full64.bin&address=RAM%3A0840&length=12&detect_strings=False"
    );
    assert_eq!((asked.method.as_str(), asked.header("accept")), ("GET", Some("application/json")));
    assert_eq!(asked.header("authorization"), None);
    assert_eq!(asked.header("host"), Some(ghidra.url.strip_prefix("http://").unwrap()));
    // More than one row of the dump.
    let bytes = client.read_memory("full64.bin", "0x0810", 0x1_0000 - 0x810).await.unwrap();
    assert_eq!(bytes, ghidra.memory(0x810, 0x1_0000 - 0x810));
}

#[tokio::test]
async fn a_part_of_what_was_asked_for_is_an_error() {
    let ghidra = FakeGhidra::start();
    let client = client(&ghidra, &[]);
    for (program, address, length, words) in [
        ("game.bin", "0x083e", 64, "14 of 64 requested bytes"),
        ("game.bin", "RAM:f000", 4, "Unable to read bytes at RAM:f000"),
        ("game.bin", "zz", 4, "Address 'zz' could not be resolved"),
        ("nope", "0810", 4, "Program not found: nope Available programs: full64.bin, game.bin"),
    ] {
        let error = client.read_memory(program, address, length).await.unwrap_err();
        assert_eq!(code(&error), "ghidra_response_error");
        assert!(error.message.contains(words), "{error}");
        assert!(!error.details.contains_key("ghidra_program_may_have_changed"));
    }
}

#[tokio::test]
async fn the_three_ways_of_failing_stay_apart() {
    let ghidra = FakeGhidra::start();
    let patient = client(&ghidra, &[]);
    let hasty = client(&ghidra, &[("GHIDRA_MCP_TIMEOUT", "0.2")]);
    let too_long = vec![b' '; base::limits::MAX_GHIDRA_ANSWER_BYTES + 1];
    let says = |status, body: &str| Fault::Says(status, "text/plain", body.as_bytes().to_vec());
    for (client, fault, expected, words) in [
        (&hasty, Fault::Late(Duration::from_secs(2)), "ghidra_http_timeout", "within 0.2 s"),
        (&patient, Fault::Cut, "ghidra_transport_failure", "broke before the answer was whole"),
        (&patient, Fault::CutInBody, "ghidra_transport_failure", "broke before the answer was whole"),
        (&patient, says(200, "[1]"), "ghidra_response_error", "no JSON object"),
        (&patient, says(200, "{\"a\""), "ghidra_response_error", "no JSON object"),
        (&patient, Fault::Says(200, "text/plain", vec![0xff, 0xfe]), "ghidra_response_error", "no JSON object"),
        (&patient, Fault::Says(200, "text/plain", too_long), "ghidra_response_error", "longer than 67108864 bytes"),
        (
            &patient,
            says(200, "{\"ok\": false, \"error\": {\"code\": \"c\", \"message\": \"m\"}}"),
            "ghidra_response_error",
            "c: m",
        ),
        (&patient, says(500, "{\"error\": \"inside\"}"), "ghidra_response_error", "inside"),
        (&patient, says(503, "busy"), "ghidra_response_error", "503"),
        (&patient, says(302, ""), "ghidra_response_error", "302"),
        (&patient, says(404, "<h1>404 Not Found</h1>"), "ghidra_response_error", "no such endpoint"),
    ] {
        ghidra.fault(INSPECT, fault);
        let before = ghidra.asked().len();
        let error = client.read_memory("full64.bin", "0840", 4).await.unwrap_err();
        assert_eq!(code(&error), expected, "{error}");
        assert!(error.message.contains(words), "{words}: {error}");
        assert_eq!(ghidra.asked().len(), before + 1, "nothing is asked twice");
    }
    let nowhere = GhidraSettings::resolve(&|name| (name == "GHIDRA_MCP_URL").then(|| "http://127.0.0.1:1".to_owned()));
    let error = Ghidra::new(nowhere.unwrap()).read_memory("a", "0", 1).await.unwrap_err();
    assert_eq!((code(&error), &error.details["request_committed"]), ("ghidra_transport_failure", &json!(false)));
    assert!(error.hint.contains("GHIDRA_MCP_URL"), "{error}");
}

#[tokio::test]
async fn what_may_have_been_changed_is_said_and_never_tried_again() {
    let ghidra = FakeGhidra::start();
    let hasty = client(&ghidra, &[("GHIDRA_MCP_TIMEOUT", "0.2")]);
    let says = |status, body: &str| Fault::Says(status, "text/plain", body.as_bytes().to_vec());
    for (fault, expected, may_have) in [
        (Fault::Late(Duration::from_secs(2)), "ghidra_http_timeout", true),
        (Fault::Cut, "ghidra_transport_failure", true),
        (Fault::CutInBody, "ghidra_transport_failure", true),
        (says(200, "no JSON"), "ghidra_response_error", true),
        (says(500, "{\"error\": \"inside\"}"), "ghidra_response_error", true),
        (says(200, "{\"error\": \"refused\"}"), "ghidra_response_error", false),
        (says(401, ""), "ghidra_response_error", false),
        (says(404, ""), "ghidra_response_error", false),
    ] {
        ghidra.fault(REGIONS, fault);
        let before = ghidra.asked().len();
        let error = hasty.apply_data_regions("full64.bin", json!([]), false).await.unwrap_err();
        assert_eq!(code(&error), expected, "{error}");
        assert_eq!(error.details["ghidra_program_may_have_changed"], may_have, "{error}");
        assert_eq!(error.hint.contains("the program may have been changed"), may_have, "{error}");
        if expected != "ghidra_response_error" {
            assert_eq!(
                (&error.details["outcome_unknown"], &error.details["request_committed"]),
                (&json!(true), &json!(true))
            );
        }
        assert_eq!(ghidra.asked().len(), before + 1);
        // A dry run changes nothing however it ends.
        let error = hasty.apply_data_regions("full64.bin", json!([]), true).await.unwrap_err();
        assert!(!error.details.contains_key("ghidra_program_may_have_changed"), "{error}");
    }
}

#[tokio::test]
async fn the_token_is_shown_to_ghidra_and_to_nobody_else() {
    let ghidra = FakeGhidra::with_token(Some(TOKEN));
    let with = client(&ghidra, &[("GHIDRA_MCP_AUTH_TOKEN", TOKEN)]);
    assert_eq!(with.read_memory("full64.bin", "0840", 5).await.unwrap(), b"HELLO");
    assert_eq!(ghidra.asked()[0].header("authorization"), Some("Bearer hush-hush"));
    for (token, words) in [("wrong", "is not the one"), ("", "put it into GHIDRA_MCP_AUTH_TOKEN")] {
        let without = client(&ghidra, &[("GHIDRA_MCP_AUTH_TOKEN", token)]);
        let error = without.read_memory("full64.bin", "0840", 5).await.unwrap_err();
        assert!(code(&error) == "ghidra_response_error" && error.message.contains("401") && error.hint.contains(words));
    }
    // A server that says it again is not repeated.
    ghidra.fault(INSPECT, Fault::Says(200, "text/plain", format!("{{\"error\": \"you sent {TOKEN}\"}}").into_bytes()));
    let error = with.read_memory("full64.bin", "0840", 5).await.unwrap_err();
    assert!(error.message.ends_with("you sent [redacted]"), "{error}");
    assert!(!format!("{with:?}").contains(TOKEN));
}

#[tokio::test]
async fn the_mutating_endpoints_are_asked_as_they_expect() {
    let ghidra = FakeGhidra::start();
    let client = client(&ghidra, &[]);
    let wrote =
        client.write_memory_bytes("full64.bin", "RAM:2000", &[0, 1, 2, 3], "overwrite_bytes", false).await.unwrap();
    assert_eq!((&wrote["committed"], &wrote["differing_ranges"][0]["start"]), (&json!(true), &json!("RAM:2001")));
    assert_eq!(ghidra.memory(0x2000, 4), [0, 1, 2, 3]);
    let asked = ghidra.asked().pop().unwrap();
    assert_eq!((asked.method.as_str(), asked.target.as_str()), ("POST", "/write_memory_bytes?program=full64.bin"));
    assert_eq!(asked.header("content-type"), Some("application/json"));
    assert_eq!(
        asked.body,
        json!({"start": "RAM:2000", "bytes": "00010203", "conflict_policy": "overwrite_bytes", "dry_run": false})
    );
    let refused = client.write_memory_bytes("full64.bin", "RAM:2000", &[9], "error", false).await.unwrap_err();
    assert!(refused.message.contains("requested bytes differ"), "{refused}");
    assert_eq!(refused.details["ghidra_program_may_have_changed"], false);

    let policy = ProfilePolicy {
        dry_run: true,
        conflict_policy: "keep",
        replace_user_definitions: false,
        create_memory_blocks: true,
    };
    let error = client.apply_symbol_profile("full64.bin", json!({"x": 1}), policy).await.unwrap_err();
    assert!(error.message.contains("unknown field 'x'"), "{error}");
    let asked = ghidra.asked().pop().unwrap();
    assert_eq!(
        asked.body,
        json!({"profile": {"x": 1}, "dry_run": true, "conflict_policy": "keep", "replace_user_definitions": false,
            "create_memory_blocks": true})
    );
}
