//! The agent against clients that are broken or hostile, over a real socket and without a debugged program.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use common::{Agent, Client, wait_for};
use serde_json::json;
use std::io::{BufRead, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{Command, Stdio};
use wire::commands::OPERATIONS;

/// Whether the agent answers a sane request.
#[track_caller]
fn is_alive(client: &mut Client) {
    assert_eq!(client.ok("hello", json!({}))["agent"], "retroscope-agent");
}

#[test]
fn every_operation_refuses_strange_parameters_and_the_connection_lives_on() {
    let agent = Agent::start();
    let mut client = agent.connect();
    let strange = common::strange_parameters();
    for op in OPERATIONS {
        for params in &strange {
            // No program is being debugged: whatever is not plainly allowed is refused, in a sentence.
            if let Err(error) = client.call(op, params.clone()) {
                assert!(error["error"].as_str().is_some_and(|text| (1..5_000).contains(&text.len())), "{op}: {error}");
                assert!(error["code"] != "internal", "{op} {params}: {error}");
            }
        }
        for params in [json!([]), json!("x"), json!(7)] {
            client.refused(op, params, "bad_request");
        }
    }
    is_alive(&mut client);
    agent.finish();
}

#[test]
fn without_a_program_every_operation_on_one_says_so() {
    let agent = Agent::start();
    let mut client = agent.connect();
    for (op, params) in [
        ("detach", json!({})),
        ("terminate", json!({})),
        ("set_watchpoint", json!({"addr": "0x480000"})),
        ("continue_execution", json!({"timeout": 1})),
        ("pause", json!({})),
        ("step", json!({})),
        ("read_memory", json!({"addr": "0x401000", "length": 4})),
        ("write_memory", json!({"addr": "0x401000", "data": "AAAA"})),
        ("get_registers", json!({})),
        ("set_registers", json!({"registers": {"eax": 1}})),
        ("list_threads", json!({})),
        ("list_modules", json!({})),
        ("disassemble", json!({})),
        ("backtrace", json!({})),
        ("screenshot", json!({})),
    ] {
        client.refused(op, params, "not_launched");
    }
    assert_eq!(client.ok("get_status", json!({}))["status"], "not_launched");
    assert_eq!(client.ok("list_breakpoints", json!({}))["breakpoints"], json!([]));
    assert_eq!(client.ok("list_watchpoints", json!({}))["watchpoints"], json!({}));
    agent.finish();
}

#[test]
fn a_line_of_100_mb_is_refused_and_costs_no_memory() {
    let agent = Agent::start();
    let mut client = agent.connect();
    is_alive(&mut client);
    let before = peak_memory(agent.pid());
    let part = vec![b'x'; 1_000_000];
    for _ in 0..100 {
        client.stream.write_all(&part).unwrap();
    }
    client.stream.write_all(b"\n").unwrap();
    assert_eq!(client.receive().unwrap()["code"], "frame_too_large");
    is_alive(&mut client);
    // The longest line allowed is 24 MiB; growing the buffer for it may take as much again.
    let grown = peak_memory(agent.pid()) - before;
    assert!(grown < 64 * 1024, "{grown} KiB more");
    agent.finish();
}

/// Most memory that the process ever had, in KiB.
fn peak_memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn binary_garbage_is_answered_line_by_line() {
    let agent = Agent::start();
    let mut client = agent.connect();
    // A fixed sequence (a linear congruential generator), so that a failure can be repeated.
    let mut seed = 1u64;
    let mut garbage: Vec<u8> = std::iter::repeat_with(|| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 56) as u8
    })
    .take(200_000)
    .collect();
    garbage.push(b'\n');
    let lines: Vec<&[u8]> = garbage.split_inclusive(|byte| *byte == b'\n').collect();
    let mut writer = client.stream.try_clone().unwrap();
    let sent = garbage.clone();
    let sending = std::thread::spawn(move || writer.write_all(&sent).unwrap());
    for line in &lines {
        assert_eq!(client.receive().unwrap()["code"], "bad_request", "{line:?}");
    }
    sending.join().unwrap();
    is_alive(&mut client);
    agent.finish();
}

#[test]
fn a_thousand_connections_are_served_or_told_why_not() {
    let agent = Agent::start();
    let (mut served, mut told) = (Vec::new(), 0);
    for _ in 0..1_000 {
        let mut stream = TcpStream::connect(("127.0.0.1", agent.port)).unwrap();
        stream.set_read_timeout(Some(common::PATIENCE)).unwrap();
        // What is refused is closed by the agent, which may come before this is sent.
        let asked = stream.write_all(b"{\"op\":\"hello\"}\n");
        let mut line = String::new();
        let read = std::io::BufReader::new(&stream).read_line(&mut line);
        if line.contains("\"agent\":\"retroscope-agent\"") {
            served.push(stream);
        } else {
            assert!(line.contains("limit_exceeded") || read.is_err() || asked.is_err(), "{line}");
            told += usize::from(line.contains("limit_exceeded"));
        }
    }
    assert_eq!(served.len(), 64, "the first 64 are served");
    assert!(told > 0, "those refused are told");
    drop(served);
    wait_for("a free seat", || {
        let mut stream = TcpStream::connect(("127.0.0.1", agent.port)).unwrap();
        stream.set_read_timeout(Some(common::PATIENCE)).unwrap();
        drop(stream.write_all(b"{\"op\":\"hello\"}\n"));
        let mut line = String::new();
        drop(std::io::BufReader::new(&stream).read_line(&mut line));
        line.contains("\"ok\":true").then_some(())
    });
    // All threads and sockets of those clients are gone again.
    wait_for("the clients' threads to end", || {
        let threads = std::fs::read_dir(format!("/proc/{}/task", agent.pid())).unwrap().count();
        (threads < 10).then_some(())
    });
    wait_for("the clients' sockets to close", || {
        let files = std::fs::read_dir(format!("/proc/{}/fd", agent.pid())).unwrap().count();
        (files < 20).then_some(())
    });
    agent.finish();
}

#[test]
fn a_client_that_never_reads_costs_little_and_harms_nobody() {
    let agent = Agent::start();
    let mut deaf = TcpStream::connect(("127.0.0.1", agent.port)).unwrap();
    let mut line = Vec::new();
    // Each refusal repeats nothing of this, but the answers still pile up.
    for _ in 0..50_000 {
        line.extend_from_slice(b"{\"op\":\"get_status\"}\n");
    }
    deaf.set_nonblocking(true).unwrap();
    let mut sent = 0;
    let mut other = agent.connect();
    for _ in 0..500 {
        if let Ok(more) = deaf.write(&line[sent..]) {
            sent += more;
        }
        is_alive(&mut other);
    }
    assert!(peak_memory(agent.pid()) < 64 * 1024, "{} KiB", peak_memory(agent.pid()));
    agent.finish();
}

#[test]
fn a_half_closed_connection_is_answered_and_then_closed() {
    let agent = Agent::start();
    let mut client = agent.connect();
    client.stream.write_all(b"{\"op\":\"hello\"}\n{\"op\":\"get_status\"}\n{\"op\":").unwrap();
    client.stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.receive().unwrap()["ok"], true);
    assert_eq!(client.receive().unwrap()["ok"], true);
    assert_eq!(client.receive(), None);
    agent.finish();
}

#[test]
fn a_web_page_cannot_drive_the_agent() {
    let agent = Agent::start();
    let body = "{\"op\":\"launch\",\"params\":{\"path\":\"/bin/true\"}}\n";
    for head in ["POST / HTTP/1.1\r\n", "GET / HTTP/1.1\r\n", "OPTIONS * HTTP/1.1\r\n"] {
        let mut stream = TcpStream::connect(("127.0.0.1", agent.port)).unwrap();
        let request = format!("{head}Host: 127.0.0.1\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        drop(stream.read_to_end(&mut answer));
        assert!(answer.is_empty(), "{}", String::from_utf8_lossy(&answer));
    }
    assert_eq!(agent.connect().ok("get_status", json!({}))["status"], "not_launched");
    agent.finish();
}

/// Runs the agent with options that it refuses; gives what it says.
fn complaint(options: &[&str]) -> String {
    let output =
        Command::new(env!("CARGO_BIN_EXE_retroscope-agent")).args(options).stdin(Stdio::null()).output().unwrap();
    assert_ne!(output.status.code(), Some(0), "{options:?}");
    assert!(output.stdout.is_empty(), "{options:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn wrong_options_are_refused_in_words() {
    let agent = Agent::start();
    for (options, word) in [
        (vec!["--listen", "0.0.0.0", "--port", "0"], "loopback"),
        (vec!["--port", &agent.port.to_string()], "is taken"),
        (vec!["--port", "65536"], "65536"),
        (vec!["--launch-root", "/nowhere/at/all", "--port", "0"], "--launch-root /nowhere/at/all"),
        (vec!["--on-exit", "explode"], "detach"),
        (vec!["--log", "loud"], "debug"),
    ] {
        let said = complaint(&options);
        assert!(said.contains(word), "{options:?}: {said}");
    }
    agent.finish();
}

#[test]
fn the_agent_ends_with_its_parent_when_told_to() {
    let mut agent = Agent::with(&["--exit-with-parent"]);
    is_alive(&mut agent.connect());
    drop(agent.stdin.take());
    assert_eq!(agent.wait().code(), Some(0));
    // Without the option a closed stdin means nothing.
    let mut agent = Agent::start();
    drop(agent.stdin.take());
    is_alive(&mut agent.connect());
    agent.finish();
}

#[test]
fn each_of_the_ending_signals_ends_it_well() {
    for signal in ["TERM", "INT", "HUP"] {
        let mut agent = Agent::start();
        let mut client = agent.connect();
        is_alive(&mut client);
        agent.signal(signal);
        assert_eq!(agent.wait().code(), Some(0), "SIG{signal}");
        assert_eq!(client.receive(), None);
    }
}
