//! What the server is told: flag before environment before `retroscope.toml` before default.

use crate::errors::{ErrorCode, ToolError};
use crate::ghidra::GhidraSettings;
use crate::launch_roots::LaunchRoots;
use crate::rom_cache::RomIdentity;
use crate::tools::Profile;
use crate::tools::nds_live::session::EmulatorOptions;
use base::limits;
use serde::Deserialize;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

/// The keys of `retroscope.toml`; an unknown one is refused.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileConfig {
    /// Where the debug agent listens, `host:port`.
    pub agent: Option<String>,
    /// The folder that file tools work below.
    pub workspace: Option<PathBuf>,
    /// Which tools are listed.
    pub tool_profile: Option<String>,
    /// Programs may be launched from below these folders only.
    pub launch_roots: Option<Vec<String>>,
    /// Longest tool answer in characters.
    pub max_output_chars: Option<u64>,
    /// Time that a command which does not wait for the program may take, in milliseconds.
    pub command_timeout_ms: Option<u64>,
    /// How emulators are started.
    pub emulator: Option<EmulatorConfig>,
    /// What makes a ROM the one that was read before: `metadata` (default) or `sha256`.
    pub identity: Option<String>,
    /// Names beside `localhost` under which HTTP clients may address the server.
    pub allowed_hosts: Option<Vec<String>>,
    /// Web pages that may use the server, such as `http://localhost:6274`.
    pub allowed_origins: Option<Vec<String>>,
}

/// The table `[emulator]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmulatorConfig {
    /// The launcher that is started when a call names none; a name on PATH, or a path.
    pub launcher: Option<PathBuf>,
    /// A GDB stub on this machine that somebody else started, to attach to instead: `127.0.0.1:3333`.
    pub gdb: Option<SocketAddr>,
    /// Whether the emulator may open its window on the server's display.
    pub window: Option<bool>,
    /// Whether watchpoints on data may be set.
    pub watchpoints: Option<bool>,
}

impl EmulatorConfig {
    fn resolve(self, source: &str) -> Result<EmulatorOptions, ToolError> {
        if let Some(gdb) = self.gdb.filter(|gdb| !gdb.ip().is_loopback()) {
            return Err(wrong(format!("{source}: `gdb` is {gdb}; only an address of this machine is allowed"))
                .hint("write it like 127.0.0.1:3333: the protocol has no password"));
        }
        Ok(EmulatorOptions {
            guard: None,
            launcher: self.launcher,
            gdb: self.gdb,
            window: self.window.unwrap_or(false),
            watchpoints: self.watchpoints.unwrap_or(false),
        })
    }
}

/// What flags said.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    /// `--config`.
    pub config: Option<PathBuf>,
    /// `--agent`.
    pub agent: Option<String>,
    /// `--workspace`.
    pub workspace: Option<PathBuf>,
    /// `--tool-profile`.
    pub tool_profile: Option<String>,
    /// `--launch-root`.
    pub launch_roots: Vec<String>,
    /// `--allowed-host`.
    pub allowed_hosts: Vec<String>,
}

/// Where one looks for variables and files.
pub struct Surroundings<'a> {
    /// Environment variables.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// The current folder.
    pub folder: PathBuf,
}

/// What holds.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the debug agent listens.
    pub agent: String,
    /// The folder that file tools work below, checked.
    pub workspace: Option<PathBuf>,
    /// Which tools are listed.
    pub profile: Profile,
    /// Where programs may be launched from.
    pub launch_roots: LaunchRoots,
    /// Longest tool answer in characters.
    pub max_output_chars: usize,
    /// Time that a command which does not wait for the program may take.
    pub command_timeout: Duration,
    /// What makes a ROM the one that was read before.
    pub rom_identity: RomIdentity,
    /// How emulators are started.
    pub emulator: EmulatorOptions,
    /// Names beside `localhost` under which HTTP clients may address the server.
    pub allowed_hosts: Vec<String>,
    /// Web pages that may use the server.
    pub allowed_origins: Vec<String>,
    /// The token that HTTP clients must show.
    pub token: Option<Token>,
    /// Where Ghidra is and how it is asked.
    pub ghidra: GhidraSettings,
    /// Where the VICE connector is.
    pub vice: GhidraSettings,
    /// The configuration file that was read.
    pub file: Option<PathBuf>,
}

/// A secret, which no message shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// A secret.
    pub fn new(secret: String) -> Self {
        Self(secret)
    }

    /// The secret itself.
    pub fn secret(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

fn wrong(message: impl Into<String>) -> ToolError {
    ToolError::new(ErrorCode::ConfigInvalid, message)
}

impl Settings {
    /// Puts everything together.
    ///
    /// # Errors
    /// `config_invalid`, `workspace_missing` or `path_refused`, naming where the value came from.
    pub fn resolve(flags: Flags, around: &Surroundings<'_>) -> Result<Self, ToolError> {
        let variable = |names: &[&'static str]| -> Option<(&'static str, String)> {
            names
                .iter()
                .find_map(|name| (around.variable)(name).filter(|value| !value.is_empty()).map(|value| (*name, value)))
        };
        let (path, file) = read_file(flags.config.as_deref(), around)?;
        let source = path.as_deref().map_or_else(|| "the default".to_owned(), |path| path.display().to_string());

        let profile = flags
            .tool_profile
            .map(|name| ("--tool-profile".to_owned(), name))
            .or_else(|| {
                variable(&["RETROSCOPE_TOOL_PROFILE", "C64_MCP_TOOL_PROFILE"])
                    .map(|(from, name)| (from.to_owned(), name))
            })
            .or_else(|| file.tool_profile.map(|name| (source.clone(), name)));
        let profile = match profile {
            None => Profile::FULL,
            Some((from, name)) => Profile::named(&name).ok_or_else(|| {
                wrong(format!("{from}: there is no tool profile `{name}`"))
                    .hint(format!("profiles are: {}", Profile::names()))
            })?,
        };

        let agent = flags
            .agent
            .map(|address| ("--agent".to_owned(), address))
            .or_else(|| variable(&["RETROSCOPE_AGENT"]).map(|(from, address)| (from.to_owned(), address)))
            .or_else(|| file.agent.map(|address| (source.clone(), address)));
        let agent = match agent {
            None => format!("127.0.0.1:{}", limits::DEFAULT_AGENT_PORT),
            Some((from, address)) => check_address(&from, address)?,
        };

        let workspace = flags
            .workspace
            .map(|folder| ("--workspace".to_owned(), folder))
            .or_else(|| {
                variable(&["RETROSCOPE_WORKSPACE_ROOT", "RE_MCP_WORKSPACE_ROOT"])
                    .map(|(from, folder)| (from.to_owned(), folder.into()))
            })
            .or_else(|| file.workspace.map(|folder| (source.clone(), folder)));
        let home = ["HOME", "USERPROFILE"].into_iter().find_map(around.variable).map(PathBuf::from);
        let workspace = match workspace {
            None => None,
            Some((from, folder)) => Some(check_workspace(&from, &around.folder.join(folder), home.as_deref())?),
        };

        let (fewest, most) = (limits::MIN_OUTPUT_CHARS as u64, limits::MAX_OUTPUT_CHARS as u64);
        let output = number(
            variable(&["RE_MCP_MAX_OUTPUT_BYTES"]),
            file.max_output_chars,
            &source,
            "max_output_chars",
            fewest,
            most,
        )?;
        let timeout = number(
            variable(&["RE_MCP_COMMAND_TIMEOUT_MS"]),
            file.command_timeout_ms,
            &source,
            "command_timeout_ms",
            1,
            limits::MAX_COMMAND_TIMEOUT_MS,
        )?;

        let rom_identity = match file.identity.as_deref() {
            None | Some("metadata") => RomIdentity::Metadata,
            Some("sha256") => RomIdentity::Sha256,
            Some(other) => {
                return Err(wrong(format!("{source}: `identity` is `{other}`; allowed are `metadata` and `sha256`")));
            }
        };

        let launch_roots =
            if flags.launch_roots.is_empty() { file.launch_roots.unwrap_or_default() } else { flags.launch_roots };
        let mut allowed_hosts = flags.allowed_hosts;
        allowed_hosts.extend(file.allowed_hosts.unwrap_or_default());

        Ok(Self {
            agent,
            workspace,
            profile,
            launch_roots: LaunchRoots::new(launch_roots)?,
            max_output_chars: output
                .and_then(|chars| usize::try_from(chars).ok())
                .unwrap_or(limits::DEFAULT_OUTPUT_CHARS),
            command_timeout: Duration::from_millis(timeout.unwrap_or(limits::COMMAND_TIMEOUT_MS)),
            rom_identity,
            emulator: file.emulator.unwrap_or_default().resolve(&source)?,
            allowed_hosts,
            allowed_origins: file.allowed_origins.unwrap_or_default(),
            token: variable(&["RETROSCOPE_TOKEN", "HAVOC_MCP_TOKEN"]).map(|(_, secret)| Token(secret)),
            ghidra: GhidraSettings::resolve(around.variable)?,
            vice: GhidraSettings::of_vice(around.variable)?,
            file: path,
        })
    }

    /// Refuses to serve tools that work on files without a folder for them.
    ///
    /// # Errors
    /// `workspace_missing`.
    pub fn require_workspace(&self, has_file_tools: bool) -> Result<(), ToolError> {
        if !has_file_tools || self.workspace.is_some() {
            return Ok(());
        }
        Err(ToolError::new(
            ErrorCode::WorkspaceMissing,
            format!("the profile `{}` has tools that work on files, and no workspace is named", self.profile.name()),
        )
        .hint("name the folder with --workspace DIR or RETROSCOPE_WORKSPACE_ROOT, or use --tool-profile debug"))
    }
}

/// `--config`, or `retroscope.toml` here, or that of the user's configuration folder; absent ones are empty.
fn read_file(named: Option<&Path>, around: &Surroundings<'_>) -> Result<(Option<PathBuf>, FileConfig), ToolError> {
    let user = (around.variable)("XDG_CONFIG_HOME")
        .filter(|folder| !folder.is_empty())
        .map(PathBuf::from)
        .or_else(|| (around.variable)("HOME").map(|home| Path::new(&home).join(".config")))
        // Windows has neither.
        .or_else(|| (around.variable)("APPDATA").map(PathBuf::from))
        .map(|folder| folder.join("retroscope/retroscope.toml"));
    let path = match named {
        Some(path) => Some(around.folder.join(path)),
        None => [Some(around.folder.join("retroscope.toml")), user].into_iter().flatten().find(|path| path.is_file()),
    };
    let Some(path) = path else { return Ok((None, FileConfig::default())) };
    let text = std::fs::read_to_string(&path).map_err(|error| wrong(format!("{}: {error}", path.display())))?;
    let config = toml::from_str(&text)
        .map_err(|error| wrong(format!("{}: {}", path.display(), error.to_string().trim_end())))?;
    Ok((Some(path), config))
}

fn check_address(from: &str, address: String) -> Result<String, ToolError> {
    let port =
        address.rsplit_once(':').filter(|(host, _)| !host.is_empty()).and_then(|(_, port)| u16::from_str(port).ok());
    match port {
        Some(port) if port != 0 => Ok(address),
        _ => Err(wrong(format!("{from}: `{address}` is no address of an agent"))
            .hint(format!("write it like 127.0.0.1:{}", limits::DEFAULT_AGENT_PORT))),
    }
}

/// The real path of a workspace root. The whole file system and the whole home folder are no workspace: what may be
/// overwritten there is more than anybody meant.
///
/// # Errors
/// `path_refused`, `config_invalid`.
pub fn check_workspace(from: &str, folder: &Path, home: Option<&Path>) -> Result<PathBuf, ToolError> {
    let real =
        folder.canonicalize().map_err(|error| wrong(format!("{from}: the workspace {}: {error}", folder.display())))?;
    if !real.is_dir() {
        return Err(wrong(format!("{from}: the workspace {} is no folder", folder.display())));
    }
    let home = home.and_then(|home| home.canonicalize().ok());
    let refuse = |what: &str| {
        ToolError::new(
            ErrorCode::Agent(wire::ErrorCode::PathRefused),
            format!("{from}: {what} is no workspace: tools may write anywhere below it"),
        )
        .hint("make a folder for this work and name that")
    };
    if real.parent().is_none() {
        return Err(refuse("the root of the file system"));
    }
    if home.is_some_and(|home| home == real) {
        return Err(refuse("the home folder"));
    }
    Ok(real)
}

fn number(
    variable: Option<(&'static str, String)>,
    file: Option<u64>,
    source: &str,
    key: &str,
    least: u64,
    most: u64,
) -> Result<Option<u64>, ToolError> {
    let (from, text) = match (variable, file) {
        (Some((name, text)), _) => (name.to_owned(), text),
        (None, Some(value)) => (format!("{source}: {key}"), value.to_string()),
        (None, None) => return Ok(None),
    };
    match text.trim().parse::<u64>() {
        Ok(value) if (least..=most).contains(&value) => Ok(Some(value)),
        _ => Err(wrong(format!("{from} is `{text}`; allowed are {least} to {most}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    struct World {
        folder: tempfile::TempDir,
        variables: HashMap<String, String>,
    }

    impl World {
        fn new(variables: &[(&str, &str)]) -> Self {
            let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            Self { folder: tempfile::tempdir().unwrap(), variables }
        }

        fn file(self, text: &str) -> Self {
            std::fs::write(self.folder.path().join("retroscope.toml"), text).unwrap();
            self
        }

        fn resolve(&self, flags: Flags) -> Result<Settings, ToolError> {
            let variable = |name: &str| self.variables.get(name).cloned();
            Settings::resolve(flags, &Surroundings { variable: &variable, folder: self.folder.path().to_owned() })
        }
    }

    #[test]
    fn a_flag_goes_before_a_variable_before_the_file_before_the_default() {
        let nothing = World::new(&[]).resolve(Flags::default()).unwrap();
        assert_eq!((nothing.agent.as_str(), nothing.profile.name()), ("127.0.0.1:47474", "full"));
        assert_eq!((nothing.max_output_chars, nothing.command_timeout.as_secs()), (20_000, 10));
        assert!(nothing.token.is_none() && nothing.workspace.is_none() && nothing.file.is_none());

        let text = "agent = \"file:1\"\ntool_profile = \"minimal\"\nmax_output_chars = 5000\nidentity = \"sha256\"\n";
        let world = World::new(&[]).file(text);
        let file = world.resolve(Flags::default()).unwrap();
        assert_eq!((file.agent.as_str(), file.profile.name(), file.max_output_chars), ("file:1", "minimal", 5_000));
        assert_eq!((nothing.rom_identity, file.rom_identity), (RomIdentity::Metadata, RomIdentity::Sha256));

        let variables =
            [("RETROSCOPE_AGENT", "env:2"), ("RETROSCOPE_TOOL_PROFILE", "debug"), ("RE_MCP_MAX_OUTPUT_BYTES", "6000")];
        let world = World::new(&variables).file(text);
        let variable = world.resolve(Flags::default()).unwrap();
        assert_eq!(
            (variable.agent.as_str(), variable.profile.name(), variable.max_output_chars),
            ("env:2", "debug", 6_000)
        );

        let flags = Flags { agent: Some("flag:3".into()), tool_profile: Some("full".into()), ..Flags::default() };
        let flag = world.resolve(flags).unwrap();
        assert_eq!((flag.agent.as_str(), flag.profile.name()), ("flag:3", "full"));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let refused = |world: World, flags: Flags| world.resolve(flags).unwrap_err().line();
        let none = || World::new(&[]);
        for (line, words) in [
            (refused(none().file("agnet = \"x:1\""), Flags::default()), "unknown field `agnet`"),
            (refused(none().file("agent = "), Flags::default()), "retroscope.toml"),
            (refused(none().file("identity = \"md5\""), Flags::default()), "allowed are `metadata` and `sha256`"),
            (refused(none(), Flags { config: Some("absent.toml".into()), ..Flags::default() }), "absent.toml"),
            (refused(none(), Flags { agent: Some("somewhere".into()), ..Flags::default() }), "--agent: `somewhere`"),
            (refused(none(), Flags { agent: Some(":1".into()), ..Flags::default() }), "no address"),
            (refused(none(), Flags { tool_profile: Some("ndss".into()), ..Flags::default() }), "profiles are: full"),
            (
                refused(World::new(&[("RE_MCP_MAX_OUTPUT_BYTES", "12")]), Flags::default()),
                "RE_MCP_MAX_OUTPUT_BYTES is `12`",
            ),
            (refused(World::new(&[("RE_MCP_COMMAND_TIMEOUT_MS", "ten")]), Flags::default()), "`ten`; allowed are 1 to"),
        ] {
            assert!(line.contains(words), "{line}");
        }
    }

    #[test]
    fn the_whole_disk_and_the_home_folder_are_no_workspace() {
        let world = World::new(&[]);
        let root = world.folder.path().join("project");
        std::fs::create_dir(&root).unwrap();
        assert_eq!(check_workspace("here", &root, Some(world.folder.path())).unwrap(), root.canonicalize().unwrap());
        for (folder, home, word) in [
            (Path::new("/"), None, "the root of the file system"),
            (Path::new("/tmp/.."), None, "the root of the file system"),
            (root.as_path(), Some(root.as_path()), "the home folder"),
            (&root.join("absent"), None, "absent"),
        ] {
            let line = check_workspace("here", folder, home).unwrap_err().line();
            assert!(line.contains(word), "{line}");
        }
    }

    #[test]
    fn the_older_names_of_variables_are_understood() {
        let world = World::new(&[("HAVOC_MCP_TOKEN", "secret"), ("RE_MCP_WORKSPACE_ROOT", ".")]);
        let settings = world.resolve(Flags::default()).unwrap();
        assert_eq!(settings.token.as_ref().unwrap().secret(), "secret");
        assert!(!format!("{settings:?}").contains("secret"));
        assert_eq!(settings.workspace.unwrap(), world.folder.path().canonicalize().unwrap());
        let both = World::new(&[("HAVOC_MCP_TOKEN", "old"), ("RETROSCOPE_TOKEN", "new")]);
        assert_eq!(both.resolve(Flags::default()).unwrap().token.unwrap().secret(), "new");
    }

    #[test]
    fn the_profile_variable_of_c64_mcp_is_understood_after_ours() {
        let profile = |variables: &[(&str, &str)], file: &str| {
            World::new(variables).file(file).resolve(Flags::default()).map(|settings| settings.profile.name())
        };
        let theirs = ("C64_MCP_TOOL_PROFILE", "static");
        assert_eq!(profile(&[theirs], "").unwrap(), "c64");
        assert_eq!(profile(&[theirs, ("RETROSCOPE_TOOL_PROFILE", "debug")], "").unwrap(), "debug");
        assert_eq!(profile(&[theirs], "tool_profile = \"nds\"").unwrap(), "c64");
        assert_eq!(profile(&[], "tool_profile = \"static\"").unwrap(), "c64");
        let line = profile(&[("C64_MCP_TOOL_PROFILE", "dynamic")], "").unwrap_err().line();
        assert!(line.contains("C64_MCP_TOOL_PROFILE: there is no tool profile `dynamic`"), "{line}");
        assert!(line.contains("profiles are: full, minimal"), "{line}");
    }

    #[test]
    fn file_tools_need_a_workspace_and_others_do_not() {
        let settings = World::new(&[]).resolve(Flags::default()).unwrap();
        assert!(settings.require_workspace(false).is_ok());
        assert_eq!(settings.require_workspace(true).unwrap_err().code, ErrorCode::WorkspaceMissing);
    }
}
