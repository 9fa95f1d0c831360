//! Search of the stored bytes of a ROM for a pattern, with every owner of a hit.
//!
//! A negative is only certain where `status` is `complete`. Compressed overlays are searched as they are stored.

use std::ops::Range;

use base::limits;

use crate::pattern::{Pattern, PatternSpec};
use crate::watch::{Failure, Progress, Watcher};
use crate::{ComponentId, OffsetMatch, Processor, Refusal, Rom};

/// Where to look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SearchScope {
    /// Every byte of the file.
    WholeRom,
    /// The stored bytes of these; a hit must lie wholly inside one of them.
    Components {
        /// The ARM9 main program.
        arm9_main: bool,
        /// The ARM7 main program.
        arm7_main: bool,
        /// ARM9 overlays by identifier.
        arm9_overlay_ids: Vec<u32>,
        /// ARM7 overlays by identifier.
        arm7_overlay_ids: Vec<u32>,
        /// Files by number.
        nitro_fs_file_ids: Vec<u32>,
        /// Files by path, with or without a leading slash.
        nitro_fs_paths: Vec<String>,
    },
}

/// A search, as the tool takes it.
#[derive(Clone, Debug)]
pub struct SearchRequest {
    /// What to look for.
    pub pattern: PatternSpec,
    /// Where.
    pub scope: SearchScope,
    /// Hits to skip.
    pub offset: usize,
    /// Hits to give.
    pub limit: usize,
    /// Bytes to look at; the search ends there.
    pub max_scan_bytes: u64,
    /// Bytes to show before and after a hit.
    pub context_bytes: usize,
}

/// Bytes around a hit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HitContext {
    /// Bytes before it.
    pub before: Vec<u8>,
    /// Bytes after it.
    pub after: Vec<u8>,
    /// Whether the file began before as many bytes as were asked for.
    pub clipped_at_start: bool,
    /// Whether the file ended before.
    pub clipped_at_end: bool,
}

/// A place where the pattern occurs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Its first byte.
    pub rom_offset: u32,
    /// Behind its last byte.
    pub end_offset: u64,
    /// Its bytes, with those that wildcards stand for.
    pub bytes: Vec<u8>,
    /// Everything that one of its bytes belongs to; `unmapped` alone when nothing does.
    pub owners: Vec<OffsetMatch>,
    /// Bytes around it.
    pub context: HitContext,
}

/// What a search found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchResult {
    /// `complete`: every byte of the scope was looked at; or `truncated`.
    pub status: &'static str,
    /// Why it is truncated: `byte-limit`; `match-limit` where hits lie past the largest offset.
    pub truncation_reasons: Vec<&'static str>,
    /// Hits that were skipped, as asked.
    pub offset: usize,
    /// Hits at most, as asked.
    pub limit: usize,
    /// Where to go on; `None` at the end.
    pub next_offset: Option<usize>,
    /// Bytes that were looked at, each counted once.
    pub scanned_bytes: u64,
    /// All hits in those bytes, on every page.
    pub discovered_matches: usize,
    /// Those of this page, ascending.
    pub matches: Vec<Hit>,
}

/// Bytes looked at between two questions to the watcher: well under a millisecond's work.
const WINDOW: usize = 4 << 20;

/// Searches.
///
/// # Errors
/// `invalid-pattern`; `invalid-pattern-scope`, `unknown-overlay-id`, `unknown-file-id` for the scope; or cancelled.
pub fn search(rom: &Rom, request: &SearchRequest, watcher: Watcher<'_>) -> Result<SearchResult, Failure> {
    let pattern = Pattern::new(&request.pattern)?;
    let ranges = scope_ranges(rom, &request.scope)?;
    let bytes = rom.bytes();
    let found = find(bytes, &ranges, &pattern, request, watcher)?;
    let page_end = request.offset.saturating_add(found.places.len());
    let mut reasons = Vec::new();
    if found.clipped {
        reasons.push("byte-limit");
    }
    let more = found.total > page_end;
    if more && page_end > limits::MAX_PATTERN_OFFSET {
        reasons.push("match-limit");
    }
    Ok(SearchResult {
        status: if reasons.is_empty() { "complete" } else { "truncated" },
        truncation_reasons: reasons,
        offset: request.offset,
        limit: request.limit,
        next_offset: (more && page_end <= limits::MAX_PATTERN_OFFSET).then_some(page_end),
        scanned_bytes: found.scanned,
        discovered_matches: found.total,
        matches: found.places.into_iter().map(|place| hit(rom, place, pattern.len(), request.context_bytes)).collect(),
    })
}

/// What was found in the ranges.
struct Found {
    places: Vec<usize>,
    total: usize,
    scanned: u64,
    clipped: bool,
}

/// Hits of `pattern` that lie wholly inside one of the ranges, which are sorted and of which none contains another.
fn find(
    bytes: &[u8],
    ranges: &[Range<usize>],
    pattern: &Pattern,
    request: &SearchRequest,
    watcher: Watcher<'_>,
) -> Result<Found, Failure> {
    let searcher = pattern.searcher();
    let mut found = Found { places: Vec::new(), total: 0, scanned: 0, clipped: false };
    let mut covered = 0;
    let all = total_bytes(ranges);
    for range in ranges {
        // What an earlier range covers is not counted again, but a hit may begin there and end in this one.
        let fresh = range.start.max(covered);
        let room = usize::try_from(request.max_scan_bytes - found.scanned).unwrap_or(usize::MAX);
        let end = range.end.min(fresh.saturating_add(room));
        let mut start =
            if fresh > range.start { range.start.max((fresh + 1).saturating_sub(pattern.len())) } else { fresh };
        let before = found.scanned;
        while start < end {
            let next = end.min(start + WINDOW);
            // Each hit belongs to the window where it begins.
            let Some(window) = bytes.get(start..end.min(next + pattern.len() - 1)) else { break };
            searcher.each(window, start, &mut |at| {
                if found.total >= request.offset && found.places.len() < request.limit {
                    found.places.push(start + at);
                }
                found.total += 1;
            });
            found.scanned = before + next.saturating_sub(fresh) as u64;
            if !watcher(Progress { done: found.scanned, total: all }) {
                return Err(Failure::Cancelled);
            }
            start = next;
        }
        covered = covered.max(end);
        if end < range.end {
            found.clipped = true;
            break;
        }
    }
    Ok(found)
}

/// Bytes in sorted ranges, each counted once.
fn total_bytes(ranges: &[Range<usize>]) -> u64 {
    let mut covered = 0;
    let mut total = 0;
    for range in ranges {
        total += range.end.saturating_sub(range.start.max(covered)) as u64;
        covered = covered.max(range.end);
    }
    total
}

/// The ranges of a scope, sorted; one that lies inside another is left out, because its hits are hits of that.
fn scope_ranges(rom: &Rom, scope: &SearchScope) -> Result<Vec<Range<usize>>, Refusal> {
    let mut ranges = match scope {
        SearchScope::WholeRom => std::iter::once(0..rom.bytes().len()).collect(),
        SearchScope::Components {
            arm9_main,
            arm7_main,
            arm9_overlay_ids,
            arm7_overlay_ids,
            nitro_fs_file_ids,
            nitro_fs_paths,
        } => {
            let overlays = |processor: Processor, ids: &[u32]| {
                ids.iter().map(move |id| ComponentId::overlay(processor, *id)).collect::<Vec<_>>()
            };
            let mut components = Vec::new();
            components.extend(arm9_main.then_some(ComponentId::main(Processor::Arm9)));
            components.extend(arm7_main.then_some(ComponentId::main(Processor::Arm7)));
            components.extend(overlays(Processor::Arm9, arm9_overlay_ids));
            components.extend(overlays(Processor::Arm7, arm7_overlay_ids));
            if components.is_empty() && nitro_fs_file_ids.is_empty() && nitro_fs_paths.is_empty() {
                return Err(Refusal::new(
                    "invalid-pattern-scope",
                    "the scope names no component".to_owned(),
                    "Name at least one program, overlay or file, or search the whole ROM.",
                ));
            }
            let mut ranges = Vec::new();
            for id in components {
                ranges.extend(component_range(rom, id)?);
            }
            for id in nitro_fs_file_ids {
                let file = rom.files().iter().find(|file| file.id == *id);
                ranges.extend(file_range(file, || format!("file {id}"))?);
            }
            for path in nitro_fs_paths {
                let wanted = path.trim_start_matches('/');
                let file = rom.files().iter().find(|file| file.path.as_deref().is_some_and(|path| path == wanted));
                ranges.extend(file_range(file, || format!("`{path}`"))?);
            }
            ranges
        }
    };
    ranges.retain(|range| !range.is_empty());
    ranges.sort_by_key(|range| (range.start, std::cmp::Reverse(range.end)));
    let mut reach = 0;
    ranges.retain(|range| {
        let extends = range.end > reach;
        reach = reach.max(range.end);
        extends
    });
    Ok(ranges)
}

fn component_range(rom: &Rom, id: ComponentId) -> Result<Option<Range<usize>>, Refusal> {
    match rom.component(id) {
        Some(component) => Ok(component.stored.clone().map(usize_range)),
        None => Err(Refusal::new(
            if id.overlay_id().is_some() { "unknown-overlay-id" } else { "invalid-pattern-scope" },
            format!("this ROM has no {}", id.name()),
            "nds_list_overlays and nds_inspect_rom tell what it has.",
        )),
    }
}

fn file_range(file: Option<&crate::File>, name: impl Fn() -> String) -> Result<Option<Range<usize>>, Refusal> {
    match file {
        Some(file) => Ok(file.range().map(usize_range)),
        None => Err(Refusal::new(
            "unknown-file-id",
            format!("this ROM has no {}", name()),
            "nds_list_files tells numbers and paths.",
        )),
    }
}

fn usize_range(range: Range<u32>) -> Range<usize> {
    range.start as usize..range.end as usize
}

fn hit(rom: &Rom, place: usize, length: usize, context: usize) -> Hit {
    let bytes = rom.bytes();
    let end = place + length;
    let before = place.saturating_sub(context);
    let after = end.saturating_add(context).min(bytes.len());
    let part = |range: Range<usize>| bytes.get(range).unwrap_or_default().to_vec();
    let rom_offset = u32::try_from(place).unwrap_or(u32::MAX);
    let mut owners: Vec<OffsetMatch> = Vec::new();
    for offset in (rom_offset..).take(length) {
        for owner in rom.resolve_offset(offset) {
            let same = |other: &OffsetMatch| {
                (other.kind, other.component, other.file_id) == (owner.kind, owner.component, owner.file_id)
            };
            if !owners.iter().any(same) {
                owners.push(owner);
            }
        }
    }
    if owners.is_empty() {
        owners.push(OffsetMatch { kind: "unmapped", component: None, file_id: None, runtime_address: None });
    }
    Hit {
        rom_offset,
        end_offset: end as u64,
        bytes: part(place..end),
        owners,
        context: HitContext {
            before: part(before..place),
            after: part(end..after),
            clipped_at_start: place < context,
            clipped_at_end: end.saturating_add(context) > bytes.len(),
        },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::watch::UNWATCHED;

    fn request(max_scan_bytes: u64, offset: usize, limit: usize) -> SearchRequest {
        let pattern = PatternSpec::Ascii("unused".into());
        SearchRequest { pattern, scope: SearchScope::WholeRom, offset, limit, max_scan_bytes, context_bytes: 0 }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn hits_lie_inside_one_range_and_come_once(
            haystack in prop::collection::vec(0_u8..2, 1..60),
            cuts in prop::collection::vec((0_usize..60, 0_usize..60), 1..5),
            needle in prop::collection::vec(0_u8..2, 1..4),
            max in 1_u64..80,
        ) {
            let mut ranges: Vec<_> = cuts
                .into_iter()
                .map(|(a, b)| a.min(b).min(haystack.len())..a.max(b).min(haystack.len()))
                .filter(|range| !range.is_empty())
                .collect();
            ranges.sort_by_key(|range| (range.start, std::cmp::Reverse(range.end)));
            let all = ranges.clone();
            ranges.retain(|range| !all.iter().any(|other| other != range && other.start <= range.start && range.end <= other.end));
            ranges.dedup();
            let union = (0..haystack.len()).filter(|at| all.iter().any(|range| range.contains(at))).count() as u64;
            let naive: Vec<_> = (0..haystack.len())
                .filter(|at| all.iter().any(|range| range.start <= *at && at + needle.len() <= range.end))
                .filter(|at| haystack[*at..].starts_with(&needle))
                .collect();
            let pattern = Pattern::of(needle.iter().copied().map(Some).collect(), 1).unwrap();
            let found = find(&haystack, &ranges, &pattern, &request(max, 0, usize::MAX), UNWATCHED).unwrap();
            prop_assert_eq!(found.clipped, max < union);
            prop_assert_eq!(found.scanned, max.min(union));
            prop_assert_eq!(found.total, found.places.len());
            if found.clipped {
                prop_assert!(naive.starts_with(&found.places));
            } else {
                prop_assert_eq!(&found.places, &naive);
            }
            let page = find(&haystack, &ranges, &pattern, &request(max, 1, 2), UNWATCHED).unwrap();
            prop_assert_eq!(page.places, found.places.iter().copied().skip(1).take(2).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_hit_at_the_edge_of_a_window_is_found_once() {
        // Hits that begin just before, at and behind the place where one window ends and the next begins.
        let pattern = Pattern::of(vec![Some(1), Some(2), Some(3)], 1).unwrap();
        for first in WINDOW - 4..=WINDOW + 1 {
            let mut haystack = vec![0; WINDOW + 16];
            haystack[first..first + 3].copy_from_slice(&[1, 2, 3]);
            haystack[first + 4..first + 7].copy_from_slice(&[1, 2, 3]);
            let whole = Range { start: 0, end: haystack.len() };
            let request = request(u64::MAX, 0, 9);
            let found = find(&haystack, std::slice::from_ref(&whole), &pattern, &request, UNWATCHED).unwrap();
            assert_eq!((found.places, found.total), (vec![first, first + 4], 2));
        }
    }

    #[test]
    fn a_search_can_be_ended() {
        let pattern = Pattern::of(vec![Some(1)], 1).unwrap();
        let whole = Range { start: 0, end: 100 };
        let ended = find(&[0; 100], std::slice::from_ref(&whole), &pattern, &request(100, 0, 1), &|progress| {
            assert_eq!(progress, Progress { done: 100, total: 100 });
            false
        });
        assert_eq!(ended.err(), Some(Failure::Cancelled));
    }
}
