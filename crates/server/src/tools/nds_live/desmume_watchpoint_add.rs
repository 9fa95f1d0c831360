//! `desmume_watchpoint_add`: stops the program when it accesses an address.

use super::prelude::*;
use debug::gdb_remote::{WatchKind, Watchpoint};

/// The tool.
#[derive(Debug)]
pub struct DesmumeWatchpointAdd;

/// What to watch.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Params {
    address: Address,
    /// 1, 2 or 4: the size of the access. DeSmuME compares the first address only.
    #[serde(default = "word")]
    size: u32,
    /// `write` (default), `read` or `access`.
    #[serde(default)]
    kind: Kind,
    /// `arm9` (default) or `arm7`.
    #[serde(default)]
    processor: Which,
}

/// The watchpoint.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Told {
    #[serde(flatten)]
    watchpoint: WatchpointShown,
    #[serde(flatten)]
    place: Where,
}

impl Tool for DesmumeWatchpointAdd {
    const NAME: &'static str = "desmume_watchpoint_add";
    const DESCRIPTION: &'static str = "Set a watchpoint on data: the program stops just behind the instruction that writes, reads or accesses the address. The configuration must switch it on.";
    const EFFECT: Effect = Effect::SETS;
    type Params = Params;
    type Output = Shown<Told>;

    async fn run(context: &Context, params: Params) -> Result<Self::Output, ToolError> {
        if !context.live().options().watchpoints {
            return Err(ToolError::new(ErrorCode::NotConfigured, "watchpoints are switched off")
                .hint("write `watchpoints = true` under [emulator] in retroscope.toml"));
        }
        session::with(context, move |state| {
            let kind = params.kind.into();
            let watchpoint =
                state.stopped(params.processor.into())?.add_watchpoint(params.address.0, params.size, kind, soon())?;
            Ok(Shown(Told { watchpoint: WatchpointShown::of(&watchpoint), place: Where::of(state) }))
        })
        .await
    }
}

const fn word() -> u32 {
    4
}

// Which accesses.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Kind {
    #[default]
    Write,
    Read,
    Access,
}

impl From<Kind> for WatchKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Write => Self::Write,
            Kind::Read => Self::Read,
            Kind::Access => Self::Access,
        }
    }
}

/// A watchpoint.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WatchpointShown {
    id: String,
    address: u32,
    size: u32,
    kind: &'static str,
    created_at: String,
    hit_count: u64,
}

impl WatchpointShown {
    pub fn of(watchpoint: &Watchpoint) -> Self {
        Self {
            id: watchpoint.id.clone(),
            address: watchpoint.address,
            size: watchpoint.size,
            kind: match watchpoint.kind {
                WatchKind::Write => "write",
                WatchKind::Read => "read",
                WatchKind::Access => "access",
            },
            created_at: iso(watchpoint.created),
            hit_count: watchpoint.hits,
        }
    }
}
