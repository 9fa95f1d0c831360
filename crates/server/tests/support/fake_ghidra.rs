//! A stand-in of Ghidra's plug-in ghidra-mcp-next 0.100.0: the four endpoints that the server uses, with the answers that the
//! real one was seen to give, and with faults on demand.

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What an endpoint does instead of its work.
#[derive(Clone)]
pub enum Fault {
    /// Answers so late.
    Late(Duration),
    /// Closes the connection without an answer.
    Cut,
    /// Closes it in the middle of the answer.
    CutInBody,
    /// Answers with this status, content type and body.
    Says(u16, &'static str, Vec<u8>),
}

/// One request.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    pub method: String,
    /// Path and query as they were sent.
    pub target: String,
    pub headers: Vec<(String, String)>,
    pub body: Value,
}

impl Asked {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// A program: one initialized block.
struct Program {
    start: usize,
    bytes: Vec<u8>,
}

struct Shared {
    programs: Mutex<BTreeMap<String, Program>>,
    faults: Mutex<BTreeMap<String, Fault>>,
    asked: Mutex<Vec<Asked>>,
    token: Option<String>,
}

/// The stand-in; ends with the test.
pub struct FakeGhidra {
    pub url: String,
    shared: Arc<Shared>,
}

/// The bytes of `full64.bin` from $0810 on, and all of `game.bin`: code, padding, and a text at $0840.
const CODE: &str = "20200820 3008EE20 D060EAEA EAEAEAEA A920A200 9D0004E8 D0FA60EA EAEAEAEA A200BD40 08F00620 D2FFE8D0 F560EAEA \
                    48454C4C 4F20574F 524C4400";

/// `full64.bin` as the plug-in describes a block of memory.
const BLOCK: &str = r#"{"name":"RAM","start":"0000","end":"ffff","length":65536,"address_space":"RAM","overlay":false,
"initialized":true,"source":"Binary Loader","read":true,"write":true,"execute":true,"permissions":"rwx","volatile":false,
"comment":"","type":"DEFAULT","artificial":false,"loaded":true,"source_name":"Binary Loader","overlay_base_space":null,
"source_infos":[{"min_address":"0000","max_address":"ffff","length":65536,"description":"full64.bin[0x0, 0x10000]",
"file":{"filename":"full64.bin","imported_file_offset":0,"stored_size":65536},"file_offset":0,"mapped_range":null,
"byte_mapping_scheme":null}]}"#;

impl FakeGhidra {
    pub fn start() -> Self {
        Self::with_token(None)
    }

    /// One that asks for a token, when there is one.
    pub fn with_token(token: Option<&str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let code = c64::from_hex("code", CODE).unwrap();
        let mut memory = vec![0; 0x1_0000];
        memory[0x810..0x810 + code.len()].copy_from_slice(&code);
        let programs = BTreeMap::from([
            ("full64.bin".to_owned(), Program { start: 0, bytes: memory }),
            ("game.bin".to_owned(), Program { start: 0x810, bytes: code }),
        ]);
        let shared = Arc::new(Shared {
            programs: Mutex::new(programs),
            faults: Mutex::default(),
            asked: Mutex::default(),
            token: token.map(str::to_owned),
        });
        let serving = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&serving);
                thread::spawn(move || serve(&stream, &shared));
            }
        });
        Self { url, shared }
    }

    /// From now on `path` does this instead of its work.
    pub fn fault(&self, path: &str, fault: Fault) {
        self.shared.faults.lock().unwrap().insert(path.to_owned(), fault);
    }

    /// Every request so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.shared.asked.lock().unwrap().clone()
    }

    /// Puts bytes into `full64.bin`.
    pub fn put(&self, at: usize, bytes: &[u8]) {
        self.shared.programs.lock().unwrap().get_mut("full64.bin").unwrap().bytes[at..at + bytes.len()]
            .copy_from_slice(bytes);
    }

    /// Bytes of `full64.bin`.
    pub fn memory(&self, at: usize, length: usize) -> Vec<u8> {
        self.shared.programs.lock().unwrap()["full64.bin"].bytes[at..at + length].to_vec()
    }
}

fn serve(stream: &TcpStream, shared: &Shared) {
    let mut reader = BufReader::new(stream);
    while let Some(asked) = request(&mut reader) {
        shared.asked.lock().unwrap().push(asked.clone());
        let path = asked.target.split('?').next().unwrap().to_owned();
        let fault = shared.faults.lock().unwrap().get(&path).cloned();
        let (status, kind, body) = match fault {
            Some(Fault::Late(time)) => {
                thread::sleep(time);
                answer(&asked, &path, shared)
            }
            Some(Fault::Cut) => {
                drop(stream.shutdown(Shutdown::Both));
                return;
            }
            Some(Fault::CutInBody) => {
                drop((&*stream).write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"address\":"));
                drop(stream.shutdown(Shutdown::Both));
                return;
            }
            Some(Fault::Says(status, kind, body)) => (status, kind, body),
            None => answer(&asked, &path, shared),
        };
        let challenge = if status == 401 { "WWW-Authenticate: Bearer\r\n" } else { "" };
        let head =
            format!("HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\n{challenge}Content-Length: {}\r\n\r\n", body.len());
        let mut out = stream;
        if out.write_all(head.as_bytes()).and_then(|()| out.write_all(&body)).is_err() {
            return;
        }
    }
}

fn request(reader: &mut BufReader<&TcpStream>) -> Option<Asked> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        match line.trim_end().split_once(": ") {
            Some((name, value)) => headers.push((name.to_ascii_lowercase(), value.to_owned())),
            None => break,
        }
    }
    let length =
        headers.iter().find(|(name, _)| name == "content-length").map_or(0, |(_, value)| value.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).unwrap() };
    Some(Asked { method, target, headers, body })
}

const TEXT: &str = "text/plain; charset=UTF-8";

fn answer(asked: &Asked, path: &str, shared: &Shared) -> (u16, &'static str, Vec<u8>) {
    if let Some(token) = &shared.token
        && asked.header("authorization") != Some(format!("Bearer {token}").as_str())
    {
        return (401, "application/json", b"{\"error\": \"Unauthorized\"}".to_vec());
    }
    let query = query(&asked.target);
    let body = asked.body.as_object().cloned().unwrap_or_default();
    let outcome = match path {
        "/inspect_memory_content" => inspect(shared, &query),
        "/write_memory_bytes" => {
            write(shared, &query, &body).map_err(|error| format!("Failed to write memory bytes: {error}"))
        }
        "/apply_symbol_profile" => {
            profile(shared, &query, &body).map_err(|error| format!("Failed to apply symbol profile: {error}"))
        }
        "/apply_data_regions" => regions(&body).map_err(|error| format!("Failed to apply data regions: {error}")),
        _ => return (404, "text/html", b"<h1>404 Not Found</h1>No context found for request".to_vec()),
    };
    let value = outcome.unwrap_or_else(|error| json!({ "error": error }));
    (200, TEXT, value.to_string().into_bytes())
}

/// The query, decoded.
fn query(target: &str) -> BTreeMap<String, String> {
    let decode = |text: &str| {
        let mut bytes = Vec::new();
        let mut rest = text.bytes();
        while let Some(byte) = rest.next() {
            match byte {
                b'%' => {
                    let digits: Vec<u8> = rest.by_ref().take(2).collect();
                    bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap());
                }
                b'+' => bytes.push(b' '),
                other => bytes.push(other),
            }
        }
        String::from_utf8(bytes).unwrap()
    };
    let query = target.split_once('?').map_or("", |(_, query)| query);
    query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(key, value)| (key.to_owned(), decode(value)))
        .collect()
}

/// The offset that an address names.
fn offset(address: &str) -> Result<usize, String> {
    let digits = address.trim_start_matches("RAM:").trim_start_matches("0x");
    usize::from_str_radix(digits, 16).map_err(|_| {
        format!(
            "Address '{address}' could not be resolved in the default address space. Available spaces: RAM. Try \
             <space>:<hex> (e.g., RAM:{address})."
        )
    })
}

fn with_program<R>(
    shared: &Shared,
    query: &BTreeMap<String, String>,
    work: impl FnOnce(&mut Program) -> Result<R, String>,
) -> Result<R, String> {
    let name = query.get("program").cloned().unwrap_or_else(|| "game.bin".to_owned());
    let mut programs = shared.programs.lock().unwrap();
    let known = programs.keys().cloned().collect::<Vec<_>>().join(", ");
    match programs.get_mut(&name) {
        Some(program) => work(program),
        None => Err(format!("Program not found: {name} Available programs: {known}")),
    }
}

fn inspect(shared: &Shared, query: &BTreeMap<String, String>) -> Result<Value, String> {
    let address = query["address"].clone();
    let (at, length) = (offset(&address)?, query["length"].parse::<usize>().unwrap());
    let bytes = with_program(shared, query, |program| {
        let from = at.checked_sub(program.start).filter(|from| *from < program.bytes.len());
        let from = from.ok_or_else(|| format!("Unable to read bytes at {address}"))?;
        // What is behind the end of the block is left out without a word.
        Ok(program.bytes[from..program.bytes.len().min(from + length)].to_vec())
    })?;
    let printable = |byte: &u8| (0x20..0x7f).contains(byte);
    let rows: Vec<String> = bytes
        .chunks(16)
        .map(|row| row.iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(" "))
        .collect();
    let shown: Vec<String> = bytes
        .chunks(16)
        .map(|row| {
            row.iter()
                .map(|byte| match byte {
                    0 => "\\0".to_owned(),
                    byte if printable(byte) => char::from(*byte).to_string(),
                    _ => ".".to_owned(),
                })
                .collect()
        })
        .collect();
    let count = bytes.iter().filter(|byte| printable(byte)).count();
    let longest = bytes.split(|byte| !printable(byte)).map(<[u8]>::len).max().unwrap_or(0);
    let end = bytes.iter().position(|byte| *byte == 0);
    let likely = longest >= 4;
    let mut answer = json!({
        "address": address,
        "bytes_read": bytes.len(),
        // A backslash and an n, not a line end.
        "hex_dump": rows.join(" \\n"),
        "ascii_repr": shown.join("\\n").trim(),
        "printable_count": count,
        "printable_ratio": (count as f64 / bytes.len() as f64 * 100.0).round() / 100.0,
        "null_terminator_at": end.map_or(-1, |at| at as i64),
        "max_consecutive_printable": longest,
        "is_likely_string": likely,
        "string_length": if likely { bytes.len() } else { 0 },
    });
    if likely && query.get("detect_strings").is_none_or(|detect| !detect.eq_ignore_ascii_case("false")) {
        answer["detected_string"] = String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())]).into();
        answer["suggested_type"] = format!("char[{}]", bytes.len()).into();
    }
    Ok(answer)
}

fn write(shared: &Shared, query: &BTreeMap<String, String>, body: &Map<String, Value>) -> Result<Value, String> {
    let hex = body.get("bytes").and_then(Value::as_str).ok_or("bytes is required")?;
    let bytes = c64::from_hex("bytes", hex).map_err(|_| "bytes contains invalid hexadecimal digits".to_owned())?;
    let policy = body["conflict_policy"].as_str().unwrap();
    if !["error", "overwrite_bytes"].contains(&policy) {
        return Err("conflict_policy must be error or overwrite_bytes".to_owned());
    }
    let at = offset(body["start"].as_str().unwrap())?;
    if at + bytes.len() > 0x1_0000 {
        return Err("memory range overflows its address space".to_owned());
    }
    let dry_run = body.get("dry_run").and_then(Value::as_bool).unwrap_or(true);
    let ranges = with_program(shared, query, |program| {
        let from = at.checked_sub(program.start);
        let old = from.and_then(|from| program.bytes.get_mut(from..from + bytes.len()));
        let old = old.ok_or("write requires an existing initialized block")?;
        let mut ranges: Vec<(usize, usize)> = Vec::new();
        for (place, _) in old.iter().zip(&bytes).enumerate().filter(|(_, (old, new))| old != new) {
            match ranges.last_mut() {
                Some((_, end)) if *end + 1 == at + place => *end += 1,
                _ => ranges.push((at + place, at + place)),
            }
        }
        if policy == "error" && !ranges.is_empty() {
            return Err("requested bytes differ from initialized program memory".to_owned());
        }
        if !dry_run {
            old.copy_from_slice(&bytes);
        }
        Ok(ranges)
    })?;
    let block: Value = serde_json::from_str(BLOCK).unwrap();
    let shown: Vec<Value> = ranges
        .iter()
        .map(|(start, end)| json!({"start": format!("RAM:{start:x}"), "end": format!("RAM:{end:x}"), "length": end - start + 1}))
        .collect();
    Ok(json!({
        "committed": !dry_run, "before": block, "after": block, "address_space": "RAM", "changed": !ranges.is_empty(),
        "sha256": c64::to_hex(&Sha256::digest(&bytes)), "differing_ranges": shown, "conflict_policy": policy,
        "length": bytes.len(),
    }))
}

fn only_known(object: &Map<String, Value>, known: &[&str], quote: &str) -> Result<(), String> {
    match object.keys().find(|key| !known.contains(&key.as_str())) {
        Some(unknown) if quote.is_empty() => Err(format!("unknown field: {unknown}")),
        Some(unknown) => Err(format!("unknown field {quote}{unknown}{quote}")),
        None => Ok(()),
    }
}

fn profile(shared: &Shared, query: &BTreeMap<String, String>, body: &Map<String, Value>) -> Result<Value, String> {
    let profile = body["profile"].as_object().ok_or("profile is required")?;
    let known = ["schema_version", "id", "version", "description", "symbols", "equates", "comments", "memory_blocks"];
    only_known(profile, &known, "'")?;
    let fields = [
        ("symbols", ["address", "name", "namespace", "kind", "primary", "source_note"].as_slice()),
        ("equates", &["name", "value", "description", "applications"]),
        ("memory_blocks", &["name", "start", "length", "fill", "overlay", "read", "write", "execute", "comment"]),
    ];
    for (list, known) in fields {
        for entry in profile[list].as_array().ok_or("a list is missing")? {
            only_known(entry.as_object().unwrap(), known, "'")?;
        }
    }
    let policy = body.get("conflict_policy").cloned().unwrap_or(json!("error"));
    if !["error", "keep", "replace"].contains(&policy.as_str().unwrap()) {
        return Err("conflict_policy must be error, keep, or replace".to_owned());
    }
    with_program(shared, query, |program| {
        let mapped = |at: &usize| (program.start..program.start + program.bytes.len()).contains(at) || *at < 0x200;
        for symbol in profile["symbols"].as_array().unwrap() {
            let at = offset(symbol["address"].as_str().unwrap())?;
            if !mapped(&at) {
                return Err(format!("invalid symbol address: Address is not mapped in program memory: {at:04x}"));
            }
        }
        Ok(())
    })?;
    let list = |name: &str, action: &str| -> Vec<Value> {
        let mut entries = profile[name].as_array().unwrap().clone();
        for entry in &mut entries {
            entry["action"] = action.into();
            entry["conflict"] = Value::Null;
        }
        entries
    };
    let count = |name: &str| profile[name].as_array().unwrap().len();
    let dry_run = body.get("dry_run").and_then(Value::as_bool).unwrap_or(true);
    let blocks = if body["create_memory_blocks"] == true { "create" } else { "disabled" };
    Ok(json!({
        "profile": {"schema_version": profile["schema_version"], "id": profile["id"], "version": profile["version"],
                    "description": profile["description"]},
        "program": query["program"], "dry_run": dry_run, "committed": !dry_run, "conflict_policy": policy,
        "replace_user_definitions": body["replace_user_definitions"], "create_memory_blocks": body["create_memory_blocks"],
        "counts": {"symbols": count("symbols"), "equates": count("equates"), "equate_applications": 0, "comments": 0,
                   "memory_blocks": count("memory_blocks")},
        "symbols": list("symbols", "create"), "equates": list("equates", "create"), "comments": [],
        "memory_blocks": list("memory_blocks", blocks), "kept_conflicts": [], "replaced_definitions": [], "idempotent": [],
        "warnings": [],
    }))
}

fn regions(body: &Map<String, Value>) -> Result<Value, String> {
    let dry_run = body.get("dry_run").and_then(Value::as_bool).unwrap_or(true);
    let (mut shown, mut data, mut symbols, mut comments, mut namespaces) = (vec![], vec![], vec![], vec![], vec![]);
    for region in body["regions"].as_array().ok_or("regions is required")? {
        let region = region.as_object().unwrap();
        let kind = region.get("kind").and_then(Value::as_str).ok_or("kind is required and must be a string")?;
        if kind != "contiguous" {
            return Err(format!("unknown region kind: {kind}"));
        }
        let known = ["kind", "start", "end", "type_name", "clear_conflicts", "name", "namespace", "plate_comment"];
        only_known(region, &known, "")?;
        let (start, end) = (offset(region["start"].as_str().unwrap())?, offset(region["end"].as_str().unwrap())?);
        let addresses: Vec<String> = (start..=end).map(|at| format!("{at:04x}")).collect();
        let get = |key: &str| region.get(key).cloned().unwrap_or_default();
        data.extend(
            addresses.iter().map(|at| json!({"address": at, "type_name": "/byte", "length": 1, "action": "create"})),
        );
        shown.push(json!({
            "kind": kind, "placement": addresses[0], "name": get("name"), "namespace": get("namespace"),
            "plate_comment": get("plate_comment"), "clear_conflicts": region.get("clear_conflicts").is_some_and(|clear| clear == true),
            "element_count": addresses.len(), "start": addresses[0], "end": addresses.last(), "type_name": "/byte",
            "data_length": 1, "stride": 1, "allow_trailing_bytes": false, "pointer_options": null,
            "element_addresses": addresses, "trailing_range": null, "pointers": [],
        }));
        if region.contains_key("name") {
            symbols.push(
                json!({"address": addresses[0], "name": get("name"), "namespace": get("namespace"), "kind": "region",
                "action": "create", "primary": true}),
            );
        }
        if region.contains_key("plate_comment") {
            comments.push(json!({"address": addresses[0], "type": "plate", "previous": null,
                "resulting": get("plate_comment"), "action": "create"}));
        }
        if region.contains_key("namespace") {
            namespaces.push(json!({"name": get("namespace"), "action": "unchanged"}));
        }
    }
    Ok(json!({
        "committed": !dry_run, "regions": shown, "created_data": data, "symbols": symbols, "references": [],
        "comments": comments, "namespaces": namespaces, "conflicts": [], "clear_plan": null,
    }))
}
