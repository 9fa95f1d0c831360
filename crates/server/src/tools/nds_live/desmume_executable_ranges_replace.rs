//! `desmume_executable_ranges_replace`: says where code may be besides the program itself.

use super::prelude::*;
use debug::gdb_remote::{Mode, Range, RangeSource};
use std::collections::BTreeMap;

/// The tool.
#[derive(Debug)]
pub struct DesmumeExecutableRangesReplace;

/// The ranges.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Params {
    /// All ranges there are to be, up to 64; the program's own is always there.
    ranges: Vec<RangeWanted>,
    /// `arm9` (default) or `arm7`.
    #[serde(default)]
    processor: Which,
}

/// The ranges.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Told {
    executable_ranges: Vec<RangeShown>,
    #[serde(flatten)]
    place: Where,
}

impl Tool for DesmumeExecutableRangesReplace {
    const NAME: &'static str = "desmume_executable_ranges_replace";
    const DESCRIPTION: &'static str = "Replace the executable ranges that breakpoints may be set in, for overlays and code that is copied; a range with a breakpoint must stay.";
    const EFFECT: Effect = Effect::SETS;
    type Params = Params;
    type Output = Shown<Told>;

    async fn run(context: &Context, params: Params) -> Result<Self::Output, ToolError> {
        let ranges = params.ranges.into_iter().map(RangeWanted::range).collect();
        session::with(context, move |state| {
            let debugger = state.stopped(params.processor.into())?;
            debugger.replace_ranges(ranges)?;
            let executable_ranges = debugger.ranges().iter().map(RangeShown::of).collect();
            Ok(Shown(Told { executable_ranges, place: Where::of(state) }))
        })
        .await
    }
}

/// A range as it is wanted.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
struct RangeWanted {
    #[schemars(regex(pattern = "^[A-Za-z0-9._-]{1,64}$"))]
    id: String,
    #[schemars(length(min = 1, max = 128))]
    label: String,
    start: Address,
    /// First address behind it.
    end: Address,
    source: Source,
    #[serde(default)]
    overlay_id: Option<u32>,
    /// The mode of all its code, if there is one.
    #[serde(default)]
    default_mode: Option<OneMode>,
    /// Modes of single symbols.
    #[serde(default)]
    symbol_modes: BTreeMap<String, OneMode>,
}

// Where a range comes from.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Source {
    Overlay,
    Explicit,
}

const fn mode(mode: OneMode) -> Mode {
    match mode {
        OneMode::Arm => Mode::Arm,
        OneMode::Thumb => Mode::Thumb,
    }
}

impl RangeWanted {
    fn range(self) -> Range {
        Range {
            id: self.id,
            label: self.label,
            start: self.start.0,
            end: self.end.0,
            source: match self.source {
                Source::Overlay => RangeSource::Overlay(self.overlay_id),
                Source::Explicit => RangeSource::Explicit,
            },
            default_mode: self.default_mode.map(mode),
            symbol_modes: self.symbol_modes.into_iter().map(|(name, one)| (name, mode(one))).collect(),
        }
    }
}

/// A range.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RangeShown {
    id: String,
    label: String,
    start: u32,
    end: u32,
    source: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    overlay_id: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    default_mode: Option<&'static str>,
}

impl RangeShown {
    pub fn of(range: &Range) -> Self {
        let (source, overlay_id) = source_words(range.source);
        Self {
            id: range.id.clone(),
            label: range.label.clone(),
            start: range.start,
            end: range.end,
            source,
            overlay_id,
            default_mode: range.default_mode.map(session::mode_word),
        }
    }
}
