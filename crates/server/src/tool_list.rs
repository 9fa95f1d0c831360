//! Which tools one client is shown: those of its profile and, where the protocol lets a list change, groups loaded on top.

use crate::context::Context;
use crate::errors::{ErrorCode, ToolError};
use crate::tools::{Entry, GROUPS, Group, Profile, meta};
use rmcp::service::{Peer, RoleServer};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

/// The word that loads every group.
pub const ALL: &str = "all";

/// The list of one client; cheap to clone, with what is loaded behind it shared.
#[derive(Clone, Debug)]
pub struct ToolList {
    profile: Profile,
    loaded: Arc<Mutex<Vec<&'static Group>>>,
    client: Option<Peer<RoleServer>>,
}

/// How groups stand to a list.
#[derive(Clone, Debug)]
pub struct Standings {
    shown: HashSet<&'static str>,
    baseline: HashSet<&'static str>,
}

impl Standings {
    /// Whether the client is shown a tool of that name.
    pub fn shows(&self, name: &str) -> bool {
        self.shown.contains(name)
    }

    /// Whether every tool of the group is shown.
    pub fn loaded(&self, group: &Group) -> bool {
        group.tools.iter().all(|tool| self.shown.contains(tool.name))
    }

    /// Whether the profile itself shows them all, so that the group stays.
    pub fn baseline(&self, group: &Group) -> bool {
        group.tools.iter().all(|tool| self.baseline.contains(tool.name))
    }
}

/// Names by which a client knows groups.
#[derive(Clone, Copy, Debug)]
pub struct Naming {
    /// What it calls the tools: `tool` in "unknown tool group".
    pub tools: &'static str,
    /// Each name and that of its group, in the order of the lists; empty where every group has its own name.
    pub groups: &'static [(&'static str, &'static str)],
    /// Names of profiles that are other than ours, and ours.
    pub profiles: &'static [(&'static str, &'static str)],
}

/// Whether the client was told that its list changed.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Told {
    /// Whether there was a change to tell.
    pub attempted: bool,
    /// Whether the notification went out.
    pub sent: bool,
    /// Why it did not.
    pub error: Option<String>,
}

/// A change of a list, or that there was none.
#[derive(Clone, Debug)]
pub struct Change {
    /// Tools that came or went, by name in their order.
    pub tools: Vec<&'static str>,
    /// Groups that are loaded now, by name in their order.
    pub loaded_groups: Vec<&'static str>,
    /// The profile.
    pub profile: &'static str,
    /// Whether the client was told.
    pub told: Told,
}

impl ToolList {
    /// The list of a profile, which does not change.
    pub fn new(profile: Profile) -> Self {
        Self { profile, loaded: Arc::default(), client: None }
    }

    /// The same list, which changes: `client` is told so.
    #[must_use]
    pub fn changing_for(&self, client: Peer<RoleServer>) -> Self {
        Self { client: Some(client), ..self.clone() }
    }

    /// Its profile.
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// Whether groups can be loaded.
    pub fn changes(&self) -> bool {
        self.client.is_some()
    }

    /// The tools, in the order of the lists.
    pub fn tools(&self) -> Vec<&'static Entry> {
        match self.changes() {
            true => shown(self.profile, &self.loaded()),
            false => self.profile.tools().collect(),
        }
    }

    /// How groups stand to the list as it is now.
    pub fn standings(&self) -> Standings {
        let names = |tools: &[&'static Entry]| tools.iter().map(|tool| tool.name).collect();
        Standings { shown: names(&self.tools()), baseline: names(&self.profile.tools().collect::<Vec<_>>()) }
    }

    fn loaded(&self) -> Vec<&'static Group> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Shows groups on top of what is shown: all of them, or none.
    ///
    /// # Errors
    /// `registration_failed` when two groups have a tool of the same name.
    fn add(&self, groups: &[&'static Group]) -> Result<Vec<&'static str>, ToolError> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let before = shown(self.profile, &loaded);
        let mut after = loaded.clone();
        for group in groups {
            if !after.iter().any(|other| other.name == group.name) {
                register(self.profile, &after, group)?;
                after.push(group);
            }
        }
        let names = difference(&shown(self.profile, &after), &before);
        // Nothing was touched before this line: a failure leaves the list as it was.
        *loaded = after;
        Ok(names)
    }

    /// Takes a group away that was loaded; what the profile shows of it stays.
    fn remove(&self, group: &Group) -> Vec<&'static str> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let before = shown(self.profile, &loaded);
        loaded.retain(|other| other.name != group.name);
        difference(&before, &shown(self.profile, &loaded))
    }

    /// Tells the client. The message goes out although the call be cancelled: the list has changed.
    async fn tell(&self) -> Told {
        let Some(client) = self.client.clone() else { return Told::default() };
        let sending = tokio::spawn(async move { client.notify_tool_list_changed().await });
        let error = match sending.await {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(error) => Some(error.to_string()),
        };
        Told { attempted: true, sent: error.is_none(), error }
    }
}

/// Refuses a group with a tool whose name another group's tool has already.
fn register(profile: Profile, loaded: &[&'static Group], group: &Group) -> Result<(), ToolError> {
    let others = profile.groups().iter().chain(loaded).filter(|other| other.name != group.name);
    let mut taken = others.flat_map(|other| other.tools.iter().map(|tool| (other.name, tool.name)));
    match taken.find(|(_, name)| group.tools.iter().any(|tool| tool.name == *name)) {
        None => Ok(()),
        Some((other, name)) => Err(ToolError::new(
            ErrorCode::RegistrationFailed,
            format!("the group `{}` cannot be loaded: `{name}` is a tool of `{other}` already", group.name),
        )
        .hint("nothing was loaded; load the groups that are needed one by one")
        .detail("group", group.name)
        .detail("rollback_errors", Vec::<String>::new())),
    }
}

/// What a client of the profile with these groups on top is shown.
fn shown(profile: Profile, loaded: &[&'static Group]) -> Vec<&'static Entry> {
    let call = profile.calls_any().then_some(&meta::CALL_TOOL);
    let listed = meta::GROUP.tools.iter().chain(meta::LOADING).chain(call);
    let mut tools: Vec<_> = listed.chain(profile.groups().iter().flat_map(|group| group.tools)).collect();
    // The order is that of the groups, whichever was loaded first.
    let mut loaded = loaded.to_vec();
    loaded.sort_by_key(|group| GROUPS.iter().position(|other| other.name == group.name));
    for tool in loaded.iter().flat_map(|group| group.tools) {
        if !tools.iter().any(|shown| shown.name == tool.name) {
            tools.push(tool);
        }
    }
    tools
}

/// Names of what is in `one` and not in the other, in their order.
fn difference(one: &[&'static Entry], other: &[&'static Entry]) -> Vec<&'static str> {
    let other: BTreeSet<_> = other.iter().map(|tool| tool.name).collect();
    let names: BTreeSet<_> = one.iter().map(|tool| tool.name).filter(|name| !other.contains(name)).collect();
    names.into_iter().collect()
}

impl Naming {
    /// Each name and its group, of those that this server has.
    pub fn groups(&self) -> Vec<(&'static str, &'static Group)> {
        if self.groups.is_empty() {
            return GROUPS.iter().map(|group| (group.name, *group)).collect();
        }
        let known = |ours: &str| GROUPS.iter().copied().find(|group| group.name == ours);
        self.groups.iter().filter_map(|(name, ours)| known(ours).map(|group| (*name, group))).collect()
    }

    /// The names of those that `fits`, in alphabetical order.
    pub fn names(&self, fits: impl Fn(&Group) -> bool) -> Vec<&'static str> {
        let names: BTreeSet<_> =
            self.groups().into_iter().filter(|(_, group)| fits(group)).map(|(name, _)| name).collect();
        names.into_iter().collect()
    }

    /// What it calls a profile.
    pub fn profile(&self, profile: Profile) -> &'static str {
        let name = profile.name();
        self.profiles.iter().find(|(_, ours)| *ours == name).map_or(name, |(theirs, _)| theirs)
    }

    fn named(&self, name: &str) -> Result<&'static Group, ToolError> {
        let groups = self.groups();
        groups.iter().find(|(known, _)| *known == name).map(|(_, group)| *group).ok_or_else(|| {
            let shown: String = name.chars().take(64).collect();
            let names: Vec<_> = groups.iter().map(|(name, _)| *name).collect();
            ToolError::new(ErrorCode::UnknownGroup, format!("there is no {} group `{shown}`", self.tools))
                .hint(format!("groups are: {}", names.join(", ")))
                .detail("group", shown)
                .detail("available_groups", names)
        })
    }

    fn change(&self, list: &ToolList, tools: Vec<&'static str>, told: Told) -> Change {
        let standings = list.standings();
        let loaded_groups = self.names(|group| standings.loaded(group));
        Change { tools, loaded_groups, profile: self.profile(list.profile), told }
    }

    /// Loads the group of that name, or `all`.
    ///
    /// # Errors
    /// `tool_list_fixed`, `unknown_group`, `registration_failed`; the list is then as it was.
    pub async fn load(&self, context: &Context, name: &str) -> Result<Change, ToolError> {
        let list = changing(context)?;
        let groups = match name {
            ALL => self.groups().into_iter().map(|(_, group)| group).collect(),
            _ => vec![self.named(name)?],
        };
        let tools = list.add(&groups)?;
        let told = if tools.is_empty() { Told::default() } else { list.tell().await };
        Ok(self.change(&list, tools, told))
    }

    /// Unloads the group of that name.
    ///
    /// # Errors
    /// In this order: `tool_list_fixed`, `unknown_group`, `no_partial_unload`, `protected_group`.
    pub async fn unload(&self, context: &Context, name: &str) -> Result<Change, ToolError> {
        let list = changing(context)?;
        let group = self.named(name)?;
        let profile = self.profile(list.profile);
        if list.profile.name() == Profile::FULL.name() {
            return Err(ToolError::new(
                ErrorCode::NoPartialUnload,
                "the profile `full` lists every group and lets none go",
            )
            .hint("for fewer tools start the server with another --tool-profile")
            .detail("group", name)
            .detail("profile", profile));
        }
        let standings = list.standings();
        if standings.baseline(group) {
            return Err(ToolError::new(
                ErrorCode::ProtectedGroup,
                format!("the group `{name}` belongs to the profile `{profile}`, which keeps it"),
            )
            .hint("only what load_tool_group added can be unloaded; for fewer tools use --tool-profile minimal")
            .detail("group", name)
            .detail("profile", profile)
            .detail("baseline_groups", self.names(|group| standings.baseline(group))));
        }
        let tools = list.remove(group);
        let told = if tools.is_empty() { Told::default() } else { list.tell().await };
        Ok(self.change(&list, tools, told))
    }
}

/// The client's list, if it is one that changes.
fn changing(context: &Context) -> Result<ToolList, ToolError> {
    let list = context.tool_list();
    if list.changes() {
        return Ok(list);
    }
    let why = match context.facts().transport {
        "http" => "over HTTP each endpoint has its own list, which does not change",
        "stdio" => "this revision of the protocol forbids that a list changes on a connection",
        _ => "there is no client with a list; every tool can be called",
    };
    Err(ToolError::new(ErrorCode::ToolListFixed, why).hint(format!(
        "use a profile that has the tools, by the endpoint /mcp/<profile> or --tool-profile ({}); call_tool in the profile \
         `minimal` calls any tool by its name",
        Profile::names()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::{c64_text, debug, nds};

    fn list(profile: &str) -> ToolList {
        ToolList::new(Profile::named(profile).unwrap())
    }

    fn names(list: &ToolList) -> Vec<&'static str> {
        shown(list.profile, &list.loaded()).iter().map(|tool| tool.name).collect()
    }

    #[test]
    fn the_order_is_that_of_the_groups_whichever_came_first() {
        let (one, other) = (list("minimal"), list("minimal"));
        one.add(&[&c64_text::GROUP]).unwrap();
        one.add(&[&debug::GROUP]).unwrap();
        other.add(&[&debug::GROUP, &c64_text::GROUP]).unwrap();
        assert_eq!(names(&one), names(&other));
        assert_eq!(
            names(&one)[..5],
            ["list_tool_groups", "search_tools", "load_tool_group", "unload_tool_group", "call_tool"]
        );
    }

    #[test]
    fn a_group_of_which_the_profile_has_a_part_brings_the_rest() {
        let list = list("nds-live");
        let standings = list.standings();
        assert!(!standings.loaded(&nds::GROUP) && !standings.baseline(&nds::GROUP));
        let before = names(&list);
        let new = list.add(&[&nds::GROUP]).unwrap();
        assert_eq!(new.len(), nds::GROUP.tools.len() - nds::FEW.tools.len());
        assert!(new.is_sorted() && new.iter().all(|name| !before.contains(name)));
        assert_eq!(list.add(&[&nds::GROUP]).unwrap(), Vec::<&str>::new());
        assert_eq!(list.remove(&nds::GROUP), new);
        assert_eq!(names(&list), before);
    }

    #[test]
    fn what_cannot_be_loaded_whole_is_not_loaded_at_all() {
        // A group whose second tool has the name of one that is there already.
        static WRONG: Group = Group {
            name: "wrong",
            purpose: "Fails to load.",
            files: false,
            tools: &[nds::GROUP.tools[0], debug::GROUP.tools[0]],
        };
        let list = list("debug");
        let before = names(&list);
        let error = list.add(&[&c64_text::GROUP, &WRONG]).unwrap_err();
        assert_eq!(error.code, ErrorCode::RegistrationFailed);
        assert!(error.message.contains("`wrong`") && error.message.contains("`launch`"), "{error}");
        assert_eq!(
            (&error.details["group"], &error.details["rollback_errors"]),
            (&"wrong".into(), &serde_json::json!([]))
        );
        assert_eq!(names(&list), before, "the group before the wrong one was taken back");
        assert_eq!(list.add(&[&c64_text::GROUP]).unwrap().len(), c64_text::GROUP.tools.len());
    }

    #[test]
    fn every_tool_has_a_name_of_its_own_so_that_all_can_be_loaded() {
        for profile in Profile::all() {
            let list = ToolList::new(profile);
            list.add(GROUPS).unwrap();
            for group in GROUPS {
                assert!(group.tools.iter().all(|tool| names(&list).contains(&tool.name)), "{}", group.name);
            }
        }
    }
}
