//! `nds_search_pattern`: where a byte pattern, integer or text occurs in a ROM, and what it belongs to there.

use super::prelude::*;
use super::shared::shapes::{OwnerShown, hex};
use ::nds::{Endian, Hit, PatternSpec, Progress, SearchRequest, SearchScope, search};
use std::sync::Arc;

/// The tool.
#[derive(Debug)]
pub struct NdsSearchPattern;

/// What to look for, and where.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Params {
    /// Path below the workspace.
    #[schemars(length(min = 1))]
    rom: String,
    /// What to look for.
    pattern: PatternWanted,
    /// Where; a hit lies wholly inside one component.
    scope: ScopeWanted,
    /// Hits to skip.
    #[serde(default)]
    offset: Bounded<0, { limits::MAX_PATTERN_OFFSET as u64 }, 0>,
    /// Hits in one answer.
    #[serde(default)]
    limit: Bounded<1, { limits::MAX_PATTERN_LIMIT as u64 }, { limits::DEFAULT_PATTERN_HITS }>,
    /// Bytes to look at.
    #[serde(default)]
    max_scan_bytes: Bounded<1, { limits::MAX_PATTERN_SCAN_BYTES }, { limits::DEFAULT_PATTERN_SCAN_BYTES }>,
    /// Bytes to show around a hit.
    #[serde(default)]
    context_bytes: Bounded<0, { limits::MAX_PATTERN_CONTEXT_BYTES as u64 }, 0>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "camelCase", deny_unknown_fields)]
enum PatternWanted {
    ByteSignature {
        /// Hex pairs; `??` is any byte.
        #[schemars(length(min = 1))]
        signature: String,
    },
    Integer {
        value: i64,
        /// 8, 16 or 32.
        width: u8,
        endian: EndianName,
        signed: bool,
        /// 1 (default), 2 or 4.
        #[serde(default)]
        alignment: Option<u8>,
    },
    Ascii {
        #[schemars(length(min = 1))]
        text: String,
    },
    Utf16le {
        #[schemars(length(min = 1))]
        text: String,
    },
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum EndianName {
    Little,
    Big,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "camelCase", deny_unknown_fields)]
enum ScopeWanted {
    WholeRom {},
    Components {
        #[serde(default)]
        arm9_main: bool,
        #[serde(default)]
        arm7_main: bool,
        #[serde(default)]
        #[schemars(length(max = limits::MAX_SCOPE_OVERLAYS))]
        arm9_overlay_ids: Vec<u32>,
        #[serde(default)]
        #[schemars(length(max = limits::MAX_SCOPE_OVERLAYS))]
        arm7_overlay_ids: Vec<u32>,
        #[serde(default)]
        #[schemars(length(max = limits::MAX_SCOPE_FILES))]
        nitro_fs_file_ids: Vec<u32>,
        #[serde(default)]
        #[schemars(length(max = limits::MAX_SCOPE_FILES))]
        nitro_fs_paths: Vec<String>,
    },
}

/// Where it occurs.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    /// The path as given.
    rom: String,
    /// SHA-256 of the ROM.
    sha256: String,
    /// `complete`: every byte of the scope was looked at; or `truncated`.
    status: &'static str,
    /// Why it is truncated: `byte-limit`, `match-limit`.
    truncation_reasons: Vec<&'static str>,
    /// Hits that were skipped.
    offset: usize,
    /// Hits in one answer, as asked.
    limit: usize,
    /// `offset` of the next part.
    next_offset: Option<usize>,
    /// Bytes looked at.
    scanned_bytes: u64,
    /// Hits in all of them.
    discovered_matches: usize,
    /// Hits in this answer.
    returned: usize,
    /// Why the answer ends before the hits asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<String>,
    /// The hits, ascending.
    matches: Vec<Match>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Match {
    rom_offset: u32,
    end_offset: u64,
    length: usize,
    bytes_hex: String,
    /// Everything that one of its bytes belongs to.
    owners: Vec<OwnerShown>,
    context: Around,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Around {
    before_hex: String,
    after_hex: String,
    /// Whether the ROM begins before as many bytes as asked.
    clipped_at_start: bool,
    clipped_at_end: bool,
}

impl Tool for NdsSearchPattern {
    const NAME: &'static str = "nds_search_pattern";
    const DESCRIPTION: &'static str = "Search the stored bytes of a Nintendo DS ROM for a byte signature with wildcards, an \
         integer or a text, and say what each hit belongs to. Overlapping hits are kept; compressed code is searched as stored.";
    const EFFECT: Effect = Effect::READS;
    type Params = Params;
    type Output = Shown<Found>;

    async fn run(context: &Context, params: Params) -> Result<Self::Output, ToolError> {
        let code = ErrorCode::PatternSearchLimitExceeded;
        let request = SearchRequest {
            pattern: pattern(params.pattern),
            scope: scope(params.scope)?,
            offset: params.offset.count("offset", code)?,
            limit: params.limit.count("limit", code)?,
            max_scan_bytes: params.max_scan_bytes.get("maxScanBytes", code)?,
            context_bytes: params.context_bytes.count("contextBytes", code)?,
        };
        let path = params.rom;
        on_rom(context, path.clone(), move |context, job, rom| {
            let watcher = |at: Progress| job.wanted(at.done, at.total, "searching");
            let found = search(rom, &request, &watcher)?;
            shown(context, path, rom, found).map(Shown)
        })
        .await
    }
}

fn pattern(wanted: PatternWanted) -> PatternSpec {
    match wanted {
        PatternWanted::ByteSignature { signature } => PatternSpec::ByteSignature(signature),
        PatternWanted::Integer { value, width, endian, signed, alignment } => PatternSpec::Integer {
            value,
            width,
            endian: match endian {
                EndianName::Little => Endian::Little,
                EndianName::Big => Endian::Big,
            },
            signed,
            alignment,
        },
        PatternWanted::Ascii { text } => PatternSpec::Ascii(text),
        PatternWanted::Utf16le { text } => PatternSpec::Utf16le(text),
    }
}

fn scope(wanted: ScopeWanted) -> Result<SearchScope, ToolError> {
    let ScopeWanted::Components {
        arm9_main,
        arm7_main,
        arm9_overlay_ids,
        arm7_overlay_ids,
        nitro_fs_file_ids,
        nitro_fs_paths,
    } = wanted
    else {
        return Ok(SearchScope::WholeRom);
    };
    for (name, length, most) in [
        ("arm9OverlayIds", arm9_overlay_ids.len(), limits::MAX_SCOPE_OVERLAYS),
        ("arm7OverlayIds", arm7_overlay_ids.len(), limits::MAX_SCOPE_OVERLAYS),
        ("nitroFsFileIds", nitro_fs_file_ids.len(), limits::MAX_SCOPE_FILES),
        ("nitroFsPaths", nitro_fs_paths.len(), limits::MAX_SCOPE_FILES),
    ] {
        if length > most {
            return Err(ToolError::new(
                ErrorCode::InvalidPatternScope,
                format!("`{name}` names {length} components; {most} are allowed"),
            )
            .hint("search them in several calls, or the whole ROM"));
        }
    }
    for path in &nitro_fs_paths {
        check_path("nitroFsPaths", path)?;
    }
    Ok(SearchScope::Components {
        arm9_main,
        arm7_main,
        arm9_overlay_ids,
        arm7_overlay_ids,
        nitro_fs_file_ids,
        nitro_fs_paths,
    })
}

fn shown(context: &Context, path: String, rom: &Arc<Rom>, found: ::nds::SearchResult) -> Result<Found, ToolError> {
    let mut answer = Found {
        rom: path,
        sha256: rom.sha256().to_owned(),
        status: found.status,
        truncation_reasons: found.truncation_reasons,
        offset: found.offset,
        limit: found.limit,
        next_offset: found.next_offset,
        scanned_bytes: found.scanned_bytes,
        discovered_matches: found.discovered_matches,
        returned: 0,
        truncated: None,
        matches: Vec::new(),
    };
    let all = &found.matches;
    let wanted = Wanted { offset: 0, limit: None };
    let part = part(context, wanted, all.len(), &answer, |at| to_value(&all.get(at).map(one)))?;
    answer.returned = part.returned;
    if let Some(next) = part.next {
        answer.next_offset = Some(answer.offset + next);
    }
    answer.truncated = part.truncated;
    answer.matches = all.get(part.range).unwrap_or_default().iter().map(one).collect();
    Ok(answer)
}

fn one(hit: &Hit) -> Match {
    Match {
        rom_offset: hit.rom_offset,
        end_offset: hit.end_offset,
        length: hit.bytes.len(),
        bytes_hex: hex(&hit.bytes),
        owners: hit.owners.iter().map(OwnerShown::of).collect(),
        context: Around {
            before_hex: hex(&hit.context.before),
            after_hex: hex(&hit.context.after),
            clipped_at_start: hit.context.clipped_at_start,
            clipped_at_end: hit.context.clipped_at_end,
        },
    }
}
