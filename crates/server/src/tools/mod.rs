//! The one list of groups of tools, and the profiles made of them.

pub mod c64_graphics;
mod c64_groups;
mod c64_shared;
pub mod c64_symbols;
pub mod c64_text;
pub mod c64_vice;
pub mod debug;
pub mod meta;
pub mod nds;
pub mod nds_build;
pub mod nds_live;
mod page;
mod tool;
pub mod workspace;

pub use tool::{Answer, Effect, Entry, Output, Picture, Running, Tool};

/// Tools that belong together.
#[derive(Debug)]
pub struct Group {
    /// Its name.
    pub name: &'static str,
    /// What it is for.
    pub purpose: &'static str,
    /// Whether it works on files, and so needs a workspace.
    pub files: bool,
    /// Its tools, in the order of the lists.
    pub tools: &'static [Entry],
}

/// Every group; adding one is one module and one line here, and a line in the profiles that list it.
pub const GROUPS: &[&Group] = &[
    &debug::GROUP,
    &nds::GROUP,
    &nds_build::GROUP,
    &nds_live::GROUP,
    &workspace::GROUP,
    &c64_symbols::GROUP,
    &c64_text::GROUP,
    &c64_graphics::GROUP,
    &c64_vice::GROUP,
    #[cfg(feature = "conformance")]
    &crate::conformance::GROUP,
];

/// Which tools a client sees. It is chosen at start or by the endpoint; on stdio, clients of older revisions of the protocol
/// can load groups on top of it.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    name: &'static str,
    purpose: &'static str,
    groups: &'static [&'static Group],
}

/// Every profile, `full` first; adding one is one entry here.
pub const PROFILES: &[Profile] = &[
    Profile::FULL,
    Profile {
        name: "minimal",
        purpose: "Finds the tools and calls any of them by name, at the least cost in context.",
        groups: &[],
    },
    Profile { name: "debug", purpose: debug::GROUP.purpose, groups: &[&debug::GROUP] },
    Profile { name: "nds", purpose: nds::GROUP.purpose, groups: &[&nds::GROUP, &nds_build::GROUP, &workspace::GROUP] },
    Profile {
        name: "c64",
        purpose: "Reads what is in a Commodore 64 program: text, pictures, and names for Ghidra.",
        groups: &[&c64_symbols::GROUP, &c64_text::GROUP, &c64_graphics::GROUP],
    },
    Profile {
        name: "c64-live",
        purpose: "Runs a Commodore 64 program under VICE, and looks its addresses up.",
        groups: &[&c64_symbols::GROUP, &c64_vice::GROUP],
    },
    Profile {
        name: "nds-live",
        purpose: "Runs a Nintendo DS ROM under DeSmuME's debugger, and looks its addresses up; call_tool reaches the other tools \
             on ROMs, which search_tools finds.",
        groups: &[&nds::FEW, &nds_live::GROUP, &workspace::GROUP],
    },
    #[cfg(feature = "conformance")]
    Profile {
        name: crate::conformance::GROUP.name,
        purpose: crate::conformance::GROUP.purpose,
        groups: &[&crate::conformance::GROUP],
    },
];

/// Names that profiles had in c64-mcp, and ours. They are understood wherever a profile is named, and not listed.
pub const PROFILE_ALIASES: &[(&str, &str)] = &[("static", "c64"), ("vice", "c64-live")];

impl Profile {
    /// Everything.
    pub const FULL: Self = Self { name: "full", purpose: "Every tool.", groups: GROUPS };

    /// Every profile, `full` first.
    pub fn all() -> impl Iterator<Item = Self> {
        PROFILES.iter().copied()
    }

    /// The profile of that name, which may be one that c64-mcp had for it.
    pub fn named(name: &str) -> Option<Self> {
        let ours = PROFILE_ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, ours)| ours);
        Self::all().find(|profile| profile.name() == ours)
    }

    /// The names of all profiles, for messages.
    pub fn names() -> String {
        Self::all().map(Self::name).collect::<Vec<_>>().join(", ")
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.name
    }

    /// What it is for.
    pub fn purpose(self) -> &'static str {
        self.purpose
    }

    /// Its groups, apart from `meta`, which is always there.
    pub fn groups(self) -> &'static [&'static Group] {
        self.groups
    }

    /// Whether `call_tool` is listed and reaches every group: where nothing else is, or only a part of a group.
    pub fn calls_any(self) -> bool {
        let is_whole = |group: &&Group| {
            GROUPS.iter().any(|whole| whole.tools.len() == group.tools.len() && whole.name == group.name)
        };
        self.groups.is_empty() || !self.groups.iter().all(is_whole)
    }

    /// Its tools, in the order of the lists.
    pub fn tools(self) -> impl Iterator<Item = &'static Entry> {
        let call = self.calls_any().then_some(&meta::CALL_TOOL);
        meta::GROUP.tools.iter().chain(call).chain(self.groups.iter().flat_map(|group| group.tools))
    }

    /// Whether any of its tools works on files.
    pub fn has_file_tools(self) -> bool {
        let reached = if self.calls_any() { GROUPS } else { self.groups };
        reached.iter().any(|group| group.files)
    }
}

/// Every tool that some client can be shown, whatever the profile, with the name of its group.
pub fn all() -> impl Iterator<Item = (&'static str, &'static Entry)> {
    let meta = meta::GROUP.tools.iter().chain(meta::LOADING).chain([&meta::CALL_TOOL]);
    let meta = meta.map(|tool| (meta::GROUP.name, tool));
    meta.chain(GROUPS.iter().flat_map(|group| group.tools.iter().map(|tool| (group.name, tool))))
}

/// The tool of that name, whatever the profile, be it listed anywhere or not.
pub fn find(name: &str) -> Option<&'static Entry> {
    all().map(|(_, tool)| tool).find(|tool| tool.name == name).or_else(|| anywhere(name))
}

/// The tool of that name that can be called in every profile, though not every client is shown it.
pub fn anywhere(name: &str) -> Option<&'static Entry> {
    meta::LOADING.iter().chain(c64_groups::ALIASES).find(|tool| tool.name == name)
}

/// The tool whose name is nearest to a mistyped one, for a hint.
pub fn nearest(name: &str) -> Option<&'static str> {
    let name = name.get(..64).unwrap_or(name);
    all()
        .map(|(_, tool)| (distance(name, tool.name), tool.name))
        .min()
        .filter(|(far, _)| *far <= 4)
        .map(|(_, near)| near)
}

/// Edits that make one word of another (Levenshtein 1966).
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, to) in row.iter_mut().skip(1).zip(b.chars()) {
            let above = *cell;
            left = (above + 1).min(left + 1).min(diagonal + usize::from(from != to));
            diagonal = above;
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_tool_can_be_listed_by_any_client() {
        let mut names = HashSet::new();
        for (_, tool) in all() {
            assert!(names.insert(tool.name), "{} is there twice", tool.name);
            assert!(tool.name.len() <= 48, "{}", tool.name);
            assert!(
                tool.name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'),
                "{}",
                tool.name
            );
            // Claude Code cuts longer ones.
            assert!(tool.description.len() <= 2_048, "{}: {}", tool.name, tool.description.len());
            assert!(tool.summary().len() <= 200, "{}: {}", tool.name, tool.summary());
            assert_eq!((tool.input_schema)().get("additionalProperties"), Some(&false.into()), "{}", tool.name);
        }
        let groups: HashSet<_> = GROUPS.iter().map(|group| group.name).collect();
        assert_eq!(groups.len(), GROUPS.len());
    }

    #[test]
    fn what_reads_destroys_nothing() {
        for (_, tool) in all() {
            assert!(!(tool.effect.read_only && tool.effect.destructive), "{}", tool.name);
            let reads = ["get_", "list_", "read_", "search_"].iter().any(|verb| tool.name.starts_with(verb));
            assert!(!reads || tool.effect.read_only, "{}", tool.name);
        }
    }

    #[test]
    fn memory_that_was_asked_for_comes_whole() {
        // The x86 tool cuts its text itself, and says where to go on.
        for tool in all().map(|(_, tool)| tool).filter(|tool| tool.name.ends_with("_read_memory")) {
            assert!(tool.whole, "{}", tool.name);
        }
    }

    #[test]
    fn the_meta_tools_are_in_every_profile() {
        for profile in Profile::all() {
            let names: Vec<_> = profile.tools().map(|tool| tool.name).collect();
            assert!(names.starts_with(&["list_tool_groups", "search_tools"]), "{}: {names:?}", profile.name());
            let leaves_out = matches!(profile.name(), "minimal" | "nds-live");
            assert_eq!(names.contains(&"call_tool"), leaves_out, "{}", profile.name());
        }
        assert_eq!(Profile::named("full").unwrap().tools().count(), all().count() - 1 - meta::LOADING.len());
        assert!(Profile::named("nothing").is_none());
    }

    #[test]
    fn the_profile_names_of_c64_mcp_are_understood_and_not_listed() {
        assert_eq!(Profile::named("static").unwrap().name(), "c64");
        for (alias, ours) in PROFILE_ALIASES {
            assert_eq!(Profile::named(alias).map(Profile::name), Some(*ours));
            assert!(!Profile::names().split(", ").any(|name| name == *alias), "{alias}");
        }
    }

    #[test]
    fn an_alias_is_called_by_its_name_and_shown_to_nobody() {
        for alias in c64_groups::ALIASES {
            assert_eq!(find(alias.name).map(|tool| tool.name), Some(alias.name));
            assert!(all().all(|(_, tool)| tool.name != alias.name), "{}", alias.name);
        }
    }

    #[test]
    fn a_typing_mistake_gets_the_name_meant() {
        assert_eq!(nearest("get_state"), Some("get_status"));
        assert_eq!(nearest("setwatchpoint"), Some("set_watchpoint"));
        assert_eq!(nearest("frobnicate_everything"), None);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
