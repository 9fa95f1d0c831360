//! The server over Streamable HTTP: who is let in, who is not, and that nothing breaks while a client is idle.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

mod support;

use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::time::Duration;
use support::fake_agent::{FakeAgent, Script};
use support::http_client::HttpServer;
use support::{MODERN, PROGRAM};

const DISCOVER: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}";

#[test]
fn nothing_is_served_without_the_token() {
    let server = HttpServer::start(&[]);
    let wrong = [
        None,
        Some("Bearer "),
        Some("Bearer wrong"),
        Some("Bearer a-token-for-test"),
        Some("Bearer a-token-for-tests2"),
        Some("a-token-for-tests"),
        Some("Basic YTphLXRva2VuLWZvci10ZXN0cw=="),
    ];
    for given in wrong {
        for (method, path) in
            [("POST", "/mcp"), ("GET", "/mcp"), ("DELETE", "/mcp"), ("POST", "/mcp/debug"), ("GET", "/"), ("GET", "/x")]
        {
            let mut client = server.connect();
            client.token = None;
            let headers: Vec<_> = given.map(|value| ("Authorization", value)).into_iter().collect();
            let response = client.request(method, path, &headers, DISCOVER);
            assert_eq!(response.status, 401, "{given:?} {method} {path}");
            assert_eq!(response.header("www-authenticate"), Some("Bearer realm=\"retroscope\""));
            assert!(!response.body.contains("a-token"));
        }
    }
    let mut twice = server.connect();
    assert_eq!(twice.request("GET", "/", &[("Authorization", "Bearer other")], "").status, 401, "two tokens are none");
    let mut right = server.connect();
    assert_eq!(right.request("GET", "/", &[], "").status, 200);
    right.token = None;
    assert_eq!(right.request("GET", "/", &[("Authorization", "bearer a-token-for-tests")], "").status, 200);
}

#[test]
fn a_stranger_is_turned_away_before_the_body_is_read() {
    let server = HttpServer::start(&[]);
    let mut client = server.connect();
    let head = format!("POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Length: 1000000\r\n\r\n", client.host);
    client.stream.get_mut().write_all(head.as_bytes()).unwrap();
    assert_eq!(client.response().status, 401);
}

#[test]
fn other_names_and_web_pages_are_refused() {
    let server = HttpServer::start(&["--allowed-host", "caspian"]);
    let port = server.address.rsplit_once(':').unwrap().1.to_owned();
    for (host, status) in [
        (server.address.clone(), 200),
        (format!("localhost:{port}"), 200),
        (format!("caspian:{port}"), 200),
        (format!("evil.example:{port}"), 403),
        ("evil.example".to_owned(), 403),
    ] {
        let mut client = server.connect();
        client.host.clone_from(&host);
        assert_eq!(client.modern("/mcp", "tools/list", json!({}), None).status, status, "{host}");
    }
    for origin in ["http://evil.example", "null", "http://localhost:1234"] {
        let response = server.connect().request("POST", "/mcp", &[("Origin", origin)], DISCOVER);
        assert_eq!(response.status, 403, "{origin}");
    }
    // A page of this server's own, under each of its names; what it sends is no MCP message, which is another matter.
    for origin in [format!("http://{}", server.address), format!("http://caspian:{port}")] {
        let response = server.connect().request("POST", "/mcp", &[("Origin", &origin)], DISCOVER);
        assert!(![401, 403].contains(&response.status), "{origin}: {response:?}");
    }
}

#[test]
fn every_profile_has_its_endpoint() {
    let server = HttpServer::start(&["--tool-profile", "minimal"]);
    let mut client = server.connect();
    let mut names = |path: &str| -> Vec<String> {
        let list = client.modern(path, "tools/list", json!({}), None).message()["result"]["tools"].clone();
        list.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names("/mcp"), ["list_tool_groups", "search_tools", "call_tool"]);
    assert_eq!(names("/mcp/minimal"), names("/mcp"));
    let debug = names("/mcp/debug");
    assert!(debug.contains(&"set_watchpoint".to_owned()) && !debug.contains(&"call_tool".to_owned()));
    assert!(debug.iter().all(|name| names("/mcp/full").contains(name)));
    let response = client.modern("/mcp/everything", "tools/list", json!({}), None);
    assert_eq!(response.status, 404);
    assert!(
        response.body.contains("`everything`") && response.body.contains("full, minimal, debug"),
        "{}",
        response.body
    );
}

#[test]
fn tools_work_in_every_era_without_a_session() {
    let agent = FakeAgent::start();
    let server = HttpServer::start(&["--agent", &agent.address]);
    let mut client = server.connect();
    assert_eq!(client.call("get_status", json!({}))["structuredContent"]["pid"], 9);
    for version in ["2025-06-18", "2025-11-25"] {
        let mut client = server.connect();
        let hello =
            json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let response = client.legacy(version, "initialize", hello);
        assert_eq!(response.message()["result"]["protocolVersion"], version);
        // Without a session there is none that could be lost.
        assert_eq!(response.header("mcp-session-id"), None);
        let response = client.legacy(version, "tools/call", json!({"name": "get_status", "arguments": {}}));
        assert_eq!(response.message()["result"]["structuredContent"]["pid"], 9);
        assert_eq!(client.request("GET", "/mcp", &[("Accept", "text/event-stream")], "").status, 405);
    }
}

#[test]
fn a_connection_that_rests_is_not_cut_off() {
    let agent = FakeAgent::start();
    let server = HttpServer::start(&["--agent", &agent.address]);
    let mut client = server.connect();
    client.call("get_status", json!({}));
    // There is no clock for this in the server that a test could turn; without sessions nothing is counted.
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(client.call("get_status", json!({}))["structuredContent"]["pid"], 9);
    assert_eq!(agent.accepted(), 1);
}

#[test]
fn a_client_that_hangs_up_gives_up_its_wait() {
    let agent = FakeAgent::start();
    agent.script("continue_execution", Script::Hold);
    let server = HttpServer::start(&["--agent", &agent.address]);
    let mut client = server.connect();
    let params = json!({"name": "continue_execution", "arguments": {"timeout": 300}, "_meta": support::modern_meta()});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let headers = [
        ("Accept", "application/json, text/event-stream"),
        ("Content-Type", "application/json"),
        ("MCP-Protocol-Version", MODERN),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "continue_execution"),
    ];
    client.send("POST", "/mcp", &headers, &body);
    agent.wait_for("continue_execution");
    drop(client);
    agent.closed.recv_timeout(Duration::from_secs(20)).expect("the wait went on");
    assert_eq!(server.connect().call("get_status", json!({}))["structuredContent"]["pid"], 9);
}

#[test]
fn too_long_a_body_is_refused() {
    let server = HttpServer::start(&[]);
    let mut client = server.connect();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nAccept: application/json, text/event-stream\r\n\
         Content-Type: application/json\r\nContent-Length: 30000000\r\n\r\n",
        client.host,
        client.token.clone().unwrap()
    );
    let stream = client.stream.get_mut();
    stream.write_all(head.as_bytes()).unwrap();
    let block = vec![b' '; 1_000_000];
    for _ in 0..30 {
        // The server may answer and close before it has read everything.
        if stream.write_all(&block).is_err() {
            break;
        }
    }
    let mut answer = [0; 12];
    if client.stream.read_exact(&mut answer).is_ok() {
        assert_eq!(&answer, b"HTTP/1.1 413");
    }
    assert_eq!(server.connect().request("GET", "/", &[], "").status, 200, "the server lives on");
}

/// What `serve` says when it does not start.
fn refusal(arguments: &[&str], token: Option<&str>) -> String {
    let mut command = Command::new(PROGRAM);
    command.arg("serve").args(arguments).env_remove("RETROSCOPE_TOKEN").env_remove("HAVOC_MCP_TOKEN");
    command.env("RETROSCOPE_WORKSPACE_ROOT", std::env::temp_dir());
    if let Some(token) = token {
        command.env("HAVOC_MCP_TOKEN", token);
    }
    let output = command.current_dir(std::env::temp_dir()).stdin(Stdio::null()).output().unwrap();
    assert!(!output.status.success(), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn what_would_be_open_to_anybody_does_not_start() {
    assert!(refusal(&["--http", "127.0.0.1:0"], None).contains("HTTP needs a token"));
    assert!(
        refusal(&["--http", "0.0.0.0:0", "--no-auth", "--launch-root", "/games"], Some("t")).contains("loopback only")
    );
    assert!(refusal(&["--http", "0.0.0.0:0"], Some("t")).contains("--launch-root"));
    assert!(refusal(&["--workspace", "/"], None).contains("the root of the file system"));
    let server = HttpServer::start_with(&["--no-auth"], None);
    let mut client = server.connect();
    client.token = None;
    assert_eq!(client.modern("/mcp", "tools/list", json!({}), None).status, 200);
}

#[test]
fn the_server_ends_when_it_is_told_to() {
    let agent = FakeAgent::start();
    agent.script("continue_execution", Script::Hold);
    let mut server = HttpServer::start(&["--agent", &agent.address]);
    let mut resting = server.connect();
    resting.call("get_status", json!({}));
    let mut waiting = server.connect();
    let params = json!({"name": "continue_execution", "arguments": {"timeout": 300}});
    let body: Value = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let headers = [
        ("Accept", "application/json, text/event-stream"),
        ("Content-Type", "application/json"),
        ("MCP-Protocol-Version", "2025-11-25"),
    ];
    waiting.send("POST", "/mcp", &headers, &body.to_string());
    agent.wait_for("continue_execution");
    let pid = server.child.id().to_string();
    assert!(Command::new("kill").args(["-s", "TERM", &pid]).status().unwrap().success());
    assert!(server.child.wait().unwrap().success());
}
