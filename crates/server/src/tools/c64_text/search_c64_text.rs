//! `search_c64_text`: finds text in memory.

use super::decode_c64_text::read_length;
use super::prelude::*;
use crate::job;
use crate::tools::page;
use c64::text::{Length, Query, Search};

/// The tool.
#[derive(Debug)]
pub struct SearchC64Text;

/// Where and what for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Program open in Ghidra. Exactly one of `program` (with `start` and `end`) and `source`.
    program: Option<String>,
    /// A file below the workspace: `{path, offset?, prg?}`; with `prg` a load address comes first and addresses are the C64's.
    #[schemars(with = "Option<Map<String, Value>>")]
    source: Option<FileSource>,
    /// First address, `"RAM:0800"`; in a file its first byte by default.
    start: Option<String>,
    /// Last address, inclusive; in a file its last byte by default.
    end: Option<String>,
    /// What plain text must be exactly; or, with `query_mode` `bytes`, the bytes.
    query: ByteInput,
    /// `text` (default): compares decoded text; `bytes`: compares bytes, and needs no length mode.
    #[serde(default)]
    query_mode: QueryMode,
    /// Bytes from one candidate to the next; default 1.
    stride: Option<i64>,
    /// Bytes to search at most, up to 1,048,576; default 65,536.
    max_scan_bytes: Option<i64>,
    /// Matches at most, up to 1,000; default 100.
    max_results: Option<i64>,
    #[serde(flatten)]
    text: TextParams,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum QueryMode {
    #[default]
    Text,
    Bytes,
}

/// What was found.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FoundView {
    /// The program.
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<String>,
    /// The file.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<Value>,
    /// First address that was searched.
    start: String,
    /// Last address that was asked for.
    requested_end: String,
    /// Last address that was searched.
    scanned_end: String,
    /// Bytes that were searched.
    scanned_bytes: usize,
    /// Whether `max_scan_bytes` ended the search early.
    truncated_scan: bool,
    /// The matches.
    matches: Vec<MatchView>,
    /// The most that were wanted.
    max_results: usize,
    /// Whether there may be more.
    result_limit_reached: bool,
    /// Places where no text can begin because it would end outside.
    invalid_candidates: usize,
    /// The options that were used.
    configuration: SearchConfiguration,
    /// What a reader should know.
    warnings: Vec<String>,
    /// Why not all matches are in this answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<String>,
    /// `start` of a search for the rest.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    /// What the file is, when it is a known container.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct SearchConfiguration {
    #[serde(flatten)]
    text: Configuration,
    query_mode: QueryMode,
    stride: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
struct MatchView {
    address: String,
    byte_length: usize,
    raw_bytes: Vec<u8>,
    raw_hex: String,
    decoded_text: String,
    lossless: String,
    terminated: bool,
    warnings: Vec<String>,
    configuration: Configuration,
}

/// The memory that is searched.
struct Memory {
    program: Option<String>,
    source: Option<Value>,
    start: String,
    end: String,
    bytes: Vec<u8>,
    requested: u64,
    hint: Option<String>,
}

impl Tool for SearchC64Text {
    const NAME: &'static str = "search_c64_text";
    const DESCRIPTION: &'static str = "Search C64 text (PETSCII, screen codes) or bytes in Ghidra or a file. Each address is \
         decoded as a whole text that must equal the query; exactly one of length (the query's), terminator, prefix_size ends it.";
    const EFFECT: Effect = Effect::READS;
    const BRIEF: Option<&'static [&'static str]> = Some(&["source", "tokens"]);
    type Params = Params;
    type Output = FoundView;

    async fn run(context: &Context, params: Params) -> Result<FoundView, ToolError> {
        let (options, search) = params.search()?;
        let most = match params.max_scan_bytes {
            Some(most) => read_length("max_scan_bytes", most)?,
            None => limits::DEFAULT_C64_SCAN_BYTES,
        };
        let memory = params.memory(context, most).await?;
        job::run(context, move |context, _job| {
            let found = c64::text::search(&memory.bytes, &options, &search)?;
            let start = Address::parse("start", &memory.start)?;
            let scanned = memory.bytes.len();
            let configuration = params.text.configuration(&options);
            let mut matches: Vec<MatchView> = found
                .matches
                .iter()
                .map(|found| MatchView {
                    address: start.plus(found.offset),
                    byte_length: found.decoded.consumed.len(),
                    raw_bytes: found.decoded.consumed.to_vec(),
                    raw_hex: c64::to_hex(found.decoded.consumed),
                    decoded_text: found.decoded.plain.clone(),
                    lossless: found.decoded.lossless.clone(),
                    terminated: found.decoded.terminated,
                    warnings: found.decoded.warnings.clone(),
                    configuration: configuration.clone(),
                })
                .collect();
            let truncated = page::keep_first(context, &mut matches);
            let next = truncated.as_ref().and_then(|_| found.matches.get(matches.len()));
            let truncated_scan = (scanned as u64) < memory.requested;
            let mut warnings = Vec::new();
            if truncated_scan {
                warnings.push(format!("scan truncated to max_scan_bytes={scanned}"));
            }
            if found.invalid_candidates > 0 {
                warnings.push(format!("{} invalid length-mode candidates were skipped", found.invalid_candidates));
            }
            Ok(FoundView {
                scanned_end: start.plus(scanned.saturating_sub(1)),
                scanned_bytes: scanned,
                truncated_scan,
                max_results: search.max_results,
                result_limit_reached: found.result_limit_reached,
                invalid_candidates: found.invalid_candidates,
                next: next.map(|found| start.plus(found.offset)),
                matches,
                configuration: SearchConfiguration {
                    text: configuration,
                    query_mode: params.query_mode,
                    stride: search.stride,
                },
                warnings,
                truncated,
                program: memory.program,
                source: memory.source,
                start: memory.start.clone(),
                requested_end: memory.end,
                hint: memory.hint,
            })
        })
        .await
    }
}

impl Params {
    fn search(&self) -> Result<(c64::text::Options, Search), ToolError> {
        let positive = |name: &str, value: Option<i64>, default: usize| match value {
            None => Ok(default),
            Some(value) => usize::try_from(value)
                .ok()
                .filter(|value| *value > 0)
                .ok_or_else(|| invalid(format!("{name} must be a positive integer"))),
        };
        let query = match (self.query_mode, &self.query) {
            (QueryMode::Text, ByteInput::Hex(text)) => Query::Text(text.clone()),
            (QueryMode::Text, ByteInput::List(_)) => {
                return Err(invalid("text query must be a non-empty string").hint("bytes need query_mode: \"bytes\""));
            }
            (QueryMode::Bytes, input) => Query::Bytes(input.bytes("byte query")?),
        };
        let search = Search {
            query,
            stride: positive("stride", self.stride, 1)?,
            max_results: positive("max_results", self.max_results, limits::DEFAULT_C64_SEARCH_RESULTS)?,
        };
        search.check()?;
        let options = match &search.query {
            Query::Text(_) => self.text.options()?,
            Query::Bytes(bytes) => self.text.options_of(Length::Fixed(bytes.len()))?,
        };
        Ok((options, search))
    }

    /// What is searched, at most `most` bytes of it.
    async fn memory(&self, context: &Context, most: usize) -> Result<Memory, ToolError> {
        let missing = |name: &str| invalid(format!("{name} must be a non-empty address"));
        match (&self.program, &self.source) {
            (Some(program), None) => {
                not_blank("program", program)?;
                let start = self.start.clone().ok_or_else(|| missing("start"))?;
                let end = self.end.clone().ok_or_else(|| missing("end"))?;
                let (first, last) = (Address::parse("start", &start)?, Address::parse("end", &end)?);
                let requested = span(&first, &last)?;
                let length = usize::try_from(requested).unwrap_or(usize::MAX).min(most);
                let bytes = context.ghidra().read_memory(program, &start, length).await?;
                Ok(Memory { program: Some(program.clone()), source: None, start, end, bytes, requested, hint: None })
            }
            (None, Some(file)) => {
                let loaded = file.read(context)?;
                let (at, bytes) = loaded.part(file.part())?;
                let start = self.start.clone().unwrap_or_else(|| format!("{at:04x}"));
                let end = self.end.clone().unwrap_or_else(|| format!("{:04x}", at + bytes.len() as u64 - 1));
                let (first, last) = (Address::parse("start", &start)?, Address::parse("end", &end)?);
                let requested = span(&first, &last)?;
                let bytes = first
                    .offset
                    .checked_sub(at)
                    .and_then(|from| bytes.get(usize::try_from(from).ok()?..))
                    .filter(|bytes| bytes.len() as u64 >= requested)
                    .ok_or_else(|| {
                        let last = at + bytes.len() as u64 - 1;
                        invalid(format!("start and end must lie from {at:04x} to {last:04x}, where the file has bytes"))
                    })?;
                let length = usize::try_from(requested).unwrap_or(usize::MAX).min(most);
                let bytes = bytes.get(..length).unwrap_or(bytes).to_vec();
                let (source, hint) = (Some(file.facts(at)), loaded.hint());
                Ok(Memory { program: None, source, start, end, bytes, requested, hint })
            }
            _ => Err(invalid("exactly one of program and source is required")),
        }
    }
}

/// Bytes from one address to another, both included.
fn span(first: &Address<'_>, last: &Address<'_>) -> Result<u64, ToolError> {
    if !first.same_space(last) {
        return Err(invalid("start and end must use the same address space"));
    }
    let bytes = last.offset.checked_sub(first.offset).ok_or_else(|| invalid("end must not be before start"))?;
    Ok(bytes.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use crate::tools::c64_shared::tests::Caller;
    use serde_json::json;

    const TOOL: &str = "search_c64_text";

    fn caller() -> Caller {
        // Loads at $C000.
        Caller::with_files(&[("game.prg", b"\x00\xc0HELLO WORLD\0HELLO\0")])
    }

    #[tokio::test]
    async fn a_program_file_is_searched_by_its_addresses() {
        let source = json!({"kind": "file", "path": "game.prg", "prg": true});
        let arguments = json!({"source": source, "query": "HELLO", "terminator": 0});
        let found = caller().data(TOOL, arguments).await.unwrap();
        assert_eq!(
            (&found["start"], &found["requested_end"], &found["scanned_bytes"]),
            (&json!("c000"), &json!("c011"), &json!(18))
        );
        assert_eq!(found["matches"].as_array().unwrap().len(), 1);
        let first = &found["matches"][0];
        assert_eq!(
            (&first["address"], &first["raw_hex"], &first["terminated"]),
            (&json!("c00c"), &json!("48454c4c4f00"), &json!(true))
        );
        assert_eq!(
            (&found["configuration"]["query_mode"], &found["configuration"]["stride"]),
            (&json!("text"), &json!(1))
        );

        let bytes =
            json!({"source": source, "query": [0x4c, 0x4f], "query_mode": "bytes", "start": "0xc004", "end": "0xc011"});
        let found = caller().data(TOOL, bytes).await.unwrap();
        assert_eq!(found["matches"][0]["address"], "0xc00f");
        assert_eq!(found["configuration"]["length"], 2);
    }

    #[tokio::test]
    async fn the_end_of_a_search_is_told() {
        let source = json!({"path": "game.prg"});
        let arguments = json!({"source": source, "query": "O", "length": 1, "max_results": 2});
        let found = caller().data(TOOL, arguments).await.unwrap();
        assert_eq!((&found["result_limit_reached"], &found["max_results"]), (&json!(true), &json!(2)));
        let arguments = json!({"source": source, "query": "HELLO", "length": 5, "max_scan_bytes": 8});
        let found = caller().data(TOOL, arguments).await.unwrap();
        assert_eq!(
            (&found["truncated_scan"], &found["scanned_end"], &found["invalid_candidates"]),
            (&json!(true), &json!("0007"), &json!(4))
        );
        assert_eq!(
            found["warnings"],
            json!(["scan truncated to max_scan_bytes=8", "4 invalid length-mode candidates were skipped"])
        );
    }

    #[tokio::test]
    async fn matches_that_do_not_fit_are_searched_for_again_from_the_next() {
        let zeros = vec![0x41; 200];
        let caller = Caller::with_files_limited(&[("a.bin", &zeros)], 12_000);
        let (mut start, mut seen) = (None, Vec::new());
        loop {
            let mut arguments = json!({"source": {"path": "a.bin"}, "query": "A", "length": 1, "max_results": 1_000});
            if let Some(start) = &start {
                arguments["start"] = json!(start);
            }
            let found = caller.data(TOOL, arguments).await.unwrap();
            seen.extend(
                found["matches"].as_array().unwrap().iter().map(|found| found["address"].as_str().unwrap().to_owned()),
            );
            match found["next"].as_str() {
                Some(next) => start = Some(next.to_owned()),
                None => break,
            }
        }
        assert_eq!(seen, (0..200).map(|at| format!("{at:04x}")).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn bad_input_is_named() {
        let with = |more: serde_json::Value| {
            let mut arguments = json!({"source": {"path": "game.prg"}, "query": "A", "length": 1});
            arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            arguments
        };
        for (arguments, words) in [
            (with(json!({"program": "x"})), "exactly one of program and source"),
            (with(json!({"query": ""})), "non-empty string"),
            (with(json!({"query": [1]})), "query_mode"),
            (with(json!({"query_mode": "bytes", "query": "414"})), "byte query must contain an even number"),
            (with(json!({"stride": 0})), "stride must be a positive integer"),
            (with(json!({"max_results": 1_001})), "must not exceed 1000"),
            (with(json!({"max_scan_bytes": 0})), "max_scan_bytes must be a positive integer"),
            (with(json!({"max_scan_bytes": 1_048_577})), "must not exceed 1048576"),
            (with(json!({"start": "5", "end": "4"})), "end must not be before start"),
            (with(json!({"start": "RAM:5"})), "same address space"),
            (with(json!({"start": "0", "end": "ffff"})), "must lie from 0000 to 0013"),
            (json!({"program": " ", "query": "A", "length": 1}), "program must not be blank"),
            (json!({"program": "x", "query": "A", "length": 1}), "start must be a non-empty address"),
            (json!({"program": "x", "query": "A", "start": "0", "end": "f"}), "exactly one length mode"),
        ] {
            let error = caller().refused(TOOL, arguments.clone()).await;
            assert_eq!(error.code.word(), "invalid_arguments");
            assert!(error.line().contains(words), "{arguments}: {error}");
        }
    }
}
